/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Buffers in memory that is not the host's, by the caller's word (UCP_OP_ATTR_FIELD_MEMORY_TYPE). There is no GPU needed: the
 * type is one whose memory the CPU may touch (UCS_MEMORY_TYPES_CPU_ACCESSIBLE), so that UCX treats the host's memory as such.
 */
#include "ucp_test.h"

#define MANAGED UCS_MEMORY_TYPE_ROCM_MANAGED

static const size_t lengths[] = {0, 1, 8, 4097, 8192, 8193, 70000, 1000000};

static ut_pair_t pair;

static ucp_request_param_t param_of(const ut_data_t *data, ucs_memory_type_t type)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                 .datatype     = data->datatype,
                                 .memory_type  = type};
}

static ucs_status_ptr_t receive(ut_data_t *to, const ucp_request_param_t *param, bool probed)
{
    ucp_tag_message_h message;
    ucp_tag_recv_info_t info;

    if (!probed) {
        return ucp_tag_recv_nbx(pair.b->worker, to->buffer, to->count, 7, UT_TAG_ALL, param);
    }
    message = ut_probe(&pair, 7, UT_TAG_ALL, 1, &info);
    UT_CHECK(info.length == to->length, "probe: %zu bytes, expected %zu", info.length, to->length);
    return ucp_tag_msg_recv_nbx(pair.b->worker, to->buffer, to->count, message, param);
}

static void talk(ut_layout_t layout, size_t length, ucs_memory_type_t from_type, ucs_memory_type_t to_type, bool sync,
                 bool probed)
{
    ucp_request_param_t send_param, recv_param;
    ut_op_t send = {0}, recv = {.recv = true};
    ut_data_t from, to;

    ut_data_open(&from, layout, length);
    ut_data_open(&to, layout, length);
    ut_data_fill(&from, (unsigned)length);
    ut_data_poison(&to);
    send_param = param_of(&from, from_type);
    recv_param = param_of(&to, to_type);
    ut_op_set(&send, sync ? ucp_tag_send_sync_nbx(pair.a->ep, from.buffer, from.count, 7, &send_param)
                          : ucp_tag_send_nbx(pair.a->ep, from.buffer, from.count, 7, &send_param));
    ut_op_set(&recv, receive(&to, &recv_param, probed));
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "a receive");
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "a send");
    UT_CHECK(ut_data_check(&to, length, (unsigned)length), "%s, %zu bytes, types %d to %d: wrong",
             ut_layout_names[layout], length, (int)from_type, (int)to_type);
    ut_data_close(&from);
    ut_data_close(&to);
}

static void all_lengths(ucs_memory_type_t from_type, ucs_memory_type_t to_type)
{
    static const ut_layout_t layouts[] = {UT_CONTIG1, UT_CONTIGN, UT_IOV3};
    size_t i, j;

    ut_pair_open(&pair, UCP_FEATURE_TAG);
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        for (j = 0; j < sizeof(layouts) / sizeof(layouts[0]); ++j) {
            talk(layouts[j], lengths[i], from_type, to_type, i % 2 == 1, j == 1);
        }
    }
    ut_pair_close(&pair);
}

/* Not about memory types: what leaves one layout lands in any other, also what is fetched in segments */
static void mixed_layouts(void)
{
    ut_op_t send, recv;
    ut_data_t from, to;
    int i, j;

    ut_pair_open(&pair, UCP_FEATURE_TAG);
    for (i = 0; i < UT_LAYOUTS; ++i) {
        for (j = 0; j < UT_LAYOUTS; ++j) {
            ut_data_open(&from, (ut_layout_t)i, 1000000);
            ut_data_open(&to, (ut_layout_t)j, 1000000);
            ut_data_fill(&from, 5);
            ut_data_poison(&to);
            ut_send(&send, pair.a, UT_SEND_NBX, &from, 7);
            ut_recv(&recv, &pair, UT_RECV_NBX, &to, 7, UT_TAG_ALL);
            UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "a receive");
            UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "a send");
            UT_CHECK(ut_data_check(&to, 1000000, 5), "%s to %s: wrong", ut_layout_names[i], ut_layout_names[j]);
            ut_data_close(&from);
            ut_data_close(&to);
        }
    }
    ut_pair_close(&pair);
}

static void device_to_host(void)
{
    all_lengths(MANAGED, UCS_MEMORY_TYPE_HOST);
}
static void host_to_device(void)
{
    all_lengths(UCS_MEMORY_TYPE_HOST, MANAGED);
}
static void device_to_device(void)
{
    all_lengths(MANAGED, MANAGED);
}
static void not_said(void)
{
    all_lengths(UCS_MEMORY_TYPE_UNKNOWN, UCS_MEMORY_TYPE_UNKNOWN);
}

static const ut_test_t tests[] = {
        UT_TEST(device_to_host), UT_TEST(host_to_device), UT_TEST(device_to_device),
        UT_TEST(not_said),       UT_TEST(mixed_layouts),
};

UT_MAIN(tests)
