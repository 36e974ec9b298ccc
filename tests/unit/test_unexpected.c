/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that nobody has asked for yet, over a network of the test's own: they wait, are found by probes and receives in the order of
 * their arrival, are verified once more when they are taken, and outlive their sender.
 */
#include "fake_talk.h"

#include "capture.h"
#include "conversation/conversation.h"
#include "inject/inject.h"
#include "message/recv.h"
#include "transfer/repair.h"
#include "transfer/stream.h"
#include "turn/dump.h"
#include "util/log.h"

#define TAG  7u
#define LONG 20000u /* by rendezvous */

static void set_up(void)
{
    talk_begin(2, UCI_CARRIER_AM);
}

static void set_up_streams(void)
{
    talk_begin(2, UCI_CARRIER_AM);
    uci_settings.path       = UCI_PATH_STREAM;
    uci_settings.chunk_size = 4096;
    uci_tuner_refresh();
    net_nodes[0].context.buffered_max = LONG; /* sends are over for the user at once */
    uci_stream_part_max               = 0;    /* and stay where they are until their receiver asks */
}

static void tear_down(void)
{
    talk_end();
}

TestSuite(unexpected, .init = set_up, .fini = tear_down, .timeout = 60);
TestSuite(adopted, .init = set_up_streams, .fini = tear_down, .timeout = 60);

static uci_match_t *waiting(void)
{
    return &net_nodes[1].worker->match;
}

static uci_message_t *message_of(ucp_tag_t tag)
{
    uci_message_t *message = uci_unexpected_find(net_nodes[1].worker, tag, UINT64_MAX);

    cr_assert(message != NULL, "message %lu is not here", (unsigned long)tag);
    return message;
}

/* Messages arrive */
static void arrive(void)
{
    talk_turns(5, TALK_MS);
}

static ucp_tag_message_h probe(ucp_tag_t tag, ucp_tag_t mask, bool remove, ucp_tag_t found, size_t length)
{
    ucp_tag_recv_info_t info = {0};
    ucp_tag_message_h handle;

    handle = uci_unexpected_probe(net_nodes[1].worker, tag, mask, remove, &info);
    cr_assert(handle != NULL, "message %lu is not found", (unsigned long)tag);
    cr_assert((info.sender_tag == found) && (info.length == length), "tag %lu, %zu bytes",
              (unsigned long)info.sender_tag, info.length);
    return handle;
}

static bool is_probed(ucp_tag_t tag, ucp_tag_t mask)
{
    ucp_tag_recv_info_t info;

    return uci_unexpected_probe(net_nodes[1].worker, tag, mask, false, &info) != NULL;
}

/* @return its number among the receives */
static unsigned recv_handle(ucp_tag_message_h handle, size_t room)
{
    unsigned number           = talk_recvs_count++;
    talk_recv_t *recv         = &talk_recvs[number];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = talk_on_received,
                                 .user_data = recv};

    *recv = (talk_recv_t){.room = room, .buffer = malloc(uci_max(room, 1ul))};
    memset(recv->buffer, 0xee, room);
    uci_worker_enter(net_nodes[1].worker);
    talk_keep(uci_unexpected_recv(net_nodes[1].worker, recv->buffer, room, handle, &param));
    uci_worker_leave(net_nodes[1].worker);
    return number;
}

static void expect_untouched(unsigned number)
{
    size_t i;

    for (i = 0; i < talk_recvs[number].room; ++i) {
        cr_assert((uint8_t)talk_recvs[number].buffer[i] == 0xee, "byte %zu was written", i);
    }
}

/* ------------------------------------------------------------------ waiting */

Test(unexpected, all_sizes)
{
    static const size_t lengths[] = {0, 1, 7, 8, 16, 63, 64, 65, 100, 128, 129, 1000, 2048, 2049, 4096, LONG};
    unsigned i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        (void)talk_start_send(0, i, lengths[i], i % 3 == 0);
    }
    arrive();
    cr_expect(waiting()->msgs_count == uci_array_size(lengths));
    for (i = 0; i < uci_array_size(lengths); ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
    }
    cr_assert(talk_run(1000));
    for (i = 0; i < uci_array_size(lengths); ++i) {
        talk_expect(i, i, lengths[i]);
    }
    cr_expect(waiting()->msgs_count == 0);
    cr_expect(talk_counters(1)->messages_received == uci_array_size(lengths));
}

