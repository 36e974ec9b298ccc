/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs under attack share: every byte is checked, what is wrong is counted, and both ranks are told of at the end.
 */
#ifndef UCI_TESTS_FOREIGN_TALLY_H_
#define UCI_TESTS_FOREIGN_TALLY_H_

#include "../../mpi/check.h"
#include "pattern.h"

enum { TALLY_SHOWN = 5, TALLY_WRONG_STATUS = 5 };

static struct {
    uint64_t key;
    uint64_t wrong_messages, wrong_bytes;
} tally;

static inline void tally_begin(void)
{
    tally.key = foreign_key();
    CHECK(tally.key != 0, "FOREIGN_KEY is not set");
}

/** Is this message @a number? */
static inline void tally_check(const void *buffer, size_t length, uint64_t number)
{
    size_t first = 0, wrong = foreign_count_wrong(buffer, length, tally.key, number, &first);

    ++check.messages;
    check.bytes += length;
    if (wrong == 0) {
        return;
    }
    tally.wrong_bytes += wrong;
    if (tally.wrong_messages++ < TALLY_SHOWN) {
        fprintf(stderr, "WRONG rank %d, in '%s', message %llx of %zu bytes: %zu wrong, first %zu\n", check.rank,
                check.phase, (unsigned long long)number, length, wrong, first);
    }
}

/** Rank 0 has the clock. */
static inline bool tally_time_is_left(double end)
{
    int left = (MPI_Wtime() < end);

    MPI_Bcast(&left, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return left != 0;
}

/** @return the exit status of program @a name */
static inline int tally_report(const char *name)
{
    uint64_t mine[] = {check.messages, check.bytes, tally.wrong_messages, tally.wrong_bytes}, sums[4];

    check_phase("final reduction");
    MPI_Allreduce(mine, sums, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (check.rank == 0) {
        printf("traffic: %llu messages, %llu bytes, %llu wrong messages, %llu wrong bytes\n",
               (unsigned long long)sums[0], (unsigned long long)sums[1], (unsigned long long)sums[2],
               (unsigned long long)sums[3]);
        if (sums[2] == 0) {
            printf("PASS %s\n", name);
        }
        fflush(stdout);
    }
    return (sums[2] == 0) ? 0 : TALLY_WRONG_STATUS;
}

#endif
