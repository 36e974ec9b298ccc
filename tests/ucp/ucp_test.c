/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucp_test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define UT_LIMIT_OP  10        /* seconds for one operation, if not $UT_LIMIT */
#define UT_LIMIT_S   40        /* for one program */
#define UT_SPIN_NS   1000000ul /* whoever has waited longer leaves the core to others most of the time */
#define UT_SPIN      16        /* looks between two naps */
#define UT_NAP_US    50
#define UT_SETTLE    100
#define UT_SETTLE_NS 300000ul
#define UT_MAGIC     0x75636974657374ul
#define UT_GUARD     64
#define UT_POISON    0xdb
#define UT_PIECE     7
#define UT_STRIDE    10

unsigned ut_inits, ut_cleanups, ut_generic_starts, ut_generic_finishes, ut_generic_refusals;
bool ut_generic_is_strict;
uint64_t ut_features;

const char *const ut_layout_names[UT_LAYOUTS] = {"contig(1)", "contig(n)", "iov 1", "iov 3", "iov 5", "generic"};
const char *const ut_send_names[UT_SENDS]     = {"send_nb", "send_nbr", "send_nbx", "send_sync_nb", "send_sync_nbx"};
const char *const ut_recv_names[UT_RECVS]     = {"recv_nb", "recv_nbr", "recv_nbx", "msg_recv_nb", "msg_recv_nbx"};

static const char *ut_name = "start";
static unsigned ut_failed_checks;
static uint64_t ut_clock_begin;

/* -------------------------------------------------------------- tests */

static void ut_vprint(const char *word, const char *file, int line, const char *format, va_list args)
{
    const char *slash = strrchr(file, '/');

    fflush(stdout);
    fprintf(stderr, "%s %s: %s:%d: ", word, ut_name, (slash != NULL) ? slash + 1 : file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
}

void ut_failed(const char *file, int line, const char *format, ...)
{
    va_list args;

    if (++ut_failed_checks > 20) {
        return; /* enough to see what is wrong */
    }
    va_start(args, format);
    ut_vprint("FAIL", file, line, format, args);
    va_end(args);
}

void ut_fatal(const char *file, int line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ut_vprint("FATAL", file, line, format, args);
    va_end(args);
    _exit(1);
}

/* Seconds in which this thread was ready to run and others had the cores: not its fault. For a signal's handler too */
static unsigned ut_kept_waiting(void)
{
    char text[128] = "", *end;
    int file       = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

    if (file < 0) {
        return 0;
    }
    if (read(file, text, sizeof(text) - 1) < 0) {
        text[0] = '\0';
    }
    close(file);
    (void)strtoull(text, &end, 10); /* how long it ran */
    return (unsigned)(strtoull(end, NULL, 10) / 1000000000ul);
}

static void ut_alarm(int signal_number)
{
    static const char text[] = "FATAL: the program takes too long, in test ";
    static unsigned granted;
    unsigned waited = ut_kept_waiting();

    if (waited > granted) {
        alarm(waited - granted);
        granted = waited;
        return;
    }
    if (write(STDERR_FILENO, text, sizeof(text) - 1) && write(STDERR_FILENO, ut_name, strlen(ut_name)) &&
        write(STDERR_FILENO, "\n", 1)) {
    }
    _exit(1);
}

int ut_main(int argc, char **argv, const ut_test_t *tests, size_t count)
{
    unsigned before, failed = 0;
    size_t i;

    signal(SIGALRM, ut_alarm);
    alarm(UT_LIMIT_S);
    for (i = 0; i < count; ++i) {
        if ((argc > 1) && (strstr(tests[i].name, argv[1]) == NULL)) {
            continue;
        }
        ut_name     = tests[i].name;
        ut_features = tests[i].features;
        before      = ut_failed_checks;
        tests[i].func();
        printf("%s %s\n", (ut_failed_checks == before) ? "ok  " : "FAIL", tests[i].name);
        failed += (ut_failed_checks != before);
    }
    return (failed > 0) ? 1 : 0;
}

bool ut_faults_are_on(void)
{
    return getenv("UCI_FAULT") != NULL;
}

unsigned ut_failures(void)
{
    return ut_failed_checks;
}

bool ut_uci_is_on(void)
{
    const char *preload = getenv("LD_PRELOAD"), *mode = getenv("UCI_MODE");

    return (preload != NULL) && (strstr(preload, "libucx_integrity") != NULL) &&
           ((mode == NULL) || (strcmp(mode, "off") != 0));
}

/* -------------------------------------------------------------- clock */

static uint64_t ut_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000ul) + (uint64_t)now.tv_nsec;
}

