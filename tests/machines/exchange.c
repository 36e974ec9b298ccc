/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two workers in one process that talk to each other by everything UCX has, and take an error for an answer: what they are told is complete has to be right, what is
 * refused need not be there. usage: exchange ROUNDS. Exit status: 0 all was carried out; 3 something was refused; 1 something is wrong; 4 something did not end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

#define LIMIT_S 20
#define LARGE   ((size_t)2 << 20)

typedef struct side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
} side_t;

static side_t sides[2];
static unsigned refused, wrong;
static char *from, *into;
static const char *doing = "nothing";

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + ((double)time.tv_nsec * 1e-9);
}

static void refuse(ucs_status_t status)
{
    printf("refused %s: %s\n", doing, ucs_status_string(status));
    ++refused;
}

static void turn(void)
{
    static double begin;

    begin = (begin == 0) ? now() : begin;
    if (now() - begin > LIMIT_S) {
        printf("does not end: %s\n", doing);
        exit(4);
    }
    ucp_worker_progress(sides[0].worker);
    ucp_worker_progress(sides[1].worker);
}

/* @return UCS_OK or an error. One that is refused on the other side may never end: it is cancelled after a while. */
static ucs_status_t finish(ucs_status_ptr_t request, ucp_worker_h worker, bool may_cancel)
{
    double begin = now();
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        turn();
        if (may_cancel && (now() - begin > 0.2)) {
            ucp_request_cancel(worker, request);
        }
    }
    ucp_request_free(request);
    return status;
}

static void fill(size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        from[i] = (char)((i * 7) + (i >> 8) + seed);
    }
    memset(into, 0x55, length);
}

static void compare(size_t length)
{
    if (memcmp(from, into, length) != 0) {
        printf("wrong: %s, %zu bytes\n", doing, length);
        ++wrong;
    }
}

/* Both ends of one: what is sent is right where it has been received */
static void settle(ucs_status_ptr_t send, ucs_status_ptr_t recv, size_t length)
{
    ucs_status_t sent = UCS_PTR_IS_ERR(send) ? UCS_PTR_STATUS(send) : UCS_OK, received;

    if (sent == UCS_OK) {
        received = finish(recv, sides[1].worker, false);
        sent     = finish(send, sides[0].worker, false);
    } else {
        received = finish(recv, sides[1].worker, true);
    }
    if (sent != UCS_OK) {
        refuse(sent);
    } else if (received != UCS_OK) {
        refuse(received);
    }
    if (received == UCS_OK) {
        compare(length);
    }
}

/* ------------------------------------------------------------------ tags */

static void tags(size_t length, bool is_early, bool is_synchronous)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t send, recv = NULL;
    unsigned i;

    doing = is_synchronous ? "a synchronous message" : is_early ? "a message before its receive" : "a message";
    fill(length, 1);
    if (!is_early) {
        recv = ucp_tag_recv_nbx(sides[1].worker, into, length, 5, UINT64_MAX, &param);
    }
    send = is_synchronous ? ucp_tag_send_sync_nbx(sides[0].ep, from, length, 5, &param)
                          : ucp_tag_send_nbx(sides[0].ep, from, length, 5, &param);
    if (is_early) {
        for (i = 0; i < 100; ++i) {
            turn();
        }
        recv = ucp_tag_recv_nbx(sides[1].worker, into, length, 5, UINT64_MAX, &param);
    }
    if (UCS_PTR_IS_ERR(recv)) { /* what was sent to it is taken all the same, so that it is not the next one's */
        refuse(UCS_PTR_STATUS(recv));
        recv = ucp_tag_recv_nbx(sides[1].worker, into, length, 5, UINT64_MAX, &param);
    }
    settle(send, recv, length);
}

/* ------------------------------------------------------- active messages */

static bool am_came;
static void *am_descriptor;
static size_t am_length;

static ucs_status_t am_handler(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_came   = true;
    am_length = length;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_descriptor = data;
        return UCS_INPROGRESS;
    }
    memcpy(into, data, length);
    return UCS_OK;
}

static void active_message(size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY};
    ucp_request_param_t none  = {0};
    double begin              = now();
    ucs_status_ptr_t send;
    ucs_status_t status;

    doing = "an active message";
    fill(length, 2);
    am_came       = false;
    am_descriptor = NULL;
    send          = ucp_am_send_nbx(sides[0].ep, 3, "head", 4, from, length, &param);
    while (!am_came && !UCS_PTR_IS_ERR(send) && (!UCS_PTR_IS_PTR(send) || (ucp_request_check_status(send) >= UCS_OK))) {
        turn();
    }
    while (!am_came && !UCS_PTR_IS_ERR(send) && (now() - begin < 0.2)) {
        turn();
    }
    if (am_descriptor != NULL) {
        status = finish(ucp_am_recv_data_nbx(sides[1].worker, am_descriptor, into, length, &none), sides[1].worker,
                        false);
        if (status != UCS_OK) {
            refuse(status);
            am_came = false;
        }
    }
    status = finish(send, sides[0].worker, false);
    if (status != UCS_OK) {
        refuse(status);
    }
    if (am_came) {
        compare(length);
    }
}

/* -------------------------------------------------------------- one-sided */

