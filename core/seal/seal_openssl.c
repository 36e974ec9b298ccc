/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenSSL 3: all ciphers, and the derivation of keys. It keeps key schedules in memory of its own, from the heap, which would be in a core
 * dump. Where no part of the process has used libcrypto before, its allocator is set to one that is malloc(), except while
 * it makes a key for us: then it is secret memory. What it leaves on the stack is wiped behind it.
 *
 * The process may have uses of its own for the same library, so what is changed there is as little as can be: a library context of our
 * own, which reads no configuration file, and no clearing up at exit, which would come before ours.
 */
#include "util/log.h"
#include "seal_cipher.h"
#include "secret.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#define UCI_OPENSSL_TEXT(_text)    #_text
#define UCI_OPENSSL_STRING(_macro) UCI_OPENSSL_TEXT(_macro)
#define UCI_OPENSSL_LIBRARY        "libcrypto.so." UCI_OPENSSL_STRING(OPENSSL_SHLIB_VERSION) /* as its headers */
#define UCI_OPENSSL_PIECE          ((size_t)1 << 30) /* its lengths are of type int */
#define UCI_OPENSSL_STACK          8192 /* bytes: more than it uses; its ChaCha20 for AVX2 takes less than 1 KiB */

#define UCI_OPENSSL_FOR_EACH_FUNCTION(_f) \
    _f(CRYPTO_set_mem_functions) _f(OPENSSL_init_crypto) _f(OpenSSL_version) _f(OSSL_LIB_CTX_new) _f(EVP_CIPHER_fetch) \
            _f(EVP_CIPHER_CTX_new) _f(EVP_CIPHER_CTX_free) _f(EVP_CIPHER_CTX_ctrl) _f(EVP_CipherInit_ex2) \
                    _f(EVP_CIPHER_CTX_get0_cipher) _f(EVP_CipherUpdate) _f(EVP_CipherFinal_ex) _f(EVP_KDF_fetch) \
                            _f(EVP_KDF_CTX_new) _f(EVP_KDF_CTX_free) _f(EVP_KDF_derive) _f(EVP_MAC_fetch) \
                                    _f(EVP_MAC_CTX_new) _f(EVP_MAC_CTX_free) _f(EVP_MAC_init) _f(EVP_MAC_update) \
                                            _f(EVP_MAC_final)

#define UCI_OPENSSL_DECLARE(_name) __typeof__(_name) *_name;

/* The library's functions, under their own names */
static struct {
    UCI_OPENSSL_FOR_EACH_FUNCTION(UCI_OPENSSL_DECLARE)
} uci_openssl;

static EVP_CIPHER *uci_openssl_ciphers[UCI_SEAL_CIPHER_LAST];
static EVP_KDF *uci_openssl_hkdf;
static EVP_MAC *uci_openssl_hmac;
static char uci_openssl_version[64];

static bool uci_openssl_ready; /* what it keeps for all its uses has been made */

/* Is this thread in a call that makes a key? */
static __thread bool uci_openssl_secret;

static void *uci_openssl_malloc(size_t size, const char *file, int line)
{
    return uci_openssl_secret ? uci_secret_alloc(size) : malloc(size);
}

static void uci_openssl_free(void *ptr, const char *file, int line)
{
    if (uci_secret_owns(ptr)) {
        uci_secret_free(ptr);
    } else {
        free(ptr);
    }
}

static void *uci_openssl_realloc(void *ptr, size_t size, const char *file, int line)
{
    void *moved;

    if (!uci_secret_owns(ptr)) {
        return ((ptr == NULL) && uci_openssl_secret) ? uci_secret_alloc(size) : realloc(ptr, size);
    }

    moved = uci_secret_alloc(size);
    if (moved != NULL) {
        memcpy(moved, ptr, uci_min(size, uci_secret_size(ptr)));
        uci_secret_free(ptr);
    }
    return moved;
}

/*
 * Wipe what calls from our caller have left below its frame. Without AVX-512 OpenSSL's ChaCha20 (chacha-x86_64.pl) leaves the key there, and
 * SHA-256 a block that is the key but for a known pad.
 */
static void __attribute__((noinline)) uci_openssl_wipe_stack(void)
{
    char below[UCI_OPENSSL_STACK];

    explicit_bzero(below, sizeof(below));
}

static bool uci_openssl_derive(OSSL_PARAM *params, void *okm, size_t okm_length)
{
    EVP_KDF_CTX *context = uci_openssl.EVP_KDF_CTX_new(uci_openssl_hkdf);
    bool ok              = (context != NULL) && (uci_openssl.EVP_KDF_derive(context, okm, okm_length, params) == 1);

    uci_openssl.EVP_KDF_CTX_free(context);
    return ok;
}

