/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include <stdlib.h>

#include "base/damage.h"
#include "base/request.h"
#include "util/log.h"
#include "data/packer.h"
#include "report/report.h"
#include "live/stats.h"

/* Of a chunk that its program has changed (op->changed): what goes to the receiver */
enum {
    UCI_SOURCE_KEPT = 1, /* what was read first; the change was seen when it was copied */
    UCI_SOURCE_AGAIN     /* what is there now, with a word that it has changed */
};

static bool uci_source_has_changed(const uci_send_op_t *op, uint32_t index)
{
    return (op->chunk.changed != NULL) && (op->chunk.changed[index] != 0);
}

/* It stays marked: the receiver may have to be told several times */
static uci_source_t uci_source_change(uci_send_op_t *op, uint32_t index, uint64_t value, bool kept)
{
    if (op->chunk.changed == NULL) {
        op->chunk.changed = calloc(op->chunk.count, sizeof(*op->chunk.changed));
    }
    if (op->chunk.changed == NULL) {
        uci_error("failed to allocate the marks of %u changed chunks", op->chunk.count);
        return UCI_SOURCE_DAMAGED;
    }
    if (op->chunk.changed[index] == 0) {
        UCI_STATS_INC(source_changed_late);
    }
    op->chunk.changed[index] = kept ? UCI_SOURCE_KEPT : UCI_SOURCE_AGAIN;
    uci_merkle_set_leaf(op->chunk.tree, index, value);
    uci_report_source_changed(op, index, kept);
    return UCI_SOURCE_CHANGED;
}

/* What was seen to have changed when it was copied, and goes to the receiver after all */
static uci_source_t uci_source_same(uci_send_op_t *op, uint32_t index)
{
    if (uci_likely(!uci_source_has_changed(op, index))) {
        return UCI_SOURCE_SAME;
    }
    op->chunk.changed[index] = UCI_SOURCE_AGAIN;
    return UCI_SOURCE_CHANGED;
}

void uci_source_note_copy(uci_send_op_t *op, uint32_t index, uint64_t value)
{
    if (uci_merkle_has_leaf(op->chunk.tree, index) && (value != uci_merkle_leaf(op->chunk.tree, index))) {
        (void)uci_source_change(op, index, value, true);
        return;
    }
    uci_merkle_set_leaf(op->chunk.tree, index, value);
}

uci_source_t uci_source_note(uci_send_op_t *op, uint32_t index, uint64_t value)
{
    if (uci_likely(!uci_merkle_has_leaf(op->chunk.tree, index))) {
        uci_merkle_set_leaf(op->chunk.tree, index, value);
        return UCI_SOURCE_SAME;
    }
    if (uci_likely(value == uci_merkle_leaf(op->chunk.tree, index))) {
        return uci_source_same(op, index);
    }
    if (uci_source_is_own(op)) {
        uci_report_copy_damaged(op->peer, uci_frame_tag(op->frame),
                                uci_frame_is_user_am(uci_frame_hdr(op->frame)->kind), op->length);
        return UCI_SOURCE_DAMAGED;
    }
    return uci_source_change(op, index, value, false);
}

void uci_source_record(uci_send_op_t *op)
{
    uci_damages_t kept = {0};
    uint32_t i;

    for (i = 0; i < op->chunk.count; ++i) {
        if (op->chunk.changed[i] == UCI_SOURCE_KEPT) {
            uci_damages_keep(&kept, i, UCI_WAY_UNKNOWN, NULL, 0);
        }
    }
    if ((kept.count > 0) || (kept.left_out > 0)) {
        uci_report_source_kept(op, &kept);
    }
    uci_damages_drop(&kept);
}

/* Where uci_source_check() is */
typedef struct uci_source_scan {
    uci_send_op_t *op;
    uci_ordered_t ordered; /* packing of a generic datatype */
    char *packed;          /* room for one chunk of what is not contiguous */
    uci_damages_t changed;
} uci_source_scan_t;

