/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Following in a worker, over a network of the test's own: node 1 follows, or leads. What it receives is of all sizes and paths, and may be
 * damaged on the way; what its wildcards, probes and cancelled receives come to is as it was told. The rules themselves:
 * test_twin_follow.c.
 */
#include "fake_talk.h"

#include "twins/follow.h"
#include "transfer/repair.h"

#define LONG     20000u /* by rendezvous */
#define MASK_ANY 0xffffffff00000000ul
#define KEY      (1ul << 32) /* tags of it differ in what the mask leaves open */
#define WAIT     (1000 * TALK_MS)

enum { NUMBERS = 16, WORDS = 64 };

/* What a leader has told */
typedef struct {
    bool is_probe, removed;
    uint64_t tag, mask;
    uint32_t number;
    uci_twin_message_t message;
} word_t;

static word_t words[WORDS];
static unsigned words_count;
static uint32_t next_numbers[NUMBERS]; /* by the lowest bits of the tag */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uint32_t on_source(const uci_peer_t *peer, uint64_t tag)
{
    return 7;
}

static uint32_t on_next(uint32_t source, uint64_t tag)
{
    cr_assert(source == 7);
    return next_numbers[tag % NUMBERS];
}

static void on_choice(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message)
{
    words[words_count++] = (word_t){.tag = tag, .mask = mask, .number = number, .message = *message};
}

static void on_probe(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message, bool removed)
{
    words[words_count++] = (word_t){
            .is_probe = true, .removed = removed, .tag = tag, .mask = mask, .number = number, .message = *message};
}

/* As twin.c: a message is counted when it is matched, one of a single frame when it is here */
static bool on_matched(uci_peer_t *peer, ucp_tag_t tag, uci_twin_note_t *note)
{
    note->number = next_numbers[tag % NUMBERS]++;
    return true;
}

static bool on_received(uci_request_t *req, ucs_status_t status)
{
    if (!(req->flags & UCI_REQUEST_NUMBERED)) {
        ++next_numbers[req->info.sender_tag % NUMBERS];
    }
    return false;
}

static unsigned on_progress(uci_worker_t *worker)
{
    uci_follow_progress(worker);
    return 0;
}

static bool is_waiting(const uci_worker_t *worker)
{
    return false;
}

static uci_worker_t *worker(void)
{
    return net_nodes[1].worker;
}

static uci_twin_follow_t *state(void)
{
    return uci_follow_state(worker());
}

static void begin(bool is_leader)
{
    static const uci_follow_events_t events = {on_source, on_next, on_choice, on_probe};
    static const uci_twin_events_t twin     = {on_matched, on_received, on_progress, is_waiting};

    talk_begin(2, UCI_CARRIER_AM);
    words_count = 0;
    memset(next_numbers, 0, sizeof(next_numbers));
    cr_assert(uci_follow_begin(worker(), &lock, &events, is_leader, WAIT) == UCI_OK);
    worker()->twins.events = &twin;
    worker()->calls.recv_flags |= UCI_REQUEST_TWIN;
    worker()->calls.arrived = uci_follow_arrived;
    worker()->calls.lost    = uci_follow_lost;
}

static void begin_leader(void)
{
    begin(true);
}

static void begin_follower(void)
{
    begin(false);
}

static void end(void)
{
    uci_follow_end(worker());
    cr_assert(worker()->match.withheld.count == 0);
    talk_end();
}

TestSuite(leader, .init = begin_leader, .fini = end, .timeout = 60);
TestSuite(follower, .init = begin_follower, .fini = end, .timeout = 60);

static unsigned recv_posted(ucp_tag_t tag, ucp_tag_t mask)
{
    unsigned number           = talk_recvs_count++;
    talk_recv_t *recv         = &talk_recvs[number];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = talk_on_received,
                                 .user_data = recv};

    *recv = (talk_recv_t){.room = TALK_LENGTH, .buffer = malloc(TALK_LENGTH)};
    uci_worker_enter(worker());
    talk_keep(worker()->calls.recv(worker(), recv->buffer, recv->room, tag, mask, &param));
    uci_worker_leave(worker());
    return number;
}

