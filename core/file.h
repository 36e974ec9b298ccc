/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that others may read, or write, at the same time: in other processes and on other hosts.
 */
#ifndef UCI_FILE_H_
#define UCI_FILE_H_

#include <stdio.h>
#include "types.h"

typedef void (*uci_file_write_func_t)(FILE *stream, const void *arg);

/**
 * Make @a path hold what @a write writes. A regular file is replaced as a whole (a temporary file beside it, then a
 * rename), so that a reader sees the old or the new one, never a part; what is not a regular file (/dev/null, a pipe, a
 * link) is written into. Thread safe.
 * @return UCI_OK, or UCI_ERR_IO (not logged) with errno set.
 */
uci_status_t uci_file_replace(const char *path, uci_file_write_func_t write, const void *arg);

/**
 * Make the folder that @a path is in, and those above it, with the rights 0700 each.
 * @return UCI_OK, also if it was there, or UCI_ERR_IO (not logged) with errno set.
 */
uci_status_t uci_file_make_folder(const char *path);

/**
 * Read all of @a path.
 * @param max     refuse a file that is larger.
 * @param text_p  the contents with a 0 behind them, to be freed.
 * @return UCI_OK, UCI_ERR_NO_ELEM if there is no such file, UCI_ERR_IO with errno set (EFBIG: larger than @a max), or
 *         UCI_ERR_NO_MEMORY; none is logged.
 */
uci_status_t uci_file_read(const char *path, size_t max, char **text_p, size_t *length_p);

#endif