Test(unexpected, into_memory_that_just_fits)
{
    unsigned i;

    for (i = 0; i < 200; ++i) {
        talk_send(0, i, i);
    }
    arrive();
    for (i = 0; i < 200; ++i) {
        (void)talk_recv_into(1, i, UINT64_MAX, i);
        talk_expect(i, i, i);
    }
}

/* The one that came first of those that match */
Test(unexpected, in_order_of_arrival)
{
    talk_send(0, 0x10, 10);
    talk_send(0, 0x21, 20);
    talk_send(0, 0x11, 30);
    talk_send(0, 0x21, 40);
    talk_send(0, 0x12, 50);
    arrive();
    talk_expect(talk_recv(1, 0x20, 0xf0), 0x21, 20);
    talk_expect(talk_recv(1, 0x01, 0x0f), 0x11, 30);
    talk_expect(talk_recv(1, 0x21, UINT64_MAX), 0x21, 40);
    talk_expect(talk_recv(1, 0, 0), 0x10, 10);
    talk_expect(talk_recv(1, 0, 0), 0x12, 50);
    cr_expect(waiting()->msgs_count == 0);
}

Test(unexpected, many)
{
    unsigned i, count = 2000;

    for (i = 0; i < count; ++i) {
        talk_send(0, i, 20);
        if (i % 100 == 0) {
            arrive();
        }
    }
    arrive();
    for (i = count; i-- > 0;) {
        talk_expect(talk_recv_into(1, i, UINT64_MAX, 20), i, 20);
    }
}

/* Posted receives come first, and one that does not match does not take it */
/* A program may have millions of them wait */
Test(unexpected, small_ones_are_small)
{
    const uci_frame_pool_t *frames = &net_nodes[1].worker->frames;
    unsigned i, before = (unsigned)frames->cls[0].in_use;

    for (i = 0; i < 100; ++i) {
        talk_send(0, i, 8);
    }
    arrive();
    cr_expect(waiting()->msgs_count == 100);
    cr_expect((frames->cls[0].in_use - before >= 100) && (frames->cls[1].in_use == 0), "%lu larger than %lu bytes",
              (unsigned long)frames->cls[1].in_use, (unsigned long)frames->cls[0].size);
    for (i = 0; i < 100; ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
    }
    cr_assert(talk_run(1000));
    for (i = 0; i < 100; ++i) {
        talk_expect(i, i, 8);
    }
}

Test(unexpected, only_what_nobody_has_asked_for)
{
    unsigned first = talk_recv(1, 1, UINT64_MAX);

    talk_send(0, 0, 10);
    talk_send(0, 1, 20);
    talk_send(0, 1, 30);
    arrive();
    talk_expect(first, 1, 20);
    cr_expect(waiting()->msgs_count == 2);
    talk_expect(talk_recv(1, 1, UINT64_MAX), 1, 30);
    talk_expect(talk_recv(1, 0, UINT64_MAX), 0, 10);
}

Test(unexpected, completes_at_once)
{
    ucp_tag_recv_info_t info   = {0};
    ucp_request_param_t param  = {.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO, .recv_info.tag_info = &info};
    ucp_request_param_t forced = {.op_attr_mask       = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_RECV_INFO,
                                  .recv_info.tag_info = &info};
    char buffer[100];

    cr_expect(UCS_PTR_STATUS(uci_recv(net_nodes[1].worker, buffer, 100, 0, 0, &forced)) == UCS_ERR_NO_RESOURCE);
    cr_expect(waiting()->recvs_count == 0);
    talk_send(0, 5, 10);
    talk_send(0, 6, 20);
    arrive();
    cr_expect(uci_recv(net_nodes[1].worker, buffer, 100, 0, 0, &param) == NULL);
    cr_expect((info.sender_tag == 5) && (info.length == 10));
    cr_expect(uci_recv(net_nodes[1].worker, buffer, 100, 0, 0, &forced) == NULL);
    cr_expect((info.sender_tag == 6) && (info.length == 20));
}

