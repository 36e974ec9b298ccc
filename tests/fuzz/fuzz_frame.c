/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as they may arrive: any bytes, any length; the first byte of the input says whether a header is sealed.
 */
#include "frame.h"

#include <stdlib.h>

#define FUZZ_TAG 0x1234ul

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uci_frame_t *frame, size_t total)
{
    const uci_small_hdr_t *small = (const uci_small_hdr_t *)(const void *)frame->wire;
    uci_frame_hdr_t hdr;

    if (uci_small_hdr_is_present(small, total)) {
        uci_small_hdr_expand(small, 1, &hdr);
        if (!uci_frame_is_whole(&hdr, total)) {
            abort();
        }
    }

    if (uci_frame_recover_hdr(frame, FUZZ_TAG, total, &hdr) && !uci_frame_hdr_is_valid(&hdr, FUZZ_TAG)) {
        abort();
    }
}

/* Seal what the front, or the end, of the input says */
static void seal_at(uci_frame_t *frame, size_t total, size_t offset)
{
    uci_frame_hdr_t hdr;

    if (total >= sizeof(hdr)) {
        memcpy(&hdr, frame->wire + offset, sizeof(hdr));
        hdr.check = uci_frame_hdr_check(&hdr, FUZZ_TAG);
        memcpy(frame->wire + offset, &hdr, sizeof(hdr));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uci_frame_t *frame;
    size_t total;

    if (size < 1) {
        return 0;
    }
    total        = size - 1;
    frame        = aligned_alloc(UCI_CACHE_LINE, uci_align_up(sizeof(*frame) + total, UCI_CACHE_LINE));
    frame->total = (uint32_t)total;
    memcpy(frame->wire, data + 1, total);
    if (data[0] & 1) {
        seal_at(frame, total, 0);
    }
    if ((data[0] & 2) && (total >= sizeof(uci_frame_hdr_t))) {
        seal_at(frame, total, total - sizeof(uci_frame_hdr_t));
    }
    check(frame, total);
    free(frame);
    return 0;
}
