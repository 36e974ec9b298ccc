/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So that uids with the same 16 bits, by which a small frame says who sent it, can be made */
#define UID_FACTOR 0x9e3779b97f4a7c15ul

const char *const faults_names[] = {"content", "stale", "memory", "reorder", "duplicate", "drop", "reopen", NULL};
const char *const fault_names[]  = {"no fault", "bit flipped", "burst", "zeros", "cut short", "content of an older",
                                    "delayed",  "twice",       "lost"};

static const char *const op_names[]   = {"send",           "recv", "probe", "mprobe", "message recv", "cancel",
                                         "active message", "put",  "get",   "atomic", "flush",        "stream send",
                                         "stream recv",    "turn", "wait",  "close",  "open"};
static const char *const form_names[] = {"", ", iov", ", generic", ", generic, elements"};

enum { DRAW_SHAPE = 1, DRAW_OPS };

/* ------------------------------------------------------------------- shape */

/* By the inverse of the factor, modulo 2^64 */
static uint64_t uid_with(uint64_t who, uint64_t rest)
{
    uint64_t inverse = UID_FACTOR;
    unsigned i;

    for (i = 0; i < 6; ++i) {
        inverse *= 2 - UID_FACTOR * inverse; /* Newton */
    }
    return inverse * ((who << 48) | (rest >> 16));
}

static void draw_uids(scenario_t *scenario, draw_t *draw)
{
    bool alike   = draw_hits(draw, 10);
    uint64_t who = draw_below(draw, 65536);
    unsigned i;

    for (i = 0; i < uci_array_size(scenario->uids); ++i) {
        scenario->uids[i] = uid_with(alike ? who : draw_below(draw, 65536), draw_next(draw));
    }
}

static void draw_lengths(scenario_t *scenario, draw_t *draw)
{
    static const uint64_t small[] = {16, 68, 100, 300};
    static const uint64_t eager[] = {1000, 2048, 4096, 8192};
    unsigned dice                 = (unsigned)draw_below(draw, 100);
    size_t i;

    scenario->chunk_size = 256u << draw_below(draw, 5);
    if (dice < 60) {
        scenario->length_max = small[draw_below(draw, 4)];
    } else if (dice < 97) {
        scenario->length_max = eager[draw_below(draw, 4)];
    } else {
        scenario->length_max = 16384u << draw_below(draw, 5);
        scenario->chunk_size = 4096u << draw_below(draw, 3);
    }
    scenario->eager_max[0] = (size_t)64 << draw_below(draw, 6);
    for (i = 1; i < uci_array_size(scenario->eager_max); ++i) {
        scenario->eager_max[i] = draw_hits(draw, 80) ? scenario->eager_max[0] : (size_t)64 << draw_below(draw, 6);
    }
}

static void draw_path(scenario_t *scenario, draw_t *draw)
{
    static const struct {
        uci_path_t path;
        const char *transports;
    } ways[]   = {{UCI_PATH_STREAM, "tcp/eth0"},     {UCI_PATH_STREAM, "rc_mlx5/mlx5_0"},
                  {UCI_PATH_GET, "tcp/eth0"},        {UCI_PATH_GET, "rc_mlx5/mlx5_0"},
                  {UCI_PATH_BOUNCE, "tcp/eth0"},     {UCI_PATH_AUTO, "tcp/eth0"},
                  {UCI_PATH_DIRECT, "posix/memory"}, {UCI_PATH_AUTO, "posix/memory"},
                  {UCI_PATH_STREAM, "posix/memory"}, {UCI_PATH_GET, "posix/memory"}};
    size_t way = draw_below(draw, uci_array_size(ways));

    scenario->path       = ways[way].path;
    scenario->transports = ways[way].transports;
    scenario->by_mailbox = draw_hits(draw, 75);
}

