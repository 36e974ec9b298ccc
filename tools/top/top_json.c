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
static json_t *uci_top_json_text(const char *text)
{
    return (*text != '\0') ? json_string(text) : json_null();
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
    json_t *object = json_object();
    double seconds = uci_top_wait_seconds(look, wait);

    json_object_set_new(object, "for", json_string(uci_live_wait_names[wait->kind]));
    json_object_set_new(object, "rank", uci_top_json_number(wait->rank, wait->rank >= 0));
    json_object_set_new(object, "host", uci_top_json_text(wait->host));
    json_object_set_new(object, "pid", uci_top_json_number(wait->pid, wait->pid > 0));
    json_object_set_new(object, "count", json_integer(wait->count));
    json_object_set_new(object, "bytes", uci_top_json_number((int64_t)wait->bytes, wait->bytes > 0));
    json_object_set_new(object, "tag", uci_top_json_text(wait->what));
    json_object_set_new(object, "seconds", uci_top_json_real(seconds, seconds >= 0));
    return object;
}

static json_t *uci_top_json_worker(const uci_top_look_t *look, const uci_live_gauges_t *gauges)
{
    json_t *object = json_object(), *waits = json_array();
    unsigned i;

    json_object_set_new(object, "looked", json_real(uci_top_json_time(gauges->time)));
    json_object_set_new(object, "log_bytes", json_integer((json_int_t)gauges->log_bytes));
    json_object_set_new(object, "log_limit", json_integer((json_int_t)gauges->log_limit));
    json_object_set_new(object, "copy_bytes", json_integer((json_int_t)gauges->copy_bytes));
    json_object_set_new(object, "peers", json_integer((json_int_t)gauges->peers));
    json_object_set_new(object, "peers_by_mailbox", json_integer((json_int_t)gauges->peers_mailbox));
    json_object_set_new(object, "posted_receives", json_integer((json_int_t)gauges->posted));
    json_object_set_new(object, "unexpected_messages", json_integer((json_int_t)gauges->unexpected));
    json_object_set_new(object, "receiving", json_integer((json_int_t)gauges->receiving));
    json_object_set_new(object, "sending", json_integer((json_int_t)gauges->sending));
    for (i = 0; i < UCI_LIVE_WAITS; ++i) {
        if (gauges->waits[i].kind != UCI_LIVE_WAIT_NONE) {
            json_array_append_new(waits, uci_top_json_wait(look, &gauges->waits[i]));
        }
    }
    json_object_set_new(object, "waits", waits);
    return object;
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
    json_t *object                  = json_object();

    json_object_set_new(object, "file", json_string(process->path));
    json_object_set_new(object, "host", json_string(header->host));
    json_object_set_new(object, "pid", json_integer(header->pid));
    json_object_set_new(object, "uid", json_integer(header->uid));
    json_object_set_new(object, "rank", uci_top_json_number(header->rank, header->rank >= 0));
    json_object_set_new(object, "state", json_string(uci_live_fate_names[process->file.fate]));
    json_object_set_new(object, "program", uci_top_json_text(header->program));
    json_object_set_new(object, "mode", uci_top_json_text(header->mode));
    json_object_set_new(object, "digest", uci_top_json_text(header->digest));
    json_object_set_new(object, "version", uci_top_json_text(header->uci_version));
    json_object_set_new(object, "ucx_version", uci_top_json_text(header->ucx_version));
    json_object_set_new(object, "begun", json_real(uci_top_json_time(header->begin_time)));
    json_object_set_new(object, "ended", uci_top_json_real(uci_top_json_time(header->end_time), header->end_time != 0));
    json_object_set_new(object, "last_seen", json_real(uci_top_json_time(process->file.last_time)));
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
    json_t *object = json_object(), *states = json_object(), *processes = json_array();
    unsigned i;

    json_object_set_new(object, "job", uci_top_json_text(job->processes[0]->file.header->job));
    json_object_set_new(object, "program", uci_top_json_text(job->processes[0]->file.header->program));
    json_object_set_new(object, "size", uci_top_json_number(uci_top_job_size(job), uci_top_job_size(job) > 0));
    for (i = 0; i < UCI_LIVE_FATES; ++i) {
        json_object_set_new(states, uci_live_fate_names[i], json_integer(job->fates[i]));
    }
    json_object_set_new(object, "states", states);
    json_object_set_new(object, "level", json_string(uci_top_level_names[uci_top_job_level(job)]));
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
    json_t *object = json_object(), *jobs = json_array(), *skipped = json_array();
    unsigned i;

    json_object_set_new(object, "schema", json_integer(UCI_TOP_JSON_SCHEMA));
    json_object_set_new(object, "time", json_real(uci_top_json_time(look->time)));
    json_object_set_new(object, "host", json_string(uci_process_host()));
    for (i = 0; i < look->jobs_count; ++i) {
        json_array_append_new(jobs, uci_top_json_job(look, &look->jobs[i]));
    }
    for (i = 0; i < look->skipped_count; ++i) {
        json_array_append_new(
                skipped, json_pack("{s:s, s:s}", "file", look->skipped[i].path, "reason", look->skipped[i].reason));
    }
    json_object_set_new(object, "jobs", jobs);
    json_object_set_new(object, "skipped", skipped);
    json_dumpf(object, stream, JSON_ENSURE_ASCII);
    fputc('\n', stream);
    json_decref(object);
}
