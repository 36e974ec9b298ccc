/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdlib.h>

#include "util/log.h"
#include "mismatch.h"
#include "base/request.h"
#include "forensics/mpi_tag.h"
#include "base/path.h"
#include "port_errors.h"
#include "util/process.h"
#include "record.h"
#include "settings/settings.h"
#include "live/stats.h"

#define UCI_REPORT_PLACES 64 /* wrong bytes that are looked for elsewhere in the message: half of that at most */
#define UCI_REPORT_SEARCH (16ul << 20)

static unsigned uci_report_lines, uci_report_changes;

void uci_report_init(void)
{
    uci_record_init();
}

/* --------------------------------------------------- what it is about */

static uci_record_t uci_report_of(uci_recv_op_t *op)
{
    const uci_damage_t *damage = op->damages.first;
    uci_record_t record        = {.reason     = "",
                                  .peer       = op->peer,
                                  .tag        = op->tag,
                                  .user_am    = (op->req->flags & UCI_REQUEST_USER_AM) != 0,
                                  .seq        = op->seq,
                                  .kind       = "rendezvous",
                                  .length     = op->length,
                                  .chunk_size = op->chunk.size,
                                  .chunks     = op->chunk.count,
                                  .bad        = op->chunk.bad,
                                  .way        = (damage != NULL) ? damage->way : UCI_WAY_UNKNOWN,
                                  .damages    = &op->damages,
                                  .digest     = op->chunk.digest,
                                  .expected   = op->chunk.expected[(damage != NULL) ? damage->index : 0],
                                  .rung       = op->repair.rung,
                                  .healed_by  = op->repair.healed_by,
                                  .gets_wrong = op->repair.gets_wrong,
                                  .attempts   = op->repair.attempts,
                                  .start_time = op->repair.start_time};

    return record;
}

/* A frame is a message of one chunk */
static uci_record_t uci_report_of_frame(uci_peer_t *peer, uint64_t seq, const uci_frame_hdr_t *hdr, uci_way_t way,
                                        const uci_damages_t *damages)
{
    uci_record_t record = {.reason     = "",
                           .peer       = peer,
                           .tag        = hdr->tag,
                           .user_am    = uci_frame_is_user_am(hdr->kind),
                           .seq        = seq,
                           .kind       = (uci_frame_kind(hdr->kind) == UCI_FRAME_RNDV) ? "descriptor" : "eager",
                           .length     = hdr->length,
                           .chunk_size = uci_max(hdr->length, 1u),
                           .chunks     = 1,
                           .bad        = 1,
                           .way        = way,
                           .damages    = damages,
                           .digest     = uci_digest_by_id(hdr->digest),
                           .expected   = hdr->value,
                           .rung       = UCI_RUNG_COPY,
                           .healed_by  = UCI_RUNG_COPY};

    return record;
}

/* ------------------------------------------------- what was seen of it */

static uci_observation_t uci_report_observe(const uci_record_t *record, uci_reason_t reason)
{
    const uci_damage_t *damage = (record->damages != NULL) ? record->damages->first : NULL;
    uci_observation_t seen     = {.way        = record->way,
                                  .reason     = reason,
                                  .gets_wrong = record->gets_wrong,
                                  .healed_by  = uci_record_rung(record->healed_by),
                                  .host       = uci_process_host(),
                                  .peer_host  = ((record->peer != NULL) && record->peer->known) ? record->peer->mark.host
                                                                                                : "of the sender",
                                  .transports = (record->peer != NULL) ? uci_peer_transports(record->peer) : ""};

    if (damage != NULL) {
        seen.compared = damage->compared && (damage->equal || (damage->diff.damage != UCI_DAMAGE_UNKNOWN));
        seen.equal    = damage->equal;
        seen.damage   = damage->diff.damage;
        seen.span     = damage->diff.last - damage->diff.first + 1;
        seen.arrived  = damage->length;
        seen.length   = damage->compared ? damage->right : damage->length;
    }
    return seen;
}

