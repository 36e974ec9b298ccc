/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The files that UCX reads its settings from: ucs_config_parse_config_files() of 1.13 to 1.23. Used by uci_info too.
 */
#ifndef UCI_UCX_CONF_H_
#define UCI_UCX_CONF_H_

#include "util/types.h"

/** Called for each line, without leading blanks. @return true to stop. */
typedef bool (*uci_ucx_conf_func_t)(const char *path, const char *line, void *arg);

/**
 * Read every ucx.conf that UCX reads, in its order: what a later one says wins, and the environment over all of them.
 * @param library  path of UCX's libraries, beside which some are looked for.
 * @return whether @a func has stopped it.
 */
bool uci_ucx_conf_for_each_line(const char *library, uci_ucx_conf_func_t func, void *arg);

#endif
