/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests and copies on this CPU.
 */
#include "calibrate.h"
#include "settings.h"
#include "tune.h"

#define TUNE_UNCACHED ((size_t)128 << 20) /* larger than the L3 most cores have for themselves */

static const size_t tune_sizes[]       = {64,        256,     1 << 10, 4 << 10, 16 << 10, 64 << 10,
                                          256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20};
static const size_t tune_sizes_quick[] = {64, 1 << 10, 8 << 10, 64 << 10, 1 << 20};

/* For the second measurement: also sizes in between, where the choice rests on a line between two points */
static const size_t tune_checked[]       = {64,      96,       256,      384,      1 << 10,  1536,      4 << 10,
                                            6 << 10, 16 << 10, 24 << 10, 64 << 10, 96 << 10, 256 << 10, 384 << 10,
                                            1 << 20, 3 << 19,  4 << 20,  6 << 20,  16 << 20, 24 << 20,  64 << 20};
static const size_t tune_checked_quick[] = {64, 96, 1 << 10, 1536, 8 << 10, 12 << 10, 64 << 10, 96 << 10, 1 << 20};

#define TUNE_SIZES(_options, _list, _params) \
    ((_params)->sizes       = (_options)->quick ? _list##_quick : _list, \
     (_params)->sizes_count = (_options)->quick ? uci_array_size(_list##_quick) : uci_array_size(_list))

typedef struct tune_pass {
    unsigned number, passes;
} tune_pass_t;

static void tune_kernels_progress(void *arg, unsigned done, unsigned total)
{
    const tune_pass_t *pass = arg;

    tune_progress("digests and copies", pass->number * total + done, pass->passes * total);
}

static uint32_t tune_candidates(void)
{
    uint32_t candidates = 0;
    unsigned i;

    for (i = 0; uci_tuner_digests[i] != UCI_DIGEST_NONE; ++i) {
        candidates |= 1u << uci_tuner_digests[i];
    }
    return candidates;
}

/* The first time everything, the second time what could have been chosen */
static uci_status_t tune_measure(const tune_options_t *options, tune_pass_t *pass, uci_profile_t *profile)
{
    uci_calibrate_params_t params = {.turn_ns   = options->quick ? 50000 : 150000,
                                     .uncached  = options->quick ? 0 : TUNE_UNCACHED,
                                     .finals    = options->quick ? 25 : 101,
                                     .finalists = tune_candidates(),
                                     .progress  = tune_kernels_progress,
                                     .arg       = pass};

    if (pass->number == 0) {
        TUNE_SIZES(options, tune_sizes, &params);
        params.rounds = options->quick ? 9 : 25;
    } else {
        TUNE_SIZES(options, tune_checked, &params);
        params.rounds  = options->quick ? 9 : 21;
        params.digests = params.finalists;
    }
    return uci_calibrate(&params, profile);
}

static double tune_ns(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa, uci_form_t form,
                      uint64_t size, char text[64])
{
    snprintf(text, 64, "%s %s %s", uci_digest_table[digest].name, uci_digest_isa_names[isa], uci_form_names[form]);
    return uci_profile_kernel_ns(profile, digest, isa, form, size);
}

/* The best of all that auto could have chosen, by the second measurement */
static void tune_find_best(const uci_profile_t *again, tune_check_t *check)
{
    unsigned i;
    char text[64];
    int isa, form;
    double ns;

    for (i = 0; uci_tuner_digests[i] != UCI_DIGEST_NONE; ++i) {
        for (isa = 0; isa <= (int)uci_digest_isa_best(); ++isa) {
            for (form = UCI_FORM_FUSED; form <= UCI_FORM_FAR; ++form) {
                ns = tune_ns(again, uci_tuner_digests[i], (uci_digest_isa_t)isa, (uci_form_t)form, check->size, text);
                if (uci_tuner_form_applies(again, uci_tuner_digests[i], (uci_digest_isa_t)isa, (uci_form_t)form,
                                           check->size) &&
                    (ns > 0) && ((check->best_ns == 0) || (ns < check->best_ns))) {
                    check->best_ns = ns;
                    snprintf(check->best, sizeof(check->best), "%s", text);
                }
            }
        }
    }
}

static void tune_check_kernels(tune_result_t *result, const uci_profile_t *again)
{
    const uci_cost_t *copy = uci_profile_find_kernel(again, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED,
                                                     true);
    tune_checks_t *list    = tune_add_list(result, "digest, kernel and form of a copy");
    const uci_choice_t *choice;
    tune_check_t *check;
    uci_plan_t plan = {0};
    unsigned i;

    uci_tuner_make_plan(&result->profile, "", 0, &plan);
    for (i = 0; (list != NULL) && (copy != NULL) && (i < copy->count); ++i) {
        choice = uci_plan_choose(&plan, copy->points[i].size);
        check  = tune_add_check(list, copy->points[i].size);
        if (check == NULL) {
            return;
        }
        check->chosen_ns = tune_ns(again, choice->digest->id, choice->isa, choice->form, check->size, check->chosen);
        tune_find_best(again, check);
    }
}

uci_status_t tune_kernels(const tune_options_t *options, tune_result_t *result)
{
    tune_pass_t pass = {.number = 0, .passes = 2};
    uci_profile_t again;
    uci_status_t status;

    uci_profile_init(&again, "uci_tune", result->profile.machine.ucx);
    status = tune_measure(options, &pass, &result->profile);
    if (status == UCI_OK) {
        ++pass.number;
        status = tune_measure(options, &pass, &again);
    }
    if (status == UCI_OK) {
        tune_progress("digests and copies", 1, 1);
        tune_check_kernels(result, &again);
    }
    uci_profile_cleanup(&again);
    return status;
}
