/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers of active messages, of both sorts: set, replaced, removed, several at once, none at all. What nobody handles is dropped, as
 * UCX does: an eager send has succeeded all the same, a rendezvous fails.
 */
#include "am_test.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { ID = 5, MARKER = 6, BAD_FLAG = 1 << 15 };

static ut_pair_t pair;
static am_inbox_t inbox, other, marker;

/* A handler of the old sort: no header, no rendezvous */
static ucs_status_t on_old_message(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    am_inbox_t *box = arg;

    ++box->calls;
    box->length   = length;
    box->data     = data;
    box->reply_ep = reply_ep;
    UT_CHECK((flags & ~(unsigned)UCP_CB_PARAM_FLAG_DATA) == 0, "unknown flags 0x%x", flags);
    UT_CHECK(ut_verify(data, length, am_seed(box->stamp)) == SIZE_MAX, "wrong content, %zu bytes", length);
    box->answered = (flags & UCP_CB_PARAM_FLAG_DATA) ? box->answer : UCS_OK;
    return box->answered;
}

static void open_pair(void)
{
    am_open(&pair);
    inbox  = (am_inbox_t){.answer = UCS_OK};
    other  = (am_inbox_t){.answer = UCS_OK};
    marker = (am_inbox_t){.answer = UCS_OK};
    am_listen(pair.b->worker, MARKER, am_on_message, &marker, 0);
}

/* Send, and wait until it has arrived whatever became of it: a message that is sent later has. @return how the send ended */
static ucs_status_t send_and_pass(unsigned id, uint32_t flags, size_t header_length, size_t length, unsigned number)
{
    am_what_t what = {.id            = id,
                      .flags         = flags,
                      .header_length = header_length,
                      .length        = length,
                      .stamp         = {.source = 1, .number = number}};
    am_what_t last = {.id = MARKER, .flags = AM_EAGER, .length = 8, .stamp = what.stamp};
    unsigned calls = marker.calls;
    am_send_t send, passed;
    ucs_status_t status;

    inbox.stamp = other.stamp = marker.stamp = what.stamp;
    am_send(&send, pair.a->ep, &what);
    am_send(&passed, pair.a->ep, &last);
    am_await(&pair, &marker.calls, calls + 1, "the marker");
    status = am_send_end(&pair, &send);
    UT_CHECK_STATUS(am_send_end(&pair, &passed), UCS_OK, "am_send of the marker");
    return status;
}

static void expect_arrival(am_inbox_t *box, size_t length, unsigned number)
{
    unsigned calls = box->calls;

    UT_CHECK_STATUS(send_and_pass(ID, AM_EAGER, 0, length, number), UCS_OK, "am_send");
    UT_CHECK((box->calls == calls + 1) && (box->length == length),
             "message %u of %zu bytes: the handler was called %u times, last with %zu", number, length,
             box->calls - calls, box->length);
}

/* --------------------------------------------------------- the old sort */

static void send_old(size_t length, unsigned flags, unsigned number)
{
    am_stamp_t stamp    = {.source = 1, .number = number};
    ucp_datatype_t byte = ucp_dt_make_contig(1);
    char *data          = malloc(length + 1);
    ucs_status_ptr_t ptr;

    ut_fill(data, length, am_seed(stamp));
    inbox = (am_inbox_t){.stamp = stamp, .answer = UCS_INPROGRESS};
    ptr   = ucp_am_send_nb(pair.a->ep, ID, data, length, byte, (ucp_send_callback_t)(void *)ut_clock_start, flags);
    am_await(&pair, &inbox.calls, 1, "an active message");
    UT_CHECK(inbox.length == length, "%zu bytes came, %zu were sent", inbox.length, length);
    UT_CHECK((inbox.reply_ep != NULL) || !(flags & AM_REPLY), "no endpoint to reply to");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "ucp_am_send_nb");
    if (inbox.answered == UCS_INPROGRESS) {
        UT_CHECK(ut_verify(inbox.data, length, am_seed(stamp)) == SIZE_MAX, "kept data has changed, %zu bytes", length);
        ucp_am_data_release(pair.b->worker, inbox.data);
    }
    free(data);
}

