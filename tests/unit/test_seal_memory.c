/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where in a process the keys are: nowhere that a core dump has, and after the end nowhere at all. No test of Criterion's, which uses
 * OpenSSL itself, so that UCI could not give it memory.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "seal/seal.h"
#include "seal/seal_cipher.h"
#include "seal/secret.h"
#include "settings/settings.h"

#define MASK      0x5a /* what is looked for is kept in another form, or it would be found here */
#define ALICE_UID 0x0102030405060708ull
#define BOB_UID   0x1112131415161718ull
#define LENGTH    100

static char key_path[] = "/tmp/uci-test-seal-memory.XXXXXX";
static uint8_t alice_random[UCI_SEAL_RANDOM], bob_random[UCI_SEAL_RANDOM];
static uint8_t masked_key[UCI_SEAL_KEY], masked_derived[UCI_SEAL_KEY];
static unsigned failures;

/* Without this the rest would mean nothing */
#define must(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #_condition); \
            exit(1); \
        } \
    } while (0)

static uint8_t body[LENGTH], record[LENGTH + UCI_SEAL_OVERHEAD], out[LENGTH];

/* Not by stdio, whose buffers would keep it */
static void write_new_key(void)
{
    char text[2 * UCI_SEAL_KEY + 1];
    int fd = mkstemp(key_path), digit;
    size_t i;

    must(fd >= 0);
    must(getrandom(masked_key, sizeof(masked_key), 0) == UCI_SEAL_KEY);
    for (i = 0; i < 2 * UCI_SEAL_KEY; ++i) {
        digit   = ((masked_key[i / 2] ^ MASK) >> ((i % 2) ? 0 : 4)) & 15;
        text[i] = (char)((digit < 10) ? '0' + digit : 'a' + digit - 10);
    }
    text[i] = '\n';
    must(write(fd, text, sizeof(text)) == (ssize_t)sizeof(text));
    explicit_bzero(text, sizeof(text));
    close(fd);
}

static void set_up(void)
{
    write_new_key();
    must(uci_settings_read() == UCI_OK);
    uci_settings.key_file = key_path;
    must(uci_seal_random(alice_random) == UCI_OK);
    must(uci_seal_random(bob_random) == UCI_OK);
    memset(body, 'b', sizeof(body));
}

static void start(uci_seal_mode_t mode, uci_seal_cipher_t cipher, uci_seal_lib_t library)
{
    uci_settings.seal         = mode;
    uci_settings.seal_cipher  = cipher;
    uci_settings.seal_library = library;
    must(uci_seal_init() == UCI_OK);
}

/* The key from Alice to Bob in epoch 0: see test_seal_construction.c. It is remembered in the other form */
static void derive(uci_seal_cipher_t cipher, uci_seal_mode_t mode)
{
    uint8_t *key = uci_secret_alloc(UCI_SEAL_KEY), *derived = uci_secret_alloc(UCI_SEAL_KEY), salt[64], info[40] = {0};
    uint64_t words[2] = {htole64(ALICE_UID), htole64(BOB_UID)};
    size_t i;

    for (i = 0; i < UCI_SEAL_KEY; ++i) {
        key[i] = masked_key[i] ^ MASK;
    }
    memcpy(salt, alice_random, 32);
    memcpy(salt + 32, bob_random, 32);
    memcpy(info, "uci seal v1", 12);
    info[12] = (uint8_t)cipher;
    info[13] = (uint8_t)mode;
    memcpy(info + 16, words, 16);
    must(uci_seal_hkdf(key, UCI_SEAL_KEY, salt, 64, info, 40, derived, uci_seal_key_length(cipher)));
    for (i = 0; i < UCI_SEAL_KEY; ++i) {
        masked_derived[i] = derived[i] ^ MASK;
    }
    uci_secret_free(key);
    uci_secret_free(derived);
}

/*
 * Looking for keys
 */

static bool is_here(const uint8_t *memory, size_t length, const uint8_t *masked, size_t size)
{
    size_t i, j;

    for (i = 0; i + size <= length; ++i) {
        if (memory[i] == (uint8_t)(masked[0] ^ MASK)) {
            for (j = 1; (j < size) && (memory[i + j] == (uint8_t)(masked[j] ^ MASK)); ++j) {
            }
            if (j == size) {
                return true;
            }
        }
    }
    return false;
}

typedef struct mapping {
    unsigned long start, end;
    bool readable, dumped;
} mapping_t;

/* @return how many there are in this process */
static unsigned read_mappings(mapping_t *mappings, unsigned max)
{
    FILE *smaps    = fopen("/proc/self/smaps", "r");
    unsigned count = 0;
    char line[1024], rights[8];
    unsigned long start, end;

    must(smaps != NULL);
    while (fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3) {
            must(count < max);
            mappings[count++] = (mapping_t){start, end, (rights[0] == 'r') && (strstr(line, "[v") == NULL), true};
        } else if ((count > 0) && (strncmp(line, "VmFlags:", 8) == 0)) {
            mappings[count - 1].dumped = strstr(line, " dd") == NULL;
        }
    }
    fclose(smaps);
    return count;
}

