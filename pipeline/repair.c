/* SPDX-License-Identifier: BSD-3-Clause */
#include "repair.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "descent.h"
#include "fault.h"
#include "inject.h"
#include "log.h"
#include "process.h"
#include "report.h"
#include "send.h"
#include "settings.h"
#include "source.h"
#include "stats.h"
#include "txlog.h"
#include "wire_check.h"

#define UCI_REPAIR_COPY_ATTEMPTS 8

/* Copies of a message, at most, that its receiver may read from memory of ours */
#define UCI_REPAIR_STAGED 8

/* Questions one after the other whose answers arrived, and were damaged. One that is not answered does not count: whoever is to answer
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
    if (--op->gets > 0) {
        return;
    }
    if (op->rkey != NULL) {
        uci_ucp.rkey_destroy(op->rkey);
        op->rkey = NULL;
    }
    if (op->ask_later) {
        op->ask_later = false;
        uci_control_ask_soon(op->peer->worker);
    }
}

/* ------------------------------------------------ receiver: bookkeeping */

void uci_repair_chunk_bad(uci_recv_op_t *op, uint32_t index, uint64_t expected, const void *data, size_t length)
{
    if (op->state[index] != UCI_CHUNK_BAD) {
        UCI_STATS_INC(mismatched_chunks);
        op->landed -= (op->state[index] == UCI_CHUNK_LANDED);
        op->state[index] = UCI_CHUNK_BAD;
        ++op->bad;
        if (op->start_time == 0) {
            op->start_time = uci_process_time_ns();
        }
        uci_report_keep_damage(op, index, data, length);
    }
    op->expected[index] = expected;
}

static void uci_repair_count_healed(uci_recv_op_t *op, uci_rung_t rung)
{
    ++op->repaired;
    UCI_STATS_INC(repaired_chunks);
    switch (rung) {
    case UCI_RUNG_GET:
        UCI_STATS_INC(repaired_by_get);
        break;
    case UCI_RUNG_COPY:
        UCI_STATS_INC(repaired_by_copy);
        break;
    default:
        return; /* the first transfer, which came after all */
    }
    op->healed_by = rung;
}

void uci_repair_chunk_healed(uci_recv_op_t *op, uint32_t index, uci_rung_t rung, bool changed)
{
    if (rung != UCI_RUNG_NONE) {
        UCI_STATS_ADD(retransmitted_bytes, uci_chunk_length(op->length, op->chunk_size, index));
    }
    if (op->state[index] != UCI_CHUNK_BAD) {
        if (!changed && (op->peer->worker->dropped == op->dropped_before)) {
            return; /* asked for again because it was late, not because anything was damaged */
        }
        /* its header was damaged, so that nobody knew whose it was; or it is not what it was when it was sent first */
        UCI_STATS_INC(mismatched_chunks);
        if (op->start_time == 0) {
            op->start_time = uci_process_time_ns();
        }
    }
    if (changed) {
        ++op->changed;
        UCI_STATS_INC(source_changed);
        return;
    }
    uci_repair_count_healed(op, rung);
    uci_report_chunk_healed(op, index);
}

void uci_repair_healed(uci_recv_op_t *op)
{
    if (uci_unlikely(op->start_time != 0)) {
        uci_report_healed(op);
    }
}

