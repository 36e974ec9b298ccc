/* SPDX-License-Identifier: BSD-3-Clause */
#include "seal.h"
#include "util/log.h"
#include "util/process.h"
#include "seal_cipher.h"
#include "seal_key.h"
#include "seal_window.h"
#include "secret.h"
#include "settings/settings.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define UCI_SEAL_LABEL      "uci seal v1"
#define UCI_SEAL_MARK_LABEL "uci mark v1"
#define UCI_SEAL_BLOCK      ((size_t)8 << 10) /* copied, then authenticated while it is in the L1 cache */
#define UCI_SEAL_OPENERS    2                 /* keys of a peer: records of the epoch before may still come */

/* What a key is made of beside the job's: see seal.h */
typedef struct uci_seal_info {
    char label[sizeof(UCI_SEAL_LABEL)]; /* with its 0 */
    uint8_t cipher;
    uint8_t mode;
    uint8_t reserved[2];
    uint64_t sender, receiver; /* little endian, as the epoch */
    uint64_t epoch;
} __attribute__((packed)) uci_seal_info_t;

/* A key of one direction for one epoch */
typedef struct uci_seal_epoch_key {
    void *key; /* the library's; NULL: not derived yet */
    uint64_t epoch;
} uci_seal_epoch_key_t;

struct uci_seal_pair {
    uint64_t own_uid, peer_uid;
    uint8_t own_random[UCI_SEAL_RANDOM], peer_random[UCI_SEAL_RANDOM];
    uci_seal_epoch_key_t closer;                    /* of what we send */
    uci_seal_epoch_key_t openers[UCI_SEAL_OPENERS]; /* of what the peer sends, the newest first */
    uci_seal_window_t window;
};

/* In secret memory */
typedef struct uci_seal_keys {
    uint8_t job[UCI_SEAL_KEY];
    uint8_t mark[UCI_SEAL_KEY];
    bool present; /* not in a forked child, where all of this is 0 */
} uci_seal_keys_t;

static struct {
    pthread_mutex_t lock;
    bool initialized;
    uci_status_t status;
    uci_seal_keys_t *keys; /* NULL: nothing is sealed */
    uci_seal_mode_t mode;
    uci_seal_cipher_t cipher;
    const uci_seal_library_ops_t *library;
} uci_seal = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uci_status_t uci_seal_read_keys(uci_seal_keys_t *keys)
{
    char path[PATH_MAX];
    uci_status_t status;

    status = uci_process_expand(uci_settings.key_file, path, sizeof(path));
    if (status != UCI_OK) {
        uci_error("UCI_KEY_FILE=%s is too long for a file name", uci_settings.key_file);
        return status;
    }
    status = uci_seal_key_read(path, keys->job);
    if (status != UCI_OK) {
        return status;
    }
    return uci_seal_hkdf(keys->job, sizeof(keys->job), NULL, 0, UCI_SEAL_MARK_LABEL, strlen(UCI_SEAL_MARK_LABEL),
                         keys->mark, sizeof(keys->mark))
                   ? UCI_OK
                   : UCI_ERR_NO_MEMORY;
}

static uci_status_t uci_seal_start(void)
{
    uci_seal_keys_t *keys;
    uci_status_t status;

    uci_seal.mode   = uci_settings.seal;
    uci_seal.cipher = uci_seal_cipher_choose(uci_settings.seal_cipher);
    if (*uci_settings.key_file == '\0') {
        uci_error("UCI_SEAL=%s needs a key: name its file in UCI_KEY_FILE, or start the job with 'uci_run --seal'",
                  uci_seal_mode_names[uci_seal.mode]);
        return UCI_ERR_NO_ELEM;
    }
    status = uci_seal_library_choose(uci_settings.seal_library, uci_seal.cipher, &uci_seal.library);
    if (status != UCI_OK) {
        return status;
    }

    keys = uci_secret_alloc(sizeof(*keys));
    if (keys == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    status = uci_seal_read_keys(keys);
    if (status != UCI_OK) {
        uci_secret_free(keys);
        return status;
    }
    keys->present = true;
    uci_seal.keys = keys;
    uci_info("sealing: %s, scope %s, %s by %s", uci_seal_mode_names[uci_seal.mode],
             uci_seal_scope_names[uci_settings.seal_scope], uci_seal_cipher_names[uci_seal.cipher],
             uci_seal.library->version());
    return UCI_OK;
}

uci_status_t uci_seal_init(void)
{
    pthread_mutex_lock(&uci_seal.lock);
    if (!uci_seal.initialized) {
        uci_seal.status      = (uci_settings.seal == UCI_SEAL_OFF) ? UCI_OK : uci_seal_start();
        uci_seal.initialized = true;
    }
    pthread_mutex_unlock(&uci_seal.lock);
    return uci_seal.status;
}

void uci_seal_cleanup(void)
{
    pthread_mutex_lock(&uci_seal.lock);
    uci_secret_free(uci_seal.keys);
    uci_seal.keys        = NULL;
    uci_seal.initialized = false;
    pthread_mutex_unlock(&uci_seal.lock);
}

bool uci_seal_is_on(void)
{
    return uci_seal.keys != NULL;
}

bool uci_seal_is_inherited(void)
{
    return uci_seal_is_on() && !uci_seal.keys->present;
}

/* @return false (logged): there are no keys, and nothing may be made of what stands in their place */
static bool uci_seal_has_keys(void)
{
    static bool said;

    if (uci_likely(!uci_seal_is_inherited())) {
        return true;
    }
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        uci_error("a forked process has none of its parent's keys: it can't seal, open or authenticate anything");
    }
    return false;
}

