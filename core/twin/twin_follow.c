/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/log.h"
#include "forensics/mpi_tag.h"

enum {
    UCI_TWIN_FOLLOW_BUCKETS = 256,
    UCI_TWIN_FOLLOW_LOOKS   = 16 /* while something waits, until following is given up */
};

/* Wildcards of one tag and mask */
typedef struct uci_twin_key {
    uci_list_t link; /* in its bucket */
    uint64_t tag;    /* what of it the mask has */
    uint64_t mask;
    uint32_t posted;  /* so far */
    uci_list_t wilds; /* posted, in this order */
    uci_list_t early; /* uci_twin_early_t: choices of those that are not posted yet */
} uci_twin_key_t;

/* A wildcard receive that is posted; recv->withheld_by */
typedef struct uci_twin_wild {
    uci_list_t link;
    uci_twin_key_t *key;
    uci_match_recv_t *recv;
    uint32_t number;
    bool is_resolved;
    bool is_cancelled; /* by the user */
    uci_twin_message_t message;
} uci_twin_wild_t;

typedef struct uci_twin_early {
    uci_list_t link;
    uint32_t number;
    uci_twin_message_t message;
} uci_twin_early_t;

/* What a probe of the leader's found, in follow->finds */
typedef struct uci_twin_find {
    uci_list_t link;
    uint64_t tag, mask;
    uci_twin_message_t message;
    bool removed;
} uci_twin_find_t;

struct uci_twin_follow {
    uci_match_t *match;
    const uci_twin_follow_ops_t *ops;
    void *arg;
    uint64_t wait;
    bool is_leader;
    bool is_over;
    bool is_told;          /* choices that were waited for */
    bool is_holding;       /* messages wait for a choice, or for the one that was chosen */
    uint64_t holding_time; /* since when, as far as uci_twin_follow_check() has seen; 0: not */
    uint64_t look_time;    /* when it looks again whether they still do */
    uint64_t denied_time;  /* of the first probe that was denied a message, since one was not; 0: none */
    uint64_t denied_last;
    uint32_t finds_count; /* told, or been told */
    uci_list_t finds;     /* that no probe of ours has asked for yet */
    uci_list_t keys[UCI_TWIN_FOLLOW_BUCKETS];
    uci_twin_follow_counts_t counts;
};

static const uci_twin_message_t uci_twin_no_message = {.source = UCI_TWIN_SOURCE_NONE};

static void *uci_twin_follow_alloc(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL) {
        uci_error("failed to allocate %zu bytes", size);
    }
    return memory;
}

/* By the highest bits of the product, on which all bits of a tag have their part: Open MPI's are in its upper ones */
static uci_list_t *uci_twin_key_bucket(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask)
{
    uint64_t hash = (tag ^ (mask >> 7) ^ mask) * 0x9e3779b97f4a7c15ull;

    return &follow->keys[(hash >> 56) % UCI_TWIN_FOLLOW_BUCKETS];
}

/* The key of a tag and mask, made if it is new; NULL: no memory */
static uci_twin_key_t *uci_twin_key_get(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask)
{
    uci_list_t *bucket = uci_twin_key_bucket(follow, tag & mask, mask);
    uci_twin_key_t *made;

    uci_list_for_each(key, bucket, uci_twin_key_t, link)
    {
        if ((key->tag == (tag & mask)) && (key->mask == mask)) {
            return key;
        }
    }
    made = uci_twin_follow_alloc(sizeof(*made));
    if (made != NULL) {
        made->tag  = tag & mask;
        made->mask = mask;
        uci_list_init(&made->wilds);
        uci_list_init(&made->early);
        uci_list_add_tail(bucket, &made->link);
    }
    return made;
}

static void uci_twin_wild_free(uci_twin_wild_t *wild)
{
    uci_list_del(&wild->link);
    free(wild);
}

/* A wildcard is posted no longer */
static void uci_twin_wild_take(uci_twin_follow_t *follow, uci_match_recv_t *recv)
{
    uci_twin_wild_t *wild = recv->withheld_by;

    uci_match_take_recv(follow->match, recv);
    uci_twin_wild_free(wild);
}

static bool uci_twin_message_is_none(const uci_twin_message_t *message)
{
    return message->source == UCI_TWIN_SOURCE_NONE;
}

