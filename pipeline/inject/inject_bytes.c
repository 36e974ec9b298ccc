/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_bytes.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UCI_INJECT_STALE_SIZE (64ul << 10)

/* What went by before in this thread, for faults of kind stale; kept until the process ends */
static __thread char *uci_inject_older;

void uci_inject_remember(const void *data, size_t length)
{
    if (uci_inject_older == NULL) {
        uci_inject_older = calloc(1, UCI_INJECT_STALE_SIZE);
    }
    if (uci_inject_older != NULL) {
        memcpy(uci_inject_older, data, uci_min(length, UCI_INJECT_STALE_SIZE));
    }
}

const void *uci_inject_stale(size_t length)
{
    return (length <= UCI_INJECT_STALE_SIZE) ? uci_inject_older : NULL;
}

/* What is lost becomes zeros, and what is zero already a flipped bit */
void uci_inject_in_place(const uci_fault_t *fault, void *data, size_t length, const void *stale)
{
    uci_fault_t flip = {.kind = UCI_FAULT_BITFLIP, .random = fault->random};
    uint64_t before  = XXH3_64bits(data, length);
    size_t left      = uci_fault_apply(fault, data, length, stale);

    memset((char *)data + left, 0, length - left);
    if (XXH3_64bits(data, length) == before) {
        uci_fault_apply(&flip, data, length, NULL);
    }
}

void uci_inject_bytes(const uci_fault_t *fault, void *data, size_t length)
{
    uci_inject_in_place(fault, data, length, NULL);
}

void uci_inject_undo(unsigned count)
{
    for (; count > 0; --count) {
        uci_fault_undo();
    }
}
