/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks compare what they call. Numbers (statement.h) are added up by recursive doubling, in messages of 8 bytes: after as many rounds as ranks
 * have binary digits each of them has the sum. If it is not 0, the first rank gets everybody's words, looks for those that differ, and tells;
 * if all call the same, and it is messages between two ranks that do not match, it answers so, and each rank sends what it says of its messages to those
 * who receive them. MPI progresses all that; nothing here waits, but for uci_mpi_agree() of a call that blocks, and the end of MPI.
 */
#include "agree.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic_types.h"
#include "util/process.h"
#include "statement.h"

#define UCI_MPI_TAG_STEPS   64u /* tags of a call: its steps, and then these */
#define UCI_MPI_TAG_WORDS   60
#define UCI_MPI_TAG_VERDICT 61
#define UCI_MPI_TAG_EDGE    62
#define UCI_MPI_TAG_CALLS   (1u << 14)  /* calls of a communicator that may be compared at the same time */
#define UCI_MPI_SPINS       64u         /* turns of waiting between two looks at the clock, and at other calls */
#define UCI_MPI_KEPT_MAX    64u         /* calls of a communicator that are kept until they can be compared */
#define UCI_MPI_DRAIN_MAX   2000000000u /* ns: what all ranks have called is agreed about by then */

/* The words of a rank, as they travel */
typedef struct uci_mpi_words {
    char says[UCI_MPI_SAYS_MAX];
    uint64_t kind;
    uint64_t word, hash; /* of what is the same for all */
    uint64_t counts;
    int32_t root;
    uint32_t op;
    uint32_t differs; /* both of its own sides are not the same */
    uint32_t padding;
} uci_mpi_words_t;

/* What a rank says of a message */
typedef struct uci_mpi_edge_words {
    uint64_t word, hash;
    char says[UCI_SIGNATURE_DESCRIPTION_MAX];
} uci_mpi_edge_words_t;

typedef enum { UCI_MPI_STAGE_SUM, UCI_MPI_STAGE_WORDS, UCI_MPI_STAGE_VERDICT, UCI_MPI_STAGE_EDGES } uci_mpi_stage_t;

typedef enum { UCI_MPI_VERDICT_DONE, UCI_MPI_VERDICT_EDGES } uci_mpi_verdict_t;

/* A call that is being compared */
typedef struct uci_mpi_check {
    struct uci_mpi_check *next;
    uci_mpi_shadow_t *shadow;
    uci_mpi_statement_t statement;
    unsigned tag;
    bool is_started;
    bool is_done;
    bool has_told; /* that it does not match */
    bool has_told_waiting;
    uci_mpi_stage_t stage;
    unsigned step;
    bool replaces; /* what comes is the sum, not a part of it */
    int from;      /* whom it waits for, or -1 */
    uint64_t sum, incoming, outgoing;
    uint32_t verdict;
    MPI_Request few[2];
    MPI_Request *requests; /* `few`, or memory */
    int request_count, request_limit;
    void *incoming_words; /* of whatever stage */
    void *outgoing_words;
} uci_mpi_check_t;

unsigned uci_mpi_agree_pending;

static pthread_mutex_t uci_mpi_agree_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_mpi_check_t *uci_mpi_checks; /* those that nobody waits for */

/* This thread has the lock, and MPI may call back: a communicator that its program has freed goes for good when what is under way on it ends,
 * which may be in a call of ours */
static __thread bool uci_mpi_agree_inside;

/* Of communicators that are gone: added by anybody; who has the lock takes all of them, and puts back those on which a call is still compared */
static uci_mpi_shadow_t *uci_mpi_ended;

static void uci_mpi_agree_enter(void)
{
    pthread_mutex_lock(&uci_mpi_agree_lock);
    uci_mpi_agree_inside = true;
}

static void uci_mpi_agree_leave(void)
{
    uci_mpi_agree_inside = false;
    pthread_mutex_unlock(&uci_mpi_agree_lock);
}

static void uci_mpi_check_requests(uci_mpi_check_t *check, int limit)
{
    MPI_Request *more = (limit > (int)uci_array_size(check->few)) ? calloc((size_t)limit, sizeof(*more)) : NULL;

    check->request_count = 0;
    check->request_limit = (more != NULL) ? limit : (int)uci_array_size(check->few);
    if (check->requests != check->few) {
        free(check->requests);
    }
    check->requests = (more != NULL) ? more : check->few;
}

