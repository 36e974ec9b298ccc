/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin_log.h"
#include "file.h"
#include "forensics.h"
#include "log.h"
#include "process.h"
#include "rdma.h"
#include "settings.h"
#include "stats.h"

#define UCI_REPORT_KEEP  (64ul << 10) /* bytes of damaged data kept */
#define UCI_REPORT_LINES 10           /* repaired messages that are worth a warning each */
#define UCI_REPORT_WRITE (32ul << 10) /* a record that is longer takes several writes */

typedef struct uci_damage {
    uint32_t index;
    size_t length; /* that arrived */
    size_t kept;
    uci_damage_diff_t diff;
    char bad[16]; /* around the first difference */
    char good[16];
    size_t shown;
    char data[];
} uci_damage_t;

/* What a report is about: a message by rendezvous, or a frame */
typedef struct uci_report_about {
    const uci_peer_t *peer;
    ucp_tag_t tag;
    uint64_t seq;
    const char *kind;
    uint64_t length;
    uint32_t chunk_size;
    uint32_t chunks;
    uint32_t bad;
    const uci_damage_t *damage; /* or NULL */
    const uci_digest_ops_t *digest;
    uint64_t expected; /* digest of the chunk that is damaged */
    uci_rung_t rung;
    uci_rung_t healed_by;
    unsigned gets_wrong;
    unsigned attempts;
    uint64_t start_time;
} uci_report_about_t;

static unsigned uci_report_lines, uci_report_changes;

/* What the RDMA ports had counted when this process began; nothing unless there are records to be written */
static uci_rdma_sample_t uci_report_ports;
static bool uci_report_ports_sampled;

void uci_report_init(void)
{
    if ((uci_settings.events[0] != '\0') && !uci_report_ports_sampled) {
        uci_report_ports_sampled = true;
        uci_rdma_sample(UCI_RDMA_SYSFS, &uci_report_ports);
    }
}

static uci_report_about_t uci_report_of(const uci_recv_op_t *op)
{
    uci_report_about_t about = {.peer       = op->peer,
                                .tag        = op->tag,
                                .seq        = op->seq,
                                .kind       = "rendezvous",
                                .length     = op->length,
                                .chunk_size = op->chunk_size,
                                .chunks     = op->chunks,
                                .bad        = op->bad,
                                .damage     = op->damage,
                                .digest     = op->digest,
                                .expected   = op->expected[(op->damage != NULL) ? op->damage->index : 0],
                                .rung       = op->rung,
                                .healed_by  = op->healed_by,
                                .gets_wrong = op->gets_wrong,
                                .attempts   = op->attempts,
                                .start_time = op->start_time};

    return about;
}

/* A frame is a message of one chunk */
static uci_report_about_t uci_report_of_frame(const uci_peer_t *peer, uint64_t seq, const uci_frame_hdr_t *hdr,
                                              const uci_damage_t *damage)
{
    uci_report_about_t about = {.peer       = peer,
                                .tag        = hdr->tag,
                                .seq        = seq,
                                .kind       = (hdr->kind == UCI_FRAME_RNDV) ? "descriptor" : "eager",
                                .length     = hdr->length,
                                .chunk_size = uci_max(hdr->length, 1u),
                                .chunks     = 1,
                                .bad        = 1,
                                .damage     = damage,
                                .digest     = uci_digest_by_id(hdr->digest),
                                .expected   = hdr->value,
                                .rung       = UCI_RUNG_COPY,
                                .healed_by  = UCI_RUNG_COPY};

    return about;
}

static uci_damage_t *uci_report_create_damage(uint32_t index, const void *data, size_t length)
{
    size_t kept          = (data == NULL) ? 0 : uci_min(length, UCI_REPORT_KEEP);
    uci_damage_t *damage = calloc(1, sizeof(*damage) + kept);

    if (damage != NULL) {
        damage->index  = index;
        damage->length = length;
        damage->kept   = kept;
        memcpy(damage->data, (data == NULL) ? "" : data, kept);
    }
    return damage;
}

void uci_report_keep_damage(uci_recv_op_t *op, uint32_t index, const void *data, size_t length)
{
    if (op->damage == NULL) {
        op->damage = uci_report_create_damage(index, data, length);
    }
}

