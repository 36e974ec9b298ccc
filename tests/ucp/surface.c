/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that no other program here calls, each for what it promises: they pass through UCI, on workers that carry
 * tag messages too. tests/call_surface.py sees to it that none is forgotten.
 */
#include "ucp_test.h"

#include <netinet/in.h>
#include <unistd.h>

static ut_pair_t pair;

static void on_sent(void *request, ucs_status_t status)
{
}

/* Between what passes through, UCI's own way must go on */
static void exchange(void)
{
    static unsigned seed;

    ut_exchange(&pair, 100, ++seed);
    ut_exchange(&pair, 100000, ++seed);
}

static bool tls_has(const char *name)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strstr(tls, name) != NULL);
}

/* ------------------------------------------------- versions, settings, texts */

static void versions(void)
{
    unsigned major, minor, release;
    ucp_lib_attr_t attr = {.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL};
    char text[64];

    ucp_get_version(&major, &minor, &release);
    snprintf(text, sizeof(text), "%u.%u.%u", major, minor, release);
    UT_CHECK(strncmp(ucp_get_version_string(), text, strlen(text)) == 0, "version %s, string %s", text,
             ucp_get_version_string());
    UT_CHECK_STATUS(ucp_lib_query(&attr), UCS_OK, "ucp_lib_query");
    UT_CHECK(attr.max_thread_level <= UCS_THREAD_MODE_LAST, "thread level %d", attr.max_thread_level);
}

/* @return what a function prints, to be freed */
#define PRINTED(_text, _call) \
    do { \
        size_t size_; \
        FILE *stream = open_memstream(&(_text), &size_); \
        _call; \
        fclose(stream); \
    } while (0)

static void settings(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_config_t *config;
    ucp_context_h context;
    char *text;

    UT_CHECK_STATUS(ucp_config_read(NULL, NULL, &config), UCS_OK, "ucp_config_read");
    UT_CHECK_STATUS(ucp_config_modify(config, "RNDV_THRESH", "12345"), UCS_OK, "ucp_config_modify");
    PRINTED(text, ucp_config_print(config, stream, "title", UCS_CONFIG_PRINT_CONFIG));
    UT_CHECK(strstr(text, "RNDV_THRESH=") != NULL, "the settings are not printed");
    free(text);
    UT_CHECK_STATUS(ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context), UCS_OK,
                    "ucp_init_version");
    ucp_config_release(config);
    ucp_cleanup(context);
}

static void texts(void)
{
    char *text;

    ut_pair_open(&pair, UCP_FEATURE_RMA);
    exchange();
    PRINTED(text, ucp_context_print_info(pair.a->context, stream));
    UT_CHECK(strstr(text, "UCP context") != NULL, "ucp_context_print_info: %s", text);
    free(text);
    PRINTED(text, ucp_worker_print_info(pair.a->worker, stream));
    UT_CHECK(strstr(text, "UCP worker") != NULL, "ucp_worker_print_info: %s", text);
    free(text);
    PRINTED(text, ucp_ep_print_info(pair.a->ep, stream));
    UT_CHECK(strstr(text, "UCP endpoint") != NULL, "ucp_ep_print_info: %s", text);
    free(text);
    PRINTED(text, ucp_mem_print_info("4096", pair.a->context, stream));
    UT_CHECK(strstr(text, "UCP memory") != NULL, "ucp_mem_print_info: %s", text);
    free(text);
    exchange();
    ut_pair_close(&pair);
}

static void queries(void)
{
    ucp_ep_attr_t attr                 = {.field_mask = UCP_EP_ATTR_FIELD_NAME};
    ucp_ep_evaluate_perf_param_t param = {.field_mask = UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE, .message_size = 1000};
    ucp_ep_evaluate_perf_attr_t perf   = {.field_mask = UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME};
    ucp_ep_params_t none               = {.field_mask = 0};
    ucs_status_ptr_t modified;

    ut_pair_open(&pair, 0);
    UT_CHECK_STATUS(ucp_ep_query(pair.a->ep, &attr), UCS_OK, "ucp_ep_query");
    UT_CHECK_STATUS(ucp_ep_evaluate_perf(pair.a->ep, &param, &perf), UCS_OK, "ucp_ep_evaluate_perf");
    UT_CHECK(perf.estimated_time > 0, "estimated time %g", perf.estimated_time);
    modified = ucp_ep_modify_nb(pair.a->ep, &none);
    UT_CHECK(modified == NULL, "ucp_ep_modify_nb: %s", ucs_status_string(UCS_PTR_STATUS(modified)));
    exchange();
    ut_pair_close(&pair);
}