void uci_repair_cleanup(uci_recv_op_t *op)
{
    if (op->rkey != NULL) {
        uci_ucp.rkey_destroy(op->rkey);
        op->rkey = NULL;
    }
    free(op->ahead);
    op->ahead = NULL;
    uci_report_drop_damage(op);
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

void uci_repair_count_lost(void)
{
    UCI_STATS_INC(mismatched_chunks);
    UCI_STATS_INC(unrepaired_chunks);
}

void uci_repair_failed(uci_recv_op_t *op, const char *reason)
{
    if (op->bad == 0) {
        uci_repair_count_lost(); /* none is known to be bad: something of it is. Those that are count when it ends */
    }
    uci_report_failed(op, reason);
    uci_recv_op_abandon(op, uci_repair_policy());
}

/* --------------------------------------------------- receiver: requests */

/* Ask the sender for all chunks that are not good */
static void uci_repair_request(uci_recv_op_t *op, bool missing_too)
{
    uint32_t i, bad = 0, count = 0, want = uci_min(op->chunks - op->good, UCI_REPAIR_BATCH);
    uci_control_t *msg;
    uint32_t *indexes;

    msg = uci_control_get(op->peer, UCI_AM_REPAIR, op->seq, want * sizeof(*indexes));
    if (msg == NULL) {
        return;
    }
    indexes = (uint32_t *)(void *)msg->payload;
    for (i = 0; (i < op->chunks) && (count < want); ++i) {
        if ((op->state[i] == UCI_CHUNK_BAD) || (missing_too && (op->state[i] == UCI_CHUNK_MISSING))) {
            indexes[count++] = i;
            bad += (op->state[i] == UCI_CHUNK_BAD);
        }
    }
    /* a missing chunk may still be on its way by itself: the sender answers only for what it has sent */
    op->awaiting    = (op->rung == UCI_RUNG_GET) ? 1 : bad;
    op->good_before = op->good;
    msg->length     = count * sizeof(*indexes);
    msg->hdr.length = (uint32_t)msg->length;
    msg->hdr.op     = op->slot;
    msg->hdr.flags  = (op->rung == UCI_RUNG_GET) ? UCI_AM_FLAG_GET : 0;
    uci_control_send(msg);
}

static bool uci_repair_get_ahead(uci_recv_op_t *op);

void uci_repair_advance(uci_recv_op_t *op)
{
    if (uci_settings.mode == UCI_MODE_DETECT) {
        uci_repair_failed(op, "UCI_MODE=detect does not repair");
        return;
    }

    switch (op->rung) {
    case UCI_RUNG_NONE:
        op->rung     = UCI_RUNG_GET;
        op->attempts = 1;
        if (uci_repair_get_ahead(op)) {
            return;
        }
        break;
    case UCI_RUNG_GET:
        if (op->good == op->good_before) {
            op->rung     = UCI_RUNG_COPY;
            op->attempts = 1;
        }
        break;
    default:
        op->attempts = (op->good == op->good_before) ? op->attempts + 1 : 1;
        if (op->attempts > UCI_REPAIR_COPY_ATTEMPTS) {
            uci_repair_failed(op, "every way to fetch it again brought damaged bytes");
            return;
        }
        break;
    }
    uci_repair_request(op, false);
}

/* @return false: asking oneself was answered within the call, and has ended it */
static bool uci_repair_say_cts(uci_recv_op_t *op)
{
    uci_peer_t *peer = op->peer;
    uint32_t slot    = op->slot;
    uint32_t seq     = (uint32_t)op->seq;

    uci_recv_op_cts(op, UCI_AM_FLAG_REPAIR);
    return uci_recv_op_by_slot(peer->worker, slot, peer, seq) == op;
}

void uci_repair_ask_again(uci_recv_op_t *op, bool damaged)
{
    op->active_time = uci_process_time_ns();
    if (op->gets > 0) {
        op->ask_later = op->ask_later || damaged;
        return;
    }
    if (op->peer->status != UCS_OK) {
        uci_recv_op_abandon(op, op->peer->status);
        return;
    }
    if (op->arrived != op->arrived_seen) {
        /* slow, not stuck; if something was dropped, look again when all else is in */
        op->arrived_seen = op->arrived;
        op->asked        = 0;
        op->refused      = 0;
        if (damaged) {
            uci_control_ask_soon(op->peer->worker);
        }
        return;
    }

    if (op->peer->bye_heard && (op->peer->gone_time < op->active_time - uci_min(op->active_time, UCI_REPAIR_GONE_NS))) {
        uci_repair_failed(op, "its sender has closed, and what it has left here is not all of it");
        return;
    }
    ++op->asked;
    op->refused += op->answer_damaged;
    op->answer_damaged = false;
    op->intact_before  = op->peer->worker->intact;
    if (op->refused > UCI_REPAIR_REFUSED_LIMIT) {
        uci_repair_failed(op, "all answers of the sender arrive damaged");
        return;
    }
    if (op->descending) {
        uci_descent_ask(op);
        return;
    }
    if (((op->good == op->chunks) || (op->landed > 0)) && (op->good + op->bad + op->landed == op->chunks)) {
        uci_descent_start(op);
        return;
    }
    if ((op->rung == UCI_RUNG_NONE) && !uci_repair_say_cts(op)) {
        return;
    }
    if ((op->rung != UCI_RUNG_NONE) || damaged || (op->asked > UCI_RECV_PATIENCE)) {
        uci_repair_request(op, op->rung == UCI_RUNG_NONE);
    }
}

/* @return false: there was none left in this walk. An answer within the call may end others than the one that asked */
static bool uci_repair_ask_next_dropped(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;

    uci_list_for_each(op, &worker->recv_ops, uci_recv_op_t, link)
    {
        if ((op->peer == peer) && (op->walk != worker->walk)) {
            op->walk         = worker->walk;
            op->arrived_seen = op->arrived; /* it does not matter that the rest was on its way */
            uci_repair_ask_again(op, true);
            return true;
        }
    }
    return false;
}

void uci_repair_ask_dropped(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;

    if (peer->leaving) {
        return; /* it has handed over what it had */
    }
    ++worker->walk;
    while (uci_repair_ask_next_dropped(peer)) {
    }
}

void uci_repair_on_gone(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr)
{
    uci_recv_op_t *op = uci_recv_op_by_slot(peer->worker, hdr->op, peer, hdr->seq);

    if ((op != NULL) && (op->gets == 0)) {
        uci_repair_failed(op, (hdr->flags & UCI_AM_FLAG_DAMAGED)
                                      ? "the sender's copy is damaged as well, in the memory of its host"
                                      : "the sender has no copy of it any more (see UCI_LOG_SIZE)");
    }
}

/* -------------------------------------------------------- receiver: get */

typedef struct uci_repair_get {
    uci_recv_op_t *op;
    uint32_t index;
    uint32_t length;
    uint64_t value;
    bool fresh;   /* value is of the source as it is now, not as it was sent first */
    bool changed; /* and these differ */
    void *target;
    void *staging; /* freed when done; NULL: straight into the user's buffer */
} uci_repair_get_t;

static void uci_repair_get_verify(uci_repair_get_t *get)
{
    uci_recv_op_t *op = get->op;
    uint64_t value;
    uci_fault_t fault;

    if (uci_fault_targets(UCI_FAULT_REPAIR) &&
        uci_fault_draw(UCI_FAULT_REPAIR, op->length, uci_peer_rank(op->peer), &fault)) {
        uci_inject_bytes(&fault, get->target, get->length);
    }

    if (op->state[get->index] != UCI_CHUNK_BAD) {
        /* something else was faster, and what it brought may have been overwritten by this */
        if (get->staging == NULL) {
            uci_recv_op_chunk_landed(op, get->index, op->digest->digest(get->target, get->length));
        }
        return;
    }
    value                    = (get->staging == NULL) ? op->digest->digest(get->target, get->length)
                                                      : uci_buffer_write(op->buffer, (uint64_t)get->index * op->chunk_size, get->staging,
                                                                         get->length, op->digest, get->value);
    op->expected[get->index] = get->value;
    if (value == get->value) {
        uci_recv_op_chunk_good(op, get->index, value, UCI_RUNG_GET, get->changed);
    } else if (get->fresh) {
        ++op->gets_wrong;
        UCI_STATS_INC(mismatched_gets);
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
    }
    free(get->staging);
    free(get);
    uci_repair_get_unpin(op);
}

static void uci_repair_get_completed(void *request, ucs_status_t status, void *user_data)
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
    get->length = uci_chunk_length(op->length, op->chunk_size, entry->index);
    get->value  = entry->value;
    get->target = uci_buffer_target(op->buffer, (uint64_t)entry->index * op->chunk_size, get->length, &get->staging);
    if (get->target == NULL) {
        free(get);
        return NULL;
    }
    return get;
}

