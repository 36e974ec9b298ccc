/* SPDX-License-Identifier: BSD-3-Clause */
#include "am_test.h"

#include <sched.h>

static bool am_sending;  /* within a call that sends */
static bool am_loopback; /* the worker sends to itself: its handlers may be called then */

bool am_ucx_is(unsigned major, unsigned minor)
{
    unsigned is_major, is_minor, release;

    ucp_get_version(&is_major, &is_minor, &release);
    return (is_major > major) || ((is_major == major) && (is_minor >= minor));
}

static void am_clear(ucp_worker_h worker)
{
    unsigned id;

    for (id = 0; id < AM_IDS; ++id) {
        am_listen(worker, id, NULL, NULL, 0);
    }
}

void am_prepare(const ut_pair_t *pair)
{
    am_loopback = (pair->a == pair->b);
    am_clear(pair->a->worker);
    am_clear(pair->b->worker);
}

void am_open(ut_pair_t *pair)
{
    ut_pair_open_with(pair, ut_features, UCS_THREAD_MODE_SINGLE);
    am_prepare(pair);
}

void am_open_self(ut_pair_t *pair)
{
    ut_pair_open_self(pair, UCP_FEATURE_AM);
    am_prepare(pair);
}

size_t am_max_header(ucp_worker_h worker)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};

    UT_REQUIRE(ucp_worker_query(worker, &attr) == UCS_OK, "ucp_worker_query");
    return attr.max_am_header;
}

/* ----------------------------------------------------------- contents */

unsigned am_seed(am_stamp_t stamp)
{
    return (stamp.source * 67) + stamp.number + 1;
}

void am_header_fill(void *header, size_t length, am_stamp_t stamp)
{
    ut_fill(header, length, am_seed(stamp) + 128);
    if (length >= sizeof(stamp)) {
        memcpy(header, &stamp, sizeof(stamp));
    }
}

bool am_header_check(const void *header, size_t length, am_stamp_t stamp)
{
    char *expected = malloc(length + 1);
    bool ok;

    am_header_fill(expected, length, stamp);
    ok = (length == 0) || (memcmp(header, expected, length) == 0);
    free(expected);
    return ok;
}

am_stamp_t am_header_stamp(const void *header, size_t length)
{
    am_stamp_t stamp;

    UT_REQUIRE(length >= sizeof(stamp), "a header of %zu bytes has no stamp", length);
    memcpy(&stamp, header, sizeof(stamp));
    return stamp;
}

/* -------------------------------------------------------------- sends */

void am_send(am_send_t *send, ucp_ep_h ep, const am_what_t *what)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.send   = ut_op_sent,
                                 .user_data = &send->op,
                                 .flags     = what->flags};
    ucs_status_ptr_t ptr;

    ut_op_open(&send->op, false);
    ut_data_open(&send->data, what->layout, what->length);
    ut_data_fill(&send->data, am_seed(what->stamp));
    send->header = (what->header_length > 0) ? malloc(what->header_length) : NULL;
    am_header_fill(send->header, what->header_length, what->stamp);
    param.datatype    = send->data.datatype;
    send->op.callback = true;
    am_sending        = true;
    ptr = ucp_am_send_nbx(ep, what->id, send->header, what->header_length, send->data.buffer, send->data.count, &param);
    am_sending = false;
    ut_op_set(&send->op, ptr);
}

ucs_status_t am_send_end(const ut_pair_t *pair, am_send_t *send)
{
    ucs_status_t status = ut_wait(pair, &send->op);

    ut_data_close(&send->data);
    free(send->header);
    return status;
}

/* ----------------------------------------------------------- handlers */

static void am_check_attr(const ucp_am_recv_param_t *param)
{
    const uint64_t data = UCP_AM_RECV_ATTR_FLAG_DATA, rndv = UCP_AM_RECV_ATTR_FLAG_RNDV;

    UT_CHECK((param->recv_attr & (data | rndv)) != (data | rndv), "both DATA and RNDV");
    UT_CHECK((param->recv_attr & ~(data | rndv | UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) == 0, "unknown attributes 0x%lx",
             (unsigned long)param->recv_attr);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) {
        UT_CHECK(param->reply_ep != NULL, "no reply_ep, although it is said that there is one");
    }
}

static void am_keep_told(am_inbox_t *inbox, size_t header_length, void *data, size_t length,
                         const ucp_am_recv_param_t *param)
{
    ++inbox->calls;
    inbox->header_length = header_length;
    inbox->length        = length;
    inbox->attr          = param->recv_attr;
    inbox->reply_ep      = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) ? param->reply_ep : NULL;
    inbox->data          = data;
}

ucs_status_t am_on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    am_inbox_t *inbox   = arg;
    const uint64_t kept = UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV;

    UT_CHECK(!am_sending || am_loopback, "a handler is called within a send of another worker");
    am_check_attr(param);
    am_keep_told(inbox, header_length, data, length, param);
    if (header_length >= sizeof(am_stamp_t)) {
        inbox->stamp = am_header_stamp(header, header_length);
    }
    UT_CHECK(am_header_check(header, header_length, inbox->stamp), "wrong header of %zu bytes", header_length);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        UT_CHECK(ut_verify(data, length, am_seed(inbox->stamp)) == SIZE_MAX, "message %u.%u: wrong content, %zu bytes",
                 inbox->stamp.source, inbox->stamp.number, length);
    }
    inbox->answered = (param->recv_attr & kept) ? inbox->answer : UCS_OK;
    return inbox->answered;
}

