/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_report.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/file.h"
#include "util/json_writer.h"
#include "util/log.h"
#include "forensics/mpi_tag.h"
#include "util/process.h"
#include "report/record.h"
#include "report/report.h"
#include "settings/settings.h"

#define UCI_TWIN_EARLY         64u /* messages that are the same: a program begins with barriers, and the like */
#define UCI_TWIN_BINS          512u
#define UCI_TWIN_FIRST_SECONDS (1.0 / 64) /* of a bin; doubled when there are too many */

typedef struct uci_twin_bin {
    uint64_t compared;
    uint64_t differed;
    uint64_t wrong[UCI_TWINS_MAX];
} uci_twin_bin_t;

/* Messages of one sender */
typedef struct uci_twin_source {
    uint64_t compared;
    uint64_t differed;
} uci_twin_source_t;

/* Of a message's receipt */
typedef struct uci_twin_when {
    double time; /* seconds since the epoch */
    uint64_t monotonic_ns;
} uci_twin_when_t;

uci_twin_receipts_t uci_twin_receipts;

static struct {
    const uci_twin_votes_t *votes;
    uci_ticks_mark_t begin;
    double start; /* seconds since the epoch */
    double seconds;
    uint64_t agreed, differed, corrected, unlike, alone, split, no_room;
    uint64_t choices_followed, choices_given_up;
    uint64_t minority[UCI_TWINS_MAX];
    bool is_random;
    uci_twin_bin_t bins[UCI_TWIN_BINS];
    unsigned bins_used;
    uci_twin_source_t *sources;
    uint32_t sources_count;
    bool has_first;
    uci_twin_verdict_t first; /* that differed */
    uci_twin_when_t first_when;
    uci_mark_t first_sender; /* of this twin's message */
    bool first_sender_known;
} uci_twin_report;

/* ----------------------------------------------------------- gathering */

void uci_twin_report_begin(const uci_twin_votes_t *votes)
{
    uci_twin_report.votes   = votes;
    uci_twin_report.begin   = uci_ticks_mark();
    uci_twin_report.start   = uci_process_wall_time();
    uci_twin_report.seconds = UCI_TWIN_FIRST_SECONDS;
}

static void uci_twin_bins_widen(void)
{
    unsigned i, twin;

    for (i = 0; i < UCI_TWIN_BINS / 2; ++i) {
        uci_twin_bin_t *to = &uci_twin_report.bins[i], *from = &uci_twin_report.bins[2 * i];
        uci_twin_bin_t sum = {.compared = from[0].compared + from[1].compared,
                              .differed = from[0].differed + from[1].differed};

        for (twin = 0; twin < UCI_TWINS_MAX; ++twin) {
            sum.wrong[twin] = from[0].wrong[twin] + from[1].wrong[twin];
        }
        *to = sum;
    }
    memset(&uci_twin_report.bins[UCI_TWIN_BINS / 2], 0, sizeof(uci_twin_report.bins) / 2);
    uci_twin_report.seconds *= 2;
    uci_twin_report.bins_used = uci_div_up(uci_twin_report.bins_used, 2);
}

/* The bin of now */
static uci_twin_bin_t *uci_twin_bin(void)
{
    double passed = uci_process_wall_time() - uci_twin_report.start;
    unsigned i;

    passed = (passed > 0) ? passed : 0; /* the clock was set back */
    while (passed >= uci_twin_report.seconds * UCI_TWIN_BINS) {
        uci_twin_bins_widen();
    }
    i                         = (unsigned)(passed / uci_twin_report.seconds);
    uci_twin_report.bins_used = uci_max(uci_twin_report.bins_used, i + 1);
    return &uci_twin_report.bins[i];
}