void ut_clock_start(void)
{
    ut_clock_begin = ut_now();
}

void ut_clock_check(const char *what)
{
    static uint64_t limit; /* ns */
    static unsigned looks;
    uint64_t passed = ut_now() - ut_clock_begin;
    const char *text;

    if ((passed > UT_SPIN_NS) && (++looks % UT_SPIN == 0)) {
        usleep(UT_NAP_US);
    }
    if (limit == 0) {
        text  = getenv("UT_LIMIT");
        limit = ((text != NULL) ? strtoul(text, NULL, 10) : UT_LIMIT_OP) * 1000000000ul;
    }
    UT_REQUIRE((passed < limit) || (passed < limit + (ut_kept_waiting() * 1000000000ul)), "%s does not end", what);
}

/* ------------------------------------------------------------ workers */

static void ut_request_init(void *request)
{
    ut_area_t *area = request;

    memset(area, 0, sizeof(*area));
    area->magic = UT_MAGIC;
    area->self  = request;
    ++ut_inits;
}

static void ut_request_cleanup(void *request)
{
    ut_area_t *area = request;

    UT_CHECK((area->magic == UT_MAGIC) && (area->self == request), "cleanup of a request that was not initialized");
    ++ut_cleanups;
}

ucp_context_h ut_context_create(uint64_t features)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                                         UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP,
                           .features        = features,
                           .request_size    = sizeof(ut_area_t),
                           .request_init    = ut_request_init,
                           .request_cleanup = ut_request_cleanup};
    ucp_context_h context;
    ucs_status_t status;

    status = ucp_init(&params, NULL, &context);
    UT_REQUIRE(status == UCS_OK, "ucp_init: %s", ucs_status_string(status));
    return context;
}

static ucp_worker_h ut_worker_create_as(ucp_context_h context, const ucp_worker_params_t *params)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
    ucp_worker_h worker;
    ucs_status_t status;

    status = ucp_worker_create(context, params, &worker);
    UT_REQUIRE(status == UCS_OK, "ucp_worker_create: %s", ucs_status_string(status));
    if (params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) {
        UT_REQUIRE((ucp_worker_query(worker, &attr) == UCS_OK) && (attr.thread_mode >= params->thread_mode),
                   "this UCX has no worker of mode %d", params->thread_mode);
    }
    return worker;
}

ucp_worker_h ut_worker_create_with(ucp_context_h context, ucs_thread_mode_t mode)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = mode};

    return ut_worker_create_as(context, &params);
}

ucp_worker_h ut_worker_create(ucp_context_h context)
{
    return ut_worker_create_with(context, UCS_THREAD_MODE_SINGLE);
}

ucp_ep_h ut_ep_create(ucp_worker_h from, ucp_worker_h to)
{
    return ut_ep_create_as(from, to, (ucp_ep_params_t){.field_mask = 0});
}

ucp_ep_h ut_ep_create_as(ucp_worker_h from, ucp_worker_h to, ucp_ep_params_t params)
{
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;
    ucp_ep_h ep;

    status = ucp_worker_get_address(to, &address, &length);
    UT_REQUIRE(status == UCS_OK, "ucp_worker_get_address: %s", ucs_status_string(status));
    params.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    status         = ucp_ep_create(from, &params, &ep);
    UT_REQUIRE(status == UCS_OK, "ucp_ep_create: %s", ucs_status_string(status));
    ucp_worker_release_address(to, address);
    return ep;
}

static void ut_pair_open_sides(ut_pair_t *pair, uint64_t features, const ucp_worker_params_t *params, bool self)
{
    memset(pair, 0, sizeof(*pair));
    pair->a                = &pair->sides[0];
    pair->b                = self ? pair->a : &pair->sides[1];
    pair->a->context       = ut_context_create(features);
    pair->sides[1].context = pair->a->context;
    pair->a->worker        = ut_worker_create_as(pair->a->context, params);
    if (!self) {
        pair->b->worker = ut_worker_create_as(pair->b->context, params);
        pair->b->ep     = ut_ep_create(pair->b->worker, pair->a->worker);
    }
    pair->a->ep = ut_ep_create(pair->a->worker, pair->b->worker);
}

