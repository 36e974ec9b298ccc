/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The vote of twins, in cases and against a model that keeps everything. TEST_SEED=N repeats a run of the model, TEST_OPERATIONS=N makes
 * it longer.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "chance.h"

/* What votes are allocated with, so that it can fail */
static unsigned alloc_failures; /* in percent */

static void *test_alloc(size_t count, size_t size)
{
    return (test_random() % 100 < alloc_failures) ? NULL : calloc(count, size);
}

#define calloc test_alloc
#include "../../core/twin/twin_votes.c"
#undef calloc

#define LIMIT ((size_t)96 << 20)

/* What the callback was told last */
static uci_twin_verdict_t told;
static unsigned told_count;

static void tell(void *arg, const uci_twin_verdict_t *verdict)
{
    cr_assert(arg == &told);
    told = *verdict;
    ++told_count;
}

static uci_twin_votes_t *create(unsigned twins, unsigned me)
{
    uci_twin_votes_t *votes;

    told_count = 0;
    cr_assert(uci_twin_votes_create(twins, me, LIMIT, tell, &told, &votes) == UCI_OK);
    return votes;
}

/* Undecided messages that this twin has said a value of and we have none yet */
static uint64_t ahead_of_us(const uci_twin_votes_t *votes, unsigned twin)
{
    uint64_t count = 0;
    unsigned have;

    for (have = 1; have < uci_array_size(votes->open); ++have) {
        count += ((have & (1u << twin)) && !(have & (1u << votes->me))) ? votes->open[have] : 0;
    }
    return count;
}

/* One channel that all have under index 0 */
static uci_twin_votes_t *create_channel(unsigned twins, unsigned me)
{
    uci_twin_votes_t *votes = create(twins, me);
    unsigned twin;
    bool is_new;

    cr_assert(uci_twin_votes_channel(votes, 5, 77, &is_new) == 0);
    cr_assert(is_new);
    for (twin = 0; twin < twins; ++twin) {
        cr_assert((twin == me) || (uci_twin_votes_define(votes, twin, 0, 5, 77) == UCI_OK));
    }
    return votes;
}

static uci_status_t say(uci_twin_votes_t *votes, unsigned twin, uint32_t number, uint64_t digest, void *held)
{
    uci_twin_value_t value = {digest, 100, 1};

    return uci_twin_votes_add(votes, twin, 0, number, &value, held);
}

Test(twin_votes, create_refuses_what_makes_no_sense)
{
    uci_twin_votes_t *votes = NULL;

    uci_log_level = UCI_LOG_FATAL;
    cr_expect(uci_twin_votes_create(1, 0, LIMIT, tell, &told, &votes) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_create(4, 0, LIMIT, tell, &told, &votes) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_create(2, 2, LIMIT, tell, &told, &votes) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_create(2, 1, 10, tell, &told, &votes) == UCI_ERR_NO_MEMORY);
    cr_expect(votes == NULL);
    uci_twin_votes_destroy(NULL);
}

