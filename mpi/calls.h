/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Watching the calls of MPI (UCI_CALLS): where in the program they are, how long they take, what they wait for. Each wrapper enters and leaves, if calls are
 * watched at all:
 *
 *     MPI_Recv(...)
 *         uci_mpi_call_enter()      the thread's entry in the file: it waits for this (threads.h)
 *         PMPI_Recv()
 *         uci_mpi_call_leave()      time and bytes of this place; a request that was begun is pending (pending.h)
 */
#ifndef UCI_MPI_CALLS_H_
#define UCI_MPI_CALLS_H_

#include <mpi.h>

#include "calls_file.h"
#include "touched.h"

/** What is sent, or received. */
typedef struct uci_mpi_half {
    bool is_there;
    const void *buf;
    uint64_t count;
    MPI_Datatype type;
    int peer, tag;
} uci_mpi_half_t;

#define UCI_MPI_HALF(_buf, _count, _type, _peer, _tag) \
    { \
        .is_there = true, .buf = (_buf), .count = (uint64_t)(_count), .type = (_type), .peer = (_peer), .tag = (_tag) \
    }

/** @return bytes of data, gaps left out. */
UCI_INLINE uint64_t uci_mpi_bytes(uint64_t count, MPI_Datatype type)
{
    int size = 0;

    if (type != MPI_DATATYPE_NULL) {
        PMPI_Type_size(type, &size);
    }
    return (uint64_t)uci_max(size, 0) * count;
}

typedef enum {
    UCI_MPI_BLOCKS,
    UCI_MPI_PROBES, /**< looks for a message, and does not wait */
    UCI_MPI_STARTS, /**< an operation that ends with a request */
    UCI_MPI_MAKES,  /**< a request that MPI_Start starts */
} uci_mpi_manner_t;

/** A call, from its begin to its end. */
typedef struct uci_mpi_call {
    const char *name; /**< "MPI_Send": a constant; NULL: it is not watched */
    uci_mpi_manner_t manner;
    MPI_Comm comm;
    uci_mpi_half_t send, recv;
    bool collective;
    bool replaces;             /**< what is sent is replaced by what is received */
    uint64_t bytes;            /**< of a collective: what this rank gives */
    uci_mpi_touched_t touched; /**< of a collective, if calls are checked; of others it is filled in on the way */
    MPI_Request *request;      /**< of one that does not block */
    bool found;                /**< of UCI_MPI_PROBES, at its end: there is one */
    /* filled in on the way */
    int place, comm_index;
    int peer;            /**< if calls are checked: rank of MPI_COMM_WORLD, of what is received, or else sent */
    uint64_t number;     /**< of a collective on its communicator */
    uint64_t entered_ns; /**< if it does not wait: before its place was looked for, which takes longer than a test */
    uint64_t begun_ns;
} uci_mpi_call_t;

/** Are calls watched? */
#define uci_mpi_watches() uci_unlikely(uci_calls != NULL)

/** Does each standard send wait for its receive (UCI_UNBUFFERED)? */
extern bool uci_mpi_is_unbuffered;

/** In a wrapper: what follows says what it is (members of uci_mpi_call_t). To be ended by UCI_MPI_LEAVE(). */
#define UCI_MPI_ENTER(_call, _name, ...) \
    do { \
        (_call).name = NULL; \
        if (uci_mpi_watches()) { \
            (_call) = (uci_mpi_call_t){.name = (_name), __VA_ARGS__}; \
            uci_mpi_call_enter(&(_call)); \
        } \
    } while (0)

#define UCI_MPI_LEAVE(_call, _ret) \
    do { \
        if (uci_unlikely((_call).name != NULL)) { \
            uci_mpi_call_leave(&(_call), _ret); \
        } \
    } while (0)

/** A wrapper that does nothing but watch; what follows the arguments says what the call is. @param _then  done with `call` and `ret` at the end, or nothing */
#define UCI_MPI_WATCH_AND(_then, _name, _params, _args, ...) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_mpi_call_t call; \
        int ret; \
\
        UCI_MPI_ENTER(call, "MPI_" #_name, __VA_ARGS__); \
        ret = PMPI_##_name _args; \
        UCI_MPI_LEAVE(call, ret); \
        _then; \
        return ret; \
    }

/** MPI_Init has been called. if the file can't be made that is said, and calls are not watched. */
void uci_mpi_calls_init(void);

/** An error on it that MPI_ERRORS_ARE_FATAL would end the program for is noted first. */
void uci_mpi_calls_watch_errors(MPI_Comm comm);

/** MPI_Finalize will be. Within it, requests that are pending are told of. */
void uci_mpi_calls_finalize(void);

/** @return whether a message goes out by @a call, and which. Its place and communicator have been filled in. */
bool uci_mpi_call_sends(const uci_mpi_call_t *call, uci_calls_sent_t *sent_p);

/** A message goes out, and is remembered. Thread safe, as the next one. */
void uci_mpi_calls_add_sent(const uci_calls_sent_t *sent);

/** So many are given at a place. */
void uci_mpi_calls_add_bytes(int place, uint64_t bytes);

/** A call begins, ends. Thread safe. */
void uci_mpi_call_enter(uci_mpi_call_t *call);
void uci_mpi_call_leave(uci_mpi_call_t *call, int ret);

/** A call that waits for, or tests, requests, whose handles it may change. */
typedef struct uci_mpi_waiting {
    uci_mpi_call_t call;
    int count;
    bool polls;
    bool is_news;           /**< that any of them is complete */
    const MPI_Request *now; /**< the program's own; NULL: those of Fortran */
    const MPI_Fint *now_fortran;
    MPI_Request *requests; /**< as they were: `few`, or memory */
    MPI_Request few[8];
} uci_mpi_waiting_t;

/**
 * @param name      a constant.
 * @param any       it is over when one of them is.
 * @param polls     it does not wait.
 * @param requests  of C; NULL: @a fortran
 */
void uci_mpi_waiting_enter(uci_mpi_waiting_t *waiting, const char *name, bool any, bool polls, int count,
                           const MPI_Request *requests, const MPI_Fint *fortran);

/**
 * Those that are MPI_REQUEST_NULL now are complete; of persistent ones, which stay, it has to be said.
 * @param done     how many are complete.
 * @param indices  which (from @a base on; not so by MPI_Waitany of MPICH 4.0's mpi_f08, which counts from 0); NULL: the first ones.
 */
void uci_mpi_waiting_leave(uci_mpi_waiting_t *waiting, int ret, int done, const int *indices, int base);

/** The same of MPI_Request_get_status: a request that is @a done stays, and has nothing to say any more when it is completed. */
void uci_mpi_waiting_leave_status(uci_mpi_waiting_t *waiting, int ret, bool done);

#endif
