/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of settings and of profiles, whatever the case of their letters.
 */
#ifndef UCI_WORD_H_
#define UCI_WORD_H_

#include "types.h"

UCI_INLINE char uci_word_lower(char letter)
{
    return ((letter >= 'A') && (letter <= 'Z')) ? (char)(letter - 'A' + 'a') : letter;
}

/** Are they the same? As strcasecmp(), but that a program's locale has no part in it: in a Turkish one 'I' is not 'i'. */
UCI_INLINE bool uci_word_is(const char *one, const char *other)
{
    while ((*one != '\0') && (uci_word_lower(*one) == uci_word_lower(*other))) {
        ++one;
        ++other;
    }
    return uci_word_lower(*one) == uci_word_lower(*other);
}

#endif
