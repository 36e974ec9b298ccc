/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Following a leader's wildcards and probes: cases, and random programs that are run by a leader and by followers, with messages that come
 * in other orders and choices that come whenever. The leader's matching is checked against two arrays searched from the front, the followers'
 * against the leader's. TEST_SEED=N repeats a run, TEST_PROGRAMS=N makes it longer.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "chance.h"

/* What it has allocated and not freed */
static size_t memory_blocks;

static void *test_calloc(size_t count, size_t size)
{
    ++memory_blocks;
    return calloc(count, size);
}

static void test_free(void *memory)
{
    --memory_blocks;
    free(memory);
}

#define calloc test_calloc
#define free   test_free
#include "../../core/twin/twin_follow.c"
#undef calloc
#undef free

/* Open MPI's tags and masks, in one communicator */
#define MASK_EXACT      UINT64_MAX
#define MASK_ANY_SOURCE 0xffffff00000fffffull
#define MASK_ANY_TAG    0x800000ffffffffffull
#define MASK_ANY        0x80000000000fffffull

enum { SOURCES = 4, TAGS = 3, MAX_OPS = 120, MAX_PER_CHANNEL = 60, WAIT = 1000 };

static uint64_t make_tag(unsigned source, unsigned tag)
{
    return ((uint64_t)tag << 40) | ((uint64_t)source << 20) | 1;
}

static unsigned source_of(uint64_t tag)
{
    return (tag >> 20) & 0xfffff;
}

static unsigned tag_of(uint64_t tag)
{
    return (unsigned)(tag >> 40);
}

/* A message that was sent */
typedef struct {
    uci_match_msg_t match;
    uint64_t tag;
    uint32_t number; /* in its channel */
    bool is_taken;
} msg_t;

typedef enum { OP_POST, OP_CANCEL, OP_PROBE } op_kind_t;

/* What a program does next. A probe is repeated, with each of its keys in turn, until one of them finds something. */
typedef struct {
    op_kind_t kind;
    uint64_t tags[2], masks[2];
    unsigned keys; /* of a probe */
    bool remove;
    size_t which; /* CANCEL: what receive */
} op_t;

/* What came of it */
typedef struct {
    uci_match_recv_t match;
    const msg_t *got;
    unsigned key; /* of a probe: that found it */
    bool is_cancelled;
} result_t;

/* What a leader told */
typedef struct {
    bool is_probe, removed;
    uint64_t tag, mask;
    uint32_t number;
    uci_twin_message_t message;
} word_t;

typedef struct {
    op_t ops[MAX_OPS];
    size_t ops_count;
    uint8_t sends[SOURCES][MAX_PER_CHANNEL * TAGS]; /* tags, in the order of sending */
    size_t sends_count[SOURCES];
} program_t;

/* One twin that runs it */
typedef struct {
    const program_t *program;
    uci_match_t match;
    uci_twin_follow_t *follow;
    bool is_leader;
    result_t results[MAX_OPS];
    size_t ops_done;
    unsigned turn; /* of a probe: the next key */
    msg_t msgs[SOURCES][MAX_PER_CHANNEL * TAGS];
    size_t arrived[SOURCES];
    uint32_t next[SOURCES][TAGS];
    word_t words[MAX_OPS + 1];
    size_t words_count, words_heard;
    uint64_t now;
} twin_t;

static program_t program;
static twin_t leader, follower;
static uint64_t run_seed;

#define expect(_condition) cr_assert(_condition, "TEST_SEED=%lu: %s", (unsigned long)run_seed, #_condition)

/* --- the caller's part --- */

static uint32_t on_source(void *arg, const uci_match_msg_t *msg)
{
    return source_of(msg->tag);
}

static uint32_t on_next(void *arg, uint32_t source, uint64_t tag)
{
    const twin_t *twin = arg;

    expect(source_of(tag) == source);
    return twin->next[source][tag_of(tag)];
}

static void take(twin_t *twin, msg_t *msg, result_t *result)
{
    expect(!msg->is_taken && (result->got == NULL) && !result->is_cancelled);
    expect(msg->number == twin->next[source_of(msg->tag)][tag_of(msg->tag)]);
    ++twin->next[source_of(msg->tag)][tag_of(msg->tag)];
    msg->is_taken = true;
    result->got   = msg;
}

static void on_deliver(void *arg, uci_match_msg_t *match, uci_match_recv_t *recv)
{
    twin_t *twin = arg;

    expect(!uci_match_recv_is_posted(recv));
    uci_match_take_msg(&twin->match, match);
    take(twin, uci_container_of(match, msg_t, match), uci_container_of(recv, result_t, match));
}

static void on_cancelled(void *arg, uci_match_recv_t *recv)
{
    result_t *result = uci_container_of(recv, result_t, match);

    expect(!uci_match_recv_is_posted(recv) && (result->got == NULL) && !result->is_cancelled);
    result->is_cancelled = true;
}

