/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tag matching, in cases and against a model. TEST_SEED=N repeats a run of the model, TEST_OPERATIONS=N makes it longer.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"

/* What tables are allocated with, so that it can fail */
static unsigned alloc_failures; /* in percent */
static size_t alloc_calls;

static void *test_alloc(size_t alignment, size_t size)
{
    ++alloc_calls;
    return (test_random() % 100 < alloc_failures) ? NULL : aligned_alloc(alignment, size);
}

#define aligned_alloc test_alloc
#include "../../core/match/match.c"
#undef aligned_alloc

/* Masks as the MPIs have them: two bits of MPICH's are not for matching */
#define MASK_ALL        UINT64_MAX
#define MASK_MPICH      0x9fffffffffffffffull
#define MASK_ANY_SOURCE 0xffffff00000fffffull
#define MASK_ANY_TAG    0x80000000ffffffffull
#define MASK_ANY        0x80000000000fffffull

/* An MPI's tag: context, source and tag each in their own bits */
static uint64_t mpi_tag(uint64_t tag, uint64_t source, uint64_t context)
{
    return (tag << 40) | (source << 20) | context;
}

Test(match, nothing_there)
{
    uci_match_t match;

    cr_assert(uci_match_init(&match) == UCI_OK);
    cr_expect(match.recvs_count == 0);
    cr_expect(match.msgs_count == 0);
    cr_expect(uci_match_find_recv(&match, 0) == NULL);
    cr_expect(uci_match_find_msg(&match, 0, 0) == NULL);
    cr_expect(uci_match_find_msg(&match, 5, MASK_ALL) == NULL);
    uci_match_for_each_msg(msg, &match)
    {
        cr_expect(false, "a message at %p", (void *)msg);
    }
    uci_match_cleanup(&match);
}

Test(match, rule)
{
    const struct {
        uint64_t msg, tag, mask;
        bool matches;
    } cases[] = {
            {7, 7, MASK_ALL, true},
            {7, 6, MASK_ALL, false},
            {7, 7 | (1ull << 63), MASK_ALL, false},
            {7, 6, ~1ull, true},
            {7, 0, 0, true},
            {UINT64_MAX, 0, 0, true},
            {7, 7 | (3ull << 61), MASK_MPICH, true}, /* bits of the receive's tag that its mask lacks do not count */
            {7 | (3ull << 61), 7, MASK_MPICH, true},
            {7 | (1ull << 60), 7, MASK_MPICH, false},
            {mpi_tag(5, 3, 1), mpi_tag(5, 0, 1), MASK_ANY_SOURCE, true},
            {mpi_tag(5, 3, 1), mpi_tag(6, 0, 1), MASK_ANY_SOURCE, false},
            {mpi_tag(5, 3, 1), mpi_tag(0, 3, 1), MASK_ANY_TAG, true},
            {mpi_tag(5, 3, 1), mpi_tag(0, 0, 2), MASK_ANY, false},
    };
    uci_match_recv_t recv, *found;
    uci_match_msg_t msg, *kept;
    uci_match_t match;
    size_t i;

    for (i = 0; i < uci_array_size(cases); ++i) {
        uci_match_init(&match);
        uci_match_post(&match, &recv, cases[i].tag, cases[i].mask);
        found = uci_match_find_recv(&match, cases[i].msg);
        cr_expect(found == (cases[i].matches ? &recv : NULL), "receive, case %zu", i);
        uci_match_keep(&match, &msg, cases[i].msg);
        kept = uci_match_find_msg(&match, cases[i].tag, cases[i].mask);
        cr_expect(kept == (cases[i].matches ? &msg : NULL), "message, case %zu", i);
        uci_match_cleanup(&match);
    }
}