void ut_pair_open_as(ut_pair_t *pair, uint64_t features, const ucp_worker_params_t *params)
{
    const char *tls = getenv("UCX_TLS");

    ut_pair_open_sides(pair, features, params, (tls != NULL) && (strcmp(tls, "self") == 0));
}

void ut_pair_open_with(ut_pair_t *pair, uint64_t features, ucs_thread_mode_t mode)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = mode};

    ut_pair_open_as(pair, features, &params);
}

void ut_pair_open(ut_pair_t *pair, uint64_t features)
{
    ut_pair_open_with(pair, UCP_FEATURE_TAG | features, UCS_THREAD_MODE_SINGLE);
}

void ut_pair_open_self(ut_pair_t *pair, uint64_t features)
{
    ucp_worker_params_t params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};

    ut_pair_open_sides(pair, UCP_FEATURE_TAG | features, &params, true);
}

void ut_ep_close(ut_pair_t *pair, ucp_ep_h ep)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_t status;

    status = ut_wait_ptr(pair, ucp_ep_close_nbx(ep, &param));
    UT_CHECK(status == UCS_OK, "ucp_ep_close_nbx: %s", ucs_status_string(status));
}

void ut_pair_close(ut_pair_t *pair)
{
    ut_ep_close(pair, pair->a->ep);
    if (pair->a != pair->b) {
        ut_ep_close(pair, pair->b->ep);
        ucp_worker_destroy(pair->b->worker);
    }
    ucp_worker_destroy(pair->a->worker);
    ucp_cleanup(pair->a->context);
}

void ut_progress(const ut_pair_t *pair)
{
    ucp_worker_progress(pair->a->worker);
    if (pair->b != pair->a) {
        ucp_worker_progress(pair->b->worker);
    }
}

void ut_settle(const ut_pair_t *pair)
{
    uint64_t begin = ut_now();
    unsigned i     = 0;

    while ((i++ < UT_SETTLE) || (ut_now() - begin < UT_SETTLE_NS)) {
        ut_progress(pair);
    }
}

/* ----------------------------------------------------------- contents */

static uint8_t ut_byte(size_t i, unsigned seed)
{
    return (uint8_t)((i * 7) + ((i >> 8) * 13) + ((i >> 16) * 31) + (seed * 101) + 1);
}

void ut_fill(void *data, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        ((uint8_t *)data)[i] = ut_byte(i, seed);
    }
}

size_t ut_verify(const void *data, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (((const uint8_t *)data)[i] != ut_byte(i, seed)) {
            return i;
        }
    }
    return SIZE_MAX;
}

size_t ut_verify_value(const void *data, size_t length, uint8_t value)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (((const uint8_t *)data)[i] != value) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Generic datatype: `count` packed bytes in pieces of 7 with gaps of 3 */
typedef struct ut_generic {
    char *memory;
    size_t length;
} ut_generic_t;

static void *ut_generic_start(void *memory, size_t count)
{
    ut_generic_t *state = malloc(sizeof(*state));

    state->memory = memory;
    state->length = count;
    ++ut_generic_starts;
    return state;
}

static void *ut_generic_start_pack(void *context, const void *buffer, size_t count)
{
    return ut_generic_start((void *)(uintptr_t)buffer, count);
}

static void *ut_generic_start_unpack(void *context, void *buffer, size_t count)
{
    return ut_generic_start(buffer, count);
}

static size_t ut_generic_size(void *state)
{
    return ((ut_generic_t *)state)->length;
}

static size_t ut_generic_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    ut_generic_t *generic = state;
    size_t i, length = generic->length - offset;

    length = (length <= max_length) ? length : (ut_generic_is_strict ? max_length / UT_PIECE * UT_PIECE : max_length);
    for (i = 0; i < length; ++i, ++offset) {
        ((char *)dest)[i] = generic->memory[(offset / UT_PIECE * UT_STRIDE) + (offset % UT_PIECE)];
    }
    return length;
}

