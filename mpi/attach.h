/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci_mpi.so, a companion of libucx_integrity.so: tells it what the messages of an MPI program consist of (uci_signature.h). It is built for
 * each MPI, is preloaded beside the library, and wraps the functions of MPI by their PMPI names:
 *
 *     MPI_Send(buffer, count, datatype ...)
 *         datatype.h: what does the datatype consist of?  -->  uci_signature_t
 *         attach.h: the next send of this thread carries it
 *         PMPI_Send()  -->  ucp_tag_send_nbx()  -->  libucx_integrity.so takes it
 *         attach.h: what has not been taken is no other send's
 *
 * Each call of a program is seen once: of Fortran's, those that reach C by PMPI names have wrappers of their own
 * (fortran_openmpi.c, fortran_mpich.c).
 */
#ifndef UCI_MPI_ATTACH_H_
#define UCI_MPI_ATTACH_H_

#include <mpi.h>

#include "datatype.h"

/** For definitions that a program's calls shall find. */
#define UCI_MPI_EXPORT __attribute__((visibility("default")))

/** Takes the brackets from what is handed on as one argument of a macro. */
#define UCI_MPI_UNPACK(...) __VA_ARGS__

/** Functions of MPI 4 that Open MPI has had since its version 5: persistent collectives, MPI_Isendrecv, partitioned messages. */
#if (MPI_VERSION >= 4) || (defined(OMPI_MAJOR_VERSION) && (OMPI_MAJOR_VERSION >= 5))
#define UCI_MPI_HAS_MPI4_CALLS 1
#else
#define UCI_MPI_HAS_MPI4_CALLS 0
#endif

/** @return a function that the library exports; NULL: the library is not there. */
void *uci_mpi_library_find(const char *name);

/** Where the MPI is another one, or is not found: say what has to be preloaded, and end. Before anything of MPI is used. */
void uci_mpi_check_mpi(void);

/** Call @a function as late as can be while MPI still works: MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the first one last. To be called
 *  right after MPI_Init. */
void uci_mpi_at_finalize(MPI_Comm_delete_attr_function *function);

/** Of this thread; NULL: not asked for yet. */
extern __thread uci_signature_next_t *uci_mpi_next;

/** Where the signatures of a thread go that nobody takes: there is no library, or UCI_SIGNATURES=off. */
uci_signature_next_t *uci_mpi_next_slow(void);

/** How much is compared; known when uci_mpi_next is. */
extern uci_signatures_t uci_mpi_compared;

/** @return whether anything is to be compared in this process; MPI has been initialised. */
UCI_INLINE int uci_mpi_is_on(void)
{
    if (uci_unlikely(uci_mpi_next == NULL)) {
        uci_mpi_next = uci_mpi_next_slow();
    }
    return uci_mpi_compared != UCI_SIGNATURES_OFF;
}

/** @return whether collectives are to be compared; MPI has been initialised. */
UCI_INLINE int uci_mpi_compares_collectives(void)
{
    return uci_mpi_is_on() && (uci_mpi_compared == UCI_SIGNATURES_ALL);
}

/** Tell the library of a collective. Only if uci_mpi_compares_collectives(). */
void uci_mpi_tell(const uci_signature_calls_t *calls);

/** @return seconds after which waiting for others in a collective is told of; 0: never. */
unsigned uci_mpi_wait_limit(void);

/** "MPI_COMM_WORLD"; NULL: another one. */
UCI_INLINE const char *uci_mpi_comm_name(MPI_Comm comm)
{
    return (comm == MPI_COMM_WORLD) ? "MPI_COMM_WORLD" : (comm == MPI_COMM_SELF) ? "MPI_COMM_SELF" : NULL;
}

/** What an operation consists of. @return @a signature, or NULL: that can't be told. */
UCI_INLINE const uci_signature_t *uci_mpi_sign(uci_signature_t *signature, const char *call, uint64_t count,
                                               MPI_Datatype datatype, MPI_Comm comm)
{
    const uci_mpi_seen_t *seen = uci_mpi_datatype(datatype);

    if (uci_unlikely(seen == NULL) || uci_unlikely((int64_t)count < 0)) {
        return NULL;
    }
    if (uci_likely(seen->code != uci_signature_word(UCI_SIGNATURE_MIXED, 0))) {
        signature->word = seen->code | ((seen->elements * count) & UCI_SIGNATURE_ELEMENTS_MAX);
        signature->type = seen->type; /* what is for mixed ones nobody reads */
    } else {
        uci_sigtype_sign(seen->type, count, signature);
    }
    signature->call  = call;
    signature->group = uci_mpi_comm_name(comm);
    return signature;
}

/** The next send, or receive, of this thread is this one; to be ended by uci_mpi_done(). */
UCI_INLINE void uci_mpi_send_next(uci_signature_t *signature, const char *call, uint64_t count, MPI_Datatype datatype,
                                  MPI_Comm comm)
{
    if (uci_likely(uci_mpi_is_on())) {
        uci_mpi_next->send = uci_mpi_sign(signature, call, count, datatype, comm);
    }
}

UCI_INLINE void uci_mpi_recv_next(uci_signature_t *signature, const char *call, uint64_t count, MPI_Datatype datatype,
                                  MPI_Comm comm)
{
    if (uci_likely(uci_mpi_is_on())) {
        uci_mpi_next->recv = uci_mpi_sign(signature, call, count, datatype, comm);
    }
}

/** Of a call that both sends and receives: does this half pass UCX? One that does not would leave its signature to what MPI itself sends or receives while
 *  the other half is waited for. */
bool uci_mpi_passes(int peer, MPI_Comm comm);

/** The call is over: what has not been taken (MPI_PROC_NULL, an error) is for nobody. */
UCI_INLINE void uci_mpi_done(void)
{
    if (uci_likely(uci_mpi_next != NULL)) { /* NULL: nothing has passed in this thread yet */
        uci_mpi_next->send = NULL;
        uci_mpi_next->recv = NULL;
    }
}

#endif
