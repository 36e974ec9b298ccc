/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of an active message that its handler keeps: it stays as it is, whatever comes and goes meanwhile, until it is released, in any
 * order, or received into a buffer.
 */
#include "am_test.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { ID = 7, KEPT = 300, ALIGNMENT = 256 };

/* One that was kept */
typedef struct kept {
    am_stamp_t stamp;
    void *data;
    size_t length;
} kept_t;

static const size_t sizes[] = {0, 1, 8, 100, 1000, 4096, 8000, 8193, 20000, 100000};

static ut_pair_t pair;
static kept_t kept[KEPT];
static unsigned arrived, kept_count;

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);

    ++arrived;
    UT_CHECK(am_header_check(header, header_length, stamp), "message %u: wrong header", stamp.number);
    UT_CHECK(!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV), "a rendezvous, although sent with EAGER");
    UT_CHECK(ut_verify(data, length, am_seed(stamp)) == SIZE_MAX, "message %u: wrong content", stamp.number);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
        return UCS_OK;
    }
    kept[kept_count++] = (kept_t){.stamp = stamp, .data = data, .length = length};
    return UCS_INPROGRESS;
}

static void open_pair(uint32_t flags)
{
    am_open(&pair);
    arrived = kept_count = 0;
    am_listen(pair.b->worker, ID, on_message, NULL, flags);
}