/* NULL: no memory, or a sender that is no rank; it is not counted by sender then */
static uci_twin_source_t *uci_twin_source(uint32_t source)
{
    uci_twin_source_t *grown;
    uint32_t count = source + 1;

    if (source >= UCI_TWIN_RANKS_MAX) {
        return NULL;
    }
    if (source >= uci_twin_report.sources_count) {
        count = uci_max(count, 2 * uci_twin_report.sources_count);
        grown = realloc(uci_twin_report.sources, count * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        memset(grown + uci_twin_report.sources_count, 0, (count - uci_twin_report.sources_count) * sizeof(*grown));
        uci_twin_report.sources       = grown;
        uci_twin_report.sources_count = count;
    }
    return &uci_twin_report.sources[source];
}

void uci_twin_report_agreed(uint64_t agreed)
{
    if (agreed != uci_twin_report.agreed) {
        uci_twin_bin()->compared += agreed - uci_twin_report.agreed;
        uci_twin_report.agreed = agreed;
    }
}

void uci_twin_report_no_room(uint64_t count)
{
    uci_twin_report.no_room += count;
}

bool uci_twin_report_is_random(void)
{
    return uci_twin_report.is_random;
}

/* ------------------------------------------------------------- telling */

static const char *uci_twin_text(const uci_twin_verdict_t *verdict, char *text, size_t size)
{
    char tag[128];

    uci_report_tag(verdict->tag, tag, sizeof(tag));
    snprintf(text, size, "message %u from rank %u to rank %d, tag %s", verdict->number, verdict->source,
             uci_process_rank(), tag);
    return text;
}

static void uci_twin_evidence(const uci_twin_verdict_t *verdict, char *text, size_t size)
{
    unsigned me = uci_settings.twins.twin;

    if (verdict->wrong >= 0) {
        snprintf(
                text, size,
                "twin %d has sent another content than the %s of the others, which are the same: it arrived as it was sent, so "
                "rank %u of twin %d computed it differently, or from something that was",
                verdict->wrong, ((unsigned)verdict->wrong == me) ? "twins" : "rest", verdict->source, verdict->wrong);
    } else {
        snprintf(
                text, size,
                "no majority: it arrived as it was sent in each twin, so rank %u computed it differently in one of them, or from "
                "something that was",
                verdict->source);
    }
}

static void uci_twin_write_values(uci_json_t *json, const uci_twin_verdict_t *verdict)
{
    char digest[20];
    unsigned twin;

    uci_json_open(json, "values", '[');
    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        if (verdict->have & (1u << twin)) {
            snprintf(digest, sizeof(digest), "%016lx", (unsigned long)verdict->values[twin].digest);
            uci_json_string(json, NULL, digest);
        } else {
            uci_json_null(json, NULL);
        }
    }
    uci_json_close(json, ']');
}

static void uci_twin_write_sender(uci_json_t *json, uint32_t source, const uci_mark_t *mark)
{
    uci_json_string(json, "peer_host", (mark != NULL) ? mark->host : NULL);
    uci_json_uint(json, "peer_rank", source);
    if (mark != NULL) {
        uci_json_uint(json, "peer_pid", mark->pid);
    } else {
        uci_json_null(json, "peer_pid");
    }
}

/* When the message was received; now, if that was too long ago, or never */
static uci_twin_when_t uci_twin_when(const uci_twin_verdict_t *verdict)
{
    uci_ticks_mark_t now = uci_ticks_mark();
    uint64_t receipt     = uci_twin_receipts_find(&uci_twin_receipts, verdict->channel, verdict->number);
    uint64_t time        = (receipt != 0) ? uci_ticks_to_ns(receipt, &uci_twin_report.begin, &now) : now.ns;

    return (uci_twin_when_t){.time         = uci_process_wall_time() - ((double)(int64_t)(now.ns - time) * 1e-9),
                             .monotonic_ns = time};
}

static void uci_twin_write_message(uci_json_t *json, const uci_twin_verdict_t *verdict, const uci_mark_t *sender,
                                   const uci_twin_when_t *when)
{
    unsigned me = uci_settings.twins.twin;
    char evidence[512];

    uci_twin_evidence(verdict, evidence, sizeof(evidence));
    uci_json_string(json, "cause", "computed");
    uci_json_string(json, "evidence", evidence);
    uci_json_double(json, "time", when->time, 6);
    uci_json_uint(json, "monotonic_ns", when->monotonic_ns);
    uci_json_string(json, "job", uci_process_job());
    uci_json_string(json, "role", "receiver");
    uci_json_string(json, "host", uci_process_host());
    uci_json_int(json, "rank", uci_process_rank());
    uci_json_int(json, "pid", getpid());
    uci_json_int(json, "core", sched_getcpu());
    uci_twin_write_sender(json, verdict->source, sender);
    uci_record_write_tag(json, verdict->tag);
    uci_json_uint(json, "seq", verdict->number);
    uci_json_uint(json, "length",
                  verdict->values[(verdict->have & (1u << me)) ? me : (unsigned)__builtin_ctz(verdict->have)].length);
    uci_json_uint(json, "twin", me);
    uci_json_uint(json, "twins", uci_settings.twins.of);
    if (verdict->wrong >= 0) {
        uci_json_int(json, "wrong_twin", verdict->wrong);
    } else {
        uci_json_null(json, "wrong_twin");
    }
    uci_twin_write_values(json, verdict);
}

