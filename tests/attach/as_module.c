/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCX 1.22 does in the constructor of libucs, for an older UCX: preloaded, this opens the module that TEST_MODULE_PATH
 * names and calls its entry, before anybody has called UCX. A module that refuses is closed again, and the program goes on.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void load_module(void)
{
    const char *path = getenv("TEST_MODULE_PATH");
    int (*init)(void);
    void *handle;

    if (path == NULL) {
        return;
    }
    handle = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    init = (int (*)(void))dlsym(handle, "ucs_module_global_init");
    if ((init == NULL) || (init() != 0)) {
        dlclose(handle);
    }
}
