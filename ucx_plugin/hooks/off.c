/* SPDX-License-Identifier: BSD-3-Clause */
#include "off.h"

#include "data/buffer.h"
#include "fault/fault.h"
#include "inject/inject.h"
#include "live/stats.h"
#include "params.h"

static ucs_status_ptr_t uci_off_send_damaged(uci_hook_send_func_t *send, ucp_ep_h ep, const void *buffer, size_t count,
                                             ucp_tag_t tag, const ucp_request_param_t *param)
{
    size_t length = 0;
    uci_request_params_t ours;
    uci_buffer_t described;
    void *copy;

    if (uci_buffer_init_send(&described, buffer, count, uci_buffer_datatype(param)) != UCS_OK) {
        return send(ep, buffer, count, tag, param);
    }
    UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, messages, described.length);
    copy = uci_inject_user_data(&described, -1, &length);
    uci_buffer_finish(&described);
    if (copy == NULL) {
        return send(ep, buffer, count, tag, param);
    }
    uci_params_copy_request(&ours, param);
    ours.ucx.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    ours.ucx.datatype = ucp_dt_make_contig(1);
    return send(ep, copy, length, tag, &ours.ucx);
}

ucs_status_ptr_t uci_off_send(uci_hook_send_func_t *send, ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                              const ucp_request_param_t *param)
{
    return uci_fault_enabled ? uci_off_send_damaged(send, ep, buffer, count, tag, param)
                             : send(ep, buffer, count, tag, param);
}
