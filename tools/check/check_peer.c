/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_peer.h"

#include <stdlib.h>
#include <string.h>

#define UCI_CHECK_HAIL_MAGIC     0x4b484355u /* "UCHK"; reads otherwise where bytes have another order */
#define UCI_CHECK_HAIL_VERSION   1
#define UCI_CHECK_HAIL_WORDS     4
#define UCI_CHECK_BUCKET_ENTRIES 4 /* in a bucket, on the average */
#define UCI_CHECK_BUCKETS_FREE   4096
#define UCI_CHECK_BUCKETS_RATIO  64 /* more entries than that times the fewer are not believed to be alike */
#define UCI_CHECK_BUCKETS_MAX    ((uint64_t)1 << 22)
#define UCI_CHECK_SEGMENT        ((size_t)1 << 20)   /* of entries, in a message */
#define UCI_CHECK_ENTRIES_MAX    ((uint64_t)1 << 32) /* bytes of entries that are taken */

/* REQUEST and READY */
typedef struct uci_check_hail {
    uint64_t seal; /* digest of what follows */
    uint32_t magic;
    uint32_t version;
    uint64_t words[UCI_CHECK_HAIL_WORDS];
    char text[UCI_CHECK_TEXT_MAX];
} uci_check_hail_t;

enum {
    UCI_CHECK_REQUEST_DIGEST,
    UCI_CHECK_REQUEST_CHUNK_SIZE,
    UCI_CHECK_REQUEST_ARITY,
    UCI_CHECK_REQUEST_ONE_FILE_SYSTEM
};

enum { UCI_CHECK_READY_IS_GOOD, UCI_CHECK_READY_ENTRIES };

/* What a message of entries is made of; the name follows */
typedef struct uci_check_record {
    uint64_t root;
    uint64_t length;
    uint32_t name_length;
    uint32_t type;
} uci_check_record_t;

/* @return NULL, or what is wrong. */
static const char *uci_check_hail_wrong(const uci_check_hail_t *hail, size_t length)
{
    size_t head = offsetof(uci_check_hail_t, text);

    if ((length < head) || (hail->magic != UCI_CHECK_HAIL_MAGIC)) {
        return "it is no uci_check, or on a machine with another order of bytes";
    }
    if (hail->version != UCI_CHECK_HAIL_VERSION) {
        return "it is a uci_check of another version";
    }
    if ((hail->seal != uci_check_hash(&hail->magic, length - sizeof(hail->seal))) ||
        ((length > head) && ((const char *)hail)[length - 1] != '\0')) {
        return "its message is damaged";
    }
    return NULL;
}

/* @a hail is sent with the words and text it has, and is what was received then */
static uci_status_t uci_check_hail(const uci_check_wire_t *wire, uci_check_hail_t *hail)
{
    size_t text         = (hail->text[0] == '\0') ? 0 : strlen(hail->text) + 1, in_length;
    size_t length       = offsetof(uci_check_hail_t, text) + text;
    uci_check_hail_t in = {0};
    uci_status_t status;
    const char *wrong;

    hail->magic   = UCI_CHECK_HAIL_MAGIC;
    hail->version = UCI_CHECK_HAIL_VERSION;
    hail->seal    = uci_check_hash(&hail->magic, length - sizeof(hail->seal));
    status        = wire->swap(wire->arg, hail, length, &in, sizeof(in), &in_length);
    if (status != UCI_OK) {
        return status;
    }
    wrong = uci_check_hail_wrong(&in, in_length);
    if (wrong != NULL) {
        uci_check_complain("the other side is not understood: %s", wrong);
        status = UCI_ERR_CORRUPT;
    }
    *hail = in;
    return status;
}

uci_status_t uci_check_ask(const uci_check_wire_t *wire, const uci_check_request_t *request)
{
    uci_check_hail_t hail = {.words = {[UCI_CHECK_REQUEST_DIGEST]          = request->form.digest->id,
                                       [UCI_CHECK_REQUEST_CHUNK_SIZE]      = request->form.chunk_size,
                                       [UCI_CHECK_REQUEST_ARITY]           = request->form.arity,
                                       [UCI_CHECK_REQUEST_ONE_FILE_SYSTEM] = request->one_file_system}};

    memcpy(hail.text, request->path, sizeof(hail.text));
    return uci_check_hail(wire, &hail);
}

