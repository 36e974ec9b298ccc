/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <link.h>
#include <string.h>

#include "util/types.h"

/* Of whatever version */
static int uci_mpi_gpu_on_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const libraries[] = {"libcuda.so", "libamdhip64.so", "libze_loader.so"};
    const char *slash                    = strrchr(info->dlpi_name, '/');
    const char *name                     = (slash != NULL) ? slash + 1 : info->dlpi_name;
    size_t i;

    for (i = 0; i < uci_array_size(libraries); ++i) {
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Never unloaded once it is there */
static bool uci_mpi_gpu_is_loaded(void)
{
    return dl_iterate_phdr(uci_mpi_gpu_on_library, NULL) != 0;
}

/* The first object says how many have ever been loaded */
static int uci_mpi_gpu_on_object(struct dl_phdr_info *info, size_t size, void *loads)
{
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

bool uci_mpi_has_gpu(void)
{
    static unsigned long long asked; /* when so many had been loaded, there was none */
    static bool is_there;
    unsigned long long loads = 0;

    if (!__atomic_load_n(&is_there, __ATOMIC_RELAXED)) {
        dl_iterate_phdr(uci_mpi_gpu_on_object, &loads);
        if (loads != __atomic_load_n(&asked, __ATOMIC_RELAXED)) {
            __atomic_store_n(&is_there, uci_mpi_gpu_is_loaded(), __ATOMIC_RELAXED);
            __atomic_store_n(&asked, loads, __ATOMIC_RELAXED);
        }
    }
    return __atomic_load_n(&is_there, __ATOMIC_RELAXED);
}
