/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_views.h"
#include "util/process.h"

#include <jansson.h>

#define UCI_TOP_JSON_SCHEMA 1

static double uci_top_json_time(uint64_t time)
{
    return (double)time * 1e-9;
}

/* A text that is empty, and a time or number of 0, are not known */
static const char *uci_top_json_text(const char *text)
{
    return (*text != '\0') ? text : NULL;
}

static json_t *uci_top_json_number(int64_t number, bool known)
{
    return known ? json_integer(number) : json_null();
}

static json_t *uci_top_json_real(double value, bool known)
{
    return known ? json_real(value) : json_null();
}

static void uci_top_json_sums(json_t *object, const uint64_t *sums)
{
    unsigned i;

    for (i = 0; i < UCI_TOP_SUMS; ++i) {
        json_object_set_new(object, uci_top_sum_names[i], json_integer((json_int_t)sums[i]));
    }
}

static json_t *uci_top_json_wait(const uci_top_look_t *look, const uci_live_wait_t *wait)
{
    double seconds = uci_top_wait_seconds(look, wait);

    return json_pack("{s:s, s:o, s:s?, s:o, s:I, s:o, s:s?, s:o}", "for", uci_live_wait_names[wait->kind], "rank",
                     uci_top_json_number(wait->rank, wait->rank >= 0), "host", uci_top_json_text(wait->host), "pid",
                     uci_top_json_number(wait->pid, wait->pid > 0), "count", (json_int_t)wait->count, "bytes",
                     uci_top_json_number((int64_t)wait->bytes, wait->bytes > 0), "tag", uci_top_json_text(wait->what),
                     "seconds", uci_top_json_real(seconds, seconds >= 0));
}

static json_t *uci_top_json_worker(const uci_top_look_t *look, const uci_live_gauges_t *gauges)
{
    json_t *waits = json_array();
    unsigned i;

    for (i = 0; i < UCI_LIVE_WAITS; ++i) {
        if (gauges->waits[i].kind != UCI_LIVE_WAIT_NONE) {
            json_array_append_new(waits, uci_top_json_wait(look, &gauges->waits[i]));
        }
    }
    return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "looked",
                     uci_top_json_time(gauges->time), "log_bytes", (json_int_t)gauges->log_bytes, "log_limit",
                     (json_int_t)gauges->log_limit, "copy_bytes", (json_int_t)gauges->copy_bytes, "peers",
                     (json_int_t)gauges->peers, "peers_by_mailbox", (json_int_t)gauges->peers_mailbox,
                     "posted_receives", (json_int_t)gauges->posted, "unexpected_messages",
                     (json_int_t)gauges->unexpected, "receiving", (json_int_t)gauges->receiving, "sending",
                     (json_int_t)gauges->sending, "waits", waits);
}

static json_t *uci_top_json_workers(const uci_top_look_t *look, const uci_live_file_t *file)
{
    json_t *workers = json_array();
    uci_live_gauges_t gauges;
    unsigned i;

    for (i = 0; i < uci_min(file->header->blocks, UCI_TOP_WORKERS); ++i) {
        if (uci_live_file_gauges(file, i, &gauges)) {
            json_array_append_new(workers, uci_top_json_worker(look, &gauges));
        }
    }
    return workers;
}

static json_t *uci_top_json_counters(const uci_live_file_t *file)
{
    json_t *counters = json_object();
    unsigned i;

    for (i = 0; i < file->header->counters; ++i) {
        json_object_set_new(counters, uci_live_file_name(file, i),
                            json_integer((json_int_t)uci_live_file_sum(file, i)));
    }
    return counters;
}

static json_t *uci_top_json_process(const uci_top_look_t *look, const uci_top_process_t *process)
{
    const uci_live_header_t *header = process->file.header;
    double idle                     = uci_top_idle_seconds(look, process);
    json_t *object;

    object = json_pack("{s:o*, s:s, s:I, s:I, s:o, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:f, s:o, s:f}", "file",
                       json_string(process->path), "host", header->host, "pid", (json_int_t)header->pid, "uid",
                       (json_int_t)header->uid, "rank", uci_top_json_number(header->rank, header->rank >= 0), "state",
                       uci_live_fate_names[process->file.fate], "program", uci_top_json_text(header->program), "mode",
                       uci_top_json_text(header->mode), "digest", uci_top_json_text(header->digest), "version",
                       uci_top_json_text(header->uci_version), "ucx_version", uci_top_json_text(header->ucx_version),
                       "begun", uci_top_json_time(header->begin_time), "ended",
                       uci_top_json_real(uci_top_json_time(header->end_time), header->end_time != 0), "last_seen",
                       uci_top_json_time(process->file.last_time));
    uci_top_json_sums(object, process->sums);
    json_object_set_new(object, "messages_per_second", json_real(process->messages));
    json_object_set_new(object, "bytes_verified_per_second", json_real(process->bytes));
    json_object_set_new(object, "rate_seconds", json_real(process->seconds));
    json_object_set_new(object, "idle_seconds", uci_top_json_real(idle, idle >= 0));
    json_object_set_new(object, "workers_not_counted", json_integer(header->unlisted));
    json_object_set_new(object, "workers", uci_top_json_workers(look, &process->file));
    json_object_set_new(object, "counters", uci_top_json_counters(&process->file));
    return object;
}

static json_t *uci_top_json_job(const uci_top_look_t *look, const uci_top_job_t *job)
{
    json_t *object, *states = json_object(), *processes = json_array();
    unsigned i;

    for (i = 0; i < UCI_LIVE_FATES; ++i) {
        json_object_set_new(states, uci_live_fate_names[i], json_integer(job->fates[i]));
    }
    object = json_pack("{s:s?, s:s?, s:o, s:o, s:s}", "job", uci_top_json_text(job->processes[0]->file.header->job),
                       "program", uci_top_json_text(job->processes[0]->file.header->program), "size",
                       uci_top_json_number(uci_top_job_size(job), uci_top_job_size(job) > 0), "states", states, "level",
                       uci_top_level_names[uci_top_job_level(job)]);
    uci_top_json_sums(object, job->sums);
    json_object_set_new(object, "messages_per_second", json_real(job->messages));
    json_object_set_new(object, "bytes_verified_per_second", json_real(job->bytes));
    for (i = 0; i < job->count; ++i) {
        json_array_append_new(processes, uci_top_json_process(look, job->processes[i]));
    }
    json_object_set_new(object, "processes", processes);
    return object;
}

void uci_top_write_json(const uci_top_look_t *look, FILE *stream)
{
    json_t *object, *jobs = json_array(), *skipped = json_array();
    unsigned i;

    for (i = 0; i < look->jobs_count; ++i) {
        json_array_append_new(jobs, uci_top_json_job(look, &look->jobs[i]));
    }
    for (i = 0; i < look->skipped_count; ++i) {
        json_array_append_new(
                skipped, json_pack("{s:s, s:s}", "file", look->skipped[i].path, "reason", look->skipped[i].reason));
    }
    object = json_pack("{s:i, s:f, s:s, s:o, s:o}", "schema", UCI_TOP_JSON_SCHEMA, "time",
                       uci_top_json_time(look->time), "host", uci_process_host(), "jobs", jobs, "skipped", skipped);
    json_dumpf(object, stream, JSON_ENSURE_ASCII);
    fputc('\n', stream);
    json_decref(object);
}
