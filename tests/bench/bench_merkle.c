/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Building the Merkle tree of a whole buffer, by one thread and by all cores, against only reading it:
 *
 *     bench_merkle [-c CHUNK] [-k ARITY] [-d DIGEST] [-r REPEATS] [MIB...]
 *
 * Default: 64 KiB chunks, 16 children a node, xxh3, and buffers of 256 KiB to 1 GiB. GB/s, medians; contenders take
 * turns. "read" sums 64-bit words with the same number of threads: what memory (or a cache) gives. "nodes" is the
 * tree's part of the build: from digests to root.
 *
 * Then what a descent through another tree costs: chunks at random places of the last buffer differ, and the other tree is
 * asked for nodes level by level. "of all" relates the nodes read to sending all leaves, "bound" is the
 * most that can be needed: `arity` nodes on each level below the top for each bad chunk.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/machine.h"
#include "tree/merkle_build.h"
#include "util/process.h"

#define REPEATS_MAX 101
#define BYTES_TURN  ((size_t)16 << 20) /* a turn handles so many, at least */

enum { READ_1, BUILD_1, READ_ALL, BUILD_ALL, CONTENDERS };

typedef struct bench {
    const uci_digest_ops_t *digest;
    const uint8_t *data;
    size_t length, chunk;
    unsigned arity;
    double nodes_ns; /* of the last build */
} bench_t;

static volatile uint64_t bench_sink;

static void bench_read(const bench_t *bench, unsigned threads)
{
    const uint64_t *words = (const uint64_t *)(const void *)bench->data;
    uint64_t sum          = 0;
    size_t i;

#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(+ : sum) if (parallel : threads > 1)
    for (i = 0; i < bench->length / 8; ++i) {
        sum += words[i];
    }
    bench_sink += sum;
}

static void bench_build(bench_t *bench, unsigned threads)
{
    uci_merkle_t *tree;
    uint64_t begin;

    if (uci_merkle_build(bench->digest, bench->data, bench->length, bench->chunk, bench->arity, threads, &tree) !=
        UCI_OK) {
        exit(1);
    }
    begin = uci_process_time_ns();
    bench_sink += uci_merkle_root(tree, 0, bench->length, bench->chunk);
    bench->nodes_ns = (double)(uci_process_time_ns() - begin);
    uci_merkle_destroy(tree);
}

