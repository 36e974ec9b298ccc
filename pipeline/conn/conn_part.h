/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints that are being closed: close.c writes it.
 */
#ifndef UCI_CONN_PART_H_
#define UCI_CONN_PART_H_

#include "util/list.h"

typedef struct uci_conn_worker {
    uci_list_t closing; /**< uci_close_t: endpoints that the user closes */
} uci_conn_worker_t;

UCI_INLINE void uci_conn_worker_init(uci_conn_worker_t *conn)
{
    uci_list_init(&conn->closing);
}

#endif
