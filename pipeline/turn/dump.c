/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump.h"

#include <stdio.h>

#include "conversation/conversation.h"
#include "conn/close.h"
#include "conn/sock.h"
#include "report/dump_line.h"
#include "transfer/get.h"
#include "base/path.h"
#include "base/peer_table.h"
#include "util/process.h"
#include "transfer/recv_op_part.h"
#include "transfer/send_op_part.h"
#include "base/siblings.h"
#include "transfer/superpipe.h"
#include "link/txlog.h"
#include "message/unexpected.h"

static const char *const uci_dump_send_states[] = {
        [UCI_SEND_DESCRIBED] = "described", [UCI_SEND_QUEUED] = "queued",          [UCI_SEND_DIRECT] = "direct",
        [UCI_SEND_MATCHED] = "matched",     [UCI_SEND_OFFERED] = "offered",        [UCI_SEND_BOUNCING] = "bouncing",
        [UCI_SEND_STREAMING] = "streaming", [UCI_SEND_WAIT_FIN] = "waits for FIN", [UCI_SEND_DONE] = "done"};

static const char *const uci_dump_rungs[] = {
        [UCI_RUNG_NONE] = "first transfer", [UCI_RUNG_GET] = "repair by get", [UCI_RUNG_COPY] = "repair by copy"};

static const char *const uci_dump_chunk_states[] = {[UCI_CHUNK_MISSING] = "missing",
                                                    [UCI_CHUNK_LANDED]  = "landed",
                                                    [UCI_CHUNK_GOOD]    = "good",
                                                    [UCI_CHUNK_BAD]     = "bad"};

/* What is too long is probably a list that was stopped in the middle of a change. Also ends where one leads nowhere */
static unsigned uci_dump_count(const uci_list_t *head)
{
    const uci_list_t *elem = head->next;
    unsigned count         = 0;

    for (; (elem != NULL) && (elem != head) && (count < 100000); elem = elem->next) {
        ++count;
    }
    return count;
}

#define UCI_DUMP_FLAG(_object, _flag) ((_object)->_flag ? " " #_flag : "")

static double uci_dump_seconds_since(uint64_t time)
{
    return (time == 0) ? 0 : (double)(int64_t)(uci_process_time_ns() - time) * 1e-9;
}

/* ------------------------------------------------------------ operations */

static void uci_dump_send(int fd, const uci_send_op_t *op)
{
    unsigned state = uci_min((unsigned)op->state, (unsigned)UCI_SEND_DONE);
    char path[64]  = "";

    if ((op->way.ops != NULL) && (op->way.ops->describe_send != NULL)) {
        op->way.ops->describe_send(op, path, sizeof(path));
    }
    uci_dump_line(
            fd,
            "  send to %s, message %lu: %s; %lu bytes, %u chunks of %u; next %u%s; in flight %u, grants %u; asked %u "
            "times, begun %.3f s ago;%s%s%s%s",
            uci_peer_name(op->peer), (unsigned long)((op->frame != NULL) ? op->frame->seq : 0),
            uci_dump_send_states[state], (unsigned long)op->length, op->chunk.count, op->chunk.size, op->chunk.next,
            path, op->way.in_flight, uci_dump_count(&op->way.grants), op->queries,
            uci_dump_seconds_since(op->start_time), UCI_DUMP_FLAG(op, sync),
            (op->chunk.changed != NULL) ? " changed" : "", (op->copy != NULL) ? " copied" : "",
            (op->req != NULL) ? " user waits" : " user is done");
}

/* @return the first chunk that is not right, or op->chunks */
static uint32_t uci_dump_first_wrong(const uci_recv_op_t *op)
{
    uint32_t i = 0;

    while ((op->chunk.state != NULL) && (i < op->chunk.count) && (op->chunk.state[i] == UCI_CHUNK_GOOD)) {
        ++i;
    }
    return i;
}

static const char *uci_dump_wrong(const uci_recv_op_t *op, char *text, size_t size)
{
    uint32_t first = uci_dump_first_wrong(op);

    if ((op->chunk.state == NULL) || (first >= op->chunk.count) ||
        (op->chunk.state[first] >= uci_array_size(uci_dump_chunk_states))) {
        return "";
    }
    snprintf(text, size, " (first wrong: %u, %s)", first, uci_dump_chunk_states[op->chunk.state[first]]);
    return text;
}

