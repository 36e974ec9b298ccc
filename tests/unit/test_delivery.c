/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults that escape: what lies in the user's buffer is damaged once, whatever way the message came and whatever the buffer is made of, and
 * nothing of UCI's notices.
 */
#include "fake_talk.h"

#include "inject/inject.h"
#include "message/recv.h"

#define LONG 20000u /* by rendezvous */

static void aim(const char *text, int64_t rank, int64_t twin)
{
    uci_fault_spec_t spec;
    char error[256];

    cr_assert(uci_fault_parse(text, &spec, error, sizeof(error)) == UCI_OK, "%s", error);
    uci_fault_enabled = uci_fault_init(&spec, rank, twin);
    uci_inject_install();
}

static unsigned wrong_bits(const void *one, const void *other, size_t length)
{
    unsigned count = 0;
    size_t i;

    for (i = 0; i < length; ++i) {
        count += (unsigned)__builtin_popcount(((const uint8_t *)one)[i] ^ ((const uint8_t *)other)[i]);
    }
    return count;
}

/* ------------------------------------------------------------- whole messages */

static void set_up(void)
{
    aim("rate=1,target=escape", 0, -1);
    talk_begin(2, UCI_CARRIER_AM);
    uci_recv_attach(net_nodes[1].worker);
    uci_settings.path       = UCI_PATH_STREAM;
    uci_settings.chunk_size = 4096;
    uci_tuner_refresh();
}

TestSuite(delivery, .init = set_up, .fini = talk_end, .timeout = 60);

/* One bit of it, and nothing behind it */
static void expect_one_bit(unsigned number, ucp_tag_t tag, size_t length)
{
    const talk_recv_t *recv = &talk_recvs[number];
    char wanted[TALK_LENGTH];

    cr_assert(recv->done && (recv->status == UCS_OK) && (recv->tag == tag) && (recv->length == length));
    memset(wanted, 0xee, sizeof(wanted));
    talk_fill(wanted, length, tag);
    cr_expect(wrong_bits(wanted, recv->buffer, recv->room) == (length > 0), "message %lu of %zu bytes: %u wrong bits",
              (unsigned long)tag, length, wrong_bits(wanted, recv->buffer, recv->room));
}

static const size_t lengths[] = {0, 1, 8, 64, 100, 129, 2048, 4097, LONG};

static void send_all(void)
{
    unsigned i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        (void)talk_start_send(0, i, lengths[i], i % 3 == 0);
    }
}

static void recv_all(void)
{
    unsigned i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
    }
}

static void expect_all(void)
{
    unsigned i;

    cr_assert(talk_run(1000));
    for (i = 0; i < uci_array_size(lengths); ++i) {
        expect_one_bit(i, i, lengths[i]);
    }
    cr_expect(uci_fault_count() == uci_array_size(lengths) - 1, "one is empty");
    cr_expect(talk_counters(1)->messages_received == uci_array_size(lengths));
    cr_expect((talk_counters(1)->mismatched_chunks == 0) && (talk_counters(1)->mismatched_headers == 0) &&
              (talk_counters(1)->mismatched_roots == 0) && (talk_counters(1)->repaired_chunks == 0));
}

Test(delivery, of_messages_that_are_waited_for)
{
    recv_all();
    send_all();
    expect_all();
}

Test(delivery, of_messages_that_wait)
{
    send_all();
    talk_turns(5, TALK_MS);
    recv_all();
    expect_all();
}

/* A worker of UCI's own, such as the one that talks to twins */
Test(delivery, of_a_worker_that_is_not_attached_to)
{
    uci_fault_spec_t none = {0};
    unsigned i;

    net_nodes[1].worker->msgs.watches_deliveries = false;
    net_nodes[1].worker->calls.arrived           = uci_recv_arrived_way(net_nodes[1].worker);
    recv_all();
    send_all();
    cr_assert(talk_run(1000));
    for (i = 0; i < uci_array_size(lengths); ++i) {
        talk_expect(i, i, lengths[i]);
    }
    uci_fault_init(&none, 0, -1);
    uci_inject_install();
    uci_recv_attach(net_nodes[1].worker);
    cr_expect(!net_nodes[1].worker->msgs.watches_deliveries);
}

