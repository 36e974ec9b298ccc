/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenMetrics text. Labels are of a job, not of a rank: a monitor keeps a series for each set of labels there ever was.
 */
#include "top_views.h"
#include "live/stats.h"

#include <string.h>

/* @return the metric with one more process, a running one. @param value  of those before */
typedef double uci_top_metric_func_t(const uci_top_look_t *look, const uci_top_process_t *process, double value);

static void uci_top_metrics_label(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "%s=\"", name);
    for (; *value != '\0'; ++value) {
        if ((*value == '\\') || (*value == '"')) {
            fputc('\\', stream);
        }
        fputc(*value, stream); /* printable ASCII: uci_live_file_parse() */
    }
    fputc('"', stream);
}

static void uci_top_metrics_labels(FILE *stream, const uci_top_job_t *job)
{
    const uci_live_header_t *header = job->processes[0]->file.header;
    char uid[16];

    snprintf(uid, sizeof(uid), "%u", header->uid);
    uci_top_metrics_label(stream, "job_id", uci_top_job_name(job));
    fputc(',', stream);
    uci_top_metrics_label(stream, "program", header->program);
    fputc(',', stream);
    uci_top_metrics_label(stream, "uid", uid);
}

/* Processes that know of no job are jobs of their own, and may have the same labels: one line for all of them */
static bool uci_top_metrics_is_same(const uci_top_job_t *one, const uci_top_job_t *other)
{
    const uci_live_header_t *a = one->processes[0]->file.header, *b = other->processes[0]->file.header;

    return (strcmp(a->job, b->job) == 0) && (strcmp(a->program, b->program) == 0) && (a->uid == b->uid);
}

static bool uci_top_metrics_was_written(const uci_top_look_t *look, unsigned i)
{
    unsigned j;

    for (j = 0; j < i; ++j) {
        if (uci_top_metrics_is_same(&look->jobs[j], &look->jobs[i])) {
            return true;
        }
    }
    return false;
}

static const char *uci_top_metrics_help(const char *name)
{
    static const struct {
        const char *name, *text;
    } known[] = {
#define UCI_TOP_KNOWN(_name, _text) {#_name, _text},
        UCI_STATS_COUNTERS(UCI_TOP_KNOWN)
#undef UCI_TOP_KNOWN
    };
    size_t i;

    for (i = 0; i < uci_array_size(known); ++i) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].text;
        }
    }
    return "counter of another version of UCI";
}

static uint64_t uci_top_metrics_sum(const uci_top_job_t *job, const char *name)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < job->count; ++i) {
        sum += uci_live_file_value(&job->processes[i]->file, name);
    }
    return sum;
}

static void uci_top_metrics_counter(const uci_top_look_t *look, FILE *stream, const char *name)
{
    unsigned i, j;
    uint64_t sum;

    fprintf(stream, "# TYPE uci_%s counter\n# HELP uci_%s %s\n", name, name, uci_top_metrics_help(name));
    for (i = 0; i < look->jobs_count; ++i) {
        if (uci_top_metrics_was_written(look, i)) {
            continue;
        }
        for (j = i, sum = 0; j < look->jobs_count; ++j) {
            if (uci_top_metrics_is_same(&look->jobs[i], &look->jobs[j])) {
                sum += uci_top_metrics_sum(&look->jobs[j], name);
            }
        }
        fprintf(stream, "uci_%s_total{", name);
        uci_top_metrics_labels(stream, &look->jobs[i]);
        fprintf(stream, "} %lu\n", (unsigned long)sum);
    }
}

/* A name that somebody has put into the file of a process, which is for a metric of ours or would be read as a part of another one: it would cost
 * a monitor all of them */
static bool uci_top_metrics_is_taken(const char *name)
{
    static const char *const taken[]  = {"processes", "log_bytes", "oldest_wait_seconds", "live_files_skipped"};
    static const char *const ending[] = {"_total", "_created"};
    size_t length                     = strlen(name), i;

    for (i = 0; i < uci_array_size(taken); ++i) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    for (i = 0; i < uci_array_size(ending); ++i) {
        if ((length >= strlen(ending[i])) && (strcmp(name + length - strlen(ending[i]), ending[i]) == 0)) {
            return true;
        }
    }
    return false;
}

/* Is this process the first one that has this counter? Processes of several versions may be there */
static bool uci_top_metrics_is_first(const uci_top_look_t *look, unsigned process, const char *name)
{
    unsigned i, j;

    for (i = 0; i < process; ++i) {
        for (j = 0; j < look->processes[i].file.header->counters; ++j) {
            if (strcmp(uci_live_file_name(&look->processes[i].file, j), name) == 0) {
                return false;
            }
        }
    }
    return true;
}

