/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that can't be repaired: usage: policy STATUS [LENGTH]...
 *
 * To be run with the library and faults that nothing heals. Every receive must end with STATUS (a number, as in
 * ucs_status_t); every send with success or that. Prints "end" at its end, so that one sees whether it got there.
 */
#include "ucp_test.h"

static ut_pair_t pair;
static ucs_status_t expected;

static void exchange(ut_send_t form, ut_recv_t recv_form, ut_layout_t layout, size_t length)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_data_open(&from, layout, length);
    ut_data_open(&to, layout, length);
    ut_data_fill(&from, 1);
    if (recv_form >= UT_RECV_MSG_NB) {
        ut_send(&send, pair.a, form, &from, 1);
        ut_recv(&recv, &pair, recv_form, &to, 1, UT_TAG_ALL);
    } else {
        ut_recv(&recv, &pair, recv_form, &to, 1, UT_TAG_ALL);
        ut_send(&send, pair.a, form, &from, 1);
    }
    ut_wait(&pair, &recv);
    UT_CHECK(recv.status == expected, "%s, %zu bytes: receive: %s, expected %s", ut_layout_names[layout], length,
             ucs_status_string(recv.status), ucs_status_string(expected));
    UT_CHECK((recv.info.length == length) && (recv.info.sender_tag == 1), "the callback is told %zu bytes, tag %lu",
             recv.info.length, (unsigned long)recv.info.sender_tag);
    ut_wait(&pair, &send);
    UT_CHECK((send.status == UCS_OK) || (send.status == expected), "send: %s", ucs_status_string(send.status));
    ut_data_close(&from);
    ut_data_close(&to);
}

int main(int argc, char **argv)
{
    ut_layout_t layout;
    int i;

    expected = (argc > 1) ? (ucs_status_t)atoi(argv[1]) : UCS_OK;
    ut_pair_open(&pair, 0);
    for (i = 2; i < argc; ++i) {
        for (layout = 0; layout < UT_LAYOUTS; ++layout) {
            exchange(UT_SEND_NBX, UT_RECV_NBX, layout, (size_t)atol(argv[i]));
            exchange(UT_SEND_SYNC_NBX, UT_RECV_MSG_NBX, layout, (size_t)atol(argv[i]));
        }
    }
    ut_pair_close(&pair);
    printf("end\n");
    return ut_failures() ? 1 : 0;
}
