/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What one-sided operations promise of order: a fence between data and flag, a flush before a message, and that a flush ends when the
 * target has executed, though it makes no progress after that.
 */
#include "rma_test.h"

enum { LENGTH = 4 << 20, ROUNDS = 50, WITH_FAULTS = 15, FLAG = LENGTH };

static ut_pair_t pair;
static rma_region_t region, flags;
static char *local;

static void open_pair(bool allocated)
{
    ut_pair_open_as(&pair, ut_features, &(ucp_worker_params_t){.field_mask = 0});
    rma_open(&pair, &region, LENGTH + 64, allocated);
    rma_open(&pair, &flags, 64, !allocated);
    local = malloc(LENGTH);
}

static void close_pair(void)
{
    rma_close(&flags);
    rma_close(&region);
    ut_pair_close(&pair);
    free(local);
}

static unsigned rounds(void)
{
    return ut_faults_are_on() ? WITH_FAULTS : ROUNDS;
}

static uint64_t look(const char *word)
{
    return __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_ACQUIRE);
}

static void await(const char *word, uint64_t value)
{
    ut_clock_start();
    while (look(word) != value) {
        ut_progress(&pair);
        ut_clock_check("a flag");
    }
}

static void end(ucs_status_ptr_t ptr)
{
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "an operation");
}

/* Data, fence, a flag in the same memory or in memory of the other kind: who sees the flag sees the data */
static void flag_after(const rma_region_t *where, size_t offset, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t data, flag;
    uint64_t i;

    for (i = 1; i <= rounds(); ++i) {
        ut_fill(local, length, (unsigned)i);
        data = ucp_put_nbx(pair.a->ep, local, length, (uintptr_t)region.memory, region.rkey, &none);
        UT_CHECK_STATUS(ucp_worker_fence(pair.a->worker), UCS_OK, "ucp_worker_fence");
        flag = ucp_put_nbx(pair.a->ep, &i, sizeof(i), (uintptr_t)(where->memory + offset), where->rkey, &none);
        await(where->memory + offset, i);
        UT_CHECK(ut_verify(region.memory, length, (unsigned)i) == SIZE_MAX, "round %lu: the flag was first",
                 (unsigned long)i);
        end(data);
        end(flag);
        end(ucp_ep_flush_nbx(pair.a->ep, &none));
    }
}

static void fences_of(bool allocated)
{
    open_pair(allocated);
    flag_after(&region, FLAG, 8);
    flag_after(&region, FLAG, 100000);
    close_pair();
    if (!ut_uci_is_on()) {
        return; /* UCX 1.13.1: memory that is attached is written to at once, whatever is on its way to other memory */
    }
    open_pair(allocated);
    flag_after(&flags, 0, 5000);
    flag_after(&flags, 8, 1000000);
    close_pair();
}

static void fences(void)
{
    fences_of(false);
    fences_of(true);
}

/* What is got behind a put of the same origin and a fence is what was put; an atomic operation too */
static void get_after_put(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t put, get;
    char *back = malloc(LENGTH);
    size_t length;

    open_pair(false);
    for (length = 8; length <= LENGTH; length *= 8) {
        ut_fill(local, length, (unsigned)length);
        put = ucp_put_nbx(pair.a->ep, local, length, (uintptr_t)region.memory, region.rkey, &none);
        UT_CHECK_STATUS(ucp_worker_fence(pair.a->worker), UCS_OK, "ucp_worker_fence");
        get = ucp_get_nbx(pair.a->ep, back, length, (uintptr_t)region.memory, region.rkey, &none);
        end(get);
        end(put);
        UT_CHECK(ut_verify(back, length, (unsigned)length) == SIZE_MAX, "%zu bytes: not what was put", length);
    }
    close_pair();
    free(back);
}

/* Put, flush, message: who has the message has the data */
static void message_after_flush(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t put;
    unsigned i;

    open_pair(false);
    for (i = 0; i < rounds(); ++i) {
        size_t length = (i % 2 == 0) ? 1000 : 500000;

        ut_fill(local, length, i);
        put = ucp_put_nbx(pair.a->ep, local, length, (uintptr_t)region.memory, region.rkey, &none);
        end(ucp_worker_flush_nbx(pair.a->worker, &none));
        UT_CHECK(ut_verify(region.memory, length, i) == SIZE_MAX, "round %u: flushed, and not there", i);
        end(put);
        ut_exchange(&pair, 100, i);
    }
    close_pair();
}

/* The target polls on memory until it has what it wants, and makes no progress any more: a flush ends. With faults its answer may have to
 * be asked for, which takes turns of both */
static void quiet_target(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t put, flush;
    uint64_t i;

    if (ut_faults_are_on() || (!ut_uci_is_on() && (strstr(getenv("UCX_TLS"), "tcp") != NULL))) {
        return; /* UCX 1.13.1: over tcp a flush is a question to the target */
    }
    open_pair(false);
    UT_CHECK_STATUS(rma_put(&pair, &region, 8, "connect", 8), UCS_OK, "put");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    for (i = 1; i <= 20; ++i) {
        put = ucp_put_nbx(pair.a->ep, &i, sizeof(i), (uintptr_t)region.memory, region.rkey, &none);
        await(region.memory, i);
        flush = ucp_ep_flush_nbx(pair.a->ep, &none);
        ut_clock_start();
        while (UCS_PTR_IS_PTR(flush) && (ucp_request_check_status(flush) == UCS_INPROGRESS)) {
            ucp_worker_progress(pair.a->worker);
            ut_clock_check("a flush whose target has executed all, and rests,");
        }
        end(flush);
        end(put);
    }
    close_pair();
}

static const ut_test_t tests[] = {RMA_TEST(fences),
                                  RMA_TEST(get_after_put),
                                  {"message_after_flush", message_after_flush, UCP_FEATURE_TAG | RMA_FEATURES},
                                  RMA_TEST(quiet_target)};

UT_MAIN(tests)