/* The message of a channel that is matched next */
static uci_twin_message_t uci_twin_follow_next(const uci_twin_follow_t *follow, uint32_t source, uint64_t tag)
{
    return (uci_twin_message_t){.tag = tag, .source = source, .number = follow->ops->next(follow->arg, source, tag)};
}

static bool uci_twin_message_is(const uci_twin_message_t *a, const uci_twin_message_t *b)
{
    return (a->tag == b->tag) && (a->source == b->source) && (a->number == b->number);
}

/*
 * Which receive a message is for
 */

/* Something that waited for the leader goes on */
static void uci_twin_follow_moved(uci_twin_follow_t *follow)
{
    follow->holding_time = 0;
}

/* The receive for the next message of a channel. All that come later of that channel, and wait, would have the same one. */
static uci_match_recv_t *uci_twin_follow_choose(uci_twin_follow_t *follow, uint32_t source, uint64_t tag)
{
    uci_match_recv_t *exact    = uci_match_find_recv(follow->match, tag);
    uci_twin_message_t message = uci_twin_follow_next(follow, source, tag);
    bool is_passed             = false;

    uci_match_for_each_withheld(recv, follow->match)
    {
        const uci_twin_wild_t *wild = recv->withheld_by;

        if ((exact != NULL) && (exact->number < recv->number)) {
            break;
        }
        if (!uci_match_is(tag, recv->tag, recv->mask)) {
            continue;
        }
        if (follow->is_leader || (wild->is_resolved && uci_twin_message_is(&wild->message, &message))) {
            return recv;
        }
        if (!wild->is_resolved) {
            follow->is_holding = true;
            return NULL;
        }
        is_passed = true;
    }
    follow->is_holding |= is_passed && (exact == NULL);
    return exact;
}

/* It gets this message, which is the next one of its channel. It is posted no longer. */
static void uci_twin_follow_take(uci_twin_follow_t *follow, uci_match_recv_t *recv, const uci_twin_message_t *message)
{
    uci_twin_wild_t *wild = recv->withheld_by;

    if (!uci_match_recv_is_withheld(follow->match, recv)) {
        uci_match_take_recv(follow->match, recv);
        return;
    }
    if (follow->is_leader) {
        follow->ops->choice(follow->arg, wild->key->tag, wild->key->mask, wild->number, message);
    } else {
        ++follow->counts.followed;
        uci_twin_follow_moved(follow);
    }
    uci_twin_wild_take(follow, recv);
}

static void uci_twin_follow_deliver(uci_twin_follow_t *follow, uci_match_msg_t *msg, uci_match_recv_t *recv)
{
    uci_twin_message_t message = uci_twin_follow_next(follow, follow->ops->source(follow->arg, msg), msg->tag);

    uci_twin_follow_take(follow, recv, &message);
    follow->ops->deliver(follow->arg, msg, recv);
}

/* Something is known that was not: give what waits to whom it is for. One walk in the order of arrival is enough: what a message takes helps
 * only those that come later in its channel. */
static void uci_twin_follow_settle(uci_twin_follow_t *follow)
{
    follow->is_holding = false;
    if (follow->match->recvs_count == 0) {
        return;
    }
    uci_match_for_each_msg(msg, follow->match)
    {
        uci_match_recv_t *recv = uci_twin_follow_choose(follow, follow->ops->source(follow->arg, msg), msg->tag);

        if (recv != NULL) {
            uci_twin_follow_deliver(follow, msg, recv);
        }
    }
}

/* @return the message of this name, if it is here and the next one of its channel; or NULL */
static uci_match_msg_t *uci_twin_follow_find(uci_twin_follow_t *follow, const uci_twin_message_t *message)
{
    uci_match_msg_t *found = uci_match_find_msg(follow->match, message->tag, UINT64_MAX);

    if ((found == NULL) || (follow->ops->next(follow->arg, message->source, message->tag) != message->number)) {
        return NULL;
    }
    if (follow->ops->source(follow->arg, found) == message->source) {
        return found;
    }
    uci_match_for_each_msg(msg, follow->match) /* one tag of two senders: no MPI's */
    {
        if ((msg->tag == message->tag) && (follow->ops->source(follow->arg, msg) == message->source)) {
            return msg;
        }
    }
    return NULL;
}

