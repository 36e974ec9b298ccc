/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways a message can take from rank 0 to a rank on its host and to one on another host: each is forced in turn within
 * one job (ucx_plugin/tune_api.h), and a ping-pong of each size is timed. Candidates take turns.
 */
#include "tune.h"
#include "tune_api.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TUNE_TAG            1
#define TUNE_CANDIDATES_MAX 16
#define TUNE_TURN_S         2e-3
#define TUNE_TURN_QUICK_S   5e-4
#define TUNE_SLEEP_NS       1000000l
#define TUNE_WARM_UP        100
#define TUNE_ROUNDS_MAX     25
#define TUNE_EAGER_MAX      32768u /* what uci_tune starts the job with, and UCI allows */

static const uint64_t tune_sizes[] = {64,       512,      1 << 10,   2 << 10,   4 << 10, 8 << 10, 16 << 10,
                                      32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};

/* Chunks of each path: from where a chunk's own costs rule to where nothing overlaps any more */
static const struct {
    uci_path_t path;
    size_t chunk;
} tune_ways[] = {
        {UCI_PATH_EAGER, 0},          {UCI_PATH_STREAM, 4 << 10},   {UCI_PATH_STREAM, 8 << 10},
        {UCI_PATH_STREAM, 16 << 10},  {UCI_PATH_STREAM, 32 << 10},  {UCI_PATH_STREAM, 60 << 10},
        {UCI_PATH_STREAM, 128 << 10}, {UCI_PATH_STREAM, 256 << 10}, {UCI_PATH_DIRECT, 8 << 10},
        {UCI_PATH_DIRECT, 16 << 10},  {UCI_PATH_DIRECT, 32 << 10},
};

typedef struct tune_candidate {
    uci_path_t path;
    size_t chunk;
    uci_cost_t first, again; /* for the profile; to check its choices */
} tune_candidate_t;

typedef struct tune_pair {
    MPI_Comm comm; /* rank 0 measures */
    int partner;   /* in MPI_COMM_WORLD */
    int rank;
    double turn_s;
    unsigned rounds;
    unsigned char *buffer;
    char transports[UCI_PROFILE_TRANSPORTS_MAX];
    unsigned count;
    tune_candidate_t candidates[TUNE_CANDIDATES_MAX];
} tune_pair_t;

/* The library's functions */
static struct {
    __typeof__(uci_tune_force) *force;
    __typeof__(uci_tune_transports) *transports;
    __typeof__(uci_tune_paths) *paths;
} tune_api;

static bool tune_find_api(void)
{
    tune_api.force      = (__typeof__(tune_api.force))dlsym(RTLD_DEFAULT, "uci_tune_force");
    tune_api.transports = (__typeof__(tune_api.transports))dlsym(RTLD_DEFAULT, "uci_tune_transports");
    tune_api.paths      = (__typeof__(tune_api.paths))dlsym(RTLD_DEFAULT, "uci_tune_paths");
    return (tune_api.force != NULL) && (tune_api.transports != NULL) && (tune_api.paths != NULL);
}

/* A barrier whose waiters sleep: MPI's own would keep their cores, and the memory, busy */
static void tune_sleep_until_all(void)
{
    struct timespec pause = {.tv_nsec = TUNE_SLEEP_NS};
    MPI_Request request;
    int done;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        nanosleep(&pause, NULL);
    }
}

/* @return seconds one way */
static double tune_ping_pong(const tune_pair_t *pair, uint64_t size, int iterations)
{
    int other = 1 - pair->rank, i;
    double begin;

    MPI_Barrier(pair->comm);
    begin = MPI_Wtime();
    for (i = 0; i < iterations; ++i) {
        if (pair->rank == 0) {
            MPI_Send(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm);
            MPI_Recv(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm, MPI_STATUS_IGNORE);
            MPI_Send(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm);
        }
    }
    return (MPI_Wtime() - begin) / (2.0 * iterations);
}

static bool tune_applies(const tune_candidate_t *candidate, uint64_t size)
{
    return (candidate->path != UCI_PATH_EAGER) || (size <= TUNE_EAGER_MAX);
}

static void tune_force(const tune_candidate_t *candidate)
{
    if (candidate->path == UCI_PATH_EAGER) {
        tune_api.force(TUNE_EAGER_MAX, SIZE_MAX, UCI_PATH_AUTO);
    } else {
        tune_api.force(0, candidate->chunk, candidate->path);
    }
}

