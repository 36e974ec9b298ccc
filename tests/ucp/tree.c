/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large messages of many chunks: usage: tree LENGTH [MESSAGES]
 *
 * To be run with the library and faults that reach into the tree over the chunks. Every receive must end, with the right
 * bytes if it ends well. Prints "N right, N failed" at its end.
 */
#include "ucp_test.h"

static ut_pair_t pair;

static bool exchange(size_t length, unsigned seed)
{
    ut_data_t from, to;
    ut_op_t send, recv;
    bool right;

    ut_data_open(&from, UT_CONTIG1, length);
    ut_data_open(&to, UT_CONTIG1, length);
    ut_data_fill(&from, seed);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, 1, UT_TAG_ALL);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 1);
    ut_wait(&pair, &recv);
    ut_wait(&pair, &send);
    right = (recv.status == UCS_OK);
    UT_CHECK(!right || ut_data_check(&to, length, seed), "wrong contents, and success");
    ut_data_close(&from);
    ut_data_close(&to);
    return right;
}

int main(int argc, char **argv)
{
    unsigned i, right = 0, messages = (argc > 2) ? (unsigned)atoi(argv[2]) : 1;

    UT_REQUIRE(argc > 1, "usage: tree LENGTH [MESSAGES]");
    ut_pair_open(&pair, 0);
    for (i = 0; i < messages; ++i) {
        right += exchange((size_t)atol(argv[1]), i + 1);
    }
    ut_pair_close(&pair);
    printf("%u right, %u failed\n", right, messages - right);
    return ut_failures() ? 1 : 0;
}
