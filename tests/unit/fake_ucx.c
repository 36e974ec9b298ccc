/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_ucx.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn/endpoint.h"
#include "conn/rest.h"
#include "link/link_send.h"
#include "util/list.h"

typedef enum { FAKE_SEND, FAKE_RECV, FAKE_GET, FAKE_FETCH } fake_request_kind_t;

struct fake_request {
    fake_request_t *next;
    fake_request_kind_t kind;
    fake_node_t *node; /* whose it is */
    bool forgotten;    /* freed before its end */
    bool over;
    ucs_status_t status;
    void *user; /* what the caller knows it by: this, or memory of its own */
    union {
        ucp_send_nbx_callback_t send;
        ucp_tag_recv_nbx_callback_t recv;
        ucp_am_recv_data_nbx_callback_t am;
    } cb;
    void *user_data;
    ucp_tag_recv_info_t info;
    /* of a fetch */
    uint64_t due;
    unsigned from;
    char *target;
    const char *source;
    size_t length;
    unsigned region, generation;
    fake_message_t *message;
};

typedef struct fake_region {
    char *memory; /* NULL: none */
    size_t length;
    bool shared;
    unsigned generation;
} fake_region_t;

/* Shared memory that its owner has unmapped: others have it still */
typedef struct fake_mapping {
    struct fake_mapping *next;
    char *memory;
    size_t length;
} fake_mapping_t;

typedef struct fake_key {
    unsigned region, generation;
} fake_key_t;

typedef struct fake_ep {
    unsigned from, to;
} fake_ep_t;

fake_net_t fake_net;
static fake_region_t fake_regions[FAKE_REGIONS];
static fake_mapping_t *fake_mappings;

/* Time as UCI sees it */
int clock_gettime(clockid_t id, struct timespec *time)
{
    if ((fake_net.clock == 0) || (id != CLOCK_MONOTONIC)) {
        return (int)syscall(SYS_clock_gettime, id, time);
    }
    time->tv_sec  = (time_t)(fake_net.clock / 1000000000ul);
    time->tv_nsec = (long)(fake_net.clock % 1000000000ul);
    return 0;
}

static fake_node_t *fake_node_of(ucp_worker_h worker)
{
    return (fake_node_t *)worker;
}

/* Of exactly this length, for a sanitizer to see */
static void *fake_copy(const void *data, size_t length)
{
    void *copy = malloc(length);

    if (length > 0) {
        memcpy(copy, data, length);
    }
    return copy;
}

/* --------------------------------------------------------------- requests */

static fake_request_t *fake_request_new(fake_node_t *node, fake_request_kind_t kind, const ucp_request_param_t *param)
{
    fake_request_t *request = calloc(1, sizeof(*request));

    request->kind   = kind;
    request->node   = node;
    request->status = UCS_INPROGRESS;
    request->user   = request;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        request->cb.send = param->cb.send;
    }
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) {
        request->user_data = param->user_data;
    }
    return request;
}

static void fake_request_end(fake_request_t *request, ucs_status_t status)
{
    fake_node_t *node = request->node;

    request->status = status;
    request->next   = NULL;
    *node->done_end = request;
    node->done_end  = &request->next;
}

static void fake_request_tell(fake_request_t *request)
{
    bool forgotten = request->forgotten;

    --fake_net.on_wire;
    request->over = true;
    if (forgotten || (request->cb.send == NULL)) {
        /* nobody is told; who polls frees it */
    } else if (request->kind == FAKE_FETCH) {
        request->cb.am(request->user, request->status, request->length, request->user_data);
    } else if (request->kind == FAKE_RECV) {
        request->cb.recv(request->user, request->status, &request->info, request->user_data);
    } else {
        request->cb.send(request->user, request->status, request->user_data);
    }
    if (forgotten) {
        free(request);
    }
}

static void fake_request_free(void *user)
{
    fake_request_t *request = user;

    if (request->kind == FAKE_RECV) {
        free(request);
    } else if (request->over) {
        free(request);
    } else {
        request->forgotten = true;
    }
}

