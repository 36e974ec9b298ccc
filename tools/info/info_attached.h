/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Is UCI's library in this process? Shared by uci_info and uci_probe.
 */
#ifndef UCI_INFO_ATTACHED_H_
#define UCI_INFO_ATTACHED_H_

#include <stddef.h>

/**
 * Find the library among the objects of this process, whatever its name and however it got in.
 * @param path  of its file.
 * @return its version and revision, or NULL if it is not here.
 */
const char *uci_info_find_attached(char *path, size_t size);

#endif
