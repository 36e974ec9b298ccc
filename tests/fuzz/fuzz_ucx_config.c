/* SPDX-License-Identifier: BSD-3-Clause
 *
 * UCX's configuration as UCX may print it.
 */
#include "../../ucx_plugin/attach/ucx_config.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char value[128];

    memcpy(text, data, size);
    text[size] = '\0';
    uci_ucx_config_size(text, 8192);
    if (uci_ucx_config_get(text, "_RNDV_THRESH=", value, sizeof(value))) {
        uci_ucx_config_size(value, 8192);
    }
    free(text);
    return 0;
}
