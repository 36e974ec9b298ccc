/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests: who makes them, whose memory they are in, what may be asked of them, and what callbacks may do.
 */
#include "ucp_test.h"

static ut_pair_t pair;

/* ------------------------------------------------------ init and cleanup */

static void init_and_cleanup(void)
{
    unsigned inits = ut_inits, cleanups = ut_cleanups;
    ut_op_t recv[300];
    ut_data_t data;
    unsigned i;

    ut_pair_open(&pair, 0);
    ut_data_open(&data, UT_CONTIG1, 300);
    for (i = 0; i < 300; ++i) {
        ut_recv(&recv[i], &pair, UT_RECV_NBX, &data, i, UT_TAG_ALL);
        *(uint64_t *)recv[i].request = *(uint64_t *)recv[i].request; /* the area is writable */
    }
    UT_CHECK(ut_inits - inits >= 300, "request_init was called %u times for 300 requests", ut_inits - inits);
    for (i = 0; i < 300; ++i) {
        ucp_request_cancel(pair.b->worker, recv[i].request);
        UT_CHECK_STATUS(ut_wait(&pair, &recv[i]), UCS_ERR_CANCELED, "cancelled receive");
    }
    ut_data_close(&data);
    ut_pair_close(&pair);
    UT_CHECK(ut_inits - inits == ut_cleanups - cleanups, "request_init was called %u times, request_cleanup %u",
             ut_inits - inits, ut_cleanups - cleanups);
}

/* No request is handed out twice; areas do not overlap; what is written there stays */
static void areas_are_apart(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    void *requests[100];
    char byte[100];
    unsigned i, round;

    ut_pair_open(&pair, 0);
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < 100; ++i) {
            requests[i] = ucp_tag_recv_nbx(pair.b->worker, &byte[i], 1, i, UT_TAG_ALL, &param);
            UT_REQUIRE(UCS_PTR_IS_PTR(requests[i]), "no request");
            ((ut_area_t *)requests[i])->cookie = (round * 1000) + i;
        }
        for (i = 0; i < 100; ++i) {
            UT_CHECK(((ut_area_t *)requests[i])->cookie == (round * 1000) + i, "area of request %u was overwritten", i);
            ucp_request_cancel(pair.b->worker, requests[i]);
            UT_CHECK_STATUS(ut_wait_ptr(&pair, requests[i]), UCS_ERR_CANCELED, "cancelled receive");
        }
    }
    ut_pair_close(&pair);
}

