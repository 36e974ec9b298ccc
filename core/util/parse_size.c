/* SPDX-License-Identifier: BSD-3-Clause */
#include "parse_size.h"
#include "word.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define UCI_SIZE_KB ((size_t)1 << 10)
#define UCI_SIZE_MB ((size_t)1 << 20)
#define UCI_SIZE_GB ((size_t)1 << 30)

/* @return the bytes of a unit, or 0 if there is none of this name */
static size_t uci_size_unit(const char *name)
{
    static const struct {
        const char *name;
        size_t bytes;
    } units[] = {{"", 1},
                 {"b", 1},
                 {"k", UCI_SIZE_KB},
                 {"kb", UCI_SIZE_KB},
                 {"m", UCI_SIZE_MB},
                 {"mb", UCI_SIZE_MB},
                 {"g", UCI_SIZE_GB},
                 {"gb", UCI_SIZE_GB}};
    size_t i;

    for (i = 0; i < uci_array_size(units); ++i) {
        if (uci_word_is(name, units[i].name)) {
            return units[i].bytes;
        }
    }
    return 0;
}

uci_status_t uci_parse_size(const char *text, bool allow_auto, size_t *size_p)
{
    unsigned long long number;
    size_t unit, size;
    char *end;

    if (allow_auto && uci_word_is(text, "auto")) {
        *size_p = UCI_SIZE_AUTO;
        return UCI_OK;
    }

    errno  = 0;
    number = strtoull(text, &end, 10);
    unit   = uci_size_unit(end);
    if ((*text < '0') || (*text > '9') || (errno != 0) || (unit == 0) || /* strtoull() would take a sign */
        __builtin_mul_overflow(number, unit, &size) || (size == UCI_SIZE_AUTO)) {
        return UCI_ERR_INVALID_PARAM;
    }
    *size_p = size;
    return UCI_OK;
}

const char *uci_size_text(size_t size, char text[24])
{
    static const char units[] = " kmg";
    unsigned unit             = 0;

    while ((unit < 3) && (size != 0) && (size % 1024 == 0)) {
        size /= 1024;
        ++unit;
    }
    snprintf(text, 24, "%zu%.*s", size, unit > 0, &units[unit]);
    return text;
}
