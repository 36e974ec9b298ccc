/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/ucx_config.h"

#include <criterion/criterion.h>

enum { KIB = 1024 };

static void check(const char *text, size_t eager, size_t eager_fast, bool is_set)
{
    uci_ucx_thresholds_t thresholds;

    uci_ucx_config_read_thresholds(text, &thresholds);
    cr_expect_eq(thresholds.eager, eager, "%s: %zu bytes", text, thresholds.eager);
    cr_expect_eq(thresholds.eager_fast, eager_fast, "%s: fast %zu bytes", text, thresholds.eager_fast);
    cr_expect_eq(thresholds.is_set, is_set, "%s: set %d", text, thresholds.is_set);
}

/* As the versions of UCX print what nobody has set */
Test(ucx_config, left_to_ucx)
{
    check("", 8 * KIB, 256 * KIB, false);
    check("UCX_RNDV_THRESH=auto\nUCX_RNDV_SEND_NBR_THRESH=256K\n", 8 * KIB, 256 * KIB, false);
    check("UCX_RNDV_THRESH=intra:auto,inter:auto\nUCX_RNDV_SEND_NBR_THRESH=256K\n", 8 * KIB, 256 * KIB, false);
    check("UCX_RNDV_THRESH=auto\nUCX_RNDV_SEND_NBR_THRESH=64K\n", 8 * KIB, 64 * KIB, false);
    check("UCX_RNDV_THRESH=intra:auto,inter:auto\nUCX_RNDV_SEND_NBR_THRESH=inf\n", 8 * KIB, SIZE_MAX, false);
}

/* What is set counts for all sends */
Test(ucx_config, set_by_the_user)
{
    check("UCX_RNDV_THRESH=1K\nUCX_RNDV_SEND_NBR_THRESH=256K\n", KIB, KIB, true);
    check("UCX_RNDV_THRESH=inf\nUCX_RNDV_SEND_NBR_THRESH=256K\n", SIZE_MAX, SIZE_MAX, true);
    check("UCX_RNDV_THRESH=intra:1K,inter:2K\nUCX_RNDV_SEND_NBR_THRESH=256K\n", 2 * KIB, 2 * KIB, true);
}

/* Where a part of it is UCX's choice, no message may wait for its receiver that UCX would not let wait */
Test(ucx_config, set_in_part)
{
    check("UCX_RNDV_THRESH=intra:1K,inter:auto\nUCX_RNDV_SEND_NBR_THRESH=256K\n", 8 * KIB, 256 * KIB, false);
    check("UCX_RNDV_THRESH=intra:auto,inter:1m\nUCX_RNDV_SEND_NBR_THRESH=256K\n", KIB * KIB, KIB * KIB, false);
}
