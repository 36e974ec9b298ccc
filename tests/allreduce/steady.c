/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The same all-reduce again and again, of numbers whose sum is known: for what goes wrong on the way.
 *
 * usage: steady [TIMES [KIB]]    default 1000 times 256 KiB
 */
#include "../mpi/check.h"

int main(int argc, char **argv)
{
    long times = (argc > 1) ? atol(argv[1]) : 1000, kib = (argc > 2) ? atol(argv[2]) : 256, i, j;
    int64_t *send, *receive;
    int count = (int)(kib * 1024 / (long)sizeof(*send));

    check_init(&argc, &argv, "steady");
    send    = malloc((size_t)count * sizeof(*send));
    receive = malloc((size_t)count * sizeof(*receive));
    for (i = 0; i < times; ++i) {
        for (j = 0; j < count; ++j) {
            send[j] = (j & 1) ? (int64_t)(i * 1000003 + j) * (check.rank + 1) : 0;
        }
        MPI_Allreduce(send, receive, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        for (j = 0; j < count; ++j) {
            int64_t want = (j & 1) ? (int64_t)(i * 1000003 + j) * (check.size * (check.size + 1) / 2) : 0;

            CHECK(receive[j] == want, "all-reduce %ld: element %ld is %ld, should be %ld", i, j, (long)receive[j],
                  (long)want);
        }
        ++check.messages;
    }
    free(send);
    free(receive);
    check_pass();
    MPI_Finalize();
    return 0;
}
