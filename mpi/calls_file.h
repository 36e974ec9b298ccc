/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of a process about its calls of MPI (UCI_CALLS): mapped into memory, so that it holds what the process was in when it was killed, or hangs.
 * tools/jobreport/calls.py reads it. Numbers are of this machine, in tables of a fixed size; what is text is a line of JSON each:
 *
 *     {"place": 0, "call": "MPI_Send", "stack": ["/home/me/a.out+0x1234", ...]}      where in the program a call is
 *     {"comm": 0, "name": "MPI_COMM_WORLD", "ranks": [[0, 3]]}                          whom a communicator joins, as ranks of MPI_COMM_WORLD
 *     {"finding": "overlap", ...}                                                    what is wrong (check.h)
 */
#ifndef UCI_MPI_CALLS_FILE_H_
#define UCI_MPI_CALLS_FILE_H_

#include <stdio.h>

#include "util/json_writer.h"
#include "util/types.h"

#define UCI_CALLS_LAYOUT   4u
#define UCI_CALLS_THREADS  64u
#define UCI_CALLS_COMMS    256u
#define UCI_CALLS_PLACES   2048u
#define UCI_CALLS_SENDS    1024u /**< the last ones */
#define UCI_CALLS_PEERS    65536u
#define UCI_CALLS_WAITS    62u
#define UCI_CALLS_TEXT     (1u << 21) /**< bytes: places of 0.5 KiB or more */
#define UCI_CALLS_RESERVED (1u << 18) /**< of these, for what is wrong alone */

#define UCI_CALLS_NONE    (-1) /**< no place, no communicator; of a peer: any */
#define UCI_CALLS_FOREIGN (-2) /**< a peer that is not of MPI_COMM_WORLD */

/** A thread waits for this. Of what is not known, such as a request of a file's, all that may be is UCI_CALLS_NONE. */
typedef struct uci_calls_wait {
    int32_t peer; /**< rank of MPI_COMM_WORLD */
    int32_t tag;  /**< or UCI_CALLS_NONE */
    int32_t comm;
    int32_t place; /**< where the operation was begun */
    uint32_t receives;
    uint32_t collective; /**< which one on its communicator, from 1; 0: point to point */
} uci_calls_wait_t;

/** What it is that a thread is in. */
typedef enum {
    UCI_CALLS_OUTSIDE,
    UCI_CALLS_ALL,   /**< in a call that returns when all it waits for is there */
    UCI_CALLS_ANY,   /**< when anything is */
    UCI_CALLS_POLLS, /**< outside, but its last calls were tests of these, in turn perhaps, and nothing was there */
} uci_calls_state_t;

typedef struct uci_calls_thread {
    uint32_t tid; /**< 0: it has ended, or has not begun: whoever comes next may take the entry */
    uint32_t state;
    int32_t place;
    uint32_t count; /**< of all that it waits for; more than `waits` holds, perhaps */
    uint64_t since_ns;
    uint64_t outside_ns; /**< of UCI_CALLS_POLLS: the time since then that was not spent in these tests */
    uint64_t tested_ns;  /**< likewise: when its last test was */
    uci_calls_wait_t waits[UCI_CALLS_WAITS];
} uci_calls_thread_t;

typedef struct uci_calls_comm {
    uint64_t id;         /**< the same in all its processes; 0: it was not seen being made */
    uint64_t group;      /**< the same for all communicators of the same ranks */
    uint64_t collective; /**< that have been called on it */
} uci_calls_comm_t;

typedef struct uci_calls_place {
    uint64_t count, time_ns, longest_ns, bytes;
} uci_calls_place_t;

typedef struct uci_calls_sent {
    uint64_t bytes;
    int32_t place, peer, tag, comm;
} uci_calls_sent_t;

typedef struct uci_calls_peer {
    uint64_t messages, bytes;
} uci_calls_peer_t;

/** Where each table begins, and what of it is in use, stands in front. */
typedef struct uci_calls_head {
    char magic[8]; /**< "UCICALLS" */
    uint32_t layout;
    uint32_t pid;
    int32_t rank;
    uint32_t size;     /**< of MPI_COMM_WORLD */
    uint64_t begun_ns; /**< since the epoch, as all times */
    uint64_t ended_ns; /**< 0: MPI_Finalize has not been called */
    uint32_t checks;
    uint32_t threads, comms, places, peers; /**< in use */
    uint32_t padding;
    uint64_t sends; /**< ever: the last is at (sends - 1) % UCI_CALLS_SENDS */
    uint64_t text;  /**< bytes in use */
    uint64_t lost;  /**< lines, threads, places, or communicators for which there was no room */
    char host[64];
} uci_calls_head_t;

typedef struct uci_calls_map {
    uci_calls_head_t head;
    uci_calls_thread_t threads[UCI_CALLS_THREADS];
    uci_calls_comm_t comms[UCI_CALLS_COMMS];
    uci_calls_place_t places[UCI_CALLS_PLACES];
    uci_calls_sent_t sends[UCI_CALLS_SENDS];
    char text[UCI_CALLS_TEXT];
    uci_calls_peer_t peers[]; /**< by rank of MPI_COMM_WORLD */
} uci_calls_map_t;

/** NULL: calls are not watched. Tables are written by whoever has taken an entry; counters by atomic additions. */
extern uci_calls_map_t *uci_calls;

/** Make it. @return whether that was possible; else it was said why. */
bool uci_calls_open(const char *path, int rank, int size, bool checks);

/** @return the place of an entry that is taken, of @a limit; UCI_CALLS_NONE: there is none left, which is counted. Thread safe. */
int uci_calls_take(uint32_t *used_p, uint32_t limit);

/** Write a line, a JSON object: begin it, add its members, end it. One at a time: a lock is held between them. @return false: no memory, do not end it. */
bool uci_calls_line_begin(uci_json_t *json);

/** Likewise of one about what is wrong: for these a part of the text is reserved. Its first member is @a what. */
bool uci_calls_finding_begin(uci_json_t *json, const char *what);
void uci_calls_line_end(uci_json_t *json);

/** Nanoseconds since the epoch. */
uint64_t uci_calls_now(void);

#endif