static uci_status_t uci_check_take_request(const uci_check_hail_t *hail, uci_check_request_t *request)
{
    uint64_t digest = hail->words[UCI_CHECK_REQUEST_DIGEST], chunk_size = hail->words[UCI_CHECK_REQUEST_CHUNK_SIZE];
    uint64_t arity = hail->words[UCI_CHECK_REQUEST_ARITY];

    if ((digest == UCI_DIGEST_NONE) || (digest >= UCI_DIGEST_LAST) || (uci_digest_by_id((unsigned)digest) == NULL) ||
        (chunk_size < UCI_CHECK_CHUNK_SIZE_MIN) || (chunk_size > UCI_CHECK_CHUNK_SIZE_MAX) ||
        (arity < UCI_MERKLE_ARITY_MIN) || (arity > UCI_MERKLE_ARITY_MAX) || (hail->text[0] == '\0')) {
        uci_check_complain("what the other side asks for is not possible here: digest %llu, chunk size %llu",
                           (unsigned long long)digest, (unsigned long long)chunk_size);
        return UCI_ERR_UNSUPPORTED;
    }
    request->form            = (uci_check_form_t){uci_digest_by_id((unsigned)digest), chunk_size, (unsigned)arity};
    request->one_file_system = (hail->words[UCI_CHECK_REQUEST_ONE_FILE_SYSTEM] != 0);
    memcpy(request->path, hail->text, sizeof(request->path));
    return UCI_OK;
}

uci_status_t uci_check_be_asked(const uci_check_wire_t *wire, uci_check_request_t *request)
{
    uci_check_hail_t hail = {0};
    uci_status_t status   = uci_check_hail(wire, &hail);

    return (status == UCI_OK) ? uci_check_take_request(&hail, request) : status;
}

/* @param entries_p  of the other side */
static uci_status_t uci_check_ready(const uci_check_wire_t *wire, const uci_check_list_t *own, uint64_t *entries_p)
{
    uci_check_hail_t hail = {.words = {[UCI_CHECK_READY_IS_GOOD] = (own != NULL),
                                       [UCI_CHECK_READY_ENTRIES] = (own != NULL) ? own->count : 0}};
    uci_status_t status   = uci_check_hail(wire, &hail);

    if ((status == UCI_OK) && ((own == NULL) || !hail.words[UCI_CHECK_READY_IS_GOOD])) {
        if (own != NULL) {
            uci_check_complain("the other side could not read its data: what it said is above");
        }
        status = UCI_ERR_IO;
    }
    *entries_p = hail.words[UCI_CHECK_READY_ENTRIES];
    return status;
}

/* The same number on both sides, a power of 2, and bounded whatever number of entries the other side claims to have */
static uint64_t uci_check_bucket_count(uint64_t own, uint64_t theirs)
{
    uint64_t entries = uci_min(uci_max(own, theirs),
                               UCI_CHECK_BUCKETS_FREE + (UCI_CHECK_BUCKETS_RATIO * uci_min(own, theirs)));
    uint64_t count   = 1;

    while ((count < UCI_CHECK_BUCKETS_MAX) && (count * UCI_CHECK_BUCKET_ENTRIES < entries)) {
        count *= 2;
    }
    return count;
}

static size_t uci_check_bucket_of(const uci_check_entry_t *entry, uint64_t buckets)
{
    return uci_check_hash(entry->name, strlen(entry->name)) & (buckets - 1);
}

/* What could not be read is never the same: both sides are to hear of it */
static uint64_t uci_check_entry_digest(const uci_check_entry_t *entry, bool is_asker)
{
    uint64_t words[] = {uci_check_hash(entry->name, strlen(entry->name)), entry->type, entry->root, entry->length,
                        (entry->type == UCI_CHECK_UNREADABLE) ? (uint64_t)is_asker + 1 : 0};

    return uci_check_hash(words, sizeof(words));
}

static void uci_check_make_buckets(const uci_check_list_t *own, bool is_asker, uint64_t buckets,
                                   uci_merkle_side_t *side)
{
    uint64_t *digests = uci_check_memory(calloc(buckets, sizeof(*digests))), words[2];
    size_t i, bucket;

    *side      = (uci_merkle_side_t){.length = buckets, .chunk_size = 1, .digest = UCI_DIGEST_XXH3};
    side->tree = uci_check_make_tree(buckets, own->form.arity);
    for (i = 0; i < own->count; ++i) {
        bucket          = uci_check_bucket_of(&own->entries[i], buckets);
        words[0]        = digests[bucket]; /* the list is sorted: so are the entries of a bucket */
        words[1]        = uci_check_entry_digest(&own->entries[i], is_asker);
        digests[bucket] = uci_check_hash(words, sizeof(words));
    }
    for (i = 0; i < buckets; ++i) {
        uci_merkle_set_leaf(side->tree, i, digests[i]);
    }
    free(digests);
}

