/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_batch.h"

#include <string.h>

#include "digest/digest.h"

#define UCI_TWIN_BATCH_MAGIC   0x74494355u /* "UCIt"; reads otherwise where bytes have another order */
#define UCI_TWIN_BATCH_VERSION 1

typedef struct uci_twin_batch_head {
    uint32_t magic;
    uint16_t version;
    uint16_t twin;
    uint32_t number; /* batches of this twin before it */
    uint32_t length; /* bytes, the head included */
    uint64_t check;  /* XXH3-64 of the batch with 0 here */
} uci_twin_batch_head_t;

_Static_assert((sizeof(uci_twin_define_t) == 24) && (sizeof(uci_twin_values_t) == 24) &&
                       (sizeof(uci_twin_choice_t) == 40) && (sizeof(uci_twin_probe_t) == 48) &&
                       (sizeof(uci_twin_answer_t) == 32) && (sizeof(uci_twin_done_t) == 8) &&
                       (sizeof(uci_twin_batch_head_t) == 24),
               "no holes, and multiples of 8");

/* Bytes of an entry without what follows it, by type */
static const size_t uci_twin_entry_sizes[UCI_TWIN_ENTRY_LAST] = {
        [UCI_TWIN_ENTRY_DEFINE] = sizeof(uci_twin_define_t), [UCI_TWIN_ENTRY_VALUES] = sizeof(uci_twin_values_t),
        [UCI_TWIN_ENTRY_CHOICE] = sizeof(uci_twin_choice_t), [UCI_TWIN_ENTRY_PROBE] = sizeof(uci_twin_probe_t),
        [UCI_TWIN_ENTRY_ANSWER] = sizeof(uci_twin_answer_t), [UCI_TWIN_ENTRY_DONE] = sizeof(uci_twin_done_t)};

void uci_twin_batch_init(uci_twin_batch_t *batch, void *buffer, size_t size, unsigned twin)
{
    batch->size   = size;
    batch->twin   = twin;
    batch->number = 0;
    uci_twin_batch_next(batch, buffer);
}

void uci_twin_batch_next(uci_twin_batch_t *batch, void *buffer)
{
    batch->bytes = buffer;
    batch->used  = sizeof(uci_twin_batch_head_t);
    batch->run   = NULL;
}

bool uci_twin_batch_is_empty(const uci_twin_batch_t *batch)
{
    return batch->used == sizeof(uci_twin_batch_head_t);
}

/* Room for an entry and @a more bytes, or NULL */
static void *uci_twin_batch_append(uci_twin_batch_t *batch, uci_twin_entry_type_t type, size_t more)
{
    uci_twin_entry_t *entry = (void *)(batch->bytes + batch->used);
    size_t size             = uci_twin_entry_sizes[type] + more;

    if (size > batch->size - batch->used) {
        return NULL;
    }
    batch->used += size;
    batch->run   = NULL;
    entry->type  = (uint16_t)type;
    entry->count = 0;
    return entry;
}

bool uci_twin_batch_put_define(uci_twin_batch_t *batch, uint32_t index, uint32_t source, uint64_t tag)
{
    uci_twin_define_t *define = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_DEFINE, 0);

    if (define == NULL) {
        return false;
    }
    define->index  = index;
    define->source = source;
    define->zero   = 0;
    define->tag    = tag;
    return true;
}

/* The first value of a run */
static UCI_NOINLINE bool uci_twin_batch_start_run(uci_twin_batch_t *batch, uint32_t channel, uint32_t number,
                                                  const uci_twin_value_t *value)
{
    uci_twin_values_t *run = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_VALUES, sizeof(run->digests[0]));

    if (run == NULL) {
        return false;
    }
    run->entry.count = 1;
    run->channel     = channel;
    run->number      = number;
    run->form        = value->form;
    run->length      = value->length;
    run->digests[0]  = value->digest;
    batch->run       = run;
    batch->run_next  = number + 1;
    return true;
}

