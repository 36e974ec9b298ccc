/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_complain.h"

#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define UCI_CHECK_COMPLAINT_MAX 8192 /* longer than any path and what is wrong with it */

void uci_check_complain(const char *format, ...)
{
    char text[UCI_CHECK_COMPLAINT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

void *uci_check_memory(void *memory)
{
    if (memory == NULL) {
        errx(2, "out of memory");
    }
    return memory;
}
