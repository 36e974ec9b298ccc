/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways a message can take from rank 0 to a rank on its host and to one on another host: each is forced in turn within
 * one job (ucx_plugin/api/tune_api.h), and a ping-pong of each size is timed. Candidates take turns.
 */
#include "util/parse_size.h"
#include "tune.h"
#include "api/tune_api.h"
#include "tune_contest.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TUNE_TAG           1
#define TUNE_SLEEP_NS      1000000l
#define TUNE_WARM_UP       100
#define TUNE_CLOSE         1.15 /* times the best's: takes part in the finals */
#define TUNE_MIN           2    /* rounds, one for each half, however slow messages are */
#define TUNE_REGISTRATIONS 31
#define TUNE_EAGER_MAX     32768u /* what uci_tune starts the job with, and UCI allows */

/* How long it may take */
typedef struct tune_effort {
    double turn_s;
    unsigned sweeps, all, finals; /* rounds of a sweep: of all candidates, and of those that are close to the best */
    double size_s;                /* for either, where messages are slow */
} tune_effort_t;

static const tune_effort_t tune_normal = {.turn_s = 2e-3, .sweeps = 4, .all = 6, .finals = 18, .size_s = 0.75};
static const tune_effort_t tune_quick  = {.turn_s = 5e-4, .sweeps = 2, .all = 4, .finals = 8, .size_s = 0.25};

/* Dense where eager ends, and UCX's own protocols change. What is not a point of the profile is judged all the same: there the
 * choice rests on lines between points. */
static const struct {
    uint64_t size;
    bool is_point;
} tune_sizes[] = {
        {64, true},         {96, false},       {512, true},        {768, false},      {1 << 10, true},
        {1536, false},      {2 << 10, true},   {3 << 10, true},    {4 << 10, true},   {5 << 10, false},
        {6 << 10, true},    {7 << 10, false},  {8 << 10, true},    {12 << 10, true},  {14 << 10, false},
        {16 << 10, true},   {18 << 10, false}, {20 << 10, true},   {22 << 10, false}, {24 << 10, true},
        {32 << 10, true},   {40 << 10, false}, {48 << 10, true},   {64 << 10, true},  {80 << 10, false},
        {96 << 10, true},   {128 << 10, true}, {160 << 10, false}, {192 << 10, true}, {256 << 10, true},
        {512 << 10, false}, {1 << 20, true},   {2 << 20, false},   {4 << 20, true},   {8 << 20, false},
        {16 << 20, true},
};

#define TUNE_SIZES uci_array_size(tune_sizes)

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
    bool is_playing; /* takes turns now */
    int iterations;  /* in a turn */
    double seconds;  /* a turn takes, about */
} tune_candidate_t;