/* --------------------------------------------------------- remote memory */

typedef struct remote {
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    uint64_t *words; /* on side b */
} remote_t;

static void remote_open(remote_t *remote)
{
    ucp_mem_map_params_t map    = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .address = NULL,
                                   .length  = 4096,
                                   .flags   = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attr         = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH |
                                                 UCP_MEM_ATTR_FIELD_MEM_TYPE};
    ucp_mem_advise_params_t use = {.field_mask = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS |
                                                 UCP_MEM_ADVISE_PARAM_FIELD_LENGTH | UCP_MEM_ADVISE_PARAM_FIELD_ADVICE,
                                   .length = 4096,
                                   .advice = UCP_MADV_WILLNEED};
    size_t key_length;
    void *key;

    UT_REQUIRE(ucp_mem_map(pair.b->context, &map, &remote->memh) == UCS_OK, "ucp_mem_map");
    UT_CHECK_STATUS(ucp_mem_query(remote->memh, &attr), UCS_OK, "ucp_mem_query");
    UT_CHECK((attr.length >= 4096) && (attr.mem_type == UCS_MEMORY_TYPE_HOST), "%zu bytes of type %d", attr.length,
             attr.mem_type);
    use.address = remote->words = attr.address;
    UT_CHECK_STATUS(ucp_mem_advise(pair.b->context, remote->memh, &use), UCS_OK, "ucp_mem_advise");
    UT_REQUIRE(ucp_rkey_pack(pair.b->context, remote->memh, &key, &key_length) == UCS_OK, "ucp_rkey_pack");
    UT_REQUIRE(ucp_ep_rkey_unpack(pair.a->ep, key, &remote->rkey) == UCS_OK, "ucp_ep_rkey_unpack");
    ucp_rkey_buffer_release(key);
}

static void remote_close(remote_t *remote)
{
    ucp_rkey_destroy(remote->rkey);
    UT_CHECK_STATUS(ucp_mem_unmap(pair.b->context, remote->memh), UCS_OK, "ucp_mem_unmap");
}

static void flush(void)
{
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_worker_flush_nb(pair.a->worker, 0, on_sent)), UCS_OK, "worker_flush_nb");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_flush_nb(pair.a->ep, 0, on_sent)), UCS_OK, "ep_flush_nb");
}

/* Those that block make progress on one side only: to one's own worker, so that this is both */
static void blocking_rma(void)
{
    remote_t remote;
    uint64_t word = 77, back = 0, *mapped;
    uint64_t at;

    ut_pair_open_self(&pair, UCP_FEATURE_RMA);
    remote_open(&remote);
    at = (uint64_t)(uintptr_t)remote.words;
    UT_CHECK_STATUS(ucp_put(pair.a->ep, &word, sizeof(word), at, remote.rkey), UCS_OK, "ucp_put");
    UT_CHECK_STATUS(ucp_worker_flush(pair.a->worker), UCS_OK, "ucp_worker_flush");
    UT_CHECK(remote.words[0] == 77, "ucp_put wrote %lu", (unsigned long)remote.words[0]);
    UT_CHECK_STATUS(ucp_get(pair.a->ep, &back, sizeof(back), at, remote.rkey), UCS_OK, "ucp_get");
    UT_CHECK(back == 77, "ucp_get read %lu", (unsigned long)back);
    exchange();
    if (ucp_rkey_ptr(remote.rkey, at, (void **)&mapped) == UCS_OK) {
        UT_CHECK(*mapped == 77, "ucp_rkey_ptr shows %lu", (unsigned long)*mapped);
    }
    remote_close(&remote);
    ut_pair_close(&pair);
}