/* Are the first wrong bytes the right ones of another place of the message? */
static void uci_report_locate(const uci_recv_op_t *op, uci_observation_t *seen)
{
    const uci_damage_t *damage = op->damages.first;
    const char *message;
    size_t offset;

    if ((damage == NULL) || !damage->compared || damage->equal) {
        return;
    }
    message = uci_buffer_direct(op->buffer, 0, uci_min(op->length, UCI_REPORT_SEARCH));
    offset  = damage->diff.first;
    if ((message != NULL) && (offset < damage->kept) &&
        uci_forensics_locate(damage->data + offset, uci_min(damage->kept - offset, UCI_REPORT_PLACES / 2ul), message,
                             uci_min(op->length, UCI_REPORT_SEARCH), &offset)) {
        seen->elsewhere = true;
        seen->place     = offset;
    }
}

static uci_observation_t uci_report_observe_op(const uci_recv_op_t *op, const uci_record_t *record, uci_reason_t reason)
{
    const uci_damage_t *get = op->wrong_gets.first;
    uci_observation_t seen  = uci_report_observe(record, reason);

    /* one that was never brought intact was told as changed all the same */
    seen.changed  = (op->repair.changed == 0) ? op->repair.told_changed : op->repair.changed;
    seen.caught   = op->peer->changed;
    seen.header   = (op->damages.first == NULL) && (reason == UCI_REASON_NONE);
    seen.get_same = op->get_same;
    if ((get != NULL) && get->compared && !get->equal) {
        seen.get_compared = true;
        seen.get_damage   = get->diff.damage;
    }
    if (op->overlap.found) {
        uci_report_name(op->overlap.tag, op->overlap.user_am, seen.overlap, sizeof(seen.overlap));
    }
    uci_report_locate(op, &seen);
    return seen;
}

/* Decide, and write the record. @param printed  it will be: only for somebody who reads it are the ports worth a look */
static void uci_report_conclude(uci_record_t *record, uci_observation_t *seen, bool printed)
{
    uci_rdma_sample_t *ports = (printed || uci_record_is_on()) ? uci_port_errors_now() : NULL;
    char text[256];

    uci_port_errors_print(ports, text, sizeof(text));
    seen->ports   = text;
    record->ports = ports;
    record->cause = uci_verdict_decide(seen, record->evidence, sizeof(record->evidence));
    if ((record->cause == UCI_CAUSE_SOURCE_CHANGED) && (record->peer != NULL)) {
        uci_peer_count_changed(record->peer);
    }
    uci_record_write(record);
    seen->ports   = NULL;
    record->ports = NULL;
    free(ports);
}

/* The user's buffer has the right bytes of this chunk. @param own_p  to be freed. @return NULL: they can't be had. */
static const void *uci_report_right_bytes(uci_recv_op_t *op, uint32_t index, size_t length, void **own_p)
{
    size_t offset    = (size_t)index * op->chunk.size;
    const void *good = uci_buffer_direct(op->buffer, offset, length);

    *own_p = NULL;
    if ((good == NULL) && (op->buffer->kind == UCI_BUFFER_IOV)) {
        *own_p = malloc(length);
        if (*own_p != NULL) {
            uci_buffer_read_plain(op->buffer, offset, *own_p, length, &uci_digest_table[UCI_DIGEST_NONE]);
        }
        good = *own_p;
    }
    return good;
}

void uci_report_chunk_healed(uci_recv_op_t *op, uint32_t index)
{
    uint32_t length      = uci_chunk_length(op->length, op->chunk.size, index);
    uci_damage_t *damage = uci_damages_find(&op->damages, index);
    uci_damage_t *get    = uci_damages_find(&op->wrong_gets, index);
    const void *good;
    void *own;

    if ((damage == NULL) && (get == NULL)) {
        return;
    }
    good = uci_report_right_bytes(op, index, length, &own);
    if ((good != NULL) && (damage != NULL)) {
        uci_damage_compare(damage, good, length);
    }
    if ((good != NULL) && (get != NULL)) {
        uci_damage_compare(get, good, length);
    }
    free(own);
}

bool uci_report_is_same(const uci_recv_op_t *op, uint32_t index, const void *data, size_t length)
{
    const uci_damage_t *damage = uci_damages_find(&op->damages, index);

    return (damage != NULL) && (damage->kept == length) && (memcmp(damage->data, data, length) == 0);
}

