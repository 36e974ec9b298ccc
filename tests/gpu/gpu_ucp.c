/* SPDX-License-Identifier: BSD-3-Clause
 *
 * UCX's own interface with memory of all kinds at both ends, whose types nobody tells: tag messages (contiguous and in pieces), active
 * messages, streams, puts and gets. Nothing of UCI's is expected.
 *
 * What UCX 1.13.1 does, and its documents do not say: memory types are looked up in a cache, which does not know memory that is older than
 * the first context.
 */
#include "../ucp/ucp_test.h"

#include "gpu.h"

enum { LARGEST = 5 << 20, GUARD = 64, PIECES = 3 };

static const size_t sizes[] = {0, 1, 8, 100, 2000, 4097, 8192, 8193, 70000, 300000, 1000000, LARGEST};

static ut_pair_t pair;
static char *shadow;
static unsigned seed;

typedef struct memory {
    gpu_kind_t kind;
    char *base, *data;
    size_t length;
} memory_t;

static void memory_open(memory_t *memory, gpu_kind_t kind, size_t length)
{
    *memory      = (memory_t){.kind = kind, .base = gpu_alloc(kind, length + (2 * GUARD)), .length = length};
    memory->data = memory->base + GUARD;
    memset(shadow, 0x5a, length + (2 * GUARD));
    gpu_copy(memory->base, shadow, length + (2 * GUARD));
}

static void memory_fill(const memory_t *memory)
{
    ut_fill(shadow, memory->length, seed);
    gpu_copy(memory->data, shadow, memory->length);
}

static void memory_check(const memory_t *memory, const char *what, gpu_kind_t from)
{
    gpu_copy(shadow, memory->base, memory->length + (2 * GUARD));
    UT_CHECK(ut_verify(shadow + GUARD, memory->length, seed) == SIZE_MAX, "%s from %s to %s, %zu bytes: wrong content",
             what, gpu_kind_names[from], gpu_kind_names[memory->kind], memory->length);
    UT_CHECK((ut_verify_value(shadow, GUARD, 0x5a) == SIZE_MAX) &&
                     (ut_verify_value(shadow + GUARD + memory->length, GUARD, 0x5a) == SIZE_MAX),
             "%s from %s to %s, %zu bytes: what is beside them was touched", what, gpu_kind_names[from],
             gpu_kind_names[memory->kind], memory->length);
}

static void memory_close(memory_t *memory)
{
    gpu_free(memory->kind, memory->base);
}

typedef void (*exchange_t)(memory_t *from, memory_t *to);

static void all_of(exchange_t exchange, const char *what)
{
    gpu_kind_t from_kind, to_kind;
    memory_t from, to;
    size_t i;

    for (from_kind = 0; from_kind < GPU_KINDS; ++from_kind) {
        for (to_kind = 0; to_kind < GPU_KINDS; ++to_kind) {
            for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i, ++seed) {
                memory_open(&from, from_kind, sizes[i]);
                memory_open(&to, to_kind, sizes[i]);
                memory_fill(&from);
                exchange(&from, &to);
                memory_check(&to, what, from_kind);
                memory_close(&from);
                memory_close(&to);
            }
        }
    }
}

static void open_pair(uint64_t features)
{
    const char *why;

    ut_pair_open_as(&pair, features, &(ucp_worker_params_t){.field_mask = 0});
    why = gpu_start();
    UT_REQUIRE(why == NULL, "%s", why);
    shadow = malloc(LARGEST + (2 * GUARD));
}

static void close_pair(void)
{
    ut_settle(&pair);
    ut_pair_close(&pair);
    free(shadow);
}

static void wait_both(ucs_status_ptr_t send, ucs_status_ptr_t recv)
{
    UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "a receive");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "a send");
}

/* ---------------------------------------------------------------- tags */

static void tag_exchange(memory_t *from, memory_t *to)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t recv    = ucp_tag_recv_nbx(pair.b->worker, to->data, to->length, 7, UT_TAG_ALL, &none);

    wait_both(ucp_tag_send_nbx(pair.a->ep, from->data, from->length, 7, &none), recv);
}

static void tag_sync_unexpected(memory_t *from, memory_t *to)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t send    = ucp_tag_send_sync_nbx(pair.a->ep, from->data, from->length, 7, &none);

    ut_settle(&pair);
    wait_both(send, ucp_tag_recv_nbx(pair.b->worker, to->data, to->length, 7, UT_TAG_ALL, &none));
}

static void cut(ucp_dt_iov_t *iov, const memory_t *memory, size_t first)
{
    size_t second = (memory->length - first) / 2;

    iov[0] = (ucp_dt_iov_t){.buffer = memory->data, .length = first};
    iov[1] = (ucp_dt_iov_t){.buffer = memory->data + first, .length = second};
    iov[2] = (ucp_dt_iov_t){.buffer = memory->data + first + second, .length = memory->length - first - second};
}