/* Into pieces, which are written when all is known to be right */
Test(unexpected, into_pieces)
{
    char a[30], b[1], c[100], wanted[100];
    ucp_dt_iov_t pieces[]     = {{a, sizeof(a)}, {b, 1}, {c, sizeof(c)}};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_iov()};

    talk_send(0, TAG, 100);
    arrive();
    cr_assert(uci_recv(net_nodes[1].worker, pieces, 3, TAG, UINT64_MAX, &param) == NULL);
    talk_fill(wanted, 100, TAG);
    cr_expect(memcmp(a, wanted, 30) == 0);
    cr_expect(b[0] == wanted[30]);
    cr_expect(memcmp(c, wanted + 31, 69) == 0);
}

/* ------------------------------------------------------------------- probing */

Test(unexpected, a_probe_takes_nothing)
{
    cr_expect(!is_probed(0, 0));
    talk_send(0, 0x17, 10);
    talk_send(0, 0x18, LONG);
    (void)talk_start_send(0, 0x19, 0, true);
    arrive();
    cr_expect(!is_probed(0x20, 0xf0));
    (void)probe(0, 0, false, 0x17, 10);
    (void)probe(0, 0, false, 0x17, 10);
    (void)probe(0x18, UINT64_MAX, false, 0x18, LONG);
    (void)probe(0x19, UINT64_MAX, false, 0x19, 0);
    cr_expect(waiting()->msgs_count == 3);
    (void)talk_recv(1, 0x19, UINT64_MAX);
    (void)talk_recv(1, 0x18, UINT64_MAX);
    (void)talk_recv(1, 0x17, UINT64_MAX);
    cr_assert(talk_run(1000));
    talk_expect(0, 0x19, 0);
    talk_expect(1, 0x18, LONG);
    talk_expect(2, 0x17, 10);
    cr_expect(!is_probed(0, 0));
}

/* Held by a handle it is of nobody else, and the next one is the next one */
Test(unexpected, a_handle)
{
    ucp_tag_message_h first, second;
    unsigned number;

    talk_send(0, TAG, 10);
    talk_send(0, TAG, 20);
    talk_send(0, TAG, LONG);
    talk_send(0, TAG, 40);
    arrive();
    first = probe(TAG, UINT64_MAX, true, TAG, 10);
    (void)probe(TAG, UINT64_MAX, false, TAG, 20);
    talk_expect(talk_recv(1, TAG, UINT64_MAX), TAG, 20);
    second = probe(TAG, UINT64_MAX, true, TAG, LONG);
    talk_expect(talk_recv(1, TAG, UINT64_MAX), TAG, 40);
    cr_expect(!is_probed(0, 0));
    number = recv_handle(second, LONG);
    cr_assert(talk_run(1000));
    talk_expect(number, TAG, LONG);
    talk_expect(recv_handle(first, 10), TAG, 10);
    cr_expect(uci_list_is_empty(&net_nodes[1].worker->msgs.probed));
}

/* A sender that waits to be matched is not told by a probe, but by the receive */
Test(unexpected, a_synchronous_one)
{
    unsigned number = talk_start_send(0, TAG, 10, true);
    ucp_tag_message_h handle;

    arrive();
    handle = probe(TAG, UINT64_MAX, true, TAG, 10);
    talk_turns(50, 100 * TALK_MS);
    cr_expect(!talk_sends[number].done);
    talk_expect(recv_handle(handle, 10), TAG, 10);
    arrive();
    cr_expect(talk_sends[number].done && (talk_sends[number].status == UCS_OK));
}

/* ---------------------------------------------------------------- truncation */

Test(unexpected, too_long)
{
    unsigned i, number[4];

    talk_send(0, 0, 100);
    number[1] = talk_start_send(0, 1, 100, true);
    talk_send(0, 2, LONG);
    talk_send(0, 3, 100);
    arrive();
    for (i = 0; i < 3; ++i) {
        number[i] = talk_recv_into(1, i, UINT64_MAX, 99);
        cr_assert(talk_recvs[number[i]].done, "message %u", i);
        cr_expect(talk_recvs[number[i]].status == UCS_ERR_MESSAGE_TRUNCATED, "message %u", i);
        expect_untouched(number[i]);
    }
    number[3] = recv_handle(probe(3, UINT64_MAX, true, 3, 100), 0);
    cr_expect(talk_recvs[number[3]].status == UCS_ERR_MESSAGE_TRUNCATED);
    cr_assert(talk_run(1000), "senders are told");
    cr_expect(waiting()->msgs_count == 0);
    cr_expect(talk_counters(1)->unrepaired_chunks == 0);
}

