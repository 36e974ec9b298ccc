/* SPDX-License-Identifier: BSD-3-Clause */
#include "repair.h"

#include <stdlib.h>

#include "base/damage.h"
#include "base/ask.h"
#include "link/link_recv.h"
#include "base/am_handler.h"
#include "link/control.h"
#include "descent.h"
#include "fetch.h"
#include "grant.h"
#include "util/log.h"
#include "util/process.h"
#include "recv_common.h"
#include "base/recv_table.h"
#include "report/report.h"
#include "send_common.h"
#include "settings/settings.h"
#include "live/stats.h"
#include "stream.h"
#include "base/wire_check.h"
#include "base/worker_lock.h"

#define UCI_REPAIR_COPY_ATTEMPTS 8

/* Times that a root that does not match is asked for again */
#define UCI_ROOT_ATTEMPTS 4

/* Questions one after the other whose answers arrived, and were damaged, or there was no memory for them. One that is not answered does not count: whoever is to answer
 * may compute for hours. */
#define UCI_REPAIR_REFUSED_LIMIT 64

/* So long after the last word of a sender that has closed all that it has left should be here */
#define UCI_REPAIR_GONE_NS 5000000000ul

/* What the sender has told before it was needed: where the whole message is, and the packed key to it */
typedef struct uci_repair_ahead {
    uint64_t address;
    uint32_t rkey_length;
    char rkey[];
} uci_repair_ahead_t;

void uci_repair_get_unpin(uci_recv_op_t *op)
{
    if (--op->way.gets > 0) {
        return;
    }
    if (op->repair.rkey != NULL) {
        uci_ucp.rkey_destroy(op->repair.rkey);
        op->repair.rkey = NULL;
    }
    if (op->way.ask_later) {
        op->way.ask_later = false;
        uci_ask_name(&op->ask);
        uci_control_ask_soon(op->peer->worker);
    }
}

/* ------------------------------------------------ receiver: bookkeeping */

void uci_repair_healed(uci_recv_op_t *op)
{
    if (uci_unlikely(op->repair.start_time != 0)) {
        uci_report_healed(op);
    }
}

ucs_status_t uci_repair_policy(void)
{
    switch (uci_settings.on_error) {
    case UCI_ON_ERROR_ABORT:
        uci_fatal("a message can't be delivered intact: the job stops here (UCI_ON_ERROR=abort)");
    case UCI_ON_ERROR_ERROR:
        return UCS_ERR_IO_ERROR;
    default:
        return UCS_OK;
    }
}

ucs_status_t uci_repair_policy_missing(const uci_request_t *req)
{
    ucs_status_t status = uci_repair_policy();
    bool is_handed_out  = (req->flags & (UCI_REQUEST_USER_AM | UCI_REQUEST_OWN)) != 0;

    return ((status == UCS_OK) && is_handed_out) ? UCS_ERR_IO_ERROR : status;
}

void uci_repair_blank(void *memory, size_t length)
{
    if (uci_unlikely(uci_settings.on_error == UCI_ON_ERROR_LOG)) {
        memset(memory, 0, length);
    }
}

void uci_repair_count_lost(void)
{
    UCI_STATS_INC(mismatched_chunks);
    UCI_STATS_INC(unrepaired_chunks);
}

void uci_repair_failed(uci_recv_op_t *op, uci_reason_t reason)
{
    bool is_here = (op->chunk.good + op->chunk.bad + op->chunk.landed == op->chunk.count);

    if (op->chunk.bad == 0) {
        uci_repair_count_lost(); /* none is known to be bad: something of it is */
    }
    UCI_STATS_ADD(unrepaired_chunks, op->chunk.bad); /* now: the process may end with the report, or by the policy */
    uci_report_failed(op, reason);
    op->chunk.bad = 0;
    uci_recv_op_abandon(op, is_here ? uci_repair_policy() : uci_repair_policy_missing(op->req));
}

/* --------------------------------------------------- receiver: requests */

