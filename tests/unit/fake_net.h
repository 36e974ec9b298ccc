/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two workers of UCI's in one process (or NET_NODES), and a UCX between them that is all fake: what one sends the other gets when the
 * test lets it. Whatever is under way can be looked at, and changed, and time passes as the test says. Keys lead where a peer says, without a look at
 * whether its memory is there, as UCX's do for shared memory.
 */
#ifndef UCI_TESTS_UNIT_FAKE_NET_H_
#define UCI_TESTS_UNIT_FAKE_NET_H_

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn/close.h"
#include "conn/endpoint.h"
#include "transfer/get.h"
#include "link/link_send.h"
#include "message/recv.h"
#include "transfer/repair.h"
#include "base/request.inl"
#include "message/send.h"
#include "rma/rma.h"
#include "transfer/send_common.h"
#include "message/unexpected.h"
#include "turn/worker.h"

#ifndef NET_NODES
#define NET_NODES 2
#endif
#define NET_REGIONS 256

typedef struct net_message {
    struct net_message *next;
    unsigned from;
    unsigned id; /* of the active message */
    bool frame;  /* that is UCI_FRAME_AM_ID: it has no header of UCX's */
    bool rndv;
    size_t header_length;
    char *header;
    size_t length;
    char *data;  /* owned; of a rendezvous the sender's */
    size_t have; /* bytes there are of that */
    ucp_send_nbx_callback_t cb;
    void *user_data;
    void *request;
} net_message_t;

typedef struct net_node {
    unsigned number;
    uci_worker_t *worker;
    uci_context_t context;
    uci_ep_t *ep;                       /* the user's, to the other one */
    ucp_am_recv_callback_t handlers[3]; /* from UCI_FRAME_AM_ID on */
    net_message_t *first, **last;       /* on their way to it */
} net_node_t;

typedef struct net_region {
    char *memory; /* NULL: none */
    size_t length;
    bool shared;
} net_region_t;

static net_node_t net_nodes[NET_NODES];
static char net_eps[NET_NODES][NET_NODES];
static net_region_t net_regions[NET_REGIONS];
static const char *net_transports = "posix/memory"; /* as UCX prints them */
static bool net_no_rdma;                            /* memory can't be mapped */
static uint64_t net_clock;                          /* ns; 0: the real one */
static void (*net_sent)(net_message_t *message);    /* told of each message before it goes, which it may change */
static ucs_status_t net_refusal;                    /* what UCX says to frames, and does not send them */
static unsigned net_unpacked;                       /* keys, whatever came of it */
static bool net_busy;                               /* UCX completes frames when they arrive, not when they are sent */

/* Time as UCI sees it */
int clock_gettime(clockid_t id, struct timespec *time)
{
    if ((net_clock == 0) || (id != CLOCK_MONOTONIC)) {
        return (int)syscall(SYS_clock_gettime, id, time);
    }
    time->tv_sec  = (time_t)(net_clock / 1000000000ul);
    time->tv_nsec = (long)(net_clock % 1000000000ul);
    return 0;
}

static net_node_t *net_node_of(ucp_worker_h worker)
{
    return (net_node_t *)worker;
}

/* --------------------------------------------------------------- messages */

static void *net_copy(const void *data, size_t length)
{
    void *copy = malloc(length); /* of exactly this length, for a sanitizer to see */

    if (length > 0) {
        memcpy(copy, data, length);
    }
    return copy;
}

static void net_free(net_message_t *message)
{
    if (!message->rndv) {
        free(message->data);
    }
    free(message->header);
    free(message);
}

/* Put a message at the end of what is on its way to a node */
static void net_append(net_node_t *to, net_message_t *message)
{
    message->next = NULL;
    *to->last     = message;
    to->last      = &message->next;
}

static ucs_status_ptr_t net_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                    const void *data, size_t length, const ucp_request_param_t *param)
{
    size_t place = (size_t)((char *)ep - &net_eps[0][0]);
    bool rndv    = (param->flags & UCP_AM_SEND_FLAG_RNDV) != 0;
    net_message_t *message;

    if ((id < UCI_FRAME_AM_ID) || (id > UCI_SEALED_AM_ID)) {
        abort();
    }
    if ((net_refusal != UCS_OK) && (id == UCI_FRAME_AM_ID)) {
        return UCS_STATUS_PTR(net_refusal);
    }
    message                = calloc(1, sizeof(*message));
    message->from          = (unsigned)(place / NET_NODES);
    message->id            = id;
    message->frame         = (id == UCI_FRAME_AM_ID);
    message->rndv          = rndv;
    message->header        = net_copy(header, header_length);
    message->header_length = header_length;
    message->data          = rndv ? (char *)data : net_copy(data, length);
    message->length        = length;
    message->have          = length;
    message->cb            = param->cb.send;
    message->user_data     = param->user_data;
    message->request       = (rndv || (net_busy && message->frame)) ? malloc(1) : NULL;
    net_append(&net_nodes[place % NET_NODES], message);
    if (net_sent != NULL) {
        net_sent(message);
    }
    return message->request;
}

