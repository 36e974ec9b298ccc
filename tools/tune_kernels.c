/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests and copies on this CPU.
 */
#include "calibrate.h"
#include "settings.h"
#include "tune.h"

#define TUNE_UNCACHED ((size_t)128 << 20) /* larger than the L3 most cores have for themselves */

static const size_t tune_sizes[]       = {64,        256,     1 << 10, 4 << 10,  16 << 10, 64 << 10,
                                          256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
static const size_t tune_sizes_quick[] = {64, 1 << 10, 8 << 10, 64 << 10, 1 << 20};

typedef struct tune_pass {
    unsigned number, passes;
} tune_pass_t;

static void tune_kernels_progress(void *arg, unsigned done, unsigned total)
{
    const tune_pass_t *pass = arg;

    tune_progress("digests and copies", pass->number * total + done, pass->passes * total);
}

static uci_status_t tune_measure(const tune_options_t *options, tune_pass_t *pass, uint32_t digests,
                                 uci_profile_t *profile)
{
    uci_calibrate_params_t params = {.sizes       = options->quick ? tune_sizes_quick : tune_sizes,
                                     .sizes_count = options->quick ? uci_array_size(tune_sizes_quick)
                                                                   : uci_array_size(tune_sizes),
                                     .rounds      = options->quick ? 9 : 31,
                                     .turn_ns     = options->quick ? 50000 : 150000,
                                     .digests     = digests,
                                     .uncached    = options->quick ? 0 : TUNE_UNCACHED,
                                     .progress    = tune_kernels_progress,
                                     .arg         = pass};

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
                if ((ns > 0) && ((check->best_ns == 0) || (ns < check->best_ns))) {
                    check->best_ns = ns;
                    snprintf(check->best, sizeof(check->best), "%s", text);
                }
            }
        }
    }
}

static void tune_check_kernels(tune_result_t *result, const uci_profile_t *again)
{
    const uci_cost_t *copy = uci_profile_find_kernel(&result->profile, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR,
                                                     UCI_FORM_FUSED, true);
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
        check->chosen_ns = tune_ns(again, choice->digest->id, uci_tuner_best_isa(&result->profile, choice->digest->id),
                                   choice->form, check->size, check->chosen);
        tune_find_best(again, check);
    }
}

uci_status_t tune_kernels(const tune_options_t *options, tune_result_t *result)
{
    tune_pass_t pass    = {.number = 0, .passes = 2};
    uint32_t candidates = 0;
    uci_profile_t again;
    uci_status_t status;
    unsigned i;

    for (i = 0; uci_tuner_digests[i] != UCI_DIGEST_NONE; ++i) {
        candidates |= 1u << uci_tuner_digests[i];
    }
    uci_profile_init(&again, "uci_tune", result->profile.machine.ucx);
    status = tune_measure(options, &pass, 0, &result->profile);
    if (status == UCI_OK) {
        ++pass.number;
        status = tune_measure(options, &pass, candidates, &again);
    }
    if (status == UCI_OK) {
        tune_progress("digests and copies", 1, 1);
        tune_check_kernels(result, &again);
    }
    uci_profile_cleanup(&again);
    return status;
}
