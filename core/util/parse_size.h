/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes as people write them: "64k", "1m", "8192". Read by settings, by the fault injector and by tools.
 */
#ifndef UCI_PARSE_SIZE_H_
#define UCI_PARSE_SIZE_H_

#include "types.h"

#define UCI_SIZE_AUTO SIZE_MAX /**< "auto": a size that is chosen later */

/**
 * Parse a size. Thread safe, keeps no memory of @a text.
 * @param text        a decimal number and its unit, nothing else: none or b, k/kb, m/mb, g/gb, in any case; powers of 1024.
 * @param allow_auto  whether "auto" is a size too.
 * @param size_p      bytes, or UCI_SIZE_AUTO; unchanged after an error.
 * @return UCI_OK, or UCI_ERR_INVALID_PARAM (not logged).
 */
uci_status_t uci_parse_size(const char *text, bool allow_auto, size_t *size_p);

/** Write a size as uci_parse_size() reads it, in the largest unit that it is a multiple of: "64k". @return @a text. */
const char *uci_size_text(size_t size, char text[24]);

#endif