static void draw_shape(scenario_t *scenario)
{
    draw_t draw = draw_for(scenario->seed, DRAW_SHAPE, 0);

    scenario->nodes = draw_hits(&draw, 60) ? 2 : 3 + (unsigned)draw_below(&draw, 2);
    draw_uids(scenario, &draw);
    draw_lengths(scenario, &draw);
    draw_path(scenario, &draw);
    scenario->buffered_max = draw_hits(&draw, 30) ? 1u << 20 : 0;
    scenario->sources      = draw_hits(&draw, 60);
    scenario->threads      = draw_hits(&draw, 50);
    scenario->no_rdma      = draw_hits(&draw, 30);
    scenario->self_at_once = draw_hits(&draw, 70);
    scenario->leave_early  = draw_hits(&draw, 25);
    scenario->warm         = draw_hits(&draw, 40);
    scenario->burst        = draw_hits(&draw, 50) ? UINT32_MAX : 1 + (unsigned)draw_below(&draw, 4);
    scenario->latency      = draw_hits(&draw, 50) ? 2000 : 1ul << draw_below(&draw, 25);
    scenario->held         = draw_hits(&draw, 50) ? 0 : (unsigned)draw_below(&draw, 100);
    scenario->rate         = draw_hits(&draw, 5) ? 0 : 8u << draw_below(&draw, 7);
    scenario->patience     = 1 + (unsigned)draw_below(&draw, 3);
    scenario->ways         = draw_hits(&draw, 50);
    scenario->kernel_copy  = draw_hits(&draw, 50) && (strcmp(scenario->transports, "posix/memory") == 0);
    scenario->first = draw_hits(&draw, 80) ? 0 : (draw_hits(&draw, 50) ? 1ul << 32 : 1ul << 31) - draw_below(&draw, 64);
}

/* ----------------------------------------------------------------- program */

uint64_t scenario_length(const scenario_t *scenario, unsigned from, uint64_t length)
{
    return scenario->sources ? length : (length / 4 * 4) + from;
}

static uint64_t draw_length(const scenario_t *scenario, draw_t *draw)
{
    uint64_t length = draw_hits(draw, 30) ? draw_below(draw, 12) : draw_below(draw, scenario->length_max + 1);

    return draw_hits(draw, 10) ? scenario->length_max : length;
}

static form_t draw_form(draw_t *draw)
{
    return draw_hits(draw, 75) ? FORM_CONTIG : (form_t)draw_below(draw, FORM_LAST);
}

static uint64_t draw_tag(const scenario_t *scenario, draw_t *draw, unsigned from)
{
    return draw_below(draw, 3) | (scenario->sources ? (uint64_t)from << 8 : 0);
}

static uint64_t draw_mask(draw_t *draw)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xff, UINT64_MAX - 0xff, 0};

    return masks[draw_below(draw, uci_array_size(masks))];
}

static void draw_send(scenario_t *scenario, draw_t *draw, op_t *op)
{
    op->kind   = OP_SEND;
    op->tag    = draw_tag(scenario, draw, op->node);
    op->length = scenario_length(scenario, op->node, draw_length(scenario, draw));
    op->sync   = draw_hits(draw, 15);
    op->form   = draw_form(draw);
}

static void draw_active(scenario_t *scenario, draw_t *draw, op_t *op)
{
    op->kind   = OP_ACTIVE;
    op->tag    = draw_next(draw);
    op->mask   = draw_hits(draw, 30) ? 0 : draw_next(draw);
    op->length = draw_length(scenario, draw);
    op->form   = draw_form(draw);
}

static void draw_onesided(scenario_t *scenario, draw_t *draw, op_t *op)
{
    static const op_kind_t kinds[] = {OP_PUT, OP_PUT, OP_PUT,    OP_PUT,    OP_GET,
                                      OP_GET, OP_GET, OP_ATOMIC, OP_ATOMIC, OP_FLUSH};

    op->kind   = kinds[draw_below(draw, uci_array_size(kinds))];
    op->tag    = draw_next(draw) >> 1;
    op->mask   = draw_next(draw);
    op->length = uci_min(draw_length(scenario, draw), (uint64_t)ONESIDED_MAX);
    op->form   = draw_hits(draw, 80) ? FORM_CONTIG : FORM_IOV;
    op->sync   = draw_hits(draw, 30);
}

static void draw_streamed(scenario_t *scenario, draw_t *draw, op_t *op)
{
    op->kind   = draw_hits(draw, 50) ? OP_STREAM_SEND : OP_STREAM_RECV;
    op->mask   = draw_next(draw);
    op->length = draw_length(scenario, draw);
    op->form   = draw_hits(draw, 80) ? FORM_CONTIG : FORM_IOV;
    op->sync   = draw_hits(draw, 30);
}

static void draw_recv(scenario_t *scenario, draw_t *draw, op_t *op)
{
    op->kind   = OP_RECV;
    op->tag    = draw_tag(scenario, draw, (unsigned)draw_below(draw, scenario->nodes));
    op->mask   = draw_mask(draw);
    op->length = draw_hits(draw, 92) ? scenario->length_max + 4 : draw_length(scenario, draw);
    op->form   = draw_form(draw);
}

