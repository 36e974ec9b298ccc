/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams, over a network of the test's own: each byte once and in order, whatever becomes of frames; nobody gets what is behind a piece
 * that is lost; what can't be true is refused.
 */
#include "fake_talk.h"

#include "message/user_stream.h"
#include "message/user_am.h"

#define LARGE 30000u /* by rendezvous */
#define ALL   (4 * LARGE)

static char bytes[ALL], received[ALL];
static size_t sent, told_length;
static ucs_status_t told_status;
static unsigned told_count;

static void set_up(void)
{
    talk_begin(2, UCI_CARRIER_AM);
    uci_settings.path       = UCI_PATH_STREAM;
    uci_settings.chunk_size = 4096;
    uci_tuner_refresh();
    talk_fill(bytes, sizeof(bytes), 1);
    uci_ep_number(net_nodes[0].ep);
    uci_ep_number(net_nodes[1].ep);
}

static void tear_down(void)
{
    talk_end();
}

TestSuite(stream, .init = set_up, .fini = tear_down, .timeout = 60);

/* The next bytes, from node 0 to node 1 */
static void say(size_t length)
{
    talk_send_t *send         = &talk_sends[talk_sends_count++];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = talk_on_sent,
                                 .user_data    = send};

    *send = (talk_send_t){.data = NULL};
    uci_worker_enter(net_nodes[0].worker);
    send->done |= talk_keep(uci_user_stream_send(net_nodes[0].ep, bytes + sent, length, &param)) == NULL;
    uci_worker_leave(net_nodes[0].worker);
    sent += length;
}

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    told_status = status;
    told_length = length;
    ++told_count;
}

/* All @a length bytes. @return whether they were there */
static bool receive(size_t length)
{
    ucp_request_param_t param = {.op_attr_mask   = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.recv_stream = on_received,
                                 .flags          = UCP_STREAM_RECV_FLAG_WAITALL};
    ucs_status_ptr_t ptr;

    uci_worker_enter(net_nodes[1].worker);
    ptr = uci_user_stream_recv(net_nodes[1].ep, received, length, &told_length, &param);
    (void)(UCS_PTR_IS_PTR(ptr) && talk_keep(ptr));
    uci_worker_leave(net_nodes[1].worker);
    told_status = UCS_PTR_STATUS(ptr);
    return ptr == NULL;
}

static void expect_received(size_t length)
{
    unsigned i;

    for (i = 0; (i < 100) && (told_count == 0); ++i) {
        talk_turns(1, 20 * TALK_MS);
    }
    cr_assert((told_count == 1) && (told_status == UCS_OK) && (told_length == length),
              "%u, status %d, %zu of %zu bytes", told_count, told_status, told_length, length);
    cr_expect(memcmp(received, bytes, length) == 0, "wrong bytes");
}

static size_t say_all(void)
{
    static const size_t lengths[] = {1, 100, LARGE, 7, 4000, 8000, LARGE, 1};
    unsigned i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        say(lengths[i]);
    }
    return sent;
}

Test(stream, received_after)
{
    size_t length = say_all();

    cr_assert(talk_run(100));
    talk_turns(20, TALK_MS);
    cr_expect(receive(length) && (told_length == length) && (memcmp(received, bytes, length) == 0));
    cr_expect(talk_counters(0)->stream_sent == 8);
}

Test(stream, received_before)
{
    cr_assert(!receive(2 * LARGE + 1 + 100 + 7 + 4000 + 8000 + 1));
    say_all();
    cr_assert(talk_run(100));
    expect_received(sent);
}

static void damage_once(net_message_t *message)
{
    if (message->frame && (message->length > sizeof(uci_frame_hdr_t)) &&
        uci_frame_is_user_am(talk_hdr(message)->kind)) {
        message->data[message->length - 1] ^= 1;
        net_sent = NULL;
    }
}

Test(stream, damaged_and_lost)
{
    net_sent = damage_once;
    cr_assert(!receive(2 * LARGE + 1 + 100 + 7 + 4000 + 8000 + 1));
    say_all();
    talk_lose_frame(1, 1);
    talk_lose_frame(1, 3);
    cr_assert(talk_run(100));
    expect_received(sent);
    cr_expect(talk_counters(1)->repaired_chunks >= 1);
}

/* ---------------------------------------------------------------- order */

static size_t lengths_told[4];
static unsigned orders[4];

static void on_one(void *request, ucs_status_t status, size_t length, void *user_data)
{
    orders[told_count]         = (unsigned)(uintptr_t)user_data;
    lengths_told[told_count++] = length;
}

/* @return whether it ends later, with its callback */
static bool receive_one(unsigned number, uint32_t attr_mask)
{
    ucp_request_param_t param = {.op_attr_mask   = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | attr_mask,
                                 .cb.recv_stream = on_one,
                                 .user_data      = (void *)(uintptr_t)number};
    ucs_status_ptr_t ptr = uci_user_stream_recv(net_nodes[1].ep, received + (1000 * number), 100, &told_length, &param);

    return UCS_PTR_IS_PTR(ptr) && (talk_keep(ptr) != NULL);
}

