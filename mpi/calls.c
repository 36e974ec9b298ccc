/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "comms.h"
#include "kept.h"
#include "pending.h"
#include "places.h"
#include "threads.h"
#include "uci_calls.h"
#include "util/log.h"
#include "util/process.h"

bool uci_mpi_is_unbuffered;

static __thread const uci_mpi_call_t *uci_mpi_call_now; /* what this thread is in */

/* ------------------------------------------------------ time and bytes */

static void uci_mpi_calls_add(const uci_mpi_call_t *call, uint64_t now_ns)
{
    uci_calls_place_t *place;
    uint64_t time_ns = now_ns - uci_min(call->begun_ns, now_ns), longest;

    if (call->place == UCI_CALLS_NONE) {
        return;
    }
    place   = &uci_calls->places[call->place];
    longest = __atomic_load_n(&place->longest_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&place->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&place->time_ns, time_ns, __ATOMIC_RELAXED);
    while ((time_ns > longest) && !__atomic_compare_exchange_n(&place->longest_ns, &longest, time_ns, true,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void uci_mpi_calls_add_bytes(int place, uint64_t bytes)
{
    if (place != UCI_CALLS_NONE) {
        __atomic_fetch_add(&uci_calls->places[place].bytes, bytes, __ATOMIC_RELAXED);
    }
}

void uci_mpi_calls_add_sent(const uci_calls_sent_t *sent)
{
    const int peer = sent->peer;
    uint64_t index;

    if ((peer >= 0) && ((uint32_t)peer < uci_calls->head.peers)) {
        __atomic_fetch_add(&uci_calls->peers[peer].messages, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&uci_calls->peers[peer].bytes, sent->bytes, __ATOMIC_RELAXED);
    }
    index                   = __atomic_fetch_add(&uci_calls->head.sends, 1, __ATOMIC_RELAXED) % UCI_CALLS_SENDS;
    uci_calls->sends[index] = *sent;
}

bool uci_mpi_call_sends(const uci_mpi_call_t *call, uci_calls_sent_t *sent_p)
{
    if (call->collective || !call->send.is_there || (call->send.peer == MPI_PROC_NULL)) {
        return false;
    }
    *sent_p = (uci_calls_sent_t){.bytes = uci_mpi_bytes(call->send.count, call->send.type),
                                 .place = call->place,
                                 .peer  = uci_mpi_comms_peer(call->comm, call->send.peer),
                                 .tag   = call->send.tag,
                                 .comm  = call->comm_index};
    return true;
}

static void uci_mpi_calls_add_given(const uci_mpi_call_t *call)
{
    uci_calls_sent_t sent;

    if (uci_mpi_call_sends(call, &sent)) {
        uci_mpi_calls_add_bytes(call->place, sent.bytes);
        uci_mpi_calls_add_sent(&sent);
    } else {
        uci_mpi_calls_add_bytes(call->place, call->bytes);
    }
}

/* ---------------------------------------------------------------- calls */

void uci_mpi_call_enter(uci_mpi_call_t *call)
{
    if (call->manner == UCI_MPI_PROBES) {
        call->entered_ns = uci_calls_now();
    }
    call->comm_index = uci_mpi_comms_find(call->comm);
    call->place      = uci_mpi_places_find(call->name);
    call->number     = 0;
    if (call->collective && (call->comm_index != UCI_CALLS_NONE)) {
        call->number = __atomic_add_fetch(&uci_calls->comms[call->comm_index].collective, 1, __ATOMIC_RELAXED);
    }
    if (uci_calls->head.checks) {
        uci_mpi_pending_check(call);
    }
    if (call->manner != UCI_MPI_MAKES) {
        uci_mpi_calls_add_given(call);
    }
    call->begun_ns   = uci_calls_now();
    uci_mpi_call_now = call;
    uci_mpi_thread_enter(call);
}

void uci_mpi_call_leave(uci_mpi_call_t *call, int ret)
{
    const uint64_t now_ns = uci_calls_now();

    uci_mpi_calls_add(call, now_ns);
    uci_mpi_call_now = NULL;
    uci_mpi_thread_leave(now_ns, (call->manner != UCI_MPI_PROBES) || call->found);
    if (ret != MPI_SUCCESS) {
        uci_mpi_pending_error(call, ret);
    } else if ((call->manner == UCI_MPI_STARTS) || (call->manner == UCI_MPI_MAKES)) {
        uci_mpi_pending_add(call, *call->request);
    }
    uci_mpi_touched_release(&call->touched);
}

/* -------------------------------------------------------------- waiting */

static void uci_mpi_waiting_keep(uci_mpi_waiting_t *waiting, const MPI_Request *requests, const MPI_Fint *fortran)
{
    int i;

    waiting->now         = requests;
    waiting->now_fortran = fortran;
    waiting->requests    = waiting->few;
    if (waiting->count > (int)uci_array_size(waiting->few)) {
        waiting->requests = calloc((size_t)waiting->count, sizeof(*waiting->requests));
        if (waiting->requests == NULL) {
            waiting->requests = waiting->few;
            waiting->count    = 0; /* what becomes of them is not known, then */
        }
    }
    for (i = 0; i < waiting->count; ++i) {
        waiting->requests[i] = (requests != NULL) ? requests[i] : PMPI_Request_f2c(fortran[i]);
    }
}

void uci_mpi_waiting_enter(uci_mpi_waiting_t *waiting, const char *name, bool any, bool polls, int count,
                           const MPI_Request *requests, const MPI_Fint *fortran)
{
    uci_mpi_call_t *call = &waiting->call;

    *call          = (uci_mpi_call_t){.name       = name,
                                      .comm       = MPI_COMM_NULL,
                                      .comm_index = UCI_CALLS_NONE,
                                      .entered_ns = polls ? uci_calls_now() : 0};
    call->place    = uci_mpi_places_find(name);
    waiting->polls = polls;
    waiting->count = uci_max(count, 0);
    uci_mpi_waiting_keep(waiting, requests, fortran);
    call->begun_ns   = uci_calls_now();
    uci_mpi_call_now = call;
    waiting->is_news = uci_mpi_thread_waits(waiting, any);
}

static bool uci_mpi_waiting_is_over(const uci_mpi_waiting_t *waiting, int index)
{
    return ((waiting->now != NULL) ? waiting->now[index] : PMPI_Request_f2c(waiting->now_fortran[index])) ==
           MPI_REQUEST_NULL;
}

static void uci_mpi_waiting_end(const uci_mpi_waiting_t *waiting, int done, const int *indices, int base)
{
    int i, index;

    for (i = 0; i < waiting->count; ++i) {
        if ((waiting->requests[i] != MPI_REQUEST_NULL) && uci_mpi_waiting_is_over(waiting, i)) {
            uci_mpi_pending_end(waiting->requests[i], false);
        }
    }
    for (i = 0; i < done; ++i) {
        index = (indices != NULL) ? indices[i] - base : i;
        if ((index >= 0) && (index < waiting->count) && (waiting->requests[index] != MPI_REQUEST_NULL)) {
            uci_mpi_pending_end(waiting->requests[index], true);
        }
    }
}

void uci_mpi_waiting_leave(uci_mpi_waiting_t *waiting, int ret, int done, const int *indices, int base)
{
    const uint64_t now_ns = uci_calls_now();

    uci_mpi_calls_add(&waiting->call, now_ns);
    uci_mpi_call_now = NULL;
    if (ret != MPI_SUCCESS) {
        uci_mpi_pending_error(&waiting->call, ret);
        done = 0;
    }
    uci_mpi_waiting_end(waiting, done, indices, base);
    uci_mpi_thread_leave(now_ns, !waiting->polls || ((done > 0) && waiting->is_news));
    if (waiting->requests != waiting->few) {
        free(waiting->requests);
    }
}

void uci_mpi_waiting_leave_status(uci_mpi_waiting_t *waiting, int ret, bool done)
{
    if ((ret == MPI_SUCCESS) && done && (waiting->count > 0)) {
        uci_mpi_pending_end(waiting->requests[0], false);
    }
    uci_mpi_waiting_leave(waiting, ret, done, NULL, 0);
}

/* --------------------------------------------------- begin and end of MPI */

/* Errors that would end the program are noted first: then MPI ends it, as it would have */
static void uci_mpi_calls_on_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    const uci_mpi_call_t outside    = {.comm = *comm, .comm_index = UCI_CALLS_NONE, .place = UCI_CALLS_NONE};
    int length;

    uci_mpi_pending_error((uci_mpi_call_now != NULL) ? uci_mpi_call_now : &outside, *code);
    PMPI_Error_string(*code, text, &length);
    uci_error("MPI: %s; the job ends, as MPI_ERRORS_ARE_FATAL says", text);
    PMPI_Abort(*comm, *code);
}

void uci_mpi_calls_watch_errors(MPI_Comm comm)
{
    MPI_Errhandler handler;

    PMPI_Comm_get_errhandler(comm, &handler);
    if (handler == MPI_ERRORS_ARE_FATAL) {
        PMPI_Comm_create_errhandler(uci_mpi_calls_on_error, &handler);
        PMPI_Comm_set_errhandler(comm, handler);
        PMPI_Errhandler_free(&handler);
    }
}

/* What others complete and free in their callbacks is not left over */
static int uci_mpi_calls_on_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_pending_finalize();
    uci_mpi_kept_finalize();
    return MPI_SUCCESS;
}

void uci_mpi_calls_init(void)
{
    uci_calls_attach_func_t attach = (uci_calls_attach_func_t)uci_mpi_library_find(UCI_CALLS_ATTACH);
    const uci_calls_ops_t *ops     = (attach != NULL) ? attach(UCI_CALLS_VERSION) : NULL;
    char path[PATH_MAX];
    int rank, size;

    if (ops == NULL) {
        return;
    }
    uci_mpi_check_mpi();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (uci_process_expand(ops->file, path, sizeof(path)) != UCI_OK) {
        uci_error("calls of MPI are not watched: no name for a file is %s (UCI_CALLS)", ops->file);
        return;
    }
    uci_mpi_comms_init();
    uci_mpi_threads_init();
    if (!uci_calls_open(path, rank, size, ops->checks)) {
        return;
    }
    uci_mpi_is_unbuffered = ops->unbuffered;
    uci_mpi_comms_made(MPI_COMM_WORLD);
    (void)uci_mpi_comms_find(MPI_COMM_WORLD); /* whom ranks are of others must be known, whatever is called first */
    if (ops->checks) {
        uci_mpi_calls_watch_errors(MPI_COMM_WORLD);
        uci_mpi_calls_watch_errors(MPI_COMM_SELF);
    }
    uci_mpi_at_finalize(uci_mpi_calls_on_finalize);
}

void uci_mpi_calls_finalize(void)
{
    if (uci_mpi_watches()) {
        uci_calls->head.ended_ns = uci_calls_now();
    }
}
