/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealed records: what gets through, and that nothing else does, with every mode, cipher and library.
 */
#include "seal_libraries.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seal/seal.h"
#include "seal/seal_window.h"
#include "settings/settings.h"

#define HEAD_LENGTH  40
#define BODY_LENGTH  300
#define INNER_LENGTH (HEAD_LENGTH + BODY_LENGTH)
#define LENGTH       (INNER_LENGTH + UCI_SEAL_OVERHEAD)
#define ALICE_UID    0x1111222233334444ull
#define BOB_UID      0x5555666677778888ull
#define CAROL_UID    0x9999aaaabbbbccccull

#define KEY       "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define OTHER_KEY "010102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static char key_path[] = "/tmp/uci-test-seal.XXXXXX";
static uint8_t alice_random[UCI_SEAL_RANDOM], bob_random[UCI_SEAL_RANDOM], carol_random[UCI_SEAL_RANDOM];
static uint8_t head[HEAD_LENGTH], body[1 << 20], record[(1 << 20) + 1024], got_head[HEAD_LENGTH], got_body[1 << 20];

static void write_key(const char *text)
{
    FILE *stream = fopen(key_path, "w");

    cr_assert_not_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void set_up(void)
{
    size_t i;
    int fd = mkstemp(key_path);

    cr_assert_geq(fd, 0);
    close(fd);
    write_key(KEY);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_settings.key_file = key_path;
    for (i = 0; i < sizeof(body); ++i) {
        body[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    memcpy(head, "this is a header of forty bytes or so...", HEAD_LENGTH);
    cr_assert_eq(uci_seal_random(alice_random), UCI_OK);
    cr_assert_eq(uci_seal_random(bob_random), UCI_OK);
    cr_assert_eq(uci_seal_random(carol_random), UCI_OK);
}

static void tear_down(void)
{
    uci_seal_cleanup();
    unlink(key_path);
}

TestSuite(seal, .init = set_up, .fini = tear_down);

static void start(uci_seal_mode_t mode, uci_seal_cipher_t cipher, uci_seal_lib_t library)
{
    uci_seal_cleanup();
    uci_settings.seal         = mode;
    uci_settings.seal_cipher  = cipher;
    uci_settings.seal_library = library;
    cr_assert_eq(uci_seal_init(), UCI_OK);
    cr_assert(uci_seal_is_on());
}

/* Both modes with all that there is */
#define for_each_way(_library, _cipher, _mode) \
    seal_for_each(_library, _cipher) for ((_mode) = UCI_SEAL_SIGN; (_mode) <= UCI_SEAL_ENCRYPT; ++(_mode))

static void make_pairs(uci_seal_pair_t **alice_p, uci_seal_pair_t **bob_p)
{
    cr_assert_eq(uci_seal_pair_create(ALICE_UID, alice_random, BOB_UID, bob_random, alice_p), UCI_OK);
    cr_assert_eq(uci_seal_pair_create(BOB_UID, bob_random, ALICE_UID, alice_random, bob_p), UCI_OK);
}

static void drop_pairs(uci_seal_pair_t *alice, uci_seal_pair_t *bob)
{
    uci_seal_pair_destroy(alice);
    uci_seal_pair_destroy(bob);
}

static void close_record(uci_seal_pair_t *pair, uint64_t counter)
{
    cr_assert_eq(uci_seal_close(pair, counter, head, HEAD_LENGTH, body, BODY_LENGTH, record), UCI_OK);
}

static uci_status_t open_record(uci_seal_pair_t *pair)
{
    memset(got_head, 0, sizeof(got_head));
    memset(got_body, 0, BODY_LENGTH);
    return uci_seal_open(pair, record, LENGTH, got_head, HEAD_LENGTH, got_body);
}

static void expect_opens(uci_seal_pair_t *pair)
{
    cr_expect_eq(open_record(pair), UCI_OK);
    cr_expect_arr_eq(got_head, head, HEAD_LENGTH);
    cr_expect_arr_eq(got_body, body, BODY_LENGTH);
}

Test(seal, off)
{
    uci_settings.seal = UCI_SEAL_OFF;
    cr_expect_eq(uci_seal_init(), UCI_OK);
    cr_expect_not(uci_seal_is_on());
    uci_seal_cleanup();
}

Test(seal, round_trips)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 4096, 8192, 8193, 60000, 1 << 20};
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    size_t i, head_length, length;
    uint64_t counter;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        counter = 0;
        for (head_length = 0; head_length <= HEAD_LENGTH; head_length += HEAD_LENGTH / 2) {
            for (i = 0; i < uci_array_size(lengths); ++i, ++counter) {
                length = head_length + lengths[i] + UCI_SEAL_OVERHEAD;
                memset(got_body, 0, lengths[i]);
                cr_expect_eq(uci_seal_close(alice, counter, head, head_length, body, lengths[i], record), UCI_OK);
                cr_expect_eq(uci_seal_open(bob, record, length, got_head, head_length, got_body), UCI_OK);
                cr_expect_eq(memcmp(got_head, head, head_length), 0);
                cr_expect_eq(memcmp(got_body, body, lengths[i]), 0);
                if (lengths[i] >= 16) { /* shorter ones may be there by chance */
                    cr_expect_eq(memmem(record, length, body, lengths[i]) == NULL, mode == UCI_SEAL_ENCRYPT);
                }
            }
        }
        drop_pairs(alice, bob);
    }
}

