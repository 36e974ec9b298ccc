/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * As foreign_traffic.c, but by one-sided operations of UCX's, in a context of the program's own beside MPI's: puts that are flushed and
 * checked where they lie, gets, and a counter that nothing may get lost of. MPI starts it, and keeps time.
 *
 * usage: foreign_rma SECONDS [SEED]
 *
 * @ranks 2
 * @link -lucp -lucs
 */
#define _GNU_SOURCE /* memmem, in pattern.h */
#include <ucp/api/ucp.h>

#include "tally.h"

enum { LARGEST = 1 << 20, WINDOW = 12, REGION = WINDOW * LARGEST, KEY_MAX = 2048, ADDRESS_MAX = 8192 };

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    uint64_t address; /* of the partner's memory */
    uint64_t next[2]; /* number of the next operation by whose bytes they are */
    uint64_t random;  /* the same on both ranks: they agree on what comes next */
    uint64_t added;   /* to the partner's counter */
    unsigned char *memory, *local;
    uint64_t *counter; /* behind the memory */
    int partner;
} traffic;

static size_t draw_below(size_t limit)
{
    return foreign_below(&traffic.random, limit);
}

static size_t draw_size(void)
{
    static const size_t sizes[] = {24,   64,    68,    512,   1000,  4000,   4096,   6000,   8100,   8152,
                                   8192, 12288, 16384, 32768, 65536, 100000, 131072, 262145, LARGEST};

    return sizes[draw_below(CHECK_COUNT_OF(sizes))];
}

static void finish(ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);

    while (status == UCS_INPROGRESS) {
        ucp_worker_progress(traffic.worker);
        status = ucp_request_check_status(request);
    }
    CHECK(status == UCS_OK, "an operation fails: %s", ucs_status_string(status));
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void flush(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    finish(ucp_worker_flush_nbx(traffic.worker, &none));
}

/* Who is done says so; the other one executes until then */
static void meet(bool done)
{
    MPI_Request request;
    int flag = 0;
    char token;

    if (done) {
        MPI_Send("", 1, MPI_CHAR, traffic.partner, 0, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&token, 1, MPI_CHAR, traffic.partner, 0, MPI_COMM_WORLD, &request);
    while (!flag) {
        ucp_worker_progress(traffic.worker);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

static void fill(unsigned char *memory, size_t size, int count, int rank)
{
    int i;

    for (i = 0; i < count; ++i) {
        foreign_fill(memory + ((size_t)i * size), size, tally.key,
                     foreign_number(rank, traffic.next[rank] + (uint64_t)i));
    }
}

static void look(const unsigned char *memory, size_t size, int count, int rank)
{
    int i;

    for (i = 0; i < count; ++i) {
        tally_check(memory + ((size_t)i * size), size, foreign_number(rank, traffic.next[rank] + (uint64_t)i));
    }
}

/* ----------------------------------------------------------------- a round */

static void put_all(size_t size, int count)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t requests[WINDOW];
    int i;

    fill(traffic.local, size, count, check.rank);
    for (i = 0; i < count; ++i) {
        requests[i] = ucp_put_nbx(traffic.ep, traffic.local + ((size_t)i * size), size,
                                  traffic.address + ((size_t)i * size), traffic.rkey, &none);
    }
    for (i = 0; i < count; ++i) {
        finish(requests[i]);
    }
    check_scribble(traffic.local, size);
    flush();
}

static void get_all(size_t size, int count)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t requests[WINDOW];
    int i;

    memset(traffic.local, 0, (size_t)count * size);
    for (i = 0; i < count; ++i) {
        requests[i] = ucp_get_nbx(traffic.ep, traffic.local + ((size_t)i * size), size,
                                  traffic.address + ((size_t)i * size), traffic.rkey, &none);
    }
    for (i = 0; i < count; ++i) {
        finish(requests[i]);
    }
    look(traffic.local, size, count, traffic.partner);
}

/* What is fetched is what this rank has added so far: nobody else does */
static void add(void)
{
    uint64_t one = 1, old = 0;

    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                 .datatype     = ucp_dt_make_contig(sizeof(one)),
                                 .reply_buffer = &old};

    finish(ucp_atomic_op_nbx(traffic.ep, UCP_ATOMIC_OP_ADD, &one, 1, traffic.address + REGION, traffic.rkey, &param));
    if (old != traffic.added++) {
        fprintf(stderr, "WRONG rank %d: a counter of %llu instead of %llu\n", check.rank, (unsigned long long)old,
                (unsigned long long)(traffic.added - 1));
        ++tally.wrong_messages;
        traffic.added = old + 1;
    }
}