Test(match, receives_of_one_tag_in_the_order_of_posting)
{
    uci_match_recv_t recvs[10];
    uci_match_t match;
    size_t i;

    uci_match_init(&match);
    for (i = 0; i < 10; ++i) {
        uci_match_post(&match, &recvs[i], 3, MASK_ALL);
    }
    cr_expect(match.recvs_count == 10);
    for (i = 0; i < 10; ++i) {
        cr_assert(uci_match_find_recv(&match, 3) == &recvs[i]);
        cr_assert(uci_match_find_recv(&match, 3) == &recvs[i], "it stays posted");
        uci_match_take_recv(&match, &recvs[i]);
    }
    cr_expect(uci_match_find_recv(&match, 3) == NULL);
    cr_expect(match.recvs_count == 0);
    uci_match_cleanup(&match);
}

/* More masks than there are classes, all of which match; each is the oldest in turn */
Test(match, receives_of_many_masks_in_the_order_of_posting)
{
    enum { MASKS = 2 * UCI_MATCH_CLASSES + 1, ROUNDS = 3 };
    uci_match_recv_t recvs[ROUNDS * MASKS];
    uci_match_t match;
    size_t i, j;

    uci_match_init(&match);
    for (i = 0; i < MASKS; ++i) {
        for (j = 0; j < ROUNDS * MASKS; ++j) {
            uci_match_post(&match, &recvs[j], 77, MASK_ALL << ((i + j) % MASKS));
        }
        for (j = 0; j < ROUNDS * MASKS; ++j) {
            cr_assert(uci_match_find_recv(&match, 77) == &recvs[j]);
            uci_match_take_recv(&match, &recvs[j]);
        }
    }
    uci_match_cleanup(&match);
}

Test(match, a_class_without_receives_is_given_to_another_mask)
{
    enum { MASKS = 20 };
    uci_match_recv_t recv, wild;
    uci_match_t match;
    unsigned i;

    uci_match_init(&match);
    uci_match_post(&match, &wild, 1, MASK_ANY);
    for (i = 0; i < MASKS; ++i) {
        uci_match_post(&match, &recv, 2, MASK_ALL << i);
        cr_assert(match.classes[UCI_MATCH_CLASSES].count == 0, "mask %u is in the list of others", i);
        uci_match_take_recv(&match, &recv);
    }
    cr_expect(uci_match_find_recv(&match, 1) == &wild);
    uci_match_cleanup(&match);
}

Test(match, cancelled_receives)
{
    uci_match_recv_t recvs[3];
    uci_match_t match;
    size_t i;

    uci_match_init(&match);
    for (i = 0; i < 3; ++i) {
        uci_match_post(&match, &recvs[i], 3, MASK_ALL);
    }
    uci_match_take_recv(&match, &recvs[1]);
    cr_expect(uci_match_find_recv(&match, 3) == &recvs[0]);
    uci_match_take_recv(&match, &recvs[0]);
    cr_expect(uci_match_find_recv(&match, 3) == &recvs[2]);
    uci_match_post(&match, &recvs[0], 3, MASK_ALL);
    cr_expect(uci_match_find_recv(&match, 3) == &recvs[2], "posted again it is the youngest");
    uci_match_cleanup(&match);
}

Test(match, is_posted)
{
    uci_match_recv_t recv, zeros;
    uci_match_t match;

    uci_match_init(&match);
    memset(&zeros, 0, sizeof(zeros));
    cr_expect(!uci_match_recv_is_posted(&zeros));
    memset(&recv, 0xa5, sizeof(recv));
    uci_match_recv_init(&recv);
    cr_expect(!uci_match_recv_is_posted(&recv));
    uci_match_post(&match, &recv, 3, MASK_ALL);
    cr_expect(uci_match_recv_is_posted(&recv));
    uci_match_find_recv(&match, 3);
    cr_expect(uci_match_recv_is_posted(&recv));
    uci_match_take_recv(&match, &recv);
    cr_expect(!uci_match_recv_is_posted(&recv));
    uci_match_cleanup(&match);
}

