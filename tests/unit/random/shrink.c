/* SPDX-License-Identifier: BSD-3-Clause */
#include "shrink.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu_limit.h"
#include "world.h"

#define TRY_S        5  /* of processor time, for one world */
#define SHRINK_S     60 /* for all tries to make one smaller */
#define EXIT_VERDICT 100
#define NOTED_MAX    8192

/* What a child tells of its faults */
typedef struct noted {
    size_t count;
    fault_t faults[NOTED_MAX];
} noted_t;

static noted_t *shared;

static void run_child(const scenario_t *scenario, FILE *story)
{
    scenario_t own = *scenario;
    const char *text;
    verdict_t verdict;

    if (story == NULL) {
        freopen("/dev/null", "w", stderr);
    }
    if (story != NULL) {
        setvbuf(story, NULL, _IOLBF, 0); /* it may crash */
    }
    own.ops = malloc(own.ops_count * sizeof(*own.ops) + 1);
    memcpy(own.ops, scenario->ops, own.ops_count * sizeof(*own.ops));
    signal(SIGPROF, SIG_DFL);
    cpu_limit(TRY_S);
    verdict = world_run(&own, story, &text);
    if (!own.listed) {
        shared->count = uci_min(own.faults_count, (size_t)NOTED_MAX);
        memcpy(shared->faults, own.faults, shared->count * sizeof(*own.faults));
    }
    if (story != NULL) {
        fprintf(story, "%s%s%s\n", verdict_names[verdict], (verdict != VERDICT_OK) ? ": " : "", text);
        fflush(story);
    }
    _exit((verdict == VERDICT_OK) ? 0 : EXIT_VERDICT + (int)verdict); /* a sanitizer's is 1 */
}

int shrink_try(const scenario_t *scenario, FILE *story, scenario_t *noted)
{
    pid_t child;
    int status;

    if (shared == NULL) {
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    shared->count = 0;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        run_child(scenario, story);
    }
    waitpid(child, &status, 0);
    if (noted != NULL) {
        memset(noted, 0, sizeof(*noted));
        for (size_t i = 0; i < shared->count; ++i) {
            scenario_note(noted, &shared->faults[i]);
        }
    }
    if (WIFEXITED(status)) {
        status = WEXITSTATUS(status);
        return (status > EXIT_VERDICT) ? status - EXIT_VERDICT : (status == 0) ? VERDICT_OK : OUTCOME_EXIT + status;
    }
    return (WTERMSIG(status) == SIGPROF) ? OUTCOME_HANGS : OUTCOME_CRASH + WTERMSIG(status);
}

const char *shrink_outcome(int outcome)
{
    static char text[64];

    if ((outcome >= 0) && (outcome < VERDICT_LAST)) {
        return verdict_names[outcome];
    }
    if (outcome == OUTCOME_HANGS) {
        return "hangs";
    }
    snprintf(text, sizeof(text), (outcome > OUTCOME_CRASH) ? "crashes, signal %d" : "exit status %d",
             (outcome > OUTCOME_CRASH) ? outcome - OUTCOME_CRASH : outcome - OUTCOME_EXIT);
    return text;
}

/* --------------------------------------------------------------- smaller */

typedef struct search {
    scenario_t *scenario;
    int outcome;
    unsigned tries, tries_max;
    time_t end;
} search_t;

static bool is_over(const search_t *search)
{
    return (search->tries >= search->tries_max) || (time(NULL) > search->end);
}

static bool still_fails(search_t *search)
{
    if (is_over(search)) {
        return false;
    }
    ++search->tries;
    return shrink_try(search->scenario, NULL, NULL) == search->outcome;
}

/* Leave out @a length of @a *count_p elements from @a first on. @return whether it fails all the same; else nothing has changed. */
static bool leave_out(search_t *search, char *elements, size_t *count_p, size_t size, size_t first, size_t length)
{
    size_t before = *count_p, behind = before - first - length;
    char *copy = malloc(before * size);
    bool fails;

    memcpy(copy, elements, before * size);
    memmove(elements + first * size, elements + (first + length) * size, behind * size);
    *count_p -= length;
    fails = still_fails(search);
    if (!fails) {
        memcpy(elements, copy, before * size);
        *count_p = before;
    }
    free(copy);
    return fails;
}

/* @return whether anything could be left out */
static bool thin_out(search_t *search, void *elements, size_t *count_p, size_t size)
{
    size_t before = *count_p, piece, first;

    for (piece = uci_max(*count_p, (size_t)1); piece > 0; piece /= 2) {
        for (first = 0; (first < *count_p) && !is_over(search);) {
            size_t length = uci_min(piece, *count_p - first);

            if (!leave_out(search, elements, count_p, size, first, length)) {
                first += length;
            }
        }
    }
    return *count_p < before;
}

static void try_value(search_t *search, uint64_t *place, uint64_t value)
{
    uint64_t before = *place;

    if (before > value) {
        *place = value;
        if (!still_fails(search)) {
            *place = before;
        }
    }
}

static void simplify_op(search_t *search, op_t *op)
{
    op_t before = *op;

    op->polled = op->by_callback = op->sync = false;
    op->form                                = FORM_CONTIG;
    if ((memcmp(op, &before, sizeof(before)) != 0) && !still_fails(search)) {
        *op = before;
    }
    if ((op->kind >= OP_ACTIVE) && (op->kind < OP_ATOMIC)) {
        try_value(search, &op->mask, 0);
        try_value(search, &op->length, op->length / 2);
    }
    if (op->kind == OP_SEND) {
        try_value(search, &op->length, scenario_length(search->scenario, op->node, 8));
        try_value(search, &op->length, scenario_length(search->scenario, op->node, op->length / 2));
    }
}

unsigned shrink_run(scenario_t *scenario, int outcome, unsigned tries_max)
{
    search_t search = {scenario, outcome, 0, tries_max, time(NULL) + SHRINK_S};
    uint64_t latency;
    unsigned nodes;
    size_t i;
    bool smaller = true;

    while (smaller && !is_over(&search)) {
        smaller = thin_out(&search, scenario->ops, &scenario->ops_count, sizeof(*scenario->ops));
        smaller |= thin_out(&search, scenario->faults, &scenario->faults_count, sizeof(*scenario->faults));
    }
    for (i = 0; i < scenario->ops_count; ++i) {
        simplify_op(&search, &scenario->ops[i]);
    }
    latency         = scenario->held;
    scenario->held  = 0;
    scenario->held  = still_fails(&search) ? 0 : (unsigned)latency;
    nodes           = scenario->nodes;
    scenario->nodes = 2;
    for (i = 0; i < scenario->ops_count; ++i) {
        if ((scenario->ops[i].node > 1) || ((scenario->ops[i].kind != OP_CANCEL) && (scenario->ops[i].peer > 1))) {
            scenario->nodes = nodes;
        }
    }
    if ((nodes > 2) && (scenario->nodes == 2) && !still_fails(&search)) {
        scenario->nodes = nodes;
    }
    return search.tries;
}
