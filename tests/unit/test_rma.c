/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations, over a network of the test's own: each is executed once and in order, whatever becomes of frames; a flush ends when
 * all have been; what has no region is refused and told; what can't be true is refused; keys that are damaged are none.
 */
#include "fake_talk.h"

#include "cpu_limit.h"

#include "conn/close.h"
#include "conn/endpoint.h"
#include "link/link_recv.h"
#include "message/recv.h"
#include "message/user_am.h"
#include "rma/execute.h"
#include "rma/rma.h"

#define LARGE 30000u /* by rendezvous */

static char memory[4 * LARGE], bytes[4 * LARGE], back[4 * LARGE];
static uci_rma_key_t key;
static ucp_mem_h memh = (ucp_mem_h)(uintptr_t)0x1000;
static unsigned ended, order[64];
static ucs_status_t statuses[64];

static void *pack(size_t *size_p)
{
    *size_p = 9;
    return uci_rma_key_pack(net_nodes[1].context.rma, memh, "a UCX key", size_p);
}

static void set_up(void)
{
    size_t size;
    void *packed;
    unsigned i;

    talk_begin(2, UCI_CARRIER_AM);
    uci_settings.path       = UCI_PATH_STREAM;
    uci_settings.chunk_size = 4096;
    uci_tuner_refresh();
    for (i = 0; i < 2; ++i) {
        net_nodes[i].context.rma = uci_rma_regions_create();
    }
    uci_rma_region_add(net_nodes[1].context.rma, memh, memory, sizeof(memory));
    packed = pack(&size);
    cr_assert(uci_rma_key_find(packed, size, &key.packed));
    free(packed);
    key.memory = NULL;
    talk_fill(bytes, sizeof(bytes), 1);
}

static void tear_down(void)
{
    uci_rma_regions_t *regions[] = {net_nodes[0].context.rma, net_nodes[1].context.rma};

    talk_end();
    uci_rma_regions_destroy(regions[0]);
    uci_rma_regions_destroy(regions[1]);
}

TestSuite(rma, .init = set_up, .fini = tear_down, .timeout = 60);

/* ----------------------------------------------------------- operations */

static void on_end(void *request, ucs_status_t status, void *user_data)
{
    statuses[ended] = status;
    order[ended++]  = (unsigned)(uintptr_t)user_data;
}

static ucp_request_param_t param_of(unsigned number)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = on_end,
                                 .user_data    = (void *)(uintptr_t)number};
}

static uint64_t there(size_t offset)
{
    return (uint64_t)(uintptr_t)(memory + offset);
}

static void put(unsigned number, size_t offset, size_t length)
{
    ucp_request_param_t param = param_of(number);

    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_rma_put(net_nodes[0].ep, bytes + offset, length, there(offset), &key, &param));
    uci_worker_leave(net_nodes[0].worker);
}

static void get(unsigned number, size_t offset, size_t length)
{
    ucp_request_param_t param = param_of(number);

    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_rma_get(net_nodes[0].ep, back + offset, length, there(offset), &key, &param));
    uci_worker_leave(net_nodes[0].worker);
}

static void add(unsigned number, size_t offset, uint64_t value, uint64_t *reply)
{
    ucp_request_param_t param = param_of(number);

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype     = ucp_dt_make_contig(8);
    param.reply_buffer = reply;
    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_rma_atomic(net_nodes[0].ep, UCP_ATOMIC_OP_ADD, &value, 1, there(offset), &key, &param));
    uci_worker_leave(net_nodes[0].worker);
}

static void flush(unsigned number)
{
    ucp_request_param_t param = param_of(number);

    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_rma_flush(net_nodes[0].worker, net_nodes[0].ep, &param));
    uci_worker_leave(net_nodes[0].worker);
}

static bool has_ended(unsigned number)
{
    unsigned i;

    for (i = 0; (i < ended) && (order[i] != number); ++i) {
    }
    return i < ended;
}

static void await(unsigned number)
{
    unsigned i;

    for (i = 0; (i < 200) && !has_ended(number); ++i) {
        talk_turns(1, 20 * TALK_MS);
    }
    cr_assert(has_ended(number), "operation %u does not end", number);
}

static ucs_status_t status_of(unsigned number)
{
    unsigned i;

    for (i = 0; (i < ended) && (order[i] != number); ++i) {
    }
    return (i < ended) ? statuses[i] : UCS_INPROGRESS;
}

