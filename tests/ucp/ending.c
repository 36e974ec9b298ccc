/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a conversation, at every step. Two processes talk, and each closes as soon as its own sends and receives are over, as
 * a rank does that goes into MPI_Finalize; once its close is done it makes no more progress, as a rank that waits for the others
 * outside of UCX. At first they take turns, one call of progress each. Whatever one does that many turns before or after the
 * other, both have to get there, with all bytes right.
 *
 * ENDING_STEPS: how many turns the sides are apart at most (default 5).
 */
#include "two_test.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MESSAGES_MAX = 4, TAG = 7, TAG_LEFT = 70, TAG_GREETING = 71, LIMIT_S = 30, TURNS = 60 };

/* What is said: by a to b, or both ways */
typedef struct talk {
    size_t sizes[MESSAGES_MAX];
    unsigned count;
    ut_send_t form;
    bool both;
    unsigned left; /* small messages that nobody receives */
} talk_t;

/* When who does what, in turns */
typedef struct times {
    unsigned start[2];  /* the talk begins */
    bool behind_close;  /* b's start counts from a's close, if that comes before b has received */
    unsigned linger[2]; /* between the end of the talk and the close */
    bool strangers;     /* nothing has been said before */
} times_t;

typedef enum { WAITING, TALKING, LINGERING, CLOSING, GONE } state_t;

/* Memory of both processes */
typedef struct both {
    unsigned count; /* turns of both, as long as they alternate */
    state_t state[2];
    unsigned since[2]; /* turn */
} both_t;

static both_t *both;
static bool sends, receives;

static ut_side_t here;
static ut_pair_t pair = {.a = &here, .b = &here}; /* what is progressed is our side */
static ut_data_t from[MESSAGES_MAX], to[MESSAGES_MAX];
static ut_op_t send_ops[MESSAGES_MAX], recv_ops[MESSAGES_MAX];
static ucs_status_ptr_t closing;
static unsigned turn;

static unsigned steps(void)
{
    const char *text = getenv("ENDING_STEPS");

    return (text != NULL) ? (unsigned)strtoul(text, NULL, 10) : 5;
}

/* -------------------------------------------------------------- sides */

/* A small message each way, twice: after that nothing of the connection is half made */
static void greet(void)
{
    ut_data_t out, in;
    ut_op_t send, recv;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        ut_data_open(&out, UT_CONTIG1, 100);
        ut_data_open(&in, UT_CONTIG1, 100);
        ut_recv(&recv, &pair, UT_RECV_NBX, &in, TAG_GREETING, UT_TAG_ALL);
        ut_send(&send, &here, UT_SEND_NBX, &out, TAG_GREETING);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        ut_data_close(&out);
        ut_data_close(&in);
    }
    two_meet(here.worker);
}

static void enter(state_t state)
{
    both->since[two_side] = turn;
    __atomic_store_n(&both->state[two_side], state, __ATOMIC_SEQ_CST);
}

static unsigned seed_of(unsigned whose, unsigned i)
{
    return (100 * whose) + i;
}

static void prepare(const talk_t *talk)
{
    unsigned i;

    sends    = (two_side == 0) || talk->both;
    receives = (two_side == 1) || talk->both;
    closing  = NULL;
    for (i = 0; i < talk->count; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, talk->sizes[i]);
        ut_data_open(&to[i], UT_CONTIG1, talk->sizes[i]);
        ut_data_fill(&from[i], seed_of(two_side, i));
    }
    turn = 0;
    enter(WAITING);
    if (two_side == 0) {
        both->count = 0;
    }
}

static void start_talking(const talk_t *talk)
{
    unsigned i;

    for (i = 0; sends && (i < talk->count); ++i) {
        ut_send(&send_ops[i], &here, talk->form, &from[i], TAG + i);
    }
    for (i = 0; receives && (i < talk->count); ++i) {
        ut_recv(&recv_ops[i], &pair, UT_RECV_NBX, &to[i], TAG + i, UT_TAG_ALL);
    }
}

