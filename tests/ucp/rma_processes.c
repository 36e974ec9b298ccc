/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations between two processes, both ways at once: puts and gets of any size, counters that both add to, locks by
 * compare-and-swap, and ends: operations that a close finishes, and one that is forced cancels.
 */
#include "rma_test.h"
#include "two_test.h"

#include <sched.h>
#include <sys/mman.h>

enum { LENGTH = 2 << 20, KEY_MAX = 1024, ADDS = 2000, TURNS = 300, WITH_FAULTS = 200 };

/* What each process tells the other one */
typedef struct card {
    char key[KEY_MAX];
    size_t key_length;
    uintptr_t address;
} card_t;

static ut_side_t here;
static ut_pair_t pair = {.a = &here, .b = &here}; /* what is progressed is our side */
static rma_region_t ours, theirs;                 /* of theirs no memory is ours to read: its address counts */
static card_t *cards;
static char *local;

static void exchange_keys(void)
{
    card_t *card = &cards[two_side], *other = &cards[!two_side];
    void *packed;

    UT_REQUIRE(ucp_rkey_pack(here.context, ours.memh, &packed, &card->key_length) == UCS_OK, "ucp_rkey_pack");
    UT_REQUIRE(card->key_length <= KEY_MAX, "a key of %zu bytes", card->key_length);
    memcpy(card->key, packed, card->key_length);
    ucp_rkey_buffer_release(packed);
    card->address = (uintptr_t)ours.memory;
    two_meet(here.worker);
    theirs.memory = (char *)other->address;
    theirs.length = ours.length;
    UT_REQUIRE(ucp_ep_rkey_unpack(here.ep, other->key, &theirs.rkey) == UCS_OK, "ucp_ep_rkey_unpack");
    two_meet(here.worker);
}

static void map_side(bool allocated)
{
    rma_region_map(&ours, here.context, LENGTH, allocated);
    local = malloc(LENGTH);
    exchange_keys();
}

static void open_side(bool allocated)
{
    two_connect(&here, ut_features);
    map_side(allocated);
}

static void leave(void)
{
    two_meet(here.worker);
    rma_region_unmap(&ours);
    ucp_worker_destroy(here.worker);
    ucp_cleanup(here.context);
    free(local);
}

static void close_side(void)
{
    two_meet(here.worker);
    ucp_rkey_destroy(theirs.rkey);
    ut_ep_close(&pair, here.ep);
    leave();
}

/* ---------------------------------------------------------------- bytes */

static void exchange(size_t length, unsigned number)
{
    ut_fill(local, length, number + two_side);
    UT_CHECK_STATUS(rma_put(&pair, &theirs, 0, local, length), UCS_OK, "put");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    two_meet(here.worker);
    UT_CHECK(ut_verify(ours.memory, length, number + !two_side) == SIZE_MAX, "put of %zu bytes: wrong content", length);
    memset(local, 0, length);
    UT_CHECK_STATUS(rma_get(&pair, &theirs, 0, local, length), UCS_OK, "get");
    UT_CHECK(ut_verify(local, length, number + two_side) == SIZE_MAX, "get of %zu bytes: wrong content", length);
    two_meet(here.worker);
}

static void both_ways_of(bool allocated)
{
    static const size_t sizes[] = {1, 8, 1000, 8192, 20000, 300000, LENGTH};
    unsigned i;

    if (!two_is_possible()) {
        return;
    }
    open_side(allocated);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        exchange(sizes[i], 2 * i);
    }
    close_side();
}

static void both_ways(void)
{
    both_ways_of(false);
    both_ways_of(true);
}

/* -------------------------------------------------------------- counters */

static uint64_t add(const rma_region_t *to, size_t offset, uint64_t value)
{
    uint64_t old = 0;

    UT_CHECK_STATUS(rma_atomic(&pair, to, offset, UCP_ATOMIC_OP_ADD, &value, 8, &old), UCS_OK, "add");
    return old;
}

/* Each adds to a counter of the other one, whose processor adds too: what is fetched rises, and nothing gets lost */
static void counters_of(bool allocated)
{
    unsigned count = ut_faults_are_on() ? WITH_FAULTS : ADDS, i;
    uint64_t last  = 0, old;

    if (!two_is_possible()) {
        return;
    }
    open_side(allocated);
    for (i = 0; i < count; ++i) {
        old = add(&theirs, 0, 1);
        UT_CHECK((i == 0) || (old > last), "%lu after %lu", (unsigned long)old, (unsigned long)last);
        last = old;
        __atomic_fetch_add((uint64_t *)(void *)ours.memory, 3, __ATOMIC_SEQ_CST);
    }
    two_meet(here.worker);
    UT_CHECK(*(uint64_t *)(void *)ours.memory == 4ul * count, "%lu", *(unsigned long *)(void *)ours.memory);
    close_side();
}

static void counters(void)
{
    counters_of(false);
    counters_of(true);
}

/* A lock in the memory of process 0, and a sum there that only who has it reads and writes. What a process does to its own memory is done at
 * once, by UCX as by UCI: who asks for nothing but the lock has to progress what the holder does here. */