/* Where the record is made from, and opened to, the places that the parts have in it */
Test(seal, in_place)
{
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    uint8_t *inner = record + sizeof(uci_seal_hdr_t);

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        memcpy(inner, head, HEAD_LENGTH);
        memcpy(inner + HEAD_LENGTH, body, BODY_LENGTH);
        cr_expect_eq(uci_seal_close(alice, 5, inner, HEAD_LENGTH, inner + HEAD_LENGTH, BODY_LENGTH, record), UCI_OK);
        cr_expect_eq(uci_seal_open(bob, record, LENGTH, inner, HEAD_LENGTH, inner + HEAD_LENGTH), UCI_OK);
        cr_expect_arr_eq(inner, head, HEAD_LENGTH);
        cr_expect_arr_eq(inner + HEAD_LENGTH, body, BODY_LENGTH);
        drop_pairs(alice, bob);
    }
}

/* What one library has sealed any other opens: ranks may differ in it */
Test(seal, libraries_agree)
{
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    static uint8_t sealed[LENGTH];

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        close_record(alice, 77);
        memcpy(sealed, record, LENGTH);
        drop_pairs(alice, bob);

        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, UCI_SEAL_OPENSSL);
        make_pairs(&alice, &bob);
        expect_opens(bob);
        close_record(alice, 77);
        cr_expect_arr_eq(record, sealed, LENGTH, "the same record");
        drop_pairs(alice, bob);
    }
}

Test(seal, every_bit)
{
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    size_t bit;
    uci_status_t status;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        close_record(alice, 1000);
        for (bit = 0; bit < 8 * LENGTH; ++bit) {
            record[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            status = open_record(bob);
            cr_assert_eq(status, UCI_ERR_CORRUPT, "bit %zu: %s", bit, uci_status_string(status));
            record[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        expect_opens(bob); /* what was refused has not taken its place */
        drop_pairs(alice, bob);
    }
}

Test(seal, truncated_and_extended)
{
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    size_t length;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        close_record(alice, 1);
        for (length = 0; length < LENGTH + 20; ++length) {
            if (length != LENGTH) {
                cr_assert_eq(uci_seal_open(bob, record, length, got_head, HEAD_LENGTH, got_body), UCI_ERR_CORRUPT,
                             "length %zu", length);
            }
        }
        expect_opens(bob);
        drop_pairs(alice, bob);
    }
}

Test(seal, replayed)
{
    uci_seal_pair_t *alice, *bob;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 10);
    expect_opens(bob);
    cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM);
    close_record(alice, 8);
    expect_opens(bob); /* late, but not twice */
    cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM);
    close_record(alice, 10 + UCI_SEAL_WINDOW);
    expect_opens(bob);
    close_record(alice, 10);
    cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM, "too old to be known");
    close_record(alice, 11);
    expect_opens(bob);
    drop_pairs(alice, bob);
}