static ucs_status_t fake_request_status(void *user)
{
    fake_request_t *request = user;

    return request->over ? request->status : UCS_INPROGRESS;
}

/* --------------------------------------------------------------- messages */

static void fake_message_free(fake_message_t *message)
{
    if (!message->rndv) {
        free(message->data);
    }
    free(message->header);
    free(message);
}

/* UCX has let go of it: its sender is told */
static void fake_message_sent(fake_message_t *message)
{
    if (message->request != NULL) {
        fake_request_end(message->request, UCS_OK);
        message->request = NULL;
    }
}

static void fake_message_gone(fake_message_t *message)
{
    fake_message_sent(message);
    fake_message_free(message);
}

static bool fake_message_is_before(const fake_message_t *a, const fake_message_t *b)
{
    return (a->due != b->due) ? (a->due < b->due) : (a->order < b->order);
}

static void fake_arriving_add(fake_node_t *node, fake_message_t *message)
{
    static uint64_t order;
    size_t i;

    if (node->arriving_count == node->arriving_room) {
        node->arriving_room = uci_max(2 * node->arriving_room, (size_t)64);
        node->arriving      = realloc(node->arriving, node->arriving_room * sizeof(*node->arriving));
    }
    message->order = order++;
    for (i = node->arriving_count++; (i > 0) && fake_message_is_before(message, node->arriving[(i - 1) / 2]);
         i = (i - 1) / 2) {
        node->arriving[i] = node->arriving[(i - 1) / 2];
    }
    node->arriving[i] = message;
}

/* @return the next one, or NULL if there is none that arrives by @a now. */
static fake_message_t *fake_arriving_take(fake_node_t *node, uint64_t now)
{
    fake_message_t *first, *last;
    size_t i, child;

    if ((node->arriving_count == 0) || (node->arriving[0]->due > now)) {
        return NULL;
    }
    first = node->arriving[0];
    last  = node->arriving[--node->arriving_count];
    for (i = 0; (child = (2 * i) + 1) < node->arriving_count; i = child) {
        child += (child + 1 < node->arriving_count) &&
                 fake_message_is_before(node->arriving[child + 1], node->arriving[child]);
        if (fake_message_is_before(last, node->arriving[child])) {
            break;
        }
        node->arriving[i] = node->arriving[child];
    }
    node->arriving[i] = last;
    return first;
}

static void fake_message_queue(fake_message_t *message)
{
    fake_node_t *from = &fake_net.nodes[message->from];

    if (!message->passed) {
        message->due                = uci_max(message->due, from->last_due[message->to]);
        from->last_due[message->to] = message->due;
    }
    fake_arriving_add(&fake_net.nodes[message->to], message);
    ++fake_net.on_wire;
}

fake_message_t *fake_message_repeat(const fake_message_t *message, uint64_t due)
{
    fake_message_t *copy = malloc(sizeof(*copy));

    *copy             = *message;
    copy->header      = fake_copy(message->header, message->header_length);
    copy->data        = fake_copy(message->data, message->length);
    copy->due         = due;
    copy->passed      = true;
    copy->dropped     = false;
    copy->held        = false;
    copy->copy        = true;
    copy->request     = NULL;
    copy->lent_header = copy->lent_data = NULL;
    fake_message_queue(copy);
    return copy;
}

void fake_message_resize(char **bytes_p, size_t *length_p, size_t length)
{
    char *bytes = calloc(1, uci_max(length, (size_t)1));

    memcpy(bytes, *bytes_p, uci_min(length, *length_p));
    free(*bytes_p);
    *bytes_p  = fake_copy(bytes, length);
    *length_p = length;
    free(bytes);
}

static fake_message_t *fake_message_new(ucp_ep_h ep, const void *data, size_t length, bool rndv)
{
    const fake_ep_t *way    = (const fake_ep_t *)ep;
    fake_message_t *message = calloc(1, sizeof(*message));

    message->from      = way->from;
    message->to        = way->to;
    message->number    = fake_net.nodes[way->from].sent[way->to]++;
    message->rndv      = rndv;
    message->length    = length;
    message->data      = rndv ? (char *)data : fake_copy(data, length);
    message->lent_data = rndv ? NULL : data;
    message->due       = fake_net.clock;
    return message;
}

