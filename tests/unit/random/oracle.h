/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What must come of a program, whatever the wire does. It knows the messages that were sent, in their order, and the receives, in the
 * order in which they were posted, and judges:
 *
 *     - a receive that ends well holds the bytes of one message that was sent to this worker with a tag it takes; bytes behind the
 *       message are as they were; no message comes twice
 *     - one that is too short for its message consumes it, with UCS_ERR_MESSAGE_TRUNCATED
 *     - messages of one sender do not overtake each other: when a later one is received, each earlier one that the same receive
 *       would have taken has gone to a receive that was posted before
 *     - at last no receive waits for a message that is there, and all sends are over
 *
 * Which message it is, the bytes tell. Of a few bytes, several may be alike: then they are taken to have come in order.
 */
#ifndef UCI_TESTS_RANDOM_ORACLE_H_
#define UCI_TESTS_RANDOM_ORACLE_H_

#include "data.h"

#define ORACLE_MAX 1024 /**< messages, and receives, of one world */

typedef enum {
    VERDICT_OK,
    VERDICT_BYTES,   /**< other bytes than those of any message, or one came twice */
    VERDICT_ORDER,   /**< overtaken */
    VERDICT_STATUS,  /**< an operation ended with an error */
    VERDICT_TOUCHED, /**< memory that does not belong to the message */
    VERDICT_WAITS,   /**< for ever */
    VERDICT_PROBE,   /**< told of a message that is not there */
    VERDICT_LAST
} verdict_t;

extern const char *const verdict_names[];

typedef struct oracle_message {
    unsigned number;
    unsigned from, to;
    uint64_t tag, length;
    uint64_t first_bytes; /**< up to 8, zeros behind */
    bool done;            /**< sent */
    ucs_status_t status;
    int taken_by; /**< receive, -1: none */
} oracle_message_t;

typedef struct oracle_recv {
    unsigned node;
    uint64_t tag, mask;
    uint64_t capacity;
    uint64_t order; /**< when it could first match, among those of its node */
    bool probed;    /**< of a message that a probe has taken out: this is known of it */
    uint64_t probed_tag, probed_length;
    bool posted; /**< else only the probe has been made */
    bool done;
    ucs_status_t status;
    uint64_t from_tag, length; /**< as the user was told */
    uint64_t first_bytes;
    int message; /**< that it got, -1: not known, or none */
} oracle_recv_t;

typedef struct oracle {
    const scenario_t *scenario;
    oracle_message_t messages[ORACLE_MAX];
    oracle_recv_t recvs[ORACLE_MAX];
    unsigned messages_count, recvs_count;
    char text[512]; /**< what is wrong */
} oracle_t;

void oracle_begin(oracle_t *oracle, const scenario_t *scenario);

/** A receive has ended, as its record says; @a buffer is where it received. */
verdict_t oracle_received(oracle_t *oracle, unsigned number, const data_buffer_t *buffer);

/** Which messages went to which receives, as far as they are over. */
verdict_t oracle_assign(oracle_t *oracle);

/** After that: is there a receive, posted and pending, for which there is a message that nobody has got? @return it, or -1. */
int oracle_waiting(oracle_t *oracle);

/** After that, when nothing is under way: no message has been overtaken. */
verdict_t oracle_judge_order(oracle_t *oracle);

/** A probe says this. */
verdict_t oracle_probed(oracle_t *oracle, unsigned node, uint64_t tag, uint64_t mask, uint64_t from_tag,
                        uint64_t length);

#endif