static void context_without_area(void)
{
    ucp_params_t params       = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    ucp_context_attr_t attr   = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_THREAD_MODE};
    void *requests[200];
    ucp_context_h context;
    ucp_worker_h worker;
    char byte;
    unsigned i;

    UT_CHECK_STATUS(ucp_init(&params, NULL, &context), UCS_OK, "ucp_init");
    attr.request_size = 0;
    UT_CHECK_STATUS(ucp_context_query(context, &attr), UCS_OK, "ucp_context_query");
    UT_CHECK(attr.request_size > 0, "request_size 0");
    worker = ut_worker_create(context);
    for (i = 0; i < 200; ++i) {
        requests[i] = ucp_tag_recv_nbx(worker, &byte, 1, i, UT_TAG_ALL, &param);
        UT_REQUIRE(UCS_PTR_IS_PTR(requests[i]), "no request");
    }
    for (i = 0; i < 200; ++i) {
        UT_CHECK(!ucp_request_is_completed(requests[i]), "completed without a message");
        ucp_request_cancel(worker, requests[i]);
        UT_CHECK_STATUS(ucp_request_check_status(requests[i]), UCS_ERR_CANCELED, "cancelled receive");
        ucp_request_free(requests[i]);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

/* ------------------------------------------------------- what is asked */

static void asking(void)
{
    ucp_request_attr_t attr   = {.field_mask = UCP_REQUEST_ATTR_FIELD_STATUS | UCP_REQUEST_ATTR_FIELD_MEM_TYPE};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    ucp_tag_recv_info_t info;
    ut_data_t from, to;
    ut_op_t send;
    void *recv;

    ut_pair_open(&pair, 0);
    ut_data_open(&from, UT_CONTIG1, 77);
    ut_data_open(&to, UT_CONTIG1, 100);
    recv = ucp_tag_recv_nbx(pair.b->worker, to.buffer, to.count, 5, UT_TAG_ALL, &param);
    UT_REQUIRE(UCS_PTR_IS_PTR(recv), "no request");
    UT_CHECK_STATUS(ucp_request_check_status(recv), UCS_INPROGRESS, "check_status");
    UT_CHECK_STATUS(ucp_request_test(recv, &info), UCS_INPROGRESS, "test");
    UT_CHECK_STATUS(ucp_tag_recv_request_test(recv, &info), UCS_INPROGRESS, "tag_recv_request_test");
    UT_CHECK(!ucp_request_is_completed(recv), "is_completed");
    UT_CHECK_STATUS(ucp_request_query(recv, &attr), UCS_OK, "query");
    UT_CHECK_STATUS(attr.status, UCS_INPROGRESS, "status in query");

    ut_send(&send, pair.a, UT_SEND_NBX, &from, 5);
    ut_wait(&pair, &send);
    ut_clock_start();
    while (!ucp_request_is_completed(recv)) {
        ut_progress(&pair);
        ut_clock_check("a receive");
    }
    UT_CHECK_STATUS(ucp_request_check_status(recv), UCS_OK, "check_status");
    memset(&info, 0, sizeof(info));
    UT_CHECK_STATUS(ucp_request_test(recv, &info), UCS_OK, "test");
    UT_CHECK((info.length == 77) && (info.sender_tag == 5), "test says %zu bytes, tag %lu", info.length,
             (unsigned long)info.sender_tag);
    memset(&info, 0, sizeof(info));
    UT_CHECK_STATUS(ucp_tag_recv_request_test(recv, &info), UCS_OK, "tag_recv_request_test");
    UT_CHECK((info.length == 77) && (info.sender_tag == 5), "tag_recv_request_test says %zu bytes", info.length);
    UT_CHECK_STATUS(ucp_request_query(recv, &attr), UCS_OK, "query");
    UT_CHECK_STATUS(attr.status, UCS_OK, "status in query");
    ucp_request_release(recv);
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

static void query_text(void)
{
    char text[256] = "", tiny[4] = "";
    ucp_request_attr_t attr = {.field_mask = UCP_REQUEST_ATTR_FIELD_INFO_STRING |
                                             UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE,
                               .debug_string      = text,
                               .debug_string_size = sizeof(text)};
    ut_data_t data;
    ut_op_t recv;

    ut_pair_open(&pair, 0);
    ut_data_open(&data, UT_CONTIG1, 100);
    ut_recv(&recv, &pair, UT_RECV_NBX, &data, 5, UT_TAG_ALL);
    UT_CHECK_STATUS(ucp_request_query(recv.request, &attr), UCS_OK, "query");
    UT_CHECK(strlen(text) > 0, "query gives no text");
    attr.debug_string      = tiny;
    attr.debug_string_size = sizeof(tiny);
    UT_CHECK_STATUS(ucp_request_query(recv.request, &attr), UCS_OK, "query");
    UT_CHECK(strlen(tiny) < sizeof(tiny), "query writes past the end");
    attr.field_mask   = UCP_REQUEST_ATTR_FIELD_INFO_STRING;
    attr.debug_string = NULL; /* how much room there is has not been said */
    UT_CHECK_STATUS(ucp_request_query(recv.request, &attr), UCS_ERR_INVALID_PARAM, "query of text, and no size");
    ucp_request_cancel(pair.b->worker, recv.request);
    ut_wait(&pair, &recv);
    ut_data_close(&data);
    ut_pair_close(&pair);
}

/* --------------------------------------------------- a user's memory */

static void user_recv(const ut_memory_t *memory, ut_data_t *data, ucp_tag_t tag, uint32_t flags, bool callback,
                      ut_op_t *op);

static void user_recv_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    ut_op_t *op = user_data;

    UT_CHECK(request == op->memory.request, "the callback gets another request than the user's");
    op->info = *info;
    ++op->calls;
}

static void user_recv(const ut_memory_t *memory, ut_data_t *data, ucp_tag_t tag, uint32_t flags, bool callback,
                      ut_op_t *op)
{
    ucp_request_param_t param = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_DATATYPE | flags |
                            (callback ? UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA : 0),
            .request   = memory->request,
            .datatype  = data->datatype,
            .cb.recv   = user_recv_cb,
            .user_data = op};
    ucs_status_ptr_t returned;

    memset(op, 0, sizeof(*op));
    op->memory = *memory;
    returned   = ucp_tag_recv_nbx(pair.b->worker, data->buffer, data->count, tag, UT_TAG_ALL, &param);
    UT_CHECK(!UCS_PTR_IS_PTR(returned) || (returned == memory->request), "another request is returned");
    op->request = UCS_PTR_IS_PTR(returned) ? returned : NULL;
    op->status  = UCS_PTR_IS_PTR(returned) ? UCS_INPROGRESS : UCS_PTR_STATUS(returned);
}

