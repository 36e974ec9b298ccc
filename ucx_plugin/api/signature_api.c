/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include <stdio.h>

#include "util/log.h"
#include "report/report.h"
#include "settings/settings.h"
#include "base/signed.h"
#include "live/stats.h"

UCI_EXPORT int uci_signatures_attach(unsigned version, const uci_signature_ops_t *ops);
UCI_EXPORT uci_signature_next_t *uci_signatures_next(void);
UCI_EXPORT void uci_signatures_calls(const uci_signature_calls_t *calls);
UCI_EXPORT unsigned uci_signatures_wait(void);

/* From now on the hooks look for signatures: they do on the long way only */
static void uci_signatures_go_long(void *object)
{
    uci_context_t *context = object;

    context->short_way = false;
}

/** See uci_signatures_attach_func_t. */
UCI_EXPORT int uci_signatures_attach(unsigned version, const uci_signature_ops_t *ops)
{
    if (!__atomic_load_n(&uci_plugin_is_ready, __ATOMIC_ACQUIRE) || (uci_settings.mode == UCI_MODE_OFF)) {
        return UCI_SIGNATURES_OFF;
    }
    if ((version != UCI_SIGNATURE_VERSION) || (ops->size < sizeof(*ops))) {
        uci_warn("types of messages are not compared: the companion speaks version %u, and this library %u", version,
                 UCI_SIGNATURE_VERSION);
        return UCI_SIGNATURES_OFF;
    }
    if (uci_settings.twins.folder !=
        NULL) { /* they compare digests, of which a signature would be a part, or not, as a message comes early or late */
        uci_warn("types of messages are not compared in jobs that have twins (UCI_TWINS)");
        return UCI_SIGNATURES_OFF;
    }
    if (uci_settings.signatures != UCI_SIGNATURES_OFF) {
        uci_signed_ops = ops;
        uci_handles_for_each(&uci_contexts, uci_signatures_go_long);
    }
    return (int)uci_settings.signatures;
}

/** See uci_signatures_next_func_t. */
UCI_EXPORT uci_signature_next_t *uci_signatures_next(void)
{
    return &uci_signed_next;
}

/** See uci_signatures_wait_func_t. */
UCI_EXPORT unsigned uci_signatures_wait(void)
{
    return uci_settings.signature_wait;
}

static void uci_signatures_say_waiting(const uci_signature_calls_t *calls)
{
    char whom[64] = "others have";

    if (calls->other_rank >= 0) {
        snprintf(whom, sizeof(whom), "rank %d, or one that it waits for, has", calls->other_rank);
    }
    uci_warn(
            "rank %d of %s has been waiting for %u s in %s: %s not called a collective on it (with UCI_SIGNATURES=all each process "
            "of the job needs libuci_mpi)",
            calls->rank, calls->group, calls->seconds, calls->says, whom);
}

/** See uci_signatures_calls_func_t. */
UCI_EXPORT void uci_signatures_calls(const uci_signature_calls_t *calls)
{
    switch (calls->verdict) {
    case UCI_SIGNATURE_CALLS_MATCH:
        UCI_STATS_ADD_OUTSIDE(signatures_compared, 1);
        break;
    case UCI_SIGNATURE_CALLS_DIFFER:
        UCI_STATS_ADD_OUTSIDE(signatures_compared, 1);
        UCI_STATS_ADD_OUTSIDE(signatures_differ, 1);
        uci_report_calls_differ(calls);
        break;
    case UCI_SIGNATURE_CALLS_WAIT:
        uci_signatures_say_waiting(calls);
        break;
    }
}
