/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuner.h"
#include "calibrate.h"
#include "util/file.h"
#include "util/log.h"
#include "util/process.h"
#include "util/word.h"
#include "settings/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UCI_TUNER_EAGER_BUILT_IN 8192u
#define UCI_TUNER_EAGER_TCP      32768u /* a round trip more costs it more than two copies of 32 KiB */
#define UCI_TUNER_EAGER_LIMIT    32768u /* of UCI_EAGER_MAX */
#define UCI_TUNER_EAGER_GRAIN    64u
#define UCI_TUNER_CHUNK_SHM      8192u   /* fits one fragment of UCX's shared memory transports */
#define UCI_TUNER_CHUNK_OTHER    61440u  /* fits one receive buffer of tcp */
#define UCI_TUNER_CHUNK_DIRECT   32768u  /* both sides work at the same time, and a slot's states cost little */
#define UCI_TUNER_GET_RDMA       65536u  /* a message from here on is fetched, where adapters read by themselves */
#define UCI_TUNER_GET_OTHER      524288u /* and elsewhere: measured on tcp, 256 KiB cost more that way, 1 MiB less */
#define UCI_TUNER_BOTH_MAX       (2ul << 20) /* larger ones fit no cache: get reads them from memory once more, for digests */
#define UCI_TUNER_FAR_BUILT_IN   ((uint64_t)16 << 20)
#define UCI_TUNER_MARGIN         0.99 /* what is measured must be this much faster than the default to replace it; */
#define UCI_TUNER_MARGIN_QUICK   0.97 /* measured in milliseconds */
#define UCI_TUNER_ALIKE          1.05 /* what takes up to so much longer takes as long */
#define UCI_TUNER_REUSES         64 /* messages that a user's buffer serves before it is another one, as counted in choices */
#define UCI_TUNER_LOCK_AGE       60 /* seconds after which the lock of a calibration counts as left behind */

static const char *const uci_tuner_shm_transports[] = {"posix", "sysv", "xpmem", "cma", "knem", "self", NULL};

const uci_digest_id_t uci_tuner_digests[] = {UCI_DIGEST_XXH3, UCI_DIGEST_CRC64, UCI_DIGEST_XXH128, UCI_DIGEST_NONE};

uint64_t uci_tuner_both_min = UCI_TUNER_BOTH_MIN;

static struct {
    uci_profile_t profile; /* empty if all is built in */
    char source[PATH_MAX + 32];
    uint32_t eager_min, eager_max; /* of all transports */
    uci_plan_t *plans;
    pthread_mutex_t lock;
} uci_tuner = {.source = "built in", .lock = PTHREAD_MUTEX_INITIALIZER};

/* Every kernel of every digest in a list that ends with UCI_DIGEST_NONE */
#define uci_tuner_for_each_kernel(_digests, _i, _isa) \
    for ((_i) = 0; (_digests)[_i] != UCI_DIGEST_NONE; ++(_i)) \
        for ((_isa) = (int)uci_digest_isa_best(); (_isa) >= 0; --(_isa))

static double uci_tuner_margin(const uci_profile_t *profile)
{
    return (strcmp(profile->source, UCI_PROFILE_SOURCE_QUICK) == 0) ? UCI_TUNER_MARGIN_QUICK : UCI_TUNER_MARGIN;
}

/* Mean, over the sizes measured, of the time relative to another kernel's; 0 if either is not known */
static double uci_tuner_isa_ratio(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                                  uci_digest_isa_t other)
{
    static const uci_form_t forms[] = {UCI_FORM_DIGEST, UCI_FORM_FUSED};
    const uci_cost_t *a, *b;
    double sum     = 0;
    unsigned count = 0, i, j;

    for (i = 0; i < uci_array_size(forms); ++i) {
        a = uci_profile_find_kernel(profile, digest, isa, forms[i], true);
        b = uci_profile_find_kernel(profile, digest, other, forms[i], true);
        if ((a == NULL) || (b == NULL)) {
            return 0;
        }
        for (j = 0; j < a->count; ++j) {
            sum += a->points[j].ns / uci_cost_at(b, a->points[j].size);
            ++count;
        }
    }
    return (count > 0) ? sum / count : 0;
}

