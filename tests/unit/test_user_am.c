/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A program's own active messages, over a network of the test's own: each reaches its handler once, in order and intact, whatever becomes of
 * its frames; what a handler keeps stays; what can't be true is refused.
 */
#include "fake_talk.h"

#include <malloc.h>

#include "message/user_am.h"

#define ID    7u
#define LARGE 30000u /* by rendezvous */

typedef struct told {
    unsigned number;
    size_t length, header_length;
    uint64_t attr;
    void *data;
} told_t;

static told_t told[TALK_MAX];
static unsigned told_count, wrong;
static ucs_status_t (*answer)(void *data, size_t length, const ucp_am_recv_param_t *param);

static void set_up(void)
{
    talk_begin(2, UCI_CARRIER_AM);
    uci_settings.path       = UCI_PATH_STREAM;
    uci_settings.chunk_size = 4096;
    uci_tuner_refresh();
}

static void tear_down(void)
{
    talk_end();
}

TestSuite(user_am, .init = set_up, .fini = tear_down, .timeout = 60);

/* The header of a message is its number, as often as it fits */
static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    char wanted[TALK_LENGTH];
    unsigned number = 0;

    memcpy(&number, header, uci_min(header_length, sizeof(number)));
    told[told_count++] = (told_t){number, length, header_length, param->recv_attr, data};
    talk_fill(wanted, length, number);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) && (memcmp(data, wanted, length) != 0)) {
        ++wrong;
    }
    return (answer != NULL) ? answer(data, length, param) : UCS_OK;
}

static void set_handler(void)
{
    uci_user_am_handler_t handler = {.recv = on_message};

    cr_assert(uci_user_am_set_handler(net_nodes[1].worker, ID, &handler) == UCS_OK);
}

/* From node 0 to node 1 */
static void say(unsigned number, size_t length, uint32_t flags)
{
    talk_send_t *send         = &talk_sends[talk_sends_count++];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.send   = talk_on_sent,
                                 .user_data = send,
                                 .flags     = flags};

    *send = (talk_send_t){.data = malloc(uci_max(length, 1ul))};
    talk_fill(send->data, length, number);
    uci_worker_enter(net_nodes[0].worker);
    send->done |= talk_keep(uci_user_am_send(net_nodes[0].ep, ID, &number, sizeof(number), send->data, length,
                                             &param)) == NULL;
    uci_worker_leave(net_nodes[0].worker);
}

static void expect_told(unsigned count)
{
    unsigned i;

    for (i = 0; (i < 100) && (told_count < count); ++i) { /* sends may be over long before */
        talk_turns(1, 20 * TALK_MS);
    }
    cr_assert(told_count == count, "%u handed out, not %u", told_count, count);
    for (i = 0; i < count; ++i) {
        cr_expect(told[i].number == i, "number %u was handed out as number %u", told[i].number, i);
    }
    cr_expect(wrong == 0, "%u are wrong", wrong);
}

/* ------------------------------------------------------------------ order */

Test(user_am, all_sizes_in_order)
{
    static const size_t lengths[] = {0, 1, 7, 8, 100, 1000, 4000, 8000, LARGE};
    unsigned i;

    set_handler();
    for (i = 0; i < uci_array_size(lengths); ++i) {
        say(i, lengths[i], UCP_AM_SEND_FLAG_EAGER);
    }
    cr_assert(talk_run(100));
    expect_told(uci_array_size(lengths));
    for (i = 0; i < told_count; ++i) {
        cr_expect((told[i].length == lengths[i]) && (told[i].header_length == sizeof(unsigned)));
        cr_expect(told[i].attr == UCP_AM_RECV_ATTR_FLAG_DATA, "attributes 0x%lx", (unsigned long)told[i].attr);
        cr_expect((uintptr_t)told[i].data % 16 == 0);
    }
    cr_expect(talk_counters(0)->user_am_sent == uci_array_size(lengths));
    cr_expect(talk_counters(1)->user_am_received == uci_array_size(lengths));
    cr_expect(talk_counters(1)->messages_received == uci_array_size(lengths), "each is counted once");
}

/* What is small arrives long before, and its handler is not called before */
Test(user_am, what_follows_a_large_one_waits_for_it)
{
    unsigned i;

    set_handler();
    say(0, LARGE, UCP_AM_SEND_FLAG_EAGER);
    for (i = 1; i < 20; ++i) {
        say(i, 8, 0);
    }
    talk_turns(1, TALK_MS);
    cr_expect(told_count == 0, "%u are handed out, and the first is not here", told_count);
    cr_assert(talk_run(100));
    expect_told(20);
}

