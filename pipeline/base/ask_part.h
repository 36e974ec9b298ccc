/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of an operation of which nothing comes: ask.c writes it.
 */
#ifndef UCI_ASK_PART_H_
#define UCI_ASK_PART_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct uci_ask {
    uint64_t time;   /**< something came for it, or it was asked about, in ns */
    uint64_t wait;   /**< after the last question, in ns; 0: something has come since */
    uint64_t damage; /**< uci_ask_damage() when it was asked about */
    bool named;
    bool hinted; /**< the other side asks about it */
    bool spoilt; /**< something that was for it has come damaged since it was asked about */
    bool rough;  /**< something of it was damaged: silence is asked about as early as who is doubted */
} uci_ask_t;

#endif
