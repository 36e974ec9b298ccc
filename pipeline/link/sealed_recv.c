/* SPDX-License-Identifier: BSD-3-Clause */
#include "sealed_recv.h"

#include "blame.h"
#include "control.h"
#include "link_recv.h"
#include "base/mark.h"
#include "base/peer_table.h"
#include "base/wire_check.h"
#include "base/worker_lock.h"

/* The record of a HELLO: just the header */
#define UCI_SEALED_HELLO_LENGTH (sizeof(uci_am_hdr_t) + UCI_SEALED_OVERHEAD)

/* Something was rejected. What it was can't be known: all that may be missing is asked for. One that has been here before damages no header, but
 * may have come in the place of another, of which nobody would know otherwise */
static void uci_sealed_drop(uci_worker_t *worker, uci_peer_t *peer, uint64_t uid, uci_status_t status, const char *why)
{
    char unknown[64];

    snprintf(unknown, sizeof(unknown), (uid != 0) ? "an unknown worker (uid 0x%lx)" : "an unknown worker",
             (unsigned long)uid);
    uci_sealed_reject((peer != NULL) ? uci_peer_name(peer) : unknown, why);
    if (status != UCI_ERR_NO_ELEM) {
        uci_link_header_damaged(worker, peer, "a record");
    }
    uci_blame_anything(worker, peer);
    uci_control_ask_soon(worker);
}

/* @return who sent it; NULL: it is rejected, and done with */
static uci_peer_t *uci_sealed_take_in(uci_worker_t *worker, const void *record, size_t length, uci_sealed_in_t *in_p)
{
    uci_seal_hdr_t hdr = {0};
    uci_peer_t *peer;
    uci_status_t status;

    if (uci_likely(length >= sizeof(hdr))) {
        memcpy(&hdr, record, sizeof(hdr));
    }
    peer = uci_worker_peer_find(worker, hdr.uid);
    if ((peer == NULL) || (peer->pair == NULL)) {
        uci_sealed_drop(worker, NULL, hdr.uid, UCI_ERR_CORRUPT, "it is of nobody that we know");
        return NULL;
    }
    status = uci_sealed_open(worker, peer->pair, uci_peer_may_share_memory(peer), record, length, in_p);
    if (uci_unlikely(status != UCI_OK)) {
        uci_sealed_drop(worker, peer, hdr.uid, status, uci_sealed_why(status));
        return NULL;
    }
    return peer;
}

/* Who has sealed it is certain; it must not say that it is another one */
static bool uci_sealed_is_of(const uci_peer_t *peer, const uci_sealed_in_t *in, size_t hdr_length, size_t uid_offset)
{
    uint64_t uid;

    if (in->length < hdr_length) {
        return false;
    }
    memcpy(&uid, in->body + uid_offset, sizeof(uid));
    return uid == peer->uid;
}

static bool uci_sealed_is_frame(const uci_peer_t *peer, const uci_sealed_in_t *in)
{
    return (in->kind == UCI_SEALED_FRAME) &&
           uci_sealed_is_of(peer, in, sizeof(uci_frame_hdr_t), offsetof(uci_frame_hdr_t, mark));
}

static bool uci_sealed_is_message(const uci_peer_t *peer, const uci_sealed_in_t *in, uci_sealed_kind_t kind)
{
    return (in->kind == kind) && uci_sealed_is_of(peer, in, sizeof(uci_am_hdr_t), offsetof(uci_am_hdr_t, uid));
}

static void uci_sealed_refuse(const uci_peer_t *peer)
{
    uci_wire_refuse(peer, "a record", "that it brings what no record of this kind does");
}

static void uci_sealed_recv_record(uci_worker_t *worker, const void *record, size_t length)
{
    const size_t hdr_length = sizeof(uci_am_hdr_t);
    uci_sealed_in_t in;
    uci_peer_t *peer;

    peer = uci_sealed_take_in(worker, record, length, &in);
    if (peer == NULL) {
        return;
    }
    uci_worker_peer_found(worker, peer);
    if (uci_sealed_is_frame(peer, &in)) {
        uci_link_take_opened(worker, in.body, in.length);
    } else if (uci_sealed_is_message(peer, &in, UCI_SEALED_MESSAGE)) {
        uci_control_take(worker, in.body, hdr_length, in.body + hdr_length, in.length - hdr_length);
    } else {
        uci_sealed_refuse(peer);
    }
    uci_frame_put(&worker->frames, in.memory);
}

/* Bytes of the segment that is offered, which is one record for each chunk: its payload is their digests, and a counter */
static size_t uci_sealed_plain_length(const uci_peer_t *peer, const uci_sealed_in_t *in, size_t length)
{
    size_t words    = (in->length - sizeof(uci_am_hdr_t)) / sizeof(uint64_t);
    size_t overhead = uci_sealed_segment(peer, 0, (words > 0) ? words - 1 : 0);

    return (length > overhead) ? length - overhead : 0;
}