static void uci_repair_get_start(uci_recv_op_t *op, ucp_ep_h ep, const uci_am_grant_entry_t *entry, bool fresh)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_repair_get_completed};
    ucs_status_ptr_t request;
    uci_repair_get_t *get;

    if (op->state[entry->index] != UCI_CHUNK_BAD) {
        return;
    }
    if (!uci_wire_is_reachable(op->rkey, entry->address, uci_chunk_length(op->length, op->chunk_size, entry->index))) {
        uci_wire_refuse(op->peer, "GRANT", "that chunks are where its memory is not");
        return;
    }
    get = uci_repair_get_create(op, entry);
    if (get == NULL) {
        return;
    }

    ++op->gets;
    get->fresh      = fresh;
    get->changed    = (entry->changed != 0);
    param.user_data = get;
    request         = uci_ucp.get_nbx(ep, get->target, get->length, entry->address, op->rkey, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_repair_get_done(get, UCS_PTR_STATUS(request));
    }
}

/* Read all bad chunks by what was told ahead, without a word to the sender. They are compared with the digests that
 * came with them; if those were wrong, or the source has changed since, the sender is asked afterwards.
 * @return false: that is not possible, and the operation is as before. */
static bool uci_repair_get_ahead(uci_recv_op_t *op)
{
    ucp_ep_h ep                = (op->ahead != NULL) ? uci_peer_endpoint_whole(op->peer) : NULL;
    uci_am_grant_entry_t entry = {0};

    if ((ep == NULL) || (uci_wire_unpack_key(ep, op->ahead->rkey, op->ahead->rkey_length, &op->rkey) != UCS_OK)) {
        return false;
    }
    op->good_before = UINT32_MAX; /* whatever comes of it, the next attempt is a get as well */
    op->awaiting    = 0;
    ++op->gets; /* keeps the operation while gets complete at once */
    for (entry.index = 0; entry.index < op->chunks; ++entry.index) {
        entry.address = op->ahead->address + ((uint64_t)entry.index * op->chunk_size);
        entry.value   = op->expected[entry.index];
        uci_repair_get_start(op, ep, &entry, false);
    }
    uci_repair_get_unpin(op);
    uci_recv_op_advance(op);
    return true;
}

