/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_votes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

enum {
    UCI_TWIN_RING_MIN  = 2,   /* slots within the channel: most channels of a job that has many are used once */
    UCI_TWIN_RING_KEEP = 256, /* slots that are kept although nothing waits */
    UCI_TWIN_TABLE_MIN = 64
};

/* In `have`, beside the bits of twins */
#define UCI_TWIN_DISSENT 0x40u /* they differ */
#define UCI_TWIN_DECIDED 0xffu /* all have said, whoever they were */
#define UCI_TWIN_HAVE    ((1u << UCI_TWINS_MAX) - 1)

#define UCI_TWIN_FACTOR 0x9e3779b97f4a7c15ull

/* Two that differ, and wait for the third */
typedef struct uci_twin_dissent {
    uci_twin_value_t values[UCI_TWINS_MAX];
    void *held;
} uci_twin_dissent_t;

/* A message: the value said first, and who has said the same */
typedef struct uci_twin_slot {
    uint64_t digest;
    uint64_t length;
    uint32_t form;
    uint8_t have; /* bit set of twins; 0: nothing said; UCI_TWIN_DISSENT; UCI_TWIN_DECIDED */
    union {
        void *held;
        uci_twin_dissent_t *dissent; /* owns all values, and held */
    };
} uci_twin_slot_t;

_Static_assert(sizeof(uci_twin_slot_t) == 32, "two to a cache line, as the header says");

typedef struct uci_twin_channel {
    uci_twin_slot_t *ring; /* `first`, or from the heap */
    uint32_t mask;         /* slots - 1 */
    uint32_t base;         /* the first number that is not decided */
    uint32_t used;         /* slots that something is said of, or was: decided before one in front of them */
    uint32_t early;        /* of these, decided */
    uint32_t own;          /* our index, or UCI_TWIN_CHANNEL_NONE */
    uint32_t next;         /* our next number */
    uint32_t source;
    uint64_t tag;
    uint64_t agreed;
    uint64_t content; /* of these, that are not empty */
    uint64_t others;  /* decided otherwise */
    unsigned defined; /* bit set of twins */
    uci_twin_slot_t first[UCI_TWIN_RING_MIN];
} uci_twin_channel_t;

/* A growing array of channels; they are not its own */
typedef struct uci_twin_index {
    uci_twin_channel_t **channels;
    uint32_t count, capacity;
} uci_twin_index_t;

struct uci_twin_votes {
    uci_twin_index_t of_twin[UCI_TWINS_MAX]; /* by the twin's own indices; none of a lost twin */
    uci_twin_channel_t *last;                /* asked for; with an index of ours */
    unsigned live;                           /* bit set of twins */
    unsigned twins, me;
    uint64_t open[1u << UCI_TWINS_MAX]; /* undecided messages, by the bit set of who has said a value */
    uint64_t agreed;
    uci_twin_verdict_cb_t cb;
    void *arg;
    size_t bytes, max_bytes;
    bool is_full;               /* there was no room, which is said once */
    uci_twin_index_t all;       /* in the order of making; owns them */
    uci_twin_channel_t **table; /* open addressing by (source, tag) */
    size_t table_mask;
};

static void *uci_twin_votes_alloc(uci_twin_votes_t *votes, size_t size)
{
    void *memory;

    if ((size > votes->max_bytes) || (votes->bytes > votes->max_bytes - size)) {
        if (!votes->is_full) {
            uci_error("%zu bytes of values of twins and %zu more would be over the limit of %zu", votes->bytes, size,
                      votes->max_bytes);
        }
        votes->is_full = true;
        return NULL;
    }
    memory = calloc(1, size);
    if (memory == NULL) {
        uci_error("failed to allocate %zu bytes", size);
        return NULL;
    }
    votes->bytes += size;
    return memory;
}

static void uci_twin_votes_free(uci_twin_votes_t *votes, void *memory, size_t size)
{
    if (memory != NULL) {
        votes->bytes -= size;
        free(memory);
    }
}

