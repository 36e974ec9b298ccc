/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What must hold of all that a parser has accepted: a fuzzer takes abort() for a find.
 */
#ifndef UCI_FUZZ_MUST_H_
#define UCI_FUZZ_MUST_H_

#include <stdlib.h>
#include <string.h>

/** A text that ends within @a size bytes, and can be shown as it is. */
static inline void must_be_printable(const char *text, size_t size)
{
    size_t i, length = strnlen(text, size);

    if (length == size) {
        abort();
    }
    for (i = 0; i < length; ++i) {
        if ((text[i] < ' ') || (text[i] > '~')) {
            abort();
        }
    }
}

#endif
