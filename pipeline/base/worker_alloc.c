/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker_alloc.h"

#include <stdlib.h>

#include "data/stage.h"
#include "peer_table.h"
#include "request.h"
#include "util/log.h"

#define UCI_WORKER_REQUEST_SLAB 64

static void uci_worker_request_init(void *arg, void *object)
{
    uci_context_t *context = arg;

    if (context->request_init != NULL) {
        context->request_init((char *)object + uci_request_head());
    }
}

static void uci_worker_request_cleanup(void *arg, void *object)
{
    uci_context_t *context = arg;

    if (context->request_cleanup != NULL) {
        context->request_cleanup((char *)object + uci_request_head());
    }
}

static void uci_worker_choose(uci_worker_choice_t *choice)
{
    choice->eager_max  = uci_tuner_eager_max();
    choice->copies     = uci_tuner_plan("", 0);
    choice->digest     = uci_plan_choose(choice->copies, choice->eager_max)->digest;
    choice->small_xxh3 = (uci_settings.digest == &uci_digest_auto) || (choice->digest->id == UCI_DIGEST_XXH3);
}

uci_worker_t *uci_worker_alloc(ucp_worker_h ucp, uci_context_t *context, const uci_worker_calls_t *calls)
{
    uci_worker_t *worker = aligned_alloc(UCI_CACHE_LINE, uci_align_up(sizeof(*worker), UCI_CACHE_LINE));

    if (worker == NULL) {
        return NULL;
    }
    memset(worker, 0, sizeof(*worker));
    if (uci_peer_table_init(worker) != UCS_OK) {
        free(worker);
        return NULL;
    }
    worker->ucp        = ucp;
    worker->context    = context;
    worker->self.seals = uci_seal_is_on();
    worker->calls      = *calls;
    uci_worker_choose(&worker->choice);
    worker->recvs.free = UINT32_MAX;
    uci_match_init(&worker->match);
    uci_frame_pool_init(&worker->frames);
    worker->requests.head = uci_request_head();
    uci_pool_init(&worker->requests.pool, worker->requests.head + context->request_size, UCI_WORKER_REQUEST_SLAB,
                  uci_worker_request_init, uci_worker_request_cleanup, context);
    return worker;
}

ucs_status_t uci_worker_learn_address(uci_worker_t *worker)
{
    ucp_worker_address_attr_t attr = {.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID};
    ucs_status_t status;

    status = uci_ucp.worker_get_address(worker->ucp, &worker->self.address, &worker->self.length);
    if (status != UCS_OK) {
        uci_error("failed to get the worker's address: %s", uci_ucp.status_string(status));
        return status;
    }
    status = uci_ucp.worker_address_query(worker->self.address, &attr);
    if (status != UCS_OK) {
        uci_error("failed to get the worker's uid: %s", uci_ucp.status_string(status));
        uci_ucp.worker_release_address(worker->ucp, worker->self.address);
        return status;
    }
    worker->uid = attr.worker_uid;
    status      = uci_mark_init(&worker->self.mark, worker->uid);
    if (status != UCS_OK) {
        uci_ucp.worker_release_address(worker->ucp, worker->self.address);
        return status;
    }
    worker->self.mark.eager_max = (uint32_t)worker->choice.eager_max;
    uci_mark_finish(&worker->self.mark);
    return UCS_OK;
}

ucs_status_t uci_worker_make_stage(uci_worker_t *worker, const uci_stage_dt_t *dt)
{
    return (worker->stage != NULL) ? UCS_OK : uci_stage_create(worker->context->ucp, dt, &worker->stage);
}

void uci_worker_free(uci_worker_t *worker)
{
    uci_peer_table_cleanup(worker);
    uci_frame_pool_cleanup(&worker->frames);
    uci_pool_cleanup(&worker->requests.pool);
    free(worker->recvs.slots);
    free(worker);
}
