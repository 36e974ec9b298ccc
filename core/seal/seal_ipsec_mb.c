/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Intel's Multi-Buffer Crypto for IPsec: AES-GCM and GMAC, with VAES in vectors of 512 bits, which OpenSSL has from 3.1 on. Its key schedules
 * are in memory of ours. Not for ChaCha20, which is for CPUs that have none of this.
 *
 * Of its many interfaces only the "direct" ones for GCM are used, which take a record in parts and keep no state of their own.
 */
#include "seal_cipher.h"
#include "seal_ipsec_mb.h"
#include "secret.h"

#include <stdio.h>

bool uci_ipsec_mb_without_vaes;

#ifdef UCI_HAVE_IPSEC_MB

#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <string.h>

#define UCI_IPSEC_MB_LIBRARY "libIPSec_MB.so.1"

/* In secret memory */
typedef struct uci_ipsec_mb_key {
    struct gcm_key_data schedule;
    struct gcm_context_data context; /* of the record in progress */
    uci_seal_cipher_t cipher;
} uci_ipsec_mb_key_t;

static struct {
    __typeof__(alloc_mb_mgr) *alloc;
    __typeof__(init_mb_mgr_auto) *init;
    __typeof__(imb_get_version) *version_num;
    __typeof__(imb_get_version_str) *version_str;
} uci_ipsec_mb_library;

static IMB_MGR *uci_ipsec_mb; /* constant once it is made */
static char uci_ipsec_mb_version[64];

/* Its table of functions grows at its end: an older library than the header has a shorter one */
static bool uci_ipsec_mb_start_manager(char *reason, size_t size)
{
    IMB_ARCH arch;

    if (uci_ipsec_mb_library.version_num() < IMB_VERSION_NUM) {
        snprintf(reason, size, "version %s is older than %s, which UCI was built with",
                 uci_ipsec_mb_library.version_str(), IMB_VERSION_STR);
        return false;
    }

    /* of what may be turned off, this is what its code with VAES needs, and GCM without VAES does not */
    uci_ipsec_mb = uci_ipsec_mb_library.alloc(uci_ipsec_mb_without_vaes ? IMB_FLAG_GFNI_OFF : 0);
    if (uci_ipsec_mb == NULL) {
        snprintf(reason, size, "out of memory");
        return false;
    }
    uci_ipsec_mb_library.init(uci_ipsec_mb, &arch);
    snprintf(uci_ipsec_mb_version, sizeof(uci_ipsec_mb_version), "ipsec-mb %.32s", uci_ipsec_mb_library.version_str());
    return true;
}

#define UCI_IPSEC_MB_RESOLVE(_name, _member) \
    uci_seal_library_resolve(library, UCI_IPSEC_MB_LIBRARY, _name, &uci_ipsec_mb_library._member, reason, size)

static uci_status_t uci_ipsec_mb_load(char *reason, size_t size)
{
    void *library = dlopen(UCI_IPSEC_MB_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        snprintf(reason, size, "%s", dlerror());
        return UCI_ERR_UNSUPPORTED;
    }
    if (!UCI_IPSEC_MB_RESOLVE("alloc_mb_mgr", alloc) || !UCI_IPSEC_MB_RESOLVE("init_mb_mgr_auto", init) ||
        !UCI_IPSEC_MB_RESOLVE("imb_get_version", version_num) ||
        !UCI_IPSEC_MB_RESOLVE("imb_get_version_str", version_str) || !uci_ipsec_mb_start_manager(reason, size)) {
        dlclose(library);
        return UCI_ERR_UNSUPPORTED;
    }
    return UCI_OK;
}

static const char *uci_ipsec_mb_get_version(void)
{
    return uci_ipsec_mb_version;
}

static bool uci_ipsec_mb_has(uci_seal_cipher_t cipher)
{
    return ((cipher == UCI_SEAL_AES128) || (cipher == UCI_SEAL_AES256)) &&
           ((uci_ipsec_mb->features & IMB_CPUFLAGS_SSE) == IMB_CPUFLAGS_SSE);
}

static void uci_ipsec_mb_key_destroy(void *key)
{
    uci_secret_free(key);
}