bool uci_seal_hkdf(const void *ikm, size_t ikm_length, const void *salt, size_t salt_length, const void *info,
                   size_t info_length, void *okm, size_t okm_length)
{
    OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", strlen("SHA256")),
                           OSSL_PARAM_octet_string(OSSL_KDF_PARAM_KEY, (void *)ikm, ikm_length),
                           OSSL_PARAM_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_length),
                           OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_length), OSSL_PARAM_END};
    bool ok;

    if (salt_length == 0) {
        params[3] = params[4]; /* RFC 5869: as many zeros as the hash is long, which is what it takes without */
    }
    uci_openssl_secret = uci_openssl_ready;
    ok                 = uci_openssl_derive(params, okm, okm_length);
    uci_openssl_secret = false;
    uci_openssl_wipe_stack();
    if (!ok) {
        uci_error("OpenSSL could not derive a key");
    }
    return ok;
}

static bool uci_openssl_authenticate(const void *key, size_t key_length, const void *data, size_t length,
                                     const void *more, size_t more_length, uint8_t mac[32])
{
    const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", strlen("SHA256")),
                                 OSSL_PARAM_END};
    EVP_MAC_CTX *context      = uci_openssl.EVP_MAC_CTX_new(uci_openssl_hmac);
    size_t written;
    bool ok = (context != NULL) && (uci_openssl.EVP_MAC_init(context, key, key_length, params) == 1) &&
              (uci_openssl.EVP_MAC_update(context, data, length) == 1) &&
              (uci_openssl.EVP_MAC_update(context, more, more_length) == 1) &&
              (uci_openssl.EVP_MAC_final(context, mac, &written, 32) == 1);

    uci_openssl.EVP_MAC_CTX_free(context);
    return ok;
}

bool uci_seal_hmac(const void *key, size_t key_length, const void *data, size_t length, const void *more,
                   size_t more_length, uint8_t mac[32])
{
    bool ok;

    uci_openssl_secret = uci_openssl_ready;
    ok                 = uci_openssl_authenticate(key, key_length, data, length, more, more_length, mac);
    uci_openssl_secret = false;
    uci_openssl_wipe_stack();
    if (!ok) {
        uci_error("OpenSSL could not authenticate a mark");
    }
    return ok;
}

static void uci_openssl_key_destroy(void *key)
{
    uci_openssl.EVP_CIPHER_CTX_free(key);
}

static void *uci_openssl_key_create(uci_seal_cipher_t cipher, const uint8_t *key)
{
    EVP_CIPHER_CTX *context;

    uci_openssl_secret = uci_openssl_ready;
    context            = uci_openssl.EVP_CIPHER_CTX_new();
    if ((context != NULL) &&
        (uci_openssl.EVP_CipherInit_ex2(context, uci_openssl_ciphers[cipher], key, NULL, 1, NULL) != 1)) {
        uci_openssl.EVP_CIPHER_CTX_free(context);
        context = NULL;
    }
    uci_openssl_secret = false;
    if (context == NULL) {
        uci_error("OpenSSL could not make a key");
    }
    return context;
}

/* From a context of our own: the one that the process has may be restricted, or extended, by a configuration file. */
static bool uci_openssl_fetch(void)
{
    static const char *const names[] = {[UCI_SEAL_AES128]   = "AES-128-GCM",
                                        [UCI_SEAL_AES256]   = "AES-256-GCM",
                                        [UCI_SEAL_CHACHA20] = "ChaCha20-Poly1305"};
    OSSL_LIB_CTX *context            = uci_openssl.OSSL_LIB_CTX_new();
    unsigned i;

    if (context == NULL) {
        return false;
    }
    for (i = UCI_SEAL_AES128; i < UCI_SEAL_CIPHER_LAST; ++i) {
        uci_openssl_ciphers[i] = uci_openssl.EVP_CIPHER_fetch(context, names[i], NULL); /* NULL: it has not got it */
    }
    uci_openssl_hkdf = uci_openssl.EVP_KDF_fetch(context, "HKDF", NULL);
    uci_openssl_hmac = uci_openssl.EVP_MAC_fetch(context, "HMAC", NULL);
    return (uci_openssl_hkdf != NULL) && (uci_openssl_hmac != NULL);
}

/* What it makes at the first use of anything, and keeps, is no secret, and a forked child that seals needs it */
static bool uci_openssl_warm_up(void)
{
    static const uint8_t zeros[UCI_SEAL_KEY];
    uint8_t out[32];
    unsigned i;
    void *key;

    for (i = UCI_SEAL_AES128; i < UCI_SEAL_CIPHER_LAST; ++i) {
        if (uci_openssl_ciphers[i] != NULL) {
            key = uci_openssl_key_create((uci_seal_cipher_t)i, zeros);
            if (key == NULL) {
                return false;
            }
            uci_openssl_key_destroy(key);
        }
    }
    return uci_seal_hkdf(zeros, sizeof(zeros), zeros, sizeof(zeros), zeros, sizeof(zeros), out, sizeof(out)) &&
           uci_seal_hmac(zeros, sizeof(zeros), zeros, sizeof(zeros), NULL, 0, out);
}