static void fake_deliver(fake_node_t *node, fake_message_t *message);

static ucs_status_ptr_t fake_message_go(fake_message_t *message, const ucp_request_param_t *param)
{
    fake_node_t *to = &fake_net.nodes[message->to];
    fake_request_t *request;

    if (fake_net.hooks.sent != NULL) {
        fake_net.hooks.sent(message);
    }
    if (!to->alive || (message->dropped && !message->rndv)) {
        fake_message_free(message);
        return NULL;
    }
    if (fake_net.self_at_once && (message->from == message->to) && !message->rndv && !message->passed) {
        fake_deliver(to, message);
        return NULL;
    }
    request = NULL;
    if (!message->held) {
        message->lent_header = message->lent_data = NULL;
    }
    if (message->rndv || message->held) {
        request          = fake_request_new(&fake_net.nodes[message->from], FAKE_SEND, param);
        message->request = request;
        ++fake_net.on_wire; /* its end is to be told */
    }
    fake_message_queue(message);
    return request;
}

static ucs_status_ptr_t fake_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                     const void *data, size_t length, const ucp_request_param_t *param)
{
    bool rndv               = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) && (param->flags & UCP_AM_SEND_FLAG_RNDV);
    fake_message_t *message = fake_message_new(ep, data, length, rndv);

    message->am            = true;
    message->id            = id;
    message->header        = fake_copy(header, header_length);
    message->lent_header   = header;
    message->header_length = header_length;
    return fake_message_go(message, param);
}

static ucs_status_t fake_set_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
    fake_handler_t *handlers = fake_node_of(worker)->handlers;

    if ((param->id > UCI_SEALED_AM_ID) || (param->id + FAKE_IDS <= UCI_SEALED_AM_ID)) {
        return UCS_ERR_INVALID_PARAM;
    }
    handlers[UCI_SEALED_AM_ID - param->id] = (fake_handler_t){param->cb, param->arg};
    return UCS_OK;
}

