/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Matching of messages to receives by 64-bit tags, as UCX does it: a receive (tag, mask) matches a message t when
 * ((t ^ tag) & mask) == 0; a message goes to the receive posted first, a receive takes the message that arrived first.
 *
 * Posted receives are in hash tables, one for each of up to UCI_MATCH_CLASSES masks in use, which are learned: MPIs use
 * two or three, none of which need be ~0. Receives with still other masks are in one list. Unexpected messages are in
 * a list of all, and in one hash table under the mask that receives search with.
 *
 * Cost: post, keep and take are O(1). Finding a receive looks into one bucket of each mask in use, finding a message
 * into one. That is O(1) however many entries there are, unless many of one tag share the bucket with the tag in
 * question (one chance in as many as there are buckets). O(n) are: receives with more masks than there are classes,
 * in the number of those; a search of messages whose mask lacks bits of the table's. When such searches are long, the
 * table changes over to their mask, but only after they took as many steps as that costs: alternating masks cost
 * about twice what they would with a table of neither. A table gets buckets only when a search in it is long: up to
 * about UCI_MATCH_SCAN entries, and for any number of one tag, a list is as good.
 *
 * Memory: a uci_match_t of less than 500 bytes, and nothing else while queues are short. Then, for each of the
 * UCI_MATCH_CLASSES + 1 tables, 32 to 64 bytes for each entry at the most there were when a search was long: at least
 * 1 KiB, at most 1 MiB, less for masks of few bits. They do not shrink. Without memory they stay as they are: slower,
 * never wrong. No operation fails.
 *
 * Receives may be withheld: posted, counted, in the order of posting, and not found, so that somebody else can decide what they are
 * matched to (twin_follow.h).
 *
 * Entries are members of their owners' structures, and are the owners' again as soon as they are taken. A uci_match_t
 * belongs to one thread at a time, and has pointers to itself: it must stay where it was initialized.
 */
#ifndef UCI_CORE_MATCH_H_
#define UCI_CORE_MATCH_H_

#include "util/list.h"

enum {
    UCI_MATCH_CLASSES  = 4, /**< masks of posted receives that get a table */
    UCI_MATCH_SCAN     = 4, /**< entries that do not match, after which a search counts as long */
    UCI_MATCH_MIN_BITS = 6, /**< the logarithm of the number of buckets, when a table first has any */
    UCI_MATCH_MAX_BITS = 16
};

/** Entries by tag & mask. Those that one tag could match under `mask` are in one bucket, in order. */
typedef struct uci_match_table {
    uint64_t mask;
    uint64_t factor;     /**< of the hash; 0 while there is one bucket only */
    uci_list_t *buckets; /**< `single`, or from the heap */
    size_t num_buckets;
    unsigned shift; /**< of the hash */
    uci_list_t single;
} uci_match_table_t;

/** Posted receives with the same mask; the last class has those of all other masks, in one bucket. */
typedef struct uci_match_class {
    uci_match_table_t table;
    size_t count;
} uci_match_class_t;

/** A posted receive. */
typedef struct uci_match_recv {
    uci_list_t link;
    uint64_t tag;
    uint64_t mask;
    uint64_t number;          /**< order of posting */
    uci_match_class_t *class; /**< private; NULL unless posted */
    void *withheld_by;        /**< of who has withheld it; not used otherwise */
} uci_match_recv_t;

/** An unexpected message. */
typedef struct uci_match_msg {
    uci_list_t link; /**< in its bucket */
    uci_list_t all;  /**< in the list of all, oldest first */
    uint64_t tag;
} uci_match_msg_t;

typedef struct uci_match {
    size_t recvs_count; /**< posted receives */
    size_t msgs_count;  /**< unexpected messages */

    /* private */
    uci_match_class_t *recent; /**< of the receive posted last */
    uint64_t next_number;
    uci_list_t all_msgs;
    uci_match_table_t msgs;
    size_t wasted; /**< steps of long searches that another mask of `msgs` would have saved */
    uci_match_class_t classes[UCI_MATCH_CLASSES + 1];
    uci_match_class_t withheld;
} uci_match_t;

/** Called by uci_match_visit_recvs(). */
typedef void (*uci_match_visitor_t)(void *arg, uci_match_recv_t *recv);

/** Allocates nothing. @return UCI_OK */
uci_status_t uci_match_init(uci_match_t *match);

/** Free the tables. Entries that are left are not touched; uci_match_recv_is_posted() is not valid for them. */
void uci_match_cleanup(uci_match_t *match);

/** Call @a visitor for each posted receive, in no particular order; it may take that receive, and must leave
 *  @a match alone otherwise. */
void uci_match_visit_recvs(uci_match_t *match, uci_match_visitor_t visitor, void *arg);

/** As uci_match_post(), but uci_match_find_recv() does not find it. */
void uci_match_withhold(uci_match_t *match, uci_match_recv_t *recv, uint64_t tag, uint64_t mask);

/** It is found from now on, as one that was posted when it was withheld. O(younger ones of its bucket). */
void uci_match_admit(uci_match_t *match, uci_match_recv_t *recv);

/** The class for receives with @a mask, which becomes the recent one. */
uci_match_class_t *uci_match_choose_class(uci_match_t *match, uint64_t mask);

/** The general case of uci_match_find_recv(): receives with several masks. */
uci_match_recv_t *uci_match_find_recv_any(uci_match_t *match, uint64_t tag);