static uci_status_t uci_openssl_load(char *reason, size_t size)
{
    void *library = dlopen(UCI_OPENSSL_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        snprintf(reason, size, "%s", dlerror());
        return UCI_ERR_UNSUPPORTED;
    }

#define UCI_OPENSSL_RESOLVE(_name) \
    if (!uci_seal_library_resolve(library, UCI_OPENSSL_LIBRARY, #_name, &uci_openssl._name, reason, size)) { \
        goto err_close; \
    }
    UCI_OPENSSL_FOR_EACH_FUNCTION(UCI_OPENSSL_RESOLVE)

    /* first: it refuses once it has allocated anything */
    if (!uci_openssl.CRYPTO_set_mem_functions(uci_openssl_malloc, uci_openssl_realloc, uci_openssl_free)) {
        uci_info("the program has used OpenSSL before: what OpenSSL makes of keys is not left out of core dumps");
    }
    uci_openssl.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    if (!uci_openssl_fetch() || !uci_openssl_warm_up()) {
        snprintf(reason, size, "%s has no HKDF and HMAC that work", UCI_OPENSSL_LIBRARY);
        goto err_close;
    }
    uci_openssl_ready = true;
    snprintf(uci_openssl_version, sizeof(uci_openssl_version), "openssl %s",
             uci_openssl.OpenSSL_version(OPENSSL_VERSION_STRING));
    return UCI_OK;

err_close:
    dlclose(library);
    return UCI_ERR_UNSUPPORTED;
}

static const char *uci_openssl_get_version(void)
{
    return uci_openssl_version;
}

static bool uci_openssl_has(uci_seal_cipher_t cipher)
{
    return uci_openssl_ciphers[cipher] != NULL;
}

/* @param dst  NULL: to be authenticated only */
static bool uci_openssl_update(void *key, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t done, piece;
    int written;

    for (done = 0; done < length; done += piece) {
        piece = uci_min(length - done, UCI_OPENSSL_PIECE);
        if (uci_openssl.EVP_CipherUpdate(key, (dst != NULL) ? dst + done : NULL, &written, src + done, (int)piece) !=
            1) {
            return false;
        }
    }
    return true;
}

static bool uci_openssl_start(void *key, uci_seal_way_t way, const uint8_t nonce[UCI_SEAL_NONCE], const void *aad,
                              size_t aad_length)
{
    return (uci_openssl.EVP_CipherInit_ex2(key, NULL, NULL, nonce, uci_seal_way_closes(way), NULL) == 1) &&
           uci_openssl_update(key, NULL, aad, aad_length);
}

static bool uci_openssl_part(void *key, uci_seal_way_t way, void *dst, const void *src, size_t length)
{
    return uci_openssl_update(key, uci_seal_way_signs(way) ? NULL : dst, src, length);
}

/* It wants the tag that it is to compare with before the end, and compares in the end */
static bool uci_openssl_finish(void *key, uci_seal_way_t way, uint8_t tag[UCI_SEAL_TAG])
{
    bool closes = uci_seal_way_closes(way), ok;
    uint8_t none[UCI_SEAL_TAG];
    int written;

    if (!closes && (uci_openssl.EVP_CIPHER_CTX_ctrl(key, EVP_CTRL_AEAD_SET_TAG, UCI_SEAL_TAG, tag) != 1)) {
        return false;
    }
    ok = (uci_openssl.EVP_CipherFinal_ex(key, none, &written) == 1) &&
         (!closes || (uci_openssl.EVP_CIPHER_CTX_ctrl(key, EVP_CTRL_AEAD_GET_TAG, UCI_SEAL_TAG, tag) == 1));
    if (uci_openssl.EVP_CIPHER_CTX_get0_cipher(key) == uci_openssl_ciphers[UCI_SEAL_CHACHA20]) {
        uci_openssl_wipe_stack(); /* of the whole record: its parts came from the caller of this, too */
    }
    return ok;
}

const uci_seal_library_ops_t uci_seal_openssl = {.id          = UCI_SEAL_OPENSSL,
                                                 .load        = uci_openssl_load,
                                                 .version     = uci_openssl_get_version,
                                                 .has         = uci_openssl_has,
                                                 .key_create  = uci_openssl_key_create,
                                                 .key_destroy = uci_openssl_key_destroy,
                                                 .start       = uci_openssl_start,
                                                 .part        = uci_openssl_part,
                                                 .finish      = uci_openssl_finish};
