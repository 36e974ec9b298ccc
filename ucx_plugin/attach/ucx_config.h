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
    bool is_set; /**< the user has set UCX_RNDV_THRESH, no part of it to auto: from `eager` on active messages are a rendezvous */
} uci_ucx_thresholds_t;

/** Read them from @a text, a configuration as UCX prints it: "UCX_RNDV_THRESH=auto", from UCX 1.14 on "UCX_RNDV_THRESH=intra:auto,inter:auto". */
void uci_ucx_config_read_thresholds(const char *text, uci_ucx_thresholds_t *thresholds_p);

/** Read them from the configuration a context is made with (NULL: the one of the environment). */
void uci_ucx_config_thresholds(const ucp_config_t *config, uci_ucx_thresholds_t *thresholds_p);

#endif