static void old_functions(void)
{
    static const size_t sizes[]   = {0, 1, 8, 100, 1000, 8192, 8193, 65536, 1 << 20};
    static const uint32_t flags[] = {0, UCP_AM_FLAG_WHOLE_MSG};
    unsigned size, flag;

    open_pair();
    for (flag = 0; flag < COUNT(flags); ++flag) {
        am_listen_old(pair.b->worker, ID, on_old_message, &inbox, flags[flag]);
        for (size = 0; size < COUNT(sizes); ++size) {
            send_old(sizes[size], 0, size);
            send_old(sizes[size], AM_REPLY, size);
        }
    }
    ut_pair_close(&pair);
}

/* UCX warns of mixing both sorts, but brings what has no header to either */
static void old_and_new(void)
{
    open_pair();
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    send_old(100, 0, 1);
    send_old(100000, AM_REPLY, 2);
    am_listen_old(pair.b->worker, ID, on_old_message, &inbox, 0);
    inbox = (am_inbox_t){.answer = UCS_OK};
    expect_arrival(&inbox, 100, 3);
    expect_arrival(&inbox, 100000, 4);
    ut_pair_close(&pair);
}

/* A header, or a rendezvous, is nothing for a handler of the old sort */
static void too_new_for_old(void)
{
    open_pair();
    am_listen_old(pair.b->worker, ID, on_old_message, &inbox, 0);
    UT_CHECK_STATUS(send_and_pass(ID, AM_EAGER, 8, 100, 1), UCS_OK, "am_send with a header");
    UT_CHECK(inbox.calls == 0, "a message with a header came to a handler of the old sort");
    UT_CHECK_STATUS(send_and_pass(ID, AM_RNDV, 0, 100, 2), UCS_ERR_INVALID_PARAM, "am_send of a rendezvous");
    UT_CHECK(inbox.calls == 0, "a rendezvous came to a handler of the old sort");
    expect_arrival(&inbox, 100, 3);
    ut_pair_close(&pair);
}

/* ---------------------------------------------------- replaced, removed */

static void replaced(void)
{
    open_pair();
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    expect_arrival(&inbox, 100, 1);
    am_listen(pair.b->worker, ID, am_on_message, &other, 0);
    expect_arrival(&other, 100, 2);
    am_listen_old(pair.b->worker, ID, on_old_message, &inbox, 0);
    expect_arrival(&inbox, 100, 3);
    am_listen(pair.b->worker, ID, am_on_message, &other, UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA);
    expect_arrival(&other, 100, 4);
    UT_CHECK((inbox.calls == 2) && (other.calls == 2), "%u and %u calls", inbox.calls, other.calls);
    UT_CHECK(other.attr & UCP_AM_RECV_ATTR_FLAG_DATA, "without DATA, although it was asked for");
    ut_pair_close(&pair);
}

static ucs_status_t on_first(void *arg, const void *header, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    am_listen(pair.b->worker, ID, am_on_message, &other, 0);
    return am_on_message(arg, header, header_length, data, length, param);
}

/* By itself, while it is called */
static void replaces_itself(void)
{
    open_pair();
    am_listen(pair.b->worker, ID, on_first, &inbox, 0);
    expect_arrival(&inbox, 100, 1);
    expect_arrival(&other, 100, 2);
    UT_CHECK((inbox.calls == 1) && (other.calls == 1), "%u and %u calls", inbox.calls, other.calls);
    ut_pair_close(&pair);
}

