/* SPDX-License-Identifier: BSD-3-Clause */
#include "origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/wire_check.h"
#include "digest/digest.h"
#include "execute.h"
#include "flush.h"
#include "live/stats.h"
#include "message/user_am.h"
#include "ucp/shared_memory.h"
#include "util/log.h"

/* Bytes that go in pieces, at most: what is more is moved faster as large messages are */
#define UCI_RMA_PIECES_MAX (1u << 20)

/* An operation, before it is on its way */
typedef struct uci_rma_out {
    uci_ep_t *ep;
    const uci_rma_key_t *key;
    uci_rma_header_t what;
    const ucp_request_param_t *param;
} uci_rma_out_t;

/* ----------------------------------------------------------------- ways */

/* Does UCX move bytes between them by messages, or by copying? */
static bool uci_rma_is_copied(const char *transports)
{
    static const char *const copy[] = {"tcp", "self", "posix", "sysv", "cma", "knem", "xpmem"};
    size_t length, i;

    for (; *transports != '\0'; transports += length + strspn(transports + length, " ")) {
        length = strcspn(transports, " ");
        for (i = 0;
             (i < uci_array_size(copy)) && ((strlen(copy[i]) != length) || (memcmp(copy[i], transports, length) != 0));
             ++i) {
        }
        if (i == uci_array_size(copy)) {
            return false;
        }
    }
    return true;
}

bool uci_rma_is_own(uci_ep_t *ep, const uci_rma_key_t *key)
{
    uci_peer_t *peer = ep->peer;
    const char *transports;

    if (uci_unlikely(peer->rma.way == UCI_RMA_WAY_UNKNOWN)) {
        transports = uci_peer_transports(peer);
        if (transports[0] == '\0') {
            return key != NULL; /* asked again */
        }
        peer->rma.way = uci_rma_is_copied(transports) ? UCI_RMA_WAY_OWN : UCI_RMA_WAY_PASS;
    }
    return (key != NULL) && (peer->rma.way == UCI_RMA_WAY_OWN);
}

/* Where an origin can do it itself; NULL: it can't, or not before what was sent before the last fence is done */
static char *uci_rma_here(const uci_rma_out_t *out)
{
    const uci_peer_t *peer = out->ep->peer;

    if (uci_unlikely(peer->rma.done < peer->rma.fenced) || (out->key->memory == NULL)) {
        return NULL;
    }
    return out->key->memory + (out->what.address - out->key->packed.base);
}

/* -------------------------------------------------------------- checking */

static ucs_status_t uci_rma_refuse(const uci_rma_out_t *out, const char *why)
{
    const uci_rma_packed_t *packed = &out->key->packed;

    uci_error(
            "%s of %lu bytes at 0x%lx of %s is refused: its key is of region %u (%lu bytes at 0x%lx, owner %016lx), %s",
            uci_rma_names[out->what.kind], (unsigned long)out->what.length, (unsigned long)out->what.address,
            uci_peer_name(out->ep->peer), packed->region, (unsigned long)packed->length, (unsigned long)packed->base,
            (unsigned long)packed->owner, why);
    return UCS_ERR_INVALID_ADDR;
}

/* Who is origin and target does it itself */
static ucs_status_t uci_rma_check_self(const uci_rma_out_t *out)
{
    uci_rma_regions_t *regions = out->ep->peer->worker->context->rma;
    const char *why            = NULL;
    char *memory;

    if (uci_rma_region_enter(regions, &out->what, &memory, &why) != UCS_OK) {
        return uci_rma_refuse(out, why);
    }
    uci_rma_region_leave(regions);
    return UCS_OK;
}

static ucs_status_t uci_rma_check(const uci_rma_out_t *out)
{
    const uci_rma_packed_t *packed = &out->key->packed;
    const uci_peer_t *peer         = out->ep->peer;

    if (out->key->foreign) {
        return uci_rma_refuse(out, "which is another process's");
    }
    if (!uci_rma_is_within(&out->what, packed->base, packed->length)) {
        return uci_rma_refuse(out, "and this is outside of it");
    }
    return (peer->uid == peer->worker->uid) ? uci_rma_check_self(out) : peer->conversation.status;
}