/* -------------------------------------------------------------- printing */

void uci_report_tag(ucp_tag_t tag, char *text, size_t size)
{
    uci_mpi_tag_t mpi;
    size_t used;

    uci_mpi_tag_decode(uci_mpi_here(), tag, &mpi);
    used = (size_t)snprintf(text, size, "0x%016lx", (unsigned long)tag);
    if ((mpi.library != NULL) && (used < size)) {
        snprintf(text + used, size - used, " (%s: tag %d, source %u, context %u%s%s)", mpi.library, mpi.tag, mpi.source,
                 mpi.context, (mpi.collective != NULL) ? ", " : "", (mpi.collective != NULL) ? mpi.collective : "");
    }
}

void uci_report_name(ucp_tag_t tag, bool user_am, char *text, size_t size)
{
    const char *own = user_am ? uci_user_am_own_name(tag) : NULL;

    if (own != NULL) {
        snprintf(text, size, "%s", own);
    } else if (user_am) {
        snprintf(text, size, "active message %u", uci_user_am_what(tag).id);
    } else {
        snprintf(text, size, "tag ");
        uci_report_tag(tag, text + strlen(text), size - strlen(text));
    }
}

static void uci_report_name_send(const uci_send_op_t *op, char *text, size_t size)
{
    uci_report_name(uci_frame_tag(op->frame), uci_frame_is_user_am(uci_frame_hdr(op->frame)->kind), text, size);
}

/* "copy, after 3 gets that brought wrong bytes": of the last rung */
static const char *uci_report_rungs(const uci_record_t *record, uci_rung_t rung, char *text, size_t size)
{
    if (record->gets_wrong == 0) {
        return uci_record_rung(rung);
    }
    snprintf(text, size, "%s, after %u gets that brought wrong bytes", uci_record_rung(rung), record->gets_wrong);
    return text;
}

/* What was wrong with it, as far as that was seen: a chunk whose header was damaged was dropped unseen, one that only the
 * tree showed to be wrong is not kept */
static const char *uci_report_damage(const uci_record_t *record, char *text, size_t size)
{
    const uci_damage_t *damage = record->damages->first;

    if (damage == NULL) {
        return "header of a chunk";
    }
    if (damage->kept == 0) {
        snprintf(text, size, "chunk %u, not kept", damage->index);
    } else {
        snprintf(text, size, "chunk %u, %s, bytes %zu..%zu", damage->index, uci_damage_class_names[damage->diff.damage],
                 damage->diff.first, damage->diff.last);
    }
    return text;
}

/* Is it one of the first ones, which are printed? `lines_p` counts them. @param is_last_p  the last of these */
static bool uci_report_is_line(unsigned *lines_p, bool *is_last_p)
{
    unsigned line = __atomic_add_fetch(lines_p, 1, __ATOMIC_RELAXED);

    *is_last_p = (line == uci_process_lines());
    return line <= uci_process_lines();
}

static void uci_report_abort_changed(void)
{
    if (uci_settings.on_changed == UCI_ON_CHANGED_ABORT) {
        uci_fatal("a message was changed while it was being sent: the job stops here (UCI_ON_CHANGED=abort)");
    }
}

/* @return whether one more changed source is to be printed; after the last one, that there will be none is */
static bool uci_report_prints_change(void)
{
    if (uci_report_changes >= uci_process_lines()) {
        return false;
    }
    if (++uci_report_changes == uci_process_lines()) {
        uci_warn(
                "changed sources after the next one are counted (UCI_STATS) and recorded (UCI_EVENTS), but not printed");
    }
    return true;
}

void uci_report_source_changed(const uci_send_op_t *op, uint32_t index, bool kept)
{
    unsigned long first = (unsigned long)index * op->chunk.size;
    char name[128];

    if (uci_report_prints_change()) {
        uci_report_name_send(op, name, sizeof(name));
        uci_warn(
                "source changed: the program has written to bytes %lu..%lu of a message of %lu bytes to %s, %s, while it was "
                "being sent; %s",
                first, first + uci_chunk_length(op->length, op->chunk.size, index) - 1, (unsigned long)op->length,
                uci_peer_name(op->peer), name,
                kept ? "it arrives as it was when it was sent, or, if that is damaged on its way, as it is now"
                     : "it is sent again, as it is now");
    }
    uci_mismatch_stop("source changed", uci_cause_names[UCI_CAUSE_SOURCE_CHANGED]);
    uci_report_abort_changed();
}