static void fake_deliver_am(fake_node_t *node, fake_message_t *message)
{
    ucp_am_recv_param_t param     = {.recv_attr = message->rndv ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
    const fake_handler_t *handler = &node->handlers[UCI_SEALED_AM_ID - message->id];
    ucs_status_t status           = UCS_OK;
    bool rndv                     = message->rndv;

    if (handler->cb != NULL) {
        status = handler->cb(handler->arg, message->header, message->header_length,
                             message->rndv ? (void *)message : message->data, message->length, &param);
    }
    if (!rndv || (status != UCS_INPROGRESS)) {
        fake_message_gone(message); /* else it goes when it has been fetched */
    }
}

/* ------------------------------------------------------------ tag messages */

static void fake_matched(const fake_recv_t *recv, const fake_message_t *message)
{
    ucp_tag_recv_info_t info = {.sender_tag = message->tag, .length = message->length};
    bool fits                = (message->length <= recv->count);

    if (fits && (message->length > 0)) {
        memcpy(recv->buffer, message->data, message->length);
    }
    recv->cb(recv->request, fits ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED, &info, recv->user_data);
}

static fake_recv_t *fake_recv_take(fake_node_t *node, fake_recv_t **place)
{
    fake_recv_t *recv = *place;

    *place = recv->next;
    if (*place == NULL) {
        node->recvs_end = place;
    }
    return recv;
}

static void fake_deliver_tag(fake_node_t *node, fake_message_t *message)
{
    fake_recv_t **place = &node->recvs, *recv;

    while ((*place != NULL) && ((((*place)->tag ^ message->tag) & (*place)->mask) != 0)) {
        place = &(*place)->next;
    }
    if (*place == NULL) {
        fake_message_sent(message);
        message->next = NULL;
        *node->last   = message;
        node->last    = &message->next;
        return;
    }
    recv = fake_recv_take(node, place);
    fake_matched(recv, message);
    free(recv);
    fake_message_gone(message);
}

static fake_message_t *fake_unexpected_take(fake_node_t *node, ucp_tag_t tag, ucp_tag_t mask)
{
    fake_message_t **place = &node->unexpected, *message;

    while ((*place != NULL) && ((((*place)->tag ^ tag) & mask) != 0)) {
        place = &(*place)->next;
    }
    message = *place;
    if (message != NULL) {
        *place = message->next;
        if (*place == NULL) {
            node->last = place;
        }
    }
    return message;
}

static ucs_status_ptr_t fake_tag_send(ucp_ep_h ep, const void *data, size_t length, ucp_tag_t tag,
                                      const ucp_request_param_t *param)
{
    fake_message_t *message = fake_message_new(ep, data, length, false);

    message->tag = tag;
    return fake_message_go(message, param);
}

static ucs_status_ptr_t fake_tag_recv(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                      const ucp_request_param_t *param)
{
    fake_node_t *node       = fake_node_of(worker);
    fake_recv_t recv        = {NULL, buffer, count, tag, mask, param->cb.recv, param->user_data, NULL};
    fake_message_t *message = fake_unexpected_take(node, tag, mask);

    recv.request = (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) ? param->request
                                                                     : fake_request_new(node, FAKE_RECV, param);
    if (message != NULL) {
        fake_matched(&recv, message);
        fake_message_gone(message);
    } else {
        *node->recvs_end = fake_copy(&recv, sizeof(recv));
        node->recvs_end  = &(*node->recvs_end)->next;
    }
    return recv.request;
}

static ucp_tag_message_h fake_probe(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t mask, int remove,
                                    ucp_tag_recv_info_t *info)
{
    fake_message_t *message = fake_node_of(worker)->unexpected;

    while ((message != NULL) && (((message->tag ^ tag) & mask) != 0)) {
        message = message->next;
    }
    if (message == NULL) {
        return NULL;
    }
    *info = (ucp_tag_recv_info_t){.sender_tag = message->tag, .length = message->length};
    return (ucp_tag_message_h)(remove ? fake_unexpected_take(fake_node_of(worker), tag, mask) : message);
}

static ucs_status_ptr_t fake_message_recv(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_message_h handle,
                                          const ucp_request_param_t *param)
{
    fake_message_t *message = (fake_message_t *)handle;
    fake_recv_t recv        = {NULL, buffer, count, 0, 0, param->cb.recv, param->user_data, NULL};

    recv.request = fake_request_new(fake_node_of(worker), FAKE_RECV, param);
    fake_matched(&recv, message);
    fake_message_gone(message);
    return recv.request;
}

static void fake_cancel(ucp_worker_h worker, void *request)
{
    fake_node_t *node        = fake_node_of(worker);
    fake_recv_t **place      = &node->recvs, *recv;
    ucp_tag_recv_info_t info = {0};

    while ((*place != NULL) && ((*place)->request != request)) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        recv = fake_recv_take(node, place);
        recv->cb(request, UCS_ERR_CANCELED, &info, recv->user_data);
        free(recv);
    }
}

/* ---------------------------------------------------------------- fetching */

static bool fake_is_mapped(const fake_request_t *fetch)
{
    const fake_region_t *region = &fake_regions[fetch->region];
    size_t offset               = (size_t)(fetch->source - region->memory);

    return (region->memory != NULL) && (region->generation == fetch->generation) && (offset <= region->length) &&
           (fetch->length <= region->length - offset);
}

static ucs_status_t fake_fetch(const fake_request_t *fetch)
{
    if ((fetch->message != NULL) ? fetch->message->dropped : !fake_is_mapped(fetch)) {
        return UCS_ERR_IO_ERROR; /* as an adapter, or the kernel, says */
    }
    if (fetch->length > 0) {
        memcpy(fetch->target, fetch->source, fetch->length);
    }
    if (fake_net.hooks.fetched != NULL) {
        fake_net.hooks.fetched(fetch->from, fetch->node->number, fetch->target, fetch->length);
    }
    return UCS_OK;
}