static void uci_twin_record(const uci_twin_verdict_t *verdict, const uci_mark_t *sender, const char *what)
{
    uci_twin_when_t when = uci_twin_when(verdict);
    static unsigned count;
    uci_quiet_t quiet;
    uci_json_t json;
    FILE *stream;

    if (!uci_record_is_on() || (++count > UCI_TWIN_RECORDS)) {
        return;
    }
    stream = uci_record_open(&quiet);
    if (stream == NULL) {
        return;
    }
    uci_json_begin(&json, stream, ", ");
    uci_json_uint(&json, "schema", UCI_RECORD_SCHEMA);
    uci_json_string(&json, "verdict", what);
    uci_twin_write_message(&json, verdict, sender, &when);
    uci_json_end(&json);
    fputc('\n', stream);
    uci_record_close(stream, &quiet);
}

static void uci_twin_warn(const uci_twin_verdict_t *verdict, const uci_mark_t *sender)
{
    unsigned me = uci_settings.twins.twin;
    char text[256];

    uci_twin_text(verdict, text, sizeof(text));
    if (verdict->wrong == (int)me) {
        uci_warn(
                "this twin (%u of %u) is alone with %s: the others have another content. It was computed here, by %s, or came to it from "
                "others; all that differs is in the report",
                me, uci_settings.twins.of, text, (sender != NULL) ? uci_mark_name(sender) : "its sender");
    } else if (verdict->wrong >= 0) {
        uci_warn(
                "twin %d differs: %s has another content there than in the others; it was computed there, by rank %u, or came to it from others; "
                "all that differs is in the report",
                verdict->wrong, text, verdict->source);
    } else {
        uci_warn("twins differ: %s does not have the same content in them; all that differs is in the report", text);
    }
}

/* Already the first messages differ: this one is the first of its channel, nothing of this sender's has ever been the same, and not much of
 * others. Later on it may be a time that is gathered at the end */
static bool uci_twin_looks_random(const uci_twin_verdict_t *verdict)
{
    return (verdict->outcome == UCI_TWIN_SPLIT) && (verdict->number == 0) &&
           (uci_twin_report.agreed < UCI_TWIN_EARLY) &&
           !uci_twin_votes_has_agreed(uci_twin_report.votes, verdict->source);
}

static void uci_twin_tell_first(const uci_twin_verdict_t *verdict, const uci_mark_t *sender)
{
    char text[256];

    uci_twin_report.has_first          = true;
    uci_twin_report.first              = *verdict;
    uci_twin_report.first_when         = uci_twin_when(verdict);
    uci_twin_report.first_sender_known = sender != NULL;
    if (uci_twin_report.first_sender_known) {
        uci_twin_report.first_sender = *sender;
    }
    uci_twin_report.is_random = uci_twin_looks_random(verdict);
    if (uci_twin_report.is_random) {
        uci_warn(
                "this program is not deterministic, it seems: already %s is not the same in its twins, and nothing from there has been",
                uci_twin_text(verdict, text, sizeof(text)));
    } else {
        uci_twin_warn(verdict, sender);
    }
}

void uci_twin_report_verdict(const uci_twin_verdict_t *verdict, const uci_mark_t *sender)
{
    uci_twin_source_t *source;
    uci_twin_bin_t *bin;

    if (verdict->outcome == UCI_TWIN_UNLIKE) {
        ++uci_twin_report.unlike;
        return;
    }
    if (verdict->outcome == UCI_TWIN_ALONE) {
        ++uci_twin_report.alone;
        return;
    }
    bin = uci_twin_bin();
    ++bin->compared;
    ++bin->differed;
    ++uci_twin_report.differed;
    if (verdict->wrong >= 0) {
        ++bin->wrong[verdict->wrong];
        ++uci_twin_report.minority[verdict->wrong];
    } else {
        ++uci_twin_report.split;
    }
    if (!uci_twin_report.has_first) {
        uci_twin_tell_first(verdict, sender);
    }
    source = uci_twin_source(verdict->source);
    if (source != NULL) {
        ++source->differed;
    }
    uci_twin_record(verdict, sender, "twins differ");
}

