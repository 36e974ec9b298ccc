/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision is asked of a real UCX, for memory of the host: there is no other here. That the caller's word counts needs none, and
 * a device's memory is that of a UCX made up here: pages that this process can't read.
 */
#include "base/memtype.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

Test(memtype, pages_that_stay_the_hosts)
{
    cr_expect(uci_memtype_keeps_host(1 << UCS_MEMORY_TYPE_HOST));
    cr_expect(uci_memtype_keeps_host(1 << UCS_MEMORY_TYPE_HOST | 1 << UCS_MEMORY_TYPE_CUDA));
    cr_expect(uci_memtype_keeps_host(1 << UCS_MEMORY_TYPE_CUDA | 1 << UCS_MEMORY_TYPE_CUDA_MANAGED | 1 << 5));
    cr_expect_not(uci_memtype_keeps_host(1 << UCS_MEMORY_TYPE_CUDA | 1 << UCS_MEMORY_TYPE_ROCM));
    cr_expect_not(uci_memtype_keeps_host(UINT64_C(1) << 9));
}

Test(memtype, asked_by_address)
{
    size_t size              = 10000;
    char *pages              = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const ucp_dt_iov_t iov[] = {{.buffer = NULL, .length = 0}, {.buffer = pages, .length = 100}};

    cr_expect(uci_memtype_is_host(&context, pages, size, &param));
    cr_expect(uci_memtype_is_host(&context, NULL, 0, &param));
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_contig(size);
    cr_expect(uci_memtype_is_host(&context, pages, 1, &param));
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

/* ------------------------------------------------- a UCX with a device */

#define PAGES 40u

static unsigned asked;
static ucs_memory_type_t type_said;

static ucs_status_t device_mem_map(ucp_context_h ucp, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    ++asked;
    cr_expect_eq(params->length, 1, "no more than is needed is registered");
    *memh_p = (ucp_mem_h)params->address;
    return UCS_OK;
}

static ucs_status_t device_mem_unmap(ucp_context_h ucp, ucp_mem_h memh)
{
    return UCS_OK;
}

static ucs_status_t device_mem_query(ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    attr->mem_type = type_said;
    return UCS_OK;
}

static void set_up_device(void)
{
    uci_ucp.mem_map    = device_mem_map;
    uci_ucp.mem_unmap  = device_mem_unmap;
    uci_ucp.mem_query  = device_mem_query;
    context.keeps_host = true;
    type_said          = UCS_MEMORY_TYPE_HOST;
}

TestSuite(memtype_device, .init = set_up_device, .timeout = 10);

static char *map_pages(void *where, int protection)
{
    char *pages = mmap(where, PAGES << 12, protection, MAP_PRIVATE | MAP_ANONYMOUS | ((where != NULL) ? MAP_FIXED : 0),
                       -1, 0);

    cr_assert(pages != MAP_FAILED);
    return pages;
}

static bool is_host(const void *buffer)
{
    return uci_memtype_is_host(&context, buffer, 100000, &param);
}

static void *ask_from_a_stack(void *arg)
{
    char on_stack[10] = "";

    cr_expect(is_host(on_stack));
    return NULL;
}

Test(memtype_device, what_never_changes)
{
    char on_stack[10] = "", *on_heap = sbrk(8192);
    pthread_t thread;

    type_said = UCS_MEMORY_TYPE_CUDA;
    cr_expect(is_host(on_stack));
    cr_expect(is_host(data));
    cr_expect(is_host(on_heap));
    pthread_create(&thread, NULL, ask_from_a_stack, NULL);
    pthread_join(thread, NULL);
    cr_expect_eq(asked, 0);
    cr_expect_not(is_host(on_heap + 8192), "beyond its end");
    cr_expect_not(is_host(map_pages(NULL, PROT_READ | PROT_WRITE)));
}

/* As that of coroutines: it ends any time, and is not between here and the stack's beginning */
Test(memtype_device, stacks_of_others)
{
    static char *on_stack;
    char beginning[10] = "";

    on_stack  = (char *)__builtin_frame_address(0) - (1 << 16); /* below: not in use */
    type_said = UCS_MEMORY_TYPE_CUDA;
    cr_expect_not(is_host(on_stack));
    cr_expect(is_host(beginning));
}

Test(memtype_device, asked_once_for_a_page)
{
    char *pages = map_pages(NULL, PROT_READ | PROT_WRITE);
    unsigned i;

    for (i = 0; i < PAGES; ++i) {
        cr_expect(is_host(pages + (i << 12)));
        cr_expect(is_host(pages + (i << 12) + 4095));
        cr_expect_eq(asked, i + 1);
    }
    for (i = 0; i < PAGES; ++i) {
        cr_expect(is_host(pages + (i << 12) + 17));
    }
    cr_expect_eq(asked, PAGES);
}

Test(memtype_device, freed_and_used_by_the_device)
{
    char *pages = map_pages(NULL, PROT_READ | PROT_WRITE);

    cr_expect(is_host(pages));
    type_said = UCS_MEMORY_TYPE_CUDA;
    cr_expect(is_host(pages), "remembered");
    cr_expect_eq(asked, 1);
    map_pages(pages, PROT_NONE);
    cr_expect_not(is_host(pages));
    cr_expect_eq(asked, 2);
    cr_expect_not(is_host(pages));
    cr_expect_eq(asked, 3, "a device's is not remembered");

    munmap(pages, PAGES << 12);
    cr_expect_not(is_host(pages), "nothing is there");

    type_said = UCS_MEMORY_TYPE_HOST;
    map_pages(pages, PROT_READ | PROT_WRITE);
    cr_expect(is_host(pages));
    cr_expect_eq(asked, 5, "the host's again");
}

Test(memtype_device, devices_that_are_not_known)
{
    char *pages = map_pages(NULL, PROT_READ | PROT_WRITE);

    context.keeps_host = false;
    cr_expect(is_host(pages));
    type_said = UCS_MEMORY_TYPE_ROCM;
    cr_expect_not(is_host(pages));
    cr_expect_eq(asked, 2);
}
