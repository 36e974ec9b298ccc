/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool of registered bounce buffers, on a real context of UCX.
 */
#include "base/span.h"
#include "turn/worker.h"

#include <criterion/criterion.h>
#include <string.h>

static uci_context_t context;
static uci_worker_t worker;

static void set_up(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};

    uci_ucp.mem_map       = ucp_mem_map;
    uci_ucp.mem_unmap     = ucp_mem_unmap;
    uci_ucp.status_string = ucs_status_string;
    cr_assert(ucp_init(&params, NULL, &context.ucp) == UCS_OK);
    memset(&worker, 0, sizeof(worker));
    worker.context = &context;
}

static void tear_down(void)
{
    uci_spans_cleanup(&worker);
    ucp_cleanup(context.ucp);
}

TestSuite(span, .init = set_up, .fini = tear_down, .timeout = 10);

Test(span, all_are_given_once)
{
    char *spans[UCI_SPAN_COUNT];
    unsigned i, k;

    for (i = 0; i < UCI_SPAN_COUNT; ++i) {
        spans[i] = uci_span_get(&worker, 0);
        cr_assert(spans[i] != NULL);
        memset(spans[i], (int)i, UCI_SPAN_SIZE);
        for (k = 0; k < i; ++k) {
            cr_assert((spans[k] >= spans[i] + UCI_SPAN_SIZE) || (spans[i] >= spans[k] + UCI_SPAN_SIZE));
        }
    }
    cr_expect(uci_span_get(&worker, 0) == NULL);
    for (i = 0; i < UCI_SPAN_COUNT; ++i) {
        cr_expect((spans[i][0] == (char)i) && (spans[i][UCI_SPAN_SIZE - 1] == (char)i));
        uci_span_put(&worker, spans[i]);
    }
    cr_expect(worker.spans.free_count == UCI_SPAN_COUNT);
}

Test(span, some_are_kept)
{
    unsigned i;

    for (i = 0; i < UCI_SPAN_COUNT - 3; ++i) {
        cr_assert(uci_span_get(&worker, 3) != NULL);
    }
    cr_expect(uci_span_get(&worker, 3) == NULL);
    cr_expect(uci_span_get(&worker, 2) != NULL);
    uci_span_put(&worker, NULL); /* does no harm */
    cr_expect(worker.spans.free_count == 2);
}

Test(span, registration_goes_with_them)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_USER_DATA};

    cr_assert(uci_span_get(&worker, 0) != NULL);
    uci_span_set_memh(&worker, &param);
    cr_expect(param.op_attr_mask == (UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMH));
    cr_expect((param.memh == worker.spans.memh) && (param.memh != NULL));
}

/* Nothing is made before it is needed, and nothing tried twice */
Test(span, lazy)
{
    uci_spans_cleanup(&worker);
    cr_expect(!worker.spans.tried && (worker.spans.memory == NULL));
    worker.spans.tried = true;
    cr_expect(uci_span_get(&worker, 0) == NULL);
}
