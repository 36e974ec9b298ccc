/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Batches of another twin, with their check made right (a peer can do that) or not: whatever is read is refused with a reason, or all entries
 * lie inside, and votes can be cast with them, within the limit on memory.
 */
#include <stdlib.h>
#include <string.h>

#include "digest/digest.h"
#include "util/log.h"
#include "twin/twin_batch.h"

/* Not declared: what votes use */
#include "../../core/twin/twin_votes.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20, CHECK = 16 /* offset of the check in a batch */ };

typedef struct {
    const uint8_t *start, *end;
    uci_twin_votes_t *votes;
} reader_t;

static void must_lie_inside(const reader_t *reader, const void *entry, size_t size)
{
    const uint8_t *bytes = entry;

    if ((bytes < reader->start) || (bytes > reader->end) || ((size_t)(reader->end - bytes) < size)) {
        abort();
    }
}

/* Refusing is the votes' right, and the reading goes on */
static uci_status_t on_define(void *arg, const uci_twin_define_t *define)
{
    reader_t *reader = arg;
    bool is_new;

    must_lie_inside(reader, define, sizeof(*define));
    if ((uci_twin_votes_define(reader->votes, 1, define->index, define->source, define->tag) == UCI_OK) &&
        (define->tag & 1)) {
        uci_twin_votes_channel(reader->votes, define->source, define->tag, &is_new);
    }
    return UCI_OK;
}

static uci_status_t on_values(void *arg, const uci_twin_values_t *values)
{
    reader_t *reader       = arg;
    uci_twin_value_t value = {0, values->length, values->form};
    unsigned i;

    must_lie_inside(reader, values, sizeof(*values) + (values->entry.count * sizeof(uint64_t)));
    uci_twin_votes_add_run(reader->votes, 1, values->channel, values->number, &value, values->digests,
                           values->entry.count);
    for (i = 0; i < values->entry.count; ++i) {
        value.digest = values->digests[i];
        if (value.digest & 1) { /* the same index is another channel of ours, or none */
            uci_twin_votes_add(reader->votes, 0, values->channel, values->number + i, &value, reader);
        }
    }
    if (reader->votes->bytes > LIMIT) {
        abort();
    }
    return UCI_OK;
}

static uci_status_t on_choice(void *arg, const uci_twin_choice_t *choice)
{
    must_lie_inside(arg, choice, sizeof(*choice));
    return UCI_OK;
}

static uci_status_t on_probe(void *arg, const uci_twin_probe_t *probe)
{
    must_lie_inside(arg, probe, sizeof(*probe));
    return UCI_OK;
}

static uci_status_t on_answer(void *arg, const uci_twin_answer_t *answer)
{
    must_lie_inside(arg, answer, sizeof(*answer));
    return UCI_OK;
}

static uci_status_t on_done(void *arg, const uci_twin_done_t *done)
{
    reader_t *reader = arg;

    must_lie_inside(reader, done, sizeof(*done));
    uci_twin_votes_lose(reader->votes, 1);
    return UCI_OK;
}

static void on_verdict(void *arg, const uci_twin_verdict_t *verdict)
{
    if ((verdict->outcome > UCI_TWIN_ALONE) || (verdict->wrong != -1) || (verdict->have == 0) || (verdict->have > 3)) {
        abort();
    }
}

/* Head, length and check as they must be, for the entries that the fuzzer made */
static void make_right(uint8_t *bytes, size_t size)
{
    static const uint8_t head[] = {'U', 'C', 'I', 't', 1, 0, 1, 0, 0, 0, 0, 0};
    uint32_t length             = (uint32_t)size;
    uint64_t check              = 0;

    memcpy(bytes, head, sizeof(head));
    memcpy(bytes + sizeof(head), &length, sizeof(length));
    memcpy(bytes + CHECK, &check, sizeof(check));
    check = uci_digest_table[UCI_DIGEST_XXH3].digest(bytes, size);
    memcpy(bytes + CHECK, &check, sizeof(check));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uci_twin_batch_ops_t ops = {on_define, on_values, on_choice, on_probe, on_answer, on_done};
    const char *reason                    = NULL;
    reader_t reader                       = {0};
    uint8_t *copy;

    uci_log_level = UCI_LOG_FATAL;
    copy          = malloc((size > 0) ? size : 1); /* no byte more, for ASan to see */
    if ((copy == NULL) || (uci_twin_votes_create(2, 0, LIMIT, on_verdict, NULL, &reader.votes) != UCI_OK)) {
        abort();
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    if ((size >= CHECK + sizeof(uint64_t)) && (data[0] != 'U')) {
        make_right(copy, size);
    }
    reader.start = copy;
    reader.end   = copy + size;
    if ((uci_twin_batch_read(copy, size, 1, 0, &ops, &reader, &reason) != UCI_OK) &&
        ((reason == NULL) || (*reason == '\0'))) {
        abort();
    }
    uci_twin_votes_destroy(reader.votes);
    free(copy);
    return 0;
}