static uint64_t on_now(void *arg)
{
    return ((twin_t *)arg)->now;
}

static void tell(twin_t *twin, const word_t *word)
{
    expect(twin->is_leader && (twin->words_count < MAX_OPS));
    twin->words[twin->words_count++] = *word;
}

static void on_choice(void *arg, uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message)
{
    word_t word = {.tag = tag, .mask = mask, .number = number, .message = *message};

    tell(arg, &word);
}

static void on_probe(void *arg, uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message,
                     bool removed)
{
    word_t word = {
            .is_probe = true, .removed = removed, .tag = tag, .mask = mask, .number = number, .message = *message};

    tell(arg, &word);
}

static const uci_twin_follow_ops_t ops = {on_source, on_next, on_deliver, on_cancelled, on_now, on_choice, on_probe};

static void start(twin_t *twin, bool is_leader)
{
    memset(twin, 0, sizeof(*twin));
    twin->program   = &program;
    twin->is_leader = is_leader;
    twin->now       = 1;
    uci_match_init(&twin->match);
    cr_assert(uci_twin_follow_create(&twin->match, is_leader, WAIT, &ops, twin, &twin->follow) == UCI_OK);
}

/* It is followed no more: this twin has wildcards as without twins */
static bool is_over(const twin_t *twin)
{
    return !uci_twin_follow_wants(twin->follow, MASK_ANY);
}

static void stop(twin_t *twin)
{
    uci_twin_follow_destroy(twin->follow);
    uci_match_cleanup(&twin->match);
}

/* As the pipeline does it: the usual way for what need not be followed */
static void post(twin_t *twin, result_t *result, uint64_t tag, uint64_t mask)
{
    uci_match_msg_t *msg;

    if (uci_twin_follow_wants(twin->follow, mask)) {
        uci_twin_follow_post(twin->follow, &result->match, tag, mask);
        return;
    }
    msg = uci_match_find_msg(&twin->match, tag, mask);
    if (msg != NULL) {
        on_deliver(twin, msg, &result->match);
    } else {
        uci_match_post(&twin->match, &result->match, tag, mask);
    }
}

static void arrive_as(twin_t *twin, msg_t *msg)
{
    uci_match_recv_t *recv;

    if (twin->match.withheld.count > 0) {
        recv = uci_twin_follow_arrived(twin->follow, source_of(msg->tag), msg->tag);
        expect((recv == NULL) || !uci_match_recv_is_posted(recv));
    } else {
        recv = uci_match_find_recv(&twin->match, msg->tag);
        if (recv != NULL) {
            uci_match_take_recv(&twin->match, recv);
        }
    }
    if (recv != NULL) {
        take(twin, msg, uci_container_of(recv, result_t, match));
    } else {
        uci_match_keep(&twin->match, &msg->match, msg->tag);
    }
}

/* The next message of a source comes */
static void arrive(twin_t *twin, unsigned source)
{
    size_t number    = twin->arrived[source]++, i;
    msg_t *msg       = &twin->msgs[source][number];
    const uint8_t *s = twin->program->sends[source];

    msg->tag = make_tag(source, s[number]);
    for (i = 0; i < number; ++i) {
        msg->number += s[i] == s[number];
    }
    arrive_as(twin, msg);
}

/* One try. @return did it find something? */
static bool probe(twin_t *twin, const op_t *op, result_t *result)
{
    unsigned key         = twin->turn++ % op->keys;
    uci_match_msg_t *msg = uci_twin_follow_probe(twin->follow, op->tags[key], op->masks[key], op->remove);

    if (msg == NULL) {
        return false;
    }
    result->key = key;
    result->got = uci_container_of(msg, msg_t, match);
    if (op->remove) {
        result->got = NULL;
        uci_match_take_msg(&twin->match, msg);
        take(twin, uci_container_of(msg, msg_t, match), result);
    }
    return true;
}

static void cancel(twin_t *twin, result_t *result)
{
    if (uci_match_recv_is_posted(&result->match) && (uci_twin_follow_cancel(twin->follow, &result->match) == UCI_OK)) {
        expect(!uci_match_recv_is_posted(&result->match));
        result->is_cancelled = true;
    }
}

/* The next operation. @return was it done? */
static bool run_op(twin_t *twin)
{
    const op_t *op   = &twin->program->ops[twin->ops_done];
    result_t *result = &twin->results[twin->ops_done];

    switch (op->kind) {
    case OP_POST:
        post(twin, result, op->tags[0], op->masks[0]);
        break;
    case OP_CANCEL:
        cancel(twin, &twin->results[op->which]);
        break;
    default:
        if (!probe(twin, op, result)) {
            return false;
        }
        twin->turn = 0;
    }
    ++twin->ops_done;
    return true;
}

