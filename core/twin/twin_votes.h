/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing what the twins of a process have received: for each message of each channel one value of each twin, and a
 * verdict when all that can come are there. No network, no clock. (RedMPI's comparison of replicas by message hashes:
 * Fiala et al., SC 2012; here by digests that exist anyway.)
 *
 * A channel is (rank of the sender, tag); its messages are numbered from 0. Each twin has indices of its own for its
 * channels, told once (define), so that a value takes an index, not a name. Values of a channel may come in any order
 * of numbers, and a twin may be far ahead of another. Numbers wrap around at 2^32, indices do not.
 *
 * Cost: adding a value is O(1), in memory that is touched in order as long as messages come in order; losing a twin is
 * O(all that waits). Memory: about 200 bytes for each channel ever used, and none more when another twin names it; what
 * waits for a twin, 32 bytes for each message, in a ring for each channel that doubles when needed and is given back when
 * nothing waits in it any more; with three twins 80 bytes for each message that waits for the third and of which the two differ.
 *
 * Belongs to one thread at a time.
 */
#ifndef UCI_CORE_TWIN_VOTES_H_
#define UCI_CORE_TWIN_VOTES_H_

#include "settings/twin_spec.h"

enum {
    /** How far a number may be ahead of all that a channel has room for: so many receives at once are not believed */
    UCI_TWIN_WINDOW = 1 << 20
};

#define UCI_TWIN_CHANNEL_NONE UINT32_MAX

/** What a twin says of one message. */
typedef struct uci_twin_value {
    uint64_t digest; /**< of the content */
    uint64_t length; /**< in bytes */
    uint32_t form;   /**< of the digest: digests of unlike forms can't be compared, lengths can */
} uci_twin_value_t;

typedef enum {
    UCI_TWIN_SAME,   /**< all values there are, two at least, are the same */
    UCI_TWIN_WRONG,  /**< one of three differs from two that are the same */
    UCI_TWIN_SPLIT,  /**< no majority: two of two differ, or no two of three are the same */
    UCI_TWIN_UNLIKE, /**< none that can be compared differ, but of some the forms are unlike */
    UCI_TWIN_ALONE   /**< one value, and no other twin is left that could have it */
} uci_twin_outcome_t;

typedef struct uci_twin_verdict {
    uci_twin_outcome_t outcome;
    int wrong;        /**< WRONG: which twin; else -1 */
    unsigned have;    /**< bit set of the twins that have said a value */
    uint32_t channel; /**< our index; UCI_TWIN_CHANNEL_NONE if we have said nothing of it */
    uint32_t number;  /**< in the channel */
    uint32_t source;
    uint64_t tag;
    void *held;                             /**< ours, as it was given with our value; NULL if we have said none */
    uci_twin_value_t values[UCI_TWINS_MAX]; /**< of those that `have` names; zeros for the others */
} uci_twin_verdict_t;

/** Called from within uci_twin_votes_add() and uci_twin_votes_lose(), for all verdicts but SAME without a held pointer (those are
 *  counted). It may call any function on these votes but uci_twin_votes_destroy(). */
typedef void (*uci_twin_verdict_cb_t)(void *arg, const uci_twin_verdict_t *verdict);

/** What was decided of a channel. */
typedef struct uci_twin_tally {
    uint32_t source;
    uint64_t tag;
    uint64_t agreed;  /**< SAME */
    uint64_t decided; /**< with any verdict */
} uci_twin_tally_t;

typedef void (*uci_twin_tally_cb_t)(void *arg, const uci_twin_tally_t *tally);

typedef struct uci_twin_votes uci_twin_votes_t;

/** @param twins  2 or 3. @param me  0..twins-1. @param max_bytes  of memory: what does not fit is refused.
 *  @return UCI_OK; UCI_ERR_INVALID_PARAM; UCI_ERR_NO_MEMORY. Errors of this and all below are logged, that there is no room once. */
uci_status_t uci_twin_votes_create(unsigned twins, unsigned me, size_t max_bytes, uci_twin_verdict_cb_t cb, void *arg,
                                   uci_twin_votes_t **votes_p);

/** Nothing is called for what still waits. NULL is allowed. */
void uci_twin_votes_destroy(uci_twin_votes_t *votes);

/** Our index of a channel, made if new; *new_p says so (it is to be told to the others). O(1), fast for the one asked for last.
 *  @return UCI_TWIN_CHANNEL_NONE: no memory, or we are lost. */
uint32_t uci_twin_votes_channel(uci_twin_votes_t *votes, uint32_t source, uint64_t tag, bool *new_p);

/** The next number of channel @a index of ours, which must exist: 0, 1, 2, ... */
uint32_t uci_twin_votes_next(uci_twin_votes_t *votes, uint32_t index);

/** What uci_twin_votes_next() would say of this channel: 0 if it is none of ours yet. */
uint32_t uci_twin_votes_peek(const uci_twin_votes_t *votes, uint32_t source, uint64_t tag);

/** Twin @a twin says that its channel @a index is this one. Indices of a twin are dense, from 0 on.
 *  @return UCI_OK; UCI_ERR_INVALID_PARAM: not the next index, a channel that it has already, or a twin that is ourselves, none or lost;
 *          UCI_ERR_NO_MEMORY. */
uci_status_t uci_twin_votes_define(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t source,
                                   uint64_t tag);

/** A value: of ours (our index), or of another twin (its index).
 *  @param held  ours: kept for the verdict; another twin's: NULL.
 *  @return UCI_OK; UCI_ERR_INVALID_PARAM: no such twin or channel, said before, or a number out of any window (who sends such
 *          things is not to be believed); UCI_ERR_NO_MEMORY: more than max_bytes, or none. After an error nothing has changed. */
uci_status_t uci_twin_votes_add(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t number,
                                const uci_twin_value_t *value, void *held);

/** Values of messages @a number, number + 1, ... of one channel, of which nothing is held: as above for each, but some times cheaper.
 *  @param like  length and form of all; its digest does not count. @param digests  @a count of them.
 *  @return as above; at an error those before it have been added. */
uci_status_t uci_twin_votes_add_run(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t number,
                                    const uci_twin_value_t *like, const uint64_t *digests, size_t count);

/** A twin says no more: what waits for it alone is decided without it, in order of channels (as they became known here) and
 *  numbers. What it has said still counts. Losing ourselves (we are at our end, and others may have more) is allowed.
 *  Again: nothing. */
void uci_twin_votes_lose(uci_twin_votes_t *votes, unsigned twin);

/** Messages that we have a value of and @a twin (another one, not lost) has none yet. */
uint64_t uci_twin_votes_waiting(const uci_twin_votes_t *votes, unsigned twin);

/** Messages decided as SAME. */
uint64_t uci_twin_votes_agreed(const uci_twin_votes_t *votes);

/** Was any message of this sender's that has content decided as SAME? O(channels). */
bool uci_twin_votes_has_agreed(const uci_twin_votes_t *votes, uint32_t source);

/** Call @a cb for each channel, in the order in which they became known here. */
void uci_twin_votes_visit(const uci_twin_votes_t *votes, uci_twin_tally_cb_t cb, void *arg);

#endif