/* All sizes, in turn */
static void send_all(unsigned count)
{
    am_send_t *sends = calloc(count, sizeof(*sends));
    unsigned before  = arrived, i;

    for (i = 0; i < count; ++i) {
        am_what_t what = {.id            = ID,
                          .flags         = AM_EAGER,
                          .header_length = 12,
                          .length        = sizes[i % COUNT(sizes)],
                          .stamp         = {.source = 1, .number = i}};

        am_send(&sends[i], pair.a->ep, &what);
    }
    am_await(&pair, &arrived, before + count, "active messages");
    for (i = 0; i < count; ++i) {
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    free(sends);
}

static void check(const kept_t *one)
{
    UT_CHECK(ut_verify(one->data, one->length, am_seed(one->stamp)) == SIZE_MAX,
             "message %u of %zu bytes has changed while it was kept", one->stamp.number, one->length);
}

/* Take those of an odd step first, then the others */
static void release_some(unsigned first, unsigned step)
{
    unsigned i;

    for (i = first; i < kept_count; i += step) {
        check(&kept[i]);
        if (kept[i].length > 0) {
            memset(kept[i].data, 0xee, kept[i].length); /* it is the program's to write to */
        }
        ucp_am_data_release(pair.b->worker, kept[i].data);
    }
}

static void keep_and_release(uint32_t flags)
{
    unsigned first;

    open_pair(flags);
    send_all(KEPT - 100);
    for (first = 0; first < 3; ++first) {
        release_some(2 - first, 3);
    }
    kept_count = 0;
    send_all(KEPT);
    release_some(1, 2);
    release_some(0, 2);
    ut_pair_close(&pair);
}

/* What comes with DATA by itself */
static void as_it_comes(void)
{
    keep_and_release(0);
}

static void persistent(void)
{
    keep_and_release(UCP_AM_FLAG_PERSISTENT_DATA);
    UT_CHECK(kept_count == KEPT, "%u of %u messages came with DATA, although all should", kept_count, KEPT);
}

/* Written to, while others lie beside */
static void written_to(void)
{
    unsigned i;

    open_pair(UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(60);
    for (i = 0; i < kept_count; i += 2) {
        if (kept[i].length > 0) {
            memset(kept[i].data, 0xaa, kept[i].length);
        }
    }
    send_all(60);
    for (i = 1; i < kept_count; i += 2) {
        check(&kept[i]);
    }
    for (i = 0; i < 60; i += 2) {
        UT_CHECK(ut_verify_value(kept[i].data, kept[i].length, 0xaa) == SIZE_MAX, "what the program wrote has changed");
    }
    for (i = 0; i < kept_count; ++i) {
        ucp_am_data_release(pair.b->worker, kept[i].data);
    }
    ut_pair_close(&pair);
}

/* Longer than the endpoint it came by, and than its sender */
static void longer_than_its_sender(void)
{
    unsigned i;

    open_pair(UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(30);
    ut_ep_close(&pair, pair.a->ep);
    if (pair.a != pair.b) {
        ut_ep_close(&pair, pair.b->ep);
        ucp_worker_destroy(pair.a->worker);
    }
    for (i = kept_count; i-- > 0;) {
        check(&kept[i]);
        ucp_am_data_release(pair.b->worker, kept[i].data);
    }
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
}

/* ------------------------------------------------------------- alignment */

/* Persistent data lies where the worker wants it */
static void aligned(void)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT, .am_alignment = ALIGNMENT};
    unsigned i;

    ut_pair_open_as(&pair, ut_features, &params);
    am_prepare(&pair);
    arrived = kept_count = 0;
    am_listen(pair.b->worker, ID, on_message, NULL, UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(60);
    for (i = 0; i < kept_count; ++i) {
        UT_CHECK((uintptr_t)kept[i].data % ALIGNMENT == 0, "%zu bytes at %p are not aligned to %d", kept[i].length,
                 kept[i].data, ALIGNMENT);
        check(&kept[i]);
        ucp_am_data_release(pair.b->worker, kept[i].data);
    }
    ut_pair_close(&pair);
}

/* ----------------------------------------------- received from where it lies */

/* Into every layout, with all that a receive may be asked for */
static void received(void)
{
    unsigned layout, i, how = 0;
    am_recv_t recv;

    open_pair(UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(UT_LAYOUTS * COUNT(sizes));
    for (layout = 0, i = 0; i < kept_count; ++i, layout = (layout + 1) % UT_LAYOUTS, ++how) {
        am_recv(&recv, pair.b, kept[i].data, layout, kept[i].length + (i % 3) * 10, how % 4);
        UT_CHECK((recv.op.request == NULL) || (how & AM_NO_IMM), "what is here already is not received at once");
        UT_CHECK(recv.length == kept[i].length, "%zu bytes received, %zu kept", recv.length, kept[i].length);
        am_recv_end(&pair, &recv, kept[i].length, kept[i].stamp);
    }
    ut_pair_close(&pair);
}

/* A buffer too small is not touched */
static void received_truncated(void)
{
    ut_layout_t layout;
    am_recv_t recv;
    unsigned i;

    open_pair(UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(UT_LAYOUTS * COUNT(sizes));
    for (i = 0; i < kept_count; ++i) {
        layout = i % UT_LAYOUTS;
        if (kept[i].length == 0) {
            ucp_am_data_release(pair.b->worker, kept[i].data);
            continue;
        }
        am_recv(&recv, pair.b, kept[i].data, layout, kept[i].length - 1, (i & 1) ? AM_NO_IMM : 0);
        UT_CHECK_STATUS(am_recv_wait(&pair, &recv), UCS_ERR_MESSAGE_TRUNCATED, "a receive into a buffer too small");
        UT_CHECK(ut_data_check(&recv.data, 0, 0), "a buffer too small was written to");
        am_recv_close(&recv);
    }
    ut_pair_close(&pair);
}

/* By the handler itself, which then has nothing to keep */
static am_recv_t inside[4 * UT_LAYOUTS * COUNT(sizes)];

static ucs_status_t on_message_receive(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                       const ucp_am_recv_param_t *param)
{
    am_recv_t *recv  = &inside[arrived];
    am_stamp_t stamp = am_header_stamp(header, header_length);

    UT_CHECK(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA, "without DATA");
    am_recv(recv, pair.b, data, arrived % UT_LAYOUTS, length, arrived % 4);
    UT_CHECK(ut_data_check(&recv->data, length, am_seed(stamp)), "message %u: wrong content", stamp.number);
    ++arrived;
    return UCS_OK;
}

static void received_inside(void)
{
    unsigned i;

    open_pair(0);
    am_listen(pair.b->worker, ID, on_message_receive, NULL, UCP_AM_FLAG_PERSISTENT_DATA);
    send_all(COUNT(inside));
    for (i = 0; i < arrived; ++i) {
        am_recv_end(&pair, &inside[i], sizes[i % COUNT(sizes)], (am_stamp_t){.source = 1, .number = i});
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {
        AM_TEST(as_it_comes), AM_TEST(persistent), AM_TEST(written_to),         AM_TEST(longer_than_its_sender),
        AM_TEST(aligned),     AM_TEST(received),   AM_TEST(received_truncated), AM_TEST(received_inside)};

UT_MAIN(tests)
