/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "calibrate.h"
#include "log.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define UCI_CALIBRATE_CONTENDERS_MAX (2 * UCI_DIGEST_LAST * UCI_DIGEST_ISA_LAST * UCI_FORM_LAST)
#define UCI_CALIBRATE_ALIGN          4096
#define UCI_CALIBRATE_HOPELESS       8 /* times slower than memcpy: not measured at the next sizes */
#define UCI_CALIBRATE_HOPELESS_MIN   4096
#define UCI_CALIBRATE_LONG           ((size_t)16 << 20)

/* One way to move or digest bytes, and its times at the size in question */
typedef struct uci_calibrate_contender {
    uci_digest_ops_t ops;
    uci_digest_isa_t isa;
    uci_form_t form;
    bool cached;
    bool is_hopeless;
    double ns; /* what counts */
    float turns[UCI_CALIBRATE_ROUNDS_MAX];
} uci_calibrate_contender_t;

typedef struct uci_calibrate {
    const uci_calibrate_params_t *params;
    uint8_t *src, *dst; /* the larger of the largest size and `uncached` */
    size_t length;
    size_t place; /* where the walk through uncached memory is */
    unsigned count;
    uci_calibrate_contender_t contenders[UCI_CALIBRATE_CONTENDERS_MAX];
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
            if (((isa == UCI_DIGEST_ISA_SCALAR) && (best > 0) && !calibrate->params->scalar) ||
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
    size_t place = 0;

    for (; calls > 0; --calls) {
        place = contender->cached ? 0 : uci_calibrate_step(calibrate, size);
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

static uci_status_t uci_calibrate_rounds(uci_calibrate_t *calibrate, size_t size)
{
    unsigned rounds = uci_max(1u, uci_min(calibrate->params->rounds, (unsigned)UCI_CALIBRATE_ROUNDS_MAX));
    uci_calibrate_contender_t *contender;
    unsigned round, i;

    rounds = (size > UCI_CALIBRATE_LONG) ? uci_div_up(rounds, 3) : rounds;
    for (round = 0; round < rounds; ++round) {
        for (i = 0; i < calibrate->count; ++i) {
            contender = &calibrate->contenders[i];
            if (contender->is_hopeless) {
                continue;
            }
            if (uci_calibrate_is_late(calibrate)) {
                return UCI_ERR_BUSY;
            }
            contender->turns[round] = (float)uci_calibrate_turn(calibrate, contender, size);
        }
    }
    for (i = 0; i < calibrate->count; ++i) {
        contender = &calibrate->contenders[i];
        qsort(contender->turns, rounds, sizeof(contender->turns[0]), uci_calibrate_compare);
        contender->ns = contender->turns[rounds / 4];
    }
    return UCI_OK;
}

static uci_status_t uci_calibrate_keep(uci_calibrate_t *calibrate, size_t size, uci_profile_t *profile)
{
    const uci_calibrate_contender_t *copy = &calibrate->contenders[0]; /* memcpy, cached */
    uci_calibrate_contender_t *contender;
    uci_cost_t *cost;
    unsigned i;

    for (i = 0; i < calibrate->count; ++i) {
        contender = &calibrate->contenders[i];
        if (contender->is_hopeless) {
            continue;
        }
        cost = uci_profile_add_kernel(profile, contender->ops.id, contender->isa, contender->form, contender->cached);
        if (cost == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
        uci_cost_add(cost, size, uci_max(contender->ns, 0.1));
        contender->is_hopeless = (size >= UCI_CALIBRATE_HOPELESS_MIN) && (contender->form != UCI_FORM_KERNEL) &&
                                 contender->cached && (contender->ns > UCI_CALIBRATE_HOPELESS * copy->ns);
    }
    return UCI_OK;
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
    for (i = 0; (i < params->sizes_count) && (status == UCI_OK); ++i) {
        if (params->progress != NULL) {
            params->progress(params->arg, i, params->sizes_count);
        }
        status = uci_calibrate_rounds(calibrate, params->sizes[i]);
        if (status == UCI_OK) {
            status = uci_calibrate_keep(calibrate, params->sizes[i], profile);
        }
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
