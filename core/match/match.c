/* SPDX-License-Identifier: BSD-3-Clause */
#include "match.h"

#include <stdlib.h>
#include <string.h>

#include "util/log.h"

/* 2^64 divided by the golden ratio: equal distances between tags spread evenly */
#define UCI_MATCH_FACTOR 0x9e3779b97f4a7c15ull

static void uci_match_table_init(uci_match_table_t *table)
{
    uci_list_init(&table->single);
    table->buckets     = &table->single;
    table->num_buckets = 1;
    table->shift       = 63;
}

/* Old buckets of a table */
static void uci_match_table_free(uci_match_table_t *table, uci_list_t *buckets)
{
    if (buckets != &table->single) {
        free(buckets);
    }
}

static void uci_match_table_clear(uci_match_table_t *table)
{
    size_t i;

    for (i = 0; i < table->num_buckets; ++i) {
        uci_list_init(&table->buckets[i]);
    }
}

/* Buckets worth having for so many entries, two for each; a mask of few bits has no use for many */
static unsigned uci_match_table_bits(const uci_match_table_t *table, size_t count)
{
    unsigned max = uci_min(__builtin_popcountll(table->mask), UCI_MATCH_MAX_BITS), bits = UCI_MATCH_MIN_BITS;

    while ((bits < max) && (((size_t)1 << bits) < 2 * count)) {
        ++bits;
    }
    return uci_min(bits, max);
}

/* Get buckets for so many entries, empty ones. Those before are left to the caller, and what is in them. */
static bool uci_match_table_grow(uci_match_table_t *table, size_t count)
{
    unsigned bits      = uci_match_table_bits(table, count);
    size_t num_buckets = (size_t)1 << bits;
    uci_list_t *buckets;

    if (num_buckets <= table->num_buckets) {
        return false;
    }
    buckets = aligned_alloc(UCI_CACHE_LINE, uci_align_up(num_buckets * sizeof(*buckets), UCI_CACHE_LINE));
    if (buckets == NULL) {
        uci_debug("no memory for %zu buckets: %zu remain", num_buckets, table->num_buckets);
        return false;
    }
    table->buckets     = buckets;
    table->num_buckets = num_buckets;
    table->shift       = 64 - bits;
    table->factor      = UCI_MATCH_FACTOR;
    uci_match_table_clear(table);
    return true;
}

uci_status_t uci_match_init(uci_match_t *match)
{
    size_t i;

    memset(match, 0, sizeof(*match));
    uci_list_init(&match->all_msgs);
    uci_match_table_init(&match->msgs);
    for (i = 0; i < uci_array_size(match->classes); ++i) {
        uci_match_table_init(&match->classes[i].table);
    }
    uci_match_table_init(&match->withheld.table);
    match->recent = &match->classes[0];
    return UCI_OK;
}

void uci_match_cleanup(uci_match_t *match)
{
    size_t i;

    uci_match_table_free(&match->msgs, match->msgs.buckets);
    for (i = 0; i < uci_array_size(match->classes); ++i) {
        uci_match_table_free(&match->classes[i].table, match->classes[i].table.buckets);
    }
    uci_match_init(match);
}

void uci_match_visit_recvs(uci_match_t *match, uci_match_visitor_t visitor, void *arg)
{
    size_t i, j;

    uci_match_for_each_withheld(recv, match)
    {
        visitor(arg, recv);
    }

    for (i = 0; i < uci_array_size(match->classes); ++i) {
        for (j = 0; j < match->classes[i].table.num_buckets; ++j) {
            uci_list_for_each_safe(recv, &match->classes[i].table.buckets[j], uci_match_recv_t, link)
            {
                visitor(arg, recv);
            }
        }
    }
}

uci_match_class_t *uci_match_choose_class(uci_match_t *match, uint64_t mask)
{
    uci_match_class_t *others = &match->classes[UCI_MATCH_CLASSES], *chosen = others, *class;

    for (class = match->classes; class < others; ++class) {
        if (class->table.mask == mask) {
            chosen = class;
            break;
        }
        if (class->count == 0) {
            chosen = class;
        }
    }
    if (chosen != others) {
        chosen->table.mask = mask; /* an empty table serves any mask */
    }
    match->recent = chosen;
    return chosen;
}

void uci_match_withhold(uci_match_t *match, uci_match_recv_t *recv, uint64_t tag, uint64_t mask)
{
    recv->tag    = tag;
    recv->mask   = mask;
    recv->number = match->next_number++;
    recv->class  = &match->withheld;
    uci_list_add_tail(&match->withheld.table.single, &recv->link);
    ++match->withheld.count;
    ++match->recvs_count;
}

