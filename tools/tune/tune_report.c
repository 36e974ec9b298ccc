/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What uci_tune says, on a terminal and to programs.
 */
#include "util/parse_size.h"
#include "tune.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define TUNE_BAR    40
#define TUNE_CHANGE 1.3 /* times as slow: worth a line */

#define TUNE_COLUMNS 7 /* of a table of times: with the sizes no wider than 92 characters */
#define TUNE_NAME    40

void tune_progress(const char *what, unsigned done, unsigned total)
{
    static const char full[] = "########################################",
                      none[] = "                                        ";
    static unsigned said     = 11;
    unsigned tenth = 10 * done / total, width = TUNE_BAR * done / total;

    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%-24s [%.*s%.*s] %3u %%%s", what, (int)width, full, (int)(TUNE_BAR - width), none,
                100 * done / total, (done == total) ? "\r\033[K" : "");
    } else if (tenth != said) {
        fprintf(stderr, "%s: %u0 %%\n", what, tenth);
    }
    said = (done == total) ? 11 : tenth;
}

tune_checks_t *tune_add_list(tune_result_t *result, const char *title)
{
    tune_checks_t *list = &result->lists[result->lists_count++];

    assert(result->lists_count <= TUNE_LISTS_MAX);
    snprintf(list->title, sizeof(list->title), "%s", title);
    return list;
}

tune_check_t *tune_add_check(tune_checks_t *list, uint64_t size)
{
    assert(list->count < TUNE_CHECKS_MAX);
    list->checks[list->count].size = size;
    return &list->checks[list->count++];
}

static void tune_print_rate(const uci_cost_t *cost, uint64_t size, unsigned i)
{
    if ((cost == NULL) || (i >= cost->count)) { /* points are added by ascending size: what is missing is at the end */
        printf(" %8s", "-");
    } else {
        printf(" %8.2f", (double)size / cost->points[i].ns);
    }
}

static void tune_print_kernels_of(const uci_profile_t *profile, uci_form_t form, bool cached, const char *title)
{
    const uci_cost_t *copy = uci_profile_find_kernel(profile, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED,
                                                     cached);
    unsigned i, id;
    char text[24];

    if (copy == NULL) {
        return;
    }
    printf("\n%s, GB/s\n%8s %8s", title, "bytes", "memcpy");
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        printf(" %8s", uci_digest_table[id].name);
    }
    printf("\n");
    for (i = 0; i < copy->count; ++i) {
        printf("%8s", uci_size_text(copy->points[i].size, text));
        tune_print_rate(copy, copy->points[i].size, i);
        for (id = 1; id < UCI_DIGEST_LAST; ++id) {
            tune_print_rate(uci_profile_find_kernel(profile, (uci_digest_id_t)id,
                                                    uci_tuner_best_isa(profile, (uci_digest_id_t)id), form, cached),
                            copy->points[i].size, i);
        }
        printf("\n");
    }
}

static void tune_print_kernel_choices(const uci_profile_t *profile)
{
    unsigned id;

    if (profile->kernels_count == 0) {
        return;
    }
    printf("\nkernels chosen:");
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        printf(" %s %s%s", uci_digest_table[id].name,
               uci_digest_isa_names[uci_tuner_best_isa(profile, (uci_digest_id_t)id)],
               (id + 1 < UCI_DIGEST_LAST) ? "," : "\n");
    }
}

/* Of @a size exactly, in microseconds, as text */
static void tune_print_time(const uci_cost_t *cost, uint64_t size)
{
    unsigned i;

    for (i = 0; i < cost->count; ++i) {
        if (cost->points[i].size == size) {
            printf(" %11.1f", cost->points[i].ns / 1e3);
            return;
        }
    }
    printf(" %11s", "-");
}

/* A column each, a row for each size of the one with the most */
static void tune_print_times(const uci_cost_t *const *costs, const char (*names)[TUNE_NAME], unsigned count)
{
    const uci_cost_t *longest = costs[0];
    char text[24];
    unsigned i, j;

    printf("%8s", "bytes");
    for (i = 0; i < count; ++i) {
        printf(" %11s", names[i]);
        longest = (costs[i]->count > longest->count) ? costs[i] : longest;
    }
    printf("\n");
    for (j = 0; j < longest->count; ++j) {
        printf("%8s", uci_size_text(longest->points[j].size, text));
        for (i = 0; i < count; ++i) {
            tune_print_time(costs[i], longest->points[j].size);
        }
        printf("\n");
    }
}

/* Hockney's parameters */
static void tune_print_fit(const char *name, const uci_cost_t *cost)
{
    uci_cost_line_t line;

    if (uci_cost_fit(cost, &line) == UCI_OK) {
        printf("  %-12s %10.2f us %8.2f GB/s\n", name, line.latency_ns / 1e3, line.bytes_per_ns);
    }
}

