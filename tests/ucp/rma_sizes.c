/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets of any size, at any place, into memory of both kinds: what was put lies there after a flush, what is got was there, and
 * nothing else is touched; by each of the functions, with callbacks and requests of all sorts.
 */
#include "rma_test.h"

enum { LARGEST = 5 << 20, GUARD = 64 };

static const size_t sizes[] = {0,    1,    2,    4,    7,     8,     100,     4096,   8100,
                               8151, 8152, 8153, 8192, 20000, 70001, 1 << 20, LARGEST};

static ut_pair_t pair;
static rma_region_t region;
static char *local;

static void open_pair(bool allocated)
{
    ut_pair_open_as(&pair, ut_features, &(ucp_worker_params_t){.field_mask = 0});
    rma_open(&pair, &region, LARGEST + (2 * GUARD), allocated);
    local = malloc(LARGEST);
}

static void close_pair(void)
{
    rma_close(&region);
    ut_pair_close(&pair);
    free(local);
}

static void check_guards(size_t offset, size_t length)
{
    size_t i;

    for (i = 0; i < GUARD; ++i) {
        UT_CHECK(region.memory[offset - GUARD + i] == 0, "%zu bytes: one in front was touched", length);
        UT_CHECK(region.memory[offset + length + i] == 0, "%zu bytes: one behind was touched", length);
    }
}

static void put_and_get(size_t offset, size_t length, unsigned seed)
{
    ut_fill(local, length, seed);
    UT_CHECK_STATUS(rma_put(&pair, &region, offset, local, length), UCS_OK, "ucp_put_nbx");
    memset(local, 0, length); /* ours again */
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "ucp_ep_flush_nbx");
    UT_CHECK(ut_verify(region.memory + offset, length, seed) == SIZE_MAX, "put of %zu bytes: wrong content", length);
    check_guards(offset, length);
    ut_fill(region.memory + offset, length, seed + 1);
    UT_CHECK_STATUS(rma_get(&pair, &region, offset, local, length), UCS_OK, "ucp_get_nbx");
    UT_CHECK(ut_verify(local, length, seed + 1) == SIZE_MAX, "get of %zu bytes: wrong content", length);
    memset(region.memory + offset, 0, length);
}

static void all_sizes(bool allocated)
{
    unsigned i;

    open_pair(allocated);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        put_and_get(GUARD, sizes[i], i);
        if (sizes[i] < LARGEST) {
            put_and_get(GUARD + 1, sizes[i], i + 100);
        }
    }
    close_pair();
}

static void own_memory(void)
{
    all_sizes(false);
}

static void allocated_memory(void)
{
    all_sizes(true);
}

/* -------------------------------------------------------------- requests */

static void *called;
static unsigned calls;
static ucs_status_t call_status;

static void on_done(void *request, ucs_status_t status, void *user_data)
{
    called      = user_data;
    call_status = status;
    ++calls;
}

static void expect_done(ucs_status_ptr_t ptr, bool immediate, const char *what)
{
    if (!UCS_PTR_IS_PTR(ptr)) {
        UT_CHECK(!immediate && (calls == 0), "%s: no request, %u calls", what, calls);
        UT_CHECK_STATUS(UCS_PTR_STATUS(ptr), UCS_OK, what);
        return;
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, what);
    UT_CHECK((calls == 1) && (called == &pair) && (call_status == UCS_OK), "%s: %u calls", what, calls);
}

/* With NO_IMM_CMPL there is a request and a call in any case; not of a flush that has nothing to wait for, as UCX has it */
static void callbacks_of(size_t length, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | flags,
                                 .cb.send      = on_done,
                                 .user_data    = &pair};
    uintptr_t address         = (uintptr_t)(region.memory + GUARD);

    calls = 0;
    ut_fill(local, length, 1);
    expect_done(ucp_put_nbx(pair.a->ep, local, length, address, region.rkey, &param), flags != 0, "put");
    calls = 0;
    expect_done(ucp_ep_flush_nbx(pair.a->ep, &param), false, "flush of an endpoint");
    UT_CHECK(ut_verify(region.memory + GUARD, length, 1) == SIZE_MAX, "wrong content");
    calls = 0;
    memset(local, 0, length);
    expect_done(ucp_get_nbx(pair.a->ep, local, length, address, region.rkey, &param), flags != 0, "get");
    UT_CHECK(ut_verify(local, length, 1) == SIZE_MAX, "wrong content");
    calls = 0;
    expect_done(ucp_worker_flush_nbx(pair.a->worker, &param), false, "flush of a worker");
}

