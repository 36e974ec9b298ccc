/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of active messages. Each is one row, beside the function that takes it, and a word in the list below: the row is what is checked of a
 * message by its type alone, what handles it, what fault injection may do to it, and its line in docs/design.md, Active messages
 * (tests/doc_tables.py --write puts it there).
 *
 *     control.c: intact? --> dispatch.c: possible? (row) --> check --> check_receive --> take
 */
#ifndef UCI_AM_HANDLER_H_
#define UCI_AM_HANDLER_H_

#include "peer.h"
#include "worker_state.h"
#include "fault/fault.h"
#include "transfer/recv_op_part.h"
#include "wire.h"

/** All types. Numbers are in the rows, and in wire.h. */
#define UCI_AM_TYPES(_X) \
    _X(HELLO) \
    _X(ACK) \
    _X(CTS) \
    _X(DATA) \
    _X(FIN) \
    _X(REPAIR) \
    _X(GRANT) \
    _X(GONE) \
    _X(QUERY) \
    _X(TREE) \
    _X(LEAVES) \
    _X(SENT) \
    _X(BOX) \
    _X(LEAVE) \
    _X(MISSING) \
    _X(BYE) \
    _X(POOL) \
    _X(MAPPED) \
    _X(SLOT) \
    _X(SEGMENT) \
    _X(NODES) \
    _X(CLOSED)

/** An active message whose check is right, from a peer that is known. */
typedef struct uci_am {
    uci_peer_t *peer;
    const uci_am_hdr_t *hdr;
    const void *
            data; /**< its payload, aligned unless it is DATA, in memory that nobody else can write to; of SEGMENT what follows its header */
    size_t length;
    uint64_t seq; /**< the whole number of the message it is about */
    void *desc;   /**< SEGMENT: UCX's handle of what is to be fetched */
    bool kept;    /**< set by take(): `desc` is still needed */
} uci_am_t;

/** What it is about. */
typedef enum {
    UCI_AM_ABOUT_PEER, /**< no message */
    UCI_AM_ABOUT_SEND, /**< one of ours */
    UCI_AM_ABOUT_RECV  /**< one of the peer's */
} uci_am_about_t;

/** What UCX moves behind its header. */
typedef enum {
    UCI_AM_CARRIES_WORDS, /**< ours, which its check covers; sealed where all is */
    UCI_AM_CARRIES_CLEAR, /**< the same, never sealed: who can't open the record yet needs them */
    UCI_AM_CARRIES_BYTES, /**< of a user's message, which have digests of their own */
    UCI_AM_CARRIES_OFFER  /**< the same, to be fetched by UCX's rendezvous; words of ours follow its header */
} uci_am_carries_t;

#define UCI_AM_HIT(_target) (1u << UCI_FAULT_##_target)

typedef struct uci_am_handler {
    const char *name;
    uint16_t flags;    /**< that it may have */
    uint16_t grain;    /**< its payload is a multiple of, a power of two; never 0 */
    uint32_t min, max; /**< bytes of payload */
    uci_am_about_t about;
    uci_am_carries_t carries;
    bool later; /**< it names memory of its sender's, which may have closed since: taken when all that it has said since then has been heard */
    bool in_clear;                       /**< it is about memory in clear, which nobody offers where all is sealed */
    uint16_t hit;                        /**< UCI_AM_HIT() of the targets of fault injection that it is, or none */
    uint16_t special;                    /**< with any of these flags */
    uint16_t hit_special;                /**< it is these */
    uint64_t (*seq)(const uci_am_t *am); /**< the number it is about; NULL: the one nearest to hdr->seq */
    const char *(*check)(const uci_am_t *am); /**< what is wrong with it, for people, or NULL */
    const char *(*check_recv)(const uci_recv_op_t *op,
                              const uci_am_t *am); /**< the same, beside the receive it is about */
    void (*take)(
            uci_am_t *am); /**< it may come at a time when it is of no use (a repeated one does): then it is ignored */
} uci_am_handler_t;

/**
 * A row. The strings are for docs/design.md: who says it and when, its payload, what it is answered by, and what becomes of it when it is lost.
 * Those whose loss is found by asking again may be hit as `ack`, unless they are what is said again (REPAIR): were these lost every time, neither
 * side could tell that nothing helps. Of what is left out `about` is the peer, `carries` words, `max` no payload.
 */
#define UCI_AM_HANDLER(_name, _number, _when, _payload, _answer, _lost, ...) \
    _Static_assert(UCI_AM_##_name == (_number), "its number in wire.h"); \
    _Static_assert(sizeof(_when _payload _answer _lost) > 1, "documented"); \
    extern const uci_am_handler_t uci_am_##_name; \
    const uci_am_handler_t uci_am_##_name = {.name = #_name, __VA_ARGS__}

/** @return the row of a type, or NULL: there is no such type. */
UCI_INLINE const uci_am_handler_t *uci_am_handler(const uci_worker_t *worker, unsigned type)
{
    return uci_likely(type < UCI_AM_LAST) ? worker->calls.handlers[type] : NULL;
}

#endif