/* -------------------------------------------------------------------- damage */

/* It was intact when it came, and its sender has been told so: it is nobody's any more, and not given as if it were right */
static void damage_one(size_t at, bool sync, uci_on_error_t on_error, ucs_status_t status)
{
    uci_on_error_t before = uci_settings.on_error;
    unsigned i;

    uci_settings.on_error = on_error;
    for (i = 0; i < 3; ++i) {
        (void)talk_start_send(0, i, 1000, sync);
    }
    arrive();
    message_of(1)->payload[at] ^= 4;
    for (i = 0; i < 3; ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
    }
    uci_settings.on_error = before;
    talk_expect(0, 0, 1000);
    talk_expect(2, 2, 1000);
    cr_expect(talk_recvs[1].done && (talk_recvs[1].status == status), "status %d", talk_recvs[1].status);
    cr_expect(talk_counters(1)->unrepaired_chunks == 1);
    cr_assert(talk_run(1000));
}

Test(unexpected, damaged_where_it_waits)
{
    damage_one(0, false, UCI_ON_ERROR_ERROR, UCS_ERR_IO_ERROR);
}

Test(unexpected, a_damaged_end)
{
    damage_one(999, false, UCI_ON_ERROR_ERROR, UCS_ERR_IO_ERROR);
}

Test(unexpected, a_damaged_synchronous_one)
{
    damage_one(500, true, UCI_ON_ERROR_ERROR, UCS_ERR_IO_ERROR);
}

Test(unexpected, damaged_and_logged)
{
    damage_one(500, false, UCI_ON_ERROR_LOG, UCS_OK);
}

Test(unexpected, damaged_by_a_handle)
{
    ucp_tag_message_h handle;
    unsigned number;

    talk_send(0, TAG, 60);
    arrive();
    handle = probe(TAG, UINT64_MAX, true, TAG, 60);
    ((uci_message_t *)handle)->payload[59] ^= 0x80;
    number = recv_handle(handle, 60);
    talk_expect_lost(number);
}

/* The description of a large one, each of its words */
Test(unexpected, a_damaged_descriptor)
{
    unsigned i, bit;

    for (i = 0; i < 16 * 8; i += 3) {
        bit = i;
        talk_send(0, i, LONG);
        arrive();
        ((uint8_t *)message_of(i)->payload)[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        talk_expect_lost(talk_recv(1, i, UINT64_MAX));
    }
    cr_assert(talk_run(1000), "its sender does not wait for ever");
}

/* Damaged on its way, it is not here before it has been repaired */
Test(unexpected, damaged_on_its_way)
{
    talk_send(0, 0, 100);
    talk_send(0, 1, 100);
    talk_frame_to(1, 0)->data[sizeof(uci_frame_hdr_t)] ^= 1;
    net_turn(1);
    cr_expect(!is_probed(0, 0));
    arrive();
    talk_expect(talk_recv(1, 0, 0), 0, 100);
    talk_expect(talk_recv(1, 0, 0), 1, 100);
    cr_expect(talk_counters(1)->repaired_chunks == 1);
}

/* What changes while it is copied, as a sender can do who shares the memory, is what was verified, or is not there */
static void change_later(net_message_t *message)
{
    if (message->frame) {
        ((uci_frame_hdr_t *)(void *)message->data)->value ^= 1;
        ((uci_frame_hdr_t *)(void *)message->data)->check = uci_frame_check(
                (uci_frame_hdr_t *)(void *)message->data,
                uci_frame_am_seed(net_nodes[0].worker->uid, net_nodes[1].worker->uid));
        net_sent = NULL;
    }
}

Test(unexpected, a_digest_that_is_not_its_own)
{
    net_sent = change_later;
    talk_send(0, TAG, 100);
    net_turn(1);
    cr_expect(!is_probed(0, 0));
    arrive();
    talk_expect(talk_recv(1, TAG, UINT64_MAX), TAG, 100);
}

/* ------------------------------------------------------------------ adoption */

static void close_sender(void)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    talk_keep(uci_ep_close(net_nodes[0].ep, &param));
    net_nodes[0].ep = NULL;
}

