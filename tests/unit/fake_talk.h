/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Over fake_net.h: messages whose content tells which they are, receives that remember what they were given, and hands on what is on
 * its way.
 */
#ifndef UCI_TESTS_UNIT_FAKE_TALK_H_
#define UCI_TESTS_UNIT_FAKE_TALK_H_

#include <criterion/criterion.h>

#include "fake_net.h"

#include "link/control.h"
#include "live/stats.h"
#include "tune/tuner.h"

#define TALK_MAX    4096u  /* messages, and receives, of one test */
#define TALK_LENGTH 40000u /* bytes that a receive has room for */
#define TALK_MS     1000000ul

typedef struct talk_recv {
    bool done;
    ucs_status_t status;
    ucp_tag_t tag;
    size_t length;
    size_t room;
    char *buffer;
} talk_recv_t;

typedef struct talk_send {
    bool done;
    ucs_status_t status;
    char *data;
} talk_send_t;

static talk_recv_t talk_recvs[TALK_MAX];
static talk_send_t talk_sends[TALK_MAX];
static unsigned talk_recvs_count, talk_sends_count;
static void *talk_requests[2 * TALK_MAX];
static unsigned talk_requests_count;

/* --------------------------------------------------------------- messages */

static inline void talk_fill(char *data, size_t length, ucp_tag_t tag)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = (char)((tag * 131) + (i * 7) + (i >> 8));
    }
}

static inline void talk_on_sent(void *request, ucs_status_t status, void *user_data)
{
    talk_send_t *send = user_data;

    cr_assert(!send->done, "completed twice");
    send->done   = true;
    send->status = status;
}

static inline void talk_on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                                    void *user_data)
{
    talk_recv_t *recv = user_data;

    cr_assert(!recv->done, "completed twice");
    recv->done   = true;
    recv->status = status;
    recv->tag    = info->sender_tag;
    recv->length = info->length;
}

static inline void *talk_keep(ucs_status_ptr_t request)
{
    cr_assert(!UCS_PTR_IS_ERR(request), "status %d", UCS_PTR_STATUS(request));
    if (UCS_PTR_IS_PTR(request)) {
        cr_assert(talk_requests_count < uci_array_size(talk_requests));
        talk_requests[talk_requests_count++] = request;
    }
    return request;
}

/* From a node to the one that its endpoint leads to. @return its number among the sends */
static inline unsigned talk_start_send(unsigned from, ucp_tag_t tag, size_t length, bool sync)
{
    unsigned number           = talk_sends_count++;
    talk_send_t *send         = &talk_sends[number];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = talk_on_sent,
                                 .user_data    = send};

    cr_assert((number < TALK_MAX) && (length <= TALK_LENGTH));
    send->data   = malloc(uci_max(length, 1ul));
    send->done   = false;
    send->status = UCS_OK;
    talk_fill(send->data, length, tag);
    uci_worker_enter(net_nodes[from].worker);
    send->done |= talk_keep(uci_send(net_nodes[from].ep, send->data, length, tag, &param, sync)) == NULL;
    uci_worker_leave(net_nodes[from].worker);
    return number;
}

static inline void talk_send(unsigned from, ucp_tag_t tag, size_t length)
{
    (void)talk_start_send(from, tag, length, false);
}

/* @return its number among the receives */
static inline unsigned talk_recv_into(unsigned node, ucp_tag_t tag, ucp_tag_t mask, size_t room)
{
    unsigned number           = talk_recvs_count++;
    talk_recv_t *recv         = &talk_recvs[number];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = talk_on_received,
                                 .user_data = recv};

    cr_assert(number < TALK_MAX);
    *recv = (talk_recv_t){.room = room, .buffer = malloc(uci_max(room, 1ul))};
    memset(recv->buffer, 0xee, room);
    uci_worker_enter(net_nodes[node].worker);
    talk_keep(uci_recv(net_nodes[node].worker, recv->buffer, room, tag, mask, &param));
    uci_worker_leave(net_nodes[node].worker);
    return number;
}

static inline unsigned talk_recv(unsigned node, ucp_tag_t tag, ucp_tag_t mask)
{
    return talk_recv_into(node, tag, mask, TALK_LENGTH);
}

