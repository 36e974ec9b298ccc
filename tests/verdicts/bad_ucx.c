/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A UCX with one bug: preloaded behind UCI, it stands between UCI and libucp, and between UCX and libc; everything is passed on to the
 * real one. Each bug has the symptom of a public report (run_cases.sh has the list). BAD_UCX names the bug:
 *
 *   region    what is sent by rendezvous, and what is read by gets, is BAD_UCX_SHIFT bytes further: memory of an old registration
 *   key       process_vm_readv() and gets read the buffer that is BAD_UCX_SHIFT bytes further, as with that one's key; what is sent is right
 *   kernel    process_vm_readv() brings what it has brought from there the first time: a copy through a stale registration
 *   zcopy     process_vm_readv() leaves zeros in the last page of what it reads
 *   hooks     what rendezvous and gets bring never reaches the receive buffer, which stays as it was: written to pages that are gone
 *   order     two fragments of what a rendezvous brings are exchanged
 *   length    an active message of more than 64 KiB comes 64 KiB short, as if that were all
 *   partial   the last 100 bytes of the first fragment of an active message keep what its buffer held before
 *   fifo      one cache line of each fifth small active message is that of the one before: read before it was written
 *   staged    the second half of what is sent by rendezvous is that of the transfer before: a staging buffer sent before it was filled
 *   unpack    preloaded before UCI: a generic datatype's unpack function leaves out the last 8 bytes of each second call
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum {
    LARGE       = 4096, /* bytes of a transfer that is hit, at least */
    FRAGMENT    = 8192,
    EDGE        = 100,
    LINE        = 64,
    LINE_AT     = 1024,
    LINE_EVERY  = 5,
    UNPACK_EDGE = 8,
    LOST        = 65536,
    PLACES      = 4096
};

/** What was at a place of another process when it was read first */
typedef struct place {
    pid_t pid;
    const void *base;
    size_t length;
    void *bytes;
} place_t;

/** A receive or get in progress: what its buffer held before, and whom to tell */
typedef struct transfer {
    char *buffer;
    size_t length;
    void *before;
    bool received;
    ucp_send_nbx_callback_t sent;
    ucp_am_recv_data_nbx_callback_t came;
    void *user_data;
} transfer_t;

typedef struct handler {
    ucp_am_recv_callback_t callback;
    void *arg;
} handler_t;

static struct {
    place_t places[PLACES];
    unsigned place_count;
    pthread_mutex_t lock;
    char line[LINE], edge[EDGE];
    unsigned frames, edges, unpacks;
    void *staged;
    size_t staged_length;
    ucp_generic_dt_ops_t ops;
} bad = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool bug_is(const char *name)
{
    const char *bug = getenv("BAD_UCX");

    return (bug != NULL) && (strcmp(bug, name) == 0);
}

static long shift_of(const char *name, size_t length)
{
    const char *shift = getenv("BAD_UCX_SHIFT");

    return (bug_is(name) && (shift != NULL) && (length >= LARGE)) ? atol(shift) : 0;
}

static void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "bad_ucx: no function %s\n", name);
        _exit(9);
    }
    return function;
}

#define NEXT(_name) \
    static __typeof__(_name) *next; \
    if (next == NULL) { \
        next = (__typeof__(_name) *)next_function(#_name); \
    }

#define EXPORT __attribute__((visibility("default")))

/* ------------------------------------------------------- between UCX and libc */

/** What was read from there first; now if it never was. @return NULL: nothing to tell of it. */
static const place_t *place_of(pid_t pid, const struct iovec *remote, const struct iovec *local)
{
    place_t *place;

    for (place = bad.places; place < bad.places + bad.place_count; ++place) {
        if ((place->pid == pid) && (place->base == remote->iov_base) && (place->length == remote->iov_len)) {
            return place;
        }
    }
    if (bad.place_count == PLACES) {
        return NULL;
    }
    *place = (place_t){pid, remote->iov_base, remote->iov_len, malloc(remote->iov_len)};
    if (place->bytes == NULL) {
        return NULL;
    }
    memcpy(place->bytes, local->iov_base, remote->iov_len);
    ++bad.place_count;
    return place;
}

static void make_stale(pid_t pid, const struct iovec *remote, const struct iovec *local)
{
    const place_t *place;

    pthread_mutex_lock(&bad.lock);
    place = place_of(pid, remote, local);
    if (place != NULL) {
        memcpy(local->iov_base, place->bytes, place->length);
    }
    pthread_mutex_unlock(&bad.lock);
}

EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
                                unsigned long remotes, unsigned long flags)
{
    struct iovec from = remote[0];
    ssize_t got;

    NEXT(process_vm_readv)
    if ((locals != 1) || (remotes != 1) || (from.iov_len < LARGE)) {
        return next(pid, local, locals, remote, remotes, flags);
    }
    from.iov_base = (char *)from.iov_base + shift_of("key", from.iov_len);
    got           = next(pid, local, locals, &from, 1, flags);
    if (got != (ssize_t)from.iov_len) {
        return got;
    }
    if (bug_is("kernel")) {
        make_stale(pid, remote, local);
    } else if (bug_is("zcopy")) {
        memset((char *)local->iov_base + got - LARGE, 0, LARGE);
    }
    return got;
}