static void user_wait(ut_op_t *op)
{
    if (op->request == NULL) {
        return;
    }
    ut_clock_start();
    while ((op->status = ucp_request_check_status(op->request)) == UCS_INPROGRESS) {
        ut_progress(&pair);
        ut_clock_check("an operation with the user's request");
    }
}

static void user_send(const ut_memory_t *memory, const ut_data_t *data, ucp_tag_t tag, uint32_t flags, ut_op_t *op)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_DATATYPE | flags,
                                 .request      = memory->request,
                                 .datatype     = data->datatype};
    ucs_status_ptr_t returned;

    memset(op, 0, sizeof(*op));
    returned = ucp_tag_send_nbx(pair.a->ep, data->buffer, data->count, tag, &param);
    UT_CHECK(!UCS_PTR_IS_PTR(returned) || (returned == memory->request), "another request is returned");
    op->request = UCS_PTR_IS_PTR(returned) ? returned : NULL;
    op->status  = UCS_PTR_IS_PTR(returned) ? UCS_INPROGRESS : UCS_PTR_STATUS(returned);
}

static void user_memory_exchange(const ut_memory_t memory[2], ut_layout_t layout, size_t length, unsigned variant)
{
    uint32_t flags = (variant & 1) ? UCP_OP_ATTR_FLAG_NO_IMM_CMPL : 0;
    ut_op_t send, recv;
    ut_data_t from, to;

    ut_data_open(&from, layout, length);
    ut_data_open(&to, layout, length);
    ut_data_fill(&from, variant);
    if (variant & 2) {
        user_recv(&memory[1], &to, variant, flags, variant & 4, &recv);
        user_send(&memory[0], &from, variant, flags | ((variant & 8) ? UCP_OP_ATTR_FLAG_FAST_CMPL : 0), &send);
    } else {
        user_send(&memory[0], &from, variant, flags | ((variant & 8) ? UCP_OP_ATTR_FLAG_FAST_CMPL : 0), &send);
        ut_settle(&pair);
        user_recv(&memory[1], &to, variant, flags, variant & 4, &recv);
    }
    user_wait(&recv);
    user_wait(&send);
    UT_CHECK_STATUS(send.status, UCS_OK, "send");
    UT_CHECK_STATUS(recv.status, UCS_OK, "receive");
    UT_CHECK((recv.calls == 1) || (recv.request == NULL) || !(variant & 4), "the callback was called %d times",
             recv.calls);
    UT_CHECK(ut_data_check(&to, length, variant), "wrong content");
    UT_CHECK(!(variant & 1) || ((recv.request != NULL) && (send.request != NULL)),
             "immediate completion with NO_IMM_CMPL");
    ut_memory_check(&memory[0]);
    ut_memory_check(&memory[1]);
    ut_data_close(&from);
    ut_data_close(&to);
}