static void nonblocking_rma(void)
{
    remote_t remote;
    uint64_t word = 78, back = 0, at;
    ucs_status_t status;

    ut_pair_open(&pair, UCP_FEATURE_RMA);
    remote_open(&remote);
    at     = (uint64_t)(uintptr_t)remote.words;
    status = ucp_put_nbi(pair.a->ep, &word, sizeof(word), at, remote.rkey);
    UT_CHECK((status == UCS_OK) || (status == UCS_INPROGRESS), "ucp_put_nbi: %s", ucs_status_string(status));
    flush();
    UT_CHECK(remote.words[0] == 78, "ucp_put_nbi wrote %lu", (unsigned long)remote.words[0]);
    exchange();
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_get_nb(pair.a->ep, &back, sizeof(back), at, remote.rkey, on_sent)), UCS_OK,
                    "ucp_get_nb");
    UT_CHECK(back == 78, "ucp_get_nb read %lu", (unsigned long)back);
    back   = 0;
    status = ucp_get_nbi(pair.a->ep, &back, sizeof(back), at, remote.rkey);
    UT_CHECK((status == UCS_OK) || (status == UCS_INPROGRESS), "ucp_get_nbi: %s", ucs_status_string(status));
    flush();
    UT_CHECK(back == 78, "ucp_get_nbi read %lu", (unsigned long)back);
    word = 79;
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_put_nb(pair.a->ep, &word, sizeof(word), at, remote.rkey, on_sent)), UCS_OK,
                    "ucp_put_nb");
    flush();
    UT_CHECK(remote.words[0] == 79, "ucp_put_nb wrote %lu", (unsigned long)remote.words[0]);
    remote_close(&remote);
    ut_pair_close(&pair);
}

static void atomics_of_32(const remote_t *remote)
{
    uint32_t *word = (uint32_t *)remote->words, old = 0;
    uint64_t at = (uint64_t)(uintptr_t)word;

    *word = 1;
    UT_CHECK_STATUS(ucp_atomic_add32(pair.a->ep, 4, at, remote->rkey), UCS_OK, "ucp_atomic_add32");
    UT_CHECK_STATUS(ucp_atomic_fadd32(pair.a->ep, 5, at, remote->rkey, &old), UCS_OK, "ucp_atomic_fadd32");
    UT_CHECK((old == 5) && (*word == 10), "add32: old %u, now %u", old, *word);
    UT_CHECK_STATUS(ucp_atomic_swap32(pair.a->ep, 20, at, remote->rkey, &old), UCS_OK, "ucp_atomic_swap32");
    UT_CHECK((old == 10) && (*word == 20), "swap32: old %u, now %u", old, *word);
    UT_CHECK_STATUS(ucp_atomic_cswap32(pair.a->ep, 20, 30, at, remote->rkey, &old), UCS_OK, "ucp_atomic_cswap32");
    UT_CHECK((old == 20) && (*word == 30), "cswap32: old %u, now %u", old, *word);
}

static void atomics_of_64(const remote_t *remote)
{
    uint64_t *word = remote->words, old = 0, at = (uint64_t)(uintptr_t)word;

    *word = 1;
    UT_CHECK_STATUS(ucp_atomic_add64(pair.a->ep, 4, at, remote->rkey), UCS_OK, "ucp_atomic_add64");
    UT_CHECK_STATUS(ucp_atomic_fadd64(pair.a->ep, 5, at, remote->rkey, &old), UCS_OK, "ucp_atomic_fadd64");
    UT_CHECK((old == 5) && (*word == 10), "add64: old %lu", (unsigned long)old);
    UT_CHECK_STATUS(ucp_atomic_swap64(pair.a->ep, 20, at, remote->rkey, &old), UCS_OK, "ucp_atomic_swap64");
    UT_CHECK((old == 10) && (*word == 20), "swap64: old %lu", (unsigned long)old);
    UT_CHECK_STATUS(ucp_atomic_cswap64(pair.a->ep, 20, 30, at, remote->rkey, &old), UCS_OK, "ucp_atomic_cswap64");
    UT_CHECK((old == 20) && (*word == 30), "cswap64: old %lu", (unsigned long)old);
    UT_CHECK_STATUS(ucp_atomic_post(pair.a->ep, UCP_ATOMIC_POST_OP_ADD, 3, 8, at, remote->rkey), UCS_OK,
                    "ucp_atomic_post");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_atomic_fetch_nb(pair.a->ep, UCP_ATOMIC_FETCH_OP_FADD, 4, &old, 8, at,
                                                           remote->rkey, on_sent)),
                    UCS_OK, "ucp_atomic_fetch_nb");
    UT_CHECK((old == 33) && (*word == 37), "fetch_nb: old %lu", (unsigned long)old);
}

static void atomics(void)
{
    remote_t remote;

    ut_pair_open_self(&pair, UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64);
    remote_open(&remote);
    atomics_of_32(&remote);
    exchange();
    atomics_of_64(&remote);
    remote_close(&remote);
    ut_pair_close(&pair);
}