static uci_rma_out_t uci_rma_out(uci_ep_t *ep, uci_rma_kind_t kind, uint64_t address, size_t length,
                                 const uci_rma_key_t *key, const ucp_request_param_t *param)
{
    uci_rma_out_t out = {.ep    = ep,
                         .key   = key,
                         .what  = {.number  = ep->peer->rma.sent,
                                   .owner   = key->packed.owner,
                                   .address = address,
                                   .length  = length,
                                   .region  = key->packed.region,
                                   .kind    = (uint8_t)kind,
                                   .fence   = ep->peer->rma.fenced == ep->peer->rma.sent},
                         .param = param};

    ep->peer->worker->rma.used = true;
    return out;
}

/* -------------------------------------------------------------- sending */

static ucs_status_ptr_t uci_rma_send(uci_rma_out_t *out, uint32_t flags, const void *buffer, size_t count,
                                     const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret = uci_user_am_send_own(out->ep, UCI_OWN_AM_RMA, flags | UCP_AM_SEND_FLAG_REPLY, &out->what,
                                                sizeof(out->what), buffer, count, param);

    if (!UCS_PTR_IS_ERR(ret)) {
        ++out->ep->peer->rma.sent;
    }
    return ret;
}

size_t uci_rma_piece(uci_peer_t *peer, size_t length, size_t header)
{
    const uci_link_worker_t *link = &peer->worker->link;
    size_t piece                  = uci_rma_frame_room(peer, header);

    if ((length <= piece) || (length > UCI_RMA_PIECES_MAX) || (link->log_bytes + length > link->log_limit) ||
        uci_shared_memory_is_possible(uci_peer_transports(peer))) {
        return 0;
    }
    return piece;
}

/* What has a request of its own, or needs none, sends a frame that holds a copy */
static ucs_status_t uci_rma_send_alone(uci_rma_out_t *out, const void *data, size_t length)
{
    static const ucp_request_param_t none;
    ucs_status_ptr_t ret = uci_rma_send(out, UCP_AM_SEND_FLAG_EAGER, data, length, &none);

    if (UCS_PTR_IS_PTR(ret)) {
        uci_request_release(uci_request_from_user(ret));
        return UCS_OK;
    }
    return UCS_PTR_STATUS(ret);
}

void uci_rma_probe(uci_peer_t *peer)
{
    static const ucp_request_param_t param;
    static const uci_rma_key_t key;
    uci_ep_t *ep = uci_peer_ep_staying(peer);
    uci_rma_out_t out;

    if (ep != NULL) {
        out = uci_rma_out(ep, UCI_RMA_PUT, 0, 0, &key, &param);
        (void)uci_rma_send_alone(&out, NULL, 0); /* without memory for it: the next time */
    }
}

static ucs_status_ptr_t uci_rma_put_here(const uci_rma_out_t *out, char *memory, const void *buffer, size_t count)
{
    ucp_datatype_t datatype = uci_buffer_datatype(out->param);
    ucs_status_t status     = UCS_OK;
    uci_buffer_t from;
    uint64_t value;

    if (uci_buffer_is_contig(datatype)) {
        uci_rma_store(memory, buffer, out->what.length);
    } else {
        status = uci_buffer_init_send(&from, buffer, count, datatype);
        if (status == UCS_OK) {
            status = uci_buffer_read(&from, 0, memory, from.length, &uci_digest_table[UCI_DIGEST_NONE], &value);
            uci_buffer_finish(&from);
        }
    }
    return (status == UCS_OK) ? uci_request_immediate(out->ep->peer->worker, out->param) : UCS_STATUS_PTR(status);
}

/* As many operations as pieces, which are copies */
static ucs_status_t uci_rma_put_pieces(uci_rma_out_t *out, const char *data, size_t piece)
{
    size_t length = out->what.length, done;
    ucs_status_t status;

    for (done = 0; done < length; done += out->what.length) {
        out->what.length = uci_min(piece, length - done);
        status           = uci_rma_send_alone(out, data + done, out->what.length);
        if (status != UCS_OK) {
            return status;
        }
        out->what.address += out->what.length;
        out->what.number = out->ep->peer->rma.sent;
    }
    return UCS_OK;
}