static void draw_op(scenario_t *scenario, draw_t *draw, op_t *op)
{
    unsigned dice = (unsigned)draw_below(draw, 1000);

    memset(op, 0, sizeof(*op));
    op->node        = (unsigned)draw_below(draw, scenario->nodes);
    op->peer        = (unsigned)draw_below(draw, scenario->nodes);
    op->polled      = draw_hits(draw, 30);
    op->by_callback = draw_hits(draw, 5);
    if (scenario->flood && draw_hits(draw, 80)) {
        op->node = 0;
        op->peer = 1;
        draw_send(scenario, draw, op);
        return;
    }
    if (scenario->ways && draw_hits(draw, 40)) {
        if (draw_hits(draw, 40)) {
            draw_active(scenario, draw, op);
        } else if (draw_hits(draw, 40)) {
            draw_streamed(scenario, draw, op);
        } else {
            draw_onesided(scenario, draw, op);
        }
        return;
    }
    if (dice < 320) {
        draw_send(scenario, draw, op);
    } else if (dice < 620) {
        draw_recv(scenario, draw, op);
    } else if (dice < 900) {
        op->kind = OP_TURN;
        op->node = scenario->flood ? 0 : op->node;
    } else if (dice < 930) {
        op->kind   = OP_WAIT;
        op->length = 1ul << draw_below(draw, 34);
    } else if (dice < 980) {
        op->kind   = (op_kind_t)(OP_PROBE + draw_below(draw, 3));
        op->tag    = draw_tag(scenario, draw, (unsigned)draw_below(draw, scenario->nodes));
        op->mask   = draw_mask(draw);
        op->length = scenario->length_max + 4;
        op->form   = draw_form(draw);
    } else {
        op->kind = (dice < 988) ? OP_CANCEL : (dice < 994) ? OP_CLOSE : OP_OPEN;
        if ((op->kind != OP_CANCEL) && !(scenario->classes & FAULTS_REOPEN)) {
            op->kind = OP_TURN;
        }
    }
}

/* So that a box, or a window of acknowledgements, is filled */
static void draw_flood(scenario_t *scenario, draw_t *draw)
{
    size_t i;

    scenario->length_max = 2000;
    if (draw_hits(draw, 50)) {
        scenario->transports = "posix/memory";
        scenario->by_mailbox = true;
        scenario->warm       = true;
        for (i = 0; i < uci_array_size(scenario->eager_max); ++i) {
            scenario->eager_max[i] = 2048;
        }
    }
}

static void draw_ops(scenario_t *scenario)
{
    draw_t draw = draw_for(scenario->seed, DRAW_OPS, 0);
    size_t i;

    scenario->flood     = draw_below(&draw, 300) == 0;
    scenario->ops_count = scenario->flood ? 300 + draw_below(&draw, 500)
                                          : 4 + draw_below(&draw, 1u << (3 + draw_below(&draw, 5)));
    if (scenario->flood) {
        draw_flood(scenario, &draw);
    }
    scenario->ops = calloc(scenario->ops_count, sizeof(*scenario->ops));
    for (i = 0; i < scenario->ops_count; ++i) {
        draw_t one = draw_for(scenario->seed, DRAW_OPS, 1 + i);

        draw_op(scenario, &one, &scenario->ops[i]);
    }
}

void scenario_draw(scenario_t *scenario, uint64_t seed, unsigned classes)
{
    memset(scenario, 0, sizeof(*scenario));
    scenario->seed    = seed;
    scenario->classes = classes;
    draw_shape(scenario);
    draw_ops(scenario);
}

void scenario_free(scenario_t *scenario)
{
    free(scenario->ops);
    free(scenario->faults);
    memset(scenario, 0, sizeof(*scenario));
}

void scenario_note(scenario_t *scenario, const fault_t *fault)
{
    if (scenario->faults_count == scenario->faults_size) {
        scenario->faults_size = 2 * scenario->faults_size + 64;
        scenario->faults      = realloc(scenario->faults, scenario->faults_size * sizeof(*scenario->faults));
    }
    scenario->faults[scenario->faults_count++] = *fault;
}

/* -------------------------------------------------------------------- text */

