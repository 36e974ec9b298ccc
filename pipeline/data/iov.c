/* SPDX-License-Identifier: BSD-3-Clause */
#include "iov.h"

#include <stdlib.h>

#include "util/log.h"
#include "util/types.h"

size_t uci_iov_length(const ucp_dt_iov_t *iov, size_t count)
{
    size_t i, length = 0;

    for (i = 0; i < count; ++i) {
        length += iov[i].length;
    }
    return length;
}

ucs_status_t uci_iov_index(const ucp_dt_iov_t *iov, size_t count, size_t *length_p, size_t **index_p)
{
    size_t *index = NULL;
    size_t i, length = 0;

    if (count > UCI_IOV_STEP) {
        index = malloc(uci_div_up(count, (size_t)UCI_IOV_STEP) * sizeof(*index));
        if (index == NULL) {
            uci_error("failed to allocate an index of %zu entries", count);
            return UCS_ERR_NO_MEMORY;
        }
    }
    for (i = 0; i < count; i += UCI_IOV_STEP) {
        if (index != NULL) {
            index[i / UCI_IOV_STEP] = length;
        }
        length += uci_iov_length(iov + i, uci_min(count - i, (size_t)UCI_IOV_STEP));
    }
    *length_p = length;
    *index_p  = index;
    return UCS_OK;
}

/* The last one remembered that is not behind `offset` */
static size_t uci_iov_nearest(const size_t *index, size_t count, size_t offset)
{
    size_t low = 0, high = uci_div_up(count, (size_t)UCI_IOV_STEP), middle;

    while (high - low > 1) {
        middle = low + ((high - low) / 2);
        if (index[middle] <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t uci_iov_find(const ucp_dt_iov_t *iov, size_t count, const size_t *index, size_t *offset_p)
{
    size_t near = (index != NULL) ? uci_iov_nearest(index, count, *offset_p) : 0;
    size_t left = *offset_p - ((index != NULL) ? index[near] : 0);
    size_t i;

    for (i = near * UCI_IOV_STEP; (i < count) && (left >= iov[i].length); ++i) {
        left -= iov[i].length;
    }
    *offset_p = left;
    return i;
}
