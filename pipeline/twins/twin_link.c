/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_link.h"

#include <stdlib.h>
#include <time.h>

#include "conn/close.h"
#include "conn/endpoint.h"
#include "util/log.h"
#include "base/mark.h"
#include "util/process.h"
#include "message/recv.h"
#include "base/request.h"
#include "message/send.h"
#include "turn/worker.h"
#include "base/worker_lock.h"

#define UCI_TWIN_LOOK_NS  10000000ul   /* between two looks for a card */
#define UCI_TWIN_ALIVE_NS 500000000ul  /* between two looks whether a process of this host lives */
#define UCI_TWIN_CLOSE_NS 2000000000ul /* how long the end of a connection may take */
#define UCI_TWIN_SENDING  8            /* messages to a twin at a time */

#define UCI_TWIN_TAG_CONTENT (1ul << 63)

const char *const uci_twin_state_names[] = {"seeking", "talking", "done", "lost", "left behind", "never came", NULL};

/* Something to be said to one twin */
typedef struct uci_twin_saying {
    uci_list_t link; /* in partner->queue until it is sent */
    struct uci_twin_partner *partner;
    size_t length;
    char data[];
} uci_twin_saying_t;

typedef struct uci_twin_partner {
    uci_twin_link_t *link;
    unsigned twin;
    uci_twin_state_t state;
    bool seen; /* its card is here */
    bool gone; /* its process is, which was done */
    uci_twin_card_t card;
    uci_ep_t *ep;
    uint64_t look_time;
    uint64_t heard_time;
    uci_list_t queue;
    size_t bytes; /* in it */
    unsigned sending;
    uint64_t inbox[UCI_TWIN_SAY_MAX /
                   sizeof(uint64_t)]; /* one message at a time: the second of two could be complete first */
} uci_twin_partner_t;

struct uci_twin_link {
    uci_worker_t *worker;
    const uci_twin_link_events_t *events;
    uci_twin_card_t card;
    bool inside; /* of its own progress */
    uci_list_t takes;
    uci_twin_partner_t partners[UCI_TWINS_MAX];
};

/* The content of a message on its way to a twin, or here. What its twin does not send any more stays in UCX's hands until the worker goes */
typedef struct uci_twin_give {
    uci_twin_given_cb_t cb;
    void *arg;
} uci_twin_give_t;

typedef struct uci_twin_take {
    uci_list_t link; /* in link->takes */
    unsigned twin;
    uci_twin_taken_cb_t cb; /* NULL: nobody waits for it */
    void *arg;
    size_t length;
    char data[];
} uci_twin_take_t;

#define uci_twin_for_each_partner(_partner, _link) \
    for (uci_twin_partner_t *_partner = (_link)->partners; _partner < (_link)->partners + uci_settings.twins.of; \
         ++_partner) \
        if (_partner->twin != uci_settings.twins.twin)

static bool uci_twin_partner_lives(const uci_twin_partner_t *partner)
{
    return (partner->state == UCI_TWIN_SEEKING) || (partner->state == UCI_TWIN_TALKING);
}

/* One that has no more to say still wants to hear all that we have, as long as it is there */
static bool uci_twin_partner_listens(const uci_twin_partner_t *partner)
{
    return uci_twin_partner_lives(partner) || ((partner->state == UCI_TWIN_DONE) && !partner->gone);
}

static void uci_twin_release(void *request)
{
    uci_request_free(uci_request_from_user(request));
}

/* ------------------------------------------------------------- hearing */

static void uci_twin_hear(uci_twin_partner_t *partner, size_t length)
{
    partner->heard_time = uci_process_time_ns();
    if (uci_twin_partner_lives(partner)) {
        partner->link->events->heard(partner->twin, partner->inbox, length);
    }
}

static void uci_twin_listen(uci_twin_partner_t *partner);

static void uci_twin_said_to_us(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
    uci_twin_release(request);
    if (status == UCS_OK) { /* else the worker goes, or UCI has reported what became of it */
        uci_twin_hear(arg, info->length);
        uci_twin_listen(arg);
    }
}