static ucs_status_t ut_generic_unpack(void *state, size_t offset, const void *src, size_t length)
{
    ut_generic_t *generic = state;
    size_t i;

    UT_CHECK(offset + length <= generic->length, "unpack of bytes %zu..%zu of %zu", offset, offset + length,
             generic->length);
    if (ut_generic_is_strict &&
        ((offset % UT_PIECE != 0) || ((length % UT_PIECE != 0) && (offset + length < generic->length)))) {
        ++ut_generic_refusals;
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    for (i = 0; (i < length) && (offset < generic->length); ++i, ++offset) {
        generic->memory[(offset / UT_PIECE * UT_STRIDE) + (offset % UT_PIECE)] = ((const char *)src)[i];
    }
    return UCS_OK;
}

static void ut_generic_finish(void *state)
{
    free(state);
    ++ut_generic_finishes;
}

static ucp_datatype_t ut_generic_create(void)
{
    static const ucp_generic_dt_ops_t ops = {.start_pack   = ut_generic_start_pack,
                                             .start_unpack = ut_generic_start_unpack,
                                             .packed_size  = ut_generic_size,
                                             .pack         = ut_generic_pack,
                                             .unpack       = ut_generic_unpack,
                                             .finish       = ut_generic_finish};
    ucp_datatype_t datatype;
    ucs_status_t status;

    status = ucp_dt_create_generic(&ops, NULL, &datatype);
    UT_REQUIRE(status == UCS_OK, "ucp_dt_create_generic: %s", ucs_status_string(status));
    return datatype;
}

/* Uneven entries, 16 bytes apart; with 5 the second and the last are empty */
static void ut_data_open_iov(ut_data_t *data, size_t entries)
{
    size_t i, part, done = 0;
    char *next = data->memory + UT_GUARD;

    for (i = 0; i < entries; ++i) {
        part = (i + 1 == entries) ? data->length - done : (data->length - done) * (i + 1) / 5;
        if ((entries == 5) && (i == 1)) {
            part = 0;
        } else if ((entries == 5) && (i == 3)) {
            part = data->length - done;
        }
        data->iov[i].buffer = next;
        data->iov[i].length = part;
        next += part + 16;
        done += part;
    }
    data->datatype = ucp_dt_make_iov();
    data->buffer   = data->iov;
    data->count    = entries;
}

void ut_data_open(ut_data_t *data, ut_layout_t layout, size_t length)
{
    data->layout = layout;
    data->length = length;
    data->extent = (2 * UT_GUARD) + (5 * 16) + ((layout == UT_GENERIC) ? (length / UT_PIECE + 1) * UT_STRIDE : length);
    data->memory = malloc(data->extent);
    UT_REQUIRE(data->memory != NULL, "out of memory");
    data->buffer = data->memory + UT_GUARD;
    data->count  = length;
    switch (layout) {
    case UT_CONTIG1:
        data->datatype = ucp_dt_make_contig(1);
        break;
    case UT_CONTIGN:
        data->datatype = ucp_dt_make_contig((length > 0) ? length : 8);
        data->count    = (length > 0) ? 1 : 0;
        break;
    case UT_GENERIC:
        data->datatype = ut_generic_create();
        break;
    default:
        ut_data_open_iov(data, (layout == UT_IOV1) ? 1 : (layout == UT_IOV3) ? 3 : 5);
        break;
    }
    ut_data_poison(data);
}

/* Place of packed byte i */
static char *ut_data_at(const ut_data_t *data, size_t i)
{
    size_t entry;

    switch (data->layout) {
    case UT_CONTIG1:
    case UT_CONTIGN:
        return data->memory + UT_GUARD + i;
    case UT_GENERIC:
        return data->memory + UT_GUARD + (i / UT_PIECE * UT_STRIDE) + (i % UT_PIECE);
    default:
        for (entry = 0; i >= data->iov[entry].length; ++entry) {
            i -= data->iov[entry].length;
        }
        return (char *)data->iov[entry].buffer + i;
    }
}

void ut_data_fill(ut_data_t *data, unsigned seed)
{
    size_t i;

    if (data->layout <= UT_CONTIGN) {
        ut_fill(data->memory + UT_GUARD, data->length, seed);
        return;
    }
    for (i = 0; i < data->length; ++i) {
        *ut_data_at(data, i) = (char)ut_byte(i, seed);
    }
}

void ut_data_poison(ut_data_t *data)
{
    memset(data->memory, UT_POISON, data->extent);
}

/* Copies the memory, takes out what should be there, and looks whether poison is left everywhere */
bool ut_data_check(const ut_data_t *data, size_t length, unsigned seed)
{
    ut_data_t copy = *data;
    bool ok        = true;
    size_t i;

    if (data->layout <= UT_CONTIGN) {
        return (ut_verify(data->memory + UT_GUARD, length, seed) == SIZE_MAX) &&
               (ut_verify_value(data->memory, UT_GUARD, UT_POISON) == SIZE_MAX) &&
               (ut_verify_value(data->memory + UT_GUARD + length, data->extent - UT_GUARD - length, UT_POISON) ==
                SIZE_MAX);
    }
    copy.memory = malloc(data->extent);
    memcpy(copy.memory, data->memory, data->extent);
    for (i = 0; i < length; ++i) {
        char *place = copy.memory + (ut_data_at(data, i) - data->memory);

        ok     = ok && ((uint8_t)*place == ut_byte(i, seed));
        *place = (char)UT_POISON;
    }
    ok = ok && (ut_verify_value(copy.memory, data->extent, UT_POISON) == SIZE_MAX);
    free(copy.memory);
    return ok;
}

void ut_data_close(ut_data_t *data)
{
    if (data->layout == UT_GENERIC) {
        ucp_dt_destroy(data->datatype);
    }
    free(data->memory);
}

/* --------------------------------------------------------- operations */

void ut_memory_open(ut_memory_t *memory, ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
    ucs_status_t status;

    status = ucp_context_query(context, &attr);
    UT_REQUIRE(status == UCS_OK, "ucp_context_query: %s", ucs_status_string(status));
    memory->size = attr.request_size;
    memory->base = malloc(attr.request_size + (2 * UT_GUARD));
    memset(memory->base, UT_POISON, attr.request_size + (2 * UT_GUARD));
    memory->request = memory->base + UT_GUARD + attr.request_size;
}

void ut_memory_check(const ut_memory_t *memory)
{
    UT_CHECK(ut_verify_value(memory->base, UT_GUARD, UT_POISON) == SIZE_MAX,
             "bytes in front of the user's request were written");
    UT_CHECK(ut_verify_value(memory->request, UT_GUARD, UT_POISON) == SIZE_MAX,
             "bytes behind the user's request were written");
}

void ut_memory_close(ut_memory_t *memory)
{
    if (memory->base != NULL) {
        ut_memory_check(memory);
        free(memory->base);
        memory->base = NULL;
    }
}

static void ut_area_done(void *request, ucs_status_t status)
{
    ut_area_t *area = request;

    UT_CHECK((area->magic == UT_MAGIC) && (area->self == request), "callback with a request that was not initialized");
    area->status = status;
    ++area->calls;
}

static void ut_send_cb(void *request, ucs_status_t status)
{
    ut_area_done(request, status);
}

static void ut_recv_cb(void *request, ucs_status_t status, ucp_tag_recv_info_t *info)
{
    ut_area_t *area = request;

    ut_area_done(request, status);
    area->length = info->length;
    area->tag    = info->sender_tag;
}

void ut_op_sent(void *request, ucs_status_t status, void *user_data)
{
    ut_op_t *op = user_data;

    op->status = status;
    ++op->calls;
}

static void ut_recv_nbx_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    ut_op_t *op = user_data;

    op->status = status;
    op->info   = *info;
    ++op->calls;
}