/* Ask the sender for all chunks that are not good */
static void uci_repair_request(uci_recv_op_t *op, bool missing_too)
{
    uint32_t i, bad = 0, count = 0, want = uci_min(op->chunk.count - op->chunk.good, UCI_REPAIR_BATCH);
    uci_control_t *msg;
    uint32_t *indexes;

    msg = uci_control_get(op->peer, UCI_AM_REPAIR, op->seq, want * sizeof(*indexes));
    if (msg == NULL) {
        return;
    }
    indexes = (uint32_t *)(void *)msg->payload;
    for (i = 0; (i < op->chunk.count) && (count < want); ++i) {
        if ((op->chunk.state[i] == UCI_CHUNK_BAD) || (missing_too && (op->chunk.state[i] == UCI_CHUNK_MISSING))) {
            indexes[count++] = i;
            bad += (op->chunk.state[i] == UCI_CHUNK_BAD);
        }
    }
    /* a missing chunk may still be on its way by itself: the sender answers only for what it has sent */
    op->repair.awaiting    = (op->repair.rung == UCI_RUNG_GET) ? 1 : bad;
    op->repair.good_before = op->chunk.good;
    msg->length            = count * sizeof(*indexes);
    msg->hdr.length        = (uint32_t)msg->length;
    msg->hdr.op            = op->slot;
    msg->hdr.flags         = (op->repair.rung == UCI_RUNG_GET) ? UCI_AM_FLAG_GET : 0;
    uci_control_send(msg);
}

static bool uci_repair_get_ahead(uci_recv_op_t *op);

/* All chunks have been tried: take the next attempt, or the next rung */
static void uci_repair_advance(uci_recv_op_t *op)
{
    if (uci_settings.mode == UCI_MODE_DETECT) {
        uci_repair_failed(op, UCI_REASON_DETECT);
        return;
    }

    switch (op->repair.rung) {
    case UCI_RUNG_NONE:
        op->repair.rung     = op->peer->in_clear ? UCI_RUNG_GET : UCI_RUNG_COPY;
        op->repair.attempts = 1;
        if (uci_repair_get_ahead(op)) {
            return;
        }
        break;
    case UCI_RUNG_GET:
        if (op->chunk.good == op->repair.good_before) {
            op->repair.rung     = UCI_RUNG_COPY;
            op->repair.attempts = 1;
        }
        break;
    default:
        op->repair.attempts = (op->chunk.good == op->repair.good_before) ? op->repair.attempts + 1 : 1;
        if (op->repair.attempts > UCI_REPAIR_COPY_ATTEMPTS) {
            uci_repair_failed(op, UCI_REASON_EXHAUSTED);
            return;
        }
        break;
    }
    uci_repair_request(op, false);
}

static void uci_recv_op_ask_root(uci_recv_op_t *op)
{
    op->chunk.have_root = false;
    if (++op->repair.roots > UCI_ROOT_ATTEMPTS) {
        uci_repair_failed(op, UCI_REASON_ROOT);
        return;
    }
    uci_descent_start(op);
}

void uci_recv_op_advance(uci_recv_op_t *op)
{
    if ((op->way.gets > 0) || op->repair.descending) {
        return;
    }
    if ((op->chunk.good < op->chunk.count) && (op->repair.awaiting > 0)) {
        return;
    }
    if (op->chunk.good < op->chunk.count) {
        if ((op->chunk.bad > 0) && (op->chunk.good + op->chunk.bad == op->chunk.count)) {
            uci_repair_advance(op);
        }
        return;
    }

    if (op->chunk.tree != NULL) {
        if (!op->chunk.have_root) {
            uci_recv_op_ask_root(op);
            return;
        }
        if (uci_merkle_root(op->chunk.tree, (uint32_t)op->seq, op->length, op->chunk.size) != op->chunk.root) {
            UCI_STATS_INC(mismatched_roots);
            uci_recv_op_ask_root(op);
            return;
        }
    }
    uci_repair_healed(op);
    uci_recv_op_deliver(op);
}

/* @return whether it is given up, and gone */
static bool uci_repair_count_refused(uci_recv_op_t *op)
{
    bool starved = op->repair.starved;

    op->repair.refused += uci_ask_was_spoilt(&op->ask) || starved;
    op->repair.starved = false;
    if (op->repair.refused <= UCI_REPAIR_REFUSED_LIMIT) {
        return false;
    }
    uci_repair_failed(op, starved ? UCI_REASON_NO_MEMORY : UCI_REASON_ANSWERS_DAMAGED);
    return true;
}

