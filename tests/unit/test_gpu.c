/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "gpu.h"

/* A program may load it late, and of any version */
Test(gpu, is_seen_by_the_name_of_its_library)
{
    const char *library = getenv("TEST_GPU_LIBRARY");

    cr_expect(!uci_mpi_has_gpu());
    cr_assert(dlopen("libm.so.6", RTLD_NOW) != NULL);
    cr_expect(!uci_mpi_has_gpu());
    cr_assert((library != NULL) && (dlopen(library, RTLD_NOW) != NULL), "%s", dlerror());
    cr_expect(uci_mpi_has_gpu());
    cr_expect(uci_mpi_has_gpu(), "and stays");
}
