/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All that happens in one small world, as it follows from a seed: its shape, the program that its workers run, and what the wire does. A
 * scenario that has been run knows which faults there were. They can be given back to it as a list, of which some are left out then, as
 * operations of the program can be: this is what shrinking needs.
 */
#ifndef UCI_TESTS_RANDOM_SCENARIO_H_
#define UCI_TESTS_RANDOM_SCENARIO_H_

#include <stdio.h>

#include "draw.h"
#include "tune/tuner.h"

/** Classes of faults, to be chosen from */
enum {
    FAULTS_CONTENT   = 1 << 0, /**< bytes change, in messages and in what is fetched */
    FAULTS_STALE     = 1 << 1, /**< a whole message has the content of an older one of its way */
    FAULTS_MEMORY    = 1 << 2, /**< bytes change in shared memory */
    FAULTS_REORDER   = 1 << 3,
    FAULTS_DUPLICATE = 1 << 4,
    FAULTS_DROP      = 1 << 5,
    FAULTS_REOPEN    = 1 << 6, /**< none: endpoints are closed, and opened again, in the middle of the program */
    FAULTS_LAST      = 1 << 7
};

#define FAULTS_RELIABLE (FAULTS_CONTENT | FAULTS_MEMORY) /**< on a network that loses nothing */

/** By bit, NULL-terminated */
extern const char *const faults_names[];

typedef enum {
    OP_SEND,
    OP_RECV,
    OP_PROBE,
    OP_MPROBE,
    OP_MESSAGE_RECV, /**< the oldest message that was probed and is held */
    OP_CANCEL,
    OP_ACTIVE, /**< an active message: `tag` chooses its flags, `mask` the length of its header */
    OP_PUT,    /**< on memory of the peer's, at `tag` in the node's slice */
    OP_GET,
    OP_ATOMIC, /**< `length` chooses which, `mask` is the operand; `sync`: on a word of all */
    OP_FLUSH,
    OP_STREAM_SEND,
    OP_STREAM_RECV, /**< `mask` chooses whether data are taken as they are, `sync` is WAITALL */
    OP_TURN,
    OP_WAIT, /**< `length` ns pass */
    OP_CLOSE,
    OP_OPEN,
    OP_LAST
} op_kind_t;

#define ONESIDED_MAX 8192u /* bytes of a put, or get */

typedef enum { FORM_CONTIG, FORM_IOV, FORM_GENERIC, FORM_GENERIC_WHOLE, FORM_LAST } form_t;

typedef struct op {
    op_kind_t kind;
    unsigned node;
    unsigned peer; /**< of SEND, CLOSE, OPEN; of CANCEL: which one */
    uint64_t tag, mask;
    uint64_t length; /**< of SEND; of the buffer of RECV */
    form_t form;
    bool sync;
    bool polled;      /**< its end is asked for; else a callback tells */
    bool by_callback; /**< done by the next callback of this node, or at the end */
} op_t;

typedef enum {
    FAULT_NONE,
    FAULT_FLIP,
    FAULT_BURST,
    FAULT_ZERO,
    FAULT_TRUNCATE,
    FAULT_STALE,
    FAULT_REORDER,
    FAULT_DUPLICATE,
    FAULT_DROP,
    FAULT_LAST
} fault_kind_t;

extern const char *const fault_names[];

typedef enum { SITE_MESSAGE, SITE_FETCH, SITE_MEMORY } site_t;

/** One fault: at which place, which one there, and what is drawn for the rest */
typedef struct fault {
    fault_kind_t kind;
    site_t site;
    unsigned from, to;
    uint64_t number;
    uint64_t seed;
} fault_t;

typedef struct scenario {
    uint64_t seed;
    unsigned classes; /**< FAULTS_* */

    /* shape */
    unsigned nodes;
    uint64_t uids[4];
    uci_path_t path;
    const char *transports;
    bool by_mailbox; /**< if the transports have shared memory */
    size_t chunk_size;
    size_t eager_max[4]; /**< by node */
    size_t buffered_max;
    uint64_t length_max; /**< of messages */
    bool sources;        /**< tags say who sends */
    bool threads;        /**< workers of UCS_THREAD_MODE_MULTI */
    bool no_rdma;
    bool self_at_once;
    bool kernel_copy; /* cma beside posix: large messages both ways are fetched */
    bool warm;        /**< all have exchanged a message before, without faults */
    bool leave_early; /**< endpoints are closed before all is received */
    bool ways;        /**< not by messages alone */
    bool flood;       /**< most of the program is messages from one to another, who is slow */
    uint64_t first;   /**< number of the first message between two */
    unsigned burst;
    uint64_t latency;  /**< ns, at most, as a rule */
    unsigned held;     /**< percent of messages that UCX holds until they arrive */
    unsigned rate;     /**< of faults, in 1/1024 */
    unsigned patience; /**< how often the same thing is hit */

    op_t *ops;
    size_t ops_count;

    bool listed; /**< these faults, and no others; else they are drawn, and noted here */
    fault_t *faults;
    size_t faults_count, faults_size;
} scenario_t;

/** @return a length like @a length, by which senders can be told from each other if tags don't say it. */
uint64_t scenario_length(const scenario_t *scenario, unsigned from, uint64_t length);

void scenario_draw(scenario_t *scenario, uint64_t seed, unsigned classes);
void scenario_free(scenario_t *scenario);
void scenario_note(scenario_t *scenario, const fault_t *fault);

void op_print(FILE *stream, const op_t *op);
void scenario_print(FILE *stream, const scenario_t *scenario);

/** @return the classes named in @a text ("content,stale"; "reliable"; "all"), 0: a name is not known. */
unsigned faults_parse(const char *text);
void faults_print(FILE *stream, unsigned classes);

#endif
