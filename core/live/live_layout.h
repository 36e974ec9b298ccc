/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is in a live file (UCI_LIVE): statistics of one process that others read while it runs, and when it is gone.
 *
 *     offset 0          uci_live_header_t
 *     names_offset      names of the counters, UCI_LIVE_NAME bytes each: a reader knows by name, not by place
 *     blocks_offset     blocks of block_size bytes: uci_live_gauges_t, then the counters, 8 bytes each
 *
 * Block 0 counts what belongs to no worker; the others are given to workers one after the other. A block is never set back: what a
 * process has counted is the sum over all its blocks, whether a worker uses them or not. Numbers are in the byte order of the host
 * (a file of the other order has another magic number). Within one version what is behind the fields of today may grow.
 */
#ifndef UCI_LIVE_LAYOUT_H_
#define UCI_LIVE_LAYOUT_H_

#include "util/types.h"

#define UCI_LIVE_MAGIC    0x4556494c5f494355ul /* "UCI_LIVE" */
#define UCI_LIVE_VERSION  1u
#define UCI_LIVE_SUFFIX   ".live"
#define UCI_LIVE_NAME     32u
#define UCI_LIVE_WAITS    4u
#define UCI_LIVE_FILE_MAX ((size_t)1 << 20) /* a larger one is none */
#define UCI_LIVE_NO_RANK  (-1)

/** What its process says of itself; if it is gone all the same, it has not ended in an orderly way. */
typedef enum {
    UCI_LIVE_RUNNING, /**< has not ended, as far as it could say */
    UCI_LIVE_ENDED,   /**< returned from main(), or called exit() */
    UCI_LIVE_ABORTED, /**< UCI has ended it */
    UCI_LIVE_STATES
} uci_live_state_t;

typedef struct uci_live_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint64_t size; /**< of the file, when its blocks were counted last */
    uint32_t names_offset;
    uint32_t counters; /**< of each block, and so the number of names */
    uint32_t blocks_offset;
    uint32_t block_size;
    uint32_t blocks;
    uint32_t counters_offset; /**< in a block */
    uint32_t state;           /**< uci_live_state_t */
    uint32_t pid;
    int32_t rank;        /**< UCI_LIVE_NO_RANK: not known */
    int32_t job_size;    /**< ranks of the job; 0: not known */
    uint64_t start;      /**< of the process, in clock ticks after boot: tells it from a later one of the same number */
    uint64_t pid_space;  /**< inode of its pid namespace: what pid means */
    uint64_t begin_time; /**< of the file, in ns since the epoch */
    uint64_t end_time;   /**< 0: not yet */
    uint32_t unlisted;   /**< workers that have no block, for want of memory: not in the sum until they go */
    uint32_t uid;
    char host[64];
    char boot[40]; /**< boot id of the host: ticks after another boot say nothing */
    char job[320]; /**< "slurm:1234"; empty: none that it knows of */
    char program[64];
    char mode[16];
    char digest[16];
    char uci_version[32];
    char ucx_version[32];
    char revision[32]; /* the header of older builds ends in front of it */
    char library[256]; /**< the file that UCI's code is in; cut off, it keeps its end */
} uci_live_header_t;

/** Bytes of the header that every file has. */
#define UCI_LIVE_HEADER_MIN ((uint32_t)offsetof(uci_live_header_t, revision))

typedef enum {
    UCI_LIVE_WAIT_NONE,
    UCI_LIVE_WAIT_POSTED,    /**< a receive that nothing has come for */
    UCI_LIVE_WAIT_RECEIVING, /**< a message that is being received in chunks */
    UCI_LIVE_WAIT_SENDING,   /**< a message that has not been received yet */
    UCI_LIVE_WAIT_LOGGED,    /**< small messages that have not been acknowledged */
    UCI_LIVE_WAIT_KINDS
} uci_live_wait_kind_t;

/** One of those that a worker waits for. */
typedef struct uci_live_wait {
    uint32_t kind;  /**< uci_live_wait_kind_t */
    int32_t rank;   /**< of the peer in the job; UCI_LIVE_NO_RANK: not known, or any */
    uint32_t pid;   /**< 0: not known */
    uint32_t count; /**< of these, with this peer or not */
    uint64_t since; /**< ns since the epoch; 0: not known */
    uint64_t bytes; /**< of the message; 0: not known */
    char host[32];
    char what[64]; /**< tag, as the MPI means it */
} uci_live_wait_t;

/** State of a worker, as it was when it looked at its timers last: not of the same instant as the counters. */
typedef struct uci_live_gauges {
    uint64_t sequence; /**< written last, and read first: they are of one piece if it equals sequence_begun */
    uint64_t time;     /**< ns since the epoch; 0: never */
    uint64_t uid;      /**< of the worker that has the block; 0: none has */
    uint64_t log_bytes;
    uint64_t log_limit;
    uint64_t copy_bytes; /**< copies of large messages */
    uint64_t peers;
    uint64_t peers_mailbox; /**< of these, with a mailbox in shared memory */
    uint64_t posted;        /**< receives that nothing has come for */
    uint64_t unexpected;    /**< messages that no receive has asked for */
    uint64_t receiving;     /**< messages in chunks */
    uint64_t sending;
    uci_live_wait_t waits[UCI_LIVE_WAITS];
    uint64_t sequence_begun; /**< written first, and read last */
} uci_live_gauges_t;

/** Where the counters of a block are in files of this version of UCI; others may have them further behind. */
#define UCI_LIVE_COUNTERS_OFFSET ((uint32_t)UCI_ALIGN_UP_CONST(sizeof(uci_live_gauges_t), UCI_CACHE_LINE))

#endif
