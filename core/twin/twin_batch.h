/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What twins say to each other, as bytes: batches of entries, filled in a buffer of fixed size at one side and read at the
 * other.
 *
 *     batch   head | entry | entry ...              multiples of 8 bytes, in the byte order of the machine
 *     entry   type, count, ... | more, by the type  (uci_twin_entry_t and what follows it)
 *
 * Values of one channel with numbers one after the other, one form and one length share an entry (run-length encoding of all
 * but the digests): 8 bytes for each such message, 32 for one by itself. A batch has a digest of all its bytes: for a peer that is
 * another build, and for what may happen to it before and after it is sent.
 *
 * A new type of entry: a structure here, its row in twin_batch.c, a function of uci_twin_batch_ops_t.
 */
#ifndef UCI_CORE_TWIN_BATCH_H_
#define UCI_CORE_TWIN_BATCH_H_

#include "twin_votes.h"

enum {
    UCI_TWIN_BATCH_MIN = 256,    /**< bytes of a buffer, at least: any entry fits into an empty one */
    UCI_TWIN_BATCH_MAX = 1 << 20 /**< and at most */
};

typedef enum {
    UCI_TWIN_ENTRY_DEFINE = 1, /**< a channel of the sender's */
    UCI_TWIN_ENTRY_VALUES = 2, /**< digests of messages it has received */
    UCI_TWIN_ENTRY_CHOICE = 3, /**< what a wildcard receive was matched to */
    UCI_TWIN_ENTRY_PROBE  = 4, /**< what a probe found */
    UCI_TWIN_ENTRY_ANSWER = 5, /**< what the system has told the sender's program: the time, random numbers */
    UCI_TWIN_ENTRY_DONE   = 6, /**< no more will come */
    UCI_TWIN_ENTRY_LAST
} uci_twin_entry_type_t;

/** In front of each entry. */
typedef struct uci_twin_entry {
    uint16_t type;  /**< uci_twin_entry_type_t */
    uint16_t count; /**< VALUES: digests that follow; else 0 */
} uci_twin_entry_t;

typedef struct uci_twin_define {
    uci_twin_entry_t entry;
    uint32_t index;  /**< uci_twin_votes_define() */
    uint32_t source; /**< rank */
    uint32_t zero;
    uint64_t tag;
} uci_twin_define_t;

/** entry.count digests follow, of messages number, number + 1, ... */
typedef struct uci_twin_values {
    uci_twin_entry_t entry;
    uint32_t channel; /**< the sender's index */
    uint32_t number;  /**< of the first */
    uint32_t form;
    uint64_t length; /**< of each message, in bytes */
    uint64_t digests[];
} uci_twin_values_t;

/** One message, by a name that all twins know. */
typedef struct uci_twin_message {
    uint64_t tag;
    uint32_t source; /**< rank; UCI_TWIN_SOURCE_NONE: no message */
    uint32_t number; /**< in its channel */
} uci_twin_message_t;

#define UCI_TWIN_SOURCE_NONE UINT32_MAX

typedef struct uci_twin_choice {
    uci_twin_entry_t entry;
    uint32_t number; /**< of the receive, among the wildcards of this tag and mask */
    uint64_t tag, mask;
    uci_twin_message_t message; /**< none: cancelled */
} uci_twin_choice_t;

typedef struct uci_twin_probe {
    uci_twin_entry_t entry;
    uint32_t number; /**< among all probes that found something */
    uint64_t tag, mask;
    uci_twin_message_t message;
    uint32_t removed; /**< 1: it was taken from the queue with it (MPI_Mprobe); 0 */
    uint32_t zero;
} uci_twin_probe_t;

/** UCI_TWINS_TIME: the answers of one kind of question are numbered from 0. What kinds and words mean is the business of who asks. */
typedef struct uci_twin_answer {
    uci_twin_entry_t entry;
    uint32_t kind; /**< below UCI_TWIN_ANSWER_KINDS */
    uint32_t number;
    uint32_t zero;
    uint64_t words[2];
} uci_twin_answer_t;

#define UCI_TWIN_ANSWER_KINDS 32u