/* The leader has cancelled it. We do when our user does. */
static void uci_twin_wild_cancel(uci_twin_follow_t *follow, uci_twin_wild_t *wild)
{
    uci_match_recv_t *recv = wild->recv;

    if (wild->is_cancelled) {
        uci_twin_wild_take(follow, recv);
        follow->ops->cancelled(follow->arg, recv);
    }
}

/* Do what choices that were told make possible: before anything else, since what waits comes before what comes next */
static void uci_twin_follow_go_on(uci_twin_follow_t *follow)
{
    if (uci_likely(!follow->is_told) || follow->is_over) {
        return;
    }
    follow->is_told = false;
    uci_twin_follow_moved(follow);
    uci_match_for_each_withheld(recv, follow->match)
    {
        uci_twin_wild_t *wild = recv->withheld_by;

        if (wild->is_resolved && uci_twin_message_is_none(&wild->message)) {
            uci_twin_wild_cancel(follow, wild);
        }
    }
    uci_twin_follow_settle(follow);
}

uci_match_recv_t *uci_twin_follow_arrived(uci_twin_follow_t *follow, uint32_t source, uint64_t tag)
{
    uci_twin_message_t message;
    uci_match_recv_t *recv;

    uci_twin_follow_go_on(follow);
    recv = uci_twin_follow_choose(follow, source, tag);
    if (recv != NULL) {
        message = uci_twin_follow_next(follow, source, tag);
        uci_twin_follow_take(follow, recv, &message);
    }
    return recv;
}

static bool uci_twin_follow_is_active(const uci_twin_follow_t *follow, uint64_t mask)
{
    return !follow->is_over && !uci_mpi_mask_is_exact(mask);
}

bool uci_twin_follow_wants(const uci_twin_follow_t *follow, uint64_t mask)
{
    return !follow->is_over &&
           (!uci_mpi_mask_is_exact(mask) || (!follow->is_leader && (follow->match->withheld.count > 0)));
}

/* One that is not followed. What waits and could be for it may be for an older wildcard. */
static void uci_twin_follow_post_exact(uci_twin_follow_t *follow, uci_match_recv_t *recv, uint64_t tag, uint64_t mask)
{
    uci_match_msg_t *msg = uci_match_find_msg(follow->match, tag, mask);

    uci_match_post(follow->match, recv, tag, mask);
    if ((msg != NULL) && (uci_twin_follow_choose(follow, follow->ops->source(follow->arg, msg), msg->tag) == recv)) {
        uci_twin_follow_deliver(follow, msg, recv);
    }
}

/* The choice of a wildcard, if it is known already */
static void uci_twin_wild_resolve_early(uci_twin_follow_t *follow, uci_twin_wild_t *wild)
{
    uci_list_for_each_safe(early, &wild->key->early, uci_twin_early_t, link)
    {
        if (early->number == wild->number) {
            wild->is_resolved = true;
            wild->message     = early->message;
            uci_list_del(&early->link);
            free(early);
            return;
        }
    }
}

static uci_twin_wild_t *uci_twin_wild_create(uci_twin_follow_t *follow, uci_match_recv_t *recv, uint64_t tag,
                                             uint64_t mask)
{
    uci_twin_key_t *key   = uci_twin_key_get(follow, tag, mask);
    uci_twin_wild_t *wild = (key != NULL) ? uci_twin_follow_alloc(sizeof(*wild)) : NULL;

    if (wild == NULL) {
        return NULL;
    }
    wild->key    = key;
    wild->recv   = recv;
    wild->number = key->posted++;
    uci_list_add_tail(&key->wilds, &wild->link);
    uci_match_withhold(follow->match, recv, tag, mask);
    recv->withheld_by = wild;
    return wild;
}

/* The leader's takes what there is */
static void uci_twin_wild_lead(uci_twin_follow_t *follow, uci_match_recv_t *recv)
{
    uci_match_msg_t *msg = uci_match_find_msg(follow->match, recv->tag, recv->mask);

    if (msg != NULL) {
        uci_twin_follow_deliver(follow, msg, recv);
    }
}

