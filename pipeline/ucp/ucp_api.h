/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The original ucp functions, in one table. Everything in this layer calls UCX through `uci_ucp` and never by
 * name: under preload the name would lead back into our own hook.
 *
 * ucx_plugin fills the table before the first hooked call returns.
 */
#ifndef UCI_UCP_API_H_
#define UCI_UCP_API_H_

#include <ucp/api/ucp.h>

#include "util/types.h"

/** Functions that every supported UCX (1.13 on) exports. */
#define UCI_UCP_FUNCTIONS(_X) \
    _X(am_data_release) \
    _X(am_recv_data_nbx) \
    _X(am_send_nbx) \
    _X(atomic_cswap32) \
    _X(atomic_cswap64) \
    _X(atomic_fadd32) \
    _X(atomic_fadd64) \
    _X(atomic_op_nbx) \
    _X(atomic_swap32) \
    _X(atomic_swap64) \
    _X(cleanup) \
    _X(config_modify) \
    _X(config_print) \
    _X(config_read) \
    _X(config_release) \
    _X(conn_request_query) \
    _X(context_print_info) \
    _X(context_query) \
    _X(dt_create_generic) \
    _X(dt_destroy) \
    _X(ep_close_nbx) \
    _X(ep_create) \
    _X(ep_destroy) \
    _X(ep_flush) \
    _X(ep_flush_nbx) \
    _X(ep_modify_nb) \
    _X(ep_print_info) \
    _X(ep_query) \
    _X(ep_rkey_unpack) \
    _X(get) \
    _X(get_nbx) \
    _X(get_version_string) \
    _X(init_version) \
    _X(listener_create) \
    _X(listener_destroy) \
    _X(listener_reject) \
    _X(mem_map) \
    _X(mem_query) \
    _X(mem_unmap) \
    _X(request_cancel) \
    _X(request_check_status) \
    _X(request_free) \
    _X(request_is_completed) \
    _X(request_query) \
    _X(request_release) \
    _X(request_test) \
    _X(put) \
    _X(put_nbx) \
    _X(rkey_buffer_release) \
    _X(rkey_destroy) \
    _X(rkey_pack) \
    _X(rkey_ptr) \
    _X(stream_data_release) \
    _X(stream_recv_data_nb) \
    _X(stream_recv_nbx) \
    _X(stream_recv_request_test) \
    _X(stream_send_nbx) \
    _X(stream_worker_poll) \
    _X(tag_msg_recv_nbx) \
    _X(tag_probe_nb) \
    _X(tag_recv_nbx) \
    _X(tag_recv_request_test) \
    _X(tag_send_nbx) \
    _X(tag_send_sync_nbx) \
    _X(worker_address_query) \
    _X(worker_arm) \
    _X(worker_create) \
    _X(worker_destroy) \
    _X(worker_fence) \
    _X(worker_flush) \
    _X(worker_flush_nbx) \
    _X(worker_get_address) \
    _X(worker_get_efd) \
    _X(worker_progress) \
    _X(worker_query) \
    _X(worker_release_address) \
    _X(worker_set_am_handler) \
    _X(worker_set_am_recv_handler) \
    _X(worker_signal) \
    _X(worker_wait)

typedef struct uci_ucp {
#define UCI_UCP_MEMBER(_name) __typeof__(ucp_##_name) *_name;
    UCI_UCP_FUNCTIONS(UCI_UCP_MEMBER)
#undef UCI_UCP_MEMBER
    __typeof__(ucs_status_string) *status_string; /* from libucs */
} uci_ucp_t;

extern uci_ucp_t uci_ucp;

#endif