/* Small and large ones, and what lies there at the end */
static void some_of_all(void)
{
    uint64_t old = 0;

    put(1, 0, 100);
    put(2, 1000, LARGE);
    put(3, LARGE + 1000, 8);
    memcpy(bytes + LARGE + 1000, "\1\0\0\0\0\0\0\0", 8);
    add(4, LARGE + 1000, 41, &old);
    put(5, LARGE + 2000, LARGE);
    get(6, 0, 2 * LARGE + 2000);
    flush(7);
    await(7);
    await(6);
    cr_expect((status_of(7) == UCS_OK) && (status_of(6) == UCS_OK));
    cr_expect(memcmp(memory, bytes, 100) == 0);
    cr_expect(memcmp(memory + 1000, bytes + 1000, LARGE) == 0);
    cr_expect(memcmp(memory + LARGE + 2000, bytes + LARGE + 2000, LARGE) == 0);
    cr_expect(memcmp(memory, back, 2 * LARGE + 2000) == 0, "it was not got behind what was put");
    cr_expect(*(uint64_t *)(void *)(memory + LARGE + 1000) == old + 41);
}

Test(rma, in_order)
{
    some_of_all();
    cr_expect((talk_counters(0)->put_sent == 4) && (talk_counters(0)->get_sent == 1) &&
              (talk_counters(0)->atomic_sent == 1));
    cr_expect(!uci_rma_is_pending(&talk_peer(0, 1)->rma));
}

/* Operands, and a word that is fetched, are copied, and go in a frame, even where no message does (UCI_EAGER_MAX) */
/* Any number of large gets under way: each answer is a copy until it has been fetched */
Test(rma, large_answers_are_few_at_a_time)
{
    const uci_rma_peer_t *target = &talk_peer(1, 0)->rma;
    unsigned i, most = 0;

    talk_fill(memory, sizeof(memory), 3);
    for (i = 0; i < 60; ++i) {
        get(i, 0, LARGE);
    }
    put(60, 0, 8);
    for (i = 0; (i < 1000) && (ended < 60); ++i) {
        talk_turns(1, TALK_MS);
        most = uci_max(most, target->replying);
    }
    cr_expect((most > 1) && (most <= 16), "%u copies", most);
    cr_assert(ended == 60, "%u", ended); /* a small put is over at once */
    for (i = 0; i < 60; ++i) {
        cr_expect(statuses[i] == UCS_OK);
    }
    cr_expect(target->replying == 0);
    flush(61);
    talk_turns(20, TALK_MS);
    cr_expect(memcmp(memory, bytes, 8) == 0, "what waited behind them");
}

Test(rma, without_eager_messages)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        net_nodes[i].worker->choice.eager_max = 0;
        uci_peer_limit_eager(talk_peer(i, 1 - i));
    }
    some_of_all();
    cr_expect(talk_peer(0, 1)->eager_max == 0);
}

static void damage_once(net_message_t *message)
{
    if (message->frame && (message->length > sizeof(uci_frame_hdr_t)) &&
        uci_frame_is_user_am(talk_hdr(message)->kind)) {
        message->data[message->length - 1] ^= 1;
        net_sent = NULL;
    }
}

Test(rma, damaged)
{
    net_sent = damage_once;
    some_of_all();
    cr_expect(talk_counters(1)->repaired_chunks >= 1);
}

/* Each is executed once: what is lost comes again, what comes twice does not count */
Test(rma, lost_and_once)
{
    uint64_t old[8] = {0};
    unsigned i;

    *(uint64_t *)(void *)memory = 0;
    for (i = 0; i < 8; ++i) {
        add(i + 1, 0, 1, &old[i]);
    }
    talk_lose_frame(1, 2);
    talk_lose_frame(1, 4);
    for (i = 0; i < 8; ++i) {
        await(i + 1);
        cr_expect((old[i] == i) && (order[i] == i + 1), "%u: %lu", i, (unsigned long)old[i]);
    }
    cr_expect(*(uint64_t *)(void *)memory == 8);
}

static void put_other(unsigned number, size_t offset, size_t from, size_t length)
{
    ucp_request_param_t param = param_of(number);

    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_rma_put(net_nodes[0].ep, bytes + from, length, there(offset), &key, &param));
    uci_worker_leave(net_nodes[0].worker);
}

