/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs of tests/twins have in common: they compute with fma() of libm, which failing_node.c makes wrong, and rank 0 compares
 * the result with its own. It says "NAME: right", or how much is wrong. The status is 0 in either case: a launcher would kill the other ranks, which still have
 * to compare.
 */
#ifndef UCI_TESTS_TWINS_PROGRAM_H_
#define UCI_TESTS_TWINS_PROGRAM_H_

#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* The number in an argument, or @a value if it is not there */
static inline int argument(int argc, char **argv, int index, int value)
{
    return (index < argc) ? atoi(argv[index]) : value;
}

static inline int end(const char *name, long wrong)
{
    MPI_Bcast(&wrong, 1, MPI_LONG, 0, MPI_COMM_WORLD); /* nobody leaves before all is over */
    if ((rank == 0) && (wrong == 0)) {
        printf("%s: right\n", name);
    } else if (rank == 0) {
        printf("%s: %ld wrong\n", name, wrong);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

/* Which of its twins this is, as UCI_TWINS says; -1: there are none. A program has no business with that: these want to die in one. */
static inline int twin_of(void)
{
    const char *text = getenv("UCI_TWINS");
    const char *end  = (text != NULL) ? strrchr(text, ',') : NULL;

    return (end != NULL) ? atoi(end + 1) : -1;
}

#endif
