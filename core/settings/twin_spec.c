/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_spec.h"

#include <limits.h>
#include <string.h>

/* What is made below the folder: "/<rank / 256>/<K>.<rank>.twin" and the ending of a temporary file */
#define UCI_TWIN_SPEC_NAME_MAX 512

const char *const uci_twins_mode_names[] = {"compare", "correct", NULL};

/* "1/3" and nothing else */
static bool uci_twin_spec_parse_number(const char *text, uci_twin_spec_t *spec)
{
    if ((strlen(text) != 3) || (text[1] != '/') || (text[0] < '0') || (text[0] > '9') || (text[2] < '0') ||
        (text[2] > '9')) {
        return false;
    }
    spec->twin = (unsigned)(text[0] - '0');
    spec->of   = (unsigned)(text[2] - '0');
    return true;
}

uci_status_t uci_twin_spec_parse(const char *text, uci_twin_spec_t *spec_p, char *error, size_t error_size)
{
    const char *comma    = strrchr(text, ',');
    uci_twin_spec_t spec = {NULL, 0, 0};

    if (*text == '\0') {
        *spec_p = spec;
        return UCI_OK;
    }
    if ((comma == NULL) || !uci_twin_spec_parse_number(comma + 1, &spec)) {
        snprintf(error, error_size, "expected FOLDER,K/N, as /scratch/twins,0/2 for the first of two twins");
        return UCI_ERR_INVALID_PARAM;
    }
    if ((spec.of < UCI_TWINS_MIN) || (spec.of > UCI_TWINS_MAX)) {
        snprintf(error, error_size, "there are 2 or 3 twins, not %u", spec.of);
        return UCI_ERR_INVALID_PARAM;
    }
    if (spec.twin >= spec.of) {
        snprintf(error, error_size, "twins are counted from 0: the last of %u is %u/%u", spec.of, spec.of - 1, spec.of);
        return UCI_ERR_INVALID_PARAM;
    }
    if ((comma == text) || ((size_t)(comma - text) >= PATH_MAX - UCI_TWIN_SPEC_NAME_MAX)) {
        snprintf(error, error_size,
                 (comma == text) ? "no folder is named in front of the comma" : "the name of the folder is too long");
        return UCI_ERR_INVALID_PARAM;
    }

    spec.folder = strndup(text, (size_t)(comma - text));
    if (spec.folder == NULL) {
        snprintf(error, error_size, "out of memory");
        return UCI_ERR_NO_MEMORY;
    }
    *spec_p = spec;
    return UCI_OK;
}

void uci_twin_spec_print(const uci_twin_spec_t *spec, FILE *stream)
{
    if (spec->folder != NULL) {
        fprintf(stream, "%s,%u/%u", spec->folder, spec->twin, spec->of);
    }
}
