/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A world: some workers, a program, a wire, and a judge. It lives from one call to the next with nothing left between.
 */
#ifndef UCI_TESTS_RANDOM_WORLD_H_
#define UCI_TESTS_RANDOM_WORLD_H_

#include "oracle.h"

/** For the parts of a world: tell what happens, if somebody listens; it is wrong; something has ended. */
__attribute__((format(printf, 1, 2))) void world_tell(const char *format, ...);
__attribute__((format(printf, 2, 3))) void world_fail(verdict_t why, const char *format, ...);
void world_changed(void);

/** Once, before the first world. */
void world_init(void);

/**
 * Run a scenario.
 *
 * @param story  where to tell what happens, or NULL.
 * @return the verdict; if that is not VERDICT_OK @a text_p points to what is wrong, and the world is left as it is: the process can have no
 *         other one.
 */
verdict_t world_run(scenario_t *scenario, FILE *story, const char **text_p);

#endif
