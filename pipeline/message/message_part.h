/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the layer of messages keeps of a worker: recv.c and unexpected.c write it.
 */
#ifndef UCI_MESSAGE_PART_H_
#define UCI_MESSAGE_PART_H_

#include "util/list.h"

typedef struct uci_message_worker {
    uci_list_t probed;       /**< uci_message_t that the user holds by a handle */
    bool watches_deliveries; /**< see uci_edge.delivered */
} uci_message_worker_t;

UCI_INLINE void uci_message_worker_init(uci_message_worker_t *msgs)
{
    uci_list_init(&msgs->probed);
}

#endif
