/* SPDX-License-Identifier: BSD-3-Clause */
#include "gauges.h"

#include <stdio.h>

#include "live/live.h"
#include "live/live_file.h"
#include "base/peer_table.h"
#include "util/process.h"
#include "transfer/recv_op_part.h"
#include "report/report.h"
#include "transfer/send_op_part.h"

#define UCI_GAUGES_WALK 1000u /* no list is walked further: a count of so many is "at least" */

/* A walk over lists that may be long, at one time */
typedef struct uci_gauges {
    uci_live_gauges_t *live;
    uint64_t now;   /* monotonic */
    uint64_t wall;  /* the same since the epoch */
    unsigned waits; /* taken of live->waits */
} uci_gauges_t;

static uint64_t uci_gauges_time(const uci_gauges_t *gauges, uint64_t monotonic)
{
    return ((monotonic == 0) || (monotonic > gauges->now)) ? 0 : gauges->wall - (gauges->now - monotonic);
}

static unsigned uci_gauges_count(const uci_list_t *head)
{
    unsigned count = 0;

    for (const uci_list_t *elem = head->next; (elem != head) && (count < UCI_GAUGES_WALK); elem = elem->next) {
        ++count;
    }
    return count;
}

static uci_live_wait_t *uci_gauges_add(uci_gauges_t *gauges, uci_live_wait_kind_t kind, unsigned count, uint64_t since)
{
    uci_live_wait_t *wait = &gauges->live->waits[gauges->waits++];

    memset(wait, 0, sizeof(*wait));
    wait->kind  = kind;
    wait->rank  = UCI_LIVE_NO_RANK;
    wait->count = count;
    wait->since = uci_gauges_time(gauges, since);
    return wait;
}

static void uci_gauges_name_peer(uci_live_wait_t *wait, const uci_peer_t *peer)
{
    wait->rank = uci_peer_rank(peer);
    wait->pid  = peer->known ? peer->mark.pid : 0;
    snprintf(wait->host, sizeof(wait->host), "%.*s", (int)sizeof(wait->host) - 1, peer->known ? peer->mark.host : "");
}

/* What a receive asks for; the parts of a tag that it leaves open are 0 in it */
static void uci_gauges_describe(uci_live_wait_t *wait, ucp_tag_t tag, ucp_tag_t mask)
{
    char text[96];

    if (mask == UINT64_MAX) {
        uci_report_tag(tag, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "0x%016lx of mask 0x%016lx", (unsigned long)tag, (unsigned long)mask);
    }
    snprintf(wait->what, sizeof(wait->what), "%.*s", (int)sizeof(wait->what) - 1, text);
}

/* ------------------------------------------------------------ whom for */

static void uci_gauges_find_oldest(void *arg, uci_match_recv_t *recv)
{
    const uci_match_recv_t **oldest_p = arg;

    if ((*oldest_p == NULL) || (recv->number < (*oldest_p)->number)) {
        *oldest_p = recv;
    }
}

/* Nobody notes when a receive is posted; that it is still the oldest one, as it was before, tells for how long at least */
static void uci_gauges_show_posted(uci_gauges_t *gauges, uci_worker_t *worker)
{
    const uci_match_recv_t *oldest = NULL;

    if ((worker->match.recvs_count == 0) || (worker->match.recvs_count > UCI_GAUGES_WALK)) {
        return;
    }
    uci_match_visit_recvs(&worker->match, uci_gauges_find_oldest, &oldest);
    if (oldest == NULL) {
        return;
    }
    if ((worker->turn.gauge.oldest != oldest->number) || (worker->turn.gauge.oldest_time == 0)) {
        worker->turn.gauge.oldest      = oldest->number;
        worker->turn.gauge.oldest_time = gauges->now;
    }
    uci_gauges_describe(uci_gauges_add(gauges, UCI_LIVE_WAIT_POSTED, (unsigned)worker->match.recvs_count,
                                       worker->turn.gauge.oldest_time),
                        oldest->tag, oldest->mask);
}