/* Marks, a byte for each leaf of a tree */
typedef struct uci_check_marks {
    uint8_t *bytes;
    uint64_t count;
} uci_check_marks_t;

/* What a side of another length claims to have behind the end is left out; the lengths are compared later */
static void uci_check_mark(void *arg, uint64_t offset, uint64_t length)
{
    const uci_check_marks_t *marks = arg;

    if (offset < marks->count) {
        memset(marks->bytes + offset, 1, uci_min(length, marks->count - offset));
    }
}

/* Mark the leaves of @a side, a tree that has one for each of its bytes, that differ from those of the other side */
static uci_status_t uci_check_exchange(const uci_check_wire_t *wire, const uci_merkle_side_t *side,
                                       uci_check_marks_t *marks)
{
    uci_merkle_exchange_result_t result;
    uci_status_t status;

    *marks = (uci_check_marks_t){uci_check_memory(calloc(1, side->length)), side->length};
    status = uci_merkle_exchange(side, wire->swap, wire->arg, uci_check_mark, marks, &result);
    if ((status == UCI_OK) && (result.peer_length != side->length)) {
        uci_check_complain("the other side compares %llu digests, this one %llu",
                           (unsigned long long)result.peer_length, (unsigned long long)side->length);
        status = UCI_ERR_CORRUPT;
    }
    if (status != UCI_OK) {
        free(marks->bytes);
        marks->bytes = NULL;
    }
    return status;
}

static uci_status_t uci_check_find_buckets(const uci_check_wire_t *wire, const uci_check_list_t *own, bool is_asker,
                                           uint64_t buckets, uci_check_marks_t *marks)
{
    uci_merkle_side_t side;
    uci_status_t status;

    uci_check_make_buckets(own, is_asker, buckets, &side);
    status = uci_check_exchange(wire, &side, marks);
    uci_merkle_destroy(side.tree);
    return status;
}

/* The entries of marked buckets, which stay the memory of @a own */
static void uci_check_take_subset(const uci_check_list_t *own, const uci_check_marks_t *marks, uci_check_list_t *subset)
{
    size_t i;

    for (i = 0; i < own->count; ++i) {
        if (marks->bytes[uci_check_bucket_of(&own->entries[i], marks->count)]) {
            *uci_check_list_add(subset) = own->entries[i];
        }
    }
}

typedef struct uci_check_blob {
    uint8_t *bytes;
    uint64_t length;
} uci_check_blob_t;

static void uci_check_pack(const uci_check_list_t *list, uci_check_blob_t *blob)
{
    const uci_check_entry_t *entry;
    uci_check_record_t record;
    uint8_t *out;
    size_t i;

    *blob = (uci_check_blob_t){0};
    for (i = 0; i < list->count; ++i) {
        blob->length += sizeof(record) + strlen(list->entries[i].name);
    }
    blob->bytes = uci_check_memory(malloc(blob->length + 1));
    for (i = 0, out = blob->bytes; i < list->count; ++i) {
        entry  = &list->entries[i];
        record = (uci_check_record_t){entry->root, entry->length, (uint32_t)strlen(entry->name), entry->type};
        out    = mempcpy(out, &record, sizeof(record));
        out    = mempcpy(out, entry->name, record.name_length);
    }
}

/* @return NULL, or what is wrong. */
static const char *uci_check_add_record(uci_check_list_t *list, const uci_check_record_t *record, const uint8_t *name)
{
    uci_check_entry_t *entry;
    char *copy;

    if ((record->name_length == 0) || (memchr(name, '\0', record->name_length) != NULL) ||
        (record->length > UCI_MERKLE_LENGTH_MAX) || (record->type == 0) || (record->type > 127) ||
        (strchr("fldoe", (int)record->type) == NULL)) {
        return "an entry is impossible";
    }
    copy = uci_check_memory(strndup((const char *)name, record->name_length));
    if ((list->count > 0) && (strcmp(list->entries[list->count - 1].name, copy) >= 0)) {
        free(copy);
        return "entries are not in order";
    }
    entry         = uci_check_list_add(list);
    entry->path   = copy;
    entry->name   = copy;
    entry->type   = (uci_check_type_t)record->type;
    entry->root   = record->root;
    entry->length = record->length;
    return NULL;
}