static uci_status_t hear(twin_t *twin, const word_t *word)
{
    return word->is_probe
                   ? uci_twin_follow_on_probe(twin->follow, word->tag, word->mask, word->number, &word->message,
                                              word->removed)
                   : uci_twin_follow_on_choice(twin->follow, word->tag, word->mask, word->number, &word->message);
}

/* --- cases --- */

static result_t *post_one(twin_t *twin, size_t number, uint64_t tag, uint64_t mask)
{
    post(twin, &twin->results[number], tag, mask);
    return &twin->results[number];
}

/* Message @a number of a channel comes, whatever the program says */
static msg_t *arrive_one(twin_t *twin, unsigned source, unsigned tag)
{
    msg_t *msg = &twin->msgs[source][twin->arrived[source]++];
    size_t i;

    msg->tag = make_tag(source, tag);
    for (i = 0; &twin->msgs[source][i] < msg; ++i) {
        msg->number += twin->msgs[source][i].tag == msg->tag;
    }
    arrive_as(twin, msg);
    return msg;
}

static uci_status_t choose(uint32_t number, unsigned source, unsigned tag, uint32_t message)
{
    uci_twin_message_t name = {.tag = make_tag(source, tag), .source = source, .number = message};

    uci_status_t status;

    status = uci_twin_follow_on_choice(follower.follow, make_tag(0, 1) & MASK_ANY_SOURCE, MASK_ANY_SOURCE, number,
                                       &name);
    uci_twin_follow_check(follower.follow);
    return status;
}

static uci_status_t choose_none(uint32_t number)
{
    uci_twin_message_t none = {.source = UCI_TWIN_SOURCE_NONE};

    uci_status_t status;

    status = uci_twin_follow_on_choice(follower.follow, make_tag(0, 1) & MASK_ANY_SOURCE, MASK_ANY_SOURCE, number,
                                       &none);
    uci_twin_follow_check(follower.follow);
    return status;
}

Test(twin_follow, what_is_a_wildcard)
{
    cr_expect(uci_mpi_mask_is_exact(UINT64_MAX));
    cr_expect(uci_mpi_mask_is_exact(0x9fffffffffffffffull)); /* MPICH's */
    cr_expect(!uci_mpi_mask_is_exact(MASK_ANY_SOURCE));
    cr_expect(!uci_mpi_mask_is_exact(MASK_ANY_TAG));
    cr_expect(!uci_mpi_mask_is_exact(MASK_ANY));
    cr_expect(!uci_mpi_mask_is_exact(0));
}

static size_t length_of(const uci_list_t *list)
{
    size_t length = 0;

    for (const uci_list_t *link = list->next; link != list; link = link->next) {
        ++length;
    }
    return length;
}

/* A program that takes a new tag for each step; Open MPI has them in the upper bits, MPICH in the lower ones */
static size_t longest_bucket(unsigned shift, uint64_t mask)
{
    size_t i, longest = 0;
    uint64_t tag;

    start(&leader, true);
    for (tag = 1; tag <= 64 * UCI_TWIN_FOLLOW_BUCKETS; ++tag) {
        cr_assert_not_null(uci_twin_key_get(leader.follow, (tag << shift) | 1, mask));
    }
    for (i = 0; i < UCI_TWIN_FOLLOW_BUCKETS; ++i) {
        longest = uci_max(longest, length_of(&leader.follow->keys[i]));
    }
    stop(&leader);
    return longest;
}

Test(twin_follow, many_tags_are_in_many_buckets)
{
    cr_expect_leq(longest_bucket(40, MASK_ANY_SOURCE), 4 * 64);
    cr_expect_leq(longest_bucket(0, 0x9fff0000ffffffffull), 4 * 64);
}

Test(twin_follow, a_wildcard_waits_for_its_choice_and_for_its_message)
{
    result_t *first, *second;
    msg_t *a, *b;

    start(&follower, false);
    first  = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    second = post_one(&follower, 1, make_tag(0, 1), MASK_ANY_SOURCE);
    a      = arrive_one(&follower, 1, 1);
    cr_expect((first->got == NULL) && (follower.match.msgs_count == 1));
    cr_expect(choose(0, 2, 1, 0) == UCI_OK);
    cr_expect((first->got == NULL) && (second->got == NULL), "the second is not resolved yet");
    b = arrive_one(&follower, 2, 1);
    cr_expect(first->got == b);
    cr_expect(choose(1, 1, 1, 0) == UCI_OK);
    cr_expect(second->got == a);
    cr_expect(uci_twin_follow_counts(follower.follow).followed == 2);
    stop(&follower);
}

Test(twin_follow, choices_may_come_before_the_receive)
{
    result_t *first, *second;
    msg_t *a, *b;

    start(&follower, false);
    cr_expect(choose(0, 2, 1, 0) == UCI_OK);
    cr_expect(choose(1, 1, 1, 0) == UCI_OK);
    a      = arrive_one(&follower, 1, 1);
    b      = arrive_one(&follower, 2, 1);
    first  = post_one(&follower, 0, make_tag(3, 1), MASK_ANY_SOURCE); /* the source is none of the key */
    second = post_one(&follower, 1, make_tag(0, 1), MASK_ANY_SOURCE);
    cr_expect((first->got == b) && (second->got == a));
    stop(&follower);
}

