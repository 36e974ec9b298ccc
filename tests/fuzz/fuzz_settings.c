/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whatever a user may write: sizes, fault specifications, lines of uci.conf. The first byte chooses.
 */
#include "../../core/settings/settings.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_size(const char *text)
{
    size_t size;

    uci_parse_size(text, true, &size);
    uci_parse_size(text, false, &size);
}

/* What is printed of a specification is read back as the same */
static void try_fault(const char *text)
{
    uci_fault_spec_t spec, again;
    char error[64], printed[1024];
    FILE *stream;

    if ((uci_fault_parse(text, &spec, error, sizeof(error)) != UCI_OK) || !(spec.rate > 0)) {
        return;
    }
    stream = fmemopen(printed, sizeof(printed), "w");
    uci_fault_print(&spec, stream);
    fclose(stream);
    if ((uci_fault_parse(printed, &again, error, sizeof(error)) != UCI_OK) || (again.kinds != spec.kinds) ||
        (again.targets != spec.targets) || (again.seed != spec.seed) || (again.count != spec.count) ||
        (again.min != spec.min) || (again.max != spec.max) || (again.peer != spec.peer)) {
        abort();
    }
}

static void try_lines(char *text)
{
    FILE *unknown = fopen("/dev/null", "w");
    char *line, *rest;
    unsigned number = 0;

    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        uci_settings_read_line(line, ++number, unknown);
    }
    uci_settings_set_values();
    uci_settings_print(unknown, UCI_SETTINGS_PRINT_VALUE | UCI_SETTINGS_PRINT_DOC);
    fclose(unknown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size < 1) {
        return 0;
    }
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 3) {
    case 0:
        try_size(text);
        break;
    case 1:
        try_fault(text);
        break;
    default:
        try_lines(text);
        break;
    }
    free(text);
    return 0;
}