static void uci_mpi_check_send(uci_mpi_check_t *check, const void *data, size_t size, int rank, unsigned step)
{
    if (check->request_count < check->request_limit) {
        PMPI_Isend(data, (int)size, MPI_BYTE, rank, (int)(check->tag + step), check->shadow->comm,
                   &check->requests[check->request_count++]);
    }
}

static void uci_mpi_check_recv(uci_mpi_check_t *check, void *data, size_t size, int rank, unsigned step)
{
    if (check->request_count < check->request_limit) {
        PMPI_Irecv(data, (int)size, MPI_BYTE, rank, (int)(check->tag + step), check->shadow->comm,
                   &check->requests[check->request_count++]);
    }
}

static bool uci_mpi_check_is_ready(uci_mpi_check_t *check)
{
    int done = 1;

    if (check->request_count > 0) {
        PMPI_Testall(check->request_count, check->requests, &done, MPI_STATUSES_IGNORE);
        if (done) {
            check->request_count = 0;
        }
    }
    return done;
}

/* A round of adding up: whom this rank sends its sum to, and from whom it gets one; -1: nobody */
typedef struct uci_mpi_round {
    int to, from;
    bool replaces;
} uci_mpi_round_t;

/* The largest power of two that is not above @a size */
static int uci_mpi_power(int size)
{
    int power = 1;

    while (power <= size / 2) {
        power *= 2;
    }
    return power;
}

/* Ranks above a power of two give theirs to a neighbour first, and get the sum from it last. @return false: there is no such round */
static bool uci_mpi_round_get(int rank, int size, unsigned step, uci_mpi_round_t *round)
{
    int power = uci_mpi_power(size), more = size - power, bit = (step > 0) ? 1 << (step - 1) : 0, place, partner;
    bool is_paired = (rank < 2 * more), is_given = is_paired && (rank % 2 == 0);

    *round = (uci_mpi_round_t){-1, -1, false};
    if (step == 0) {
        if (is_paired) {
            *(is_given ? &round->to : &round->from) = is_given ? rank + 1 : rank - 1;
        }
        return true;
    }
    if (bit < power) {
        if (!is_given) {
            place     = is_paired ? rank / 2 : rank - more;
            partner   = place ^ bit;
            round->to = round->from = (partner < more) ? (2 * partner) + 1 : partner + more;
        }
        return true;
    }
    if (bit > power) {
        return false;
    }
    round->replaces = is_given;
    if (is_paired) {
        *(is_given ? &round->from : &round->to) = is_given ? rank + 1 : rank - 1;
    }
    return true;
}

static void uci_mpi_check_absorb(uci_mpi_check_t *check)
{
    if (check->from >= 0) {
        check->sum  = check->replaces ? check->incoming : check->sum + check->incoming;
        check->from = -1;
    }
}

/* @return false: there was no round left */
static bool uci_mpi_check_next_round(uci_mpi_check_t *check)
{
    uci_mpi_round_t round;

    do {
        if (!uci_mpi_round_get(check->shadow->rank, check->shadow->size, check->step++, &round)) {
            return false;
        }
    } while ((round.to < 0) && (round.from < 0));
    check->from     = round.from;
    check->replaces = round.replaces;
    check->outgoing = check->sum;
    if (round.from >= 0) {
        uci_mpi_check_recv(check, &check->incoming, sizeof(check->incoming), round.from, check->step);
    }
    if (round.to >= 0) {
        uci_mpi_check_send(check, &check->outgoing, sizeof(check->outgoing), round.to, check->step);
    }
    return true;
}

static void uci_mpi_check_tell(uci_mpi_check_t *check, int rank, const char *says, int other_rank,
                               const char *other_says)
{
    const uci_signature_calls_t calls = {.verdict    = UCI_SIGNATURE_CALLS_DIFFER,
                                         .rank       = rank,
                                         .says       = says,
                                         .other_rank = other_rank,
                                         .other_says = other_says,
                                         .call       = check->statement.call,
                                         .group      = check->shadow->name};

    check->has_told = true;
    uci_mpi_tell(&calls);
}

static void uci_mpi_check_say(const uci_mpi_check_t *check, uci_mpi_words_t *words)
{
    const uci_mpi_statement_t *statement = &check->statement;

    *words = (uci_mpi_words_t){.kind    = statement->kind,
                               .word    = statement->own.word,
                               .hash    = statement->own.hash,
                               .counts  = statement->counts,
                               .root    = statement->root,
                               .op      = statement->op,
                               .differs = statement->has_other};
    uci_mpi_statement_describe(statement, words->says, sizeof(words->says));
}

