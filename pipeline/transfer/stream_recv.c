/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream_recv.h"

#include "base/unseen.h"
#include "link/control.h"
#include "recv_common.h"
#include "repair.h"

/* What a chunk says of the border behind it. One that comes again has no room to say: an element may be cut there, and an unpacker that
 * takes whole ones only need not say that it has left out a part of one */
static uci_border_t uci_recv_op_border(const uci_recv_op_t *op, const uci_am_hdr_t *hdr)
{
    if (hdr->index + 1 == op->chunk.count) {
        return 0;
    }
    return (hdr->flags & (UCI_AM_FLAG_LAST | UCI_AM_FLAG_FRAME)) ? UCI_BORDER_UNKNOWN : (uci_border_t)hdr->extra;
}

/* The next chunk of a generic datatype, if this is it */
static bool uci_recv_op_unpack_data(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_border_t behind = uci_recv_op_border(op, hdr);

    if (!uci_recv_op_unpack(op, hdr->index, data, length, hdr->value, uci_cut_between(op->border, behind))) {
        return false;
    }
    op->border = behind;
    return true;
}

/* Verify a chunk while it moves to where it belongs. @param value_p  its digest, not hdr->value if it is not whole.
 * @return false: no memory to collect it in. */
static bool uci_recv_op_store(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length,
                              uint64_t *value_p)
{
    bool is_whole = (length == hdr->length);

    *value_p = uci_likely(is_whole) ? hdr->value : ~hdr->value;
    if (uci_unlikely(op->buffer->kind == UCI_BUFFER_GENERIC)) {
        if (is_whole && uci_recv_op_unpack_data(op, hdr, data, length)) {
            return true;
        }
        if (!uci_recv_op_collect(op)) {
            return false;
        }
    }
    if (uci_likely(is_whole)) {
        *value_p = uci_buffer_write(op->buffer, (uint64_t)hdr->index * op->chunk.size, data, length, op->chunk.digest,
                                    hdr->value);
    }
    return true;
}

const char *uci_stream_check_chunk(const uci_recv_op_t *op, const uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;

    if ((hdr->index >= op->chunk.count) || (hdr->length != uci_chunk_length(op->length, op->chunk.size, hdr->index))) {
        return "a chunk that the message does not have";
    }
    return (hdr->digest == (uint8_t)op->chunk.digest->id) ? NULL : "another digest than the message has";
}

void uci_stream_take(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    bool again = (hdr->flags & UCI_AM_FLAG_REPAIR) != 0;
    uint64_t value;

    if ((hdr->flags & UCI_AM_FLAG_REPAIR) && (op->repair.awaiting > 0)) {
        --op->repair.awaiting;
    }
    if (op->chunk.state[hdr->index] == UCI_CHUNK_GOOD) {
        uci_unseen_pass(op->chunk.digest, data, length, hdr->value);
        return;
    }

    uci_control_heard(op);
    ++op->way.arrived;
    op->way.pushed |= (hdr->flags & UCI_AM_FLAG_HANDOVER) != 0;
    op->repair.told_changed |= (hdr->flags & UCI_AM_FLAG_CHANGED) != 0;
    uci_recv_op_learn_root(op, hdr);
    if (uci_unlikely(op->chunk.state[hdr->index] == UCI_CHUNK_LANDED)) {
        /* this copy tells whether it is needed */
        uci_recv_op_compare(op, hdr->index, op->chunk.expected[hdr->index], hdr->value);
        if (op->chunk.state[hdr->index] == UCI_CHUNK_GOOD) {
            uci_unseen_pass(op->chunk.digest, data, length, hdr->value);
            uci_recv_op_advance(op);
            return;
        }
    }
    data = uci_recv_op_own(op, data, length);
    if ((data == NULL) || !uci_recv_op_store(op, hdr, data, length, &value)) {
        return; /* it is asked for again, and given up at last */
    }
    if (uci_likely(value == hdr->value)) {
        uci_recv_op_chunk_good(op, hdr->index, value, again ? UCI_RUNG_COPY : UCI_RUNG_NONE,
                               (hdr->flags & UCI_AM_FLAG_CHANGED) != 0);
    } else {
        uci_recv_op_chunk_bad(op, hdr->index, UCI_WAY_STREAM, hdr->value, data, length);
    }
    uci_recv_op_advance(op);
}