void uci_match_admit(uci_match_t *match, uci_match_recv_t *recv)
{
    uci_match_class_t *class = uci_match_choose_class(match, recv->mask);
    uci_list_t *bucket = uci_match_bucket(&class->table, recv->tag), *place = bucket;

    uci_match_take_recv(match, recv);
    while ((place->prev != bucket) && (uci_container_of(place->prev, uci_match_recv_t, link)->number > recv->number)) {
        place = place->prev;
    }
    uci_list_add_tail(place, &recv->link);
    recv->class = class;
    ++class->count;
    ++match->recvs_count;
}

static UCI_NOINLINE void uci_match_grow_class(uci_match_class_t *class)
{
    size_t num_buckets  = class->table.num_buckets, i;
    uci_list_t *buckets = class->table.buckets;

    if (!uci_match_table_grow(&class->table, class->count)) {
        return;
    }
    for (i = 0; i < num_buckets; ++i) {
        uci_list_for_each_safe(recv, &buckets[i], uci_match_recv_t, link)
        {
            uci_list_add_tail(uci_match_bucket(&class->table, recv->tag), &recv->link);
        }
    }
    uci_match_table_free(&class->table, buckets);
}

UCI_INLINE uci_match_recv_t *uci_match_scan_class(uci_match_class_t *class, uint64_t tag)
{
    uci_list_t *bucket      = uci_match_bucket(&class->table, tag), *elem;
    uci_match_recv_t *found = NULL, *recv;
    size_t steps            = 0;

    for (elem = bucket->next; elem != bucket; elem = elem->next, ++steps) {
        recv = uci_container_of(elem, uci_match_recv_t, link);
        if (uci_match_is(tag, recv->tag, recv->mask)) {
            found = recv;
            break;
        }
    }
    if (uci_unlikely(steps > UCI_MATCH_SCAN) && (class->count > class->table.num_buckets)) {
        uci_match_grow_class(class);
    }
    return found;
}

uci_match_recv_t *uci_match_scan_recvs(uci_match_class_t *class, uint64_t tag)
{
    return uci_match_scan_class(class, tag);
}

uci_match_recv_t *uci_match_find_recv_any(uci_match_t *match, uint64_t tag)
{
    uci_match_class_t *class, *end = match->classes + uci_array_size(match->classes);
    uci_match_recv_t *oldest = NULL, *recv;

    for (class = match->classes; class < end; ++class) {
        if (class->count > 0) {
            recv = uci_match_scan_class(class, tag);
            if ((recv != NULL) && ((oldest == NULL) || (recv->number < oldest->number))) {
                oldest = recv;
            }
        }
    }
    return oldest;
}

/* Hash all messages under mask, in more buckets if there are to be more */
static void uci_match_rehash_msgs(uci_match_t *match, uint64_t mask)
{
    uci_list_t *buckets = match->msgs.buckets;
    bool is_same        = mask == match->msgs.mask;

    match->msgs.mask = mask;
    if (uci_match_table_grow(&match->msgs, match->msgs_count)) {
        uci_match_table_free(&match->msgs, buckets);
    } else if (is_same) {
        return;
    } else {
        uci_match_table_clear(&match->msgs);
    }
    match->wasted = 0;
    uci_match_for_each_msg(msg, match)
    {
        uci_list_add_tail(uci_match_bucket(&match->msgs, msg->tag), &msg->link);
    }
}

/* A search with mask took long: are more buckets, or others, worth their cost? */
static UCI_NOINLINE void uci_match_learn(uci_match_t *match, uint64_t mask, size_t steps)
{
    if (mask != match->msgs.mask) {
        match->wasted += steps;
        if (match->wasted <= (2 * match->msgs_count) + match->msgs.num_buckets) {
            return;
        }
    } else if (match->msgs_count <= match->msgs.num_buckets) {
        return;
    }
    uci_match_rehash_msgs(match, mask);
}

uci_match_msg_t *uci_match_scan_msgs(uci_match_t *match, uint64_t tag, uint64_t mask)
{
    bool hashed            = (match->msgs.mask & ~mask) == 0;
    uci_list_t *head       = hashed ? uci_match_bucket(&match->msgs, tag) : &match->all_msgs, *elem;
    uci_match_msg_t *found = NULL, *msg;
    size_t steps           = 0;

    for (elem = head->next; elem != head; elem = elem->next) {
        msg = hashed ? uci_container_of(elem, uci_match_msg_t, link) : uci_container_of(elem, uci_match_msg_t, all);
        if (uci_match_is(msg->tag, tag, mask)) {
            found = msg;
            break;
        }
        ++steps;
    }
    if (uci_unlikely(steps > UCI_MATCH_SCAN)) {
        uci_match_learn(match, mask, steps);
    }
    return found;
}
