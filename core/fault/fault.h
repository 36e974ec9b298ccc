/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault injector: damages bytes on their way, between the sender's digest and the receiver's check, as a
 * bad wire would. Reproducible: the n-th decision of a process depends only on seed, rank and n.
 *
 *     UCI_FAULT=rate=1e-3,kind=bitflip,target=payload,seed=1[,count=N][,after=N][,min=BYTES][,max=BYTES][,peer=RANK][,rank=R][,twin=K]
 *
 * kind and target take several values joined by '+' (one is drawn for each fault); `any` is all kinds, or
 * payload+header+tree+ack+memory. Targets `repair` and `region` damage the cure and are never part of `any`: with the
 * first at rate 1 nothing can heal, which is how the last rung of the ladder is tested; with the second no RDMA get
 * does, so that the rung after it must. Nor is `frame`, which no UCX does: a frame is lost, sent after the next one, or
 * twice. Nor is `leaf`: no wire does this, but the content of an older message can. Nor is `escape`: what has been verified is
 * damaged in the receiver's buffer, just before the program gets it, as a processor or a memory would that computes wrong. No digest
 * tells; a twin does.
 *
 * rate must be given; without the others, kind=bitflip, target=payload, seed=1, and every message to every peer.
 */
#ifndef UCI_FAULT_H_
#define UCI_FAULT_H_

#include <stdio.h>
#include "util/types.h"

typedef enum {
    UCI_FAULT_BITFLIP,  /**< one bit */
    UCI_FAULT_BURST,    /**< 2..32 adjacent bytes overwritten with others */
    UCI_FAULT_ZERO,     /**< an aligned block (up to 4 KiB) of zeros */
    UCI_FAULT_STALE,    /**< a block replaced by what this slot carried before */
    UCI_FAULT_SWAP,     /**< two blocks (chunks) exchanged */
    UCI_FAULT_TRUNCATE, /**< the tail is lost */
    UCI_FAULT_KIND_LAST
} uci_fault_kind_t;

typedef enum {
    UCI_FAULT_PAYLOAD, /**< the user's bytes: eager payload, data chunks */
    UCI_FAULT_HEADER,  /**< frame headers and chunk headers */
    UCI_FAULT_TREE,    /**< digests, roots and tree nodes */
    UCI_FAULT_ACK,     /**< acknowledgements and final reports */
    UCI_FAULT_MEMORY,  /**< what waits in UCI's own memory: slots, spans, copies. Of one message one place at most */
    UCI_FAULT_REPAIR,  /**< what repairs bring: chunks, grants, answers; not the requests for them */
    UCI_FAULT_REGION,  /**< what RDMA gets of a repair bring: another region, as after a stale registration */
    UCI_FAULT_LEAF,    /**< chunks, with digests made to fit: whole, and wrong. Only the tree's root tells */
    UCI_FAULT_FRAME,   /**< whole frames: lost, late or twice, whatever the kind */
    UCI_FAULT_ESCAPE,  /**< messages that have been verified and delivered: nothing of UCI's notices */
    UCI_FAULT_TARGET_LAST
} uci_fault_target_t;

extern const char *const uci_fault_kind_names[];   /* NULL-terminated */
extern const char *const uci_fault_target_names[]; /* NULL-terminated */

typedef struct uci_fault_spec {
    double rate;      /**< probability that one unit (message, chunk, header, ack) is hit, 0..1 */
    uint32_t kinds;   /**< bit set of uci_fault_kind_t */
    uint32_t targets; /**< bit set of uci_fault_target_t */
    uint64_t seed;
    uint64_t count;    /**< stop after so many faults; UINT64_MAX: no limit */
    uint64_t after;    /**< so many decisions are passed over first */
    uint64_t min, max; /**< only messages of min..max bytes */
    int64_t peer; /**< only messages to this rank, also where the receiver draws (gets); of `escape` from this rank; -1: all */
    int64_t rank; /**< only in the process of this rank; -1: in all */
    int64_t twin; /**< only in this twin; -1: in all */
} uci_fault_spec_t;

/**
 * Parse the text of UCI_FAULT. Empty or NULL gives a spec of rate 0.
 * @param error  receives, on failure, what is wrong and what is allowed (not logged here: the configuration
 *               parser names the variable).
 */
uci_status_t uci_fault_parse(const char *text, uci_fault_spec_t *spec_p, char *error, size_t error_size);

/** Print @a spec so that uci_fault_parse() reads it back; nothing for rate 0. */
void uci_fault_print(const uci_fault_spec_t *spec, FILE *stream);

/** A decided fault, to be applied by uci_fault_apply(). */
typedef struct uci_fault {
    uci_fault_kind_t kind;
    uint64_t random; /**< drawn with the decision; makes the application deterministic */
} uci_fault_t;

/**
 * Set the process's injector and start counting anew.
 * @param rank  of this process, -1 if unknown. Ranks differ under the same seed, and so do twins.
 * @param twin  which of its twins this process is, -1: there are none.
 * @return whether there can be faults: they are asked for, and in this rank and twin.
 */
bool uci_fault_init(const uci_fault_spec_t *spec, int64_t rank, int64_t twin);

/** Are faults injected in this process at all? Set by whoever calls uci_fault_init(). */
extern bool uci_fault_enabled;

/** Are they asked for, be it in another process of the job? Then what arrives is looked at to the last, so that each fault is accounted
 *  for. Set by uci_fault_init(). */
extern bool uci_fault_asked;

/** Is @a target injected at all? Cheap enough to guard a slow path. */
bool uci_fault_targets(uci_fault_target_t target);

/**
 * Draw: is this unit hit? Thread safe. Only units the spec aims at (target, length, peer) are decisions.
 * @param length  bytes of the user's message.
 * @param peer    the rank that it is for, -1 if unknown: of the peer where the sender draws, its own where the receiver does; of
 *                `escape` the sender's.
 * @return true if so; fault_p is set and the fault is counted (uci_fault_count).
 */
bool uci_fault_draw(uci_fault_target_t target, uint64_t length, int64_t peer, uci_fault_t *fault_p);

/**
 * Damage @a length bytes at @a data in place; at least one byte really changes (a block that is already zero
 * gets a flipped bit instead, and the same for a swap of equal blocks). Not so UCI_FAULT_TRUNCATE: it changes no byte, and the
 * caller, who loses the tail, sees to it that this is damage.
 * @param stale   length bytes of older content for UCI_FAULT_STALE, or NULL (then the data is rotated).
 * @return the new length: smaller than @a length for UCI_FAULT_TRUNCATE (never below 0), else the same. An empty
 *         block cannot be damaged: take the fault back with uci_fault_undo().
 */
size_t uci_fault_apply(const uci_fault_t *fault, void *data, size_t length, const void *stale);

/** Count one more: the last drawn fault damages a second unit as well. @return false: no more of them are asked for. */
bool uci_fault_once_more(void);

/** Faults drawn so far by this process. */
uint64_t uci_fault_count(void);

/** None have been: this process is a fork of one that has drawn them. Its decisions go on where that one was. */
void uci_fault_forget(void);

/** Keep that number in @a place as well, from now on; NULL: nowhere. */
void uci_fault_mirror(uint64_t *place);

/** Take back the last drawn fault (it could not be applied: nothing to damage). */
void uci_fault_undo(void);

#endif