/* The bytes of this chunk, and of those that follow and are changed as well. @return the first that is not. */
static const uci_damage_t *uci_report_print_run(const uci_send_op_t *op, uint32_t chunk_size,
                                                const uci_damage_t *damage, char *text, size_t size)
{
    const uci_damage_t *last = damage;

    while ((last->next != NULL) && (last->next->index == last->index + 1)) {
        last = last->next;
    }
    snprintf(text, size, "%lu..%lu", (unsigned long)damage->index * chunk_size,
             ((unsigned long)last->index * chunk_size) + uci_chunk_length(op->length, chunk_size, last->index) - 1);
    return last->next;
}

/* "0..32767, 65536..98303 and others" */
static void uci_report_print_chunks(const uci_send_op_t *op, uint32_t chunk_size, const uci_damages_t *changed,
                                    char *text, size_t size)
{
    const uci_damage_t *damage = changed->first;
    size_t used                = 0;

    while ((damage != NULL) && (used + 64 < size)) {
        used += (size_t)snprintf(text + used, size - used, "%s", (used > 0) ? ", " : "");
        damage = uci_report_print_run(op, chunk_size, damage, text + used, size - used);
        used += strlen(text + used);
    }
    if ((damage != NULL) || (changed->left_out > 0)) {
        snprintf(text + used, size - used, " and others");
    }
}

/* Of a send; one that could not go through slots has become a stream */
static uci_way_t uci_report_way(const uci_send_op_t *op)
{
    if (op->chunk.tree == NULL) {
        return (uci_frame_hdr(op->frame)->mark == op->peer->worker->uid) ? UCI_WAY_FRAME : UCI_WAY_MAILBOX;
    }
    if ((op->way.ops == NULL) || ((op->way.ops->way == UCI_WAY_DIRECT) && (op->state != UCI_SEND_DIRECT))) {
        return UCI_WAY_STREAM;
    }
    return op->way.ops->way;
}

/* @param when  it was digested again. @param ranges  the bytes, for people */
static void uci_report_record_changed(uci_send_op_t *op, const uci_damages_t *changed, const char *when, char *ranges,
                                      size_t size)
{
    uci_record_t record = {
            .verdict    = "source changed",
            .cause      = UCI_CAUSE_SOURCE_CHANGED,
            .reason     = "",
            .by_sender  = true,
            .peer       = op->peer,
            .tag        = uci_frame_tag(op->frame),
            .user_am    = uci_frame_is_user_am(uci_frame_hdr(op->frame)->kind),
            .seq        = op->frame->seq,
            .kind       = (op->chunk.tree != NULL) ? "rendezvous" : "eager",
            .length     = op->length,
            .chunk_size = (uint32_t)((op->chunk.tree != NULL) ? op->chunk.size : uci_max(op->length, 1ul)),
            .way        = uci_report_way(op),
            .damages    = changed,
            .digest     = op->chunk.digest,
            .healed_by  = UCI_RUNG_NONE};

    ranges[0] = '\0';
    uci_report_print_chunks(op, record.chunk_size, changed, ranges, size);
    snprintf(
            record.evidence, sizeof(record.evidence),
            "digested again when %s, bytes %s are not what was sent: its program has written to them meanwhile. They arrived as "
            "they were",
            when, ranges);
    uci_record_write(&record);
}

void uci_report_source_kept(uci_send_op_t *op, const uci_damages_t *changed)
{
    char ranges[256];

    uci_report_record_changed(op, changed, "the send was copied, to be complete", ranges, sizeof(ranges));
}