/* It has brought this message, and nothing was written behind it */
static inline void talk_expect(unsigned number, ucp_tag_t tag, size_t length)
{
    const talk_recv_t *recv = &talk_recvs[number];
    char wanted[TALK_LENGTH];

    cr_assert(recv->done, "receive %u of message %lu is not done", number, (unsigned long)tag);
    cr_assert(recv->status == UCS_OK, "receive %u of message %lu: status %d", number, (unsigned long)tag, recv->status);
    cr_assert((recv->tag == tag) && (recv->length == length), "receive %u of message %lu has message %lu, %zu bytes",
              number, (unsigned long)tag, (unsigned long)recv->tag, recv->length);
    talk_fill(wanted, length, tag);
    cr_assert(memcmp(recv->buffer, wanted, length) == 0, "receive %u of message %lu: wrong bytes", number,
              (unsigned long)tag);
}

static inline void talk_expect_lost(unsigned number)
{
    const talk_recv_t *recv = &talk_recvs[number];

    cr_assert(recv->done, "receive %u is not done", number);
    cr_assert(recv->status == UCS_ERR_IO_ERROR, "receive %u: status %d", number, recv->status);
}

static inline bool talk_is_over(void)
{
    unsigned i;

    for (i = 0; i < talk_recvs_count; ++i) {
        if (!talk_recvs[i].done) {
            return false;
        }
    }
    for (i = 0; i < talk_sends_count; ++i) {
        if (!talk_sends[i].done) {
            return false;
        }
    }
    return net_is_idle();
}

/* ------------------------------------------------------------------- time */

static inline void talk_turn(unsigned nodes)
{
    unsigned number;

    for (number = 0; number < nodes; ++number) {
        if (net_nodes[number].worker != NULL) {
            net_turn(number);
        }
    }
}

/* So many turns of all, of so much time each */
static inline void talk_turns(unsigned turns, uint64_t time)
{
    while (turns-- > 0) {
        net_clock += time;
        talk_turn(NET_NODES);
    }
}

/* @return whether all that was begun is done */
static inline bool talk_run(unsigned turns)
{
    while (turns-- > 0) {
        talk_turns(1, net_is_idle() ? 1000 * TALK_MS : 2 * TALK_MS);
        if (talk_is_over()) {
            return true;
        }
    }
    return false;
}

/* ----------------------------------------------------- what is on its way */

/* Take out what is on its way to a node. @return how many there are; in @a messages at most @a max */
static inline unsigned talk_seize(unsigned node, net_message_t **messages, unsigned max)
{
    net_message_t *message = net_nodes[node].first;
    unsigned count         = 0;

    for (; message != NULL; message = message->next) {
        cr_assert(count < max);
        messages[count++] = message;
    }
    net_nodes[node].first = NULL;
    net_nodes[node].last  = &net_nodes[node].first;
    return count;
}

/* On their way to a node: the frame number @a index of those */
static inline net_message_t *talk_frame_to(unsigned node, unsigned index)
{
    net_message_t *message = net_nodes[node].first;

    while ((message != NULL) && (!message->frame || (index-- > 0))) {
        message = message->next;
    }
    cr_assert(message != NULL, "there is no such frame");
    return message;
}

static inline net_message_t *talk_copy(const net_message_t *message)
{
    net_message_t *copy = malloc(sizeof(*copy));

    cr_assert(!message->rndv);
    *copy         = *message;
    copy->data    = net_copy(message->data, message->length);
    copy->header  = net_copy(message->header, message->header_length);
    copy->request = NULL;
    return copy;
}

/* It gets lost; UCX has let go of it */
static inline void talk_lose(net_message_t *message)
{
    if (message->request != NULL) {
        message->cb(message->request, UCS_OK, message->user_data);
    }
    net_free(message);
}

/* What is on its way to a node, but for one message, which is lost */
static inline void talk_lose_frame(unsigned node, unsigned index)
{
    net_message_t *lost = talk_frame_to(node, index), *messages[TALK_MAX];
    unsigned i, count = talk_seize(node, messages, TALK_MAX);

    for (i = 0; i < count; ++i) {
        if (messages[i] == lost) {
            talk_lose(lost);
        } else {
            net_append(&net_nodes[node], messages[i]);
        }
    }
}

/* What is on its way to a node is lost */
static inline void talk_lose_all(unsigned node)
{
    net_message_t *messages[TALK_MAX];
    unsigned i, count = talk_seize(node, messages, TALK_MAX);

    for (i = 0; i < count; ++i) {
        talk_lose(messages[i]);
    }
}