/* Announced ones come as late as they like, but only where they were announced */
Test(seal, announced)
{
    static uint8_t early[LENGTH];
    uci_seal_pair_t *alice, *bob;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 10);
    memcpy(early, record, LENGTH);
    close_record(alice, 10 + 10 * UCI_SEAL_WINDOW);
    expect_opens(bob);
    memcpy(record, early, LENGTH);
    cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM);
    cr_expect_eq(uci_seal_open_at(bob, 11, record, LENGTH, got_head, HEAD_LENGTH, got_body), UCI_ERR_CORRUPT);
    cr_expect_eq(uci_seal_open_at(bob, 10, record, LENGTH, got_head, HEAD_LENGTH, got_body), UCI_OK);
    cr_expect_arr_eq(got_body, body, BODY_LENGTH);
    cr_expect_eq(uci_seal_open_at(bob, 10, record, LENGTH - 1, got_head, HEAD_LENGTH, got_body), UCI_ERR_CORRUPT);
    record[LENGTH / 2] ^= 1;
    cr_expect_eq(uci_seal_open_at(bob, 10, record, LENGTH, got_head, HEAD_LENGTH, got_body), UCI_ERR_CORRUPT);
    close_record(alice, 10 + 10 * UCI_SEAL_WINDOW);
    cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM, "the window has not moved");
    drop_pairs(alice, bob);
}

/* A forked child has none of its parent's keys, and may seal with its own */
Test(seal, child)
{
    int library, cipher, mode, status;
    uci_seal_pair_t *alice, *bob;
    pid_t pid;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        close_record(alice, 1);
        expect_opens(bob);
        pid = fork();
        if (pid == 0) {
            uci_seal_cleanup();
            if ((uci_seal_init() != UCI_OK) ||
                (uci_seal_pair_create(ALICE_UID, alice_random, BOB_UID, bob_random, &alice) != UCI_OK) ||
                (uci_seal_pair_create(BOB_UID, bob_random, ALICE_UID, alice_random, &bob) != UCI_OK) ||
                (uci_seal_close(alice, 2, head, HEAD_LENGTH, body, BODY_LENGTH, record) != UCI_OK) ||
                (open_record(bob) != UCI_OK) || (memcmp(got_body, body, BODY_LENGTH) != 0)) {
                _exit(1);
            }
            drop_pairs(alice, bob);
            uci_seal_cleanup();
            _exit(0);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect_eq(status, 0, "%s, %s", uci_seal_library_names[library], uci_seal_cipher_names[cipher]);
        close_record(alice, 2);
        expect_opens(bob);
        drop_pairs(alice, bob);
    }
}

Test(seal, a_forged_counter_moves_no_window)
{
    uci_seal_pair_t *alice, *bob;
    uci_seal_hdr_t hdr;

    start(UCI_SEAL_SIGN, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 3);
    memcpy(&hdr, record, sizeof(hdr));
    hdr.counter = UINT64_MAX - 1;
    memcpy(record, &hdr, sizeof(hdr));
    cr_expect_eq(open_record(bob), UCI_ERR_CORRUPT);
    close_record(alice, 3);
    expect_opens(bob);
    drop_pairs(alice, bob);
}

Test(seal, reflected)
{
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob;
    uci_seal_hdr_t hdr;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        close_record(alice, 4);
        cr_expect_eq(open_record(alice), UCI_ERR_CORRUPT, "her own, sent back");
        memcpy(&hdr, record, sizeof(hdr));
        hdr.uid = BOB_UID;
        memcpy(record, &hdr, sizeof(hdr));
        cr_expect_eq(open_record(alice), UCI_ERR_CORRUPT, "and under Bob's name");
        drop_pairs(alice, bob);
    }
}

/* What Alice says to Bob, given to Carol, and to Bob as said by Carol */
Test(seal, spliced)
{
    uci_seal_pair_t *alice, *bob, *carol, *bob_of_carol;
    uci_seal_hdr_t hdr;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    cr_assert_eq(uci_seal_pair_create(CAROL_UID, carol_random, ALICE_UID, alice_random, &carol), UCI_OK);
    cr_assert_eq(uci_seal_pair_create(BOB_UID, bob_random, CAROL_UID, carol_random, &bob_of_carol), UCI_OK);
    close_record(alice, 9);
    cr_expect_eq(open_record(carol), UCI_ERR_CORRUPT);
    cr_expect_eq(open_record(bob_of_carol), UCI_ERR_CORRUPT);
    memcpy(&hdr, record, sizeof(hdr));
    hdr.uid = CAROL_UID;
    memcpy(record, &hdr, sizeof(hdr));
    cr_expect_eq(open_record(bob_of_carol), UCI_ERR_CORRUPT);
    uci_seal_pair_destroy(carol);
    uci_seal_pair_destroy(bob_of_carol);
    drop_pairs(alice, bob);
}