void uci_repair_ask_again(uci_recv_op_t *op, bool damaged)
{
    uint64_t now = uci_process_time_ns();

    if (op->way.gets > 0) {
        op->way.ask_later = op->way.ask_later || damaged;
        uci_ask_heard(&op->ask, now);
        return;
    }
    if (op->peer->conversation.status != UCS_OK) {
        uci_recv_op_abandon(op, op->peer->conversation.status);
        return;
    }
    if (op->way.arrived != op->way.arrived_seen) {
        /* slow, not stuck; if something was dropped, look again when all else is in */
        op->way.arrived_seen = op->way.arrived;
        op->repair.asked     = 0;
        op->repair.refused   = op->repair.starved ? op->repair.refused : 0;
        if (!op->repair.starved || !uci_repair_count_refused(op)) {
            uci_ask_heard(&op->ask, now);
        }
        return;
    }

    if (op->peer->conversation.forced) {
        uci_recv_op_abandon(op, UCS_ERR_CONNECTION_RESET); /* as in UCX; nobody can serve it */
        return;
    }

    uci_ask_done(&op->ask, op->peer, now);
    if (uci_conversation_is_over(&op->peer->conversation, now, UCI_REPAIR_GONE_NS)) {
        uci_repair_failed(op, UCI_REASON_CLOSED);
        return;
    }
    ++op->repair.asked;
    op->repair.intact_before = op->peer->worker->talk.intact;
    if (uci_repair_count_refused(op)) {
        return;
    }
    if (op->repair.descending) {
        uci_descent_ask(op);
        return;
    }
    if (((op->chunk.good == op->chunk.count) || (op->chunk.landed > 0)) &&
        (op->chunk.good + op->chunk.bad + op->chunk.landed == op->chunk.count)) {
        uci_descent_start(op);
        return;
    }
    if (op->repair.rung == UCI_RUNG_NONE) {
        uci_recv_op_cts(op, UCI_AM_FLAG_REPAIR);
    }
    if ((op->repair.rung != UCI_RUNG_NONE) || damaged || op->way.pushed || (op->repair.asked > UCI_RECV_PATIENCE)) {
        uci_repair_request(op, op->repair.rung == UCI_RUNG_NONE);
    }
}

void uci_repair_ask_dropped(uci_peer_t *peer)
{
    if (uci_conversation_is_leaving(&peer->conversation)) {
        return; /* it asks, and sends unasked what it is not answered about */
    }
    uci_list_for_each_safe(op, &peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if (op->peer == peer) {
            op->way.arrived_seen = op->way.arrived; /* it does not matter that the rest was on its way */
            uci_repair_ask_again(op, true);
        }
    }
}

/* What is left of a frame that is lost has to be one */
static const char *uci_repair_check_gone(const uci_am_t *am)
{
    uint64_t what         = am->hdr->extra;
    uci_frame_hdr_t frame = {.kind = (uint8_t)what, .digest = (uint8_t)(what >> 8), .length = (uint16_t)(what >> 16)};

    return (am->hdr->flags & UCI_AM_FLAG_FRAME) ? uci_wire_check_frame(&frame) : NULL;
}

static void uci_repair_on_gone(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_recv_op_t *op       = uci_recv_op_of(am);

    if (hdr->flags & UCI_AM_FLAG_FRAME) {
        uci_link_on_gone(am->peer, am->seq, hdr);
    } else if ((op == NULL) || (op->way.gets > 0)) {
        return;
    } else if (hdr->flags & UCI_AM_FLAG_GIVEN_UP) { /* as UCX says it of who closes by force */
        uci_recv_op_abandon(op, UCS_ERR_CONNECTION_RESET);
    } else {
        uci_repair_failed(op, (hdr->flags & UCI_AM_FLAG_DAMAGED) ? UCI_REASON_COPY_DAMAGED : UCI_REASON_NO_COPY);
    }
}

