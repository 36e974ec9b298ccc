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

/**
 * Make a context, as ucp_init_version(), in which UCX 1.13 does not write over memory that is not its own.
 *
 * That version looks for what it has allocated in its registration cache, and takes where the region of the cache begins for where its memory
 * does (ucp_memh_alloc(), ucp_mpool_malloc(); 1.14 does not ask the cache). In the heap, where "thp" allocates as well, what was registered and
 * freed may be longer: then it puts the head of a pool's chunk over what lies there by now. So it is made to allocate by mappings of their own
 * where UCX_ALLOC_PRIO is the default, whose "md:sysv" and "md:posix" are such, but which come before only where shared memory is among the
 * transports. Over tcp alone UCX's gtest (test_ucp_rma.get_nonblocking) had its heap damaged in most runs, since UCI's frames are registered.
 *
 * Not to be called by two threads at once with one configuration, which is as before when this returns.
 */
ucs_status_t uci_ucx_config_init(unsigned api_major_version, unsigned api_minor_version, const ucp_params_t *params,
                                 const ucp_config_t *config, ucp_context_h *context_p);

/** Read them from the configuration a context is made with (NULL: the one of the environment). */
void uci_ucx_config_thresholds(const ucp_config_t *config, uci_ucx_thresholds_t *thresholds_p);

#endif