static ucs_status_t net_set_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
    if (param->id == UCI_GREETING_AM_ID) {
        return UCS_OK; /* nobody connects by socket address here */
    }
    if ((param->id < UCI_FRAME_AM_ID) || (param->id > UCI_SEALED_AM_ID)) {
        abort();
    }
    net_node_of(worker)->handlers[param->id - UCI_FRAME_AM_ID] = param->cb;
    return UCS_OK;
}

static ucs_status_ptr_t net_am_recv_data(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                         const ucp_request_param_t *param)
{
    net_message_t *message = desc;
    size_t have            = uci_min(count, message->have);

    memcpy(buffer, message->data, have);
    memset((char *)buffer + have, 0, count - have);
    return NULL;
}

/* It arrives, and is gone */
static void net_deliver(net_node_t *node, net_message_t *message)
{
    ucp_am_recv_param_t param = {.recv_attr = message->rndv ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};

    node->handlers[message->id - UCI_FRAME_AM_ID](
            node->worker, (message->header_length > 0) ? message->header : NULL, message->header_length,
            message->rndv ? (void *)message : message->data, message->length, &param);
    if (message->request != NULL) {
        message->cb(message->request, UCS_OK, message->user_data);
    }
    net_free(message);
}

/* What is on its way arrives; what is sent meanwhile does later */
static unsigned net_progress(ucp_worker_h worker)
{
    net_node_t *node       = net_node_of(worker);
    net_message_t *message = node->first, *next;
    unsigned count         = 0;

    node->first = NULL;
    node->last  = &node->first;
    for (; message != NULL; message = next, ++count) {
        next = message->next;
        net_deliver(node, message);
    }
    return count;
}

/* ----------------------------------------------------------------- memory */

static ucs_status_t net_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    net_region_t *region = net_regions;

    while (region->memory != NULL) {
        ++region;
    }
    if ((params->address != NULL) && net_no_rdma) {
        return UCS_ERR_UNSUPPORTED;
    }
    region->shared = (params->address == NULL);
    region->length = params->length;
    region->memory = region->shared
                             ? mmap(NULL, params->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                             : params->address;
    *memh_p        = (ucp_mem_h)region;
    return UCS_OK;
}

static ucs_status_t net_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    net_region_t *region = (net_region_t *)memh;

    if (region->shared) {
        munmap(region->memory, region->length);
    }
    region->memory = NULL;
    return UCS_OK;
}

static ucs_status_t net_mem_query(ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    attr->address = ((net_region_t *)memh)->memory;
    return UCS_OK;
}

static ucs_status_t net_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **buffer_p, size_t *size_p)
{
    uint64_t number = (uint64_t)((net_region_t *)memh - net_regions);

    *size_p   = sizeof(number);
    *buffer_p = net_copy(&number, *size_p);
    return UCS_OK;
}

static ucs_status_t net_rkey_unpack(ucp_ep_h ep, const void *buffer, ucp_rkey_h *rkey_p)
{
    uint64_t number;

    ++net_unpacked;
    memcpy(&number, buffer, sizeof(number)); /* however short it is: UCX is not told */
    if ((number >= NET_REGIONS) || (net_regions[number].memory == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    *rkey_p = net_copy(&net_regions[number], sizeof(net_regions[number]));
    return UCS_OK;
}

static void net_rkey_destroy(ucp_rkey_h rkey)
{
    free(rkey);
}

static ucs_status_t net_rkey_ptr(ucp_rkey_h rkey, uint64_t address, void **address_p)
{
    *address_p = (void *)(uintptr_t)address;
    return ((net_region_t *)rkey)->shared ? UCS_OK : UCS_ERR_UNREACHABLE;
}

static ucs_status_ptr_t net_get(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                const ucp_request_param_t *param)
{
    net_region_t *region = (net_region_t *)rkey;
    uint64_t offset      = address - (uintptr_t)region->memory;

    if ((offset > region->length) || (count > region->length - offset)) {
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR); /* as an adapter, or the kernel, says */
    }
    memcpy(buffer, region->memory + offset, count);
    return NULL;
}

/* -------------------------------------------------------------- the rest */

static void net_request_free(void *request)
{
    free(request);
}

static void net_buffer_release(void *buffer)
{
    free(buffer);
}

static ucs_status_t net_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    unsigned to = *(const unsigned *)(const void *)params->address;

    if (to >= NET_NODES) {
        return UCS_ERR_UNREACHABLE;
    }
    *ep_p = (ucp_ep_h)&net_eps[net_node_of(worker)->number][to];
    return UCS_OK;
}

static ucs_status_ptr_t net_ep_op(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return NULL;
}

static void net_print_info(ucp_ep_h ep, FILE *stream)
{
    fprintf(stream, "#  lane[0]:  1:%s.0 md[0]\n", net_transports);
}

/* As UCX before 1.14, which does not know what it is asked for */
static ucs_status_t net_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static ucs_status_t net_get_address(ucp_worker_h worker, ucp_address_t **address_p, size_t *length_p)
{
    *address_p = net_copy(&net_node_of(worker)->number, sizeof(unsigned));
    *length_p  = sizeof(unsigned);
    return UCS_OK;
}