uci_digest_isa_t uci_tuner_best_isa(const uci_profile_t *profile, uci_digest_id_t digest)
{
    uci_digest_isa_t best = uci_digest_isa_best();
    double ratio;
    int isa;

    for (isa = (int)best - 1; isa >= 0; --isa) {
        ratio = uci_tuner_isa_ratio(profile, digest, (uci_digest_isa_t)isa, best);
        if ((ratio > 0) && (ratio < uci_tuner_margin(profile))) {
            best = (uci_digest_isa_t)isa;
        }
    }
    return best;
}

/* The fastest of what copies fused, with data in cache; 0 if nothing is known */
static double uci_tuner_best_fused(const uci_profile_t *profile, uint64_t size)
{
    const uci_cost_t *cost;
    double best_ns = 0, ns;
    unsigned i;
    int isa;

    uci_tuner_for_each_kernel(uci_tuner_digests, i, isa)
    {
        cost    = uci_profile_find_kernel(profile, uci_tuner_digests[i], (uci_digest_isa_t)isa, UCI_FORM_FUSED, true);
        ns      = (cost != NULL) ? uci_cost_at(cost, size) : 0;
        best_ns = ((ns > 0) && ((best_ns == 0) || (ns < best_ns))) ? ns : best_ns;
    }
    return best_ns;
}

bool uci_tuner_form_applies(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa, uci_form_t form,
                            uint64_t size)
{
    const uci_cost_t *cost = uci_profile_find_kernel(profile, digest, isa, form, true);
    double fused_ns        = uci_tuner_best_fused(profile, size);

    return (form == UCI_FORM_FUSED) || (cost == NULL) || (fused_ns == 0) || (uci_cost_at(cost, size) <= fused_ns);
}

static void uci_tuner_set_kernel(uci_choice_t *choice, uci_digest_id_t digest, uci_digest_isa_t isa, uci_form_t form)
{
    choice->digest = uci_digest_row(digest, isa);
    choice->isa    = isa;
    choice->form   = form;
}

/* Of the digests that copy as fast as the one chosen, the one that takes the least time by itself: where memory is the limit, fewer
 * instructions for each line leave more lines under way, above all those of the other core's caches, which a calibration on one core does not
 * see. (Measured, Xeon model 167: XXH3 and CRC-64 copy alike, CRC-64 takes 0.43 of the time by itself; windows of 64 KiB to 4 MiB from
 * buffers that stay in the caches are 1.07 to 1.19 times as fast with it.) */
static void uci_tuner_choose_lighter(const uci_profile_t *profile, const uci_digest_id_t *digests, uint64_t size,
                                     uci_choice_t *choice)
{
    const uci_digest_id_t chosen = choice->digest->id;
    double copied_ns = uci_profile_kernel_ns(profile, chosen, choice->isa, choice->form, size) * UCI_TUNER_ALIKE;
    double least_ns  = uci_profile_kernel_ns(profile, chosen, choice->isa, UCI_FORM_DIGEST, size) / UCI_TUNER_ALIKE;
    double ns, digest_ns;
    unsigned i;
    int isa;

    uci_tuner_for_each_kernel(digests, i, isa)
    {
        ns        = uci_profile_kernel_ns(profile, digests[i], (uci_digest_isa_t)isa, choice->form, size);
        digest_ns = uci_profile_kernel_ns(profile, digests[i], (uci_digest_isa_t)isa, UCI_FORM_DIGEST, size);
        if ((digests[i] != chosen) && (ns > 0) && (ns <= copied_ns) && (digest_ns > 0) && (digest_ns < least_ns) &&
            uci_tuner_form_applies(profile, digests[i], (uci_digest_isa_t)isa, choice->form, size)) {
            uci_tuner_set_kernel(choice, digests[i], (uci_digest_isa_t)isa, choice->form);
            least_ns = digest_ns;
        }
    }
}

