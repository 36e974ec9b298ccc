/* SPDX-License-Identifier: BSD-3-Clause */
#include "staging.h"

#include "attach/plugin.h"
#include "base/worker_alloc.h"
#include "data/stage.h"
#include "live/stats.h"
#include "util/log.h"

const ucp_request_param_t *uci_hook_stage(uci_worker_t *worker, const void *buffer, size_t count,
                                          const ucp_request_param_t *param, ucp_request_param_t *ours_p)
{
    static const uci_stage_dt_t dt = {.create = uci_plugin_dt_create, .destroy = uci_plugin_dt_destroy};
    static bool said;
    ucs_memory_type_t type = uci_memtype(worker->context, buffer, count, param);

    if (uci_worker_make_stage(worker, &dt) != UCS_OK) {
        return NULL;
    }
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        uci_info("a buffer at %p is of memory type %d: such messages go through the host's memory, moved by UCX",
                 buffer, (int)type);
    }
    UCI_STATS_INC(staged_messages);
    uci_stage_prepare(worker->stage, type, param, ours_p);
    return ours_p;
}
