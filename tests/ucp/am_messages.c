/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages of every size, with headers of every length, from buffers of every layout, by every protocol: each byte arrives as it
 * was sent, and the handler is told what there is.
 */
#include "am_test.h"

enum { ID = 3 };

static const size_t sizes[]       = {0, 1, 8, 100, 1000, 4095, 4096, 8191, 8192, 8193, 16384, 65536};
static const uint32_t protocols[] = {0, AM_EAGER, AM_RNDV, AM_REPLY, AM_REPLY | AM_EAGER, AM_REPLY | AM_RNDV};

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

static ut_pair_t pair;
static am_inbox_t inbox;
static unsigned number;
static bool persistent; /* each message may be kept */

static void open_pair(uint32_t handler_flags)
{
    am_open(&pair);
    am_listen(pair.b->worker, ID, am_on_message, &inbox, handler_flags);
    persistent = (handler_flags & UCP_AM_FLAG_PERSISTENT_DATA) != 0;
    number     = 0;
}

static void exchange(uint32_t flags, size_t header_length, ut_layout_t from, size_t length, ut_layout_t to)
{
    am_what_t what  = {.id            = ID,
                       .flags         = flags,
                       .header_length = header_length,
                       .layout        = from,
                       .length        = length,
                       .stamp         = {.source = 1, .number = ++number}};
    unsigned before = ut_failures();

    am_exchange(&pair, &inbox, &what, to);
    UT_CHECK(!persistent || (inbox.answered == UCS_INPROGRESS),
             "neither DATA nor RNDV, although the handler asks for it");
    UT_CHECK(ut_failures() == before, "header of %zu bytes, %s of %zu, flags 0x%x", header_length,
             ut_layout_names[from], length, flags);
}

static void sizes_and_headers(void)
{
    size_t headers[] = {0, 1, 8, 100, 0};
    unsigned size, header, protocol;

    open_pair(0);
    headers[4] = am_max_header(pair.a->worker);
    UT_CHECK(headers[4] >= 64, "no header of more than %zu bytes", headers[4]);
    for (size = 0; size < COUNT(sizes); ++size) {
        for (header = 0; header < COUNT(headers); ++header) {
            for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
                exchange(protocols[protocol], headers[header], UT_CONTIG1, sizes[size], UT_CONTIG1);
            }
        }
    }
    ut_pair_close(&pair);
}

/* What is sent in one layout is received in the next */
static void layouts(void)
{
    unsigned size, layout, protocol;

    open_pair(UCP_AM_FLAG_WHOLE_MSG);
    for (layout = UT_CONTIGN; layout < UT_LAYOUTS; ++layout) {
        for (size = 0; size < COUNT(sizes); ++size) {
            for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
                exchange(protocols[protocol], 100, layout, sizes[size], (layout + 1) % UT_LAYOUTS);
            }
            exchange(0, 0, layout, sizes[size], UT_GENERIC);
        }
    }
    ut_pair_close(&pair);
}

static void large(void)
{
    static const ut_layout_t froms[] = {UT_CONTIG1, UT_IOV5, UT_GENERIC};
    const size_t megabyte            = 1 << 20;
    unsigned from, protocol;

    open_pair(UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA);
    for (from = 0; from < COUNT(froms); ++from) {
        for (protocol = 0; protocol < 3; ++protocol) {
            exchange(protocols[protocol], 0, froms[from], megabyte, froms[(from + 1) % COUNT(froms)]);
            exchange(protocols[protocol], 100, froms[from], megabyte + 3, froms[from]);
        }
        exchange(0, 8, froms[from], 16 * megabyte, UT_CONTIG1);
    }
    exchange(AM_EAGER, am_max_header(pair.a->worker), UT_CONTIG1, 16 * megabyte, UT_CONTIG1);
    exchange(AM_RNDV, am_max_header(pair.a->worker), UT_CONTIG1, 16 * megabyte, UT_CONTIG1);
    ut_pair_close(&pair);
}

/* Without a buffer, without a header, without either */
static void parts_left_out(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    am_stamp_t stamp         = {.source = 1, .number = 1};
    char header[100], data[100];
    unsigned part;

    open_pair(0);
    am_header_fill(header, sizeof(header), stamp);
    ut_fill(data, sizeof(data), am_seed(stamp));
    for (part = 0; part < 4; ++part) {
        size_t header_length = (part & 1) ? sizeof(header) : 0, length = (part & 2) ? sizeof(data) : 0;
        ucs_status_ptr_t ptr;

        inbox = (am_inbox_t){.stamp = stamp, .answer = UCS_OK};
        ptr   = ucp_am_send_nbx(pair.a->ep, ID, (part & 1) ? header : NULL, header_length, (part & 2) ? data : NULL,
                                length, &none);
        am_await(&pair, &inbox.calls, 1, "a message without some part");
        UT_CHECK((inbox.header_length == header_length) && (inbox.length == length),
                 "header of %zu, data of %zu bytes came, %zu and %zu were sent", inbox.header_length, inbox.length,
                 header_length, length);
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

/* A worker that sends to itself */
static void to_itself(void)
{
    unsigned size, protocol;

    am_open_self(&pair);
    persistent = false;
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    for (size = 0; size < COUNT(sizes); ++size) {
        for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
            exchange(protocols[protocol], 100, UT_CONTIG1, sizes[size], UT_IOV3);
        }
    }
    ut_pair_close(&pair);
}

/* COPY_HEADER: the program's header is its own again when the call returns */
static void header_copied(void)
{
    am_stamp_t stamp = {.source = 1, .number = 1};
    am_what_t what   = {.id = ID, .header_length = 64, .length = 65536, .stamp = stamp};
    unsigned protocol;
    am_send_t send;
    am_recv_t recv;

    if (!am_ucx_is(1, 16)) {
        return;
    }
    open_pair(0);
    for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
        inbox      = (am_inbox_t){.stamp = stamp, .answer = UCS_INPROGRESS};
        what.flags = protocols[protocol] | AM_COPY_HEADER;
        am_send(&send, pair.a->ep, &what);
        memset(send.header, 0, what.header_length);
        am_await(&pair, &inbox.calls, 1, "an active message");
        UT_CHECK(inbox.stamp.number == stamp.number, "the header was read after the call");
        if (inbox.answered == UCS_INPROGRESS) {
            am_recv(&recv, pair.b, inbox.data, UT_CONTIG1, what.length, 0);
            am_recv_end(&pair, &recv, what.length, stamp);
        }
        UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {AM_TEST(sizes_and_headers), AM_TEST(layouts),   AM_TEST(large),
                                  AM_TEST(parts_left_out),    UT_TEST(to_itself), AM_TEST(header_copied)};

UT_MAIN(tests)
