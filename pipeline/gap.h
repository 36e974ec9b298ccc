/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a link keeps of frames that can't be delivered: see link_recv.h.
 */
#ifndef UCI_GAP_H_
#define UCI_GAP_H_

#include "ucp_api.h"
#include "wire.h"
#include "list.h"

/** A frame that came too early, or that is lost: then what there is of it, if anything. */
typedef struct uci_held {
    uci_list_t link;
    uint64_t seq;
    uci_frame_hdr_t hdr;
    const char *lost;    /**< why, or NULL */
    uint64_t start_time; /**< of one that is lost: when it first came damaged; 0: it never came */
    unsigned refused;    /**< of one that is lost: as in uci_gap_t */
    size_t length;       /**< bytes that follow */
    char payload[];
} uci_held_t;

_Static_assert(offsetof(uci_held_t, payload) % 16 == 0, "as good as malloc() makes it");

/** A frame whose payload came damaged. */
typedef struct uci_gap {
    uci_list_t link;
    uint64_t seq;
    uci_frame_hdr_t hdr;
    uint64_t start_time;
    unsigned refused; /**< copies of it that came damaged as well */
    size_t length;    /**< bytes that came first */
    char payload[];
} uci_gap_t;

#endif
