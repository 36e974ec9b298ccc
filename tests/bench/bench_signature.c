/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How good, and how fast, are hashes of type signatures?
 *
 *     bench_signature
 *
 * After J. Langou, G. Bosilca, G. Fagg, J. Dongarra, "Hash Functions for Datatype Signatures in MPI", 2005: 6994 signatures of 13 basic types,
 * collisions (a signature whose hash another one has already) and duplicates (hashes that several have), for the paper's functions and for
 * core/signature/signature.h, beside the paper's own numbers. Its panel was at an address that is gone; this one has signatures of the same kinds: one type
 * up to 100 times, two types in runs, pairs repeated, triples. Where the paper has m checksums of w bits and does not say how they differ, the
 * k-th one here has 2^k for 2. Then times, as in its table 2. Prints Markdown.
 *
 * Exit status 1 if a function that can be concatenated does not do so here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "signature/signature.h"

#define PANEL   6994u
#define TYPES   13u
#define LONGEST 100u

typedef struct sequence {
    unsigned length;
    uint8_t elements[LONGEST]; /* 1 to TYPES */
} sequence_t;

typedef uint64_t (*multiply_func_t)(uint64_t a, uint64_t b, unsigned bits);

/* A checksum by the paper's theorem 1: a ring of `bits`, of which `parts` are put side by side */
typedef struct checksum {
    const char *name;
    unsigned bits, parts;
    multiply_func_t add, multiply;
    const char *paper; /* "collisions, duplicates" */
} checksum_t;

/* ----------------------------------------------------------------- rings */

static uint64_t mask_of(unsigned bits)
{
    return (UINT64_C(1) << bits) - 1;
}

static uint64_t rotate(uint64_t a, uint64_t by, unsigned bits)
{
    by %= bits;
    return ((a << by) | (a >> ((bits - by) % bits))) & mask_of(bits);
}

static uint64_t add_xor(uint64_t a, uint64_t b, unsigned bits)
{
    return a ^ b;
}

/* The multiplications are by powers of 2, whose exponents are given */
static uint64_t multiply_rotate(uint64_t a, uint64_t exponent, unsigned bits)
{
    return rotate(a, exponent, bits);
}

static uint64_t add_modulo(uint64_t a, uint64_t b, unsigned bits)
{
    return (a + b) % mask_of(bits);
}

static uint64_t gf_multiply(uint64_t a, uint64_t b, unsigned bits)
{
    uint64_t polynomial = (bits == 8) ? 0x11d : 0x1100b, product = 0;

    for (; b != 0; b >>= 1) {
        product ^= (b & 1) ? a : 0;
        a <<= 1;
        a ^= (a >> bits) ? polynomial : 0;
    }
    return product;
}

static uint64_t multiply_gf(uint64_t a, uint64_t exponent, unsigned bits)
{
    uint64_t power = 1, base = 2;

    for (; exponent != 0; exponent >>= 1) {
        power = (exponent & 1) ? gf_multiply(power, base, bits) : power;
        base  = gf_multiply(base, base, bits);
    }
    return gf_multiply(a, power, bits);
}

static const checksum_t checksums[] = {
        {"xor-bs1", 16, 1, add_xor, multiply_rotate, "61.10, 26.75"},
        {"xor-bs1", 8, 2, add_xor, multiply_rotate, "64.40, 23.04"},
        {"xor-bs1", 16, 2, add_xor, multiply_rotate, "37.32, 15.76"},
        {"xor-bs1", 8, 4, add_xor, multiply_rotate, "60.71, 13.65"},
        {"mmm-bs1", 16, 1, add_modulo, multiply_rotate, "52.03, 19.67"},
        {"mmm-bs1", 8, 2, add_modulo, multiply_rotate, "51.44, 27.47"},
        {"mmm-bs1", 16, 2, add_modulo, multiply_rotate, "23.29, 11.48"},
        {"mmm-bs1", 8, 4, add_modulo, multiply_rotate, "30.08, 14.91"},
        {"gfd", 16, 1, add_xor, multiply_gf, "12.65, 8.48"},
        {"gfd", 8, 2, add_xor, multiply_gf, "3.73, 3.77"},
        {"gfd", 16, 2, add_xor, multiply_gf, "0.00, 0.00"},
        {"gfd", 8, 4, add_xor, multiply_gf, "0.00, 0.00"},
};

/* Of `count` elements from `first` on, with 2^step for 2 */
static uint64_t checksum_one(const checksum_t *sum, const uint8_t *elements, unsigned count, unsigned step)
{
    uint64_t value = 0;
    unsigned i;

    for (i = 0; i < count; ++i) {
        value = sum->add(sum->multiply(value, step, sum->bits), elements[i], sum->bits);
    }
    return value;
}