/* @return true if its names are those of the process before, as they nearly always are */
static bool uci_top_metrics_has_same_names(const uci_live_file_t *one, const uci_live_file_t *other)
{
    return (one->header->counters == other->header->counters) &&
           (memcmp(uci_live_file_name(one, 0), uci_live_file_name(other, 0),
                   (size_t)one->header->counters * UCI_LIVE_NAME) == 0);
}

static void uci_top_metrics_counters(const uci_top_look_t *look, FILE *stream)
{
    const uci_live_file_t *file;
    const char *name;
    unsigned i, j;

    for (i = 0; i < look->count; ++i) {
        file = &look->processes[i].file;
        if ((i > 0) && uci_top_metrics_has_same_names(&look->processes[i - 1].file, file)) {
            continue;
        }
        for (j = 0; j < file->header->counters; ++j) {
            name = uci_live_file_name(file, j);
            if (!uci_top_metrics_is_taken(name) && uci_top_metrics_is_first(look, i, name)) {
                uci_top_metrics_counter(look, stream, name);
            }
        }
    }
}

static double uci_top_metrics_log(const uci_top_look_t *look, const uci_top_process_t *process, double value)
{
    return value + (double)process->log_bytes;
}

static double uci_top_metrics_wait(const uci_top_look_t *look, const uci_top_process_t *process, double value)
{
    return uci_max(value, uci_top_wait_seconds(look, &process->wait));
}

/* Of all jobs with the labels of job @a i, which is the first of them */
static double uci_top_metrics_value(const uci_top_look_t *look, unsigned i, uci_top_metric_func_t *func)
{
    const uci_top_job_t *first = &look->jobs[i];
    double value               = 0;
    unsigned j;

    for (; i < look->jobs_count; ++i) {
        for (j = 0; uci_top_metrics_is_same(first, &look->jobs[i]) && (j < look->jobs[i].count); ++j) {
            if (look->jobs[i].processes[j]->file.fate == UCI_LIVE_FATE_RUNNING) {
                value = func(look, look->jobs[i].processes[j], value);
            }
        }
    }
    return value;
}

static void uci_top_metrics_gauge(const uci_top_look_t *look, FILE *stream, const char *name, const char *unit,
                                  const char *help, uci_top_metric_func_t *func)
{
    unsigned i;

    fprintf(stream, "# TYPE %s gauge\n# UNIT %s %s\n# HELP %s %s\n", name, name, unit, name, help);
    for (i = 0; i < look->jobs_count; ++i) {
        if (!uci_top_metrics_was_written(look, i)) {
            fprintf(stream, "%s{", name);
            uci_top_metrics_labels(stream, &look->jobs[i]);
            fprintf(stream, "} %.9g\n", uci_top_metrics_value(look, i, func));
        }
    }
}

static void uci_top_metrics_ranks(const uci_top_look_t *look, FILE *stream)
{
    unsigned i, j, fate, count;

    fprintf(stream, "# TYPE uci_processes gauge\n# HELP uci_processes processes with UCI, by what became of them\n");
    for (i = 0; i < look->jobs_count; ++i) {
        for (fate = 0; (fate < UCI_LIVE_FATES) && !uci_top_metrics_was_written(look, i); ++fate) {
            for (j = i, count = 0; j < look->jobs_count; ++j) {
                if (uci_top_metrics_is_same(&look->jobs[i], &look->jobs[j])) {
                    count += look->jobs[j].fates[fate];
                }
            }
            fprintf(stream, "uci_processes{");
            uci_top_metrics_labels(stream, &look->jobs[i]);
            fprintf(stream, ",state=\"%s\"} %u\n", uci_live_fate_names[fate], count);
        }
    }
}

void uci_top_write_metrics(const uci_top_look_t *look, FILE *stream)
{
    uci_top_metrics_ranks(look, stream);
    uci_top_metrics_counters(look, stream);
    uci_top_metrics_gauge(look, stream, "uci_log_bytes", "bytes", "copies of messages that are kept to repair them",
                          uci_top_metrics_log);
    uci_top_metrics_gauge(look, stream, "uci_oldest_wait_seconds", "seconds",
                          "for how long a running process has waited for one message at most", uci_top_metrics_wait);
    fprintf(stream,
            "# TYPE uci_live_files_skipped gauge\n# HELP uci_live_files_skipped files that could not be read\n"
            "uci_live_files_skipped %u\n",
            look->skipped_count);
    fprintf(stream, "# EOF\n");
}