static bool uci_mpi_words_match(const uci_mpi_words_t *words, const uci_mpi_words_t *other)
{
    return (words->kind == other->kind) && (words->root == other->root) && (words->op == other->op) &&
           (words->counts == other->counts) && !other->differs &&
           uci_mpi_signatures_match(words->word, words->hash, other->word, other->hash);
}

/* The first rank: does everybody say the same? The root is whom others are compared with, or this rank */
static uci_mpi_verdict_t uci_mpi_check_judge(uci_mpi_check_t *check, uci_mpi_words_t *words)
{
    int size = check->shadow->size, first = -1, others = 0, i;
    int reference = ((words[0].root >= 0) && (words[0].root < size)) ? words[0].root : 0;
    char says[UCI_MPI_SAYS_MAX + 64];

    for (i = 0; i < size; ++i) {
        words[i].says[sizeof(words[i].says) - 1] = '\0';
        if (!uci_mpi_words_match(&words[reference], &words[i])) {
            first = (first < 0) ? i : first;
            ++others;
        }
    }
    if (first < 0) {
        return UCI_MPI_VERDICT_EDGES;
    }
    if ((first == reference) && (size > 1)) {
        first = (reference > 0) ? 0 : 1; /* its own sides differ: somebody else's to compare with */
    }
    snprintf(says, sizeof(says), "%s", words[first].says);
    if (others > 1) {
        snprintf(says + strlen(says), sizeof(says) - strlen(says), " (%d more differ from rank %d)", others - 1,
                 reference);
    }
    uci_mpi_check_tell(check, reference, words[reference].says, first, says);
    return UCI_MPI_VERDICT_DONE;
}

/* @return false: there is no memory */
static bool uci_mpi_check_start_words(uci_mpi_check_t *check)
{
    int size = check->shadow->size, i;
    uci_mpi_words_t *words;

    check->stage          = UCI_MPI_STAGE_WORDS;
    check->outgoing_words = words = calloc((check->shadow->rank == 0) ? (size_t)size : 1, sizeof(*words));
    if (words == NULL) {
        return false;
    }
    uci_mpi_check_say(check, words);
    if (check->shadow->rank == 0) {
        uci_mpi_check_requests(check, size);
        for (i = 1; i < size; ++i) {
            uci_mpi_check_recv(check, &words[i], sizeof(*words), i, UCI_MPI_TAG_WORDS);
        }
    } else {
        uci_mpi_check_send(check, words, sizeof(*words), 0, UCI_MPI_TAG_WORDS);
        uci_mpi_check_recv(check, &check->verdict, sizeof(check->verdict), 0, UCI_MPI_TAG_VERDICT);
    }
    return true;
}

static void uci_mpi_check_start_verdict(uci_mpi_check_t *check)
{
    int i;

    check->stage = UCI_MPI_STAGE_VERDICT;
    if (check->shadow->rank == 0) {
        check->verdict = uci_mpi_check_judge(check, check->outgoing_words);
        for (i = 1; i < check->shadow->size; ++i) {
            uci_mpi_check_send(check, &check->verdict, sizeof(check->verdict), i, UCI_MPI_TAG_VERDICT);
        }
    }
}

static bool uci_mpi_check_start_edges(uci_mpi_check_t *check)
{
    const uci_mpi_edges_t *in = &check->statement.in, *out = &check->statement.out;
    uci_mpi_edge_words_t *incoming, *outgoing;
    size_t i;

    check->stage = UCI_MPI_STAGE_EDGES;
    free(check->outgoing_words);
    check->incoming_words = incoming = calloc(in->count + 1, sizeof(*incoming));
    check->outgoing_words = outgoing = calloc(out->count + 1, sizeof(*outgoing));
    if ((incoming == NULL) || (outgoing == NULL)) {
        return false;
    }
    uci_mpi_check_requests(check, (int)(in->count + out->count));
    for (i = 0; i < in->count; ++i) {
        uci_mpi_check_recv(check, &incoming[i], sizeof(incoming[i]), in->list[i].rank, UCI_MPI_TAG_EDGE);
    }
    for (i = 0; i < out->count; ++i) {
        outgoing[i].word = out->list[i].signature.word;
        outgoing[i].hash = out->list[i].signature.hash;
        uci_signature_describe(&out->list[i].signature, uci_mpi_code_name, outgoing[i].says, sizeof(outgoing[i].says));
        uci_mpi_check_send(check, &outgoing[i], sizeof(outgoing[i]), out->list[i].rank, UCI_MPI_TAG_EDGE);
    }
    return true;
}