static bool has_talked(const talk_t *talk)
{
    unsigned i;

    for (i = 0; i < talk->count; ++i) {
        if ((sends && !ut_op_is_done(&send_ops[i])) || (receives && !ut_op_is_done(&recv_ops[i]))) {
            return false;
        }
    }
    return true;
}

static void leave_messages(unsigned count)
{
    static char data[100];
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t request;
    unsigned i;

    for (i = 0; i < count; ++i) {
        request = ucp_tag_send_nbx(here.ep, data, sizeof(data), TAG_LEFT, &none);
        UT_CHECK(!UCS_PTR_IS_ERR(request), "send: %s", ucs_status_string(UCS_PTR_STATUS(request)));
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }
}

static bool is_time_to_start(const times_t *times)
{
    if ((two_side == 1) && times->behind_close) {
        return (both->state[0] >= CLOSING) && (turn >= both->since[0] + times->start[1]);
    }
    return turn >= times->start[two_side];
}

/* What a rank does between two calls of progress */
static void advance(const talk_t *talk, const times_t *times)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    switch (both->state[two_side]) {
    case WAITING:
        if (is_time_to_start(times)) {
            leave_messages(talk->left);
            start_talking(talk);
            enter(TALKING);
        }
        break;
    case TALKING:
        if (has_talked(talk)) {
            enter(LINGERING);
        }
        break;
    case LINGERING:
        if (turn >= both->since[two_side] + times->linger[two_side]) {
            closing = ucp_ep_close_nbx(here.ep, &none);
            UT_REQUIRE(!UCS_PTR_IS_ERR(closing), "ucp_ep_close_nbx: %s", ucs_status_string(UCS_PTR_STATUS(closing)));
            enter(CLOSING);
        }
        break;
    case CLOSING:
        if ((closing == NULL) || (ucp_request_check_status(closing) != UCS_INPROGRESS)) {
            enter(GONE);
        }
        break;
    default:
        break;
    }
}

static void check_all(const talk_t *talk)
{
    unsigned i;

    for (i = 0; i < talk->count; ++i) {
        if (sends) {
            UT_CHECK_STATUS(ut_wait(&pair, &send_ops[i]), UCS_OK, "send");
        }
        if (receives) {
            UT_CHECK_STATUS(ut_wait(&pair, &recv_ops[i]), UCS_OK, "receive");
            UT_CHECK(ut_data_check(&to[i], talk->sizes[i], seed_of(!two_side, i)), "wrong content, %zu bytes",
                     talk->sizes[i]);
        }
        ut_data_close(&from[i]);
        ut_data_close(&to[i]);
    }
    if (closing != NULL) {
        ucp_request_free(closing);
    }
}

/* Where they stood, if it does not end */
static void check_clock(const talk_t *talk, const times_t *times)
{
    static char text[240];

    snprintf(
            text, sizeof(text),
            "process %u, %u messages of %zu bytes, start %u,%u%s, linger %u,%u%s, states %d,%d since turns %u,%u, now %u:",
            two_side, talk->count, talk->sizes[0], times->start[0], times->start[1],
            times->behind_close ? " behind close" : "", times->linger[0], times->linger[1],
            times->strangers ? ", strangers" : "", (int)both->state[0], (int)both->state[1], both->since[0],
            both->since[1], turn);
    ut_clock_check(text);
}

static bool are_gone(void)
{
    return (__atomic_load_n(&both->state[0], __ATOMIC_SEQ_CST) == GONE) &&
           (__atomic_load_n(&both->state[1], __ATOMIC_SEQ_CST) == GONE);
}

/* One after the other, as long as it matters: on busy cores each change takes long */
static void wait_for_turn(const talk_t *talk, const times_t *times)
{
    do {
        check_clock(talk, times);
        if (turn >= TURNS) {
            sched_yield();
            return;
        }
        if (__atomic_load_n(&both->count, __ATOMIC_SEQ_CST) == (2 * turn) + two_side) {
            return;
        }
        sched_yield();
    } while (!are_gone());
}

