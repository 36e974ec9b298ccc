/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision is asked of a real UCX, for memory of the host: there is no other here. That the caller's word counts needs none.
 */
#include "memtype.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static uci_context_t context;
static char data[10000];
static ucp_request_param_t param;

static void set_up(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};

    setenv("UCX_TLS", "self", 1);
    cr_assert(ucp_init(&params, NULL, &context.ucp) == UCS_OK);
    uci_ucp.mem_map   = ucp_mem_map;
    uci_ucp.mem_unmap = ucp_mem_unmap;
    uci_ucp.mem_query = ucp_mem_query;
    context.host_only = false;
    param             = (ucp_request_param_t){.op_attr_mask = 0};
}

static void tear_down(void)
{
    ucp_cleanup(context.ucp);
}

TestSuite(memtype, .init = set_up, .fini = tear_down, .timeout = 10);

Test(memtype, types_of_a_context)
{
    cr_expect(uci_memtype_is_host_only(1 << UCS_MEMORY_TYPE_HOST));
    cr_expect(uci_memtype_is_host_only(0));
    cr_expect(uci_memtype_is_host_only(1 << UCS_MEMORY_TYPE_HOST | 1 << 5), "NIC memory has no addresses");
    cr_expect_not(uci_memtype_is_host_only(1 << UCS_MEMORY_TYPE_HOST | 1 << UCS_MEMORY_TYPE_CUDA));
    cr_expect_not(uci_memtype_is_host_only(1 << UCS_MEMORY_TYPE_ROCM_MANAGED));
    cr_expect_not(uci_memtype_is_host_only(UINT64_C(1) << 9), "one that is not known yet");
}

Test(memtype, asked_by_address)
{
    const ucp_dt_iov_t iov[] = {{.buffer = NULL, .length = 0}, {.buffer = data, .length = 100}};

    cr_expect(uci_memtype_is_host(&context, data, sizeof(data), &param));
    cr_expect(uci_memtype_is_host(&context, NULL, 0, &param));
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_contig(sizeof(data));
    cr_expect(uci_memtype_is_host(&context, data, 1, &param));
    param.datatype = ucp_dt_make_iov();
    cr_expect(uci_memtype_is_host(&context, iov, 2, &param));
    cr_expect(uci_memtype_is_host(&context, iov, 1, &param));
    cr_expect(uci_memtype_is_host(&context, iov, 0, &param));
}

Test(memtype, callers_word)
{
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type  = UCS_MEMORY_TYPE_CUDA;
    cr_expect(uci_memtype(&context, data, sizeof(data), &param) == UCS_MEMORY_TYPE_CUDA);
    cr_expect_not(uci_memtype_is_host(&context, data, sizeof(data), &param));
    context.host_only = true;
    cr_expect_not(uci_memtype_is_host(&context, data, sizeof(data), &param), "also where UCX knows of none");
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    cr_expect(uci_memtype_is_host(&context, data, sizeof(data), &param));
    param.memory_type = UCS_MEMORY_TYPE_UNKNOWN;
    cr_expect(uci_memtype_is_host(&context, data, sizeof(data), &param), "UNKNOWN: find out");
}

Test(memtype, generic_datatypes_know)
{
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.datatype     = 0x1000 | UCP_DATATYPE_GENERIC;
    param.memory_type  = UCS_MEMORY_TYPE_CUDA;
    cr_expect(uci_memtype_is_host(&context, data, 1, &param));
}

Test(memtype, by_handle)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .address    = data,
                                .length     = sizeof(data)};

    cr_assert(ucp_mem_map(context.ucp, &map, &param.memh) == UCS_OK);
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    cr_expect(uci_memtype(&context, data, sizeof(data), &param) == UCS_MEMORY_TYPE_HOST);
    ucp_mem_unmap(context.ucp, param.memh);
}