static ucs_status_ptr_t fake_fetch_start(fake_request_t *fetch)
{
    uint64_t time = (fake_net.hooks.fetch_time != NULL) ? fake_net.hooks.fetch_time(fetch->from, fetch->node->number)
                                                        : 0;
    ucs_status_t status;

    if (time > 0) {
        fetch->due           = fake_net.clock + time;
        fetch->next          = fetch->node->fetches;
        fetch->node->fetches = fetch;
        ++fake_net.on_wire;
        return fetch;
    }
    status = fake_fetch(fetch);
    if (fetch->message != NULL) {
        fake_message_gone(fetch->message);
    }
    free(fetch);
    return UCS_STATUS_PTR(status);
}

static ucs_status_ptr_t fake_am_recv_data(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                          const ucp_request_param_t *param)
{
    fake_message_t *message = desc;
    fake_request_t *fetch   = fake_request_new(fake_node_of(worker), FAKE_FETCH, param);

    fetch->cb.am   = param->cb.recv_am;
    fetch->from    = message->from;
    fetch->target  = buffer;
    fetch->source  = message->data;
    fetch->length  = uci_min(count, message->length);
    fetch->message = message;
    return fake_fetch_start(fetch);
}

static ucs_status_ptr_t fake_get(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                 const ucp_request_param_t *param)
{
    const fake_ep_t *way  = (const fake_ep_t *)ep;
    const fake_key_t *key = (const fake_key_t *)rkey;
    fake_request_t *fetch = fake_request_new(&fake_net.nodes[way->from], FAKE_GET, param);

    fetch->from       = way->to;
    fetch->target     = buffer;
    fetch->source     = (const char *)(uintptr_t)address;
    fetch->length     = count;
    fetch->region     = key->region;
    fetch->generation = key->generation;
    return fake_fetch_start(fetch);
}

/* Those whose time has come */
static unsigned fake_fetch_progress(fake_node_t *node)
{
    fake_request_t **place = &node->fetches, *fetch;
    unsigned count         = 0;

    while ((fetch = *place) != NULL) {
        if (fetch->due > fake_net.clock) {
            place = &fetch->next;
            continue;
        }
        *place = fetch->next;
        fake_request_end(fetch, fake_fetch(fetch));
        if (fetch->message != NULL) {
            fake_message_gone(fetch->message);
        }
        ++count;
    }
    return count;
}

/* ---------------------------------------------------------------- progress */

/* UCX reads them again, as late as it may. What has been damaged on its way stays as it is, but for a sanitizer */
static void fake_read_late(fake_message_t *message)
{
    char *header = fake_copy(message->lent_header, (message->lent_header != NULL) ? message->header_length : 0);
    char *data   = fake_copy(message->lent_data, (message->lent_data != NULL) ? message->length : 0);

    if (message->lent_header != NULL) {
        free(message->header);
        message->header = header;
    } else {
        free(header);
    }
    if (message->lent_data != NULL) {
        free(message->data);
        message->data = data;
    } else {
        free(data);
    }
}

static void fake_deliver(fake_node_t *node, fake_message_t *message)
{
    if (!message->changed && !message->dropped) {
        fake_read_late(message);
    }
    if (fake_net.hooks.arrived != NULL) {
        fake_net.hooks.arrived(message);
    }
    if (message->dropped) {
        fake_message_gone(message);
    } else if (message->am) {
        fake_deliver_am(node, message);
    } else {
        fake_deliver_tag(node, message);
    }
}

static unsigned fake_tell_ends(fake_node_t *node)
{
    fake_request_t *request = node->done, *next;
    unsigned count          = 0;

    node->done     = NULL;
    node->done_end = &node->done;
    for (; request != NULL; request = next, ++count) {
        next = request->next;
        fake_request_tell(request);
    }
    return count;
}