/* ------------------------------------------- between UCI and UCX: rendezvous, gets */

static void exchange_fragments(char *buffer, size_t length)
{
    char one[FRAGMENT];

    if (length >= 3 * FRAGMENT) {
        memcpy(one, buffer + FRAGMENT, FRAGMENT);
        memcpy(buffer + FRAGMENT, buffer + 2 * FRAGMENT, FRAGMENT);
        memcpy(buffer + 2 * FRAGMENT, one, FRAGMENT);
    }
}

/** Bytes have come: what the bug makes of them. */
static void transfer_hit(transfer_t *transfer)
{
    if (bug_is("order") && transfer->received) {
        exchange_fragments(transfer->buffer, transfer->length);
    } else if (transfer->before != NULL) {
        memcpy(transfer->buffer, transfer->before, transfer->length);
    }
    free(transfer->before);
}

static void transfer_came(void *request, ucs_status_t status, size_t length, void *user_data)
{
    transfer_t *transfer = user_data;

    transfer_hit(transfer);
    transfer->came(request, status, length, transfer->user_data);
    free(transfer);
}

static void transfer_sent(void *request, ucs_status_t status, void *user_data)
{
    transfer_t *transfer = user_data;

    transfer_hit(transfer);
    transfer->sent(request, status, transfer->user_data);
    free(transfer);
}

static transfer_t *transfer_begin(void *buffer, size_t length, const ucp_request_param_t *param, bool received)
{
    transfer_t *transfer = calloc(1, sizeof(*transfer));

    if (transfer == NULL) {
        _exit(9);
    }
    transfer->buffer    = buffer;
    transfer->length    = length;
    transfer->received  = received;
    transfer->user_data = param->user_data;
    transfer->before    = bug_is("hooks") ? malloc(length) : NULL;
    if (transfer->before != NULL) {
        memcpy(transfer->before, buffer, length);
    }
    return transfer;
}

/** It is over within the call that began it, and no callback will come. */
static void transfer_end_at_once(transfer_t *transfer, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        transfer_hit(transfer);
        free(transfer);
    }
}

EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                             const ucp_request_param_t *param)
{
    ucp_request_param_t changed = *param;
    ucs_status_ptr_t request;
    transfer_t *transfer;

    NEXT(ucp_am_recv_data_nbx)
    if ((count < LARGE) || !(bug_is("order") || bug_is("hooks"))) {
        return next(worker, desc, buffer, count, param);
    }
    transfer           = transfer_begin(buffer, count, param, true);
    transfer->came     = param->cb.recv_am;
    changed.cb.recv_am = transfer_came;
    changed.user_data  = transfer;
    request            = next(worker, desc, buffer, count, &changed);
    transfer_end_at_once(transfer, request);
    return request;
}

EXPORT ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                                    const ucp_request_param_t *param)
{
    ucp_request_param_t changed = *param;
    ucs_status_ptr_t request;
    transfer_t *transfer;

    NEXT(ucp_get_nbx)
    remote_addr += (uint64_t)(shift_of("region", count) + shift_of("key", count));
    if ((count < LARGE) || !bug_is("hooks")) {
        return next(ep, buffer, count, remote_addr, rkey, param);
    }
    transfer          = transfer_begin(buffer, count, param, false);
    transfer->sent    = param->cb.send;
    changed.cb.send   = transfer_sent;
    changed.user_data = transfer;
    request           = next(ep, buffer, count, remote_addr, rkey, &changed);
    transfer_end_at_once(transfer, request);
    return request;
}

