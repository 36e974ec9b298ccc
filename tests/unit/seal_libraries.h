/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The libraries of cryptography that are here: what can be tested with each. OpenSSL must be there.
 */
#ifndef SEAL_LIBRARIES_H_
#define SEAL_LIBRARIES_H_

#include <criterion/criterion.h>
#include <stdio.h>

#include "seal/seal_cipher.h"

/* @return can @a cipher be tested with @a library here? It is said if not. */
static inline bool seal_library_can(uci_seal_lib_t library, uci_seal_cipher_t cipher)
{
    const char *reason;
    const uci_seal_library_ops_t *ops = uci_seal_library_open(library, &reason);

    if (ops == NULL) {
        cr_assert(library != UCI_SEAL_OPENSSL, "OpenSSL must be here: %s", reason);
        fprintf(stderr, "%s is not tested: %s\n", uci_seal_library_names[library],
                reason); /* Criterion fails who warns */
        return false;
    }
    cr_assert((library != UCI_SEAL_OPENSSL) || ops->has(cipher));
    return ops->has(cipher);
}

/* Every library with every cipher that it has */
#define seal_for_each(_library, _cipher) \
    for ((_library) = UCI_SEAL_OPENSSL; (_library) < UCI_SEAL_LIBRARY_LAST; ++(_library)) \
        for ((_cipher) = UCI_SEAL_AES128; (_cipher) < UCI_SEAL_CIPHER_LAST; ++(_cipher)) \
            if (seal_library_can((uci_seal_lib_t)(_library), (uci_seal_cipher_t)(_cipher)))

#endif
