/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * That the construction is what docs/sealing.md says: done again here, from its words.
 */
#include "seal_libraries.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seal/seal.h"
#include "seal/secret.h"
#include "settings/settings.h"

#define ALICE_UID 0x0102030405060708ull
#define BOB_UID   0x1112131415161718ull
#define LENGTH    100

static const uint8_t job_key[UCI_SEAL_KEY] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
                                              0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a,
                                              0x69, 0x78, 0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0};

static char key_path[] = "/tmp/uci-test-seal-construction.XXXXXX";
static uint8_t alice_random[UCI_SEAL_RANDOM], bob_random[UCI_SEAL_RANDOM];
static uint8_t body[LENGTH], record[LENGTH + UCI_SEAL_OVERHEAD], out[LENGTH];

static void set_up(void)
{
    static const char text[] = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0\n";
    int fd                   = mkstemp(key_path);

    cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    close(fd);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_settings.key_file = key_path;
    cr_assert_eq(uci_seal_random(alice_random), UCI_OK);
    cr_assert_eq(uci_seal_random(bob_random), UCI_OK);
    memset(body, 'b', sizeof(body));
}

static void tear_down(void)
{
    uci_seal_cleanup();
    unlink(key_path);
}

TestSuite(seal_construction, .init = set_up, .fini = tear_down);

static void start(uci_seal_mode_t mode, uci_seal_cipher_t cipher, uci_seal_lib_t library)
{
    uci_settings.seal         = mode;
    uci_settings.seal_cipher  = cipher;
    uci_settings.seal_library = library;
    cr_assert_eq(uci_seal_init(), UCI_OK);
}

/* The key from Alice to Bob, as docs/sealing.md has it, word for word. @return in secret memory */
static uint8_t *derive(uci_seal_cipher_t cipher, uci_seal_mode_t mode, uint64_t epoch)
{
    uint8_t *derived  = uci_secret_alloc(UCI_SEAL_KEY), salt[64], info[40];
    uint64_t words[3] = {htole64(ALICE_UID), htole64(BOB_UID), htole64(epoch)};

    memcpy(salt, alice_random, 32);
    memcpy(salt + 32, bob_random, 32);
    memcpy(info, "uci seal v1", 12);
    info[12] = (uint8_t)cipher;
    info[13] = (uint8_t)mode;
    info[14] = info[15] = 0;
    memcpy(info + 16, words, 24);
    cr_assert(uci_seal_hkdf(job_key, UCI_SEAL_KEY, salt, 64, info, 40, derived, uci_seal_key_length(cipher)));
    return derived;
}

/* Opened by hand */
static void expect_record(uci_seal_cipher_t cipher, uci_seal_mode_t mode, uint64_t counter)
{
    const uci_seal_library_ops_t *ops = uci_seal_library_open(UCI_SEAL_OPENSSL, NULL);
    uci_seal_way_t way                = (mode == UCI_SEAL_SIGN) ? UCI_SEAL_WAY_VERIFY : UCI_SEAL_WAY_DECRYPT;
    uint8_t *derived = derive(cipher, mode, counter >> 20), nonce[UCI_SEAL_NONCE] = {0};
    uint64_t uid = ALICE_UID, big = htobe64(counter);
    void *key = ops->key_create(cipher, derived);

    cr_expect_eq(memcmp(record, &uid, 8), 0);
    cr_expect_eq(memcmp(record + 8, &counter, 8), 0);
    memcpy(nonce + 4, &big, 8);
    memcpy(out, record + 16, LENGTH);
    cr_expect(ops->start(key, way, nonce, record, 16));
    cr_expect(ops->part(key, way, out, record + 16, LENGTH));
    cr_expect(ops->finish(key, way, record + 16 + LENGTH), "%s %s", uci_seal_mode_names[mode],
              uci_seal_cipher_names[cipher]);
    cr_expect_arr_eq(out, body, LENGTH);
    ops->key_destroy(key);
    uci_secret_free(derived);
}

Test(seal_construction, is_what_the_documents_say)
{
    static const uint64_t counters[] = {0, 1, 77777777, (1ull << 40) + 5};
    uci_seal_pair_t *pair;
    int library, cipher, mode;
    size_t i;

    seal_for_each(library, cipher)
    {
        for (mode = UCI_SEAL_SIGN; mode <= UCI_SEAL_ENCRYPT; ++mode) {
            start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
            cr_assert_eq(uci_seal_pair_create(ALICE_UID, alice_random, BOB_UID, bob_random, &pair), UCI_OK);
            for (i = 0; i < uci_array_size(counters); ++i) {
                cr_assert_eq(uci_seal_close(pair, counters[i], body, 10, body + 10, LENGTH - 10, record), UCI_OK);
                expect_record((uci_seal_cipher_t)cipher, (uci_seal_mode_t)mode, counters[i]);
            }
            uci_seal_pair_destroy(pair);
            uci_seal_cleanup();
        }
    }
}

/* Marks */
Test(seal_construction, marks)
{
    uint8_t mark_key[32], whole[32], mac[UCI_SEAL_MAC];

    start(UCI_SEAL_SIGN, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    cr_assert(uci_seal_hkdf(job_key, UCI_SEAL_KEY, NULL, 0, "uci mark v1", 11, mark_key, sizeof(mark_key)));
    cr_assert(uci_seal_hmac(mark_key, sizeof(mark_key), body, LENGTH, NULL, 0, whole));
    cr_assert_eq(uci_seal_mark_auth(body, 60, body + 60, LENGTH - 60, mac), UCI_OK);
    cr_expect_arr_eq(mac, whole, sizeof(mac));
}