uci_seal_cipher_t uci_seal_cipher(void)
{
    return uci_seal.cipher;
}

uci_status_t uci_seal_random(uint8_t random[UCI_SEAL_RANDOM])
{
    ssize_t ret;

    do {
        ret = getrandom(random, UCI_SEAL_RANDOM, 0); /* so few bytes come whole */
    } while ((ret < 0) && (errno == EINTR));
    if (ret != UCI_SEAL_RANDOM) {
        uci_error("the kernel has no random bytes for a worker: %m");
        return UCI_ERR_IO;
    }
    return UCI_OK;
}

uci_status_t uci_seal_mark_auth(const void *data, size_t length, const void *more, size_t more_length,
                                uint8_t mac[UCI_SEAL_MAC])
{
    uint8_t whole[32];

    if (!uci_seal_has_keys() ||
        !uci_seal_hmac(uci_seal.keys->mark, sizeof(uci_seal.keys->mark), data, length, more, more_length, whole)) {
        return UCI_ERR_NO_MEMORY;
    }
    memcpy(mac, whole, UCI_SEAL_MAC);
    return UCI_OK;
}

bool uci_seal_mark_is_authentic(const void *data, size_t length, const void *more, size_t more_length,
                                const uint8_t mac[UCI_SEAL_MAC])
{
    uint8_t expected[UCI_SEAL_MAC];

    return (uci_seal_mark_auth(data, length, more, more_length, expected) == UCI_OK) &&
           uci_seal_equal(mac, expected, sizeof(expected));
}

uci_status_t uci_seal_pair_create(uint64_t own_uid, const uint8_t own_random[UCI_SEAL_RANDOM], uint64_t peer_uid,
                                  const uint8_t peer_random[UCI_SEAL_RANDOM], uci_seal_pair_t **pair_p)
{
    uci_seal_pair_t *pair = calloc(1, sizeof(*pair)); /* the keys that it points to are in secret memory */

    if (pair == NULL) {
        uci_error("failed to allocate the state of a sealed pair of workers");
        return UCI_ERR_NO_MEMORY;
    }
    pair->own_uid  = own_uid;
    pair->peer_uid = peer_uid;
    memcpy(pair->own_random, own_random, UCI_SEAL_RANDOM);
    memcpy(pair->peer_random, peer_random, UCI_SEAL_RANDOM);
    *pair_p = pair;
    return UCI_OK;
}

static void uci_seal_epoch_key_drop(uci_seal_epoch_key_t *epoch_key)
{
    if (epoch_key->key != NULL) {
        uci_seal.library->key_destroy(epoch_key->key);
        epoch_key->key = NULL;
    }
}

void uci_seal_pair_destroy(uci_seal_pair_t *pair)
{
    unsigned i;

    if (pair == NULL) {
        return;
    }
    uci_seal_epoch_key_drop(&pair->closer);
    for (i = 0; i < UCI_SEAL_OPENERS; ++i) {
        uci_seal_epoch_key_drop(&pair->openers[i]);
    }
    free(pair);
}