/* What has come already is taken here: callbacks that post again would nest */
static void uci_twin_listen(uci_twin_partner_t *partner)
{
    ucp_tag_recv_info_t info  = {0};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv            = uci_twin_said_to_us,
                                 .user_data          = partner,
                                 .recv_info.tag_info = &info};
    ucs_status_ptr_t request;

    while ((request = uci_recv(partner->link->worker, partner->inbox, sizeof(partner->inbox), partner->twin, UINT64_MAX,
                               &param)) == NULL) {
        uci_twin_hear(partner, info.length);
    }
    if (UCS_PTR_IS_ERR(request)) {
        uci_error("failed to listen to twin %u: %s", partner->twin, uci_ucp.status_string(UCS_PTR_STATUS(request)));
        uci_twin_link_end(partner->link, partner->twin, UCI_TWIN_LOST);
    }
}

/* -------------------------------------------------------------- saying */

static void uci_twin_saying_free(uci_twin_saying_t *saying)
{
    saying->partner->bytes -= saying->length;
    free(saying);
}

static void uci_twin_said(void *request, ucs_status_t status, void *arg)
{
    uci_twin_saying_t *saying = arg;

    --saying->partner->sending;
    if (request != NULL) {
        uci_twin_release(request);
    }
    uci_twin_saying_free(saying);
}

static unsigned uci_twin_send(uci_twin_partner_t *partner)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_twin_said};
    unsigned count            = 0;
    uci_twin_saying_t *saying;
    ucs_status_ptr_t request;

    while ((partner->sending < UCI_TWIN_SENDING) && !uci_list_is_empty(&partner->queue)) {
        saying = uci_container_of(partner->queue.next, uci_twin_saying_t, link);
        uci_list_del(&saying->link);
        param.user_data = saying;
        ++partner->sending;
        ++count;
        request = uci_send(partner->ep, saying->data, saying->length, uci_settings.twins.twin, &param, false);
        if (!UCS_PTR_IS_PTR(request)) {
            uci_twin_said(NULL, UCS_PTR_STATUS(request), saying);
        }
    }
    return count;
}

static void uci_twin_drop_queue(uci_twin_partner_t *partner)
{
    uci_list_for_each_safe(saying, &partner->queue, uci_twin_saying_t, link)
    {
        uci_list_del(&saying->link);
        uci_twin_saying_free(saying);
    }
}

void uci_twin_link_say(uci_twin_link_t *link, const void *data, size_t length)
{
    uci_twin_saying_t *saying;

    uci_twin_for_each_partner(partner, link)
    {
        if (!uci_twin_partner_listens(partner)) {
            continue;
        }
        saying = malloc(sizeof(*saying) + length);
        if ((saying == NULL) || (partner->bytes + length > uci_settings.twins_log)) {
            free(saying);
            uci_warn(
                    "%s leaves twin %u behind: more than %zu bytes wait for it (UCI_TWINS_LOG); it is not compared with from now on",
                    uci_process_name(), partner->twin, partner->bytes);
            uci_twin_link_end(link, partner->twin, UCI_TWIN_BEHIND);
            continue;
        }
        saying->partner = partner;
        saying->length  = length;
        memcpy(saying->data, data, length);
        partner->bytes += length;
        uci_list_add_tail(&partner->queue, &saying->link);
    }
}

/* ------------------------------------------------------------- content */

static void *uci_twin_content_alloc(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        uci_fatal("no memory for the content of a message that twins exchange");
    }
    return memory;
}

static void uci_twin_give_end(uci_twin_give_t *give)
{
    give->cb(give->arg);
    free(give);
}

static void uci_twin_given(void *request, ucs_status_t status, void *arg)
{
    uci_twin_release(request);
    uci_twin_give_end(arg);
}

void uci_twin_link_give(uci_twin_link_t *link, unsigned twin, uint64_t id, const void *data, size_t length,
                        uci_twin_given_cb_t cb, void *arg)
{
    uci_twin_partner_t *partner = &link->partners[twin];
    uci_twin_give_t *give       = uci_twin_content_alloc(sizeof(*give));
    ucp_request_param_t param   = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                   .cb.send      = uci_twin_given,
                                   .user_data    = give};
    ucs_status_ptr_t request    = NULL;

    *give = (uci_twin_give_t){.cb = cb, .arg = arg};
    if (partner->state == UCI_TWIN_TALKING) {
        request = uci_send(partner->ep, data, length, UCI_TWIN_TAG_CONTENT | id, &param, false);
    }
    if (!UCS_PTR_IS_PTR(request)) {
        uci_twin_give_end(give);
    }
}

static void uci_twin_take_end(uci_twin_take_t *take, bool ok)
{
    uci_list_del(&take->link);
    if (take->cb != NULL) {
        take->cb(take->arg, ok ? take->data : NULL);
    }
    free(take);
}

