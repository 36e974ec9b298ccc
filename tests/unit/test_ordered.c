/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A datatype of elements of 12 bytes, whose packer and unpacker stop at nothing but their borders, as MPICH's do.
 */
#include "data/ordered.h"
#include "capture.h"
#include "generic.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENT = 12, ELEMENTS = 300, SIZE = ELEMENT * ELEMENTS, STRIDE = 20 };

static char user[STRIDE * ELEMENTS], received[STRIDE * ELEMENTS], packed[SIZE];
static size_t pack_max;         /* bytes that the packer gives at a time */
static bool is_tolerant;        /* the unpacker takes parts of elements */
static bool is_stuck;           /* the packer gives nothing any more */
static size_t excess;           /* the packer says that it gave so many bytes more than it was asked for */
static size_t record = ELEMENT; /* the packer gives multiples of this */
static unsigned unpacked;       /* calls */
static char *attacked;          /* damaged by somebody else whenever the datatype packs */

static size_t test_packed_size(void *state)
{
    return SIZE;
}

static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    size_t i, length = uci_min(uci_min(max_length, SIZE - offset), pack_max) / record * record;

    cr_assert(offset % record == 0, "asked for the middle of an element");
    if (attacked != NULL) {
        *attacked ^= 4;
    }
    for (i = 0; (i < length) && !is_stuck; ++i) {
        ((char *)dest)[i] = ((char *)state)[((offset + i) / ELEMENT * STRIDE) + ((offset + i) % ELEMENT)];
    }
    return is_stuck ? 0 : length + excess;
}

static ucs_status_t test_unpack(void *state, size_t offset, const void *src, size_t length)
{
    size_t i, part = is_tolerant ? length : length / ELEMENT * ELEMENT;

    ++unpacked;
    cr_assert(is_tolerant || (offset % ELEMENT == 0), "given the middle of an element");
    for (i = 0; i < part; ++i) {
        ((char *)state)[((offset + i) / ELEMENT * STRIDE) + ((offset + i) % ELEMENT)] = ((const char *)src)[i];
    }
    return (part == length) ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED;
}

static uci_buffer_t from, to;
static const uci_digest_ops_t *digest;

static void set_up(void)
{
    size_t i;

    uci_digest_init();
    digest                    = uci_digest_by_id(UCI_DIGEST_XXH3);
    uci_buffer_generic_lookup = test_generic_lookup;
    for (i = 0; i < sizeof(user); ++i) {
        user[i] = (char)((i * 37) + (i >> 8));
    }
    for (i = 0; i < SIZE; ++i) {
        packed[i] = user[(i / ELEMENT * STRIDE) + (i % ELEMENT)];
    }
    pack_max = SIZE_MAX;
    cr_assert(uci_buffer_init_send(&from, user, 1, UCP_DATATYPE_GENERIC) == UCS_OK);
    cr_assert(uci_buffer_init_recv(&to, received, 1, UCP_DATATYPE_GENERIC) == UCS_OK);
}

TestSuite(ordered, .init = set_up);

static bool is_received(void)
{
    size_t i;

    for (i = 0; i < SIZE; ++i) {
        if (received[(i / ELEMENT * STRIDE) + (i % ELEMENT)] != packed[i]) {
            return false;
        }
    }
    return true;
}

