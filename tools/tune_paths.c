/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways a message can take from rank 0 to a rank on its host and to one on another host: each is forced in turn within
 * one job (ucx_plugin/tune_api.h), and a ping-pong of each size is timed. Candidates take turns.
 */
#include "tune.h"
#include "tune_api.h"

#include <dlfcn.h>
#include <math.h>
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
#define TUNE_ROUNDS         15
#define TUNE_FINALS         51
#define TUNE_ROUNDS_MAX     TUNE_FINALS
#define TUNE_SIZE_S         4.0 /* for all rounds of a size, where messages are slow, but TUNE_ROUNDS_MIN */
#define TUNE_SIZE_QUICK_S   0.5
#define TUNE_ROUNDS_MIN     5
#define TUNE_CLOSE          1.15 /* times the best's: takes part in the finals */
#define TUNE_REGISTRATIONS  31
#define TUNE_EAGER_MAX      32768u /* what uci_tune starts the job with, and UCI allows */

/* Dense where eager ends, and UCX's own protocols change */
static const uint64_t tune_sizes[] = {64,        512,       1 << 10,  2 << 10,  3 << 10,  4 << 10,
                                      6 << 10,   8 << 10,   12 << 10, 16 << 10, 32 << 10, 64 << 10,
                                      128 << 10, 256 << 10, 1 << 20,  4 << 20,  16 << 20};

/* For the second measurement: also sizes in between, where the choice rests on lines between points */
static const uint64_t tune_checked[] = {64,        96,        512,      768,      1 << 10,  1536,      2 << 10,
                                        3 << 10,   4 << 10,   5 << 10,  7 << 10,  8 << 10,  12 << 10,  16 << 10,
                                        24 << 10,  32 << 10,  48 << 10, 64 << 10, 96 << 10, 128 << 10, 192 << 10,
                                        256 << 10, 512 << 10, 1 << 20,  2 << 20,  4 << 20,  8 << 20,   16 << 20};

/* Chunks of each path: from where a chunk's own costs rule to where nothing overlaps any more */
static const struct {
    uci_path_t path;
    size_t chunk;
} tune_ways[] = {
        {UCI_PATH_EAGER, 0},          {UCI_PATH_STREAM, 4 << 10},   {UCI_PATH_STREAM, 8 << 10},
        {UCI_PATH_STREAM, 16 << 10},  {UCI_PATH_STREAM, 32 << 10},  {UCI_PATH_STREAM, 60 << 10},
        {UCI_PATH_STREAM, 128 << 10}, {UCI_PATH_STREAM, 256 << 10}, {UCI_PATH_DIRECT, 8 << 10},
        {UCI_PATH_DIRECT, 16 << 10},  {UCI_PATH_DIRECT, 32 << 10},  {UCI_PATH_GET, 60 << 10},
        {UCI_PATH_BOUNCE, 60 << 10},
};

typedef struct tune_candidate {
    uci_path_t path;
    size_t chunk;
    uci_cost_t first, again; /* for the profile; to check its choices */
    bool is_playing;         /* takes turns now */
    int iterations;          /* in a turn */
    double seconds;          /* a turn takes, about */
    double ns;               /* at the size in question */
    double turns[TUNE_ROUNDS_MAX];
} tune_candidate_t;

typedef struct tune_pair {
    MPI_Comm comm; /* rank 0 measures */
    int partner;   /* in MPI_COMM_WORLD */
    int rank;
    double turn_s, size_s;
    unsigned rounds, finals;
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
    __typeof__(uci_tune_register) *enroll; /* "register" is taken */
} tune_api;

static bool tune_find_api(void)
{
    tune_api.force      = (__typeof__(tune_api.force))dlsym(RTLD_DEFAULT, "uci_tune_force");
    tune_api.transports = (__typeof__(tune_api.transports))dlsym(RTLD_DEFAULT, "uci_tune_transports");
    tune_api.paths      = (__typeof__(tune_api.paths))dlsym(RTLD_DEFAULT, "uci_tune_paths");
    tune_api.enroll     = (__typeof__(tune_api.enroll))dlsym(RTLD_DEFAULT, "uci_tune_register");
    return (tune_api.force != NULL) && (tune_api.transports != NULL) && (tune_api.paths != NULL) &&
           (tune_api.enroll != NULL);
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

/* Of a path's chunk sizes that hold the whole message, the smallest one: they are the same thing */
static tune_candidate_t *tune_twin(tune_pair_t *pair, tune_candidate_t *candidate, uint64_t size)
{
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        if ((pair->candidates[i].path == candidate->path) && (pair->candidates[i].chunk >= size) &&
            (candidate->chunk >= size)) {
            return &pair->candidates[i];
        }
    }
    return candidate;
}

