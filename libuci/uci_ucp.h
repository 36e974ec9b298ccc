/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci between two ucp endpoints: in line over ucp_tag_send_nbx and ucp_tag_recv_nbx (UCX 1.10 and later). See uci.h. The
 * program links with UCX itself; libuci does not.
 */
#ifndef UCI_UCP_H_
#define UCI_UCP_H_

#include <string.h>
#include <ucp/api/ucp.h>

#include "uci.h"

typedef struct uci_ucp_peer {
    ucp_worker_h worker; /* of this side */
    ucp_ep_h ep;         /* from this worker to that of the other side */
    ucp_tag_t tag;
} uci_ucp_peer_t;

typedef struct uci_ucp_arrival {
    int is_over;
    ucs_status_t status;
    size_t length;
} uci_ucp_arrival_t;

static inline void uci_ucp_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                                    void *user_data)
{
    uci_ucp_arrival_t *arrival = (uci_ucp_arrival_t *)user_data;

    (void)request;
    arrival->status  = status;
    arrival->length  = (status == UCS_OK) ? info->length : 0;
    arrival->is_over = 1;
}

static inline void *uci_ucp_send(uci_ucp_peer_t *peer, const void *out, size_t length)
{
    ucp_request_param_t param;

    memset(&param, 0, sizeof(param));
    return ucp_tag_send_nbx(peer->ep, out, length, peer->tag, &param);
}

static inline void *uci_ucp_recv(uci_ucp_peer_t *peer, void *in, size_t max, uci_ucp_arrival_t *arrival)
{
    ucp_request_param_t param;

    memset(&param, 0, sizeof(param));
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv      = uci_ucp_received;
    param.user_data    = arrival;
    return ucp_tag_recv_nbx(peer->worker, in, max, peer->tag, (ucp_tag_t)-1, &param);
}

/* Give up what is pending: its buffer is about to go */
static inline void uci_ucp_cancel(uci_ucp_peer_t *peer, void *request)
{
    if ((request == NULL) || UCS_PTR_IS_ERR(request)) {
        return;
    }
    ucp_request_cancel(peer->worker, request);
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(peer->worker);
    }
    ucp_request_free(request);
}

static inline uci_status_t uci_ucp_exchange(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                            size_t *in_length_p)
{
    uci_ucp_peer_t *peer      = (uci_ucp_peer_t *)arg;
    uci_ucp_arrival_t arrival = {0, UCS_INPROGRESS, 0};
    void *recv                = uci_ucp_recv(peer, in, in_max, &arrival);
    void *send                = uci_ucp_send(peer, out, out_length);
    ucs_status_t status       = UCS_INPROGRESS;

    while (!UCS_PTR_IS_ERR(recv) && !UCS_PTR_IS_ERR(send) && ((status == UCS_INPROGRESS) || !arrival.is_over)) {
        status = (send == NULL) ? UCS_OK : ucp_request_check_status(send);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            break;
        }
        ucp_worker_progress(peer->worker);
    }
    uci_ucp_cancel(peer, send); /* over, unless there was an error */
    uci_ucp_cancel(peer, recv);
    *in_length_p = arrival.length;
    return ((status == UCS_OK) && arrival.is_over && (arrival.status == UCS_OK)) ? UCI_OK : UCI_ERR_IO;
}

/**
 * Compare @a tree with that of the peer of @a ep, which calls this at the same time with its own worker, an endpoint to this one, and
 * the same tag. The context needs UCP_FEATURE_TAG. No other message of this tag, of whatever sender, may be on its way to either
 * worker. Progresses @a worker until both know; it must not be progressed by another thread meanwhile unless it is UCS_THREAD_MODE_MULTI.
 * UCI_ERR_IO on errors of UCX, else as uci_tree_compare_with().
 */
static inline uci_status_t uci_tree_compare_ucp(uci_tree_t *tree, ucp_worker_h worker, ucp_ep_h ep, ucp_tag_t tag,
                                                uci_tree_result_t *result)
{
    uci_ucp_peer_t peer    = {worker, ep, tag};
    uci_exchange_ops_t ops = {sizeof(ops), uci_ucp_exchange, NULL, NULL, 0};

    return uci_tree_compare_with(tree, &ops, &peer, result);
}

#endif