static ucs_status_t net_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    attr->max_am_header = UINT16_MAX;
    return UCS_OK;
}

static void net_release_address(ucp_worker_h worker, ucp_address_t *address)
{
    free(address);
}

static ucs_status_t net_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
    attr->worker_uid = 0x1111111111111111ul * (1 + *(const unsigned *)(const void *)address);
    return UCS_OK;
}

static const char *net_status_string(ucs_status_t status)
{
    return "a status";
}

static const char *net_version(void)
{
    return "0";
}

static void net_init(void)
{
    uci_ucp = (uci_ucp_t){.worker_set_am_recv_handler = net_set_handler,
                          .am_recv_data_nbx           = net_am_recv_data,
                          .am_send_nbx                = net_am_send,
                          .request_free               = net_request_free,
                          .ep_create                  = net_ep_create,
                          .ep_close_nbx               = net_ep_op,
                          .ep_flush_nbx               = net_ep_op,
                          .get_nbx                    = net_get,
                          .mem_map                    = net_mem_map,
                          .mem_unmap                  = net_mem_unmap,
                          .mem_query                  = net_mem_query,
                          .rkey_ptr                   = net_rkey_ptr,
                          .rkey_pack                  = net_rkey_pack,
                          .rkey_buffer_release        = net_buffer_release,
                          .ep_rkey_unpack             = net_rkey_unpack,
                          .rkey_destroy               = net_rkey_destroy,
                          .ep_print_info              = net_print_info,
                          .ep_query                   = net_query,
                          .worker_get_address         = net_get_address,
                          .worker_release_address     = net_release_address,
                          .worker_query               = net_worker_query,
                          .worker_address_query       = net_address_query,
                          .worker_progress            = net_progress,
                          .get_version_string         = net_version,
                          .status_string              = net_status_string};
}

/* Nothing of this machine or its user counts; messages above 2 KiB are not sent in one frame */
static void net_read_settings(void)
{
    setenv("UCI_ON_ERROR", "error", 1);
    setenv("UCI_LOG_LEVEL", "fatal", 0);
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_PROFILE", "none", 1);
    setenv("UCI_DIGEST", "xxh3", 1);
    setenv("UCI_EAGER_MAX", "2k", 1);
    if (uci_settings_read() != UCI_OK) {
        abort();
    }
}

/* ---------------------------------------------------------------- a world */

static void net_create(unsigned number)
{
    ucp_worker_params_t params = {.field_mask = 0};
    net_node_t *node           = &net_nodes[number];

    memset(node, 0, sizeof(*node));
    node->number                    = number;
    node->last                      = &node->first;
    node->context.buffered_max      = 0;
    node->context.buffered_fast_max = 0;
    if (uci_worker_create((ucp_worker_h)node, &node->context, &params, UCS_THREAD_MODE_MULTI, &node->worker) !=
        UCS_OK) {
        abort();
    }
}

/* One more endpoint */
static uci_ep_t *net_connect(unsigned from, unsigned to)
{
    char address[sizeof(uci_mark_t) + sizeof(unsigned)];
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (void *)address};
    uci_ep_t *ep;

    uci_mark_put(address, &net_nodes[to].worker->self.mark, &to, sizeof(to));
    if (uci_ep_open(net_nodes[from].worker, &params, &ep) != UCS_OK) {
        abort();
    }
    return ep;
}

static void net_open(unsigned from, unsigned to)
{
    net_nodes[from].ep = net_connect(from, to);
}

static bool net_is_idle(void)
{
    unsigned number;

    for (number = 0; number < NET_NODES; ++number) {
        if (net_nodes[number].first != NULL) {
            return false;
        }
    }
    return true;
}

static void net_turn(unsigned number)
{
    uci_worker_t *worker = net_nodes[number].worker;

    uci_worker_enter(worker);
    worker->turn.count = 0; /* each one looks at what takes long, and at a quiet box */
    uci_worker_progress(worker, worker->ucp);
    uci_link_look(worker);
    uci_rma_look(worker);
    uci_worker_leave(worker);
}

/* What is under way ends somehow, so that a test can go on with the next world */
static void net_end_operations(uci_worker_t *worker)
{
    while (!uci_list_is_empty(&worker->xfer.landed)) {
        uci_get_path.progress(worker);
    }
    uci_list_for_each_safe(send_op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_send_op_finish(send_op, UCS_OK);
    }
    while (!uci_list_is_empty(&worker->xfer.recv_ops)) {
        uci_repair_failed(uci_container_of(worker->xfer.recv_ops.next, uci_recv_op_t, link), UCI_REASON_EXHAUSTED);
    }
}

static void net_destroy(unsigned number)
{
    net_node_t *node = &net_nodes[number];
    net_message_t *message, *next;

    uci_worker_shutdown(node->worker);
    uci_worker_destroy(node->worker);
    for (message = node->first; message != NULL; message = next) {
        next = message->next;
        net_free(message);
    }
    node->worker = NULL;
}

#endif
