/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What goes to UCX by active message instead of what was handed over: a copy of the header, and of the data once these are hit.
 */
#ifndef UCI_INJECT_OUT_H_
#define UCI_INJECT_OUT_H_

#include "base/frame.h"
#include "link/control.h"

/** Where a message has been hit. */
typedef enum {
    UCI_INJECTED_WAY  = 1 << 0, /**< on its way, or in a slot or span */
    UCI_INJECTED_COPY = 1 << 1  /**< the copy it could be repaired from */
} uci_injected_t;

typedef struct uci_inject_out {
    ucp_send_nbx_callback_t cb; /**< of who has handed it over */
    void *user_data;
    const void *data; /**< as it was handed over, or `copy` */
    size_t length;
    char *copy; /**< NULL: none was needed */
    bool hit;
    unsigned faults; /**< in what is behind the header, or said of it: one of them is seen */
    size_t header_length;
    uci_am_hdr_t hdr; /**< and what follows it, of a message; nothing of a frame */
} uci_inject_out_t;

/** @return a copy of the header and where the data lie; NULL: no memory. */
uci_inject_out_t *uci_inject_out_create(const void *header, size_t header_length, const void *data, size_t length,
                                        const ucp_request_param_t *param);

void uci_inject_out_destroy(uci_inject_out_t *out);

/** The data become a copy, to be damaged. @return false: no memory. */
bool uci_inject_out_copy(uci_inject_out_t *out);

/** Maybe damage what a message that is not sealed holds, with a header that fits it: chunks, digests, nodes. */
void uci_inject_content(const uci_control_t *msg, uci_inject_out_t *out);

/** Maybe damage its header. */
void uci_inject_header(const uci_control_t *msg, uci_inject_out_t *out);

/** Is a message hit that is sealed? Its record is what is damaged then, whatever the target. */
bool uci_inject_is_record_hit(const uci_control_t *msg, uci_fault_t *fault_p);

/** What becomes of a frame as a whole. */
typedef enum {
    UCI_INJECT_IN_ORDER,
    UCI_INJECT_DROP,
    UCI_INJECT_LATE, /**< after the next one */
    UCI_INJECT_TWICE /**< and once more after the next one */
} uci_inject_order_t;

/** @param may_wait  it can be sent later; else it can only be dropped. */
uci_inject_order_t uci_inject_order(const uci_frame_t *frame, bool may_wait);

/**
 * Is a frame hit? @return a damaged copy of it, of *length_p bytes (malloc'ed), or NULL.
 * @param in_place  of the same length: it is for a box; else it may be a shorter one.
 */
char *uci_inject_frame(const uci_frame_t *frame, bool in_place, size_t *length_p);

/** The same of a frame in a record, which the fault is for. */
bool uci_inject_is_frame_hit(const uci_frame_t *frame, uci_fault_t *fault_p);

/** Maybe damage the payload of a frame in the log, which has been sent as it was. */
void uci_inject_log(uci_frame_t *frame);

#endif
