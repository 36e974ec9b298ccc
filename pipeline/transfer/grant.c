/* SPDX-License-Identifier: BSD-3-Clause */
#include "grant.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/control.h"
#include "util/log.h"
#include "settings/settings.h"
#include "source.h"

/* Copies of a message, at most, that its receiver may read from memory of ours */
#define UCI_GRANT_STAGED 8

/* Memory that a receiver has been told it may read. It may still do so when it asks again: all goes with FIN. */
typedef struct uci_grant {
    uci_list_t link; /* in op->grants */
    ucp_mem_h memh;
    char *staging; /* memory of ours with copies of the chunks; NULL: the user's buffer */
    size_t length; /* of that */
} uci_grant_t;

static void uci_grant_revoke_one(uci_send_op_t *op, uci_grant_t *grant)
{
    uci_list_del(&grant->link);
    uci_ucp.mem_unmap(op->peer->worker->context->ucp, grant->memh);
    free(grant->staging);
    free(grant);
}

void uci_grant_revoke(uci_send_op_t *op)
{
    uci_list_for_each_safe(grant, &op->way.grants, uci_grant_t, link)
    {
        uci_grant_revoke_one(op, grant);
    }
}

/* The grant of the user's buffer, if there is one */
static uci_grant_t *uci_grant_find_in_place(uci_send_op_t *op)
{
    uci_list_for_each(grant, &op->way.grants, uci_grant_t, link)
    {
        if (grant->staging == NULL) {
            return grant;
        }
    }
    return NULL;
}

/* May there be one more copy of so many bytes? A receiver that asks again and again is sent the chunks themselves. */
static bool uci_grant_may_stage(uci_send_op_t *op, size_t length)
{
    size_t sum = length;

    uci_list_for_each(grant, &op->way.grants, uci_grant_t, link)
    {
        sum += grant->length;
    }
    return sum <= UCI_GRANT_STAGED * uci_max(op->length, (uint64_t)op->chunk.size);
}

/* Map the user's buffer, once; or, not @a in_place, new memory for copies of @a count chunks */
static uci_grant_t *uci_grant_map(uci_send_op_t *op, uint32_t count, bool in_place)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address    = op->buffer->data,
                                   .length     = in_place ? op->length : (size_t)count * op->chunk.size};
    uci_grant_t *grant          = in_place ? uci_grant_find_in_place(op) : NULL;

    if (grant != NULL) {
        return grant;
    }
    grant = (in_place || uci_grant_may_stage(op, params.length)) ? calloc(1, sizeof(*grant)) : NULL;
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
    uci_list_add_tail(&op->way.grants, &grant->link);
    return grant;
}

/* Digest a chunk again: the source may have changed. Packs it into @a packed if it is not contiguous.
 * @return false: this is UCI's own copy, and damaged. */
static bool uci_grant_entry(uci_send_op_t *op, uint32_t index, char *packed, uci_am_grant_entry_t *entry)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk.size, index);
    uint64_t offset = (uint64_t)index * op->chunk.size;
    uci_source_t source;

    if (packed == NULL) {
        entry->address = (uintptr_t)uci_buffer_direct(op->buffer, offset, length);
        entry->value   = op->chunk.digest->digest((void *)entry->address, length);
    } else {
        entry->address = (uintptr_t)packed;
        entry->value   = uci_buffer_read_plain(op->buffer, offset, packed, length, op->chunk.digest);
    }
    source         = uci_source_note(op, index, entry->value);
    entry->index   = index;
    entry->changed = (source == UCI_SOURCE_CHANGED);
    return source != UCI_SOURCE_DAMAGED;
}

/* Tell where the chunks are; without a key the receiver takes the next rung */
static void uci_grant_send(uci_send_op_t *op, const uint32_t *indexes, uint32_t count, char *packed, const void *rkey,
                           size_t rkey_length)
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
            intact &= uci_grant_entry(op, indexes[i], (packed == NULL) ? NULL : packed + ((size_t)i * op->chunk.size),
                                      &entries[i]);
        }
        memcpy((char *)entries + entries_length, rkey, rkey_length);
    }
    if (!intact) {
        uci_control_put(msg);
        uci_control_send_simple(op->peer, UCI_AM_GONE, op->frame->seq, op->way.remote_op, UCI_AM_FLAG_DAMAGED);
        return;
    }
    grant->count       = count;
    grant->rkey_length = (uint32_t)rkey_length;
    grant->root        = uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
    msg->hdr.op        = op->way.remote_op;
    uci_control_send(msg);
}

void uci_grant_chunks(uci_send_op_t *op, const uint32_t *indexes, uint32_t count)
{
    uci_grant_t *grant = uci_grant_map(op, count, op->buffer->kind == UCI_BUFFER_CONTIG);
    size_t rkey_length = 0;
    void *rkey         = NULL;

    if ((grant == NULL) ||
        (uci_ucp.rkey_pack(op->peer->worker->context->ucp, grant->memh, &rkey, &rkey_length) != UCS_OK)) {
        uci_info("no remote access to this memory: the receiver will ask for a copy");
        uci_grant_send(op, indexes, 0, NULL, NULL, 0);
        return;
    }
    uci_grant_send(op, indexes, count, grant->staging, rkey, rkey_length);
    uci_ucp.rkey_buffer_release(rkey);
}

/* UCX registers memory for writing, and complains on stderr where that is not allowed */
static bool uci_grant_is_writable(const void *address)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);

    return madvise((void *)((uintptr_t)address & ~(size - 1)), size, MADV_POPULATE_WRITE) == 0;
}

void uci_grant_ahead(uci_send_op_t *op)
{
    uci_am_grant_entry_t *entry;
    uci_grant_t *grant;
    uci_control_t *msg;
    size_t length;
    void *rkey;

    if (!op->peer->lanes.rdma || !op->peer->in_clear || (op->chunk.count == 1) ||
        (op->buffer->kind != UCI_BUFFER_CONTIG) || (uci_settings.mode == UCI_MODE_DETECT) ||
        !uci_grant_is_writable(op->buffer->data)) {
        return;
    }
    grant = uci_grant_map(op, op->chunk.count, true);
    if ((grant == NULL) || (uci_ucp.rkey_pack(op->peer->worker->context->ucp, grant->memh, &rkey, &length) != UCS_OK)) {
        return;
    }
    msg = uci_control_get(op->peer, UCI_AM_GRANT, op->frame->seq, sizeof(uci_am_grant_t) + sizeof(*entry) + length);
    if (msg != NULL) {
        entry = (uci_am_grant_entry_t *)(void *)(msg->payload + sizeof(uci_am_grant_t));
        *(uci_am_grant_t *)(void *)msg->payload = (uci_am_grant_t){.count = 1, .rkey_length = (uint32_t)length};
        *entry                                  = (uci_am_grant_entry_t){.address = (uintptr_t)op->buffer->data};
        memcpy(entry + 1, rkey, length);
        msg->hdr.op    = op->way.remote_op;
        msg->hdr.flags = UCI_AM_FLAG_AHEAD;
        uci_control_send(msg);
    }
    uci_ucp.rkey_buffer_release(rkey);
}
