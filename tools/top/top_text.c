/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_views.h"
#include "util/process.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define UCI_TOP_LINE 512
#define UCI_TOP_IDLE 1.0 /* seconds without progress that are worth a word */

static const char *const uci_top_styles[] = {[UCI_TOP_PLAIN]   = "",
                                             [UCI_TOP_TITLE]   = "\033[1m",
                                             [UCI_TOP_HEADING] = "\033[1;36m",
                                             [UCI_TOP_DAMAGE]  = "\033[1;31m",
                                             [UCI_TOP_OVER]    = "\033[2m"};

/* "12.3k": three figures */
static const char *uci_top_short(double value, char *text, size_t size)
{
    static const char units[] = " kMGTPE";
    unsigned unit             = 0;

    while ((value >= 999.5) && (unit + 2 < sizeof(units))) {
        value /= 1000;
        ++unit;
    }
    if (unit == 0) {
        snprintf(text, size, (value == floor(value)) ? "%.0f" : "%.1f", value);
    } else {
        snprintf(text, size, "%.*f%c", (value < 9.995) ? 2 : (value < 99.95) ? 1 : 0, value, units[unit]);
    }
    return text;
}

static const char *uci_top_clock(uint64_t time, char *text, size_t size)
{
    time_t seconds = (time_t)(time / 1000000000ul);
    struct tm local;

    if ((localtime_r(&seconds, &local) == NULL) || (strftime(text, size, "%F %T", &local) == 0)) {
        snprintf(text, size, "?");
    }
    return text;
}

/* "eager 80% direct 20%": of the messages sent */
static const char *uci_top_paths(const uci_top_process_t *process, char *text, size_t size)
{
    static const struct {
        const char *counter, *name;
    } paths[]     = {{"eager_messages", "eager"},
                     {"direct_messages", "direct"},
                     {"get_messages", "get"},
                     {"bounce_messages", "bounce"}};
    uint64_t sent = process->sums[UCI_TOP_SENT], rest = sent, part;
    size_t i, used                                    = 0;

    text[0] = '\0';
    for (i = 0; (i <= uci_array_size(paths)) && (sent > 0) && (used < size); ++i) {
        part = (i < uci_array_size(paths)) ? uci_live_file_value(&process->file, paths[i].counter) : rest;
        part = uci_min(part, rest);
        rest -= part;
        if (part > 0) {
            used += (size_t)snprintf(text + used, size - used, "%s%s %.0f%%", (used > 0) ? " " : "",
                                     (i < uci_array_size(paths)) ? paths[i].name : "stream",
                                     100.0 * (double)part / (double)sent);
        }
    }
    return text;
}

/* "12 s: message from rank 3 (node7:4711), tag ...", and before that if it makes no progress at all */
static const char *uci_top_wait(const uci_top_look_t *look, const uci_top_process_t *process, char *text, size_t size)
{
    static const char *const links[UCI_LIVE_WAIT_KINDS] = {"", " from", " from", " by", " by"};
    const uci_live_wait_t *wait                         = &process->wait;
    double idle                                         = uci_top_idle_seconds(look, process);
    char who[64] = "", rank[32] = "", when[64] = "";

    if (idle >= UCI_TOP_IDLE) {
        snprintf(when, sizeof(when), "no progress for %.0f s (not in MPI?)", idle);
    }
    if ((wait->kind == UCI_LIVE_WAIT_NONE) || (process->file.fate != UCI_LIVE_FATE_RUNNING)) {
        snprintf(text, size, "%s", when);
        return text;
    }
    if (wait->rank >= 0) {
        snprintf(rank, sizeof(rank), " rank %d", wait->rank);
    }
    if (wait->host[0] != '\0') {
        snprintf(who, sizeof(who), " (%s:%u)", wait->host, wait->pid);
    }
    snprintf(text, size, "%s%s%.0f s: %s%s%s%s%s%s", when, (when[0] != '\0') ? "; before: " : "",
             uci_max(uci_top_wait_seconds(look, wait) - uci_max(idle, 0.0), 0.0), uci_live_wait_names[wait->kind],
             ((rank[0] != '\0') || (who[0] != '\0')) ? links[wait->kind] : "", rank, who,
             (wait->what[0] != '\0') ? ", tag " : "", wait->what);
    return text;
}

static const char *uci_top_log(const uci_top_process_t *process, char *text, size_t size)
{
    if (process->log_limit == 0) {
        return "-";
    }
    snprintf(text, size, "%.0f%%", 100.0 * (double)process->log_bytes / (double)process->log_limit);
    return text;
}

static void uci_top_line_of_process(const uci_top_look_t *look, const uci_top_process_t *process,
                                    uci_top_line_func_t func, void *arg)
{
    const uci_live_header_t *header = process->file.header;
    char line[UCI_TOP_LINE], rank[16] = "-", where[96], rate[16], bytes[16], count[16], damaged[16], repaired[16],
                             lost[16], log[16], paths[96], wait[256];

    if (header->rank >= 0) {
        snprintf(rank, sizeof(rank), "%d", header->rank);
    }
    snprintf(where, sizeof(where), "%s:%u", header->host, header->pid);
    snprintf(line, sizeof(line), "%6s %-20s %-8s %7s %7s %8s %8s %8s %6s %5s  %-22s %s", rank, where,
             uci_live_fate_names[process->file.fate], uci_top_short(process->messages, rate, sizeof(rate)),
             uci_top_short(process->bytes, bytes, sizeof(bytes)),
             uci_top_short((double)(process->sums[UCI_TOP_SENT] + process->sums[UCI_TOP_RECEIVED]), count,
                           sizeof(count)),
             uci_top_short((double)process->sums[UCI_TOP_DAMAGED], damaged, sizeof(damaged)),
             uci_top_short((double)process->sums[UCI_TOP_REPAIRED], repaired, sizeof(repaired)),
             uci_top_short((double)process->sums[UCI_TOP_LOST], lost, sizeof(lost)),
             uci_top_log(process, log, sizeof(log)), uci_top_paths(process, paths, sizeof(paths)),
             uci_top_wait(look, process, wait, sizeof(wait)));
    func(arg,
         (process->sums[UCI_TOP_DAMAGED] + process->sums[UCI_TOP_LOST] > 0) ? UCI_TOP_DAMAGE
         : (process->file.fate == UCI_LIVE_FATE_RUNNING)                    ? UCI_TOP_PLAIN
                                                                            : UCI_TOP_OVER,
         line);
}