/* Every size of chunk: what is packed is the packed form, and the unpacker gets whole elements only */
Test(ordered, elements_are_not_cut)
{
    uci_ordered_t sender, receiver;
    size_t chunk, offset, length;
    char data[SIZE];
    uci_border_t border, before;
    uci_cut_t cut;

    for (chunk = UCI_CARRY_MAX; chunk <= 4 * UCI_CARRY_MAX; ++chunk) {
        pack_max = (chunk % 3 == 0) ? 2 * ELEMENT : SIZE_MAX;
        memset(&sender, 0, sizeof(sender));
        memset(&receiver, 0, sizeof(receiver));
        memset(received, 0, sizeof(received));
        before = 0;
        for (offset = 0; offset < SIZE; offset += length) {
            length = uci_min(chunk, SIZE - offset);
            cr_assert(uci_ordered_pack(&sender, &from, data, length, &cut) == UCS_OK);
            border = uci_ordered_border(&sender, cut);
            cr_assert(uci_cut_between(before, border) == cut, "a cut that its borders do not tell");
            before = border;
            cr_assert(memcmp(data, packed + offset, length) == 0, "chunks of %zu, at %zu", chunk, offset);
            cr_assert(uci_cut_tail(cut) == (offset + length) % ELEMENT);
            cr_assert(uci_ordered_is_next(&receiver, offset));
            cr_assert(uci_ordered_unpack(&receiver, &to, data, length, cut));
        }
        cr_assert((sender.offset == SIZE) && (receiver.offset == SIZE) && (receiver.carry_length == 0));
        cr_assert(is_received());
    }
}

/* A sender that knows nothing of elements: an unpacker that takes any bytes gets them, another one refuses */
Test(ordered, borders_not_known)
{
    uci_ordered_t receiver = {0};
    size_t offset, length;

    is_tolerant = true;
    for (offset = 0; offset < SIZE; offset += length) {
        length = uci_min((size_t)1000, SIZE - offset);
        cr_assert(uci_ordered_unpack(&receiver, &to, packed + offset, length, 0));
    }
    cr_expect(is_received());

    is_tolerant = false;
    memset(received, 0, sizeof(received));
    memset(&receiver, 0, sizeof(receiver));
    cr_assert(uci_ordered_unpack(&receiver, &to, packed, 996, 0));
    cr_expect(!uci_ordered_unpack(&receiver, &to, packed + 996, 1000, 0));
    cr_expect(uci_ordered_is_next(&receiver, 996), "as before");
    uci_buffer_store(&to, receiver.offset, packed + receiver.offset, SIZE - receiver.offset);
    cr_expect(is_received() && (to.status == UCS_OK));
}

/* What a peer says of its cuts is not believed if it can't be */
Test(ordered, impossible_cuts)
{
    uci_ordered_t receiver = {0}, before;
    static const struct {
        uint32_t head, tail;
        size_t length;
    } cuts[] = {{0, UCI_CARRY_MAX, 500}, {UCI_CARRY_MAX, 0, 500}, {255, 255, 100}, {5, 6, 10}, {0, 0, 96}};
    size_t i;

    cr_assert(uci_ordered_unpack(&receiver, &to, packed, 100, 4 << 8));
    cr_assert((receiver.offset == 96) && (receiver.carry_length == 4));
    before   = receiver;
    unpacked = 0;
    for (i = 0; i < uci_array_size(cuts); ++i) {
        cr_expect(!uci_ordered_unpack(&receiver, &to, packed + 100, cuts[i].length,
                                      (uci_cut_t)(cuts[i].head | (cuts[i].tail << 8))));
        cr_expect(memcmp(&receiver, &before, sizeof(receiver)) == 0, "cut %zu", i);
    }
    cr_expect(unpacked == 0);
    cr_expect(uci_ordered_unpack(&receiver, &to, packed + 100, SIZE - 100, 8), "the right one");
    cr_expect(is_received());
}

Test(ordered, packer_that_stalls)
{
    uci_ordered_t sender   = {0};
    test_capture_t capture = test_capture_start();
    char data[200];
    uint64_t value;
    uci_cut_t cut;
    char *text;

    is_stuck = true;
    cr_expect(uci_ordered_pack(&sender, &from, data, sizeof(data), &cut) == UCS_ERR_INVALID_PARAM);
    cr_expect(uci_ordered_pack_shared(&sender, &from, data, sizeof(data), digest, &cut, &value) ==
              UCS_ERR_INVALID_PARAM);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "packs 0 bytes, not 3600") != NULL, "%s", text);
    uci_ordered_cleanup(&sender);
    free(text);
}

/* One that says it has packed more than there was room for */
Test(ordered, packer_that_overflows)
{
    uci_ordered_t sender   = {0};
    test_capture_t capture = test_capture_start();
    char data[200];
    uci_cut_t cut;
    char *text;

    excess = 1000;
    cr_expect(uci_ordered_pack(&sender, &from, data, sizeof(data), &cut) == UCS_ERR_INVALID_PARAM);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "asked for 200") != NULL, "%s", text);
    free(text);
}

