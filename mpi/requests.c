/* SPDX-License-Identifier: BSD-3-Clause */
#include "requests.h"

#include <stdlib.h>

#include "handles.h"

typedef struct uci_mpi_request {
    uci_mpi_handle_t handle;
    uci_mpi_starts_t starts;
    uci_signature_t signature; /* with a reference of its type */
} uci_mpi_request_t;

static uci_mpi_handles_t uci_mpi_requests = {.lock = PTHREAD_MUTEX_INITIALIZER};
static unsigned uci_mpi_requests_count;

/* What the request that is being started carries: the table may change meanwhile */
static __thread uci_signature_t uci_mpi_started;

/* The lock is held */
static void uci_mpi_request_drop(uci_mpi_handle_t **link)
{
    uci_mpi_request_t *known = (uci_mpi_request_t *)*link;

    if (known != NULL) {
        uci_mpi_handles_take(link);
        uci_sigtype_release(known->signature.type);
        free(known);
        --uci_mpi_requests_count;
    }
}

void uci_mpi_requests_add(MPI_Request request, uci_mpi_starts_t starts, const char *call, uint64_t count,
                          MPI_Datatype datatype, MPI_Comm comm)
{
    uci_mpi_request_t *known;
    uci_mpi_handle_t **link;
    uci_signature_t signature;

    if (!uci_mpi_is_on() || (uci_mpi_sign(&signature, call, count, datatype, comm) == NULL)) {
        return;
    }
    known = malloc(sizeof(*known));
    if (known == NULL) {
        return; /* it is started without a signature */
    }
    uci_sigtype_hold(signature.type);
    *known = (uci_mpi_request_t){.starts = starts, .signature = signature};
    pthread_mutex_lock(&uci_mpi_requests.lock);
    link = uci_mpi_handles_find(&uci_mpi_requests, UCI_MPI_HANDLE(request));
    uci_mpi_request_drop(link); /* another one's handle was the same */
    uci_mpi_handles_put(link, &known->handle, UCI_MPI_HANDLE(request));
    ++uci_mpi_requests_count;
    pthread_mutex_unlock(&uci_mpi_requests.lock);
}

void uci_mpi_requests_start(MPI_Request request)
{
    uci_mpi_request_t *known;

    if (!uci_mpi_is_on()) {
        return;
    }
    pthread_mutex_lock(&uci_mpi_requests.lock);
    known = (uci_mpi_request_t *)*uci_mpi_handles_find(&uci_mpi_requests, UCI_MPI_HANDLE(request));
    if (known != NULL) {
        uci_mpi_started = known->signature;
        if (known->starts == UCI_MPI_STARTS_SEND) {
            uci_mpi_next->send = &uci_mpi_started;
        } else {
            uci_mpi_next->recv = &uci_mpi_started;
        }
    }
    pthread_mutex_unlock(&uci_mpi_requests.lock);
}

void uci_mpi_requests_remove(MPI_Request request)
{
    if (__atomic_load_n(&uci_mpi_requests_count, __ATOMIC_RELAXED) == 0) {
        return;
    }
    pthread_mutex_lock(&uci_mpi_requests.lock);
    uci_mpi_request_drop(uci_mpi_handles_find(&uci_mpi_requests, UCI_MPI_HANDLE(request)));
    pthread_mutex_unlock(&uci_mpi_requests.lock);
}