static void uci_dump_recv(int fd, const uci_recv_op_t *op)
{
    unsigned rung = uci_min((unsigned)op->repair.rung, (unsigned)UCI_RUNG_COPY);
    char wrong[64], path[64] = "";

    if ((op->way.ops != NULL) && (op->way.ops->describe_recv != NULL)) {
        op->way.ops->describe_recv(op, path, sizeof(path));
    }
    uci_dump_line(
            fd,
            "  receive from %s, message %lu, tag 0x%lx, slot %u: %s; %lu bytes, %u chunks of %u: %u good, %u bad, "
            "%u landed, %u missing%s; roots %u, attempts %u, awaiting %u, gets %u, arrived %u, asked %u times, last "
            "%.3f s ago, %u answers damaged%s;%s%s%s%s%s%s%s%s",
            uci_peer_name(op->peer), (unsigned long)op->seq, (unsigned long)op->tag, op->slot, uci_dump_rungs[rung],
            (unsigned long)op->length, op->chunk.count, op->chunk.size, op->chunk.good, op->chunk.bad, op->chunk.landed,
            op->chunk.count - op->chunk.good - op->chunk.bad - op->chunk.landed,
            uci_dump_wrong(op, wrong, sizeof(wrong)), op->repair.roots, op->repair.attempts, op->repair.awaiting,
            op->way.gets, op->way.arrived, op->repair.asked, uci_dump_seconds_since(op->ask.time), op->repair.refused,
            path, UCI_DUMP_FLAG(op, way.slotless), UCI_DUMP_FLAG(op, repair.descending),
            UCI_DUMP_FLAG(op, chunk.have_leaves), UCI_DUMP_FLAG(op, chunk.have_root), UCI_DUMP_FLAG(op, way.ask_later),
            (op->packed != NULL) ? " collected" : "", (op->repair.ahead != NULL) ? " ahead" : "",
            (op->req != NULL) ? " user waits" : "");
}

/* One that UCX has, of a side without UCI, is of no peer */
static void uci_dump_message(int fd, const uci_message_t *message, const char *where)
{
    uci_dump_line(fd, "  %s message %lu from %s, tag 0x%lx, %lu bytes;%s%s%s", where, (unsigned long)message->seq,
                  (message->peer != NULL) ? uci_peer_name(message->peer) : "a side without UCI",
                  (unsigned long)message->hdr.tag, (unsigned long)message->length, UCI_DUMP_FLAG(message, lost),
                  (message->adopted != NULL) ? " adopted" : "", (message->req != NULL) ? " matched" : "");
}

#define uci_dump_each(_fd, _list, _type, _member, ...) \
    do { \
        unsigned _shown = 0; \
        uci_list_for_each(each, _list, _type, _member) \
        { \
            if ((each->_member.next == NULL) || (++_shown > UCI_DUMP_MAX)) { \
                uci_dump_line(_fd, "  ... and more"); \
                break; \
            } \
            __VA_ARGS__; \
        } \
    } while (0)

static void uci_dump_operations(int fd, const uci_worker_t *worker)
{
    uci_dump_each(fd, &worker->xfer.send_ops, uci_send_op_t, all, uci_dump_send(fd, each));
    uci_dump_each(fd, &worker->xfer.recv_ops, uci_recv_op_t, link, uci_dump_recv(fd, each));
    uci_dump_each(fd, &worker->match.all_msgs, uci_match_msg_t, all,
                  uci_dump_message(fd, uci_container_of(each, uci_message_t, match), "unexpected"));
    uci_dump_each(fd, &worker->msgs.probed, uci_message_t, link, uci_dump_message(fd, each, "probed"));
    uci_close_dump(worker, fd);
    uci_sock_dump(worker, fd);
}

/* ---------------------------------------------------------------- peers */

static void uci_dump_one_sided(int fd, const uci_rma_peer_t *rma)
{
    if ((rma->sent == 0) && (rma->arrived == 0)) {
        return;
    }
    uci_dump_line(fd,
                  "    one-sided: sent %lu, executed there %lu, to be fetched %u, flushes that wait %u; arrived %lu, "
                  "executed %lu, waiting %u",
                  (unsigned long)rma->sent, (unsigned long)rma->done, uci_dump_count(&rma->fetches),
                  uci_dump_count(&rma->flushes), (unsigned long)rma->arrived, (unsigned long)rma->executed,
                  uci_dump_count(&rma->jobs));
}