static unsigned number_of_handler;

static ucs_status_t on_old(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    char wanted[TALK_LENGTH];

    talk_fill(wanted, length, 0);
    ++number_of_handler;
    wrong += (length != LARGE) || (memcmp(data, wanted, length) != 0) || !(flags & UCP_CB_PARAM_FLAG_DATA);
    return UCS_OK;
}

Test(user_am, an_old_handler_gets_it_whole)
{
    uci_user_am_handler_t handler = {.old = on_old, .is_old = true};
    ucp_request_param_t param     = {.op_attr_mask = 0};
    static char data[LARGE];

    talk_fill(data, LARGE, 0);
    cr_assert(uci_user_am_set_handler(net_nodes[1].worker, ID, &handler) == UCS_OK);
    uci_worker_enter(net_nodes[0].worker);
    talk_keep(uci_user_am_send(net_nodes[0].ep, ID, NULL, 0, data, LARGE, &param));
    uci_worker_leave(net_nodes[0].worker);
    cr_assert(talk_run(100));
    cr_expect((number_of_handler == 1) && (wrong == 0));
}

/* ------------------------------------------------------ data, by rendezvous */

static char received[LARGE];
static unsigned received_count;

static void on_data(void *request, ucs_status_t status, size_t length, void *user_data)
{
    char wanted[TALK_LENGTH];

    talk_fill(wanted, LARGE, 0);
    cr_expect((status == UCS_OK) && (length == LARGE), "status %d, %zu bytes", status, length);
    wrong += memcmp(received, wanted, LARGE) != 0;
    ++received_count;
}

static void receive(void *desc)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = on_data};

    talk_keep(uci_user_am_recv_data(net_nodes[1].worker, desc, received, LARGE, &param));
}

static ucs_status_t receive_at_once(void *data, size_t length, const ucp_am_recv_param_t *param)
{
    receive(data);
    return UCS_OK;
}

static ucs_status_t keep(void *data, size_t length, const ucp_am_recv_param_t *param)
{
    return UCS_INPROGRESS;
}

Test(user_am, data_are_received_from_within_the_handler)
{
    set_handler();
    answer = receive_at_once;
    say(0, LARGE, UCP_AM_SEND_FLAG_RNDV);
    cr_assert(talk_run(100));
    talk_turns(10, TALK_MS);
    cr_expect(told[0].attr == UCP_AM_RECV_ATTR_FLAG_RNDV);
    cr_expect((received_count == 1) && (wrong == 0));
}

Test(user_am, data_are_received_later)
{
    set_handler();
    answer = keep;
    say(0, LARGE, UCP_AM_SEND_FLAG_RNDV);
    talk_turns(20, TALK_MS);
    cr_assert((told_count == 1) && !talk_sends[0].done);
    uci_worker_enter(net_nodes[1].worker);
    receive(told[0].data);
    uci_worker_leave(net_nodes[1].worker);
    cr_assert(talk_run(100));
    talk_turns(10, TALK_MS);
    cr_expect((received_count == 1) && (wrong == 0));
}

/* As in UCX: the send is over, and has not failed */
Test(user_am, data_that_nobody_wants)
{
    set_handler();
    say(0, LARGE, UCP_AM_SEND_FLAG_RNDV);
    cr_assert(talk_run(100));
    cr_expect((told_count == 1) && talk_sends[0].done && (talk_sends[0].status == UCS_OK));
    cr_expect(talk_counters(1)->chunks_verified == 0);
}

/* --------------------------------------------------------- data, kept */

Test(user_am, kept_data_stay_until_they_are_released)
{
    char wanted[1000];
    unsigned i;

    set_handler();
    answer = keep;
    for (i = 0; i < 50; ++i) {
        say(i, 1000, 0);
    }
    cr_assert(talk_run(100));
    expect_told(50);
    for (i = 50; i-- > 0;) {
        talk_fill(wanted, sizeof(wanted), i);
        cr_expect(memcmp(told[i].data, wanted, sizeof(wanted)) == 0, "message %u has changed", i);
        uci_worker_enter(net_nodes[1].worker);
        uci_user_am_release(net_nodes[1].worker, told[i].data);
        uci_worker_leave(net_nodes[1].worker);
    }
}

