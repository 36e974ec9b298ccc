/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include <stdlib.h>

#include "log.h"
#include "report.h"

static bool uci_source_has_changed(const uci_send_op_t *op, uint32_t index)
{
    return (op->changed != NULL) && (op->changed[index] != 0);
}

/* It stays marked: the receiver may have to be told several times */
static uci_source_t uci_source_change(uci_send_op_t *op, uint32_t index, uint64_t value)
{
    if (op->changed == NULL) {
        op->changed = calloc(op->chunks, sizeof(*op->changed));
    }
    if (op->changed == NULL) {
        uci_error("failed to allocate the marks of %u changed chunks", op->chunks);
        return UCI_SOURCE_DAMAGED;
    }
    op->changed[index] = 1;
    uci_merkle_set_leaf(op->tree, index, value);
    uci_report_source_changed(op, index);
    return UCI_SOURCE_CHANGED;
}

uci_source_t uci_source_note(uci_send_op_t *op, uint32_t index, uint64_t value)
{
    if (uci_likely(!uci_merkle_has_leaf(op->tree, index))) {
        uci_merkle_set_leaf(op->tree, index, value);
        return UCI_SOURCE_SAME;
    }
    if (uci_likely(value == uci_merkle_leaf(op->tree, index))) {
        return uci_source_has_changed(op, index) ? UCI_SOURCE_CHANGED : UCI_SOURCE_SAME;
    }
    if (uci_source_is_own(op)) {
        uci_report_copy_damaged(op->peer, uci_frame_tag(op->frame), op->length);
        return UCI_SOURCE_DAMAGED;
    }
    return uci_source_change(op, index, value);
}
