/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Chunks as they arrived damaged: kept until the right bytes are there, and then compared with them. Bounded, since a message may be
 * damaged as a whole: what is more is counted.
 */
#ifndef UCI_DAMAGE_H_
#define UCI_DAMAGE_H_

#include "damage_part.h"
#include "forensics/forensics.h"
#include "util/types.h"
#include "verdict.h"

/** Damaged chunks of a message that are kept, and bytes of all of them; with UCI_CAPTURE more bytes. */
#define UCI_DAMAGE_CHUNKS        64
#define UCI_DAMAGE_BYTES         (1ul << 20)
#define UCI_DAMAGE_BYTES_CAPTURE (64ul << 20)

/** Bytes of a chunk that are compared, unless there is UCI_CAPTURE. */
#define UCI_DAMAGE_KEEP (64ul << 10)

/** Bytes around the first difference that are shown, and how many of these come before it. */
#define UCI_DAMAGE_SHOWN  64
#define UCI_DAMAGE_BEFORE 16

typedef struct uci_damage {
    struct uci_damage *next;
    uint32_t index; /**< of the chunk */
    uci_way_t way;  /**< how it came */
    size_t length;  /**< bytes that arrived */
    size_t right;   /**< bytes that were sent, once `compared` */
    size_t kept;
    bool compared;
    bool equal; /**< `compared`, and all of it is right. (Of a part that was not kept nothing is known.) */
    uci_damage_diff_t diff;
    size_t shown, shown_from; /**< bytes in `bad` and `good`, and their offset in the chunk */
    char bad[UCI_DAMAGE_SHOWN];
    char good[UCI_DAMAGE_SHOWN];
    char capture[96]; /**< file with all of it, UCI_CAPTURE; or "" */
    char data[];
} uci_damage_t;

/** Keep a chunk. @param data  NULL: nobody has seen its bytes, only that it is wrong. */
void uci_damages_keep(uci_damages_t *damages, uint32_t index, uci_way_t way, const void *data, size_t length);

/** @return chunk @a index, if it is kept and has not been compared yet; or NULL. */
uci_damage_t *uci_damages_find(const uci_damages_t *damages, uint32_t index);

/** The right bytes are here. */
void uci_damage_compare(uci_damage_t *damage, const void *good, size_t length);

/** There are none: show what it begins with. */
void uci_damage_show(uci_damage_t *damage);

void uci_damages_drop(uci_damages_t *damages);

#endif
