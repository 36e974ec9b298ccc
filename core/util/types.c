/* SPDX-License-Identifier: BSD-3-Clause */
#include "types.h"

const char *uci_status_string(uci_status_t status)
{
    switch (status) {
    case UCI_OK:
        return "success";
    case UCI_INPROGRESS:
        return "operation in progress";
    case UCI_ERR_NO_MEMORY:
        return "out of memory";
    case UCI_ERR_INVALID_PARAM:
        return "invalid parameter";
    case UCI_ERR_NO_ELEM:
        return "no such element";
    case UCI_ERR_UNSUPPORTED:
        return "operation not supported";
    case UCI_ERR_IO:
        return "input/output error";
    case UCI_ERR_CORRUPT:
        return "data corrupted";
    case UCI_ERR_BUSY:
        return "resource busy";
    }

    return "unknown status"; /* a value that came from outside, not from the enum */
}
