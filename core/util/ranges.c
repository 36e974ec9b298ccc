/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UCI_RANGES_FIRST 16 /* room of a list that grows, doubled from then on */

void uci_ranges_init(uci_ranges_t *ranges, uci_byte_range_t *list, size_t max)
{
    memset(ranges, 0, sizeof(*ranges));
    ranges->list = list;
    ranges->max  = (list == NULL) ? 0 : max;
}

void uci_ranges_init_growing(uci_ranges_t *ranges)
{
    uci_ranges_init(ranges, NULL, 0);
    ranges->grows = true;
}

void uci_ranges_cleanup(uci_ranges_t *ranges)
{
    if (ranges->grows) {
        free(ranges->list);
    }
    uci_ranges_init(ranges, NULL, 0);
}

static bool uci_ranges_grow(uci_ranges_t *ranges)
{
    size_t max             = uci_max(2 * ranges->max, (size_t)UCI_RANGES_FIRST);
    uci_byte_range_t *list = ranges->grows ? realloc(ranges->list, max * sizeof(*list)) : NULL;

    if (list == NULL) {
        return false;
    }
    ranges->list = list;
    ranges->max  = max;
    return true;
}

void uci_ranges_add(uci_ranges_t *ranges, uint64_t offset, uint64_t length)
{
    bool is_kept = (ranges->count <= ranges->max); /* the last one */

    if (length == 0) {
        return;
    }
    assert((ranges->count == 0) || (offset >= ranges->end));
    ranges->bytes += length;
    if ((ranges->count > 0) && (offset == ranges->end)) {
        if (is_kept) {
            ranges->list[ranges->count - 1].length += length;
        }
    } else {
        if ((ranges->count < ranges->max) || ((ranges->count == ranges->max) && uci_ranges_grow(ranges))) {
            ranges->list[ranges->count] = (uci_byte_range_t){offset, length};
        }
        ++ranges->count;
    }
    ranges->end = offset + length;
}
