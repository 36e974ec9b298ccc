/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 sends, and rank 1 answers. Twin 2's rank 1 sleeps in the middle, and the others at the end, so that they are there when it goes on.
 * All of them begin together: each makes a file in the folder SLOW_MEET, and waits for those of all PROCESSES.
 */
#include <dirent.h>
#include <unistd.h>

#include "program.h"

enum { MESSAGES = 10, LENGTH = 4096, PROCESSES = 6 };

static int count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int count;

    for (count = -2; readdir(dir) != NULL; ++count) { /* but itself and its parent */
    }
    closedir(dir);
    return count;
}

static void meet(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
    fclose(fopen(path, "w"));
    while (count_files(folder) < PROCESSES) {
        usleep(1000);
    }
}

static long exchange(int number, int sleeps)
{
    char sent[LENGTH], got[LENGTH] = {0};

    memset(sent, number, sizeof(sent));
    if (rank == 0) {
        MPI_Send(sent, LENGTH, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(got, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    if (sleeps && (number == MESSAGES / 2)) {
        sleep(4);
    }
    MPI_Recv(got, LENGTH, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(got, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    return memcmp(sent, got, LENGTH) != 0;
}

int main(int argc, char **argv)
{
    int i, sleeps = (twin_of() == 2);
    long wrong = 0;

    meet(getenv("SLOW_MEET")); /* before MPI's first messages, which are compared too */
    begin(&argc, &argv);
    for (i = 0; i < MESSAGES; ++i) {
        wrong += exchange(i, sleeps);
    }
    if (!sleeps) {
        sleep(8);
    }
    return end("slow", wrong);
}