/* Large puts may be fetched at the same time; what goes to the same place, or comes behind a fence, is done after what was sent before */
Test(rma, large_ones)
{
    enum { EACH = 12000, COUNT = 9 };
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        put(i + 1, (size_t)i * EACH, EACH);
    }
    put_other(20, 0, EACH + 1, EACH);
    uci_worker_enter(net_nodes[0].worker);
    uci_rma_fence(net_nodes[0].worker);
    uci_worker_leave(net_nodes[0].worker);
    put_other(21, 8 * EACH, 3, EACH);
    put_other(22, 0, 5, 100);
    talk_lose_frame(1, 3);
    flush(23);
    await(23);
    cr_expect(status_of(23) == UCS_OK);
    cr_expect(memcmp(memory, bytes + 5, 100) == 0, "not what was put last");
    cr_expect(memcmp(memory + 100, bytes + EACH + 1 + 100, EACH - 100) == 0, "not what was put behind");
    cr_expect(memcmp(memory + EACH, bytes + EACH, 7 * EACH) == 0);
    cr_expect(memcmp(memory + (8 * EACH), bytes + 3, EACH) == 0, "not what was put behind the fence");
}

/* An atomic operation that is over tells that the get before it is */
Test(rma, what_is_fetched_ends_in_order)
{
    uint64_t old = 0;

    get(1, 0, LARGE);
    add(2, LARGE, 1, &old);
    await(2);
    cr_expect((order[0] == 1) && (order[1] == 2));
}

Test(rma, the_origin_does_it_where_it_can)
{
    key.memory = memory;
    put(1, 0, 100);
    get(2, 0, 100);
    cr_expect((memcmp(memory, bytes, 100) == 0) && (memcmp(back, bytes, 100) == 0));
    cr_expect((talk_counters(0)->rma_memory == 2) && (talk_counters(0)->put_sent == 0));
    key.memory = NULL;
    put(3, 1000, LARGE);
    uci_worker_enter(net_nodes[0].worker);
    uci_rma_fence(net_nodes[0].worker);
    uci_worker_leave(net_nodes[0].worker);
    key.memory = memory;
    put(4, 0, 8); /* not before what was sent before the fence */
    cr_expect(talk_counters(0)->put_sent == 2);
    flush(5);
    await(5);
    put(6, 0, 8);
    cr_expect(talk_counters(0)->rma_memory == 3);
}

/* What goes to another host, and is not much more than a frame takes, goes in frames */
static void set_up_far(void)
{
    unsigned i;

    set_up();
    net_transports = "tcp/eth0";
    for (i = 0; i < 2; ++i) { /* it has been asked already */
        free(talk_peer(i, 1 - i)->lanes.transports);
        talk_peer(i, 1 - i)->lanes.transports = NULL;
    }
}

TestSuite(rma_far, .init = set_up_far, .fini = tear_down, .timeout = 60);

Test(rma_far, pieces)
{
    put(1, 5, LARGE);
    get(2, 5, LARGE);
    add(3, 2 * LARGE, 1, (uint64_t *)(void *)(back + (2 * LARGE)));
    talk_lose_frame(1, 2);
    await(3);
    cr_expect((order[0] == 2) && (order[1] == 3), "the put was over at once, and then %u", order[0]);
    cr_expect(memcmp(memory + 5, bytes + 5, LARGE) == 0);
    cr_expect(memcmp(back + 5, bytes + 5, LARGE) == 0);
    cr_expect(talk_counters(0)->rendezvous_messages + talk_counters(1)->rendezvous_messages == 0);
    cr_expect((talk_counters(0)->put_sent == 1) && (talk_peer(1, 0)->rma.executed > 4));
}

/* A reply that is not the next part of what is fetched is none */
Test(rma_far, pieces_that_are_none)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    uci_rma_reply_t reply     = {.number = 0, .offset = 8};

    memcpy(memory, bytes, sizeof(memory));
    get(1, 5, LARGE);
    reply.number = talk_peer(0, 1)->rma.sent - 1;
    uci_worker_enter(net_nodes[0].worker);
    (void)uci_rma_reply_arrived(talk_peer(0, 1), &reply, sizeof(reply), back + (3 * LARGE), 8, &param);
    uci_worker_leave(net_nodes[0].worker);
    cr_expect(talk_counters(0)->refused_messages == 1);
    await(1);
    cr_expect(memcmp(back + 5, memory + 5, LARGE) == 0);
}