/* What is said, and what comes of it; form 0: that twin is lost before it says anything */
Test(twin_votes, outcomes)
{
    static const struct {
        uci_twin_value_t values[3];
        uci_twin_outcome_t outcome;
        int wrong;
    } cases[] = {
            {{{1, 10, 1}, {1, 10, 1}, {1, 10, 1}}, UCI_TWIN_SAME, -1},
            {{{2, 10, 1}, {1, 10, 1}, {1, 10, 1}}, UCI_TWIN_WRONG, 0},
            {{{1, 10, 1}, {2, 10, 1}, {1, 10, 1}}, UCI_TWIN_WRONG, 1},
            {{{1, 10, 1}, {1, 10, 1}, {2, 10, 1}}, UCI_TWIN_WRONG, 2},
            {{{1, 10, 1}, {1, 10, 1}, {1, 11, 1}}, UCI_TWIN_WRONG, 2},
            {{{1, 11, 2}, {1, 10, 1}, {1, 10, 1}}, UCI_TWIN_WRONG, 0}, /* lengths can be compared whatever the form */
            {{{1, 10, 1}, {2, 10, 1}, {3, 10, 1}}, UCI_TWIN_SPLIT, -1},
            {{{1, 10, 1}, {2, 10, 1}, {1, 10, 2}}, UCI_TWIN_SPLIT, -1},
            {{{1, 10, 1}, {1, 10, 2}, {1, 11, 1}}, UCI_TWIN_SPLIT, -1},
            {{{1, 10, 1}, {1, 10, 1}, {1, 10, 2}}, UCI_TWIN_UNLIKE, -1},
            {{{1, 10, 1}, {1, 10, 3}, {1, 10, 2}}, UCI_TWIN_UNLIKE, -1},
            {{{1, 10, 1}, {1, 10, 1}, {0, 0, 0}}, UCI_TWIN_SAME, -1},
            {{{1, 10, 1}, {2, 10, 1}, {0, 0, 0}}, UCI_TWIN_SPLIT, -1},
            {{{1, 10, 1}, {1, 11, 2}, {0, 0, 0}}, UCI_TWIN_SPLIT, -1},
            {{{1, 10, 1}, {1, 10, 2}, {0, 0, 0}}, UCI_TWIN_UNLIKE, -1},
            {{{1, 10, 1}, {0, 0, 0}, {0, 0, 0}}, UCI_TWIN_ALONE, -1},
    };
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    uci_twin_votes_t *votes;
    size_t i, order;
    unsigned j, have;

    for (i = 0; i < uci_array_size(cases); ++i) {
        for (order = 0; order < 6; ++order) {
            votes = create_channel(3, 0);
            for (j = 0; j < 3; ++j) {
                if (cases[i].values[j].form == 0) {
                    uci_twin_votes_lose(votes, j);
                }
            }
            for (have = j = 0; j < 3; ++j) {
                unsigned twin = orders[order][j];

                if (cases[i].values[twin].form != 0) {
                    cr_assert(told_count == 0);
                    have |= 1u << twin;
                    cr_assert(uci_twin_votes_add(votes, twin, 0, 0, &cases[i].values[twin],
                                                 (twin == 0) ? &told : NULL) == UCI_OK);
                }
            }
            cr_assert(told_count == 1, "case %zu", i);
            cr_expect(told.outcome == cases[i].outcome, "case %zu, order %zu: outcome %d", i, order, told.outcome);
            cr_expect(told.wrong == cases[i].wrong, "case %zu, order %zu: %d", i, order, told.wrong);
            cr_expect((told.have == have) && (told.channel == 0) && (told.number == 0) && (told.source == 5) &&
                      (told.tag == 77));
            cr_expect(told.held == &told);
            for (j = 0; j < 3; ++j) {
                cr_expect((told.values[j].digest == cases[i].values[j].digest) &&
                          (told.values[j].form == cases[i].values[j].form) &&
                          (told.values[j].length == cases[i].values[j].length));
            }
            uci_twin_votes_destroy(votes);
        }
    }
}

Test(twin_votes, agreement_nobody_waits_for_is_counted_and_not_told)
{
    uci_twin_votes_t *votes = create_channel(2, 1);

    cr_expect(say(votes, 0, 0, 3, NULL) == UCI_OK);
    cr_expect(ahead_of_us(votes, 0) == 1);
    cr_expect(uci_twin_votes_waiting(votes, 0) == 0);
    cr_expect(say(votes, 1, 0, 3, NULL) == UCI_OK);
    cr_expect(told_count == 0);
    cr_expect(uci_twin_votes_agreed(votes) == 1);
    cr_expect(say(votes, 1, 1, 3, &told_count) == UCI_OK);
    cr_expect(uci_twin_votes_waiting(votes, 0) == 1);
    cr_expect(say(votes, 0, 1, 3, NULL) == UCI_OK);
    cr_expect((told_count == 1) && (told.outcome == UCI_TWIN_SAME) && (told.held == &told_count));
    cr_expect(uci_twin_votes_agreed(votes) == 2);
    uci_twin_votes_destroy(votes);
}

/* One by one, and in a run */
Test(twin_votes, has_a_sender_agreed)
{
    uci_twin_value_t empty = {5, 0, 1}, some = {5, 8, 1};
    uint64_t digests[40] = {0};
    uci_twin_votes_t *votes;
    unsigned run;

    for (run = 0; run < 2; ++run) {
        votes = create_channel(2, 0);
        cr_expect(!uci_twin_votes_has_agreed(votes, 5));
        cr_assert(uci_twin_votes_add(votes, 0, 0, 0, &empty, NULL) == UCI_OK);
        cr_assert(uci_twin_votes_add(votes, 1, 0, 0, &empty, NULL) == UCI_OK);
        cr_expect(uci_twin_votes_agreed(votes) == 1);
        cr_expect(!uci_twin_votes_has_agreed(votes, 5), "there is nothing in it");
        if (run == 0) {
            cr_assert(uci_twin_votes_add(votes, 0, 0, 1, &some, NULL) == UCI_OK);
            cr_assert(uci_twin_votes_add(votes, 1, 0, 1, &some, NULL) == UCI_OK);
        } else {
            cr_assert(uci_twin_votes_add_run(votes, 0, 0, 1, &some, digests, uci_array_size(digests)) == UCI_OK);
            cr_expect(!uci_twin_votes_has_agreed(votes, 5));
            cr_assert(uci_twin_votes_add_run(votes, 1, 0, 1, &some, digests, uci_array_size(digests)) == UCI_OK);
        }
        cr_expect(uci_twin_votes_has_agreed(votes, 5));
        cr_expect(!uci_twin_votes_has_agreed(votes, 6), "another sender");
        uci_twin_votes_destroy(votes);
    }
}

