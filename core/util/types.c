/* SPDX-License-Identifier: BSD-3-Clause */
#include "types.h"

const char *uci_status_string(uci_status_t status)
{
    /* from UCI_INPROGRESS downwards */
    static const char *const texts[] = {"operation in progress", "success",         "out of memory",
                                        "invalid parameter",     "no such element", "operation not supported",
                                        "input/output error",    "data corrupted",  "resource busy"};
    size_t i                         = (size_t)(UCI_INPROGRESS - (int)status);

    /* a value may come from outside, not from the enum */
    return (i < uci_array_size(texts)) ? texts[i] : "unknown status";
}