/* Take the message that was chosen, if it is here */
static void uci_twin_wild_follow(uci_twin_follow_t *follow, uci_twin_wild_t *wild)
{
    uci_match_msg_t *msg;

    if (!wild->is_resolved) {
        follow->is_holding |= (uci_match_find_msg(follow->match, wild->recv->tag, wild->recv->mask) != NULL);
        return;
    }
    msg = uci_twin_message_is_none(&wild->message) ? NULL : uci_twin_follow_find(follow, &wild->message);
    if (msg != NULL) {
        uci_twin_follow_deliver(follow, msg, wild->recv);
        uci_twin_follow_settle(follow); /* the next one of this channel may be for another wildcard */
    }
}

void uci_twin_follow_post(uci_twin_follow_t *follow, uci_match_recv_t *recv, uint64_t tag, uint64_t mask)
{
    uci_twin_wild_t *wild = NULL;

    uci_twin_follow_go_on(follow);
    if (uci_twin_follow_is_active(follow, mask)) {
        wild = uci_twin_wild_create(follow, recv, tag, mask);
        if (wild == NULL) {
            uci_twin_follow_give_up(follow, "there is no memory for it");
        }
    }
    if (wild == NULL) {
        uci_twin_follow_post_exact(follow, recv, tag, mask);
    } else if (follow->is_leader) {
        uci_twin_wild_lead(follow, recv);
    } else {
        uci_twin_wild_resolve_early(follow, wild);
        uci_twin_wild_follow(follow, wild);
    }
}

/* One that the leader has cancelled goes only with the messages that waited for it: the next of their channel must not overtake them */
uci_status_t uci_twin_follow_cancel(uci_twin_follow_t *follow, uci_match_recv_t *recv)
{
    uci_twin_wild_t *wild = recv->withheld_by;

    if (!uci_match_recv_is_withheld(follow->match, recv)) {
        uci_match_take_recv(follow->match, recv);
        return UCI_OK;
    }
    if (follow->is_leader) {
        follow->ops->choice(follow->arg, wild->key->tag, wild->key->mask, wild->number, &uci_twin_no_message);
    } else if (!wild->is_resolved || !uci_twin_message_is_none(&wild->message) || follow->is_told) {
        wild->is_cancelled = true;
        return UCI_INPROGRESS;
    }
    uci_twin_wild_take(follow, recv);
    return UCI_OK;
}

/* @return the message that this probe finds, if it is the leader's next one and that is here; or NULL */
static uci_match_msg_t *uci_twin_follow_next_find(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, bool remove)
{
    uci_twin_find_t *find = uci_container_of(follow->finds.next, uci_twin_find_t, link);

    if (uci_list_is_empty(&follow->finds) || (find->tag != (tag & mask)) || (find->mask != mask) ||
        (find->removed != remove)) {
        return NULL;
    }
    return uci_twin_follow_find(follow, &find->message);
}

/* A probe is denied a message that is there. Those of long ago, when the program was elsewhere, don't count. */
static void uci_twin_follow_deny(uci_twin_follow_t *follow)
{
    uint64_t now = follow->ops->now(follow->arg);

    if ((follow->denied_time == 0) || (now - follow->denied_last > follow->wait)) {
        follow->denied_time = now;
    }
    follow->denied_last = now;
}

static void uci_twin_follow_probed(uci_twin_follow_t *follow)
{
    uci_twin_find_t *find = uci_container_of(follow->finds.next, uci_twin_find_t, link);

    uci_list_del(&find->link);
    free(find);
    ++follow->counts.followed;
    follow->denied_time = 0;
}

static void uci_twin_follow_give_up_probe(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask)
{
    const uci_twin_find_t *find = uci_container_of(follow->finds.next, uci_twin_find_t, link);
    char why[400];

    if (uci_list_is_empty(&follow->finds)) {
        snprintf(why, sizeof(why),
                 "its probe for tag 0x%016" PRIx64 ", mask 0x%016" PRIx64
                 " found nothing more, and here there is a message for it",
                 tag, mask);
    } else {
        snprintf(why, sizeof(why),
                 "its probe for tag 0x%016" PRIx64 ", mask 0x%016" PRIx64
                 " found message %u of rank %u, tag 0x%016" PRIx64
                 ", and here a message was probed for with tag 0x%016" PRIx64 ", mask 0x%016" PRIx64,
                 find->tag, find->mask, find->message.number, find->message.source, find->message.tag, tag, mask);
    }
    ++follow->counts.given_up;
    uci_twin_follow_give_up(follow, why);
}

