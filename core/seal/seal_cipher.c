/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which library, and which cipher. A fixed rule, of what tests/bench/bench_seal has measured (docs/security.md): measuring at each
 * start would take longer than it saves, and all ranks must choose the same cipher.
 */
#include "seal_cipher.h"
#include "util/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#define UCI_SEAL_HWCAP_AES (1ul << 3) /* HWCAP_AES of <asm/hwcap.h> */
#endif

#define UCI_SEAL_REASON_MAX 256

typedef struct uci_seal_library_slot {
    const uci_seal_library_ops_t *ops;
    bool tried;
    uci_status_t status;
    char reason[UCI_SEAL_REASON_MAX];
} uci_seal_library_slot_t;

static pthread_mutex_t uci_seal_library_lock                             = PTHREAD_MUTEX_INITIALIZER;
static uci_seal_library_slot_t uci_seal_libraries[UCI_SEAL_LIBRARY_LAST] = {
        [UCI_SEAL_OPENSSL]  = {.ops = &uci_seal_openssl},
        [UCI_SEAL_IPSEC_MB] = {.ops = &uci_seal_ipsec_mb},
};

const uci_seal_library_ops_t *uci_seal_library_open(uci_seal_lib_t id, const char **reason_p)
{
    uci_seal_library_slot_t *slot = &uci_seal_libraries[id];

    pthread_mutex_lock(&uci_seal_library_lock);
    if (!slot->tried) {
        slot->status = slot->ops->load(slot->reason, sizeof(slot->reason));
        slot->tried  = true;
    }
    pthread_mutex_unlock(&uci_seal_library_lock);

    if (reason_p != NULL) {
        *reason_p = slot->reason;
    }
    return (slot->status == UCI_OK) ? slot->ops : NULL;
}

bool uci_seal_library_resolve(void *library, const char *file, const char *name, void *function_p, char *reason,
                              size_t size)
{
    void *function = dlsym(library, name);

    if (function == NULL) {
        snprintf(reason, size, "%s has no %s", file, name);
        return false;
    }
    memcpy(function_p, &function, sizeof(function));
    return true;
}

static bool uci_seal_cpu_has_aes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & UCI_SEAL_HWCAP_AES) != 0;
#else
    return false;
#endif
}

uci_seal_cipher_t uci_seal_cipher_choose(uci_seal_cipher_t wanted)
{
    if (wanted != UCI_SEAL_CIPHER_AUTO) {
        return wanted;
    }
    return uci_seal_cpu_has_aes() ? UCI_SEAL_AES128 : UCI_SEAL_CHACHA20;
}

static uci_status_t uci_seal_library_use(uci_seal_lib_t id, uci_seal_cipher_t cipher,
                                         const uci_seal_library_ops_t **ops_p)
{
    const char *reason;
    const uci_seal_library_ops_t *ops = uci_seal_library_open(id, &reason);

    if (ops == NULL) {
        uci_error("UCI_SEAL needs %s, which can't be used here: %s (Debian: apt install %s)",
                  uci_seal_library_names[id], reason, (id == UCI_SEAL_IPSEC_MB) ? "libipsec-mb1" : "libssl3");
        return UCI_ERR_UNSUPPORTED;
    }
    if (!ops->has(cipher)) {
        uci_error("%s can't be used for %s here: set UCI_SEAL_LIBRARY or UCI_SEAL_CIPHER to auto", ops->version(),
                  uci_seal_cipher_names[cipher]);
        return UCI_ERR_UNSUPPORTED;
    }
    *ops_p = ops;
    return UCI_OK;
}

uci_status_t uci_seal_library_choose(uci_seal_lib_t wanted, uci_seal_cipher_t cipher,
                                     const uci_seal_library_ops_t **ops_p)
{
    const uci_seal_library_ops_t *fast, *ops;
    uci_status_t status;

    status = uci_seal_library_use(UCI_SEAL_OPENSSL, cipher, &ops); /* keys are derived by it in any case */
    if (status != UCI_OK) {
        return status;
    }
    if (wanted == UCI_SEAL_IPSEC_MB) {
        return uci_seal_library_use(UCI_SEAL_IPSEC_MB, cipher, ops_p);
    }

    fast   = (wanted == UCI_SEAL_LIBRARY_AUTO) ? uci_seal_library_open(UCI_SEAL_IPSEC_MB, NULL) : NULL;
    *ops_p = ((fast != NULL) && fast->has(cipher)) ? fast : ops;
    return UCI_OK;
}