/* The request of the receive that was posted last */
static uci_request_t *last_request(void)
{
    return uci_request_from_user(talk_requests[talk_requests_count - 1]);
}

static void choose(uint32_t number, ucp_tag_t tag, uint32_t message)
{
    uci_twin_message_t name = {.tag = tag, .source = 7, .number = message};

    cr_assert(uci_twin_follow_on_choice(state(), KEY, MASK_ANY, number, &name) == UCI_OK);
}

static void expect_choice(unsigned word, uint32_t number, ucp_tag_t tag, uint32_t message)
{
    cr_assert(word < words_count);
    cr_expect(!words[word].is_probe && (words[word].tag == KEY) && (words[word].mask == MASK_ANY));
    cr_expect((words[word].number == number) && (words[word].message.source == 7));
    cr_expect((words[word].message.tag == tag) && (words[word].message.number == message), "tag %lu, number %u",
              (unsigned long)words[word].message.tag, words[word].message.number);
}

static void turns(void)
{
    talk_turns(10, TALK_MS);
}

static const size_t lengths[] = {0, 8, 100, 2000, LONG};

Test(leader, tells_what_its_wildcards_took)
{
    unsigned first, second, i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        first = recv_posted(KEY + 9, MASK_ANY); /* the message comes later */
        talk_send(0, KEY + i, lengths[i]);
        talk_send(0, KEY + i, lengths[i]);
        cr_assert(talk_run(1000));
        talk_expect(first, KEY + i, lengths[i]);
        expect_choice(2 * i, 2 * i, KEY + i, 0);
        second = recv_posted(KEY, MASK_ANY); /* it is here already */
        expect_choice((2 * i) + 1, (2 * i) + 1, KEY + i, 1);
        cr_assert(talk_run(1000));
        talk_expect(second, KEY + i, lengths[i]);
    }
    cr_expect(words_count == 2 * uci_array_size(lengths));
}

Test(leader, tells_what_was_cancelled_and_what_probes_found)
{
    ucp_tag_recv_info_t info;

    (void)recv_posted(KEY, MASK_ANY);
    uci_request_cancel(last_request());
    cr_expect(talk_recvs[0].done && (talk_recvs[0].status == UCS_ERR_CANCELED));
    cr_expect((words_count == 1) && (words[0].message.source == UCI_TWIN_SOURCE_NONE));
    cr_expect(uci_unexpected_probe(worker(), KEY + 3, UINT64_MAX, false, &info) == NULL);
    talk_send(0, KEY + 3, 8);
    turns();
    cr_expect(uci_unexpected_probe(worker(), KEY + 3, UINT64_MAX, false, &info) != NULL);
    cr_expect((words_count == 2) && words[1].is_probe && !words[1].removed && (words[1].message.tag == KEY + 3));
    talk_expect(recv_posted(KEY + 3, UINT64_MAX), KEY + 3, 8);
    cr_expect(words_count == 2, "an exact receive is nobody's business");
}

Test(follower, takes_what_it_is_told)
{
    unsigned first, second, third, i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        first  = recv_posted(KEY, MASK_ANY);
        second = recv_posted(KEY, MASK_ANY);
        third  = recv_posted(KEY + 1, UINT64_MAX);
        talk_send(0, KEY + 1, lengths[i]);
        talk_send(0, KEY + 1, lengths[i]);
        talk_send(0, KEY + 2, lengths[i]);
        turns();
        cr_assert(!talk_recvs[first].done && !talk_recvs[second].done && !talk_recvs[third].done);
        choose(2 * i, KEY + 2, i);
        turns();
        cr_assert(talk_recvs[first].done && !talk_recvs[second].done && !talk_recvs[third].done);
        choose((2 * i) + 1, KEY + 1, 2 * i);
        cr_assert(talk_run(1000));
        talk_expect(first, KEY + 2, lengths[i]);
        talk_expect(second, KEY + 1, lengths[i]);
        talk_expect(third, KEY + 1, lengths[i]);
    }
    cr_expect(worker()->ops_active == 0, "nothing is waited for");
}

