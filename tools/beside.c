/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool uci_find_beside(const char *const *folders, const char *name, char *path, size_t size)
{
    char program[PATH_MAX] = "", found[PATH_MAX];
    const char *folder;
    size_t i;
    int length;

    if (readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0) {
        return false;
    }
    folder = dirname(program);
    for (i = 0; folders[i] != NULL; ++i) {
        length = snprintf(found, sizeof(found), "%s/%s/%s", folder, folders[i], name);
        if (((size_t)length < sizeof(found)) && ((size_t)length < size) && (access(found, R_OK) == 0)) {
            memcpy(path, found, (size_t)length + 1);
            return true;
        }
    }
    return false;
}
