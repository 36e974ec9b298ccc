/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How much damage do the digests miss?
 *
 *     bench_detection [-n TRIALS] [-s SEED] [-m]
 *
 * Messages of 16 KiB with three kinds of content are damaged in many ways; each damaged message whose digest equals the
 * undamaged one's is a miss. 64 bits are never missed by chance, so values are folded to 32 and 16 bits too, where a good
 * digest misses 2^-32 and 2^-16: more than that is a weakness of its algebra, as is any miss at full width. Then
 * collisions and duplicates of a panel of short sequences of few values, the method of J. Langou, G. Bosilca, G. Fagg, J.
 * Dongarra, "Hash Functions for Datatype Signatures in MPI", 2005. -m prints Markdown, as docs/digests.md has it. Uses all
 * cores; minutes with the default 2^22 trials of each kind of damage and content.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest/digest.h"

#define SIZE    16384u
#define PAGE    4096u
#define PANEL   6994u /* messages, as many as in the paper */
#define VALUES  59u   /* that a panel's sequences are made of */
#define LONGEST 118u  /* sequence of the panel, in words of 32 bits */
#define DIGESTS (UCI_DIGEST_LAST - 1)

enum { FOLD_16, FOLD_32, FOLD_FULL, FOLDS };

typedef struct bench_random {
    uint64_t state;
} bench_random_t;