/* How many iterations last about a turn, which both ranks must agree on */
static int tune_iterations(const tune_pair_t *pair, uint64_t size)
{
    double seconds = uci_max(tune_ping_pong(pair, size, 2), 1e-8);
    int iterations = (int)uci_max(1.0, uci_min(pair->turn_s / (2 * seconds), 1e5));

    MPI_Bcast(&iterations, 1, MPI_INT, 0, pair->comm);
    return iterations;
}

static int tune_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* As for kernels, the lower quartile counts */
static void tune_measure_size(tune_pair_t *pair, uint64_t size, bool again)
{
    double seconds[TUNE_CANDIDATES_MAX][TUNE_ROUNDS_MAX];
    int iterations[TUNE_CANDIDATES_MAX];
    tune_candidate_t *candidate;
    unsigned round, i;

    for (i = 0; i < pair->count; ++i) {
        if (tune_applies(&pair->candidates[i], size)) {
            tune_force(&pair->candidates[i]);
            iterations[i] = tune_iterations(pair, size);
        }
    }
    for (round = 0; round < pair->rounds; ++round) {
        for (i = 0; i < pair->count; ++i) {
            if (tune_applies(&pair->candidates[i], size)) {
                tune_force(&pair->candidates[i]);
                seconds[i][round] = tune_ping_pong(pair, size, iterations[i]);
            }
        }
    }
    for (i = 0; i < pair->count; ++i) {
        candidate = &pair->candidates[i];
        if (tune_applies(candidate, size)) {
            qsort(seconds[i], pair->rounds, sizeof(double), tune_compare);
            uci_cost_add(again ? &candidate->again : &candidate->first, size, seconds[i][pair->rounds / 4] * 1e9);
        }
    }
}

static void tune_find_candidates(tune_pair_t *pair, uint32_t paths)
{
    unsigned i;

    pair->count = 0;
    for (i = 0; i < uci_array_size(tune_ways); ++i) {
        if (paths & UCI_PATH_BIT(tune_ways[i].path)) {
            pair->candidates[pair->count++] = (tune_candidate_t){.path  = tune_ways[i].path,
                                                                 .chunk = tune_ways[i].chunk};
        }
    }
}

/* Both ends must offer a path for it to be measured */
static void tune_meet(tune_pair_t *pair)
{
    int world = (pair->rank == 0) ? pair->partner : 0;
    uint32_t own, paths;

    tune_ping_pong(pair, 64, TUNE_WARM_UP);
    tune_ping_pong(pair, 1 << 20, TUNE_WARM_UP);
    snprintf(pair->transports, sizeof(pair->transports), "%s", tune_api.transports(world));
    own = tune_api.paths(world);
    MPI_Allreduce(&own, &paths, 1, MPI_UINT32_T, MPI_BAND, pair->comm);
    tune_find_candidates(pair, paths);
}

static const tune_candidate_t *tune_chosen(const tune_pair_t *pair, const uci_plan_t *plan, uint64_t size)
{
    const uci_choice_t *choice = uci_plan_choose(plan, size);
    uci_path_t path            = uci_plan_path(plan, size);
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        if ((pair->candidates[i].path == path) &&
            ((path == UCI_PATH_EAGER) || (pair->candidates[i].chunk == choice->chunk_size))) {
            return &pair->candidates[i];
        }
    }
    return NULL;
}

static void tune_name(const tune_candidate_t *candidate, char name[64])
{
    char text[24];

    snprintf(name, 64, "%s%s%s", uci_path_names[candidate->path], (candidate->chunk > 0) ? " " : "",
             (candidate->chunk > 0) ? tune_size_text(candidate->chunk, text) : "");
}

static void tune_check_size(const tune_pair_t *pair, const uci_plan_t *plan, tune_check_t *check)
{
    const tune_candidate_t *chosen = tune_chosen(pair, plan, check->size);
    unsigned i;
    double ns;

    if (chosen != NULL) {
        check->chosen_ns = uci_cost_at(&chosen->again, check->size);
        tune_name(chosen, check->chosen);
    }
    for (i = 0; i < pair->count; ++i) {
        ns = tune_applies(&pair->candidates[i], check->size) ? uci_cost_at(&pair->candidates[i].again, check->size) : 0;
        if ((ns > 0) && ((check->best_ns == 0) || (ns < check->best_ns))) {
            check->best_ns = ns;
            tune_name(&pair->candidates[i], check->best);
        }
    }
}