bool uci_twin_batch_put_value(uci_twin_batch_t *batch, uint32_t channel, uint32_t number, const uci_twin_value_t *value)
{
    uci_twin_values_t *run = batch->run;

    if (uci_unlikely((run == NULL) || (run->channel != channel) || (batch->run_next != number) ||
                     (run->length != value->length) || (run->form != value->form) ||
                     (run->entry.count == UINT16_MAX))) {
        return uci_twin_batch_start_run(batch, channel, number, value);
    }
    if (uci_unlikely(batch->used == batch->size)) {
        return false;
    }
    memcpy(batch->bytes + batch->used, &value->digest, sizeof(value->digest));
    batch->used += sizeof(value->digest);
    ++batch->run_next;
    ++run->entry.count;
    return true;
}

bool uci_twin_batch_put_choice(uci_twin_batch_t *batch, uint64_t tag, uint64_t mask, uint32_t number,
                               const uci_twin_message_t *message)
{
    uci_twin_choice_t *choice = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_CHOICE, 0);

    if (choice == NULL) {
        return false;
    }
    choice->number  = number;
    choice->tag     = tag;
    choice->mask    = mask;
    choice->message = *message;
    return true;
}

bool uci_twin_batch_put_probe(uci_twin_batch_t *batch, uint64_t tag, uint64_t mask, uint32_t number,
                              const uci_twin_message_t *message, bool removed)
{
    uci_twin_probe_t *probe = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_PROBE, 0);

    if (probe == NULL) {
        return false;
    }
    probe->number  = number;
    probe->tag     = tag;
    probe->mask    = mask;
    probe->message = *message;
    probe->removed = removed;
    probe->zero    = 0;
    return true;
}

bool uci_twin_batch_put_answer(uci_twin_batch_t *batch, uint32_t kind, uint32_t number, const uint64_t words[2])
{
    uci_twin_answer_t *answer = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_ANSWER, 0);

    if (answer == NULL) {
        return false;
    }
    answer->kind   = kind;
    answer->number = number;
    answer->zero   = 0;
    memcpy(answer->words, words, sizeof(answer->words));
    return true;
}

bool uci_twin_batch_put_done(uci_twin_batch_t *batch)
{
    uci_twin_done_t *done = uci_twin_batch_append(batch, UCI_TWIN_ENTRY_DONE, 0);

    if (done == NULL) {
        return false;
    }
    done->zero = 0;
    return true;
}

static uint64_t uci_twin_batch_check(const void *bytes, size_t length)
{
    uci_twin_batch_head_t head;
    uci_digest_stream_t stream;
    const uci_digest_ops_t *ops = &uci_digest_table[UCI_DIGEST_XXH3];

    memcpy(&head, bytes, sizeof(head));
    head.check = 0;
    ops->init(&stream);
    ops->update(&stream, NULL, &head, sizeof(head));
    ops->update(&stream, NULL, (const uint8_t *)bytes + sizeof(head), length - sizeof(head));
    return ops->final(&stream);
}

size_t uci_twin_batch_seal(uci_twin_batch_t *batch)
{
    uci_twin_batch_head_t *head = (void *)batch->bytes;

    head->magic   = UCI_TWIN_BATCH_MAGIC;
    head->version = UCI_TWIN_BATCH_VERSION;
    head->twin    = (uint16_t)batch->twin;
    head->number  = batch->number++;
    head->length  = (uint32_t)batch->used;
    head->check   = uci_twin_batch_check(batch->bytes, batch->used);
    return batch->used;
}

/* @return what is wrong with the head, or NULL */
static const char *uci_twin_batch_judge_head(const void *bytes, size_t length, unsigned twin, uint32_t number)
{
    const uci_twin_batch_head_t *head = bytes;

    if ((uintptr_t)bytes % sizeof(uint64_t) != 0) {
        return "it does not lie at a multiple of 8";
    }
    if (length < sizeof(*head)) {
        return "it is shorter than the head of a batch";
    }
    if (head->magic != UCI_TWIN_BATCH_MAGIC) {
        return "it does not start as a batch of a twin on a machine of this byte order";
    }
    if (head->version != UCI_TWIN_BATCH_VERSION) {
        return "it is of another version of UCI";
    }
    if (head->length != length) {
        return "it is not as long as it says";
    }
    if (head->check != uci_twin_batch_check(bytes, length)) {
        return "its check is wrong";
    }
    if (head->twin != twin) {
        return "it is of another twin";
    }
    return (head->number == number) ? NULL : "a batch before it is missing, or it has come twice";
}