static void uci_dump_peer(int fd, const uci_peer_t *peer)
{
    uci_dump_line(
            fd,
            "  peer %s, uid 0x%lx, %u endpoints: sent: next %lu, posted %lu, lowest in the log %lu, acknowledged %lu, asked "
            "%u times, by active message below %lu, place in the mailbox %lu; received: next %lu, held %zu, damaged %zu, "
            "asked %u times, unacknowledged %u, place %lu; pending %u, sending %u, chunks held %u, queued %u, draining %u, "
            "%s, status %d, byes %u, round %u, FINs %lu (%lu told);%s%s%s%s%s%s%s%s",
            uci_peer_name(peer), (unsigned long)peer->uid, uci_dump_count(&peer->eps), (unsigned long)peer->tx.next,
            (unsigned long)peer->tx.posted, (unsigned long)peer->tx.base, (unsigned long)peer->tx.acked, peer->log.asks,
            (unsigned long)peer->box.am_until,
            peer->box.mapped ? (unsigned long)uci_box_tx_position(&peer->box.tx) : 0ul, (unsigned long)peer->rx.next,
            peer->rx.held.count, peer->rx.gaps.count, peer->rx.gap_asks, peer->rx.unacked,
            (peer->box.own >= 0)
                    ? (unsigned long)uci_box_rx_position(&peer->worker->link.mailbox.boxes[peer->box.own].rx)
                    : 0ul,
            uci_dump_count(&peer->talk.pending), peer->talk.sending, peer->xfer.chunks_held,
            uci_dump_count(&peer->xfer.queued), peer->xfer.draining, uci_conversation_states[peer->conversation.state],
            (int)peer->conversation.status, peer->talk.byes, peer->conversation.round,
            (unsigned long)peer->talk.fins_sent, (unsigned long)peer->conversation.fins_told,
            UCI_DUMP_FLAG(peer, talk.heard), UCI_DUMP_FLAG(peer, talk.hello_sent), UCI_DUMP_FLAG(peer, box.used),
            UCI_DUMP_FLAG(peer, box.mapped), UCI_DUMP_FLAG(peer, box.offered), UCI_DUMP_FLAG(peer, rx.special),
            UCI_DUMP_FLAG(peer, slots.offered), UCI_DUMP_FLAG(peer, slots.maps_ours));
    uci_dump_one_sided(fd, &peer->rma);
}

static unsigned uci_dump_logged(const uci_worker_t *worker)
{
    unsigned count = 0;

    uci_worker_for_each_peer(peer, worker)
    {
        count += (unsigned)uci_txlog_count(peer);
    }
    return count;
}

static size_t uci_dump_frames(const uci_worker_t *worker)
{
    size_t count = 0;
    unsigned cls;

    for (cls = 0; cls < UCI_FRAME_CLASSES; ++cls) {
        count += worker->frames.cls[cls].in_use;
    }
    return count;
}

/* --------------------------------------------------------------- workers */

static void uci_dump_worker(uci_worker_t *worker, void *arg)
{
    unsigned shown = 0;
    int fd         = *(int *)arg;

    uci_dump_line(
            fd,
            " worker of uid 0x%lx:%s turns %u%s, active %u, resync %d (in %.3f s), round trip %.1f us, dropped %lu; in "
            "progress: streams %u, offers %u, landed %u, bounces %u, direct sends %u, direct receives %u, unsent "
            "%u, completed %d",
            (unsigned long)worker->uid, worker->access.is_mt ? " for several threads," : "", worker->turn.count,
            uci_worker_is_inside(worker) ? " (inside of one)" : "", worker->ops_active, worker->talk.resync,
            worker->talk.resync ? -uci_dump_seconds_since(worker->talk.resync_time) : 0.0,
            (double)worker->talk.round_trip * 1e-3, (unsigned long)worker->talk.dropped,
            uci_dump_count(&worker->xfer.streams), uci_dump_count(&worker->xfer.offers),
            uci_dump_count(&worker->xfer.landed), uci_dump_count(&worker->xfer.bounces),
            uci_dump_count(&worker->xfer.direct_sends), uci_dump_count(&worker->xfer.direct_recvs),
            uci_dump_count(&worker->talk.unsent), worker->requests.completed != NULL);
    uci_dump_line(
            fd,
            "  send operations %u, receive operations %u, posted receives %zu, unexpected messages %zu, probed %u, "
            "closes %u, peers of which something is missing %u; requests in use %zu; frames in use %zu, %u of them in "
            "logs; free: slots %u, spans %u",
            uci_dump_count(&worker->xfer.send_ops), uci_dump_count(&worker->xfer.recv_ops), worker->match.recvs_count,
            worker->match.msgs_count, uci_dump_count(&worker->msgs.probed), uci_dump_count(&worker->conn.closing),
            uci_dump_count(&worker->link.suspects), worker->requests.pool.in_use, uci_dump_frames(worker),
            uci_dump_logged(worker), worker->link.bounce.available, worker->spans.free_count);
    uci_worker_for_each_peer(peer, worker)
    {
        if (++shown <= UCI_DUMP_MAX) {
            uci_dump_peer(fd, peer);
        }
    }
    uci_dump_operations(fd, worker);
}

void uci_dump(int fd)
{
    uci_dump_line(fd, "UCI state of %s:", uci_process_name());
    if (uci_siblings_visit(uci_dump_worker, &fd) == 0) {
        uci_dump_line(fd, " no worker");
    }
}