static inline void talk_exchange(net_message_t *one, net_message_t *other)
{
    net_message_t before = *one;

    one->data     = other->data;
    one->length   = other->length;
    other->data   = before.data;
    other->length = before.length;
    cr_assert((one->header_length == other->header_length) && (one->frame == other->frame));
    if (!one->frame) {
        one->header   = other->header;
        other->header = before.header;
    }
}

static inline uci_frame_hdr_t *talk_hdr(net_message_t *message)
{
    cr_assert(message->frame && (message->length >= sizeof(uci_frame_hdr_t)));
    return (uci_frame_hdr_t *)(void *)message->data;
}

static inline const uci_am_hdr_t *talk_am_hdr(const net_message_t *message)
{
    cr_assert(!message->frame);
    return (const uci_am_hdr_t *)(const void *)message->header;
}

static inline bool talk_is_chunk(const net_message_t *message, unsigned index)
{
    return !message->frame && (talk_am_hdr(message)->type == UCI_AM_DATA) && (talk_am_hdr(message)->index == index);
}

/* For net_sent: chunk 3 never comes, whatever is asked for */
static inline void talk_lose_chunk(net_message_t *message)
{
    if (talk_is_chunk(message, 3)) {
        ((uci_am_hdr_t *)(void *)message->header)->check ^= 1;
    }
}

/* @return the oldest message in chunks that a node receives, or NULL */
static inline uci_recv_op_t *talk_recv_op(unsigned node)
{
    uci_list_t *ops = &net_nodes[node].worker->xfer.recv_ops;

    return uci_list_is_empty(ops) ? NULL : uci_container_of(ops->next, uci_recv_op_t, link);
}

/* It can't be repaired */
static inline void talk_give_up(unsigned node)
{
    uci_worker_enter(net_nodes[node].worker);
    uci_repair_failed(talk_recv_op(node), UCI_REASON_CLOSED);
    uci_worker_leave(net_nodes[node].worker);
}

/* Messages of this type on their way to a node */
static inline unsigned talk_count(unsigned node, uci_am_type_t type)
{
    const net_message_t *message = net_nodes[node].first;
    unsigned count               = 0;

    for (; message != NULL; message = message->next) {
        count += !message->frame && (talk_am_hdr(message)->type == (uint8_t)type);
    }
    return count;
}

static inline unsigned talk_count_frames(unsigned node)
{
    const net_message_t *message = net_nodes[node].first;
    unsigned count               = 0;

    for (; message != NULL; message = message->next) {
        count += message->frame;
    }
    return count;
}

/* ------------------------------------------------------------------ worlds */

static inline uci_peer_t *talk_peer(unsigned node, unsigned other)
{
    uci_peer_t *peer = uci_worker_peer_find(net_nodes[node].worker, net_nodes[other].worker->uid);

    cr_assert(peer != NULL);
    return peer;
}

static inline uci_stats_t *talk_counters(unsigned node)
{
    return net_nodes[node].worker->stats.counters;
}

/* Node 0 and those from 2 on have endpoints to node 1, which has one to node 0; all know each other */
static inline void talk_begin(unsigned nodes, uci_carrier_t carrier)
{
    unsigned number;

    net_read_settings();
    uci_settings.carrier = carrier;
    net_init();
    net_clock      = 1000000000000ul;
    net_transports = "posix/memory";
    uci_tuner_refresh();
    for (number = 0; number < nodes; ++number) {
        net_create(number);
    }
    for (number = 0; number < nodes; ++number) {
        net_open(number, (number == 1) ? 0 : 1);
    }
}

/* Before the workers that they are of go */
static inline void talk_give_back(void)
{
    while (talk_requests_count > 0) {
        uci_request_free(uci_request_from_user(talk_requests[--talk_requests_count]));
    }
}

static inline void talk_end(void)
{
    unsigned number, i;

    net_sent = NULL;
    net_busy = false;
    talk_turns(50, 20 * TALK_MS);
    for (number = 0; number < NET_NODES; ++number) {
        if (net_nodes[number].worker != NULL) {
            net_end_operations(net_nodes[number].worker);
        }
    }
    talk_give_back();
    for (number = 0; number < NET_NODES; ++number) {
        if (net_nodes[number].worker != NULL) {
            net_destroy(number);
        }
    }
    for (i = 0; i < talk_recvs_count; ++i) {
        free(talk_recvs[i].buffer);
    }
    for (i = 0; i < talk_sends_count; ++i) {
        free(talk_sends[i].data);
    }
    talk_recvs_count = talk_sends_count = 0;
    memset(&uci_stats, 0, sizeof(uci_stats));
}

#endif
