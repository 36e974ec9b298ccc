/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two threads send active messages from one worker of mode MULTI by one endpoint, and both make progress; so handlers are called in
 * either. Each thread's messages arrive in its order.
 */
#include "am_test.h"

#include <pthread.h>

enum { ID = 27, SENDERS = 2, EACH = 3000, WITH_FAULTS = 300, LONGEST = 30000 };

static ut_pair_t pair;
static unsigned each;
static unsigned got[SENDERS]; /* written under the lock of b's worker */
static unsigned received;     /* rendezvous that are over */
static unsigned rendezvous;   /* that came */

typedef struct buffer {
    am_stamp_t stamp;
    size_t length;
    char data[];
} buffer_t;

static size_t length_of(unsigned number)
{
    return (number % 20 == 0) ? LONGEST : number * 31 % 2000;
}

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    buffer_t *buffer = user_data;

    UT_CHECK_STATUS(status, UCS_OK, "am_recv_data");
    UT_CHECK(ut_verify(buffer->data, buffer->length, am_seed(buffer->stamp)) == SIZE_MAX,
             "message %u of thread %u: wrong content by rendezvous", buffer->stamp.number, buffer->stamp.source);
    ++received;
    free(buffer);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void receive(void *desc, size_t length, am_stamp_t stamp)
{
    buffer_t *buffer          = malloc(sizeof(*buffer) + length);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv_am   = on_received,
                                 .user_data    = buffer};
    ucs_status_ptr_t ptr;

    *buffer = (buffer_t){.stamp = stamp, .length = length};
    ++rendezvous;
    ptr = ucp_am_recv_data_nbx(pair.b->worker, desc, buffer->data, length, &param);
    if (!UCS_PTR_IS_PTR(ptr)) {
        on_received(NULL, UCS_PTR_STATUS(ptr), length, buffer);
    }
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);

    UT_REQUIRE(stamp.source < SENDERS, "from thread %u", stamp.source);
    UT_CHECK(length == length_of(stamp.number), "message %u of thread %u: %zu bytes", stamp.number, stamp.source,
             length);
    UT_CHECK(stamp.number == got[stamp.source], "message %u of thread %u comes as its number %u", stamp.number,
             stamp.source, got[stamp.source]);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        receive(data, length, stamp);
    } else {
        UT_CHECK(ut_verify(data, length, am_seed(stamp)) == SIZE_MAX, "message %u of thread %u: wrong content",
                 stamp.number, stamp.source);
    }
    __atomic_store_n(&got[stamp.source], stamp.number + 1, __ATOMIC_RELEASE);
    return UCS_OK;
}

static void *sender(void *argument)
{
    static const uint32_t protocols[] = {0, AM_EAGER, AM_RNDV, AM_REPLY};
    unsigned source                   = (unsigned)(uintptr_t)argument, i;
    char *data                        = malloc(LONGEST);
    ucp_request_param_t param         = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS};
    am_stamp_t stamp;

    for (i = 0; i < each; ++i) {
        stamp       = (am_stamp_t){.source = source, .number = i};
        param.flags = protocols[(i / 3) % 4];
        ut_fill(data, length_of(i), am_seed(stamp));
        UT_CHECK_STATUS(ut_wait_in_thread(&pair, ucp_am_send_nbx(pair.a->ep, ID, &stamp, sizeof(stamp), data,
                                                                 length_of(i), &param)),
                        UCS_OK, "am_send");
    }
    while (__atomic_load_n(&got[source], __ATOMIC_ACQUIRE) < each) {
        ut_progress(&pair);
    }
    free(data);
    return NULL;
}

static void two_threads(void)
{
    pthread_t threads[SENDERS];
    unsigned i;

    each = ut_faults_are_on() ? WITH_FAULTS : EACH;
    memset(got, 0, sizeof(got));
    received = rendezvous = 0;
    ut_pair_open_with(&pair, ut_features, UCS_THREAD_MODE_MULTI);
    am_prepare(&pair);
    am_listen(pair.b->worker, ID, on_message, NULL, 0);
    for (i = 0; i < SENDERS; ++i) {
        UT_REQUIRE(pthread_create(&threads[i], NULL, sender, (void *)(uintptr_t)i) == 0, "pthread_create");
    }
    for (i = 0; i < SENDERS; ++i) {
        pthread_join(threads[i], NULL);
    }
    am_await(&pair, &received, rendezvous, "rendezvous");
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {AM_TEST(two_threads)};

UT_MAIN(tests)
