/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <inttypes.h>
#include <stdlib.h>

#include "link/bounce.h"
#include "protocol.h"

#define KEYS        4096 /* things that are not hit again and again, by hash: some share a place */
#define HISTORY     8
#define MEMORY_HITS 32 /* in one node's memory: what is in the way of everything must end */
#define WAYS        (FAKE_NODES * FAKE_NODES)

enum { DRAW_FAULT = 32, DRAW_WAY };

/* What went by on a way */
typedef struct past {
    char *header, *data;
    size_t header_length, length;
    bool am;
    unsigned id;
} past_t;

static scenario_t *scenario;
static FILE *story;
static bool is_paused;
static uint8_t hits[KEYS];
static uint8_t in_a_row[WAYS][PROTOCOL_TYPES];
static uint64_t fetches[WAYS], turns[FAKE_NODES];
static past_t history[WAYS][HISTORY];
static unsigned history_next[WAYS];
static faults_counts_t own_counts;
faults_counts_t *faults_counts = &own_counts;

/* -------------------------------------------------------------- decisions */

static const fault_t *listed_fault(site_t site, unsigned from, unsigned to, uint64_t number)
{
    size_t i;

    for (i = 0; i < scenario->faults_count; ++i) {
        const fault_t *fault = &scenario->faults[i];

        if ((fault->site == site) && (fault->from == from) && (fault->to == to) && (fault->number == number)) {
            return fault;
        }
    }
    return NULL;
}

static fault_kind_t draw_kind(draw_t *draw, site_t site)
{
    static const fault_kind_t contents[] = {FAULT_FLIP, FAULT_BURST, FAULT_ZERO, FAULT_TRUNCATE};
    fault_kind_t kinds[8];
    unsigned count = 0;

    if (site != SITE_MESSAGE) {
        return contents[draw_below(draw, 3)];
    }
    if (scenario->classes & FAULTS_CONTENT) {
        kinds[count++] = contents[draw_below(draw, 4)];
        kinds[count++] = contents[draw_below(draw, 4)];
    }
    if (scenario->classes & FAULTS_STALE) {
        kinds[count++] = FAULT_STALE;
    }
    if (scenario->classes & FAULTS_REORDER) {
        kinds[count++] = FAULT_REORDER;
    }
    if (scenario->classes & FAULTS_DUPLICATE) {
        kinds[count++] = FAULT_DUPLICATE;
    }
    if (scenario->classes & FAULTS_DROP) {
        kinds[count++] = FAULT_DROP;
    }
    return (count > 0) ? kinds[draw_below(draw, count)] : FAULT_NONE;
}

/* @return whether something is to be done here, and what */
static bool decide(site_t site, unsigned from, unsigned to, uint64_t number, bool allowed, fault_t *fault_p)
{
    draw_t draw = draw_for(scenario->seed, DRAW_FAULT + 8 * site,
                           ((uint64_t)from << 48) | ((uint64_t)to << 40) | number);
    const fault_t *listed;

    if (is_paused) {
        return false;
    }
    if (scenario->listed) {
        listed = listed_fault(site, from, to, number);
        if (listed != NULL) {
            *fault_p = *listed;
        }
        return listed != NULL;
    }
    if (!allowed || (draw_below(&draw, 1024) >= scenario->rate)) {
        return false;
    }
    *fault_p      = (fault_t){.site = site, .from = from, .to = to, .number = number};
    fault_p->kind = draw_kind(&draw, site);
    fault_p->seed = draw_next(&draw);
    return fault_p->kind != FAULT_NONE;
}

/* It was done: kept for the one who wants to know, and does not happen to the same thing for ever */
static void note(const fault_t *fault)
{
    if (!scenario->listed) {
        scenario_note(scenario, fault);
    }
    ++faults_counts->faults;
    ++faults_counts->by_kind[fault->kind];
}

/* ---------------------------------------------------------------- contents */

