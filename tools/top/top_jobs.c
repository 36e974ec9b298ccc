/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_jobs.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const uci_top_sum_names[] = {"messages_sent",         "messages_received",
                                         "bytes_verified",        "damaged",
                                         "mismatched_chunks",     "repaired_chunks",
                                         "unrepaired_chunks",     "source_changed",
                                         "source_changed_late",   "passthrough_bytes",
                                         "streams_and_one_sided", "refused_messages",
                                         "signatures_differ",     NULL};

const char *const uci_top_level_names[]  = {"lost",   "repaired", "source", "types",
                                            "failed", "unknown",  "partly", "clean"};
const char *const uci_top_level_titles[] = {"not delivered intact",
                                            "damaged and repaired",
                                            "changed by the program",
                                            "types do not match",
                                            "ended without a word, or by UCI",
                                            "nothing was verified",
                                            "intact, as far as it was verified",
                                            "intact"};

/*
 * Memory. A tool that has none left can only say so.
 */

static void *uci_top_grow(void *array, unsigned count, size_t size)
{
    if ((count & (count - 1)) == 0) { /* full at powers of two */
        array = realloc(array, (count == 0) ? size : 2ul * count * size);
        if (array == NULL) {
            errx(1, "out of memory");
        }
    }
    return array;
}

static char *uci_top_join(const char *folder, const char *name)
{
    char *path;

    if (asprintf(&path, "%s%s%s", folder, (*name != '\0') ? "/" : "", name) < 0) {
        errx(1, "out of memory");
    }
    return path;
}

static void uci_top_add_up(uci_top_process_t *process)
{
    static const struct {
        const char *name;
        uci_top_sum_t sum;
    } parts[] = {{"messages_sent", UCI_TOP_SENT},
                 {"messages_received", UCI_TOP_RECEIVED},
                 {"bytes_received", UCI_TOP_VERIFIED},
                 {"mismatched_chunks", UCI_TOP_DAMAGED},
                 {"mismatched_chunks", UCI_TOP_PARTS},
                 {"mismatched_headers", UCI_TOP_DAMAGED},
                 {"mismatched_control", UCI_TOP_DAMAGED},
                 {"repaired_chunks", UCI_TOP_REPAIRED},
                 {"unrepaired_chunks", UCI_TOP_LOST},
                 {"source_changed", UCI_TOP_CHANGED},
                 {"source_changed_late", UCI_TOP_NOTICED},
                 {"passthrough_bytes", UCI_TOP_PASSED},
                 {"stream_sent", UCI_TOP_ASIDE},
                 {"put_sent", UCI_TOP_ASIDE},
                 {"get_sent", UCI_TOP_ASIDE},
                 {"atomic_sent", UCI_TOP_ASIDE},
                 {"refused_messages", UCI_TOP_REFUSED},
                 {"signatures_differ", UCI_TOP_TYPES}};
    size_t i;

    for (i = 0; i < uci_array_size(parts); ++i) {
        process->sums[parts[i].sum] += uci_live_file_value(&process->file, parts[i].name);
    }
    if (process->sums[UCI_TOP_CHANGED] == 0) { /* else a root differs for that */
        process->sums[UCI_TOP_DAMAGED] += uci_live_file_value(&process->file, "mismatched_roots");
    }
    /* a chunk that its program has changed counts as one that did not match, too */
    process->sums[UCI_TOP_DAMAGED] -= uci_min(process->sums[UCI_TOP_DAMAGED], process->sums[UCI_TOP_CHANGED]);
}

static void uci_top_add_wait(uci_top_process_t *process, const uci_live_wait_t *wait)
{
    if ((wait->kind != UCI_LIVE_WAIT_NONE) && (wait->since != 0) &&
        ((process->wait.kind == UCI_LIVE_WAIT_NONE) || (wait->since < process->wait.since))) {
        process->wait = *wait;
    }
}

static void uci_top_add_gauges(uci_top_process_t *process)
{
    uci_live_gauges_t gauges;
    unsigned i, j;

    for (i = 0; i < uci_min(process->file.header->blocks, UCI_TOP_WORKERS); ++i) {
        if (uci_live_file_gauges(&process->file, i, &gauges)) {
            process->log_bytes += gauges.log_bytes + gauges.copy_bytes;
            process->log_limit += gauges.log_limit;
            process->looked = uci_max(process->looked, gauges.time);
            for (j = 0; j < UCI_LIVE_WAITS; ++j) {
                uci_top_add_wait(process, &gauges.waits[j]);
            }
        }
    }
}

static int uci_top_compare_paths(const void *one, const void *other)
{
    return strcmp(((const uci_top_process_t *)one)->path, ((const uci_top_process_t *)other)->path);
}

