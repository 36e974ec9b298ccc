/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All paths (path.h), in the order of their turns.
 */
#ifndef UCI_PATH_TABLE_H_
#define UCI_PATH_TABLE_H_

#include "base/worker_state.h"

/** @return how much has been done. */
unsigned uci_path_table_progress(uci_worker_t *worker);

/** Is there something to do at once? */
bool uci_path_table_are_due(const uci_worker_t *worker);

/** Is all that is under way (few operations) of paths that UCX has no part in, unless something goes wrong? */
bool uci_path_table_is_own(const uci_worker_t *worker);

void uci_path_table_cleanup(uci_worker_t *worker);

#endif
