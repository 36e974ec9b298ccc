/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate.h"
#include "util/log.h"
#include "util/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define UCI_CALIBRATE_CONTENDERS_MAX (2 * UCI_DIGEST_LAST * UCI_DIGEST_ISA_LAST * UCI_FORM_LAST)
#define UCI_CALIBRATE_ALIGN          4096
#define UCI_CALIBRATE_HOPELESS       8 /* times slower than memcpy: not measured at the next sizes */
#define UCI_CALIBRATE_HOPELESS_MIN   4096
#define UCI_CALIBRATE_LONG           ((size_t)16 << 20)
#define UCI_CALIBRATE_CLOSE          1.15 /* times the best's: takes part in the finals */

/* All contenders take turns, then those that are close to the best */
typedef enum { UCI_CALIBRATE_ALL, UCI_CALIBRATE_FINALS, UCI_CALIBRATE_LAST } uci_calibrate_phase_t;

/* One way to move or digest bytes, and its times at the size in question */
typedef struct uci_calibrate_contender {
    uci_digest_ops_t ops;
    uci_digest_isa_t isa;
    uci_form_t form;
    bool cached;
    bool is_hopeless;
    bool is_playing;                 /* takes turns now */
    bool played[UCI_CALIBRATE_LAST]; /* in that phase of this size */
    double ns;                       /* what counts */
    float turns[UCI_CALIBRATE_LAST][UCI_CALIBRATE_ROUNDS_MAX];
} uci_calibrate_contender_t;

typedef struct uci_calibrate {
    const uci_calibrate_params_t *params;
    uint8_t *src, *dst; /* the larger of the largest size and `uncached` */
    size_t length;
    size_t place; /* where the walk through uncached memory is */
    size_t home;  /* where in memory all calls of cached contenders are, in this round */
    unsigned count;
    uci_calibrate_contender_t contenders[UCI_CALIBRATE_CONTENDERS_MAX];
    unsigned order[UCI_CALIBRATE_CONTENDERS_MAX];
    unsigned rounds[UCI_CALIBRATE_LAST]; /* of this size */
    uint64_t random;
} uci_calibrate_t;

static volatile uint64_t uci_calibrate_sink;

static void uci_calibrate_add(uci_calibrate_t *calibrate, const uci_digest_ops_t *ops, uci_digest_isa_t isa,
                              uci_form_t form)
{
    bool cached;

    for (cached = true;; cached = false) {
        calibrate->contenders[calibrate->count++] = (uci_calibrate_contender_t){
                .ops = *ops, .isa = isa, .form = form, .cached = cached};
        if (!cached || (calibrate->params->uncached == 0)) {
            return;
        }
    }
}

static bool uci_calibrate_is_same(const uci_digest_ops_t *a, const uci_digest_ops_t *b)
{
    return (a->digest == b->digest) && (a->copy == b->copy);
}

/* Never the fastest: plain C, and what is narrower than the second widest */
static bool uci_calibrate_is_old(int isa, int best)
{
    return (isa + 1 < best) || ((isa == UCI_DIGEST_ISA_SCALAR) && (best > 0));
}

static void uci_calibrate_add_all(uci_calibrate_t *calibrate)
{
    uci_digest_ops_t tables[UCI_DIGEST_ISA_LAST][UCI_DIGEST_LAST];
    int best = (int)uci_digest_isa_best(), isa;
    unsigned id, form;

    for (isa = best; isa >= 0; --isa) {
        uci_digest_fill(tables[isa], (uci_digest_isa_t)isa);
    }

    uci_calibrate_add(calibrate, &tables[best][UCI_DIGEST_NONE], UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED);
    uci_calibrate_add(calibrate, &tables[best][UCI_DIGEST_NONE], UCI_DIGEST_ISA_SCALAR, UCI_FORM_KERNEL);
    for (id = UCI_DIGEST_NONE + 1; id < UCI_DIGEST_LAST; ++id) {
        if ((calibrate->params->digests != 0) && !(calibrate->params->digests & (1u << id))) {
            continue;
        }
        for (isa = best; isa >= 0; --isa) {
            if ((uci_calibrate_is_old(isa, best) && !calibrate->params->all_isas) ||
                ((isa < best) && uci_calibrate_is_same(&tables[isa][id], &tables[isa + 1][id]))) {
                continue;
            }
            for (form = UCI_FORM_DIGEST; form <= UCI_FORM_FAR; ++form) {
                uci_calibrate_add(calibrate, &tables[isa][id], (uci_digest_isa_t)isa, (uci_form_t)form);
            }
        }
    }
}

