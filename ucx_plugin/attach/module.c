/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading as a UCX module. UCX 1.22 and later loads libucs_uci.so.0, a link to this library, from UCX_PLUGIN_PATH in the
 * constructor of libucs: all libraries of the program are mapped and bound by then, and nobody has called UCX yet. A module
 * has no precedence in the search for symbols, so the slots of all objects are led to our hooks (rebind.h), and those of
 * objects that are opened later, by leading dlopen() here too.
 *
 * Preloaded under the same name or another, the library has nothing to do here; a second copy keeps out.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "rebind.h"

/** Called by UCX after loading. @return 0, or -1 (logged): UCX unloads the module and goes on without. */
UCI_EXPORT int ucs_module_global_init(void);

static void *uci_module_self; /* our own handle */
static char uci_module_how_text[80]    = "preloaded";
static pthread_mutex_t uci_module_lock = PTHREAD_MUTEX_INITIALIZER;

static void *uci_module_dlopen(const char *name, int mode);

/* What our dlopen() calls: the C library's, or that of UCX's memory hooks (libucm), which lead calls to themselves in the same
 * way as soon as they are needed. They must go on seeing what is opened, and we too */
static void *(*uci_module_next_dlopen)(const char *name, int mode) = dlopen;

/* Of libucm; NULL while that is not loaded */
static void *uci_module_ucm_dlopen;

static void uci_module_find_libucm(void)
{
    void *libucm = dlopen("libucm.so.0", RTLD_NOLOAD | RTLD_LAZY);

    if (libucm != NULL) {
        __atomic_store_n(&uci_module_ucm_dlopen, dlsym(libucm, "ucm_dlopen"), __ATOMIC_RELAXED);
        dlclose(libucm);
    }
}

/* Every function that we export under a name of UCX is a hook */
static void *uci_module_lookup(const char *symbol, void *current)
{
    if (strncmp(symbol, "ucp_", 4) == 0) {
        return uci_rebind_own_function(symbol);
    }
    if (strcmp(symbol, "dlopen") != 0) {
        return NULL;
    }
    if ((current != NULL) && (current == __atomic_load_n(&uci_module_ucm_dlopen, __ATOMIC_RELAXED))) {
        uci_module_next_dlopen = (void *(*)(const char *, int))current;
    }
    return (void *)uci_module_dlopen;
}

static uci_status_t uci_module_rebind(bool all, uci_rebind_result_t *result_p)
{
    uci_rebind_extent_t extent;
    uci_status_t status;

    uci_module_find_libucm(); /* not with our lock held: constructors of what another thread opens may come to it */
    do {
        uci_rebind_settle(&extent); /* nor this */
        pthread_mutex_lock(&uci_module_lock);
        status = uci_rebind(uci_module_lookup, all, &extent, result_p);
        pthread_mutex_unlock(&uci_module_lock);
    } while (status == UCI_ERR_BUSY); /* something was unloaded meanwhile */
    return status;
}

void uci_module_refresh(void)
{
    uci_rebind_result_t result;

    if (uci_module_self != NULL) {
        uci_module_rebind(true, &result); /* an error is logged */
    }
}

static bool uci_module_has_path(const struct link_map *map)
{
    const ElfW(Dyn) * entry;

    for (entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if ((entry->d_tag == DT_RPATH) || (entry->d_tag == DT_RUNPATH)) {
            return true;
        }
    }
    return false;
}

/* dlopen() of a plain name also looks where the object that calls it was told to (RPATH, RUNPATH). Now that is us */
static void *uci_module_dlopen_as(void *caller, const char *name, int mode)
{
    struct link_map *map = NULL;
    void *handle         = NULL;
    Dl_serinfo size, *dirs;
    char path[4096];
    Dl_info info;
    unsigned i;

    if ((dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) || (map == NULL) || !uci_module_has_path(map) ||
        (dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0)) {
        return NULL;
    }
    dirs = malloc(size.dls_size);
    if ((dirs == NULL) || (dlinfo(map, RTLD_DI_SERINFOSIZE, dirs) != 0) || (dlinfo(map, RTLD_DI_SERINFO, dirs) != 0)) {
        free(dirs);
        return NULL;
    }
    for (i = 0; (handle == NULL) && (i < dirs->dls_cnt); ++i) {
        snprintf(path, sizeof(path), "%s/%s", dirs->dls_serpath[i].dls_name, name);
        if (access(path, R_OK) == 0) {
            handle = uci_module_next_dlopen(path, mode);
        }
    }
    free(dirs);
    return handle;
}

static UCI_NOINLINE void *uci_module_dlopen(const char *name, int mode)
{
    void *caller = __builtin_return_address(0), *handle = NULL;
    uci_rebind_result_t result;

    if ((name != NULL) && (strchr(name, '/') == NULL)) {
        handle = dlopen(name, mode | RTLD_NOLOAD);
        if (handle == NULL) {
            handle = uci_module_dlopen_as(caller, name, mode);
        }
    }
    if (handle == NULL) {
        handle = uci_module_next_dlopen(name, mode);
    }
    if (handle != NULL) {
        uci_module_rebind(false,
                          &result); /* an error is logged, and the object then talks to plain UCX, which peers refuse */
    }
    return handle;
}

/* @return why this copy can't be used, or NULL */
static const char *uci_module_obstacle(const Dl_info *info, char *text, size_t size)
{
    const char *slash = strrchr(info->dli_fname, '/'), *name = (slash != NULL) ? slash + 1 : info->dli_fname;
    const char *other = uci_rebind_other_copy();

    if (other != NULL) {
        snprintf(text, size, "another copy of it is in this process already: %s", other);
        return text;
    }
    if ((strncmp(name, "libucs_", 7) != 0) && (strncmp(name, "libucx_integrity", 16) != 0)) {
        snprintf(text, size,
                 "under this name UCX loads it when the first context is being made already; call it "
                 "libucs_uci.so.0 (UCX 1.22 or later), or use LD_PRELOAD");
        return text;
    }
    return NULL;
}

UCI_EXPORT int ucs_module_global_init(void)
{
    uci_rebind_result_t result;
    const char *obstacle;
    char text[1024];
    Dl_info info;

    if (uci_module_self != NULL) {
        return 0;
    }
    if (uci_rebind_is_needless()) {
        uci_debug("loaded as a module, and preloaded: nothing to do");
        return 0;
    }
    if (dladdr(&uci_module_lock, &info) == 0) {
        uci_error("UCI stays out of this process: the loader does not know it");
        uci_plugin_unprotected("the loader does not know it");
        return -1;
    }
    obstacle = uci_module_obstacle(&info, text, sizeof(text));
    if (obstacle != NULL) {
        uci_error("UCI stays out of this process: %s: %s", info.dli_fname, obstacle);
        if (uci_rebind_other_copy() == NULL) {
            uci_plugin_unprotected(obstacle);
        }
        return -1;
    }
    uci_module_self = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    if ((uci_module_self == NULL) || (uci_module_rebind(true, &result) != UCI_OK)) {
        uci_error("UCI stays out of this process: %s can't be attached", info.dli_fname);
        uci_plugin_unprotected("the module can't be attached");
        uci_module_self = NULL;
        return -1;
    }
    snprintf(uci_module_how_text, sizeof(uci_module_how_text), "as a UCX module, %u slots in %u objects", result.slots,
             result.objects);
    return 0;
}

const char *uci_module_how(void)
{
    return uci_module_how_text;
}