typedef struct tune_pair {
    MPI_Comm comm; /* rank 0 measures */
    int partner;   /* in MPI_COMM_WORLD */
    int rank;
    const tune_effort_t *effort;
    unsigned sizes; /* of tune_sizes */
    unsigned char *buffer;
    char transports[UCI_PROFILE_TRANSPORTS_MAX];
    unsigned count;
    tune_candidate_t candidates[TUNE_CANDIDATES_MAX];
    tune_contest_t contests[TUNE_SIZES];
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

/* @return @a memory, of an allocation: without it there is no job any more */
static void *tune_memory(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "uci_tune: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        exit(EXIT_FAILURE);
    }
    return memory;
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

static void tune_exchange(const tune_pair_t *pair, uint64_t size, int iterations)
{
    int other = 1 - pair->rank, i;

    for (i = 0; i < iterations; ++i) {
        if (pair->rank == 0) {
            MPI_Send(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm);
            MPI_Recv(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm, MPI_STATUS_IGNORE);
            MPI_Send(pair->buffer, (int)size, MPI_BYTE, other, TUNE_TAG, pair->comm);
        }
    }
}

/* @return seconds one way. The first messages find the caches as another candidate has left them, and do not count. */
static double tune_ping_pong(const tune_pair_t *pair, uint64_t size, int iterations)
{
    double begin;

    MPI_Barrier(pair->comm);
    tune_exchange(pair, size, iterations / 10);
    begin = MPI_Wtime();
    tune_exchange(pair, size, iterations);
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

/* How many iterations last about a turn, which both ranks must agree on: more until it is worth extrapolating */
static void tune_find_iterations(const tune_pair_t *pair, tune_candidate_t *candidate, uint64_t size)
{
    int iterations = 1, wanted;
    double seconds;

    for (;; iterations *= 4) {
        seconds = 2 * uci_max(tune_ping_pong(pair, size, iterations), 1e-8);
        wanted  = (int)uci_max(1.0, pair->effort->turn_s / seconds);
        MPI_Bcast(&wanted, 1, MPI_INT, 0, pair->comm);
        if (wanted <= 4 * iterations) {
            candidate->iterations = wanted;
            candidate->seconds    = seconds * wanted;
            return;
        }
    }
}

/* Rounds there is time for, which both ranks must agree on */
static unsigned tune_rounds(const tune_pair_t *pair, unsigned rounds)
{
    double seconds = 1e-9;
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        seconds += pair->candidates[i].is_playing ? pair->candidates[i].seconds : 0;
    }
    rounds = (unsigned)uci_max((double)TUNE_MIN, uci_min((double)rounds, pair->effort->size_s / seconds));
    MPI_Bcast(&rounds, 1, MPI_UNSIGNED, 0, pair->comm);
    return rounds;
}

/* Turns of those that play; who begins, and who comes after whom, changes (a step that has no factor in common with the
 * count visits all) */
static void tune_play(tune_pair_t *pair, unsigned index, unsigned sweep, unsigned first, unsigned rounds)
{
    static const unsigned steps[] = {1, 17, 19, 23, 29, 31}; /* larger than TUNE_CANDIDATES_MAX, and prime */
    tune_candidate_t *candidate;
    unsigned round, i, step, who;

    for (round = first; round < first + rounds; ++round) {
        step = steps[round % uci_array_size(steps)];
        for (i = 0; i < pair->count; ++i) {
            who       = (round + i * step) % pair->count;
            candidate = &pair->candidates[who];
            if (candidate->is_playing) {
                tune_force(candidate);
                pair->contests[index].turns[sweep][round][who] =
                        (float)(1e9 * tune_ping_pong(pair, tune_sizes[index].size, candidate->iterations));
            }
        }
    }
}

/* @return rounds */
static unsigned tune_play_all(tune_pair_t *pair, unsigned index, unsigned sweep)
{
    uint64_t size = tune_sizes[index].size;
    tune_candidate_t *candidate;
    unsigned rounds, i;

    for (i = 0; i < pair->count; ++i) {
        candidate             = &pair->candidates[i];
        candidate->is_playing = tune_applies(candidate, size) && (tune_twin(pair, candidate, size) == candidate);
        if (candidate->is_playing) {
            tune_force(candidate);
            tune_find_iterations(pair, candidate, size);
        }
    }
    rounds = tune_rounds(pair, pair->effort->all);
    tune_play(pair, index, sweep, 0, rounds);
    return rounds;
}

/* Those close to the best take more turns. Rank 0 says who is. */
static void tune_play_finals(tune_pair_t *pair, unsigned index, unsigned sweep, unsigned first)
{
    unsigned playing = tune_contest_close(&pair->contests[index], sweep, TUNE_CLOSE), i;

    MPI_Bcast(&playing, 1, MPI_UNSIGNED, 0, pair->comm);
    if ((playing & (playing - 1)) == 0) {
        return; /* one alone */
    }
    for (i = 0; i < pair->count; ++i) {
        pair->candidates[i].is_playing = (playing >> i) & 1;
    }
    tune_play(pair, index, sweep, first, tune_rounds(pair, pair->effort->finals));
}

static void tune_sweep(tune_pair_t *pair, unsigned sweep)
{
    unsigned index, total = pair->effort->sweeps * pair->sizes;
    char what[64];

    snprintf(what, sizeof(what), "paths to rank %d", pair->partner);
    for (index = 0; index < pair->sizes; ++index) {
        if (pair->rank == 0) {
            tune_progress(what, sweep * pair->sizes + index, total);
        }
        tune_play_finals(pair, index, sweep, tune_play_all(pair, index, sweep));
    }
    if ((pair->rank == 0) && (sweep + 1 == pair->effort->sweeps)) {
        tune_progress(what, total, total);
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
    tune_ping_pong(pair, uci_min(tune_sizes[pair->sizes - 1].size, 1ul << 20), TUNE_WARM_UP);
    snprintf(pair->transports, sizeof(pair->transports), "%s", tune_api.transports(world));
    own = tune_api.paths(world);
    MPI_Allreduce(&own, &paths, 1, MPI_UINT32_T, MPI_BAND, pair->comm);
    tune_find_candidates(pair, paths);
}

/*
 * What came out, on rank 0
 */

/* @return the candidate's time; 0 if it cannot be used at this size */
static double tune_time(tune_pair_t *pair, const tune_outcome_t *outcome, tune_candidate_t *candidate, uint64_t size)
{
    return tune_applies(candidate, size) ? outcome->times[tune_twin(pair, candidate, size) - pair->candidates] : 0;
}

static void tune_keep_costs(tune_pair_t *pair, uci_profile_t *profile)
{
    tune_outcome_t outcome;
    uci_cost_t *cost;
    unsigned index, i;

    for (i = 0; i < pair->count; ++i) {
        cost = tune_memory(
                uci_profile_add_path(profile, pair->transports, pair->candidates[i].path, pair->candidates[i].chunk));
        for (index = 0; index < pair->sizes; ++index) {
            if (tune_sizes[index].is_point) {
                tune_contest_judge(&pair->contests[index], TUNE_HALF_CHOICE, &outcome);
                uci_cost_add(cost, tune_sizes[index].size, /* refuses 0: does not apply */
                             tune_time(pair, &outcome, &pair->candidates[i], tune_sizes[index].size));
            }
        }
    }
}

static bool tune_is_chosen(const tune_candidate_t *candidate, const uci_plan_t *plan, uint64_t size)
{
    return (candidate->path == uci_plan_path(plan, size)) &&
           ((candidate->path == UCI_PATH_EAGER) || (candidate->chunk == uci_plan_choose(plan, size)->chunk_size));
}

static void tune_name(const tune_candidate_t *candidate, char name[64])
{
    char text[24];

    snprintf(name, 64, "%s%s%s", uci_path_names[candidate->path], (candidate->chunk > 0) ? " " : "",
             (candidate->chunk > 0) ? uci_size_text(candidate->chunk, text) : "");
}

static void tune_check_size(tune_pair_t *pair, const uci_plan_t *plan, const uci_plan_t *before, unsigned index,
                            tune_check_t *check)
{
    tune_candidate_t *candidate;
    tune_outcome_t outcome;
    unsigned i;
    double ns;

    tune_contest_judge(&pair->contests[index], TUNE_HALF_JUDGEMENT, &outcome);
    check->fastest_ns = outcome.fastest;
    check->slowest_ns = outcome.slowest;
    for (i = 0; i < pair->count; ++i) {
        candidate = &pair->candidates[i];
        ns        = tune_time(pair, &outcome, candidate, check->size);
        if (tune_is_chosen(candidate, plan, check->size)) {
            check->chosen_ns = ns;
            tune_name(candidate, check->chosen);
        }
        if (tune_is_chosen(candidate, before, check->size)) {
            check->before_ns = ns;
            tune_name(candidate, check->before);
        }
        if ((ns > 0) && ((check->best_ns == 0) || (ns < check->best_ns))) {
            check->best_ns = ns;
            tune_name(candidate, check->best);
        }
    }
}

static void tune_check_choices(tune_pair_t *pair, tune_result_t *result)
{
    char title[sizeof(result->lists[0].title)];
    uci_plan_t plan = {0}, before = {0};
    uint32_t paths = 0;
    tune_checks_t *list;
    unsigned i;

    for (i = 0; i < pair->count; ++i) {
        paths |= UCI_PATH_BIT(pair->candidates[i].path);
    }
    uci_tuner_make_plan(&result->profile, pair->transports, paths, &plan);
    uci_tuner_make_plan(&result->before, pair->transports, paths, &before);
    snprintf(title, sizeof(title), "path and chunk size over \"%s\"", pair->transports);
    list = tune_add_list(result, title);
    for (i = 0; i < pair->sizes; ++i) {
        tune_check_size(pair, &plan, &before, i, tune_add_check(list, tune_sizes[i].size));
    }
}

/* What registering a buffer costs; medians. The buffer has been used, so its pages are there. */
static void tune_registrations(const tune_pair_t *pair, uci_profile_t *profile)
{
    double turns[TUNE_REGISTRATIONS];
    uci_cost_t cost = {0}, *entry;
    unsigned i, turn;

    for (i = 0; i < pair->sizes; ++i) {
        for (turn = 0; turn < TUNE_REGISTRATIONS; ++turn) {
            turns[turn] = (double)tune_api.enroll(pair->buffer, tune_sizes[i].size);
        }
        uci_cost_add(&cost, tune_sizes[i].size, tune_median(turns, turn)); /* refuses 0: impossible */
    }
    if (cost.count > 0) {
        entry  = tune_memory(uci_profile_add_registration(profile, pair->transports));
        *entry = cost;
    }
}

/* @return UCI_ERR_UNSUPPORTED: what this MPI sends there does not pass through UCI (told) */
static uci_status_t tune_measure_pair(tune_pair_t *pair, tune_result_t *result)
{
    unsigned sweep;

    tune_meet(pair);
    if (pair->count == 0) {
        if (pair->rank == 0) {
            fprintf(stderr,
                    "uci_tune: messages to rank %d do not pass through UCI: UCI_MODE=off, or this MPI does not send them by UCX\n",
                    pair->partner);
        }
        return UCI_ERR_UNSUPPORTED;
    }
    for (sweep = 0; sweep < pair->effort->sweeps; ++sweep) {
        tune_sweep(pair, sweep);
    }
    tune_api.force(TUNE_EAGER_MAX, SIZE_MAX, UCI_PATH_AUTO);
    if (pair->rank == 0) {
        tune_registrations(pair, &result->profile);
        tune_keep_costs(pair, &result->profile);
        tune_check_choices(pair, result);
    }
    return UCI_OK;
}

/* Rank 0's partners: the first rank of its own host, and the first one of another */
static unsigned tune_find_partners(int partners[2])
{
    char host[MPI_MAX_PROCESSOR_NAME] = "", *hosts;
    int size, length, rank, found[2] = {-1, -1};
    unsigned count = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    hosts = tune_memory(calloc((size_t)size, MPI_MAX_PROCESSOR_NAME));
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

/* The first size is always one of them */
static unsigned tune_count_sizes(const tune_options_t *options)
{
    unsigned count = 1;

    while ((count < TUNE_SIZES) && (tune_sizes[count].size <= options->max_size)) {
        ++count;
    }
    return count;
}

static uci_status_t tune_pair(const tune_options_t *options, int partner, tune_result_t *result)
{
    tune_pair_t *pair   = tune_memory(calloc(1, sizeof(*pair)));
    unsigned sizes      = tune_count_sizes(options);
    uint64_t largest    = tune_sizes[sizes - 1].size;
    uci_status_t status = UCI_OK;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, ((rank == 0) || (rank == partner)) ? 0 : MPI_UNDEFINED, rank, &pair->comm);
    pair->buffer  = tune_memory(malloc(largest));
    pair->partner = partner;
    pair->sizes   = sizes;
    pair->effort  = options->quick ? &tune_quick : &tune_normal;
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