static void uci_twin_taken(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
    uci_twin_take_t *take = arg;

    uci_twin_release(request);
    uci_twin_take_end(take, (status == UCS_OK) && (info->length == take->length));
}

void uci_twin_link_take(uci_twin_link_t *link, unsigned twin, uint64_t id, size_t length, uci_twin_taken_cb_t cb,
                        void *arg)
{
    uci_twin_take_t *take     = uci_twin_content_alloc(sizeof(*take) + length);
    ucp_tag_recv_info_t info  = {0};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv            = uci_twin_taken,
                                 .user_data          = take,
                                 .recv_info.tag_info = &info};
    ucs_status_ptr_t request;

    *take = (uci_twin_take_t){.twin = twin, .cb = cb, .arg = arg, .length = length};
    uci_list_add_tail(&link->takes, &take->link);
    request = uci_recv(link->worker, take->data, length, UCI_TWIN_TAG_CONTENT | id, UINT64_MAX, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_twin_take_end(take, !UCS_PTR_IS_ERR(request) && (info.length == length));
    }
}

void uci_twin_link_take_no_more(uci_twin_link_t *link, unsigned twin)
{
    uci_twin_taken_cb_t cb;

    uci_list_for_each_safe(take, &link->takes, uci_twin_take_t, link)
    {
        if ((take->twin == twin) && (take->cb != NULL)) {
            cb       = take->cb;
            take->cb = NULL;
            cb(take->arg, NULL);
        }
    }
}

/* ------------------------------------------------------------ partners */

void uci_twin_link_end(uci_twin_link_t *link, unsigned twin, uci_twin_state_t state)
{
    uci_twin_partner_t *partner = &link->partners[twin];

    if (!uci_twin_partner_lives(partner)) {
        return;
    }
    partner->state = state;
    if (state != UCI_TWIN_DONE) { /* who is done may still want to hear the rest, and has given what it had to give */
        uci_twin_drop_queue(partner);
        uci_twin_link_take_no_more(link, twin);
    }
    link->events->ended(twin);
}

static void uci_twin_check_card(const uci_twin_link_t *link, const uci_twin_card_t *card)
{
    char text[1024];

    if (uci_twin_card_differs(&link->card, card, text, sizeof(text))) {
        uci_fatal("twin %u is no twin of this run: %s (UCI_TWINS)", card->twin, text);
    }
}

static void uci_twin_lose(uci_twin_partner_t *partner)
{
    uci_warn("twin %u of %s is gone (pid %d on host %s): it goes on with those that are left", partner->twin,
             uci_process_name(), (int)partner->card.pid, partner->card.host);
    uci_twin_link_end(partner->link, partner->twin, UCI_TWIN_LOST);
}

/* A process that is ending gives its memory back before it is gone */
static bool uci_twin_is_ending(const uci_twin_partner_t *partner)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    uint64_t end              = uci_process_time_ns() + UCI_TWIN_ALIVE_NS;
    bool is_gone;

    while (!(is_gone = uci_twin_card_is_gone(&partner->card)) && (uci_process_time_ns() < end)) {
        nanosleep(&nap, NULL);
    }
    return is_gone;
}

static void uci_twin_connect(uci_twin_partner_t *partner)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = partner->card.address};
    ucs_status_t status;

    status = uci_ep_open(partner->link->worker, &params, &partner->ep);
    if (status == UCS_OK) {
        if (partner->state == UCI_TWIN_SEEKING) {
            partner->state = UCI_TWIN_TALKING;
        }
        partner->heard_time = uci_process_time_ns();
        uci_info("twin %u is there: pid %d on host %s", partner->twin, (int)partner->card.pid, partner->card.host);
    } else if (uci_twin_is_ending(partner)) {
        uci_twin_lose(partner);
    } else {
        uci_fatal("%s can't connect to twin %u on host %s: %s; does UCX_TLS name a transport that leads there?",
                  uci_process_name(), partner->twin, partner->card.host, uci_ucp.status_string(status));
    }
}

/* Also one that has found us first and is done: it waits for what we have to say */
static void uci_twin_seek(uci_twin_partner_t *partner, uint64_t now)
{
    if ((partner->ep == NULL) && uci_twin_partner_listens(partner) && (now - partner->look_time >= UCI_TWIN_LOOK_NS)) {
        partner->look_time = now;
        if (uci_twin_card_read(uci_settings.twins.folder, partner->twin, partner->link->card.rank, &partner->card) ==
            UCI_OK) {
            partner->seen = true;
            uci_twin_check_card(partner->link, &partner->card);
            uci_twin_connect(partner);
        }
    }
}

