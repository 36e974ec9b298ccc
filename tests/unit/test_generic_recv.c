/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Large receives of a generic datatype, over a network of the test's own: chunks that can't be unpacked in order are collected, and there may
 * be no memory for that; borders between chunks that came by different ways.
 */
#include "fake_talk.h"
#include "generic.h"

#include "transfer/recv_common.h"
#include "transfer/stream.h"
#include "transfer/stream_recv.h"

#define CHUNK   4096u
#define CHUNKS  5u
#define LENGTH  (CHUNK * CHUNKS)
#define HUGE    (1ul << 62) /* for which there is never memory; whole chunks, as before */
#define GENERIC (0x1000ul | UCP_DATATYPE_GENERIC)

static char memory[LENGTH];
static talk_recv_t received;

static void set_up(void)
{
    talk_begin(2, UCI_CARRIER_AM);
    uci_settings.path         = UCI_PATH_STREAM;
    uci_settings.chunk_size   = CHUNK;
    uci_stream_part_max       = 0; /* chunks come when they are asked for */
    uci_buffer_generic_lookup = test_generic_lookup;
    net_no_rdma               = true; /* what is repaired comes by copy */
    uci_tuner_refresh();
}

TestSuite(generic_recv, .init = set_up, .fini = talk_end, .timeout = 60);

/* --------------------------------------------------------------- datatype */

static size_t test_packed_size(void *state)
{
    return LENGTH;
}

static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    memcpy(dest, (char *)state + offset, max_length);
    return max_length;
}

static size_t unpacked[64]; /* how many bytes at a time */
static unsigned unpacked_count;

static ucs_status_t test_unpack(void *state, size_t offset, const void *src, size_t length)
{
    cr_assert(unpacked_count < uci_array_size(unpacked));
    unpacked[unpacked_count++] = length;
    memcpy((char *)state + offset, src, length);
    return UCS_OK;
}

/* --------------------------------------------------------------- messages */

static void post_recv(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = talk_on_received,
                                 .user_data = &received,
                                 .datatype  = GENERIC};

    uci_worker_enter(net_nodes[1].worker);
    talk_keep(uci_recv(net_nodes[1].worker, memory, 1, 1, UINT64_MAX, &param));
    uci_worker_leave(net_nodes[1].worker);
}

static void lose_first_chunk(net_message_t *message)
{
    if (talk_is_chunk(message, 0)) {
        ((uci_am_hdr_t *)(void *)message->header)->check ^= 1;
        talk_recv_op(1)->length = HUGE; /* for the others, which can't be unpacked before it */
        net_sent                = NULL;
    }
}

/* ------------------------------------------------------------- no memory */

/* Nothing is asked for for ever that can't be kept */
Test(generic_recv, no_memory_to_collect_chunks)
{
    net_sent = lose_first_chunk;
    post_recv();
    talk_send(0, 1, LENGTH);
    talk_turns(1000, 1000 * TALK_MS);
    cr_assert(received.done);
    cr_expect(received.status == UCS_ERR_IO_ERROR, "status %d", received.status);
    cr_expect(talk_run(10), "the sender knows of it");
}

/* It was not for long */
Test(generic_recv, memory_that_is_there_again)
{
    char wanted[LENGTH];

    net_sent = lose_first_chunk;
    post_recv();
    talk_send(0, 1, LENGTH);
    talk_turns(30, 1000 * TALK_MS);
    cr_assert(!received.done);
    talk_recv_op(1)->length = LENGTH;
    cr_assert(talk_run(100));
    talk_fill(wanted, LENGTH, 1);
    cr_expect(received.done && (received.status == UCS_OK) && (memcmp(memory, wanted, LENGTH) == 0));
}

