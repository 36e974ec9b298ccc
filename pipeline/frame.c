/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <stdlib.h>

#include "log.h"

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

uint64_t uci_frame_user_length(uci_frame_kind_t kind, const void *payload, size_t length)
{
    uci_rndv_desc_t desc;

    if ((kind != UCI_FRAME_RNDV) || (length != sizeof(desc))) {
        return length;
    }
    memcpy(&desc, payload, sizeof(desc));
    return desc.length;
}

bool uci_frame_recover_hdr(const uci_frame_t *frame, uint64_t tag, size_t total, uci_frame_hdr_t *hdr_p)
{
    if (total >= sizeof(*hdr_p)) {
        memcpy(hdr_p, frame->wire, sizeof(*hdr_p));
        if (uci_frame_hdr_is_valid(hdr_p, tag)) {
            return true;
        }
    }
    if (total >= UCI_FRAME_OVERHEAD) {
        memcpy(hdr_p, frame->wire + total - sizeof(*hdr_p), sizeof(*hdr_p));
        return uci_frame_hdr_is_valid(hdr_p, tag);
    }
    return false;
}

void uci_frame_describe(uci_frame_t *frame, uint32_t ack, uint64_t uid, uci_frame_hdr_t *hdr_p)
{
    memcpy(hdr_p, frame->wire, sizeof(*hdr_p));
    hdr_p->seq = (uint32_t)frame->seq;
    hdr_p->ack = ack;
    hdr_p->uid = uid;
}
