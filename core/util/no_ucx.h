/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Included before every file of core: the names a use of UCX or of an upper layer cannot do without are
 * poisoned, so that core stays usable, and testable, without a network.
 */
#pragma GCC poison ucp_context_h ucp_worker_h ucp_ep_h ucs_status_t ucs_status_ptr_t
#pragma GCC poison uci_ucp uci_worker_t uci_peer_t uci_request_t