/* What has arrived is handed over; what is sent meanwhile comes later */
static unsigned fake_progress(ucp_worker_h worker)
{
    fake_node_t *node       = fake_node_of(worker);
    fake_message_t *message = NULL, *next, **end = &message;
    unsigned count = 0, total;

    total = fake_fetch_progress(node) + fake_tell_ends(node);
    while ((count < fake_net.burst) && ((*end = fake_arriving_take(node, fake_net.clock)) != NULL)) {
        end = &(*end)->next;
        ++count;
    }
    *end = NULL;
    for (; message != NULL; message = next) {
        next = message->next;
        --fake_net.on_wire;
        fake_deliver(node, message);
    }
    return total + count;
}

uint64_t fake_net_due(void)
{
    uint64_t due = UINT64_MAX;
    unsigned i;

    for (i = 0; i < fake_net.count; ++i) {
        const fake_node_t *node = &fake_net.nodes[i];
        const fake_request_t *fetch;

        if (!node->alive) {
            continue;
        }
        if (node->done != NULL) {
            return 0;
        }
        due = (node->arriving_count > 0) ? uci_min(due, node->arriving[0]->due) : due;
        for (fetch = node->fetches; fetch != NULL; fetch = fetch->next) {
            due = uci_min(due, fetch->due);
        }
    }
    return due;
}

/* ----------------------------------------------------------------- memory */

static ucs_status_t fake_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    fake_region_t *region = fake_regions;
    bool shared           = !(params->field_mask & UCP_MEM_MAP_PARAM_FIELD_ADDRESS) || (params->address == NULL);

    if (!shared && fake_net.no_rdma) {
        return UCS_ERR_UNSUPPORTED;
    }
    while ((region < fake_regions + FAKE_REGIONS) && (region->memory != NULL)) {
        ++region;
    }
    if (region == fake_regions + FAKE_REGIONS) {
        return UCS_ERR_NO_MEMORY;
    }
    region->shared = shared;
    region->length = params->length;
    region->memory = shared ? mmap(NULL, params->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                            : params->address;
    ++region->generation;
    *memh_p = (ucp_mem_h)region;
    return UCS_OK;
}

static ucs_status_t fake_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    fake_region_t *region = (fake_region_t *)memh;

    if (region->shared) {
        fake_mapping_t mapping = {fake_mappings, region->memory, region->length};

        fake_mappings = fake_copy(&mapping, sizeof(mapping));
    }
    region->memory = NULL;
    return UCS_OK;
}

static ucs_status_t fake_mem_query(ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    attr->address  = ((fake_region_t *)memh)->memory;
    attr->mem_type = UCS_MEMORY_TYPE_HOST;
    return UCS_OK;
}

static ucs_status_t fake_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **buffer_p, size_t *size_p)
{
    const fake_region_t *region = (const fake_region_t *)memh;
    fake_key_t key              = {(unsigned)(region - fake_regions), region->generation};

    *size_p   = sizeof(key);
    *buffer_p = fake_copy(&key, *size_p);
    return UCS_OK;
}

static ucs_status_t fake_rkey_unpack(ucp_ep_h ep, const void *buffer, ucp_rkey_h *rkey_p)
{
    fake_key_t key;

    memcpy(&key, buffer, sizeof(key)); /* however short it is: UCX is not told */
    if (key.region >= FAKE_REGIONS) {
        return UCS_ERR_INVALID_PARAM;
    }
    *rkey_p = fake_copy(&key, sizeof(key));
    return UCS_OK;
}

static void fake_rkey_destroy(ucp_rkey_h rkey)
{
    free(rkey);
}

static ucs_status_t fake_rkey_ptr(ucp_rkey_h rkey, uint64_t address, void **address_p)
{
    const fake_key_t *key       = (const fake_key_t *)rkey;
    const fake_region_t *region = &fake_regions[key->region];

    *address_p = (void *)(uintptr_t)address;
    return (region->shared && (region->memory != NULL)) ? UCS_OK : UCS_ERR_UNREACHABLE;
}

static void fake_buffer_release(void *buffer)
{
    free(buffer);
}

/* -------------------------------------------------------------- endpoints */