/** What is sent instead of @a buffer. Never freed: UCX may read it at any time, and the process is short. */
static const void *staged_copy(const void *buffer, size_t length)
{
    char *copy = malloc(length);

    if (copy == NULL) {
        _exit(9);
    }
    memcpy(copy, buffer, length);
    if (bad.staged_length == length) {
        memcpy(copy + length / 2, (char *)bad.staged + length / 2, length - length / 2);
    }
    free(bad.staged);
    bad.staged        = malloc(length);
    bad.staged_length = (bad.staged == NULL) ? 0 : length;
    memcpy(bad.staged, buffer, bad.staged_length);
    return copy;
}

EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                        const void *buffer, size_t count, const ucp_request_param_t *param)
{
    ucp_request_param_t changed = *param;

    NEXT(ucp_am_send_nbx)
    if (!(param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) || !(param->flags & UCP_AM_SEND_FLAG_RNDV) ||
        (count < LARGE)) {
        return next(ep, id, header, header_length, buffer, count, param);
    }
    if (bug_is("staged")) {
        buffer = staged_copy(buffer, count);
        changed.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMH; /* of the memory that it was copied from */
    }
    return next(ep, id, header, header_length, (const char *)buffer + shift_of("region", count), count, &changed);
}

/* -------------------------------------------- between UCI and UCX: active messages */

/** One line of each fifth: the line of the message before. */
static void hit_line(char *data, size_t length)
{
    char line[LINE];

    if (length < LINE_AT + LINE) {
        return;
    }
    memcpy(line, data + LINE_AT, LINE);
    if (++bad.frames % LINE_EVERY == 0) {
        memcpy(data + LINE_AT, bad.line, LINE);
    }
    memcpy(bad.line, line, LINE);
}

/** The edge of the first of its fragments: that of the message before, in every third. */
static void hit_edge(char *data, size_t length)
{
    char edge[EDGE];

    if (length < 2 * FRAGMENT) {
        return;
    }
    memcpy(edge, data + FRAGMENT - EDGE, EDGE);
    if (++bad.edges % 3 == 0) {
        memcpy(data + FRAGMENT - EDGE, bad.edge, EDGE);
    }
    memcpy(bad.edge, edge, EDGE);
}

static ucs_status_t handle(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    const handler_t *handler = arg;

    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        if (bug_is("length") && (length > LOST)) {
            length -= LOST;
        } else if (bug_is("fifo")) {
            hit_line(data, length);
        } else if (bug_is("partial")) {
            hit_edge(data, length);
        }
    }
    return handler->callback(handler->arg, header, header_length, data, length, param);
}

EXPORT ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
    ucp_am_handler_param_t changed = *param;
    handler_t *handler             = malloc(sizeof(*handler));

    NEXT(ucp_worker_set_am_recv_handler)
    if ((handler == NULL) || (param->cb == NULL)) {
        free(handler);
        return next(worker, param);
    }
    *handler    = (handler_t){param->cb, (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG) ? param->arg : NULL};
    changed.cb  = handle;
    changed.arg = handler;
    changed.field_mask |= UCP_AM_HANDLER_PARAM_FIELD_ARG;
    return next(worker, &changed); /* the worker keeps the handler as long as it lives */
}

/* ----------------------------------------------------- between the MPI and UCI */

static ucs_status_t unpack_without_edge(void *state, size_t offset, const void *src, size_t length)
{
    bool left_out = (length >= LARGE) && (++bad.unpacks % 2 == 0);

    return bad.ops.unpack(state, offset, src, left_out ? length - UNPACK_EDGE : length);
}

EXPORT ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p)
{
    ucp_generic_dt_ops_t changed = *ops;

    NEXT(ucp_dt_create_generic)
    if (!bug_is("unpack")) {
        return next(ops, context, datatype_p);
    }
    bad.ops        = *ops; /* an MPI has one set of them */
    changed.unpack = unpack_without_edge;
    return next(&changed, context, datatype_p);
}
