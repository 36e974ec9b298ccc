/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests and fused copies against glibc's memcpy, on one core:
 *
 *     bench_digest [-i scalar|avx2|avx512] [-d NAME] [-r REPEATS] [-a MISALIGN] [SIZE...]
 *
 * Per size, a digest: nanoseconds a call, GB/s (1e9), and the fused copy's bandwidth relative to
 * memcpy's, to the digest's own and to memcpy followed by digest. Contenders take turns within each repeat and
 * medians are shown, so that a noisy machine disturbs all alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "digest/digest.h"
#include "digest/digest_small.h"

#define REPEATS_MAX 1001
#define BATCH_BYTES (1 << 20) /* bytes a contender handles per repeat, at least */
#define BATCH_CALLS 2000      /* calls per repeat, at most */

typedef enum { KIND_MEMCPY, KIND_INLINE, KIND_DIGEST, KIND_COPY, KIND_SEPARATE, KIND_LAST } bench_kind_t;

typedef struct bench {
    const uci_digest_ops_t *ops;
    bench_kind_t kind;
    double ns[REPEATS_MAX]; /* per call */
} bench_t;

static volatile uint64_t bench_sink;

static double bench_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Not inlined, so that memcpy is the library's and takes its length at run time */
static __attribute__((noinline)) double bench_run(const bench_t *bench, uint8_t *dst, const uint8_t *src, size_t size,
                                                  size_t calls)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    uint64_t sum                                         = 0;
    double start                                         = bench_now();
    size_t i;

    for (i = 0; i < calls; ++i) {
        switch (bench->kind) {
        case KIND_INLINE:
            sum += uci_digest_xxh3_small_copy(dst, src, size);
            break;
        case KIND_DIGEST:
            sum += bench->ops->digest(src, size);
            break;
        case KIND_COPY:
            sum += bench->ops->copy(dst, src, size);
            break;
        case KIND_SEPARATE:
            copy(dst, src, size);
            sum += bench->ops->digest(src, size);
            break;
        default:
            copy(dst, src, size);
        }
    }
    bench_sink += sum;
    return (bench_now() - start) / calls;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double bench_median(bench_t *bench, unsigned repeats)
{
    qsort(bench->ns, repeats, sizeof(double), bench_compare);
    return bench->ns[repeats / 2];
}

static void bench_print(const char *name, const char *kind, double ns, size_t size)
{
    printf("%10zu  %-9s %-9s %12.1f %8.2f", size, name, kind, ns, size / ns);
}

static void bench_size(const uci_digest_ops_t *table, const char *only, uint8_t *dst, const uint8_t *src, size_t size,
                       unsigned repeats)
{
    static bench_t benches[2 + 3 * UCI_DIGEST_LAST];
    size_t calls = uci_max(uci_min(BATCH_BYTES / uci_max(size, (size_t)1), (size_t)BATCH_CALLS), (size_t)1);
    double memcpy_ns, digest_ns, copy_ns, separate_ns;
    unsigned count = 1, first, id, kind, i, r;

    benches[0].kind = KIND_MEMCPY;
    if (size <= UCI_DIGEST_SMALL_MAX) {
        benches[count++].kind = KIND_INLINE;
    }
    first = count;
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        if ((only != NULL) && strcasecmp(only, table[id].name)) {
            continue;
        }
        for (kind = KIND_DIGEST; kind < KIND_LAST; ++kind) {
            benches[count].ops    = &table[id];
            benches[count++].kind = kind;
        }
    }

    for (i = 0; i < count; ++i) {
        bench_run(&benches[i], dst, src, size, 1 + calls / 10); /* warm up */
    }
    for (r = 0; r < repeats; ++r) {
        for (i = 0; i < count; ++i) {
            benches[i].ns[r] = bench_run(&benches[i], dst, src, size, calls);
        }
    }

    memcpy_ns = bench_median(&benches[0], repeats);
    bench_print("memcpy", "", memcpy_ns, size);
    printf("\n");
    if (first > 1) {
        copy_ns = bench_median(&benches[1], repeats);
        bench_print("xxh3", "inlined", copy_ns, size);
        printf("  %5.2f\n", memcpy_ns / copy_ns);
    }
    for (i = first; i < count; i += 3) {
        digest_ns   = bench_median(&benches[i], repeats);
        copy_ns     = bench_median(&benches[i + 1], repeats);
        separate_ns = bench_median(&benches[i + 2], repeats);
        bench_print(benches[i].ops->name, "digest", digest_ns, size);
        printf("\n");
        bench_print(benches[i].ops->name, "copy", copy_ns, size);
        printf("  %5.2f %8.2f %10.2f\n", memcpy_ns / copy_ns, digest_ns / copy_ns, separate_ns / copy_ns);
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1,    8,     16,    64,     128,     256,     512,      1024,     4096,
                                   8192, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20};
    uci_digest_isa_t isa        = uci_digest_isa_best();
    unsigned repeats            = 31, i;
    size_t misalign = 0, max = 128 << 20, size;
    const char *only = NULL;
    uci_digest_ops_t table[UCI_DIGEST_LAST];
    uint8_t *src, *dst;
    int option;

    while ((option = getopt(argc, argv, "i:d:r:a:")) != -1) {
        switch (option) {
        case 'i':
            for (i = 0; (i < UCI_DIGEST_ISA_LAST) && strcasecmp(optarg, uci_digest_isa_names[i]); ++i) {
            }
            if (i > (unsigned)uci_digest_isa_best()) {
                fprintf(stderr, "this cpu has no kernels '%s'\n", optarg);
                return 1;
            }
            isa = i;
            break;
        case 'd':
            only = optarg;
            break;
        case 'r':
            repeats = uci_max(1, uci_min(atoi(optarg), REPEATS_MAX));
            break;
        case 'a':
            misalign = strtoul(optarg, NULL, 0) % 4096;
            break;
        default:
            fprintf(stderr, "usage: bench_digest [-i ISA] [-d NAME] [-r REPEATS] [-a MISALIGN] [SIZE...]\n");
            return 1;
        }
    }
    for (i = optind; i < (unsigned)argc; ++i) {
        size = strtoul(argv[i], NULL, 0);
        max  = uci_max(max, size);
    }

    src = aligned_alloc(4096, max + 8192);
    dst = aligned_alloc(4096, max + 8192);
    if ((src == NULL) || (dst == NULL)) {
        fprintf(stderr, "failed to allocate two buffers of %zu bytes\n", max);
        return 1;
    }
    memset(dst, 1, max + 8192);
    for (size = 0; size < max + 8192; ++size) {
        src[size] = (size * 2654435761u) >> 13;
    }

    uci_digest_fill(table, isa);
    printf("kernels: %s, %u repeats, destination at 4096*n+%zu\n", uci_digest_isa_names[isa], repeats, misalign);
    printf("%10s  %-9s %-9s %12s %8s  %5s %8s %10s\n", "bytes", "name", "", "ns/call", "GB/s", "/memcpy", "/digest",
           "/separate");
    if (optind < argc) {
        for (i = optind; i < (unsigned)argc; ++i) {
            bench_size(table, only, dst + misalign, src, strtoul(argv[i], NULL, 0), repeats);
        }
    } else {
        for (i = 0; i < uci_array_size(sizes); ++i) {
            bench_size(table, only, dst + misalign, src, sizes[i], repeats);
        }
    }
    free(src);
    free(dst);
    return 0;
}