static void user_memory(void)
{
    static const size_t sizes[] = {0, 10, 8192, 9000, 200000};
    unsigned variant, layout;
    ut_memory_t memory[2];
    size_t i;

    ut_pair_open(&pair, 0);
    ut_memory_open(&memory[0], pair.a->context);
    ut_memory_open(&memory[1], pair.b->context);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (variant = 0; variant < 16; ++variant) {
            for (layout = 0; layout < UT_LAYOUTS; layout += 2) {
                user_memory_exchange(memory, layout, sizes[i], variant);
            }
        }
    }
    ut_memory_close(&memory[0]);
    ut_memory_close(&memory[1]);
    ut_pair_close(&pair);
}

/* A request in the user's memory that completed at once can still be asked (Open MPI does) */
static void user_memory_immediate(void)
{
    ut_memory_t memory;
    ut_data_t from, to;
    ut_op_t send, recv;
    ucp_tag_recv_info_t info = {.length = 0};

    if (ut_faults_are_on()) {
        return;
    }
    ut_pair_open(&pair, 0);
    ut_memory_open(&memory, pair.b->context);
    ut_data_open(&from, UT_CONTIG1, 10);
    ut_data_open(&to, UT_CONTIG1, 10);
    ut_exchange(&pair, 10, 1); /* connects */
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 3);
    ut_settle(&pair);
    ut_settle(&pair);
    user_recv(&memory, &to, 3, 0, false, &recv);
    UT_CHECK_STATUS(recv.status, UCS_OK, "receive of what is there");
    UT_CHECK(recv.request == NULL, "no immediate completion of a receive of what is there");
    UT_CHECK_STATUS(ucp_request_test(memory.request, &info), UCS_OK, "test");
    UT_CHECK((info.length == 10) && (info.sender_tag == 3), "test says %zu bytes, tag %lu", info.length,
             (unsigned long)info.sender_tag);
    ut_wait(&pair, &send);
    ut_data_close(&from);
    ut_data_close(&to);
    ut_memory_close(&memory);
    ut_pair_close(&pair);
}

/* Requests that UCX itself allocates for its user to pass */
static void allocated_by_ucx(void)
{
    ut_memory_t memory[2];
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 2; ++i) {
        memory[i].request = ucp_request_alloc((i == 0) ? pair.a->worker : pair.b->worker);
    }
    if (memory[0].request == NULL) {
        ut_pair_close(&pair); /* declared, but not implemented (UCX 1.13 to 1.23) */
        return;
    }
    for (i = 0; i < 16; ++i) {
        ut_op_t send, recv;
        ut_data_t from, to;

        ut_data_open(&from, UT_CONTIG1, (i & 1) ? 100000 : 100);
        ut_data_open(&to, UT_CONTIG1, (i & 1) ? 100000 : 100);
        ut_data_fill(&from, i);
        user_recv(&memory[1], &to, i, UCP_OP_ATTR_FLAG_NO_IMM_CMPL, false, &recv);
        user_send(&memory[0], &from, i, UCP_OP_ATTR_FLAG_NO_IMM_CMPL, &send);
        user_wait(&recv);
        user_wait(&send);
        UT_CHECK_STATUS(send.status, UCS_OK, "send");
        UT_CHECK_STATUS(recv.status, UCS_OK, "receive");
        UT_CHECK(ut_data_check(&to, to.length, i), "wrong content");
        ut_data_close(&from);
        ut_data_close(&to);
    }
    ut_exchange(&pair, 20000, 5);
    ucp_request_free(memory[0].request);
    ucp_request_free(memory[1].request);
    ut_exchange(&pair, 20000, 6);
    ut_pair_close(&pair);
}

/* ------------------------------------- one memory, all sorts of operations */

static ucs_status_t sink_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ++*(unsigned *)arg;
    return UCS_OK;
}

static void wait_foreign(ucs_status_ptr_t returned, void *request, const char *what)
{
    ucs_status_t status = UCS_PTR_IS_PTR(returned) ? UCS_INPROGRESS : UCS_PTR_STATUS(returned);

    UT_CHECK(!UCS_PTR_IS_PTR(returned) || (returned == request), "%s: another request is returned", what);
    ut_clock_start();
    while (UCS_PTR_IS_PTR(returned) && ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ut_clock_check(what);
    }
    UT_CHECK_STATUS(status, UCS_OK, what);
}

