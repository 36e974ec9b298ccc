/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx_conf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"

static bool uci_ucx_conf_read(const char *folder, const char *name, uci_ucx_conf_func_t func, void *arg)
{
    char path[PATH_MAX], line[PATH_MAX];
    bool stopped = false;
    FILE *stream;

    if (folder == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    stream = uci_file_open(path);
    while ((stream != NULL) && !stopped && (fgets(line, sizeof(line), stream) != NULL)) {
        line[strcspn(line, "\n")] = '\0';
        stopped                   = func(path, line + strspn(line, " \t"), arg);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return stopped;
}

bool uci_ucx_conf_for_each_line(const char *library, uci_ucx_conf_func_t func, void *arg)
{
    const char *slash     = strrchr(library, '/');
    char folder[PATH_MAX] = "";

    snprintf(folder, sizeof(folder), "%.*s", (slash != NULL) ? (int)(slash - library) : 0, library);
    return uci_ucx_conf_read("/etc/ucx", "ucx.conf", func, arg) ||
           uci_ucx_conf_read(folder, "../etc/ucx.conf", func, arg) ||
           uci_ucx_conf_read(folder, "../etc/ucx/ucx.conf", func, arg) ||
           uci_ucx_conf_read(getenv("HOME"), "ucx.conf", func, arg) ||
           uci_ucx_conf_read(getenv("UCX_CONFIG_DIR"), "ucx.conf", func, arg) ||
           uci_ucx_conf_read(".", "ucx.conf", func, arg);
}
