/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What turns of progress keep of a worker: worker.c, pace.c, dispatch.c, wakeup.c, resync.c and gauges.c write it.
 */
#ifndef UCI_TURN_PART_H_
#define UCI_TURN_PART_H_

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/** See wakeup.h */
typedef struct uci_wakeup {
    int set;     /**< the epoll descriptor, -1: this worker can't be armed */
    int timer;   /**< in the set; -1 until the worker is armed for the first time */
    bool given;  /**< the program's own set */
    bool failed; /**< there is no timer, which has been said */
    void *data;  /**< what epoll_wait() says of the timer */
} uci_wakeup_t;

/** See gauges.h */
typedef struct uci_gauge {
    uint64_t time;        /**< when they were written last, in ns; 0: never */
    uint64_t oldest;      /**< number of the receive that was the oldest one then */
    uint64_t oldest_time; /**< since when it has been, in ns */
} uci_gauge_t;

typedef struct uci_turn {
    unsigned count;      /**< twice the turns of progress; in one, that and one */
    unsigned pace;       /**< bits that the count skips at a turn's end: it counts as (pace + 1) / 2, see pace.h */
    uint64_t pace_time;  /**< when that was measured last, in ns */
    uint8_t ucx_rests;   /**< so many turns that find nothing are without UCX's part */
    bool own;            /**< in a turn: UCX has had its part */
    uint64_t check_time; /**< of the next look at operations that take long */
    uci_list_t later;    /**< messages that have come, and are taken when UCX has nothing for us, see dispatch.h */
    uci_wakeup_t wakeup;
    uci_gauge_t gauge;
} uci_turn_t;

#endif