Test(twin_follow, an_exact_receive_does_not_get_what_an_older_wildcard_could_take)
{
    result_t *wild, *exact, *other;
    msg_t *a, *b, *c;

    start(&follower, false);
    wild  = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    a     = arrive_one(&follower, 1, 1);
    exact = post_one(&follower, 1, make_tag(1, 1), MASK_EXACT);
    other = post_one(&follower, 2, make_tag(1, 2), MASK_EXACT);
    c     = arrive_one(&follower, 1, 2);
    cr_expect(other->got == c, "which the wildcard can't take");
    cr_expect(exact->got == NULL);
    cr_expect(choose(0, 2, 1, 0) == UCI_OK);
    cr_expect(exact->got == a);
    b = arrive_one(&follower, 2, 1);
    cr_expect(wild->got == b);
    stop(&follower);
}

/* Two keys that take from one channel, in an order that no leader could have had: nothing is taken out of order, and nothing is lost */
Test(twin_follow, of_a_channel_no_message_is_taken_before_the_one_in_front_of_it)
{
    uci_twin_message_t name = {.tag = make_tag(1, 1), .source = 1, .number = 0};
    result_t *first, *second, *exact;
    msg_t *a, *b, *c;

    start(&follower, false);
    first = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    cr_expect(choose(0, 1, 1, 1) == UCI_OK);
    a = arrive_one(&follower, 1, 1);
    b = arrive_one(&follower, 1, 1);
    c = arrive_one(&follower, 1, 1);
    cr_expect(first->got == NULL);
    cr_expect(uci_twin_follow_on_choice(follower.follow, make_tag(1, 0), MASK_ANY_TAG, 0, &name) == UCI_OK);
    second = post_one(&follower, 1, make_tag(1, 0), MASK_ANY_TAG);
    cr_expect((second->got == a) && (first->got == b));
    exact = post_one(&follower, 2, make_tag(1, 1), MASK_EXACT);
    cr_expect(exact->got == c);
    stop(&follower);
}

Test(twin_follow, an_older_exact_receive_takes_its_message_at_once)
{
    result_t *exact;
    msg_t *a;

    start(&follower, false);
    exact = post_one(&follower, 0, make_tag(1, 1), MASK_EXACT);
    (void)post_one(&follower, 1, make_tag(0, 1), MASK_ANY_SOURCE);
    a = arrive_one(&follower, 1, 1);
    cr_expect(exact->got == a);
    stop(&follower);
}

Test(twin_follow, cancelling)
{
    result_t *first, *second, *third;
    msg_t *a;

    start(&follower, false);
    first  = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    second = post_one(&follower, 1, make_tag(0, 1), MASK_ANY_SOURCE);
    third  = post_one(&follower, 2, make_tag(0, 1), MASK_ANY_SOURCE);
    cancel(&follower, first);
    cr_expect(!first->is_cancelled && uci_match_recv_is_posted(&first->match));
    cr_expect(choose_none(0) == UCI_OK);
    cr_expect(first->is_cancelled && !uci_match_recv_is_posted(&first->match));
    cr_expect(choose_none(1) == UCI_OK);
    cr_expect(!second->is_cancelled && uci_match_recv_is_posted(&second->match), "not before our program does it");
    a = arrive_one(&follower, 1, 1);
    cancel(&follower, second);
    cr_expect(second->is_cancelled);
    cancel(&follower, third);
    cr_expect(choose(2, 1, 1, 0) == UCI_OK);
    cr_expect((third->got == a) && !third->is_cancelled, "too late");
    stop(&follower);
}

Test(twin_follow, probes_find_what_the_leader_found_and_nothing_else)
{
    uci_twin_message_t second = {.tag = make_tag(2, 1), .source = 2, .number = 0};
    uci_twin_message_t first  = {.tag = make_tag(1, 1), .source = 1, .number = 0};
    uci_twin_follow_t *follow;
    msg_t *a, *b;

    start(&follower, false);
    follow = follower.follow;
    a      = arrive_one(&follower, 1, 1);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, false) == NULL);
    cr_expect(uci_twin_follow_on_probe(follow, make_tag(2, 1), MASK_EXACT, 0, &second, false) == UCI_OK);
    cr_expect(uci_twin_follow_on_probe(follow, make_tag(1, 1), MASK_EXACT, 1, &first, true) == UCI_OK);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, true) == NULL,
              "that of the other key was before");
    cr_expect(uci_twin_follow_probe(follow, make_tag(2, 1), MASK_EXACT, false) == NULL, "it has not come");
    b = arrive_one(&follower, 2, 1);
    cr_expect(uci_twin_follow_probe(follow, make_tag(2, 1), MASK_EXACT, false) == &b->match);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, true) == &a->match);
    cr_expect(uci_twin_follow_probe(follow, make_tag(2, 1), MASK_EXACT, false) == NULL);
    cr_expect(uci_twin_follow_counts(follow).followed == 2);
    stop(&follower);
}