static double uci_top_seconds(uint64_t from, uint64_t to)
{
    return (to > from) ? (double)(to - from) * 1e-9 : 0;
}

static double uci_top_rate(uint64_t from, uint64_t to, double seconds)
{
    return ((to > from) && (seconds > 0)) ? (double)(to - from) / seconds : 0;
}

/* Since the look before, if it was there then; else the mean since it began */
static void uci_top_add_rates(uci_top_process_t *process, uint64_t now, const uci_top_look_t *before)
{
    static const uint64_t none[UCI_TOP_SUMS];
    const uci_live_header_t *header = process->file.header;
    const uci_top_process_t *then   = NULL;
    const uint64_t *sums            = none;
    uint64_t from                   = header->begin_time;
    uint64_t to                     = (process->file.fate == UCI_LIVE_FATE_RUNNING) ? now : process->file.last_time;

    if (before != NULL) {
        then = bsearch(process, before->processes, before->count, sizeof(*process), uci_top_compare_paths);
    }
    if ((then != NULL) && (then->file.header->begin_time == header->begin_time)) {
        sums = then->sums;
        from = before->time;
        to   = now;
    }
    process->seconds  = uci_top_seconds(from, to);
    process->messages = uci_top_rate(sums[UCI_TOP_SENT] + sums[UCI_TOP_RECEIVED],
                                     process->sums[UCI_TOP_SENT] + process->sums[UCI_TOP_RECEIVED], process->seconds);
    process->bytes    = uci_top_rate(sums[UCI_TOP_VERIFIED], process->sums[UCI_TOP_VERIFIED], process->seconds);
}

/* Whose file it is has named it */
static void uci_top_skip(uci_top_look_t *look, char *path, const char *reason)
{
    uci_top_skipped_t *skipped;

    uci_live_file_make_printable(path, strlen(path) + 1);
    look->skipped   = uci_top_grow(look->skipped, look->skipped_count, sizeof(*look->skipped));
    skipped         = &look->skipped[look->skipped_count++];
    skipped->path   = path;
    skipped->reason = uci_top_join(reason, "");
}

/* @return true if @a name is how the job is called, with or without who has started it: "slurm:77" */
static bool uci_top_is_job(const char *job, const char *name)
{
    const char *colon = strchr(job, ':');

    return (strcmp(job, name) == 0) || ((colon != NULL) && (strcmp(colon + 1, name) == 0));
}

static bool uci_top_is_in_scope(const uci_top_scope_t *scope, const uci_live_file_t *file)
{
    return ((scope->uid == UCI_TOP_ANYBODY) || (scope->uid == (long)file->header->uid)) &&
           ((scope->job == NULL) || uci_top_is_job(file->header->job, scope->job));
}

static void uci_top_add_file(const uci_top_scope_t *scope, uci_top_look_t *look, int folder_fd, const char *folder,
                             const char *name)
{
    uci_top_process_t process = {.path = uci_top_join(folder, name)};
    const char *reason;

    if (uci_live_file_read(folder_fd, name, &process.file, &reason) != UCI_OK) {
        uci_top_skip(look, process.path, reason);
        return;
    }
    if (!uci_top_is_in_scope(scope, &process.file)) {
        ++look->hidden;
        uci_live_file_cleanup(&process.file);
        free(process.path);
        return;
    }
    uci_top_add_up(&process);
    uci_top_add_gauges(&process);
    look->processes                = uci_top_grow(look->processes, look->count, sizeof(*look->processes));
    look->processes[look->count++] = process;
}