void uci_twin_report_corrected(const uci_twin_verdict_t *verdict, const uci_mark_t *sender)
{
    ++uci_twin_report.corrected;
    uci_twin_record(verdict, sender, "corrected");
}

/* ------------------------------------------------------------ the file */

static void uci_twin_add_tally(void *arg, const uci_twin_tally_t *tally)
{
    uci_twin_source_t *source = uci_twin_source(tally->source);

    if (source != NULL) {
        source->compared += tally->decided;
    }
}

static const char *uci_twin_verdict_name(void)
{
    if (uci_twin_report.differed > 0) {
        return uci_twin_report.is_random ? "not deterministic" : "differs";
    }
    return (uci_twin_report.agreed > 0) ? "same" : "alone";
}

/* "0-3,7" */
static void uci_twin_cores(char *text, size_t size)
{
    size_t length = 0;
    cpu_set_t set;
    int core, end;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return;
    }
    for (core = 0; core < CPU_SETSIZE; core = end + 1) {
        end = core;
        if (!CPU_ISSET(core, &set)) {
            continue;
        }
        while ((end + 1 < CPU_SETSIZE) && CPU_ISSET(end + 1, &set)) {
            ++end;
        }
        length += (size_t)snprintf(text + length, size - length, (end > core) ? "%s%d-%d" : "%s%d",
                                   (length > 0) ? "," : "", core, end);
        if (length >= size) {
            return; /* cut */
        }
    }
}

static void uci_twin_write_self(uci_json_t *json, const uci_twin_link_t *link)
{
    char cores[256], program[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    program[(length > 0) ? length : 0] = '\0';
    uci_twin_cores(cores, sizeof(cores));
    uci_json_uint(json, "twins", 1);
    uci_json_uint(json, "twin", uci_settings.twins.twin);
    uci_json_uint(json, "of", uci_settings.twins.of);
    uci_json_string(json, "mode", uci_twins_mode_names[uci_settings.twins_mode]);
    uci_json_int(json, "rank", uci_process_rank());
    uci_json_uint(json, "ranks", uci_process_job_size());
    uci_json_string(json, "host", uci_process_host());
    uci_json_int(json, "pid", getpid());
    uci_json_string(json, "cores", cores);
    uci_json_int(json, "core", sched_getcpu());
    uci_json_string(json, "program", program);
    uci_json_double(json, "start", uci_twin_report.start, 6);
    uci_json_double(json, "end", uci_process_wall_time(), 6);
    uci_json_string(json, "verdict", uci_twin_verdict_name());
}

static void uci_twin_write_partners(uci_json_t *json, const uci_twin_link_t *link)
{
    const uci_twin_card_t *card;
    unsigned twin;

    uci_json_open(json, "partners", '[');
    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        if (twin == uci_settings.twins.twin) {
            continue;
        }
        card = uci_twin_link_card(link, twin);
        uci_json_open(json, NULL, '{');
        uci_json_uint(json, "twin", twin);
        uci_json_string(json, "host", (card != NULL) ? card->host : NULL);
        uci_json_int(json, "pid", (card != NULL) ? card->pid : 0);
        uci_json_string(json, "state", uci_twin_state_names[uci_twin_link_state(link, twin)]);
        uci_json_close(json, '}');
    }
    uci_json_close(json, ']');
}

static void uci_twin_write_counts(uci_json_t *json)
{
    unsigned twin;

    uci_json_uint(json, "compared", uci_twin_report.agreed + uci_twin_report.differed);
    uci_json_uint(json, "agreed", uci_twin_report.agreed);
    uci_json_uint(json, "differed", uci_twin_report.differed);
    uci_json_uint(json, "corrected", uci_twin_report.corrected);
    uci_json_uint(json, "unlike", uci_twin_report.unlike);
    uci_json_uint(json, "alone", uci_twin_report.alone);
    uci_json_uint(json, "no_room", uci_twin_report.no_room);
    uci_json_uint(json, "choices_followed", uci_twin_report.choices_followed);
    uci_json_uint(json, "choices_given_up", uci_twin_report.choices_given_up);
    uci_json_open(json, "minority", '[');
    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        uci_json_uint(json, NULL, uci_twin_report.minority[twin]);
    }
    uci_json_close(json, ']');
    uci_json_uint(json, "split", uci_twin_report.split);
}

