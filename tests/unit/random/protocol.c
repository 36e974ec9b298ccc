/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocol.h"

#include <stdio.h>

#include "draw.h"
#include "recv.h"
#include "send.h"

/* 0: not to be told; then active messages; then frames */
enum { TYPE_FRAME = UCI_AM_LAST, TYPE_LAST = TYPE_FRAME + 4 };

_Static_assert(TYPE_LAST <= PROTOCOL_TYPES, "types");

static const char *const type_names[PROTOCOL_TYPES] = {
        [0]              = "?",
        [UCI_AM_HELLO]   = "HELLO",
        [UCI_AM_ACK]     = "ACK",
        [UCI_AM_CTS]     = "CTS",
        [UCI_AM_DATA]    = "DATA",
        [UCI_AM_FIN]     = "FIN",
        [UCI_AM_REPAIR]  = "REPAIR",
        [UCI_AM_GRANT]   = "GRANT",
        [UCI_AM_GONE]    = "GONE",
        [UCI_AM_QUERY]   = "QUERY",
        [UCI_AM_TREE]    = "TREE",
        [UCI_AM_LEAVES]  = "LEAVES",
        [UCI_AM_FIND]    = "FIND",
        [UCI_AM_FOUND]   = "FOUND",
        [UCI_AM_LEAVE]   = "LEAVE",
        [UCI_AM_MISSING] = "MISSING",
        [UCI_AM_BYE]     = "BYE",
        [UCI_AM_POOL]    = "POOL",
        [UCI_AM_MAPPED]  = "MAPPED",
        [UCI_AM_SLOT]    = "SLOT",
        [UCI_AM_SEGMENT] = "SEGMENT",
        [UCI_AM_NODES]   = "NODES",
        [TYPE_FRAME]     = "eager frame",
        [TYPE_FRAME + 1] = "sync frame",
        [TYPE_FRAME + 2] = "descriptor",
        [TYPE_FRAME + 3] = "small frame",
};

static bool read_hdr(const fake_message_t *message, uci_am_hdr_t *hdr_p)
{
    if (!message->am || (message->id != UCI_AM_ID) || (message->header_length < sizeof(*hdr_p))) {
        return false;
    }
    memcpy(hdr_p, message->header, sizeof(*hdr_p));
    return true;
}

unsigned protocol_type(const fake_message_t *message)
{
    uci_am_hdr_t hdr;
    unsigned kind;

    if (read_hdr(message, &hdr)) {
        return (hdr.type < UCI_AM_LAST) ? hdr.type : 0;
    }
    if (message->am || (message->length < sizeof(uci_small_hdr_t))) {
        return 0;
    }
    kind = (uint8_t)message->data[offsetof(uci_frame_hdr_t, kind)];
    return ((kind >= UCI_FRAME_EAGER) && (kind <= UCI_FRAME_SMALL)) ? TYPE_FRAME + kind - UCI_FRAME_EAGER : 0;
}

const char *protocol_type_name(unsigned type)
{
    return (type_names[type] != NULL) ? type_names[type] : "?";
}

/* Numbers of a frame, of either form */
static uint32_t frame_seq(const fake_message_t *message)
{
    uint32_t seq = 0;

    if (message->length >= sizeof(uci_small_hdr_t)) {
        memcpy(&seq, message->data + offsetof(uci_frame_hdr_t, seq), sizeof(seq));
    }
    return seq;
}

uint64_t protocol_key(const fake_message_t *message)
{
    uint64_t way  = (uint64_t)message->from * FAKE_NODES + message->to;
    unsigned type = protocol_type(message);
    uci_am_hdr_t hdr;

    if (!read_hdr(message, &hdr)) {
        return draw_mix(draw_mix(way, type), frame_seq(message));
    }
    return draw_mix(draw_mix(way, type), ((uint64_t)hdr.seq << 32) | hdr.index);
}

void protocol_describe(const fake_message_t *message, char *text, size_t size)
{
    unsigned type = protocol_type(message);
    uci_am_hdr_t hdr;

    if (read_hdr(message, &hdr)) {
        snprintf(text, size, "%s seq %u op %u index %u flags 0x%x, %u bytes%s", protocol_type_name(type), hdr.seq,
                 hdr.op, hdr.index, hdr.flags, hdr.length, message->rndv ? " to fetch" : "");
    } else {
        snprintf(text, size, "%s seq %u, tag 0x%lx, %zu bytes", protocol_type_name(type), frame_seq(message),
                 (unsigned long)message->tag, message->length);
    }
}

/* ------------------------------------------------------------------- states */

