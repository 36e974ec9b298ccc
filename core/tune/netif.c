/* SPDX-License-Identifier: BSD-3-Clause */
#include "netif.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

unsigned uci_netif_speed(const char *root, const char *name)
{
    char path[PATH_MAX];
    int speed = 0;
    FILE *stream;

    if (strchr(name, '/') != NULL) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/%s/speed", root, name);
    stream = fopen(path, "r");
    if (stream == NULL) {
        return 0;
    }
    if ((fscanf(stream, "%d", &speed) != 1) ||
        (speed < 0)) { /* -1 is "unknown"; where there is no link, reading fails */
        speed = 0;
    }
    fclose(stream);
    return (unsigned)speed;
}