/* -------------------------------------------------------- streams, old forms */

static void on_stream_recv(void *request, ucs_status_t status, size_t length)
{
}

static void old_streams(void)
{
    ucp_stream_poll_ep_t polled[2];
    char from[1000], to[1000];
    ucs_status_ptr_t ptr, sent;
    size_t length = 0;
    void *data;

    ut_pair_open(&pair, UCP_FEATURE_STREAM);
    ut_fill(from, sizeof(from), 1);
    sent = ucp_stream_send_nb(pair.a->ep, from, sizeof(from), ucp_dt_make_contig(1), on_sent, 0);
    ut_clock_start();
    while (ucp_stream_worker_poll(pair.b->worker, polled, 2, 0) == 0) {
        ut_progress(&pair);
        ut_clock_check("ucp_stream_worker_poll");
    }
    UT_CHECK(polled[0].ep == pair.b->ep, "another endpoint has data");
    data = ucp_stream_recv_data_nb(pair.b->ep, &length);
    UT_CHECK(UCS_PTR_IS_PTR(data) && (length > 0) && (length <= sizeof(from)), "ucp_stream_recv_data_nb: %zu bytes",
             length);
    UT_CHECK(memcmp(data, from, length) == 0, "wrong content");
    ucp_stream_data_release(pair.b->ep, data);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, sent), UCS_OK, "ucp_stream_send_nb");
    exchange();

    length = 0;
    ptr    = ucp_stream_recv_nb(pair.b->ep, to, sizeof(to), ucp_dt_make_contig(1), on_stream_recv, &length,
                                UCP_STREAM_RECV_FLAG_WAITALL);
    UT_CHECK(UCS_PTR_IS_PTR(ptr), "ucp_stream_recv_nb of what was not sent");
    sent = ucp_stream_send_nb(pair.a->ep, from, sizeof(from), ucp_dt_make_contig(1), on_sent, 0);
    ut_clock_start();
    while (ucp_stream_recv_request_test(ptr, &length) == UCS_INPROGRESS) {
        ut_progress(&pair);
        ut_clock_check("ucp_stream_recv_nb");
    }
    UT_CHECK((length == sizeof(to)) && (ut_verify(to, length, 1) == SIZE_MAX), "%zu bytes", length);
    ucp_request_free(ptr);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, sent), UCS_OK, "ucp_stream_send_nb");
    exchange();
    ut_pair_close(&pair);
}

/* ------------------------------------------------------ active messages */

static void *kept;
static size_t kept_length;

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
        return UCS_OK;
    }
    kept        = data;
    kept_length = length;
    return UCS_INPROGRESS;
}

/* Data that the program keeps for a while */
static void kept_data(void)
{
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                      .id    = 3,
                                      .cb    = on_am,
                                      .flags = UCP_AM_FLAG_PERSISTENT_DATA};
    ucp_request_param_t eager      = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_EAGER};
    char from[3000];

    ut_pair_open(&pair, UCP_FEATURE_AM);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &handler), UCS_OK, "set_am_recv_handler");
    ut_fill(from, sizeof(from), 5);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_am_send_nbx(pair.a->ep, 3, NULL, 0, from, sizeof(from), &eager)), UCS_OK,
                    "ucp_am_send_nbx");
    ut_clock_start();
    while (kept == NULL) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    exchange();
    UT_CHECK((kept_length == sizeof(from)) && (ut_verify(kept, kept_length, 5) == SIZE_MAX), "%zu bytes", kept_length);
    ucp_am_data_release(pair.b->worker, kept);
    ut_pair_close(&pair);
}

/* ------------------------------------------------- what later versions have */

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
static void datatype_query(void)
{
    ucp_datatype_attr_t attr = {.field_mask = UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE | UCP_DATATYPE_ATTR_FIELD_COUNT,
                                .count      = 3};

    UT_CHECK_STATUS(ucp_dt_query(ucp_dt_make_contig(8), &attr), UCS_OK, "ucp_dt_query");
    UT_CHECK(attr.packed_size == 24, "3 times 8 bytes are %zu", attr.packed_size);
}