static uint64_t checksum_all(const checksum_t *sum, const sequence_t *sequence)
{
    uint64_t value = 0;
    unsigned part;

    for (part = 0; part < sum->parts; ++part) {
        value |= checksum_one(sum, sequence->elements, sequence->length, part + 1) << (part * sum->bits);
    }
    return value;
}

/* f([X, Y]) = f(X) * a^m + f(Y), for each place to cut it */
static bool concatenates(const checksum_t *sum, const sequence_t *sequence)
{
    unsigned cut;

    for (cut = 0; cut <= sequence->length; ++cut) {
        uint64_t first  = checksum_one(sum, sequence->elements, cut, 1);
        uint64_t second = checksum_one(sum, sequence->elements + cut, sequence->length - cut, 1);
        uint64_t whole  = sum->add(sum->multiply(first, sequence->length - cut, sum->bits), second, sum->bits);

        if (whole != checksum_one(sum, sequence->elements, sequence->length, 1)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------- the others */

static uint64_t crc_bits(const sequence_t *sequence, unsigned bits, uint64_t polynomial, uint64_t value)
{
    unsigned i, bit;

    for (i = 0; i < sequence->length; ++i) {
        value ^= (uint64_t)sequence->elements[i] << (bits - 8);
        for (bit = 0; bit < 8; ++bit) {
            value = ((value << 1) ^ ((value >> (bits - 1)) ? polynomial : 0)) & mask_of(bits);
        }
    }
    return value;
}

static uint64_t hash_crc16(const sequence_t *sequence)
{
    return crc_bits(sequence, 16, 0x1021, 0xffff);
}

static uint64_t hash_crc32(const sequence_t *sequence)
{
    return crc_bits(sequence, 32, 0x04c11db7, 0xffffffff);
}

static uint64_t hash_ours(const sequence_t *sequence)
{
    uci_sighash_t hash = UCI_SIGHASH_EMPTY;
    unsigned i;

    for (i = 0; i < sequence->length; ++i) {
        hash = uci_sighash_concat(hash, uci_sighash_element(sequence->elements[i]));
    }
    return hash.value;
}

static uint64_t hash_ours_16(const sequence_t *sequence)
{
    return hash_ours(sequence) & 0xffff;
}

static uint64_t hash_ours_32(const sequence_t *sequence)
{
    return hash_ours(sequence) & 0xffffffff;
}

/* ----------------------------------------------------------------- panel */

static void add_run(sequence_t *sequence, unsigned type, unsigned count)
{
    memset(sequence->elements + sequence->length, (int)type + 1, count);
    sequence->length += count;
}

static unsigned panel_pairs(sequence_t *panel, unsigned count, unsigned a, unsigned b)
{
    unsigned i, j;

    for (i = 1; i <= 4; ++i) {
        for (j = 1; (j <= 4) && (count < PANEL); ++j, ++count) {
            add_run(&panel[count], a, i);
            add_run(&panel[count], b, j);
        }
    }
    for (i = 2; (i <= 11) && (count < PANEL); ++i, ++count) {
        for (j = 0; j < i; ++j) {
            add_run(&panel[count], a, 1);
            add_run(&panel[count], b, 1);
        }
    }
    return count;
}

static void panel_fill(sequence_t *panel)
{
    unsigned a, b, c, count = 0;

    for (a = 0; a < TYPES; ++a) {
        for (b = 1; b <= LONGEST; ++b, ++count) {
            add_run(&panel[count], a, b);
        }
    }
    for (a = 0; a < TYPES; ++a) {
        for (b = 0; b < TYPES; ++b) {
            count = (a == b) ? count : panel_pairs(panel, count, a, b);
        }
    }
    for (a = 0; count < PANEL; a = (a + 1) % (TYPES * TYPES * TYPES)) {
        b = (a / TYPES) % TYPES;
        c = a / TYPES / TYPES;
        if ((a % TYPES != b) && (b != c) && (a % TYPES != c)) {
            add_run(&panel[count], a % TYPES, 1);
            add_run(&panel[count], b, 1);
            add_run(&panel[count++], c, 1);
        }
    }
}

static int compare_values(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Percent */
static void judge(uint64_t *values, double *collisions_p, double *duplicates_p)
{
    unsigned i, collisions = 0, duplicates = 0;

    qsort(values, PANEL, sizeof(*values), compare_values);
    for (i = 1; i < PANEL; ++i) {
        bool same = (values[i] == values[i - 1]);

        collisions += same;
        duplicates += same && ((i == 1) || (values[i - 2] != values[i]));
    }
    *collisions_p = 100.0 * collisions / PANEL;
    *duplicates_p = 100.0 * duplicates / PANEL;
}

static void print_quality(const char *name, unsigned bits, uint64_t *values, const char *paper)
{
    double collisions, duplicates;

    judge(values, &collisions, &duplicates);
    printf("| %s | %u | %.2f | %.2f | %s |\n", name, bits, collisions, duplicates, (paper != NULL) ? paper : "-");
}

static void print_hash(const char *name, unsigned bits, const sequence_t *panel,
                       uint64_t (*hash)(const sequence_t *sequence), const char *paper)
{
    static uint64_t values[PANEL];
    unsigned i;

    for (i = 0; i < PANEL; ++i) {
        values[i] = hash(&panel[i]);
    }
    print_quality(name, bits, values, paper);
}

static int print_checksum(const checksum_t *sum, const sequence_t *panel)
{
    static uint64_t values[PANEL];
    char name[64];
    unsigned i;

    for (i = 0; i < PANEL; ++i) {
        values[i] = checksum_all(sum, &panel[i]);
        if (!concatenates(sum, &panel[i])) {
            printf("%s can't be concatenated\n", sum->name);
            return 1;
        }
    }
    snprintf(name, sizeof(name), "%s (w=%u, m=%u)", sum->name, sum->bits, sum->parts);
    print_quality(name, sum->bits * sum->parts, values, sum->paper);
    return 0;
}

/* ------------------------------------------------------------------ time */

static volatile uint64_t sink;

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (1e9 * (double)time.tv_sec) + (double)time.tv_nsec;
}

/* The best of several rounds, in ns. @param count  elements of the type */
static double time_ours(const char *what, unsigned count)
{
    uci_sighash_t one = uci_sighash_element(3), half = uci_sighash_repeat(one, count / 2);
    double best = 1e18;
    unsigned round, i, rounds = 1000;

    for (round = 0; round < 50; ++round) {
        double begin = now_ns();

        for (i = 0; i < rounds; ++i) {
            uci_sighash_t hash = UCI_SIGHASH_EMPTY;
            unsigned k;

            __asm__ volatile("" : "+r"(half.value), "+r"(one.value));
            if (strcmp(what, "signature") == 0) {
                for (k = 0; k < count; ++k) {
                    hash = uci_sighash_concat(hash, one);
                    __asm__ volatile("" : "+r"(one.value));
                }
            } else {
                hash = (strcmp(what, "concatenation") == 0) ? uci_sighash_concat(half, half)
                                                            : uci_sighash_repeat(one, count);
            }
            sink = hash.value;
        }
        best = uci_min(best, (now_ns() - begin) / rounds);
    }
    return best;
}

static void print_times(void)
{
    static const struct {
        const char *what, *paper; /* of its Xeon, 2.4 GHz, us: gfd (w=8, m=2), crc (w=16) */
    } rows[] = {{"signature", "4.60, 2.04; 48.26, 20.21"},
                {"concatenation", "0.09, 1.12; 0.10, 10.07"},
                {"n times one", "0.09, 2.04; 0.10, 20.21"}};
    unsigned i;

    for (i = 0; i < uci_array_size(rows); ++i) {
        printf("| %s | %.1f | %.1f | %.1f | %s |\n", rows[i].what, time_ours(rows[i].what, 100),
               time_ours(rows[i].what, 1000), time_ours(rows[i].what, 1000000 / ((i == 0) ? 100 : 1)), rows[i].paper);
    }
}

int main(void)
{
    sequence_t *panel = calloc(PANEL + 32, sizeof(*panel));
    unsigned i;
    int failed = 0;

    if (panel == NULL) {
        return 1;
    }
    panel_fill(panel);
    printf("| function | bits | collisions %% | duplicates %% | the paper's, %% |\n|---|---|---|---|---|\n");
    print_hash("CRC-16/CCITT", 16, panel, hash_crc16, "4.76, 4.88");
    for (i = 0; i < uci_array_size(checksums); ++i) {
        failed |= print_checksum(&checksums[i], panel);
    }
    print_hash("CRC-32 (04C11DB7)", 32, panel, hash_crc32, "0.00, 0.00");
    print_hash("modulo 2^61 - 1, low bits", 16, panel, hash_ours_16, NULL);
    print_hash("modulo 2^61 - 1, low bits", 32, panel, hash_ours_32, NULL);
    print_hash("modulo 2^61 - 1, as it is used", 61, panel, hash_ours, NULL);
    printf("\nA random mapping to 16 bits: %.2f %% collisions.\n\n",
           100.0 * (1 - (65536.0 / (65536.0 / PANEL + .5) / PANEL)));
    printf("| time, ns | n = 100 | n = 1000 | n = 10^6 (signature: 10^4) | the paper, gfd and crc: n = 100; n = 1000 (us, Xeon 2.4 GHz) |\n"
           "|---|---|---|---|---|\n");
    print_times();
    free(panel);
    return failed;
}