/* Records of every size in chunks of every size, cut once, never, or again and again: what is packed is the packed form, and the receiver is
 * told of each border what it may unpack. It unpacks whole records at their places, or collects. */
Test(ordered, records)
{
    static const size_t sizes[]  = {12, 60, 72, 120, 300, 720, 1200, 3600};
    static const size_t chunks[] = {64, 65, 100, 256, 500, 999, 1200, 3599, 3600};
    uci_ordered_t sender, receiver;
    size_t i, j, offset, length;
    bool is_collected;
    char data[SIZE];
    uci_cut_t cut;

    for (i = 0; i < uci_array_size(sizes); ++i) {
        for (j = 0; j < uci_array_size(chunks); ++j) {
            record       = sizes[i];
            is_collected = false;
            memset(&sender, 0, sizeof(sender));
            memset(&receiver, 0, sizeof(receiver));
            memset(received, 0, sizeof(received));
            for (offset = 0; offset < SIZE; offset += length) {
                length = uci_min(chunks[j], SIZE - offset);
                cr_assert(uci_ordered_is_next_out(&sender, offset));
                cr_assert(uci_ordered_pack(&sender, &from, data, length, &cut) == UCS_OK);
                cr_assert(memcmp(data, packed + offset, length) == 0, "records of %zu, chunks of %zu, at %zu", record,
                          chunks[j], offset);
                is_collected = is_collected || !uci_ordered_unpack(&receiver, &to, data, length, cut);
                cr_assert((receiver.offset % record == 0), "unpacked up to %zu, records of %zu, chunks of %zu",
                          (size_t)receiver.offset, record, chunks[j]);
            }
            cr_assert(sender.offset == SIZE);
            uci_buffer_store(&to, receiver.offset, packed + receiver.offset, SIZE - receiver.offset);
            cr_assert(is_received() && (to.status == UCS_OK), "records of %zu, chunks of %zu", record, chunks[j]);
            cr_assert(!is_collected || (record > UCI_CARRY_MAX));
            uci_ordered_cleanup(&sender);
        }
    }
}

/* A copy is packed in pieces, and what a chunk's border is follows from its last one, which may be all of one record. A record that begins
 * before it ends behind it: the receiver must not take the chunk for whole */
Test(ordered, a_piece_in_the_middle_of_a_record)
{
    uci_ordered_t sender = {0}, receiver = {0};
    uci_border_t border = 0;
    char data[SIZE];
    uci_cut_t cut;
    size_t offset;

    record = 3600;
    for (offset = 0; offset < 1000; offset += 250) {
        cr_assert(uci_ordered_pack(&sender, &from, data + offset, 250, &cut) == UCS_OK);
        border = uci_ordered_border(&sender, cut);
        cr_expect_eq(uci_cut_tail(uci_cut_between(0, border)), UCI_CUT_LARGE, "behind %zu bytes", offset + 250);
        cr_expect_eq(uci_cut_head(uci_cut_between(border, 0)), UCI_CUT_LARGE);
    }
    cr_expect_not(uci_ordered_unpack(&receiver, &to, data, 1000, uci_cut_between(0, border)));
    uci_ordered_cleanup(&sender);
}

/* A bit of a slot that is hit while the rest is being packed: the digest is of what was packed, and the slot holds it */
Test(ordered, damage_while_packing)
{
    uci_ordered_t sender = {0};
    char slot[SIZE];
    uint64_t value;
    uci_cut_t cut;

    pack_max = 2 * ELEMENT;
    attacked = slot + 5;
    cr_assert(uci_ordered_pack_shared(&sender, &from, slot, SIZE, digest, &cut, &value) == UCS_OK);
    cr_expect(cut == 0);
    cr_expect(value == digest->digest(packed, SIZE), "the digest of damaged bytes");
    cr_expect(memcmp(slot, packed, SIZE) == 0);
}