UCI_AM_HANDLER(GONE, 8, "S: no intact copy left; with FRAME what it was", "",
               "none: R does as UCI_ON_ERROR says; with GIVEN_UP its receive ends as one that was reset",
               "R asks again", .flags = UCI_AM_FLAG_DAMAGED | UCI_AM_FLAG_FRAME | UCI_AM_FLAG_GIVEN_UP, .grain = 1,
               .about = UCI_AM_ABOUT_RECV, .check = uci_repair_check_gone, .take = uci_repair_on_gone);

/* -------------------------------------------------------- receiver: get */

typedef struct uci_repair_get {
    uci_recv_op_t *op; /* uci_fetch_t */
    uint32_t index;
    uint32_t length;
    uint64_t value;
    bool fresh;   /* value is of the source as it is now, not as it was sent first */
    bool changed; /* and these differ */
    void *target;
    void *staging; /* freed when done; NULL: straight into the user's buffer */
} uci_repair_get_t;

_Static_assert(offsetof(uci_repair_get_t, op) == offsetof(uci_fetch_t, op), "it begins as a fetch");

/* Something else was faster, and what it brought may have been overwritten by this: by what had come of it, if it failed */
static void uci_repair_get_look(const uci_repair_get_t *get)
{
    if (get->staging == NULL) {
        uci_recv_op_chunk_torn(get->op, get->index, get->target, get->length);
    }
}

static void uci_repair_get_verify(uci_repair_get_t *get)
{
    uci_recv_op_t *op = get->op;
    uint64_t value;

    if (op->chunk.state[get->index] != UCI_CHUNK_BAD) {
        uci_repair_get_look(get);
        return;
    }
    value                          = (get->staging == NULL) ? op->chunk.digest->digest(get->target, get->length)
                                                            : uci_buffer_write(op->buffer, (uint64_t)get->index * op->chunk.size, get->staging,
                                                                               get->length, op->chunk.digest, get->value);
    op->chunk.expected[get->index] = get->value;
    if (value == get->value) {
        uci_recv_op_chunk_good(op, get->index, value, UCI_RUNG_GET, get->changed);
    } else if (get->fresh) {
        ++op->repair.gets_wrong;
        UCI_STATS_INC(mismatched_gets);
        op->get_same |= uci_report_is_same(op, get->index, get->target, get->length);
        if (op->wrong_gets.count == 0) {
            uci_damages_keep(&op->wrong_gets, get->index, UCI_WAY_GET, get->target, get->length);
        }
    }
}

static void uci_repair_get_done(uci_repair_get_t *get, ucs_status_t status)
{
    uci_recv_op_t *op = get->op;

    if (status == UCS_OK) {
        uci_repair_get_verify(get);
    } else {
        uci_info("get of chunk %u from %s failed: %s", get->index, uci_peer_name(op->peer),
                 uci_ucp.status_string(status));
        uci_repair_get_look(get);
    }
    free(get->staging);
    free(get);
    uci_repair_get_unpin(op);
}

void uci_fetch_chunk_done(void *request, ucs_status_t status, void *user_data)
{
    uci_repair_get_t *get = user_data;
    uci_recv_op_t *op     = get->op;
    uci_worker_t *worker  = op->peer->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_repair_get_done(get, status);
    uci_recv_op_advance(op);
    uci_worker_leave(worker);
}

static uci_repair_get_t *uci_repair_get_create(uci_recv_op_t *op, const uci_am_grant_entry_t *entry)
{
    uci_repair_get_t *get = uci_recv_op_collect(op) ? calloc(1, sizeof(*get)) : NULL;

    if (get == NULL) {
        return NULL;
    }
    get->op     = op;
    get->index  = entry->index;
    get->length = uci_chunk_length(op->length, op->chunk.size, entry->index);
    get->value  = entry->value;
    get->target = uci_buffer_target(op->buffer, (uint64_t)entry->index * op->chunk.size, get->length, &get->staging);
    if (get->target == NULL) {
        free(get);
        return NULL;
    }
    return get;
}

