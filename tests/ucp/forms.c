/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every form of send meets every form of receive, every layout every other, posted before and after the message
 * arrives; and every size around the limits inside.
 */
#include "ucp_test.h"

static ut_pair_t pair;

static void exchange(ut_send_t send_form, ut_recv_t recv_form, ut_data_t *from, ut_data_t *to, bool recv_first,
                     unsigned seed)
{
    ucp_tag_t tag = 0x1234567800000000ul + seed;
    ut_op_t send, recv;

    ut_data_fill(from, seed);
    ut_data_poison(to);
    if (recv_first) {
        ut_recv(&recv, &pair, recv_form, to, tag, UT_TAG_ALL);
        ut_send(&send, pair.a, send_form, from, tag);
    } else {
        ut_send(&send, pair.a, send_form, from, tag);
        ut_settle(&pair);
        ut_recv(&recv, &pair, recv_form, to, tag, UT_TAG_ALL);
    }
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, ut_send_names[send_form]);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, ut_recv_names[recv_form]);
    UT_CHECK(!recv.informed || (recv.info.length == from->length), "%s to %s: %zu bytes received, %zu sent",
             ut_send_names[send_form], ut_recv_names[recv_form], recv.info.length, from->length);
    UT_CHECK(!recv.informed || (recv.info.sender_tag == tag), "%s to %s, %zu bytes: tag 0x%lx received, 0x%lx sent",
             ut_send_names[send_form], ut_recv_names[recv_form], from->length, (unsigned long)recv.info.sender_tag,
             (unsigned long)tag);
    UT_CHECK(ut_data_check(to, from->length, seed), "%s to %s, %s to %s, %zu bytes, receive %s: wrong content",
             ut_send_names[send_form], ut_recv_names[recv_form], ut_layout_names[from->layout],
             ut_layout_names[to->layout], from->length, recv_first ? "first" : "later");
}

static void exchange_layouts(ut_send_t send_form, ut_recv_t recv_form, ut_layout_t from_layout, ut_layout_t to_layout,
                             size_t length, bool recv_first, unsigned seed)
{
    ut_data_t from, to;

    ut_data_open(&from, from_layout, length);
    ut_data_open(&to, to_layout, length);
    exchange(send_form, recv_form, &from, &to, recv_first, seed);
    ut_data_close(&from);
    ut_data_close(&to);
}

static void all_forms(void)
{
    static const size_t sizes[] = {0, 1, 40, 4096, 8193, 100000};
    unsigned send_form, recv_form, seed = 0;
    size_t i;

    for (send_form = 0; send_form < UT_SENDS; ++send_form) {
        for (recv_form = 0; recv_form < UT_RECVS; ++recv_form) {
            for (i = 0; i < 2 * (sizeof(sizes) / sizeof(sizes[0])); ++i) {
                if ((recv_form >= UT_RECV_MSG_NB) && (i % 2 == 0)) {
                    continue; /* they take a message that is there */
                }
                exchange_layouts(send_form, recv_form, UT_CONTIG1, UT_CONTIG1, sizes[i / 2], i % 2 == 0, ++seed);
            }
        }
    }
}

static void forms_between(void)
{
    ut_pair_open(&pair, 0);
    all_forms();
    ut_pair_close(&pair);
}

static void forms_self(void)
{
    ut_pair_open_self(&pair, 0);
    all_forms();
    ut_pair_close(&pair);
}

static void all_layouts(size_t length)
{
    unsigned from, to, seed = 0;

    for (from = 0; from < UT_LAYOUTS; ++from) {
        for (to = 0; to < UT_LAYOUTS; ++to) {
            exchange_layouts(UT_SEND_NBX, UT_RECV_NBX, from, to, length, true, ++seed);
            exchange_layouts(UT_SEND_NBX, UT_RECV_NBX, from, to, length, false, ++seed);
            exchange_layouts(UT_SEND_SYNC_NBX, UT_RECV_MSG_NBX, from, to, length, false, ++seed);
        }
    }
}

static void layouts_between(void)
{
    static const size_t sizes[] = {0, 1, 7, 100, 3000, 8192, 20000, 300001};
    unsigned starts             = ut_generic_starts;
    size_t i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        all_layouts(sizes[i]);
    }
    ut_pair_close(&pair);
    UT_CHECK(ut_generic_starts > starts, "no generic datatype was used");
    UT_CHECK(ut_generic_starts == ut_generic_finishes, "%u generic operations started, %u finished", ut_generic_starts,
             ut_generic_finishes);
}

