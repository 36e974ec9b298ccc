/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin.h"

#include "log.h"
#include "settings.h"
#include "signed.h"

UCI_EXPORT int uci_signatures_attach(unsigned version, const uci_signature_ops_t *ops);
UCI_EXPORT uci_signature_next_t *uci_signatures_next(void);

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
