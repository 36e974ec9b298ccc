/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every blocking collective with contents checked, in place too; every predefined operation that makes sense with
 * its types, and a non-commutative one of the user's.
 *
 * @ranks 2 4
 * @args 4: 0.4
 * @args mpich 4: 0.1
 */
#include "coll.h"

static void test_reduce_local(void)
{
    int in[100], inout[100], i;

    check_phase("reduce_local");
    for (i = 0; i < 100; ++i) {
        in[i]    = i * 3;
        inout[i] = 1000 - i;
    }
    MPI_Reduce_local(in, inout, 100, MPI_INT, MPI_SUM);
    for (i = 0; i < 100; ++i) {
        CHECK(inout[i] == 1000 + 2 * i, "reduce_local: element %d is %d", i, inout[i]);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "coll_blocking");
    test_all_collectives();
    test_reduce_local();
    return check_finish();
}