void ut_op_open(ut_op_t *op, bool recv)
{
    memset(op, 0, sizeof(*op));
    op->status = UCS_INPROGRESS;
    op->recv   = recv;
}

void ut_op_set(ut_op_t *op, ucs_status_ptr_t returned)
{
    ut_area_t *area = returned;

    if (!UCS_PTR_IS_PTR(returned)) {
        op->status   = UCS_PTR_STATUS(returned);
        op->informed = ut_uci_is_on();
        UT_CHECK(op->calls == 0, "a callback although the call says that it completed at once");
        return;
    }
    op->request = returned;
    if (op->memory.base == NULL) {
        UT_CHECK((area->magic == UT_MAGIC) && (area->self == area), "request_init was not called for this request");
        area->cookie = (uintptr_t)op;
    }
}

static void ut_op_set_nb(ut_op_t *op, ucs_status_ptr_t returned)
{
    op->callback = true;
    ut_op_set(op, returned);
}

/* Of a receive that was posted, and may be over, nothing else is said */
static void ut_op_set_nbr(ut_op_t *op, ucs_status_t returned)
{
    op->status = returned;
    if (op->recv) {
        UT_CHECK_STATUS(returned, UCS_OK, "ucp_tag_recv_nbr");
    }
    if ((returned == UCS_INPROGRESS) || (op->recv && (returned == UCS_OK))) {
        op->status  = UCS_INPROGRESS;
        op->request = op->memory.request;
    }
}

