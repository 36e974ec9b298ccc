/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages of one endpoint arrive in the order in which they were sent, each once: many small ones, small beside large, and beside
 * tagged messages, which keep their own order.
 */
#include "am_test.h"

enum { ID = 17, MANY = 100000, WITH_FAULTS = 5000, MIXED = 3000, WINDOW = 128, TURN = 16, LARGE = 60000, TAGGED = 8 };

typedef struct header {
    am_stamp_t stamp;
    uint64_t length;
} header_t;

/* A message under way */
typedef struct slot {
    ucs_status_ptr_t request;
    header_t header;
    char data[LARGE];
} slot_t;

static ut_pair_t pair;
static slot_t slots[WINDOW];
static unsigned arrived;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = (random_state * 6364136223846793005ul) + 1442695040888963407ul;
    return (unsigned)((random_state >> 33) % below);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);
    header_t copy;

    UT_CHECK(stamp.number == arrived, "message %u comes as number %u", stamp.number, arrived);
    ++arrived;
    UT_REQUIRE(header_length == sizeof(copy), "header of %zu bytes", header_length);
    memcpy(&copy, header, sizeof(copy));
    UT_CHECK(length == copy.length, "message %u: %zu bytes came, %zu were sent", stamp.number, length,
             (size_t)copy.length);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        return UCS_OK; /* in order all the same: nobody wants its data */
    }
    UT_CHECK(ut_verify(data, length, am_seed(stamp)) == SIZE_MAX, "message %u: wrong content, %zu bytes", stamp.number,
             length);
    return UCS_OK;
}

static void open_pair(void)
{
    am_open(&pair);
    am_listen(pair.b->worker, ID, on_message, NULL, 0);
    memset(slots, 0, sizeof(slots));
    arrived      = 0;
    random_state = 1;
}

static void end_slot(slot_t *slot)
{
    UT_CHECK_STATUS(ut_wait_ptr(&pair, slot->request), UCS_OK, "am_send");
    slot->request = NULL;
}

static void close_pair(unsigned count)
{
    unsigned i;

    am_await(&pair, &arrived, count, "active messages");
    for (i = 0; i < WINDOW; ++i) {
        end_slot(&slots[i]);
    }
    ut_settle(&pair);
    UT_CHECK(arrived == count, "%u messages arrived, %u were sent", arrived, count);
    ut_pair_close(&pair);
}

static void post(unsigned number, size_t length, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    slot_t *slot              = &slots[number % WINDOW];

    end_slot(slot);
    slot->header = (header_t){.stamp = {.source = 1, .number = number}, .length = length};
    ut_fill(slot->data, length, am_seed(slot->header.stamp));
    slot->request = ucp_am_send_nbx(pair.a->ep, ID, &slot->header, sizeof(slot->header), slot->data, length, &param);
    if (number % TURN == 0) {
        ut_progress(&pair);
    }
}

static size_t draw_small(void)
{
    return (draw(8) == 0) ? draw(6000) : draw(200);
}

static void small(void)
{
    unsigned count = ut_faults_are_on() ? WITH_FAULTS : MANY, i;

    open_pair();
    for (i = 0; i < count; ++i) {
        post(i, draw_small(), (draw(4) == 0) ? AM_EAGER | AM_REPLY : AM_EAGER);
    }
    close_pair(count);
}

/* Those in several fragments take their place among the others, as does the announcement of a rendezvous */
static void small_and_large(void)
{
    unsigned i;

    open_pair();
    for (i = 0; i < MIXED; ++i) {
        switch (draw(4)) {
        case 0:
            post(i, draw(LARGE), AM_EAGER);
            break;
        case 1:
            post(i, draw(LARGE), AM_RNDV);
            break;
        default:
            post(i, draw_small(), 0);
            break;
        }
    }
    close_pair(MIXED);
}

/* ------------------------------------------------------------ beside tags */

static void post_tagged(ut_op_t *send, ut_data_t *data, size_t length, unsigned number)
{
    ut_data_open(data, UT_CONTIG1, length);
    ut_data_fill(data, number);
    ut_send(send, pair.a, UT_SEND_NBX, data, ID);
}

/* All have one tag: the next that is received is the next that was sent */
static void expect_tagged(ut_op_t *send, ut_data_t *data, unsigned number)
{
    ut_data_t in;
    ut_op_t recv;

    ut_data_open(&in, UT_CONTIG1, data->length);
    ut_recv(&recv, &pair, UT_RECV_NBX, &in, ID, UT_TAG_ALL);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, send), UCS_OK, "send");
    UT_CHECK(ut_data_check(&in, data->length, number), "tagged message %u: wrong content", number);
    ut_data_close(&in);
    ut_data_close(data);
}

static void beside_tags(void)
{
    static const size_t sizes[TAGGED] = {8, 3000, 9000, 0, 100000, 8192, 60, 20000};
    ut_data_t data[TAGGED];
    ut_op_t sends[TAGGED];
    unsigned i, k, number = 0;

    open_pair();
    while (number < MIXED) {
        for (i = 0; i < TAGGED; ++i) {
            post_tagged(&sends[i], &data[i], sizes[i], number + i);
            for (k = 0; k < 4; ++k) {
                post(number + (4 * i) + k, draw_small(), 0);
            }
        }
        for (i = 0; i < TAGGED; ++i) {
            expect_tagged(&sends[i], &data[i], number + i);
        }
        number += 4 * TAGGED;
    }
    close_pair(number);
}

static const ut_test_t tests[] = {
        AM_TEST(small), AM_TEST(small_and_large), {"beside_tags", beside_tags, UCP_FEATURE_TAG | UCP_FEATURE_AM}};

UT_MAIN(tests)