/* Bytes of the entry at the start of @a length bytes; 0: there is none that is whole and known */
static size_t uci_twin_entry_size(const uint8_t *bytes, size_t length)
{
    const uci_twin_entry_t *entry = (const void *)bytes;
    size_t size;

    if ((length < sizeof(uci_twin_done_t)) || (entry->type == 0) || (entry->type >= UCI_TWIN_ENTRY_LAST)) {
        return 0;
    }
    if ((entry->type == UCI_TWIN_ENTRY_VALUES) != (entry->count > 0)) {
        return 0;
    }
    size = uci_twin_entry_sizes[entry->type] + (entry->count * sizeof(uint64_t));
    return (size <= length) ? size : 0;
}

static const char *uci_twin_batch_judge_entries(const uint8_t *bytes, size_t length)
{
    size_t offset, size;

    for (offset = sizeof(uci_twin_batch_head_t); offset < length; offset += size) {
        size = uci_twin_entry_size(bytes + offset, length - offset);
        if (size == 0) {
            return "it has an entry that is not whole, or of no type that this version knows";
        }
    }
    return NULL;
}

static uci_status_t uci_twin_entry_dispatch(const void *entry, const uci_twin_batch_ops_t *ops, void *arg)
{
    switch (((const uci_twin_entry_t *)entry)->type) {
    case UCI_TWIN_ENTRY_DEFINE:
        return ops->define(arg, entry);
    case UCI_TWIN_ENTRY_VALUES:
        return ops->values(arg, entry);
    case UCI_TWIN_ENTRY_CHOICE:
        return ops->choice(arg, entry);
    case UCI_TWIN_ENTRY_PROBE:
        return ops->probe(arg, entry);
    case UCI_TWIN_ENTRY_ANSWER:
        return ops->answer(arg, entry);
    default: /* there are no others: uci_twin_entry_size() */
        return ops->done(arg, entry);
    }
}

uci_status_t uci_twin_batch_read(const void *bytes, size_t length, unsigned twin, uint32_t number,
                                 const uci_twin_batch_ops_t *ops, void *arg, const char **reason_p)
{
    const uint8_t *start = bytes;
    uci_status_t status  = UCI_OK;
    size_t offset;

    *reason_p = uci_twin_batch_judge_head(bytes, length, twin, number);
    if (*reason_p == NULL) {
        *reason_p = uci_twin_batch_judge_entries(bytes, length);
    }
    if (*reason_p != NULL) {
        return UCI_ERR_INVALID_PARAM;
    }
    for (offset = sizeof(uci_twin_batch_head_t); (offset < length) && (status == UCI_OK);) {
        status = uci_twin_entry_dispatch(start + offset, ops, arg);
        offset += uci_twin_entry_size(start + offset, length - offset);
    }
    return status;
}

uci_status_t uci_twin_batch_visit_values(const void *bytes, size_t length,
                                         uci_status_t (*values)(void *arg, const uci_twin_values_t *values), void *arg)
{
    const uint8_t *start = bytes;
    uci_status_t status  = UCI_OK;
    size_t offset;

    for (offset = sizeof(uci_twin_batch_head_t); (offset < length) && (status == UCI_OK);) {
        if (((const uci_twin_entry_t *)(const void *)(start + offset))->type == UCI_TWIN_ENTRY_VALUES) {
            status = values(arg, (const uci_twin_values_t *)(const void *)(start + offset));
        }
        offset += uci_twin_entry_size(start + offset, length - offset);
    }
    return status;
}
