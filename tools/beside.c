/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "beside.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

bool uci_find_beside(const char *const *folders, const char *name, char *path, size_t size)
{
    char program[PATH_MAX] = "";
    const char *folder;
    size_t i;

    if (readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0) {
        return false;
    }
    folder = dirname(program);
    for (i = 0; folders[i] != NULL; ++i) {
        if (((size_t)snprintf(path, size, "%s/%s/%s", folder, folders[i], name) < size) && (access(path, R_OK) == 0)) {
            return true;
        }
    }
    return false;
}