Test(twin_votes, what_is_said_twice_is_refused)
{
    uci_twin_votes_t *votes = create_channel(3, 0);

    uci_log_level = UCI_LOG_FATAL;
    cr_expect(say(votes, 1, 1, 3, NULL) == UCI_OK);
    cr_expect(say(votes, 1, 1, 3, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(say(votes, 0, 1, 3, NULL) == UCI_OK);
    cr_expect(say(votes, 2, 1, 3, NULL) == UCI_OK);
    cr_expect(uci_twin_votes_agreed(votes) == 1);
    cr_expect(say(votes, 1, 1, 3, NULL) == UCI_ERR_INVALID_PARAM, "decided, while number 0 is not");
    cr_expect(say(votes, 0, 0, 3, NULL) == UCI_OK);
    cr_expect(say(votes, 1, 0, 3, NULL) == UCI_OK);
    cr_expect(say(votes, 2, 0, 3, NULL) == UCI_OK);
    cr_expect(say(votes, 2, 0, 3, NULL) == UCI_ERR_INVALID_PARAM, "and all before it");
    cr_expect(say(votes, 2, 1, 3, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect((uci_twin_votes_agreed(votes) == 2) && (told_count == 0));
    uci_twin_votes_destroy(votes);
}

Test(twin_votes, channels)
{
    uci_twin_votes_t *votes = create(2, 0);
    uci_twin_value_t value  = {1, 1, 1};
    bool is_new;

    uci_log_level = UCI_LOG_FATAL;
    cr_expect((uci_twin_votes_channel(votes, 1, 10, &is_new) == 0) && is_new);
    cr_expect((uci_twin_votes_channel(votes, 1, 10, &is_new) == 0) && !is_new);
    cr_expect((uci_twin_votes_channel(votes, 2, 10, &is_new) == 1) && is_new);
    cr_expect((uci_twin_votes_channel(votes, 1, 11, &is_new) == 2) && is_new);
    cr_expect((uci_twin_votes_channel(votes, 1, 10, &is_new) == 0) && !is_new);
    cr_expect(uci_twin_votes_peek(votes, 1, 10) == 0);
    cr_expect((uci_twin_votes_next(votes, 0) == 0) && (uci_twin_votes_next(votes, 0) == 1) &&
              (uci_twin_votes_next(votes, 1) == 0));
    cr_expect((uci_twin_votes_peek(votes, 1, 10) == 2) && (uci_twin_votes_peek(votes, 2, 10) == 1));
    cr_expect(uci_twin_votes_peek(votes, 7, 10) == 0, "none of ours");

    cr_expect(uci_twin_votes_define(votes, 1, 1, 1, 11) == UCI_ERR_INVALID_PARAM, "not dense");
    cr_expect(uci_twin_votes_define(votes, 1, 0, 1, 11) == UCI_OK);
    cr_expect(uci_twin_votes_define(votes, 1, 0, 1, 12) == UCI_ERR_INVALID_PARAM, "again");
    cr_expect(uci_twin_votes_define(votes, 1, 1, 1, 11) == UCI_ERR_INVALID_PARAM, "the same channel");
    cr_expect(uci_twin_votes_define(votes, 0, 3, 1, 12) == UCI_ERR_INVALID_PARAM, "of ours");
    cr_expect(uci_twin_votes_define(votes, 2, 0, 1, 11) == UCI_ERR_INVALID_PARAM, "no such twin");
    cr_expect(uci_twin_votes_define(votes, 77, 0, 1, 11) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_define(votes, 1, 1, 9, 9) == UCI_OK, "one that we have not");
    cr_expect((uci_twin_votes_channel(votes, 9, 9, &is_new) == 3) && is_new);

    cr_expect(uci_twin_votes_add(votes, 1, 2, 0, &value, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_add(votes, 0, 4, 0, &value, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_add(votes, 2, 0, 0, &value, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_add(votes, 99, 0, 0, &value, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_add(votes, 1, 0, 0, &value, NULL) == UCI_OK);
    cr_expect(uci_twin_votes_add(votes, 0, 2, 0, &value, NULL) == UCI_OK);
    cr_expect(uci_twin_votes_agreed(votes) == 1, "index 0 of one is 2 of the other");
    uci_twin_votes_destroy(votes);
}

Test(twin_votes, many_channels)
{
    enum { COUNT = 20000 };
    uci_twin_votes_t *votes = create(2, 0);
    bool is_new;
    uint32_t i;

    for (i = 0; i < COUNT; ++i) {
        cr_assert((uci_twin_votes_channel(votes, i % 100, (uint64_t)(i / 100) << 40, &is_new) == i) && is_new);
    }
    for (i = 0; i < COUNT; ++i) {
        cr_assert((uci_twin_votes_channel(votes, i % 100, (uint64_t)(i / 100) << 40, &is_new) == i) && !is_new);
    }
    cr_expect(votes->bytes < (size_t)240 * COUNT, "%zu bytes each", votes->bytes / COUNT);
    uci_twin_votes_destroy(votes);
}

Test(twin_votes, a_twin_far_ahead_and_its_memory)
{
    enum { COUNT = 100000 };
    uci_twin_votes_t *votes = create_channel(3, 0);
    size_t before           = votes->bytes;
    uint32_t i;

    for (i = 0; i < COUNT; ++i) {
        cr_assert(say(votes, 1, i, i, NULL) == UCI_OK);
    }
    cr_expect(ahead_of_us(votes, 1) == COUNT);
    cr_expect(votes->bytes < before + (size_t)COUNT * 2 * 32);
    for (i = 0; i < COUNT; ++i) {
        cr_assert(say(votes, 0, i, i, NULL) == UCI_OK);
    }
    cr_expect((uci_twin_votes_waiting(votes, 2) == COUNT) && (uci_twin_votes_waiting(votes, 1) == 0));
    for (i = 0; i < COUNT; ++i) {
        cr_assert(say(votes, 2, i, i, NULL) == UCI_OK);
    }
    cr_expect(uci_twin_votes_agreed(votes) == COUNT);
    cr_expect(votes->bytes == before, "given back");
    uci_twin_votes_destroy(votes);
}

/* A program that has a new tag for each message goes on without room, and is told of it once */
Test(twin_votes, no_room_is_said_once)
{
    uci_twin_votes_t *votes = create(2, 0);
    test_capture_t capture;
    uint32_t found = 0;
    bool is_new;
    uint64_t tag;
    char *text;

    votes->max_bytes = 1 << 16;
    capture          = test_capture_start();
    for (tag = 0; tag < 1000; ++tag) {
        found += (uci_twin_votes_channel(votes, 1, tag, &is_new) != UCI_TWIN_CHANNEL_NONE);
    }
    text = test_capture_stop(&capture);
    cr_expect((found > 200) && (found < 1000), "%u", found);
    cr_expect(strstr(text, "over the limit") == strrchr(text, '\n') - strlen("over the limit of 65536"), "'%s'", text);
    free(text);
    cr_expect(uci_twin_votes_channel(votes, 1, 0, &is_new) == 0, "as before");
    for (tag = 0; tag < found; ++tag) {
        cr_assert(uci_twin_votes_define(votes, 1, (uint32_t)tag, 1, tag) == UCI_OK, "who is late has a place");
    }
    cr_expect(uci_twin_votes_define(votes, 1, found, 1, found) == UCI_ERR_NO_MEMORY);
    uci_twin_votes_destroy(votes);
}

/* A large message that a smaller one overtakes, with both twins: their slots are free again */
Test(twin_votes, what_is_decided_early_is_given_back)
{
    static const uint32_t order[]       = {2, 1, 3, 0};
    static const uci_twin_value_t value = {.digest = 7, .length = 8, .form = 1};
    uci_twin_votes_t *votes             = create_channel(2, 0);
    size_t before                       = votes->bytes, i;
    unsigned twin;
    uint32_t n;

    for (twin = 0; twin < 2; ++twin) {
        for (i = 0; i < uci_array_size(order); ++i) {
            cr_assert(uci_twin_votes_add_run(votes, twin, 0, order[i], &value, &value.digest, 1) == UCI_OK);
        }
    }
    for (n = uci_array_size(order); n < 10000; ++n) {
        for (twin = 0; twin < 2; ++twin) {
            cr_assert(uci_twin_votes_add_run(votes, twin, 0, n, &value, &value.digest, 1) == UCI_OK);
        }
    }
    cr_expect(uci_twin_votes_agreed(votes) == n);
    cr_expect(votes->bytes < before + 4096);
    uci_twin_votes_destroy(votes);
}

Test(twin_votes, numbers_that_nobody_can_have_are_refused)
{
    uci_twin_votes_t *votes = create_channel(2, 0);
    size_t before           = votes->bytes;

    uci_log_level = UCI_LOG_FATAL;
    cr_expect(say(votes, 1, UINT32_MAX, 1, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(say(votes, 1, UINT32_MAX / 2, 1, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(say(votes, 1, UCI_TWIN_WINDOW + UCI_TWIN_RING_MIN, 1, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(votes->bytes == before);
    cr_expect(say(votes, 1, UCI_TWIN_WINDOW + UCI_TWIN_RING_MIN - 1, 1, NULL) == UCI_OK);
    cr_expect(say(votes, 1, 3 * UCI_TWIN_WINDOW - 1, 1, NULL) == UCI_ERR_NO_MEMORY, "more than the limit");
    cr_expect(votes->bytes <= LIMIT);
    cr_expect(say(votes, 0, UCI_TWIN_WINDOW + UCI_TWIN_RING_MIN - 1, 1, NULL) == UCI_OK, "and goes on");
    cr_expect(uci_twin_votes_agreed(votes) == 1);
    uci_twin_votes_destroy(votes);
}

Test(twin_votes, losing_ourselves_decides_what_the_others_have)
{
    uci_twin_votes_t *votes = create_channel(3, 0);
    bool is_new;

    uci_log_level = UCI_LOG_FATAL;
    say(votes, 1, 0, 4, NULL);
    say(votes, 2, 0, 5, NULL);
    uci_twin_votes_lose(votes, 0);
    cr_expect((told_count == 1) && (told.outcome == UCI_TWIN_SPLIT) && (told.have == 6));
    cr_expect(say(votes, 0, 1, 4, NULL) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_twin_votes_channel(votes, 5, 77, &is_new) == UCI_TWIN_CHANNEL_NONE);
    uci_twin_votes_lose(votes, 1);
    cr_expect(say(votes, 2, 1, 4, NULL) == UCI_OK);
    cr_expect((told_count == 2) && (told.outcome == UCI_TWIN_ALONE));
    uci_twin_votes_lose(votes, 2);
    uci_twin_votes_lose(votes, 2);
    uci_twin_votes_lose(votes, 9);
    cr_expect(told_count == 2);
    uci_twin_votes_destroy(votes);
}

/* The callback of a receive that was held: the program posts the next one, which is there already */
typedef struct {
    uci_twin_votes_t *votes;
    uint32_t next, count;
} chain_t;

static void go_on(void *arg, const uci_twin_verdict_t *verdict)
{
    chain_t *chain         = arg;
    uci_twin_value_t value = {7, 7, 7};

    cr_assert(verdict->held == chain);
    cr_assert(verdict->number == chain->count);
    ++chain->count;
    if (chain->next < 1000) {
        cr_assert(uci_twin_votes_add(chain->votes, 0, 0, chain->next++, &value, chain) == UCI_OK);
    }
}

Test(twin_votes, the_callback_may_add)
{
    uci_twin_value_t value = {7, 7, 7};
    bool is_losing, is_new;
    chain_t chain;
    uint32_t i;

    for (is_losing = false;; is_losing = true) {
        chain = (chain_t){.next = 1};
        cr_assert(uci_twin_votes_create(2, 0, LIMIT, go_on, &chain, &chain.votes) == UCI_OK);
        uci_twin_votes_channel(chain.votes, 0, 0, &is_new);
        uci_twin_votes_define(chain.votes, 1, 0, 0, 0);
        for (i = is_losing; i < 1000; ++i) {
            uci_twin_votes_add(chain.votes, 1, 0, i, &value, NULL);
        }
        cr_expect(uci_twin_votes_add(chain.votes, 0, 0, 0, &value, &chain) == UCI_OK);
        if (is_losing) {
            uci_twin_votes_lose(chain.votes, 1);
        }
        cr_expect(chain.count == 1000);
        uci_twin_votes_destroy(chain.votes);
        if (is_losing) {
            break;
        }
    }
}

/* --- the model: everything that was ever said --- */

enum { CHANNELS = 9, NUMBERS = 600 };

typedef struct {
    uci_twin_value_t values[3];
    void *held;
    unsigned have;
    bool is_decided;
} model_message_t;

typedef struct {
    model_message_t messages[CHANNELS][NUMBERS];
    uint32_t start[CHANNELS];         /* the first number, as the votes know it */
    uint32_t index[3][CHANNELS];      /* of each twin */
    uint32_t channels_of[3];          /* so many are defined */
    uint32_t first_open[3][CHANNELS]; /* all numbers below are said */
    uint64_t agreed[CHANNELS], decided[CHANNELS];
    unsigned twins, me, live;
    uci_twin_votes_t *votes;
    uci_twin_verdict_t expected[CHANNELS * NUMBERS]; /* to be told, in this order */
    size_t expected_count, told_count;
    uint64_t seed;
    size_t operations;
    unsigned wrongs, unordered, ahead, runs; /* in percent */
} model_t;

static model_t model;

#define model_assert(_condition) \
    cr_assert(_condition, "TEST_SEED=%lu, operation %zu: %s", (unsigned long)model.seed, model.operations, #_condition)

static bool model_same(const uci_twin_value_t *a, const uci_twin_value_t *b)
{
    return (a->form == b->form) && (a->length == b->length) && (a->digest == b->digest);
}

static void model_told(void *arg, const uci_twin_verdict_t *verdict)
{
    const uci_twin_verdict_t *expected = &model.expected[model.told_count];
    unsigned i;

    model_assert(model.told_count < model.expected_count);
    model_assert((verdict->outcome == expected->outcome) && (verdict->wrong == expected->wrong));
    model_assert((verdict->source == expected->source) && (verdict->tag == expected->tag) &&
                 (verdict->number == expected->number));
    model_assert((verdict->have == expected->have) && (verdict->held == expected->held) &&
                 (verdict->channel == expected->channel));
    for (i = 0; i < 3; ++i) {
        model_assert(model_same(&verdict->values[i], &expected->values[i]));
    }
    ++model.told_count;
}

static uint32_t model_source(unsigned channel)
{
    return channel % 3;
}

static uint64_t model_tag(unsigned channel)
{
    return (uint64_t)(channel / 3) << 40;
}

static bool model_differ(const uci_twin_value_t *a, const uci_twin_value_t *b)
{
    return (a->length != b->length) || ((a->form == b->form) && (a->digest != b->digest));
}

static void model_judge(const model_message_t *message, uci_twin_verdict_t *verdict)
{
    const uci_twin_value_t *values[3] = {NULL};
    unsigned names[3], count = 0, i, j;
    bool all_same = true, some_differ = false;

    for (i = 0; i < 3; ++i) {
        if (message->have & (1u << i)) {
            names[count]    = i;
            values[count++] = &message->values[i];
        }
    }
    for (i = 0; i < count; ++i) {
        for (j = 0; j < i; ++j) {
            all_same &= model_same(values[i], values[j]);
            some_differ |= model_differ(values[i], values[j]);
        }
    }
    verdict->wrong   = -1;
    verdict->outcome = (count == 1)  ? UCI_TWIN_ALONE
                       : all_same    ? UCI_TWIN_SAME
                       : some_differ ? UCI_TWIN_SPLIT
                                     : UCI_TWIN_UNLIKE;
    for (i = 0; (count == 3) && (i < 3); ++i) {
        if (model_same(values[(i + 1) % 3], values[(i + 2) % 3]) && model_differ(values[i], values[(i + 1) % 3])) {
            verdict->outcome = UCI_TWIN_WRONG;
            verdict->wrong   = (int)names[i];
        }
    }
}

static void model_settle(unsigned channel, uint32_t number)
{
    model_message_t *message     = &model.messages[channel][number];
    uci_twin_verdict_t *expected = &model.expected[model.expected_count];

    if (message->is_decided || (message->have == 0) || (model.live & ~message->have)) {
        return;
    }
    memset(expected, 0, sizeof(*expected));
    model_judge(message, expected);
    message->is_decided = true;
    ++model.decided[channel];
    if (expected->outcome == UCI_TWIN_SAME) {
        ++model.agreed[channel];
    }
    if ((expected->outcome == UCI_TWIN_SAME) && (message->held == NULL)) {
        return;
    }
    expected->have    = message->have;
    expected->channel = model.index[model.me][channel];
    expected->number  = model.start[channel] + number;
    expected->source  = model_source(channel);
    expected->tag     = model_tag(channel);
    expected->held    = message->held;
    memcpy(expected->values, message->values, sizeof(expected->values));
    ++model.expected_count;
}

static void model_lose(unsigned twin)
{
    unsigned i, channel;
    uint32_t number;

    model.live &= ~(1u << twin);
    for (i = 0; i < model.votes->all.count; ++i) { /* in the order in which channels were made */
        for (channel = 0; channel < CHANNELS; ++channel) {
            if ((model_source(channel) == model.votes->all.channels[i]->source) &&
                (model_tag(channel) == model.votes->all.channels[i]->tag)) {
                for (number = 0; number < NUMBERS; ++number) {
                    model_settle(channel, number);
                }
            }
        }
    }
    uci_twin_votes_lose(model.votes, twin);
}

/* Let a twin have an index of a channel. @return false: no memory this time */
static bool model_define(unsigned twin, unsigned channel)
{
    uint32_t made = model.votes->all.count, index;
    bool is_new;

    if (model.index[twin][channel] != UCI_TWIN_CHANNEL_NONE) {
        return true;
    }
    if (twin == model.me) {
        index = uci_twin_votes_channel(model.votes, model_source(channel), model_tag(channel), &is_new);
        if (index == UCI_TWIN_CHANNEL_NONE) {
            return false;
        }
        model_assert(is_new);
    } else {
        index = model.channels_of[twin];
        if (uci_twin_votes_define(model.votes, twin, index, model_source(channel), model_tag(channel)) != UCI_OK) {
            return false;
        }
    }
    model_assert(index == model.channels_of[twin]);
    ++model.channels_of[twin];
    model.index[twin][channel] = index;
    if (model.votes->all.count > made) { /* near the end of numbers, now and then */
        model.votes->all.channels[made]->base = model.start[channel];
    }
    return true;
}

static uci_twin_value_t model_value(unsigned channel, uint32_t number)
{
    uci_twin_value_t value;

    value.digest = channel * 1000003u + number;
    value.length = number / 16 % 3;
    value.form   = 1;
    if (test_random() % 100 < model.wrongs) {
        switch (test_random() % 3) {
        case 0:
            value.digest ^= 1ull << (test_random() % 2);
            break;
        case 1:
            value.length += 1 + test_random() % 2;
            break;
        default:
            value.form += 1 + (uint32_t)(test_random() % 2);
        }
    }
    return value;
}

static uint32_t model_choose_number(unsigned twin, unsigned channel)
{
    uint32_t *first = &model.first_open[twin][channel], number;

    while ((*first < NUMBERS) && (model.messages[channel][*first].have & (1u << twin))) {
        ++*first;
    }
    number = *first;
    if (test_random() % 100 < model.unordered) {
        number += (uint32_t)(test_random() % ((test_random() % 10 == 0) ? NUMBERS : 20));
    }
    return number;
}

static void model_say(unsigned twin, unsigned channel, uint32_t number)
{
    model_message_t *message = &model.messages[channel][number];
    uci_twin_value_t value   = model_value(channel, number);
    void *held               = (test_random() % 2) ? (void *)(uintptr_t)(number + 1) : NULL;
    model_message_t before   = *message;
    size_t expected_before = model.expected_count, bytes = model.votes->bytes;
    uint64_t agreed = model.agreed[channel], decided = model.decided[channel];
    uci_status_t status;

    message->have |= 1u << twin;
    message->values[twin] = value;
    if (twin == model.me) {
        message->held = held;
    }
    model_settle(channel, number);
    status = uci_twin_votes_add(model.votes, twin, model.index[twin][channel], model.start[channel] + number, &value,
                                (twin == model.me) ? held : NULL);
    if (status == UCI_OK) {
        return;
    }
    model_assert((status == UCI_ERR_NO_MEMORY) && (alloc_failures > 0));
    model_assert(model.votes->bytes >= bytes);
    *message               = before;
    model.expected_count   = expected_before;
    model.agreed[channel]  = agreed;
    model.decided[channel] = decided;
}

static void model_say_again(unsigned twin, unsigned channel)
{
    uint32_t number        = (uint32_t)(test_random() % NUMBERS);
    uci_twin_value_t value = model_value(channel, number);

    if (model.messages[channel][number].have & (1u << twin)) {
        model_assert(uci_twin_votes_add(model.votes, twin, model.index[twin][channel], model.start[channel] + number,
                                        &value, NULL) == UCI_ERR_INVALID_PARAM);
    }
}

/* Some in a row, up to what this twin has said before */
static void model_say_run(unsigned twin, unsigned channel, uint32_t number)
{
    uci_twin_value_t like = model_value(channel, number), value = like;
    size_t length = 1 + test_random() % 60, count;
    uint64_t digests[60];
    bool is_wrong = false;

    for (count = 0; (count < length) && (number + count < NUMBERS) && !is_wrong; ++count) {
        model_message_t *message = &model.messages[channel][number + count];

        is_wrong       = message->have & (1u << twin);
        digests[count] = model_value(channel, number + (uint32_t)count).digest;
        value.digest   = digests[count];
        if (!is_wrong) {
            message->have |= 1u << twin;
            message->values[twin] = value;
            model_settle(channel, number + (uint32_t)count);
        }
    }
    model_assert(uci_twin_votes_add_run(model.votes, twin, model.index[twin][channel], model.start[channel] + number,
                                        &like, digests, count) == (is_wrong ? UCI_ERR_INVALID_PARAM : UCI_OK));
}

static void model_say_something(void)
{
    unsigned twin = (unsigned)(test_random() % model.twins), channel = (unsigned)(test_random() % CHANNELS);
    uint32_t number;

    if (test_random() % 100 < model.ahead) {
        twin = (unsigned)(model.seed % model.twins);
    }
    if (!(model.live & (1u << twin))) {
        uci_twin_value_t value = {0};

        model_assert(uci_twin_votes_add(model.votes, twin, 0, 0, &value, NULL) == UCI_ERR_INVALID_PARAM);
        return;
    }
    number = model_choose_number(twin, channel);
    if (!model_define(twin, channel) || (number >= NUMBERS)) {
        return;
    }
    if (test_random() % 20 == 0) {
        model_say_again(twin, channel);
    } else if ((alloc_failures == 0) && (test_random() % 100 < model.runs)) {
        model_say_run(twin, channel, number);
    } else if (!(model.messages[channel][number].have & (1u << twin))) {
        model_say(twin, channel, number);
    }
}

static void model_check_tally(void *arg, const uci_twin_tally_t *tally)
{
    unsigned channel = tally->source + 3 * (unsigned)(tally->tag >> 40);

    model_assert((tally->agreed == model.agreed[channel]) && (tally->decided == model.decided[channel]));
    ++*(unsigned *)arg;
}

static void model_check(void)
{
    uint64_t waiting[3] = {0}, ahead[3] = {0}, agreed = 0;
    unsigned twin, channel, visited                   = 0;
    uint32_t number;

    for (channel = 0; channel < CHANNELS; ++channel) {
        agreed += model.agreed[channel];
        for (number = 0; number < NUMBERS; ++number) {
            const model_message_t *message = &model.messages[channel][number];

            for (twin = 0; (twin < model.twins) && !message->is_decided; ++twin) {
                waiting[twin] += (message->have & (1u << model.me)) && !(message->have & (1u << twin));
                ahead[twin] += !(message->have & (1u << model.me)) && (message->have & (1u << twin));
            }
        }
    }
    for (twin = 0; twin < model.twins; ++twin) {
        if ((twin != model.me) && (model.live & (1u << twin))) {
            model_assert(uci_twin_votes_waiting(model.votes, twin) == waiting[twin]);
        }
        model_assert(ahead_of_us(model.votes, twin) == ahead[twin]);
    }
    model_assert(uci_twin_votes_agreed(model.votes) == agreed);
    model_assert(model.told_count == model.expected_count);
    uci_twin_votes_visit(model.votes, model_check_tally, &visited);
    model_assert(visited == model.votes->all.count);
}

/* One job: some operations, then some or all are lost in turn, with operations between */
static void model_run(void)
{
    static const unsigned percents[] = {0, 0, 2, 30, 90};
    size_t i, operations = 200 + test_random() % 20000;
    uint64_t seed = model.seed;
    size_t done   = model.operations;
    unsigned channel;

    memset(&model, 0, sizeof(model));
    memset(model.index, 0xff, sizeof(model.index));
    model.seed       = seed;
    model.operations = done;
    model.twins      = 2 + (unsigned)(test_random() % 2);
    model.me         = (unsigned)(test_random() % model.twins);
    model.live       = (1u << model.twins) - 1;
    model.wrongs     = percents[test_random() % uci_array_size(percents)];
    model.unordered  = percents[test_random() % uci_array_size(percents)];
    model.ahead      = percents[test_random() % uci_array_size(percents)];
    model.runs       = percents[test_random() % uci_array_size(percents)];
    for (channel = 0; channel < CHANNELS; ++channel) {
        model.start[channel] = (test_random() % 2) ? 0 : (uint32_t)(0u - test_random() % 500);
    }
    alloc_failures = 0;
    cr_assert(uci_twin_votes_create(model.twins, model.me, LIMIT, model_told, NULL, &model.votes) == UCI_OK);
    alloc_failures = percents[test_random() % 4];
    for (i = 0; i < operations; ++i) {
        model_say_something();
        ++model.operations;
        model_assert(model.told_count == model.expected_count);
        if (test_random() % 3000 == 0) {
            model_check();
        }
        if (test_random() % 10000 == 0) {
            model_lose((unsigned)(test_random() % model.twins));
        }
    }
    model_check();
    uci_twin_votes_destroy(model.votes);
}

#ifdef __SANITIZE_ADDRESS__
enum { OPERATIONS = 1000000 };
#else
enum { OPERATIONS = 5000000 };
#endif

Test(twin_votes, model, .timeout = 300)
{
    size_t max_operations = test_setting("TEST_OPERATIONS", OPERATIONS);

    uci_log_level = UCI_LOG_FATAL;
    model.seed    = test_seed();
    while (model.operations < max_operations) {
        model_run();
    }
}
