/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma_test.h"

void rma_region_map(rma_region_t *region, ucp_context_h context, size_t length, bool allocated)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                              UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                .length = length,
                                .flags  = allocated ? UCP_MEM_MAP_ALLOCATE : 0};
    ucp_mem_attr_t attr      = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

    *region     = (rma_region_t){.context = context, .length = length, .allocated = allocated};
    map.address = allocated ? NULL : calloc(1, length);
    UT_REQUIRE(ucp_mem_map(context, &map, &region->memh) == UCS_OK, "ucp_mem_map");
    UT_REQUIRE(ucp_mem_query(region->memh, &attr) == UCS_OK, "ucp_mem_query");
    region->memory = allocated ? attr.address : map.address;
    memset(region->memory, 0, length);
}

void rma_region_unmap(rma_region_t *region)
{
    UT_CHECK_STATUS(ucp_mem_unmap(region->context, region->memh), UCS_OK, "ucp_mem_unmap");
    if (!region->allocated) {
        free(region->memory);
    }
}

ucp_rkey_h rma_region_key(const rma_region_t *region, ucp_ep_h ep)
{
    size_t length;
    ucp_rkey_h rkey;
    void *packed, *copy;

    UT_REQUIRE(ucp_rkey_pack(region->context, region->memh, &packed, &length) == UCS_OK, "ucp_rkey_pack");
    copy = malloc(length); /* as it travels: so many bytes and no more */
    memcpy(copy, packed, length);
    ucp_rkey_buffer_release(packed);
    UT_REQUIRE(ucp_ep_rkey_unpack(ep, copy, &rkey) == UCS_OK, "ucp_ep_rkey_unpack");
    free(copy);
    return rkey;
}

void rma_open(const ut_pair_t *pair, rma_region_t *region, size_t length, bool allocated)
{
    rma_region_map(region, pair->b->context, length, allocated);
    region->rkey = rma_region_key(region, pair->a->ep);
}

void rma_close(rma_region_t *region)
{
    ucp_rkey_destroy(region->rkey);
    rma_region_unmap(region);
}

ucs_status_t rma_put(const ut_pair_t *pair, const rma_region_t *region, size_t offset, const void *data, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    return ut_wait_ptr(
            pair, ucp_put_nbx(pair->a->ep, data, length, (uintptr_t)(region->memory + offset), region->rkey, &none));
}

ucs_status_t rma_get(const ut_pair_t *pair, const rma_region_t *region, size_t offset, void *data, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    return ut_wait_ptr(
            pair, ucp_get_nbx(pair->a->ep, data, length, (uintptr_t)(region->memory + offset), region->rkey, &none));
}

ucs_status_t rma_atomic(const ut_pair_t *pair, const rma_region_t *region, size_t offset, ucp_atomic_op_t op,
                        const void *operand, size_t size, void *reply)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                                                 ((reply != NULL) ? UCP_OP_ATTR_FIELD_REPLY_BUFFER : 0),
                                 .datatype     = ucp_dt_make_contig(size),
                                 .reply_buffer = reply};

    return ut_wait_ptr(pair, ucp_atomic_op_nbx(pair->a->ep, op, operand, 1, (uintptr_t)(region->memory + offset),
                                               region->rkey, &param));
}

ucs_status_t rma_flush(const ut_pair_t *pair)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    return ut_wait_ptr(pair, ucp_ep_flush_nbx(pair->a->ep, &none));
}
