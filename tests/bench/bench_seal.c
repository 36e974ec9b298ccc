/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the libraries of cryptography do for UCI_SEAL on one core, a record at a time, by library, cipher and size:
 *
 *     bench_seal [-s] [-n] [-r REPEATS] [SIZE...]
 *
 *     -s  as UCI_SEAL=sign does: copy and authenticate, instead of encrypt
 *     -n  as on a CPU without VAES. Without this the table is shown for both, if the CPU has it
 *
 * Two tables: GB/s (1e9) of sealing, and nanoseconds a record, of sealing and of opening. Contenders take turns within each repeat, and
 * medians are shown, so that a noisy machine disturbs all alike. memcpy is beside them, for what a copy costs in any case.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "seal/seal_cipher.h"
#include "seal/seal_ipsec_mb.h"

#define REPEATS_MAX    1001
#define CONTENDERS_MAX (1 + UCI_SEAL_LIBRARY_LAST * UCI_SEAL_CIPHER_LAST)
#define SIZES_MAX      64
#define BATCH_BYTES    ((size_t)1 << 20) /* that a contender handles in a repeat, at least */
#define BATCH_CALLS    ((size_t)2000)    /* in a repeat, at most */
#define SIGN_BLOCK     ((size_t)8 << 10) /* as core/seal/seal.c */

/* What tells OpenSSL that there is no VAES and no VPCLMULQDQ: bits 41 and 42 of CPUID leaf 7's EBX and ECX as it counts them */
#define WITHOUT_VAES "OPENSSL_ia32cap", ":~0x60000000000"

typedef enum { BENCH_CLOSE, BENCH_OPEN, BENCH_KINDS } bench_kind_t;

typedef struct bench {
    const uci_seal_library_ops_t *ops; /* NULL: memcpy */
    uci_seal_cipher_t cipher;
    void *key;
    double ns[BENCH_KINDS][REPEATS_MAX]; /* per call */
} bench_t;

static bench_t benches[CONTENDERS_MAX];
static unsigned benches_count = 1;
static bool signs;

static double bench_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* As core/seal/seal.c: copied by blocks and authenticated when signing, else in one pass */
static void bench_parts(const bench_t *bench, uci_seal_way_t way, uint8_t *dst, const uint8_t *src, size_t size)
{
    size_t done, piece;

    if (!signs) {
        bench->ops->part(bench->key, way, dst, src, size);
        return;
    }
    for (done = 0; done < size; done += piece) {
        piece = uci_min(size - done, SIGN_BLOCK);
        memcpy(dst + done, src + done, piece);
        bench->ops->part(bench->key, way, NULL, dst + done, piece);
    }
}

static __attribute__((noinline)) void bench_once(const bench_t *bench, bench_kind_t kind, uint8_t *dst,
                                                 const uint8_t *src, size_t size, uint64_t counter)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    uci_seal_way_t way            = signs ? ((kind == BENCH_CLOSE) ? UCI_SEAL_WAY_SIGN : UCI_SEAL_WAY_VERIFY)
                                          : ((kind == BENCH_CLOSE) ? UCI_SEAL_WAY_ENCRYPT : UCI_SEAL_WAY_DECRYPT);
    uint8_t nonce[UCI_SEAL_NONCE] = {0}, tag[UCI_SEAL_TAG] = {0};

    if (bench->ops == NULL) {
        copy(dst, src, size);
        return;
    }
    memcpy(nonce + 4, &counter, sizeof(counter));
    bench->ops->start(bench->key, way, nonce, nonce, sizeof(nonce));
    bench_parts(bench, way, dst, src, size);
    bench->ops->finish(bench->key, way, tag); /* when opening it says no, which takes as long */
}

