/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "util/log.h"
#include "util/process.h"
#include "settings/settings.h"
#include "live/stats.h"
#include "uci_allreduce.h"

UCI_EXPORT const uci_allreduce_ops_t *uci_allreduce_attach(unsigned version);

static void uci_allreduce_count(void)
{
    UCI_STATS_ADD_OUTSIDE(allreduces, 1);
}

static void uci_allreduce_damaged(const uci_allreduce_damage_t *damage)
{
    uint64_t before = UCI_STATS_ADD_OUTSIDE(allreduce_damaged, 1);

    if (damage->problem != NULL) {
        uci_fatal(
                "all-reduce of %lu bytes by node: %s, in memory that ranks of this node share: a stray store, or that memory",
                (unsigned long)damage->count, damage->problem);
    }
    if (!damage->repaired) {
        uci_fatal(
                "all-reduce of %lu bytes by node: bytes %lu..%lu from rank %d arrived damaged in memory that ranks of this node "
                "share, and did again %u times (digest %016lx, should be %016lx): a stray store, or that memory",
                (unsigned long)damage->count, (unsigned long)damage->offset,
                (unsigned long)(damage->offset + damage->length - 1), damage->writer, damage->rewritten,
                (unsigned long)damage->found, (unsigned long)damage->expected);
    }
    if (before < uci_process_lines()) {
        uci_warn(
                "all-reduce of %lu bytes by node: bytes %lu..%lu from rank %d arrived damaged in memory that ranks of this node "
                "share, repaired by %s; cause: memory (that memory, or a stray store)",
                (unsigned long)damage->count, (unsigned long)damage->offset,
                (unsigned long)(damage->offset + damage->length - 1), damage->writer,
                (damage->rewritten == 0) ? "reading again" : "its writer");
    }
}

/** See uci_allreduce_attach_func_t. */
UCI_EXPORT const uci_allreduce_ops_t *uci_allreduce_attach(unsigned version)
{
    static uci_allreduce_ops_t ops = {
            .size = sizeof(ops), .count = uci_allreduce_count, .damaged = uci_allreduce_damaged};

    if (!__atomic_load_n(&uci_plugin_is_ready, __ATOMIC_ACQUIRE) || (uci_settings.mode == UCI_MODE_OFF)) {
        return NULL;
    }
    if (version != UCI_ALLREDUCE_VERSION) {
        uci_warn("all-reduces are left to the MPI: the companion speaks version %u, and this library %u", version,
                 UCI_ALLREDUCE_VERSION);
        return NULL;
    }
    if (uci_settings.twins.folder != NULL) {
        return NULL;
    }
    ops.use    = (int)uci_settings.allreduce;
    ops.sealed = (uci_settings.seal != UCI_SEAL_OFF);
    if (ops.sealed && (uci_settings.seal_scope == UCI_SEAL_SCOPE_ALL)) {
        ops.use = UCI_ALLREDUCE_OFF; /* what is shared within a node is in clear */
    }
    return &ops;
}