Test(match, messages_in_the_order_of_arrival)
{
    uci_match_msg_t msgs[10];
    uci_match_t match;
    size_t i;

    uci_match_init(&match);
    for (i = 0; i < 10; ++i) {
        uci_match_keep(&match, &msgs[i], i % 2);
    }
    cr_expect(match.msgs_count == 10);
    cr_expect(uci_match_find_msg(&match, 0, 0) == &msgs[0]);
    for (i = 0; i < 10; i += 2) {
        cr_assert(uci_match_find_msg(&match, 0, MASK_ALL) == &msgs[i]);
        cr_assert(uci_match_find_msg(&match, 0, MASK_ALL) == &msgs[i], "it stays");
        cr_assert(uci_match_find_msg(&match, 1, MASK_MPICH) == &msgs[1]);
        uci_match_take_msg(&match, &msgs[i]);
    }
    cr_expect(uci_match_find_msg(&match, 0, MASK_ALL) == NULL);
    cr_expect(uci_match_find_msg(&match, 0, 0) == &msgs[1]);
    i = 1;
    uci_match_for_each_msg(msg, &match)
    {
        cr_expect(msg == &msgs[i]);
        uci_match_take_msg(&match, msg);
        i += 2;
    }
    cr_expect(i == 11);
    cr_expect(match.msgs_count == 0);
    uci_match_cleanup(&match);
}

static void take_visited(void *arg, uci_match_recv_t *recv)
{
    uci_match_take_recv(arg, recv);
}

Test(match, visit_takes_all_receives)
{
    enum { COUNT = 1000 };
    static uci_match_recv_t recvs[COUNT];
    uci_match_t match;
    size_t i;

    uci_match_init(&match);
    for (i = 0; i < COUNT; ++i) {
        uci_match_post(&match, &recvs[i], i, MASK_ALL << (i % 8));
        uci_match_find_recv(&match, i ^ 1);
    }
    uci_match_visit_recvs(&match, take_visited, &match);
    cr_expect(match.recvs_count == 0);
    for (i = 0; i < COUNT; ++i) {
        cr_assert(!uci_match_recv_is_posted(&recvs[i]));
    }
    uci_match_cleanup(&match);
}

/* --- costs, by what decides them: the lengths of buckets, and the memory --- */

static size_t longest_bucket(const uci_match_table_t *table)
{
    size_t longest = 0, length, i;
    const uci_list_t *elem;

    for (i = 0; i < table->num_buckets; ++i) {
        length = 0;
        for (elem = table->buckets[i].next; elem != &table->buckets[i]; elem = elem->next) {
            ++length;
        }
        longest = uci_max(longest, length);
    }
    return longest;
}

Test(match, short_queues_and_equal_tags_need_no_memory)
{
    enum { COUNT = 10000 };
    static uci_match_recv_t recvs[COUNT];
    static uci_match_msg_t msgs[COUNT];
    uci_match_t match;
    size_t i;

    alloc_calls = 0;
    uci_match_init(&match);
    for (i = 0; i < UCI_MATCH_SCAN; ++i) {
        uci_match_post(&match, &recvs[i], i, MASK_ALL);
        uci_match_keep(&match, &msgs[i], i);
        uci_match_find_recv(&match, 99);
        uci_match_find_msg(&match, 99, MASK_ALL);
    }
    for (i = 0; i < UCI_MATCH_SCAN; ++i) {
        uci_match_take_recv(&match, &recvs[i]);
        uci_match_take_msg(&match, &msgs[i]);
    }
    for (i = 0; i < COUNT; ++i) {
        uci_match_post(&match, &recvs[i], 5, MASK_ALL);
        uci_match_keep(&match, &msgs[i], 5);
        cr_assert(uci_match_find_recv(&match, 5) == &recvs[0]);
        cr_assert(uci_match_find_msg(&match, 5, MASK_ALL) == &msgs[0]);
    }
    cr_expect(alloc_calls == 0);
    uci_match_cleanup(&match);
}