/* @a data: the entry of chunk 0, then the key */
static void uci_repair_keep_ahead(uci_recv_op_t *op, const uci_am_grant_entry_t *entry, uint32_t rkey_length)
{
    if (op->ahead != NULL) {
        return;
    }
    op->ahead = malloc(sizeof(*op->ahead) + rkey_length);
    if (op->ahead != NULL) {
        op->ahead->address     = entry->address;
        op->ahead->rkey_length = rkey_length;
        memcpy(op->ahead->rkey, entry + 1, rkey_length);
    }
}

void uci_repair_on_grant(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_recv_op_t *op                   = uci_recv_op_by_slot(peer->worker, hdr->op, peer, hdr->seq);
    const uci_am_grant_t *grant         = data;
    const uci_am_grant_entry_t *entries = (const uci_am_grant_entry_t *)(const void *)(grant + 1);
    ucp_ep_h ep                         = uci_peer_endpoint_whole(peer);
    uint32_t i;

    if (op == NULL) {
        return;
    }
    if (hdr->flags & UCI_AM_FLAG_AHEAD) {
        uci_repair_keep_ahead(op, entries, grant->rkey_length);
        return;
    }
    if ((op->rung != UCI_RUNG_GET) || (op->gets > 0)) {
        return;
    }

    op->root      = grant->root;
    op->have_root = true;
    op->awaiting  = 0;
    ++op->gets; /* keeps the operation while gets complete at once */
    if ((grant->rkey_length > 0) && (ep != NULL) && (op->rkey == NULL) &&
        (uci_wire_unpack_key(ep, entries + grant->count, grant->rkey_length, &op->rkey) == UCS_OK)) {
        for (i = 0; i < grant->count; ++i) {
            uci_repair_get_start(op, ep, &entries[i], true);
        }
    }
    uci_repair_get_unpin(op);
    /* if none was started, no chunk got better: the next rung is taken */
    uci_recv_op_advance(op);
}