/* @param own  of UCI_LIVE=auto: must be the folder of user @a uid, and may be cleaned by that user. @return 0, or an errno */
static int uci_top_add_folder(const uci_top_scope_t *scope, uci_top_look_t *look, const char *folder, bool own,
                              uint32_t uid)
{
    int fd   = uci_live_folder_open(folder, own, uid), error;
    DIR *dir = (fd >= 0) ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (dir == NULL) {
        error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    if (own && (uid == geteuid())) {
        uci_live_folder_clean(fd);
    }
    while ((entry = readdir(dir)) != NULL) {
        if (uci_live_file_is_name(entry->d_name)) {
            uci_top_add_file(scope, look, fd, folder, entry->d_name);
        }
    }
    closedir(dir);
    return 0;
}

/* @return true if @a name is that of a user's folder */
static bool uci_top_is_users(const char *name, uint32_t *uid_p)
{
    size_t prefix = strlen(UCI_LIVE_SHM_PREFIX);
    unsigned long uid;
    char *end;

    if ((strncmp(name, UCI_LIVE_SHM_PREFIX, prefix) != 0) || (name[prefix] < '0') || (name[prefix] > '9')) {
        return false;
    }
    errno  = 0;
    uid    = strtoul(name + prefix, &end, 10);
    *uid_p = (uint32_t)uid;
    return (*end == '\0') && (errno == 0) && (uid <= UINT32_MAX);
}

/* Those of all users that may be read: of root all, else the user's own. Nobody's folder of that name need be what it should be */
static void uci_top_add_users(const uci_top_scope_t *scope, uci_top_look_t *look)
{
    DIR *dir = opendir(UCI_LIVE_SHM);
    struct dirent *entry;
    uint32_t uid;
    char *path;
    int error;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (!uci_top_is_users(entry->d_name, &uid) || ((geteuid() != 0) && (uid != geteuid()))) {
            continue;
        }
        path  = uci_top_join(UCI_LIVE_SHM, entry->d_name);
        error = uci_top_add_folder(scope, look, path, true, uid);
        if (error != 0) {
            uci_top_skip(look, path, (error == EPERM) ? "it is not its user's alone" : strerror(error));
        } else {
            free(path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static int uci_top_compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

/* Processes that know of no job are one each. A user names his jobs as he likes, also as those of another one are */
static int uci_top_compare_jobs_of(const uci_top_process_t *one, const uci_top_process_t *other)
{
    const uci_live_header_t *a = one->file.header, *b = other->file.header;
    int order = strcmp(a->job, b->job);

    if (order == 0) {
        order = uci_top_compare_numbers(a->uid, b->uid);
    }
    return ((order != 0) || (a->job[0] != '\0')) ? order : strcmp(one->path, other->path);
}

static int uci_top_compare_processes(const void *one, const void *other)
{
    const uci_top_process_t *a = *(uci_top_process_t *const *)one, *b = *(uci_top_process_t *const *)other;
    int order = uci_top_compare_jobs_of(a, b);

    if (order == 0) {
        order = -uci_top_compare_numbers(a->sums[UCI_TOP_DAMAGED], b->sums[UCI_TOP_DAMAGED]);
    }
    if (order == 0) {
        order = (a->file.header->rank > b->file.header->rank) - (a->file.header->rank < b->file.header->rank);
    }
    return (order != 0) ? order : strcmp(a->path, b->path);
}

static uint64_t uci_top_job_begin(const uci_top_job_t *job)
{
    uint64_t begin = job->processes[0]->file.header->begin_time;
    unsigned i;

    for (i = 1; i < job->count; ++i) {
        begin = uci_min(begin, job->processes[i]->file.header->begin_time);
    }
    return begin;
}

static int uci_top_compare_jobs(const void *one, const void *other)
{
    const uci_top_job_t *a = one, *b = other;
    int order = -uci_top_compare_numbers(a->fates[UCI_LIVE_FATE_RUNNING] > 0, b->fates[UCI_LIVE_FATE_RUNNING] > 0);

    if (order == 0) {
        order = -uci_top_compare_numbers(a->sums[UCI_TOP_DAMAGED], b->sums[UCI_TOP_DAMAGED]);
    }
    if (order == 0) {
        order = -uci_top_compare_numbers(uci_top_job_begin(a), uci_top_job_begin(b));
    }
    return (order != 0) ? order : strcmp(a->processes[0]->path, b->processes[0]->path);
}

static void uci_top_add_to_job(uci_top_job_t *job, const uci_top_process_t *process)
{
    unsigned i;

    ++job->count;
    ++job->fates[process->file.fate];
    job->messages += process->messages;
    job->bytes += process->bytes;
    for (i = 0; i < UCI_TOP_SUMS; ++i) {
        job->sums[i] += process->sums[i];
    }
}

static void uci_top_make_jobs(uci_top_look_t *look)
{
    uci_top_job_t *job = NULL;
    unsigned i;

    for (i = 0; i < look->count; ++i) {
        look->order    = uci_top_grow(look->order, i, sizeof(*look->order));
        look->order[i] = &look->processes[i];
    }
    if (look->count > 0) {
        qsort(look->order, look->count, sizeof(*look->order), uci_top_compare_processes);
    }
    for (i = 0; i < look->count; ++i) {
        if ((job == NULL) || (uci_top_compare_jobs_of(look->order[i - 1], look->order[i]) != 0)) {
            look->jobs     = uci_top_grow(look->jobs, look->jobs_count, sizeof(*look->jobs));
            job            = memset(&look->jobs[look->jobs_count++], 0, sizeof(*job));
            job->processes = &look->order[i];
        }
        uci_top_add_to_job(job, look->order[i]);
    }
    if (look->jobs_count > 0) {
        qsort(look->jobs, look->jobs_count, sizeof(*look->jobs), uci_top_compare_jobs);
    }
}

const char *uci_top_job_name(const uci_top_job_t *job)
{
    const char *name = job->processes[0]->file.header->job;

    return (*name != '\0') ? name : "none";
}

uint64_t uci_top_job_changed(const uci_top_job_t *job)
{
    return uci_max(job->sums[UCI_TOP_CHANGED], job->sums[UCI_TOP_NOTICED]);
}

/* Has a bad end kept damaged chunks from being repaired? Those of a job that runs are on their way */
static bool uci_top_job_is_cut_short(const uci_top_job_t *job)
{
    const uint64_t *sums = job->sums;

    return (job->fates[UCI_LIVE_FATE_KILLED] + job->fates[UCI_LIVE_FATE_ABORTED] > 0) &&
           (job->fates[UCI_LIVE_FATE_RUNNING] == 0) &&
           (sums[UCI_TOP_PARTS] > sums[UCI_TOP_REPAIRED] + sums[UCI_TOP_LOST] + sums[UCI_TOP_CHANGED]);
}

uci_top_level_t uci_top_job_level(const uci_top_job_t *job)
{
    const uint64_t *sums    = job->sums;
    const bool conditions[] = {
            [UCI_TOP_LEVEL_LOST]     = (sums[UCI_TOP_LOST] + sums[UCI_TOP_REFUSED] > 0),
            [UCI_TOP_LEVEL_REPAIRED] = (sums[UCI_TOP_DAMAGED] > 0),
            [UCI_TOP_LEVEL_SOURCE]   = (uci_top_job_changed(job) > 0),
            [UCI_TOP_LEVEL_TYPES]    = (sums[UCI_TOP_TYPES] > 0),
            [UCI_TOP_LEVEL_FAILED]   = (job->fates[UCI_LIVE_FATE_KILLED] + job->fates[UCI_LIVE_FATE_ABORTED] > 0),
            [UCI_TOP_LEVEL_UNKNOWN]  = (sums[UCI_TOP_RECEIVED] + sums[UCI_TOP_ASIDE] == 0),
            [UCI_TOP_LEVEL_PARTLY]   = (sums[UCI_TOP_PASSED] > 0),
            [UCI_TOP_LEVEL_CLEAN]    = true};
    unsigned level = 0;

    while (!conditions[level]) {
        ++level;
    }
    return ((level != UCI_TOP_LEVEL_LOST) && uci_top_job_is_cut_short(job)) ? UCI_TOP_LEVEL_FAILED : level;
}

unsigned uci_top_job_size(const uci_top_job_t *job)
{
    int size = job->processes[0]->file.header->job_size;

    return (size > 0) ? (unsigned)size : 0;
}

double uci_top_wait_seconds(const uci_top_look_t *look, const uci_live_wait_t *wait)
{
    return (wait->since == 0) ? -1 : uci_top_seconds(wait->since, look->time);
}

double uci_top_idle_seconds(const uci_top_look_t *look, const uci_top_process_t *process)
{
    return ((process->looked == 0) || (process->file.fate != UCI_LIVE_FATE_RUNNING))
                   ? -1
                   : uci_top_seconds(process->looked, look->time);
}

uci_status_t uci_top_look(const uci_top_scope_t *scope, const uci_top_look_t *before, uci_top_look_t *look_p)
{
    unsigned i;
    int error;

    memset(look_p, 0, sizeof(*look_p));
    for (i = 0; i < scope->count; ++i) {
        error = uci_top_add_folder(scope, look_p, scope->folders[i], false, 0);
        if (error != 0) {
            fprintf(stderr, "uci_top: cannot read the folder %s: %s\n", scope->folders[i], strerror(error));
            uci_top_look_cleanup(look_p);
            return UCI_ERR_IO;
        }
    }
    if (scope->count == 0) {
        uci_top_add_users(scope, look_p);
    }
    look_p->time = uci_live_time();
    if (look_p->count > 0) {
        qsort(look_p->processes, look_p->count, sizeof(*look_p->processes), uci_top_compare_paths);
    }
    for (i = 0; i < look_p->count; ++i) {
        uci_top_add_rates(&look_p->processes[i], look_p->time, before);
    }
    uci_top_make_jobs(look_p);
    return UCI_OK;
}

void uci_top_look_cleanup(uci_top_look_t *look)
{
    unsigned i;

    for (i = 0; i < look->count; ++i) {
        uci_live_file_cleanup(&look->processes[i].file);
        free(look->processes[i].path);
    }
    for (i = 0; i < look->skipped_count; ++i) {
        free(look->skipped[i].path);
        free(look->skipped[i].reason);
    }
    free(look->processes);
    free(look->jobs);
    free(look->order);
    free(look->skipped);
    memset(look, 0, sizeof(*look));
}
