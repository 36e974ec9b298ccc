/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A process whose send is over leaves UCX, and does not come back before the other one, which is late, has received it: on plain UCX it has left all
 * that is needed, so it has to be with UCI. (Under faults it stays: who else could repair?)
 */
#include "two_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID = 5, LATE_US = 40000, LONGEST = 250000 };

static const size_t lengths[] = {8, 4000, 9000, 20000, 60000, 100000, LONGEST};

#define COUNT (sizeof(lengths) / sizeof(lengths[0]))

static ut_side_t here;
static ut_pair_t pair = {.a = &here, .b = &here};
static char buffer[LONGEST];

/* ---------------------------------------------------- active messages */

static unsigned called;

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    UT_CHECK(!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) && (header_length == 4),
             "a rendezvous, or a header of %zu", header_length);
    UT_CHECK((length == lengths[called]) && (ut_verify(data, length, called) == SIZE_MAX), "%zu bytes, or wrong ones",
             length);
    ++called;
    return UCS_OK;
}

static void listen_for_messages(void)
{
    ucp_am_handler_param_t param = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = ID, .cb = on_message};

    UT_REQUIRE(ucp_worker_set_am_recv_handler(here.worker, &param) == UCS_OK, "ucp_worker_set_am_recv_handler");
    called = 0;
}

static ucs_status_ptr_t send_message(size_t length)
{
    static const ucp_request_param_t eager = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_EAGER};

    return ucp_am_send_nbx(here.ep, ID, "head", 4, buffer, length, &eager);
}

static void receive_message(unsigned number, size_t length)
{
    ut_clock_start();
    while (called <= number) {
        ut_progress(&pair);
        ut_clock_check("an active message of a process that has left");
    }
}

/* ------------------------------------------------------------- streams */

static ucs_status_ptr_t send_bytes(size_t length)
{
    static const ucp_request_param_t none = {.op_attr_mask = 0};

    return ucp_stream_send_nbx(here.ep, buffer, length, &none);
}

static void receive_bytes(unsigned number, size_t length)
{
    static const ucp_request_param_t all = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                            .flags        = UCP_STREAM_RECV_FLAG_WAITALL};
    size_t received                      = 0;
    ucs_status_ptr_t ptr                 = ucp_stream_recv_nbx(here.ep, buffer, length, &received, &all);

    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "ucp_stream_recv_nbx");
    UT_CHECK(ut_verify(buffer, length, number) == SIZE_MAX, "wrong bytes of %zu", length);
}

/* ------------------------------------------------------------ messages */

/* No more than plain UCX completes before they are received */
static ucs_status_ptr_t send_tagged(size_t length)
{
    static const ucp_request_param_t none = {.op_attr_mask = 0};

    return ucp_tag_send_nbx(here.ep, buffer, length, ID, &none);
}

static void receive_tagged(unsigned number, size_t length)
{
    static const ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr                  = ucp_tag_recv_nbx(here.worker, buffer, length, ID, UINT64_MAX, &none);

    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "ucp_tag_recv_nbx");
    UT_CHECK(ut_verify(buffer, length, number) == SIZE_MAX, "wrong bytes of %zu", length);
}

/* --------------------------------------------------------------- play */

static void play(ucs_status_ptr_t (*send)(size_t), void (*receive)(unsigned, size_t), size_t longest)
{
    ucp_worker_h stays;
    unsigned i;

    if (!two_is_possible()) {
        return;
    }
    two_connect(&here, ut_features);
    listen_for_messages();
    two_meet(here.worker);
    stays = ut_faults_are_on() ? here.worker : NULL;
    for (i = 0; (i < COUNT) && (lengths[i] <= longest); ++i) {
        if (two_side == 0) {
            ut_fill(buffer, lengths[i], i);
            UT_CHECK_STATUS(ut_wait_ptr(&pair, send(lengths[i])), UCS_OK, "send");
        } else {
            usleep(LATE_US);
            receive(i, lengths[i]);
        }
        two_meet(stays);
    }
    two_meet(here.worker);
    ut_ep_close(&pair, here.ep);
    two_meet(here.worker);
    ucp_worker_destroy(here.worker);
    ucp_cleanup(here.context);
}

static void messages(void)
{
    play(send_tagged, receive_tagged, 4000);
}

static void active_messages(void)
{
    play(send_message, receive_message, LONGEST);
}

static void streams(void)
{
    play(send_bytes, receive_bytes, LONGEST);
}

static const ut_test_t tests[] = {{"messages", messages, UCP_FEATURE_TAG | UCP_FEATURE_AM},
                                  {"active_messages", active_messages, UCP_FEATURE_AM},
                                  {"streams", streams, UCP_FEATURE_STREAM | UCP_FEATURE_AM}};

int main(int argc, char **argv)
{
    return two_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