static void memory_handles(void)
{
    ucp_memh_pack_params_t params = {.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS, .flags = UCP_MEMH_PACK_FLAG_EXPORT};
    ucp_memh_buffer_release_params_t leave = {.field_mask = 0};
    remote_t remote;
    ucs_status_t status;
    size_t length;
    void *packed;

    ut_pair_open(&pair, UCP_FEATURE_RMA);
    remote_open(&remote);
    status = ucp_memh_pack(remote.memh, &params, &packed, &length);
    if (status == UCS_OK) {
        UT_CHECK(length > 0, "a packed handle of %zu bytes", length);
        ucp_memh_buffer_release(packed, &leave);
    } else {
        /* few devices export memory, and a context that asks for it does without the others */
        UT_CHECK((status == UCS_ERR_UNSUPPORTED) || (status == UCS_ERR_INVALID_PARAM), "ucp_memh_pack: %s",
                 ucs_status_string(status));
    }
    exchange();
    remote_close(&remote);
    ut_pair_close(&pair);
}
#endif

#if UCP_API_VERSION >= UCP_VERSION(1, 16)
static void key_compare(void)
{
    ucp_rkey_compare_params_t params = {.field_mask = 0};
    remote_t remote;
    int result = 1;

    ut_pair_open(&pair, UCP_FEATURE_RMA);
    remote_open(&remote);
    UT_CHECK_STATUS(ucp_rkey_compare(pair.a->worker, remote.rkey, remote.rkey, &params, &result), UCS_OK,
                    "ucp_rkey_compare");
    UT_CHECK(result == 0, "a key differs from itself");
    remote_close(&remote);
    ut_pair_close(&pair);
}
#endif

/* ------------------------------------------------------------- listening */

static ucp_conn_request_h caller;

static void on_connection(ucp_conn_request_h request, void *arg)
{
    caller = request;
}

/* @param address  of a worker, named beside the socket's, or NULL: UCX takes the socket's */
static ucp_ep_h connect_to(ucp_worker_h worker, ucp_listener_h listener, const ucp_address_t *address)
{
    ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    ucp_ep_params_t params   = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                              UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                .flags            = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                                .err_mode         = UCP_ERR_HANDLING_MODE_PEER,
                                .sockaddr.addr    = (struct sockaddr *)&attr.sockaddr,
                                .sockaddr.addrlen = sizeof(struct sockaddr_in)};
    ucp_ep_h ep              = NULL;

    if (address != NULL) {
        params.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = address;
    }
    UT_CHECK_STATUS(ucp_listener_query(listener, &attr), UCS_OK, "ucp_listener_query");
    ((struct sockaddr_in *)&attr.sockaddr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UT_REQUIRE(ucp_ep_create(worker, &params, &ep) == UCS_OK, "ucp_ep_create by socket address");
    return ep;
}

static void await_caller(void)
{
    ut_clock_start();
    while (caller == NULL) {
        ut_progress(&pair);
        ut_clock_check("a connection");
    }
}

/* Client and server, as programs that are not MPI connect */
static void connect_by_socket(bool is_address_named)
{
    struct sockaddr_in address   = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                                                  UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .sockaddr        = {(struct sockaddr *)&address, sizeof(address)},
                                    .conn_handler.cb = on_connection};
    ucp_ep_params_t accept    = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                 .err_mode   = UCP_ERR_HANDLING_MODE_PEER};
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ut_side_t server          = {0};
    ucp_address_t *address_of_worker = NULL;
    ucp_listener_h listener;
    size_t length;
    unsigned i;

    if (!tls_has("tcp")) {
        return;
    }
    caller          = NULL;
    pair.a          = &pair.sides[0];
    pair.b          = &pair.sides[1];
    pair.a->context = ut_context_create(UCP_FEATURE_TAG);
    server.context  = ut_context_create(UCP_FEATURE_TAG);
    pair.a->worker  = ut_worker_create(pair.a->context);
    server.worker   = ut_worker_create(server.context);
    *pair.b         = server;
    UT_CHECK_STATUS(ucp_listener_create(pair.b->worker, &params, &listener), UCS_OK, "ucp_listener_create");
    if (is_address_named) {
        UT_CHECK_STATUS(ucp_worker_get_address(pair.b->worker, &address_of_worker, &length), UCS_OK,
                        "ucp_worker_get_address");
        accept.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        accept.address = address_of_worker;
    }
    pair.a->ep = connect_to(pair.a->worker, listener, address_of_worker);
    await_caller();
    accept.conn_request = caller;
    UT_REQUIRE(ucp_ep_create(pair.b->worker, &accept, &pair.b->ep) == UCS_OK, "ucp_ep_create by request");
    for (i = 0; i < 10; ++i) {
        ut_exchange(&pair, (size_t)1 << (2 * i), i);
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nbx(pair.a->ep, &force)), UCS_OK, "ucp_ep_close_nbx");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nbx(pair.b->ep, &force)), UCS_OK, "ucp_ep_close_nbx");
    if (is_address_named) {
        ucp_worker_release_address(pair.b->worker, address_of_worker);
    }
    ucp_listener_destroy(listener);
    ucp_worker_destroy(pair.a->worker);
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
    ucp_cleanup(pair.b->context);
    caller = NULL;
}

