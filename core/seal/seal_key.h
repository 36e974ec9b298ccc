/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The file with a job's key.
 */
#ifndef UCI_SEAL_KEY_H_
#define UCI_SEAL_KEY_H_

#include "settings/seal_spec.h"

/**
 * Read a key: 64 hexadecimal digits and an end of line, and nothing else, in a regular file, which is no symbolic link, of the user that
 * this process runs as, and which nobody else may read or write (mode 0400 or 0600).
 * @param key  in secret memory; not changed on failure.
 * @return UCI_OK, UCI_ERR_NO_ELEM if there is no file, UCI_ERR_INVALID_PARAM if it is not as described, or UCI_ERR_IO. All are
 *         logged, with what to do; nothing of what the file holds is.
 */
uci_status_t uci_seal_key_read(const char *path, uint8_t key[UCI_SEAL_KEY]);

#endif
