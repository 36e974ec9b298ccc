/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers of a test that is one long run: the same each time, or from a seed that TEST_SEED=N gives again.
 */
#ifndef UCI_TEST_CHANCE_H_
#define UCI_TEST_CHANCE_H_

#include <stdlib.h>
#include <time.h>

#include "random/draw.h"

static draw_t test_draw = {.state = 1};

static inline uint64_t test_random(void)
{
    return draw_next(&test_draw);
}

/** @return the number in an environment variable, @a otherwise if it is not set. */
static inline uint64_t test_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return (text == NULL) ? otherwise : strtoul(text, NULL, 0);
}

/** Another seed in each run, unless TEST_SEED says which. @return it, for what a test says when it fails. */
static inline uint64_t test_seed(void)
{
    test_draw.state = test_setting("TEST_SEED", (uint64_t)time(NULL));
    return test_draw.state;
}

#endif