/* Eager: not into a slot, which is what the direct path does */
static void tune_force(const tune_candidate_t *candidate)
{
    if (candidate->path == UCI_PATH_EAGER) {
        tune_api.force(TUNE_EAGER_MAX, SIZE_MAX, UCI_PATH_STREAM);
    } else {
        tune_api.force(0, candidate->chunk, candidate->path);
    }
}

/* How many iterations last about a turn, which both ranks must agree on */
static void tune_find_iterations(const tune_pair_t *pair, tune_candidate_t *candidate, uint64_t size)
{
    double seconds = uci_max(tune_ping_pong(pair, size, 2), 1e-8);

    candidate->iterations = (int)uci_max(1.0, uci_min(pair->turn_s / (2 * seconds), 1e5));
    MPI_Bcast(&candidate->iterations, 1, MPI_INT, 0, pair->comm);
    candidate->seconds = 2 * seconds * candidate->iterations;
}

/* Rounds there is time for, which both ranks must agree on */
static unsigned tune_rounds(const tune_pair_t *pair, unsigned rounds)
{
    double seconds = 1e-9;
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        seconds += pair->candidates[i].is_playing ? pair->candidates[i].seconds : 0;
    }
    rounds = (unsigned)uci_max((double)TUNE_ROUNDS_MIN, uci_min((double)rounds, pair->size_s / seconds));
    MPI_Bcast(&rounds, 1, MPI_UNSIGNED, 0, pair->comm);
    return rounds;
}

static int tune_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The k-th of four parts; the order of `values` is lost */
static double tune_quartile(double *values, unsigned count, unsigned k)
{
    qsort(values, count, sizeof(*values), tune_compare);
    return values[count * k / 4];
}

/* Turns of those that play; who begins, and who comes after whom, changes (a step that has no factor in common with the
 * count visits all) */
static void tune_play(tune_pair_t *pair, uint64_t size, unsigned rounds)
{
    static const unsigned steps[] = {1, 17, 19, 23, 29, 31}; /* larger than TUNE_CANDIDATES_MAX, and prime */
    tune_candidate_t *candidate;
    unsigned round, i, step;

    for (round = 0; round < rounds; ++round) {
        step = steps[round % uci_array_size(steps)];
        for (i = 0; i < pair->count; ++i) {
            candidate = &pair->candidates[(round + i * step) % pair->count];
            if (candidate->is_playing) {
                tune_force(candidate);
                candidate->turns[round] = tune_ping_pong(pair, size, candidate->iterations);
            }
        }
    }
}

/* All of them: as for kernels, the lower quartile counts */
static void tune_measure_all(tune_pair_t *pair, uint64_t size)
{
    tune_candidate_t *candidate;
    unsigned rounds, i;

    for (i = 0; i < pair->count; ++i) {
        candidate             = &pair->candidates[i];
        candidate->is_playing = tune_applies(candidate, size) && (tune_twin(pair, candidate, size) == candidate);
        candidate->ns         = INFINITY;
        if (candidate->is_playing) {
            tune_force(candidate);
            tune_find_iterations(pair, candidate, size);
        }
    }
    rounds = tune_rounds(pair, pair->rounds);
    tune_play(pair, size, rounds);
    for (i = 0; i < pair->count; ++i) {
        candidate = &pair->candidates[i];
        if (candidate->is_playing) {
            candidate->ns = tune_quartile(candidate->turns, rounds, 1) * 1e9;
        }
    }
}

/* Those close to the best, in pairs: the median of the ratios to one of them in the same round counts, whose own time
 * stays as it was. Rank 0 says who is close. */