/* ------------------------------------------------- sender: what is asked */

void uci_repair_send_gone(uci_peer_t *peer, uint64_t seq, uint32_t op, uint16_t flags)
{
    uci_control_send_simple(peer, UCI_AM_GONE, seq, op, flags);
}

/* Memory that a receiver has been told it may read. It may still do so when it asks again: all goes with FIN. */
typedef struct uci_repair_grant {
    uci_list_t link; /* in op->grants */
    ucp_mem_h memh;
    char *staging; /* memory of ours with copies of the chunks; NULL: the user's buffer */
    size_t length; /* of that */
} uci_repair_grant_t;

static void uci_repair_revoke_one(uci_send_op_t *op, uci_repair_grant_t *grant)
{
    uci_list_del(&grant->link);
    uci_ucp.mem_unmap(op->peer->worker->context->ucp, grant->memh);
    free(grant->staging);
    free(grant);
}

void uci_repair_revoke(uci_send_op_t *op)
{
    uci_list_for_each_safe(grant, &op->grants, uci_repair_grant_t, link)
    {
        uci_repair_revoke_one(op, grant);
    }
}

/* The grant of the user's buffer, if there is one */
static uci_repair_grant_t *uci_repair_find_in_place(uci_send_op_t *op)
{
    uci_list_for_each(grant, &op->grants, uci_repair_grant_t, link)
    {
        if (grant->staging == NULL) {
            return grant;
        }
    }
    return NULL;
}

/* May there be one more copy of so many bytes? A receiver that asks again and again is sent the chunks themselves. */
static bool uci_repair_may_stage(uci_send_op_t *op, size_t length)
{
    size_t sum = length;

    uci_list_for_each(grant, &op->grants, uci_repair_grant_t, link)
    {
        sum += grant->length;
    }
    return sum <= UCI_REPAIR_STAGED * uci_max(op->length, (uint64_t)op->chunk_size);
}

/* Map the user's buffer, once; or, not @a in_place, new memory for copies of @a count chunks */
static uci_repair_grant_t *uci_repair_map(uci_send_op_t *op, uint32_t count, bool in_place)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address    = op->buffer->data,
                                   .length     = in_place ? op->length : (size_t)count * op->chunk_size};
    uci_repair_grant_t *grant   = in_place ? uci_repair_find_in_place(op) : NULL;

    if (grant != NULL) {
        return grant;
    }
    grant = (in_place || uci_repair_may_stage(op, params.length)) ? calloc(1, sizeof(*grant)) : NULL;
    if (grant == NULL) {
        return NULL;
    }
    if (!in_place) {
        params.address = grant->staging = malloc(params.length);
        grant->length                   = params.length;
    }
    if ((params.address == NULL) ||
        (uci_ucp.mem_map(op->peer->worker->context->ucp, &params, &grant->memh) != UCS_OK)) {
        free(grant->staging);
        free(grant);
        return NULL;
    }
    uci_list_add_tail(&op->grants, &grant->link);
    return grant;
}

/* Digest a chunk again: the source may have changed. Packs it into @a packed if it is not contiguous.
 * @return false: this is UCI's own copy, and damaged. */
