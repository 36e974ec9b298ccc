/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocol.h"

#include <stdio.h>

#include "base/am_handler.h"
#include "transfer/direct.h"
#include "draw.h"
#include "message/recv.h"
#include "message/send.h"

/* 0: not to be told; then active messages; then frames */
enum { TYPE_FRAME = UCI_AM_LAST, TYPE_LAST = TYPE_FRAME + 3 };

_Static_assert(TYPE_LAST <= PROTOCOL_TYPES, "types");

#define TYPE_NAME(_name) [UCI_AM_##_name] = #_name,

static const char *const type_names[PROTOCOL_TYPES] = {[0]              = "?",
                                                       [TYPE_FRAME]     = "eager frame",
                                                       [TYPE_FRAME + 1] = "sync frame",
                                                       [TYPE_FRAME + 2] = "descriptor",
                                                       UCI_AM_TYPES(TYPE_NAME)};

static bool read_hdr(const fake_message_t *message, uci_am_hdr_t *hdr_p)
{
    if (!message->am || (message->id != UCI_AM_ID) || (message->header_length < sizeof(*hdr_p))) {
        return false;
    }
    memcpy(hdr_p, message->header, sizeof(*hdr_p));
    return true;
}

static bool read_frame(const fake_message_t *message, uci_frame_hdr_t *hdr_p)
{
    if (!message->am || (message->id != UCI_FRAME_AM_ID) || (message->length < sizeof(*hdr_p))) {
        return false;
    }
    memcpy(hdr_p, message->data, sizeof(*hdr_p));
    return true;
}

unsigned protocol_type(const fake_message_t *message)
{
    uci_frame_hdr_t frame;
    uci_am_hdr_t hdr;

    if (read_hdr(message, &hdr)) {
        return (hdr.type < UCI_AM_LAST) ? hdr.type : 0;
    }
    if (read_frame(message, &frame) && (frame.kind >= UCI_FRAME_EAGER) && (frame.kind <= UCI_FRAME_RNDV)) {
        return TYPE_FRAME + frame.kind - UCI_FRAME_EAGER;
    }
    return 0;
}

const char *protocol_type_name(unsigned type)
{
    return (type_names[type] != NULL) ? type_names[type] : "?";
}

uint64_t protocol_key(const fake_message_t *message)
{
    uint64_t way     = (uint64_t)message->from * FAKE_NODES + message->to;
    unsigned type    = protocol_type(message);
    uint64_t subject = 0;
    uci_frame_hdr_t frame;
    uci_am_hdr_t hdr;

    if (read_hdr(message, &hdr)) {
        subject = ((uint64_t)hdr.seq << 32) | hdr.index;
    } else if (read_frame(message, &frame)) {
        subject = frame.seq;
    } else if (message->am) {
        subject = message->header_length + message->length; /* a record: what it says again is as long as before */
    }
    return draw_mix(draw_mix(way, type), subject);
}

void protocol_describe(const fake_message_t *message, char *text, size_t size)
{
    unsigned type = protocol_type(message);
    uci_frame_hdr_t frame;
    uci_am_hdr_t hdr;

    if (read_hdr(message, &hdr)) {
        snprintf(text, size, "%s seq %u op %u index %u flags 0x%x value 0x%lx, %u bytes%s", protocol_type_name(type),
                 hdr.seq, hdr.op, hdr.index, hdr.flags, (unsigned long)hdr.value, hdr.length,
                 message->rndv ? " to fetch" : "");
    } else if (read_frame(message, &frame)) {
        snprintf(text, size, "%s seq %u ack %u, tag 0x%lx, %u bytes", protocol_type_name(type), frame.seq, frame.ack,
                 (unsigned long)frame.tag, frame.length);
    } else {
        snprintf(text, size, "? %zu and %zu bytes", message->header_length, message->length);
    }
}

/* ------------------------------------------------------------------- states */

enum {
    STATE_NONE,
    STATE_SEND,
    STATE_RECV_CTS = STATE_SEND + UCI_SEND_DONE + 1, /* nothing has come */
    STATE_RECV_COMING,                               /* and nothing is wrong */
    STATE_RECV_BAD,                                  /* some has to be repaired */
    STATE_RECV_FETCHING,                             /* a get, or segments */
    STATE_RECV_AWAITING,                             /* answers to a REPAIR */
    STATE_RECV_DESCENDING,
    STATE_RECV_DIRECT,
    STATE_LINK, /* of what is about no operation: by what is missing, then by carrier of the other direction */
    STATE_LEAVING = STATE_LINK + 9,
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
        [STATE_RECV_CTS]                  = "recv cts",
        [STATE_RECV_COMING]               = "recv coming",
        [STATE_RECV_BAD]                  = "recv bad",
        [STATE_RECV_FETCHING]             = "recv fetching",
        [STATE_RECV_AWAITING]             = "recv awaiting",
        [STATE_RECV_DESCENDING]           = "recv descending",
        [STATE_RECV_DIRECT]               = "recv direct",
        [STATE_LINK]                      = "link, am",
        [STATE_LINK + 1]                  = "link, box",
        [STATE_LINK + 2]                  = "link, box full",
        [STATE_LINK + 3]                  = "link held, am",
        [STATE_LINK + 4]                  = "link held, box",
        [STATE_LINK + 5]                  = "link held, full",
        [STATE_LINK + 6]                  = "link gap, am",
        [STATE_LINK + 7]                  = "link gap, box",
        [STATE_LINK + 8]                  = "link gap, full",
        [STATE_LEAVING]                   = "peer leaving",
        [STATE_CLOSED]                    = "closed here",
};

static unsigned recv_state(const uci_recv_op_t *op)
{
    if (op->repair.descending) {
        return STATE_RECV_DESCENDING;
    }
    if (op->repair.awaiting > 0) {
        return STATE_RECV_AWAITING;
    }
    if (op->way.gets > 0) {
        return STATE_RECV_FETCHING;
    }
    if (op->chunk.bad > 0) {
        return STATE_RECV_BAD;
    }
    if (op->way.ops == &uci_direct_path) {
        return STATE_RECV_DIRECT;
    }
    return (op->way.arrived > 0) ? STATE_RECV_COMING : STATE_RECV_CTS;
}

static unsigned op_state(const uci_worker_t *worker, uint64_t uid, uint32_t seq, bool *found_p)
{
    *found_p = true;
    uci_list_for_each(send_op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((send_op->peer->uid == uid) && (send_op->frame != NULL) && ((uint32_t)send_op->frame->seq == seq)) {
            return STATE_SEND + (unsigned)send_op->state;
        }
    }
    uci_list_for_each(recv_op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if ((recv_op->peer->uid == uid) && ((uint32_t)recv_op->seq == seq)) {
            return recv_state(recv_op);
        }
    }
    *found_p = false;
    return STATE_NONE;
}

static unsigned link_state(const uci_peer_t *peer)
{
    unsigned missing = !uci_seq_list_is_empty(&peer->rx.gaps) ? 2 : !uci_seq_list_is_empty(&peer->rx.held) ? 1 : 0;
    unsigned carrier = !uci_list_is_empty(&peer->log.waiting_link) ? 2 : peer->box.used ? 1 : 0;

    return STATE_LINK + 3 * missing + carrier;
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
    return uci_conversation_is_closed(&peer->conversation)    ? STATE_CLOSED
           : uci_conversation_is_leaving(&peer->conversation) ? STATE_LEAVING
                                                              : link_state(peer);
}

const char *protocol_state_name(unsigned state)
{
    return (state_names[state] != NULL) ? state_names[state] : "?";
}