/* --------------------------------------------------------------- refused */

static ucs_status_t put_status(uint64_t address, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr;

    uci_worker_enter(net_nodes[0].worker);
    ptr = uci_rma_put(net_nodes[0].ep, bytes, length, address, &key, &param);
    uci_worker_leave(net_nodes[0].worker);
    return UCS_PTR_STATUS(ptr);
}

Test(rma, outside)
{
    cr_expect(put_status(there(sizeof(memory)), 1) == UCS_ERR_INVALID_ADDR);
    cr_expect(put_status(there(sizeof(memory) - 3), 4) == UCS_ERR_INVALID_ADDR);
    cr_expect(put_status(there(0) - 1, 4) == UCS_ERR_INVALID_ADDR);
    cr_expect(put_status(UINT64_MAX, 4) == UCS_ERR_INVALID_ADDR);
    cr_expect(put_status(there(0), SIZE_MAX / 2) == UCS_ERR_INVALID_ADDR);
    cr_expect(put_status(there(sizeof(memory)), 0) == UCS_OK);
    key.foreign = true;
    cr_expect(put_status(there(0), 4) == UCS_ERR_INVALID_ADDR);
}

static void expect_refused_there(void)
{
    memset(memory, 7, 100);
    put(1, 0, 8);
    put(2, 8, LARGE);
    flush(3);
    await(3);
    cr_expect(status_of(3) == UCS_ERR_INVALID_ADDR);
    get(4, 0, 8);
    await(4);
    cr_expect(status_of(4) == UCS_ERR_INVALID_ADDR);
    flush(5);
    cr_expect(memory[0] == 7 && memory[8] == 7);
}

Test(rma, unmapped)
{
    uci_rma_region_remove(net_nodes[1].context.rma, memh);
    uci_rma_region_add(net_nodes[1].context.rma, memh, memory, sizeof(memory)); /* another one */
    expect_refused_there();
}

Test(rma, foreign)
{
    key.packed.owner ^= 2;
    expect_refused_there();
}

Test(rma, mapped_twice)
{
    uci_rma_region_add(net_nodes[1].context.rma, memh, memory, sizeof(memory));
    uci_rma_region_remove(net_nodes[1].context.rma, memh);
    put(1, 0, 8);
    flush(2);
    await(2);
    cr_expect(status_of(2) == UCS_OK);
}

/* ------------------------------------------------------------------ keys */

Test(rma, a_damaged_key_is_none)
{
    uci_rma_packed_t ours;
    uci_rma_key_t *unpacked;
    size_t size;
    char *packed = pack(&size);

    cr_assert((packed != NULL) && (size == sizeof(ours) + 9));
    cr_expect(memcmp(packed, "a UCX key", 9) == 0);
    cr_expect(uci_rma_key_room(packed) >= size);
    packed[9 + 24] ^= 1;
    cr_assert(uci_rma_key_find(packed, size, &ours));
    unpacked = uci_rma_key_unpack(&ours);
    cr_expect(unpacked == NULL);
    cr_expect(!uci_rma_key_find(packed, size - 1, &ours), "it is cut");
    cr_expect(!uci_rma_key_find(packed + 1, size - 1, &ours), "it is another's");
    packed[9] ^= 1;
    cr_expect(!uci_rma_key_find(packed, size, &ours));
    free(packed);
    size = 9;
    cr_expect(uci_rma_key_pack(net_nodes[0].context.rma, memh, "a UCX key", &size) == NULL, "nothing is mapped there");
}

/* Of many that are under way only the oldest can have been missed: each DONE looks no further */
Test(rma, many_under_way)
{
    enum { MANY = 40000 };
    ucp_am_recv_param_t arrived = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    ucp_request_param_t param   = {.op_attr_mask = 0};
    uci_rma_done_t done         = {.executed = 0};
    uci_rma_reply_t reply       = {.number = 0};
    uci_peer_t *peer            = talk_peer(0, 1);
    unsigned i;

    cpu_limit(4);
    uci_worker_enter(net_nodes[0].worker);
    for (i = 0; i < MANY; ++i) {
        uci_request_release(uci_request_from_user(uci_rma_get(net_nodes[0].ep, back, 4, there(0), &key, &param)));
    }
    for (i = 0; i < MANY; ++i) {
        reply.number  = i;
        done.executed = i + 1;
        (void)uci_rma_reply_arrived(peer, &reply, sizeof(reply), bytes, 4, &arrived);
        (void)uci_rma_done_arrived(peer, &done, sizeof(done), NULL, 0, &arrived);
    }
    uci_worker_leave(net_nodes[0].worker);
    cpu_limit(0);
    cr_expect(!uci_rma_is_pending(&peer->rma));
}

