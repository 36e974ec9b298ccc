/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sender that has waited for a second asks what became of its message. The question comes when the receive has just been
 * posted, and nothing more than that has happened: run_ucp.sh looks that nothing is sent twice.
 */
#include "ucp_test.h"

#include <unistd.h>

static ut_pair_t pair;

static void received_late(void)
{
    static const size_t sizes[] = {30000, 600000, 2000000};
    ut_data_t from[3], to[3];
    ut_op_t send[3], recv[3];
    unsigned i;

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    for (i = 0; i < 3; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, sizes[i]);
        ut_data_open(&to[i], UT_CONTIG1, sizes[i]);
        ut_data_fill(&from[i], i);
        ut_send(&send[i], pair.a, UT_SEND_SYNC_NBX, &from[i], i);
    }
    ut_settle(&pair);
    for (i = 0; i < 1200; ++i) {
        usleep(1000);
        ucp_worker_progress(pair.a->worker);
    }
    for (i = 0; i < 3; ++i) {
        ut_recv(&recv[i], &pair, UT_RECV_NBX, &to[i], i, UT_TAG_ALL);
    }
    for (i = 0; i < 1000; ++i) {
        ucp_worker_progress(pair.b->worker);
    }
    for (i = 0; i < 3; ++i) {
        UT_CHECK_STATUS(ut_wait(&pair, &recv[i]), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to[i], sizes[i], i), "wrong content, %zu bytes", sizes[i]);
        ut_data_close(&from[i]);
        ut_data_close(&to[i]);
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(received_late)};

UT_MAIN(tests)
