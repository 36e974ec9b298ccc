/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a library of cryptography does for records: a table of functions each. Libraries are opened with dlopen() when they are asked
 * for: this code is preloaded into programs that have no use for them. Records of one are opened by any other.
 *
 * A record is made, or opened, by start(), any number of part(), each of any length, and finish().
 */
#ifndef UCI_SEAL_CIPHER_H_
#define UCI_SEAL_CIPHER_H_

#include "settings/seal_spec.h"

#define UCI_SEAL_NONCE 12 /* bytes */

/** What is done with a record. */
typedef enum {
    UCI_SEAL_WAY_ENCRYPT,
    UCI_SEAL_WAY_DECRYPT,
    UCI_SEAL_WAY_SIGN, /**< all of it is authenticated, and nothing encrypted */
    UCI_SEAL_WAY_VERIFY
} uci_seal_way_t;

UCI_INLINE bool uci_seal_way_closes(uci_seal_way_t way)
{
    return (way == UCI_SEAL_WAY_ENCRYPT) || (way == UCI_SEAL_WAY_SIGN);
}

UCI_INLINE bool uci_seal_way_signs(uci_seal_way_t way)
{
    return way >= UCI_SEAL_WAY_SIGN;
}

typedef struct uci_seal_library_ops {
    uci_seal_lib_t id;

    /** Open the library. Called once. @return UCI_OK or UCI_ERR_UNSUPPORTED, with the reason in @a reason, not logged. */
    uci_status_t (*load)(char *reason, size_t size);

    /** @return name and version of what was opened, such as "openssl 3.0.19". */
    const char *(*version)(void);

    /** @return does it have @a cipher, and is it a good choice for it on this CPU? */
    bool (*has)(uci_seal_cipher_t cipher);

    /** @param key  of uci_seal_key_length(cipher) bytes. @return what the other functions want, in secret memory, or NULL (logged). */
    void *(*key_create)(uci_seal_cipher_t cipher, const uint8_t *key);
    void (*key_destroy)(void *key);

    /** Begin a record; @a key is in use until finish(). @param aad  authenticated in any case. @return false if the library failed. */
    bool (*start)(void *key, uci_seal_way_t way, const uint8_t nonce[UCI_SEAL_NONCE], const void *aad,
                  size_t aad_length);

    /** Encrypt or decrypt @a src to @a dst, which may be the same; or authenticate @a src, and leave @a dst alone. */
    bool (*part)(void *key, uci_seal_way_t way, void *dst, const void *src, size_t length);

    /** @param tag  written when closing; else compared, in constant time. @return false if it is another, or the library failed. */
    bool (*finish)(void *key, uci_seal_way_t way, uint8_t tag[UCI_SEAL_TAG]);
} uci_seal_library_ops_t;

extern const uci_seal_library_ops_t uci_seal_openssl, uci_seal_ipsec_mb;

/**
 * Open a library. Idempotent, thread safe.
 * @param id        not UCI_SEAL_LIBRARY_AUTO.
 * @param reason_p  set to why there is none, or NULL.
 * @return NULL (not logged) if it is not there.
 */
const uci_seal_library_ops_t *uci_seal_library_open(uci_seal_lib_t id, const char **reason_p);

/** A function of a library that has been opened. @return false: it has none of this name; @a reason says so. */
bool uci_seal_library_resolve(void *library, const char *file, const char *name, void *function_p, char *reason,
                              size_t size);

/** @return @a wanted, or for auto the one that is fastest on this CPU: AES with 128 bits where there are instructions for it. */
uci_seal_cipher_t uci_seal_cipher_choose(uci_seal_cipher_t wanted);

/**
 * The library to use for @a cipher, opened.
 * @param wanted  auto: the one that is fastest for it on this CPU, of those that are there.
 * @return UCI_OK or UCI_ERR_UNSUPPORTED (logged, with what to install).
 */
uci_status_t uci_seal_library_choose(uci_seal_lib_t wanted, uci_seal_cipher_t cipher,
                                     const uci_seal_library_ops_t **ops_p);

/** HKDF-SHA256 (RFC 5869), by OpenSSL. @return false (logged) if it failed. */
bool uci_seal_hkdf(const void *ikm, size_t ikm_length, const void *salt, size_t salt_length, const void *info,
                   size_t info_length, void *okm, size_t okm_length);

/** HMAC-SHA256 (RFC 2104) of @a data | @a more, by OpenSSL. @return false (logged) if it failed. */
bool uci_seal_hmac(const void *key, size_t key_length, const void *data, size_t length, const void *more,
                   size_t more_length, uint8_t mac[32]);

UCI_INLINE size_t uci_seal_key_length(uci_seal_cipher_t cipher)
{
    return (cipher == UCI_SEAL_AES128) ? 16 : 32;
}

/** @return are all @a length bytes equal? In a time that depends on @a length alone. */
UCI_INLINE bool uci_seal_equal(const uint8_t *one, const uint8_t *other, size_t length)
{
    uint8_t difference = 0;
    size_t i;

    for (i = 0; i < length; ++i) {
        difference |= (uint8_t)(one[i] ^ other[i]);
    }
    __asm__ volatile("" : "+r"(difference)); /* not to be taken apart into branches */
    return difference == 0;
}

#endif
