/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random programs of sends, receives with all sorts of masks, probes with and without removal, and cancels; a model of two lists says
 * which receive has to get which message. What holds on plain UCX has to hold with the library preloaded.
 */
#include "ucp_test.h"

enum { MESSAGES = 64, RECVS = 64, STEPS = 1500, ROOM = 20000 };

#define MARKER (1ul << 63) /* a bit that all masks have: a message with it matches no other receive */

/* A message that nobody has received */
typedef struct message {
    ucp_tag_t tag;
    size_t length;
    unsigned value;
} message_t;

/* A posted receive */
typedef struct posted {
    ucp_tag_t tag, mask;
    ut_data_t data;
    ut_op_t op;
} posted_t;

static ut_pair_t pair;
static message_t messages[MESSAGES]; /* oldest first */
static posted_t *posted[RECVS];      /* oldest first */
static unsigned message_count, posted_count, value_count;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = (random_state * 6364136223846793005ul) + 1442695040888963407ul;
    return (unsigned)((random_state >> 33) % below);
}

/* Ranks, tags and contexts are few, as in a program; the fields are where Open MPI has them */
static ucp_tag_t draw_tag(void)
{
    return ((ucp_tag_t)draw(4) << 40) | ((ucp_tag_t)draw(3) << 20) | draw(2);
}

static ucp_tag_t draw_mask(void)
{
    static const ucp_tag_t masks[] = {UT_TAG_ALL,           UT_TAG_ALL, ~0x60000000ul,       0x80000000000ffffful,
                                      0xffffff00000ffffful, MARKER,     0x800000fffffffffful};

    return masks[draw(sizeof(masks) / sizeof(masks[0]))];
}

static size_t draw_length(void)
{
    static const size_t below[] = {9, 200, 5000, 20000};

    return draw((unsigned)below[draw(4)]);
}

static bool matches(ucp_tag_t message, ucp_tag_t tag, ucp_tag_t mask)
{
    return ((message ^ tag) & mask) == 0;
}

static int find_message(ucp_tag_t tag, ucp_tag_t mask)
{
    unsigned i;

    for (i = 0; i < message_count; ++i) {
        if (matches(messages[i].tag, tag, mask)) {
            return (int)i;
        }
    }
    return -1;
}

static int find_posted(ucp_tag_t tag)
{
    unsigned i;

    for (i = 0; i < posted_count; ++i) {
        if (matches(tag, posted[i]->tag, posted[i]->mask)) {
            return (int)i;
        }
    }
    return -1;
}

static message_t take_message(int index)
{
    message_t message = messages[index];

    memmove(&messages[index], &messages[index + 1], (--message_count - (unsigned)index) * sizeof(message));
    return message;
}

static posted_t *take_posted(int index)
{
    posted_t *one = posted[index];

    memmove(&posted[index], &posted[index + 1], (--posted_count - (unsigned)index) * sizeof(one));
    return one;
}

static void expect(ut_op_t *op, const ut_data_t *data, const message_t *message)
{
    UT_CHECK_STATUS(ut_wait(&pair, op), UCS_OK, "receive");
    UT_CHECK(!op->informed || ((op->info.sender_tag == message->tag) && (op->info.length == message->length)),
             "tag 0x%lx, %zu bytes received, 0x%lx, %zu expected", (unsigned long)op->info.sender_tag, op->info.length,
             (unsigned long)message->tag, message->length);
    UT_CHECK(ut_data_check(data, message->length, message->value), "message %u of %zu bytes expected, another came",
             message->value, message->length);
}

/* What has been sent before this is there when it is done */
static void flush(void)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_data_open(&from, UT_CONTIG1, 8);
    ut_data_open(&to, UT_CONTIG1, 8);
    ut_data_fill(&from, 1);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, MARKER, UT_TAG_ALL);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, MARKER);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "marker");
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "marker");
    ut_data_close(&from);
    ut_data_close(&to);
}

/* Sends wait for their receivers if they are large: they are waited for at the end */
static ut_op_t sends[STEPS];
static ut_data_t sent[STEPS];
static unsigned send_count;

static void step_send(void)
{
    message_t message = {.tag = draw_tag(), .length = draw_length(), .value = ++value_count};
    int index         = find_posted(message.tag);
    posted_t *one;

    if (message_count == MESSAGES) {
        return;
    }
    ut_data_open(&sent[send_count], UT_CONTIG1, message.length);
    ut_data_fill(&sent[send_count], message.value);
    ut_send(&sends[send_count], pair.a, UT_SEND_NBX, &sent[send_count], message.tag);
    ++send_count;
    flush();
    if (index < 0) {
        messages[message_count++] = message;
        return;
    }
    one = take_posted(index);
    expect(&one->op, &one->data, &message);
    ut_data_close(&one->data);
    free(one);
}