static void uci_calibrate_kernel_copy(uint8_t *dst, uint8_t *src, size_t size)
{
    struct iovec local = {dst, size}, remote = {src, size};

    uci_calibrate_sink += (uint64_t)process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

static void uci_calibrate_call(const uci_calibrate_contender_t *contender, uint8_t *dst, uint8_t *src, size_t size)
{
    switch (contender->form) {
    case UCI_FORM_DIGEST:
        uci_calibrate_sink += contender->ops.digest(src, size);
        break;
    case UCI_FORM_KERNEL:
        uci_calibrate_kernel_copy(dst, src, size);
        break;
    default:
        uci_calibrate_sink += uci_digest_copy_as(&contender->ops, contender->form, dst, src, size);
        break;
    }
}

/* Where the next call of a walk begins: neither this nor its neighbours are in a cache */
static size_t uci_calibrate_step(uci_calibrate_t *calibrate, size_t size)
{
    if (calibrate->place + size > calibrate->length) {
        calibrate->place = 0;
    }
    calibrate->place += size;
    return calibrate->place - size;
}

static void uci_calibrate_batch(uci_calibrate_t *calibrate, const uci_calibrate_contender_t *contender, size_t size,
                                uint64_t calls)
{
    size_t place;

    for (; calls > 0; --calls) {
        place = contender->cached ? calibrate->home : uci_calibrate_step(calibrate, size);
        uci_calibrate_call(contender, calibrate->dst + place, calibrate->src + place, size);
    }
}

/* @return nanoseconds a call */
static double uci_calibrate_turn(uci_calibrate_t *calibrate, const uci_calibrate_contender_t *contender, size_t size)
{
    uint64_t calls = 0, batch = 1, begin, now;

    if (contender->cached) {
        uci_calibrate_batch(calibrate, contender, size, 1); /* others may have emptied the caches */
    }
    begin = uci_process_time_ns();
    do {
        uci_calibrate_batch(calibrate, contender, size, batch);
        calls += batch;
        batch = 2 * calls;
        now   = uci_process_time_ns();
    } while ((now - begin) * 3 < calibrate->params->turn_ns); /* the next batch triples what was done */
    return (double)(now - begin) / (double)calls;
}

static int uci_calibrate_compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static bool uci_calibrate_is_late(const uci_calibrate_t *calibrate)
{
    return (calibrate->params->deadline_ns != 0) && (uci_process_time_ns() > calibrate->params->deadline_ns);
}

/* A number below `limit` (D. Knuth's MMIX) */
static size_t uci_calibrate_random(uci_calibrate_t *calibrate, size_t limit)
{
    calibrate->random = calibrate->random * 6364136223846793005ul + 1442695040888963407ul;
    return (calibrate->random >> 33) % limit;
}

/* Whoever comes after a contender finds the caches as that one left them: so nobody always comes after the same */
static void uci_calibrate_shuffle(uci_calibrate_t *calibrate)
{
    unsigned i, other, swapped;

    for (i = calibrate->count; i > 1; --i) {
        other                   = (unsigned)uci_calibrate_random(calibrate, i);
        swapped                 = calibrate->order[i - 1];
        calibrate->order[i - 1] = calibrate->order[other];
        calibrate->order[other] = swapped;
    }
}

/* Which sets of a cache a buffer takes depends on the pages it got: 256 KiB and more fit a cache of 1 MiB with some and not
 * with others (measured: 20 % for one kernel, nothing for another). So each round has other pages, the same for all. */
static void uci_calibrate_move_home(uci_calibrate_t *calibrate, size_t size)
{
    size_t places = (calibrate->length - size) / UCI_CALIBRATE_ALIGN + 1;

    calibrate->home = uci_calibrate_random(calibrate, places) * UCI_CALIBRATE_ALIGN;
}

static uci_status_t uci_calibrate_rounds(uci_calibrate_t *calibrate, size_t size, uci_calibrate_phase_t phase,
                                         unsigned rounds)
{
    uci_calibrate_contender_t *contender;
    unsigned round, i;

    calibrate->rounds[phase] = rounds;
    for (i = 0; i < calibrate->count; ++i) {
        calibrate->contenders[i].played[phase] = calibrate->contenders[i].is_playing;
    }
    for (round = 0; round < rounds; ++round) {
        uci_calibrate_shuffle(calibrate);
        uci_calibrate_move_home(calibrate, size);
        for (i = 0; i < calibrate->count; ++i) {
            contender = &calibrate->contenders[calibrate->order[i]];
            if (!contender->is_playing) {
                continue;
            }
            if (uci_calibrate_is_late(calibrate)) {
                return UCI_ERR_BUSY;
            }
            contender->turns[phase][round] = (float)uci_calibrate_turn(calibrate, contender, size);
        }
    }
    return UCI_OK;
}

static unsigned uci_calibrate_rounds_of(size_t size, unsigned rounds)
{
    rounds = uci_max(1u, uci_min(rounds, (unsigned)UCI_CALIBRATE_ROUNDS_MAX));
    return (size > UCI_CALIBRATE_LONG) ? uci_max(uci_div_up(rounds, 2), 2u) : rounds;
}

/* Which rounds count: `first`, and every `step`-th after it */
typedef struct uci_calibrate_share {
    unsigned first, step;
} uci_calibrate_share_t;

static const uci_calibrate_share_t uci_calibrate_every = {.first = 0, .step = 1};

/* The k-th of four parts of a phase's turns, or of their ratios to another contender's in the same round */
static double uci_calibrate_quartile(const uci_calibrate_t *calibrate, const uci_calibrate_contender_t *contender,
                                     const uci_calibrate_contender_t *other, uci_calibrate_phase_t phase,
                                     uci_calibrate_share_t share, unsigned k)
{
    float values[UCI_CALIBRATE_ROUNDS_MAX];
    unsigned count = 0, round;

    for (round = share.first; round < calibrate->rounds[phase]; round += share.step) {
        values[count++] = contender->turns[phase][round] / ((other != NULL) ? other->turns[phase][round] : 1);
    }
    qsort(values, count, sizeof(*values), uci_calibrate_compare);
    return (count > 0) ? values[count * k / 4] : 0;
}

/* The contender that does the same at this size; NULL for digest none */
static uci_calibrate_contender_t *uci_calibrate_twin(uci_calibrate_t *calibrate,
                                                     const uci_calibrate_contender_t *contender, size_t size)
{
    uci_form_t form = uci_digest_form_at(contender->form, size);
    uci_calibrate_contender_t *other;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        other = &calibrate->contenders[i];
        if ((other->form == form) && (other->ops.id == contender->ops.id) && (other->isa == contender->isa) &&
            (other->cached == contender->cached) && !other->is_hopeless) {
            return other;
        }
    }
    return NULL;
}