static void reuse_tag(const ut_memory_t *memory, size_t length, unsigned seed)
{
    ut_data_t from, to;
    ut_op_t op, other;

    ut_data_open(&from, UT_CONTIG1, length);
    ut_data_open(&to, UT_CONTIG1, length);
    ut_data_fill(&from, seed);
    user_recv(memory, &to, seed, 0, false, &op);
    ut_send(&other, pair.a, UT_SEND_NBX, &from, seed);
    user_wait(&op);
    UT_CHECK_STATUS(ut_wait(&pair, &other), UCS_OK, "send");
    ut_data_poison(&to);
    ut_recv(&other, &pair, UT_RECV_NBX, &to, seed, UT_TAG_ALL);
    user_send(memory, &from, seed, 0, &op);
    user_wait(&op);
    UT_CHECK_STATUS(ut_wait(&pair, &other), UCS_OK, "receive");
    UT_CHECK(ut_data_check(&to, length, seed), "wrong content");
    ut_data_close(&from);
    ut_data_close(&to);
}

static void reuse_foreign(const ut_memory_t *memory, uint64_t address, ucp_rkey_h rkey, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .request      = memory->request};
    char *local               = malloc(length);

    memset(local, 0x77, length);
    wait_foreign(ucp_put_nbx(pair.a->ep, local, length, address, rkey, &param), memory->request, "put");
    wait_foreign(ucp_ep_flush_nbx(pair.a->ep, &param), memory->request, "ep_flush");
    memset(local, 0, length);
    wait_foreign(ucp_get_nbx(pair.a->ep, local, length, address, rkey, &param), memory->request, "get");
    UT_CHECK(ut_verify_value(local, length, 0x77) == SIZE_MAX, "get brings other bytes");
    wait_foreign(ucp_am_send_nbx(pair.a->ep, 7, NULL, 0, local, length, &param), memory->request, "am_send");
    wait_foreign(ucp_worker_flush_nbx(pair.a->worker, &param), memory->request, "worker_flush");
    free(local);
}

static void reuse_of_user_memory(void)
{
    ucp_mem_map_params_t map       = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                      .length     = 100000};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = 7,
                                      .cb = sink_am};
    size_t key_length;
    ut_memory_t memory;
    unsigned i, count = 0;
    ucp_rkey_h rkey;
    ucp_mem_h memh;
    void *key;

    ut_pair_open(&pair, UCP_FEATURE_RMA | UCP_FEATURE_AM);
    map.address = malloc(map.length);
    handler.arg = &count;
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &handler), UCS_OK, "set_am_recv_handler");
    UT_CHECK_STATUS(ucp_mem_map(pair.b->context, &map, &memh), UCS_OK, "mem_map");
    UT_CHECK_STATUS(ucp_rkey_pack(pair.b->context, memh, &key, &key_length), UCS_OK, "rkey_pack");
    UT_CHECK_STATUS(ucp_ep_rkey_unpack(pair.a->ep, key, &rkey), UCS_OK, "rkey_unpack");
    ucp_rkey_buffer_release(key);
    ut_memory_open(&memory, pair.a->context);
    for (i = 0; i < 6; ++i) {
        reuse_tag(&memory, (i & 1) ? 100000 : 100, i);
        reuse_foreign(&memory, (uintptr_t)map.address, rkey, (i & 2) ? 100000 : 100);
    }
    ut_memory_close(&memory);
    ucp_rkey_destroy(rkey);
    ut_clock_start();
    while (count < 6) { /* they come later where faults are injected */
        ut_progress(&pair);
        ut_clock_check("the active messages");
    }
    ut_settle(&pair);
    UT_CHECK(count == 6, "%u active messages arrived, 6 were sent", count);
    ucp_mem_unmap(pair.b->context, memh);
    free(map.address);
    ut_pair_close(&pair);
}

