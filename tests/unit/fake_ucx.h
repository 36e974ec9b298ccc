/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A UCX of the tests' own: any number of workers in one process, and between them a wire that does what the test says. Each message is
 * shown to the test before it goes, which may change it, hold it up, let others pass it, send it twice or not at all. Time is the
 * test's. Nothing is left to chance: the same calls and the same answers of the test bring the same run again.
 *
 * Tag messages are matched as UCX does it. Shared memory, keys and gets lead where UCX's would;
 * a key whose memory is gone ends a get with an error. Endpoints are freed when they are closed, so that a sanitizer sees late uses.
 *
 * Of a message that UCX holds, bytes are read when it arrives: until then its sender has to leave them as they are.
 *
 * Not thread-safe. All memory is the fake's, but for the data of a rendezvous and the targets of receives and gets.
 */
#ifndef UCI_TESTS_UNIT_FAKE_UCX_H_
#define UCI_TESTS_UNIT_FAKE_UCX_H_

#include "turn/worker.h"

#define FAKE_NODES   4  /**< workers at most */
#define FAKE_IDS     16 /**< ids of active messages, counted down from UCI_SEALED_AM_ID */
#define FAKE_REGIONS 1024

/** A request that a caller holds until it calls request_free */
typedef struct fake_request fake_request_t;

/** On its way */
typedef struct fake_message {
    struct fake_message *next;
    unsigned from, to; /**< nodes */
    uint64_t number;   /**< of those on this way, from 0 */
    bool am;           /**< else a tag message */
    bool rndv;         /**< the data stay where they are until they are fetched */
    unsigned id;       /**< of an active message */
    ucp_tag_t tag;
    size_t header_length; /**< of an active message */
    char *header;         /**< owned */
    size_t length;
    char *data;     /**< owned; of a rendezvous the sender's */
    uint64_t due;   /**< when it arrives, ns */
    uint64_t order; /**< of those that arrive at one time */
    bool passed;    /**< set by the test: others may overtake it */
    bool dropped;   /**< set by the test: it never arrives */
    bool held;      /**< set by the test: its sender is told that it has gone only when it has arrived */
    bool copy;      /**< one that the test has made */
    bool changed;   /**< set by the test: its bytes are not what was sent */
    const char *lent_header,
            *lent_data; /**< of one that is held: the caller's, which UCX may read as long as it holds it */
    fake_request_t *request;
} fake_message_t;

typedef struct fake_recv {
    struct fake_recv *next;
    void *buffer;
    size_t count;
    ucp_tag_t tag, mask;
    ucp_tag_recv_nbx_callback_t cb;
    void *user_data;
    void *request;
} fake_recv_t;

typedef struct fake_handler {
    ucp_am_recv_callback_t cb;
    void *arg;
} fake_handler_t;

typedef struct fake_node {
    unsigned number;
    bool alive;
    uint64_t uid;
    uci_worker_t *worker;
    uci_context_t context;
    uci_ep_t *eps[FAKE_NODES]; /**< the user's; NULL: closed */
    fake_handler_t handlers[FAKE_IDS];
    fake_message_t **arriving; /**< a heap by time, since there may be thousands */
    size_t arriving_count, arriving_room;
    fake_message_t *unexpected, **last; /**< tag messages that nobody has asked for */
    fake_recv_t *recvs, **recvs_end;
    fake_request_t *done, **done_end; /**< what has ended, and is told in the next turn */
    fake_request_t *fetches;          /**< under way */
    uint64_t sent[FAKE_NODES];        /**< messages, by where to */
    uint64_t last_due[FAKE_NODES];    /**< of what was sent there last and must not be overtaken */
} fake_node_t;

/** What the test does; each may be NULL */
typedef struct fake_hooks {
    void (*sent)(fake_message_t *message); /**< it is about to go */
    void (*arrived)(const fake_message_t *message);
    /** Bytes have been fetched from another node's memory: by a get, or a rendezvous. */
    void (*fetched)(unsigned from, unsigned to, char *bytes, size_t length);
    /** @return how long a fetch takes, 0: it is done within the call. */
    uint64_t (*fetch_time)(unsigned from, unsigned to);
} fake_hooks_t;

typedef struct fake_net {
    fake_node_t nodes[FAKE_NODES];
    unsigned count;
    uint64_t clock;         /**< ns; 0: the real one */
    const char *transports; /**< as UCX prints them, "posix/memory" */
    bool kernel_copy;       /**< cma beside them */
    bool no_rdma;           /**< memory can't be mapped */
    bool self_at_once;      /**< a message to oneself arrives within the call, as with UCX's `self` */
    unsigned burst;         /**< messages taken in one turn, at most */
    uint64_t on_wire;       /**< messages and fetches under way, and ends not told */
    fake_hooks_t hooks;
} fake_net_t;

extern fake_net_t fake_net;

/** Fill the table of UCX's functions, and begin with no nodes and no hooks at time @a clock. */
void fake_net_init(uint64_t clock);

/** A worker of UCI's; @a uid as UCX would give it. */
void fake_node_create(unsigned number, uint64_t uid, ucs_thread_mode_t mode, size_t buffered_max);

/** The worker goes, with all that is on its way to it. */
void fake_node_destroy(unsigned number);

/** Open an endpoint as the user does. @return what uci_ep_open() does. */
ucs_status_t fake_ep_open(unsigned from, unsigned to);

/** A turn of progress. @param look  one of those, else rare, in which UCI looks at what takes long, too. Workers don't help each other: they
 *  are to be taken for those of several processes. */
unsigned fake_node_turn(unsigned number, bool look);

/** @return when something arrives next at any node, UINT64_MAX: nothing is under way. */
uint64_t fake_net_due(void);

/** Send @a message once more, arriving at @a due; from hook `sent` only, and not of a rendezvous. @return the copy. */
fake_message_t *fake_message_repeat(const fake_message_t *message, uint64_t due);

/** The bytes of a message change to these many; new ones are 0. */
void fake_message_resize(char **bytes_p, size_t *length_p, size_t length);

#endif