static void uci_calibrate_copy_twins(uci_calibrate_t *calibrate, size_t size)
{
    uci_calibrate_contender_t *contender, *twin;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender = &calibrate->contenders[i];
        twin      = uci_calibrate_twin(calibrate, contender, size);
        if (twin != NULL) {
            contender->ns = twin->ns;
        }
    }
}

static bool uci_calibrate_is_twin(uci_calibrate_t *calibrate, const uci_calibrate_contender_t *contender, size_t size)
{
    const uci_calibrate_contender_t *twin = uci_calibrate_twin(calibrate, contender, size);

    return (twin != NULL) && (twin != contender);
}

/* From all turns: the lower quartile */
static void uci_calibrate_judge_all(uci_calibrate_t *calibrate, size_t size, uci_calibrate_share_t share)
{
    uci_calibrate_contender_t *contender;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender     = &calibrate->contenders[i];
        contender->ns = contender->played[UCI_CALIBRATE_ALL]
                                ? uci_calibrate_quartile(calibrate, contender, NULL, UCI_CALIBRATE_ALL, share, 1)
                                : 0;
    }
    uci_calibrate_copy_twins(calibrate, size);
}

static uci_status_t uci_calibrate_all(uci_calibrate_t *calibrate, size_t size, bool judged_only)
{
    uint32_t needed = judged_only ? calibrate->params->finalists | (1u << UCI_DIGEST_NONE) : UINT32_MAX;
    uci_calibrate_contender_t *contender;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender             = &calibrate->contenders[i];
        contender->is_playing = !contender->is_hopeless && (needed & (1u << contender->ops.id)) &&
                                !uci_calibrate_is_twin(calibrate, contender, size);
    }
    return uci_calibrate_rounds(calibrate, size, UCI_CALIBRATE_ALL,
                                uci_calibrate_rounds_of(size, calibrate->params->rounds));
}

