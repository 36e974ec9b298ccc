/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "util/log.h"
#include "settings/settings.h"
#include "uci_calls.h"

UCI_EXPORT const uci_calls_ops_t *uci_calls_attach(unsigned version);

/** See uci_calls_attach_func_t. */
UCI_EXPORT const uci_calls_ops_t *uci_calls_attach(unsigned version)
{
    static uci_calls_ops_t ops = {.size = sizeof(ops)};

    if (!__atomic_load_n(&uci_plugin_is_ready, __ATOMIC_ACQUIRE) || (uci_settings.calls[0] == '\0')) {
        return NULL;
    }
    if (version != UCI_CALLS_VERSION) {
        uci_warn("calls of MPI are not watched: the companion speaks version %u, and this library %u", version,
                 UCI_CALLS_VERSION);
        return NULL;
    }
    ops.file       = uci_settings.calls;
    ops.checks     = uci_settings.check_calls;
    ops.unbuffered = uci_settings.unbuffered;
    return &ops;
}