/* The first half of one record with the second of another, and one's tag under another */
Test(seal, records_are_whole)
{
    static uint8_t first[LENGTH];
    uci_seal_pair_t *alice, *bob;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 1);
    memcpy(first, record, LENGTH);
    close_record(alice, 2);
    memcpy(record, first, LENGTH / 2);
    cr_expect_eq(open_record(bob), UCI_ERR_CORRUPT);
    close_record(alice, 2);
    memcpy(record + LENGTH - UCI_SEAL_TAG, first + LENGTH - UCI_SEAL_TAG, UCI_SEAL_TAG);
    cr_expect_eq(open_record(bob), UCI_ERR_CORRUPT);
    drop_pairs(alice, bob);
}

static void expect_strangers(const uint8_t *of_alice, const uint8_t *of_bob, const char *what)
{
    uci_seal_pair_t *bob;

    cr_assert_eq(uci_seal_pair_create(BOB_UID, of_bob, ALICE_UID, of_alice, &bob), UCI_OK);
    cr_expect_eq(open_record(bob), UCI_ERR_CORRUPT, "%s", what);
    uci_seal_pair_destroy(bob);
}

/* A worker that is made anew, a job with another key, mode or cipher: all are strangers */
Test(seal, strangers)
{
    uci_seal_pair_t *alice, *bob;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_AES256, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 1);
    drop_pairs(alice, bob);
    expect_strangers(carol_random, bob_random, "the sender has other random bytes");
    expect_strangers(alice_random, carol_random, "the receiver has other random bytes");
    expect_strangers(bob_random, alice_random, "they have each other's");

    start(UCI_SEAL_SIGN, UCI_SEAL_AES256, UCI_SEAL_LIBRARY_AUTO);
    expect_strangers(alice_random, bob_random, "another mode");
    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CHACHA20, UCI_SEAL_LIBRARY_AUTO);
    expect_strangers(alice_random, bob_random, "another cipher");
    write_key(OTHER_KEY);
    start(UCI_SEAL_ENCRYPT, UCI_SEAL_AES256, UCI_SEAL_LIBRARY_AUTO);
    expect_strangers(alice_random, bob_random, "another key");

    write_key(KEY);
    start(UCI_SEAL_ENCRYPT, UCI_SEAL_AES256, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    expect_opens(bob); /* that it was this record, and not something else, that they refused */
    drop_pairs(alice, bob);
}

/* Over the border of an epoch and back, in any order within the window; and the next one but one */
Test(seal, epochs)
{
    static const int64_t around[] = {-2, 1, -1, 0, 100, -100, 2, -2000, 1500};
    int library, cipher, mode;
    uci_seal_pair_t *alice, *bob, *late;
    size_t i, epoch;

    for_each_way(library, cipher, mode)
    {
        start((uci_seal_mode_t)mode, (uci_seal_cipher_t)cipher, (uci_seal_lib_t)library);
        make_pairs(&alice, &bob);
        for (epoch = 1; epoch < 6; ++epoch) {
            for (i = 0; i < uci_array_size(around); ++i) {
                close_record(alice, (uint64_t)((int64_t)(epoch * UCI_SEAL_EPOCH) + around[i]));
                expect_opens(bob);
                cr_expect_eq(open_record(bob), UCI_ERR_NO_ELEM);
            }
        }
        uci_seal_pair_destroy(bob);

        /* the first that a peer hears may be of any epoch */
        cr_assert_eq(uci_seal_pair_create(BOB_UID, bob_random, ALICE_UID, alice_random, &late), UCI_OK);
        close_record(alice, 1000 * UCI_SEAL_EPOCH);
        expect_opens(late);
        close_record(alice, 1000 * UCI_SEAL_EPOCH - 1);
        expect_opens(late);
        drop_pairs(alice, late);
    }
}

/* The same counter in another epoch is another key: the header alone decides, and it is authenticated */
Test(seal, epoch_forged)
{
    uci_seal_pair_t *alice, *bob;
    uci_seal_hdr_t hdr;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    close_record(alice, 6);
    expect_opens(bob);
    memcpy(&hdr, record, sizeof(hdr));
    hdr.counter += UCI_SEAL_EPOCH;
    memcpy(record, &hdr, sizeof(hdr));
    cr_expect_eq(open_record(bob), UCI_ERR_CORRUPT);
    close_record(alice, 7);
    expect_opens(bob);
    drop_pairs(alice, bob);
}

