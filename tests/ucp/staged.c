/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A GPU's memory (host_gpu.c) that is sent, and waits so long for its receive that it is copied, while another operation, of another datatype, has
 * begun: each is read as what it is.
 */
#include "ucp_test.h"

#include <unistd.h>

enum { TAG = 1, OTHER = 2, SIZE = 524288 };

static ut_pair_t pair;

static ucp_request_param_t on_gpu(ucp_datatype_t datatype)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                 .datatype     = datatype,
                                 .memory_type  = UCS_MEMORY_TYPE_CUDA};
}

static void wait_for(ucs_status_ptr_t request, const char *what)
{
    ut_clock_start();
    while (UCS_PTR_IS_PTR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ut_clock_check(what);
    }
    UT_CHECK_STATUS(UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) : UCS_PTR_STATUS(request), UCS_OK,
                    what);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void copy_late(size_t length, ucp_datatype_t other)
{
    static char out[SIZE], in[SIZE], small[16], small_in[16];
    ucp_request_param_t words = on_gpu(ucp_dt_make_contig(4)), others = on_gpu(other), host = {.op_attr_mask = 0};
    ucp_dt_iov_t iov = {.buffer = small, .length = sizeof(small)};
    ucs_status_ptr_t first, second;
    unsigned i;

    memset(in, 0, length);
    ut_fill(out, length, 1);
    ut_fill(small, sizeof(small), 2);
    first  = ucp_tag_send_nbx(pair.a->ep, out, length / 4, TAG, &words);
    second = (other == ucp_dt_make_iov()) ? ucp_tag_send_nbx(pair.a->ep, &iov, 1, OTHER, &others)
                                          : ucp_tag_send_nbx(pair.a->ep, small, sizeof(small), OTHER, &others);
    for (i = 0; i < 60; ++i) {
        usleep(1000);
        ucp_worker_progress(pair.a->worker);
    }
    wait_for(ucp_tag_recv_nbx(pair.b->worker, in, length / 4, TAG, UT_TAG_ALL, &words), "receive");
    wait_for(ucp_tag_recv_nbx(pair.b->worker, small_in, sizeof(small), OTHER, UT_TAG_ALL, &host), "the other receive");
    wait_for(first, "send");
    wait_for(second, "the other send");
    UT_CHECK(ut_verify(in, length, 1) == SIZE_MAX, "wrong content, %zu bytes", length);
    UT_CHECK(ut_verify(small_in, sizeof(small), 2) == SIZE_MAX, "wrong content of the other one");
}

static void copied_late(void)
{
    static const size_t sizes[] = {4096, 16384, SIZE};
    unsigned i;

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    for (i = 0; i < 3; ++i) {
        copy_late(sizes[i], ucp_dt_make_contig(1));
        copy_late(sizes[i], ucp_dt_make_iov());
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(copied_late)};

UT_MAIN(tests)