/* @param own  the direction: of what we send, or of what the peer does. @return NULL (logged) if it failed. */
static void *uci_seal_derive(const uci_seal_pair_t *pair, bool own, uint64_t epoch)
{
    uci_seal_info_t info = {.label    = UCI_SEAL_LABEL,
                            .cipher   = (uint8_t)uci_seal.cipher,
                            .mode     = (uint8_t)uci_seal.mode,
                            .sender   = htole64(own ? pair->own_uid : pair->peer_uid),
                            .receiver = htole64(own ? pair->peer_uid : pair->own_uid),
                            .epoch    = htole64(epoch)};
    uint8_t salt[2 * UCI_SEAL_RANDOM], *secret = uci_secret_alloc(UCI_SEAL_KEY);
    void *key = NULL;

    memcpy(salt, own ? pair->own_random : pair->peer_random, UCI_SEAL_RANDOM);
    memcpy(salt + UCI_SEAL_RANDOM, own ? pair->peer_random : pair->own_random, UCI_SEAL_RANDOM);
    if ((secret != NULL) && uci_seal_hkdf(uci_seal.keys->job, UCI_SEAL_KEY, salt, sizeof(salt), &info, sizeof(info),
                                          secret, uci_seal_key_length(uci_seal.cipher))) {
        key = uci_seal.library->key_create(uci_seal.cipher, secret);
    }
    uci_secret_free(secret);
    return key;
}

static uci_status_t uci_seal_epoch_key_make(const uci_seal_pair_t *pair, bool own, uint64_t epoch,
                                            uci_seal_epoch_key_t *epoch_key)
{
    epoch_key->epoch = epoch;
    epoch_key->key   = uci_seal_derive(pair, own, epoch);
    return (epoch_key->key != NULL) ? UCI_OK : UCI_ERR_NO_MEMORY;
}

static void uci_seal_make_nonce(uint64_t counter, uint8_t nonce[UCI_SEAL_NONCE])
{
    counter = htobe64(counter);
    memset(nonce, 0, UCI_SEAL_NONCE - sizeof(counter));
    memcpy(nonce + UCI_SEAL_NONCE - sizeof(counter), &counter, sizeof(counter));
}

static uci_seal_way_t uci_seal_way(bool close)
{
    if (uci_seal.mode == UCI_SEAL_SIGN) {
        return close ? UCI_SEAL_WAY_SIGN : UCI_SEAL_WAY_VERIFY;
    }
    return close ? UCI_SEAL_WAY_ENCRYPT : UCI_SEAL_WAY_DECRYPT;
}

/* Copied block by block first, and what was copied is what is authenticated */
static bool uci_seal_sign_part(void *key, uci_seal_way_t way, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t done, piece;

    for (done = 0; done < length; done += piece) {
        piece = uci_min(length - done, UCI_SEAL_BLOCK);
        if (dst != src) {
            memcpy(dst + done, src + done, piece);
        }
        if (!uci_seal.library->part(key, way, NULL, dst + done, piece)) {
            return false;
        }
    }
    return true;
}

static bool uci_seal_part(void *key, uci_seal_way_t way, void *dst, const void *src, size_t length)
{
    if (length == 0) {
        return true;
    }
    return uci_seal_way_signs(way) ? uci_seal_sign_part(key, way, dst, src, length)
                                   : uci_seal.library->part(key, way, dst, src, length);
}

uci_status_t uci_seal_close(uci_seal_pair_t *pair, uint64_t counter, const void *head, size_t head_length,
                            const void *body, size_t body_length, void *record)
{
    uint8_t *sealed    = (uint8_t *)record + sizeof(uci_seal_hdr_t), nonce[UCI_SEAL_NONCE];
    uci_seal_hdr_t hdr = {.uid = pair->own_uid, .counter = counter};
    uint64_t epoch     = counter / UCI_SEAL_EPOCH;
    uci_seal_way_t way = uci_seal_way(true);
    void *key;

    if (!uci_seal_has_keys()) {
        return UCI_ERR_NO_MEMORY;
    }
    if (uci_unlikely((pair->closer.key == NULL) || (pair->closer.epoch != epoch))) {
        uci_seal_epoch_key_drop(&pair->closer);
        if (uci_seal_epoch_key_make(pair, true, epoch, &pair->closer) != UCI_OK) {
            return UCI_ERR_NO_MEMORY;
        }
    }

    key = pair->closer.key;
    memcpy(record, &hdr, sizeof(hdr));
    uci_seal_make_nonce(counter, nonce);
    if (!uci_seal.library->start(key, way, nonce, &hdr, sizeof(hdr)) ||
        !uci_seal_part(key, way, sealed, head, head_length) ||
        !uci_seal_part(key, way, sealed + head_length, body, body_length) ||
        !uci_seal.library->finish(key, way, sealed + head_length + body_length)) {
        uci_error("%s could not seal a record of %zu bytes", uci_seal.library->version(), head_length + body_length);
        return UCI_ERR_IO;
    }
    return UCI_OK;
}