void op_print(FILE *stream, const op_t *op)
{
    fprintf(stream, "node %u: %s", op->node, op_names[op->kind]);
    switch (op->kind) {
    case OP_SEND:
        fprintf(stream, " to %u, tag 0x%" PRIx64 ", %" PRIu64 " bytes%s%s", op->peer, op->tag, op->length,
                form_names[op->form], op->sync ? ", synchronous" : "");
        break;
    case OP_ACTIVE:
    case OP_PUT:
    case OP_GET:
    case OP_ATOMIC:
    case OP_STREAM_SEND:
    case OP_STREAM_RECV:
        fprintf(stream, " to %u, %" PRIu64 " bytes%s", op->peer, op->length, form_names[op->form]);
        break;
    case OP_RECV:
        fprintf(stream, " tag 0x%" PRIx64 "/0x%" PRIx64 ", %" PRIu64 " bytes%s", op->tag, op->mask, op->length,
                form_names[op->form]);
        break;
    case OP_PROBE:
    case OP_MPROBE:
        fprintf(stream, " tag 0x%" PRIx64 "/0x%" PRIx64, op->tag, op->mask);
        break;
    case OP_WAIT:
        fprintf(stream, " %" PRIu64 " ns", op->length);
        break;
    case OP_FLUSH:
    case OP_CLOSE:
    case OP_OPEN:
        fprintf(stream, " to %u", op->peer);
        break;
    default:
        break;
    }
    fprintf(stream, "%s%s", op->polled ? " (polled)" : "", op->by_callback ? " (in a callback)" : "");
}

void scenario_print(FILE *stream, const scenario_t *scenario)
{
    size_t i;

    fprintf(stream,
            "world 0x%016" PRIx64
            ": %u nodes, path %u over %s, chunks of %zu, frames of %zu, buffered to %zu, messages to %" PRIu64
            "%s%s%s%s%s%s%s%s, from number %" PRIu64 "; UCX holds %u%%, latency %" PRIu64 " ns, burst %u; faults ",
            scenario->seed, scenario->nodes, (unsigned)scenario->path, scenario->transports, scenario->chunk_size,
            scenario->eager_max[0], scenario->buffered_max, scenario->length_max,
            scenario->by_mailbox ? ", mailbox" : "", scenario->sources ? ", tags name senders" : "",
            scenario->threads ? ", multi" : "", scenario->no_rdma ? ", no rdma" : "",
            scenario->kernel_copy ? ", cma" : "", scenario->self_at_once ? ", self at once" : "",
            scenario->leave_early ? ", leaves early" : "", scenario->warm ? ", warm" : "", scenario->first,
            scenario->held, scenario->latency, scenario->burst);
    faults_print(stream, scenario->classes);
    fprintf(stream, " %u/1024, patience %u\n", scenario->rate, scenario->patience);
    for (i = 0; i < scenario->ops_count; ++i) {
        fprintf(stream, "  op %zu: ", i);
        op_print(stream, &scenario->ops[i]);
        fputc('\n', stream);
    }
    for (i = 0; i < scenario->faults_count; ++i) {
        static const char *const sites[] = {"message", "fetch", "memory, turn"};
        const fault_t *fault             = &scenario->faults[i];

        fprintf(stream, "  fault: %s %u -> %u number %" PRIu64 ": %s\n", sites[fault->site], fault->from, fault->to,
                fault->number, fault_names[fault->kind]);
    }
}

unsigned faults_parse(const char *text)
{
    unsigned classes = 0, i;
    size_t length;

    for (; *text != '\0'; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        for (i = 0; (faults_names[i] != NULL) &&
                    ((strlen(faults_names[i]) != length) || (strncmp(faults_names[i], text, length) != 0));
             ++i) {
        }
        if (faults_names[i] != NULL) {
            classes |= 1u << i;
        } else if ((length == 4) && (strncmp(text, "wire", 4) == 0)) {
            classes |= (FAULTS_LAST - 1) & ~(unsigned)FAULTS_REOPEN;
        } else if ((length == 3) && (strncmp(text, "all", 3) == 0)) {
            classes |= FAULTS_LAST - 1;
        } else if ((length == 8) && (strncmp(text, "reliable", 8) == 0)) {
            classes |= FAULTS_RELIABLE;
        } else {
            return 0;
        }
    }
    return classes;
}

void faults_print(FILE *stream, unsigned classes)
{
    unsigned i, printed = 0;

    for (i = 0; faults_names[i] != NULL; ++i) {
        if (classes & (1u << i)) {
            fprintf(stream, "%s%s", (printed++ > 0) ? "," : "", faults_names[i]);
        }
    }
}