static void uci_mpi_check_judge_edges(uci_mpi_check_t *check)
{
    char sends[UCI_MPI_SAYS_MAX], receives[UCI_MPI_SAYS_MAX], ours[UCI_SIGNATURE_DESCRIPTION_MAX];
    const uci_mpi_edges_t *in      = &check->statement.in;
    uci_mpi_edge_words_t *incoming = check->incoming_words;
    size_t i;

    for (i = 0; i < in->count; ++i) {
        const uci_mpi_edge_t *edge = &in->list[i];

        if (uci_mpi_signatures_match(edge->signature.word, edge->signature.hash, incoming[i].word, incoming[i].hash)) {
            continue;
        }
        incoming[i].says[sizeof(incoming[i].says) - 1] = '\0';
        uci_signature_describe(&edge->signature, uci_mpi_code_name, ours, sizeof(ours));
        snprintf(sends, sizeof(sends), "%s with %s for rank %d", check->statement.call, incoming[i].says,
                 check->shadow->rank);
        snprintf(receives, sizeof(receives), "%s with %s from rank %d", check->statement.call, ours, edge->rank);
        uci_mpi_check_tell(check, edge->rank, sends, check->shadow->rank, receives);
    }
}

/* A stage has ended. @return whether there is another one */
static bool uci_mpi_check_next_stage(uci_mpi_check_t *check)
{
    switch (check->stage) {
    case UCI_MPI_STAGE_SUM:
        uci_mpi_check_absorb(check);
        return uci_mpi_check_next_round(check) || ((check->sum != 0) && uci_mpi_check_start_words(check));
    case UCI_MPI_STAGE_WORDS:
        uci_mpi_check_start_verdict(check);
        return true;
    case UCI_MPI_STAGE_VERDICT:
        return (check->verdict == UCI_MPI_VERDICT_EDGES) && uci_mpi_check_start_edges(check);
    case UCI_MPI_STAGE_EDGES:
        uci_mpi_check_judge_edges(check);
        break;
    }
    return false;
}

static void uci_mpi_check_free(uci_mpi_check_t *check)
{
    uci_mpi_statement_clear(&check->statement);
    if (check->requests != check->few) {
        free(check->requests);
    }
    free(check->incoming_words);
    free(check->outgoing_words);
    free(check);
}

/* As far as it goes. Its lock is held */
static void uci_mpi_check_advance(uci_mpi_check_t *check)
{
    static const uci_signature_calls_t match = {.verdict = UCI_SIGNATURE_CALLS_MATCH};

    if (!check->is_started && !uci_mpi_shadow_is_made(check->shadow)) {
        return;
    }
    check->is_started = true;
    while (!check->is_done && uci_mpi_check_is_ready(check)) {
        if (!uci_mpi_check_next_stage(check)) {
            check->is_done = true;
            if (!check->has_told) {
                uci_mpi_tell(&match);
            }
        }
    }
}

/* This rank has been waiting for it for long */
static void uci_mpi_check_tell_waiting(uci_mpi_check_t *check, uint64_t since)
{
    uci_signature_calls_t calls = {.verdict    = UCI_SIGNATURE_CALLS_WAIT,
                                   .rank       = check->shadow->rank,
                                   .other_rank = check->from,
                                   .call       = check->statement.call,
                                   .group      = check->shadow->name};
    char says[UCI_MPI_SAYS_MAX];

    calls.seconds = (unsigned)((uci_process_time_ns() - since) / 1000000000u);
    if (check->has_told_waiting || (uci_mpi_wait_limit() == 0) || (calls.seconds < uci_mpi_wait_limit())) {
        return;
    }
    check->has_told_waiting = true;
    uci_mpi_statement_describe(&check->statement, says, sizeof(says));
    calls.says = says;
    uci_mpi_tell(&calls);
}

/* Calls on a communicator that never had one that blocks, where it takes that: they are not compared. NULL: on any. The lock is held */
static void uci_mpi_agree_drop(const uci_mpi_shadow_t *shadow)
{
    uci_mpi_check_t **link = &uci_mpi_checks, *check;

    while (*link != NULL) {
        check = *link;
        if (((shadow == NULL) || (check->shadow == shadow)) && !check->is_started &&
            (check->shadow->making == MPI_REQUEST_NULL) && !check->shadow->is_made) {
            *link = check->next;
            uci_mpi_check_free(check);
            __atomic_sub_fetch(&uci_mpi_agree_pending, 1, __ATOMIC_RELAXED);
        } else {
            link = &check->next;
        }
    }
}