/* The key for a record of @a epoch; one that is not among ours yet is made in @a fresh, for nothing is authentic so far. */
static void *uci_seal_find_opener(const uci_seal_pair_t *pair, uint64_t epoch, uci_seal_epoch_key_t *fresh)
{
    unsigned i;

    fresh->key = NULL;
    for (i = 0; i < UCI_SEAL_OPENERS; ++i) {
        if ((pair->openers[i].key != NULL) && (pair->openers[i].epoch == epoch)) {
            return pair->openers[i].key;
        }
    }
    (void)uci_seal_epoch_key_make(pair, false, epoch, fresh);
    return fresh->key;
}

/* The newest comes first; one that is older than both, and so was only needed for this record, goes again */
static void uci_seal_keep_opener(uci_seal_pair_t *pair, uci_seal_epoch_key_t fresh)
{
    uci_seal_epoch_key_t swap;
    unsigned i;

    for (i = 0; i < UCI_SEAL_OPENERS; ++i) {
        if ((pair->openers[i].key == NULL) || (pair->openers[i].epoch < fresh.epoch)) {
            swap             = pair->openers[i];
            pair->openers[i] = fresh;
            fresh            = swap;
        }
    }
    uci_seal_epoch_key_drop(&fresh);
}

static bool uci_seal_is_authentic(void *key, const uci_seal_hdr_t *hdr, const uint8_t *sealed, size_t length,
                                  void *head, size_t head_length, void *body)
{
    uint8_t nonce[UCI_SEAL_NONCE], tag[UCI_SEAL_TAG];
    uci_seal_way_t way = uci_seal_way(false);

    uci_seal_make_nonce(hdr->counter, nonce);
    memcpy(tag, sealed + length, sizeof(tag));
    return uci_seal.library->start(key, way, nonce, hdr, sizeof(*hdr)) &&
           uci_seal_part(key, way, head, sealed, head_length) &&
           uci_seal_part(key, way, body, sealed + head_length, length - head_length) &&
           uci_seal.library->finish(key, way, tag);
}

/* Authenticate and open a record whose header has been copied to @a hdr, and looked at */
static uci_status_t uci_seal_open_with(uci_seal_pair_t *pair, const uci_seal_hdr_t *hdr, const void *record,
                                       size_t length, void *head, size_t head_length, void *body)
{
    const uint8_t *sealed      = (const uint8_t *)record + sizeof(*hdr);
    uci_seal_epoch_key_t fresh = {.key = NULL};
    void *key;

    if (!uci_seal_has_keys()) {
        return UCI_ERR_NO_MEMORY;
    }
    key = uci_seal_find_opener(pair, hdr->counter / UCI_SEAL_EPOCH, &fresh);
    if (uci_unlikely(key == NULL)) {
        return UCI_ERR_NO_MEMORY;
    }
    if (uci_unlikely(!uci_seal_is_authentic(key, hdr, sealed, length - UCI_SEAL_OVERHEAD, head, head_length, body))) {
        uci_seal_epoch_key_drop(&fresh);
        return UCI_ERR_CORRUPT;
    }
    if (uci_unlikely(fresh.key != NULL)) {
        uci_seal_keep_opener(pair, fresh);
    }
    return UCI_OK;
}

/* @return false: what says so of itself can't be authentic */
static bool uci_seal_read_hdr(const uci_seal_pair_t *pair, const void *record, size_t length, size_t head_length,
                              uci_seal_hdr_t *hdr)
{
    if (uci_unlikely((length < UCI_SEAL_OVERHEAD) || (length - UCI_SEAL_OVERHEAD < head_length))) {
        return false;
    }
    memcpy(hdr, record, sizeof(*hdr));
    return uci_likely(hdr->uid == pair->peer_uid);
}

uci_status_t uci_seal_open(uci_seal_pair_t *pair, const void *record, size_t length, void *head, size_t head_length,
                           void *body)
{
    uci_seal_hdr_t hdr;
    uci_status_t status;

    if (!uci_seal_read_hdr(pair, record, length, head_length, &hdr)) {
        return UCI_ERR_CORRUPT;
    }
    if (uci_unlikely(!uci_seal_window_is_new(&pair->window, hdr.counter))) {
        return UCI_ERR_NO_ELEM;
    }
    status = uci_seal_open_with(pair, &hdr, record, length, head, head_length, body);
    if (uci_likely(status == UCI_OK)) {
        uci_seal_window_take(&pair->window, hdr.counter);
    }
    return status;
}

uci_status_t uci_seal_open_at(uci_seal_pair_t *pair, uint64_t counter, const void *record, size_t length, void *head,
                              size_t head_length, void *body)
{
    uci_seal_hdr_t hdr;

    if (!uci_seal_read_hdr(pair, record, length, head_length, &hdr) || (hdr.counter != counter)) {
        return UCI_ERR_CORRUPT;
    }
    return uci_seal_open_with(pair, &hdr, record, length, head, head_length, body);
}