Test(delivery, what_is_cut_off_is_left_alone)
{
    size_t i;

    (void)talk_recv_into(1, 1, UINT64_MAX, 100);
    (void)talk_recv_into(1, 2, UINT64_MAX, 100);
    talk_send(0, 1, 101);
    talk_send(0, 2, LONG);
    cr_assert(talk_run(1000));
    cr_expect((talk_recvs[0].status == UCS_ERR_MESSAGE_TRUNCATED) &&
              (talk_recvs[1].status == UCS_ERR_MESSAGE_TRUNCATED));
    cr_expect(uci_fault_count() == 0);
    for (i = 0; i < 100; ++i) {
        cr_assert(((uint8_t)talk_recvs[0].buffer[i] == 0xee) && ((uint8_t)talk_recvs[1].buffer[i] == 0xee));
    }
}

Test(delivery, from_a_message_on_and_once)
{
    unsigned i;

    aim("rate=1,target=escape,after=3,count=1,min=10", 0, -1);
    talk_send(0, 100, 9); /* too short to be one of them */
    (void)talk_recv(1, 100, UINT64_MAX);
    for (i = 0; i < 6; ++i) {
        talk_send(0, i, 10);
        (void)talk_recv(1, i, UINT64_MAX);
    }
    cr_assert(talk_run(1000));
    talk_expect(0, 100, 9);
    for (i = 0; i < 6; ++i) {
        if (i == 3) {
            expect_one_bit(1 + i, i, 10);
        } else {
            talk_expect(1 + i, i, 10);
        }
    }
}

/* ------------------------------------------------------------------- buffers */

enum { SIZE = 5000 };

static uint8_t packed[SIZE], memory[2 * SIZE], before[2 * SIZE];
static unsigned packs, finishes;

/* A generic datatype: every second byte */
static void *start_pack(void *context, const void *buffer, size_t count)
{
    ++packs;
    return (void *)(uintptr_t)buffer;
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    return start_pack(context, buffer, count);
}

static size_t packed_size(void *state)
{
    return SIZE;
}

static size_t pack(void *state, size_t offset, void *dest, size_t max_length)
{
    size_t i, length = uci_min(max_length, SIZE - offset);

    for (i = 0; i < length; ++i) {
        ((uint8_t *)dest)[i] = ((uint8_t *)state)[2 * (offset + i)];
    }
    return length;
}

static ucs_status_t unpack(void *state, size_t offset, const void *src, size_t length)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        ((uint8_t *)state)[2 * (offset + i)] = ((const uint8_t *)src)[i];
    }
    return UCS_OK;
}

static void finish(void *state)
{
    ++finishes;
}

static uci_generic_dt_t generic;

static uci_generic_dt_t *lookup(ucp_datatype_t datatype)
{
    return &generic;
}

static void set_up_buffers(void)
{
    size_t i;

    uci_digest_init();
    generic.ops               = (ucp_generic_dt_ops_t){.start_pack   = start_pack,
                                                       .start_unpack = start_unpack,
                                                       .packed_size  = packed_size,
                                                       .pack         = pack,
                                                       .unpack       = unpack,
                                                       .finish       = finish};
    uci_buffer_generic_lookup = lookup;
    for (i = 0; i < sizeof(memory); ++i) {
        memory[i] = (uint8_t)((i * 31) + (i >> 8));
    }
    memcpy(before, memory, sizeof(memory));
    memcpy(packed, memory, sizeof(packed));
}

TestSuite(escape, .init = set_up_buffers);

#define GENERIC (0x1000ul | UCP_DATATYPE_GENERIC)

