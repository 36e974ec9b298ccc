/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "util/types.h"

#define UCI_DUMP_LINE 1024

void uci_dump_line(int fd, const char *format, ...)
{
    char text[UCI_DUMP_LINE];
    ssize_t written;
    size_t length;
    va_list args;
    int ret;

    va_start(args, format);
    ret = vsnprintf(text, sizeof(text) - 1, format, args);
    va_end(args);
    length         = uci_min((size_t)uci_max(ret, 0), sizeof(text) - 2);
    text[length++] = '\n';
    written        = write(fd, text, length);
    (void)written; /* there is nobody to tell */
}
