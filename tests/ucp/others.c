/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is not tag matching: active messages, streams, remote memory, atomics, flushes; alone,
 * beside tag matching, and on contexts without it. Ends with how much that was, for run_ucp.sh to compare with what was counted.
 */
#include "ucp_test.h"

static ut_pair_t pair;

/* Operations begun, and bytes that those had which pass through */
static struct {
    unsigned am, put, get, atomic, stream;
    size_t bytes;
} did;

static void did_begin(unsigned *operations, size_t bytes)
{
    ++*operations;
    did.bytes += bytes;
}

/* ------------------------------------------------------ active messages */

static struct {
    unsigned calls;
    size_t length;
    char data[200000];
    void *rndv;
} arrived;

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    UT_CHECK((header_length == 4) && (memcmp(header, "head", 4) == 0), "header of %zu bytes", header_length);
    UT_CHECK(arg == &arrived, "another argument");
    ++arrived.calls;
    arrived.length = length;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        arrived.rndv = data;
        return UCS_INPROGRESS;
    }
    memcpy(arrived.data, data, length);
    return UCS_OK;
}

static ucs_status_t on_old_am(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    ++arrived.calls;
    arrived.length = length;
    memcpy(arrived.data, data, length);
    return UCS_OK;
}

static void listen_on(ucp_worker_h worker, unsigned id)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id  = id,
                                    .cb  = on_am,
                                    .arg = &arrived};

    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(worker, &param), UCS_OK, "set_am_recv_handler");
}

static void send_am(unsigned id, size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *data               = malloc(length + 1);
    ucs_status_ptr_t ptr;

    ut_fill(data, length, seed);
    memset(&arrived, 0, sizeof(arrived));
    did_begin(&did.am, 0);
    ptr = ucp_am_send_nbx(pair.a->ep, id, "head", 4, data, length, &none);
    ut_clock_start();
    while (arrived.calls == 0) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    if (arrived.rndv != NULL) {
        UT_CHECK_STATUS(
                ut_wait_ptr(&pair, ucp_am_recv_data_nbx(pair.b->worker, arrived.rndv, arrived.data, length, &none)),
                UCS_OK, "am_recv_data");
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "am_send");
    UT_CHECK((arrived.calls == 1) && (arrived.length == length), "%u calls, %zu bytes", arrived.calls, arrived.length);
    UT_CHECK(ut_verify(arrived.data, length, seed) == SIZE_MAX, "wrong content");
    free(data);
}

static void all_am(void)
{
    static const size_t sizes[] = {0, 8, 8000, 10000, 200000};
    unsigned i;

    listen_on(pair.b->worker, 0);
    listen_on(pair.b->worker, 1);
    listen_on(pair.b->worker, 999);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        send_am(0, sizes[i], i);
        send_am(1, sizes[i], i);
        send_am(999, sizes[i], i);
    }
}

static void old_am(void)
{
    char data[100];
    ucs_status_ptr_t ptr;

    UT_CHECK_STATUS(ucp_worker_set_am_handler(pair.b->worker, 5, on_old_am, NULL, 0), UCS_OK, "set_am_handler");
    ut_fill(data, sizeof(data), 9);
    memset(&arrived, 0, sizeof(arrived));
    did_begin(&did.am, 0);
    ptr = ucp_am_send_nb(pair.a->ep, 5, data, sizeof(data), ucp_dt_make_contig(1),
                         (ucp_send_callback_t)(void *)ut_clock_start, 0);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "am_send_nb");
    ut_clock_start();
    while (arrived.calls == 0) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    UT_CHECK((arrived.length == sizeof(data)) && (ut_verify(arrived.data, sizeof(data), 9) == SIZE_MAX),
             "wrong content");
}

static void am_of_layout(ut_layout_t layout)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
    ut_data_t data;

    ut_data_open(&data, layout, 1000);
    ut_data_fill(&data, layout);
    memset(&arrived, 0, sizeof(arrived));
    param.datatype = data.datatype;
    did_begin(&did.am, 0);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_am_send_nbx(pair.a->ep, 0, "head", 4, data.buffer, data.count, &param)),
                    UCS_OK, "am_send");
    ut_clock_start();
    while (arrived.calls == 0) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    UT_CHECK((arrived.length == 1000) && (ut_verify(arrived.data, 1000, layout) == SIZE_MAX), "%s: wrong content",
             ut_layout_names[layout]);
    ut_data_close(&data);
}