/** The general case of a search in one class. @return the receive posted first of those that match, or NULL. */
uci_match_recv_t *uci_match_scan_recvs(uci_match_class_t *class, uint64_t tag);

/** The general case of uci_match_find_msg(). */
uci_match_msg_t *uci_match_scan_msgs(uci_match_t *match, uint64_t tag, uint64_t mask);

/** Does receive (@a tag, @a mask) match a message @a msg_tag? */
UCI_INLINE bool uci_match_is(uint64_t msg_tag, uint64_t tag, uint64_t mask)
{
    return ((msg_tag ^ tag) & mask) == 0;
}

/* The upper bits of a product depend on all bits of the tag: MPIs have ranks in some, tags in others */
UCI_INLINE uci_list_t *uci_match_bucket(const uci_match_table_t *table, uint64_t tag)
{
    return &table->buckets[((tag & table->mask) * table->factor) >> table->shift];
}

/** Needed before uci_match_recv_is_posted() of an entry that has never been posted, unless it is all zeros. */
UCI_INLINE void uci_match_recv_init(uci_match_recv_t *recv)
{
    recv->class = NULL;
}

/** Is it posted, not yet taken? Valid after uci_match_recv_init(), for an entry of zeros, and ever after. */
UCI_INLINE bool uci_match_recv_is_posted(const uci_match_recv_t *recv)
{
    return recv->class != NULL;
}

/** Post a receive, the youngest. @a recv must not be posted already; it need not be initialized. */
UCI_INLINE void uci_match_post(uci_match_t *match, uci_match_recv_t *recv, uint64_t tag, uint64_t mask)
{
    uci_match_class_t *class = match->recent;

    if (uci_unlikely(class->table.mask != mask)) {
        class = uci_match_choose_class(match, mask);
    }
    recv->tag    = tag;
    recv->mask   = mask;
    recv->number = match->next_number++;
    recv->class  = class;
    uci_list_add_tail(uci_match_bucket(&class->table, tag), &recv->link);
    ++class->count;
    ++match->recvs_count;
}

/** @return the receive posted first of those that match a message @a tag, or NULL. It stays posted. */
UCI_INLINE uci_match_recv_t *uci_match_find_recv(uci_match_t *match, uint64_t tag)
{
    uci_match_class_t *class = match->recent;
    uci_match_recv_t *recv;
    uci_list_t *bucket;

    if (match->recvs_count == 0) {
        return NULL;
    }
    if (uci_unlikely(class->count != match->recvs_count)) {
        return uci_match_find_recv_any(match, tag);
    }
    bucket = uci_match_bucket(&class->table, tag);
    if (uci_list_is_empty(bucket)) {
        return NULL;
    }
    recv = uci_container_of(bucket->next, uci_match_recv_t, link);
    if (uci_likely(uci_match_is(tag, recv->tag, recv->mask))) {
        return recv;
    }
    return uci_match_scan_recvs(class, tag);
}

/** Remove a posted receive: it was matched, or is cancelled. */
UCI_INLINE void uci_match_take_recv(uci_match_t *match, uci_match_recv_t *recv)
{
    recv->link.prev->next = recv->link.next;
    recv->link.next->prev = recv->link.prev;
    --recv->class->count;
    --match->recvs_count;
    recv->class = NULL;
}

/** Keep a message that no posted receive matched, the youngest. */
UCI_INLINE void uci_match_keep(uci_match_t *match, uci_match_msg_t *msg, uint64_t tag)
{
    msg->tag = tag;
    uci_list_add_tail(&match->all_msgs, &msg->all);
    uci_list_add_tail(uci_match_bucket(&match->msgs, tag), &msg->link);
    ++match->msgs_count;
}

/** @return the oldest message that a receive (@a tag, @a mask) matches, or NULL. It stays. */
UCI_INLINE uci_match_msg_t *uci_match_find_msg(uci_match_t *match, uint64_t tag, uint64_t mask)
{
    uci_match_msg_t *msg;
    uci_list_t *bucket;

    if (match->msgs_count == 0) {
        return NULL;
    }
    if (uci_likely((match->msgs.mask & ~mask) == 0)) {
        bucket = uci_match_bucket(&match->msgs, tag);
        if (uci_list_is_empty(bucket)) {
            return NULL;
        }
        msg = uci_container_of(bucket->next, uci_match_msg_t, link);
        if (uci_likely(uci_match_is(msg->tag, tag, mask))) {
            return msg;
        }
    }
    return uci_match_scan_msgs(match, tag, mask);
}

/** Remove a message. */
UCI_INLINE void uci_match_take_msg(uci_match_t *match, uci_match_msg_t *msg)
{
    msg->all.prev->next  = msg->all.next;
    msg->all.next->prev  = msg->all.prev;
    msg->link.prev->next = msg->link.next;
    msg->link.next->prev = msg->link.prev;
    --match->msgs_count;
}

/** All unexpected messages in the order of arrival; the current one may be taken in the body. */
#define uci_match_for_each_msg(_msg, _match) uci_list_for_each_safe(_msg, &(_match)->all_msgs, uci_match_msg_t, all)

/** All withheld receives in the order of posting; the current one may be taken or admitted in the body. */
#define uci_match_for_each_withheld(_recv, _match) \
    uci_list_for_each_safe(_recv, &(_match)->withheld.table.single, uci_match_recv_t, link)

UCI_INLINE bool uci_match_recv_is_withheld(const uci_match_t *match, const uci_match_recv_t *recv)
{
    return recv->class == &match->withheld;
}

#endif