/* @return bytes a nanosecond */
static double bench_turn(bench_t *bench, unsigned contender, unsigned cores)
{
    size_t calls   = uci_max(BYTES_TURN / bench->length, (size_t)1), i;
    unsigned all   = (bench->length < UCI_MERKLE_PARALLEL_MIN) ? 1 : cores;
    uint64_t begin = uci_process_time_ns();

    for (i = 0; i < calls; ++i) {
        switch (contender) {
        case READ_1:
            bench_read(bench, 1);
            break;
        case BUILD_1:
            bench_build(bench, 1);
            break;
        case READ_ALL:
            bench_read(bench, all);
            break;
        default:
            bench_build(bench, 0);
            break;
        }
    }
    return (double)bench->length * (double)calls / (double)(uci_process_time_ns() - begin);
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void bench_length(bench_t *bench, unsigned repeats, unsigned cores)
{
    double rates[CONTENDERS][REPEATS_MAX], median[CONTENDERS];
    unsigned r, i;

    for (r = 0; r < repeats; ++r) {
        for (i = 0; i < CONTENDERS; ++i) {
            rates[i][r] = bench_turn(bench, i, cores);
        }
    }
    for (i = 0; i < CONTENDERS; ++i) {
        qsort(rates[i], repeats, sizeof(double), bench_compare);
        median[i] = rates[i][repeats / 2];
    }
    printf("%12zu %9zu %9.1f %9.1f %6.2f %9.1f %9.1f %6.2f %10.1f\n", bench->length,
           uci_div_up(bench->length, bench->chunk), median[READ_1], median[BUILD_1], median[BUILD_1] / median[READ_1],
           median[READ_ALL], median[BUILD_ALL], median[BUILD_ALL] / median[READ_ALL], bench->nodes_ns / 1e3);
}

/*
 * Comparing
 */

static uci_merkle_t *bench_tree(size_t leaves, unsigned arity)
{
    uci_merkle_t *tree;
    size_t i;

    if (uci_merkle_create(leaves, arity, &tree) != UCI_OK) {
        exit(1);
    }
    for (i = 0; i < leaves; ++i) {
        uci_merkle_set_leaf(tree, i, i * 0x9e3779b97f4a7c15ul);
    }
    return tree;
}

/* Ask `other` for the children of what differs until nothing is left. @return how many leaves do */
static size_t bench_diff(uci_merkle_t *tree, uci_merkle_t *other, size_t *nodes_p)
{
    uint64_t values[UCI_MERKLE_ARITY_MAX];
    size_t index, count, i, found = 0;
    unsigned level;

    *nodes_p = 0;
    uci_merkle_descend(tree);
    while (uci_merkle_marked(tree, &level, &index, 1) > 0) {
        count = uci_merkle_children(other, level, index, values);
        *nodes_p += count;
        uci_merkle_compare(tree, level, index, values);
        for (i = 0; (level == 1) && (i < count); ++i) {
            found += (values[i] != uci_merkle_leaf(tree, (index * uci_merkle_arity(tree)) + i));
        }
    }
    return found;
}

static void bench_descent(size_t leaves, unsigned arity, size_t bad)
{
    uci_merkle_t *other = bench_tree(leaves, arity);
    uci_merkle_t *tree  = bench_tree(leaves, arity);
    size_t changed      = 0, i;
    size_t found, nodes;
    uint64_t begin, ns, random = 1;

    while (changed < bad) {
        random = random * 6364136223846793005ul + 1442695040888963407ul;
        i      = (random >> 33) % leaves;
        if (uci_merkle_leaf(tree, i) == uci_merkle_leaf(other, i)) {
            uci_merkle_set_leaf(tree, i, ~uci_merkle_leaf(tree, i));
            ++changed;
        }
    }
    uci_merkle_root(tree, 0, 0, 0);
    uci_merkle_root(other, 0, 0, 0);
    begin = uci_process_time_ns();
    found = bench_diff(tree, other, &nodes);
    ns    = uci_process_time_ns() - begin;
    if (found != bad) {
        fprintf(stderr, "bench_merkle: %zu of %zu bad chunks found\n", found, bad);
        exit(1);
    }
    printf("%9zu %6u %9zu %9zu %9zu %10zu %10.4f %9zu %10.1f\n", leaves, arity, bad,
           (size_t)(uci_merkle_levels(tree) - 1), nodes, 8 * nodes, (double)nodes / (double)leaves,
           bad * arity * (uci_merkle_levels(tree) - 1), (double)ns / 1e3);
    uci_merkle_destroy(tree);
    uci_merkle_destroy(other);
}

static void bench_descents(size_t leaves)
{
    static const unsigned arities[] = {2, 4, 16, 64};
    size_t i, bad;

    printf("\n%9s %6s %9s %9s %9s %10s %10s %9s %10s\n", "leaves", "arity", "bad", "levels", "nodes", "bytes", "of all",
           "bound", "us");
    for (i = 0; i < uci_array_size(arities); ++i) {
        for (bad = 1; bad <= uci_min(leaves, (size_t)1000); bad *= 10) {
            bench_descent(leaves, arities[i], bad);
        }
    }
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};
    bench_t bench                 = {.chunk = 64 << 10, .arity = 16};
    unsigned repeats = 5, cores = uci_machine_cores_usable();
    const char *digest = "xxh3";
    uint8_t *data;
    size_t i;
    int option;

    while ((option = getopt(argc, argv, "c:k:d:r:")) != -1) {
        switch (option) {
        case 'c':
            bench.chunk = strtoul(optarg, NULL, 0);
            break;
        case 'k':
            bench.arity = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'd':
            digest = optarg;
            break;
        case 'r':
            repeats = uci_max(1u, uci_min((unsigned)strtoul(optarg, NULL, 0), (unsigned)REPEATS_MAX));
            break;
        default:
            fprintf(stderr, "usage: bench_merkle [-c CHUNK] [-k ARITY] [-d DIGEST] [-r REPEATS] [MIB...]\n");
            return 2;
        }
    }
    uci_digest_init();
    bench.digest = uci_digest_find(digest);
    data         = aligned_alloc(4096, (size_t)1 << 30);
    if ((bench.digest == NULL) || (data == NULL)) {
        fprintf(stderr, "bench_merkle: %s\n", (data == NULL) ? "needs 1 GiB of memory" : "no such digest");
        return 1;
    }
#pragma omp parallel for schedule(static) num_threads(cores)
    for (i = 0; i < (size_t)1 << 30; ++i) {
        data[i] = (uint8_t)((i * 2654435761u) >> 13);
    }

    bench.data = data;
    printf("%s, chunks of %zu, arity %u, %u threads, GB/s\n%12s %9s %9s %9s %6s %9s %9s %6s %10s\n", digest,
           bench.chunk, bench.arity, cores, "bytes", "leaves", "read 1", "build 1", "ratio", "read all", "build all",
           "ratio", "nodes us");
    for (i = 0; i < uci_array_size(lengths); ++i) {
        if (optind == argc) {
            bench.length = lengths[i];
            bench_length(&bench, repeats, cores);
        }
    }
    for (; optind < argc; ++optind) {
        bench.length = uci_min(strtoul(argv[optind], NULL, 0), 1024ul) << 20;
        if (bench.length > 0) {
            bench_length(&bench, repeats, cores);
        }
    }
    free(data);
    bench_descents(uci_div_up(bench.length, bench.chunk));
    return 0;
}