static ucs_status_t fake_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    fake_ep_t way = {.from = fake_node_of(worker)->number};

    memcpy(&way.to, params->address, sizeof(way.to));
    if (way.to >= fake_net.count) {
        return UCS_ERR_UNREACHABLE;
    }
    *ep_p = fake_copy(&way, sizeof(way));
    return UCS_OK;
}

static ucs_status_ptr_t fake_ep_close(ucp_ep_h ep, const ucp_request_param_t *param)
{
    free(ep);
    return NULL;
}

static ucs_status_ptr_t fake_ep_flush(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return NULL;
}

/* As an older UCX that does not know: it is read from the text */
static ucs_status_t fake_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_ERR_UNSUPPORTED;
}

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
    fprintf(stream, "#  lane[0]:  1:%s.0 md[0]\n", fake_net.transports);
    if (fake_net.kernel_copy) {
        fprintf(stream, "#  lane[1]:  2:cma/memory.0 md[1]\n");
    }
}

static ucs_status_t fake_get_address(ucp_worker_h worker, ucp_address_t **address_p, size_t *length_p)
{
    *address_p = fake_copy(&fake_node_of(worker)->number, sizeof(unsigned));
    *length_p  = sizeof(unsigned);
    return UCS_OK;
}

static ucs_status_t fake_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    attr->max_am_header = UINT16_MAX;
    return UCS_OK;
}

static void fake_release_address(ucp_worker_h worker, ucp_address_t *address)
{
    free(address);
}

static ucs_status_t fake_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
    unsigned number;

    memcpy(&number, address, sizeof(number));
    attr->worker_uid = fake_net.nodes[number].uid;
    return UCS_OK;
}

static const char *fake_status_string(ucs_status_t status)
{
    return "a status";
}

static const char *fake_version(void)
{
    return "0";
}

/* ------------------------------------------------------------------- nodes */

static void fake_forget_mappings(void)
{
    fake_mapping_t *mapping;

    while ((mapping = fake_mappings) != NULL) {
        fake_mappings = mapping->next;
        munmap(mapping->memory, mapping->length);
        free(mapping);
    }
}

void fake_net_init(uint64_t clock)
{
    uci_ucp = (uci_ucp_t){.worker_set_am_recv_handler = fake_set_handler,
                          .am_recv_data_nbx           = fake_am_recv_data,
                          .am_send_nbx                = fake_am_send,
                          .tag_send_nbx               = fake_tag_send,
                          .tag_recv_nbx               = fake_tag_recv,
                          .tag_probe_nb               = fake_probe,
                          .tag_msg_recv_nbx           = fake_message_recv,
                          .request_free               = fake_request_free,
                          .request_check_status       = fake_request_status,
                          .request_cancel             = fake_cancel,
                          .ep_create                  = fake_ep_create,
                          .ep_close_nbx               = fake_ep_close,
                          .ep_flush_nbx               = fake_ep_flush,
                          .get_nbx                    = fake_get,
                          .mem_map                    = fake_mem_map,
                          .mem_unmap                  = fake_mem_unmap,
                          .mem_query                  = fake_mem_query,
                          .rkey_ptr                   = fake_rkey_ptr,
                          .rkey_pack                  = fake_rkey_pack,
                          .rkey_buffer_release        = fake_buffer_release,
                          .ep_rkey_unpack             = fake_rkey_unpack,
                          .rkey_destroy               = fake_rkey_destroy,
                          .ep_query                   = fake_ep_query,
                          .ep_print_info              = fake_print_info,
                          .worker_get_address         = fake_get_address,
                          .worker_release_address     = fake_release_address,
                          .worker_query               = fake_worker_query,
                          .worker_address_query       = fake_address_query,
                          .worker_progress            = fake_progress,
                          .get_version_string         = fake_version,
                          .status_string              = fake_status_string};
    fake_forget_mappings();
    fake_net = (fake_net_t){.clock = clock, .transports = "posix/memory", .burst = UINT32_MAX};
}

