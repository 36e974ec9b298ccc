/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCI has to know of UCX's own settings.
 */
#ifndef UCI_UCX_CONFIG_H_
#define UCI_UCX_CONFIG_H_

#include "ucp/ucp_api.h"
#include "util/types.h"

/** Up to which size plain UCX completes a send without the receiver: by default, and with FAST_CMPL. */
typedef struct uci_ucx_thresholds {
    size_t eager;
    size_t eager_fast;
    bool is_set; /**< the user has set UCX_RNDV_THRESH: from `eager` on active messages are a rendezvous */
} uci_ucx_thresholds_t;

/** Read them from the configuration a context is made with (NULL: the one of the environment). */
void uci_ucx_config_thresholds(const ucp_config_t *config, uci_ucx_thresholds_t *thresholds_p);

#endif
