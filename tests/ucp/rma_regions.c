/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys: of many regions each leads to its own; what plain UCX would write anywhere is refused with UCI, and nothing is touched: outside of
 * a region, in one that has been unmapped, with a key of somebody else's.
 */
#include "rma_test.h"

enum { LENGTH = 4096, MANY = 40 };

static ut_pair_t pair;
static rma_region_t region;
static char local[LENGTH];

static void open_pair(void)
{
    ut_pair_open_as(&pair, ut_features, &(ucp_worker_params_t){.field_mask = 0});
    rma_open(&pair, &region, LENGTH, false);
}

static void close_pair(void)
{
    rma_close(&region);
    ut_pair_close(&pair);
}

static void many(void)
{
    rma_region_t regions[MANY];
    unsigned i;

    open_pair();
    for (i = 0; i < MANY; ++i) {
        rma_open(&pair, &regions[i], LENGTH + i, i % 3 == 0);
    }
    for (i = 0; i < MANY; i += 2) { /* numbers are not the order of addresses, nor all in use */
        rma_close(&regions[i]);
    }
    for (i = 1; i < MANY; i += 2) {
        ut_fill(local, LENGTH, i);
        UT_CHECK_STATUS(rma_put(&pair, &regions[i], i, local, LENGTH), UCS_OK, "put");
    }
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    for (i = 1; i < MANY; i += 2) {
        UT_CHECK(ut_verify(regions[i].memory + i, LENGTH, i) == SIZE_MAX, "region %u: wrong content", i);
        rma_close(&regions[i]);
    }
    close_pair();
}

/* All that ends with an address that is invalid: the operation, or the flush behind it */
static void expect_refused(const rma_region_t *where, size_t offset, size_t length, const char *what)
{
    uint64_t word = 1, reply = 1;
    ucs_status_t status, flushed;

    memset(local, 0x33, sizeof(local));
    status  = rma_put(&pair, where, offset, local, length);
    flushed = rma_flush(&pair);
    UT_CHECK((status == UCS_ERR_INVALID_ADDR) || ((status == UCS_OK) && (flushed == UCS_ERR_INVALID_ADDR)),
             "put %s: %s, flush: %s", what, ucs_status_string(status), ucs_status_string(flushed));
    UT_CHECK_STATUS(rma_get(&pair, where, offset, local, length), UCS_ERR_INVALID_ADDR, what);
    UT_CHECK(ut_verify_value(local, length, 0x33) == SIZE_MAX, "get %s has brought something", what);
    if (offset % 8 == 0) {
        UT_CHECK_STATUS(rma_atomic(&pair, where, offset, UCP_ATOMIC_OP_ADD, &word, 8, &reply), UCS_ERR_INVALID_ADDR,
                        what);
    }
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "the next flush");
}

static void outside(void)
{
    if (!ut_uci_is_on()) {
        return;
    }
    open_pair();
    expect_refused(&region, LENGTH, 8, "behind");
    expect_refused(&region, LENGTH - 7, 8, "partly behind");
    expect_refused(&region, (size_t)-8, 8, "in front");
    expect_refused(&region, (size_t)-4, 8, "partly in front");
    UT_CHECK_STATUS(rma_put(&pair, &region, LENGTH - 8, local, 8), UCS_OK, "the last bytes");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    close_pair();
}

/* Its memory is still there, so that it can be seen that nothing is written */
static void stale(void)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .length     = LENGTH};

    if (!ut_uci_is_on()) {
        return;
    }
    open_pair();
    UT_CHECK_STATUS(rma_put(&pair, &region, 0, local, 8), UCS_OK, "put");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    memset(region.memory, 0x77, LENGTH);
    UT_CHECK_STATUS(ucp_mem_unmap(region.context, region.memh), UCS_OK, "ucp_mem_unmap");
    expect_refused(&region, 0, 8, "into what was unmapped");
    expect_refused(&region, 0, LENGTH, "into what was unmapped");
    map.address = region.memory; /* the same memory, and another region */
    UT_CHECK_STATUS(ucp_mem_map(region.context, &map, &region.memh), UCS_OK, "ucp_mem_map");
    expect_refused(&region, 0, 8, "with the key of what was unmapped");
    UT_CHECK(ut_verify_value(region.memory, LENGTH, 0x77) == SIZE_MAX, "it was written to");
    ucp_rkey_destroy(region.rkey);
    region.rkey = rma_region_key(&region, pair.a->ep);
    UT_CHECK_STATUS(rma_put(&pair, &region, 0, local, 8), UCS_OK, "put");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    close_pair();
}

/* Of another context of the target's process: no worker of this one's knows that region */
static void foreign(void)
{
    rma_region_t other;
    ucp_context_h context;

    if (!ut_uci_is_on()) {
        return;
    }
    open_pair();
    context = ut_context_create(ut_features);
    rma_region_map(&other, context, LENGTH, false);
    other.rkey = rma_region_key(&other, pair.a->ep);
    memset(other.memory, 0x77, LENGTH);
    expect_refused(&other, 0, 100, "with the key of another context");
    UT_CHECK(ut_verify_value(other.memory, LENGTH, 0x77) == SIZE_MAX, "it was written to");
    rma_close(&other);
    ucp_cleanup(context);
    close_pair();
}

/* A large put that is refused, between others that are not */
static void refused_among_others(void)
{
    enum { LARGE = 300000 };
    ucp_request_param_t none = {.op_attr_mask = 0};
    rma_region_t gone, stays;
    ucs_status_ptr_t puts[3];
    char *large = malloc(LARGE);
    unsigned i, refused = 0;
    ucs_status_t status, flushed;

    if (!ut_uci_is_on()) {
        free(large);
        return;
    }
    open_pair();
    rma_open(&pair, &gone, LARGE, false);
    rma_open(&pair, &stays, LARGE, false);
    ut_fill(large, LARGE, 4);
    UT_CHECK_STATUS(ucp_mem_unmap(gone.context, gone.memh), UCS_OK, "ucp_mem_unmap");
    for (i = 0; i < 3; ++i) {
        const rma_region_t *to = (i == 1) ? &gone : &stays;

        puts[i] = ucp_put_nbx(pair.a->ep, large, LARGE, (uintptr_t)to->memory, to->rkey, &none);
    }
    flushed = rma_flush(&pair);
    for (i = 0; i < 3; ++i) {
        status = ut_wait_ptr(&pair, puts[i]);
        refused += (status == UCS_ERR_INVALID_ADDR);
        UT_CHECK((status == UCS_OK) || ((i == 1) && (status == UCS_ERR_INVALID_ADDR)), "put %u: %s", i,
                 ucs_status_string(status));
    }
    UT_CHECK((flushed == UCS_ERR_INVALID_ADDR) || ((flushed == UCS_OK) && (refused == 1)), "flush: %s",
             ucs_status_string(flushed));
    UT_CHECK(ut_verify(stays.memory, LARGE, 4) == SIZE_MAX, "wrong content");
    UT_CHECK(ut_verify_value(gone.memory, LARGE, 0) == SIZE_MAX, "it was written to");
    ucp_rkey_destroy(gone.rkey);
    free(gone.memory);
    rma_close(&stays);
    close_pair();
    free(large);
}

static const ut_test_t tests[] = {RMA_TEST(many), RMA_TEST(outside), RMA_TEST(stale), RMA_TEST(foreign),
                                  RMA_TEST(refused_among_others)};

UT_MAIN(tests)