/* 10^4 tags of every layout: no bucket is long, neither for receives nor for messages, whichever mask was first */
Test(match, long_queues_have_short_buckets)
{
    enum { COUNT = 10000, LAYOUTS = 4 };
    static const uint64_t masks[] = {MASK_ALL, MASK_MPICH, MASK_ANY_SOURCE};
    static uci_match_recv_t recvs[COUNT];
    static uci_match_msg_t msgs[COUNT];
    uint64_t tags[LAYOUTS], mask;
    uci_match_t match;
    size_t i, layout, m;

    for (layout = 0; layout < LAYOUTS; ++layout) {
        for (m = 0; m < uci_array_size(masks); ++m) {
            mask = masks[m];
            if ((mask == MASK_ANY_SOURCE) && (layout != 1)) {
                continue;
            }
            uci_match_init(&match);
            for (i = 0; i < COUNT; ++i) {
                tags[0] = mpi_tag(7, i, 1);                 /* one of each rank */
                tags[1] = mpi_tag(i, 3, 1);                 /* of one rank */
                tags[2] = mpi_tag(i % 100, i / 100, 1);     /* of some ranks */
                tags[3] = mpi_tag(8 * i, 0, i % 2 ? 1 : 2); /* steps, in two communicators */
                uci_match_post(&match, &recvs[i], tags[layout], mask);
                uci_match_keep(&match, &msgs[i], tags[layout]);
            }
            for (i = 0; i < 10; ++i) { /* none such */
                cr_assert(uci_match_find_recv(&match, mpi_tag(i, i, 9)) == NULL);
                cr_assert(uci_match_find_msg(&match, mpi_tag(i, i, 9), mask) == NULL);
            }
            cr_expect(match.classes[UCI_MATCH_CLASSES].count == 0);
            cr_expect(longest_bucket(&match.recent->table) < 10, "receives, layout %zu, mask %zu: %zu", layout, m,
                      longest_bucket(&match.recent->table));
            cr_expect(longest_bucket(&match.msgs) < 10, "messages, layout %zu, mask %zu: %zu", layout, m,
                      longest_bucket(&match.msgs));
            for (i = 0; i < COUNT; ++i) {
                cr_assert(uci_match_find_recv(&match, recvs[i].tag) == &recvs[i]);
                cr_assert(uci_match_find_msg(&match, msgs[i].tag, mask) == &msgs[i]);
            }
            uci_match_cleanup(&match);
        }
    }
}

/* The table of messages follows the mask in use, up and down, but not for a single search */
Test(match, messages_are_hashed_under_the_mask_that_is_searched_with)
{
    enum { COUNT = 1000 };
    static const uint64_t masks[] = {MASK_ANY_TAG, MASK_ALL, MASK_MPICH, MASK_ALL};
    static uci_match_msg_t msgs[COUNT];
    uint64_t before;
    uci_match_t match;
    size_t i, m, changes;

    uci_match_init(&match);
    for (i = 0; i < COUNT; ++i) {
        uci_match_keep(&match, &msgs[i], mpi_tag(i % 10, i / 10, 1));
    }
    for (m = 0; m < uci_array_size(masks); ++m) {
        before  = match.msgs.mask;
        changes = 0;
        for (i = 0; i < 20; ++i) {
            cr_assert(uci_match_find_msg(&match, mpi_tag(1, 9999, 1), masks[m]) == NULL);
            changes += (match.msgs.mask != before);
            before = match.msgs.mask;
            cr_assert((i > 0) || (changes == 0));
        }
        cr_expect(changes <= 1);
        cr_expect((match.msgs.mask & ~masks[m]) == 0, "after mask %zu it is %lx", m, (unsigned long)match.msgs.mask);
        cr_expect(longest_bucket(&match.msgs) <= 16, "after mask %zu", m);
    }
    for (i = 0; i < COUNT; ++i) {
        cr_assert(uci_match_find_msg(&match, msgs[i].tag, MASK_ALL) == &msgs[i]);
    }
    uci_match_cleanup(&match);
}