/* Those over one list of transports, which are neighbours in the profile */
static unsigned tune_print_paths_over(const uci_profile_t *profile, unsigned first)
{
    const char *transports = profile->paths[first].transports;
    const uci_cost_t *costs[TUNE_COLUMNS];
    char names[TUNE_COLUMNS][TUNE_NAME], text[24];
    const uci_profile_path_t *path;
    unsigned pass, i, count;

    printf("\nmessages one way over \"%s\"\nlatency and bandwidth fitted, then microseconds by size\n", transports);
    for (pass = 0; pass < 2; ++pass) {
        for (i = first, count = 0;
             (i < profile->paths_count) && (strcmp(profile->paths[i].transports, transports) == 0); ++i) {
            path = &profile->paths[i];
            snprintf(names[count], sizeof(names[count]), "%s%s%s", uci_path_names[path->path],
                     (path->chunk > 0) ? " " : "", (path->chunk > 0) ? uci_size_text(path->chunk, text) : "");
            if (pass == 0) {
                tune_print_fit(names[count], &path->cost);
                continue;
            }
            costs[count++] = &path->cost;
            if (count == TUNE_COLUMNS) {
                tune_print_times(costs, names, count);
                count = 0;
            }
        }
    }
    if (count > 0) {
        tune_print_times(costs, names, count);
    }
    return i;
}

static void tune_print_paths(const uci_profile_t *profile)
{
    static const char name[1][TUNE_NAME] = {"us"};
    const uci_cost_t *cost;
    unsigned i;

    for (i = 0; i < profile->paths_count;) {
        i = tune_print_paths_over(profile, i);
    }
    for (i = 0; i < profile->registrations_count; ++i) {
        cost = &profile->registrations[i].cost;
        printf("\nregistering a buffer and releasing it, transports \"%s\"\n", profile->registrations[i].transports);
        tune_print_fit("", cost);
        tune_print_times(&cost, name, 1);
    }
}

/* Where it made the largest difference: a reader should know that there is no one time */
static void tune_print_change(const tune_checks_t *list)
{
    const tune_check_t *check, *most = NULL;
    char text[24];
    unsigned i;

    for (i = 0; i < list->count; ++i) {
        check = &list->checks[i];
        if ((check->slowest_ns > TUNE_CHANGE * check->fastest_ns) &&
            ((most == NULL) || (check->slowest_ns / check->fastest_ns > most->slowest_ns / most->fastest_ns))) {
            most = check;
        }
    }
    if (most != NULL) {
        printf("the machine changed meanwhile: %s bytes took %.2f us, and at other times %.2f us\n",
               uci_size_text(most->size, text), most->fastest_ns / 1e3, most->slowest_ns / 1e3);
    }
}

static void tune_print_checks(const tune_checks_t *list)
{
    const tune_check_t *check;
    char text[24];
    unsigned i;

    printf("\nchoices for %s, judged by measurements that did not lead to them\n%8s  %-24s %12s  %-24s %12s %7s\n",
           list->title, "bytes", "chosen", "ns", "best", "ns", "loss");
    for (i = 0; i < list->count; ++i) {
        check = &list->checks[i];
        printf("%8s  %-24s %12.1f  %-24s %12.1f %6.1f%%%s\n", uci_size_text(check->size, text), check->chosen,
               check->chosen_ns, check->best, check->best_ns, 100 * tune_check_loss(check),
               (tune_check_loss(check) > TUNE_TOLERANCE) ? " *" : "");
    }
    tune_print_change(list);
}

double tune_worst_loss(const tune_result_t *result)
{
    double worst = 0;
    unsigned i, j;

    for (i = 0; i < result->lists_count; ++i) {
        for (j = 0; j < result->lists[i].count; ++j) {
            worst = uci_max(worst, tune_check_loss(&result->lists[i].checks[j]));
        }
    }
    return worst;
}

static double tune_mb_per_second(uint64_t size, double ns)
{
    return 1e3 * (double)size / ns;
}