static void tag_pieces(memory_t *from, memory_t *to)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_iov()};
    ucp_dt_iov_t out[PIECES], in[PIECES];
    ucs_status_ptr_t recv;

    cut(out, from, from->length / 3);
    cut(in, to, to->length / 5);
    recv = ucp_tag_recv_nbx(pair.b->worker, in, PIECES, 7, UT_TAG_ALL, &param);
    wait_both(ucp_tag_send_nbx(pair.a->ep, out, PIECES, 7, &param), recv);
}

static void tags(void)
{
    open_pair(UCP_FEATURE_TAG);
    all_of(tag_exchange, "tag");
    all_of(tag_sync_unexpected, "tag, synchronous");
    close_pair();
}

static void pieces(void)
{
    open_pair(UCP_FEATURE_TAG);
    all_of(tag_pieces, "tag, in pieces");
    close_pair();
}

/* ----------------------------------------------------- active messages */

static memory_t *am_to;
static void *am_desc;
static bool am_arrived;

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    UT_CHECK((header_length == 4) && (memcmp(header, "head", 4) == 0), "wrong header");
    UT_CHECK(length == am_to->length, "%zu bytes of %zu", length, am_to->length);
    am_arrived = true;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_desc = data;
        return UCS_INPROGRESS;
    }
    gpu_copy(am_to->data, data, length);
    return UCS_OK;
}

static void am_exchange_flags(memory_t *from, memory_t *to, unsigned flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucs_status_ptr_t send;

    am_to      = to;
    am_desc    = NULL;
    am_arrived = false;
    send       = ucp_am_send_nbx(pair.a->ep, 3, "head", 4, from->data, from->length, &param);
    ut_clock_start();
    while (!am_arrived) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    wait_both(send,
              (am_desc == NULL) ? NULL : ucp_am_recv_data_nbx(pair.b->worker, am_desc, to->data, to->length, &none));
}

static void am_any(memory_t *from, memory_t *to)
{
    am_exchange_flags(from, to, 0);
}

static void am_rendezvous(memory_t *from, memory_t *to)
{
    am_exchange_flags(from, to, UCP_AM_SEND_FLAG_RNDV);
}

static void open_am(void)
{
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 3, .cb = on_message};

    open_pair(UCP_FEATURE_AM);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &handler), UCS_OK, "a handler");
}

static void messages(void)
{
    open_am();
    all_of(am_any, "active message");
    close_pair();
}

static void messages_rendezvous(void)
{
    open_am();
    all_of(am_rendezvous, "active message by rendezvous");
    close_pair();
}

/* ------------------------------------------------------------- streams */

static void stream_exchange(memory_t *from, memory_t *to)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_request_param_t all  = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    ucs_status_ptr_t send    = ucp_stream_send_nbx(pair.a->ep, from->data, from->length, &none);
    size_t length;

    if (to->length > 0) {
        wait_both(send, ucp_stream_recv_nbx(pair.b->ep, to->data, to->length, &length, &all));
    } else {
        wait_both(send, NULL);
    }
}

static void streams(void)
{
    open_pair(UCP_FEATURE_STREAM);
    all_of(stream_exchange, "stream");
    close_pair();
}

/* ----------------------------------------------------------- one-sided */

static void one_sided(memory_t *local, memory_t *remote, bool is_put)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .address    = remote->base,
                                .length     = remote->length + (2 * GUARD)};
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    size_t length;
    void *packed;

    UT_REQUIRE(ucp_mem_map(pair.b->context, &map, &memh) == UCS_OK, "ucp_mem_map");
    UT_REQUIRE(ucp_rkey_pack(pair.b->context, memh, &packed, &length) == UCS_OK, "ucp_rkey_pack");
    UT_REQUIRE(ucp_ep_rkey_unpack(pair.a->ep, packed, &rkey) == UCS_OK, "ucp_ep_rkey_unpack");
    ucp_rkey_buffer_release(packed);
    if (is_put) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_put_nbx(pair.a->ep, local->data, local->length, (uintptr_t)remote->data,
                                                       rkey, &none)),
                        UCS_OK, "a put");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_flush_nbx(pair.a->ep, &none)), UCS_OK, "a flush");
    } else {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_get_nbx(pair.a->ep, local->data, local->length, (uintptr_t)remote->data,
                                                       rkey, &none)),
                        UCS_OK, "a get");
    }
    ucp_rkey_destroy(rkey);
    UT_CHECK_STATUS(ucp_mem_unmap(pair.b->context, memh), UCS_OK, "ucp_mem_unmap");
}

static void put(memory_t *from, memory_t *to)
{
    one_sided(from, to, true);
}

static void get(memory_t *from, memory_t *to)
{
    one_sided(to, from, false);
}

static void puts_(void)
{
    open_pair(UCP_FEATURE_RMA);
    all_of(put, "put");
    close_pair();
}

static void gets_(void)
{
    open_pair(UCP_FEATURE_RMA);
    all_of(get, "get");
    close_pair();
}

static const ut_test_t tests[] = {UT_TEST(tags),    UT_TEST(pieces), UT_TEST(messages), UT_TEST(messages_rendezvous),
                                  UT_TEST(streams), UT_TEST(puts_),  UT_TEST(gets_)};

UT_MAIN(tests)
