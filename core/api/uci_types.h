/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Types that core shares with programs: installed beside uci.h. What is here keeps its values and its layout.
 */
#ifndef UCI_PUBLIC_TYPES_H_
#define UCI_PUBLIC_TYPES_H_

#include <stdint.h>

/** Status of an operation; negative values are errors, as in UCX. */
typedef enum {
    UCI_OK                = 0,
    UCI_INPROGRESS        = 1,
    UCI_ERR_NO_MEMORY     = -1,
    UCI_ERR_INVALID_PARAM = -2,
    UCI_ERR_NO_ELEM       = -3,
    UCI_ERR_UNSUPPORTED   = -4,
    UCI_ERR_IO            = -5,
    UCI_ERR_CORRUPT       = -6,
    UCI_ERR_BUSY          = -7
} uci_status_t;

/** A piece of a buffer or file, in bytes. */
typedef struct uci_byte_range {
    uint64_t offset;
    uint64_t length;
} uci_byte_range_t;

#endif
