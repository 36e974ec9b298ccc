/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints that are being closed: close.c writes it; and those made by socket address: sock.c.
 */
#ifndef UCI_CONN_PART_H_
#define UCI_CONN_PART_H_

#include "ucp/ucp_api.h"
#include "util/list.h"
#include "util/types.h"

/** An endpoint that was accepted and whose other side is not known yet: what comes by it may be heard before */
typedef struct uci_conn_coming {
    uci_list_t link;
    uint32_t count; /**< of its number */
    ucp_ep_h ucp;
} uci_conn_coming_t;

typedef struct uci_conn_worker {
    uci_list_t closing; /**< uci_close_t: endpoints that the user closes */
    uci_list_t socks;   /**< uci_sock_t whose other side is not known yet; they count in ops_active */
    uci_list_t settled; /**< the others */
    uci_list_t coming;  /**< uci_conn_coming_t */
    uci_list_t lost;    /**< uci_lost_t */
    size_t ended;       /**< conversations, since it was looked for peers that may rest */
    bool is_marked;     /**< its clients' ids tell that it has UCI */
    uint32_t streams;   /**< numbers given to streams of endpoints that were accepted */
} uci_conn_worker_t;

UCI_INLINE void uci_conn_worker_init(uci_conn_worker_t *conn)
{
    uci_list_init(&conn->closing);
    uci_list_init(&conn->socks);
    uci_list_init(&conn->settled);
    uci_list_init(&conn->coming);
    uci_list_init(&conn->lost);
}

#endif