static void expect_closed(void)
{
    talk_turns(100, 20 * TALK_MS);
    cr_assert(uci_list_is_empty(&net_nodes[0].worker->conn.closing), "it waits");
    cr_assert(uci_list_is_empty(&net_nodes[0].worker->xfer.send_ops), "it keeps what has been taken over");
}

/* Its user takes them for sent, and closes: they are fetched, and it need not stay */
Test(adopted, outlives_its_sender)
{
    unsigned i;

    for (i = 0; i < 5; ++i) {
        talk_send(0, i, (i % 2 == 0) ? LONG : 100);
        cr_assert(talk_sends[i].done);
    }
    arrive();
    close_sender();
    expect_closed();
    talk_lose_all(0);
    talk_give_back();
    net_destroy(0);
    for (i = 0; i < 5; ++i) {
        (void)probe(i, UINT64_MAX, false, i, (i % 2 == 0) ? LONG : 100);
        talk_expect(talk_recv_into(1, i, UINT64_MAX, (i % 2 == 0) ? LONG : 100), i, (i % 2 == 0) ? LONG : 100);
    }
    cr_expect(net_nodes[1].worker->ops_active == 0);
}

/* What UCI fetches for itself is no delivery yet */
Test(adopted, delivered_once)
{
    uci_fault_spec_t spec;
    char error[256], wanted[LONG];
    unsigned first, second;

    cr_assert(uci_fault_parse("rate=1,target=escape", &spec, error, sizeof(error)) == UCI_OK, "%s", error);
    uci_fault_init(&spec, 0, -1);
    uci_inject_install();
    uci_recv_attach(net_nodes[1].worker);
    talk_send(0, 0, LONG);
    talk_send(0, 1, LONG);
    arrive();
    close_sender();
    net_turn(0);
    net_turn(1);
    first = talk_recv(1, 0, UINT64_MAX); /* while it is under way */
    expect_closed();
    cr_expect(uci_fault_count() == 1);
    second = talk_recv(1, 1, UINT64_MAX);
    cr_expect(uci_fault_count() == 2);
    talk_fill(wanted, LONG, 0);
    cr_expect(talk_recvs[first].done && (memcmp(talk_recvs[first].buffer, wanted, LONG) != 0));
    talk_fill(wanted, LONG, 1);
    cr_expect(talk_recvs[second].done && (memcmp(talk_recvs[second].buffer, wanted, LONG) != 0));
}

Test(adopted, held_by_a_handle)
{
    ucp_tag_message_h handle;

    talk_send(0, TAG, LONG);
    talk_send(0, TAG, LONG - 1);
    arrive();
    handle = probe(TAG, UINT64_MAX, true, TAG, LONG);
    close_sender();
    expect_closed();
    talk_expect(recv_handle(handle, LONG), TAG, LONG);
    talk_expect(talk_recv(1, TAG, UINT64_MAX), TAG, LONG - 1);
}

/* Asked for while it is being fetched: by a receive, by a handle, and by one that is too small */
Test(adopted, asked_for_meanwhile)
{
    ucp_tag_message_h handle;
    unsigned first, second, third;

    talk_send(0, 0, LONG);
    talk_send(0, 1, LONG);
    talk_send(0, 2, LONG);
    arrive();
    close_sender();
    net_turn(0);
    net_turn(1);
    cr_assert(talk_recv_op(1) != NULL, "it is under way");
    first  = talk_recv(1, 0, UINT64_MAX);
    handle = probe(1, UINT64_MAX, true, 1, LONG);
    second = recv_handle(handle, LONG);
    third  = talk_recv_into(1, 2, UINT64_MAX, 100);
    cr_expect(!talk_recvs[first].done && !talk_recvs[second].done);
    cr_expect(waiting()->msgs_count == 0);
    expect_closed();
    talk_expect(first, 0, LONG);
    talk_expect(second, 1, LONG);
    cr_expect(talk_recvs[third].done && (talk_recvs[third].status == UCS_ERR_MESSAGE_TRUNCATED));
    expect_untouched(third);
}

Test(adopted, too_long)
{
    unsigned number;

    talk_send(0, TAG, LONG);
    arrive();
    close_sender();
    expect_closed();
    number = talk_recv_into(1, TAG, UINT64_MAX, LONG - 1);
    cr_expect(talk_recvs[number].status == UCS_ERR_MESSAGE_TRUNCATED);
    expect_untouched(number);
    cr_expect(net_is_idle(), "nobody has to be told");
}