static void play(int origin)
{
    size_t size    = draw_size();
    int count      = 1 + (int)draw_below(WINDOW);
    bool is_put    = draw_below(2) == 0;
    int whose      = is_put ? origin : 1 - origin;
    bool is_origin = check.rank == origin;

    check_phase(is_put ? "put" : "get");
    if (!is_put && !is_origin) {
        fill(traffic.memory, size, count, check.rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_origin) {
        if (is_put) {
            put_all(size, count);
        } else {
            get_all(size, count);
        }
        add();
    }
    meet(is_origin);
    if (is_put && !is_origin) {
        look(traffic.memory, size, count, origin);
    }
    traffic.next[whose] += (uint64_t)count;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --------------------------------------------------------------- the whole */

static size_t swap_with_partner(void *mine, size_t length, void *theirs, size_t room)
{
    MPI_Status status;
    int count;

    CHECK(length <= room, "%zu bytes are too many", length);
    MPI_Sendrecv(mine, (int)length, MPI_BYTE, traffic.partner, 1, theirs, (int)room, MPI_BYTE, traffic.partner, 1,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    return (size_t)count;
}

static void connect_workers(void)
{
    ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    static char theirs[ADDRESS_MAX];
    ucp_address_t *address;
    size_t length;

    CHECK(ucp_worker_get_address(traffic.worker, &address, &length) == UCS_OK, "no address");
    swap_with_partner(address, length, theirs, sizeof(theirs));
    ep.address = (const ucp_address_t *)theirs;
    CHECK(ucp_ep_create(traffic.worker, &ep, &traffic.ep) == UCS_OK, "no endpoint");
    ucp_worker_release_address(traffic.worker, address);
}

static void map_memory(void)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                .address    = traffic.memory,
                                .length     = REGION + sizeof(uint64_t)};
    static char theirs[KEY_MAX];
    uint64_t mine = (uint64_t)(uintptr_t)traffic.memory;
    size_t length;
    void *key;

    CHECK(ucp_mem_map(traffic.context, &map, &traffic.memh) == UCS_OK, "no region");
    CHECK(ucp_rkey_pack(traffic.context, traffic.memh, &key, &length) == UCS_OK, "no key");
    swap_with_partner(key, length, theirs, sizeof(theirs));
    ucp_rkey_buffer_release(key);
    swap_with_partner(&mine, sizeof(mine), &traffic.address, sizeof(traffic.address));
    CHECK(ucp_ep_rkey_unpack(traffic.ep, theirs, &traffic.rkey) == UCS_OK, "the key is none");
}

static void open_ucx(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
    ucp_worker_params_t worker = {.field_mask = 0};
    ucp_config_t *config;

    CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK, "no configuration");
    CHECK(ucp_init(&params, config, &traffic.context) == UCS_OK, "no context");
    ucp_config_release(config);
    CHECK(ucp_worker_create(traffic.context, &worker, &traffic.worker) == UCS_OK, "no worker");
    connect_workers();
    map_memory();
}

static void close_ucx(void)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    ucp_rkey_destroy(traffic.rkey);
    finish(ucp_ep_close_nbx(traffic.ep, &param));
    MPI_Barrier(MPI_COMM_WORLD);
    ucp_mem_unmap(traffic.context, traffic.memh);
    ucp_worker_destroy(traffic.worker);
    ucp_cleanup(traffic.context);
}

int main(int argc, char **argv)
{
    int origin = 0, status;
    double end;

    check_init(&argc, &argv, "foreign_rma");
    CHECK(check.size == 2, "needs 2 ranks");
    traffic.partner = 1 - check.rank;
    traffic.random  = check.seed;
    tally_begin();
    traffic.memory = calloc(1, REGION + sizeof(uint64_t));
    traffic.local  = malloc(REGION);
    CHECK((traffic.memory != NULL) && (traffic.local != NULL), "no memory");
    open_ucx();
    for (end = MPI_Wtime() + check.scale; tally_time_is_left(end); origin = 1 - origin) {
        play(origin);
    }
    status = tally_report("foreign_rma");
    close_ucx();
    check_finalize();
    return status;
}