static double bench_run(const bench_t *bench, bench_kind_t kind, uint8_t *dst, const uint8_t *src, size_t size,
                        size_t calls)
{
    double start = bench_now();
    size_t i;

    for (i = 0; i < calls; ++i) {
        bench_once(bench, kind, dst, src, size, i);
    }
    return (bench_now() - start) / (double)calls;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double bench_median(double *ns, unsigned repeats)
{
    qsort(ns, repeats, sizeof(*ns), bench_compare);
    return ns[repeats / 2];
}

static void bench_add_all(void)
{
    static const uint8_t key[UCI_SEAL_KEY] = {1, 2, 3};
    const uci_seal_library_ops_t *ops;
    const char *reason;
    unsigned library, cipher;

    for (library = UCI_SEAL_OPENSSL; library < UCI_SEAL_LIBRARY_LAST; ++library) {
        ops = uci_seal_library_open((uci_seal_lib_t)library, &reason);
        if (ops == NULL) {
            printf("%s is not measured: %s\n", uci_seal_library_names[library], reason);
            continue;
        }
        for (cipher = UCI_SEAL_AES128; cipher < UCI_SEAL_CIPHER_LAST; ++cipher) {
            if (ops->has((uci_seal_cipher_t)cipher)) {
                benches[benches_count].ops    = ops;
                benches[benches_count].cipher = (uci_seal_cipher_t)cipher;
                benches[benches_count++].key  = ops->key_create((uci_seal_cipher_t)cipher, key);
            }
        }
    }
}

static void bench_print_titles(const char *unit, bool vaes)
{
    unsigned i;

    printf("\n%s, UCI_SEAL=%s, %s VAES\n", unit, signs ? "sign" : "encrypt", vaes ? "with" : "without");
    printf("%10s", "");
    for (i = 0; i < benches_count; ++i) {
        printf(" %16s", (benches[i].ops == NULL) ? "memcpy" : benches[i].ops->version());
    }
    printf("\n%10s", "bytes");
    for (i = 0; i < benches_count; ++i) {
        printf(" %16s", (benches[i].ops == NULL) ? "" : uci_seal_cipher_names[benches[i].cipher]);
    }
    printf("\n");
}

static void bench_measure(uint8_t *dst, const uint8_t *src, size_t size, unsigned repeats)
{
    size_t calls = uci_max(uci_min(BATCH_BYTES / size, BATCH_CALLS), (size_t)1);
    unsigned i, r, kind;

    for (r = 0; r <= repeats; ++r) { /* the first one warms up, and is overwritten */
        for (i = 0; i < benches_count; ++i) {
            for (kind = 0; kind < BENCH_KINDS; ++kind) {
                benches[i].ns[kind][r % repeats] = bench_run(&benches[i], (bench_kind_t)kind, dst, src, size, calls);
            }
        }
    }
}

static void bench_table(const size_t *sizes, unsigned count, unsigned repeats, bool vaes)
{
    static double ns[SIZES_MAX][CONTENDERS_MAX][BENCH_KINDS];
    size_t most = 0;
    uint8_t *src, *dst;
    unsigned s, i, kind;

    for (s = 0; s < count; ++s) {
        most = uci_max(most, sizes[s]);
    }
    src = aligned_alloc(4096, uci_align_up(most, (size_t)4096));
    dst = aligned_alloc(4096, uci_align_up(most, (size_t)4096));
    if ((src == NULL) || (dst == NULL)) {
        fprintf(stderr, "bench_seal: no memory for records of %zu bytes\n", most);
        exit(1);
    }
    memset(src, 1, most);
    memset(dst, 2, most);

    for (s = 0; s < count; ++s) {
        bench_measure(dst, src, sizes[s], repeats);
        for (i = 0; i < benches_count; ++i) {
            for (kind = 0; kind < BENCH_KINDS; ++kind) {
                ns[s][i][kind] = bench_median(benches[i].ns[kind], repeats);
            }
        }
    }

    bench_print_titles("GB/s sealed", vaes);
    for (s = 0; s < count; ++s) {
        printf("%10zu", sizes[s]);
        for (i = 0; i < benches_count; ++i) {
            printf(" %16.2f", (double)sizes[s] / ns[s][i][BENCH_CLOSE]);
        }
        printf("\n");
    }
    bench_print_titles("ns a record, sealed and opened", vaes);
    for (s = 0; s < count; ++s) {
        printf("%10zu", sizes[s]);
        for (i = 0; i < benches_count; ++i) {
            printf(" %8.0f%8.0f", ns[s][i][BENCH_CLOSE], ns[s][i][BENCH_OPEN]);
        }
        printf("\n");
    }
    free(src);
    free(dst);
}

/* Libraries look at the CPU when they are opened, once: the other table is another process's */
static void bench_without_vaes(char **argv)
{
    setenv(WITHOUT_VAES, 1);
    execv("/proc/self/exe", argv);
    fprintf(stderr, "bench_seal: failed to run again: %s\n", strerror(errno));
    exit(1);
}

static bool bench_cpu_has_vaes(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq");
#else
    return false;
#endif
}

int main(int argc, char **argv)
{
    static const size_t defaults[] = {64, 256, 1024, 4096, 8192, 16384, 65536, 262144, 1 << 20};
    size_t sizes[SIZES_MAX];
    unsigned repeats = 31, count = 0;
    bool vaes = bench_cpu_has_vaes() && (getenv("OPENSSL_ia32cap") == NULL), both = true;
    int option;

    while ((option = getopt(argc, argv, "snr:")) != -1) {
        switch (option) {
        case 's':
            signs = true;
            break;
        case 'n':
            both = false;
            if (vaes) {
                bench_without_vaes(argv);
            }
            break;
        case 'r':
            repeats = (unsigned)strtoul(optarg, NULL, 0);
            break;
        default:
            fprintf(stderr, "usage: bench_seal [-s] [-n] [-r REPEATS] [SIZE...]\n");
            return 2;
        }
    }
    repeats = uci_max(uci_min(repeats, (unsigned)REPEATS_MAX), 1u);
    for (; (optind + (int)count < argc) && (count < SIZES_MAX); ++count) {
        sizes[count] = strtoul(argv[optind + (int)count], NULL, 0);
        if (sizes[count] == 0) {
            fprintf(stderr, "bench_seal: '%s' is no size in bytes\n", argv[optind + (int)count]);
            return 2;
        }
    }
    if (count == 0) {
        memcpy(sizes, defaults, sizeof(defaults));
        count = uci_array_size(defaults);
    }

    uci_ipsec_mb_without_vaes = !vaes;
    bench_add_all();
    bench_table(sizes, count, repeats, vaes);
    fflush(stdout);
    if (vaes && both) {
        bench_without_vaes(argv);
    }
    return 0;
}