Test(twin_follow, a_probe_finds_no_other_message_of_the_channel_and_not_with_another_mask)
{
    uci_twin_message_t second = {.tag = make_tag(1, 1), .source = 1, .number = 1};
    uci_twin_follow_t *follow;
    msg_t *b;

    start(&follower, false);
    follow = follower.follow;
    (void)arrive_one(&follower, 1, 1);
    b = arrive_one(&follower, 1, 1);
    cr_expect(uci_twin_follow_on_probe(follow, make_tag(1, 1), MASK_EXACT, 0, &second, false) == UCI_OK);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, false) == NULL, "the second of the channel");
    cr_expect(post_one(&follower, 0, make_tag(1, 1), MASK_EXACT)->got != NULL);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_ANY, false) == NULL);
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, true) == NULL, "it was not removed");
    cr_expect(uci_twin_follow_probe(follow, make_tag(1, 1), MASK_EXACT, false) == &b->match);
    stop(&follower);
}

Test(twin_follow, what_makes_no_sense_is_refused)
{
    uci_twin_message_t message = {.tag = 1, .source = 1};

    uci_log_level = UCI_LOG_FATAL;
    start(&follower, false);
    post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    cr_expect(choose(0, 2, 1, 0) == UCI_OK);
    cr_expect(choose(0, 2, 1, 0) == UCI_ERR_INVALID_PARAM, "again, while it is posted");
    arrive_one(&follower, 2, 1);
    cr_expect(choose(0, 2, 1, 0) == UCI_ERR_INVALID_PARAM, "and when it is not");
    cr_expect(uci_twin_follow_on_probe(follower.follow, 1, 1, 1, &message, false) == UCI_ERR_INVALID_PARAM);
    stop(&follower);
}

/* TEST_SEED=9371313911744348999 */
Test(twin_follow, what_waited_for_a_wildcard_that_is_cancelled_is_not_overtaken)
{
    uci_twin_message_t none = {.source = UCI_TWIN_SOURCE_NONE};
    result_t *wild, *exact;
    msg_t *a, *b;

    start(&follower, false);
    wild  = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    exact = post_one(&follower, 1, make_tag(1, 1), MASK_EXACT);
    a     = arrive_one(&follower, 1, 1);
    cr_expect(uci_twin_follow_on_choice(follower.follow, make_tag(0, 1), MASK_ANY_SOURCE, 0, &none) == UCI_OK);
    cancel(&follower, wild);
    b = arrive_one(&follower, 1, 1);
    cr_expect(exact->got == a);
    cr_expect(wild->is_cancelled && (wild->got == NULL));
    cr_expect(post_one(&follower, 2, make_tag(1, 1), MASK_EXACT)->got == b);
    stop(&follower);
}

/* Time passes, and somebody looks as often as the pipeline does */
static void pass(uint64_t time)
{
    uint64_t end = follower.now + time;

    for (; follower.now < end; follower.now += 10) {
        uci_twin_follow_check(follower.follow);
    }
}

Test(twin_follow, a_choice_that_is_not_told_is_given_up)
{
    result_t *wild, *exact;
    msg_t *a, *b;

    uci_log_level = UCI_LOG_FATAL;
    start(&follower, false);
    wild  = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    exact = post_one(&follower, 1, make_tag(1, 1), MASK_EXACT);
    pass(3 * WAIT);
    cr_expect(!is_over(&follower), "nothing waits for it");
    a = arrive_one(&follower, 1, 1);
    b = arrive_one(&follower, 1, 1);
    pass(WAIT - 100);
    cr_expect(!is_over(&follower));
    cr_expect((wild->got == NULL) && (exact->got == NULL));
    pass(200);
    cr_expect(is_over(&follower));
    cr_expect((wild->got == a) && (exact->got == b));
    cr_expect(uci_twin_follow_counts(follower.follow).given_up == 1);
    cr_expect(choose(0, 1, 1, 0) == UCI_OK, "it does not matter any more");
    cr_expect(!uci_twin_follow_wants(follower.follow, MASK_ANY));
    stop(&follower);
}

Test(twin_follow, a_choice_that_does_not_come_is_given_up)
{
    result_t *wild, *second;
    msg_t *a;

    uci_log_level = UCI_LOG_FATAL;
    start(&follower, false);
    wild   = post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    second = post_one(&follower, 1, make_tag(0, 1), MASK_ANY_SOURCE);
    cr_expect((choose(0, 3, 1, 7) == UCI_OK) && (choose(1, 3, 1, 8) == UCI_OK));
    cancel(&follower, second);
    a = arrive_one(&follower, 1, 1);
    pass(WAIT - 100);
    cr_expect(!is_over(&follower));
    pass(200);
    cr_expect(is_over(&follower));
    cr_expect((wild->got == a) && second->is_cancelled);
    stop(&follower);
}