/* Hold it against the right bytes */
static void uci_report_compare(uci_damage_t *damage, const char *good, size_t length)
{
    uci_forensics_compare(damage->data, damage->kept, good, (damage->length < length) ? length : damage->kept,
                          &damage->diff);
    damage->shown = uci_min(sizeof(damage->bad), damage->kept - uci_min(damage->kept, damage->diff.first));
    memcpy(damage->bad, damage->data + damage->diff.first, damage->shown);
    memcpy(damage->good, good + damage->diff.first, damage->shown);
}

void uci_report_drop_damage(uci_recv_op_t *op)
{
    free(op->damage);
    op->damage = NULL;
}

void uci_report_chunk_healed(uci_recv_op_t *op, uint32_t index)
{
    uint32_t length      = uci_chunk_length(op->length, op->chunk_size, index);
    uci_damage_t *damage = op->damage;
    size_t offset        = (size_t)index * op->chunk_size;
    const char *good;

    if ((damage == NULL) || (damage->index != index) || (damage->kept == 0)) {
        return;
    }
    good = uci_buffer_direct(op->buffer, offset, length);
    if (good == NULL) {
        return; /* a non-contiguous receive: the right bytes are not in one place */
    }
    uci_report_compare(damage, good, length);
}

/* Tags as pml/ucx and ch4:ucx lay them out (ompi pml_ucx_request.h; mpich ch4 ucx_impl.h) */
void uci_report_tag(ucp_tag_t tag, char *text, size_t size)
{
    if (getenv("OMPI_COMM_WORLD_RANK") != NULL) {
        snprintf(text, size, "0x%016lx (Open MPI: tag %d, source %u, context %u)", (unsigned long)tag,
                 (int)((int64_t)tag >> 40), (unsigned)((tag >> 20) & 0xfffff), (unsigned)(tag & 0xfffff));
    } else if (getenv("PMI_RANK") != NULL) {
        snprintf(text, size, "0x%016lx (MPICH: tag %u, source %u, context %u)", (unsigned long)tag,
                 (unsigned)(tag & 0x7fffffff), (unsigned)((tag >> 32) & 0xffff), (unsigned)((tag >> 48) & 0xffff));
    } else {
        snprintf(text, size, "0x%016lx", (unsigned long)tag);
    }
}

/* text: room for 2 * length + 1 characters */
static void uci_report_hex(const char *data, size_t length, char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < length; ++i) {
        text[2 * i]       = digits[(unsigned char)data[i] >> 4];
        text[(2 * i) + 1] = digits[data[i] & 0xf];
    }
    text[2 * length] = '\0';
}

static const char *uci_report_rung(uci_rung_t rung)
{
    return (rung == UCI_RUNG_GET) ? "get" : (rung == UCI_RUNG_COPY) ? "copy" : "none";
}

static void uci_report_port(FILE *stream, const uci_rdma_port_t *port, unsigned *reported)
{
    unsigned i, count = 0;
    uint64_t rise;

    for (i = 0; i < UCI_RDMA_COUNTERS; ++i) {
        rise = uci_rdma_rise(port, i, &uci_report_ports);
        if (rise == 0) {
            continue;
        }
        if (count++ == 0) {
            fprintf(stream, "%s\"%s:%u\": {", ((*reported)++ > 0) ? ", " : "", port->device, port->number);
        }
        fprintf(stream, "%s\"%s\": %lu", (count > 1) ? ", " : "", uci_rdma_counters[i].name, (unsigned long)rise);
    }
    if (count > 0) {
        fputc('}', stream);
    }
}

/* Errors of the RDMA ports since uci_report_init(), else since boot: {"mlx5_0:1": {"symbol_error": 3}}, {} if there
 * are none, null if there are no ports */
static void uci_report_port_errors(FILE *stream)
{
    uci_rdma_sample_t *now = malloc(sizeof(*now));
    unsigned i, reported = 0;

    if (now != NULL) {
        uci_rdma_sample(UCI_RDMA_SYSFS, now);
    }
    if ((now == NULL) || (now->count == 0)) {
        fputs("null", stream);
    } else {
        fputc('{', stream);
        for (i = 0; i < now->count; ++i) {
            uci_report_port(stream, &now->ports[i], &reported);
        }
        fputc('}', stream);
    }
    free(now);
}