/* ------------------------------------------------------------------ lies */

typedef ucs_status_t (*arrived_t)(void *peer, const void *header, size_t header_length, void *data, size_t length,
                                  const ucp_am_recv_param_t *param);

static void arrive(arrived_t arrived, const void *header, size_t header_length, size_t length)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};

    uci_worker_enter(net_nodes[1].worker);
    (void)arrived(talk_peer(1, 0), header, header_length, bytes, length, &param);
    uci_worker_leave(net_nodes[1].worker);
}

static uint64_t refused(void)
{
    return talk_counters(1)->refused_messages;
}

Test(rma, operations_that_can_t_be)
{
    uci_rma_header_t good = {.owner   = key.packed.owner,
                             .region  = key.packed.region,
                             .address = there(0),
                             .length  = 8,
                             .kind    = UCI_RMA_PUT};
    uci_rma_header_t bad  = good;

    arrive(uci_rma_arrived, &good, sizeof(good) - 1, 8);
    arrive(uci_rma_arrived, &good, sizeof(good), 7);
    bad.kind = UCI_RMA_KIND_LAST;
    arrive(uci_rma_arrived, &bad, sizeof(bad), 8);
    bad      = good;
    bad.kind = UCI_RMA_ATOMIC;
    bad.op   = UCI_RMA_OP_LAST;
    arrive(uci_rma_arrived, &bad, sizeof(bad), 8);
    bad.op = UCI_RMA_CSWAP; /* two operands */
    arrive(uci_rma_arrived, &bad, sizeof(bad), 8);
    bad.op = UCI_RMA_ADD;
    ++bad.address;
    arrive(uci_rma_arrived, &bad, sizeof(bad), 8);
    bad       = good;
    bad.fence = 2;
    arrive(uci_rma_arrived, &bad, sizeof(bad), 8);
    cr_expect(refused() == 7, "%lu", (unsigned long)refused());
    arrive(uci_rma_arrived, &good, sizeof(good), 8);
    cr_expect(refused() == 7 && (memcmp(memory, bytes, 8) == 0));
    arrive(uci_rma_arrived, &good, sizeof(good), 8); /* once */
    cr_expect(refused() == 8);
}

Test(rma, answers_that_can_t_be)
{
    uci_rma_done_t done   = {.executed = 1};
    uci_rma_reply_t reply = {.number = 0};

    arrive(uci_rma_done_arrived, &done, sizeof(done), 0); /* nothing was sent */
    done = (uci_rma_done_t){.failed = 1, .status = UCS_ERR_INVALID_ADDR};
    arrive(uci_rma_done_arrived, &done, sizeof(done), 0);
    done = (uci_rma_done_t){.status = UCS_ERR_INVALID_ADDR};
    arrive(uci_rma_done_arrived, &done, sizeof(done), 0);
    arrive(uci_rma_done_arrived, &done, 3, 0);
    arrive(uci_rma_reply_arrived, &reply, sizeof(reply), 8);
    arrive(uci_rma_reply_arrived, &reply, 3, 8);
    cr_expect(refused() == 6, "%lu", (unsigned long)refused());

    /* as a pointer this status would be none of UCX's errors */
    talk_peer(1, 0)->rma.sent = 1;

    done = (uci_rma_done_t){.executed = 1, .failed = 1, .status = UCS_ERR_LAST - 1};
    arrive(uci_rma_done_arrived, &done, sizeof(done), 0);
    cr_expect((refused() == 7) && (talk_peer(1, 0)->rma.status == UCS_OK));
    talk_peer(1, 0)->rma.sent = 0;
}

