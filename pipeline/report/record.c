/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin_log.h"
#include "util/file.h"
#include "util/json_writer.h"
#include "util/log.h"
#include "forensics/mpi_tag.h"
#include "port_errors.h"
#include "util/process.h"
#include "settings/settings.h"
#include "util/stack.h"
#include "live/stats.h"

#define UCI_RECORD_BUFFER (64ul << 10) /* a record that is longer takes several writes */

/* ------------------------------------------------------------ the file */

static unsigned uci_record_lost;     /* records that could not be written */
static pid_t uci_record_lost_by;     /* a child that was forked off has lost none of them */
static const char *uci_record_cause; /* of the first */

static void uci_record_tell_lost(void)
{
    if ((getpid() == uci_record_lost_by) && (uci_record_lost > 1)) {
        uci_warn("%u events in all could not be written to UCI_EVENTS=%s: %s", uci_record_lost, uci_settings.events,
                 uci_record_cause);
    }
}

/* Said of the first, and at the end how many they were. Workers have locks of their own */
static void uci_record_lose(const char *cause)
{
    UCI_STATS_ADD_OUTSIDE(events_lost, 1); /* by a companion too, in nobody's turn */
    if (__atomic_fetch_add(&uci_record_lost, 1, __ATOMIC_RELAXED) == 0) {
        uci_record_lost_by = getpid();
        uci_record_cause   = cause;
        uci_warn("an event could not be written to UCI_EVENTS=%s: %s", uci_settings.events, cause);
        atexit(uci_record_tell_lost);
    }
}

bool uci_record_is_on(void)
{
    return (uci_settings.events != NULL) && (uci_settings.events[0] != '\0');
}

/* Nothing is made now: of many processes few have something to say */
void uci_record_init(void)
{
    static int done;
    char name[PATH_MAX];
    const char *wrong = NULL;

    if (!uci_record_is_on() || (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED) != 0)) {
        return;
    }
    if (uci_process_expand(uci_settings.events, name, sizeof(name)) != UCI_OK) {
        wrong = "its name is too long";
    } else if (uci_file_check_writable(name) != UCI_OK) {
        wrong = uci_file_error(errno);
    }
    if (wrong != NULL) {
        uci_warn("UCI_EVENTS=%s can't be written: %s; records of damaged messages will be lost, though counted",
                 uci_settings.events, wrong);
    }
    uci_port_errors_init();
}

/* Does the file end within a line? A disk was full, or a process has died: what is appended would be lost with it */
static bool uci_record_is_torn(const char *name)
{
    FILE *stream = uci_file_open(name);
    int last     = '\n';

    if (stream == NULL) {
        return false;
    }
    if (fseek(stream, -1, SEEK_END) == 0) {
        last = getc(stream);
    }
    fclose(stream);
    return (last != '\n') && (last != EOF);
}

static FILE *uci_record_create(void)
{
    char name[PATH_MAX];
    FILE *stream;
    bool is_torn;

    if (uci_process_expand(uci_settings.events, name, sizeof(name)) != UCI_OK) {
        uci_record_lose("its name is too long");
        return NULL;
    }
    is_torn = uci_record_is_torn(name);
    stream  = uci_file_create(name, true);
    if (stream == NULL) {
        uci_record_lose(uci_file_error(errno));
        return NULL;
    }
    setvbuf(stream, NULL, _IOFBF, UCI_RECORD_BUFFER);
    if (uci_unlikely(is_torn)) {
        fputc('\n', stream);
    }
    return stream;
}

FILE *uci_record_open(uci_quiet_t *quiet_p)
{
    FILE *stream;

    uci_quiet_begin(quiet_p);
    stream = uci_record_create();
    if (stream == NULL) {
        uci_quiet_end(quiet_p);
    }
    return stream;
}

void uci_record_close(FILE *stream, const uci_quiet_t *quiet)
{
    bool failed = ferror(stream) != 0;

    failed |= fclose(stream) != 0;
    uci_quiet_end(quiet);
    if (failed) {
        uci_record_lose(uci_file_error(errno));
    }
}

/* ------------------------------------------------------------ its parts */

const char *uci_record_rung(uci_rung_t rung)
{
    return (rung == UCI_RUNG_GET) ? "get" : (rung == UCI_RUNG_COPY) ? "copy" : "none";
}

uint64_t uci_record_microseconds(const uci_record_t *record)
{
    return (record->start_time != 0) ? (uci_process_time_ns() - record->start_time) / 1000 : 0;
}