/* The same for a person */
static void uci_report_print_ports(void)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    if (stream == NULL) {
        return;
    }
    uci_report_port_errors(stream);
    if ((fclose(stream) == 0) && (strcmp(text, "null") != 0)) {
        uci_error("  rdma ports  errors since %s: %s", uci_report_ports_sampled ? "this process began" : "boot",
                  (strcmp(text, "{}") == 0) ? "none" : text);
    }
    free(text);
}

/* "copy, after 3 gets that brought wrong bytes": of the last rung */
static const char *uci_report_rungs(const uci_report_about_t *op, uci_rung_t rung, char *text, size_t size)
{
    if (op->gets_wrong == 0) {
        return uci_report_rung(rung);
    }
    snprintf(text, size, "%s, after %u gets that brought wrong bytes (stale registration?)", uci_report_rung(rung),
             op->gets_wrong);
    return text;
}

static unsigned uci_report_lost;     /* events that could not be written */
static pid_t uci_report_lost_by;     /* a child that was forked off has lost none of them */
static const char *uci_report_cause; /* of the first */

static void uci_report_tell_lost(void)
{
    if ((getpid() == uci_report_lost_by) && (uci_report_lost > 1)) {
        uci_warn("%u events in all could not be written to UCI_EVENTS=%s: %s", uci_report_lost, uci_settings.events,
                 uci_report_cause);
    }
}

/* Said of the first, and at the end how many they were. Workers have locks of their own */
static void uci_report_lose_event(const char *cause)
{
    UCI_STATS_INC(events_lost);
    if (__atomic_fetch_add(&uci_report_lost, 1, __ATOMIC_RELAXED) == 0) {
        uci_report_lost_by = getpid();
        uci_report_cause   = cause;
        uci_warn("an event could not be written to UCI_EVENTS=%s: %s", uci_settings.events, cause);
        atexit(uci_report_tell_lost);
    }
}

/* Records are one JSON object, one line, one write: several processes may share the file. @return NULL: no records */
static FILE *uci_report_open_events(void)
{
    char name[PATH_MAX];
    FILE *stream;

    if (uci_settings.events[0] == '\0') {
        return NULL;
    }
    if (uci_process_expand(uci_settings.events, name, sizeof(name)) != UCI_OK) {
        uci_report_lose_event("its name is too long");
        return NULL;
    }
    stream = uci_file_create(name, true);
    if (stream == NULL) {
        uci_report_lose_event(uci_file_error(errno));
    } else {
        setvbuf(stream, NULL, _IOFBF, UCI_REPORT_WRITE);
    }
    return stream;
}

static void uci_report_close_events(FILE *stream)
{
    bool failed = ferror(stream) != 0;

    failed |= fclose(stream) != 0;
    if (failed) {
        uci_report_lose_event(uci_file_error(errno));
    }
}

static void uci_report_event(const uci_report_about_t *op, const char *verdict, const char *reason)
{
    static const uci_damage_t none;
    const uci_damage_t *damage = (op->damage != NULL) ? op->damage : &none;
    FILE *stream               = uci_report_open_events();
    char bad[40], good[40];

    uci_admin_log_damaged(op->peer, op->length, verdict, uci_damage_class_names[damage->diff.damage], NULL);
    if (stream == NULL) {
        return;
    }
    uci_report_hex(damage->bad, damage->shown, bad);
    uci_report_hex(damage->good, damage->shown, good);
    fprintf(stream,
            "{\"verdict\": \"%s\", \"reason\": \"%s\", \"host\": \"%s\", \"rank\": %d, \"peer_host\": \"%s\", "
            "\"peer_rank\": %d, \"peer_pid\": %u, \"tag\": \"0x%016lx\", \"seq\": %lu, \"kind\": \"%s\", \"length\": "
            "%lu, "
            "\"chunk\": %u, \"chunk_size\": %u, \"chunk_length\": %zu, \"offset\": %lu, \"first\": %zu, \"last\": %zu, "
            "\"wrong_bytes\": %zu, \"wrong_bits\": %zu, \"class\": \"%s\", \"bad\": \"%s\", \"good\": \"%s\", "
            "\"healed_by\": \"%s\", \"gets_wrong\": %u, \"microseconds\": %lu, \"digest\": \"%s\", "
            "\"transports\": \"%s\", \"ucx_version\": \"%s\", \"rdma_errors\": ",
            verdict, reason, uci_process_host(), uci_process_rank(), op->peer->mark.host, uci_peer_rank(op->peer),
            op->peer->mark.pid, (unsigned long)op->tag, (unsigned long)op->seq, op->kind, (unsigned long)op->length,
            damage->index, op->chunk_size, damage->length, (unsigned long)damage->index * op->chunk_size,
            damage->diff.first, damage->diff.last, damage->diff.bytes, damage->diff.bits,
            uci_damage_class_names[damage->diff.damage], bad, good, uci_report_rung(op->healed_by), op->gets_wrong,
            (op->start_time != 0) ? (unsigned long)(uci_process_time_ns() - op->start_time) / 1000 : 0ul,
            op->digest->name, uci_peer_transports((uci_peer_t *)op->peer), uci_ucp.get_version_string());
    uci_report_port_errors(stream);
    fputs("}\n", stream);
    uci_report_close_events(stream);
}