/* Digest, kernel and form: of those measured the fastest, if it is faster than what would be taken without a profile */
static void uci_tuner_choose_kernel(const uci_profile_t *profile, uint64_t size, uci_choice_t *choice)
{
    uci_digest_id_t forced[]       = {uci_settings.digest->id, UCI_DIGEST_NONE};
    const uci_digest_id_t *digests = (uci_settings.digest == &uci_digest_auto) ? uci_tuner_digests : forced;
    uci_form_t form                = (size >= UCI_TUNER_FAR_BUILT_IN) ? UCI_FORM_FAR : UCI_FORM_FUSED;
    int isa                        = (int)uci_tuner_best_isa(profile, digests[0]);
    double best_ns, ns;
    unsigned i;

    uci_tuner_set_kernel(choice, digests[0], (uci_digest_isa_t)isa, form);
    best_ns = uci_profile_kernel_ns(profile, digests[0], (uci_digest_isa_t)isa, form, size) * uci_tuner_margin(profile);
    uci_tuner_for_each_kernel(digests, i, isa)
    {
        for (form = UCI_FORM_FUSED; form <= UCI_FORM_FAR; ++form) {
            ns = uci_profile_kernel_ns(profile, digests[i], (uci_digest_isa_t)isa, form, size);
            if ((ns > 0) && (ns < best_ns) &&
                uci_tuner_form_applies(profile, digests[i], (uci_digest_isa_t)isa, form, size)) {
                uci_tuner_set_kernel(choice, digests[i], (uci_digest_isa_t)isa, form);
                best_ns = ns;
            }
        }
    }
    uci_tuner_choose_lighter(profile, digests, size, choice);
}