/* It has a digest of its own from now on */
Test(adopted, damaged_where_it_waits)
{
    talk_send(0, TAG, LONG);
    arrive();
    close_sender();
    expect_closed();
    message_of(TAG)->content[LONG - 1] ^= 1;
    talk_expect_lost(talk_recv(1, TAG, UINT64_MAX));
}

Test(adopted, a_damaged_descriptor)
{
    talk_send(0, 0, LONG);
    talk_send(0, 1, LONG);
    arrive();
    ((uci_rndv_desc_t *)(void *)message_of(0)->payload)->chunk_size ^= 1024;
    close_sender();
    expect_closed();
    talk_expect_lost(talk_recv(1, 0, UINT64_MAX));
    talk_expect(talk_recv(1, 1, UINT64_MAX), 1, LONG);
}

/* Its sender does not come back: all that its receiver needs is on its way when the send is complete */
Test(adopted, what_is_complete_needs_no_sender)
{
    unsigned i, early;

    uci_stream_part_max = LONG;
    early               = talk_recv(1, 0, UINT64_MAX);
    talk_send(0, 0, LONG);
    talk_send(0, 1, LONG - 1);
    cr_assert(talk_sends[0].done && talk_sends[1].done);
    for (i = 0; i < 20; ++i) {
        net_turn(1);
    }
    talk_expect(early, 0, LONG);
    talk_expect(talk_recv(1, 1, UINT64_MAX), 1, LONG - 1);
    cr_expect(talk_counters(0)->buffered_messages == 2);
    cr_expect(talk_counters(1)->retransmitted_bytes == 0, "it was asked for nothing");
}

/* All descriptors that are on their way to node 1 come last */
static void delay_descriptors(void)
{
    net_node_t *to         = &net_nodes[1];
    net_message_t *message = to->first, *next, *frames[TALK_MAX];
    unsigned i, count = 0;

    to->first = NULL;
    to->last  = &to->first;
    for (; message != NULL; message = next) {
        next = message->next;
        if (message->frame) {
            frames[count++] = message;
        } else {
            net_append(to, message);
        }
    }
    for (i = 0; i < count; ++i) {
        net_append(to, frames[i]);
    }
}

static void expect_nothing_kept_early(void)
{
    uci_worker_for_each_peer(peer, net_nodes[1].worker)
    {
        cr_expect(uci_list_is_empty(&peer->msgs.early) && (peer->msgs.early_bytes == 0));
    }
}

/* It came by another connection, or waited for room */
static void expect_chunks_first(bool is_posted)
{
    unsigned i, number = 0;

    uci_stream_part_max = LONG;
    number              = is_posted ? talk_recv(1, TAG, UINT64_MAX) : 0;
    talk_send(0, TAG, LONG);
    delay_descriptors();
    for (i = 0; i < 20; ++i) {
        net_turn(1);
    }
    talk_expect(is_posted ? number : talk_recv(1, TAG, UINT64_MAX), TAG, LONG);
    cr_expect(talk_counters(1)->retransmitted_bytes == 0, "it was asked for nothing");
    expect_nothing_kept_early();
}

Test(adopted, chunks_before_their_descriptor)
{
    expect_chunks_first(false);
}

Test(adopted, chunks_before_their_descriptor_to_a_receive)
{
    expect_chunks_first(true);
}

Test(adopted, chunks_before_a_descriptor_that_is_too_long)
{
    unsigned i;

    uci_stream_part_max = LONG;
    talk_send(0, TAG, LONG);
    delay_descriptors();
    for (i = 0; i < 20; ++i) {
        net_turn(1);
    }
    i = talk_recv_into(1, TAG, UINT64_MAX, LONG - 1);
    cr_expect(talk_recvs[i].status == UCS_ERR_MESSAGE_TRUNCATED);
    expect_untouched(i);
    expect_nothing_kept_early();
}