static ucs_status_ptr_t uci_rma_put_by_message(uci_rma_out_t *out, const void *buffer, size_t count)
{
    size_t piece = uci_buffer_is_contig(uci_buffer_datatype(out->param))
                           ? uci_rma_piece(out->ep->peer, out->what.length, sizeof(out->what))
                           : 0;
    ucs_status_t status;

    if (piece == 0) {
        return uci_rma_send(out, 0, buffer, count, out->param);
    }
    status = uci_rma_put_pieces(out, buffer, piece);
    return (status == UCS_OK) ? uci_request_immediate(out->ep->peer->worker, out->param) : UCS_STATUS_PTR(status);
}

ucs_status_ptr_t uci_rma_put(uci_ep_t *ep, const void *buffer, size_t count, uint64_t address, const uci_rma_key_t *key,
                             const ucp_request_param_t *param)
{
    uci_rma_out_t out = uci_rma_out(ep, UCI_RMA_PUT, address, uci_buffer_known_length(buffer, count, param), key,
                                    param);
    ucs_status_t status;
    char *memory;

    if (out.what.length == 0) {
        return uci_request_immediate(ep->peer->worker, param);
    }
    status = uci_rma_check(&out);
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    memory = uci_rma_here(&out);
    if (memory != NULL) {
        UCI_STATS_INC(rma_memory);
        return uci_rma_put_here(&out, memory, buffer, count);
    }
    UCI_STATS_INC(put_sent);
    return uci_rma_put_by_message(&out, buffer, count);
}

/* -------------------------------------------------------------- fetching */

static void uci_rma_fetch_complete(uci_rma_fetch_t *fetch)
{
    uci_request_t *req  = fetch->req;
    ucs_status_t status = fetch->status;

    uci_list_del(&fetch->link);
    free(fetch);
    uci_request_complete(req, (status == UCS_OK) ? req->buffer.status : status);
}

/* In the order in which they were begun: behind a fence an atomic operation that is over tells that the get before it is (Open MPI's
 * MPI_Rget is made so) */
static void uci_rma_fetch_end(uci_rma_fetch_t *fetch, ucs_status_t status)
{
    uci_peer_t *peer = fetch->peer;

    fetch->over   = true;
    fetch->status = status;
    while (!uci_list_is_empty(&peer->rma.fetches)) {
        fetch = uci_container_of(peer->rma.fetches.next, uci_rma_fetch_t, link);
        /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        if (!fetch->over) {
            break;
        }
        uci_rma_fetch_complete(fetch);
    }
}