static void end_once(const talk_t *talk, const times_t *times)
{
    alarm(LIMIT_S); /* for one: how long all take depends on who else wants the cores, since each turn waits for both */
    two_connect(&here, UCP_FEATURE_TAG);
    if (!times->strangers) {
        greet();
    }
    prepare(talk);
    two_meet(NULL);
    ut_clock_start();
    for (turn = 0; !are_gone(); ++turn) {
        wait_for_turn(talk, times);
        if (both->state[two_side] != GONE) {
            ucp_worker_progress(here.worker);
            advance(talk, times);
        }
        if (turn < TURNS) {
            __atomic_add_fetch(&both->count, 1, __ATOMIC_SEQ_CST);
        }
    }
    check_all(talk);
    two_meet(NULL);
    ucp_worker_destroy(here.worker);
    ucp_cleanup(here.context);
}

/* Every distance between the two beginnings, with the closes at once, or one of them later */
static void end_at_every_step(const talk_t *talk, bool buffered)
{
    static const unsigned lingers[][2] = {{0, 0}, {0, 9}, {9, 0}};
    unsigned i, k, all = steps();
    times_t times;

    for (i = 0; two_is_possible() && (i < sizeof(lingers) / sizeof(lingers[0])); ++i) {
        for (k = 0; k <= all; ++k) {
            times = (times_t){.start = {0, k}, .linger = {lingers[i][0], lingers[i][1]}, .strangers = (k % 3 == 2)};
            end_once(talk, &times);
            times.start[0] = k;
            times.start[1] = 0;
            end_once(talk, &times);
            if (buffered) {
                times.start[0]     = 0;
                times.start[1]     = k;
                times.behind_close = true;
                end_once(talk, &times);
            }
        }
    }
}

static void small(void)
{
    end_at_every_step(&(talk_t){.sizes = {100}, .count = 1, .form = UT_SEND_NBX}, true);
}

static void synchronous(void)
{
    end_at_every_step(&(talk_t){.sizes = {100}, .count = 1, .form = UT_SEND_SYNC_NBX}, false);
    end_at_every_step(&(talk_t){.sizes = {40000}, .count = 1, .form = UT_SEND_SYNC_NBX}, false);
}

/* Up to UCX_RNDV_THRESH (1 MiB in run_ucp.sh) a send that nobody receives ends */
static void moderate(void)
{
    end_at_every_step(&(talk_t){.sizes = {5000}, .count = 1, .form = UT_SEND_NBX}, true);
    end_at_every_step(&(talk_t){.sizes = {40000}, .count = 1, .form = UT_SEND_NBX}, true);
}

static void large(void)
{
    end_at_every_step(&(talk_t){.sizes = {786433}, .count = 1, .form = UT_SEND_NBX}, true);
}

static void huge(void)
{
    end_at_every_step(&(talk_t){.sizes = {4194304 + 1}, .count = 1, .form = UT_SEND_NBX}, false);
}

static void several(void)
{
    end_at_every_step(&(talk_t){.sizes = {100, 40000, 786433, 9000}, .count = 4, .form = UT_SEND_NBX, .left = 3}, true);
}

static void both_ways(void)
{
    end_at_every_step(&(talk_t){.sizes = {300000, 100}, .count = 2, .form = UT_SEND_NBX, .both = true}, false);
    end_at_every_step(&(talk_t){.sizes = {2000000}, .count = 1, .form = UT_SEND_NBX, .both = true}, false);
    end_at_every_step(&(talk_t){.sizes = {100}, .count = 1, .form = UT_SEND_SYNC_NBX, .both = true}, false);
}

static void nothing_said(void)
{
    end_at_every_step(&(talk_t){.count = 0, .left = 2}, true);
}

static const ut_test_t tests[] = {UT_TEST(small), UT_TEST(synchronous), UT_TEST(moderate),  UT_TEST(large),
                                  UT_TEST(huge),  UT_TEST(several),     UT_TEST(both_ways), UT_TEST(nothing_said)};

int main(int argc, char **argv)
{
    both = mmap(NULL, sizeof(*both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UT_REQUIRE(both != MAP_FAILED, "mmap: %m");
    return two_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
