/* SPDX-License-Identifier: BSD-3-Clause */
#include "sealed.h"

#include "util/log.h"
#include "util/process.h"
#include "live/stats.h"
#include "base/worker_lock.h"

/* Warnings of what is rejected: the first at once, then after 1 s, then after twice as long each time, up to a minute */
#define UCI_SEALED_WARN_NS     1000000000ul
#define UCI_SEALED_WARN_MAX_NS 60000000000ul

uint64_t uci_sealed_take(uci_peer_t *peer, unsigned count)
{
    uci_worker_t *worker = peer->worker;
    uint64_t first;

    if (uci_unlikely(peer->talk.records_left < count)) {
        if (worker->talk.sealed_pairs >> (64 - UCI_SEALED_PAIR_SHIFT) != 0) {
            uci_fatal("this process has no more numbers for its records: none may be used twice");
        }
        peer->talk.record_next  = worker->talk.sealed_pairs++ << UCI_SEALED_PAIR_SHIFT;
        peer->talk.records_left = 1ul << UCI_SEALED_PAIR_SHIFT;
    }
    first = peer->talk.record_next;
    peer->talk.record_next += count;
    peer->talk.records_left -= count;
    return first;
}

/* -------------------------------------------------------------- sending */

static void uci_sealed_free(uci_worker_t *worker, uci_frame_t *memory)
{
    uci_worker_enter(worker);
    uci_frame_put(&worker->frames, memory);
    uci_worker_leave(worker);
}

static void uci_sealed_sent(void *request, ucs_status_t status, void *user_data)
{
    uci_sealed_t sealed = *(const uci_sealed_t *)user_data;

    uci_sealed_free(sealed.worker, sealed.memory);
    sealed.cb(request, status, sealed.user_data);
}

static ucs_status_t uci_sealed_write(const uci_sealed_out_t *out, char *record)
{
    struct {
        uint64_t kind;
        char head[UCI_SEALED_HEAD_MAX];
    } front = {.kind = out->kind};

    if (uci_unlikely(out->peer->pair == NULL)) {
        uci_error("%s is not known yet, and nothing goes to it that is not sealed", uci_peer_name(out->peer));
        return UCS_ERR_NOT_CONNECTED;
    }
    if (out->head_length > 0) {
        memcpy(front.head, out->head, out->head_length);
    }
    UCI_STATS_INC(sealed_records);
    return (uci_seal_close(out->peer->pair, uci_sealed_take(out->peer, 1), &front,
                           sizeof(front.kind) + out->head_length, out->body, out->body_length, record) == UCI_OK)
                   ? UCS_OK
                   : UCS_ERR_IO_ERROR;
}

/* In memory of its own, with what goes before it. @return NULL (logged) */
static uci_sealed_t *uci_sealed_create(const uci_sealed_out_t *out, size_t length, ucs_status_t *status_p)
{
    uci_worker_t *worker = out->peer->worker;
    uci_frame_t *memory  = uci_frame_get(&worker->frames, sizeof(uci_sealed_t) + out->clear_length + length);
    uci_sealed_t *sealed;

    if (memory == NULL) {
        *status_p = UCS_ERR_NO_MEMORY;
        return NULL;
    }
    sealed         = (uci_sealed_t *)(void *)memory->wire;
    sealed->memory = memory;
    sealed->kind   = out->kind;
    sealed->worker = worker;
    if (out->clear_length > 0) {
        memcpy(sealed->bytes, out->clear, out->clear_length);
    }
    *status_p = uci_sealed_write(out, sealed->bytes + out->clear_length);
    if (*status_p != UCS_OK) {
        uci_frame_put(&worker->frames, memory);
        return NULL;
    }
    return sealed;
}

static ucs_status_ptr_t uci_sealed_post(ucp_ep_h ep, const uci_sealed_out_t *out, const uci_sealed_t *sealed,
                                        size_t length, const ucp_request_param_t *param)
{
    if (out->kind == UCI_SEALED_OFFER) {
        return uci_ucp.am_send_nbx(ep, UCI_SEALED_AM_ID, sealed->bytes, length, out->data, out->data_length, param);
    }
    return uci_ucp.am_send_nbx(ep, (out->kind == UCI_SEALED_HELLO) ? UCI_AM_ID : UCI_SEALED_AM_ID, NULL, 0,
                               sealed->bytes, out->clear_length + length, param);
}