static uci_status_t uci_check_unpack(const uci_check_blob_t *blob, uci_check_list_t *list)
{
    uint64_t at = 0, left;
    uci_check_record_t record;
    const char *wrong = NULL;

    while ((wrong == NULL) && (at < blob->length)) {
        left = blob->length - at;
        if (left < sizeof(record)) {
            wrong = "they are cut short";
            break;
        }
        memcpy(&record, blob->bytes + at, sizeof(record));
        if (record.name_length > left - sizeof(record)) {
            wrong = "they are cut short";
            break;
        }
        wrong = uci_check_add_record(list, &record, blob->bytes + at + sizeof(record));
        at += sizeof(record) + record.name_length;
    }
    if (wrong != NULL) {
        uci_check_complain("the other side's entries are not taken: %s", wrong);
        return UCI_ERR_CORRUPT;
    }
    return UCI_OK;
}

/* Room for as much as has come, and a segment: what the other side only claims to send takes none */
static void uci_check_make_room(uci_check_blob_t *blob, uint64_t *room)
{
    if (blob->length + UCI_CHECK_SEGMENT > *room) {
        *room       = uci_max(blob->length + UCI_CHECK_SEGMENT, 2 * *room);
        blob->bytes = uci_check_memory(realloc(blob->bytes, *room));
    }
}

/* Both send segments until both have all: the other side's is of @a length bytes */
static uci_status_t uci_check_swap_segments(const uci_check_wire_t *wire, const uci_check_blob_t *own, uint64_t length,
                                            uci_check_blob_t *theirs)
{
    uint64_t sent = 0, room = 0, segment;
    uci_status_t status;
    size_t in_length;

    *theirs = (uci_check_blob_t){0};
    while ((sent < own->length) || (theirs->length < length)) {
        segment = uci_min(own->length - sent, UCI_CHECK_SEGMENT);
        uci_check_make_room(theirs, &room);
        status = wire->swap(wire->arg, own->bytes + sent, segment, theirs->bytes + theirs->length, UCI_CHECK_SEGMENT,
                            &in_length);
        if (status != UCI_OK) {
            return status;
        }
        if (in_length != uci_min(length - theirs->length, UCI_CHECK_SEGMENT)) {
            uci_check_complain("the other side's entries are not taken: a part of another length than announced");
            return UCI_ERR_CORRUPT;
        }
        sent += segment;
        theirs->length += in_length;
    }
    return UCI_OK;
}

static uci_status_t uci_check_swap_blobs(const uci_check_wire_t *wire, const uci_check_blob_t *own,
                                         uci_check_blob_t *theirs)
{
    uint64_t out[2] = {own->length, uci_check_hash(own->bytes, own->length)}, in[2];
    size_t in_length;
    uci_status_t status = wire->swap(wire->arg, out, sizeof(out), in, sizeof(in), &in_length);

    *theirs = (uci_check_blob_t){0};
    if (status != UCI_OK) {
        return status;
    }
    if ((in_length != sizeof(in)) || (in[0] > UCI_CHECK_ENTRIES_MAX)) {
        uci_check_complain("the other side's entries are not taken: there are too many");
        return UCI_ERR_CORRUPT;
    }
    status = uci_check_swap_segments(wire, own, in[0], theirs);
    if ((status == UCI_OK) && (uci_check_hash(theirs->bytes, theirs->length) != in[1])) {
        uci_check_complain("the other side's entries are not taken: they are damaged");
        status = UCI_ERR_CORRUPT;
    }
    return status;
}

static uci_status_t uci_check_swap_entries(const uci_check_wire_t *wire, const uci_check_list_t *subset,
                                           uci_check_list_t *theirs)
{
    uci_check_blob_t own, other;
    uci_status_t status;

    uci_check_pack(subset, &own);
    status = uci_check_swap_blobs(wire, &own, &other);
    if (status == UCI_OK) {
        status = uci_check_unpack(&other, theirs);
    }
    free(own.bytes);
    free(other.bytes);
    return status;
}

/*
 * Chunks: a tree over those that both sides have of all files that differ
 */

/* @return how many chunks of a difference are in that tree; 0: none need be, it is known what differs. */
static uint64_t uci_check_common_chunks(const uci_check_form_t *form, const uci_check_diff_t *diff)
{
    uint64_t a, b;

    if (!uci_check_is_file_diff(diff)) {
        return 0;
    }
    a = uci_merkle_chunks(diff->a->length, form->chunk_size);
    b = uci_merkle_chunks(diff->b->length, form->chunk_size);
    return (uci_max(a, b) == 1) ? 0 : uci_min(a, b);
}