/* @param buffer  what is fetched goes there; it is the request's if this succeeds, and else the caller's. */
static ucs_status_ptr_t uci_rma_fetch(uci_rma_out_t *out, const uci_buffer_t *buffer, const void *operands,
                                      size_t operands_length)
{
    uci_peer_t *peer = out->ep->peer;
    uci_rma_fetch_t *fetch;
    uci_request_t *req;
    ucs_status_t status;

    if (out->param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    fetch = calloc(1, sizeof(*fetch));
    req   = uci_request_get(peer->worker, out->param);
    if ((fetch == NULL) || (req == NULL)) {
        uci_error("no memory for %s", uci_rma_names[out->what.kind]);
        status = UCS_ERR_NO_MEMORY;
        goto err_free;
    }
    out->what.fetch = 1;
    req->buffer     = *buffer;
    *fetch          = (uci_rma_fetch_t){.peer = peer, .what = out->what, .req = req};
    uci_list_add_tail(&peer->rma.fetches, &fetch->link);
    status = uci_rma_send_alone(out, operands, operands_length);
    if (status != UCS_OK) {
        uci_list_del(&fetch->link);
        goto err_free;
    }
    return uci_request_posted(req, out->param);

err_free:
    if (req != NULL) {
        uci_request_put(req);
    }
    free(fetch);
    return UCS_STATUS_PTR(status);
}

static ucs_status_ptr_t uci_rma_get_here(const uci_rma_out_t *out, const char *memory, uci_buffer_t *into)
{
    if (into->kind == UCI_BUFFER_CONTIG) {
        uci_rma_load(into->data, memory, into->length);
    } else {
        uci_buffer_store(into, 0, memory, into->length);
        uci_buffer_finish(into);
    }
    return uci_request_immediate(out->ep->peer->worker, out->param);
}

ucs_status_ptr_t uci_rma_get(uci_ep_t *ep, void *buffer, size_t count, uint64_t address, const uci_rma_key_t *key,
                             const ucp_request_param_t *param)
{
    uci_rma_out_t out = uci_rma_out(ep, UCI_RMA_GET, address, uci_buffer_known_length(buffer, count, param), key,
                                    param);
    ucs_status_t status;
    ucs_status_ptr_t ret;
    uci_buffer_t into;
    char *memory;

    if (out.what.length == 0) {
        return uci_request_immediate(ep->peer->worker, param);
    }
    status = uci_rma_check(&out);
    if (status == UCS_OK) {
        status = uci_buffer_init_recv(&into, buffer, count, uci_buffer_datatype(param));
    }
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    memory = uci_rma_here(&out);
    if (memory != NULL) {
        UCI_STATS_INC(rma_memory);
        return uci_rma_get_here(&out, memory, &into);
    }
    UCI_STATS_INC(get_sent);
    ret = uci_rma_fetch(&out, &into, NULL, 0);
    if (UCS_PTR_IS_ERR(ret)) {
        uci_buffer_finish(&into);
    }
    return ret;
}

/* --------------------------------------------------------------- atomics */

static const uint8_t uci_rma_ops[UCP_ATOMIC_OP_LAST] = {
        [UCP_ATOMIC_OP_ADD] = UCI_RMA_ADD, [UCP_ATOMIC_OP_SWAP] = UCI_RMA_SWAP, [UCP_ATOMIC_OP_CSWAP] = UCI_RMA_CSWAP,
        [UCP_ATOMIC_OP_AND] = UCI_RMA_AND, [UCP_ATOMIC_OP_OR] = UCI_RMA_OR,     [UCP_ATOMIC_OP_XOR] = UCI_RMA_XOR};

/* As UCX says it */
static ucs_status_t uci_rma_check_atomic(ucp_atomic_op_t op, size_t count, uint64_t address, size_t size,
                                         const void *reply)
{
    if ((count != 1) || ((size != sizeof(uint32_t)) && (size != sizeof(uint64_t))) || (address % size != 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (((unsigned)op >= UCP_ATOMIC_OP_LAST) ||
        ((reply == NULL) && ((op == UCP_ATOMIC_OP_SWAP) || (op == UCP_ATOMIC_OP_CSWAP)))) {
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

static ucs_status_ptr_t uci_rma_atomic_here(const uci_rma_out_t *out, char *memory, const void *operands, void *reply)
{
    char old[sizeof(uint64_t)];

    uci_rma_atomically((uci_rma_op_t)out->what.op, memory, out->what.length, operands, old);
    if (reply != NULL) {
        memcpy(reply, old, out->what.length);
    }
    return uci_request_immediate(out->ep->peer->worker, out->param);
}

static ucs_status_ptr_t uci_rma_atomic_out(uci_rma_out_t *out, const void *operands, void *reply)
{
    size_t length = uci_rma_operands((uci_rma_op_t)out->what.op, out->what.length);
    char *memory  = uci_rma_here(out);
    ucs_status_t status;
    uci_buffer_t into;

    if (memory != NULL) {
        UCI_STATS_INC(rma_memory);
        return uci_rma_atomic_here(out, memory, operands, reply);
    }
    UCI_STATS_INC(atomic_sent);
    if (reply != NULL) {
        uci_buffer_init_contig(&into, reply, out->what.length);
        return uci_rma_fetch(out, &into, operands, length);
    }
    status = uci_rma_send_alone(out, operands, length);
    return (status == UCS_OK) ? uci_request_immediate(out->ep->peer->worker, out->param) : UCS_STATUS_PTR(status);
}

ucs_status_ptr_t uci_rma_atomic(uci_ep_t *ep, ucp_atomic_op_t op, const void *buffer, size_t count, uint64_t address,
                                const uci_rma_key_t *key, const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);
    size_t size             = uci_buffer_is_contig(datatype) ? uci_buffer_contig_length(datatype, 1) : 0;
    void *reply             = (param->op_attr_mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) ? param->reply_buffer : NULL;
    uci_rma_out_t out       = uci_rma_out(ep, UCI_RMA_ATOMIC, address, size, key, param);
    ucs_status_t status;
    char operands[UCI_RMA_OPERANDS_MAX];

    status = uci_rma_check_atomic(op, count, address, size, reply);
    status = (status == UCS_OK) ? uci_rma_check(&out) : status;
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    out.what.op = uci_rma_ops[op];
    memcpy(operands, buffer, size);
    if (op == UCP_ATOMIC_OP_CSWAP) {
        memcpy(operands + size, reply, size);
    }
    return uci_rma_atomic_out(&out, operands, reply);
}

/* --------------------------------------------------------------- answers */

uint64_t uci_rma_settled(const uci_peer_t *peer)
{
    if (uci_list_is_empty(&peer->rma.fetches)) {
        return peer->rma.done;
    }
    return uci_min(peer->rma.done, uci_container_of(peer->rma.fetches.next, uci_rma_fetch_t, link)->what.number);
}

static uci_rma_fetch_t *uci_rma_fetch_find(uci_peer_t *peer, uint64_t number)
{
    uci_list_for_each(fetch, &peer->rma.fetches, uci_rma_fetch_t, link)
    {
        if (fetch->what.number == number) {
            return (fetch->replied || fetch->over) ? NULL : fetch;
        }
    }
    return NULL;
}

static void uci_rma_fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    uci_rma_fetch_t *fetch = arg;
    uci_peer_t *peer       = fetch->peer;

    uci_request_release(uci_request_from_user(request));
    if ((status == UCS_OK) && (peer != NULL) && (fetch->staging != NULL)) {
        uci_buffer_store(&fetch->req->buffer, 0, fetch->staging, length);
    }
    free(fetch->staging);
    if (peer == NULL) {
        free(fetch);
        return;
    }
    uci_rma_fetch_end(fetch, status);
    uci_rma_flush_go_on(peer);
}

/* A large one goes where it belongs, if that is contiguous */
static void uci_rma_fetch_large(uci_rma_fetch_t *fetch, void *desc, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv_am = uci_rma_fetched,
                                 .user_data  = fetch};
    char *place               = uci_buffer_direct(&fetch->req->buffer, 0, length);

    if (place == NULL) {
        place = fetch->staging = malloc(length);
    }
    fetch->replied = true;
    if ((place == NULL) || UCS_PTR_IS_ERR(uci_user_am_recv_data(fetch->peer->worker, desc, place, length, &param))) {
        uci_error("no memory for what is fetched from %s", uci_peer_name(fetch->peer));
        free(fetch->staging);
        uci_rma_fetch_end(fetch, UCS_ERR_NO_MEMORY);
    }
}

static void uci_rma_say_refused(const uci_peer_t *peer, uint32_t region, uint64_t owner, ucs_status_t status)
{
    uci_error("an operation with a key of region %u of owner %016lx was refused by %s: %s", region,
              (unsigned long)owner, uci_peer_name(peer), uci_ucp.status_string(status));
}

/* @return whether it is what is still missing of the fetch, or the next part of that */
static bool uci_rma_reply_can_be(const uci_rma_fetch_t *fetch, const uci_rma_reply_t *reply, size_t length, bool large)
{
    size_t missing;

    if ((fetch == NULL) || (reply->status != UCS_OK)) {
        return (fetch != NULL) && (reply->status < 0) && (reply->status >= UCS_ERR_LAST);
    }
    missing = fetch->req->buffer.length - fetch->got;
    return (reply->offset == fetch->got) && (length > 0) && (length <= missing) &&
           (!large || (length == fetch->req->buffer.length));
}

static void uci_rma_fetch_take(uci_rma_fetch_t *fetch, const void *data, size_t length)
{
    uci_buffer_store(&fetch->req->buffer, fetch->got, data, length);
    fetch->got += length;
    if (fetch->got == fetch->req->buffer.length) {
        uci_rma_fetch_end(fetch, UCS_OK);
    }
}

ucs_status_t uci_rma_reply_arrived(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param)
{
    bool large             = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    uci_peer_t *peer       = arg;
    uci_rma_fetch_t *fetch = NULL;
    uci_rma_reply_t reply;

    if (header_length == sizeof(reply)) {
        memcpy(&reply, header, sizeof(reply));
        fetch = uci_rma_fetch_find(peer, reply.number);
    }
    if ((fetch == NULL) && (header_length == sizeof(reply)) && (reply.number < peer->rma.given_up)) {
        return UCS_OK;
    }
    if (!uci_rma_reply_can_be(fetch, &reply, length, large)) {
        uci_wire_refuse(peer, "an answer to a get or an atomic operation", "that of none that waits for it");
        return UCS_OK;
    }
    if (reply.status != UCS_OK) {
        uci_rma_say_refused(peer, fetch->what.region, fetch->what.owner, (ucs_status_t)reply.status);
        uci_rma_fetch_end(fetch, (ucs_status_t)reply.status);
    } else if (large) {
        uci_rma_fetch_large(fetch, data, length);
    } else {
        uci_rma_fetch_take(fetch, data, length);
    }
    uci_rma_flush_go_on(peer);
    return UCS_OK;
}

static uci_rma_fetch_t *uci_rma_fetch_missed(uci_peer_t *peer)
{
    uci_list_for_each(fetch, &peer->rma.fetches, uci_rma_fetch_t, link)
    {
        if (fetch->what.number >= peer->rma.done) {
            break; /* they are in order, and may be many */
        }
        if (!fetch->replied && !fetch->over) {
            return fetch;
        }
    }
    return NULL;
}

/* Answers to these would have come before: they are lost, which the policy has reported */
static void uci_rma_miss(uci_peer_t *peer)
{
    uci_rma_fetch_t *fetch;

    while ((fetch = uci_rma_fetch_missed(peer)) != NULL) {
        uci_rma_fetch_end(fetch, UCS_ERR_IO_ERROR);
    }
}

ucs_status_t uci_rma_done_arrived(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                  const ucp_am_recv_param_t *param)
{
    uci_peer_t *peer    = arg;
    uci_rma_done_t said = {.executed = UINT64_MAX};

    if (header_length == sizeof(said)) {
        memcpy(&said, header, sizeof(said));
    }
    if ((said.executed > peer->rma.sent) || (said.failed > said.executed) ||
        ((said.failed != 0) != (said.status < 0)) || (said.status < UCS_ERR_LAST)) {
        uci_wire_refuse(peer, "what was done to memory", "more than it was asked for");
        return UCS_OK;
    }
    if (said.failed != 0) {
        uci_rma_say_refused(peer, said.region, said.owner, (ucs_status_t)said.status);
        peer->rma.status = (ucs_status_t)said.status;
    }
    peer->rma.done = uci_max(peer->rma.done, said.executed);
    uci_rma_miss(peer);
    uci_rma_flush_go_on(peer);
    return UCS_OK;
}

/* ---------------------------------------------------------------- fence */

void uci_rma_fence(uci_worker_t *worker)
{
    if (!worker->rma.used) {
        return;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uci_worker_for_each_peer(peer, worker)
    {
        peer->rma.fenced = peer->rma.sent;
    }
}

/* ------------------------------------------------------------------ end */

void uci_rma_fail(uci_peer_t *peer, ucs_status_t status)
{
    peer->rma.done = peer->rma.given_up = peer->rma.sent;
    uci_list_for_each_safe(fetch, &peer->rma.fetches, uci_rma_fetch_t, link)
    {
        if (fetch->over || !fetch->replied) { /* else it ends with its receive, which uses the program's memory */
            fetch->status = fetch->over ? fetch->status : status;
            uci_rma_fetch_complete(fetch);
        }
    }
    uci_rma_flush_fail(peer, status);
}

void uci_rma_fetch_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(fetch, &peer->rma.fetches, uci_rma_fetch_t, link)
    {
        uci_list_del(&fetch->link);
        fetch->peer = NULL;
        if (fetch->over || !fetch->replied) {
            free(fetch);
        }
    }
}