ucs_status_ptr_t uci_sealed_send(ucp_ep_h ep, const uci_sealed_out_t *out, const ucp_request_param_t *param)
{
    size_t length                 = out->head_length + out->body_length + UCI_SEALED_OVERHEAD;
    ucp_request_param_t own_param = *param;
    ucs_status_ptr_t request;
    ucs_status_t status;
    uci_sealed_t *sealed;

    sealed = uci_sealed_create(out, length, &status);
    if (sealed == NULL) {
        return UCS_STATUS_PTR(status);
    }
    sealed->cb          = param->cb.send;
    sealed->user_data   = param->user_data;
    own_param.cb.send   = uci_sealed_sent;
    own_param.user_data = sealed;
    request             = uci_sealed_post(ep, out, sealed, length, &own_param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_sealed_free(out->peer->worker, sealed->memory);
    }
    return request;
}

/* ------------------------------------------------------------ receiving */

uci_status_t uci_sealed_open(uci_worker_t *worker, uci_seal_pair_t *pair, bool shared, const void *record,
                             size_t length, uci_sealed_in_t *in_p)
{
    uci_status_t status;
    uci_sealed_in_t in;

    if (length < UCI_SEALED_OVERHEAD) {
        return UCI_ERR_CORRUPT;
    }
    in.memory = uci_frame_get(&worker->frames, length);
    if (in.memory == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    in.length = length - UCI_SEALED_OVERHEAD;
    in.body   = in.memory->wire;
    if (shared) {
        record  = memcpy(in.memory->wire, record, length);
        in.body = in.memory->wire + UCI_SEALED_FRONT;
    }
    status = uci_seal_open(pair, record, length, &in.kind, sizeof(in.kind), in.body);
    if (status != UCI_OK) {
        uci_frame_put(&worker->frames, in.memory);
        return status;
    }
    *in_p = in;
    return UCI_OK;
}

const char *uci_sealed_why(uci_status_t status)
{
    return (status == UCI_ERR_NO_ELEM)     ? "it has come before, or far too late"
           : (status == UCI_ERR_NO_MEMORY) ? "there is no memory to open it"
                                           : "it is not authentic";
}

void uci_sealed_reject(const char *who, const char *why)
{
    static uint64_t rejected, next_time, interval = UCI_SEALED_WARN_NS;
    uint64_t count = __atomic_add_fetch(&rejected, 1, __ATOMIC_RELAXED);
    uint64_t due   = __atomic_load_n(&next_time, __ATOMIC_RELAXED);
    uint64_t now   = uci_process_time_ns();

    UCI_STATS_INC(sealed_rejected);
    if ((now < due) ||
        !__atomic_compare_exchange_n(&next_time, &due, now + interval, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return; /* or another thread says it */
    }
    interval = uci_min(2 * interval, UCI_SEALED_WARN_MAX_NS);
    uci_warn(
            "what came as a record of %s is rejected: %s (%lu so far in this process). It was damaged on its way, or somebody interferes",
            who, why, (unsigned long)count);
}

/* --------------------------------------------------------------- chunks */

bool uci_sealed_close_chunk(uci_peer_t *peer, uint64_t counter, char *record, uint32_t length)
{
    uint64_t kind = UCI_SEALED_CHUNK;

    UCI_STATS_INC(sealed_records);
    return uci_seal_close(peer->pair, counter, &kind, sizeof(kind), record + UCI_SEALED_FRONT, length, record) ==
           UCI_OK;
}

bool uci_sealed_open_chunk(uci_peer_t *peer, uint64_t counter, char *record, uint32_t length)
{
    uci_status_t status;
    uint64_t kind;

    status = uci_seal_open_at(peer->pair, counter, record, length + UCI_SEALED_OVERHEAD, &kind, sizeof(kind),
                              record + UCI_SEALED_FRONT);
    if ((status == UCI_OK) && (kind != UCI_SEALED_CHUNK)) {
        status = UCI_ERR_CORRUPT;
    }
    if (status != UCI_OK) {
        uci_sealed_reject(uci_peer_name(peer), uci_sealed_why(status));
    }
    return status == UCI_OK;
}