uci_match_msg_t *uci_twin_follow_probe(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, bool remove)
{
    uci_match_msg_t *there, *msg;
    uci_twin_message_t message;

    uci_twin_follow_go_on(follow);
    there = uci_match_find_msg(follow->match, tag, mask);
    if ((there == NULL) || follow->is_over) {
        return there;
    }
    if (follow->is_leader) {
        message = uci_twin_follow_next(follow, follow->ops->source(follow->arg, there), there->tag);
        follow->ops->probe(follow->arg, tag & mask, mask, follow->finds_count++, &message, remove);
        return there;
    }
    msg = uci_twin_follow_next_find(follow, tag, mask, remove);
    if (msg != NULL) {
        uci_twin_follow_probed(follow);
        return msg;
    }
    uci_twin_follow_deny(follow);
    if (follow->denied_last - follow->denied_time > follow->wait) {
        uci_twin_follow_give_up_probe(follow, tag, mask);
        return uci_match_find_msg(follow->match, tag, mask); /* receives may have taken some */
    }
    return NULL;
}

static uci_twin_wild_t *uci_twin_key_wild(uci_twin_key_t *key, uint32_t number)
{
    uci_list_for_each(wild, &key->wilds, uci_twin_wild_t, link)
    {
        if (wild->number == number) {
            return wild;
        }
    }
    return NULL;
}

