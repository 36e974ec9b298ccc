/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs about one-sided operations (rma_*.c) share: memory of one side that the other one has a key of, and operations that
 * are waited for.
 *
 * What UCX 1.13.1 does, and its documents do not say:
 *
 * - puts and gets of 0 bytes return NULL, whatever their flags
 * - memory that UCX allocates is attached by who unpacks its key (posix, sysv: ucp_rkey_ptr() works), other memory is not
 * - it looks at no bounds: what is outside of a region is read and written over tcp and shared memory
 * - a target that has executed an operation has answered it in the same call of progress: a flush needs no other one
 */
#ifndef UCI_TESTS_UCP_RMA_TEST_H_
#define UCI_TESTS_UCP_RMA_TEST_H_

#include "ucp_test.h"

#define RMA_FEATURES (UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)

/** A test that runs twice: in a context with tags, and in one that has nothing but what is one-sided. */
#define RMA_TEST(_name) \
    {#_name, _name, UCP_FEATURE_TAG | RMA_FEATURES}, \
    { \
#_name "_alone", _name, RMA_FEATURES \
    }

/** Memory of one side's. */
typedef struct rma_region {
    ucp_context_h context;
    ucp_mem_h memh;
    char *memory;
    size_t length;
    bool allocated; /**< by UCX */
    ucp_rkey_h rkey;
} rma_region_t;

/** Map memory of 0s, and unmap it. @param allocated  by UCX. */
void rma_region_map(rma_region_t *region, ucp_context_h context, size_t length, bool allocated);
void rma_region_unmap(rma_region_t *region);

/** A key of it, unpacked for @a ep. */
ucp_rkey_h rma_region_key(const rma_region_t *region, ucp_ep_h ep);

/** Memory of b with a key of a's. */
void rma_open(const ut_pair_t *pair, rma_region_t *region, size_t length, bool allocated);
void rma_close(rma_region_t *region);

/** Operations of a on that memory, waited for. @return the status. */
ucs_status_t rma_put(const ut_pair_t *pair, const rma_region_t *region, size_t offset, const void *data, size_t length);
ucs_status_t rma_get(const ut_pair_t *pair, const rma_region_t *region, size_t offset, void *data, size_t length);
/** @param reply  NULL: nothing is fetched; of CSWAP also what is to be stored. */
ucs_status_t rma_atomic(const ut_pair_t *pair, const rma_region_t *region, size_t offset, ucp_atomic_op_t op,
                        const void *operand, size_t size, void *reply);
ucs_status_t rma_flush(const ut_pair_t *pair);

#endif