/* Called when nothing has come: what a process said before it ended counts. Between hosts nobody can tell one that is gone from one that is
 * quiet */
static void uci_twin_look_after(uci_twin_partner_t *partner, uint64_t now)
{
    if ((partner->ep == NULL) || !uci_twin_partner_listens(partner) || (now - partner->look_time < UCI_TWIN_ALIVE_NS)) {
        return;
    }
    partner->look_time = now;
    if (!uci_twin_card_is_gone(&partner->card) || (now - partner->heard_time < UCI_TWIN_ALIVE_NS)) {
        return;
    }
    if (partner->state == UCI_TWIN_DONE) {
        partner->gone = true;
    } else {
        uci_twin_lose(partner);
    }
}

unsigned uci_twin_link_progress(uci_twin_link_t *link)
{
    uint64_t now   = uci_process_time_ns();
    unsigned count = 0;

    if (link->inside) {
        return 0;
    }
    link->inside = true;
    uci_worker_enter(link->worker);
    uci_twin_for_each_partner(partner, link)
    {
        uci_twin_seek(partner, now);
        if (partner->ep != NULL) {
            count += uci_twin_send(partner);
        }
    }
    count += uci_worker_progress(link->worker, link->worker->ucp);
    if (count == 0) {
        uci_twin_for_each_partner(partner, link)
        {
            uci_twin_look_after(partner, now);
        }
    }
    uci_worker_leave(link->worker);
    link->inside = false;
    return count;
}

uci_twin_state_t uci_twin_link_state(const uci_twin_link_t *link, unsigned twin)
{
    return link->partners[twin].state;
}

const uci_twin_card_t *uci_twin_link_card(const uci_twin_link_t *link, unsigned twin)
{
    return link->partners[twin].seen ? &link->partners[twin].card : NULL;
}

bool uci_twin_link_is_inside(const uci_twin_link_t *link)
{
    return link->inside;
}

uint64_t uci_twin_link_heard_time(const uci_twin_link_t *link, unsigned twin)
{
    return link->partners[twin].heard_time;
}