/* The memory of a tag operation serves to close an endpoint that still has something to send */
static void close_with_user_memory(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0}, param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
    ucs_status_ptr_t sends[400];
    ucs_status_ptr_t returned;
    ut_memory_t memory;
    ucp_ep_h second;
    char word[64] = "";
    unsigned i;

    ut_pair_open(&pair, 0);
    second = ut_ep_create(pair.a->worker, pair.b->worker);
    ut_memory_open(&memory, pair.a->context);
    reuse_tag(&memory, 100, 1);
    for (i = 0; i < 400; ++i) {
        sends[i] = ucp_tag_send_nbx(second, word, sizeof(word), 50, &none);
    }
    param.request = memory.request;
    returned      = ucp_ep_close_nbx(second, &param);
    UT_CHECK(!UCS_PTR_IS_PTR(returned) || (ucp_request_check_status(returned) == UCS_INPROGRESS),
             "a close that has begun is complete before anything could happen");
    wait_foreign(returned, memory.request, "ep_close");
    for (i = 0; i < 400; ++i) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_tag_recv_nbx(pair.b->worker, word, sizeof(word), 50, UT_TAG_ALL, &none)),
                        UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, sends[i]), UCS_OK, "send");
    }
    reuse_tag(&memory, 100, 2);
    ut_memory_close(&memory);
    ut_pair_close(&pair);
}

/* ----------------------------------------------------------- callbacks */

static unsigned freed;

static void freeing_send_cb(void *request, ucs_status_t status, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "send");
    ucp_request_free(request);
    ++freed;
}

static void releasing_recv_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "receive");
    UT_CHECK(((ut_area_t *)request)->self == request, "the area is not this request's");
    ucp_request_release(request);
    ++freed;
}

static void wait_freed(unsigned count)
{
    ut_clock_start();
    while (freed < count) {
        ut_progress(&pair);
        ut_clock_check("callbacks");
    }
    UT_CHECK(freed == count, "%u callbacks, %u expected", freed, count);
}

static void callbacks_that_free(void)
{
    ucp_request_param_t send_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                      .cb.send      = freeing_send_cb};
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = releasing_recv_cb};
    char *from = malloc(60000), *to = malloc(60000);
    unsigned i, expected            = 0;
    ucs_status_ptr_t ptr;

    ut_pair_open(&pair, 0);
    freed = 0;
    for (i = 0; i < 200; ++i) {
        size_t length = (i % 4 == 3) ? 60000 : i;

        ut_fill(from, length, i);
        ptr = ucp_tag_recv_nbx(pair.b->worker, to, length, i, UT_TAG_ALL, &recv_param);
        UT_REQUIRE(UCS_PTR_IS_PTR(ptr), "receive");
        ptr = ucp_tag_send_nbx(pair.a->ep, from, length, i, &send_param);
        expected += 2;
        UT_CHECK(!UCS_PTR_IS_ERR(ptr) && (ptr != NULL), "send");
        wait_freed(expected);
        UT_CHECK(ut_verify(to, length, i) == SIZE_MAX, "wrong content");
    }
    free(from);
    free(to);
    ut_pair_close(&pair);
}

typedef struct chain {
    unsigned received;
    unsigned sent;
    unsigned left;
    size_t length;
    char *from, *to;
} chain_t;

static void chain_post(chain_t *chain);

static void chain_sent(void *request, ucs_status_t status, void *user_data)
{
    chain_t *chain = user_data;

    ++chain->sent;
    ucp_request_free(request);
}

static void chain_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    chain_t *chain = user_data;

    UT_CHECK_STATUS(status, UCS_OK, "receive");
    UT_CHECK(info->length == chain->length, "%zu bytes received", info->length);
    UT_CHECK(ut_verify(chain->to, chain->length, 3) == SIZE_MAX, "wrong content");
    memset(chain->to, 0, chain->length);
    ++chain->received;
    if (--chain->left > 0) {
        chain_post(chain);
    }
    ucp_request_free(request);
}

