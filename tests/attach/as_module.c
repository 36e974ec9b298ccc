/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCX 1.22 does in the constructor of libucs, for an older UCX: preloaded, this opens the modules that TEST_MODULE_PATH
 * names (with colons between) and calls their entries, before anybody has called UCX. A module that refuses is closed again,
 * and the program goes on.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_module(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    int (*init)(void);

    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    init = (int (*)(void))dlsym(handle, "ucs_module_global_init");
    if ((init == NULL) || (init() != 0)) {
        dlclose(handle);
    }
}

__attribute__((constructor)) static void load_modules(void)
{
    char *paths = getenv("TEST_MODULE_PATH"), *path, *rest;

    paths = strdup((paths != NULL) ? paths : "");
    for (path = strtok_r(paths, ":", &rest); path != NULL; path = strtok_r(NULL, ":", &rest)) {
        load_module(path);
    }
    free(paths);
}
