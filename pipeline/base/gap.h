/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a link keeps of frames that can't be delivered: see link_recv.h.
 */
#ifndef UCI_GAP_H_
#define UCI_GAP_H_

#include "ucp/ucp_api.h"
#include "verdict.h"
#include "wire.h"
#include "util/seq_list.h"

/** A frame that came too early, or that is lost: then what there is of it, if anything. */
typedef struct uci_held {
    uci_seq_link_t at;
    uci_frame_hdr_t hdr;
    uci_reason_t lost;   /**< why; NONE: it is not */
    uci_way_t way;       /**< how the first damaged one came, of one that is lost */
    bool waited;         /**< see uci_gap_t; of one that is lost */
    uint64_t start_time; /**< of one that is lost: when it first came damaged; 0: it never came */
    unsigned refused;    /**< of one that is lost: as in uci_gap_t */
    size_t length;       /**< bytes that follow */
    char payload[] __attribute__((aligned(16)));
} uci_held_t;

_Static_assert(offsetof(uci_held_t, payload) % 16 == 0, "as good as malloc() makes it");

/** A frame whose payload came damaged. */
typedef struct uci_gap {
    uci_seq_link_t at;
    uci_frame_hdr_t hdr;
    uint64_t start_time;
    uci_way_t way;    /**< how it came */
    bool waited;      /**< it had been intact when it came, and was damaged where it was held */
    unsigned refused; /**< copies of it that came damaged as well */
    size_t length;    /**< bytes that came first */
    char payload[];
} uci_gap_t;

#endif
