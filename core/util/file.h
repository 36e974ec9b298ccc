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
 * Open a regular file, or /dev/null, for reading. Neither a pipe that nobody writes to nor a device without an end can hold us up.
 * @return NULL with errno set (not logged): EISDIR for a folder, EINVAL for anything else that is not a regular file.
 */
FILE *uci_file_open(const char *path);

/**
 * Open @a path for writing, as fopen() with "w" or "a" would, but for a pipe that nobody reads: ENXIO, where fopen() waits; and for a link that another
 * user has put into a folder where everybody may make files: ELOOP, where fs.protected_symlinks of the kernel says EACCES.
 * @return NULL with errno set, not logged.
 */
FILE *uci_file_create(const char *path, bool append);

/**
 * Could uci_file_create() open @a path for appending, as far as can be told without making it? What is no regular file is not looked at:
 * a pipe may have a reader later.
 * @return UCI_OK, or UCI_ERR_IO (not logged) with errno set.
 */
uci_status_t uci_file_check_writable(const char *path);

/** What to say of @a error, an errno of these functions: strerror(), but for those that have a meaning of their own here. */
const char *uci_file_error(int error);

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
 * Read all of @a path, which must be as uci_file_open() wants it.
 * @param max     refuse a file that is larger.
 * @param text_p  the contents with a 0 behind them, to be freed.
 * @return UCI_OK, UCI_ERR_NO_ELEM if there is no such file, UCI_ERR_IO with errno set (EFBIG: larger than @a max; see
 *         uci_file_open()), or UCI_ERR_NO_MEMORY; none is logged.
 */
uci_status_t uci_file_read(const char *path, size_t max, char **text_p, size_t *length_p);

#endif