static void damage(fault_kind_t kind, draw_t *draw, char *bytes, size_t length)
{
    size_t first = draw_below(draw, length), count, i;
    bool changed = false;

    if (kind == FAULT_BURST) {
        count = 2 + draw_below(draw, 31);
        count = uci_min(count, length - first);
        for (i = 0; i < count; ++i) {
            bytes[first + i] ^= (char)(1 + draw_below(draw, 255));
        }
        return;
    }
    if (kind == FAULT_ZERO) {
        count = 1ul << draw_below(draw, 13);
        count = uci_min(count, length);
        first = first / count * count;
        for (i = first; i < uci_min(first + count, length); ++i) {
            changed |= (bytes[i] != 0);
            bytes[i] = 0;
        }
        if (changed) {
            return;
        }
    }
    bytes[first] ^= (char)(1u << draw_below(draw, 8));
}

/* Header or data */
static bool damage_message(fake_message_t *message, const fault_t *fault)
{
    draw_t draw    = {fault->seed};
    bool in_header = (message->header_length > 0) && (message->rndv || (message->length == 0) || draw_hits(&draw, 50));
    char **bytes_p = in_header ? &message->header : &message->data;
    size_t *length_p = in_header ? &message->header_length : &message->length;

    if (*length_p == 0) {
        return false;
    }
    if (fault->kind == FAULT_TRUNCATE) {
        fake_message_resize(bytes_p, length_p, draw_below(&draw, *length_p));
    } else {
        damage(fault->kind, &draw, *bytes_p, *length_p);
    }
    return true;
}

/* ----------------------------------------------------------------- history */

static void *copy_of(const void *data, size_t length)
{
    void *copy = malloc(length + 1);

    if (length > 0) {
        memcpy(copy, data, length);
    }
    return copy;
}

static void remember(const fake_message_t *message, unsigned way)
{
    past_t *past = &history[way][history_next[way]++ % HISTORY];

    free(past->header);
    free(past->data);
    *past = (past_t){copy_of(message->header, message->header_length),
                     copy_of(message->data, message->length),
                     message->header_length,
                     message->length,
                     message->am,
                     message->id};
}

