/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The model of all-reduces that libuci_mpi decides by, for tests/bench/allreduce.py, which fits its costs and compares it with what was measured.
 *
 * usage: bench_allreduce_model NODES RANKS-OF-A-NODE SEALED SIZE...
 * Prints the names of the terms, their costs, and for each size two lines of counts: "SIZE,node,COUNT,..." and "SIZE,mpi,COUNT,...".
 *
 * usage: bench_allreduce_model measure
 * Prints nanoseconds of a byte that is copied and digested, and of one that is added up (doubles), as one core does it here: "copy,NS" and
 * "reduce,NS", medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allreduce_model.h"
#include "digest/digest.h"

enum { LENGTH = 4 << 20, ROUNDS = 15 };

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void copy_all(void *to, const void *from)
{
    const uci_digest_ops_t *digest = uci_digest_row(UCI_DIGEST_XXH3, uci_digest_isa_best());

    digest->copy(to, from, LENGTH);
}

static void add_all(void *to, const void *from)
{
    const double *in = from;
    double *inout    = to;
    size_t i;

    for (i = 0; i < LENGTH / sizeof(double); ++i) {
        inout[i] += in[i];
    }
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void measure(const char *name, void (*func)(void *, const void *))
{
    void *to = calloc(1, LENGTH), *from = calloc(1, LENGTH);
    double times[ROUNDS], begin;
    int i;

    if ((to == NULL) || (from == NULL)) {
        exit(1);
    }
    memset(from, 1, LENGTH);
    for (i = 0; i < ROUNDS; ++i) {
        begin = now_ns();
        func(to, from);
        times[i] = (now_ns() - begin) / LENGTH;
    }
    qsort(times, ROUNDS, sizeof(times[0]), by_value);
    printf("%s,%.4f\n", name, times[ROUNDS / 2]);
    free(to);
    free(from);
}

static void print_counts(const char *size, const char *name, const double counts[UCI_MPI_TERM_LAST])
{
    int i;

    printf("%s,%s", size, name);
    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        printf(",%.9g", counts[i]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    double counts[UCI_MPI_TERM_LAST];
    uci_mpi_model_t model;
    int i;

    if ((argc == 2) && (strcmp(argv[1], "measure") == 0)) {
        measure("copy", copy_all);
        measure("reduce", add_all);
        return 0;
    }
    if ((argc < 4) || (atoi(argv[1]) < 1) || (atoi(argv[2]) < 1)) {
        fprintf(stderr, "usage: bench_allreduce_model NODES RANKS-OF-A-NODE SEALED SIZE... | measure\n");
        return 2;
    }
    model = (uci_mpi_model_t){
            .nodes = atoi(argv[1]), .leaders = atoi(argv[2]), .local_ranks = atoi(argv[2]), .sealed = atoi(argv[3])};
    model.ranks = model.nodes * model.leaders;
    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        printf("%s%s", (i > 0) ? "," : "", uci_mpi_term_names[i]);
    }
    printf("\n");
    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        printf("%s%.9g", (i > 0) ? "," : "", uci_mpi_term_costs[i]);
    }
    printf("\n");
    for (i = 4; i < argc; ++i) {
        uci_mpi_model_by_node(&model, strtoull(argv[i], NULL, 10), counts);
        print_counts(argv[i], "node", counts);
        uci_mpi_model_by_mpi(&model, strtoull(argv[i], NULL, 10), counts);
        print_counts(argv[i], "mpi", counts);
    }
    return 0;
}
