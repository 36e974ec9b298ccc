/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What kind of corruption is this? Compares damaged bytes with the right ones, once a repair has brought them.
 */
#ifndef UCI_FORENSICS_H_
#define UCI_FORENSICS_H_

#include "util/types.h"

typedef enum {
    UCI_DAMAGE_UNKNOWN,       /**< no damaged copy was kept */
    UCI_DAMAGE_BIT_FLIP,      /**< a single bit */
    UCI_DAMAGE_BURST,         /**< within 64 bytes */
    UCI_DAMAGE_ZEROS,         /**< a run of zeros where other bytes belong */
    UCI_DAMAGE_TRUNCATED,     /**< the end is missing */
    UCI_DAMAGE_SHIFTED,       /**< the right bytes at another offset */
    UCI_DAMAGE_OTHER_CONTENT, /**< a block of other data: stale, swapped, or overwritten */
    UCI_DAMAGE_LAST
} uci_damage_class_t;

extern const char *const uci_damage_class_names[UCI_DAMAGE_LAST];

typedef struct uci_damage_diff {
    uci_damage_class_t damage;
    size_t first; /**< offset of the first wrong byte */
    size_t last;  /**< of the last one */
    size_t bytes; /**< wrong ones */
    size_t bits;  /**< wrong ones */
    long shift;   /**< SHIFTED: bad[i] == good[i + shift] */
} uci_damage_diff_t;

/**
 * Compare. @return false if the bytes are equal as far as both go and the lengths are the same.
 * Thread safe; at most a few passes over the data.
 */
bool uci_forensics_compare(const void *bad, size_t bad_length, const void *good, size_t good_length,
                           uci_damage_diff_t *diff_p);

/**
 * Where in @a whole are the bytes of @a part? What is all one value (zeros) is found nowhere: it would be everywhere.
 * @return true, and the first place in @a offset_p.
 */
bool uci_forensics_locate(const void *part, size_t part_length, const void *whole, size_t length, size_t *offset_p);

#endif