static void chain_post(chain_t *chain)
{
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                      UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                      .cb.recv   = chain_received,
                                      .user_data = chain};
    ucp_request_param_t send_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                      .cb.send      = chain_sent,
                                      .user_data    = chain};
    ucs_status_ptr_t ptr;

    ptr = ucp_tag_send_nbx(pair.a->ep, chain->from, chain->length, 8, &send_param);
    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "send: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
    if (ptr == NULL) {
        ++chain->sent;
    }
    ptr = ucp_tag_recv_nbx(pair.b->worker, chain->to, chain->length, 8, UT_TAG_ALL, &recv_param);
    UT_CHECK(UCS_PTR_IS_PTR(ptr), "receive: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
}

/* A receive's callback posts the next send and the next receive */
static void callbacks_that_post(void)
{
    static const size_t sizes[] = {0, 8, 8192, 30000, 300000};
    chain_t chain;
    size_t i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        memset(&chain, 0, sizeof(chain));
        chain.left   = 50;
        chain.length = sizes[i];
        chain.from   = malloc(sizes[i] + 1);
        chain.to     = calloc(1, sizes[i] + 1);
        ut_fill(chain.from, sizes[i], 3);
        chain_post(&chain);
        ut_clock_start();
        while ((chain.received < 50) || (chain.sent < 50)) {
            ut_progress(&pair);
            ut_clock_check("a chain of messages");
        }
        UT_CHECK((chain.received == 50) && (chain.sent == 50), "%u received, %u sent", chain.received, chain.sent);
        free(chain.from);
        free(chain.to);
    }
    ut_pair_close(&pair);
}

/* ------------------------------------------- freed before they complete */

/* The right bytes may be there before the operation is over, of which nobody hears: a chunk whose digest was damaged is
 * fetched again. So both buffers, of length + 1, are the caller's. */
static void free_early_one(char *from, char *to, size_t length, unsigned seed, bool callback)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL |
                                                 (callback ? UCP_OP_ATTR_FIELD_CALLBACK : 0)};
    ucs_status_ptr_t ptr;

    ut_fill(from, length, seed);
    if (callback) {
        param.cb.recv = (ucp_tag_recv_nbx_callback_t)abort; /* must not be called any more */
    }
    ptr = ucp_tag_recv_nbx(pair.b->worker, to, length, 4, UT_TAG_ALL, &param);
    UT_REQUIRE(UCS_PTR_IS_PTR(ptr), "receive");
    ucp_request_free(ptr);
    if (callback) {
        param.cb.send = (ucp_send_nbx_callback_t)abort;
    }
    param.op_attr_mask &= ~(uint32_t)(UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_CALLBACK);
    ptr = ucp_tag_send_nbx(pair.a->ep, from, length, 4, &param);
    UT_REQUIRE(!UCS_PTR_IS_ERR(ptr), "send");
    if (ptr != NULL) {
        ucp_request_free(ptr);
    }
    ut_clock_start();
    while (ut_verify(to, length, seed) != SIZE_MAX) {
        ut_progress(&pair);
        ut_clock_check("a message whose requests are freed");
    }
    ut_exchange(&pair, 100, seed); /* whose requests may be the same memory */
    ut_exchange(&pair, 30000, seed);
}

static void freed_before_completion(void)
{
    char *buffers[30][2];
    size_t length;
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 1; i < 30; ++i) {
        length        = (i % 3 == 0) ? 100000 : i * 7;
        buffers[i][0] = malloc(length + 1);
        buffers[i][1] = calloc(1, length + 1);
        free_early_one(buffers[i][0], buffers[i][1], length, i, i & 1);
    }
    ut_settle(&pair);
    ut_pair_close(&pair);
    for (i = 1; i < 30; ++i) {
        free(buffers[i][0]);
        free(buffers[i][1]);
    }
}

/* ------------------------------------------- cancelling what came after */

static void *posted_inside;
static unsigned cancelled;

static void cancelled_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_ERR_CANCELED, "cancelled receive");
    ++cancelled;
    ucp_request_free(request);
}

static void *post_unmatched(void)
{
    static char nothing[64];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = cancelled_cb};

    return ucp_tag_recv_nbx(pair.b->worker, nothing, sizeof(nothing), 0xdead, UT_TAG_ALL, &param);
}