/* Keep the choice of a wildcard that is to be posted */
static uci_status_t uci_twin_key_keep(uci_twin_follow_t *follow, uci_twin_key_t *key, uint32_t number,
                                      const uci_twin_message_t *message)
{
    uci_twin_early_t *early = uci_twin_follow_alloc(sizeof(*early));

    if (early == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    early->number  = number;
    early->message = *message;
    uci_list_add_tail(&key->early, &early->link);
    return UCI_OK;
}

uci_status_t uci_twin_follow_on_choice(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, uint32_t number,
                                       const uci_twin_message_t *message)
{
    uci_twin_key_t *key;
    uci_twin_wild_t *wild;

    if (follow->is_over) {
        return UCI_OK;
    }
    key = uci_twin_key_get(follow, tag, mask);
    if (key == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    wild = uci_twin_key_wild(key, number);
    if (wild == NULL) {
        if ((int32_t)(number - key->posted) >= 0) {
            return uci_twin_key_keep(follow, key, number, message);
        }
    } else if (!wild->is_resolved) {
        wild->is_resolved = true;
        wild->message     = *message;
        follow->is_told   = true;
        return UCI_OK;
    }
    uci_error("choice %u of tag 0x%016" PRIx64 ", mask 0x%016" PRIx64 " was told before", number, tag, mask);
    return UCI_ERR_INVALID_PARAM;
}

uci_status_t uci_twin_follow_on_probe(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, uint32_t number,
                                      const uci_twin_message_t *message, bool removed)
{
    uci_twin_find_t *find;

    if (follow->is_over) {
        return UCI_OK;
    }
    if (number != follow->finds_count) {
        uci_error("probe %u was told instead of %u", number, follow->finds_count);
        return UCI_ERR_INVALID_PARAM;
    }
    find = uci_twin_follow_alloc(sizeof(*find));
    if (find == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    ++follow->finds_count;
    find->tag     = tag & mask;
    find->mask    = mask;
    find->message = *message;
    find->removed = removed;
    uci_list_add_tail(&follow->finds, &find->link);
    return UCI_OK;
}

/* The first wildcard that messages wait for */
static void uci_twin_follow_give_up_wild(uci_twin_follow_t *follow)
{
    char why[400] = "a message waits";

    uci_match_for_each_withheld(recv, follow->match)
    {
        const uci_twin_wild_t *wild       = recv->withheld_by;
        const uci_twin_message_t *message = &wild->message;

        if (uci_match_find_msg(follow->match, recv->tag, recv->mask) == NULL) {
            continue;
        }
        if (wild->is_resolved) {
            snprintf(why, sizeof(why),
                     "receive %u for tag 0x%016" PRIx64 ", mask 0x%016" PRIx64
                     " was matched to message %u of rank %u, tag 0x%016" PRIx64 ", which has not come here",
                     wild->number, wild->key->tag, wild->key->mask, message->number, message->source, message->tag);
        } else {
            snprintf(why, sizeof(why),
                     "what receive %u for tag 0x%016" PRIx64 ", mask 0x%016" PRIx64 " was matched to it has not told",
                     wild->number, wild->key->tag, wild->key->mask);
        }
        break;
    }
    uci_twin_follow_give_up(follow, why);
}

bool uci_twin_follow_is_waiting(const uci_twin_follow_t *follow)
{
    return !follow->is_leader && !follow->is_over &&
           ((follow->match->withheld.count > 0) || (follow->denied_time != 0));
}

void uci_twin_follow_check(uci_twin_follow_t *follow)
{
    uint64_t now;

    uci_twin_follow_go_on(follow);
    if (follow->is_over || !follow->is_holding) {
        follow->holding_time = 0;
        return;
    }
    now = follow->ops->now(follow->arg);
    if (follow->holding_time == 0) {
        follow->holding_time = now;
        follow->look_time    = now;
    }
    if (now - follow->look_time > follow->wait / UCI_TWIN_FOLLOW_LOOKS) {
        uci_twin_follow_settle(follow);
        follow->look_time = now;
        if (!follow->is_holding) {
            follow->holding_time = 0;
        } else if (now - follow->holding_time > follow->wait) {
            uci_twin_follow_give_up_wild(follow);
        }
    }
}

/* Wildcards are receives as all others */
static void uci_twin_follow_admit(uci_twin_follow_t *follow)
{
    uci_match_for_each_withheld(recv, follow->match)
    {
        uci_twin_wild_t *wild = recv->withheld_by;

        ++follow->counts.given_up;
        if (wild->is_cancelled) {
            uci_twin_wild_cancel(follow, wild);
        } else {
            uci_twin_wild_free(wild);
            uci_match_admit(follow->match, recv);
        }
    }
}

static void uci_twin_follow_forget(uci_twin_follow_t *follow)
{
    size_t i;

    for (i = 0; i < UCI_TWIN_FOLLOW_BUCKETS; ++i) {
        uci_list_for_each_safe(key, &follow->keys[i], uci_twin_key_t, link)
        {
            uci_list_for_each_safe(wild, &key->wilds, uci_twin_wild_t, link)
            {
                uci_twin_wild_free(wild);
            }
            uci_list_for_each_safe(early, &key->early, uci_twin_early_t, link)
            {
                free(early);
            }
            uci_list_del(&key->link);
            free(key);
        }
    }
    uci_list_for_each_safe(find, &follow->finds, uci_twin_find_t, link)
    {
        free(find);
    }
    uci_list_init(&follow->finds);
}

void uci_twin_follow_give_up(uci_twin_follow_t *follow, const char *why)
{
    if (follow->is_over) {
        return;
    }
    follow->is_over = true;
    if (follow->is_leader) {
        uci_warn("the other twins are not told any more what wildcard receives and probes found: %s", why);
    } else {
        uci_warn(
                "twin 0 is not followed any more: %s; this program is not deterministic, or has gone another way, and from here on "
                "its twins may differ",
                why);
    }
    uci_twin_follow_admit(follow);
    uci_twin_follow_forget(follow);
    uci_twin_follow_settle(follow);
}

uci_status_t uci_twin_follow_create(uci_match_t *match, bool is_leader, uint64_t wait, const uci_twin_follow_ops_t *ops,
                                    void *arg, uci_twin_follow_t **follow_p)
{
    uci_twin_follow_t *follow = uci_twin_follow_alloc(sizeof(*follow));
    size_t i;

    if (follow == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    follow->match     = match;
    follow->ops       = ops;
    follow->arg       = arg;
    follow->wait      = wait;
    follow->is_leader = is_leader;
    uci_list_init(&follow->finds);
    for (i = 0; i < UCI_TWIN_FOLLOW_BUCKETS; ++i) {
        uci_list_init(&follow->keys[i]);
    }
    *follow_p = follow;
    return UCI_OK;
}

void uci_twin_follow_destroy(uci_twin_follow_t *follow)
{
    if (follow != NULL) {
        uci_twin_follow_admit(follow);
        uci_twin_follow_forget(follow);
        free(follow);
    }
}

void uci_twin_follow_ended(uci_twin_follow_t *follow)
{
    follow->wait /= UCI_TWIN_FOLLOW_LOOKS;
}

uci_twin_follow_counts_t uci_twin_follow_counts(const uci_twin_follow_t *follow)
{
    return follow->counts;
}