void uci_report_source_changed_late(uci_send_op_t *op, const uci_damages_t *changed)
{
    char ranges[256], name[128];

    uci_report_record_changed(op, changed, "the send completed (UCI_CHECK_SOURCES)", ranges, sizeof(ranges));
    if (uci_report_prints_change()) {
        uci_report_name_send(op, name, sizeof(name));
        uci_warn(
                "source changed: the program has written to bytes %s of a message of %lu bytes to %s, %s, before its send was "
                "complete; it arrived as it was when it was read",
                ranges, (unsigned long)op->length, uci_peer_name(op->peer), name);
    }
    uci_mismatch_stop("source changed", uci_cause_names[UCI_CAUSE_SOURCE_CHANGED]);
    uci_report_abort_changed();
}

void uci_report_copy_damaged(const uci_peer_t *peer, ucp_tag_t tag, bool user_am, uint64_t length)
{
    static unsigned lines;
    bool is_last;
    char text[128];

    UCI_STATS_INC(copies_damaged);
    if (!uci_report_is_line(&lines, &is_last)) {
        return;
    }
    uci_report_name(tag, user_am, text, sizeof(text));
    uci_warn(
            "the copy of a message of %lu bytes to %s, %s, is damaged in the memory of this process, and nothing is repaired from it; "
            "if that is why its receiver can't have the message, he says so",
            (unsigned long)length, uci_peer_name(peer), text);
    if (is_last) {
        uci_warn("further damaged copies are counted (UCI_STATS), but not printed");
    }
}

/* No repair: what arrived instead is what the sender's program has made of it */
static void uci_report_say_changed(const uci_recv_op_t *op, uci_record_t *record)
{
    if (uci_report_prints_change()) {
        uci_warn(
                "message from %s, %lu bytes: %u of %u chunks were changed by its sender while they were being sent, and "
                "arrived as they are now (%s)",
                uci_peer_name(op->peer), (unsigned long)op->length, op->repair.changed, op->chunk.count,
                record->evidence);
    }
}

static void uci_report_say_healed(const uci_record_t *record)
{
    char name[128], rungs[96], damage[96];

    if (uci_report_lines >= uci_process_lines()) {
        return;
    }
    uci_report_name(record->tag, record->user_am, name, sizeof(name));
    uci_warn("message from %s, %s, %lu bytes: arrived damaged (%s), repaired by %s in %lu us; cause: %s (%s)",
             uci_peer_name(record->peer), name, (unsigned long)record->length,
             uci_report_damage(record, damage, sizeof(damage)),
             uci_report_rungs(record, record->healed_by, rungs, sizeof(rungs)),
             (unsigned long)uci_record_microseconds(record), uci_cause_names[record->cause], record->evidence);
    if (++uci_report_lines == uci_process_lines()) {
        uci_warn("further repairs are counted (UCI_STATS) and recorded (UCI_EVENTS), but not printed");
    }
}

void uci_report_healed(uci_recv_op_t *op)
{
    uci_record_t record    = uci_report_of(op);
    uci_observation_t seen = uci_report_observe_op(op, &record, UCI_REASON_NONE);

    if ((op->repair.changed == 0) && (op->repair.healed == 0)) {
        return;
    }
    record.verdict = (op->repair.changed > 0) ? "source changed" : "repaired";
    uci_report_conclude(&record, &seen,
                        ((op->repair.changed > 0) ? uci_report_changes : uci_report_lines) < uci_process_lines());
    if (op->repair.changed > 0) {
        uci_report_say_changed(op, &record);
    } else {
        uci_report_say_healed(&record);
    }
    uci_mismatch_stop(record.verdict, uci_cause_names[record.cause]);
}

void uci_report_frame_healed(uci_peer_t *peer, const uci_gap_t *gap, const uci_held_t *held)
{
    size_t length         = uci_min(gap->length, held->length); /* a peer may say that it was longer */
    uci_damages_t damages = {0};
    uci_record_t record   = uci_report_of_frame(peer, gap->at.seq, &held->hdr, gap->way, &damages);
    uci_observation_t seen;

    uci_damages_keep(&damages, 0, gap->way, gap->payload, length);
    if (damages.first != NULL) {
        uci_damage_compare(damages.first, held->payload, held->length);
    }
    record.verdict    = "repaired";
    record.start_time = gap->start_time;
    seen              = uci_report_observe(&record, UCI_REASON_NONE);
    seen.waited       = gap->waited;
    uci_report_conclude(&record, &seen, uci_report_lines < uci_process_lines());
    uci_report_say_healed(&record);
    uci_mismatch_stop(record.verdict, uci_cause_names[record.cause]);
    uci_damages_drop(&damages);
}

