/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests and copies on this CPU.
 */
#include "tune/calibrate.h"
#include "tune.h"

#define TUNE_UNCACHED ((size_t)128 << 20) /* larger than the L3 most cores have for themselves */

/* Those in between powers of two are judged only: there the choice rests on a line between two points */
static const size_t tune_sizes[] = {64,       96,       256,      384,      1 << 10,   1536,      4 << 10, 6 << 10,
                                    16 << 10, 24 << 10, 64 << 10, 96 << 10, 256 << 10, 384 << 10, 1 << 20, 3 << 19,
                                    4 << 20,  6 << 20,  8 << 20,  16 << 20, 24 << 20,  64 << 20};
static const size_t tune_sizes_quick[] = {64, 96, 1 << 10, 1536, 8 << 10, 12 << 10, 64 << 10, 96 << 10, 1 << 20};

static void tune_kernels_progress(void *arg, unsigned done, unsigned total)
{
    tune_progress("digests and copies", done, total);
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

static uci_status_t tune_measure(const tune_options_t *options, uci_profile_t *profile, uci_profile_t *judgement)
{
    bool judged_only[uci_array_size(tune_sizes)];
    uci_calibrate_params_t params = {.sizes       = options->quick ? tune_sizes_quick : tune_sizes,
                                     .sizes_count = options->quick ? uci_array_size(tune_sizes_quick)
                                                                   : uci_array_size(tune_sizes),
                                     .judged_only = judged_only,
                                     .rounds      = options->quick ? 18 : 46,
                                     .turn_ns     = options->quick ? 50000 : 150000,
                                     .uncached    = options->quick ? 0 : TUNE_UNCACHED,
                                     .finals      = options->quick ? 50 : 202,
                                     .finalists   = tune_candidates(),
                                     .judgement   = judgement,
                                     .progress    = tune_kernels_progress};
    unsigned i;

    for (i = 0; i < params.sizes_count; ++i) {
        judged_only[i] = (params.sizes[i] & (params.sizes[i] - 1)) != 0;
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
    uci_plan_t plan = {0}, before = {0};
    unsigned i;

    uci_tuner_make_plan(&result->profile, "", 0, &plan);
    uci_tuner_make_plan(&result->before, "", 0, &before);
    for (i = 0; (copy != NULL) && (i < copy->count); ++i) {
        choice           = uci_plan_choose(&plan, copy->points[i].size);
        check            = tune_add_check(list, copy->points[i].size);
        check->chosen_ns = tune_ns(again, choice->digest->id, choice->isa, choice->form, check->size, check->chosen);
        choice           = uci_plan_choose(&before, copy->points[i].size);
        check->before_ns = tune_ns(again, choice->digest->id, choice->isa, choice->form, check->size, check->before);
        tune_find_best(again, check);
    }
}

uci_status_t tune_kernels(const tune_options_t *options, tune_result_t *result)
{
    uci_profile_t judgement;
    uci_status_t status;

    uci_profile_init(&judgement, "uci_tune", result->profile.machine.ucx);
    status = tune_measure(options, &result->profile, &judgement);
    if (status == UCI_OK) {
        tune_progress("digests and copies", 1, 1);
        tune_check_kernels(result, &judgement);
    }
    uci_profile_cleanup(&judgement);
    return status;
}