static void expect_nobody(unsigned id)
{
    UT_CHECK_STATUS(send_and_pass(id, AM_EAGER, 0, 100, 11), UCS_OK, "am_send that nobody handles");
    UT_CHECK_STATUS(send_and_pass(id, AM_EAGER, 8, 100000, 12), UCS_OK, "am_send that nobody handles");
    UT_CHECK_STATUS(send_and_pass(id, AM_EAGER | AM_REPLY, 8, 0, 13), UCS_OK, "am_send that nobody handles");
    UT_CHECK_STATUS(send_and_pass(id, AM_RNDV, 0, 100000, 14), UCS_ERR_INVALID_PARAM, "rendezvous that nobody handles");
    UT_CHECK_STATUS(send_and_pass(id, AM_RNDV, 8, 0, 15), UCS_ERR_INVALID_PARAM, "rendezvous that nobody handles");
}

static void removed(void)
{
    open_pair();
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    expect_arrival(&inbox, 100, 1);
    am_listen(pair.b->worker, ID, NULL, NULL, 0);
    expect_nobody(ID);
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    expect_arrival(&inbox, 100, 2);
    UT_CHECK(inbox.calls == 2, "what was dropped came later: %u calls", inbox.calls);
    am_listen_old(pair.b->worker, ID, NULL, NULL, 0);
    expect_nobody(ID);
    UT_CHECK(inbox.calls == 2, "a removed handler was called");
    ut_pair_close(&pair);
}

/* An id that never had a handler, and ids of other handlers around it */
static void nobody(void)
{
    open_pair();
    am_listen(pair.b->worker, ID - 1, am_on_message, &inbox, 0);
    am_listen(pair.b->worker, ID + 2, am_on_message, &other, 0);
    expect_nobody(ID);
    UT_CHECK((inbox.calls == 0) && (other.calls == 0), "another handler was called");
    ut_pair_close(&pair);
}

/* ----------------------------------------------------------- several ids */

static void many_ids(void)
{
    static const unsigned ids[] = {0, 1, 7, 31, 999, 1018, 1023, 4096, AM_LAST};
    am_inbox_t boxes[COUNT(ids)];
    am_send_t sends[3 * COUNT(ids)];
    unsigned i, count = 0;

    open_pair();
    memset(boxes, 0, sizeof(boxes));
    for (i = 0; i < COUNT(ids); ++i) {
        am_listen(pair.b->worker, ids[i], am_on_message, &boxes[i], 0);
    }
    for (i = 0; i < COUNT(sends); ++i) {
        am_what_t what = {.id            = ids[i % COUNT(ids)],
                          .flags         = AM_EAGER,
                          .header_length = 16,
                          .length        = i * 500,
                          .stamp         = {.source = i % COUNT(ids), .number = i}};

        am_send(&sends[i], pair.a->ep, &what);
    }
    for (i = 0; i < COUNT(ids); ++i) {
        am_await(&pair, &boxes[i].calls, 3, "messages to many ids");
        UT_CHECK(boxes[i].stamp.source == i, "id %u got a message to id %u", ids[i], ids[boxes[i].stamp.source]);
        count += boxes[i].calls;
    }
    UT_CHECK(count == COUNT(sends), "%u calls", count);
    for (i = 0; i < COUNT(sends); ++i) {
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

/* ----------------------------------------------------- what is not allowed */

static ucs_status_t set_handler(uint64_t fields, unsigned id, uint32_t flags)
{
    ucp_am_handler_param_t param = {.field_mask = fields, .id = id, .flags = flags, .cb = am_on_message, .arg = &inbox};

    return ucp_worker_set_am_recv_handler(pair.b->worker, &param);
}

static void bad_handlers(void)
{
    const uint64_t with_id = UCP_AM_HANDLER_PARAM_FIELD_ID, with_cb = UCP_AM_HANDLER_PARAM_FIELD_CB,
                   with_flags = UCP_AM_HANDLER_PARAM_FIELD_FLAGS;

    open_pair();
    UT_CHECK_STATUS(set_handler(with_cb, ID, 0), UCS_ERR_INVALID_PARAM, "a handler of no id");
    UT_CHECK_STATUS(set_handler(with_id, ID, 0), UCS_ERR_INVALID_PARAM, "no handler of an id");
    UT_CHECK_STATUS(set_handler(with_id | with_cb | with_flags, ID, BAD_FLAG), UCS_ERR_INVALID_PARAM, "unknown flags");
    UT_CHECK_STATUS(ucp_worker_set_am_handler(pair.b->worker, ID, on_old_message, NULL, BAD_FLAG),
                    UCS_ERR_INVALID_PARAM, "unknown flags");
    UT_CHECK_STATUS(set_handler(with_id | with_cb, ID, BAD_FLAG), UCS_OK,
                    "unknown flags that are not said to be there");
    ut_pair_close(&pair);
}

/* Without its field an argument is NULL */
static ucs_status_t on_null(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    UT_CHECK(arg == NULL, "an argument that was not given");
    return am_on_message(&inbox, header, header_length, data, length, param);
}

static void no_argument(void)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
                                    .id         = ID,
                                    .cb         = on_null,
                                    .arg        = &inbox};

    open_pair();
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &param), UCS_OK, "set_am_recv_handler");
    expect_arrival(&inbox, 100, 1);
    ut_pair_close(&pair);
}

