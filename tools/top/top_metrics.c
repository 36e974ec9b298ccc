/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenMetrics text. Labels are of a job, not of a rank: a monitor keeps a series for each set of labels there ever was.
 */
#include "top_views.h"
#include "live/stats.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

/* Counters of other versions, at most */
#define UCI_TOP_METRICS_OTHERS 64

typedef struct uci_top_metrics {
    const uci_top_look_t *look;
    FILE *stream;
    unsigned *first; /* for each job: the first one with its labels */
    uint64_t *sums;  /* of those that are first */
} uci_top_metrics_t;

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

/* For each job the first one with the same labels. Found once: anybody can make thousands of files */
static void uci_top_metrics_find_firsts(uci_top_metrics_t *metrics)
{
    unsigned i;

    for (i = 0; i < metrics->look->jobs_count; ++i) {
        for (metrics->first[i] = 0;
             !uci_top_metrics_is_same(&metrics->look->jobs[metrics->first[i]], &metrics->look->jobs[i]);
             ++metrics->first[i]) {
        }
    }
}

static const struct {
    const char *name, *text;
} uci_top_metrics_known[] = {
#define UCI_TOP_KNOWN(_name, _text) {#_name, _text},
        UCI_STATS_COUNTERS(UCI_TOP_KNOWN)
#undef UCI_TOP_KNOWN
};