static ucs_status_t copy_out(void *data, size_t length, const ucp_am_recv_param_t *param)
{
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO};
    size_t copied           = 0;

    how.recv_info.length = &copied;
    wrong += uci_user_am_recv_data(net_nodes[1].worker, data, received, LARGE, &how) != NULL;
    wrong += (copied != length) || (memcmp(received, data, length) != 0);
    return UCS_INPROGRESS;
}

/* What is here can be received as well, and is UCI's again then, whatever the handler says */
Test(user_am, data_that_are_here_are_received)
{
    set_handler();
    answer = copy_out;
    say(0, 1000, 0);
    say(1, LARGE, UCP_AM_SEND_FLAG_EAGER);
    cr_assert(talk_run(100));
    expect_told(2);
    cr_expect(uci_list_is_empty(&net_nodes[1].worker->msgs.probed), "something is kept that nobody can release");
}

/* ----------------------------------------------------------- what goes wrong */

static void damage_once(net_message_t *message)
{
    if (message->frame && (message->length > sizeof(uci_frame_hdr_t)) &&
        uci_frame_is_user_am(talk_hdr(message)->kind)) {
        message->data[message->length - 1] ^= 1;
        net_sent = NULL;
    }
}

Test(user_am, damage_is_repaired_in_order)
{
    unsigned i;

    set_handler();
    net_sent = damage_once;
    for (i = 0; i < 10; ++i) {
        say(i, 100, 0);
    }
    cr_assert(talk_run(100));
    expect_told(10);
    cr_expect(talk_counters(1)->repaired_chunks == 1);
}

Test(user_am, lost_frames_come_again)
{
    set_handler();
    say(0, 100, 0);
    say(1, LARGE, UCP_AM_SEND_FLAG_EAGER);
    say(2, 100, 0);
    talk_lose_frame(1, 1); /* the header of the large one */
    cr_assert(talk_run(100));
    expect_told(3);
}

/* UCX_RNDV_THRESH: from so many bytes on, header and data together, the handler gets a descriptor */
Test(user_am, a_threshold_that_is_set)
{
    static const size_t lengths[] = {0, 10, 95, 96, 97, 5000, LARGE};
    unsigned i;

    set_handler();
    net_nodes[0].context.buffered_max = 100;
    net_nodes[0].context.rndv_is_set  = true;
    for (i = 0; i < uci_array_size(lengths); ++i) {
        say(i, lengths[i], 0);
    }
    say(i, 5000, UCP_AM_SEND_FLAG_EAGER);
    cr_assert(talk_run(100));
    expect_told(uci_array_size(lengths) + 1);
    for (i = 0; i < told_count; ++i) {
        cr_expect(told[i].attr == (((i < 3) || (i == uci_array_size(lengths))) ? UCP_AM_RECV_ATTR_FLAG_DATA
                                                                               : UCP_AM_RECV_ATTR_FLAG_RNDV),
                  "%zu bytes: attributes 0x%lx", told[i].length, (unsigned long)told[i].attr);
    }
}

/* As in UCX: what is to be answered, or fetched, is of no use to who has closed. What is whole is handed out */
Test(user_am, too_late)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    set_handler();
    say(0, 10, UCP_AM_SEND_FLAG_EAGER);
    cr_assert(talk_run(100));
    expect_told(1);
    talk_keep(uci_ep_close(net_nodes[1].ep, &param));
    say(1, 10, UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER);
    say(2, LARGE, UCP_AM_SEND_FLAG_RNDV);
    say(1, 20, UCP_AM_SEND_FLAG_EAGER);
    cr_assert(talk_run(1000));
    expect_told(2);
    cr_expect(told[1].length == 20);
    cr_expect(talk_sends[talk_sends_count - 2].status == UCS_ERR_CANCELED);
}

Test(user_am, without_a_handler_it_is_dropped)
{
    say(0, 100, 0);
    say(1, LARGE, UCP_AM_SEND_FLAG_RNDV);
    cr_assert(talk_run(100));
    cr_expect((told_count == 0) && (talk_counters(1)->user_am_received == 0));
}

Test(user_am, a_peer_that_goes_leaves_nothing)
{
    set_handler();
    say(0, LARGE, UCP_AM_SEND_FLAG_EAGER);
    say(1, 8, 0);
    talk_turns(1, TALK_MS);
    cr_expect(told_count == 0); /* and is given back when the worker goes: ASan */
}

/* ------------------------------------------------------------------- lies */

