/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is built or installed together with the program that runs.
 */
#ifndef UCI_BESIDE_H_
#define UCI_BESIDE_H_

#include <stdbool.h>
#include <stddef.h>

/**
 * Find a file beside this program, or where it is installed with it.
 * @param folders  to look in, relative to that of this program; ends with NULL.
 * @return false if there is none that can be read.
 */
bool uci_find_beside(const char *const *folders, const char *name, char *path, size_t size);

#endif