/* Closed by force, or failed: what the other side had answered by then comes all the same, and is no lie */
Test(rma, answers_to_what_was_given_up)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    uci_rma_reply_t reply     = {.number = 0};
    uci_rma_peer_t *rma;

    get(1, 0, 8);
    uci_worker_enter(net_nodes[0].worker);
    rma          = &talk_peer(0, 1)->rma;
    reply.number = rma->sent - 1;
    uci_rma_fail(talk_peer(0, 1), UCS_ERR_CANCELED);
    (void)uci_rma_reply_arrived(talk_peer(0, 1), &reply, sizeof(reply), bytes, 8, &param);
    cr_expect(talk_counters(0)->refused_messages == 0);
    rma->given_up = 0; /* it rests, and is awake again */
    uci_rma_part_resume(rma, rma->sent, rma->arrived);
    (void)uci_rma_reply_arrived(talk_peer(0, 1), &reply, sizeof(reply), bytes, 8, &param);
    cr_expect(talk_counters(0)->refused_messages == 0);
    ++reply.number;
    (void)uci_rma_reply_arrived(talk_peer(0, 1), &reply, sizeof(reply), bytes, 8, &param);
    cr_expect(talk_counters(0)->refused_messages == 1, "what was not asked for at all");
    uci_worker_leave(net_nodes[0].worker);
    await(1);
    cr_expect(status_of(1) == UCS_ERR_CANCELED);
}

/* The policy has let an operation go: what is behind it is executed, and the origin is told that one was not */
Test(rma, a_gap_is_told)
{
    uci_rma_header_t second = {.number  = 1,
                               .owner   = key.packed.owner,
                               .region  = key.packed.region,
                               .address = there(0),
                               .length  = 8,
                               .kind    = UCI_RMA_PUT};

    arrive(uci_rma_arrived, &second, sizeof(second), 8);
    cr_expect(memcmp(memory, bytes, 8) == 0);
    cr_expect((talk_peer(1, 0)->rma.executed == 2) && (talk_peer(1, 0)->rma.failed == 1) &&
              (talk_peer(1, 0)->rma.failed_status == UCS_ERR_IO_ERROR));
}

/* A frame that the policy lets go: acknowledged, and not there */
static unsigned frames_lost;

static bool lose_frame(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    uci_link_delivered(peer, hdr->length);
    ++frames_lost;
    return true;
}

static void lose_frames(unsigned node, bool lost)
{
    uci_worker_take_by(net_nodes[node].worker, lost ? lose_frame : uci_recv_arrived, uci_recv_lost, UCI_REQUEST_RECV);
}

/* An operation, of which nothing behind it tells that it is lost */
static void lose_last(void (*begin)(void))
{
    frames_lost = 0;
    lose_frames(1, true);
    begin();
    talk_turns(4, TALK_MS);
    cr_assert(frames_lost == 1, "%u", frames_lost);
    lose_frames(1, false);
}

static void put_1(void)
{
    put(1, 0, 8);
}

static void get_1(void)
{
    get(1, 0, 8);
}

/* Looked for now and then, and twice */
static ucs_status_t await_status(unsigned number)
{
    unsigned i;

    for (i = 0; (i < 100) && !has_ended(number); ++i) {
        talk_turns(200, 2 * TALK_MS);
    }
    return status_of(number);
}

Test(rma, the_last_put_is_lost)
{
    lose_last(put_1);
    flush(2);
    cr_expect(await_status(2) == UCS_ERR_IO_ERROR);
    put(3, 8, 8);
    flush(4);
    cr_expect(await_status(4) == UCS_OK);
    cr_expect(memcmp(memory + 8, bytes + 8, 8) == 0);
}

Test(rma, the_last_get_is_lost)
{
    lose_last(get_1);
    cr_expect(await_status(1) == UCS_ERR_IO_ERROR);
}

Test(rma, that_it_is_done_is_lost)
{
    frames_lost = 0;
    put(1, 0, 8);
    lose_frames(0, true);
    talk_turns(4, TALK_MS);
    cr_assert(frames_lost == 1, "%u", frames_lost);
    lose_frames(0, false);
    flush(2);
    cr_expect(await_status(2) == UCS_OK);
    cr_expect(memcmp(memory, bytes, 8) == 0);
}

