/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The injector from below: two workers over a UCX of the tests' own, faults of one target and kind, and beside the wire and the shared memory
 * somebody who looks at all that goes there. He knows the wire format from docs/design.md, the bytes that are sent, and XXH3, and
 * shares nothing with the injector. Each fault that is counted must be one that he sees, and each that he sees must be counted.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ucx.h"
#include "base/edge.h"
#include "fault/fault.h"
#include "inject/inject.h"
#include "link/mailbox.h"
#include "tree/merkle.h"
#include "base/peer_table.h"
#include "message/recv.h"
#include "base/request.h"
#include "message/send.h"
#include "settings/settings.h"
#include "link/slot.h"
#include "link/txlog.h"

#define CHUNK    4096u
#define LARGE    40000u /* 10 chunks */
#define SMALL    1000u
#define ROUNDS   40u
#define TURNS    200000u
#define FETCHES  64u
#define ARITY    16u
#define SENDER   0x1000ul
#define RECEIVER 0x1001ul

static const uint64_t uids[] = {SENDER, RECEIVER};

typedef struct fetch {
    char *bytes, *copy;
    size_t length;
} fetch_t;

static struct {
    uint64_t damaged; /* what has been seen to be so */
    bool looking;
    char *source; /* of the message that is being sent */
    size_t length;
    uint64_t seq;
    uint64_t judged[UCI_SLOT_COUNT];
    char content[UCI_SLOT_COUNT][CHUNK]; /* when it was judged */
    fetch_t fetches[FETCHES];
    unsigned fetches_count;
} sight;

/* ------------------------------------------------------- what should be there */

static uint64_t word_at(const void *bytes, size_t offset)
{
    uint64_t word;

    memcpy(&word, (const char *)bytes + offset, sizeof(word));
    return word;
}

static uint32_t half_at(const void *bytes, size_t offset)
{
    return (uint32_t)word_at(bytes, offset);
}

static size_t chunk_bytes(uint32_t index)
{
    return uci_min((size_t)CHUNK, sight.length - ((size_t)index * CHUNK));
}

static uint32_t chunks(void)
{
    return (uint32_t)((sight.length + CHUNK - 1) / CHUNK);
}

static uint64_t right_root(void)
{
    uci_merkle_t *tree;
    uint64_t root;
    uint32_t i;

    cr_assert_eq(uci_merkle_create(chunks(), ARITY, &tree), UCI_OK);
    for (i = 0; i < chunks(); ++i) {
        uci_merkle_set_leaf(tree, i, XXH3_64bits(sight.source + ((size_t)i * CHUNK), chunk_bytes(i)));
    }
    root = uci_merkle_root(tree, (uint32_t)sight.seq, sight.length, CHUNK);
    uci_merkle_destroy(tree);
    return root;
}

static bool is_right_chunk(uint32_t index, const void *data, size_t length, uint64_t value)
{
    return (index < chunks()) && (length == chunk_bytes(index)) &&
           (memcmp(data, sight.source + ((size_t)index * CHUNK), length) == 0) && (value == XXH3_64bits(data, length));
}

static bool is_some_chunk(const void *data, size_t length)
{
    uint32_t i;

    for (i = 0; i < chunks(); ++i) {
        if (is_right_chunk(i, data, length, XXH3_64bits(data, length))) {
            return true;
        }
    }
    return false;
}

/* ----------------------------------------------------------- what is there */

/* A frame: 40 bytes of header, whose check is of this seed, and payload. @return what is wrong with it: 0 to 2 things */
static unsigned wrong_in_frame(const void *frame, size_t length, uint64_t seed)
{
    bool header = (length < 40) ||
                  (half_at(frame, 8) != (uint32_t)XXH3_64bits_withSeed((const char *)frame + 12, 28, seed));

    if (header) {
        return 1;
    }
    length -= 40;
    return (length < (uint16_t)half_at(frame, 14)) ||
           (word_at(frame, 32) != XXH3_64bits((const char *)frame + 40, (uint16_t)half_at(frame, 14)));
}

static bool is_header_right(const fake_message_t *message)
{
    bool is_segment    = ((uint8_t)message->header[4] == UCI_AM_SEGMENT) && message->rndv;
    const char *behind = is_segment ? message->header + 48 : message->data;
    size_t length      = is_segment ? message->header_length - 48 : message->length;
    uint64_t check     = XXH3_64bits(message->header + 4, 44);

    if ((uint8_t)message->header[4] != UCI_AM_DATA) {
        check ^= XXH3_64bits_withSeed(behind, length, check);
    }
    return half_at(message->header, 0) == (uint32_t)check;
}