static void am_of_all_layouts(void)
{
    ut_layout_t layout;

    for (layout = 0; layout < UT_LAYOUTS; ++layout) {
        am_of_layout(layout);
    }
}

static void active_messages(void)
{
    ut_pair_open(&pair, UCP_FEATURE_AM);
    all_am();
    old_am();
    am_of_all_layouts();
    ut_exchange(&pair, 100, 1);
    ut_exchange(&pair, 100000, 2);
    all_am();
    ut_pair_close(&pair);
}

/* -------------------------------------------------------- remote memory */

typedef struct remote {
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    char *memory;
    size_t length;
} remote_t;

static void remote_open(remote_t *remote, size_t length)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .length     = length};
    size_t key_length;
    void *key;

    map.address = remote->memory = calloc(1, length);
    remote->length               = length;
    UT_CHECK_STATUS(ucp_mem_map(pair.b->context, &map, &remote->memh), UCS_OK, "mem_map");
    UT_CHECK_STATUS(ucp_rkey_pack(pair.b->context, remote->memh, &key, &key_length), UCS_OK, "rkey_pack");
    UT_CHECK_STATUS(ucp_ep_rkey_unpack(pair.a->ep, key, &remote->rkey), UCS_OK, "rkey_unpack");
    ucp_rkey_buffer_release(key);
}

static void remote_close(remote_t *remote)
{
    ucp_rkey_destroy(remote->rkey);
    ucp_mem_unmap(pair.b->context, remote->memh);
    free(remote->memory);
}

static void flush(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_flush_nbx(pair.a->ep, &none)), UCS_OK, "ep_flush");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_worker_flush_nbx(pair.a->worker, &none)), UCS_OK, "worker_flush");
    UT_CHECK_STATUS(
            ut_wait_ptr(&pair, ucp_worker_flush_nb(pair.a->worker, 0, (ucp_send_callback_t)(void *)ut_clock_start)),
            UCS_OK, "worker_flush_nb");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_flush_nb(pair.a->ep, 0, (ucp_send_callback_t)(void *)ut_clock_start)),
                    UCS_OK, "ep_flush_nb");
}

static void put_and_get(const remote_t *remote)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *local              = malloc(remote->length);
    uint64_t address         = (uintptr_t)remote->memory;
    ucp_rkey_h rkey          = remote->rkey;
    ucp_send_callback_t cb   = (ucp_send_callback_t)(void *)ut_clock_start;

    did_begin(&did.put, 0);
    did_begin(&did.get, 0);
    ut_fill(local, remote->length, 1);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_put_nbx(pair.a->ep, local, remote->length, address, rkey, &none)), UCS_OK,
                    "put_nbx");
    flush();
    UT_CHECK(ut_verify(remote->memory, remote->length, 1) == SIZE_MAX, "put: wrong content");
    memset(local, 0, remote->length);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_get_nbx(pair.a->ep, local, remote->length, address, rkey, &none)), UCS_OK,
                    "get_nbx");
    UT_CHECK(ut_verify(local, remote->length, 1) == SIZE_MAX, "get: wrong content");

    did_begin(&did.put, 0);
    did_begin(&did.get, 0);
    ut_fill(local, remote->length, 2);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_put_nb(pair.a->ep, local, remote->length, address, rkey, cb)), UCS_OK,
                    "put_nb");
    flush();
    UT_CHECK(ut_verify(remote->memory, remote->length, 2) == SIZE_MAX, "put: wrong content");
    memset(local, 0, remote->length);
    UT_CHECK(!UCS_STATUS_IS_ERR(ucp_get_nbi(pair.a->ep, local, remote->length, address, rkey)), "get_nbi");
    flush();
    UT_CHECK(ut_verify(local, remote->length, 2) == SIZE_MAX, "get: wrong content");
    free(local);
}

static void remote_memory(void)
{
    static const size_t sizes[] = {8, 5000, 300000};
    remote_t remote;
    unsigned i;

    ut_pair_open(&pair, UCP_FEATURE_RMA);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        remote_open(&remote, sizes[i]);
        put_and_get(&remote);
        ut_exchange(&pair, sizes[i], i);
        remote_close(&remote);
    }
    ut_pair_close(&pair);
}

