/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "util/process.h"
#include "seal/seal_cipher.h"
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>

#define UCI_INFO_SEAL_LARGE  ((size_t)64 << 10) /* bytes of a record */
#define UCI_INFO_SEAL_SMALL  ((size_t)64)
#define UCI_INFO_SEAL_NS     5000000ul /* for each number */
#define UCI_INFO_SEAL_ROUNDS 16u       /* small records between two looks at the clock */

static void uci_info_seal_once(const uci_seal_library_ops_t *ops, void *key, uci_seal_way_t way, uint8_t *buffer,
                               size_t length)
{
    uint8_t nonce[UCI_SEAL_NONCE] = {0}, tag[UCI_SEAL_TAG];

    (void)ops->start(key, way, nonce, nonce, sizeof(nonce));
    (void)ops->part(key, way, buffer, buffer, length);
    (void)ops->finish(key, way, tag);
}

/* @return nanoseconds for a record, the best of what time allows */
static double uci_info_seal_measure(const uci_seal_library_ops_t *ops, void *key, uci_seal_way_t way, uint8_t *buffer,
                                    size_t length)
{
    uint64_t begin = uci_process_time_ns(), best = UINT64_MAX, start, now;
    unsigned i;

    do {
        start = uci_process_time_ns();
        for (i = 0; i < UCI_INFO_SEAL_ROUNDS; ++i) {
            uci_info_seal_once(ops, key, way, buffer, length);
        }
        now  = uci_process_time_ns();
        best = uci_min(best, now - start);
    } while (now - begin < UCI_INFO_SEAL_NS);
    return (double)uci_max(best, (uint64_t)1) / UCI_INFO_SEAL_ROUNDS;
}

static void uci_info_print_seal_cipher(const uci_seal_library_ops_t *ops, uci_seal_cipher_t cipher)
{
    static const uint8_t zeros[UCI_SEAL_KEY];
    uint8_t *buffer = calloc(1, UCI_INFO_SEAL_LARGE);
    void *key       = ops->key_create(cipher, zeros); /* has logged */

    if ((buffer != NULL) && (key != NULL)) {
        printf("%-16s %-9s %14.1f %14.1f %12.0f\n", ops->version(), uci_seal_cipher_names[cipher],
               (double)UCI_INFO_SEAL_LARGE /
                       uci_info_seal_measure(ops, key, UCI_SEAL_WAY_ENCRYPT, buffer, UCI_INFO_SEAL_LARGE),
               (double)UCI_INFO_SEAL_LARGE /
                       uci_info_seal_measure(ops, key, UCI_SEAL_WAY_SIGN, buffer, UCI_INFO_SEAL_LARGE),
               uci_info_seal_measure(ops, key, UCI_SEAL_WAY_ENCRYPT, buffer, UCI_INFO_SEAL_SMALL));
    }
    if (key != NULL) {
        ops->key_destroy(key);
    }
    free(buffer);
}

static void uci_info_print_seal_library(uci_seal_lib_t library)
{
    const char *reason;
    const uci_seal_library_ops_t *ops = uci_seal_library_open(library, &reason);
    unsigned cipher;

    if (ops == NULL) {
        printf("# %s: not here (%s)\n", uci_seal_library_names[library], reason);
        return;
    }
    for (cipher = UCI_SEAL_AES128; cipher < UCI_SEAL_CIPHER_LAST; ++cipher) {
        if (ops->has((uci_seal_cipher_t)cipher)) {
            uci_info_print_seal_cipher(ops, (uci_seal_cipher_t)cipher);
        }
    }
}

int uci_info_print_seal(void)
{
    uci_seal_cipher_t cipher = uci_seal_cipher_choose(uci_settings.seal_cipher);
    const uci_seal_library_ops_t *ops;
    unsigned library;

    printf("# one core; records of 64 KiB in the cache, and of 64 bytes\n");
    printf("# %-14s %-9s %14s %14s %12s\n", "library", "cipher", "encrypt GB/s", "sign GB/s", "64 B ns");
    for (library = UCI_SEAL_OPENSSL; library < UCI_SEAL_LIBRARY_LAST; ++library) {
        uci_info_print_seal_library((uci_seal_lib_t)library);
    }

    printf("seal: %s\n", uci_seal_mode_names[uci_settings.seal]);
    printf("seal scope: %s\n", uci_seal_scope_names[uci_settings.seal_scope]);
    printf("seal cipher: %s\n", uci_seal_cipher_names[cipher]);
    if (uci_seal_library_choose(uci_settings.seal_library, cipher, &ops) != UCI_OK) {
        printf("seal library: none\n");
        return EXIT_FAILURE;
    }
    printf("seal library: %s\n", ops->version());
    return EXIT_SUCCESS;
}
