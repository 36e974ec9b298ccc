/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between libucx_integrity.so and a companion that watches the calls of MPI (libuci_mpi.so, docs/calls.md): what the settings say.
 */
#ifndef UCI_CALLS_ABI_H_
#define UCI_CALLS_ABI_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UCI_CALLS_VERSION 1

/** What the settings say. */
typedef struct uci_calls_ops {
    size_t size;      /**< sizeof(uci_calls_ops_t) */
    const char *file; /**< UCI_CALLS: the file of a process, with %h, %p, %r and %% in it */
    int checks;       /**< UCI_CHECK_CALLS: buffers and requests are looked at, too */
    int unbuffered;   /**< UCI_UNBUFFERED: standard sends wait for their receives */
} uci_calls_ops_t;

/**
 * A companion is here, in a process that uses UCX already.
 * @param version  UCI_CALLS_VERSION
 * @return NULL: calls are not to be watched, or the library knows another version. Else it stays valid.
 */
typedef const uci_calls_ops_t *(*uci_calls_attach_func_t)(unsigned version);

/* The library's function of this type, to be found by dlsym(): it may be there or not */
#define UCI_CALLS_ATTACH "uci_calls_attach"

#ifdef __cplusplus
}
#endif

#endif
