/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCX fetches for a receive: segments by rendezvous, chunks by get.
 */
#ifndef UCI_FETCH_H_
#define UCI_FETCH_H_

#include "recv_op_part.h"

/** What user_data of these calls begins with, for who looks at them on their way to UCX. */
typedef struct uci_fetch {
    uci_recv_op_t *op;
} uci_fetch_t;

/** Callbacks of am_recv_data_nbx() and get_nbx(). By these calls of ours are known: programs fetch as well. */
void uci_fetch_segment_done(void *request, ucs_status_t status, size_t length, void *user_data);
void uci_fetch_chunk_done(void *request, ucs_status_t status, void *user_data);

#endif