/* @return in how many mappings the first 16 bytes of a key are. @param all  also in those that no core dump has */
static unsigned places(const uint8_t *masked, bool all)
{
    static mapping_t mappings[1024];
    unsigned i, count = read_mappings(mappings, 1024), found = 0;

    for (i = 0; i < count; ++i) {
        if (mappings[i].readable && (all || mappings[i].dumped)) {
            found += is_here((const uint8_t *)mappings[i].start, mappings[i].end - mappings[i].start, masked, 16);
        }
    }
    return found;
}

/* @return is a key on the stack, as whoever used it has left it? */
static bool is_on_stack(mapping_t stack, const uint8_t *masked)
{
    return is_here((const uint8_t *)stack.start, stack.end - stack.start, masked, 16);
}

/* To be called before there is a key: what it leaves on the stack itself would hide one */
static mapping_t find_stack(void)
{
    mapping_t mappings[1024];
    unsigned i = 0, count = read_mappings(mappings, 1024);

    while ((i < count) && !((mappings[i].start <= (unsigned long)&i) && ((unsigned long)&i < mappings[i].end))) {
        ++i;
    }
    must(i < count);
    return mappings[i];
}

/* That the search finds what is there */
static void expect_found_when_there(void)
{
    uint8_t *copy = malloc(UCI_SEAL_KEY);
    size_t i;

    for (i = 0; i < UCI_SEAL_KEY; ++i) {
        ((volatile uint8_t *)copy)[i] = masked_key[i] ^ MASK;
    }
    must(places(masked_key, false) == 1);
    explicit_bzero(copy, UCI_SEAL_KEY);
    free(copy);
}

static void expect(uci_seal_lib_t library, uci_seal_cipher_t cipher, const char *what, unsigned found,
                   unsigned expected)
{
    if (found != expected) {
        fprintf(stderr, "%s, %s: %s, is in %u mappings instead of %u\n", uci_seal_library_names[library],
                uci_seal_cipher_names[cipher], what, found, expected);
        ++failures;
    }
}

static void look(uci_seal_lib_t library, uci_seal_cipher_t cipher, uci_seal_mode_t mode)
{
    mapping_t stack = find_stack();
    uci_seal_pair_t *alice, *bob;
    uint8_t mac[UCI_SEAL_MAC];
    bool left;

    start(mode, cipher, library);
    derive(cipher, mode);
    must(uci_seal_mark_auth(body, LENGTH, NULL, 0, mac) == UCI_OK);
    must(uci_seal_pair_create(ALICE_UID, alice_random, BOB_UID, bob_random, &alice) == UCI_OK);
    must(uci_seal_pair_create(BOB_UID, bob_random, ALICE_UID, alice_random, &bob) == UCI_OK);
    must(uci_seal_close(alice, 1, NULL, 0, body, LENGTH, record) == UCI_OK);
    must(uci_seal_open(bob, record, sizeof(record), NULL, 0, out) == UCI_OK);
    left = is_on_stack(stack, masked_derived);

    if (library == UCI_SEAL_OPENSSL) { /* of intel-ipsec-mb nothing is promised */
        expect(library, cipher, "a derived key, left on the stack", left, 0);
    }
    expect(library, cipher, "the job's key, which is in use", places(masked_key, true), 1);
    expect(library, cipher, "the job's key, in a core dump", places(masked_key, false), 0);
    expect(library, cipher, "a derived key, in use", places(masked_derived, true), 1);
    expect(library, cipher, "a derived key, in a core dump", places(masked_derived, false), 0);

    uci_seal_pair_destroy(alice);
    uci_seal_pair_destroy(bob);
    uci_seal_cleanup();
    expect(library, cipher, "the job's key, after the end", places(masked_key, true), 0);
    expect(library, cipher, "a derived key, after the end", places(masked_derived, true), 0);
}

int main(void)
{
    const uci_seal_library_ops_t *ops;
    unsigned library, cipher, mode;

#ifdef __SANITIZE_ADDRESS__
    puts("skipped: the sanitizer's own memory, which is terabytes, would be searched as well, and reading all of it is what it forbids");
    return 77; /* for Meson: skipped */
#endif
    set_up();
    expect_found_when_there();
    for (library = UCI_SEAL_OPENSSL; library < UCI_SEAL_LIBRARY_LAST; ++library) {
        ops = uci_seal_library_open((uci_seal_lib_t)library, NULL);
        must((ops != NULL) || (library != UCI_SEAL_OPENSSL));
        if (ops == NULL) {
            fprintf(stderr, "%s is not tested: it is not here\n", uci_seal_library_names[library]);
        }
        for (cipher = UCI_SEAL_AES128; (ops != NULL) && (cipher < UCI_SEAL_CIPHER_LAST); ++cipher) {
            for (mode = UCI_SEAL_SIGN; ops->has((uci_seal_cipher_t)cipher) && (mode <= UCI_SEAL_ENCRYPT); ++mode) {
                look((uci_seal_lib_t)library, (uci_seal_cipher_t)cipher, (uci_seal_mode_t)mode);
            }
        }
    }
    unlink(key_path);
    return (failures == 0) ? 0 : 1;
}