Test(twin_follow, waiting_that_ends_is_no_reason)
{
    uint32_t i;

    start(&follower, false);
    for (i = 0; i < 20; ++i) {
        result_t *wild = post_one(&follower, i, make_tag(0, 1), MASK_ANY_SOURCE);

        arrive_one(&follower, 1, 1);
        pass(WAIT * 3 / 4);
        cr_assert(choose(i, 1, 1, i) == UCI_OK);
        cr_assert(wild->got != NULL);
    }
    cr_expect(!is_over(&follower));
    /* nor when it was an exact receive that took what was passed over */
    (void)post_one(&follower, 20, make_tag(0, 1), MASK_ANY_SOURCE);
    cr_expect(choose(20, 2, 1, 0) == UCI_OK);
    for (i = 21; i < 40; ++i) {
        arrive_one(&follower, 1, 1);
        pass(WAIT * 3 / 4);
        cr_assert(post_one(&follower, i, make_tag(1, 1), MASK_EXACT)->got != NULL);
        pass(WAIT / 4);
    }
    cr_expect(!is_over(&follower));
    stop(&follower);
}

Test(twin_follow, probes_that_are_denied_give_up)
{
    uci_twin_message_t never = {.tag = make_tag(2, 1), .source = 2, .number = 0};
    uint64_t end;
    msg_t *a;

    uci_log_level = UCI_LOG_FATAL;
    start(&follower, false);
    uci_twin_follow_on_probe(follower.follow, make_tag(2, 1), MASK_EXACT, 0, &never, false);
    a = arrive_one(&follower, 1, 1);
    cr_expect(uci_twin_follow_probe(follower.follow, make_tag(1, 1), MASK_EXACT, false) == NULL);
    follower.now += 5 * WAIT; /* the program was elsewhere */
    for (end = follower.now + WAIT; follower.now <= end; follower.now += 10) {
        cr_assert(uci_twin_follow_probe(follower.follow, make_tag(1, 1), MASK_EXACT, false) == NULL);
    }
    cr_expect(uci_twin_follow_probe(follower.follow, make_tag(1, 1), MASK_EXACT, false) == &a->match);
    cr_expect(is_over(&follower));
    cr_expect(uci_twin_follow_counts(follower.follow).given_up == 1);
    stop(&follower);
}

Test(twin_follow, probes_that_find_something_now_and_then_do_not)
{
    uint32_t i;

    start(&follower, false);
    for (i = 0; i < 10; ++i) {
        uci_twin_message_t message = {.tag = make_tag(1, 1), .source = 1, .number = i};
        result_t result            = {0};
        op_t op = {.kind = OP_PROBE, .tags[0] = make_tag(1, 1), .masks[0] = MASK_EXACT, .keys = 1, .remove = true};
        uint64_t end;

        arrive_one(&follower, 1, 1);
        for (end = follower.now + WAIT * 3 / 4; follower.now < end; follower.now += 10) {
            cr_assert(!probe(&follower, &op, &result));
        }
        cr_assert(uci_twin_follow_on_probe(follower.follow, make_tag(1, 1), MASK_EXACT, i, &message, true) == UCI_OK);
        cr_assert(probe(&follower, &op, &result));
    }
    cr_expect(!is_over(&follower));
    stop(&follower);
}

Test(twin_follow, memory_is_given_back)
{
    size_t before, i;

    start(&follower, false);
    choose(0, 1, 1, 0);
    (void)post_one(&follower, 0, make_tag(0, 1), MASK_ANY_SOURCE);
    arrive_one(&follower, 1, 1);
    before = memory_blocks;
    for (i = 1; i < 50; ++i) {
        cr_assert(choose((uint32_t)i, 1, 1, (uint32_t)i) == UCI_OK);
        (void)post_one(&follower, i, make_tag(0, 1), MASK_ANY_SOURCE);
        arrive_one(&follower, 1, 1);
    }
    cr_expect(memory_blocks == before);
    stop(&follower);
    cr_expect(memory_blocks == 0);
}

/* --- random programs --- */

static uint64_t random_mask(void)
{
    static const uint64_t masks[] = {MASK_EXACT,      MASK_EXACT,   0x9fffffffffffffffull,
                                     MASK_ANY_SOURCE, MASK_ANY_TAG, MASK_ANY};

    return masks[test_random() % uci_array_size(masks)];
}

static uint64_t random_tag(void)
{
    return make_tag((unsigned)(test_random() % SOURCES), (unsigned)(test_random() % TAGS));
}