static uint64_t refused(void)
{
    return talk_counters(1)->refused_messages;
}

/* A frame of node 0's, which says @a what */
static void tell(unsigned kind, const uci_user_am_what_t *what, size_t length)
{
    uci_worker_t *worker = net_nodes[0].worker;
    uci_frame_t *frame;
    ucp_tag_t tag;

    uci_worker_enter(worker);
    frame = uci_link_frame_get(net_nodes[0].ep->peer, length);
    memset(uci_frame_payload(frame), 0, length);
    memcpy(&tag, what, sizeof(tag));
    (void)uci_link_send(net_nodes[0].ep, frame,
                        uci_frame_what(UCI_FRAME_USER_AM | kind, UCI_DIGEST_XXH3, (uint32_t)length), tag,
                        uci_digest_table[UCI_DIGEST_XXH3].digest(uci_frame_payload(frame), length));
    uci_worker_leave(worker);
    talk_turns(3, TALK_MS);
}

Test(user_am, what_can_t_be_is_refused)
{
    static const struct {
        unsigned kind;
        uci_user_am_what_t what;
        size_t length;
    } lies[] = {{1, {.id = ID, .header_length = 17}, 16},
                {1, {.id = ID, .header_length = 16, .pad = 1}, 16},
                {1, {.id = ID, .pad = UCI_USER_AM_ALIGN}, 16},
                {1, {.id = ID, .flags = UCI_USER_AM_FLAGS + 1}, 16},
                {1, {.id = ID, .name = 1}, 16},
                {1, {.id = ID, .header_length = 8, .flags = UCI_USER_AM_RNDV}, 16},
                {2, {.id = ID}, 16},
                {3, {.id = ID}, sizeof(uci_rndv_desc_t) + 1},
                {3, {.id = ID}, 8},
                {4, {.id = ID}, 16}};
    unsigned i;

    set_handler();
    for (i = 0; i < uci_array_size(lies); ++i) {
        tell(lies[i].kind, &lies[i].what, lies[i].length);
        cr_expect(refused() == 1, "lie %u: %lu were refused", i, (unsigned long)refused());
        cr_expect(told_count == 0, "lie %u is handed out", i);
        tear_down();
        talk_sends_count = 0;
        set_up();
        set_handler();
    }
}

/* The descriptor of no header; one that its header has been told twice for */
Test(user_am, a_descriptor_belongs_to_its_header)
{
    uci_user_am_what_t header = {.id = ID, .header_length = 8, .flags = UCI_USER_AM_RNDV};
    uci_user_am_what_t none   = {.id = ID};

    set_handler();
    tell(3, &none, sizeof(uci_rndv_desc_t));
    cr_expect((refused() == 1) && (told_count == 0));
    tell(1, &header, 8);
    tell(1, &header, 8);
    cr_expect(told_count == 0);
    answer = keep;
    say(0, LARGE, UCP_AM_SEND_FLAG_RNDV); /* in the place of both */
    talk_turns(20, TALK_MS);
    cr_expect((told_count == 1) && (told[0].header_length == sizeof(unsigned)));
}

/* GONE can say anything of what has been lost */
Test(user_am, what_is_lost_is_not_handed_out)
{
    uci_user_am_what_t what = {.id = ID, .header_length = 1000};
    uci_frame_hdr_t hdr     = {.kind = UCI_FRAME_EAGER, .digest = UCI_DIGEST_XXH3, .length = 0};
    uci_peer_t *peer        = talk_peer(1, 0);

    set_handler();
    memcpy(&hdr.tag, &what, sizeof(what));
    uci_worker_enter(net_nodes[1].worker);
    uci_user_am_lost(peer, &hdr, "", 0, UCS_OK);
    uci_user_am_lost(peer, &hdr, "", 0, UCS_ERR_IO_ERROR);
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(5, TALK_MS);
    cr_expect(told_count == 0);
}

/* Not all of chunk 3 comes */
static void shorten_a_chunk(net_message_t *message)
{
    if (talk_is_chunk(message, 3)) {
        message->length /= 2;
    }
}

static void lose_bytes(void (*lose)(net_message_t *message), uint32_t flags)
{
    uci_settings.on_error = UCI_ON_ERROR_LOG;
    net_sent              = lose;
    set_handler();
    say(0, LARGE, flags);
    talk_turns(20, TALK_MS);
    if (talk_recv_op(1) != NULL) { /* what is damaged has been given up */
        talk_give_up(1);
    }
    talk_turns(5, TALK_MS);
    cr_assert(talk_counters(1)->unrepaired_chunks == 1);
}

