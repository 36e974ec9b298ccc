/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_send.h"

#include <stdlib.h>

#include "base/edge.h"
#include "base/worker_state.h"
#include "inject_bytes.h"
#include "inject_out.h"
#include "link/sealed.h"

/* A frame, or its record, that goes after the next one */
typedef struct uci_inject_late {
    unsigned id;
    size_t length;
    char bytes[];
} uci_inject_late_t;

/* A call of ucp_am_send_nbx() */
typedef struct uci_inject_call {
    ucp_ep_h ep;
    unsigned id;
    const void *header;
    size_t header_length;
    const void *data;
    size_t length;
    const ucp_request_param_t *param;
} uci_inject_call_t;

static __typeof__(uci_ucp.am_send_nbx) uci_inject_ucx_send;

/* As it is, or a part of it: what a truncation has left */
static ucs_status_ptr_t uci_inject_pass(const uci_inject_call_t *call, size_t header_length, size_t length)
{
    return uci_inject_ucx_send(call->ep, call->id, call->header, header_length, call->data, length, call->param);
}

/* ---------------------------------------------------- what goes instead */

static void uci_inject_sent(void *request, ucs_status_t status, void *user_data)
{
    uci_inject_out_t *out      = user_data;
    ucp_send_nbx_callback_t cb = out->cb;

    user_data = out->user_data;
    uci_inject_out_destroy(out);
    cb(request, status, user_data);
}

static ucs_status_ptr_t uci_inject_post_out(const uci_inject_call_t *call, uci_inject_out_t *out)
{
    ucp_request_param_t param = {.op_attr_mask = call->param->op_attr_mask,
                                 .flags        = call->param->flags,
                                 .cb.send      = uci_inject_sent,
                                 .user_data    = out};
    ucs_status_ptr_t request;

    if (param.op_attr_mask & UCP_OP_ATTR_FIELD_MEMH) {
        param.memh = call->param->memh;
    }
    request = uci_inject_ucx_send(call->ep, call->id, (out->header_length > 0) ? &out->hdr : NULL, out->header_length,
                                  out->data, out->length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_inject_out_destroy(out);
    }
    return request;
}

/* --------------------------------------------------------------- frames */

static void uci_inject_late_sent(void *request, ucs_status_t status, void *user_data)
{
    uci_ucp.request_free(request);
    free(user_data);
}

/* @return false: no memory */
static bool uci_inject_keep_late(uci_peer_t *peer, const uci_inject_call_t *call)
{
    uci_inject_late_t *late = malloc(sizeof(*late) + call->length);

    if (late == NULL) {
        uci_fault_undo();
        return false;
    }
    late->id     = call->id;
    late->length = call->length;
    memcpy(late->bytes, call->data, call->length);
    peer->log.inject.late = late;
    return true;
}

static void uci_inject_post_late(uci_peer_t *peer, ucp_ep_h ep)
{
    uci_inject_late_t *late   = peer->log.inject.late;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.send   = uci_inject_late_sent,
                                 .user_data = late,
                                 .flags     = UCP_AM_SEND_FLAG_EAGER};

    peer->log.inject.late = NULL;
    if ((late != NULL) &&
        !UCS_PTR_IS_PTR(uci_inject_ucx_send(ep, late->id, NULL, 0, late->bytes, late->length, &param))) {
        free(late);
    }
}