static void uci_check_make_chunks(const uci_check_form_t *form, const uci_check_diffs_t *diffs, bool own_is_a,
                                  uint64_t total, uci_merkle_side_t *side)
{
    const uci_check_diff_t *diff;
    uint64_t next = 0, common, i;
    size_t number;

    *side      = (uci_merkle_side_t){.length = total, .chunk_size = 1, .digest = form->digest->id};
    side->tree = uci_check_make_tree(total, form->arity);
    for (number = 0; number < diffs->count; ++number) {
        diff   = &diffs->list[number];
        common = uci_check_common_chunks(form, diff);
        for (i = 0; i < common; ++i) {
            uci_merkle_set_leaf(side->tree, next++, (own_is_a ? diff->a : diff->b)->leaves[i]);
        }
    }
}

/* @param marks  of the file's common chunks */
static void uci_check_set_ranges(const uci_check_form_t *form, uci_check_diff_t *diff, const uint8_t *marks,
                                 uint64_t common)
{
    uint64_t end = uci_max(diff->a->length, diff->b->length), offset = 0, i;

    for (i = 0; i < common; ++i, offset += form->chunk_size) {
        if (marks[i]) {
            uci_ranges_add(&diff->ranges, offset, uci_min(form->chunk_size, end - offset));
        }
    }
    if (end > offset) {
        uci_ranges_add(&diff->ranges, offset, end - offset);
    }
}

static void uci_check_set_all_ranges(const uci_check_form_t *form, uci_check_diffs_t *diffs, const uint8_t *marks)
{
    uint64_t common;
    size_t i;

    for (i = 0; i < diffs->count; ++i) {
        if (uci_check_is_file_diff(&diffs->list[i])) {
            common = uci_check_common_chunks(form, &diffs->list[i]);
            uci_check_set_ranges(form, &diffs->list[i], marks, common);
            marks += common;
        }
    }
}

static uci_status_t uci_check_exchange_chunks(const uci_check_wire_t *wire, const uci_check_form_t *form, bool own_is_a,
                                              uci_check_diffs_t *diffs)
{
    const uint8_t none      = 0;
    uci_check_marks_t marks = {0};
    uci_merkle_side_t side;
    uint64_t total = 0;
    uci_status_t status;
    size_t i;

    for (i = 0; i < diffs->count; ++i) {
        total += uci_check_common_chunks(form, &diffs->list[i]);
    }
    if (total == 0) {
        uci_check_set_all_ranges(form, diffs, &none);
        return UCI_OK;
    }
    uci_check_make_chunks(form, diffs, own_is_a, total, &side);
    status = uci_check_exchange(wire, &side, &marks);
    uci_merkle_destroy(side.tree);
    if (status == UCI_OK) {
        uci_check_set_all_ranges(form, diffs, marks.bytes);
        free(marks.bytes);
    }
    return status;
}

static uci_status_t uci_check_compare_entries(const uci_check_wire_t *wire, const uci_check_list_t *own, bool own_is_a,
                                              uci_check_list_t *subset, uci_check_list_t *theirs,
                                              uci_check_diffs_t *diffs)
{
    uci_status_t status = uci_check_swap_entries(wire, subset, theirs);

    if (status != UCI_OK) {
        return status;
    }
    uci_check_join(own_is_a ? subset : theirs, own_is_a ? theirs : subset, diffs);
    diffs->compared += own->count - subset->count;
    return uci_check_exchange_chunks(wire, &own->form, own_is_a, diffs);
}

uci_status_t uci_check_peer_compare(const uci_check_wire_t *wire, const uci_check_list_t *own, bool is_asker,
                                    bool own_is_a, uci_check_list_t *subset, uci_check_list_t *theirs,
                                    uci_check_diffs_t *diffs)
{
    uci_check_marks_t marks = {0};
    uint64_t entries;
    uci_status_t status = uci_check_ready(wire, own, &entries);

    if (status != UCI_OK) {
        return status;
    }
    subset->borrows = true;
    status          = uci_check_find_buckets(wire, own, is_asker, uci_check_bucket_count(own->count, entries), &marks);
    if (status != UCI_OK) {
        return status;
    }
    uci_check_take_subset(own, &marks, subset);
    if (memchr(marks.bytes, 1, marks.count) == NULL) {
        diffs->compared = own->count;
    } else {
        status = uci_check_compare_entries(wire, own, own_is_a, subset, theirs, diffs);
    }
    free(marks.bytes);
    return status;
}