static uci_status_t tune_keep(const tune_pair_t *pair, tune_result_t *result)
{
    char title[sizeof(result->lists[0].title)];
    uci_plan_t plan = {0};
    tune_checks_t *list;
    tune_check_t *check;
    uci_cost_t *cost;
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        cost = uci_profile_add_path(&result->profile, pair->transports, pair->candidates[i].path,
                                    pair->candidates[i].chunk);
        if (cost == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
        *cost = pair->candidates[i].first;
    }

    uci_tuner_make_plan(&result->profile, pair->transports, UINT32_MAX, &plan);
    snprintf(title, sizeof(title), "path and chunk size over \"%s\"", pair->transports);
    list = tune_add_list(result, title);
    for (i = 0; (list != NULL) && (i < uci_array_size(tune_sizes)); ++i) {
        check = tune_add_check(list, tune_sizes[i]);
        if (check != NULL) {
            tune_check_size(pair, &plan, check);
        }
    }
    return UCI_OK;
}

static uci_status_t tune_measure_pair(tune_pair_t *pair, tune_result_t *result)
{
    unsigned steps = 2 * uci_array_size(tune_sizes), step;
    char what[64];

    tune_meet(pair);
    snprintf(what, sizeof(what), "paths to rank %d", pair->partner);
    for (step = 0; step < steps; ++step) {
        if (pair->rank == 0) {
            tune_progress(what, step, steps);
        }
        tune_measure_size(pair, tune_sizes[step % uci_array_size(tune_sizes)], step >= uci_array_size(tune_sizes));
    }
    tune_api.force(TUNE_EAGER_MAX, SIZE_MAX, UCI_PATH_AUTO);
    if (pair->rank != 0) {
        return UCI_OK;
    }
    tune_progress(what, 1, 1);
    return tune_keep(pair, result);
}

/* Rank 0's partners: the first rank of its own host, and the first one of another */
static unsigned tune_find_partners(int partners[2])
{
    char host[MPI_MAX_PROCESSOR_NAME] = "", *hosts;
    int size, length, rank, found[2] = {-1, -1};
    unsigned count = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    hosts = calloc((size_t)size, MPI_MAX_PROCESSOR_NAME);
    if (hosts == NULL) {
        return 0;
    }
    MPI_Allgather(host, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, MPI_COMM_WORLD);
    for (rank = size - 1; rank > 0; --rank) {
        found[strcmp(hosts + (size_t)rank * MPI_MAX_PROCESSOR_NAME, hosts) != 0] = rank;
    }
    free(hosts);
    for (rank = 0; rank < 2; ++rank) {
        if (found[rank] >= 0) {
            partners[count++] = found[rank];
        }
    }
    return count;
}

static uci_status_t tune_pair(const tune_options_t *options, int partner, tune_result_t *result)
{
    uci_status_t status = UCI_OK;
    tune_pair_t *pair   = calloc(1, sizeof(*pair));
    uint64_t largest    = tune_sizes[uci_array_size(tune_sizes) - 1];
    int rank;

    if ((pair == NULL) || ((pair->buffer = malloc(largest)) == NULL)) {
        fprintf(stderr, "uci_tune: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        exit(EXIT_FAILURE);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, ((rank == 0) || (rank == partner)) ? 0 : MPI_UNDEFINED, rank, &pair->comm);
    pair->partner = partner;
    pair->rounds  = options->quick ? 9 : TUNE_ROUNDS_MAX;
    pair->turn_s  = options->quick ? TUNE_TURN_QUICK_S : TUNE_TURN_S;
    if (pair->comm != MPI_COMM_NULL) {
        memset(pair->buffer, rank + 1, largest);
        MPI_Comm_rank(pair->comm, &pair->rank);
        status = tune_measure_pair(pair, result);
        MPI_Comm_free(&pair->comm);
    }
    tune_sleep_until_all();
    free(pair->buffer);
    free(pair);
    return status;
}

uci_status_t tune_paths(const tune_options_t *options, tune_result_t *result)
{
    uci_status_t status = UCI_OK;
    unsigned count, i;
    int partners[2];

    if (!tune_find_api()) {
        fprintf(stderr, "uci_tune: UCI is not loaded in this job; start it as 'uci_tune', which preloads it\n");
        return UCI_ERR_UNSUPPORTED;
    }
    tune_sleep_until_all(); /* rank 0 may have measured its CPU before */
    count = tune_find_partners(partners);
    for (i = 0; (i < count) && (status == UCI_OK); ++i) {
        status = tune_pair(options, partners[i], result);
    }
    return status;
}