static void ut_send_nbx(ut_op_t *op, const ut_side_t *side, const ut_data_t *data, ucp_tag_t tag, bool sync)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE,
                                 .cb.send   = ut_op_sent,
                                 .user_data = op,
                                 .datatype  = data->datatype};

    op->callback = true;
    ut_op_set(op, sync ? ucp_tag_send_sync_nbx(side->ep, data->buffer, data->count, tag, &param)
                       : ucp_tag_send_nbx(side->ep, data->buffer, data->count, tag, &param));
}

void ut_send(ut_op_t *op, const ut_side_t *side, ut_send_t form, const ut_data_t *data, ucp_tag_t tag)
{
    ut_op_open(op, false);
    switch (form) {
    case UT_SEND_NB:
        ut_op_set_nb(op, ucp_tag_send_nb(side->ep, data->buffer, data->count, data->datatype, tag, ut_send_cb));
        break;
    case UT_SEND_SYNC_NB:
        ut_op_set_nb(op, ucp_tag_send_sync_nb(side->ep, data->buffer, data->count, data->datatype, tag, ut_send_cb));
        break;
    case UT_SEND_NBR:
        ut_memory_open(&op->memory, side->context);
        ut_op_set_nbr(op,
                      ucp_tag_send_nbr(side->ep, data->buffer, data->count, data->datatype, tag, op->memory.request));
        break;
    default:
        ut_send_nbx(op, side, data, tag, form == UT_SEND_SYNC_NBX);
        break;
    }
}

static void ut_recv_nbx(ut_op_t *op, ucp_worker_h worker, ut_data_t *data, ucp_tag_t tag, ucp_tag_t mask,
                        ucp_tag_message_h message)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv            = ut_recv_nbx_cb,
                                 .user_data          = op,
                                 .datatype           = data->datatype,
                                 .recv_info.tag_info = &op->info};

    op->callback = true;
    ut_op_set(op, (message != NULL) ? ucp_tag_msg_recv_nbx(worker, data->buffer, data->count, message, &param)
                                    : ucp_tag_recv_nbx(worker, data->buffer, data->count, tag, mask, &param));
}

void ut_recv(ut_op_t *op, const ut_pair_t *pair, ut_recv_t form, ut_data_t *data, ucp_tag_t tag, ucp_tag_t mask)
{
    ucp_worker_h worker       = pair->b->worker;
    ucp_tag_message_h message = NULL;
    ucp_tag_recv_info_t info;

    ut_op_open(op, true);
    if ((form == UT_RECV_MSG_NB) || (form == UT_RECV_MSG_NBX)) {
        message = ut_probe(pair, tag, mask, 1, &info);
    }
    switch (form) {
    case UT_RECV_NB:
        ut_op_set_nb(op, ucp_tag_recv_nb(worker, data->buffer, data->count, data->datatype, tag, mask, ut_recv_cb));
        break;
    case UT_RECV_MSG_NB:
        ut_op_set_nb(op, ucp_tag_msg_recv_nb(worker, data->buffer, data->count, data->datatype, message, ut_recv_cb));
        break;
    case UT_RECV_NBR:
        ut_memory_open(&op->memory, pair->b->context);
        ut_op_set_nbr(
                op, ucp_tag_recv_nbr(worker, data->buffer, data->count, data->datatype, tag, mask, op->memory.request));
        break;
    default:
        ut_recv_nbx(op, worker, data, tag, mask, message);
        break;
    }
}