static void layouts_self(void)
{
    ut_pair_open_self(&pair, 0);
    all_layouts(5000);
    all_layouts(50000);
    ut_pair_close(&pair);
    UT_CHECK(ut_generic_starts == ut_generic_finishes, "%u generic operations started, %u finished", ut_generic_starts,
             ut_generic_finishes);
}

static void exchange_strict(size_t length, uint32_t flags, bool recv_first, unsigned seed)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
    ut_data_t from, to;
    ucs_status_ptr_t send, recv = NULL;

    ut_data_open(&from, UT_GENERIC, length);
    ut_data_open(&to, UT_GENERIC, length);
    ut_data_fill(&from, seed);
    ut_data_poison(&to);
    param.datatype = from.datatype;
    if (recv_first) {
        recv = ucp_tag_recv_nbx(pair.b->worker, to.buffer, to.count, seed, UT_TAG_ALL, &param);
    }
    param.op_attr_mask |= flags;
    send = ucp_tag_send_nbx(pair.a->ep, from.buffer, from.count, seed, &param);
    param.op_attr_mask &= ~flags;
    if (!recv_first) {
        ut_settle(&pair);
        recv = ucp_tag_recv_nbx(pair.b->worker, to.buffer, to.count, seed, UT_TAG_ALL, &param);
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "ucp_tag_send_nbx");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "ucp_tag_recv_nbx");
    UT_CHECK(ut_data_check(&to, length, seed), "%zu bytes in whole elements: wrong content", length);
    ut_data_close(&from);
    ut_data_close(&to);
}

static void exchange_strict_ways(size_t length)
{
    unsigned variant;

    for (variant = 0; variant < 4; ++variant) {
        exchange_strict(length, (variant & 1) ? UCP_OP_ATTR_FLAG_FAST_CMPL : 0, (variant & 2) != 0, variant + 1);
    }
}

/* A datatype that gives and takes whole elements only, which are cut by chunks: they are put together, wherever they come from. A
 * receiver that had to ask its unpacker in vain collects the message, and unpacks only when all of it has come. (Of short messages
 * it may be tried whether they are unpacked faster in pieces.) */
static void whole_elements(void)
{
    unsigned refusals;

    ut_generic_is_strict = true;
    ut_pair_open_self(&pair, 0);
    exchange_strict_ways(9000);
    exchange_strict_ways(80003);
    ut_pair_close(&pair);
    ut_pair_open(&pair, 0);
    exchange_strict_ways(9000);
    exchange_strict_ways(32000);
    refusals = ut_generic_refusals;
    exchange_strict_ways(80003);
    exchange_strict_ways(500000);
    ut_pair_close(&pair);
    ut_generic_is_strict = false;
    UT_CHECK((ut_generic_refusals == refusals) || ut_faults_are_on(),
             "%u times a part of an element was to be unpacked", ut_generic_refusals - refusals);
}

/* No entries, and no memory, is an empty message */
static void layouts_of_nothing(void)
{
    ucp_request_param_t param      = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_RECV_INFO};
    ucp_tag_recv_info_t info;
    ucs_status_ptr_t send, recv;
    ucp_dt_iov_t iov; /* UCX insists on one, even for no entries */
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 4; ++i) {
        param.datatype                = (i & 1) ? ucp_dt_make_iov() : ucp_dt_make_contig(8);
        recv_param.datatype           = (i & 2) ? ucp_dt_make_iov() : ucp_dt_make_contig(8);
        recv_param.recv_info.tag_info = &info;
        recv = ucp_tag_recv_nbx(pair.b->worker, (i & 2) ? &iov : NULL, 0, i, UT_TAG_ALL, &recv_param);
        send = ucp_tag_send_nbx(pair.a->ep, (i & 1) ? &iov : NULL, 0, i, &param);
        UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "send of nothing");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "receive of nothing");
    }
    ut_pair_close(&pair);
}

static void size_sweep(size_t first, size_t last)
{
    ut_data_t from, to;
    unsigned seed = 0;
    size_t length;

    for (length = first; length <= last; ++length) {
        ut_data_open(&from, UT_CONTIG1, length);
        ut_data_open(&to, UT_CONTIG1, length);
        exchange(UT_SEND_NBX, UT_RECV_NBX, &from, &to, true, ++seed);
        if ((length < 64) || (length % 16 == 0)) {
            exchange(UT_SEND_NBX, UT_RECV_NBX, &from, &to, false, ++seed);
        }
        ut_data_close(&from);
        ut_data_close(&to);
    }
}