/* splitmix64 (S. Vigna) */
static uint64_t bench_next(bench_random_t *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint32_t bench_below(bench_random_t *random, uint32_t limit)
{
    return (uint32_t)(((bench_next(random) >> 32) * limit) >> 32);
}

/*
 * Content
 */

static void fill_random(bench_random_t *random, uint8_t *data)
{
    unsigned i;

    for (i = 0; i < SIZE; i += 8) {
        uint64_t word = bench_next(random);

        memcpy(data + i, &word, 8);
    }
}

/* What a stencil code sends */
static void fill_doubles(bench_random_t *random, uint8_t *data)
{
    double phase = bench_below(random, 1000) / 100.0, value;
    unsigned i;

    for (i = 0; i < SIZE; i += 8) {
        value = 1 + 0.01 * sin(phase + i / 800.0);
        memcpy(data + i, &value, 8);
    }
}

/* Mostly zeros, small numbers between */
static void fill_sparse(bench_random_t *random, uint8_t *data)
{
    unsigned i;

    memset(data, 0, SIZE);
    for (i = 0; i < SIZE / 64; ++i) {
        data[4 * bench_below(random, SIZE / 4)] = (uint8_t)(1 + bench_below(random, 255));
    }
}

static const struct {
    const char *name;
    void (*fill)(bench_random_t *random, uint8_t *data);
} contents[] = {{"random", fill_random}, {"doubles", fill_doubles}, {"sparse", fill_sparse}};

/*
 * Damage
 */

static void flip(uint8_t *data, uint32_t bit)
{
    data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

/* `parameter` different bits */
static void damage_flips(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint32_t bits[8], i, j;

    for (i = 0; i < parameter; ++i) {
        do {
            bits[i] = bench_below(random, 8 * SIZE);
            for (j = 0; (j < i) && (bits[j] != bits[i]); ++j) {
            }
        } while (j < i);
        flip(data, bits[i]);
    }
}

/* The same bit in two 64-bit words a multiple of 128 bytes apart: a stuck line of a wide bus */
static void damage_column(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint32_t row = bench_below(random, SIZE / 128), other, place = bench_below(random, 8 * 128);

    do {
        other = bench_below(random, SIZE / 128);
    } while (other == row);
    flip(data, row * 8 * 128 + place);
    flip(data, other * 8 * 128 + place);
}

/* `parameter` adjacent bits: the ends flipped, those between at random */
static void damage_burst(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint32_t begin = bench_below(random, 8 * SIZE - parameter + 1), i;
    uint64_t bits  = 0;

    for (i = 0; i < parameter; ++i) {
        bits = (i % 64 == 0) ? bench_next(random) : bits >> 1;
        if ((i == 0) || (i + 1 == parameter) || (bits & 1)) {
            flip(data, begin + i);
        }
    }
}

static void damage_zeros(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    memset(data + parameter * bench_below(random, SIZE / parameter), 0, parameter);
}

static void damage_repeat(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint32_t from = bench_below(random, SIZE / parameter), to = bench_below(random, SIZE / parameter);

    memmove(data + to * parameter, data + from * parameter, parameter);
}

static void damage_swap(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint8_t *a = data + parameter * bench_below(random, SIZE / parameter);
    uint8_t *b = data + parameter * bench_below(random, SIZE / parameter);
    uint8_t kept[PAGE];

    memcpy(kept, a, parameter);
    memmove(a, b, parameter);
    memcpy(b, kept, parameter);
}

/* From a random place on, everything `parameter` bytes late */
static void damage_shift(bench_random_t *random, uint8_t *data, unsigned parameter)
{
    uint32_t begin = bench_below(random, SIZE - parameter - 1);

    memmove(data + begin + parameter, data + begin, SIZE - begin - parameter);
}

static const struct {
    const char *name;
    void (*damage)(bench_random_t *random, uint8_t *data, unsigned parameter);
    unsigned parameter;
} kinds[] = {
        {"1 bit", damage_flips, 1},
        {"2 bits", damage_flips, 2},
        {"3 bits", damage_flips, 3},
        {"4 bits", damage_flips, 4},
        {"5 bits", damage_flips, 5},
        {"6 bits", damage_flips, 6},
        {"7 bits", damage_flips, 7},
        {"8 bits", damage_flips, 8},
        {"2 bits of a column", damage_column, 0},
        {"burst of 16 bits", damage_burst, 16},
        {"burst of 32 bits", damage_burst, 32},
        {"burst of 64 bits", damage_burst, 64},
        {"burst of 512 bits", damage_burst, 512},
        {"zeroed 64 bytes", damage_zeros, 64},
        {"zeroed page", damage_zeros, PAGE},
        {"repeated 64 bytes", damage_repeat, 64},
        {"repeated page", damage_repeat, PAGE},
        {"swapped 4 bytes", damage_swap, 4},
        {"swapped 8 bytes", damage_swap, 8},
        {"swapped 64 bytes", damage_swap, 64},
        {"swapped pages", damage_swap, PAGE},
        {"shifted by 1 byte", damage_shift, 1},
        {"shifted by 8 bytes", damage_shift, 8},
        {"shifted by 128 bytes", damage_shift, 128},
};

/*
 * Counting
 */

typedef struct bench_count {
    uint64_t trials; /* that changed the message */
    uint64_t missed[DIGESTS][FOLDS];
} bench_count_t;

static void bench_compare(bench_count_t *count, unsigned digest, unsigned width, uint64_t good, uint64_t bad)
{
    uint64_t changed = good ^ bad; /* folding is linear: fold the difference */
    uint32_t low     = (width > 32) ? (uint32_t)(changed ^ (changed >> 32)) : (uint32_t)changed;

    count->missed[digest][FOLD_FULL] += (changed == 0);
    count->missed[digest][FOLD_32] += (low == 0);
    count->missed[digest][FOLD_16] += ((uint16_t)(low ^ (low >> 16)) == 0);
}

static void bench_trials(unsigned kind, unsigned content, uint64_t trials, uint64_t seed, bench_count_t *count)
{
    static const uint64_t renew = 64; /* trials on one message: pages of it can be damaged in few ways */
    bench_random_t random       = {.state = seed};
    uint64_t good[UCI_DIGEST_LAST], i;
    uint8_t *data = aligned_alloc(64, SIZE), *damaged = aligned_alloc(64, SIZE);
    unsigned id;

    for (i = 0; i < trials; ++i) {
        if (i % renew == 0) {
            contents[content].fill(&random, data);
            for (id = 1; id < UCI_DIGEST_LAST; ++id) {
                good[id] = uci_digest_table[id].digest(data, SIZE);
            }
        }
        memcpy(damaged, data, SIZE);
        kinds[kind].damage(&random, damaged, kinds[kind].parameter);
        if (memcmp(damaged, data, SIZE) == 0) {
            continue; /* zeros into zeros */
        }
        ++count->trials;
        for (id = 1; id < UCI_DIGEST_LAST; ++id) {
            bench_compare(count, id - 1, uci_digest_table[id].width, good[id],
                          uci_digest_table[id].digest(damaged, SIZE));
        }
    }
    free(data);
    free(damaged);
}

static void bench_add(bench_count_t *sum, const bench_count_t *part)
{
    unsigned digest, fold;

    sum->trials += part->trials;
    for (digest = 0; digest < DIGESTS; ++digest) {
        for (fold = 0; fold < FOLDS; ++fold) {
            sum->missed[digest][fold] += part->missed[digest][fold];
        }
    }
}

/* All contents of one kind of damage, on all cores; the result depends on the seed only, not on their number */
static void bench_kind(unsigned kind, uint64_t trials, uint64_t seed, bench_count_t *sum)
{
    const unsigned parts = 64;
    unsigned part;

    memset(sum, 0, sizeof(*sum));
#pragma omp parallel for schedule(dynamic)
    for (part = 0; part < parts * (unsigned)uci_array_size(contents); ++part) {
        bench_count_t count = {0};

        bench_trials(kind, part % uci_array_size(contents), trials / parts,
                     seed + 0x100000001b3ull * (kind * 1000ull + part + 1), &count);
#pragma omp critical
        bench_add(sum, &count);
    }
}

/*
 * Tables
 */

static void print_rule(bool markdown)
{
    unsigned i;

    for (i = 0; markdown && (i < DIGESTS + 2); ++i) {
        printf("|---");
    }
    printf("%s", markdown ? "|\n" : "");
}

static void print_head(bool markdown, const char *first)
{
    unsigned id;

    printf(markdown ? "| %s | trials |" : "%-22s %10s", first, "trials");
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        printf(markdown ? " %s |" : " %14s", uci_digest_table[id].name);
    }
    printf("\n");
    print_rule(markdown);
}

/* Misses at 16 bits relative to 2^-16, then those at 32 bits and at full width, if any */
static void print_kind(bool markdown, unsigned kind, const bench_count_t *count)
{
    char cell[64];
    unsigned digest;
    double ratio;

    printf(markdown ? "| %s | %lu |" : "%-22s %10lu", kinds[kind].name, count->trials);
    for (digest = 0; digest < DIGESTS; ++digest) {
        ratio = (double)count->missed[digest][FOLD_16] * 65536 / (double)uci_max(count->trials, 1ul);
        if (count->missed[digest][FOLD_32] + count->missed[digest][FOLD_FULL] == 0) {
            snprintf(cell, sizeof(cell), "%.2f", ratio);
        } else {
            snprintf(cell, sizeof(cell), "%.2f/%lu/%lu", ratio, count->missed[digest][FOLD_32],
                     count->missed[digest][FOLD_FULL]);
        }
        printf(markdown ? " %s |" : " %14s", cell);
    }
    printf("\n");
    fflush(stdout);
}

/*
 * The panel
 */

static uint32_t panel_fold(uint64_t value, unsigned width, unsigned fold)
{
    uint32_t low = (width > 32) ? (uint32_t)(value ^ (value >> 32)) : (uint32_t)value;

    return (fold == FOLD_32) ? low : (uint16_t)(low ^ (low >> 16));
}

static int panel_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Message i: sequences of one value, of all values and lengths, then sequences of two values in turn */
static size_t panel_message(unsigned i, uint32_t *words)
{
    unsigned length = 1 + i / VALUES % LONGEST, j;

    for (j = 0; j < length; ++j) {
        words[j] = (i < VALUES * LONGEST) ? i % VALUES : (i + j % 2) % VALUES;
    }
    if (i >= VALUES * LONGEST) {
        words[length++] = VALUES; /* none of the others */
    }
    return length * sizeof(*words);
}

/* Collisions: messages whose value an earlier one has. Duplicates: values that several have. Percent of the panel. */
static void panel_count(const uci_digest_ops_t *ops, unsigned fold, double *collisions_p, double *duplicates_p)
{
    static uint32_t values[PANEL];
    uint32_t words[LONGEST + 1];
    unsigned i, collisions = 0, duplicates = 0;

    for (i = 0; i < PANEL; ++i) {
        size_t length = panel_message(i, words);

        values[i] = panel_fold(ops->digest(words, length), ops->width, fold);
    }
    qsort(values, PANEL, sizeof(values[0]), panel_compare);
    for (i = 1; i < PANEL; ++i) {
        if (values[i] == values[i - 1]) {
            ++collisions;
            duplicates += (i == 1) || (values[i - 1] != values[i - 2]);
        }
    }
    *collisions_p = 100.0 * collisions / PANEL;
    *duplicates_p = 100.0 * duplicates / PANEL;
}

static void print_panel(bool markdown)
{
    const double n = 65536, m = PANEL, filled = n * (1 - exp(-m / n));
    double collisions, duplicates;
    unsigned id, fold;

    printf("\n%u sequences, percent (a random function at 16 bits: %.2f collisions, %.2f duplicates)\n", PANEL,
           100 * (m - filled) / m, 100 * (filled - m * exp(-m / n)) / m);
    printf(markdown ? "\n| digest | bits | collisions | duplicates |\n|---|---|---|---|\n" : "%-10s %5s %11s %11s\n",
           "digest", "bits", "collisions", "duplicates");
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        for (fold = FOLD_16; fold <= FOLD_32; ++fold) {
            panel_count(&uci_digest_table[id], fold, &collisions, &duplicates);
            printf(markdown ? "| %s | %u | %.2f | %.2f |\n" : "%-10s %5u %11.2f %11.2f\n", uci_digest_table[id].name,
                   (fold == FOLD_16) ? 16 : 32, collisions, duplicates);
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t trials = 1 << 22, seed = 1;
    bool markdown = false;
    bench_count_t count;
    unsigned kind;
    int option;

    while ((option = getopt(argc, argv, "n:s:m")) != -1) {
        switch (option) {
        case 'n':
            trials = strtoull(optarg, NULL, 0);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 0);
            break;
        case 'm':
            markdown = true;
            break;
        default:
            fprintf(stderr, "usage: bench_detection [-n TRIALS] [-s SEED] [-m]\n");
            return 2;
        }
    }

    uci_digest_init();
    printf("%lu trials of each kind and content, seed %lu, %d threads\n", trials, seed, omp_get_max_threads());
    printf("misses at 16 bits relative to 2^-16 [ / misses at 32 bits / misses at full width, if there are any]\n\n");
    print_head(markdown, "damage");
    for (kind = 0; kind < uci_array_size(kinds); ++kind) {
        if (isatty(STDERR_FILENO)) {
            fprintf(stderr, "\r%u of %zu: %-24s\r", kind + 1, uci_array_size(kinds), kinds[kind].name);
        }
        bench_kind(kind, trials, seed, &count);
        print_kind(markdown, kind, &count);
    }
    print_panel(markdown);
    return 0;
}