static void callbacks(void)
{
    open_pair(false);
    callbacks_of(8, 0);
    callbacks_of(8, UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    callbacks_of(300000, 0);
    callbacks_of(300000, UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    close_pair();
}

/* The request lies in memory of the program's, which is used by turns for what is UCI's and what is not */
static void memory_of(size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
    ut_memory_t memory;
    ucs_status_ptr_t ptr;

    ut_memory_open(&memory, pair.a->context);
    param.request = memory.request;
    ut_fill(local, length, 3);
    ptr = ucp_put_nbx(pair.a->ep, local, length, (uintptr_t)(region.memory + GUARD), region.rkey, &param);
    ut_clock_start();
    while (UCS_PTR_IS_PTR(ptr) && (ucp_request_check_status(ptr) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ut_clock_check("a put");
    }
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    memset(local, 0, length);
    ptr = ucp_get_nbx(pair.a->ep, local, length, (uintptr_t)(region.memory + GUARD), region.rkey, &param);
    ut_clock_start();
    while (UCS_PTR_IS_PTR(ptr) && (ucp_request_check_status(ptr) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ut_clock_check("a get");
    }
    UT_CHECK(ut_verify(local, length, 3) == SIZE_MAX, "wrong content");
    ut_memory_check(&memory);
    ut_memory_close(&memory);
}

static void users_memory(void)
{
    open_pair(false);
    memory_of(8);
    memory_of(100000);
    close_pair();
}

/* Many at a time; a worker's flush waits for all of them */
static void many_of(unsigned count, unsigned each)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t gets[200];
    unsigned i;

    open_pair(false);
    for (i = 0; i < count; ++i) {
        ucs_status_t status;

        ut_fill(local + ((size_t)i * each), each, i);
        status = ucp_put_nbi(pair.a->ep, local + ((size_t)i * each), each,
                             (uintptr_t)(region.memory + GUARD + (i * each)), region.rkey);
        UT_CHECK(!UCS_STATUS_IS_ERR(status), "ucp_put_nbi: %s", ucs_status_string(status));
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_worker_flush_nbx(pair.a->worker, &none)), UCS_OK, "ucp_worker_flush_nbx");
    for (i = 0; i < count; ++i) {
        UT_CHECK(ut_verify(region.memory + GUARD + (i * each), each, i) == SIZE_MAX, "put %u: wrong content", i);
    }
    memset(local, 0, (size_t)count * each);
    for (i = 0; i < count; ++i) {
        gets[i] = ucp_get_nbx(pair.a->ep, local + ((size_t)i * each), each,
                              (uintptr_t)(region.memory + GUARD + (i * each)), region.rkey, &none);
    }
    for (i = 0; i < count; ++i) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, gets[i]), UCS_OK, "ucp_get_nbx");
        UT_CHECK(ut_verify(local + ((size_t)i * each), each, i) == SIZE_MAX, "get %u: wrong content", i);
    }
    close_pair();
}

static void many(void)
{
    many_of(200, 5000);
    many_of(50, 100000);
}

/* A worker that talks to itself */
static void oneself(void)
{
    ut_pair_open_self(&pair, RMA_FEATURES);
    rma_open(&pair, &region, LARGEST + (2 * GUARD), false);
    local = malloc(LARGEST);
    put_and_get(GUARD, 8, 1);
    put_and_get(GUARD, 100000, 2);
    close_pair();
}

static const ut_test_t tests[] = {RMA_TEST(own_memory), RMA_TEST(allocated_memory),
                                  RMA_TEST(callbacks),  RMA_TEST(users_memory),
                                  RMA_TEST(many),       UT_TEST(oneself)};

UT_MAIN(tests)