static bool uci_tuner_is_shm(const char *transports)
{
    unsigned i;

    for (i = 0; uci_tuner_shm_transports[i] != NULL; ++i) {
        if (strncmp(transports, uci_tuner_shm_transports[i], strlen(uci_tuner_shm_transports[i])) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t uci_tuner_chunk_built_in(const char *transports, uci_path_t path)
{
    if (uci_settings.chunk_size != UCI_SETTING_AUTO) {
        return (uint32_t)uci_settings.chunk_size;
    }
    if (path == UCI_PATH_DIRECT) {
        return UCI_TUNER_CHUNK_DIRECT;
    }
    return uci_tuner_is_shm(transports) ? UCI_TUNER_CHUNK_SHM : UCI_TUNER_CHUNK_OTHER;
}

static bool uci_tuner_is_tcp(const char *transports)
{
    return strncmp(transports, "tcp", 3) == 0;
}

bool uci_tuner_is_rdma(const char *transports)
{
    return (strstr(transports, "rc_") != NULL) || (strstr(transports, "dc_") != NULL);
}

/* From which size on messages are fetched, where they can't go through shared memory. Active messages over tcp keep
 * a slow wire busy: 0.999 of plain UCX at 10 Gbit/s, where fetching left 3 to 6 % of it idle. */
static uint64_t uci_tuner_get_min(const char *transports, uint32_t paths)
{
    if (uci_tuner_is_rdma(transports)) {
        return UCI_TUNER_GET_RDMA;
    }
    return ((paths & UCI_PLAN_SLOW_LINK) && uci_tuner_is_tcp(transports)) ? UINT64_MAX : UCI_TUNER_GET_OTHER;
}

/* Where nothing was measured: direct where memory is shared; elsewhere large messages are fetched, others go as messages */
static uci_path_t uci_tuner_path_built_in(const char *transports, uint32_t paths, uint64_t size)
{
    if (uci_tuner_is_shm(transports)) {
        return (paths & UCI_PATH_BIT(UCI_PATH_DIRECT)) ? UCI_PATH_DIRECT : UCI_PATH_STREAM;
    }
    return ((paths & UCI_PATH_BIT(UCI_PATH_GET)) && (size >= uci_tuner_get_min(transports, paths))) ? UCI_PATH_GET
                                                                                                    : UCI_PATH_STREAM;
}

static bool uci_tuner_is_candidate(const uci_profile_path_t *entry, const char *transports, uint32_t paths)
{
    return (entry->path != UCI_PATH_EAGER) && (paths & UCI_PATH_BIT(entry->path)) &&
           (strcmp(entry->transports, transports) == 0) &&
           ((uci_settings.chunk_size == UCI_SETTING_AUTO) || (uci_settings.chunk_size == entry->chunk));
}

/* What uci_tuner_allowed() has left beside stream */
static uci_path_t uci_tuner_path_forced(uint32_t paths)
{
    return (paths & UCI_PATH_BIT(uci_settings.path)) ? uci_settings.path : UCI_PATH_STREAM;
}

static bool uci_tuner_is_measured(const uci_profile_t *profile, const char *transports, uci_path_t path)
{
    unsigned i;

    for (i = 0; i < profile->paths_count; ++i) {
        if ((profile->paths[i].path == path) && (strcmp(profile->paths[i].transports, transports) == 0)) {
            return true;
        }
    }
    return false;
}

/* What a message costs by this path. It was measured with one buffer again and again, which UCX registers once and remembers; where
 * users' buffers must be registered (get: on both sides), programs that take new ones pay that each time. */
static double uci_tuner_path_ns(const uci_profile_t *profile, const uci_profile_path_t *entry, uint64_t size)
{
    const uci_cost_t *registration = (entry->path == UCI_PATH_GET)
                                             ? uci_profile_find_registration(profile, entry->transports)
                                             : NULL;
    double registration_ns         = (registration != NULL) ? uci_cost_at(registration, size) : 0;

    return uci_cost_at(&entry->cost, size) + 2 * registration_ns / UCI_TUNER_REUSES;
}

/* Path and chunk size of a rendezvous of `low` and of `high` bytes. @return its time, the mean of both; 0 if nothing was
 * measured. */
static double uci_tuner_choose_path(const uci_profile_t *profile, const char *transports, uint32_t paths, uint64_t low,
                                    uint64_t high, uci_choice_t *choice)
{
    const uci_profile_path_t *entry;
    double best_ns = 0, ns;
    bool is_better;
    unsigned i;

    choice->path       = (uci_settings.path == UCI_PATH_AUTO) ? uci_tuner_path_built_in(transports, paths, high)
                                                              : uci_tuner_path_forced(paths);
    choice->chunk_size = uci_tuner_chunk_built_in(transports, choice->path);
    if ((choice->path == UCI_PATH_GET) && !uci_tuner_is_measured(profile, transports, UCI_PATH_GET)) {
        return 0; /* what was measured of other paths says nothing about it */
    }
    for (i = 0; i < profile->paths_count; ++i) {
        entry = &profile->paths[i];
        if (!uci_tuner_is_candidate(entry, transports, paths)) {
            continue;
        }
        ns        = (uci_tuner_path_ns(profile, entry, low) + uci_tuner_path_ns(profile, entry, high)) / 2;
        is_better = (best_ns == 0) || (ns < best_ns);
        if (is_better) {
            choice->path       = entry->path;
            choice->chunk_size = (uint32_t)entry->chunk;
            best_ns            = ns;
        }
    }
    return best_ns;
}

/* One copy by the kernel, by the receiver alone: cma, knem. (posix alone has none: UCX cuts what is fetched into fragments there, and both
 * sides copy each.) */
static bool uci_tuner_has_kernel_copy(const char *transports)
{
    return uci_tuner_is_shm(transports) &&
           ((strstr(transports, "cma") != NULL) || (strstr(transports, "knem") != NULL));
}

/* Does get take less time of both sides' processors together than the direct path? Of that it is twice the time of a message, for both sides
 * work all of it; of get it is the time of a message, which is the receiver's, and the sender's digest. Without a profile: by size (measured,
 * docs/performance.md). */
static bool uci_tuner_get_is_cheaper(const uci_profile_t *profile, const char *transports, uint64_t size,
                                     const uci_choice_t *choice)
{
    double direct_ns = 0, get_ns = 0, digest_ns, ns;
    const uci_profile_path_t *entry;
    unsigned i;

    for (i = 0; i < profile->paths_count; ++i) {
        entry = &profile->paths[i];
        if (strcmp(entry->transports, transports) != 0) {
            continue;
        }
        ns = uci_tuner_path_ns(profile, entry, size);
        if ((entry->path == UCI_PATH_DIRECT) && (entry->chunk == choice->chunk_size)) {
            direct_ns = 2 * ns;
        } else if ((entry->path == UCI_PATH_GET) && ((get_ns == 0) || (ns < get_ns))) {
            get_ns = ns;
        }
    }
    if ((direct_ns == 0) || (get_ns == 0)) {
        return size <= UCI_TUNER_BOTH_MAX;
    }
    digest_ns = uci_profile_kernel_ns(profile, choice->digest->id, choice->isa, UCI_FORM_DIGEST, size);
    return get_ns + digest_ns < direct_ns * uci_tuner_margin(profile);
}

/* While this core sends and receives, the path is the best that takes the least time of both sides' processors, not the one by which a
 * message is over first */
static void uci_tuner_choose_both(const uci_profile_t *profile, const char *transports, uint32_t paths, uint64_t size,
                                  uci_choice_t *choice)
{
    bool is_get = (choice->path == UCI_PATH_DIRECT) && (size > uci_tuner_both_min) &&
                  (paths & UCI_PATH_BIT(UCI_PATH_GET)) && uci_tuner_has_kernel_copy(transports) &&
                  uci_tuner_get_is_cheaper(profile, transports, size, choice);

    choice->both = is_get ? UCI_PATH_GET : choice->path;
}

static uint32_t uci_tuner_eager_built_in(const char *transports)
{
    return uci_tuner_is_tcp(transports) ? UCI_TUNER_EAGER_TCP : UCI_TUNER_EAGER_BUILT_IN;
}

static const uci_cost_t *uci_tuner_find_eager(const uci_profile_t *profile, const char *transports)
{
    unsigned i;

    for (i = 0; i < profile->paths_count; ++i) {
        if ((profile->paths[i].path == UCI_PATH_EAGER) && (strcmp(profile->paths[i].transports, transports) == 0)) {
            return &profile->paths[i].cost;
        }
    }
    return NULL;
}

/* Where between two sizes, at both of which it is known how much the rendezvous takes longer, that is 0 (eager is better
 * at the first one alone) */
static uint32_t uci_tuner_crossing(uint64_t low, double low_ns, uint64_t high, double high_ns)
{
    double part = low_ns / (low_ns - high_ns);

    return (uint32_t)(low + (uint64_t)((double)(high - low) * part)) & ~(uint32_t)(UCI_TUNER_EAGER_GRAIN - 1);
}

/* The size up to which eager is never slower than the best rendezvous */
static uint32_t uci_tuner_choose_eager_max(const uci_profile_t *profile, const char *transports, uint32_t paths)
{
    double rndv_ns, more = 0, before = 0; /* more: what a rendezvous takes longer at a size, and at the one before */
    const uci_cost_t *eager;
    uint32_t eager_max = 0;
    uci_choice_t choice;
    unsigned i;

    if (uci_settings.eager_max != UCI_SETTING_AUTO) {
        return (uint32_t)uci_settings.eager_max;
    }
    eager = uci_tuner_find_eager(profile, transports);
    if (eager == NULL) {
        return uci_tuner_eager_built_in(transports);
    }

    for (i = 0; (i < eager->count) && (eager->points[i].size <= UCI_TUNER_EAGER_LIMIT); ++i) {
        rndv_ns = uci_tuner_choose_path(profile, transports, paths, eager->points[i].size, eager->points[i].size,
                                        &choice);
        if (rndv_ns == 0) {
            return uci_tuner_eager_built_in(transports);
        }
        more = rndv_ns - eager->points[i].ns;
        if (more < 0) {
            return (i == 0) ? 0
                            : uci_max(eager_max, uci_tuner_crossing(eager_max, before, eager->points[i].size, more));
        }
        eager_max = (uint32_t)eager->points[i].size;
        before    = more;
    }
    return eager_max;
}

/* What UCI_PATH leaves of the paths there are; stream is what remains if nothing does */
static uint32_t uci_tuner_allowed(uint32_t paths)
{
    uint32_t forced = paths & UCI_PATH_BIT(uci_settings.path);

    return (uci_settings.path == UCI_PATH_AUTO) ? paths : (forced != 0) ? forced : UCI_PATH_BIT(UCI_PATH_STREAM);
}

/* What suits sizes of a class: its largest, and of paths also one in the middle, since a size just above a multiple of the chunk
 * has a chunk that is hardly worth one (measured: 20 KiB in chunks of 16 KiB take 8 to 10 % longer than in one, 24 KiB the same) */
static void uci_tuner_choose_class(const uci_profile_t *profile, uint32_t paths, unsigned number, uci_plan_t *plan)
{
    uint64_t largest = uci_plan_class_size(number);
    uint64_t middle  = (number > 0) ? (uci_plan_class_size(number - 1) + largest) / 2 : largest;

    uci_tuner_choose_kernel(profile, largest, &plan->choices[number]);
    uci_tuner_choose_path(profile, plan->transports, paths, middle, largest, &plan->choices[number]);
    uci_tuner_choose_both(profile, plan->transports, paths, largest, &plan->choices[number]);
}

void uci_tuner_make_plan(const uci_profile_t *profile, const char *transports, uint32_t paths, uci_plan_t *plan_p)
{
    unsigned i;

    if (transports != plan_p->transports) { /* a plan is made anew */
        snprintf(plan_p->transports, sizeof(plan_p->transports), "%s", transports);
    }
    plan_p->paths     = paths | UCI_PATH_BIT(UCI_PATH_STREAM);
    paths             = uci_tuner_allowed(plan_p->paths);
    plan_p->eager_max = uci_tuner_choose_eager_max(profile, plan_p->transports, paths);
    plan_p->fragment  = uci_tuner_chunk_built_in(plan_p->transports, UCI_PATH_STREAM);
    for (i = 0; i < UCI_PLAN_CLASSES; ++i) {
        uci_tuner_choose_class(profile, paths, i, plan_p);
    }
}

const uci_plan_t *uci_tuner_plan(const char *transports, uint32_t paths)
{
    static uci_plan_t built_in; /* if there is no memory */
    uci_plan_t *plan;

    paths |= UCI_PATH_BIT(UCI_PATH_STREAM);
    pthread_mutex_lock(&uci_tuner.lock);
    for (plan = uci_tuner.plans; plan != NULL; plan = plan->next) {
        if ((plan->paths == paths) && (strncmp(plan->transports, transports, sizeof(plan->transports) - 1) == 0)) {
            goto out;
        }
    }

    plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        uci_warn("no memory for a plan: transports \"%s\" are used as if nothing was known of them", transports);
        plan = &built_in;
    } else {
        plan->next      = uci_tuner.plans;
        uci_tuner.plans = plan;
    }
    uci_tuner_make_plan(&uci_tuner.profile, transports, paths, plan);
out:
    pthread_mutex_unlock(&uci_tuner.lock);
    return plan;
}

/* Smallest and largest eager limit of all transports the profile knows, and of those it does not */
static void uci_tuner_find_eager_range(void)
{
    uint32_t eager_max;
    unsigned i;

    uci_tuner.eager_min = uci_tuner_choose_eager_max(&uci_tuner.profile, "", UINT32_MAX);
    uci_tuner.eager_max = uci_max(uci_tuner.eager_min,
                                  uci_tuner_choose_eager_max(&uci_tuner.profile, "tcp", UINT32_MAX));
    for (i = 0; i < uci_tuner.profile.paths_count; ++i) {
        eager_max = uci_tuner_choose_eager_max(&uci_tuner.profile, uci_tuner.profile.paths[i].transports, UINT32_MAX);
        uci_tuner.eager_min = uci_min(uci_tuner.eager_min, eager_max);
        uci_tuner.eager_max = uci_max(uci_tuner.eager_max, eager_max);
    }
}

void uci_tuner_refresh(void)
{
    uci_plan_t *plan;

    pthread_mutex_lock(&uci_tuner.lock);
    for (plan = uci_tuner.plans; plan != NULL; plan = plan->next) {
        uci_tuner_make_plan(&uci_tuner.profile, plan->transports, plan->paths, plan);
    }
    pthread_mutex_unlock(&uci_tuner.lock);
}

uint32_t uci_tuner_eager_max(void)
{
    return uci_tuner.eager_max;
}

bool uci_tuner_eager_differs(void)
{
    return uci_tuner.eager_min != uci_tuner.eager_max;
}

const char *uci_tuner_source(void)
{
    return uci_tuner.source;
}

/* Folder of the user's cache: where the XDG Base Directory Specification says */
static uci_status_t uci_tuner_cache_path(const char *name, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;

    if ((cache != NULL) && (cache[0] == '/')) { /* relative ones are to be ignored */
        length = snprintf(path, size, "%s/uci/%s", cache, name);
    } else if ((home != NULL) && (home[0] == '/')) {
        length = snprintf(path, size, "%s/.cache/uci/%s", home, name);
    } else {
        return UCI_ERR_NO_ELEM;
    }
    return ((length > 0) && ((size_t)length < size)) ? UCI_OK : UCI_ERR_NO_ELEM;
}

uci_status_t uci_tuner_profile_path(const uci_profile_machine_t *machine, char *path, size_t size)
{
    char name[64];

    snprintf(name, sizeof(name), "profile-%08x.json", uci_profile_machine_key(machine));
    return uci_tuner_cache_path(name, path, size);
}

/* @return UCI_OK if the profile is now in use; all but UCI_ERR_NO_ELEM have been warned of */
static uci_status_t uci_tuner_use(const char *kind, const char *path, const uci_profile_machine_t *machine)
{
    uci_profile_t profile;
    uci_status_t status;
    char reason[512];

    status = uci_profile_load(path, &profile);
    if (status != UCI_OK) {
        return status;
    }
    if (!uci_profile_fits(&profile, machine, reason, sizeof(reason))) {
        uci_warn("the profile %s is not used: %s (make one with uci_tune here)", path, reason);
        uci_profile_cleanup(&profile);
        return UCI_ERR_INVALID_PARAM;
    }
    uci_tuner.profile = profile;
    snprintf(uci_tuner.source, sizeof(uci_tuner.source), "%s %s", kind, path);
    return UCI_OK;
}

/* A file that exists for as long as its maker calibrates: made by the one who comes first, on NFS too. What a killed
 * process left behind is taken away when it is old, or was made while a clock was wrong. @return false: somebody else is at it. */
static bool uci_tuner_lock_file(const char *path)
{
    struct stat info;
    unsigned tries;
    int fd;

    for (tries = 0; tries < 2; ++tries) {
        fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        if ((errno != EEXIST) || (stat(path, &info) != 0) ||
            (llabs((long long)time(NULL) - info.st_mtime) < UCI_TUNER_LOCK_AGE)) {
            return false;
        }
        unlink(path);
    }
    return false;
}

/* A cache that cannot be written is not worth a warning in every job; nobody calibrates then, or, where the disk is full, for nothing */
static void uci_tuner_calibrate(const char *path, const char *ucx_version)
{
    uint64_t begin = uci_process_time_ns();
    char lock[PATH_MAX + 8];
    uci_profile_t profile;
    uci_status_t status;

    snprintf(lock, sizeof(lock), "%s.lock", path);
    if ((uci_file_make_folder(path) != UCI_OK) || !uci_tuner_lock_file(lock)) {
        uci_debug("no calibration: cannot make %s (%m)", lock);
        return;
    }

    uci_profile_init(&profile, UCI_PROFILE_SOURCE_QUICK, ucx_version);
    status = uci_calibrate_quick(UCI_TUNER_BUDGET_NS, &profile);
    if (status == UCI_OK) {
        status = uci_profile_try_save(&profile, path);
    }
    if (status == UCI_OK) {
        uci_tuner.profile = profile;
        snprintf(uci_tuner.source, sizeof(uci_tuner.source), "calibration %s", path);
    } else {
        uci_profile_cleanup(&profile);
    }
    unlink(lock);
    uci_debug("calibration: %s, %lu us", uci_status_string(status), (uci_process_time_ns() - begin) / 1000);
}

static void uci_tuner_find_calibration(const uci_profile_machine_t *machine, const char *ucx_version)
{
    char name[320], path[PATH_MAX];

    snprintf(name, sizeof(name), "calibration-%s-%08x.json", uci_process_host(), uci_profile_machine_key(machine));
    if ((uci_tuner_cache_path(name, path, sizeof(path)) == UCI_OK) &&
        (uci_tuner_use("calibration", path, machine) == UCI_ERR_NO_ELEM)) {
        uci_tuner_calibrate(path, ucx_version);
    }
}

static void uci_tuner_find(const char *ucx_version)
{
    const char *setting = uci_settings.profile;
    uci_profile_machine_t machine;
    char path[PATH_MAX];

    if (uci_word_is(setting, "none")) {
        return;
    }
    uci_profile_machine_init(&machine, ucx_version);
    if (!uci_word_is(setting, "auto")) {
        if (uci_process_expand(setting, path, sizeof(path)) == UCI_OK) { /* tried when the settings were read */
            if (uci_tuner_use("profile", path, &machine) == UCI_ERR_NO_ELEM) {
                uci_warn("there is no profile %s, which UCI_PROFILE names", path);
            }
        }
        return;
    }

    if ((uci_tuner_profile_path(&machine, path, sizeof(path)) == UCI_OK) &&
        (uci_tuner_use("profile", path, &machine) == UCI_OK)) {
        return;
    }
    snprintf(path, sizeof(path), "/etc/uci/profile-%08x.json", uci_profile_machine_key(&machine));
    if (uci_tuner_use("profile", path, &machine) != UCI_OK) {
        uci_tuner_find_calibration(&machine, ucx_version);
    }
}

static const char *uci_tuner_ucx_version;

static void uci_tuner_init_once(void)
{
    unsigned id;

    uci_digest_init();
    uci_tuner_find(uci_tuner_ucx_version);
    for (id = UCI_DIGEST_NONE + 1; id < UCI_DIGEST_LAST; ++id) {
        uci_digest_use((uci_digest_id_t)id, uci_tuner_best_isa(&uci_tuner.profile, (uci_digest_id_t)id));
    }
    uci_tuner_find_eager_range();
    uci_info("tuning: %s", uci_tuner.source);
}

void uci_tuner_init(const char *ucx_version)
{
    static pthread_once_t once  = PTHREAD_ONCE_INIT;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock); /* the argument reaches the one that does the work */
    uci_tuner_ucx_version = ucx_version;
    pthread_once(&once, uci_tuner_init_once);
    pthread_mutex_unlock(&lock);
}
