/* SPDX-License-Identifier: BSD-3-Clause */
#include "info_attached.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

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
    const char *version     = NULL;
    struct link_map *object = NULL; /* the program, and behind it all that is loaded */

    dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &object);
    for (; (version == NULL) && (object != NULL); object = object->l_next) {
        if (object->l_name[0] == '/') {
            version = uci_info_ask_version(object->l_name);
            snprintf(path, size, "%s", (version != NULL) ? object->l_name : "");
        }
    }
    return version;
}
