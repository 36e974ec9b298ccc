/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_tune: what its parts share. Measuring (tune_kernels.c, tune_paths.c), telling (tune_report.c, tune_plot.c), and who
 * does what when (uci_tune.c).
 */
#ifndef UCI_TUNE_H_
#define UCI_TUNE_H_

#include <stdio.h>
#include "tune/profile.h"
#include "tune/tuner.h"

typedef struct tune_options {
    const char *output; /* profile to write; NULL: the one this machine's processes look for */
    const char *json;   /* report to write; "-": stdout, instead of tables */
    const char *plot;   /* SVG to write */
    const char *show;   /* profile to read instead of measuring */
    bool quick;
    bool paths_only;
    size_t max_size; /* bytes of the largest message */
    double max_loss; /* of a choice, relative to the best: a profile with more is noise, and not written */
    bool no_write;
    bool remove;
    bool force;
} tune_options_t;

/* How good a choice was: judged by measurements that did not lead to it, beside everything else that could have been chosen */
typedef struct tune_check {
    uint64_t size;
    char chosen[64], best[64], before[64]; /* the last one: what processes would have chosen without this run */
    double chosen_ns, best_ns, before_ns;  /* 0: not measured */
    double fastest_ns, slowest_ns;         /* of the best, while the machine changed; 0: not known */
} tune_check_t;

#define TUNE_CHECKS_MAX 128

typedef struct tune_checks {
    char title[64 + UCI_PROFILE_TRANSPORTS_MAX];
    unsigned count;
    tune_check_t checks[TUNE_CHECKS_MAX];
} tune_checks_t;

#define TUNE_LISTS_MAX 8

/* What a run has found */
typedef struct tune_result {
    uci_profile_t profile;
    uci_profile_t before; /* that of this machine up to now; empty: what is built in */
    unsigned lists_count;
    tune_checks_t lists[TUNE_LISTS_MAX]; /* of the kernels, then of each transport list */
} tune_result_t;

/* A choice is good if it is within this of the best */
#define TUNE_TOLERANCE 0.03

/* One that takes twice the time of the best says that the machine was busy, not what is fast on it */
#define TUNE_MAX_LOSS 1.0

/* Time lost by a choice, relative to the best */
UCI_INLINE double tune_check_loss(const tune_check_t *check)
{
    return check->chosen_ns / check->best_ns - 1;
}

/* A new list with this title, and a new entry in it */
tune_checks_t *tune_add_list(tune_result_t *result, const char *title);
tune_check_t *tune_add_check(tune_checks_t *list, uint64_t size);

/* Progress on stderr: a bar that renews itself on a terminal, a line for each tenth elsewhere */
void tune_progress(const char *what, unsigned done, unsigned total);

/* Measure digests and copies on this CPU, twice: the first time is for the profile, the second one for its choices */
uci_status_t tune_kernels(const tune_options_t *options, tune_result_t *result);

/* Measure the paths from rank 0 to others; collective, and rank 0 has the result. MPI is initialized. */
uci_status_t tune_paths(const tune_options_t *options, tune_result_t *result);

/* The most that a choice loses to the best; 0 if there are none */
double tune_worst_loss(const tune_result_t *result);

/* Tables for people */
void tune_print(const tune_result_t *result);

/* The report for programs. @return UCI_OK or UCI_ERR_IO (told). */
uci_status_t tune_write_json(const tune_result_t *result, const char *path);

/* Bandwidth by size as SVG: of each digest, and of each path. @return UCI_OK or UCI_ERR_IO (told). */
uci_status_t tune_write_plot(const tune_result_t *result, const char *path);

#endif