/* What was sent: of a small synchronous send the frame's payload */
static bool uci_source_sent(const uci_send_op_t *op, uint32_t index, uint64_t *value_p)
{
    if (op->chunk.tree == NULL) {
        *value_p = uci_frame_hdr(op->frame)->value;
        return true;
    }
    *value_p = uci_merkle_leaf(op->chunk.tree, index);
    return uci_merkle_has_leaf(op->chunk.tree, index);
}

/* As it was made: a small synchronous send's covers the signature behind its payload, too (base/signed.h) */
static uint64_t uci_source_digest(const uci_send_op_t *op, const uci_digest_ops_t *with, const void *bytes,
                                  uint32_t length)
{
    uint32_t trailer = (op->chunk.tree == NULL) ? uci_frame_trailer(uci_frame_hdr(op->frame)->kind) : 0;
    uci_digest_stream_t stream;

    if (trailer == 0) {
        return with->digest(bytes, length);
    }
    with->init(&stream);
    with->update(&stream, NULL, bytes, length);
    with->update(&stream, NULL, uci_frame_payload(op->frame) + op->length, trailer);
    return with->final(&stream);
}

/* @return false: its packer does not give it */
static bool uci_source_now(uci_source_scan_t *scan, uint64_t offset, uint32_t length, uint64_t *value_p)
{
    uci_send_op_t *op            = scan->op;
    uci_buffer_t *buffer         = &op->req->buffer;
    const uci_digest_ops_t *with = (op->chunk.tree != NULL) ? op->chunk.digest
                                                            : uci_digest_by_id(uci_frame_hdr(op->frame)->digest);
    const void *direct           = uci_buffer_direct(buffer, offset, length);
    uci_border_t border;

    if (direct != NULL) {
        *value_p = uci_source_digest(op, with, direct, length);
        return true;
    }
    if (buffer->kind != UCI_BUFFER_GENERIC) {
        (void)uci_buffer_read_plain(buffer, offset, scan->packed, length, &uci_digest_table[UCI_DIGEST_NONE]);
        *value_p = uci_source_digest(op, with, scan->packed, length);
        return true;
    }
    if (uci_packer_pack_pieces(&scan->ordered, buffer, scan->packed, length, &border) != UCS_OK) {
        return false;
    }
    *value_p = uci_source_digest(op, with, scan->packed, length);
    return true;
}

/* @return false: that is not possible, of this chunk and of those behind it */
static bool uci_source_check_chunk(uci_source_scan_t *scan, uint32_t index, uint64_t offset, uint32_t length)
{
    uint64_t now, sent;

    if (!uci_source_now(scan, offset, length, &now)) { /* packed in order, whether needed or not */
        return false;
    }
    if (uci_source_sent(scan->op, index, &sent) && (now != sent)) {
        if (!uci_source_has_changed(scan->op, index)) {
            UCI_STATS_INC(source_changed_late);
        }
        uci_damages_keep(&scan->changed, index, UCI_WAY_UNKNOWN, NULL, 0);
    }
    return true;
}

void uci_source_check(uci_send_op_t *op)
{
    uint32_t chunk_size = (op->chunk.tree != NULL) ? op->chunk.size : (uint32_t)op->length;
    uint32_t i, chunks = (op->chunk.tree != NULL) ? op->chunk.count : 1;
    uci_source_scan_t scan = {.op = op};

    UCI_STATS_INC(sources_checked);
    if (op->req->buffer.kind != UCI_BUFFER_CONTIG) {
        scan.packed = malloc(uci_max(chunk_size, 1u));
        if (scan.packed == NULL) {
            uci_error("failed to allocate %u bytes to check a source (UCI_CHECK_SOURCES)", chunk_size);
            return;
        }
    }
    if (op->req->buffer.kind == UCI_BUFFER_GENERIC) {
        uci_buffer_rewind(&op->req->buffer);
    }
    for (i = 0; (i < chunks) &&
                uci_source_check_chunk(&scan, i, (uint64_t)i * chunk_size, uci_chunk_length(op->length, chunk_size, i));
         ++i) {
    }
    uci_ordered_cleanup(&scan.ordered);
    free(scan.packed);
    if ((scan.changed.count > 0) || (scan.changed.left_out > 0)) {
        uci_report_source_changed_late(op, &scan.changed);
    }
    uci_damages_drop(&scan.changed);
}