static bool uci_repair_grant_entry(uci_send_op_t *op, uint32_t index, char *packed, uci_am_grant_entry_t *entry)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk_size, index);
    uint64_t offset = (uint64_t)index * op->chunk_size;
    uci_source_t source;

    if (packed == NULL) {
        entry->address = (uintptr_t)uci_buffer_direct(op->buffer, offset, length);
        entry->value   = op->digest->digest((void *)entry->address, length);
    } else {
        entry->address = (uintptr_t)packed;
        entry->value   = uci_buffer_read(op->buffer, offset, packed, length, op->digest);
    }
    source         = uci_source_note(op, index, entry->value);
    entry->index   = index;
    entry->changed = (source == UCI_SOURCE_CHANGED);
    return source != UCI_SOURCE_DAMAGED;
}

/* Tell where the chunks are; without a key the receiver takes the next rung */
static void uci_repair_send_grant(uci_send_op_t *op, const uint32_t *indexes, uint32_t count, char *packed, bool stale,
                                  const void *rkey, size_t rkey_length)
{
    size_t entries_length = count * sizeof(uci_am_grant_entry_t);
    uci_am_grant_entry_t *entries;
    uci_am_grant_t *grant;
    uci_control_t *msg;
    bool intact = true;
    uint32_t i;

    msg = uci_control_get(op->peer, UCI_AM_GRANT, op->frame->seq, sizeof(*grant) + entries_length + rkey_length);
    if (msg == NULL) {
        return;
    }
    grant   = (uci_am_grant_t *)(void *)msg->payload;
    entries = (uci_am_grant_entry_t *)(void *)(grant + 1);
    if (rkey_length > 0) {
        for (i = 0; i < count; ++i) {
            intact &= uci_repair_grant_entry(
                    op, indexes[i], (packed == NULL) ? NULL : packed + ((size_t)i * op->chunk_size), &entries[i]);
        }
        memcpy((char *)entries + entries_length, rkey, rkey_length);
        if (uci_unlikely(stale)) {
            uci_inject_region(packed, (size_t)count * op->chunk_size);
        }
    }
    if (!intact) {
        uci_control_put(msg);
        uci_repair_send_gone(op->peer, op->frame->seq, op->remote_op, UCI_AM_FLAG_DAMAGED);
        return;
    }
    grant->count       = count;
    grant->rkey_length = (uint32_t)rkey_length;
    grant->root        = uci_merkle_root(op->tree, (uint32_t)op->frame->seq, op->length, op->chunk_size);
    msg->hdr.op        = op->remote_op;
    uci_control_send(msg);
}

static void uci_repair_grant(uci_send_op_t *op, const uint32_t *indexes, uint32_t count)
{
    bool stale                = uci_inject_region_draw(op);
    bool in_place             = (op->buffer->kind == UCI_BUFFER_CONTIG) && !stale;
    uci_repair_grant_t *grant = uci_repair_map(op, count, in_place);
    size_t rkey_length        = 0;
    void *rkey                = NULL;

    if ((grant == NULL) ||
        (uci_ucp.rkey_pack(op->peer->worker->context->ucp, grant->memh, &rkey, &rkey_length) != UCS_OK)) {
        uci_info("no remote access to this memory: the receiver will ask for a copy");
        if (stale) {
            uci_fault_undo();
        }
        uci_repair_send_grant(op, indexes, 0, NULL, false, NULL, 0);
        return;
    }
    uci_repair_send_grant(op, indexes, count, grant->staging, stale, rkey, rkey_length);
    uci_ucp.rkey_buffer_release(rkey);
}

/* UCX registers memory for writing, and complains on stderr where that is not allowed */
static bool uci_repair_is_writable(const void *address)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);

    return madvise((void *)((uintptr_t)address & ~(size - 1)), size, MADV_POPULATE_WRITE) == 0;
}

/* A wrong region: a copy of the message, with no byte as it was */
static void uci_repair_spoil(uci_send_op_t *op, char *memory)
{
    uci_buffer_read(op->buffer, 0, memory, op->length, &uci_digest_table[UCI_DIGEST_NONE]);
    uci_inject_region(memory, op->length);
}

