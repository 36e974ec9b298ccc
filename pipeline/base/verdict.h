/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What has damaged a message: one cause, with the evidence for it. Decided by what was observed alone, by the first rule of this table
 * that holds. "Way" is what brought the first wrong bytes.
 *
 *     observed                                                     cause             why, and what else it may be
 *     ------------------------------------------------------------ ----------------  -------------------------------------------------------
 *     verified when it came, and differs where it waited           memory            of this host, or a stray store: nobody writes there
 *     the sender's own copy has not the digest any more            memory            of its host, likewise
 *     there was no memory; a content that no UCI sends             unknown           nothing was damaged
 *     the sender has digested its buffer again, and it differs     source_changed    no one but its program may write there; comes before
 *                                                                                    all that follows: what reads a buffer that changes brings
 *                                                                                    "wrong" bytes by every way, gets too
 *     UCX wrote to the receiver's buffer, where another receive    unknown           probably the program: two receives into the same memory, of
 *     was under way, and more than 64 bytes are wrong, or none                       which each brings what is wrong for the other
 *     the bytes are right, their digest is not                     memory            of the sender's host: what carries digests has a check
 *                                                                                    of its own, which passed
 *     fewer (or more) bytes than were sent                         ucx               it says how many it delivers
 *     UCX read the sender's buffer, more than 64 bytes are wrong,  unknown           probably the program once more, which has now put
 *     and its program was caught changing a source before                            back what was there
 *     the way is shared memory (mailbox, slots of the direct path) memory            of this host, or a stray store: no transport of UCX's
 *                                                                                    takes part; gets, which repair, may come wrong too, but not
 *                                                                                    with the same bytes
 *     a get brought a block of other bytes than the sender had     ucx               another region was read: registration, key, offset. (A
 *     just digested, or the same wrong ones as the way before                        flipped bit would be the transport's; a program that
 *                                                                                    writes and puts back everything can't be told from it)
 *     the wrong bytes are the right ones of another place          ucx               or the transport's firmware: put, or read, elsewhere
 *     answers, or the header of a chunk, did not pass their check  transport         active messages of UCI's own memory
 *     a frame by active message; the bounce path                   transport         between two buffers of UCI's
 *     all copies that were asked for came damaged                  transport         of a source that was the same each time
 *     a stream, or a get, and the sender was not asked             unknown           transport, or the program
 *     ... it was asked: its buffer is as digested; 64 bytes at     transport         (a program that writes and then puts back everything
 *     most are wrong                                                                 can't be told from this)
 *     ... as above, and more are wrong, or they were not seen      unknown           transport, or a wrong region that a second reading did
 *                                                                                    not meet, or such a program
 *     the root of the tree alone                                   unknown
 *     anything else                                                unknown
 */
#ifndef UCI_VERDICT_H_
#define UCI_VERDICT_H_

#include "forensics/forensics.h"

typedef enum {
    UCI_CAUSE_UNKNOWN,
    UCI_CAUSE_SOURCE_CHANGED,
    UCI_CAUSE_TRANSPORT,
    UCI_CAUSE_MEMORY,
    UCI_CAUSE_UCX,
    UCI_CAUSE_TYPES, /**< nothing is damaged: what was sent is not what is received (signed.h) */
    UCI_CAUSE_LAST
} uci_cause_t;

/** As records have them: "unknown", "source_changed", ... */
extern const char *const uci_cause_names[UCI_CAUSE_LAST];

/** How bytes came. */
typedef enum {
    UCI_WAY_UNKNOWN,
    UCI_WAY_MAILBOX, /**< a frame in a box */
    UCI_WAY_FRAME,   /**< a frame in an active message */
    UCI_WAY_DIRECT,  /**< slots in shared memory */
    UCI_WAY_STREAM,  /**< active messages from the sender's buffer */
    UCI_WAY_GET,     /**< UCX's rendezvous, from the sender's buffer into the receiver's */
    UCI_WAY_BOUNCE,  /**< the same, from and into memory of UCI's */
    UCI_WAY_LAST
} uci_way_t;

/** As records have them, "path": "frame", ... and "carrier": "mailbox", "am" or NULL. */
extern const char *const uci_way_paths[UCI_WAY_LAST];
extern const char *const uci_way_carriers[UCI_WAY_LAST];

/** Why a message could not be repaired. */
typedef enum {
    UCI_REASON_NONE,
    UCI_REASON_DETECT,          /**< UCI_MODE=detect */
    UCI_REASON_EXHAUSTED,       /**< all copies came damaged */
    UCI_REASON_NO_COPY,         /**< UCI_LOG_SIZE */
    UCI_REASON_COPY_DAMAGED,    /**< the sender's is as well */
    UCI_REASON_ANSWERS_DAMAGED, /**< no question was answered intact */
    UCI_REASON_CLOSED,          /**< the sender is gone, something is missing */
    UCI_REASON_CLOSED_DAMAGED,  /**< the same, and what is here is damaged */
    UCI_REASON_ROOT,            /**< of the tree */
    UCI_REASON_WAITED,          /**< damaged where it waited for its receive */
    UCI_REASON_NO_MEMORY,       /**< there was none to receive it */
    UCI_REASON_REFUSED,         /**< a content that no UCI sends */
    UCI_REASON_LAST
} uci_reason_t;

/** For people; "" for NONE. */
extern const char *const uci_reason_texts[UCI_REASON_LAST];

/** What is known of a message that did not arrive as it was sent. */
typedef struct uci_observation {
    uci_way_t way;       /**< that brought the first wrong bytes */
    uci_reason_t reason; /**< why it was not repaired */
    bool waited;         /**< it had been verified, and was damaged in this process's memory later */
    bool header;         /**< a chunk was dropped, for its header was damaged */
    bool compared;       /**< wrong bytes have been compared with the right ones */
    bool equal;          /**< and there was no difference */
    uci_damage_class_t damage;
    size_t span;              /**< bytes from the first wrong one to the last */
    uint64_t arrived, length; /**< bytes of what is damaged: that came, and that were sent */
    unsigned changed;         /**< chunks that the sender says its program has changed */
    unsigned caught;          /**< messages of this sender before that its program had changed */
    unsigned gets_wrong;      /**< gets that ended well, and brought other bytes than the sender had just digested */
    bool get_same;            /**< one of them brought what the first way had brought */
    bool get_compared;        /**< one of them has been compared with the right ones */
    uci_damage_class_t get_damage; /**< and this was the difference */
    bool elsewhere;                /**< the wrong bytes are right at `place` */
    uint64_t place;
    char overlap[128];      /**< another receive that was under way into the same memory, for people; "": none */
    const char *healed_by;  /**< what brought the right bytes, for people */
    const char *host;       /**< this one */
    const char *peer_host;  /**< "" if the sender is not known */
    const char *transports; /**< of the endpoint */
    const char *ports;      /**< errors of the RDMA ports of this host, for people; "": there are no ports */
} uci_observation_t;

/** @return the cause. @param evidence  a sentence that says what it is known by. Pure: nothing but @a seen counts. */
uci_cause_t uci_verdict_decide(const uci_observation_t *seen, char *evidence, size_t size);

#endif