/* "4 running, 1 killed" */
static const char *uci_top_fates(const uci_top_job_t *job, char *text, size_t size)
{
    size_t used = 0;
    unsigned i;

    text[0] = '\0';
    for (i = 0; (i < UCI_LIVE_FATES) && (used < size); ++i) {
        if (job->fates[i] > 0) {
            used += (size_t)snprintf(text + used, size - used, "%s%u %s", (used > 0) ? ", " : "", job->fates[i],
                                     uci_live_fate_names[i]);
        }
    }
    return text;
}

static void uci_top_lines_of_job(const uci_top_look_t *look, const uci_top_job_t *job, uci_top_line_func_t func,
                                 void *arg)
{
    char line[UCI_TOP_LINE], size[32] = "", fates[96], rate[16], bytes[16], began[32], passed[16], unverified[48] = "";
    uci_top_level_t level = uci_top_job_level(job);
    unsigned i;

    if (uci_top_job_size(job) > 0) {
        snprintf(size, sizeof(size), " of %u", uci_top_job_size(job));
    }
    if (job->sums[UCI_TOP_PASSED] > 0) {
        snprintf(unverified, sizeof(unverified), "; %sB passed, not verified",
                 uci_top_short((double)job->sums[UCI_TOP_PASSED], passed, sizeof(passed)));
    }
    snprintf(line, sizeof(line),
             "job %s, %s: %s%s; %u%s ranks here (%s); %s messages/s, %sB/s verified; damaged %lu, repaired %lu, not "
             "repaired %lu, sources changed %lu; since %s%s",
             uci_top_job_name(job), job->processes[0]->file.header->program, uci_top_level_titles[level],
             (job->fates[UCI_LIVE_FATE_RUNNING] > 0) ? " so far" : "", job->count, size,
             uci_top_fates(job, fates, sizeof(fates)), uci_top_short(job->messages, rate, sizeof(rate)),
             uci_top_short(job->bytes, bytes, sizeof(bytes)), (unsigned long)job->sums[UCI_TOP_DAMAGED],
             (unsigned long)job->sums[UCI_TOP_REPAIRED], (unsigned long)job->sums[UCI_TOP_LOST],
             (unsigned long)uci_top_job_changed(job),
             uci_top_clock(job->processes[0]->file.header->begin_time, began, sizeof(began)), unverified);
    func(arg, UCI_TOP_PLAIN, "");
    func(arg, (level <= UCI_TOP_LEVEL_REPAIRED) ? UCI_TOP_DAMAGE : UCI_TOP_TITLE, line);
    func(arg, UCI_TOP_HEADING,
         "  RANK HOST:PID             STATE      MSG/S     B/S MESSAGES  DAMAGED REPAIRED   LOST   LOG  PATHS (SENT)      "
         "     WAITS");
    for (i = 0; i < job->count; ++i) {
        uci_top_line_of_process(look, job->processes[i], func, arg);
    }
}

void uci_top_for_each_line(const uci_top_look_t *look, uci_top_line_func_t func, void *arg)
{
    char line[UCI_TOP_LINE], now[32];
    unsigned i;

    snprintf(line, sizeof(line), "UCI on %s, %s: %u jobs, %u processes", uci_process_host(),
             uci_top_clock(look->time, now, sizeof(now)), look->jobs_count, look->count);
    func(arg, UCI_TOP_TITLE, line);
    for (i = 0; i < look->jobs_count; ++i) {
        uci_top_lines_of_job(look, &look->jobs[i], func, arg);
    }
    if (look->hidden > 0) {
        snprintf(line, sizeof(line), "%u processes of other users or jobs are not shown: --all shows them",
                 look->hidden);
        func(arg, UCI_TOP_PLAIN, "");
        func(arg, UCI_TOP_OVER, line);
    }
    for (i = 0; i < look->skipped_count; ++i) {
        snprintf(line, sizeof(line), "skipped %s: %s", look->skipped[i].path, look->skipped[i].reason);
        if (i == 0) {
            func(arg, UCI_TOP_PLAIN, "");
        }
        func(arg, UCI_TOP_OVER, line);
    }
}

typedef struct uci_top_printer {
    FILE *stream;
    bool colours;
} uci_top_printer_t;

static void uci_top_print_line(void *arg, uci_top_style_t style, const char *text)
{
    const uci_top_printer_t *printer = arg;
    bool coloured                    = printer->colours && (uci_top_styles[style][0] != '\0');
    size_t length                    = strlen(text);

    while ((length > 0) && (text[length - 1] == ' ')) {
        --length;
    }
    fprintf(printer->stream, "%s%.*s%s\n", coloured ? uci_top_styles[style] : "", (int)length, text,
            coloured ? "\033[0m" : "");
}

void uci_top_print(const uci_top_look_t *look, FILE *stream, bool colours)
{
    uci_top_printer_t printer = {stream, colours};

    uci_top_for_each_line(look, uci_top_print_line, &printer);
}
