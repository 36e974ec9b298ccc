/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A processor that computes wrong now and then: preloaded, in front of libm, it flips a bit of what fma() gives, in one rank of one twin. No
 * memory and no message is touched, so that nothing but the program's own results can tell.
 *
 *     FAILING_NODE=TWIN,RANK,AFTER,EVERY,COUNT
 *
 * After so many calls it begins; from then on each EVERY-th is wrong, COUNT of them at most. TWIN is -1 in a job that has no twins. Without the
 * variable, and in all other processes, fma() is libm's. At its end the process says on standard error how often it was wrong.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLIPPED_BIT 40 /* of the mantissa: one part in 4096 */

double fma(double x, double y, double z);

static double (*right_fma)(double x, double y, double z);
static long twin, rank, after, every, count, calls, wrong;
static int is_failing;

static long number_of(const char *name, long value)
{
    const char *text = getenv(name);

    return (text != NULL) ? atol(text) : value;
}

static long own_rank(void)
{
    return number_of("OMPI_COMM_WORLD_RANK", number_of("PMI_RANK", -1));
}

static long own_twin(void)
{
    const char *text = getenv("UCI_TWINS");
    const char *end  = (text != NULL) ? strrchr(text, ',') : NULL;

    return (end != NULL) ? atol(end + 1) : -1;
}

static __attribute__((constructor)) void begin(void)
{
    const char *text = getenv("FAILING_NODE");

    right_fma = (double (*)(double, double, double))dlsym(RTLD_NEXT, "fma");
    if (text == NULL) {
        return;
    }
    if (sscanf(text, "%ld,%ld,%ld,%ld,%ld", &twin, &rank, &after, &every, &count) != 5) {
        fprintf(stderr, "failing_node: FAILING_NODE=%s is not TWIN,RANK,AFTER,EVERY,COUNT\n", text);
        exit(2);
    }
    is_failing = (twin == own_twin()) && (rank == own_rank());
}

static __attribute__((destructor)) void end(void)
{
    if (is_failing && (calls > 0)) {
        fprintf(stderr, "failing_node: rank %ld of twin %ld was wrong %ld times in %ld\n", rank, twin, wrong, calls);
    }
}

double fma(double x, double y, double z)
{
    double value = right_fma(x, y, z);
    uint64_t bits;

    if (is_failing && (++calls > after) && (wrong < count) && ((calls - after - 1) % every == 0)) {
        memcpy(&bits, &value, sizeof(bits));
        bits ^= UINT64_C(1) << FLIPPED_BIT;
        memcpy(&value, &bits, sizeof(bits));
        ++wrong;
    }
    return value;
}
