/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A generic datatype of records, whose pack function gives whole records only, less than it was asked for, as ucp.h allows. What it
 * gave is what unpack gets in plain UCX: so one kind here takes whole records only, leaves out the rest, and says that all is well.
 * And pack functions that do what ucp.h does not allow: the send fails, and nothing else is delivered in its place.
 */
#include "ucp_test.h"

typedef struct records {
    char *bytes;
    size_t length;
} records_t;

static size_t record;
static bool whole_only;  /* for the unpacker: parts of records are left out */
static size_t pack_ends; /* bytes after which the packer gives nothing more */
static ut_pair_t pair;

static void *start(void *context, const void *buffer, size_t count)
{
    records_t *state = malloc(sizeof(*state));

    UT_REQUIRE(state != NULL, "no memory");
    *state = (records_t){.bytes = (char *)buffer, .length = count * record};
    return state;
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    return start(context, buffer, count);
}

static size_t packed_size(void *state)
{
    return ((records_t *)state)->length;
}

static size_t pack(void *arg, size_t offset, void *dest, size_t max_length)
{
    records_t *state = arg;
    size_t left      = ((state->length < pack_ends) ? state->length : pack_ends) - offset;
    size_t length    = ((max_length < left) ? max_length : left) / record * record;

    UT_CHECK(offset % record == 0, "asked for the middle of a record, at %zu", offset);
    memcpy(dest, state->bytes + offset, length);
    return length;
}

static ucs_status_t unpack(void *arg, size_t offset, const void *src, size_t length)
{
    records_t *state = arg;

    if (whole_only) {
        offset -= offset % record;
        length -= length % record;
    }
    memcpy(state->bytes + offset, src, length);
    return UCS_OK;
}

static void finish(void *state)
{
    free(state);
}

static ucp_datatype_t make_datatype(void)
{
    static const ucp_generic_dt_ops_t ops = {start, start_unpack, packed_size, pack, unpack, finish};
    ucp_datatype_t datatype;

    UT_REQUIRE(ucp_dt_create_generic(&ops, NULL, &datatype) == UCS_OK, "no datatype");
    return datatype;
}

/* Send @a count records, receive them as such, or as bytes */
static void exchange(size_t count, bool as_bytes, bool recv_first, ucs_status_t expected)
{
    ucp_datatype_t datatype        = make_datatype();
    ucp_request_param_t param      = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = datatype};
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
                                      .datatype     = as_bytes ? ucp_dt_make_contig(record) : datatype};
    char *from = malloc(count * record), *to = calloc(count, record);
    ucs_status_ptr_t send, recv              = NULL;
    ucs_status_t status;
    size_t wrong;

    UT_REQUIRE((from != NULL) && (to != NULL), "no memory");
    ut_fill(from, count * record, (unsigned)count);
    if (recv_first) {
        recv = ucp_tag_recv_nbx(pair.b->worker, to, count, 5, UT_TAG_ALL, &recv_param);
    }
    send = ucp_tag_send_nbx(pair.a->ep, from, count, 5, &param);
    if (!recv_first) {
        ut_settle(&pair);
        recv = ucp_tag_recv_nbx(pair.b->worker, to, count, 5, UT_TAG_ALL, &recv_param);
    }
    status = ut_wait_ptr(&pair, send);
    UT_CHECK_STATUS(status, expected, "send");
    if (expected != UCS_OK) {
        ut_settle(&pair);
        ucp_request_cancel(pair.b->worker, recv); /* of a short message nothing was sent */
        status = ut_wait_ptr(&pair, recv);
        UT_CHECK(status != UCS_OK, "%zu records of %zu bytes: received, though they were not sent", count, record);
    } else {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "receive");
        wrong = ut_verify(to, count * record, (unsigned)count);
        UT_CHECK(wrong == SIZE_MAX, "%zu records of %zu bytes%s: wrong from byte %zu on", count, record,
                 as_bytes ? ", received as bytes" : "", wrong);
    }
    ucp_dt_destroy(datatype);
    free(from);
    free(to);
}

/* Plain UCX asks for a fragment, again and again, where a record is larger */
static size_t largest(void)
{
    return ut_uci_is_on() ? 40000 : 5000;
}

static void exchange_all(void)
{
    static const size_t sizes[]  = {1, 65, 72, 100, 1000, 5000, 40000};
    static const size_t counts[] = {1, 2, 7, 99, 1000};
    size_t i, j;

    pack_ends = SIZE_MAX;
    for (i = 0; (i < sizeof(sizes) / sizeof(sizes[0])) && (sizes[i] <= largest()); ++i) {
        record = sizes[i];
        for (j = 0; (j < sizeof(counts) / sizeof(counts[0])) && (counts[j] * record <= 5000000); ++j) {
            exchange(counts[j], false, true, UCS_OK);
            exchange(counts[j], false, false, UCS_OK);
            exchange(counts[j], true, j % 2 == 0, UCS_OK);
        }
    }
}

static void records_between(void)
{
    ut_pair_open(&pair, 0);
    exchange_all();
    ut_pair_close(&pair);
}

static void whole_records(void)
{
    ut_pair_open(&pair, 0);
    whole_only = true;
    exchange_all();
    whole_only = false;
    ut_pair_close(&pair);
}

/* What is not packed is not sent, whatever the size of the message. (Its receiver is told: with UCI_ON_ERROR=abort, it stops.) */
static void packer_that_ends(void)
{
    static const size_t counts[] = {3, 100, 20000};
    const char *policy           = getenv("UCI_ON_ERROR");
    size_t i;

    if (!ut_uci_is_on() || (policy == NULL) || (strcmp(policy, "error") != 0)) {
        return;
    }
    ut_pair_open(&pair, 0);
    record = 100;
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        pack_ends = counts[i] / 2 * record;
        exchange(counts[i], false, true, UCS_ERR_INVALID_PARAM);
        exchange(counts[i], true, false, UCS_ERR_INVALID_PARAM);
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {
        UT_TEST(records_between),
        UT_TEST(whole_records),
        UT_TEST(packer_that_ends),
};

UT_MAIN(tests)
