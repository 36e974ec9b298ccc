/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Profiles: whatever is read can be planned with, and is written and read back as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "settings/settings.h"
#include "tune/tuner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *write_text(const uci_profile_t *profile, size_t *length_p)
{
    FILE *stream;
    char *text;

    stream = open_memstream(&text, length_p);
    uci_profile_write(profile, stream);
    fclose(stream);
    return text;
}

static void plan(const uci_profile_t *profile)
{
    uci_plan_t plan = {0};
    unsigned i;

    uci_tuner_make_plan(profile, (profile->paths_count > 0) ? profile->paths[0].transports : "posix", UINT32_MAX,
                        &plan);
    if (plan.eager_max > 32768) {
        abort();
    }
    for (i = 0; i < UCI_PLAN_CLASSES; ++i) {
        if ((plan.choices[i].chunk_size == 0) || (plan.choices[i].digest->width != 64) ||
            (plan.choices[i].path >= UCI_PATH_LAST) || (plan.choices[i].form >= UCI_FORM_LAST)) {
            abort();
        }
    }
    for (i = 0; i < UCI_DIGEST_LAST; ++i) {
        if (uci_tuner_best_isa(profile, (uci_digest_id_t)i) > uci_digest_isa_best()) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uci_profile_t profile, again;
    size_t length;
    char *text;

    if (uci_settings.digest == NULL) {
        setenv("UCI_CONFIG_FILE", "", 1);
        uci_settings_read();
        uci_log_level = UCI_LOG_FATAL;
    }
    if (uci_profile_parse((const char *)data, size, "fuzz", &profile) != UCI_OK) {
        return 0;
    }
    plan(&profile);
    text = write_text(&profile, &length);
    if (uci_profile_parse(text, length, "again", &again) != UCI_OK) {
        abort();
    }
    if ((again.kernels_count != profile.kernels_count) || (again.paths_count != profile.paths_count)) {
        abort();
    }
    free(text);
    uci_profile_cleanup(&again);
    uci_profile_cleanup(&profile);
    return 0;
}
