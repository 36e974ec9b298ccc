/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCX fetches for a receive: segments by rendezvous, chunks by get.
 */
#ifndef UCI_FETCH_H_
#define UCI_FETCH_H_

#include "recv_op_part.h"

/** What the user_data of am_recv_data_nbx() and get_nbx() begins with, for who looks at these calls on their way to UCX. */
typedef struct uci_fetch {
    uci_recv_op_t *op;
} uci_fetch_t;

#endif