void uci_repair_grant_ahead(uci_send_op_t *op)
{
    uci_am_grant_entry_t *entry;
    uci_repair_grant_t *grant;
    uci_control_t *msg;
    size_t length;
    void *rkey;
    bool stale;

    if (!op->peer->rdma || (op->chunks == 1) || (op->buffer->kind != UCI_BUFFER_CONTIG) ||
        (uci_settings.mode == UCI_MODE_DETECT) || !uci_repair_is_writable(op->buffer->data)) {
        return;
    }
    stale = uci_inject_region_draw(op);
    grant = uci_repair_map(op, op->chunks, !stale);
    if ((grant == NULL) || (uci_ucp.rkey_pack(op->peer->worker->context->ucp, grant->memh, &rkey, &length) != UCS_OK)) {
        return;
    }
    msg = uci_control_get(op->peer, UCI_AM_GRANT, op->frame->seq, sizeof(uci_am_grant_t) + sizeof(*entry) + length);
    if (msg != NULL) {
        entry = (uci_am_grant_entry_t *)(void *)(msg->payload + sizeof(uci_am_grant_t));
        *(uci_am_grant_t *)(void *)msg->payload = (uci_am_grant_t){.count = 1, .rkey_length = (uint32_t)length};
        *entry = (uci_am_grant_entry_t){.address = (uintptr_t)(stale ? grant->staging : op->buffer->data)};
        memcpy(entry + 1, rkey, length);
        if (stale) {
            uci_repair_spoil(op, grant->staging);
        }
        msg->hdr.op    = op->remote_op;
        msg->hdr.flags = UCI_AM_FLAG_AHEAD;
        uci_control_send(msg);
    }
    uci_ucp.rkey_buffer_release(rkey);
}

static void uci_repair_copy(uci_send_op_t *op, const uint32_t *indexes, uint32_t count)
{
    uint32_t i;

    uci_send_op_pin(op);
    for (i = 0; (i < count) && (op->state != UCI_SEND_DONE); ++i) {
        /* those not sent yet are on their way */
        if (indexes[i] < op->next) {
            uci_send_chunk(op, indexes[i], UCI_AM_FLAG_REPAIR);
        }
    }
    uci_send_op_unpin(op);
}

void uci_repair_answer(uci_send_op_t *op, const uci_am_hdr_t *hdr, const uint32_t *indexes, uint32_t count)
{
    op->remote_op = hdr->op;
    if (!uci_send_op_settle(op)) {
        return; /* the receiver asks again */
    }
    if ((hdr->flags & UCI_AM_FLAG_GET) && (uci_merkle_leaves_set(op->tree) == op->chunks)) {
        uci_repair_grant(op, indexes, count);
    } else {
        uci_repair_copy(op, indexes, count);
    }
}

uci_control_t *uci_repair_get_leaves(uci_send_op_t *op, uci_am_type_t type, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(op->peer, type, op->frame->seq, op->chunks * sizeof(uint64_t));
    uint64_t *leaves;
    uint32_t i;

    if (msg == NULL) {
        return NULL;
    }
    leaves = (uint64_t *)(void *)msg->payload;
    for (i = 0; i < op->chunks; ++i) {
        leaves[i] = uci_merkle_leaf(op->tree, i);
    }
    msg->hdr.op    = op->remote_op;
    msg->hdr.flags = flags;
    msg->hdr.extra = uci_merkle_root(op->tree, (uint32_t)op->frame->seq, op->length, op->chunk_size);
    if (uci_unlikely(uci_fault_enabled) && (flags & UCI_AM_FLAG_LAST)) {
        uci_inject_leaves(op, msg, op->chunks);
    }
    return msg;
}

void uci_repair_send_leaves(uci_send_op_t *op, uint16_t flags)
{
    uci_control_t *msg = uci_repair_get_leaves(op, UCI_AM_LEAVES, flags);

    if (msg != NULL) {
        uci_control_send(msg);
    }
}
