/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_table.h"

#include "direct.h"
#include "get.h"
#include "path.h"
#include "stream.h"
#include "superpipe.h"

static const uci_path_ops_t *const uci_paths[] = {&uci_direct_path, &uci_stream_path, &uci_get_path,
                                                  &uci_superpipe_path};

unsigned uci_path_table_progress(uci_worker_t *worker)
{
    unsigned i, count = 0;

    for (i = 0; i < uci_array_size(uci_paths); ++i) {
        if (uci_path_is_due(uci_paths[i], worker)) {
            count += uci_paths[i]->progress(worker);
        }
    }
    return count;
}

bool uci_path_table_are_due(const uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; i < uci_array_size(uci_paths); ++i) {
        if (uci_path_is_due(uci_paths[i], worker)) {
            return true;
        }
    }
    return false;
}

void uci_path_table_cleanup(uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; i < uci_array_size(uci_paths); ++i) {
        if (uci_paths[i]->cleanup != NULL) {
            uci_paths[i]->cleanup(worker);
        }
    }
}
