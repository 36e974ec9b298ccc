/* SPDX-License-Identifier: BSD-3-Clause
 *
 * UCX's configuration as UCX may print it.
 */
#include "../../ucx_plugin/attach/ucx_config.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uci_ucx_thresholds_t thresholds;

    memcpy(text, data, size);
    text[size] = '\0';
    uci_ucx_config_read_thresholds(text, &thresholds);
    free(text);
    return 0;
}