/* The first chunk says that it is what it is not, as the sender's digests tell at the end */
static void change_first_chunk(net_message_t *message)
{
    uci_am_hdr_t *hdr = (uci_am_hdr_t *)(void *)message->header;

    if (message->frame) {
        return;
    }
    if ((hdr->type == UCI_AM_DATA) && (hdr->index == 0) && !(hdr->flags & UCI_AM_FLAG_REPAIR)) {
        message->data[5] ^= 1;
        hdr->value = uci_digest_table[UCI_DIGEST_XXH3].digest(message->data, message->length);
        hdr->check = uci_am_check(hdr, NULL, 0);
    } else if (hdr->type == UCI_AM_LEAVES) {
        talk_recv_op(1)->length = HUGE; /* there is no memory when it is seen */
    } else if (hdr->type == UCI_AM_REPAIR) {
        talk_recv_op(1)->length = LENGTH;
    }
}

Test(generic_recv, no_memory_when_what_was_unpacked_is_wrong)
{
    char wanted[LENGTH];

    net_sent = change_first_chunk;
    post_recv();
    talk_send(0, 1, LENGTH);
    cr_assert(talk_run(200));
    cr_assert(received.done && (received.status == UCS_OK));
    talk_fill(wanted, LENGTH, 1);
    cr_expect(memcmp(memory, wanted, LENGTH) == 0, "other bytes, and nobody said so");
}

/* ---------------------------------------------------------------- borders */

/* A receive of which nothing has come. @return its operation */
static uci_recv_op_t *begin_recv(void)
{
    post_recv();
    talk_send(0, 1, LENGTH);
    net_turn(1);
    talk_lose_all(0);
    cr_assert(talk_recv_op(1) != NULL);
    return talk_recv_op(1);
}

static uint64_t digest_of(const char *chunk)
{
    return uci_digest_table[UCI_DIGEST_XXH3].digest(chunk, CHUNK);
}

/* By a stream: what is behind it, unless it is the last */
static void take_in_stream(uci_recv_op_t *op, uint32_t index, const char *chunk, uci_border_t behind)
{
    uci_am_hdr_t hdr = {.index = index, .length = CHUNK, .value = digest_of(chunk), .extra = behind};

    uci_stream_take(op, &hdr, chunk, CHUNK);
}

/* By a slot */
static bool take_in_slot(uci_recv_op_t *op, uint32_t index, const char *chunk, uci_cut_t cut)
{
    bool is_unpacked = uci_recv_op_unpack(op, index, chunk, CHUNK, digest_of(chunk), cut);

    if (is_unpacked) {
        uci_recv_op_chunk_good(op, index, digest_of(chunk), UCI_RUNG_NONE, false);
    }
    return is_unpacked;
}

/* Some unpackers leave out a part of an element, and do not say so: it is cut where it is known to be, or not at all */
Test(generic_recv, a_border_is_that_of_the_chunk_before)
{
    static const char chunk[CHUNK];
    uci_recv_op_t *op = begin_recv();

    take_in_stream(op, 0, chunk, (1 << 8) | 7);
    cr_assert(take_in_slot(op, 1, chunk, (3 << 8) | 7));
    cr_assert((unpacked_count == 3) && (unpacked[1] == 8) && (unpacked[2] == CHUNK - 7 - 3));
    take_in_stream(op, 2, chunk, 0);
    cr_expect(unpacked_count == 3, "%zu bytes are unpacked, of an element of 3 and something", unpacked[3]);
}

Test(generic_recv, a_border_that_cuts_nothing_is_known)
{
    static const char chunk[CHUNK];
    uci_recv_op_t *op = begin_recv();

    cr_assert(take_in_slot(op, 0, chunk, 0));
    take_in_stream(op, 1, chunk, 0);
    cr_expect((unpacked_count == 2) && (op->packed == NULL));
}

/* The rest of it would never come, and the message would end without it */
Test(generic_recv, nothing_is_left_of_the_last_chunk)
{
    static const char chunk[CHUNK];
    uci_recv_op_t *op = begin_recv();
    unsigned i;

    for (i = 0; i + 1 < CHUNKS; ++i) {
        cr_assert(take_in_slot(op, i, chunk, 0));
    }
    cr_expect(!take_in_slot(op, CHUNKS - 1, chunk, 5 << 8));
}
