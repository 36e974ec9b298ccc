/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The settings of a process that has twins, as if a launcher had started it.
 */
#ifndef UCI_TEST_TWIN_SETTINGS_H_
#define UCI_TEST_TWIN_SETTINGS_H_

#include <criterion/criterion.h>
#include <stdlib.h>

#include "settings/settings.h"

/** @param twins  for UCI_TWINS. @param rank @param ranks  in digits. */
static inline void test_twin_settings(const char *twins, const char *rank, const char *ranks)
{
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_TWINS", twins, 1);
    setenv("PMI_RANK", rank, 1);
    setenv("PMI_SIZE", ranks, 1);
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMIX_RANK");
    cr_assert_eq(uci_settings_read(), UCI_OK);
}

#endif