Test(match, no_more_buckets_than_values_under_the_mask)
{
    enum { COUNT = 1000 };
    static uci_match_recv_t recvs[COUNT];
    static uci_match_msg_t msgs[COUNT];
    uci_match_t match;
    size_t i;

    uci_match_init(&match);
    for (i = 0; i < COUNT; ++i) {
        uci_match_post(&match, &recvs[i], 8, 0x38);
        uci_match_keep(&match, &msgs[i], 8);
    }
    for (i = 0; i < 10; ++i) {
        cr_assert(uci_match_find_recv(&match, 16) == NULL);
        cr_assert(uci_match_find_msg(&match, 16, 0x38) == NULL);
    }
    cr_expect(match.recent->table.num_buckets == 8);
    cr_expect(match.msgs.num_buckets == 8);
    uci_match_cleanup(&match);
}

Test(match, without_memory_it_goes_on)
{
    enum { COUNT = 3000 };
    static uci_match_recv_t recvs[COUNT];
    static uci_match_msg_t msgs[COUNT];
    uci_match_t match;
    size_t i;

    alloc_failures = 100;
    alloc_calls    = 0;
    uci_match_init(&match);
    for (i = 0; i < COUNT; ++i) {
        uci_match_post(&match, &recvs[i], i, MASK_ALL);
        uci_match_keep(&match, &msgs[i], i);
    }
    for (i = 0; i < COUNT; ++i) {
        cr_assert(uci_match_find_recv(&match, i) == &recvs[i]);
        cr_assert(uci_match_find_msg(&match, i, MASK_MPICH) == &msgs[i]);
    }
    cr_expect(alloc_calls > 0);
    cr_expect(match.msgs.num_buckets == 1);
    cr_expect(match.recent->table.num_buckets == 1);
    uci_match_cleanup(&match);
}

/* --- the model: two arrays in order, searched from the front --- */

enum { MODEL_MAX = 12000 };

typedef struct {
    uint64_t tag, mask;
    void *entry;
} model_entry_t;

typedef struct {
    model_entry_t entries[MODEL_MAX];
    size_t count;
} model_queue_t;

static model_queue_t model_recvs, model_msgs;

static void model_add(model_queue_t *queue, uint64_t tag, uint64_t mask, void *entry)
{
    cr_assert(queue->count < MODEL_MAX);
    queue->entries[queue->count++] = (model_entry_t){tag, mask, entry};
}

static void model_remove(model_queue_t *queue, size_t index)
{
    --queue->count;
    memmove(&queue->entries[index], &queue->entries[index + 1], (queue->count - index) * sizeof(queue->entries[0]));
}

/* Index of the first that matches, or count. The masks of messages are ~0. */
static size_t model_find(const model_queue_t *queue, uint64_t tag, uint64_t mask)
{
    size_t i;

    for (i = 0; i < queue->count; ++i) {
        if (((queue->entries[i].tag ^ tag) & queue->entries[i].mask & mask) == 0) {
            break;
        }
    }
    return i;
}

/* What a stretch of random operations is like */
typedef struct {
    unsigned num_masks;
    uint64_t masks[12];
    unsigned tag_kind;
    unsigned num_tags;
    size_t length;  /* that queues grow to before they are emptied */
    bool unordered; /* receives are posted, and messages kept, although they match one another */
} phase_t;

typedef struct {
    uci_match_t match;
    phase_t phase;
    uint64_t seed;
    unsigned long number;
    size_t operations;
    bool filling;
} model_test_t;

