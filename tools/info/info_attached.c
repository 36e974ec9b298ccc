/* SPDX-License-Identifier: BSD-3-Clause */
#include "info_attached.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct uci_info_names {
    char (*names)[PATH_MAX];
    size_t count, room;
} uci_info_names_t;

/* The loader may not be called from here: names are kept for later */
static int uci_info_keep_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_info_names_t *names = arg;

    if ((info->dlpi_name[0] == '/') && (names->count < names->room)) {
        snprintf(names->names[names->count++], PATH_MAX, "%s", info->dlpi_name);
    }
    return 0;
}

/* The file itself has the symbol, not one that it needs */
static const char *uci_info_ask_version(const char *name)
{
    void *object = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    void *symbol = (object != NULL) ? dlsym(object, "uci_get_version_string") : NULL;
    Dl_info info;

    if ((symbol == NULL) || (dladdr(symbol, &info) == 0) || (strcmp(info.dli_fname, name) != 0)) {
        return NULL;
    }
    return ((const char *(*)(void))symbol)();
}

const char *uci_info_find_attached(char *path, size_t size)
{
    enum { OBJECTS = 512 };
    uci_info_names_t names = {.names = malloc(OBJECTS * sizeof(*names.names)), .room = OBJECTS};
    const char *version    = NULL;
    size_t i;

    if (names.names == NULL) {
        return NULL;
    }
    dl_iterate_phdr(uci_info_keep_name, &names);
    for (i = 0; (version == NULL) && (i < names.count); ++i) {
        version = uci_info_ask_version(names.names[i]);
        if (version != NULL) {
            snprintf(path, size, "%s", names.names[i]);
        }
    }
    free(names.names);
    return version;
}