static void uci_record_write_parties(uci_json_t *json, const uci_record_t *record)
{
    const uci_peer_t *peer = record->peer;

    uci_json_string(json, "role", record->by_sender ? "sender" : "receiver");
    uci_json_string(json, "host", uci_process_host());
    uci_json_int(json, "rank", uci_process_rank());
    uci_json_int(json, "pid", getpid());
    uci_json_int(json, "core", sched_getcpu());
    if (peer != NULL) {
        uci_json_string(json, "peer_host", peer->known ? peer->mark.host : NULL);
        uci_json_int(json, "peer_rank", uci_peer_rank(peer));
        uci_json_uint(json, "peer_pid", peer->mark.pid);
    } else {
        uci_json_null(json, "peer_host");
        uci_json_null(json, "peer_rank");
        uci_json_null(json, "peer_pid");
    }
    uci_json_null(json, "peer_core"); /* the mark has no room for it, and it would be that of the start */
}

/* "mlx5_0:1": a port of an RDMA device */
static void uci_record_write_device(uci_json_t *json, const uci_record_t *record)
{
    bool by_lane       = (record->peer != NULL) && (record->way > UCI_WAY_MAILBOX) && (record->way != UCI_WAY_DIRECT);
    const char *device = by_lane ? uci_peer_device(record->peer) : "";
    const char *colon  = strrchr(device, ':');
    char name[UCI_TRANSPORTS_DEVICE_MAX];

    snprintf(name, sizeof(name), "%.*s", (int)((colon != NULL) ? (size_t)(colon - device) : strlen(device)), device);
    uci_json_string(json, "device", (name[0] != '\0') ? name : NULL);
    if (colon != NULL) {
        uci_json_int(json, "port", strtol(colon + 1, NULL, 10));
    } else {
        uci_json_null(json, "port");
    }
}

void uci_record_write_tag(uci_json_t *json, ucp_tag_t tag)
{
    uci_mpi_tag_t mpi;

    uci_json_address(json, "tag", tag, 16);
    uci_mpi_tag_decode(uci_mpi_here(), tag, &mpi);
    if (mpi.library == NULL) {
        uci_json_null(json, "mpi");
        return;
    }
    uci_json_open(json, "mpi", '{');
    uci_json_string(json, "library", mpi.library);
    uci_json_int(json, "tag", mpi.tag);
    uci_json_uint(json, "source", mpi.source);
    uci_json_uint(json, "context", mpi.context);
    uci_json_string(json, "collective", mpi.collective);
    uci_json_close(json, '}');
}

static void uci_record_write_user_am(uci_json_t *json, ucp_tag_t tag)
{
    const char *own = uci_user_am_own_name(tag);

    if (own != NULL) {
        uci_json_string(json, "active_message", own);
    } else {
        uci_json_uint(json, "active_message", uci_user_am_what(tag).id);
    }
}

static void uci_record_write_name(uci_json_t *json, const uci_record_t *record)
{
    if (record->user_am) {
        uci_json_null(json, "tag");
        uci_json_null(json, "mpi");
        uci_record_write_user_am(json, record->tag);
    } else {
        uci_record_write_tag(json, record->tag);
        uci_json_null(json, "active_message");
    }
}

/* Of what was damaged first */
static void uci_record_write_first(uci_json_t *json, const uci_record_t *record, const uci_damage_t *damage)
{
    uint64_t offset = (uint64_t)damage->index * record->chunk_size;

    uci_json_uint(json, "chunk", damage->index);
    uci_json_uint(json, "chunk_size", record->chunk_size);
    uci_json_uint(json, "chunk_length", damage->length);
    uci_json_uint(json, "offset", offset);
    uci_json_uint(json, "first", damage->diff.first);
    uci_json_uint(json, "last", damage->diff.last);
    uci_json_uint(json, "wrong_bytes", damage->diff.bytes);
    uci_json_uint(json, "wrong_bits", damage->diff.bits);
    uci_json_string(json, "class", uci_damage_class_names[damage->diff.damage]);
    uci_json_hex(json, "bad", damage->bad, damage->shown);
    uci_json_hex(json, "good", damage->good, damage->compared ? damage->shown : 0);
    uci_json_uint(json, "hex_offset", offset + damage->shown_from);
}

