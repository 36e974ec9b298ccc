/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Chunks of a message as they arrived damaged: damage.c writes it.
 */
#ifndef UCI_DAMAGE_PART_H_
#define UCI_DAMAGE_PART_H_

#include <stddef.h>
#include <stdint.h>

struct uci_damage;

/** The damaged chunks of a message, first come first; zeros are none. */
typedef struct uci_damages {
    struct uci_damage *first;
    struct uci_damage **last; /**< NULL: `first` is */
    uint32_t count;
    uint32_t left_out;
    size_t bytes;
} uci_damages_t;

#endif
