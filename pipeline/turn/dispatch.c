/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include <stdlib.h>

#include "link/blame.h"
#include "link/control.h"
#include "link/txlog.h"
#include "base/am_handler.h"
#include "base/peer_table.h"
#include "base/recv_table.h"
#include "base/wire_check.h"

#define UCI_AM_DECLARE(_name) extern const uci_am_handler_t uci_am_##_name;
#define UCI_AM_ENTRY(_name)   [UCI_AM_##_name] = &uci_am_##_name,

UCI_AM_TYPES(UCI_AM_DECLARE)

const uci_am_handler_t *const uci_am_handlers[UCI_AM_LAST] = {UCI_AM_TYPES(UCI_AM_ENTRY)};

static uint64_t uci_dispatch_seq(const uci_am_t *am, const uci_am_handler_t *handler)
{
    if (handler->seq != NULL) {
        return handler->seq(am);
    }
    return (handler->about == UCI_AM_ABOUT_SEND) ? uci_txlog_expand(am->peer, am->hdr->seq)
                                                 : uci_seq_expand(am->hdr->seq, am->peer->rx.next);
}

/* What can be said of it by its type alone */
static const char *uci_dispatch_check_form(const uci_am_t *am, const uci_am_handler_t *handler)
{
    if (uci_unlikely((am->hdr->flags & ~handler->flags) != 0)) {
        return "flags that it does not have";
    }
    if (uci_unlikely((am->length < handler->min) || (am->length > handler->max) ||
                     ((am->length & (handler->grain - 1u)) != 0))) {
        return "more, or less, than it has to";
    }
    return uci_unlikely(handler->in_clear && !am->peer->in_clear) ? UCI_WIRE_IN_CLEAR : NULL;
}

/* What can be said beside the message that it is about */
static const char *uci_dispatch_check_about(const uci_am_t *am, const uci_am_handler_t *handler)
{
    const uci_recv_op_t *op;
    const char *wrong;

    if (handler->about == UCI_AM_ABOUT_SEND) {
        return uci_likely(am->seq < am->peer->tx.next) ? NULL : "something about a message that was never sent";
    }
    if (handler->about != UCI_AM_ABOUT_RECV) {
        return NULL;
    }
    wrong = uci_wire_check_seq(am->seq);
    if (uci_unlikely(wrong != NULL) || (handler->check_recv == NULL)) {
        return wrong;
    }
    op = uci_recv_op_of(am);
    return uci_likely(op != NULL) ? handler->check_recv(op, am) : NULL; /* one that is over is none */
}

static const char *uci_dispatch_check(const uci_am_t *am, const uci_am_handler_t *handler)
{
    const char *wrong = uci_dispatch_check_form(am, handler);

    if (uci_likely(wrong == NULL) && (handler->check != NULL)) {
        wrong = handler->check(am);
    }
    return uci_likely(wrong == NULL) ? uci_dispatch_check_about(am, handler) : wrong;
}

/* As good as damaged: whoever waits for what it should have said asks again, and gives up at last */
static UCI_NOINLINE void uci_dispatch_refuse(uci_peer_t *peer, const uci_am_hdr_t *hdr, const char *name,
                                             const char *wrong)
{
    uci_wire_refuse(peer, name, wrong);
    uci_blame(peer->worker, hdr);
    uci_control_count_dropped(peer->worker);
}

/* What has been checked, and waits */
typedef struct uci_later {
    uci_list_t link; /* in worker->turn.later */
    uci_am_hdr_t hdr;
    char data[] __attribute__((aligned(8)));
} uci_later_t;

/* What the same peer has said before, if it was the same: so there is one of each at most */
static void uci_dispatch_forget(uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    uci_list_for_each_safe(later, &worker->turn.later, uci_later_t, link)
    {
        if ((later->hdr.uid == hdr->uid) && (later->hdr.type == hdr->type)) {
            uci_list_del(&later->link);
            free(later);
        }
    }
}

/* One that finds no memory is as good as lost */
static void uci_dispatch_put_off(uci_worker_t *worker, const uci_am_t *am)
{
    uci_later_t *later = malloc(sizeof(*later) + am->length);

    if (later == NULL) {
        return;
    }
    uci_dispatch_forget(worker, am->hdr);
    later->hdr = *am->hdr;
    memcpy(later->data, am->data, am->length);
    uci_list_add_tail(&worker->turn.later, &later->link);
}

static uci_later_t *uci_dispatch_next_later(uci_worker_t *worker)
{
    uci_later_t *later = uci_container_of(worker->turn.later.next, uci_later_t, link);

    uci_list_del(&later->link);
    return later;
}

void uci_dispatch_later(uci_worker_t *worker)
{
    uci_later_t *later;
    uci_am_t am;

    while (!uci_list_is_empty(&worker->turn.later)) {
        later = uci_dispatch_next_later(worker);
        am    = (uci_am_t){.hdr    = &later->hdr,
                           .data   = later->data,
                           .length = later->hdr.length,
                           .peer   = uci_worker_peer_find(worker, later->hdr.uid)};
        if (am.peer != NULL) {
            uci_am_handler(worker, later->hdr.type)->take(&am);
        }
        free(later);
    }
}

void uci_dispatch_cleanup(uci_worker_t *worker)
{
    while (!uci_list_is_empty(&worker->turn.later)) {
        free(uci_dispatch_next_later(worker));
    }
}

ucs_status_t uci_dispatch(uci_worker_t *worker, const uci_am_hdr_t *hdr, const void *data, size_t length, void *desc)
{
    const uci_am_handler_t *handler = uci_am_handler(worker, hdr->type);
    uci_am_t am                     = {.hdr = hdr, .data = data, .length = length, .desc = desc};
    const char *wrong;

    am.peer = uci_worker_peer(worker, hdr->uid);
    if (am.peer == NULL) {
        return UCS_OK;
    }
    if (uci_unlikely(handler == NULL)) {
        uci_dispatch_refuse(am.peer, hdr, "a message", "a type that does not exist");
        return UCS_OK;
    }
    am.seq = uci_dispatch_seq(&am, handler);
    wrong  = uci_dispatch_check(&am, handler);
    if (uci_unlikely(wrong != NULL)) {
        uci_dispatch_refuse(am.peer, hdr, handler->name, wrong);
        return UCS_OK;
    }
    if (desc == NULL) { /* what it offers is not here yet */
        uci_control_count_intact(worker);
        uci_control_hear(am.peer);
    }
    if (uci_unlikely(handler->later)) {
        uci_dispatch_put_off(worker, &am);
        return UCS_OK;
    }
    handler->take(&am);
    return am.kept ? UCS_INPROGRESS : UCS_OK;
}
