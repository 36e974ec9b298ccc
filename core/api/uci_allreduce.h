/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between libucx_integrity.so and a companion that does all-reduces by node (libuci_mpi.so, docs/allreduce.md): what the settings say, and
 * where damage in the memory that ranks of a node share is told and counted.
 */
#ifndef UCI_ALLREDUCE_ABI_H_
#define UCI_ALLREDUCE_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UCI_ALLREDUCE_VERSION 1

/** UCI_ALLREDUCE */
typedef enum {
    UCI_ALLREDUCE_AUTO, /**< where messages between nodes are sealed and the cost model says that it is faster */
    UCI_ALLREDUCE_ON,   /**< wherever it is possible */
    UCI_ALLREDUCE_OFF
} uci_allreduce_t;

/** A chunk in shared memory is not what was put there. */
typedef struct uci_allreduce_damage {
    int writer;          /**< rank in the communicator of who has put it there */
    uint64_t offset;     /**< of the chunk in the buffer of the all-reduce, bytes */
    uint64_t length;     /**< of the chunk, bytes */
    uint64_t count;      /**< bytes of the buffer */
    uint64_t expected;   /**< digest of what was put there (XXH3) */
    uint64_t found;      /**< digest of what was read first */
    unsigned rewritten;  /**< how often the writer has put it there again; 0: reading again was enough */
    int repaired;        /**< it is right now */
    const char *problem; /**< what is wrong if no digest tells: a constant; else NULL */
} uci_allreduce_damage_t;

/** What the library does for the companion. */
typedef struct uci_allreduce_ops {
    size_t size; /**< sizeof(uci_allreduce_ops_t) */
    int use;     /**< uci_allreduce_t: UCI_ALLREDUCE */
    int sealed;  /**< messages between nodes are, and those within a node are not (UCI_SEAL, UCI_SEAL_SCOPE) */
    /** An all-reduce has been done by node. Thread safe. */
    void (*count)(void);
    /** Tell it. Does not return if it could not be repaired: the process is aborted, and so the job. Thread safe. */
    void (*damaged)(const uci_allreduce_damage_t *damage);
} uci_allreduce_ops_t;

/**
 * A companion is here, in a process that uses UCX already.
 * @param version  UCI_ALLREDUCE_VERSION
 * @return NULL: not to be used in this process, because UCI is off, it has twins (UCI_TWINS), which see messages alone, or knows another version.
 */
typedef const uci_allreduce_ops_t *(*uci_allreduce_attach_func_t)(unsigned version);

/* The library's function of this type, to be found by dlsym(): it may be there or not */
#define UCI_ALLREDUCE_ATTACH "uci_allreduce_attach"

#ifdef __cplusplus
}
#endif

#endif
