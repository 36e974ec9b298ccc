/* SPDX-License-Identifier: BSD-3-Clause */
#include "ordered.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

/* ---------------------------------------------------------------- sender */

/* As much as the packer likes. @return bytes packed. */
static size_t uci_ordered_pack_some(uci_ordered_t *ordered, const uci_buffer_t *buf, char *dst, size_t length)
{
    size_t part, done = 0;

    do {
        part = buf->generic->ops.pack(buf->state, ordered->offset, dst + done, length - done);
        ordered->offset += part;
        done += part;
    } while ((done < length) && (part > 0));
    return done;
}

/* The border cuts an element: pack it, and what follows, beside. @return bytes of it that belong before the border. */
static uint32_t uci_ordered_carry(uci_ordered_t *ordered, uci_buffer_t *buf, char *dst, size_t length)
{
    char around[UCI_CARRY_MAX];
    size_t packed = (length < UCI_CARRY_MAX)
                            ? uci_ordered_pack_some(ordered, buf, around,
                                                    uci_min(buf->length - ordered->offset, sizeof(around)))
                            : 0;

    if (packed < length) {
        memset(dst, 0, length); /* never what was there before */
        uci_error("a generic datatype does not pack the %zu bytes at offset %lu", length,
                  (unsigned long)ordered->offset);
        return 0;
    }
    memcpy(dst, around, length);
    ordered->carry_length = (uint32_t)(packed - length);
    memcpy(ordered->carry, around + length, ordered->carry_length);
    return (uint32_t)length;
}

uci_cut_t uci_ordered_pack(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length)
{
    uint32_t tail = 0, head = uci_min(ordered->carry_length, (uint32_t)length);
    char *next = (char *)dst + head;
    size_t done;

    memcpy(dst, ordered->carry, head);
    ordered->carry_length -= head;
    memmove(ordered->carry, ordered->carry + head, ordered->carry_length);

    length -= head;
    done = (length > 0) ? uci_ordered_pack_some(ordered, buf, next, length) : 0;
    if (done < length) {
        tail = uci_ordered_carry(ordered, buf, next + done, length - done);
    }
    return (uci_cut_t)(head | (tail << 8));
}

uci_cut_t uci_ordered_pack_shared(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length,
                                  const uci_digest_ops_t *digest, uint64_t *value_p)
{
    void *copy = malloc(uci_max(length, (size_t)1));
    uci_cut_t cut;

    if (copy == NULL) {
        uci_error("failed to allocate %zu bytes for a chunk", length);
        cut      = uci_ordered_pack(ordered, buf, dst, length);
        *value_p = digest->digest(dst, length);
        return cut;
    }
    cut      = uci_ordered_pack(ordered, buf, copy, length);
    *value_p = digest->copy(dst, copy, length);
    free(copy);
    return cut;
}

/* -------------------------------------------------------------- receiver */

static bool uci_ordered_unpack_at(const uci_buffer_t *buf, uint64_t offset, const char *src, size_t length)
{
    return (length == 0) || (buf->generic->ops.unpack(buf->state, offset, src, length) == UCS_OK);
}

bool uci_ordered_unpack(uci_ordered_t *ordered, uci_buffer_t *buf, const void *src, size_t length, uci_cut_t cut)
{
    uint32_t head = uci_cut_head(cut), tail = uci_cut_tail(cut);
    const char *middle     = (const char *)src + head;
    uint32_t around_length = ordered->carry_length + head;
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