/* Is a call on it compared, or it made? The lock is held */
static bool uci_mpi_agree_is_busy(uci_mpi_shadow_t *shadow)
{
    const uci_mpi_check_t *check;

    for (check = uci_mpi_checks; (check != NULL) && (check->shadow != shadow); check = check->next) {
    }
    return (check != NULL) || ((shadow->making != MPI_REQUEST_NULL) && !uci_mpi_shadow_is_made(shadow));
}

static void uci_mpi_ended_push(uci_mpi_shadow_t *shadow)
{
    shadow->next_ended = __atomic_load_n(&uci_mpi_ended, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&uci_mpi_ended, &shadow->next_ended, shadow, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

/* The lock is held. @return those on which nothing is compared any more */
static uci_mpi_shadow_t *uci_mpi_ended_take(void)
{
    uci_mpi_shadow_t *shadow = NULL, *next, *idle = NULL;

    if (__atomic_load_n(&uci_mpi_ended, __ATOMIC_RELAXED) != NULL) {
        shadow = __atomic_exchange_n(&uci_mpi_ended, NULL, __ATOMIC_ACQUIRE);
    }
    for (; shadow != NULL; shadow = next) {
        next = shadow->next_ended;
        uci_mpi_agree_drop(shadow);
        if (uci_mpi_agree_is_busy(shadow)) {
            uci_mpi_ended_push(shadow);
        } else {
            shadow->next_ended = idle;
            idle               = shadow;
        }
    }
    return idle;
}

/* Without the lock: with the copy go its attributes, whose callbacks are the program's */
static void uci_mpi_ended_free(uci_mpi_shadow_t *shadow)
{
    uci_mpi_shadow_t *next;

    for (; shadow != NULL; shadow = next) {
        next = shadow->next_ended;
        uci_mpi_shadow_free(shadow);
        __atomic_sub_fetch(&uci_mpi_agree_pending, 1, __ATOMIC_RELAXED);
    }
}

void uci_mpi_agree_poll(uint64_t since_ns)
{
    uci_mpi_check_t **link = &uci_mpi_checks, *check;
    uci_mpi_shadow_t *idle;

    uci_mpi_agree_enter();
    while (*link != NULL) {
        check = *link;
        uci_mpi_check_advance(check);
        if (since_ns != 0) {
            uci_mpi_check_tell_waiting(check, since_ns);
        }
        if (check->is_done) {
            *link = check->next;
            uci_mpi_check_free(check);
            __atomic_sub_fetch(&uci_mpi_agree_pending, 1, __ATOMIC_RELAXED);
        } else {
            link = &check->next;
        }
    }
    idle = uci_mpi_ended_take();
    uci_mpi_agree_leave();
    uci_mpi_ended_free(idle);
}

static uci_mpi_check_t *uci_mpi_check_create(const uci_mpi_collective_t *collective, uci_mpi_shadow_t *shadow)
{
    uci_mpi_check_t *check = calloc(1, sizeof(*check));

    if (check == NULL) {
        return NULL;
    }
    if (!uci_mpi_statement_make(&check->statement, collective, shadow)) {
        free(check);
        return NULL;
    }
    check->shadow        = shadow;
    check->tag           = (shadow->started++ % UCI_MPI_TAG_CALLS) * UCI_MPI_TAG_STEPS;
    check->from          = -1;
    check->requests      = check->few;
    check->request_limit = (int)uci_array_size(check->few);
    check->sum           = uci_mpi_statement_sum(&check->statement, shadow->rank, shadow->size);
    return check;
}

/* Turns of waiting: now and then, others are looked at, and the processor is somebody else's */
static void uci_mpi_agree_relax(unsigned *spins_p, uint64_t since)
{
    if (++*spins_p % UCI_MPI_SPINS == 0) {
        uci_mpi_agree_poll(since);
        sched_yield();
    }
}

static void uci_mpi_check_wait(uci_mpi_check_t *check)
{
    uint64_t since = uci_process_time_ns();
    unsigned spins = 0;

    while (!check->is_done) {
        uci_mpi_agree_enter();
        uci_mpi_check_advance(check);
        uci_mpi_agree_leave();
        if (!check->is_done) {
            uci_mpi_agree_relax(&spins, 0);
            if (spins % (1024 * UCI_MPI_SPINS) == 0) {
                uci_mpi_check_tell_waiting(check, since);
            }
        }
    }
    uci_mpi_check_free(check);
}

/* A program may never have one that blocks, which is what the others would wait for (uci_mpi_shadow_make()) */
static bool uci_mpi_is_kept(const uci_mpi_shadow_t *shadow)
{
    return shadow->is_made || (shadow->making != MPI_REQUEST_NULL) || (shadow->started < UCI_MPI_KEPT_MAX);
}

void uci_mpi_agree(const uci_mpi_collective_t *collective)
{
    uci_mpi_shadow_t *shadow;
    uci_mpi_check_t *check;

    if (collective->comm == MPI_COMM_NULL) {
        return; /* an error, which MPI tells */
    }
    shadow = uci_mpi_shadow_get(collective->comm, collective->blocks);
    if (shadow == NULL) {
        return;
    }
    uci_mpi_shadow_make(shadow, collective->comm, collective->blocks);
    check = uci_mpi_is_kept(shadow) ? uci_mpi_check_create(collective, shadow) : NULL;
    if (check == NULL) {
        return;
    }
    if (collective->blocks) {
        uci_mpi_check_wait(check);
        return;
    }
    uci_mpi_agree_enter();
    uci_mpi_check_advance(check);
    check->next    = uci_mpi_checks;
    uci_mpi_checks = check;
    __atomic_add_fetch(&uci_mpi_agree_pending, 1, __ATOMIC_RELAXED);
    uci_mpi_agree_leave();
}

/* Nothing waits here, for others may wait for what this thread does next: what is still compared is freed by who gets on with that */
void uci_mpi_agree_end(uci_mpi_shadow_t *shadow)
{
    uci_mpi_shadow_t *idle;

    __atomic_add_fetch(&uci_mpi_agree_pending, 1, __ATOMIC_RELAXED);
    uci_mpi_ended_push(shadow);
    if (uci_mpi_agree_inside || (pthread_mutex_trylock(&uci_mpi_agree_lock) != 0)) {
        return;
    }
    uci_mpi_agree_inside = true;
    idle                 = uci_mpi_ended_take();
    uci_mpi_agree_leave();
    uci_mpi_ended_free(idle);
}

/* Until nothing is compared any more */
static bool uci_mpi_agree_drain(void)
{
    uint64_t since = uci_process_time_ns();

    uci_mpi_agree_enter();
    uci_mpi_agree_drop(NULL);
    uci_mpi_agree_leave();
    while (__atomic_load_n(&uci_mpi_agree_pending, __ATOMIC_RELAXED) > 0) {
        uci_mpi_agree_poll(since);
        sched_yield();
        if (uci_process_time_ns() - since > UCI_MPI_DRAIN_MAX) {
            return false;
        }
    }
    return true;
}

/* What others have never come to. Their requests stay, as those of a program that ends so would */
static void uci_mpi_agree_tell_rest(void)
{
    uci_mpi_check_t *check;
    char says[UCI_MPI_SAYS_MAX];

    uci_mpi_agree_enter();
    for (check = uci_mpi_checks; check != NULL; check = check->next) {
        if (!check->has_told) {
            uci_mpi_statement_describe(&check->statement, says, sizeof(says));
            uci_mpi_check_tell(check, check->shadow->rank, says, check->from, "MPI_Finalize, and not this");
        }
    }
    uci_mpi_agree_leave();
}

/* The beginning and the end are as collectives of all ranks */
static void uci_mpi_agree_world(const char *call)
{
    uci_mpi_agree(&(const uci_mpi_collective_t){
            .call = call, .flow = UCI_MPI_NO_DATA, .blocks = true, .comm = MPI_COMM_WORLD, .root = UCI_MPI_NO_ROOT});
}

/* What the program and its libraries do in their callbacks comes before the end, and others may wait for it before they come to theirs */
static int uci_mpi_agree_on_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_agree_world("MPI_Finalize");
    if (uci_mpi_agree_drain()) {
        uci_mpi_shadow_finalize();
    } else {
        uci_mpi_agree_tell_rest();
    }
    return MPI_SUCCESS;
}

void uci_mpi_agree_init(void)
{
    if (uci_mpi_compares_collectives()) {
        uci_mpi_at_finalize(uci_mpi_agree_on_finalize);
        uci_mpi_agree_world("MPI_Init");
    }
}