/* Room for one more than there are channels */
static uci_status_t uci_twin_index_reserve(uci_twin_votes_t *votes, uci_twin_index_t *index)
{
    uint32_t capacity = uci_max(2 * index->capacity, (uint32_t)UCI_TWIN_TABLE_MIN);
    uci_twin_channel_t **channels;

    if (votes->all.count < index->capacity) {
        return UCI_OK;
    }
    if (votes->all.count >= UINT32_MAX / 4) {
        uci_error("%u channels are too many", votes->all.count);
        return UCI_ERR_NO_MEMORY;
    }
    channels = uci_twin_votes_alloc(votes, capacity * sizeof(*channels));
    if (channels == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    if (index->count > 0) {
        memcpy(channels, index->channels, index->count * sizeof(*channels));
    }
    uci_twin_votes_free(votes, index->channels, index->capacity * sizeof(*channels));
    index->channels = channels;
    index->capacity = capacity;
    return UCI_OK;
}

/* With the channel comes the room in which any twin can name it: who is late may find none that is free */
static uci_status_t uci_twin_indices_reserve(uci_twin_votes_t *votes)
{
    uci_status_t status = uci_twin_index_reserve(votes, &votes->all);
    unsigned twin;

    for (twin = 0; (twin < votes->twins) && (status == UCI_OK); ++twin) {
        if (votes->live & (1u << twin)) {
            status = uci_twin_index_reserve(votes, &votes->of_twin[twin]);
        }
    }
    return status;
}

static void uci_twin_index_release(uci_twin_votes_t *votes, uci_twin_index_t *index)
{
    uci_twin_votes_free(votes, index->channels, index->capacity * sizeof(*index->channels));
    memset(index, 0, sizeof(*index));
}

/* From the highest bits of the product on, on which all bits of a tag have their part: Open MPI's are in its upper ones */
static uci_twin_channel_t **uci_twin_table_place(uci_twin_channel_t **table, size_t mask, uint32_t source, uint64_t tag)
{
    size_t i = (size_t)__builtin_bswap64((tag ^ ((uint64_t)source << 32 | source)) * UCI_TWIN_FACTOR);

    for (;; ++i) {
        uci_twin_channel_t **place = &table[i & mask];

        if ((*place == NULL) || (((*place)->source == source) && ((*place)->tag == tag))) {
            return place;
        }
    }
}

static uci_status_t uci_twin_table_reserve(uci_twin_votes_t *votes)
{
    size_t size = votes->table_mask + 1, new_size = 2 * size;
    uci_twin_channel_t **table, *channel;
    uint32_t i;

    if (2 * ((size_t)votes->all.count + 1) <= size) {
        return UCI_OK;
    }
    table = uci_twin_votes_alloc(votes, new_size * sizeof(*table));
    if (table == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    for (i = 0; i < votes->all.count; ++i) {
        channel                                                                   = votes->all.channels[i];
        *uci_twin_table_place(table, new_size - 1, channel->source, channel->tag) = channel;
    }
    uci_twin_votes_free(votes, votes->table, size * sizeof(*table));
    votes->table      = table;
    votes->table_mask = new_size - 1;
    return UCI_OK;
}

static uci_twin_channel_t *uci_twin_channel_create(uci_twin_votes_t *votes, uint32_t source, uint64_t tag)
{
    uci_twin_channel_t *channel;

    if ((uci_twin_indices_reserve(votes) != UCI_OK) || (uci_twin_table_reserve(votes) != UCI_OK)) {
        return NULL;
    }
    channel = uci_twin_votes_alloc(votes, sizeof(*channel));
    if (channel == NULL) {
        return NULL;
    }
    channel->source = source;
    channel->tag    = tag;
    channel->own    = UCI_TWIN_CHANNEL_NONE;
    channel->ring   = channel->first;
    channel->mask   = UCI_TWIN_RING_MIN - 1;

    *uci_twin_table_place(votes->table, votes->table_mask, source, tag) = channel;
    votes->all.channels[votes->all.count++]                             = channel;
    return channel;
}

/* Give a channel the next index of a twin */
static uci_status_t uci_twin_channel_enter(uci_twin_votes_t *votes, unsigned twin, uint32_t source, uint64_t tag,
                                           uci_twin_channel_t **channel_p)
{
    uci_twin_index_t *index     = &votes->of_twin[twin];
    uci_twin_channel_t *channel = *uci_twin_table_place(votes->table, votes->table_mask, source, tag);

    if ((channel != NULL) && (channel->defined & (1u << twin))) {
        *channel_p = channel;
        return UCI_ERR_BUSY;
    }
    if (channel == NULL) {
        channel = uci_twin_channel_create(votes, source, tag);
        if (channel == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
    }
    channel->defined |= 1u << twin;
    index->channels[index->count++] = channel;
    *channel_p                      = channel;
    return UCI_OK;
}

static UCI_NOINLINE uint32_t uci_twin_votes_find_channel(uci_twin_votes_t *votes, uint32_t source, uint64_t tag,
                                                         bool *new_p)
{
    uci_twin_channel_t *channel;
    uci_status_t status;

    if ((votes->live & (1u << votes->me)) == 0) {
        return UCI_TWIN_CHANNEL_NONE;
    }
    status = uci_twin_channel_enter(votes, votes->me, source, tag, &channel);
    if (status == UCI_ERR_NO_MEMORY) {
        return UCI_TWIN_CHANNEL_NONE;
    }
    *new_p = (status == UCI_OK);
    if (*new_p) {
        channel->own = votes->of_twin[votes->me].count - 1;
    }
    votes->last = channel;
    return channel->own;
}

uint32_t uci_twin_votes_channel(uci_twin_votes_t *votes, uint32_t source, uint64_t tag, bool *new_p)
{
    const uci_twin_channel_t *last = votes->last;

    if (uci_likely((last != NULL) && (last->tag == tag) && (last->source == source))) {
        *new_p = false;
        return last->own;
    }
    return uci_twin_votes_find_channel(votes, source, tag, new_p);
}

uint32_t uci_twin_votes_next(uci_twin_votes_t *votes, uint32_t index)
{
    return votes->of_twin[votes->me].channels[index]->next++;
}

uint32_t uci_twin_votes_peek(const uci_twin_votes_t *votes, uint32_t source, uint64_t tag)
{
    const uci_twin_channel_t *channel = *uci_twin_table_place(votes->table, votes->table_mask, source, tag);

    return (channel != NULL) ? channel->next : 0;
}

uci_status_t uci_twin_votes_define(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t source,
                                   uint64_t tag)
{
    uci_twin_channel_t *channel;
    uci_status_t status;

    if ((twin >= votes->twins) || (twin == votes->me) || ((votes->live & (1u << twin)) == 0)) {
        uci_error("twin %u defines a channel: there is no such twin, or no more", twin);
        return UCI_ERR_INVALID_PARAM;
    }
    if (index != votes->of_twin[twin].count) {
        uci_error("twin %u defines its channel %u instead of %u", twin, index, votes->of_twin[twin].count);
        return UCI_ERR_INVALID_PARAM;
    }
    status = uci_twin_channel_enter(votes, twin, source, tag, &channel);
    if (status == UCI_ERR_BUSY) {
        uci_error("twin %u defines the channel of rank %u, tag 0x%016" PRIx64 " again", twin, source, tag);
        return UCI_ERR_INVALID_PARAM;
    }
    return status;
}

typedef enum { UCI_TWIN_EQUAL, UCI_TWIN_DIFFER, UCI_TWIN_UNKNOWN } uci_twin_relation_t;

static uci_twin_relation_t uci_twin_compare(const uci_twin_value_t *a, const uci_twin_value_t *b)
{
    if (a->length != b->length) {
        return UCI_TWIN_DIFFER;
    }
    if (a->form != b->form) {
        return UCI_TWIN_UNKNOWN;
    }
    return (a->digest == b->digest) ? UCI_TWIN_EQUAL : UCI_TWIN_DIFFER;
}

/* Fill in outcome and wrong from the values, which are not all the same */
static void uci_twin_judge(uci_twin_verdict_t *verdict)
{
    unsigned counts[UCI_TWIN_UNKNOWN + 1] = {0}, a, b, differ_sum = 0, equal_sum = 0;
    uci_twin_relation_t relation;

    for (a = 0; a < UCI_TWINS_MAX; ++a) {
        for (b = a + 1; b < UCI_TWINS_MAX; ++b) {
            if ((verdict->have & (1u << a)) && (verdict->have & (1u << b))) {
                relation = uci_twin_compare(&verdict->values[a], &verdict->values[b]);
                ++counts[relation];
                equal_sum += (relation == UCI_TWIN_EQUAL) ? a + b : 0;
                differ_sum += (relation == UCI_TWIN_DIFFER) ? a + b : 0;
            }
        }
    }
    if (counts[UCI_TWIN_EQUAL] + counts[UCI_TWIN_DIFFER] + counts[UCI_TWIN_UNKNOWN] == 0) {
        verdict->outcome = UCI_TWIN_ALONE;
    } else if (counts[UCI_TWIN_DIFFER] == 0) {
        verdict->outcome = UCI_TWIN_UNLIKE;
    } else if ((counts[UCI_TWIN_EQUAL] == 1) && (counts[UCI_TWIN_DIFFER] == 2)) {
        verdict->outcome = UCI_TWIN_WRONG;
        verdict->wrong   = (int)(differ_sum - equal_sum) / 2; /* each of the equal ones differs from it */
    } else {
        verdict->outcome = UCI_TWIN_SPLIT;
    }
}

/* The ring of a channel that has nothing in it: what was needed once may never be again */
static UCI_NOINLINE void uci_twin_channel_shrink(uci_twin_votes_t *votes, uci_twin_channel_t *channel)
{
    size_t slots = (size_t)channel->mask + 1;

    uci_twin_votes_free(votes, channel->ring, slots * sizeof(*channel->ring));
    memset(channel->first, 0, sizeof(channel->first));
    channel->ring = channel->first;
    channel->mask = UCI_TWIN_RING_MIN - 1;
}

/* A message is over: its slot is free as soon as all before it are */
static void uci_twin_channel_retire(uci_twin_votes_t *votes, uci_twin_channel_t *channel, uint32_t number)
{
    uci_twin_slot_t *ring = channel->ring, *slot = &ring[number & channel->mask];

    if (uci_unlikely(number != channel->base)) {
        slot->have = UCI_TWIN_DECIDED;
        ++channel->early;
        return;
    }
    for (;;) {
        slot->have = 0;
        --channel->used;
        slot = &ring[++channel->base & channel->mask];
        if (uci_likely(slot->have != UCI_TWIN_DECIDED)) {
            break;
        }
        --channel->early;
    }
    if ((channel->used == 0) && (channel->mask >= UCI_TWIN_RING_KEEP)) {
        uci_twin_channel_shrink(votes, channel);
    }
}

/* All that is known of a message; the caller sets the outcome */
static void uci_twin_verdict_fill(uci_twin_verdict_t *verdict, const uci_twin_channel_t *channel, uint32_t number,
                                  const uci_twin_slot_t *slot)
{
    unsigned twin;

    *verdict = (uci_twin_verdict_t){.wrong   = -1,
                                    .have    = slot->have & UCI_TWIN_HAVE,
                                    .channel = channel->own,
                                    .number  = number,
                                    .source  = channel->source,
                                    .tag     = channel->tag,
                                    .held    = slot->held};
    if (slot->have & UCI_TWIN_DISSENT) {
        memcpy(verdict->values, slot->dissent->values, sizeof(verdict->values));
        verdict->held = slot->dissent->held;
        return;
    }
    for (twin = 0; twin < UCI_TWINS_MAX; ++twin) {
        if (slot->have & (1u << twin)) {
            verdict->values[twin] = (uci_twin_value_t){slot->digest, slot->length, slot->form};
        }
    }
}

/* Two at least have said the same, and nobody anything else */
static void uci_twin_votes_agree(uci_twin_votes_t *votes, uci_twin_channel_t *channel, uint32_t number,
                                 uci_twin_slot_t *slot)
{
    uci_twin_verdict_t verdict;
    bool is_held = (slot->held != NULL);

    if (uci_unlikely(is_held)) {
        uci_twin_verdict_fill(&verdict, channel, number, slot);
        verdict.outcome = UCI_TWIN_SAME;
    }
    ++channel->agreed;
    ++votes->agreed;
    channel->content += (slot->length > 0);
    --votes->open[slot->have];
    uci_twin_channel_retire(votes, channel, number);
    if (uci_unlikely(is_held)) {
        votes->cb(votes->arg, &verdict);
    }
}

/* Any verdict. Whatever the callback does, this message is over before. */
static void uci_twin_votes_decide(uci_twin_votes_t *votes, uci_twin_channel_t *channel, uint32_t number)
{
    uci_twin_slot_t *slot = &channel->ring[number & channel->mask];
    uci_twin_verdict_t verdict;

    if (!(slot->have & UCI_TWIN_DISSENT) && (slot->have & (slot->have - 1))) {
        uci_twin_votes_agree(votes, channel, number, slot);
        return;
    }
    uci_twin_verdict_fill(&verdict, channel, number, slot);
    uci_twin_judge(&verdict);
    if (slot->have & UCI_TWIN_DISSENT) {
        uci_twin_votes_free(votes, slot->dissent, sizeof(*slot->dissent));
    }
    ++channel->others;
    --votes->open[verdict.have];
    uci_twin_channel_retire(votes, channel, number);
    votes->cb(votes->arg, &verdict);
}

/* Make the ring large enough for a number */
static UCI_NOINLINE uci_status_t uci_twin_channel_grow(uci_twin_votes_t *votes, uci_twin_channel_t *channel,
                                                       uint32_t number)
{
    uint32_t offset = number - channel->base, i;
    size_t slots = (size_t)channel->mask + 1, new_slots = 2 * slots;
    uci_twin_slot_t *ring;

    if (offset >= slots + UCI_TWIN_WINDOW) {
        uci_error("value of message %u of rank %u, tag 0x%016" PRIx64 ": %s (the first that waits is %u)", number,
                  channel->source, channel->tag, (offset >> 31) ? "said before" : "out of the window", channel->base);
        return UCI_ERR_INVALID_PARAM;
    }
    while (new_slots <= offset) {
        new_slots *= 2;
    }
    ring = uci_twin_votes_alloc(votes, new_slots * sizeof(*ring));
    if (ring == NULL) {
        return UCI_ERR_NO_MEMORY;
    }
    for (i = channel->base; i != channel->base + (uint32_t)slots; ++i) {
        ring[i & (new_slots - 1)] = channel->ring[i & channel->mask];
    }
    if (channel->ring != channel->first) {
        uci_twin_votes_free(votes, channel->ring, slots * sizeof(*ring));
    }
    channel->ring = ring;
    channel->mask = (uint32_t)(new_slots - 1);
    return UCI_OK;
}

/* A value that is not the one said first. With two twins, or the third one to say it, it is there for a moment only. */
static uci_status_t uci_twin_slot_dissent(uci_twin_votes_t *votes, uci_twin_slot_t *slot, unsigned twin,
                                          const uci_twin_value_t *value, void *held)
{
    uci_twin_dissent_t *dissent = slot->dissent;
    unsigned i;

    if ((slot->have & UCI_TWIN_DISSENT) == 0) {
        dissent = uci_twin_votes_alloc(votes, sizeof(*dissent));
        if (dissent == NULL) {
            return UCI_ERR_NO_MEMORY;
        }
        for (i = 0; i < UCI_TWINS_MAX; ++i) {
            if (slot->have & (1u << i)) {
                dissent->values[i] = (uci_twin_value_t){slot->digest, slot->length, slot->form};
            }
        }
        dissent->held = slot->held;
        slot->dissent = dissent;
        slot->have |= UCI_TWIN_DISSENT;
    }
    dissent->values[twin] = *value;
    if (twin == votes->me) {
        dissent->held = held;
    }
    return UCI_OK;
}

UCI_INLINE bool uci_twin_slot_is(const uci_twin_slot_t *slot, const uci_twin_value_t *value)
{
    return (slot->digest == value->digest) && (slot->length == value->length) && (slot->form == value->form);
}

/* The first value of a message; the rest is the caller's */
UCI_INLINE void uci_twin_slot_begin(uci_twin_slot_t *slot, unsigned have, const uci_twin_value_t *value, void *held)
{
    slot->digest = value->digest;
    slot->length = value->length;
    slot->form   = value->form;
    slot->have   = (uint8_t)have;
    slot->held   = held;
}

/* @return the channel that @a twin calls @a index, with room for a number; or NULL, and *status_p says why */
UCI_INLINE uci_twin_channel_t *uci_twin_votes_find(uci_twin_votes_t *votes, unsigned twin, uint32_t index,
                                                   uint32_t number, uci_status_t *status_p)
{
    uci_twin_channel_t *channel;

    if (uci_unlikely((twin >= UCI_TWINS_MAX) || (index >= votes->of_twin[twin].count))) {
        uci_error(
                "value of twin %u, channel %u: there is no such twin, or it has defined no such channel, or said that "
                "there is no more to come",
                twin, index);
        *status_p = UCI_ERR_INVALID_PARAM;
        return NULL;
    }
    channel   = votes->of_twin[twin].channels[index];
    *status_p = UCI_OK;
    if (uci_unlikely(number - channel->base > channel->mask)) {
        *status_p = uci_twin_channel_grow(votes, channel, number);
    }
    return (*status_p == UCI_OK) ? channel : NULL;
}

uci_status_t uci_twin_votes_add(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t number,
                                const uci_twin_value_t *value, void *held)
{
    uci_twin_channel_t *channel;
    uci_twin_slot_t *slot;
    uci_status_t status;
    unsigned before;

    channel = uci_twin_votes_find(votes, twin, index, number, &status);
    if (channel == NULL) {
        return status;
    }
    slot   = &channel->ring[number & channel->mask];
    before = slot->have;
    if (before & (1u << twin)) {
        uci_error("twin %u says a value of message %u of rank %u, tag 0x%016" PRIx64 ", which it has said before", twin,
                  number, channel->source, channel->tag);
        return UCI_ERR_INVALID_PARAM;
    }
    if (before == 0) {
        uci_twin_slot_begin(slot, 0, value, held);
        ++channel->used;
    } else if ((before & UCI_TWIN_DISSENT) || !uci_twin_slot_is(slot, value)) {
        status = uci_twin_slot_dissent(votes, slot, twin, value, held);
        if (status != UCI_OK) {
            return status;
        }
    } else if (twin == votes->me) {
        slot->held = held;
    }
    slot->have |= 1u << twin;
    --votes->open[before & UCI_TWIN_HAVE]; /* that of none is of no meaning */
    ++votes->open[slot->have & UCI_TWIN_HAVE];
    if ((votes->live & ~slot->have) == 0) {
        uci_twin_votes_decide(votes, channel, number);
    }
    return UCI_OK;
}

/* The start of a run that is usual, in three kinds; each does as many as it can. @return how many */

/* Nobody has said anything of these */
static size_t uci_twin_run_begin(uci_twin_votes_t *votes, uci_twin_channel_t *channel, unsigned bit, uint32_t number,
                                 uci_twin_value_t like, const uint64_t *digests, size_t count)
{
    size_t room = (size_t)channel->mask + 1 - (number - channel->base), i;

    count = uci_min(count, room);
    for (i = 0; i < count; ++i) {
        uci_twin_slot_t *slot = &channel->ring[(number + (uint32_t)i) & channel->mask];

        if (slot->have != 0) {
            break;
        }
        like.digest = digests[i];
        uci_twin_slot_begin(slot, bit, &like, NULL);
    }
    channel->used += (uint32_t)i;
    votes->open[bit] += i;
    return i;
}

/* The same have said the same of these. (Numbers beyond the ring are those at its start, which have another state by then,
 * or are refused.) */
static size_t uci_twin_run_confirm(uci_twin_votes_t *votes, uci_twin_channel_t *channel, unsigned have, unsigned bit,
                                   uint32_t number, uci_twin_value_t like, const uint64_t *digests, size_t count)
{
    size_t room = (size_t)channel->mask + 1 - (number - channel->base), i;

    count = uci_min(count, room);
    for (i = 0; i < count; ++i) {
        uci_twin_slot_t *slot = &channel->ring[(number + (uint32_t)i) & channel->mask];

        like.digest = digests[i];
        if ((slot->have != have) || !uci_twin_slot_is(slot, &like)) {
            break;
        }
        slot->have = (uint8_t)(have | bit);
    }
    votes->open[have] -= i;
    votes->open[have | bit] += i;
    return i;
}

/* All others have said the same of these, the first ones that are not decided, and nobody holds anything */
static size_t uci_twin_run_agree(uci_twin_votes_t *votes, uci_twin_channel_t *channel, unsigned have,
                                 uci_twin_value_t like, const uint64_t *digests, size_t count)
{
    size_t room = (size_t)channel->mask + 1, i;

    count = uci_min(count, room);
    for (i = 0; i < count; ++i) {
        uci_twin_slot_t *slot = &channel->ring[(channel->base + (uint32_t)i) & channel->mask];

        like.digest = digests[i];
        if ((slot->have != have) || !uci_twin_slot_is(slot, &like) || (slot->held != NULL)) {
            break;
        }
        slot->have = 0;
    }
    channel->base += (uint32_t)i;
    channel->used -= (uint32_t)i;
    channel->agreed += i;
    channel->content += (like.length > 0) ? i : 0;
    votes->agreed += i;
    votes->open[have] -= i;
    if (uci_unlikely((channel->used == 0) && (channel->mask >= UCI_TWIN_RING_KEEP))) {
        uci_twin_channel_shrink(votes, channel);
    }
    return i;
}

static size_t uci_twin_votes_add_usual(uci_twin_votes_t *votes, uci_twin_channel_t *channel, unsigned twin,
                                       uint32_t number, const uci_twin_value_t *like, const uint64_t *digests,
                                       size_t count)
{
    unsigned bit = 1u << twin, others = votes->live & ~bit, have = channel->ring[number & channel->mask].have;

    if ((others == 0) || (have & ~others)) {
        return 0;
    }
    if (have == 0) {
        return uci_twin_run_begin(votes, channel, bit, number, *like, digests, count);
    }
    if (have != others) {
        return uci_twin_run_confirm(votes, channel, have, bit, number, *like, digests, count);
    }
    if ((number != channel->base) || (channel->early != 0)) {
        return 0;
    }
    return uci_twin_run_agree(votes, channel, have, *like, digests, count);
}

uci_status_t uci_twin_votes_add_run(uci_twin_votes_t *votes, unsigned twin, uint32_t index, uint32_t number,
                                    const uci_twin_value_t *like, const uint64_t *digests, size_t count)
{
    uci_twin_channel_t *channel;
    uci_twin_value_t value;
    uci_status_t status;
    size_t done;

    while (count > 0) {
        channel = uci_twin_votes_find(votes, twin, index, number, &status);
        if (channel == NULL) {
            return status;
        }
        done = uci_twin_votes_add_usual(votes, channel, twin, number, like, digests, count);
        if (done == 0) {
            value  = (uci_twin_value_t){digests[0], like->length, like->form};
            status = uci_twin_votes_add(votes, twin, index, number, &value, NULL);
            if (status != UCI_OK) {
                return status;
            }
            done = 1;
        }
        number += (uint32_t)done;
        digests += done;
        count -= done;
    }
    return UCI_OK;
}

/* All that waits in a channel for nobody any more. The callback may add values meanwhile, which moves base. */
static void uci_twin_channel_settle(uci_twin_votes_t *votes, uci_twin_channel_t *channel)
{
    uint32_t number = channel->base, left;

    for (left = channel->mask + 1; (left > 0) && (channel->used > 0); --left, ++number) {
        unsigned have = channel->ring[number & channel->mask].have;

        if ((number - channel->base <= channel->mask) && (have != 0) && (have != UCI_TWIN_DECIDED) &&
            !(votes->live & ~have)) {
            uci_twin_votes_decide(votes, channel, number);
        }
    }
}

void uci_twin_votes_lose(uci_twin_votes_t *votes, unsigned twin)
{
    uint32_t i;

    if ((twin >= votes->twins) || ((votes->live & (1u << twin)) == 0)) {
        return;
    }
    votes->live &= ~(1u << twin);
    uci_twin_index_release(votes, &votes->of_twin[twin]);
    if (twin == votes->me) {
        votes->last = NULL;
    }
    for (i = 0; i < votes->all.count; ++i) {
        uci_twin_channel_settle(votes, votes->all.channels[i]);
    }
}

uint64_t uci_twin_votes_waiting(const uci_twin_votes_t *votes, unsigned twin)
{
    uint64_t count = 0;
    unsigned have;

    for (have = 1; have < uci_array_size(votes->open); ++have) {
        if ((have & (1u << votes->me)) && !(have & (1u << twin))) {
            count += votes->open[have];
        }
    }
    return count;
}

uint64_t uci_twin_votes_agreed(const uci_twin_votes_t *votes)
{
    return votes->agreed;
}

bool uci_twin_votes_has_agreed(const uci_twin_votes_t *votes, uint32_t source)
{
    uint32_t i;

    for (i = 0; i < votes->all.count; ++i) {
        if ((votes->all.channels[i]->source == source) && (votes->all.channels[i]->content > 0)) {
            return true;
        }
    }
    return false;
}

void uci_twin_votes_visit(const uci_twin_votes_t *votes, uci_twin_tally_cb_t cb, void *arg)
{
    uci_twin_tally_t tally;
    uint32_t i;

    for (i = 0; i < votes->all.count; ++i) {
        const uci_twin_channel_t *channel = votes->all.channels[i];

        tally = (uci_twin_tally_t){channel->source, channel->tag, channel->agreed, channel->agreed + channel->others};
        cb(arg, &tally);
    }
}

uci_status_t uci_twin_votes_create(unsigned twins, unsigned me, size_t max_bytes, uci_twin_verdict_cb_t cb, void *arg,
                                   uci_twin_votes_t **votes_p)
{
    uci_twin_votes_t *votes;

    if ((twins < 2) || (twins > UCI_TWINS_MAX) || (me >= twins)) {
        uci_error("twin %u of %u: there are 2 or %d, counted from 0", me, twins, UCI_TWINS_MAX);
        return UCI_ERR_INVALID_PARAM;
    }
    votes = calloc(1, sizeof(*votes));
    if (votes == NULL) {
        uci_error("failed to allocate %zu bytes", sizeof(*votes));
        return UCI_ERR_NO_MEMORY;
    }
    votes->twins      = twins;
    votes->me         = me;
    votes->live       = (1u << twins) - 1;
    votes->cb         = cb;
    votes->arg        = arg;
    votes->max_bytes  = max_bytes;
    votes->table_mask = UCI_TWIN_TABLE_MIN - 1;
    votes->table      = uci_twin_votes_alloc(votes, UCI_TWIN_TABLE_MIN * sizeof(*votes->table));
    if (votes->table == NULL) {
        uci_error("a limit of %zu bytes is too low", max_bytes);
        goto err_free;
    }
    *votes_p = votes;
    return UCI_OK;

err_free:
    free(votes);
    return UCI_ERR_NO_MEMORY;
}

static void uci_twin_channel_destroy(uci_twin_channel_t *channel)
{
    uint32_t i;

    for (i = 0; i <= channel->mask; ++i) {
        if ((channel->ring[i].have != 0) && (channel->ring[i].have != UCI_TWIN_DECIDED) &&
            (channel->ring[i].have & UCI_TWIN_DISSENT)) {
            free(channel->ring[i].dissent);
        }
    }
    if (channel->ring != channel->first) {
        free(channel->ring);
    }
    free(channel);
}

void uci_twin_votes_destroy(uci_twin_votes_t *votes)
{
    uint32_t i;

    if (votes == NULL) {
        return;
    }
    for (i = 0; i < votes->all.count; ++i) {
        uci_twin_channel_destroy(votes->all.channels[i]);
    }
    for (i = 0; i < UCI_TWINS_MAX; ++i) {
        uci_twin_index_release(votes, &votes->of_twin[i]);
    }
    uci_twin_index_release(votes, &votes->all);
    free(votes->table);
    free(votes);
}