Test(seal, forged_million, .timeout = 120)
{
    enum { FORGED = 1000000, SHORT = 64 };
    uci_seal_pair_t *alice, *bob;
    uci_seal_hdr_t hdr = {.uid = ALICE_UID};
    uint64_t random    = 88172645463325252ull;
    unsigned i, j, accepted = 0, genuine = 0;

    start(UCI_SEAL_ENCRYPT, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    make_pairs(&alice, &bob);
    for (i = 0; i < FORGED; ++i) {
        for (j = 0; j < SHORT; j += sizeof(random)) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            memcpy(record + sizeof(hdr) + j, &random, sizeof(random));
        }
        hdr.counter = i; /* the right one, each time */
        memcpy(record, &hdr, sizeof(hdr));
        accepted += uci_seal_open(bob, record, sizeof(hdr) + SHORT, got_head, 16, got_body) == UCI_OK;
        if (i % 1000 == 0) { /* and it still knows its friends */
            close_record(alice, i);
            genuine += open_record(bob) == UCI_OK;
        }
    }
    cr_expect_eq(accepted, 0);
    cr_expect_eq(genuine, FORGED / 1000);
    drop_pairs(alice, bob);
}

Test(seal, marks)
{
    uint8_t mark[100], address[300], mac[UCI_SEAL_MAC], other[UCI_SEAL_MAC];
    size_t bit;

    memset(mark, 1, sizeof(mark));
    memset(address, 2, sizeof(address));
    start(UCI_SEAL_SIGN, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    cr_expect_eq(uci_seal_mark_auth(mark, sizeof(mark), address, sizeof(address), mac), UCI_OK);
    cr_expect(uci_seal_mark_is_authentic(mark, sizeof(mark), address, sizeof(address), mac));
    for (bit = 0; bit < 8 * sizeof(address); ++bit) {
        address[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        cr_assert_not(uci_seal_mark_is_authentic(mark, sizeof(mark), address, sizeof(address), mac));
        address[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (bit = 0; bit < 8 * sizeof(mac); ++bit) {
        mac[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        cr_assert_not(uci_seal_mark_is_authentic(mark, sizeof(mark), address, sizeof(address), mac));
        mac[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    cr_expect_not(uci_seal_mark_is_authentic(mark, sizeof(mark), address, sizeof(address) - 1, mac));

    cr_expect_eq(uci_seal_mark_auth(mark, sizeof(mark), NULL, 0, other), UCI_OK);
    cr_expect(uci_seal_mark_is_authentic(mark, sizeof(mark), NULL, 0, other));
    cr_expect_neq(memcmp(mac, other, sizeof(mac)), 0);

    write_key(OTHER_KEY);
    start(UCI_SEAL_SIGN, UCI_SEAL_CIPHER_AUTO, UCI_SEAL_LIBRARY_AUTO);
    cr_expect_not(uci_seal_mark_is_authentic(mark, sizeof(mark), address, sizeof(address), mac), "of another job");
}

Test(seal, refuses_to_start)
{
    uci_log_level         = UCI_LOG_FATAL;
    uci_settings.seal     = UCI_SEAL_ENCRYPT;
    uci_settings.key_file = (char *)"";
    cr_expect_eq(uci_seal_init(), UCI_ERR_NO_ELEM);
    cr_expect_not(uci_seal_is_on());
    cr_expect_eq(uci_seal_init(), UCI_ERR_NO_ELEM, "told again");

    uci_seal_cleanup();
    uci_settings.key_file = key_path;
    cr_assert_eq(chmod(key_path, 0644), 0);
    cr_expect_eq(uci_seal_init(), UCI_ERR_INVALID_PARAM);
    cr_expect_not(uci_seal_is_on());

    uci_seal_cleanup();
    cr_assert_eq(chmod(key_path, 0600), 0);
    uci_settings.seal_library = UCI_SEAL_IPSEC_MB;
    uci_settings.seal_cipher  = UCI_SEAL_CHACHA20;
    cr_expect_eq(uci_seal_init(), UCI_ERR_UNSUPPORTED);
    cr_expect_not(uci_seal_is_on());
}
