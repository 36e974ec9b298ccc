/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For who has something to say in dump.h.
 */
#ifndef UCI_DUMP_LINE_H_
#define UCI_DUMP_LINE_H_

/** Lines of one kind that are printed, at most, for each worker */
#define UCI_DUMP_MAX 256

/** One line of it, cut at 1 KiB. */
void uci_dump_line(int fd, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