/* Digests of all chunks, or of those of one segment, as they should be? */
static unsigned wrong_leaves(const char *leaves, size_t bytes, uint32_t first)
{
    unsigned i, count = 0;

    for (i = 0; (i < bytes / 8) && (first + i < chunks()); ++i) {
        count += word_at(leaves, 8ul * i) !=
                 XXH3_64bits(sight.source + ((size_t)(first + i) * CHUNK), chunk_bytes(first + i));
    }
    return count;
}

static unsigned wrong_in_message(const fake_message_t *message)
{
    const char *header = message->header;
    uint8_t type       = (uint8_t)header[4];
    uint32_t index     = half_at(header, 24);
    bool last          = (half_at(header, 6) & 1) != 0;
    unsigned count;

    if (!is_header_right(message)) {
        /* of a chunk that is sent again both may be hit */
        return 1u + ((message->length > 256) && !message->rndv && !is_some_chunk(message->data, message->length));
    }
    switch (type) {
    case UCI_AM_DATA:
        return !is_right_chunk(index, message->data, message->length, word_at(header, 32)) ||
               (last && (word_at(header, 40) != right_root()));
    case UCI_AM_SEGMENT:
        count = wrong_leaves(header + 48, message->header_length - 48, index);
        return count + (last && (word_at(header, 40) != right_root()));
    case UCI_AM_LEAVES:
        return wrong_leaves(message->data, message->length, 0) + (word_at(header, 40) != right_root());
    default:
        return 0;
    }
}

static void look_at_message(fake_message_t *message)
{
    if (!sight.looking || !message->am) {
        return;
    }
    if (message->id == 1020) {
        sight.damaged += wrong_in_frame(message->data, message->length,
                                        uids[message->from] + (uids[message->to] * 0x9e3779b97f4a7c15ul));
    } else if (message->id == 1021) {
        sight.damaged += wrong_in_message(message);
    }
}