static void locked_turn(const rma_region_t *at, ucp_ep_h ep)
{
    uint64_t free_word = 0, mine = two_side + 1, reply, sum = 0;

    ut_clock_start();
    do {
        reply = mine;
        UT_CHECK_STATUS(rma_atomic(&pair, at, 0, UCP_ATOMIC_OP_CSWAP, &free_word, 8, &reply), UCS_OK, "cswap");
        ut_progress(&pair);
        ut_clock_check("a lock");
    } while (reply != 0);
    UT_CHECK_STATUS(rma_get(&pair, at, 8, &sum, sizeof(sum)), UCS_OK, "get");
    ++sum;
    UT_CHECK_STATUS(rma_put(&pair, at, 8, &sum, sizeof(sum)), UCS_OK, "put");
    UT_CHECK_STATUS(rma_flush(&pair), UCS_OK, "flush");
    reply = 0;
    UT_CHECK_STATUS(rma_atomic(&pair, at, 0, UCP_ATOMIC_OP_SWAP, &free_word, 8, &reply), UCS_OK, "swap");
    UT_CHECK(reply == mine, "the lock was %lu", (unsigned long)reply);
}

/* Process 0 takes the lock by an endpoint to itself */
static void locks(void)
{
    unsigned i, count = ut_faults_are_on() ? WITH_FAULTS / 10 : TURNS;
    ucp_ep_h to_other;

    if (!two_is_possible()) {
        return;
    }
    open_side(false);
    to_other = here.ep;
    if (two_side == 0) {
        here.ep   = ut_ep_create(here.worker, here.worker);
        ours.rkey = rma_region_key(&ours, here.ep);
    }
    for (i = 0; i < count; ++i) {
        locked_turn((two_side == 0) ? &ours : &theirs, here.ep);
    }
    two_meet(here.worker);
    if (two_side == 0) {
        UT_CHECK(((uint64_t *)(void *)ours.memory)[1] == 2ul * count, "%lu", ((unsigned long *)(void *)ours.memory)[1]);
        ucp_rkey_destroy(ours.rkey);
        ut_ep_close(&pair, here.ep);
        here.ep = to_other;
    }
    close_side();
}

/* ------------------------------------------------------------------ ends */

/* A close brings what was put to where it belongs: the other process sees it without a flush */
static void close_flushes(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t put;
    size_t length = 100000;

    if (!two_is_possible()) {
        return;
    }
    open_side(false);
    if (two_side == 0) {
        ut_fill(local, length, 5);
        put = ucp_put_nbx(here.ep, local, length, (uintptr_t)theirs.memory, theirs.rkey, &none);
        UT_CHECK(!UCS_PTR_IS_ERR(put), "put");
        ucp_rkey_destroy(theirs.rkey);
        ut_ep_close(&pair, here.ep);
        UT_CHECK_STATUS(ut_wait_ptr(&pair, put), UCS_OK, "put");
        two_meet(here.worker);
    } else {
        two_meet(here.worker);
        UT_CHECK(ut_verify(ours.memory, length, 5) == SIZE_MAX, "it is not there");
        ucp_rkey_destroy(theirs.rkey);
        ut_ep_close(&pair, here.ep);
    }
    leave();
}

/* The other process makes no progress: what is under way ends, one way or the other, when the endpoint is closed by force */
static void forced_close_cancels(void)
{
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t get, flush;
    ucs_status_t status;

    if (!two_is_possible()) {
        return;
    }
    if (two_connect_as(&here, ut_features, UCP_ERR_HANDLING_MODE_PEER) !=
        UCS_OK) { /* of both: as from any other transport */
        two_meet(NULL);
        ucp_worker_destroy(here.worker);
        ucp_cleanup(here.context);
        return;
    }
    map_side(false);
    if (two_side == 0) {
        UT_CHECK_STATUS(rma_get(&pair, &theirs, 0, local, 8), UCS_OK, "get");
        two_meet(here.worker);
        get   = ucp_get_nbx(here.ep, local, 8, (uintptr_t)theirs.memory, theirs.rkey, &none);
        flush = ucp_ep_flush_nbx(here.ep, &none);
        ucp_rkey_destroy(theirs.rkey);
        (void)ut_wait_ptr(&pair, ucp_ep_close_nbx(here.ep, &force));
        status = ut_wait_ptr(&pair, get);
        UT_CHECK((status == UCS_ERR_CANCELED) || (status == UCS_OK), "get: %s", ucs_status_string(status));
        status = ut_wait_ptr(&pair, flush);
        UT_CHECK((status == UCS_ERR_CANCELED) || (status == UCS_OK), "flush: %s", ucs_status_string(status));
        two_meet(NULL);
    } else {
        two_meet(here.worker);
        two_meet(NULL);
        ucp_rkey_destroy(theirs.rkey);
        (void)ut_wait_ptr(&pair, ucp_ep_close_nbx(here.ep, &force));
    }
    leave();
}

static const ut_test_t tests[] = {RMA_TEST(both_ways), RMA_TEST(counters), RMA_TEST(locks), RMA_TEST(close_flushes),
                                  RMA_TEST(forced_close_cancels)};

int main(int argc, char **argv)
{
    cards = mmap(NULL, 2 * sizeof(*cards), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UT_REQUIRE(cards != MAP_FAILED, "mmap: %m");
    return two_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