/* The receive is chosen when the frame comes first, and it is the same one when it comes again */
static void run_damaged(size_t length)
{
    unsigned first = recv_posted(KEY, MASK_ANY), second = recv_posted(KEY, MASK_ANY);
    net_message_t *frame;

    choose(0, KEY + 2, 0);
    choose(1, KEY + 1, 0);
    talk_send(0, KEY + 1, length);
    frame = talk_frame_to(1, 0);
    frame->data[frame->length - 1] ^= 4;
    talk_send(0, KEY + 2, length);
    cr_assert(talk_run(1000));
    talk_expect(first, KEY + 2, length);
    talk_expect(second, KEY + 1, length);
    cr_expect(talk_counters(1)->mismatched_chunks == 1);
    cr_expect(uci_twin_follow_counts(state()).followed == 2);
}

Test(follower, a_damaged_payload)
{
    run_damaged(1000);
}

Test(follower, a_damaged_descriptor)
{
    run_damaged(LONG);
}

Test(follower, cancels_when_the_leader_has)
{
    uci_twin_message_t none = {.source = UCI_TWIN_SOURCE_NONE};

    (void)recv_posted(KEY, MASK_ANY);
    uci_request_cancel(last_request());
    turns();
    cr_expect(!talk_recvs[0].done);
    cr_assert(uci_twin_follow_on_choice(state(), KEY, MASK_ANY, 0, &none) == UCI_OK);
    turns();
    cr_expect(talk_recvs[0].done && (talk_recvs[0].status == UCS_ERR_CANCELED));
    cr_expect(worker()->match.recvs_count == 0);
    cr_expect(worker()->ops_active == 0);
}

Test(follower, probes)
{
    uci_twin_message_t name = {.tag = KEY + 2, .source = 7, .number = 0};
    ucp_tag_recv_info_t info;

    talk_send(0, KEY + 1, 8);
    talk_send(0, KEY + 2, 100);
    turns();
    cr_expect(uci_unexpected_probe(worker(), KEY, MASK_ANY, true, &info) == NULL);
    cr_assert(uci_twin_follow_on_probe(state(), KEY, MASK_ANY, 0, &name, true) == UCI_OK);
    cr_expect(uci_unexpected_probe(worker(), KEY, MASK_ANY, true, &info) != NULL);
    cr_expect((info.sender_tag == KEY + 2) && (info.length == 100));
    cr_expect((worker()->match.msgs_count == 1) && !uci_list_is_empty(&worker()->msgs.probed));
}

Test(follower, gives_up)
{
    unsigned first, second;

    uci_log_level = UCI_LOG_FATAL;
    first         = recv_posted(KEY, MASK_ANY);
    second        = recv_posted(KEY, MASK_ANY);
    uci_request_cancel(last_request());
    talk_send(0, KEY + 1, LONG);
    talk_turns(50, WAIT / 100);
    cr_expect(!talk_recvs[first].done && !talk_recvs[second].done);
    talk_turns(100, WAIT / 100);
    cr_assert(talk_run(1000));
    talk_expect(first, KEY + 1, LONG);
    cr_expect(talk_recvs[second].done && (talk_recvs[second].status == UCS_ERR_CANCELED));
    cr_expect(!uci_twin_follow_wants(state(), MASK_ANY));
    cr_expect(worker()->ops_active == 0);
    talk_send(0, KEY + 3, 8);
    turns();
    talk_expect(recv_posted(KEY, MASK_ANY), KEY + 3, 8);
}