/* Which chunk of the message it is follows from the mark */
static uint32_t slot_index(uint64_t mark)
{
    uint32_t i;

    for (i = 0; i < chunks(); ++i) {
        if (mark == RECEIVER + ((sight.seq + 1) * 0x9e3779b97f4a7c15ul) + ((i + 1ul) * 0xc2b2ae3d27d4eb4ful)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void look_at_slots(void)
{
    const uci_slot_t *slots = fake_net.nodes[0].worker->link.bounce.slots;
    uint32_t i, index;

    for (i = 0; (slots != NULL) && (i < UCI_SLOT_COUNT); ++i) {
        const char *slot = (const char *)&slots[i];

        index = slot_index(word_at(slot, 0));
        if (index == UINT32_MAX) {
            continue; /* of another message */
        }
        if ((sight.judged[i] == word_at(slot, 0)) && (memcmp(sight.content[i], slot + 128, CHUNK) == 0)) {
            continue;
        }
        sight.judged[i] = word_at(slot, 0);
        memcpy(sight.content[i], slot + 128, CHUNK);
        if (half_at(slot, 32) != (uint32_t)XXH3_64bits_withSeed(slot + 8, 24, word_at(slot, 0))) {
            ++sight.damaged;
        } else {
            sight.damaged += !is_right_chunk(index, slot + 128, half_at(slot, 24), word_at(slot, 8)) ||
                             ((index + 1 == chunks()) && (word_at(slot, 16) != right_root()));
        }
    }
}

/* Bytes that have come to the receiver: UCI hears of them when this returns */
static void look_at_fetch(unsigned from, unsigned to, char *bytes, size_t length)
{
    fetch_t *fetch = &sight.fetches[sight.fetches_count];

    if (sight.looking) {
        cr_assert_lt(sight.fetches_count++, FETCHES);
        *fetch = (fetch_t){bytes, malloc(length), length};
        memcpy(fetch->copy, bytes, length);
    }
}

/* Then what has come is looked at before its place is used again */
static uint64_t takes_time(unsigned from, unsigned to)
{
    return 500;
}

static void look_at_fetched(void)
{
    size_t at, length;
    unsigned i;

    for (i = 0; i < sight.fetches_count; ++i) {
        const fetch_t *fetch = &sight.fetches[i];

        for (at = 0; at < fetch->length; at += length) {
            length = uci_min((size_t)CHUNK, fetch->length - at);
            sight.damaged += (memcmp(fetch->bytes + at, fetch->copy + at, length) != 0) ||
                             !is_some_chunk(fetch->copy + at, length);
        }
        free(fetch->copy);
    }
    sight.fetches_count = 0;
}

/* The frame that was sent last, if it lies in the log */
static bool is_log_right(const uci_peer_t *peer, const void *data, size_t length)
{
    uci_frame_t *frame = uci_txlog_find((uci_peer_t *)peer, peer->tx.next - 1);

    return (frame == NULL) || (memcmp(uci_frame_payload(frame), data, length) == 0);
}

/* What went into the box, whose place and mark were these */
static void look_at_box(const uci_box_tx_t *before, const uci_box_tx_t *after, size_t total)
{
    uint64_t folded = before->mark ^ (before->mark >> 32);

    if (before->mark == after->mark) {
        return; /* it went another way */
    }
    if (word_at(before->place, 0) == folded) {
        sight.damaged += wrong_in_frame(before->place, total, folded);
        return;
    }
    if (word_at(after->box->ring, 0) != word_at(before->place, 0)) {
        folded = word_at(after->box->ring, 0); /* the first one of a lap */
        sight.damaged += wrong_in_frame(after->box->ring, total, folded);
    }
}

/* ---------------------------------------------------------------- the program */

static const ucp_request_param_t pending = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

static void turn(unsigned node)
{
    fake_node_turn(node, false);
    look_at_fetched();
    look_at_slots();
    fake_net.clock += 1000;
}

static bool is_over(ucs_status_ptr_t request)
{
    return !UCS_PTR_IS_PTR(request) || (uci_request_check(uci_request_from_user(request)) != UCS_INPROGRESS);
}

static void let_go(ucs_status_ptr_t request)
{
    cr_assert(!UCS_PTR_IS_ERR(request));
    if (request != NULL) {
        cr_expect_eq(uci_request_check(uci_request_from_user(request)), UCS_OK);
        uci_request_free(uci_request_from_user(request));
    }
}

static void send_one(size_t length, unsigned round)
{
    uci_peer_t *peer = fake_net.nodes[0].eps[1]->peer;
    char *target     = calloc(1, length);
    uci_box_tx_t before;
    ucs_status_ptr_t sent, received;
    unsigned i;

    sight.source = malloc(length);
    sight.length = length;
    sight.seq    = peer->tx.next;
    for (i = 0; i < length; ++i) { /* zeros, too, and bytes that are equal: what damages these must damage */
        sight.source[i] = (char)((round % 4 == 3) ? 0 : (i * 131) + (i >> 8) + (round * 7) + ((i / CHUNK) * 3));
    }
    before   = peer->box.tx;
    received = uci_recv(fake_net.nodes[1].worker, target, length, 7, UINT64_MAX, &pending);
    sent     = uci_send(fake_net.nodes[0].eps[1], sight.source, length, 7, &pending, false);
    look_at_box(&before, &peer->box.tx, 40 + ((length == SMALL) ? SMALL : 16));
    if (length == SMALL) {
        sight.damaged += !is_log_right(peer, sight.source, length);
    }
    look_at_slots();
    for (i = 0; (i < TURNS) && !(is_over(sent) && is_over(received)); ++i) {
        turn(0);
        turn(1);
    }
    cr_assert(is_over(sent) && is_over(received), "round %u never ends", round);
    cr_expect(memcmp(sight.source, target, length) == 0, "wrong bytes");
    for (i = 0; i < 100; ++i) { /* what is still said of it */
        turn(0);
        turn(1);
    }
    let_go(sent);
    let_go(received);
    free(sight.source);
    free(target);
}

static void begin(uci_path_t path, bool by_mailbox, const char *transports)
{
    unsigned i;

    setenv("UCI_LOG_LEVEL", "fatal", 0);
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_PROFILE", "none", 1);
    setenv("UCI_DIGEST", "xxh3", 1);
    setenv("UCI_CHUNK_SIZE", "4k", 1);
    setenv("UCI_MERKLE_ARITY", "16", 1);
    setenv("UCI_EAGER_MAX", "2k", 1);
    setenv("UCI_FAULT", "", 1);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_settings.path    = path;
    uci_settings.carrier = by_mailbox ? UCI_CARRIER_AUTO : UCI_CARRIER_AM;
    memset(&sight, 0, sizeof(sight));
    fake_net_init(1000000000000ul);
    fake_net.transports       = transports;
    fake_net.hooks.sent       = look_at_message;
    fake_net.hooks.fetched    = look_at_fetch;
    fake_net.hooks.fetch_time = takes_time;
    for (i = 0; i < 2; ++i) {
        fake_node_create(i, uids[i], UCS_THREAD_MODE_SINGLE, 0);
    }
    cr_assert_eq(fake_ep_open(0, 1), UCS_OK);
    cr_assert_eq(fake_ep_open(1, 0), UCS_OK);
}

static void inject(const char *target, const char *kind, double rate)
{
    uci_fault_spec_t spec;
    char text[256], error[256];

    snprintf(text, sizeof(text), "rate=%g,seed=5,target=%s,kind=%s", rate, target, kind);
    cr_assert_eq(uci_fault_parse(text, &spec, error, sizeof(error)), UCI_OK, "%s", error);
    uci_fault_enabled = uci_fault_init(&spec, 0, -1);
    uci_inject_install();
    sight.looking = true;
}

static void finish(const char *what, const char *target, const char *kind, unsigned least)
{
    uint64_t counted      = uci_fault_count();
    uci_fault_spec_t none = {0};

    uci_fault_enabled = uci_fault_init(&none, 0, -1);
    uci_inject_install();
    cr_expect_eq(sight.damaged, counted, "%s, %s, %s: %lu faults are counted, and %lu seen", what, target, kind,
                 counted, sight.damaged);
    cr_expect_geq(counted, least, "%s, %s, %s: only %lu faults", what, target, kind, counted);
    fake_node_destroy(0);
    fake_node_destroy(1);
}

static void check_one(const char *what, uci_path_t path, bool by_mailbox, const char *transports, size_t length,
                      const char *target, const char *kind)
{
    unsigned round;

    begin(path, by_mailbox, transports);
    for (round = 0; round < 4; ++round) { /* they get to know each other's memory */
        send_one(length, round);
        send_one(SMALL, round);
    }
    inject(target, kind, 0.2);
    for (round = 0; round < ROUNDS; ++round) {
        send_one(length, round);
    }
    finish(what, target, kind, 3);
}

/* Each kind of faults of these targets (with spaces between) */
static void check(const char *what, uci_path_t path, bool by_mailbox, const char *transports, size_t length,
                  const char *targets)
{
    char list[80], *save = NULL, *target;
    unsigned kind;

    snprintf(list, sizeof(list), "%s", targets);
    for (target = strtok_r(list, " ", &save); target != NULL; target = strtok_r(NULL, " ", &save)) {
        for (kind = 0; kind < UCI_FAULT_KIND_LAST; ++kind) {
            check_one(what, path, by_mailbox, transports, length, target, uci_fault_kind_names[kind]);
        }
        check_one(what, path, by_mailbox, transports, length, target, "any");
    }
}

Test(inject, frames_by_active_message)
{
    check("active message", UCI_PATH_AUTO, false, "tcp/eth0", SMALL, "payload header memory");
}

Test(inject, frames_in_a_box)
{
    check("box", UCI_PATH_AUTO, true, "posix/memory", SMALL, "payload header memory");
}

Test(inject, streams)
{
    check("stream", UCI_PATH_STREAM, false, "tcp/eth0", LARGE,
          "payload header tree leaf ack payload+repair payload+region");
}

Test(inject, slots)
{
    check("slots", UCI_PATH_DIRECT, true, "posix/memory", LARGE, "payload header tree leaf memory");
}

Test(inject, fetched)
{
    check("get", UCI_PATH_GET, false, "tcp/eth0", LARGE, "payload header tree ack payload+region");
}

Test(inject, bounced)
{
    check("bounce", UCI_PATH_BOUNCE, false, "tcp/eth0", LARGE, "payload header tree memory ack");
}

/* Nobody stands at an edge when there are no faults, and everybody has left it when they are over */
Test(inject, edges_are_free_without_faults)
{
    static const uci_edge_t nobody = {0};
    uci_ucp_t before;

    begin(UCI_PATH_STREAM, false, "tcp");
    before = uci_ucp;
    inject("any+repair+region+leaf+frame+escape", "any", 0.5);
    cr_expect((uci_ucp.am_send_nbx != before.am_send_nbx) && (uci_ucp.get_nbx != before.get_nbx) &&
              (uci_ucp.am_recv_data_nbx != before.am_recv_data_nbx));
    cr_expect((uci_edge.post != NULL) && (uci_edge.delivered != NULL) && (uci_edge.slot_taken != NULL));
    sight.looking = false;
    finish("edges", "any", "any", 0);
    cr_expect(memcmp(&uci_ucp, &before, sizeof(before)) == 0);
    cr_expect(memcmp(&uci_edge, &nobody, sizeof(nobody)) == 0);
}