bool uci_twin_link_is_busy(uci_twin_link_t *link)
{
    uci_twin_for_each_partner(partner, link)
    {
        if ((partner->state != UCI_TWIN_SEEKING) && uci_twin_partner_listens(partner) && (partner->bytes > 0)) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------ begin and end */

static ucs_status_t uci_twin_open_worker(uci_twin_link_t *link, uci_context_t *context, bool is_mt)
{
    ucp_worker_params_t params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = is_mt ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE};
    ucs_status_t status;
    ucp_worker_h ucp;

    status = uci_ucp.worker_create(context->ucp, &params, &ucp);
    if (status != UCS_OK) {
        uci_error("failed to create a UCX worker for twins: %s", uci_ucp.status_string(status));
        return status;
    }
    status = uci_worker_create(ucp, context, &params, params.thread_mode, &link->worker);
    if (status != UCS_OK) {
        uci_ucp.worker_destroy(ucp);
        return status;
    }
    uci_worker_set_foreign(link->worker); /* progress is made here, and nowhere else */
    context->apart = true;                /* UCX 1.13 does not survive a key of a process that has ended */
    return UCS_OK;
}

/* The program's statistics are of its own messages; what was damaged here counts */
static void uci_twin_forget_traffic(uci_stats_t *stats)
{
    stats->messages_sent = stats->messages_received = stats->bytes_sent = stats->bytes_received = 0;
    stats->eager_messages = stats->rendezvous_messages = stats->buffered_messages = 0;
    stats->get_messages = stats->bounce_messages = 0;
    stats->rendezvous_bytes = stats->get_bytes = stats->bounce_bytes = 0;
}

static void uci_twin_close_worker(uci_twin_link_t *link)
{
    ucp_worker_h ucp = link->worker->ucp;

    uci_twin_forget_traffic(link->worker->stats.counters);
    uci_worker_shutdown(link->worker);
    uci_ucp.worker_destroy(ucp);
    uci_worker_destroy(link->worker);
}

static ucs_status_t uci_twin_leave_card(uci_twin_link_t *link)
{
    uci_worker_t *worker = link->worker;
    size_t length        = worker->self.length;
    void *address        = uci_mark_address(&worker->self.mark, worker->self.address, &length);

    if (address == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_twin_card_fill(&link->card) != UCI_OK) {
        free(address);
        return UCS_ERR_UNSUPPORTED;
    }
    link->card.address        = address;
    link->card.address_length = length;
    return (uci_twin_card_write(uci_settings.twins.folder, &link->card) == UCI_OK) ? UCS_OK : UCS_ERR_IO_ERROR;
}

static void uci_twin_init_partners(uci_twin_link_t *link)
{
    uint64_t now = uci_process_time_ns();
    unsigned k;

    for (k = 0; k < uci_settings.twins.of; ++k) {
        link->partners[k] = (uci_twin_partner_t){.link = link, .twin = k, .heard_time = now};
        uci_list_init(&link->partners[k].queue);
    }
    uci_twin_for_each_partner(partner, link)
    {
        uci_twin_listen(partner);
    }
}

ucs_status_t uci_twin_link_create(uci_context_t *context, bool is_mt, const uci_twin_link_events_t *events,
                                  uci_twin_link_t **link_p)
{
    uci_twin_link_t *link = calloc(1, sizeof(*link));
    ucs_status_t status;

    if (link == NULL) {
        uci_error("failed to allocate what talks to twins");
        return UCS_ERR_NO_MEMORY;
    }
    link->events = events;
    uci_list_init(&link->takes);
    status = uci_twin_open_worker(link, context, is_mt);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = uci_twin_leave_card(link);
    if (status != UCS_OK) {
        goto err_close_worker;
    }
    uci_worker_enter(link->worker);
    uci_twin_init_partners(link);
    uci_worker_leave(link->worker);
    *link_p = link;
    return UCS_OK;

err_close_worker:
    uci_twin_close_worker(link);
    free(link->card.address);
err_free:
    free(link);
    return status;
}

static bool uci_twin_is_closed(ucs_status_ptr_t request)
{
    uci_request_t *ours = uci_request_from_user(request);

    return ((ours != NULL) ? uci_request_check(ours) : uci_ucp.request_check_status(request)) != UCS_INPROGRESS;
}

/* Wait until it is closed, or for the deadline, and give the request back */
static void uci_twin_finish_close(uci_twin_link_t *link, ucs_status_ptr_t request, uint64_t deadline)
{
    uci_request_t *ours = uci_request_from_user(request);

    while (!uci_twin_is_closed(request) && (uci_process_time_ns() < deadline)) {
        uci_worker_progress(link->worker, link->worker->ucp);
    }
    if (ours != NULL) {
        uci_request_free(ours);
    } else {
        uci_ucp.request_free(request);
    }
}

/* As a program closes its endpoints; one whose other end has gone does not end */
static void uci_twin_close_eps(uci_twin_link_t *link)
{
    ucp_request_param_t param                = {.op_attr_mask = 0};
    uint64_t deadline                        = uci_process_time_ns() + UCI_TWIN_CLOSE_NS;
    ucs_status_ptr_t requests[UCI_TWINS_MAX] = {NULL};

    uci_twin_for_each_partner(partner, link)
    {
        if (partner->ep != NULL) {
            param.op_attr_mask      = (partner->state == UCI_TWIN_DONE) && !partner->gone ? 0 : UCP_OP_ATTR_FIELD_FLAGS;
            param.flags             = UCP_EP_CLOSE_FLAG_FORCE;
            requests[partner->twin] = uci_ep_close(partner->ep, &param);
        }
    }
    uci_twin_for_each_partner(partner, link)
    {
        if (UCS_PTR_IS_PTR(requests[partner->twin])) {
            uci_twin_finish_close(link, requests[partner->twin], deadline);
        }
    }
}

void uci_twin_link_destroy(uci_twin_link_t *link)
{
    uci_twin_card_remove(uci_settings.twins.folder, &link->card);
    uci_worker_enter(link->worker);
    uci_twin_for_each_partner(partner, link)
    {
        uci_twin_drop_queue(partner);
    }
    uci_twin_close_eps(link);
    uci_worker_leave(link->worker);
    uci_twin_close_worker(link);
    uci_list_for_each_safe(take, &link->takes, uci_twin_take_t, link)
    {
        free(take);
    }
    uci_twin_for_each_partner(partner, link)
    {
        if (partner->seen) {
            uci_twin_card_cleanup(&partner->card);
        }
    }
    free(link->card.address);
    free(link);
}