static void uci_report_print_ports(void)
{
    uci_rdma_sample_t *ports = uci_port_errors_now();
    char text[512];

    if (ports != NULL) {
        uci_port_errors_print(ports, text, sizeof(text));
        uci_error("  rdma ports  errors since %s: %s", uci_port_errors_since(), text);
    }
    free(ports);
}

/* Its first 16 bytes, as they came */
static void uci_report_print_begin(const uci_damage_t *damage, char *text, size_t size)
{
    size_t i, length = (damage != NULL) ? uci_min(damage->kept, 16ul) : 0;

    text[0] = '\0';
    for (i = 0; i < length; ++i) {
        snprintf(text + (2 * i), size - (2 * i), "%02x", (unsigned char)damage->data[i]);
    }
}

static void uci_report_say_failed(const uci_record_t *record)
{
    const uci_damage_t *damage = record->damages->first;
    char name[128], hex[40], rungs[96];

    uci_report_name(record->tag, record->user_am, name, sizeof(name));
    uci_report_print_begin(damage, hex, sizeof(hex));
    uci_error("message can't be delivered intact: %s", record->reason);
    uci_error("  cause       %s: %s", uci_cause_names[record->cause], record->evidence);
    uci_error("  from        %s", uci_peer_name(record->peer));
    uci_error("  message     %s, number %lu", name, (unsigned long)record->seq);
    uci_error("  size        %lu bytes, %s, chunks of %u bytes", (unsigned long)record->length, record->kind,
              record->chunk_size);
    uci_error("  damaged     %u of %u chunks; first: chunk %u at offset %lu, %zu bytes arrived, beginning %s",
              record->bad, record->chunks, (damage != NULL) ? damage->index : 0,
              (unsigned long)((damage != NULL) ? damage->index : 0) * record->chunk_size,
              (damage != NULL) ? damage->length : 0, hex);
    uci_error("  digest      %s, expected 0x%016lx", record->digest->name, (unsigned long)record->expected);
    uci_error("  tried       %s, %u attempts, %lu us", uci_report_rungs(record, record->rung, rungs, sizeof(rungs)),
              record->attempts, (unsigned long)uci_record_microseconds(record));
    uci_error("  transports  %s, UCX %s", uci_peer_transports(record->peer), uci_ucp.get_version_string());
    uci_report_print_ports();
}

static void uci_report_conclude_failed(uci_record_t *record, uci_observation_t *seen)
{
    uci_damage_t *damage = record->damages->first;

    if ((damage != NULL) && !damage->compared) {
        uci_damage_show(damage);
    }
    record->verdict = "not repaired";
    record->reason  = uci_reason_texts[seen->reason];
    uci_report_conclude(record, seen, true);
    uci_report_say_failed(record);
    uci_mismatch_stop(record->verdict, uci_cause_names[record->cause]);
}

void uci_report_failed(uci_recv_op_t *op, uci_reason_t reason)
{
    uci_record_t record    = uci_report_of(op);
    uci_observation_t seen = uci_report_observe_op(op, &record, reason);

    uci_report_conclude_failed(&record, &seen);
}

void uci_report_frame_lost(uci_peer_t *peer, const uci_held_t *held)
{
    uci_damages_t damages = {0};
    uci_record_t record   = uci_report_of_frame(peer, held->at.seq, &held->hdr, held->way, &damages);
    uci_observation_t seen;

    if (held->length > 0) {
        uci_damages_keep(&damages, 0, held->way, held->payload, held->length);
    }
    record.rung       = (held->refused > 0) ? UCI_RUNG_COPY : UCI_RUNG_NONE;
    record.healed_by  = UCI_RUNG_NONE;
    record.attempts   = held->refused;
    record.start_time = held->start_time;
    seen              = uci_report_observe(&record, held->lost);
    seen.waited       = held->waited;
    seen.arrived      = held->length;
    seen.length       = (damages.first != NULL) ? held->hdr.length : held->length;
    uci_report_conclude_failed(&record, &seen);
    uci_damages_drop(&damages);
}