static void make_program(void)
{
    unsigned posts = 40 + (unsigned)(test_random() % 60), cancels = (unsigned)(test_random() % 15), source;
    size_t i, j;

    memset(&program, 0, sizeof(program));
    program.ops_count = 1 + test_random() % MAX_OPS;
    for (i = 0; i < program.ops_count; ++i) {
        op_t *op        = &program.ops[i];
        unsigned chance = (unsigned)(test_random() % 100);

        op->kind = (chance < posts) ? OP_POST : (chance < posts + cancels) ? OP_CANCEL : OP_PROBE;
        if ((op->kind == OP_CANCEL) && (i == 0)) {
            op->kind = OP_POST;
        }
        op->which = (op->kind == OP_CANCEL) ? test_random() % i : 0;
        if ((op->kind == OP_CANCEL) && uci_mpi_mask_is_exact(program.ops[op->which].masks[0])) {
            op->kind = OP_POST; /* whether an exact receive can be cancelled depends on time: not followed */
        }
        op->keys   = 1 + (unsigned)(test_random() % 2);
        op->remove = test_random() % 3 == 0;
        for (j = 0; j < 2; ++j) {
            op->tags[j]  = random_tag();
            op->masks[j] = random_mask();
        }
        if ((op->masks[0] == op->masks[1]) && uci_match_is(op->tags[0], op->tags[1], op->masks[0])) {
            op->keys = 1;
        }
    }
    for (source = 0; source < SOURCES; ++source) {
        program.sends_count[source] = test_random() % (MAX_PER_CHANNEL * TAGS / 4);
        for (i = 0; i < program.sends_count[source]; ++i) {
            program.sends[source][i] = (uint8_t)(test_random() % TAGS);
        }
    }
}

/* Plain matching, from the front: what the leader must do */
static struct {
    const result_t *recvs[MAX_OPS];
    uint64_t tags[MAX_OPS], masks[MAX_OPS];
    size_t recvs_count;
    const msg_t *msgs[SOURCES * MAX_PER_CHANNEL * TAGS];
    size_t msgs_count;
} plain;

static void plain_take_recv(size_t i)
{
    --plain.recvs_count;
    memmove(&plain.recvs[i], &plain.recvs[i + 1], (plain.recvs_count - i) * sizeof(plain.recvs[0]));
    memmove(&plain.tags[i], &plain.tags[i + 1], (plain.recvs_count - i) * sizeof(plain.tags[0]));
    memmove(&plain.masks[i], &plain.masks[i + 1], (plain.recvs_count - i) * sizeof(plain.masks[0]));
}

static void plain_take_msg(size_t i)
{
    --plain.msgs_count;
    memmove(&plain.msgs[i], &plain.msgs[i + 1], (plain.msgs_count - i) * sizeof(plain.msgs[0]));
}

static size_t plain_find_msg(uint64_t tag, uint64_t mask)
{
    size_t i;

    for (i = 0; (i < plain.msgs_count) && !uci_match_is(plain.msgs[i]->tag, tag, mask); ++i) {
    }
    return i;
}

static void plain_arrive(const msg_t *msg)
{
    size_t i;

    for (i = 0; i < plain.recvs_count; ++i) {
        if (uci_match_is(msg->tag, plain.tags[i], plain.masks[i])) {
            expect(plain.recvs[i]->got == msg);
            plain_take_recv(i);
            return;
        }
    }
    expect(!msg->is_taken);
    plain.msgs[plain.msgs_count++] = msg;
}

static void plain_post(const op_t *op, const result_t *result)
{
    size_t i = plain_find_msg(op->tags[0], op->masks[0]);

    if (i < plain.msgs_count) {
        expect(result->got == plain.msgs[i]);
        plain_take_msg(i);
        return;
    }
    expect((result->got == NULL) && uci_match_recv_is_posted(&result->match));
    plain.recvs[plain.recvs_count]   = result;
    plain.tags[plain.recvs_count]    = op->tags[0];
    plain.masks[plain.recvs_count++] = op->masks[0];
}

static void plain_cancel(const result_t *result)
{
    size_t i;

    for (i = 0; i < plain.recvs_count; ++i) {
        if (plain.recvs[i] == result) {
            expect(result->is_cancelled && (result->got == NULL));
            plain_take_recv(i);
            return;
        }
    }
}

static void plain_probe(const op_t *op, const result_t *result)
{
    size_t i = plain_find_msg(op->tags[result->key], op->masks[result->key]);

    expect((i < plain.msgs_count) && (plain.msgs[i] == result->got));
    if (op->remove) {
        plain_take_msg(i);
    }
}

static bool lead_op(void)
{
    const op_t *op   = &program.ops[leader.ops_done];
    result_t *result = &leader.results[leader.ops_done];

    if (!run_op(&leader)) {
        return false;
    }
    switch (op->kind) {
    case OP_POST:
        plain_post(op, result);
        break;
    case OP_CANCEL:
        plain_cancel(&leader.results[op->which]);
        break;
    default:
        plain_probe(op, result);
    }
    return true;
}