/* What there is no room for is asked for */
Test(adopted, more_chunks_than_are_kept)
{
    enum { COUNT = 300 }; /* 6 MB */
    unsigned i;

    uci_stream_part_max = LONG;
    for (i = 0; i < COUNT; ++i) {
        talk_send(0, i, LONG);
    }
    delay_descriptors();
    arrive();
    for (i = 0; i < COUNT; ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
    }
    cr_assert(talk_run(5000));
    for (i = 0; i < COUNT; ++i) {
        talk_expect(i, i, LONG);
    }
    expect_nothing_kept_early();
}

static unsigned damaged_chunks;

static void damage_a_chunk(net_message_t *message)
{
    if (talk_is_chunk(message, 2) && (damaged_chunks == 0)) {
        message->data[17] ^= 1;
        ++damaged_chunks;
    }
}

/* Damaged on its way, it is repaired before the sender may go */
Test(adopted, damaged_on_its_way)
{
    net_sent = damage_a_chunk;
    talk_send(0, TAG, LONG);
    arrive();
    close_sender();
    expect_closed();
    cr_assert(damaged_chunks == 1);
    cr_expect(talk_counters(1)->repaired_chunks == 1);
    talk_expect(talk_recv(1, TAG, UINT64_MAX), TAG, LONG);
}

/* It disappears in the middle of it: whoever asks is told */
Test(adopted, a_sender_that_is_gone)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    unsigned first, second;

    talk_send(0, 0, LONG);
    talk_send(0, 1, LONG);
    arrive();
    close_sender();
    net_turn(0);
    net_turn(1);
    first = talk_recv(1, 0, UINT64_MAX);
    talk_lose_all(0);
    cr_assert(talk_recv_op(1) != NULL);
    talk_keep(uci_ep_close(net_nodes[1].ep, &param));
    net_nodes[1].ep = NULL;
    net_turn(1); /* what has been adopted is over, */
    net_turn(1); /* and so is who asked for it */
    cr_assert(talk_recvs[first].done);
    cr_expect(talk_recvs[first].status != UCS_OK);
    second = talk_recv(1, 1, UINT64_MAX);
    cr_assert(talk_recvs[second].done);
    cr_expect(talk_recvs[second].status != UCS_OK);
}

/* @param fail  or close */
static void expect_end_of_untaken(bool fail, ucs_status_t status)
{
    uci_peer_t *peer = talk_peer(1, 0);
    unsigned number  = talk_recv(1, TAG, UINT64_MAX);

    talk_send(0, TAG, LONG);
    net_turn(1);
    cr_assert(talk_recv_op(1) != NULL);
    talk_lose_all(0);
    peer->talk.sending += 1000; /* nobody takes them */
    if (fail) {
        uci_conversation_fail(&peer->conversation, status);
    } else {
        (void)uci_conversation_hear_leave(&peer->conversation, false);
        uci_conversation_hear_bye(&peer->conversation, true, false);
    }
    for (net_clock = 1000000000000ul; net_clock < 1100000000000ul; net_clock += 100 * TALK_MS) {
        net_turn(1);
    }
    peer->talk.sending -= 1000;
    cr_assert(talk_recvs[number].done);
    cr_expect(talk_recvs[number].status == status, "status %d", talk_recvs[number].status);
}

/* Who has told it a lot that it has not taken asks it nothing more, but knows that it has gone */
Test(adopted, a_sender_that_has_failed_and_takes_nothing)
{
    expect_end_of_untaken(true, UCS_ERR_CONNECTION_RESET);
}

Test(adopted, a_sender_that_is_gone_and_takes_nothing)
{
    expect_end_of_untaken(false, UCS_ERR_IO_ERROR);
}

/* A worker that ends with all of these: suite asan looks for what is left, or used afterwards */
Test(adopted, never_asked_for)
{
    unsigned i;

    for (i = 0; i < 6; ++i) {
        talk_send(0, i, (i % 2 == 0) ? LONG : 100);
    }
    arrive();
    (void)probe(0, UINT64_MAX, true, 0, LONG);
    (void)probe(1, UINT64_MAX, true, 1, 100);
    close_sender();
    expect_closed();
    (void)probe(2, UINT64_MAX, true, 2, LONG);
}

Test(adopted, never_finished)
{
    unsigned i;

    for (i = 0; i < 3; ++i) {
        talk_send(0, i, LONG);
    }
    arrive();
    (void)probe(0, UINT64_MAX, true, 0, LONG);
    close_sender();
    net_turn(0);
    net_turn(1);
    (void)talk_recv(1, 1, UINT64_MAX);
    talk_lose_all(0);
    talk_give_back();
    net_destroy(0);
    net_destroy(1);
}

