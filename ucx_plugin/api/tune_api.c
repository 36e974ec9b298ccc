/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_api.h"

#include "util/log.h"
#include "base/peer.h"
#include "attach/plugin.h"
#include "util/process.h"
#include "settings/settings.h"
#include "link/bounce.h"

/* Call `func` for every peer of every worker until it returns false */
static void uci_tune_visit(bool (*func)(uci_peer_t *peer, void *arg), void *arg)
{
    const uci_handle_slots_t *slots = uci_workers.slots;
    uci_worker_t *worker;
    size_t i;

    for (i = 0; (slots != NULL) && (i <= slots->mask); ++i) {
        if (slots->entries[i].handle <= UCI_HANDLE_REMOVED) {
            continue;
        }
        worker = slots->entries[i].object;
        uci_worker_for_each_peer(peer, worker)
        {
            if (!func(peer, arg)) {
                return;
            }
        }
    }
}

static bool uci_tune_limit(uci_peer_t *peer, void *arg)
{
    uci_peer_plan(peer);
    uci_peer_limit_eager(peer);
    return true;
}

UCI_EXPORT void uci_tune_force(size_t eager_max, size_t chunk_size, unsigned path)
{
    uci_settings.eager_max  = eager_max;
    uci_settings.chunk_size = chunk_size;
    uci_settings.path       = (uci_path_t)path;
    uci_tuner_refresh();
    uci_tune_visit(uci_tune_limit, NULL);
}

typedef struct uci_tune_search {
    int rank;
    uci_peer_t *found;
} uci_tune_search_t;

static bool uci_tune_is_rank(uci_peer_t *peer, void *arg)
{
    uci_tune_search_t *search = arg;

    if ((uci_peer_rank(peer) != search->rank) || uci_list_is_empty(&peer->eps)) {
        return true;
    }
    search->found = peer;
    return false;
}

static uci_peer_t *uci_tune_find(int rank)
{
    uci_tune_search_t search = {.rank = rank};

    uci_tune_visit(uci_tune_is_rank, &search);
    return search.found;
}

UCI_EXPORT const char *uci_tune_transports(int rank)
{
    uci_peer_t *peer = uci_tune_find(rank);

    return (peer != NULL) ? uci_peer_transports(peer) : "";
}

UCI_EXPORT uint32_t uci_tune_paths(int rank)
{
    uci_peer_t *peer = uci_tune_find(rank);

    if (peer == NULL) {
        return 0;
    }
    return UCI_PATH_BIT(UCI_PATH_EAGER) | UCI_PATH_BIT(UCI_PATH_STREAM) | UCI_PATH_BIT(UCI_PATH_GET) |
           UCI_PATH_BIT(UCI_PATH_BOUNCE) | (uci_peer_is_reached(peer) ? UCI_PATH_BIT(UCI_PATH_DIRECT) : 0);
}

static bool uci_tune_first_context(uci_peer_t *peer, void *arg)
{
    *(ucp_context_h *)arg = peer->worker->context->ucp;
    return false;
}

UCI_EXPORT uint64_t uci_tune_register(void *memory, size_t length)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address    = memory,
                                   .length     = length};
    ucp_context_h context       = NULL;
    uint64_t begin              = uci_process_time_ns();
    ucs_status_t status;
    ucp_mem_h memh;

    uci_tune_visit(uci_tune_first_context, &context);
    if (context == NULL) {
        return 0;
    }
    status = uci_ucp.mem_map(context, &params, &memh);
    if (status != UCS_OK) {
        uci_info("registering %zu bytes failed: %s", length, uci_ucp.status_string(status));
        return 0;
    }
    uci_ucp.mem_unmap(context, memh);
    return uci_process_time_ns() - begin;
}
