/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "basic_types.h"

__thread uci_signature_next_t *uci_mpi_next;
uci_signatures_t uci_mpi_compared;

static pthread_once_t uci_mpi_once = PTHREAD_ONCE_INIT;
static uci_signatures_next_func_t uci_mpi_next_func;
static uci_signatures_calls_func_t uci_mpi_calls_func;
static unsigned uci_mpi_wait_seconds;
static __thread uci_signature_next_t uci_mpi_nobody;

static int uci_mpi_matches(const uci_signature_t *sent, const uci_signature_t *posted)
{
    return uci_signature_matches(sent, posted);
}

static void uci_mpi_hold(const void *type)
{
    uci_sigtype_hold(type);
}

static void uci_mpi_release(const void *type)
{
    uci_sigtype_release(type);
}

/* Preloaded, it is found by its names; as a module of UCX's it is not in our scope */
void *uci_mpi_library_find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    void *library;

    if (found == NULL) {
        library = dlopen("libucx_integrity.so", RTLD_NOLOAD | RTLD_LAZY);
        found   = (library != NULL) ? dlsym(library, name) : NULL;
    }
    return found;
}

/* In a program of another MPI its calls come with handles of another size; and one that opens its MPI itself has it where nothing of it is found from here.
 * That can't go on, and ends before anything is passed on */
void uci_mpi_check_mpi(void)
{
#ifdef OPEN_MPI
    const char *ours = "Open MPI", *mark = "ompi_mpi_comm_world", *other = "mpich", *library = "libmpi.so.40";
    const bool is_bound = (MPI_COMM_WORLD != NULL); /* as data is when this library is loaded, and never after */
#else
    const char *ours = "MPICH", *mark = "MPIR_Dup_fn", *other = "openmpi", *library = "libmpich.so.12 or libmpi.so.12";
    const bool is_bound = true;
#endif
    const bool is_found = (dlsym(RTLD_DEFAULT, mark) != NULL);

    if (is_found && is_bound) {
        return;
    }
    if (!is_found && (dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL)) {
        fprintf(stderr,
                "libuci_mpi: the library that is preloaded (LD_PRELOAD) is for %s, and this program uses another MPI: preload "
                "libuci_mpi_%s.so instead\n",
                ours, other);
    } else {
        fprintf(stderr,
                "libuci_mpi: this program opens its MPI itself (dlopen): preload (LD_PRELOAD) that too, behind libuci_mpi, for %s %s\n",
                ours, library);
    }
    abort();
}

void uci_mpi_at_finalize(MPI_Comm_delete_attr_function *function)
{
    int keyval;

    if ((PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &keyval, NULL) == MPI_SUCCESS) &&
        (PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL) == MPI_SUCCESS)) {
        PMPI_Comm_free_keyval(&keyval);
    }
}

/* They need more of the library: one that is older has none of it */
static void uci_mpi_attach_collectives(void)
{
    uci_signatures_wait_func_t wait = (uci_signatures_wait_func_t)uci_mpi_library_find(UCI_SIGNATURES_WAIT);

    uci_mpi_calls_func = (uci_signatures_calls_func_t)uci_mpi_library_find(UCI_SIGNATURES_CALLS);
    if ((wait != NULL) && (uci_mpi_calls_func != NULL)) {
        uci_mpi_wait_seconds = wait();
    } else if (uci_mpi_compared == UCI_SIGNATURES_ALL) {
        uci_mpi_compared = UCI_SIGNATURES_P2P;
    }
}

void uci_mpi_tell(const uci_signature_calls_t *calls)
{
    uci_mpi_calls_func(calls);
}

unsigned uci_mpi_wait_limit(void)
{
    return uci_mpi_wait_seconds;
}

/* Within the first call that could carry a signature: MPI has been initialised, and by that UCX */
static void uci_mpi_attach(void)
{
    static const uci_signature_ops_t ops = {.size      = sizeof(ops),
                                            .code_name = uci_mpi_code_name,
                                            .matches   = uci_mpi_matches,
                                            .hold      = uci_mpi_hold,
                                            .release   = uci_mpi_release};
    uci_signatures_attach_func_t attach  = (uci_signatures_attach_func_t)uci_mpi_library_find(UCI_SIGNATURES_ATTACH);

    uci_mpi_check_mpi();
    uci_mpi_next_func = (uci_signatures_next_func_t)uci_mpi_library_find(UCI_SIGNATURES_NEXT);
    if ((attach == NULL) || (uci_mpi_next_func == NULL) || !uci_mpi_datatype_init()) {
        return;
    }
    uci_mpi_compared = (uci_signatures_t)attach(UCI_SIGNATURE_VERSION, &ops);
    uci_mpi_attach_collectives();
}

uci_signature_next_t *uci_mpi_next_slow(void)
{
    pthread_once(&uci_mpi_once, uci_mpi_attach);
    return (uci_mpi_compared != UCI_SIGNATURES_OFF) ? uci_mpi_next_func() : &uci_mpi_nobody;
}

/* MPICH has a queue of its own for what a rank sends to itself */
bool uci_mpi_passes(int peer, MPI_Comm comm)
{
#ifndef OPEN_MPI
    int rank, is_inter = 1;

    if ((comm != MPI_COMM_NULL) && (PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS) && (rank == peer)) {
        PMPI_Comm_test_inter(comm, &is_inter);
        return is_inter;
    }
#endif
    return peer != MPI_PROC_NULL;
}