static void add_five_twice(const remote_t *remote)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                 .datatype     = ucp_dt_make_contig(8)};
    ucp_request_param_t post  = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(8)};
    uint64_t five = 5, before = 99;

    param.reply_buffer = &before;
    did_begin(&did.atomic, 0);
    did_begin(&did.atomic, 0);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_atomic_op_nbx(pair.a->ep, UCP_ATOMIC_OP_ADD, &five, 1,
                                                         (uintptr_t)remote->memory, remote->rkey, &post)),
                    UCS_OK, "atomic add");
    flush();
    UT_CHECK(*(uint64_t *)(void *)remote->memory == 5, "atomic add: wrong result");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_atomic_op_nbx(pair.a->ep, UCP_ATOMIC_OP_ADD, &five, 1,
                                                         (uintptr_t)remote->memory, remote->rkey, &param)),
                    UCS_OK, "atomic fetch and add");
    flush();
    UT_CHECK((before == 5) && (*(uint64_t *)(void *)remote->memory == 10), "atomic fetch and add: wrong result");
}

static void atomics(void)
{
    remote_t remote;

    ut_pair_open(&pair, UCP_FEATURE_AMO64 | UCP_FEATURE_RMA);
    remote_open(&remote, 64);
    add_five_twice(&remote);
    remote_close(&remote);
    ut_pair_close(&pair);
}

/* --------------------------------------------------------------- stream */

static void stream_one(size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_request_param_t all  = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    char *from = malloc(length), *to = calloc(1, length);
    ucs_status_ptr_t send, recv;
    size_t received = 0;

    did_begin(&did.stream, 0);
    ut_fill(from, length, seed);
    send = ucp_stream_send_nbx(pair.a->ep, from, length, &none);
    recv = ucp_stream_recv_nbx(pair.b->ep, to, length, &received, &all);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "stream_recv");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "stream_send");
    UT_CHECK(ut_verify(to, length, seed) == SIZE_MAX, "stream: wrong content");
    free(from);
    free(to);
}

static void stream(void)
{
    ut_pair_open(&pair, UCP_FEATURE_STREAM);
    stream_one(8, 1);
    ut_exchange(&pair, 1000, 1);
    stream_one(10000, 2);
    ut_exchange(&pair, 50000, 2);
    stream_one(200000, 3);
    ut_pair_close(&pair);
}

/* -------------------------------------------------- contexts without tags */

static void without_tags(void)
{
    ut_pair_t tagged;
    remote_t remote;

    ut_pair_open(&tagged, 0);
    ut_pair_open_with(&pair, UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_AMO64 | UCP_FEATURE_STREAM,
                      UCS_THREAD_MODE_SINGLE);
    remote_open(&remote, 20000);
    put_and_get(&remote);
    ut_exchange(&tagged, 1000, 1);
    all_am();
    am_of_all_layouts();
    ut_exchange(&tagged, 100000, 1);
    stream_one(10000, 1);
    remote_close(&remote);
    remote_open(&remote, 64);
    add_five_twice(&remote);
    remote_close(&remote);
    ut_pair_close(&pair);
    ut_pair_close(&tagged);
}

/* ---------------------------------------------------- flush of tag sends */

static void flush_after_sends(void)
{
    ut_data_t from, to;
    ut_op_t send[50], recv;
    unsigned i;

    ut_pair_open(&pair, 0);
    ut_data_open(&from, UT_CONTIG1, 1000);
    ut_data_open(&to, UT_CONTIG1, 1000);
    ut_data_fill(&from, 1);
    for (i = 0; i < 50; ++i) {
        ut_send(&send[i], pair.a, UT_SEND_NBX, &from, i);
    }
    flush();
    for (i = 0; i < 50; ++i) {
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, i, UT_TAG_ALL);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
    }
    if (strstr(getenv("UCX_TLS"), "tcp") == NULL) {
        /* these block: over tcp they may wait for the other side, which nobody progresses meanwhile */
        UT_CHECK_STATUS(ucp_worker_flush(pair.a->worker), UCS_OK, "ucp_worker_flush");
        UT_CHECK_STATUS(ucp_ep_flush(pair.a->ep), UCS_OK, "ucp_ep_flush");
    }
    UT_CHECK_STATUS(ucp_worker_fence(pair.a->worker), UCS_OK, "ucp_worker_fence");
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(active_messages), UT_TEST(remote_memory), UT_TEST(atomics),
                                  UT_TEST(stream),          UT_TEST(without_tags),  UT_TEST(flush_after_sends)};

int main(int argc, char **argv)
{
    int status = ut_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));

    printf("did: am %u put %u get %u atomic %u stream %u bytes %zu\n", did.am, did.put, did.get, did.atomic, did.stream,
           did.bytes);
    return status;
}