static void uci_gauges_show_receiving(uci_gauges_t *gauges, const uci_worker_t *worker)
{
    const uci_recv_op_t *op;
    uci_live_wait_t *wait;

    if (uci_list_is_empty(&worker->xfer.recv_ops)) {
        return;
    }
    op   = uci_container_of(worker->xfer.recv_ops.next, uci_recv_op_t, link);
    wait = uci_gauges_add(gauges, UCI_LIVE_WAIT_RECEIVING, uci_gauges_count(&worker->xfer.recv_ops), op->ask.time);
    wait->bytes = op->length;
    uci_gauges_name_peer(wait, op->peer);
    uci_gauges_describe(wait, op->tag, UINT64_MAX);
}

static void uci_gauges_show_sending(uci_gauges_t *gauges, const uci_worker_t *worker)
{
    const uci_send_op_t *op;
    uci_live_wait_t *wait;

    if (uci_list_is_empty(&worker->xfer.send_ops)) {
        return;
    }
    op   = uci_container_of(worker->xfer.send_ops.next, uci_send_op_t, all);
    wait = uci_gauges_add(gauges, UCI_LIVE_WAIT_SENDING, uci_gauges_count(&worker->xfer.send_ops), op->start_time);
    wait->bytes = op->length;
    uci_gauges_name_peer(wait, op->peer);
    if (op->frame != NULL) {
        uci_gauges_describe(wait, uci_frame_tag(op->frame), UINT64_MAX);
    }
}

/* Of those who have not acknowledged all for two looks the one that has been silent for longest */
static void uci_gauges_show_logged(uci_gauges_t *gauges, const uci_worker_t *worker)
{
    const uci_peer_t *oldest = NULL;
    unsigned walked          = 0;
    uci_live_wait_t *wait;

    uci_list_for_each(peer, &worker->link.watched, uci_peer_t, log.watched_link)
    {
        if (++walked > UCI_GAUGES_WALK) {
            break;
        }
        if ((peer->tx.acked != peer->tx.next) && (peer->tx.acked == peer->log.seen) &&
            ((oldest == NULL) || (peer->log.time < oldest->log.time))) {
            oldest = peer;
        }
    }
    if (oldest != NULL) {
        wait = uci_gauges_add(gauges, UCI_LIVE_WAIT_LOGGED, (unsigned)(oldest->tx.next - oldest->tx.acked),
                              oldest->log.time);
        uci_gauges_name_peer(wait, oldest);
    }
}

/* --------------------------------------------------------------- state */

static uint64_t uci_gauges_mailboxes(const uci_worker_t *worker)
{
    uint64_t count = 0;

    uci_worker_for_each_peer(peer, worker)
    {
        count += peer->box.used;
    }
    return count;
}

static void uci_gauges_write(uci_worker_t *worker, uint64_t now)
{
    uci_live_gauges_t *live = uci_live_begin_gauges(worker->stats.live);
    uci_gauges_t gauges     = {.live = live, .now = now, .wall = uci_live_time()};

    live->time          = gauges.wall;
    live->log_bytes     = worker->link.log_bytes;
    live->log_limit     = worker->link.log_limit;
    live->copy_bytes    = worker->xfer.copy_bytes;
    live->peers         = worker->peers.count;
    live->peers_mailbox = uci_gauges_mailboxes(worker);
    live->posted        = worker->match.recvs_count;
    live->unexpected    = worker->match.msgs_count;
    live->receiving     = uci_gauges_count(&worker->xfer.recv_ops);
    live->sending       = uci_gauges_count(&worker->xfer.send_ops);
    uci_gauges_show_posted(&gauges, worker);
    uci_gauges_show_receiving(&gauges, worker);
    uci_gauges_show_sending(&gauges, worker);
    uci_gauges_show_logged(&gauges, worker);
    memset(&live->waits[gauges.waits], 0, (UCI_LIVE_WAITS - gauges.waits) * sizeof(live->waits[0]));
    uci_live_end_gauges(live);
}

void uci_gauges_refresh(uci_worker_t *worker)
{
    uint64_t now;

    if (worker->stats.live == NULL) {
        return;
    }
    now = uci_process_time_ns();
    if ((worker->turn.gauge.time != 0) && (now - worker->turn.gauge.time < UCI_GAUGES_NS)) {
        return;
    }
    worker->turn.gauge.time = now;
    uci_gauges_write(worker, now);
}