Test(escape, contiguous)
{
    size_t length;
    uci_buffer_t buf;

    aim("rate=1,target=escape", 0, -1);
    uci_buffer_init_recv(&buf, memory, sizeof(memory), ucp_dt_make_contig(1));
    for (length = 1; length < sizeof(memory); length += 1 + (length / 3)) {
        cr_assert(uci_inject_escape(&buf, length, 0));
        cr_expect(wrong_bits(memory, before, length) == 1);
        cr_expect(memcmp(memory + length, before + length, sizeof(memory) - length) == 0);
        memcpy(memory, before, sizeof(memory));
    }
}

Test(escape, pieces)
{
    ucp_dt_iov_t iov[3] = {{memory + 100, 10}, {memory, 1}, {memory + 200, 1000}};
    uci_buffer_t buf;
    unsigned i;

    aim("rate=1,target=escape", 0, -1);
    uci_buffer_init_recv(&buf, iov, 3, UCP_DATATYPE_IOV);
    for (i = 0; i < 100; ++i) {
        cr_assert(uci_inject_escape(&buf, 500, 0));
        cr_expect(wrong_bits(memory, before, sizeof(memory)) == 1);
        cr_expect(wrong_bits(memory, before, 1) + wrong_bits(memory + 100, before + 100, 10) +
                          wrong_bits(memory + 200, before + 200, 489) ==
                  1);
        memcpy(memory, before, sizeof(memory));
    }
}

Test(escape, generic)
{
    uci_buffer_t buf;
    size_t i;

    aim("rate=1,target=escape", 0, -1);
    uci_buffer_init_recv(&buf, memory, 1, GENERIC);
    cr_assert(uci_inject_escape(&buf, 4000, 0));
    cr_expect(wrong_bits(memory, before, 8000) == 1);
    cr_expect(memcmp(memory + 8000, before + 8000, sizeof(memory) - 8000) == 0);
    for (i = 0; i < SIZE; ++i) {
        cr_assert(memory[2 * i + 1] == before[2 * i + 1], "what is not of the datatype");
    }
    uci_buffer_finish(&buf);
    cr_expect((packs == 3) && (finishes == 3), "%u begun, %u finished", packs, finishes);
}

Test(escape, generic_without_a_packer_is_left_alone)
{
    uci_buffer_t buf;

    aim("rate=1,target=escape", 0, -1);
    generic.ops.pack = NULL;
    uci_buffer_init_recv(&buf, memory, 1, GENERIC);
    cr_expect(!uci_inject_escape(&buf, SIZE, 0));
    cr_expect(uci_fault_count() == 0);
    cr_expect(memcmp(memory, before, sizeof(memory)) == 0);
}

Test(escape, only_where_it_is_aimed)
{
    uci_buffer_t buf;

    uci_buffer_init_recv(&buf, packed, sizeof(packed), ucp_dt_make_contig(1));
    aim("rate=1,target=escape,peer=3,rank=2,twin=1", 2, 1);
    cr_expect(uci_fault_targets(UCI_FAULT_ESCAPE) && uci_fault_enabled);
    cr_expect(!uci_inject_escape(&buf, 10, 2));
    cr_expect(!uci_inject_escape(&buf, 0, 3));
    cr_expect(uci_inject_escape(&buf, 10, 3));
    aim("rate=1,target=escape,rank=2,twin=1", 2, 0);
    cr_expect(!uci_fault_targets(UCI_FAULT_ESCAPE) && !uci_inject_escape(&buf, 10, 3));
    aim("rate=1,target=escape,rank=2,twin=1", 1, 1);
    cr_expect(!uci_fault_targets(UCI_FAULT_ESCAPE) && !uci_inject_escape(&buf, 10, 3));
    aim("rate=1,target=any", 0, -1);
    cr_expect(!uci_fault_targets(UCI_FAULT_ESCAPE) && !uci_inject_escape(&buf, 10, 3));
}
