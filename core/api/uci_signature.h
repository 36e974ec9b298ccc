/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between libucx_integrity.so and a companion that knows the types of messages (libuci_mpi.so): "the next send, or receive, of this thread
 * carries this signature". The library carries that of a send in its frame, and compares it with that of the receive when the two are
 * matched. What types are, and how their signatures are hashed, is the companion's business: the library compares words, and asks the
 * companion where these are not enough.
 *
 * A signature is the sequence of basic elements that a message consists of, as MPI's "type signature". One of elements that are all of
 * one basic type, which nearly all are, is a word: the type's code and their number. Any other one has the code UCI_SIGNATURE_MIXED, and
 * a hash of the whole sequence.
 */
#ifndef UCI_SIGNATURE_ABI_H_
#define UCI_SIGNATURE_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UCI_SIGNATURE_VERSION 1

#define UCI_SIGNATURE_PACKED       0xfffeu /**< a code: any type matches it, and it any */
#define UCI_SIGNATURE_MIXED        0xffffu /**< a code: elements of several types */
#define UCI_SIGNATURE_ELEMENTS_MAX ((1ull << 48) - 1)
#define UCI_SIGNATURE_TEXT_MAX     64 /**< bytes of a text that travel, its end included */

/** What a message consists of. */
typedef struct uci_signature {
    uint64_t word;     /**< uci_signature_word() */
    uint64_t hash;     /**< of all elements, if they are MIXED */
    uint64_t unit;     /**< elements of one of `text`, if they are MIXED */
    const char *text;  /**< a type as people write it, if they are MIXED: "{2 x MPI_INT, MPI_DOUBLE}" */
    const void *type;  /**< the companion's, for its own functions */
    const char *call;  /**< "MPI_Recv": a constant */
    const char *group; /**< "MPI_COMM_WORLD": a constant; NULL: the tag says which communicator it is */
} uci_signature_t;

/** What the companion does for the library. May be called in any thread, within any call of UCX, and must not call MPI. */
typedef struct uci_signature_ops {
    size_t size; /**< sizeof(uci_signature_ops_t) */
    /** @return the name of a basic type: a constant. */
    const char *(*code_name)(unsigned code);
    /** Is what was sent the beginning of what was to be received? Asked if comparing words does not tell. */
    int (*matches)(const uci_signature_t *sent, const uci_signature_t *posted);
    /** A receive keeps @a type until it is matched, though its program may free it. NULL is not asked about. */
    void (*hold)(const void *type);
    void (*release)(const void *type);
} uci_signature_ops_t;

/** How much is to be compared (UCI_SIGNATURES). */
typedef enum {
    UCI_SIGNATURES_OFF,
    UCI_SIGNATURES_P2P, /**< point to point */
    UCI_SIGNATURES_ALL  /**< collectives too: by the companion, which tells the library */
} uci_signatures_t;

/** What a companion has found out about a collective. */
typedef enum {
    UCI_SIGNATURE_CALLS_MATCH,
    UCI_SIGNATURE_CALLS_DIFFER, /**< a record, a line, the end of the job where UCI_ON_SIGNATURE says so */
    UCI_SIGNATURE_CALLS_WAIT    /**< not yet: who is to be compared with has not come for long. A line */
} uci_signature_verdict_t;

/** What the ranks of a communicator call. Ranks are those of the communicator. */
typedef struct uci_signature_calls {
    uci_signature_verdict_t verdict; /**< MATCH: what follows is not looked at */
    int rank, other_rank;            /**< of WAIT: this one, and whom it waits for */
    const char *says;                /**< "MPI_Bcast of 4 x MPI_INT, root 0": what `rank` calls */
    const char *other_says;          /**< what `other_rank` does */
    const char *call;                /**< "MPI_Bcast": what this process is in */
    const char *group;               /**< "MPI_COMM_WORLD" */
    unsigned seconds;                /**< of WAIT: so long */
} uci_signature_calls_t;

/** What the next operations of a thread carry; each is taken by the first one of its direction, and then NULL. */
typedef struct uci_signature_next {
    const uci_signature_t *send;
    const uci_signature_t *recv;
} uci_signature_next_t;

/**
 * A companion is here: from now on, operations are looked at. After the first context of UCX's has been made (within MPI_Init), while no other
 * thread uses UCX.
 * @param version  UCI_SIGNATURE_VERSION
 * @param ops      stays valid.
 * @return what UCI_SIGNATURES says; UCI_SIGNATURES_OFF too if this process does not use UCX yet, if UCI is off, or if it knows another
 *         version only (said on stderr).
 */
typedef int (*uci_signatures_attach_func_t)(unsigned version, const uci_signature_ops_t *ops);

/** @return this thread's: valid until it ends. To be set before a call of MPI, and set back to NULL after it. */
typedef uci_signature_next_t *(*uci_signatures_next_func_t)(void);

/** Tell the library of a collective. Thread safe; does not call MPI. */
typedef void (*uci_signatures_calls_func_t)(const uci_signature_calls_t *calls);

/** @return seconds after which waiting for others in a collective is told of (UCI_SIGNATURE_WAIT); 0: never. */
typedef unsigned (*uci_signatures_wait_func_t)(void);

/* The library's functions of these types, to be found by dlsym(): it may be there or not */
#define UCI_SIGNATURES_ATTACH "uci_signatures_attach"
#define UCI_SIGNATURES_NEXT   "uci_signatures_next"
#define UCI_SIGNATURES_CALLS  "uci_signatures_calls"
#define UCI_SIGNATURES_WAIT   "uci_signatures_wait"

static inline uint64_t uci_signature_word(unsigned code, uint64_t elements)
{
    return ((uint64_t)code << 48) | (elements & UCI_SIGNATURE_ELEMENTS_MAX);
}

static inline unsigned uci_signature_code(uint64_t word)
{
    return (unsigned)(word >> 48);
}

static inline uint64_t uci_signature_elements(uint64_t word)
{
    return word & UCI_SIGNATURE_ELEMENTS_MAX;
}

#ifdef __cplusplus
}
#endif

#endif