void fake_node_create(unsigned number, uint64_t uid, ucs_thread_mode_t mode, size_t buffered_max)
{
    ucp_worker_params_t params = {.field_mask = 0};
    fake_node_t *node          = &fake_net.nodes[number];

    memset(node, 0, sizeof(*node));
    node->number                    = number;
    node->alive                     = true;
    node->uid                       = uid;
    node->last                      = &node->unexpected;
    node->recvs_end                 = &node->recvs;
    node->done_end                  = &node->done;
    node->context.ucp               = (ucp_context_h)node;
    node->context.host_only         = true;
    node->context.buffered_max      = buffered_max;
    node->context.buffered_fast_max = buffered_max;
    fake_net.count                  = uci_max(fake_net.count, number + 1);
    if (uci_worker_create((ucp_worker_h)node, &node->context, &params, mode, &node->worker) != UCS_OK) {
        abort();
    }
}

/* As UCX tells of what is left when its worker goes */
static void fake_request_cancel_late(fake_request_t *request)
{
    request->status = UCS_ERR_CANCELED;
    fake_request_tell(request);
}

static void fake_forget_sender(fake_message_t *message)
{
    fake_request_t *request = message->request;

    message->dropped |= message->rndv;
    message->lent_header = message->lent_data = NULL; /* that memory goes */
    message->request                          = NULL;
    if (request != NULL) {
        fake_request_cancel_late(request);
    }
}

/* What others were to fetch from it, they can't any more; and nobody is to be told what has become of its messages */
static void fake_forget_offers(unsigned number)
{
    fake_request_t *fetch;
    unsigned i;
    size_t j;

    for (i = 0; i < fake_net.count; ++i) {
        for (j = 0; j < fake_net.nodes[i].arriving_count; ++j) {
            if (fake_net.nodes[i].arriving[j]->from == number) {
                fake_forget_sender(fake_net.nodes[i].arriving[j]);
            }
        }
        for (fetch = fake_net.nodes[i].fetches; fetch != NULL; fetch = fetch->next) {
            if ((fetch->message != NULL) && (fetch->from == number)) {
                fake_forget_sender(fetch->message);
            }
        }
    }
}

void fake_node_destroy(unsigned number)
{
    fake_node_t *node = &fake_net.nodes[number];
    fake_message_t *message;
    fake_request_t *request;
    fake_recv_t *recv;

    uci_worker_shutdown(node->worker);
    while ((message = fake_arriving_take(node, UINT64_MAX)) != NULL) {
        --fake_net.on_wire;
        fake_message_gone(message);
    }
    free(node->arriving);
    node->arriving      = NULL;
    node->arriving_room = 0;
    while ((message = node->unexpected) != NULL) {
        node->unexpected = message->next;
        fake_message_gone(message);
    }
    while ((recv = node->recvs) != NULL) {
        node->recvs = recv->next;
        free(recv);
    }
    fake_forget_offers(number);
    while ((request = node->fetches) != NULL) {
        node->fetches = request->next;
        if (request->message != NULL) {
            fake_message_gone(request->message);
        }
        fake_request_cancel_late(request);
    }
    while (node->done != NULL) {
        fake_tell_ends(node);
    }
    uci_worker_destroy(node->worker);
    node->alive  = false;
    node->worker = NULL;
}

ucs_status_t fake_ep_open(unsigned from, unsigned to)
{
    char address[sizeof(uci_mark_t) + sizeof(unsigned)];
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (void *)address};

    uci_mark_put(address, &fake_net.nodes[to].worker->self.mark, &to, sizeof(to));
    return uci_ep_open(fake_net.nodes[from].worker, &params, &fake_net.nodes[from].eps[to]);
}

unsigned fake_node_turn(unsigned number, bool look)
{
    uci_worker_t *worker = fake_net.nodes[number].worker;
    unsigned count;

    uci_worker_enter(worker);
    if (look) {
        worker->turn.count = 0; /* a multiple of all intervals in which it looks */
    } else if (worker->turn.count == 0) {
        worker->turn.count = 2;
    }
    count = uci_worker_turn(worker);
    if (look) {
        uci_link_look(worker);
        worker->conn.ended = SIZE_MAX; /* enough */
        uci_rest_progress(worker);
    }
    uci_worker_leave(worker);
    return count;
}