/* ------------------------------------------------------------------ dumps */

/* What UCX has, of a side without UCI, is of no peer. @return what a dump says meanwhile, to be freed */
static char *dump_with_raw(ucp_tag_t tag, size_t length)
{
    ucp_tag_recv_info_t info = {.sender_tag = tag, .length = length};
    uci_worker_t *worker     = net_nodes[1].worker;
    FILE *stream             = tmpfile();
    uci_message_t *message   = uci_unexpected_create_raw(worker, (ucp_tag_message_h)&info, &info);
    char *text               = calloc(1, 1 << 16);

    cr_assert((stream != NULL) && (message != NULL) && (text != NULL));
    uci_match_keep(waiting(), &message->match, tag);
    uci_dump(fileno(stream));
    cr_assert_eq(uci_unexpected_next_raw(worker), message);
    uci_unexpected_forget(message);
    rewind(stream);
    cr_assert(fread(text, 1, (1 << 16) - 1, stream) > 0);
    fclose(stream);
    return text;
}

Test(unexpected, a_dump_has_what_is_of_no_peer)
{
    char *text = dump_with_raw(0x77, 12345);

    cr_expect(strstr(text, "unexpected message 0 from a side without UCI, tag 0x77, 12345 bytes;") != NULL, "%s", text);
    free(text);
}

/* ------------------------------------------------------------------ types */

static const char *code_name(unsigned code)
{
    return "A";
}

static int matches(const uci_signature_t *sent, const uci_signature_t *posted)
{
    return 0;
}

static const uci_signature_ops_t types_ops = {.size = sizeof(types_ops), .code_name = code_name, .matches = matches};

/* A peer lies: its word says that they are mixed, and its frame is of a kind that has no room to say which */
static void send_untold(ucp_tag_t tag, size_t length)
{
    uint64_t word      = uci_signature_word(UCI_SIGNATURE_MIXED, 3);
    size_t total       = length + sizeof(word);
    uci_ep_t *ep       = net_nodes[0].ep;
    uci_frame_t *frame = uci_link_frame_get(ep->peer, total);
    char *payload      = uci_frame_payload(frame);

    talk_fill(payload, length, tag);
    memcpy(payload + length, &word, sizeof(word));
    uci_worker_enter(net_nodes[0].worker);
    cr_assert(!UCS_STATUS_IS_ERR(uci_link_send(ep, frame,
                                               uci_frame_what(UCI_SIGNED_EAGER, UCI_DIGEST_XXH3, (uint32_t)total), tag,
                                               XXH3_64bits(payload, total))));
    uci_worker_leave(net_nodes[0].worker);
}

static void recv_typed(ucp_tag_t tag, char *buffer, size_t length)
{
    static const ucp_request_param_t none;
    const uci_signature_t posted = {.word = uci_signature_word(5, 3), .call = "MPI_Recv"};

    uci_worker_enter(net_nodes[1].worker);
    talk_keep(uci_recv_with(net_nodes[1].worker, buffer, length, tag, UINT64_MAX, &none, &posted));
    uci_worker_leave(net_nodes[1].worker);
}

static void expect_untold(size_t length, bool is_early)
{
    test_capture_t capture = test_capture_start();
    char buffer[1024], wanted[1024], *text;

    if (!is_early) {
        recv_typed(TAG, buffer, length);
    }
    send_untold(TAG, length);
    arrive();
    if (is_early) {
        recv_typed(TAG, buffer, length);
    }
    text = test_capture_stop(&capture);
    talk_fill(wanted, length, TAG);
    cr_expect(memcmp(buffer, wanted, length) == 0);
    cr_expect(strstr(text, ": 3 elements of types that it does not tell were sent by ") != NULL, "%zu bytes, %s: %s",
              length, is_early ? "early" : "late", text);
    free(text);
}

Test(unexpected, types_that_a_peer_does_not_tell)
{
    uci_signed_ops = &types_ops;
    uci_log_level  = UCI_LOG_WARN;
    expect_untold(20, false);
    expect_untold(20, true);
    expect_untold(1000, false);
    expect_untold(1000, true);
    uci_signed_ops = NULL;
}