static void uci_repair_get_start(uci_recv_op_t *op, ucp_ep_h ep, const uci_am_grant_entry_t *entry, bool fresh)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_fetch_chunk_done};
    ucs_status_ptr_t request;
    uci_repair_get_t *get;

    if (op->chunk.state[entry->index] != UCI_CHUNK_BAD) {
        return;
    }
    if (!uci_wire_is_reachable(op->repair.rkey, entry->address,
                               uci_chunk_length(op->length, op->chunk.size, entry->index))) {
        uci_wire_refuse(op->peer, "GRANT", "that chunks are where its memory is not");
        return;
    }
    get = uci_repair_get_create(op, entry);
    if (get == NULL) {
        return;
    }

    ++op->way.gets;
    get->fresh   = fresh;
    get->changed = (entry->changed != 0);
    op->repair.told_changed |= get->changed;
    param.user_data = get;
    request         = uci_ucp.get_nbx(ep, get->target, get->length, entry->address, op->repair.rkey, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_repair_get_done(get, UCS_PTR_STATUS(request));
    }
}

/* Read all bad chunks by what was told ahead, without a word to the sender. They are compared with the digests that
 * came with them; if those were wrong, or the source has changed since, the sender is asked afterwards.
 * @return false: that is not possible, and the operation is as before. */
static bool uci_repair_get_ahead(uci_recv_op_t *op)
{
    ucp_ep_h ep                = (op->repair.ahead != NULL) ? uci_peer_endpoint_whole(op->peer) : NULL;
    uci_am_grant_entry_t entry = {0};

    if ((ep == NULL) || (uci_wire_unpack_key(op->peer, ep, op->repair.ahead->rkey, op->repair.ahead->rkey_length,
                                             &op->repair.rkey) != UCS_OK)) {
        return false;
    }
    op->repair.good_before = UINT32_MAX; /* whatever comes of it, the next attempt is a get as well */
    op->repair.awaiting    = 0;
    ++op->way.gets; /* keeps the operation while gets complete at once */
    for (entry.index = 0; entry.index < op->chunk.count; ++entry.index) {
        entry.address = op->repair.ahead->address + ((uint64_t)entry.index * op->chunk.size);
        entry.value   = op->chunk.expected[entry.index];
        uci_repair_get_start(op, ep, &entry, false);
    }
    uci_repair_get_unpin(op);
    uci_recv_op_advance(op);
    return true;
}

/* @a data: the entry of chunk 0, then the key */
static void uci_repair_keep_ahead(uci_recv_op_t *op, const uci_am_grant_entry_t *entry, uint32_t rkey_length)
{
    if (op->repair.ahead != NULL) {
        return;
    }
    op->repair.ahead = malloc(sizeof(*op->repair.ahead) + rkey_length);
    if (op->repair.ahead != NULL) {
        op->repair.ahead->address     = entry->address;
        op->repair.ahead->rkey_length = rkey_length;
        memcpy(op->repair.ahead->rkey, entry + 1, rkey_length);
    }
}

static const char *uci_repair_check_grant(const uci_am_t *am)
{
    const uci_am_grant_t *grant = am->data;

    if (am->length != sizeof(*grant) + (grant->count * sizeof(uci_am_grant_entry_t)) + grant->rkey_length) {
        return "another number of entries than it has";
    }
    return ((am->hdr->flags & UCI_AM_FLAG_AHEAD) && ((grant->count != 1) || (grant->rkey_length == 0)))
                   ? "where it is with no, or more than one, place"
                   : NULL;
}

static const char *uci_repair_check_entries(const uci_recv_op_t *op, const uci_am_t *am)
{
    const uci_am_grant_t *grant         = am->data;
    const uci_am_grant_entry_t *entries = (const uci_am_grant_entry_t *)(const void *)(grant + 1);
    uint32_t i;

    for (i = 0; (i < grant->count) && !(am->hdr->flags & UCI_AM_FLAG_AHEAD); ++i) {
        if ((entries[i].index >= op->chunk.count) || ((i > 0) && (entries[i].index <= entries[i - 1].index))) {
            return "where chunks are that the message does not have, or one of them twice";
        }
    }
    return NULL;
}