static void one_sided(size_t length)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .address    = into,
                                .length     = LARGE};
    ucp_request_param_t none = {0};
    ucp_mem_h memory;
    ucp_rkey_h key;
    size_t size;
    void *packed;
    ucs_status_t status;

    doing  = "mapping memory";
    status = ucp_mem_map(sides[1].context, &map, &memory);
    if (status != UCS_OK) {
        refuse(status);
        return;
    }
    doing  = "packing a key";
    status = ucp_rkey_pack(sides[1].context, memory, &packed, &size);
    if (status != UCS_OK) {
        goto unmap;
    }
    doing  = "unpacking a key";
    status = ucp_ep_rkey_unpack(sides[0].ep, packed, &key);
    ucp_rkey_buffer_release(packed);
    if (status != UCS_OK) {
        goto unmap;
    }
    doing = "a put";
    fill(length, 3);
    status = finish(ucp_put_nbx(sides[0].ep, from, length, (uint64_t)(uintptr_t)into, key, &none), sides[0].worker,
                    false);
    if (status == UCS_OK) {
        status = finish(ucp_ep_flush_nbx(sides[0].ep, &none), sides[0].worker, false);
    }
    if (status == UCS_OK) {
        compare(length);
    } else {
        refuse(status);
    }
    doing = "a get";
    fill(length, 4);
    memcpy(into, from, length);
    memset(from, 0x66, length);
    status = finish(ucp_get_nbx(sides[0].ep, from, length, (uint64_t)(uintptr_t)into, key, &none), sides[0].worker,
                    false);
    if (status == UCS_OK) {
        compare(length);
    }
    ucp_rkey_destroy(key);
unmap:
    if (status != UCS_OK) {
        refuse(status);
    }
    ucp_mem_unmap(sides[1].context, memory);
}

/* ---------------------------------------------------------------- streams */

static void stream(size_t length)
{
    ucp_request_param_t all  = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    ucp_request_param_t none = {0};
    ucs_status_ptr_t send, recv;
    size_t got;

    doing = "a stream";
    fill(length, 5);
    send = ucp_stream_send_nbx(sides[0].ep, from, length, &none);
    if (UCS_PTR_IS_ERR(send)) {
        refuse(UCS_PTR_STATUS(send));
        return;
    }
    recv = ucp_stream_recv_nbx(sides[1].ep, into, length, &got, &all);
    if (UCS_PTR_IS_ERR(recv)) {
        refuse(UCS_PTR_STATUS(recv));
        recv = ucp_stream_recv_nbx(sides[1].ep, into, length, &got, &all);
    }
    settle(send, recv, length);
}

/* ------------------------------------------------------------------- ends */

static bool open_side(side_t *side)
{
    ucp_params_t params            = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                      .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_STREAM};
    ucp_worker_params_t worker     = {0};
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 3, .cb = am_handler};
    ucs_status_t status;

    doing  = "making a context";
    status = ucp_init(&params, NULL, &side->context);
    if (status != UCS_OK) {
        refuse(status);
        return false;
    }
    doing  = "making a worker";
    status = ucp_worker_create(side->context, &worker, &side->worker);
    if (status != UCS_OK) {
        refuse(status);
        return false;
    }
    doing  = "setting a handler";
    status = ucp_worker_set_am_recv_handler(side->worker, &handler);
    if (status != UCS_OK) {
        refuse(status);
    }
    return status == UCS_OK;
}

static bool connect_to(side_t *side, const side_t *other)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;

    doing  = "asking for an address";
    status = ucp_worker_get_address(other->worker, &address, &length);
    if (status == UCS_OK) {
        doing          = "making an endpoint";
        params.address = address;
        status         = ucp_ep_create(side->worker, &params, &side->ep);
        ucp_worker_release_address(other->worker, address);
    }
    if (status != UCS_OK) {
        refuse(status);
    }
    return status == UCS_OK;
}

static void close_all(void)
{
    ucp_request_param_t param    = {0};
    ucs_status_ptr_t requests[2] = {NULL, NULL};
    int i;

    doing = "closing";
    for (i = 0; i < 2; ++i) {
        if (sides[i].ep != NULL) {
            requests[i] = ucp_ep_close_nbx(sides[i].ep, &param);
        }
    }
    for (i = 0; i < 2; ++i) {
        ucs_status_t status = finish(requests[i], sides[i].worker, false);

        if (status != UCS_OK) {
            refuse(status);
        }
    }
    for (i = 0; i < 2; ++i) {
        if (sides[i].worker != NULL) {
            ucp_worker_destroy(sides[i].worker);
        }
        if (sides[i].context != NULL) {
            ucp_cleanup(sides[i].context);
        }
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 3000, 20000, 300000, LARGE};
    int rounds                  = (argc > 1) ? atoi(argv[1]) : 1, round;
    size_t i;

    from = malloc(LARGE);
    into = malloc(LARGE);
    if (open_side(&sides[0]) && open_side(&sides[1]) && connect_to(&sides[0], &sides[1]) &&
        connect_to(&sides[1], &sides[0])) {
        for (round = 0; round < rounds; ++round) {
            for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
                tags(sizes[i], false, false);
                tags(sizes[i], true, false);
                tags(sizes[i], false, true);
                active_message(sizes[i]);
                one_sided(sizes[i]);
                stream(sizes[i]);
            }
        }
    }
    close_all();
    printf("%u refused, %u wrong\n", refused, wrong);
    return (wrong > 0) ? 1 : (refused > 0) ? 3 : 0;
}