bool ut_op_is_done(const ut_op_t *op)
{
    return (op->request == NULL) || (ucp_request_check_status(op->request) != UCS_INPROGRESS);
}

/* The callback's word against the request's */
static void ut_op_check_callback(ut_op_t *op, ucs_status_t status)
{
    const ut_area_t *area = op->request;

    if ((op->calls == 0) && (op->memory.base == NULL)) {
        UT_CHECK(area->cookie == (uintptr_t)op, "the user's area was overwritten");
        op->calls  = area->calls;
        op->status = area->status;
        if (op->recv) {
            op->info.length     = area->length;
            op->info.sender_tag = area->tag;
        }
    }
    UT_CHECK(op->calls == 1, "the callback was called %d times", op->calls);
    UT_CHECK_STATUS(op->status, status, "status given to the callback");
}

static void ut_op_close(ut_op_t *op)
{
    ucs_status_t status = ucp_request_check_status(op->request);
    ucp_tag_recv_info_t info;

    if (op->callback) {
        ut_op_check_callback(op, status);
    }
    if (op->recv) {
        memset(&info, 0, sizeof(info));
        UT_CHECK_STATUS(ucp_request_test(op->request, &info), status, "ucp_request_test");
        if (!op->callback) {
            op->info = info;
        }
        if (status == UCS_OK) {
            UT_CHECK((info.length == op->info.length) && (info.sender_tag == op->info.sender_tag),
                     "request says %zu bytes of tag 0x%lx, callback %zu of 0x%lx", info.length,
                     (unsigned long)info.sender_tag, op->info.length, (unsigned long)op->info.sender_tag);
        }
    }
    op->status   = status;
    op->informed = true;
    if (op->memory.base == NULL) {
        if (op->callback) {
            ((ut_area_t *)op->request)->calls = 0;
        }
        ucp_request_free(op->request);
    }
    op->request = NULL;
}

ucs_status_t ut_wait(const ut_pair_t *pair, ut_op_t *op)
{
    ut_clock_start();
    while (!ut_op_is_done(op)) {
        ut_progress(pair);
        ut_clock_check(op->recv ? "a receive" : "a send");
    }
    if (op->request != NULL) {
        ut_op_close(op);
    }
    ut_memory_close(&op->memory);
    return op->status;
}

ucs_status_t ut_wait_ptr(const ut_pair_t *pair, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    ut_clock_start();
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ut_progress(pair);
        ut_clock_check("an operation");
    }
    ucp_request_free(request);
    return status;
}

ucs_status_t ut_wait_in_thread(const ut_pair_t *pair, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ut_progress(pair);
        sched_yield();
    }
    ucp_request_free(request);
    return status;
}

ucp_tag_message_h ut_probe(const ut_pair_t *pair, ucp_tag_t tag, ucp_tag_t mask, int remove, ucp_tag_recv_info_t *info)
{
    ucp_tag_message_h message;

    ut_clock_start();
    while ((message = ucp_tag_probe_nb(pair->b->worker, tag, mask, remove, info)) == NULL) {
        ut_progress(pair);
        ut_clock_check("a probe");
    }
    return message;
}

void ut_exchange(const ut_pair_t *pair, size_t length, unsigned seed)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_data_open(&from, UT_CONTIG1, length);
    ut_data_open(&to, UT_CONTIG1, length);
    ut_data_fill(&from, seed);
    ut_recv(&recv, pair, UT_RECV_NBX, &to, seed, UT_TAG_ALL);
    ut_send(&send, pair->a, UT_SEND_NBX, &from, seed);
    UT_CHECK_STATUS(ut_wait(pair, &send), UCS_OK, "send");
    UT_CHECK_STATUS(ut_wait(pair, &recv), UCS_OK, "receive");
    UT_CHECK(!recv.informed || (recv.info.length == length), "%zu bytes received, %zu sent", recv.info.length, length);
    UT_CHECK(ut_data_check(&to, length, seed), "wrong content, %zu bytes", length);
    ut_data_close(&from);
    ut_data_close(&to);
}
