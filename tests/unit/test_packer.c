/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A datatype of every second word, whose functions take as long as a test wants for whole messages and for parts of one.
 */
#include "data/packer.h"
#include "capture.h"
#include "generic.h"
#include "util/process.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 8, SIZE = 40000 };

static char user[2 * SIZE], received[2 * SIZE], packed[SIZE];
static uint64_t whole_ns, part_ns;
static bool is_strict;         /* parts of elements, of 5 words, are refused */
static size_t pack_max = SIZE; /* bytes that can be packed at all */
static unsigned wholes, parts; /* calls */

static size_t test_packed_size(void *state)
{
    return SIZE;
}

static void take_time(size_t length)
{
    uint64_t end = uci_process_time_ns() + ((length == SIZE) ? whole_ns : part_ns);

    wholes += (length == SIZE);
    parts += (length != SIZE);
    while (uci_process_time_ns() < end) {
    }
}

static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    size_t i, length = uci_min(max_length, pack_max - uci_min(offset, pack_max));

    take_time(length);
    for (i = 0; i < length; ++i, ++offset) {
        ((char *)dest)[i] = ((char *)state)[(offset / WORD * 2 * WORD) + (offset % WORD)];
    }
    return length;
}

static ucs_status_t test_unpack(void *state, size_t offset, const void *src, size_t length)
{
    size_t i;

    take_time(length);
    if (is_strict && (length % (5ul * WORD) != 0)) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    for (i = 0; i < length; ++i, ++offset) {
        ((char *)state)[(offset / WORD * 2 * WORD) + (offset % WORD)] = ((const char *)src)[i];
    }
    return UCS_OK;
}

static uci_buffer_t from, to;

static void set_up(void)
{
    size_t i;

    setenv("OMPI_COMM_WORLD_RANK", "0", 1); /* others are not asked to unpack in pieces */
    uci_buffer_generic_lookup = test_generic_lookup;
    for (i = 0; i < sizeof(user); ++i) {
        user[i] = (char)((i * 37) + (i >> 8));
    }
    cr_assert(uci_buffer_init_send(&from, user, 1, UCP_DATATYPE_GENERIC) == UCS_OK);
    cr_assert(uci_buffer_init_recv(&to, received, 1, UCP_DATATYPE_GENERIC) == UCS_OK);
}

TestSuite(packer, .init = set_up);

static bool is_packed(void)
{
    size_t i;

    for (i = 0; i < SIZE; ++i) {
        if (packed[i] != user[(i / WORD * 2 * WORD) + (i % WORD)]) {
            return false;
        }
    }
    return true;
}

static bool is_received(void)
{
    size_t i;

    for (i = 0; i < 2ul * SIZE; ++i) {
        if (received[i] != ((i / WORD % 2 == 0) ? user[i] : 0)) {
            return false;
        }
    }
    return true;
}

/* How often is a message packed, and unpacked, by one call, once it is known how? */
static unsigned calls_of_whole(void)
{
    memset(packed, 0, sizeof(packed));
    memset(received, 0, sizeof(received));
    wholes = parts = 0;
    uci_packer_pack(&from, 0, packed, from.length);
    cr_expect(is_packed());
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(is_received());
    return wholes;
}

Test(packer, slow_as_a_whole)
{
    whole_ns = 4000000;
    uci_packer_pack(&from, 0, packed, from.length);
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(uci_packer_way(&from) == UCI_PACKER_PIECES);
    cr_expect((calls_of_whole() == 0) && (parts == 2ul * ((SIZE + UCI_PACKER_PIECE - 1) / UCI_PACKER_PIECE)));
}

Test(packer, slow_in_pieces)
{
    part_ns = 1000000;
    uci_packer_pack(&from, 0, packed, from.length);
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(uci_packer_way(&from) == UCI_PACKER_WHOLE);
    cr_expect((calls_of_whole() == 2) && (parts == 0));
}

/* On busy cores one of the ways may be kept waiting each time: then once more */
Test(packer, no_great_difference)
{
    int tries;

    whole_ns = 1000000;
    part_ns  = 250000; /* 5 of them */
    for (tries = 0; (tries < 50) && (test_generic.pack_way != UCI_PACKER_EITHER); ++tries) {
        test_generic.pack_way = UCI_PACKER_UNKNOWN;
        uci_packer_pack(&from, 0, packed, from.length);
    }
    cr_expect(uci_packer_way(&from) == UCI_PACKER_EITHER);
    test_generic.unpack_way = UCI_PACKER_EITHER;
    cr_expect((calls_of_whole() == 2) && (parts == 0));
}

/* A datatype that unpacks otherwise than it packs */
Test(packer, unpacking_is_learnt_apart)
{
    part_ns = 1000000;
    uci_packer_pack(&from, 0, packed, from.length);
    part_ns  = 0;
    whole_ns = 4000000;
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(is_received());
    cr_expect((test_generic.pack_way == UCI_PACKER_WHOLE) && (test_generic.unpack_way == UCI_PACKER_PIECES));
    cr_expect(calls_of_whole() == 1);
}

/* Faster in pieces, but not for who receives: pieces end within elements */
Test(packer, unpacker_that_refuses)
{
    whole_ns  = 4000000;
    is_strict = true;
    uci_packer_pack(&from, 0, packed, from.length);
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect((test_generic.pack_way == UCI_PACKER_PIECES) && (test_generic.unpack_way == UCI_PACKER_WHOLE));
    cr_expect(calls_of_whole() == 1);
    test_generic.unpack_way = UCI_PACKER_PIECES; /* learnt from a message whose pieces it took */
    cr_expect(calls_of_whole() == 1);
}

/* Who is no MPI may leave out a part of an element, and say that all is well */
Test(packer, pieces_are_for_an_mpi)
{
    unsetenv("OMPI_COMM_WORLD_RANK");
    whole_ns = 4000000;
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(parts == 0);
    cr_expect(test_generic.unpack_way == UCI_PACKER_UNKNOWN);
}

/* Short messages are neither measured nor split */
Test(packer, short_messages)
{
    from.length = to.length = UCI_PACKER_PIECE;
    cr_expect(uci_packer_way(&from) == UCI_PACKER_UNKNOWN);
    uci_packer_pack(&from, 0, packed, from.length);
    cr_expect(uci_packer_unpack(&to, 0, packed, to.length) == UCS_OK);
    cr_expect(parts == 2, "%u calls", parts);
}

/* Neither way sends what the packer never wrote */
Test(packer, packer_that_stalls)
{
    static const uci_packer_way_t ways[] = {UCI_PACKER_EITHER, UCI_PACKER_PIECES};
    test_capture_t capture;
    char *text;
    size_t i;

    for (i = 0; i < uci_array_size(ways); ++i) {
        test_generic.pack_way = (uint8_t)ways[i];
        pack_max              = 9000;
        capture               = test_capture_start();
        cr_expect(uci_packer_pack(&from, 0, packed, from.length) == UCS_ERR_INVALID_PARAM);
        text = test_capture_stop(&capture);
        cr_expect(strstr(text, "pack") != NULL, "%s", text);
        free(text);
    }
}