static void posting_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "receive");
    ucp_request_free(request);
    posted_inside = post_unmatched();
}

/* Whatever is still written to a request when its callback has returned is not written to the next one, made inside of the callback
 * or right after it: both can be cancelled */
static void cancelled_after_a_callback(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = posting_cb};
    char buffer[16];
    ut_data_t from;
    ut_op_t send;
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 50; ++i) {
        posted_inside = NULL;
        cancelled     = 0;
        UT_REQUIRE(UCS_PTR_IS_PTR(ucp_tag_recv_nbx(pair.b->worker, buffer, sizeof(buffer), 77, UT_TAG_ALL, &param)),
                   "a receive of nothing is over");
        ut_data_open(&from, UT_CONTIG1, sizeof(buffer));
        ut_data_fill(&from, i);
        ut_send(&send, pair.a, UT_SEND_NBX, &from, 77);
        ut_clock_start();
        while (posted_inside == NULL) {
            ut_progress(&pair);
            ut_clock_check("a message");
        }
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        UT_CHECK(ut_verify(buffer, sizeof(buffer), i) == SIZE_MAX, "wrong content");
        ucp_request_cancel(pair.b->worker, post_unmatched());
        ucp_request_cancel(pair.b->worker, posted_inside);
        ut_clock_start();
        while (cancelled < 2) {
            ut_progress(&pair);
            ut_clock_check("cancelled receives");
        }
        ut_data_close(&from);
    }
    ut_pair_close(&pair);
}

/* What a callback does with the memory of its request, which is the user's: gives it to the next receive, or frees it */
static ut_memory_t callback_memory;
static char callback_buffer[2][100000];
static unsigned callbacks;

static void post_in_user_memory(void);

static void reposting_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "receive");
    UT_CHECK_STATUS(ucp_request_check_status(request), UCS_OK, "check_status inside of the callback");
    if (callbacks++ == 0) {
        post_in_user_memory();
    } else {
        ut_memory_close(&callback_memory);
    }
}

static void post_in_user_memory(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_REQUEST |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .request = callback_memory.request,
                                 .cb.recv = reposting_cb};

    UT_REQUIRE(ucp_tag_recv_nbx(pair.b->worker, callback_buffer[callbacks], sizeof(callback_buffer[0]), 79, UT_TAG_ALL,
                                &param) == callback_memory.request,
               "another request than the user's");
}

static void send_to_callback(size_t length, unsigned count)
{
    ut_data_t from;
    ut_op_t send;

    ut_data_open(&from, UT_CONTIG1, length);
    ut_data_fill(&from, count);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 79);
    ut_clock_start();
    while (callbacks < count) {
        ut_progress(&pair);
        ut_clock_check("a callback");
    }
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
    UT_CHECK(ut_verify(callback_buffer[count - 1], length, count) == SIZE_MAX, "wrong content");
    ut_data_close(&from);
}

static void callbacks_with_user_memory(void)
{
    static const size_t sizes[] = {8, 2000, 100000};
    size_t i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        ut_memory_open(&callback_memory, pair.b->context);
        callbacks = 0;
        post_in_user_memory();
        send_to_callback(sizes[i], 1);
        ut_settle(&pair);
        UT_CHECK_STATUS(ucp_request_check_status(callback_memory.request), UCS_INPROGRESS,
                        "a receive that was posted inside of a callback");
        send_to_callback(sizes[i], 2);
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(init_and_cleanup),
                                  UT_TEST(areas_are_apart),
                                  UT_TEST(context_without_area),
                                  UT_TEST(asking),
                                  UT_TEST(query_text),
                                  UT_TEST(user_memory),
                                  UT_TEST(user_memory_immediate),
                                  UT_TEST(allocated_by_ucx),
                                  UT_TEST(reuse_of_user_memory),
                                  UT_TEST(close_with_user_memory),
                                  UT_TEST(callbacks_that_free),
                                  UT_TEST(callbacks_that_post),
                                  UT_TEST(freed_before_completion),
                                  UT_TEST(cancelled_after_a_callback),
                                  UT_TEST(callbacks_with_user_memory)};

UT_MAIN(tests)