/* Time of what could be chosen, in cache and (next in the list) from memory together; 0 if it could not */
static double uci_calibrate_together(const uci_calibrate_t *calibrate, unsigned i)
{
    const uci_calibrate_contender_t *contender = &calibrate->contenders[i];

    if (!contender->cached || contender->is_hopeless || (contender->form < UCI_FORM_FUSED) ||
        (contender->form > UCI_FORM_FAR) || !(calibrate->params->finalists & (1u << contender->ops.id))) {
        return 0;
    }
    return contender->ns + ((calibrate->params->uncached > 0) ? contender[1].ns : 0);
}

/* @return how many play */
static unsigned uci_calibrate_find_finalists(uci_calibrate_t *calibrate, size_t size)
{
    unsigned count = 0, i;
    double best    = 0, ns;

    for (i = 0; i < calibrate->count; ++i) {
        calibrate->contenders[i].is_playing = false;
        ns                                  = uci_calibrate_together(calibrate, i);
        best                                = ((ns > 0) && ((best == 0) || (ns < best))) ? ns : best;
    }
    for (i = 0; i < calibrate->count; ++i) {
        ns = uci_calibrate_together(calibrate, i);
        if ((ns > 0) && (ns <= best * UCI_CALIBRATE_CLOSE) &&
            !uci_calibrate_is_twin(calibrate, &calibrate->contenders[i], size)) {
            calibrate->contenders[i].is_playing = true;
            if (calibrate->params->uncached > 0) {
                calibrate->contenders[i + 1].is_playing = true;
            }
            ++count;
        }
    }
    return count;
}

/* Times relative to the first one that plays in the same way, in cache or from memory. Its own time stays as it was: were it
 * measured anew, those who don't play would change places with those who do whenever the machine's speed changes. */
static void uci_calibrate_judge_finals(uci_calibrate_t *calibrate, bool cached, uci_calibrate_share_t share)
{
    uci_calibrate_contender_t *first = NULL, *contender;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender = &calibrate->contenders[i];
        if (!contender->played[UCI_CALIBRATE_FINALS] || (contender->cached != cached)) {
            continue;
        }
        first         = (first == NULL) ? contender : first;
        contender->ns = first->ns * uci_calibrate_quartile(calibrate, contender, first, UCI_CALIBRATE_FINALS, share, 2);
    }
}

static uci_status_t uci_calibrate_finals(uci_calibrate_t *calibrate, size_t size)
{
    uci_calibrate_judge_all(calibrate, size, uci_calibrate_every);
    if ((calibrate->params->finals == 0) || (uci_calibrate_find_finalists(calibrate, size) < 2)) {
        return uci_calibrate_rounds(calibrate, size, UCI_CALIBRATE_FINALS, 0);
    }
    return uci_calibrate_rounds(calibrate, size, UCI_CALIBRATE_FINALS,
                                uci_calibrate_rounds_of(size, calibrate->params->finals));
}

static void uci_calibrate_judge(uci_calibrate_t *calibrate, size_t size, uci_calibrate_share_t share)
{
    uci_calibrate_judge_all(calibrate, size, share);
    if (calibrate->rounds[UCI_CALIBRATE_FINALS] > 0) {
        uci_calibrate_judge_finals(calibrate, true, share);
        uci_calibrate_judge_finals(calibrate, false, share);
        uci_calibrate_copy_twins(calibrate, size);
    }
}

static uci_status_t uci_calibrate_keep(const uci_calibrate_t *calibrate, size_t size, uci_profile_t *profile)
{
    const uci_calibrate_contender_t *contender;
    uci_cost_t *cost;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender = &calibrate->contenders[i];
        if (contender->ns == 0) { /* hopeless, or nobody wants to know */
            continue;
        }
        cost = uci_profile_add_kernel(profile, contender->ops.id, contender->isa, contender->form, contender->cached);
        if (cost == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
        uci_cost_add(cost, size, uci_max(contender->ns, 0.1));
    }
    return UCI_OK;
}