/* What processes do otherwise from now on, and what they gain, by the measurements that judge */
static void tune_print_gains(const tune_result_t *result)
{
    const tune_check_t *check;
    unsigned i, j, changed = 0, of = 0;
    char text[24];

    printf("\nwhat changes against %s, and gains more than %.0f %%, in MB/s\n",
           (result->before.created[0] != '\0') ? "the profile of before" : "what is built in", 100 * TUNE_TOLERANCE);
    for (i = 0; i < result->lists_count; ++i) {
        for (j = 0; j < result->lists[i].count; ++j, ++of) {
            check = &result->lists[i].checks[j];
            if ((check->before_ns <= 0) || (check->before_ns <= (1 + TUNE_TOLERANCE) * check->chosen_ns)) {
                continue;
            }
            if (changed++ == 0) {
                printf("%8s  %-24s %9s  %-24s %9s %9s\n", "bytes", "before", "MB/s", "now", "MB/s", "gained");
            }
            printf("%8s  %-24s %9.0f  %-24s %9.0f %9.0f\n", uci_size_text(check->size, text), check->before,
                   tune_mb_per_second(check->size, check->before_ns), check->chosen,
                   tune_mb_per_second(check->size, check->chosen_ns),
                   tune_mb_per_second(check->size, check->chosen_ns) -
                           tune_mb_per_second(check->size, check->before_ns));
        }
    }
    printf("%u of %u choices\n", changed, of);
}

static void tune_print_eager(const uci_profile_t *profile)
{
    uci_plan_t plan = {0};
    unsigned i;

    for (i = 0; i < profile->paths_count; ++i) {
        if (profile->paths[i].path == UCI_PATH_EAGER) {
            uci_tuner_make_plan(profile, profile->paths[i].transports, UINT32_MAX, &plan);
            printf("eager up to %u bytes over \"%s\"\n", plan.eager_max, plan.transports);
        }
    }
}

void tune_print(const tune_result_t *result)
{
    const uci_profile_t *profile = &result->profile;
    double worst                 = tune_worst_loss(result);
    unsigned i;

    printf("%s, %u cores, UCX %s; %s, %s, host %s\n", profile->machine.cpu, profile->machine.cores,
           (profile->machine.ucx[0] != '\0') ? profile->machine.ucx : "none", profile->source, profile->created,
           profile->host);
    tune_print_kernels_of(profile, UCI_FORM_DIGEST, true, "digest, data in cache where it fits");
    tune_print_kernels_of(profile, UCI_FORM_FUSED, true, "copy with digest fused in, data in cache where it fits");
    tune_print_kernels_of(profile, UCI_FORM_FUSED, false, "copy with digest fused in, data from memory");
    tune_print_kernels_of(profile, UCI_FORM_FAR, false, "the same around the caches, data from memory");
    tune_print_kernel_choices(profile);
    tune_print_paths(profile);
    tune_print_eager(profile);
    for (i = 0; i < result->lists_count; ++i) {
        tune_print_checks(&result->lists[i]);
    }
    if (result->lists_count > 0) {
        printf("\nchoices lose at most %.1f %% to the best measured: %s\n", 100 * worst,
               (worst <= TUNE_TOLERANCE) ? "good" : "see * above; on a busy machine measure again");
        tune_print_gains(result);
    }
}

static json_t *tune_json_checks(const tune_checks_t *list)
{
    json_t *checks = json_array();
    const tune_check_t *check;
    unsigned i;

    for (i = 0; i < list->count; ++i) {
        check = &list->checks[i];
        json_array_append_new(checks,
                              json_pack("{s:I, s:s, s:f, s:s, s:f, s:s, s:f, s:f, s:f, s:f}", "size",
                                        (json_int_t)check->size, "chosen", check->chosen, "chosen_ns", check->chosen_ns,
                                        "best", check->best, "best_ns", check->best_ns, "before", check->before,
                                        "before_ns", check->before_ns, "loss", tune_check_loss(check), "fastest_ns",
                                        check->fastest_ns, "slowest_ns", check->slowest_ns));
    }
    return json_pack("{s:s, s:o}", "of", list->title, "sizes", checks);
}

static json_t *tune_json_profile(const uci_profile_t *profile)
{
    json_t *parsed = NULL;
    size_t length;
    FILE *stream;
    char *text;

    stream = open_memstream(&text, &length);
    if (stream != NULL) {
        uci_profile_write(profile, stream);
        fclose(stream);
        parsed = json_loadb(text, length, 0, NULL);
        free(text);
    }
    return parsed;
}

uci_status_t tune_write_json(const tune_result_t *result, const char *path)
{
    json_t *choices = json_array();
    json_t *root    = json_pack("{s:i, s:o, s:o}", "uci_tune", 1, "profile", tune_json_profile(&result->profile),
                                "choices", choices);
    int failed;
    unsigned i;

    for (i = 0; i < result->lists_count; ++i) {
        json_array_append_new(choices, tune_json_checks(&result->lists[i]));
    }
    failed = (strcmp(path, "-") == 0) ? json_dumpf(root, stdout, JSON_INDENT(1)) || (putchar('\n') == EOF)
                                      : json_dump_file(root, path, JSON_INDENT(1));
    json_decref(root);
    if (failed) {
        fprintf(stderr, "uci_tune: cannot write %s: %s\n", path, strerror(errno));
        return UCI_ERR_IO;
    }
    return UCI_OK;
}
