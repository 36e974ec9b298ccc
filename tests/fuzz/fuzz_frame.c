/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as they may arrive: any bytes as a header, by active message or in a place of a mailbox; the first byte of the input says which,
 * and whether its check is made right.
 */
#include "base/frame.h"

#include <stdlib.h>

#include "base/wire_check.h"

#define FUZZ_SENDER   0x1234ul
#define FUZZ_RECEIVER 0x5678ul

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool true_of_it)
{
    if (!true_of_it) {
        abort();
    }
}

/* Of what passes, lengths can be followed */
static void check_content(const uci_frame_hdr_t *hdr, const uint8_t *payload, size_t left)
{
    uci_rndv_desc_t desc;

    if (uci_wire_check_frame(hdr) != NULL) {
        return;
    }
    demand((hdr->length <= UCI_FRAME_MAX) && (uci_digest_by_id(hdr->digest) != NULL));
    if ((hdr->kind == UCI_FRAME_RNDV) && (left >= sizeof(desc))) {
        memcpy(&desc, payload, sizeof(desc));
        if (uci_wire_check_desc(&desc) == NULL) {
            demand((desc.length > 0) && (desc.chunk_size > 0) &&
                   (uci_div_up(desc.length, desc.chunk_size) < UINT32_MAX));
        }
    }
}

/* A header that passes its check is what its sender has written, word for word, and no other one's */
static void check_header(uci_frame_t *frame, const uci_frame_hdr_t *hdr, uint64_t seed)
{
    uint32_t bytes = (uint32_t)XXH3_64bits_withSeed(&hdr->kind, sizeof(*hdr) - offsetof(uci_frame_hdr_t, kind), seed);

    demand(uci_frame_check(hdr, seed) == bytes);
    frame->seq = hdr->seq | 0xabcd00000000ul;
    uci_frame_write_hdr(frame, hdr->kind | ((uint32_t)hdr->digest << 8) | ((uint32_t)hdr->length << 16), hdr->ack,
                        hdr->tag, hdr->value, hdr->mark, seed);
    demand(uci_frame_hdr(frame)->check == bytes);
    if (hdr->check == bytes) {
        demand(memcmp(frame->wire, hdr, sizeof(*hdr)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uci_frame_hdr_t hdr;
    uci_frame_t *frame;
    uint64_t seed;

    if (size < 1 + sizeof(hdr)) {
        return 0;
    }
    uci_digest_init();
    memcpy(&hdr, data + 1, sizeof(hdr));
    seed = (data[0] & 1) ? hdr.mark : uci_frame_am_seed(FUZZ_SENDER, FUZZ_RECEIVER);
    if (data[0] & 2) {
        hdr.check = uci_frame_check(&hdr, seed);
    }
    frame        = aligned_alloc(UCI_CACHE_LINE, sizeof(*frame) + UCI_CACHE_LINE);
    frame->total = sizeof(hdr);
    check_header(frame, &hdr, seed);
    check_content(&hdr, data + 1 + sizeof(hdr), size - 1 - sizeof(hdr));
    free(frame);
    return 0;
}