static void uci_calibrate_find_hopeless(uci_calibrate_t *calibrate, size_t size)
{
    const uci_calibrate_contender_t *copy = &calibrate->contenders[0]; /* memcpy, cached */
    uci_calibrate_contender_t *contender;
    unsigned i;

    for (i = 0; (i < calibrate->count) && (size >= UCI_CALIBRATE_HOPELESS_MIN); ++i) {
        contender = &calibrate->contenders[i];
        contender->is_hopeless |= (contender->form != UCI_FORM_KERNEL) && contender->cached &&
                                  (contender->ns > UCI_CALIBRATE_HOPELESS * copy->ns);
    }
}

/* One size, for the choice and for its judgement */
static uci_status_t uci_calibrate_size(uci_calibrate_t *calibrate, unsigned index, uci_profile_t *profile)
{
    const uci_calibrate_params_t *params = calibrate->params;
    uci_calibrate_share_t share          = {.first = 0, .step = (params->judgement != NULL) ? 2 : 1};
    size_t size                          = params->sizes[index];
    bool judged_only                     = (params->judged_only != NULL) && params->judged_only[index];
    uci_status_t status                  = uci_calibrate_all(calibrate, size, judged_only);

    if (status == UCI_OK) {
        status = uci_calibrate_finals(calibrate, size);
    }
    if ((status == UCI_OK) && !judged_only) {
        uci_calibrate_judge(calibrate, size, share);
        status = uci_calibrate_keep(calibrate, size, profile);
    }
    if ((status == UCI_OK) && (params->judgement != NULL)) {
        share.first = 1;
        uci_calibrate_judge(calibrate, size, share);
        status = uci_calibrate_keep(calibrate, size, params->judgement);
    }
    uci_calibrate_find_hopeless(calibrate, size);
    return status;
}

static uci_status_t uci_calibrate_allocate(uci_calibrate_t *calibrate)
{
    const uci_calibrate_params_t *params = calibrate->params;
    size_t i;

    calibrate->length = uci_max(params->sizes[params->sizes_count - 1], params->uncached);
    calibrate->length = uci_align_up(calibrate->length, UCI_CALIBRATE_ALIGN);
    calibrate->src    = aligned_alloc(UCI_CALIBRATE_ALIGN, calibrate->length);
    calibrate->dst    = aligned_alloc(UCI_CALIBRATE_ALIGN, calibrate->length);
    if ((calibrate->src == NULL) || (calibrate->dst == NULL)) {
        uci_error("failed to allocate 2 x %zu bytes to measure copies", calibrate->length);
        return UCI_ERR_NO_MEMORY;
    }
    memset(calibrate->dst, 0, calibrate->length);
    for (i = 0; i < calibrate->length; i += sizeof(uint64_t)) {
        *(uint64_t *)(void *)(calibrate->src + i) = (i + 1) * 0x9e3779b97f4a7c15ul;
    }
    return UCI_OK;
}

uci_status_t uci_calibrate(const uci_calibrate_params_t *params, uci_profile_t *profile)
{
    uci_calibrate_t *calibrate = calloc(1, sizeof(*calibrate));
    uci_status_t status;
    unsigned i;

    if (calibrate == NULL) {
        uci_error("failed to allocate what measuring copies needs");
        return UCI_ERR_NO_MEMORY;
    }

    calibrate->params = params;
    status            = uci_calibrate_allocate(calibrate);
    if (status == UCI_OK) {
        uci_calibrate_add_all(calibrate);
    }
    for (i = 0; i < calibrate->count; ++i) {
        calibrate->order[i] = i;
    }
    for (i = 0; (i < params->sizes_count) && (status == UCI_OK); ++i) {
        if (params->progress != NULL) {
            params->progress(params->arg, i, params->sizes_count);
        }
        status = uci_calibrate_size(calibrate, i, profile);
    }
    free(calibrate->src);
    free(calibrate->dst);
    free(calibrate);
    return status;
}

uci_status_t uci_calibrate_quick(uint64_t budget_ns, uci_profile_t *profile)
{
    static const size_t sizes[]   = {64, 1024, 8192, 65536, 262144};
    uci_calibrate_params_t params = {.sizes       = sizes,
                                     .sizes_count = uci_array_size(sizes),
                                     .rounds      = 3,
                                     .turn_ns     = 10000,
                                     .deadline_ns = uci_process_time_ns() + budget_ns};

    return uci_calibrate(&params, profile);
}
