/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Live files: whatever is read is refused with a reason, or all that can be asked of it lies inside and can be printed.
 */
#include <stdlib.h>
#include <string.h>

#include "live/live_file.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_header(const uci_live_header_t *header)
{
    must_be_printable(header->host, sizeof(header->host));
    must_be_printable(header->boot, sizeof(header->boot));
    must_be_printable(header->job, sizeof(header->job));
    must_be_printable(header->program, sizeof(header->program));
    must_be_printable(header->mode, sizeof(header->mode));
    must_be_printable(header->digest, sizeof(header->digest));
    must_be_printable(header->uci_version, sizeof(header->uci_version));
    must_be_printable(header->ucx_version, sizeof(header->ucx_version));
}

static void ask_blocks(const uci_live_file_t *file)
{
    uci_live_gauges_t gauges;
    unsigned i, j;

    for (i = 0; i < file->header->blocks; ++i) {
        if (!uci_live_file_gauges(file, i, &gauges)) {
            continue;
        }
        for (j = 0; j < UCI_LIVE_WAITS; ++j) {
            if (gauges.waits[j].kind >= UCI_LIVE_WAIT_KINDS) {
                abort();
            }
            must_be_printable(gauges.waits[j].host, sizeof(gauges.waits[j].host));
            must_be_printable(gauges.waits[j].what, sizeof(gauges.waits[j].what));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy         = malloc((size > 0) ? size : 1); /* no byte more, for ASan to see */
    const char *reason = NULL;
    uci_live_file_t file;
    unsigned i;

    if (copy == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    if (uci_live_file_parse(copy, size, &file, &reason) != UCI_OK) {
        if ((reason == NULL) || (*reason == '\0')) {
            abort();
        }
        return 0;
    }
    if (file.fate >= UCI_LIVE_FATES) {
        abort();
    }
    ask_header(file.header);
    for (i = 0; i < file.header->counters; ++i) {
        must_be_printable(uci_live_file_name(&file, i), UCI_LIVE_NAME);
        (void)uci_live_file_sum(&file, i);
        if (i < 4) {
            (void)uci_live_file_value(&file, uci_live_file_name(&file, i));
        }
    }
    ask_blocks(&file);
    uci_live_file_cleanup(&file);
    return 0;
}