/* Instead of this one there comes once more what came before */
static bool make_stale(fake_message_t *message, const fault_t *fault, unsigned way)
{
    draw_t draw    = {fault->seed};
    unsigned first = (unsigned)draw_below(&draw, HISTORY), i;

    for (i = 0; i < HISTORY; ++i) {
        const past_t *past = &history[way][(first + i) % HISTORY];

        if ((past->data != NULL) && (past->am == message->am) && (past->id == message->id)) {
            free(message->header);
            free(message->data);
            message->header        = copy_of(past->header, past->header_length);
            message->data          = copy_of(past->data, past->length);
            message->header_length = past->header_length;
            message->length        = past->length;
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- messages */

static uint64_t lateness(const fault_t *fault)
{
    draw_t draw = {fault->seed};

    return draw_below(&draw, 1ul << (8 + draw_below(&draw, 24)));
}

static bool hit(fake_message_t *message, const fault_t *fault, unsigned way)
{
    switch (fault->kind) {
    case FAULT_STALE:
        message->changed = true;
        return !message->rndv && make_stale(message, fault, way);
    case FAULT_REORDER:
        message->passed = true;
        message->due += lateness(fault);
        return true;
    case FAULT_DUPLICATE:
        if (message->rndv) {
            return false;
        }
        fake_message_repeat(message, message->due + lateness(fault));
        return true;
    case FAULT_DROP:
        message->dropped = !message->rndv;
        return message->dropped;
    default:
        message->changed = true;
        return damage_message(message, fault);
    }
}

static void tell_sent(const char *what, const fake_message_t *message, const fault_t *fault)
{
    if (story != NULL) {
        fprintf(story, "%12.3f us  %u -> %u #%" PRIu64 ": %s%s%s\n", (double)(fake_net.clock % 1000000000000ul) / 1e3,
                message->from, message->to, message->number, what, (fault != NULL) ? "  *** " : "",
                (fault != NULL) ? fault_names[fault->kind] : "");
    }
}

static bool may_be_hit(uint64_t key, unsigned way, unsigned type)
{
    return (hits[key % KEYS] < scenario->patience) && (in_a_row[way][type] < scenario->patience);
}

static void draw_way(fake_message_t *message)
{
    draw_t draw = draw_for(scenario->seed, DRAW_WAY,
                           ((uint64_t)message->from << 48) | ((uint64_t)message->to << 40) | message->number);

    message->due += draw_hits(&draw, 3) ? draw_below(&draw, 3000000) : draw_below(&draw, scenario->latency);
    message->held = draw_hits(&draw, scenario->held);
}

static void on_sent(fake_message_t *message)
{
    unsigned way  = message->from * FAKE_NODES + message->to;
    unsigned type = protocol_type(message);
    uint64_t key  = protocol_key(message);
    char text[160];
    fault_t fault;
    bool faulty;

    ++faults_counts->messages;
    faults_counts->trace = draw_mix(faults_counts->trace ^ key, fake_net.clock);
    draw_way(message);
    if (story != NULL) {
        protocol_describe(message, text, sizeof(text));
    }
    faulty = decide(SITE_MESSAGE, message->from, message->to, message->number, may_be_hit(key, way, type), &fault) &&
             hit(message, &fault, way);
    if (faulty) {
        note(&fault);
        ++hits[key % KEYS];
    }
    if ((scenario->classes & FAULTS_STALE) && !message->rndv && !faulty) {
        remember(message, way);
    }
    in_a_row[way][type] = faulty ? (uint8_t)(in_a_row[way][type] + 1) : 0;
    tell_sent(text, message, faulty ? &fault : NULL);
}

static void on_arrived(const fake_message_t *message)
{
    unsigned state = protocol_state(message), type = protocol_type(message);
    char text[200], what[160];

    ++faults_counts->reached[state][type];
    if (story != NULL) {
        protocol_describe(message, what, sizeof(what));
        snprintf(text, sizeof(text), "   arrives%s (%s): %s", message->copy ? ", a copy" : "",
                 protocol_state_name(state), what);
        tell_sent(text, message, NULL);
    }
}

/* ----------------------------------------------------------------- fetching */

static uint64_t on_fetch_time(unsigned from, unsigned to)
{
    uint64_t number = fetches[from * FAKE_NODES + to];
    draw_t draw     = draw_for(scenario->seed, DRAW_WAY + 1, ((uint64_t)from << 48) | ((uint64_t)to << 40) | number);

    return draw_hits(&draw, 50) ? 0 : draw_below(&draw, scenario->latency);
}

static void on_fetched(unsigned from, unsigned to, char *bytes, size_t length)
{
    unsigned way    = from * FAKE_NODES + to;
    uint64_t number = fetches[way]++;
    bool allowed    = (scenario->classes & FAULTS_CONTENT) && (in_a_row[way][0] < scenario->patience);
    fault_t fault   = {.kind = FAULT_NONE};
    draw_t draw;

    if ((length > 0) && decide(SITE_FETCH, from, to, number, allowed, &fault)) {
        draw.state = fault.seed;
        damage(fault.kind, &draw, bytes, length);
        note(&fault);
        ++in_a_row[way][0];
    } else {
        in_a_row[way][0] = 0;
    }
    if (story != NULL) {
        fprintf(story, "%12.3f us  %u -> %u fetch %" PRIu64 ": %zu bytes%s%s\n",
                (double)(fake_net.clock % 1000000000000ul) / 1e3, from, to, number, length,
                (fault.kind != FAULT_NONE) ? "  *** " : "", (fault.kind != FAULT_NONE) ? fault_names[fault.kind] : "");
    }
}

/* ------------------------------------------------------------ shared memory */

/* A slot that has been filled, from a drawn one on. Head and data of it are hit alike; what the receiver writes is not */
static uci_slot_t *find_slot(uci_slot_t *slots, draw_t *draw)
{
    size_t first = draw_below(draw, UCI_SLOT_COUNT), i;

    for (i = 0; i < UCI_SLOT_COUNT; ++i) {
        uci_slot_t *slot = &slots[(first + i) % UCI_SLOT_COUNT];

        if ((slot->mark != 0) && (uci_slot_ack_word(slot->mark) != slot->ack)) {
            return slot;
        }
    }
    return NULL;
}

static bool hit_slot(uci_worker_t *worker, const fault_t *fault, draw_t *draw)
{
    uci_slot_t *slots = worker->link.bounce.slots;
    uci_slot_t *slot  = (slots != NULL) ? find_slot(slots, draw) : NULL;

    if ((slot == NULL) || (slot->length == 0) || (slot->length > UCI_SLOT_SIZE)) {
        return false;
    }
    if (draw_hits(draw, 50)) {
        damage(fault->kind, draw, slot->data, slot->length);
    } else {
        damage(FAULT_FLIP, draw, (char *)slot, offsetof(uci_slot_t, ack) / 2);
    }
    return true;
}

/* A box in use: what lies in it next, or has been taken already; or what its owner tells the sender; or the doorbells */
static bool hit_mailbox(uci_worker_t *worker, const fault_t *fault, draw_t *draw)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    uci_mailbox_box_t *box;
    unsigned dice;

    if ((mailbox->region == NULL) || (mailbox->count == 0)) {
        return false;
    }
    box  = &mailbox->boxes[draw_below(draw, mailbox->count)];
    dice = (unsigned)draw_below(draw, 100);
    if ((box->peer == NULL) || (box->rx.place == NULL)) {
        return false;
    }
    if (dice < 80) {
        damage(fault->kind, draw, (char *)(uintptr_t)box->rx.place, 16u << draw_below(draw, 7));
    } else if (dice < 95) {
        damage(fault->kind, draw, (char *)box->rx.box, 2 * sizeof(uint64_t));
    } else {
        damage(FAULT_ZERO, draw, (char *)mailbox->region, UCI_MAILBOX_BELLS);
    }
    return true;
}

void faults_hit_memory(unsigned node)
{
    uci_worker_t *worker = fake_net.nodes[node].worker;
    uint64_t number      = turns[node]++;
    bool allowed         = (scenario->classes & FAULTS_MEMORY) && (in_a_row[node][1] < MEMORY_HITS);
    fault_t fault;
    draw_t draw;

    ++faults_counts->turns;
    if (((worker->link.bounce.slots == NULL) && (worker->link.mailbox.region == NULL)) ||
        !decide(SITE_MEMORY, node, node, number, allowed, &fault)) {
        return;
    }
    draw.state = fault.seed;
    if (draw_hits(&draw, 50) ? !hit_slot(worker, &fault, &draw) : !hit_mailbox(worker, &fault, &draw)) {
        return;
    }
    ++in_a_row[node][1];
    note(&fault);
    if (story != NULL) {
        fprintf(story, "%12.3f us  memory of node %u, turn %" PRIu64 "  *** %s\n",
                (double)(fake_net.clock % 1000000000000ul) / 1e3, node, number, fault_names[fault.kind]);
    }
}

/* -------------------------------------------------------------------- world */

void faults_begin(scenario_t *the_scenario, FILE *stream)
{
    scenario       = the_scenario;
    story          = stream;
    is_paused      = false;
    fake_net.hooks = (fake_hooks_t){on_sent, on_arrived, on_fetched, on_fetch_time};
    memset(hits, 0, sizeof(hits));
    memset(in_a_row, 0, sizeof(in_a_row));
    memset(fetches, 0, sizeof(fetches));
    memset(turns, 0, sizeof(turns));
    memset(history_next, 0, sizeof(history_next));
}

void faults_pause(bool paused)
{
    is_paused = paused;
}

void faults_end(void)
{
    unsigned way, i;

    for (way = 0; (way < WAYS) && (scenario->classes & FAULTS_STALE); ++way) {
        for (i = 0; i < HISTORY; ++i) {
            free(history[way][i].header);
            free(history[way][i].data);
            history[way][i] = (past_t){NULL, NULL, 0, 0, false, 0};
        }
    }
}