void uci_report_message_lost(uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, bool user_am, size_t total,
                             uci_reason_t reason, const char *text)
{
    uci_record_t record    = {.verdict = "not repaired",
                              .reason  = text,
                              .peer    = peer,
                              .tag     = tag,
                              .user_am = user_am,
                              .seq     = seq,
                              .kind    = "unknown",
                              .length  = total};
    uci_observation_t seen = uci_report_observe(&record, reason);
    char name[128];

    uci_report_conclude(&record, &seen, true);
    uci_report_name(tag, user_am, name, sizeof(name));
    uci_error("message can't be delivered intact: %s", text);
    uci_error("  cause       %s: %s", uci_cause_names[record.cause], record.evidence);
    uci_error("  from        %s", uci_peer_name(peer));
    uci_error("  message     %s", name);
    uci_error("  size        %zu bytes on the wire", total);
    uci_error("  UCX %s; this is %s", uci_ucp.get_version_string(), uci_process_name());
    uci_mismatch_stop(record.verdict, uci_cause_names[record.cause]);
}

/* ----------------------------------------------------------------- types */

static void uci_report_say_types(const uci_types_differ_t *differ)
{
    char tag[128], group[64] = "";

    if (differ->group != NULL) {
        snprintf(group, sizeof(group), " on %s", differ->group);
    }
    uci_report_tag(differ->tag, tag, sizeof(tag));
    uci_warn("types do not match: %s were sent by %s, and %s are received by %s%s; tag %s, %lu bytes, which are intact",
             differ->sent, uci_peer_name(differ->peer), differ->posted, differ->call, group, tag,
             (unsigned long)differ->length);
}

/* Written down; the end of the job where UCI_ON_SIGNATURE says so */
static void uci_report_conclude_types(const uci_record_t *record)
{
    uci_record_write(record);
    uci_mismatch_stop(record->verdict, uci_cause_names[record->cause]);
    if (uci_settings.on_signature == UCI_ON_CHANGED_ABORT) {
        uci_fatal("types do not match: the job stops here (UCI_ON_SIGNATURE=abort)");
    }
}

void uci_report_types_differ(const uci_types_differ_t *differ)
{
    static unsigned lines;
    uci_record_t record = {.verdict = "types differ",
                           .cause   = UCI_CAUSE_TYPES,
                           .reason  = "",
                           .peer    = differ->peer,
                           .tag     = differ->tag,
                           .seq     = differ->seq,
                           .kind    = "message",
                           .length  = differ->length,
                           .differ  = differ};
    bool is_last;

    snprintf(record.evidence, sizeof(record.evidence), "%s were sent, %s are received", differ->sent, differ->posted);
    if (uci_report_is_line(&lines, &is_last)) {
        uci_report_say_types(differ);
    }
    if (is_last) {
        uci_warn(
                "further messages whose types do not match are counted (UCI_STATS) and recorded (UCI_EVENTS), but not printed");
    }
    uci_report_conclude_types(&record);
}

void uci_report_calls_differ(const uci_signature_calls_t *calls)
{
    static unsigned lines;
    uci_types_differ_t differ = {
            .sent = calls->says, .posted = calls->other_says, .call = calls->call, .group = calls->group};
    uci_record_t record = {
            .verdict = "types differ", .cause = UCI_CAUSE_TYPES, .reason = "", .kind = "collective", .differ = &differ};
    bool is_last;

    snprintf(record.evidence, sizeof(record.evidence), "rank %d calls %s, rank %d calls %s", calls->rank, calls->says,
             calls->other_rank, calls->other_says);
    if (uci_report_is_line(&lines, &is_last)) {
        uci_warn("collectives do not match: %s; ranks of %s", record.evidence, calls->group);
    }
    if (is_last) {
        uci_warn(
                "further collectives that do not match are counted (UCI_STATS) and recorded (UCI_EVENTS), but not printed");
    }
    uci_report_conclude_types(&record);
}