/* A context that has not asked for active messages has none. UCI asks for them itself, and they are there then */
static void without_the_feature(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    const uint64_t fields    = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;

    if (ut_uci_is_on()) {
        return;
    }
    ut_pair_open(&pair, 0);
    UT_CHECK_STATUS(set_handler(fields, ID, 0), UCS_ERR_INVALID_PARAM, "set_am_recv_handler");
    UT_CHECK_STATUS(ucp_worker_set_am_handler(pair.b->worker, ID, on_old_message, NULL, 0), UCS_ERR_INVALID_PARAM,
                    "set_am_handler");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_am_send_nbx(pair.a->ep, ID, NULL, 0, NULL, 0, &none)), UCS_ERR_INVALID_PARAM,
                    "am_send");
    UT_CHECK(am_max_header(pair.a->worker) == 0, "headers of up to %zu bytes", am_max_header(pair.a->worker));
    ut_pair_close(&pair);
}

/* UCX takes the lower 16 bits of an id until 1.18, which refuses more */
static void ids_too_large(void)
{
    const unsigned large  = AM_LAST + 1 + ID;
    const uint64_t fields = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                            UCP_AM_HANDLER_PARAM_FIELD_ARG;
    const ucs_status_t expected = am_ucx_is(1, 18) ? UCS_ERR_INVALID_PARAM : UCS_OK;

    open_pair();
    UT_CHECK_STATUS(set_handler(fields, large, 0), expected, "an id of more than 16 bits");
    UT_CHECK_STATUS(send_and_pass(large, AM_EAGER, 0, 8, 1), expected, "am_send to an id of more than 16 bits");
    if (expected == UCS_OK) {
        UT_CHECK(inbox.calls == 1, "%u calls", inbox.calls);
        expect_arrival(&inbox, 8, 2);
    }
    ut_pair_close(&pair);
}

/* Before 1.16 UCX dies of it */
static void header_too_long(void)
{
    size_t length;

    if (!am_ucx_is(1, 16)) {
        return;
    }
    open_pair();
    length = am_max_header(pair.a->worker) + 1;
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    UT_CHECK_STATUS(send_and_pass(ID, 0, length, 0, 1), UCS_ERR_INVALID_PARAM, "a header too long");
    UT_CHECK_STATUS(send_and_pass(ID, AM_RNDV, length, 100, 2), UCS_ERR_INVALID_PARAM, "a header too long");
    UT_CHECK(inbox.calls == 0, "a message that was refused came");
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {AM_TEST(old_functions),
                                  AM_TEST(old_and_new),
                                  AM_TEST(too_new_for_old),
                                  AM_TEST(replaced),
                                  AM_TEST(replaces_itself),
                                  AM_TEST(removed),
                                  AM_TEST(nobody),
                                  AM_TEST(many_ids),
                                  AM_TEST(bad_handlers),
                                  AM_TEST(no_argument),
                                  UT_TEST(without_the_feature),
                                  AM_TEST(ids_too_large),
                                  AM_TEST(header_too_long)};

UT_MAIN(tests)
