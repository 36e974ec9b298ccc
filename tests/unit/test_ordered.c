/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A datatype of elements of 12 bytes, whose packer and unpacker stop at nothing but their borders, as MPICH's do.
 */
#include "ordered.h"
#include "capture.h"
#include "generic.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENT = 12, ELEMENTS = 300, SIZE = ELEMENT * ELEMENTS, STRIDE = 20 };

static char user[STRIDE * ELEMENTS], received[STRIDE * ELEMENTS], packed[SIZE];
static size_t pack_max;   /* bytes that the packer gives at a time */
static bool is_tolerant;  /* the unpacker takes parts of elements */
static bool is_stuck;     /* the packer gives nothing any more */
static unsigned unpacked; /* calls */
static char *attacked;    /* damaged by somebody else whenever the datatype packs */

static size_t test_packed_size(void *state)
{
    return SIZE;
}

static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    size_t i, length = uci_min(uci_min(max_length, SIZE - offset), pack_max) / ELEMENT * ELEMENT;

    cr_assert(offset % ELEMENT == 0, "asked for the middle of an element");
    if (attacked != NULL) {
        *attacked ^= 4;
    }
    for (i = 0; (i < length) && !is_stuck; ++i) {
        ((char *)dest)[i] = ((char *)state)[((offset + i) / ELEMENT * STRIDE) + ((offset + i) % ELEMENT)];
    }
    return is_stuck ? 0 : length;
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
            cut    = uci_ordered_pack(&sender, &from, data, length);
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
    uci_cut_t cut;
    char *text;

    memset(data, 0xff, sizeof(data));
    is_stuck = true;
    cut      = uci_ordered_pack(&sender, &from, data, sizeof(data));
    text     = test_capture_stop(&capture);
    cr_expect(strstr(text, "does not pack") != NULL, "%s", text);
    cr_expect((data[0] == 0) && (data[199] == 0), "bytes nobody packed are sent");
    cr_expect(cut == 0);
    free(text);
}

/* A bit of a slot that is hit while the rest is being packed: the digest is of what was packed, and the slot holds it */
Test(ordered, damage_while_packing)
{
    uci_ordered_t sender = {0};
    char slot[SIZE];
    uint64_t value;

    pack_max = 2 * ELEMENT;
    attacked = slot + 5;
    cr_assert(uci_ordered_pack_shared(&sender, &from, slot, SIZE, digest, &value) == 0);
    cr_expect(value == digest->digest(packed, SIZE), "the digest of damaged bytes");
    cr_expect(memcmp(slot, packed, SIZE) == 0);
}
