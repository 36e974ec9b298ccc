/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared memory of UCX's own allocation: ours that peers on the same node map (ucp_rkey_ptr), and theirs that we do. What lies in
 * it is for bounce.h and mailbox.h.
 */
#ifndef UCI_SHARED_MEMORY_H_
#define UCI_SHARED_MEMORY_H_

#include <stdbool.h>

#include "ucp/ucp_api.h"

/** Our own; all zeros: there is none. */
typedef struct uci_shared_memory {
    void *address; /**< a multiple of UCI_CACHE_LINE; NULL: there is none */
    ucp_mem_h memh;
    void *rkey;         /**< tells a peer how to map it: ucp_rkey_pack() */
    size_t rkey_length; /**< bytes */
} uci_shared_memory_t;

/** Is among the @a transports, as UCX lists them, one whose memory can be mapped? */
bool uci_shared_memory_is_possible(const char *transports);

/**
 * Have UCX allocate memory, which is shared memory where a transport of the context has such.
 * @param length    bytes.
 * @param memory_p  filled in; to be given to uci_shared_memory_cleanup(). Unchanged on error.
 * @return UCS_OK, or UCX's error, which is not logged.
 */
ucs_status_t uci_shared_memory_create(ucp_context_h ucp, size_t length, uci_shared_memory_t *memory_p);

/** Give it back. Nothing happens if there is none. */
void uci_shared_memory_cleanup(ucp_context_h ucp, uci_shared_memory_t *memory);

/** UCX adds what a peer says to where its memory is mapped, and looks no further: we would write wherever it likes.
 *  @return true: all of it is shared memory, and begins at a cache line. */
bool uci_shared_memory_is_mapped(const void *address, size_t length);

#endif