enum {
    STATE_NONE,
    STATE_SEND,
    STATE_RECV_FRAME = STATE_SEND + UCI_SEND_DONE + 1,
    STATE_RECV_DESC,
    STATE_RECV_CTS,      /* nothing has come */
    STATE_RECV_COMING,   /* and nothing is wrong */
    STATE_RECV_BAD,      /* some has to be repaired */
    STATE_RECV_FETCHING, /* a get, or segments */
    STATE_RECV_AWAITING, /* answers to a REPAIR */
    STATE_RECV_DESCENDING,
    STATE_RECV_DIRECT,
    STATE_LEAVING,
    STATE_CLOSED,
    STATE_LAST
};

_Static_assert(STATE_LAST <= PROTOCOL_STATES, "states");

static const char *const state_names[PROTOCOL_STATES] = {
        [STATE_NONE]                      = "-",
        [STATE_SEND + UCI_SEND_DESCRIBED] = "send described",
        [STATE_SEND + UCI_SEND_QUEUED]    = "send queued",
        [STATE_SEND + UCI_SEND_DIRECT]    = "send direct",
        [STATE_SEND + UCI_SEND_MATCHED]   = "send matched",
        [STATE_SEND + UCI_SEND_OFFERED]   = "send offered",
        [STATE_SEND + UCI_SEND_BOUNCING]  = "send bouncing",
        [STATE_SEND + UCI_SEND_STREAMING] = "send streaming",
        [STATE_SEND + UCI_SEND_WAIT_FIN]  = "send wait fin",
        [STATE_SEND + UCI_SEND_DONE]      = "send done",
        [STATE_RECV_FRAME]                = "recv frame",
        [STATE_RECV_DESC]                 = "recv descriptor",
        [STATE_RECV_CTS]                  = "recv cts",
        [STATE_RECV_COMING]               = "recv coming",
        [STATE_RECV_BAD]                  = "recv bad",
        [STATE_RECV_FETCHING]             = "recv fetching",
        [STATE_RECV_AWAITING]             = "recv awaiting",
        [STATE_RECV_DESCENDING]           = "recv descending",
        [STATE_RECV_DIRECT]               = "recv direct",
        [STATE_LEAVING]                   = "peer leaving",
        [STATE_CLOSED]                    = "closed here",
};

static unsigned recv_state(const uci_recv_op_t *op)
{
    if (op->tree == NULL) {
        return (op->kind == UCI_FRAME_RNDV) ? STATE_RECV_DESC : STATE_RECV_FRAME;
    }
    if (op->descending) {
        return STATE_RECV_DESCENDING;
    }
    if (op->awaiting > 0) {
        return STATE_RECV_AWAITING;
    }
    if (op->gets > 0) {
        return STATE_RECV_FETCHING;
    }
    if (op->bad > 0) {
        return STATE_RECV_BAD;
    }
    if (op->direct) {
        return STATE_RECV_DIRECT;
    }
    return (op->arrived > 0) ? STATE_RECV_COMING : STATE_RECV_CTS;
}

static unsigned op_state(const uci_worker_t *worker, uint64_t uid, uint32_t seq, bool *found_p)
{
    *found_p = true;
    uci_list_for_each(send_op, &worker->send_ops, uci_send_op_t, all)
    {
        if ((send_op->peer->uid == uid) && (send_op->frame != NULL) && ((uint32_t)send_op->frame->seq == seq)) {
            return STATE_SEND + (unsigned)send_op->state;
        }
    }
    uci_list_for_each(recv_op, &worker->recv_ops, uci_recv_op_t, link)
    {
        if ((recv_op->peer->uid == uid) && ((uint32_t)recv_op->seq == seq)) {
            return recv_state(recv_op);
        }
    }
    *found_p = false;
    return STATE_NONE;
}

unsigned protocol_state(const fake_message_t *message)
{
    uci_worker_t *worker = fake_net.nodes[message->to].worker;
    uint64_t uid         = fake_net.nodes[message->from].uid;
    uci_am_hdr_t hdr;
    uci_peer_t *peer;
    unsigned state;
    bool found = false;

    if (worker == NULL) {
        return STATE_NONE;
    }
    if (read_hdr(message, &hdr)) {
        state = op_state(worker, uid, hdr.seq, &found);
        if (found) {
            return state;
        }
    }
    peer = uci_worker_peer_find(worker, uid);
    if (peer == NULL) {
        return STATE_NONE;
    }
    return peer->user_closed ? STATE_CLOSED : peer->leaving ? STATE_LEAVING : STATE_NONE;
}

const char *protocol_state_name(unsigned state)
{
    return (state_names[state] != NULL) ? state_names[state] : "?";
}