static void step_recv(void)
{
    posted_t *one = calloc(1, sizeof(*one));
    message_t message;
    int index;

    one->tag  = draw_tag();
    one->mask = draw_mask();
    index     = find_message(one->tag, one->mask);
    if ((index < 0) && (posted_count == RECVS)) {
        free(one);
        return;
    }
    ut_data_open(&one->data, UT_CONTIG1, ROOM);
    ut_data_poison(&one->data);
    ut_recv(&one->op, &pair, draw(2) ? UT_RECV_NBX : UT_RECV_NB, &one->data, one->tag, one->mask);
    if (index < 0) {
        posted[posted_count++] = one;
        return;
    }
    message = take_message(index);
    expect(&one->op, &one->data, &message);
    ut_data_close(&one->data);
    free(one);
}

static void step_probe(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    ucp_tag_t tag = draw_tag(), mask = draw_mask();
    int index = find_message(tag, mask), remove = (int)draw(2);
    ucp_tag_recv_info_t info;
    ucp_tag_message_h handle;
    message_t message;
    ut_data_t data;
    ut_op_t op;

    if (index < 0) {
        UT_CHECK(ucp_tag_probe_nb(pair.b->worker, tag, mask, remove, &info) == NULL, "a probe finds what is not there");
        return;
    }
    handle = ut_probe(&pair, tag, mask, remove, &info);
    UT_CHECK((info.sender_tag == messages[index].tag) && (info.length == messages[index].length),
             "a probe tells of tag 0x%lx, %zu bytes, expected 0x%lx, %zu", (unsigned long)info.sender_tag, info.length,
             (unsigned long)messages[index].tag, messages[index].length);
    if (!remove) {
        return;
    }
    message = take_message(index);
    ut_data_open(&data, UT_CONTIG1, ROOM);
    ut_data_poison(&data);
    memset(&op, 0, sizeof(op));
    ut_op_set(&op, ucp_tag_msg_recv_nbx(pair.b->worker, data.buffer, data.count, handle, &param));
    op.recv = true;
    expect(&op, &data, &message);
    ut_data_close(&data);
}

static void cancel_one(unsigned index)
{
    posted_t *one = take_posted((int)index);

    ucp_request_cancel(pair.b->worker, one->op.request);
    UT_CHECK_STATUS(ut_wait(&pair, &one->op), UCS_ERR_CANCELED, "a cancelled receive");
    UT_CHECK(ut_data_check(&one->data, 0, 0), "a cancelled receive was written to");
    ut_data_close(&one->data);
    free(one);
}

static void step_cancel(void)
{
    if (posted_count > 0) {
        cancel_one(draw(posted_count));
    }
}

static void run(uint64_t seed)
{
    unsigned step, i, before = ut_failures();

    random_state  = seed * 0x9e3779b97f4a7c15ul;
    message_count = posted_count = send_count = value_count = 0;
    ut_pair_open(&pair, 0);
    for (step = 0; (step < STEPS) && (ut_failures() == before); ++step) {
        switch (draw(8)) {
        case 0:
        case 1:
        case 2:
            step_send();
            break;
        case 3:
        case 4:
        case 5:
            step_recv();
            break;
        case 6:
            step_probe();
            break;
        default:
            step_cancel();
            break;
        }
    }
    UT_CHECK(ut_failures() == before, "seed %lu, step %u", (unsigned long)seed, step);
    while (posted_count > 0) {
        cancel_one(posted_count - 1);
    }
    while (message_count > 0) {
        message_t message = take_message(0);
        ut_data_t data;
        ut_op_t op;

        ut_data_open(&data, UT_CONTIG1, ROOM);
        ut_data_poison(&data);
        ut_recv(&op, &pair, UT_RECV_NBX, &data, message.tag, UT_TAG_ALL);
        expect(&op, &data, &message);
        ut_data_close(&data);
    }
    for (i = 0; i < send_count; ++i) {
        UT_CHECK_STATUS(ut_wait(&pair, &sends[i]), UCS_OK, "send");
        ut_data_close(&sent[i]);
    }
    ut_pair_close(&pair);
}

static void random_programs(void)
{
    uint64_t seed;

    for (seed = 1; (seed <= 5) && (ut_failures() == 0); ++seed) {
        run(seed);
    }
}

static const ut_test_t tests[] = {
        UT_TEST(random_programs),
};

UT_MAIN(tests)