void am_listen(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t cb, void *arg, uint32_t flags)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                    .id    = id,
                                    .flags = flags,
                                    .cb    = cb,
                                    .arg   = arg};
    ucs_status_t status          = ucp_worker_set_am_recv_handler(worker, &param);

    UT_REQUIRE(status == UCS_OK, "ucp_worker_set_am_recv_handler %u: %s", id, ucs_status_string(status));
}

void am_listen_old(ucp_worker_h worker, unsigned id, ucp_am_callback_t cb, void *arg, uint32_t flags)
{
    ucs_status_t status = ucp_worker_set_am_handler(worker, (uint16_t)id, cb, arg, flags);

    UT_REQUIRE(status == UCS_OK, "ucp_worker_set_am_handler %u: %s", id, ucs_status_string(status));
}

void am_await(const ut_pair_t *pair, const unsigned *count, unsigned value, const char *what)
{
    ut_clock_start();
    while (*count < value) {
        ut_progress(pair);
        sched_yield(); /* the sender may be another process */
        ut_clock_check(what);
    }
    UT_CHECK(*count == value, "%s: %u instead of %u", what, *count, value);
}

/* ----------------------------------------------------------- receives */

static void am_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    am_recv_t *recv = user_data;

    recv->op.status = status;
    recv->length    = length;
    ++recv->op.calls;
}

void am_recv(am_recv_t *recv, const ut_side_t *side, void *desc, ut_layout_t layout, size_t room, unsigned how)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv_am       = am_received,
                                 .user_data        = recv,
                                 .recv_info.length = &recv->length};

    ut_op_open(&recv->op, false);
    ut_data_open(&recv->data, layout, room);
    recv->length      = SIZE_MAX;
    recv->op.callback = true;
    param.datatype    = recv->data.datatype;
    if (how & AM_OWN_REQUEST) {
        ut_memory_open(&recv->op.memory, side->context);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
        param.request = recv->op.memory.request;
    }
    param.op_attr_mask |= (how & AM_NO_IMM) ? UCP_OP_ATTR_FLAG_NO_IMM_CMPL : 0;
    ut_op_set(&recv->op, ucp_am_recv_data_nbx(side->worker, desc, recv->data.buffer, recv->data.count, &param));
    UT_CHECK(!(how & AM_NO_IMM) || (recv->op.request != NULL), "no request, although it is asked for");
}

ucs_status_t am_recv_wait(const ut_pair_t *pair, am_recv_t *recv)
{
    return ut_wait(pair, &recv->op);
}

void am_recv_close(am_recv_t *recv)
{
    ut_data_close(&recv->data);
}

void am_recv_end(const ut_pair_t *pair, am_recv_t *recv, size_t length, am_stamp_t stamp)
{
    UT_CHECK_STATUS(am_recv_wait(pair, recv), UCS_OK, "am_recv_data");
    /* UCX 1.13 says of a rendezvous how large the buffer is, and of one without a buffer nothing */
    UT_CHECK((recv->length == length) || (recv->length == recv->data.length), "%zu bytes received, %zu sent",
             recv->length, length);
    UT_CHECK(ut_data_check(&recv->data, length, am_seed(stamp)), "message %u.%u: wrong content in %s, %zu bytes",
             stamp.source, stamp.number, ut_layout_names[recv->data.layout], length);
    am_recv_close(recv);
}

/* ----------------------------------------------------------- exchange */

static void am_check_told(const am_inbox_t *inbox, const am_what_t *what)
{
    const bool rndv = (inbox->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;

    UT_CHECK((inbox->header_length == what->header_length) && (inbox->length == what->length),
             "header of %zu, data of %zu bytes came, %zu and %zu were sent", inbox->header_length, inbox->length,
             what->header_length, what->length);
    UT_CHECK(inbox->stamp.number == what->stamp.number, "message %u came, %u was sent", inbox->stamp.number,
             what->stamp.number);
    UT_CHECK(rndv || !(what->flags & AM_RNDV), "sent with RNDV, but came without");
    UT_CHECK(!rndv || !(what->flags & AM_EAGER), "sent with EAGER, but came as a rendezvous");
    UT_CHECK(!!(inbox->attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == !!(what->flags & AM_REPLY),
             "flags 0x%x, attributes 0x%lx", what->flags, (unsigned long)inbox->attr);
}

void am_exchange(const ut_pair_t *pair, am_inbox_t *inbox, const am_what_t *what, ut_layout_t to)
{
    am_send_t send;
    am_recv_t recv;

    inbox->calls  = 0;
    inbox->stamp  = what->stamp;
    inbox->answer = UCS_INPROGRESS;
    am_send(&send, pair->a->ep, what);
    am_await(pair, &inbox->calls, 1, "an active message");
    am_check_told(inbox, what);
    if (inbox->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_recv(&recv, pair->b, inbox->data, to, what->length, 0);
        am_recv_end(pair, &recv, what->length, what->stamp);
    } else if (inbox->answered == UCS_INPROGRESS) {
        UT_CHECK(ut_verify(inbox->data, what->length, am_seed(what->stamp)) == SIZE_MAX, "kept data has changed");
        ucp_am_data_release(pair->b->worker, inbox->data);
    }
    UT_CHECK_STATUS(am_send_end(pair, &send), UCS_OK, "am_send");
    UT_CHECK(inbox->calls == 1, "the handler was called %u times", inbox->calls);
}