static void uci_record_write_range(uci_json_t *json, const uci_record_t *record, const uci_damage_t *damage)
{
    uint64_t offset = (uint64_t)damage->index * record->chunk_size;
    bool compared   = damage->compared && !damage->equal;

    uci_json_open(json, NULL, '[');
    uci_json_uint(json, NULL, damage->index);
    uci_json_uint(json, NULL, compared ? offset + damage->diff.first : offset);
    uci_json_uint(json, NULL,
                  compared ? offset + damage->diff.last
                           : uci_min(offset + uci_max(record->chunk_size, 1u), uci_max(record->length, 1ul)) - 1);
    uci_json_string(json, NULL, uci_damage_class_names[damage->diff.damage]);
    uci_json_uint(json, NULL, damage->diff.bits);
    uci_json_close(json, ']');
}

static void uci_record_write_ranges(uci_json_t *json, const uci_record_t *record)
{
    const uci_damage_t *damage = (record->damages != NULL) ? record->damages->first : NULL;

    uci_json_open(json, "ranges", '[');
    for (; damage != NULL; damage = damage->next) {
        uci_record_write_range(json, record, damage);
    }
    uci_json_close(json, ']');
    uci_json_uint(json, "ranges_left_out", (record->damages != NULL) ? record->damages->left_out : 0);
}

static void uci_record_write_repair(uci_json_t *json, const uci_record_t *record)
{
    uci_json_string(json, "healed_by", uci_record_rung(record->healed_by));
    uci_json_uint(json, "gets_wrong", record->gets_wrong);
    uci_json_uint(json, "attempts", record->attempts);
    uci_json_uint(json, "microseconds", uci_record_microseconds(record));
    uci_json_string(json, "digest", (record->digest != NULL) ? record->digest->name : NULL);
    uci_json_string(json, "transports", (record->peer != NULL) ? uci_peer_transports(record->peer) : NULL);
    uci_json_string(json, "ucx_version", uci_ucp.get_version_string());
    uci_port_errors_write(record->ports, json, "rdma_errors");
}

static void uci_record_write_types(uci_json_t *json, const uci_types_differ_t *differ)
{
    uci_json_open(json, "types", '{');
    uci_json_string(json, "sent", differ->sent);
    uci_json_string(json, "received", differ->posted);
    uci_json_string(json, "call", differ->call);
    uci_json_string(json, "communicator", differ->group);
    uci_json_close(json, '}');
}

static void uci_record_write_line(FILE *stream, const uci_record_t *record)
{
    static const uci_damage_t none;
    const uci_damage_t *damage = (record->damages != NULL) ? record->damages->first : NULL;
    uci_stack_t stack;
    uci_json_t json;

    uci_stack_take(&stack);
    uci_json_begin(&json, stream, ", ");
    uci_json_uint(&json, "schema", UCI_RECORD_SCHEMA);
    uci_json_double(&json, "time", uci_process_wall_time(), 6);
    uci_json_uint(&json, "monotonic_ns", uci_process_time_ns());
    uci_json_string(&json, "job", uci_process_job());
    uci_json_string(&json, "verdict", record->verdict);
    uci_json_string(&json, "cause", uci_cause_names[record->cause]);
    uci_json_string(&json, "evidence", record->evidence);
    uci_json_string(&json, "reason", record->reason);
    uci_record_write_parties(&json, record);
    uci_json_string(&json, "path", uci_way_paths[record->way]);
    uci_json_string(&json, "carrier", uci_way_carriers[record->way]);
    uci_record_write_device(&json, record);
    uci_record_write_name(&json, record);
    uci_json_uint(&json, "seq", record->seq);
    uci_json_string(&json, "kind", record->kind);
    uci_json_uint(&json, "length", record->length);
    uci_record_write_first(&json, record, (damage != NULL) ? damage : &none);
    uci_record_write_ranges(&json, record);
    uci_record_write_repair(&json, record);
    if (record->differ != NULL) {
        uci_record_write_types(&json, record->differ);
    }
    uci_stack_write(&stack, &json, "stack");
    uci_json_string(&json, "capture", ((damage != NULL) && (damage->capture[0] != '\0')) ? damage->capture : NULL);
    uci_json_end(&json);
    fputc('\n', stream);
}

void uci_record_write(const uci_record_t *record)
{
    uci_quiet_t quiet;
    FILE *stream = uci_record_is_on() ? uci_record_open(&quiet) : NULL;

    if ((record->peer != NULL) && (record->differ == NULL)) {
        uci_admin_log_damaged(record->peer, record->length, record->verdict, uci_cause_names[record->cause],
                              uci_way_paths[record->way]);
    }
    if (stream != NULL) {
        uci_record_write_line(stream, record);
        uci_record_close(stream, &quiet);
    }
}