static void uci_twin_write_bins(uci_json_t *json)
{
    unsigned i, twin;

    uci_json_open(json, "bins", '{');
    uci_json_double(json, "start", uci_twin_report.start, 6);
    uci_json_double(json, "seconds", uci_twin_report.seconds, 6);
    uci_json_open(json, "compared", '[');
    for (i = 0; i < uci_twin_report.bins_used; ++i) {
        uci_json_uint(json, NULL, uci_twin_report.bins[i].compared);
    }
    uci_json_close(json, ']');
    uci_json_open(json, "differed", '[');
    for (i = 0; i < uci_twin_report.bins_used; ++i) {
        uci_json_uint(json, NULL, uci_twin_report.bins[i].differed);
    }
    uci_json_close(json, ']');
    uci_json_open(json, "wrong", '[');
    for (i = 0; i < uci_twin_report.bins_used; ++i) {
        uci_json_open(json, NULL, '[');
        for (twin = 0; twin < uci_settings.twins.of; ++twin) {
            uci_json_uint(json, NULL, uci_twin_report.bins[i].wrong[twin]);
        }
        uci_json_close(json, ']');
    }
    uci_json_close(json, ']');
    uci_json_close(json, '}');
}

static void uci_twin_write_sources(uci_json_t *json)
{
    uint32_t source;

    uci_json_open(json, "sources", '[');
    for (source = 0; source < uci_twin_report.sources_count; ++source) {
        if (uci_twin_report.sources[source].compared > 0) {
            uci_json_open(json, NULL, '[');
            uci_json_uint(json, NULL, source);
            uci_json_uint(json, NULL, uci_twin_report.sources[source].compared);
            uci_json_uint(json, NULL, uci_twin_report.sources[source].differed);
            uci_json_close(json, ']');
        }
    }
    uci_json_close(json, ']');
}

static void uci_twin_write_first(uci_json_t *json)
{
    if (!uci_twin_report.has_first) {
        uci_json_null(json, "first");
        return;
    }
    uci_json_open(json, "first", '{');
    uci_twin_write_message(json, &uci_twin_report.first,
                           uci_twin_report.first_sender_known ? &uci_twin_report.first_sender : NULL,
                           &uci_twin_report.first_when);
    uci_json_close(json, '}');
}

static void uci_twin_write(FILE *stream, const void *link)
{
    uci_json_t json;

    uci_json_begin(&json, stream, ",\n ");
    uci_twin_write_self(&json, link);
    uci_twin_write_partners(&json, link);
    uci_twin_write_counts(&json);
    uci_twin_write_bins(&json);
    uci_twin_write_sources(&json);
    uci_twin_write_first(&json);
    uci_json_end(&json);
    fputc('\n', stream);
}

static void uci_twin_sum_up(void)
{
    if (uci_twin_report.differed > 0) {
        uci_warn("%lu of %lu messages were not the same in all twins%s", (unsigned long)uci_twin_report.differed,
                 (unsigned long)(uci_twin_report.agreed + uci_twin_report.differed),
                 (uci_twin_report.corrected > 0) ? "; where this twin was alone it has got what the others have" : "");
    }
    if (uci_twin_report.alone > 0) {
        uci_warn("%lu messages could not be compared: some twin did not have them",
                 (unsigned long)uci_twin_report.alone);
    }
    if (uci_twin_report.no_room > 0) {
        uci_warn("%lu messages were not compared: there was no room for them (UCI_TWINS_LOG)",
                 (unsigned long)uci_twin_report.no_room);
    }
}

void uci_twin_report_followed(uint64_t followed, uint64_t given_up)
{
    uci_twin_report.choices_followed = followed;
    uci_twin_report.choices_given_up = given_up;
}

void uci_twin_report_end(const uci_twin_link_t *link, const uci_twin_votes_t *votes)
{
    char path[PATH_MAX];

    uci_twin_votes_visit(votes, uci_twin_add_tally, NULL);
    uci_twin_sum_up();
    if ((uci_settings.twins_report == NULL) || (uci_settings.twins_report[0] == '\0')) {
        return;
    }
    if ((uci_process_expand(uci_settings.twins_report, path, sizeof(path)) != UCI_OK) ||
        (uci_file_replace(path, uci_twin_write, link) != UCI_OK)) {
        uci_warn("the report on twins could not be written to UCI_TWINS_REPORT=%s: %s", uci_settings.twins_report,
                 uci_file_error(errno));
    }
}