/* What is drawn for a frame, or for the record that it is in */
static ucs_status_ptr_t uci_inject_post_frame(const uci_inject_call_t *call, uci_frame_t *frame, bool *whole_p)
{
    uci_inject_out_t *out;
    uci_fault_t fault;
    size_t length;
    char *wire;

    *whole_p = false;
    if (call->id == UCI_SEALED_AM_ID) {
        length   = call->length;
        *whole_p = !uci_inject_is_frame_hit(frame, &fault);
        if (!*whole_p) { /* nobody reads a record again that UCX has: it is damaged where it is */
            length = uci_fault_apply(&fault, (void *)(uintptr_t)call->data, length, NULL);
        }
        return uci_inject_pass(call, 0, length);
    }
    wire = uci_inject_frame(frame, false, &length);
    if (wire == NULL) {
        *whole_p = true;
        return uci_inject_pass(call, 0, call->length);
    }
    out = uci_inject_out_create(NULL, 0, wire, length, call->param);
    if (out == NULL) {
        free(wire);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    out->copy = wire;
    return uci_inject_post_out(call, out);
}

/* As it is, or as faults make of it: not at all, after the next one, twice, damaged; or damaged in the log */
static ucs_status_ptr_t uci_inject_frame_send(const uci_inject_call_t *call, uci_frame_t *frame)
{
    uci_peer_t *peer         = frame->peer;
    uci_inject_order_t order = uci_inject_order(frame, peer->log.inject.late == NULL);
    ucs_status_ptr_t request;
    bool whole;

    if (((order == UCI_INJECT_LATE) || (order == UCI_INJECT_TWICE)) && !uci_inject_keep_late(peer, call)) {
        order = UCI_INJECT_IN_ORDER;
    }
    if ((order == UCI_INJECT_DROP) || (order == UCI_INJECT_LATE)) {
        return NULL;
    }
    request = uci_inject_post_frame(call, frame, &whole);
    if (whole && (request == NULL) && (order == UCI_INJECT_IN_ORDER)) {
        uci_inject_log(frame);
    }
    uci_inject_post_late(peer, call->ep);
    return request;
}

/* -------------------------------------------------------------- messages */

static ucs_status_ptr_t uci_inject_message_send(const uci_inject_call_t *call, const uci_control_t *msg)
{
    uci_inject_out_t *out;

    out = uci_inject_out_create(call->header, call->header_length, call->data, call->length, call->param);
    if (out == NULL) {
        return uci_inject_pass(call, call->header_length, call->length);
    }
    uci_inject_content(msg, out);
    uci_inject_header(msg, out);
    if (!out->hit) {
        uci_inject_out_destroy(out);
        return uci_inject_pass(call, call->header_length, call->length);
    }
    return uci_inject_post_out(call, out);
}

/* Of an offer the record is the header, of HELLO it lies behind what is said in clear */
static ucs_status_ptr_t uci_inject_record_send(const uci_inject_call_t *call, const uci_sealed_t *sealed)
{
    const uci_control_t *msg = sealed->user_data;
    bool is_header           = (call->header_length > 0);
    size_t clear             = (sealed->kind == UCI_SEALED_HELLO) ? msg->length : 0;
    const char *record       = is_header ? call->header : (const char *)call->data + clear;
    size_t length            = is_header ? call->header_length : call->length - clear;
    uci_fault_t fault;

    if (uci_inject_is_record_hit(msg, &fault)) {
        length = uci_fault_apply(&fault, (void *)(uintptr_t)record, length, NULL);
    }
    return is_header ? uci_inject_pass(call, length, call->length) : uci_inject_pass(call, 0, clear + length);
}

/* ------------------------------------------------------------------ UCX's */

static ucs_status_ptr_t uci_inject_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                           const void *data, size_t length, const ucp_request_param_t *param)
{
    uci_inject_call_t call     = {.ep            = ep,
                                  .id            = id,
                                  .header        = header,
                                  .header_length = header_length,
                                  .data          = data,
                                  .length        = length,
                                  .param         = param};
    const uci_sealed_t *sealed = param->user_data;

    if (id == UCI_FRAME_AM_ID) {
        return uci_inject_frame_send(&call, param->user_data);
    }
    if ((id == UCI_AM_ID) && (header != NULL)) {
        return uci_inject_message_send(&call, param->user_data);
    }
    if ((id != UCI_SEALED_AM_ID) && (id != UCI_AM_ID)) {
        return uci_inject_pass(&call, header_length, length); /* a program's own */
    }
    return (sealed->kind == UCI_SEALED_FRAME) ? uci_inject_frame_send(&call, sealed->user_data)
                                              : uci_inject_record_send(&call, sealed);
}

static void uci_inject_peer_ends(uci_peer_t *peer)
{
    free(peer->log.inject.late);
    peer->log.inject.late = NULL;
}

void uci_inject_send_install(bool here)
{
    if (here && (uci_ucp.am_send_nbx != uci_inject_am_send)) {
        uci_inject_ucx_send = uci_ucp.am_send_nbx;
        uci_ucp.am_send_nbx = uci_inject_am_send;
    } else if (!here && (uci_ucp.am_send_nbx == uci_inject_am_send)) {
        uci_ucp.am_send_nbx = uci_inject_ucx_send;
    }
    uci_edge.peer_ends = here ? uci_inject_peer_ends : NULL;
}