typedef struct uci_twin_done {
    uci_twin_entry_t entry;
    uint32_t zero;
} uci_twin_done_t;

/** A batch being filled. Fields are private. */
typedef struct uci_twin_batch {
    uint8_t *bytes;
    size_t used, size;
    uci_twin_values_t *run; /**< the last entry, if it is one of values; else NULL */
    uint32_t run_next;      /**< the number that would go on with it */
    uint32_t number;        /**< batches sealed so far */
    unsigned twin;
} uci_twin_batch_t;

/** @param buffer  of @a size bytes, at a multiple of 8; the caller's, as long as the batch is used. Size: a multiple of 8,
 *                 UCI_TWIN_BATCH_MIN to UCI_TWIN_BATCH_MAX. @param twin  who says all that. */
void uci_twin_batch_init(uci_twin_batch_t *batch, void *buffer, size_t size, unsigned twin);

/** Nothing was put since the start, or since uci_twin_batch_next(). */
bool uci_twin_batch_is_empty(const uci_twin_batch_t *batch);

/* Add an entry. @return false: no room, and nothing has changed; seal and send it, then put this into the next. */
bool uci_twin_batch_put_define(uci_twin_batch_t *batch, uint32_t index, uint32_t source, uint64_t tag);
bool uci_twin_batch_put_value(uci_twin_batch_t *batch, uint32_t channel, uint32_t number,
                              const uci_twin_value_t *value);
bool uci_twin_batch_put_choice(uci_twin_batch_t *batch, uint64_t tag, uint64_t mask, uint32_t number,
                               const uci_twin_message_t *message);
bool uci_twin_batch_put_probe(uci_twin_batch_t *batch, uint64_t tag, uint64_t mask, uint32_t number,
                              const uci_twin_message_t *message, bool removed);
bool uci_twin_batch_put_answer(uci_twin_batch_t *batch, uint32_t kind, uint32_t number, const uint64_t words[2]);
bool uci_twin_batch_put_done(uci_twin_batch_t *batch);

/** Finish: number, length and digest. Nothing may be put before uci_twin_batch_next(). @return bytes to be sent, from the start of
 *  the buffer. */
size_t uci_twin_batch_seal(uci_twin_batch_t *batch);

/**
 * Visit the values of a batch that was just sealed here: our own, which need no check.
 * @return UCI_OK, or what @a values has returned; the visit ends there.
 */
uci_status_t uci_twin_batch_visit_values(const void *bytes, size_t length,
                                         uci_status_t (*values)(void *arg, const uci_twin_values_t *values), void *arg);

/** Start the next one, in @a buffer (of the same size; the one before, if it has been sent). */
void uci_twin_batch_next(uci_twin_batch_t *batch, void *buffer);

/** What is done with entries. A status other than UCI_OK ends the reading, and is what it returns. All must be set. The entries lie
 *  in the batch. */
typedef struct uci_twin_batch_ops {
    uci_status_t (*define)(void *arg, const uci_twin_define_t *define);
    uci_status_t (*values)(void *arg, const uci_twin_values_t *values);
    uci_status_t (*choice)(void *arg, const uci_twin_choice_t *choice);
    uci_status_t (*probe)(void *arg, const uci_twin_probe_t *probe);
    uci_status_t (*answer)(void *arg, const uci_twin_answer_t *answer);
    uci_status_t (*done)(void *arg, const uci_twin_done_t *done);
} uci_twin_batch_ops_t;

/**
 * Read a batch: all of it is checked before the first function is called.
 * @param bytes     at a multiple of 8. @param length  of what was received.
 * @param twin      that it must be of. @param number  how many were read of that twin before.
 * @param reason_p  set with UCI_ERR_INVALID_PARAM of this function's own: a constant text, what is wrong with it.
 * @return UCI_OK; UCI_ERR_INVALID_PARAM: not such a batch; what a function of @a ops returned (*reason_p is NULL then).
 */
uci_status_t uci_twin_batch_read(const void *bytes, size_t length, unsigned twin, uint32_t number,
                                 const uci_twin_batch_ops_t *ops, void *arg, const char **reason_p);

#endif