static bool arrive_any(twin_t *twin)
{
    unsigned source = (unsigned)(test_random() % SOURCES), tries;

    for (tries = 0; tries < SOURCES; ++tries, source = (source + 1) % SOURCES) {
        if (twin->arrived[source] < program.sends_count[source]) {
            arrive(twin, source);
            if (twin->is_leader) {
                plain_arrive(&twin->msgs[source][twin->arrived[source] - 1]);
            }
            return true;
        }
    }
    return false;
}

/* A probe that finds nothing to the end is where the program ends */
static void lead(unsigned arrivals)
{
    unsigned stuck = 0;

    start(&leader, true);
    memset(&plain, 0, sizeof(plain));
    while ((leader.ops_done < program.ops_count) && (stuck < 10)) {
        if ((test_random() % 100 < arrivals) && arrive_any(&leader)) {
            continue;
        }
        if (lead_op() || arrive_any(&leader)) {
            stuck = 0;
        } else {
            ++stuck;
        }
    }
    program.ops_count = leader.ops_done;
    while (arrive_any(&leader)) {
    }
    expect(uci_twin_follow_counts(leader.follow).followed == 0);
}

static bool hear_next(void)
{
    if (follower.words_heard == leader.words_count) {
        return false;
    }
    expect(hear(&follower, &leader.words[follower.words_heard++]) == UCI_OK);
    return true;
}

/* The next step of a follower's. @return was there one? */
static bool follow_one(unsigned arrivals, unsigned words)
{
    uint64_t kind = test_random() % 100;

    if ((kind < arrivals) && arrive_any(&follower)) {
        return true;
    }
    if ((kind >= 100 - words) && hear_next()) {
        return true;
    }
    if (test_random() % 4 == 0) {
        uci_twin_follow_check(follower.follow);
    }
    return ((follower.ops_done < program.ops_count) && (run_op(&follower) || run_op(&follower))) ||
           arrive_any(&follower) || hear_next();
}

static bool is_same(const msg_t *a, const msg_t *b)
{
    return (a == b) || ((a != NULL) && (b != NULL) && (a->tag == b->tag) && (a->number == b->number));
}

static void compare_twins(void)
{
    size_t i;

    expect(follower.ops_done == program.ops_count);
    for (i = 0; i < program.ops_count; ++i) {
        cr_assert(is_same(leader.results[i].got, follower.results[i].got) &&
                          (leader.results[i].is_cancelled == follower.results[i].is_cancelled) &&
                          (leader.results[i].key == follower.results[i].key),
                  "TEST_SEED=%lu: operation %zu, kind %d", (unsigned long)run_seed, i, program.ops[i].kind);
    }
    expect(follower.match.recvs_count == leader.match.recvs_count);
    expect(follower.match.msgs_count == leader.match.msgs_count);
    expect(memcmp(follower.next, leader.next, sizeof(leader.next)) == 0);
    expect(!is_over(&follower));
}

/* After that nothing that is posted could take anything that waits */
static void expect_settled(void)
{
    uci_match_for_each_msg(msg, &follower.match)
    {
        expect(uci_match_find_recv(&follower.match, msg->tag) == NULL);
    }
    expect(follower.match.withheld.count == 0);
}

/* Give up somewhere: nothing hangs, and all is matched in order of posting from there on */
static void follow_part(unsigned arrivals, unsigned words)
{
    size_t steps = test_random() % 200, tries = 0;

    while ((steps-- > 0) && follow_one(arrivals, words)) {
    }
    uci_twin_follow_give_up(follower.follow, "the test says so");
    expect_settled();
    while (follow_one(arrivals, words) && (++tries < 10000)) {
        expect_settled();
    }
    expect(tries < 10000);
}

static void run_program(void)
{
    static const unsigned percents[] = {5, 20, 50, 80, 95};
    unsigned twin;

    run_seed = test_draw.state;
    make_program();
    lead(percents[test_random() % 5]);
    for (twin = 0; twin < 4; ++twin) {
        unsigned arrivals = percents[test_random() % 5];
        unsigned words    = percents[test_random() % 5];

        start(&follower, false);
        if (twin == 3) {
            follow_part(arrivals / 2, words / 2);
        } else {
            do {
                uci_twin_follow_check(follower.follow);
            } while (follow_one(arrivals / 2, words / 2));
            uci_twin_follow_check(follower.follow);
            compare_twins();
        }
        stop(&follower);
    }
    stop(&leader);
}

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 5000 };
#else
enum { PROGRAMS = 30000 };
#endif

Test(twin_follow, random_programs, .timeout = 300)
{
    size_t count = test_setting("TEST_PROGRAMS", PROGRAMS);

    uci_log_level = UCI_LOG_FATAL;
    (void)test_seed();
    while (count-- > 0) {
        run_program();
    }
}