static ucs_status_t uci_sealed_recv_offer(uci_worker_t *worker, const void *record, size_t record_length, size_t length,
                                          void *desc)
{
    ucs_status_t status = UCS_OK;
    uci_sealed_in_t in;
    uci_peer_t *peer;

    peer = uci_sealed_take_in(worker, record, record_length, &in);
    if (peer == NULL) {
        return UCS_OK;
    }
    if (uci_sealed_is_message(peer, &in, UCI_SEALED_OFFER)) {
        status = uci_control_take_segment(worker, (const uci_am_hdr_t *)(const void *)in.body, in.length,
                                          uci_sealed_plain_length(peer, &in, length), desc);
    } else {
        uci_sealed_refuse(peer);
    }
    uci_frame_put(&worker->frames, in.memory);
    return status;
}

ucs_status_t uci_sealed_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;
    ucs_status_t status  = UCS_OK;

    uci_worker_enter(worker);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        status = uci_sealed_recv_offer(worker, header, header_length, length, data);
    } else {
        uci_sealed_recv_record(worker, data, length);
    }
    uci_worker_leave(worker);
    return status;
}

/* ---------------------------------------------------------------- HELLO */

/* The keys for who says HELLO: those that there are, or new ones. @return NULL: none */
static uci_seal_pair_t *uci_sealed_hello_pair(uci_worker_t *worker, const uci_peer_t *peer, const uci_mark_t *mark)
{
    uci_seal_pair_t *pair;

    if ((peer != NULL) && (peer->pair != NULL)) {
        return uci_peer_is_marked(peer, mark) ? peer->pair : NULL;
    }
    return (uci_seal_pair_create(worker->uid, worker->self.mark.random, uci_mark_uid(mark), mark->random, &pair) ==
            UCI_OK)
                   ? pair
                   : NULL;
}

/* It is authentic: who it is of is a peer from now on */
static void uci_sealed_welcome(uci_worker_t *worker, uci_seal_pair_t *pair, const uci_mark_t *mark, size_t length,
                               const uci_sealed_in_t *in)
{
    uci_peer_t *peer = uci_worker_peer_slow(worker, uci_mark_uid(mark));

    if (peer == NULL) {
        uci_seal_pair_destroy(pair);
        return;
    }
    uci_peer_set_pair(peer, pair);
    if (uci_sealed_is_message(peer, in, UCI_SEALED_HELLO) && (in->length == sizeof(uci_am_hdr_t)) &&
        (((const uci_am_hdr_t *)(const void *)in->body)->type == UCI_AM_HELLO)) {
        uci_control_take(worker, in->body, in->length, mark, length);
    } else {
        uci_sealed_refuse(peer);
    }
}

/* @a data: in memory of our own */
static void uci_sealed_take_hello(uci_worker_t *worker, const char *data, size_t length)
{
    const uci_mark_t *mark = (const uci_mark_t *)(const void *)data;
    uci_status_t status    = UCI_ERR_CORRUPT;
    uci_seal_pair_t *pair;
    uci_sealed_in_t in;
    uci_peer_t *peer;
    uint64_t uid;

    if (!uci_mark_is_authentic(mark, length)) {
        uci_sealed_drop(worker, NULL, 0, status, "a worker without the job's key says HELLO, or it was damaged");
        return;
    }
    if (uci_mark_check(mark) != UCS_OK) {
        return;
    }
    uid  = uci_mark_uid(mark);
    peer = uci_worker_peer_find(worker, uid);
    pair = uci_sealed_hello_pair(worker, peer, mark);
    if (pair != NULL) {
        status = uci_sealed_open(worker, pair, false, data + length, UCI_SEALED_HELLO_LENGTH, &in);
    }
    if (status != UCI_OK) {
        uci_sealed_drop(worker, peer, uid, status, uci_sealed_why(status));
        if ((peer == NULL) || (peer->pair != pair)) {
            uci_seal_pair_destroy(pair);
        }
        return;
    }
    uci_sealed_welcome(worker, pair, mark, length, &in);
    uci_frame_put(&worker->frames, in.memory);
}

ucs_status_t uci_sealed_recv_hello(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;
    uci_frame_t *memory;

    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) || (header_length != 0) ||
        (length <= sizeof(uci_mark_t) + UCI_SEALED_HELLO_LENGTH)) {
        return uci_sealed_recv_plain(arg, header, header_length, data, length, param);
    }
    uci_worker_enter(worker);
    memory = uci_frame_get(&worker->frames, length);
    if (memory != NULL) {
        memcpy(memory->wire, data, length);
        uci_sealed_take_hello(worker, memory->wire, length - UCI_SEALED_HELLO_LENGTH);
        uci_frame_put(&worker->frames, memory);
    }
    uci_worker_leave(worker);
    return UCS_OK;
}

ucs_status_t uci_sealed_recv_plain(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;

    uci_worker_enter(worker);
    uci_sealed_drop(worker, NULL, 0, UCI_ERR_CORRUPT, "it is not sealed");
    uci_worker_leave(worker);
    return UCS_OK;
}