#define model_assert(_test, _condition) \
    cr_assert(_condition, "TEST_SEED=%lu, phase %lu, operation %zu: %s", (unsigned long)(_test)->seed, \
              (_test)->number, (_test)->operations, #_condition)

static uint64_t phase_tag(const phase_t *phase)
{
    uint64_t random = test_random() % phase->num_tags;

    switch (phase->tag_kind) {
    case 0:
        return random;
    case 1:
        return mpi_tag(random % 30, random / 30, 1 + test_random() % 2) | ((test_random() % 4) << 61);
    case 2:
        return random << 52;
    default: /* all bits, a limited number of values */
        return random * 0xda942042e4dd58b5ull;
    }
}

static void phase_choose(phase_t *phase)
{
    static const uint64_t masks[]  = {MASK_ALL, MASK_MPICH, MASK_ANY_SOURCE, MASK_ANY_TAG, MASK_ANY, 0, 1, 0x3f};
    static const unsigned counts[] = {1, 1, 2, 2, 3, 4, 5, 12};
    static const unsigned tags[]   = {1, 2, 8, 100, 4096, 100000};
    static const size_t lengths[]  = {1, 4, 16, 16, 64, 64, 300, 1500};
    unsigned i;

    phase->num_masks = counts[test_random() % uci_array_size(counts)];
    for (i = 0; i < phase->num_masks; ++i) {
        phase->masks[i] = (test_random() % 8 == 0) ? test_random() | test_random()
                                                   : masks[test_random() % uci_array_size(masks)];
    }
    if (test_random() % 2) {
        phase->masks[0] = MASK_MPICH;
    }
    phase->tag_kind  = test_random() % 4;
    phase->num_tags  = tags[test_random() % uci_array_size(tags)];
    phase->length    = (test_random() % 64 == 0) ? 10000 : lengths[test_random() % uci_array_size(lengths)];
    phase->unordered = test_random() % 4 == 0;
    alloc_failures   = (test_random() % 8 == 0) ? 70 : 0;
}

static void model_take_recv(model_test_t *test, size_t index)
{
    uci_match_recv_t *recv = model_recvs.entries[index].entry;

    model_assert(test, uci_match_recv_is_posted(recv));
    model_assert(test,
                 (recv->tag == model_recvs.entries[index].tag) && (recv->mask == model_recvs.entries[index].mask));
    uci_match_take_recv(&test->match, recv);
    model_assert(test, !uci_match_recv_is_posted(recv));
    model_remove(&model_recvs, index);
    free(recv);
}

static void model_take_msg(model_test_t *test, size_t index)
{
    uci_match_msg_t *msg = model_msgs.entries[index].entry;

    model_assert(test, msg->tag == model_msgs.entries[index].tag);
    uci_match_take_msg(&test->match, msg);
    model_remove(&model_msgs, index);
    free(msg);
}

/* Search both; they must agree. @return the model's index */
static size_t check_find_recv(model_test_t *test, uint64_t tag)
{
    size_t index            = model_find(&model_recvs, tag, MASK_ALL);
    uci_match_recv_t *found = uci_match_find_recv(&test->match, tag);

    model_assert(test, found == ((index < model_recvs.count) ? model_recvs.entries[index].entry : NULL));
    return index;
}

static size_t check_find_msg(model_test_t *test, uint64_t tag, uint64_t mask)
{
    size_t index           = model_find(&model_msgs, tag, mask);
    uci_match_msg_t *found = uci_match_find_msg(&test->match, tag, mask);

    model_assert(test, found == ((index < model_msgs.count) ? model_msgs.entries[index].entry : NULL));
    return index;
}

static void operation_post(model_test_t *test, uint64_t tag, uint64_t mask)
{
    uci_match_recv_t *recv;
    size_t index;

    if (!test->phase.unordered || !test->filling) {
        index = check_find_msg(test, tag, mask);
        if (index < model_msgs.count) {
            model_take_msg(test, index);
            return;
        }
    }
    if (model_recvs.count < test->phase.length) {
        recv = malloc(sizeof(*recv));
        memset(recv, 0xa5, sizeof(*recv)); /* it need not be initialized */
        uci_match_post(&test->match, recv, tag, mask);
        model_add(&model_recvs, tag, mask, recv);
    }
}

static void operation_arrive(model_test_t *test, uint64_t tag)
{
    uci_match_msg_t *msg;
    size_t index;

    if (!test->phase.unordered || !test->filling) {
        index = check_find_recv(test, tag);
        if (index < model_recvs.count) {
            model_take_recv(test, index);
            return;
        }
    }
    if (model_msgs.count < test->phase.length) {
        msg = malloc(sizeof(*msg));
        memset(msg, 0xa5, sizeof(*msg));
        uci_match_keep(&test->match, msg, tag);
        model_add(&model_msgs, tag, MASK_ALL, msg);
    }
}

static void operation_mprobe(model_test_t *test, uint64_t tag, uint64_t mask)
{
    size_t index = check_find_msg(test, tag, mask);

    if (index < model_msgs.count) {
        model_take_msg(test, index);
    }
}

static void operation_cancel(model_test_t *test)
{
    if (model_recvs.count > 0) {
        model_take_recv(test, test_random() % model_recvs.count);
    }
}

/* One operation. Half of the tags are such as are there, so that long queues match too; while a queue is filled,
 * few entries are taken. */
static void random_operation(model_test_t *test)
{
    unsigned taking = test->filling ? 2 : 30, kind = test_random() % 100;
    uint64_t tag = phase_tag(&test->phase), mask;

    mask = test->phase.masks[test_random() % test->phase.num_masks];
    if (kind < taking) {
        operation_cancel(test);
    } else if (kind < 2 * taking) {
        if ((model_msgs.count > 0) && (test_random() % 2)) {
            tag = model_msgs.entries[test_random() % model_msgs.count].tag;
        }
        operation_mprobe(test, tag, mask);
    } else if (kind < 65) {
        if ((model_recvs.count > 0) && (test_random() % 2)) {
            check_find_recv(test, model_recvs.entries[test_random() % model_recvs.count].tag);
        }
        operation_arrive(test, tag);
    } else if (kind < 95) {
        operation_post(test, tag, mask);
    } else {
        check_find_msg(test, tag, mask);
    }
    model_assert(test, test->match.recvs_count == model_recvs.count);
    model_assert(test, test->match.msgs_count == model_msgs.count);
    ++test->operations;
}

static void count_visited(void *arg, uci_match_recv_t *recv)
{
    ++*(size_t *)arg;
}

static void check_all(model_test_t *test)
{
    size_t i = 0, visited = 0;

    uci_match_for_each_msg(msg, &test->match)
    {
        model_assert(test, i < model_msgs.count);
        model_assert(test, msg == model_msgs.entries[i].entry);
        ++i;
    }
    model_assert(test, i == model_msgs.count);
    uci_match_visit_recvs(&test->match, count_visited, &visited);
    model_assert(test, visited == model_recvs.count);
}

static void empty_all(model_test_t *test)
{
    while (model_recvs.count > 0) {
        model_take_recv(test, model_recvs.count - 1);
    }
    while (model_msgs.count > 0) {
        model_take_msg(test, model_msgs.count - 1);
    }
}

/* Fill, then empty: as many operations as cost the model about the same in each phase */
static void run_phase(model_test_t *test)
{
    size_t operations = (test->phase.length > 64) ? 4 * test->phase.length : 5000, i;

    for (i = 0; i < operations; ++i) {
        test->filling = (i % operations) < operations * 5 / 8;
        random_operation(test);
    }
    check_all(test);
}

/* With 10^7 a few seconds, ten times as long with a sanitizer */
#ifdef __SANITIZE_ADDRESS__
enum { OPERATIONS = 2000000 };
#else
enum { OPERATIONS = 10000000 };
#endif

Test(match, model, .timeout = 300)
{
    size_t max_operations = test_setting("TEST_OPERATIONS", OPERATIONS);
    static model_test_t test;

    test.seed = test_seed();
    uci_match_init(&test.match);
    while (test.operations < max_operations) {
        phase_choose(&test.phase);
        run_phase(&test);
        ++test.number;
        /* the next phase finds what this one left, or the tables at least, or nothing */
        if (test_random() % 2) {
            empty_all(&test);
        }
        if ((model_recvs.count == 0) && (model_msgs.count == 0) && (test_random() % 2)) {
            uci_match_cleanup(&test.match);
            uci_match_init(&test.match);
        }
    }
    empty_all(&test);
    uci_match_cleanup(&test.match);
}
