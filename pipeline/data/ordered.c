/* SPDX-License-Identifier: BSD-3-Clause */
#include "ordered.h"

#include <stdlib.h>
#include <string.h>

#include "util/log.h"

/* ---------------------------------------------------------------- sender */

ucs_status_t uci_ordered_pack_some(const uci_buffer_t *buf, size_t offset, char *dst, size_t length, size_t *done_p)
{
    size_t part, done = 0;

    do {
        part = buf->generic->ops.pack(buf->state, offset + done, dst + done, length - done);
        if (uci_unlikely(part > length - done)) {
            uci_error("a generic datatype has packed %zu bytes at offset %zu, where it was asked for %zu", part,
                      offset + done, length - done);
            return UCS_ERR_INVALID_PARAM;
        }
        done += part;
    } while ((done < length) && (part > 0));
    *done_p = done;
    return UCS_OK;
}

void uci_ordered_cleanup(uci_ordered_t *ordered)
{
    free(ordered->large);
    ordered->large = NULL;
}

/* Room for so many bytes in the carry, which keeps what it has. NULL: no memory (logged) */
static char *uci_ordered_make_room(uci_ordered_t *ordered, size_t size, size_t used)
{
    char *large;

    if (size <= UCI_CARRY_MAX) {
        return ordered->carry;
    }
    large = realloc(ordered->large, size);
    if (large == NULL) {
        uci_error("failed to allocate %zu bytes for an element of a generic datatype", size);
        return NULL;
    }
    if (ordered->large == NULL) {
        memcpy(large, ordered->carry, uci_min(used, sizeof(ordered->carry)));
    }
    ordered->large = large;
    return large;
}

/* At least `length` bytes into the carry, which is empty: with more and more room until an element fits */
static ucs_status_t uci_ordered_fill_carry(uci_ordered_t *ordered, const uci_buffer_t *buf, size_t length,
                                           char **carry_p)
{
    size_t left = buf->length - ordered->offset, room = UCI_CARRY_MAX, done = 0, part;
    ucs_status_t status;

    uci_ordered_cleanup(ordered); /* it may have been for a larger one */
    for (room = (length <= room) ? room : 2 * length;; room *= 4) {
        room     = uci_min(room, left);
        *carry_p = uci_ordered_make_room(ordered, room, done);
        if (*carry_p == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        status = uci_ordered_pack_some(buf, ordered->offset + done, *carry_p + done, room - done, &part);
        if (status != UCS_OK) {
            return status;
        }
        done += part;
        if (done >= length) {
            ordered->offset += done;
            ordered->carry_length = done;
            return UCS_OK;
        }
        if (room == left) {
            uci_error("a generic datatype packs %lu bytes, not %zu: the message can't be sent",
                      (unsigned long)(ordered->offset + done), buf->length);
            return UCS_ERR_INVALID_PARAM;
        }
    }
}

/* Out of the carry. @return how many bytes */
static size_t uci_ordered_take_carry(uci_ordered_t *ordered, const char *carry, char *dst, size_t length)
{
    length = uci_min(length, ordered->carry_length);
    memcpy(dst, carry + ordered->carry_at, length);
    ordered->carry_at += length;
    ordered->carry_length -= length;
    return length;
}

/* The border cuts an element: pack it, and what follows, beside */
static ucs_status_t uci_ordered_pack_border(uci_ordered_t *ordered, const uci_buffer_t *buf, char *dst, size_t length)
{
    ucs_status_t status;
    char *carry;

    status = uci_ordered_fill_carry(ordered, buf, length, &carry);
    if (status == UCS_OK) {
        ordered->carry_at = 0;
        uci_ordered_take_carry(ordered, carry, dst, length);
    }
    return status;
}

ucs_status_t uci_ordered_pack(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length, uci_cut_t *cut_p)
{
    const char *carry = (ordered->large != NULL) ? ordered->large : ordered->carry;
    uci_cut_t cut     = (ordered->carry_length <= length) ? uci_cut_part(ordered->carry_length) : UCI_CUT_LARGE;
    size_t done = 0, head = uci_ordered_take_carry(ordered, carry, dst, length);
    char *next          = (char *)dst + head;
    ucs_status_t status = UCS_OK;

    length -= head;
    if (length > 0) {
        status = uci_ordered_pack_some(buf, ordered->offset, next, length, &done);
    } else if (ordered->carry_length > 0) {
        cut = (uci_cut_t)(cut | (UCI_CUT_LARGE << 8)); /* all of it is from the middle of one element */
    }
    if (status != UCS_OK) {
        return status;
    }
    ordered->offset += done;
    if (done < length) {
        cut    = (uci_cut_t)(cut | (uci_cut_part(length - done) << 8));
        status = uci_ordered_pack_border(ordered, buf, next + done, length - done);
    }
    *cut_p = cut;
    return status;
}

ucs_status_t uci_ordered_pack_shared(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length,
                                     const uci_digest_ops_t *digest, uci_cut_t *cut_p, uint64_t *value_p)
{
    void *copy = malloc(uci_max(length, (size_t)1));
    ucs_status_t status;

    if (copy == NULL) {
        uci_error("failed to allocate %zu bytes for a chunk", length);
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_ordered_pack(ordered, buf, copy, length, cut_p);
    if (status == UCS_OK) {
        *value_p = digest->copy(dst, copy, length);
    }
    free(copy);
    return status;
}

/* -------------------------------------------------------------- receiver */

static bool uci_ordered_unpack_at(const uci_buffer_t *buf, uint64_t offset, const char *src, size_t length)
{
    return (length == 0) || (buf->generic->ops.unpack(buf->state, offset, src, length) == UCS_OK);
}

bool uci_ordered_unpack(uci_ordered_t *ordered, uci_buffer_t *buf, const void *src, size_t length, uci_cut_t cut)
{
    uint32_t head = uci_cut_head(cut), tail = uci_cut_tail(cut);
    const char *middle   = (const char *)src + head;
    size_t around_length = ordered->carry_length + head;
    char around[2 * UCI_CARRY_MAX];

    if ((head + tail > length) || (head >= UCI_CARRY_MAX) || (tail >= UCI_CARRY_MAX) ||
        ((head == 0) && (ordered->carry_length > 0))) {
        return false;
    }
    memcpy(around, ordered->carry, ordered->carry_length);
    memcpy(around + ordered->carry_length, src, head);
    if (!uci_ordered_unpack_at(buf, ordered->offset, around, around_length) ||
        !uci_ordered_unpack_at(buf, ordered->offset + around_length, middle, length - head - tail)) {
        return false;
    }
    ordered->offset += around_length + length - head - tail;
    ordered->carry_length = tail;
    memcpy(ordered->carry, middle + length - head - tail, tail);
    return true;
}
