/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways that large messages take, each behind one table of functions. A path has a file of its own and a row in path_table.c; what is
 * common to all is in send_common.h and recv_common.h. What does not come, or comes damaged, is for the ladder (repair.h).
 *
 *     described --start--> --CTS--> matched --> ... progress ... --> FIN, or `finish` --> release
 *                                      | false
 *                                      +--> stream.h, which is always possible
 */
#ifndef UCI_PATH_H_
#define UCI_PATH_H_

#include "verdict.h"
#include "transfer/recv_op_part.h"
#include "transfer/send_op_part.h"
#include "worker_state.h"

/** NULL where there is nothing to do. Who sets `path` of an operation has, of a send `matched`, of a receive `finish`. */
typedef struct uci_path_ops {
    uci_way_t way;                              /**< what records call it */
    unsigned (*progress)(uci_worker_t *worker); /**< @return how much has been done */
    void (*cleanup)(uci_worker_t *worker);      /**< UCX's part of the worker is gone */

    /** Sender: the message has been described, begin with what can be done before CTS. */
    void (*start)(uci_send_op_t *op);
    /** Sender: CTS has come. @return false: it has to go another way. */
    bool (*matched)(uci_send_op_t *op);
    /** Sender: the operation is about to go. */
    void (*release)(uci_send_op_t *op);
    /** Sender: another operation with @a peer is gone, and some of this path are in peer->queued. */
    void (*serve)(uci_peer_t *peer);
    /** Receiver: the message is verified, tell the sender. @return false: it did not come this way, FIN has to say it. */
    bool (*finish)(uci_recv_op_t *op);

    /** Sender, for fault injection: one of the chunks that lie where others can write to and have not been taken, whichever
     *  @a random says. @return its number; UINT32_MAX: there is none, or not all have been handed over. */
    uint32_t (*unread)(const uci_send_op_t *op, uint64_t random, void **data_p);
    /** For uci_dump_state(): what the path knows of it, a text that goes behind others. */
    void (*describe_send)(const uci_send_op_t *op, char *text, size_t size);
    void (*describe_recv)(const uci_recv_op_t *op, char *text, size_t size);
} uci_path_ops_t;

/** What a path has to know of an operation while it is the operation's path: a struct of its own, all zero at first. */
#define uci_path_state(_op, _type) \
    ({ \
        _Static_assert(sizeof(_type) <= sizeof((_op)->way.state), "path_state is too small"); \
        (_type *)(void *)(_op)->way.state; \
    })

#endif