/* What was wrong with it, as far as that was seen: a chunk whose header was damaged was dropped unseen, one that only the
 * tree showed to be wrong is not kept */
static const char *uci_report_damage(const uci_report_about_t *op, char *text, size_t size)
{
    const uci_damage_t *damage = op->damage;

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

void uci_report_source_changed(const uci_send_op_t *op, uint32_t index)
{
    unsigned long first = (unsigned long)index * op->chunk_size;
    char tag[96];

    if (uci_report_changes < UCI_REPORT_LINES) {
        uci_report_tag(uci_frame_tag(op->frame), tag, sizeof(tag));
        uci_warn(
                "source changed: the program has written to bytes %lu..%lu of a message of %lu bytes to %s, tag %s, while it was "
                "being sent; it is delivered as it is now",
                first, first + uci_chunk_length(op->length, op->chunk_size, index) - 1, (unsigned long)op->length,
                uci_peer_name(op->peer), tag);
        if (++uci_report_changes == UCI_REPORT_LINES) {
            uci_warn("further changed sources are counted (UCI_STATS), but not printed");
        }
    }
    if (uci_settings.on_changed == UCI_ON_CHANGED_ABORT) {
        uci_fatal("a message was changed while it was being sent: the job stops here (UCI_ON_CHANGED=abort)");
    }
}

void uci_report_copy_damaged(const uci_peer_t *peer, ucp_tag_t tag, uint64_t length)
{
    char text[96];

    uci_report_tag(tag, text, sizeof(text));
    uci_error("the copy of a message of %lu bytes to %s, tag %s, is damaged in the memory of this process",
              (unsigned long)length, uci_peer_name(peer), text);
}

/* No repair: what arrived instead is what the sender's program has made of it */
static void uci_report_changed(uci_recv_op_t *op)
{
    uci_report_about_t about = uci_report_of(op);

    uci_report_event(&about, "source changed", "");
    if (uci_report_changes < UCI_REPORT_LINES) {
        ++uci_report_changes;
        uci_warn(
                "message from %s, %lu bytes: %u of %u chunks were changed by its sender while they were being sent, and "
                "arrived as they are now",
                uci_peer_name(op->peer), (unsigned long)op->length, op->changed, op->chunks);
    }
}

static void uci_report_say_healed(const uci_report_about_t *op)
{
    char tag[96], rungs[96], damage[96];

    uci_report_event(op, "repaired", "");
    if (uci_report_lines >= UCI_REPORT_LINES) {
        return;
    }
    uci_report_tag(op->tag, tag, sizeof(tag));
    uci_warn("message from %s, tag %s, %lu bytes: arrived damaged (%s), repaired by %s in %lu us",
             uci_peer_name(op->peer), tag, (unsigned long)op->length, uci_report_damage(op, damage, sizeof(damage)),
             uci_report_rungs(op, op->healed_by, rungs, sizeof(rungs)),
             (unsigned long)(uci_process_time_ns() - op->start_time) / 1000);
    if (++uci_report_lines == UCI_REPORT_LINES) {
        uci_warn("further repairs are counted (UCI_STATS) and recorded (UCI_EVENTS), but not printed");
    }
}

void uci_report_healed(uci_recv_op_t *op)
{
    uci_report_about_t about = uci_report_of(op);

    if (op->changed > 0) {
        uci_report_changed(op);
    }
    if (op->repaired > 0) {
        uci_report_say_healed(&about);
    }
}

void uci_report_frame_healed(uci_peer_t *peer, const uci_gap_t *gap, const uci_held_t *held)
{
    size_t length            = uci_min(gap->length, held->length); /* a peer may say that it was longer */
    uci_damage_t *damage     = uci_report_create_damage(0, gap->payload, length);
    uci_report_about_t about = uci_report_of_frame(peer, gap->seq, &held->hdr, damage);

    if (damage != NULL) {
        uci_report_compare(damage, held->payload, held->length);
    }
    about.start_time = gap->start_time;
    uci_report_say_healed(&about);
    free(damage);
}

static void uci_report_say_failed(const uci_report_about_t *op, const char *reason)
{
    const uci_damage_t *damage = op->damage;
    char tag[96], hex[40], rungs[96];

    uci_report_event(op, "not repaired", reason);
    uci_report_tag(op->tag, tag, sizeof(tag));
    uci_report_hex((damage != NULL) ? damage->data : "", (damage != NULL) ? uci_min(damage->kept, 16ul) : 0, hex);
    uci_error("message can't be delivered intact: %s", reason);
    uci_error("  from        %s", uci_peer_name(op->peer));
    uci_error("  tag         %s, message number %lu", tag, (unsigned long)op->seq);
    uci_error("  size        %lu bytes, %s, chunks of %u bytes", (unsigned long)op->length, op->kind, op->chunk_size);
    uci_error("  damaged     %u of %u chunks; first: chunk %u at offset %lu, %zu bytes arrived, beginning %s", op->bad,
              op->chunks, (damage != NULL) ? damage->index : 0,
              (unsigned long)((damage != NULL) ? damage->index : 0) * op->chunk_size,
              (damage != NULL) ? damage->length : 0, hex);
    uci_error("  digest      %s, expected 0x%016lx", op->digest->name, (unsigned long)op->expected);
    uci_error("  tried       %s, %u attempts, %lu us", uci_report_rungs(op, op->rung, rungs, sizeof(rungs)),
              op->attempts,
              (op->start_time != 0) ? (unsigned long)(uci_process_time_ns() - op->start_time) / 1000 : 0ul);
    uci_error("  transports  %s, UCX %s", uci_peer_transports((uci_peer_t *)op->peer), uci_ucp.get_version_string());
    uci_report_print_ports();
}

void uci_report_failed(uci_recv_op_t *op, const char *reason)
{
    uci_report_about_t about = uci_report_of(op);

    uci_report_say_failed(&about, reason);
}

void uci_report_frame_lost(uci_peer_t *peer, const uci_held_t *held)
{
    uci_damage_t *damage     = (held->length > 0) ? uci_report_create_damage(0, held->payload, held->length) : NULL;
    uci_report_about_t about = uci_report_of_frame(peer, held->seq, &held->hdr, damage);

    about.rung       = (held->refused > 0) ? UCI_RUNG_COPY : UCI_RUNG_NONE;
    about.healed_by  = UCI_RUNG_NONE;
    about.attempts   = held->refused;
    about.start_time = held->start_time;
    uci_report_say_failed(&about, held->lost);
    free(damage);
}

void uci_report_message_lost(uci_worker_t *worker, ucp_tag_t tag, size_t total, const char *reason)
{
    FILE *stream = uci_report_open_events();
    char text[96];

    if (stream != NULL) {
        fprintf(stream,
                "{\"verdict\": \"not repaired\", \"reason\": \"%s\", \"host\": \"%s\", \"rank\": %d, \"tag\": "
                "\"0x%016lx\", \"kind\": \"unknown\", \"wire_length\": %zu, \"ucx_version\": \"%s\"}\n",
                reason, uci_process_host(), uci_process_rank(), (unsigned long)tag, total,
                uci_ucp.get_version_string());
        uci_report_close_events(stream);
    }
    uci_report_tag(tag, text, sizeof(text));
    uci_error("message can't be delivered intact: %s", reason);
    uci_error("  tag         %s", text);
    uci_error("  size        %zu bytes on the wire", total);
    uci_error("  UCX %s; this is %s", uci_ucp.get_version_string(), uci_process_name());
}
