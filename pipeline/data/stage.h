/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages from and to memory that is not the host's, a GPU's for instance. No byte of it is touched here: UCX moves it
 * between there and the host, and what travels and is verified is in the host's memory.
 *
 * Each buffer becomes a generic datatype, whose pack and unpack functions send the bytes from a worker to itself, with one
 * side in the foreign memory. So messages to and from such buffers match, are repaired and are counted as all others are.
 * What is not covered is UCX's copy between the two memories, as with other generic datatypes (docs/protected.md).
 */
#ifndef UCI_STAGE_H_
#define UCI_STAGE_H_

#include "ucp/ucp_api.h"

typedef struct uci_stage uci_stage_t;

/** How to describe and undo a generic datatype: ucp_dt_create_generic() and ucp_dt_destroy() as the user calls them. */
typedef struct uci_stage_dt {
    ucs_status_t (*create)(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p);
    void (*destroy)(ucp_datatype_t datatype);
} uci_stage_dt_t;

/** Make one for a worker of @a context: a UCX worker of its own, connected with itself. To be used as its user is: by one
 *  thread at a time. @return UCS_OK, or an error, logged. */
ucs_status_t uci_stage_create(ucp_context_h context, const uci_stage_dt_t *dt, uci_stage_t **stage_p);

/** Before the context goes; no message uses it any more. */
void uci_stage_destroy(uci_stage_t *stage);

/**
 * Prepare an operation whose buffer, contiguous or iov, is in memory of type @a type.
 * @param param   what the user gave.
 * @param ours_p  the same with the datatype to use, good for one operation, to be started (uci_buffer_init_*) before the next
 *                call of this function; its buffer and count are the user's.
 */
void uci_stage_prepare(uci_stage_t *stage, ucs_memory_type_t type, const ucp_request_param_t *param,
                       ucp_request_param_t *ours_p);

#endif