static void *uci_ipsec_mb_key_create(uci_seal_cipher_t cipher, const uint8_t *key)
{
    uci_ipsec_mb_key_t *made = uci_secret_alloc(sizeof(*made));

    if (made == NULL) {
        return NULL;
    }
    made->cipher = cipher;
    if (cipher == UCI_SEAL_AES128) {
        IMB_AES128_GCM_PRE(uci_ipsec_mb, key, &made->schedule);
    } else {
        IMB_AES256_GCM_PRE(uci_ipsec_mb, key, &made->schedule);
    }
    return made;
}

/* Its functions are macros with the key's length in their names */
#define UCI_IPSEC_MB_CALL(_key, _what, ...) \
    do { \
        if ((_key)->cipher == UCI_SEAL_AES128) { \
            IMB_AES128_##_what(uci_ipsec_mb, &(_key)->schedule, &(_key)->context, ##__VA_ARGS__); \
        } else { \
            IMB_AES256_##_what(uci_ipsec_mb, &(_key)->schedule, &(_key)->context, ##__VA_ARGS__); \
        } \
    } while (0)

static bool uci_ipsec_mb_start(void *key_ptr, uci_seal_way_t way, const uint8_t nonce[UCI_SEAL_NONCE], const void *aad,
                               size_t aad_length)
{
    uci_ipsec_mb_key_t *key = key_ptr;

    if (uci_seal_way_signs(way)) {
        UCI_IPSEC_MB_CALL(key, GMAC_INIT, nonce, UCI_SEAL_NONCE);
        UCI_IPSEC_MB_CALL(key, GMAC_UPDATE, aad, aad_length);
    } else {
        UCI_IPSEC_MB_CALL(key, GCM_INIT, nonce, aad, aad_length);
    }
    return true;
}

static bool uci_ipsec_mb_part(void *key_ptr, uci_seal_way_t way, void *dst, const void *src, size_t length)
{
    uci_ipsec_mb_key_t *key = key_ptr;

    if (uci_seal_way_signs(way)) {
        UCI_IPSEC_MB_CALL(key, GMAC_UPDATE, src, length);
    } else if (way == UCI_SEAL_WAY_ENCRYPT) {
        UCI_IPSEC_MB_CALL(key, GCM_ENC_UPDATE, dst, src, length);
    } else {
        UCI_IPSEC_MB_CALL(key, GCM_DEC_UPDATE, dst, src, length);
    }
    return true;
}

static bool uci_ipsec_mb_finish(void *key_ptr, uci_seal_way_t way, uint8_t tag[UCI_SEAL_TAG])
{
    uci_ipsec_mb_key_t *key = key_ptr;
    uint8_t made[UCI_SEAL_TAG];

    if (uci_seal_way_signs(way)) {
        UCI_IPSEC_MB_CALL(key, GMAC_FINALIZE, made, UCI_SEAL_TAG);
    } else if (way == UCI_SEAL_WAY_ENCRYPT) {
        UCI_IPSEC_MB_CALL(key, GCM_ENC_FINALIZE, made, UCI_SEAL_TAG);
    } else {
        UCI_IPSEC_MB_CALL(key, GCM_DEC_FINALIZE, made, UCI_SEAL_TAG);
    }
    if (!uci_seal_way_closes(way)) {
        return uci_seal_equal(made, tag, UCI_SEAL_TAG);
    }
    memcpy(tag, made, UCI_SEAL_TAG);
    return true;
}

#else

static uci_status_t uci_ipsec_mb_load(char *reason, size_t size)
{
    snprintf(reason, size, "UCI was built without its header (Debian: libipsec-mb-dev; x86-64 only)");
    return UCI_ERR_UNSUPPORTED;
}

#endif

const uci_seal_library_ops_t uci_seal_ipsec_mb = {.id   = UCI_SEAL_IPSEC_MB,
                                                  .load = uci_ipsec_mb_load,
#ifdef UCI_HAVE_IPSEC_MB
                                                  .version     = uci_ipsec_mb_get_version,
                                                  .has         = uci_ipsec_mb_has,
                                                  .key_create  = uci_ipsec_mb_key_create,
                                                  .key_destroy = uci_ipsec_mb_key_destroy,
                                                  .start       = uci_ipsec_mb_start,
                                                  .part        = uci_ipsec_mb_part,
                                                  .finish      = uci_ipsec_mb_finish
#endif
};
