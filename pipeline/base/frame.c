/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <stdlib.h>

#include "util/log.h"

const uint32_t uci_frame_class_size[UCI_FRAME_CLASSES] = {128, 256 + 64, 1024 + 64, 4096 + 64, 8192 + 64, 32768 + 64};

/* About 64 KiB a slab */
static const size_t uci_frame_class_per_slab[UCI_FRAME_CLASSES] = {256, 128, 56, 16, 8, 4};

void uci_frame_pool_init(uci_frame_pool_t *pool)
{
    unsigned cls;

    for (cls = 0; cls < UCI_FRAME_CLASSES; ++cls) {
        uci_pool_init(&pool->cls[cls], sizeof(uci_frame_t) + uci_frame_class_size[cls], uci_frame_class_per_slab[cls],
                      NULL, NULL, NULL);
    }
}

void uci_frame_pool_cleanup(uci_frame_pool_t *pool)
{
    unsigned cls;

    for (cls = 0; cls < UCI_FRAME_CLASSES; ++cls) {
        uci_pool_cleanup(&pool->cls[cls]);
    }
}

uci_frame_t *uci_frame_get_large(size_t total)
{
    uci_frame_t *frame = aligned_alloc(UCI_CACHE_LINE, uci_align_up(sizeof(*frame) + total, UCI_CACHE_LINE));

    if (frame == NULL) {
        uci_error("failed to allocate a frame of %zu bytes", total);
        return NULL;
    }
    frame->cls   = UINT8_MAX;
    frame->total = (uint32_t)total;
    return frame;
}

void uci_frame_put_large(uci_frame_t *frame)
{
    free(frame);
}

uci_frame_t *uci_frame_clone(uci_frame_pool_t *pool, const uci_frame_t *frame)
{
    uci_frame_t *clone = uci_frame_get(pool, frame->total);

    if (clone != NULL) {
        clone->peer  = frame->peer;
        clone->req   = NULL;
        clone->op    = NULL;
        clone->seq   = frame->seq;
        clone->total = frame->total;
        clone->flags = UCI_FRAME_IN_FLIGHT;
        memcpy(clone->wire, frame->wire, frame->total);
    }
    return clone;
}
