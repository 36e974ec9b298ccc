/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that is built with the headers of a newer UCX, whose structures have a member more at their end, calls UCI, which is
 * not: what is in that member must arrive (newer_ucx.c). Behind each structure is memory that can't be read: nothing is read behind
 * what is there. The same with structures of 1.13.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>

enum { PAGE = 4096 };

#define NEWER_FIELD (1ull << 63)

static int failed;

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "FAIL %s\n", what);
        failed = 1;
    }
}

/* A copy that ends where memory ends, with one word more behind it, or none */
static void *at_the_end(const void *params, size_t length, const uint64_t *newer)
{
    size_t all   = length + ((newer != NULL) ? sizeof(*newer) : 0);
    char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *copy   = memory + PAGE - all;

    if ((memory == MAP_FAILED) || mprotect(memory + PAGE, PAGE, PROT_NONE)) {
        exit(2);
    }
    memcpy(copy, params, length);
    if (newer != NULL) {
        memcpy(copy + length, newer, sizeof(*newer));
    }
    return copy;
}

static uint64_t found(const char *name)
{
    return *(uint64_t *)dlsym(RTLD_DEFAULT, name);
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
}

int main(void)
{
    static const uint64_t values[] = {0x1234567890, 0x2345678901, 0x3456789012, 0x4567890123};
    int newer                      = 1;

    do {
        ucp_params_t params       = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
        ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
        ucp_ep_params_t changed   = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER, .err_handler = {.cb = on_error}};
        ucp_request_param_t param = {.op_attr_mask = newer ? 1u << 31 : 0};
        ucp_worker_params_t worker_params = {.field_mask = 0};
        const char text[]                 = "a message";
        char received[sizeof(text)];
        ucp_tag_recv_info_t info;
        ucp_address_t *address;
        ucp_context_h context;
        ucs_status_ptr_t request;
        ucp_worker_h worker;
        ucp_config_t *config;
        size_t length;
        ucp_ep_h ep;

        params.field_mask |= newer ? NEWER_FIELD : 0;
        ep_params.field_mask |= newer ? NEWER_FIELD : 0;
        changed.field_mask |= newer ? NEWER_FIELD : 0;
        check(ucp_config_read(NULL, NULL, &config) == UCS_OK, "config");
        check(ucp_init(at_the_end(&params, sizeof(params), newer ? &values[0] : NULL), config, &context) == UCS_OK,
              "init");
        check(found("newer_init") == (newer ? values[0] : 1), "ucp_params_t: the newer member");
        check(ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "worker");
        check(ucp_worker_get_address(worker, &address, &length) == UCS_OK, "address");
        ep_params.address = address;
        check(ucp_ep_create(worker, at_the_end(&ep_params, sizeof(ep_params), newer ? &values[1] : NULL), &ep) ==
                      UCS_OK,
              "endpoint");
        check(found("newer_ep") == (newer ? values[1] : 1), "ucp_ep_params_t: the newer member");
        request = ucp_ep_modify_nb(ep, at_the_end(&changed, sizeof(changed), newer ? &values[2] : NULL));
        check(found("newer_modify") == (newer ? values[2] : 1), "ucp_ep_modify_nb: the newer member");
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }

        request = ucp_tag_recv_nbx(worker, received, sizeof(received), 5, ~0ul,
                                   &(ucp_request_param_t){.op_attr_mask = 0});
        check(!UCS_PTR_IS_ERR(ucp_tag_send_nbx(ep, text, sizeof(text), 5,
                                               at_the_end(&param, sizeof(param), newer ? &values[3] : NULL))),
              "send");
        while (UCS_PTR_IS_PTR(request) && (ucp_request_test(request, &info) == UCS_INPROGRESS)) {
            ucp_worker_progress(worker);
        }
        if (getenv("NEWER_MODE_OFF") != NULL) { /* the send is UCX's, and a fault's copy of its parameters */
            check(found("newer_send") == (newer ? values[3] : 1), "ucp_request_param_t: the newer member");
        } else {
            check(memcmp(text, received, sizeof(text)) == 0, "the message");
        }
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
        ucp_worker_release_address(worker, address);
        ucp_ep_destroy(ep);
        ucp_worker_destroy(worker);
        ucp_cleanup(context);
        ucp_config_release(config);
    } while (newer--);
    return failed;
}