/* The policy is to go on with what has come: not with what does something to memory */
Test(rma, a_damaged_one_is_not_executed)
{
    uci_user_am_what_t what = {.id = UCI_OWN_AM_RMA, .flags = UCI_USER_AM_OWN};
    uci_frame_hdr_t hdr     = {.kind = UCI_FRAME_EAGER};
    struct {
        char data[8];
        uci_rma_header_t header;
    } payload = {.header = {.number  = 1000,
                            .owner   = key.packed.owner,
                            .region  = key.packed.region,
                            .address = there(0),
                            .length  = 8,
                            .kind    = UCI_RMA_PUT}};

    memory[0]          = 1;
    what.header_length = sizeof(payload.header);
    hdr.length         = sizeof(payload);
    memcpy(&hdr.tag, &what, sizeof(what));
    uci_worker_enter(net_nodes[1].worker);
    uci_user_am_lost(talk_peer(1, 0), &hdr, (const char *)&payload, sizeof(payload), UCS_OK);
    uci_worker_leave(net_nodes[1].worker);
    talk_turns(4, TALK_MS);
    cr_expect((memory[0] == 1) && (talk_peer(1, 0)->rma.arrived == 0));
}

/* UCI_ON_ERROR=log lets a put go of which bytes never came: it has not been executed, and its origin is told */
Test(rma, a_put_without_all_of_its_bytes)
{
    uci_settings.on_error = UCI_ON_ERROR_LOG;
    net_sent              = talk_lose_chunk;
    put(1, 0, LARGE);
    flush(2);
    talk_turns(20, TALK_MS);
    cr_assert(talk_recv_op(1) != NULL);
    talk_give_up(1);
    await(2);
    cr_expect(status_of(2) == UCS_ERR_IO_ERROR, "status %d", status_of(2));
}

Test(rma, a_flush_of_an_endpoint_that_failed)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_t status;

    put(1, 0, 8);
    flush(2);
    uci_worker_enter(net_nodes[0].worker);
    uci_ep_fail(net_nodes[0].ep, UCS_ERR_CONNECTION_RESET);
    uci_worker_leave(net_nodes[0].worker);
    cr_expect(await_status(2) == UCS_ERR_CONNECTION_RESET);
    uci_worker_enter(net_nodes[0].worker);
    status = UCS_PTR_STATUS(uci_rma_flush(net_nodes[0].worker, net_nodes[0].ep, &param));
    uci_worker_leave(net_nodes[0].worker);
    cr_expect(status == UCS_ERR_CONNECTION_RESET);
}

/* As UCX's: its operations are done, also if the program has another endpoint to the same worker */
Test(rma, a_close_waits)
{
    ucp_request_param_t param = param_of(2);
    uci_ep_t *other;

    uci_worker_enter(net_nodes[0].worker);
    other = uci_ep_create(talk_peer(0, 1), net_nodes[0].ep->ucp, true);
    uci_worker_leave(net_nodes[0].worker);
    put(1, 0, 8);
    uci_worker_enter(net_nodes[0].worker);
    (void)talk_keep(uci_ep_close(other, &param));
    uci_worker_leave(net_nodes[0].worker);
    talk_turn(1);
    cr_expect(!has_ended(2));
    await(2);
    cr_expect(has_ended(2) && (memcmp(memory, bytes, 8) == 0));
}

/* ------------------------------------------------------------- executing */

Test(rma, atomic_operations)
{
    static const struct {
        uci_rma_op_t op;
        uint64_t operand, swap, after;
    } rows[] = {{UCI_RMA_ADD, 5, 0, 0xf0 + 5},  {UCI_RMA_SWAP, 5, 0, 5},      {UCI_RMA_CSWAP, 0xf0, 9, 9},
                {UCI_RMA_CSWAP, 0xf1, 9, 0xf0}, {UCI_RMA_AND, 0x30, 0, 0x30}, {UCI_RMA_OR, 0x0f, 0, 0xff},
                {UCI_RMA_XOR, 0xff, 0, 0x0f}};
    unsigned i;

    for (i = 0; i < uci_array_size(rows); ++i) {
        uint64_t word = 0xf0, old = 0, operands[2] = {rows[i].operand, rows[i].swap};
        uint32_t half = 0xf0, old_half = 0;
        uint32_t halves[2] = {(uint32_t)rows[i].operand, (uint32_t)rows[i].swap};

        uci_rma_atomically(rows[i].op, &word, 8, operands, &old);
        cr_expect((word == rows[i].after) && (old == 0xf0), "row %u: %lx", i, (unsigned long)word);
        uci_rma_atomically(rows[i].op, &half, 4, halves, &old_half);
        cr_expect((half == (uint32_t)rows[i].after) && (old_half == 0xf0), "row %u: %x", i, half);
    }
}
