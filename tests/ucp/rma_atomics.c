/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomic operations: each of them on words of 4 and 8 bytes, with and without what was there before; from several sides at once nothing
 * gets lost; what is none is refused.
 */
#include "rma_test.h"

static ut_pair_t pair;
static rma_region_t region;

static void open_pair(bool allocated)
{
    ut_pair_open_as(&pair, ut_features, &(ucp_worker_params_t){.field_mask = 0});
    rma_open(&pair, &region, 4096, allocated);
}

static void close_pair(void)
{
    rma_close(&region);
    ut_pair_close(&pair);
}

static uint64_t expected(ucp_atomic_op_t op, uint64_t old, uint64_t operand, uint64_t swap)
{
    switch (op) {
    case UCP_ATOMIC_OP_ADD:
        return old + operand;
    case UCP_ATOMIC_OP_AND:
        return old & operand;
    case UCP_ATOMIC_OP_OR:
        return old | operand;
    case UCP_ATOMIC_OP_XOR:
        return old ^ operand;
    case UCP_ATOMIC_OP_SWAP:
        return operand;
    default:
        return (old == operand) ? swap : old;
    }
}

static uint64_t read_word(size_t size)
{
    uint64_t word = 0;

    memcpy(&word, region.memory + 8, size);
    return word;
}

static void one(ucp_atomic_op_t op, size_t size, bool fetch, uint64_t old, uint64_t operand)
{
    uint64_t mask = (size == 8) ? UINT64_MAX : UINT32_MAX, swap = 0x1122334455667788ul & mask, reply = swap, after;

    memset(region.memory, 0x55, 24);
    memcpy(region.memory + 8, &old, size);
    UT_CHECK_STATUS(rma_atomic(&pair, &region, 8, op, &operand, size, fetch ? &reply : NULL), UCS_OK,
                    "ucp_atomic_op_nbx");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    after = read_word(size);
    UT_CHECK(after == (expected(op, old, operand, swap) & mask), "%s %d of %zu bytes on %lx by %lx: %lx",
             fetch ? "fetching" : "posted", op, size, (unsigned long)old, (unsigned long)operand, (unsigned long)after);
    UT_CHECK(!fetch || ((reply & mask) == old), "operation %d of %zu bytes fetched %lx instead of %lx", op, size,
             (unsigned long)reply, (unsigned long)old);
    UT_CHECK((ut_verify_value(region.memory, 8, 0x55) == SIZE_MAX) &&
                     (ut_verify_value(region.memory + 8 + size, 16 - size, 0x55) == SIZE_MAX),
             "operation %d of %zu bytes has touched more", op, size);
}

/* UCX 1.13.1 takes what is there for the operand of these where it does them in shared memory: x ^ x */
static bool can_fetch(ucp_atomic_op_t op)
{
    return ut_uci_is_on() || ((op != UCP_ATOMIC_OP_AND) && (op != UCP_ATOMIC_OP_OR) && (op != UCP_ATOMIC_OP_XOR));
}

static void all_of(size_t size)
{
    uint64_t mask = (size == 8) ? UINT64_MAX : UINT32_MAX, old = 0xfedcba9876543210ul & mask;
    int op;

    for (op = 0; op < UCP_ATOMIC_OP_LAST; ++op) {
        bool fetches_only = (op == UCP_ATOMIC_OP_SWAP) || (op == UCP_ATOMIC_OP_CSWAP);

        if (can_fetch((ucp_atomic_op_t)op)) {
            one((ucp_atomic_op_t)op, size, true, old, 0x0f1e2d3c4b5a6978ul & mask);
            one((ucp_atomic_op_t)op, size, true, old, old);
        }
        if (!fetches_only) {
            one((ucp_atomic_op_t)op, size, false, old, 0x0f1e2d3c4b5a6978ul & mask);
        }
    }
}

static void operations(void)
{
    open_pair(false);
    all_of(4);
    all_of(8);
    close_pair();
    open_pair(true);
    all_of(4);
    all_of(8);
    close_pair();
}

/* The processor of the target and the origin add at the same time */
static void sums(void)
{
    enum { MANY = 1000 };
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(8)};
    uint64_t three            = 3;
    ucs_status_ptr_t ptr;
    unsigned i;

    open_pair(false);
    for (i = 0; i < MANY; ++i) {
        ptr = ucp_atomic_op_nbx(pair.a->ep, UCP_ATOMIC_OP_ADD, &three, 1, (uintptr_t)region.memory, region.rkey,
                                &param);
        UT_CHECK(!UCS_PTR_IS_ERR(ptr), "ucp_atomic_op_nbx");
        if (UCS_PTR_IS_PTR(ptr)) {
            ucp_request_free(ptr);
        }
        __atomic_fetch_add((uint64_t *)(void *)region.memory, 1, __ATOMIC_SEQ_CST);
        if (i % 16 == 0) {
            ut_progress(&pair);
        }
    }
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    UT_CHECK(*(uint64_t *)(void *)region.memory == 4 * MANY, "%lu", *(unsigned long *)(void *)region.memory);
    close_pair();
}

static void wrong_ones(void)
{
    uint64_t word = 1;

    open_pair(false);
    UT_CHECK_STATUS(rma_atomic(&pair, &region, 0, UCP_ATOMIC_OP_ADD, &word, 2, NULL), UCS_ERR_INVALID_PARAM, "2 bytes");
    UT_CHECK_STATUS(rma_atomic(&pair, &region, 4, UCP_ATOMIC_OP_ADD, &word, 8, NULL), UCS_ERR_INVALID_PARAM,
                    "8 bytes at a multiple of 4");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    UT_CHECK(*(uint64_t *)(void *)region.memory == 0, "it was changed");
    close_pair();
}

static const ut_test_t tests[] = {RMA_TEST(operations), RMA_TEST(sums), RMA_TEST(wrong_ones)};

UT_MAIN(tests)