static ucs_status_t received_with = UCS_INPROGRESS;

static void on_lost_data(void *request, ucs_status_t status, size_t length, void *user_data)
{
    received_with = status;
}

static ucs_status_t receive_lost(void *desc, size_t length, const ucp_am_recv_param_t *param)
{
    ucp_request_param_t recv = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = on_lost_data};

    talk_keep(uci_user_am_recv_data(net_nodes[1].worker, desc, received, LARGE, &recv));
    return UCS_OK;
}

/* UCI_ON_ERROR=log is about bytes that came: of what never did nobody is given what was in this memory before */
Test(user_am, missing_bytes_are_not_handed_out)
{
    lose_bytes(talk_lose_chunk, UCP_AM_SEND_FLAG_EAGER);
    cr_expect(told_count == 0);
}

Test(user_am, missing_bytes_are_not_received)
{
    answer = receive_lost;
    lose_bytes(talk_lose_chunk, UCP_AM_SEND_FLAG_RNDV);
    cr_expect((told_count == 1) && (received_with == UCS_ERR_IO_ERROR), "status %d", received_with);
}

static ucs_status_t look_at_chunk(void *data, size_t length, const ucp_am_recv_param_t *param)
{
    static const char zeros[4096];

    cr_expect(memcmp((char *)data + ((size_t)3 * sizeof(zeros)), zeros, sizeof(zeros)) == 0);
    return UCS_OK;
}

Test(user_am, what_was_damaged_and_never_written_is_blank)
{
    mallopt(M_PERTURB, 0x5a);
    net_no_rdma = true; /* else it comes by get */
    answer      = look_at_chunk;
    lose_bytes(shorten_a_chunk, UCP_AM_SEND_FLAG_EAGER);
    cr_expect(told_count == 1);
}

/* UCI_ON_ERROR=log: as it came */
Test(user_am, what_is_lost_goes_on_as_it_came)
{
    uci_user_am_what_t what = {.id = ID, .header_length = 4, .pad = 4};
    uci_frame_hdr_t hdr     = {.kind = UCI_FRAME_EAGER, .digest = UCI_DIGEST_XXH3, .length = 16};
    char payload[16]        = {0};

    set_handler();
    memcpy(&hdr.tag, &what, sizeof(what));
    uci_worker_enter(net_nodes[1].worker);
    uci_user_am_lost(talk_peer(1, 0), &hdr, payload, sizeof(payload), UCS_OK);
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(5, TALK_MS);
    cr_expect((told_count == 1) && (told[0].length == 8) && (told[0].header_length == 4));
}

/* ------------------------------------------------------------ what is counted */

static void enter_other(void *request, ucs_status_t status, void *user_data)
{
    uci_worker_enter(net_nodes[1].worker);
    uci_worker_leave(net_nodes[1].worker);
}

/* What a worker does after a callback is its own again */
Test(user_am, a_callback_that_enters_another_worker)
{
    uci_worker_t *worker      = net_nodes[0].worker;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = enter_other};
    uci_request_t *req        = uci_request_get(worker, &param);

    req->flags &= ~(uint32_t)UCI_REQUEST_POSTING;
    uci_worker_enter(worker);
    uci_request_complete(req, UCS_OK);
    cr_assert(worker->stats.counters != net_nodes[1].worker->stats.counters);
    cr_expect(uci_request_deliver(worker) == 1);
    cr_expect(uci_stats_here == worker->stats.counters, "it counts for the other one");
    uci_worker_leave(worker);
    uci_request_free(req);
}

static ucs_status_t enter_sender(void *data, size_t length, const ucp_am_recv_param_t *param)
{
    wrong += (uci_stats_here != net_nodes[1].worker->stats.counters);
    uci_worker_enter(net_nodes[0].worker);
    uci_worker_leave(net_nodes[0].worker);
    return UCS_OK;
}

/* Nor is one that comes behind it the other's */
Test(user_am, a_handler_that_enters_another_worker)
{
    unsigned number;

    set_handler();
    answer = enter_sender;
    for (number = 0; number < 5; ++number) {
        say(number, 100, 0);
    }
    talk_turns(10, TALK_MS);
    cr_expect(told_count == 5);
    cr_expect(wrong == 0, "%u count for the other worker", wrong);
}