static void by_socket_address(void)
{
    connect_by_socket(false);
}

static void by_socket_address_beside_another(void)
{
    connect_by_socket(true);
}

/* A program may listen, beside what it does by worker address, and reject who calls */
static void listening(void)
{
    struct sockaddr_in address           = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ucp_listener_params_t params         = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                                                          UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                            .sockaddr        = {(struct sockaddr *)&address, sizeof(address)},
                                            .conn_handler.cb = on_connection};
    ucp_listener_attr_t attr             = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    ucp_conn_request_attr_t request_attr = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};
    ucp_ep_params_t ep_params            = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                            .flags    = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                                            .err_mode = UCP_ERR_HANDLING_MODE_PEER};
    ucp_listener_h listener;
    ucp_context_h client_context;
    ucp_worker_h client;
    ucs_status_t status;
    ucp_ep_h ep;

    if (!tls_has("tcp")) {
        return;
    }
    ut_pair_open(&pair, 0);
    UT_CHECK_STATUS(ucp_listener_create(pair.b->worker, &params, &listener), UCS_OK, "ucp_listener_create");
    UT_CHECK_STATUS(ucp_listener_query(listener, &attr), UCS_OK, "ucp_listener_query");
    ((struct sockaddr_in *)&attr.sockaddr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ep_params.sockaddr.addr                                 = (struct sockaddr *)&attr.sockaddr;
    ep_params.sockaddr.addrlen                              = sizeof(struct sockaddr_in);

    client_context = ut_context_create(UCP_FEATURE_STREAM);
    client         = ut_worker_create(client_context);
    status         = ucp_ep_create(client, &ep_params, &ep);
    UT_CHECK_STATUS(status, UCS_OK, "ucp_ep_create of a context without tags");
    ut_clock_start();
    while ((status == UCS_OK) && (caller == NULL)) {
        ut_progress(&pair);
        ucp_worker_progress(client);
        ut_clock_check("a connection");
    }
    if (caller != NULL) {
        UT_CHECK_STATUS(ucp_conn_request_query(caller, &request_attr), UCS_OK, "ucp_conn_request_query");
        UT_CHECK_STATUS(ucp_listener_reject(listener, caller), UCS_OK, "ucp_listener_reject");
    }
    exchange();
    ucp_worker_destroy(client);
    ucp_cleanup(client_context);
    ucp_listener_destroy(listener);
    ut_pair_close(&pair);
}

/* Other threads may be reading the environment: it stays where it is. The first test: what is set once is set */
static void environment(void)
{
    char **before         = environ;
    ucp_context_h context = ut_context_create(UCP_FEATURE_TAG);
    const char *size      = getenv("UCX_TCP_TX_SEG_SIZE");

    UT_CHECK(environ == before, "ucp_init has moved the environment");
    if (ut_uci_is_on() && tls_has("tcp")) {
        UT_CHECK((size != NULL) && (strcmp(size, "64k") == 0), "UCX_TCP_TX_SEG_SIZE");
    }
    ucp_cleanup(context);
}

static const ut_test_t tests[] = {
        UT_TEST(environment),     UT_TEST(versions),          UT_TEST(settings),
        UT_TEST(texts),           UT_TEST(queries),           UT_TEST(blocking_rma),
        UT_TEST(nonblocking_rma), UT_TEST(atomics),           UT_TEST(old_streams),
        UT_TEST(kept_data),
#if UCP_API_VERSION >= UCP_VERSION(1, 14)
        UT_TEST(datatype_query),  UT_TEST(memory_handles),
#endif
#if UCP_API_VERSION >= UCP_VERSION(1, 16)
        UT_TEST(key_compare),
#endif
        UT_TEST(listening),       UT_TEST(by_socket_address), UT_TEST(by_socket_address_beside_another)};

UT_MAIN(tests)