static void all_sizes(void)
{
    size_sweep(0, 64);
    size_sweep(255, 258);
    size_sweep(1023, 1026);
    size_sweep(4095, 4097);
    size_sweep(8100, 8300);
    size_sweep(65535, 65537);
    size_sweep((1 << 20) + 3, (1 << 20) + 3);
    size_sweep(5 << 20, 5 << 20);
}

static void sizes_between(void)
{
    ut_pair_open(&pair, 0);
    all_sizes();
    ut_pair_close(&pair);
}

static void sizes_self(void)
{
    ut_pair_open_self(&pair, 0);
    all_sizes();
    ut_pair_close(&pair);
}

/* Receives larger than the message: the rest stays as it is */
static void longer_receive(void)
{
    static const size_t sizes[] = {0, 1, 100, 8192, 9000, 70000};
    unsigned layout, seed = 0;
    ut_data_t from, to;
    size_t i;

    ut_pair_open(&pair, 0);
    for (layout = 0; layout < UT_LAYOUTS; ++layout) {
        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            ut_data_open(&from, UT_CONTIG1, sizes[i]);
            ut_data_open(&to, layout, sizes[i] + 20011);
            exchange(UT_SEND_NBX, UT_RECV_NBX, &from, &to, true, ++seed);
            exchange(UT_SEND_NBX, UT_RECV_NBX, &from, &to, false, ++seed);
            ut_data_close(&from);
            ut_data_close(&to);
        }
    }
    ut_pair_close(&pair);
}

/* ------------------------------------------------------- forward only */

/* A packer that goes on where it was, and looks at no offset: UCX asks in order */
typedef struct forward {
    const char *data;
    size_t length, next;
} forward_t;

static unsigned asked_back;

static void *forward_start(void *context, const void *buffer, size_t count)
{
    forward_t *state = malloc(sizeof(*state));

    *state = (forward_t){.data = buffer, .length = count};
    return state;
}

static void *forward_start_unpack(void *context, void *buffer, size_t count)
{
    return forward_start(context, buffer, count);
}

static size_t forward_size(void *state)
{
    return ((forward_t *)state)->length;
}

static size_t forward_pack(void *arg, size_t offset, void *dst, size_t max)
{
    forward_t *state = arg;
    size_t length    = (state->length - state->next < max) ? state->length - state->next : max;

    asked_back += (offset != state->next);
    memcpy(dst, state->data + state->next, length);
    state->next += length;
    return length;
}

static ucs_status_t forward_unpack(void *state, size_t offset, const void *src, size_t length)
{
    return UCS_ERR_UNSUPPORTED;
}

static void forward_only(void)
{
    static const size_t lengths[]  = {0, 100, 5000, 9000, 40000, 300000, 5000000};
    const ucp_generic_dt_ops_t ops = {forward_start, forward_start_unpack, forward_size,
                                      forward_pack,  forward_unpack,       free};
    ucp_request_param_t none = {.op_attr_mask = 0}, generic = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
    ucs_status_ptr_t send, recv                             = NULL;
    char *out = malloc(5000000), *in = malloc(5000000);
    unsigned i;

    ut_pair_open(&pair, 0);
    UT_REQUIRE(ucp_dt_create_generic(&ops, NULL, &generic.datatype) == UCS_OK, "ucp_dt_create_generic");
    asked_back = 0;
    for (i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); ++i) {
        size_t length = lengths[i / 2];

        ut_fill(out, length, i);
        if (i & 1) {
            recv = ucp_tag_recv_nbx(pair.b->worker, in, length, 1, -1ul, &none);
        }
        send = ucp_tag_send_nbx(pair.a->ep, out, length, 1, &generic);
        if (!(i & 1)) {
            recv = ucp_tag_recv_nbx(pair.b->worker, in, length, 1, -1ul, &none);
        }
        UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "send");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "receive");
        UT_CHECK(ut_verify(in, length, i) == SIZE_MAX, "wrong bytes of %zu", length);
    }
    UT_CHECK(asked_back == 0, "%u times asked for what it is past", asked_back);
    ucp_dt_destroy(generic.datatype);
    ut_pair_close(&pair);
    free(in);
    free(out);
}

static const ut_test_t tests[] = {UT_TEST(forms_between), UT_TEST(forms_self),         UT_TEST(layouts_between),
                                  UT_TEST(layouts_self),  UT_TEST(layouts_of_nothing), UT_TEST(whole_elements),
                                  UT_TEST(sizes_between), UT_TEST(sizes_self),         UT_TEST(longer_receive),
                                  UT_TEST(forward_only)};

UT_MAIN(tests)
