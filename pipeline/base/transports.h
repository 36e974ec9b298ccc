/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of UCX's transports an endpoint uses. UCX 1.14 and later is asked (ucp_ep_query); before that it only prints it for
 * people to read (ucp_ep_print_info), and that is parsed, with the sizes of its protocols, which it prints there too.
 */
#ifndef UCI_TRANSPORTS_H_
#define UCI_TRANSPORTS_H_

#include "ucp/ucp_api.h"
#include "tune/netif.h"
#include "tune/profile.h"

#define UCI_TRANSPORTS_DEVICE_MAX 64

typedef struct uci_transports {
    char list
            [UCI_PROFILE_TRANSPORTS_MAX]; /**< "posix cma", a word for each lane in their order: two rails are not one */
    char interface[UCI_NETIF_NAME_SIZE];  /**< network interface of the first tcp lane, or "" */
    char device
            [UCI_TRANSPORTS_DEVICE_MAX]; /**< as UCX names it ("eth0", "mlx5_0:1", "memory"), if all lanes use the same one, else "" */
    size_t eager;      /**< bytes of a tagged send from which on it is not over before it is received; 0: not said */
    size_t eager_fast; /**< the same with UCP_OP_ATTR_FLAG_FAST_CMPL */
} uci_transports_t;

/**
 * Find out what an endpoint uses. As thread safe as UCX's calls for this endpoint are; opens no connection.
 * @param transports_p  filled in; an empty list if UCX names no lane, or can't be understood. It may name some later.
 */
void uci_transports_query(ucp_ep_h ep, uci_transports_t *transports_p);

#endif