static bool uci_top_metrics_is_known(const char *name)
{
    size_t i;

    for (i = 0; i < uci_array_size(uci_top_metrics_known); ++i) {
        if (strcmp(uci_top_metrics_known[i].name, name) == 0) {
            return true;
        }
    }
    return false;
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

static void uci_top_metrics_counter(const uci_top_metrics_t *metrics, const char *name, const char *help)
{
    const uci_top_look_t *look = metrics->look;
    unsigned i;

    memset(metrics->sums, 0, look->jobs_count * sizeof(*metrics->sums));
    for (i = 0; i < look->jobs_count; ++i) {
        metrics->sums[metrics->first[i]] += uci_top_metrics_sum(&look->jobs[i], name);
    }
    fprintf(metrics->stream, "# TYPE uci_%s counter\n# HELP uci_%s %s\n", name, name, help);
    for (i = 0; i < look->jobs_count; ++i) {
        if (metrics->first[i] == i) {
            fprintf(metrics->stream, "uci_%s_total{", name);
            uci_top_metrics_labels(metrics->stream, &look->jobs[i]);
            fprintf(metrics->stream, "} %lu\n", (unsigned long)metrics->sums[i]);
        }
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

/* @return how many of the first @a count names there are, with this one */
static unsigned uci_top_metrics_add(const char **names, unsigned count, const char *name)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (strcmp(names[i], name) == 0) {
            return count;
        }
    }
    names[count] = name;
    return count + 1;
}

/* Of processes of other versions. A few: names in the files of processes are whatever their users write there */
static void uci_top_metrics_others(const uci_top_metrics_t *metrics)
{
    const char *names[UCI_TOP_METRICS_OTHERS], *name;
    const uci_live_file_t *file;
    unsigned i, j, count = 0;

    for (i = 0; i < metrics->look->count; ++i) {
        file = &metrics->look->processes[i].file;
        for (j = 0; (j < file->header->counters) && (count < UCI_TOP_METRICS_OTHERS); ++j) {
            name = uci_live_file_name(file, j);
            if (!uci_top_metrics_is_known(name) && !uci_top_metrics_is_taken(name)) {
                count = uci_top_metrics_add(names, count, name);
            }
        }
    }
    for (i = 0; i < count; ++i) {
        uci_top_metrics_counter(metrics, names[i], "counter of another version of UCI");
    }
}

static void uci_top_metrics_counters(const uci_top_metrics_t *metrics)
{
    size_t i;

    for (i = 0; i < uci_array_size(uci_top_metrics_known); ++i) {
        uci_top_metrics_counter(metrics, uci_top_metrics_known[i].name, uci_top_metrics_known[i].text);
    }
    uci_top_metrics_others(metrics);
}

static double uci_top_metrics_log(const uci_top_look_t *look, const uci_top_process_t *process, double value)
{
    return value + (double)process->log_bytes;
}

static double uci_top_metrics_wait(const uci_top_look_t *look, const uci_top_process_t *process, double value)
{
    return uci_max(value, uci_top_wait_seconds(look, &process->wait));
}

/* Of all jobs with the labels of job @a first */
static double uci_top_metrics_value(const uci_top_metrics_t *metrics, unsigned first, uci_top_metric_func_t *func)
{
    const uci_top_look_t *look = metrics->look;
    double value               = 0;
    unsigned i, j;

    for (i = first; i < look->jobs_count; ++i) {
        for (j = 0; (metrics->first[i] == first) && (j < look->jobs[i].count); ++j) {
            if (look->jobs[i].processes[j]->file.fate == UCI_LIVE_FATE_RUNNING) {
                value = func(look, look->jobs[i].processes[j], value);
            }
        }
    }
    return value;
}

static void uci_top_metrics_gauge(const uci_top_metrics_t *metrics, const char *name, const char *unit,
                                  const char *help, uci_top_metric_func_t *func)
{
    unsigned i;

    fprintf(metrics->stream, "# TYPE %s gauge\n# UNIT %s %s\n# HELP %s %s\n", name, name, unit, name, help);
    for (i = 0; i < metrics->look->jobs_count; ++i) {
        if (metrics->first[i] == i) {
            fprintf(metrics->stream, "%s{", name);
            uci_top_metrics_labels(metrics->stream, &metrics->look->jobs[i]);
            fprintf(metrics->stream, "} %.9g\n", uci_top_metrics_value(metrics, i, func));
        }
    }
}

static unsigned uci_top_metrics_fate(const uci_top_metrics_t *metrics, unsigned first, unsigned fate)
{
    unsigned i, count = 0;

    for (i = first; i < metrics->look->jobs_count; ++i) {
        count += (metrics->first[i] == first) ? metrics->look->jobs[i].fates[fate] : 0;
    }
    return count;
}

static void uci_top_metrics_ranks(const uci_top_metrics_t *metrics)
{
    unsigned i, fate;

    fprintf(metrics->stream,
            "# TYPE uci_processes gauge\n# HELP uci_processes processes with UCI, by what became of them\n");
    for (i = 0; i < metrics->look->jobs_count; ++i) {
        for (fate = 0; (fate < UCI_LIVE_FATES) && (metrics->first[i] == i); ++fate) {
            fprintf(metrics->stream, "uci_processes{");
            uci_top_metrics_labels(metrics->stream, &metrics->look->jobs[i]);
            fprintf(metrics->stream, ",state=\"%s\"} %u\n", uci_live_fate_names[fate],
                    uci_top_metrics_fate(metrics, i, fate));
        }
    }
}

void uci_top_write_metrics(const uci_top_look_t *look, FILE *stream)
{
    uci_top_metrics_t metrics = {.look   = look,
                                 .stream = stream,
                                 .first  = calloc(look->jobs_count + 1, sizeof(*metrics.first)),
                                 .sums   = calloc(look->jobs_count + 1, sizeof(*metrics.sums))};

    if ((metrics.first == NULL) || (metrics.sums == NULL)) {
        errx(1, "out of memory");
    }
    uci_top_metrics_find_firsts(&metrics);
    uci_top_metrics_ranks(&metrics);
    uci_top_metrics_counters(&metrics);
    uci_top_metrics_gauge(&metrics, "uci_log_bytes", "bytes", "copies of messages that are kept to repair them",
                          uci_top_metrics_log);
    uci_top_metrics_gauge(&metrics, "uci_oldest_wait_seconds", "seconds",
                          "for how long a running process has waited for one message at most", uci_top_metrics_wait);
    fprintf(stream,
            "# TYPE uci_live_files_skipped gauge\n# HELP uci_live_files_skipped files that could not be read\n"
            "uci_live_files_skipped %u\n# EOF\n",
            look->skipped_count);
    free(metrics.first);
    free(metrics.sums);
}