static void tune_measure_finals(tune_pair_t *pair, uint64_t size)
{
    double best = INFINITY, ratios[TUNE_ROUNDS_MAX];
    tune_candidate_t *candidate, *first = NULL;
    unsigned rounds, i, round, playing = 0;

    for (i = 0; i < pair->count; ++i) {
        best = uci_min(best, pair->candidates[i].ns);
    }
    for (i = 0; i < pair->count; ++i) {
        playing |= (pair->candidates[i].ns <= TUNE_CLOSE * best) ? 1u << i : 0;
    }
    MPI_Bcast(&playing, 1, MPI_UNSIGNED, 0, pair->comm);
    for (i = 0; i < pair->count; ++i) {
        pair->candidates[i].is_playing = (playing >> i) & 1;
    }
    if ((playing & (playing - 1)) == 0) {
        return; /* one alone */
    }

    rounds = tune_rounds(pair, pair->finals);
    tune_play(pair, size, rounds);
    for (i = 0; i < pair->count; ++i) {
        candidate = &pair->candidates[i];
        if (candidate->is_playing) {
            first = (first == NULL) ? candidate : first;
            for (round = 0; round < rounds; ++round) {
                ratios[round] = candidate->turns[round] / first->turns[round];
            }
            candidate->ns = first->ns * tune_quartile(ratios, rounds, 2);
        }
    }
}

static void tune_measure_size(tune_pair_t *pair, uint64_t size, bool again)
{
    tune_candidate_t *candidate;
    unsigned i;

    tune_measure_all(pair, size);
    tune_measure_finals(pair, size);
    for (i = 0; i < pair->count; ++i) {
        candidate = &pair->candidates[i];
        if (tune_applies(candidate, size)) {
            uci_cost_add(again ? &candidate->again : &candidate->first, size, tune_twin(pair, candidate, size)->ns);
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
    uint32_t paths = 0;
    uci_cost_t *cost;
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        paths |= UCI_PATH_BIT(pair->candidates[i].path);
        cost = uci_profile_add_path(&result->profile, pair->transports, pair->candidates[i].path,
                                    pair->candidates[i].chunk);
        if (cost == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
        *cost = pair->candidates[i].first;
    }

    uci_tuner_make_plan(&result->profile, pair->transports, paths, &plan);
    snprintf(title, sizeof(title), "path and chunk size over \"%s\"", pair->transports);
    list = tune_add_list(result, title);
    for (i = 0; (list != NULL) && (i < uci_array_size(tune_checked)); ++i) {
        check = tune_add_check(list, tune_checked[i]);
        if (check != NULL) {
            tune_check_size(pair, &plan, check);
        }
    }
    return UCI_OK;
}

/* What registering a buffer costs; medians. The buffer has been used, so its pages are there. */
static uci_status_t tune_registrations(const tune_pair_t *pair, tune_result_t *result)
{
    double turns[TUNE_REGISTRATIONS];
    uci_cost_t cost = {0}, *entry;
    unsigned i, turn;

    for (i = 0; i < uci_array_size(tune_sizes); ++i) {
        for (turn = 0; turn < TUNE_REGISTRATIONS; ++turn) {
            turns[turn] = (double)tune_api.enroll(pair->buffer, tune_sizes[i]);
        }
        uci_cost_add(&cost, tune_sizes[i], tune_quartile(turns, TUNE_REGISTRATIONS, 2)); /* refuses 0: impossible */
    }
    if (cost.count == 0) {
        return UCI_OK;
    }
    entry = uci_profile_add_registration(&result->profile, pair->transports);
    if (entry == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    *entry = cost;
    return UCI_OK;
}

static uci_status_t tune_measure_pair(tune_pair_t *pair, tune_result_t *result)
{
    unsigned first = uci_array_size(tune_sizes), steps = first + uci_array_size(tune_checked), step;
    char what[64];

    tune_meet(pair);
    snprintf(what, sizeof(what), "paths to rank %d", pair->partner);
    for (step = 0; step < steps; ++step) {
        if (pair->rank == 0) {
            tune_progress(what, step, steps);
        }
        tune_measure_size(pair, (step < first) ? tune_sizes[step] : tune_checked[step - first], step >= first);
    }
    tune_api.force(TUNE_EAGER_MAX, SIZE_MAX, UCI_PATH_AUTO);
    if (pair->rank != 0) {
        return UCI_OK;
    }
    tune_progress(what, 1, 1);
    return (tune_registrations(pair, result) == UCI_OK) ? tune_keep(pair, result) : UCI_ERR_NO_MEMORY;
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
    pair->rounds  = options->quick ? 7 : TUNE_ROUNDS;
    pair->finals  = options->quick ? 9 : TUNE_FINALS;
    pair->turn_s  = options->quick ? TUNE_TURN_QUICK_S : TUNE_TURN_S;
    pair->size_s  = options->quick ? TUNE_SIZE_QUICK_S : TUNE_SIZE_S;
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