static void uci_repair_on_grant(uci_am_t *am)
{
    uci_recv_op_t *op                   = uci_recv_op_of(am);
    const uci_am_grant_t *grant         = am->data;
    const uci_am_grant_entry_t *entries = (const uci_am_grant_entry_t *)(const void *)(grant + 1);
    ucp_ep_h ep                         = uci_peer_endpoint_whole(am->peer);
    uint32_t i;

    if (op == NULL) {
        return;
    }
    if (am->hdr->flags & UCI_AM_FLAG_AHEAD) {
        uci_repair_keep_ahead(op, entries, grant->rkey_length);
        return;
    }
    if ((op->repair.rung != UCI_RUNG_GET) || (op->way.gets > 0)) {
        return;
    }

    op->chunk.root      = grant->root;
    op->chunk.have_root = true;
    op->repair.awaiting = 0;
    ++op->way.gets; /* keeps the operation while gets complete at once */
    if ((grant->rkey_length > 0) && (ep != NULL) && (op->repair.rkey == NULL) &&
        (uci_wire_unpack_key(op->peer, ep, entries + grant->count, grant->rkey_length, &op->repair.rkey) == UCS_OK)) {
        for (i = 0; i < grant->count; ++i) {
            uci_repair_get_start(op, ep, &entries[i], true);
        }
    }
    uci_repair_get_unpin(op);
    /* if none was started, no chunk got better: the next rung is taken */
    uci_recv_op_advance(op);
}

UCI_AM_HANDLER(GRANT, 7, "S: where to get them; with AHEAD unasked, after CTS", "entries, rkey",
               "R reads by `ucp_get_nbx`", "R asks again; AHEAD: R asks with REPAIR", .flags = UCI_AM_FLAG_AHEAD,
               .min   = sizeof(uci_am_grant_t),
               .max   = sizeof(uci_am_grant_t) + (UCI_REPAIR_BATCH * sizeof(uci_am_grant_entry_t)) + UCI_WIRE_KEY_MAX,
               .grain = 1, .about = UCI_AM_ABOUT_RECV, .in_clear = true, .hit = UCI_AM_HIT(REPAIR),
               .check = uci_repair_check_grant, .check_recv = uci_repair_check_entries, .take = uci_repair_on_grant);

/* ------------------------------------------------- sender: what is asked */

/* What is not sent for lack of memory is asked for again */
static void uci_repair_copy(uci_send_op_t *op, const uint32_t *indexes, uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count; ++i) {
        /* those not sent yet are on their way */
        if (indexes[i] < op->chunk.next) {
            uci_stream_again(op, indexes[i]);
        }
    }
}

void uci_repair_answer(uci_send_op_t *op, const uci_am_hdr_t *hdr, const uint32_t *indexes, uint32_t count)
{
    ucs_status_t status = uci_send_op_settle(op);

    op->way.remote_op = hdr->op;
    if (status != UCS_OK) {
        if (status != UCS_ERR_NO_MEMORY) {
            uci_send_op_fail(op, status);
        }
        return; /* or the receiver asks again */
    }
    if ((hdr->flags & UCI_AM_FLAG_GET) && op->peer->in_clear &&
        (uci_merkle_leaves_set(op->chunk.tree) == op->chunk.count)) {
        uci_grant_chunks(op, indexes, count);
    } else {
        uci_repair_copy(op, indexes, count);
    }
}

/* While chunks come in, or have had no time to, it is slow: asked for now, those on their way would come twice. UCX loses nothing,
 * so that what is missing was dropped by us, or never sent for lack of memory. */
static bool uci_repair_is_stuck(const uci_recv_op_t *op)
{
    const uci_worker_t *worker = op->peer->worker;

    return (op->way.arrived == op->way.arrived_seen) &&
           (uci_process_time_ns() >= op->ask.time + uci_ask_delay(worker)) &&
           (op->way.pushed || (worker->talk.dropped != op->repair.dropped_before) ||
            (op->repair.asked >= UCI_RECV_PATIENCE));
}

void uci_repair_hear_query(uci_recv_op_t *op)
{
    bool stuck = uci_repair_is_stuck(op);

    uci_ask_hint(&op->ask);
    if (uci_process_time_ns() >= uci_ask_time(&op->ask, op->peer)) {
        uci_repair_ask_again(op, stuck);
    } else {
        uci_control_ask_soon(op->peer->worker);
    }
}