static void on_message(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    cr_expect((told_count == 0) && receive_one(1, 0), "the first one's end has not been told");
    cr_expect(told_count == 0);
}

/* The callback of a message comes before that of the first receive, though both have ended */
Test(stream, ends_are_told_in_order)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = on_message};
    char message[8];

    uci_worker_enter(net_nodes[1].worker);
    talk_keep(uci_recv(net_nodes[1].worker, message, sizeof(message), 7, UINT64_MAX, &param));
    cr_assert(receive_one(0, 0));
    uci_worker_leave(net_nodes[1].worker);
    talk_send(0, 7, 5);
    say(66);
    say(1);
    talk_turns(20, TALK_MS);
    cr_assert(told_count == 2, "%u", told_count);
    cr_expect((orders[0] == 0) && (lengths_told[0] == 66));
    cr_expect((orders[1] == 1) && (lengths_told[1] == 1));
    cr_expect((memcmp(received, bytes, 66) == 0) && (received[1000] == bytes[66]));
    uci_worker_enter(net_nodes[1].worker);
    say(3);
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(20, TALK_MS);
    uci_worker_enter(net_nodes[1].worker);
    cr_expect(!receive_one(2, 0) && (told_length == 3), "all has been told");
    uci_worker_leave(net_nodes[1].worker);
}

Test(stream, no_immediate_end)
{
    say(5);
    talk_turns(20, TALK_MS);
    uci_worker_enter(net_nodes[1].worker);
    cr_expect(receive_one(0, UCP_OP_ATTR_FLAG_NO_IMM_CMPL) && (told_count == 0));
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(1, TALK_MS);
    cr_expect((told_count == 1) && (lengths_told[0] == 5));
}

/* ----------------------------------------------------------------- lies */

static void arrive(const void *header, size_t header_length)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};

    uci_worker_enter(net_nodes[1].worker);
    cr_expect(uci_user_stream_arrived(talk_peer(1, 0), header, header_length, received, 1, &param) == UCS_OK);
    uci_worker_leave(net_nodes[1].worker);
}

Test(stream, what_can_t_be_is_refused)
{
    uci_user_stream_header_t none = {.number = 0}, other = {.number = 1, .piece = 0};

    arrive(&other, sizeof(other) - 1);
    arrive(&none, sizeof(none));
    cr_expect(talk_counters(1)->refused_messages == 2);
    cr_assert(!receive(10));
    cr_expect(told_status == UCS_INPROGRESS);
}

/* The policy has let a piece go: the receive that waits, and those that come, get no other bytes in its place */
Test(stream, nothing_behind_a_gap)
{
    uci_user_stream_header_t second = {.number = 1, .piece = 1};

    cr_assert(!receive(10));
    arrive(&second, sizeof(second));
    talk_turns(2, TALK_MS);
    cr_expect((told_count == 1) && (told_status == UCS_ERR_IO_ERROR) && (told_length == 0), "status %d", told_status);
    cr_expect(!receive(1) && (told_status == UCS_ERR_IO_ERROR));
}

/* What is here before the gap is received; who wants more than that does not wait for it */
Test(stream, more_than_is_here_before_a_gap)
{
    uci_user_stream_header_t third = {.number = 1, .piece = 2};

    say(10);
    talk_turns(4, TALK_MS);
    arrive(&third, sizeof(third));
    cr_assert(!receive(20));
    talk_turns(2, TALK_MS);
    cr_expect((told_count == 1) && (told_status == UCS_ERR_IO_ERROR), "%u, status %d", told_count, told_status);
}

/* Of a large piece the descriptor was let go: that is a gap too, and no piece of 0 bytes */
Test(stream, nothing_in_place_of_a_large_piece)
{
    uci_user_stream_header_t first = {.number = 1, .piece = 0};
    ucp_am_recv_param_t large      = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV};

    cr_assert(!receive(10));
    uci_worker_enter(net_nodes[1].worker);
    cr_expect(uci_user_stream_arrived(talk_peer(1, 0), &first, sizeof(first), NULL, 0, &large) == UCS_OK);
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(2, TALK_MS);
    cr_expect((told_count == 1) && (told_status == UCS_ERR_IO_ERROR) && (told_length == 0), "status %d", told_status);
}

Test(stream, bytes_of_a_closed_endpoint_are_dropped)
{
    uci_user_stream_header_t first = {.number = 1, .piece = 0};

    uci_worker_enter(net_nodes[1].worker);
    uci_user_stream_close(net_nodes[1].ep);
    net_nodes[1].ep->number = 3;
    uci_worker_leave(net_nodes[1].worker);
    arrive(&first, sizeof(first));
    cr_expect((talk_counters(1)->refused_messages == 0) && uci_list_is_empty(&talk_peer(1, 0)->msgs.streams));
}
