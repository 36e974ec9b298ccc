/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Batches of twins: what is put in comes out, whatever the sizes; whatever is changed on the way is refused.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/twin/twin_batch.c"

enum { MAX_ENTRIES = 5000 };

/* One entry, as it was put or as it came out; values one by one */
typedef struct {
    unsigned type;
    uint32_t a, b, form;
    uint64_t tag, mask, length;
    uci_twin_message_t message;
} entry_t;

typedef struct {
    entry_t entries[MAX_ENTRIES];
    size_t count;
    size_t fail_at; /* the callback of this one returns an error */
} entries_t;

static entries_t put_in, came_out;
static uint64_t buffer[UCI_TWIN_BATCH_MAX / sizeof(uint64_t)];
static uint64_t seed;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed >> 33;
}

static uci_status_t keep(entries_t *entries, const entry_t *entry)
{
    cr_assert(entries->count < MAX_ENTRIES);
    entries->entries[entries->count++] = *entry;
    return (entries->count == entries->fail_at) ? UCI_ERR_BUSY : UCI_OK;
}

static uci_status_t got_define(void *arg, const uci_twin_define_t *define)
{
    entry_t entry = {.type = UCI_TWIN_ENTRY_DEFINE, .a = define->index, .b = define->source, .tag = define->tag};

    return keep(arg, &entry);
}

static uci_status_t got_values(void *arg, const uci_twin_values_t *values)
{
    uci_status_t status = UCI_OK;
    unsigned i;

    for (i = 0; (i < values->entry.count) && (status == UCI_OK); ++i) {
        entry_t entry = {.type   = UCI_TWIN_ENTRY_VALUES,
                         .a      = values->channel,
                         .b      = values->number + i,
                         .form   = values->form,
                         .tag    = values->digests[i],
                         .length = values->length};

        status = keep(arg, &entry);
    }
    return status;
}

static uci_status_t got_choice(void *arg, const uci_twin_choice_t *choice)
{
    entry_t entry = {.type    = UCI_TWIN_ENTRY_CHOICE,
                     .a       = choice->number,
                     .tag     = choice->tag,
                     .mask    = choice->mask,
                     .message = choice->message};

    return keep(arg, &entry);
}

static uci_status_t got_probe(void *arg, const uci_twin_probe_t *probe)
{
    entry_t entry = {.type    = UCI_TWIN_ENTRY_PROBE,
                     .a       = probe->number,
                     .b       = probe->removed,
                     .tag     = probe->tag,
                     .mask    = probe->mask,
                     .message = probe->message};

    return keep(arg, &entry);
}

static uci_status_t got_answer(void *arg, const uci_twin_answer_t *answer)
{
    entry_t entry = {.type = UCI_TWIN_ENTRY_ANSWER,
                     .a    = answer->kind,
                     .b    = answer->number,
                     .tag  = answer->words[0],
                     .mask = answer->words[1]};

    return keep(arg, &entry);
}

static uci_status_t got_done(void *arg, const uci_twin_done_t *done)
{
    entry_t entry = {.type = UCI_TWIN_ENTRY_DONE};

    return keep(arg, &entry);
}

static const uci_twin_batch_ops_t ops = {got_define, got_values, got_choice, got_probe, got_answer, got_done};

static bool put(uci_twin_batch_t *batch, const entry_t *entry)
{
    uci_twin_value_t value = {entry->tag, entry->length, entry->form};

    switch (entry->type) {
    case UCI_TWIN_ENTRY_DEFINE:
        return uci_twin_batch_put_define(batch, entry->a, entry->b, entry->tag);
    case UCI_TWIN_ENTRY_VALUES:
        return uci_twin_batch_put_value(batch, entry->a, entry->b, &value);
    case UCI_TWIN_ENTRY_CHOICE:
        return uci_twin_batch_put_choice(batch, entry->tag, entry->mask, entry->a, &entry->message);
    case UCI_TWIN_ENTRY_PROBE:
        return uci_twin_batch_put_probe(batch, entry->tag, entry->mask, entry->a, &entry->message, entry->b);
    case UCI_TWIN_ENTRY_ANSWER:
        return uci_twin_batch_put_answer(batch, entry->a, entry->b, (const uint64_t[]){entry->tag, entry->mask});
    default:
        return uci_twin_batch_put_done(batch);
    }
}

/* The next entry: most are values, of runs of all lengths */
static entry_t make_entry(void)
{
    static entry_t run   = {.type = UCI_TWIN_ENTRY_VALUES};
    static unsigned left = 0;
    entry_t entry        = {.type = 1 + (unsigned)next_random() % (UCI_TWIN_ENTRY_LAST - 1)};

    if (left > 0) {
        --left;
        ++run.b;
        run.tag = next_random() << 32;
        return run;
    }
    switch (entry.type) {
    case UCI_TWIN_ENTRY_VALUES:
        left = (unsigned)next_random() % ((next_random() % 4 == 0) ? 500 : 3);
        switch (next_random() % 4) { /* what ends a run */
        case 0:
            run.a = (uint32_t)next_random();
            break;
        case 1:
            run.b = (uint32_t)(0u - next_random() % 10);
            break;
        case 2:
            run.form = (uint32_t)next_random();
            break;
        default:
            run.length = next_random();
        }
        return run;
    case UCI_TWIN_ENTRY_DEFINE:
    case UCI_TWIN_ENTRY_CHOICE:
    case UCI_TWIN_ENTRY_PROBE:
        entry.a   = (uint32_t)next_random();
        entry.b   = (entry.type == UCI_TWIN_ENTRY_CHOICE) ? 0 : (uint32_t)next_random() % 2;
        entry.tag = next_random() << 31 | next_random();
        break;
    default:
        break;
    }
    if ((entry.type == UCI_TWIN_ENTRY_CHOICE) || (entry.type == UCI_TWIN_ENTRY_PROBE)) {
        entry.mask = next_random() << 31;
    }
    if (entry.type == UCI_TWIN_ENTRY_ANSWER) {
        entry = (entry_t){.type = entry.type,
                          .a    = (uint32_t)next_random() % UCI_TWIN_ANSWER_KINDS,
                          .b    = (uint32_t)next_random(),
                          .tag  = next_random(),
                          .mask = next_random()};
    }
    if ((entry.type == UCI_TWIN_ENTRY_CHOICE) || (entry.type == UCI_TWIN_ENTRY_PROBE)) {
        entry.message = (uci_twin_message_t){next_random() << 31, (uint32_t)next_random(), (uint32_t)next_random()};
    }
    return entry;
}

static uci_status_t read_batch(const void *bytes, size_t length, uint32_t number, const char **reason_p)
{
    came_out.count = 0;
    return uci_twin_batch_read(bytes, length, 2, number, &ops, &came_out, reason_p);
}

/* Those of all that was put in */
static void check_values_alone(size_t length)
{
    size_t i, k = 0;

    came_out.count = 0;
    cr_assert(uci_twin_batch_visit_values(buffer, length, got_values, &came_out) == UCI_OK);
    for (i = 0; i < put_in.count; ++i) {
        if (put_in.entries[i].type == UCI_TWIN_ENTRY_VALUES) {
            cr_assert(memcmp(&came_out.entries[k++], &put_in.entries[i], sizeof(entry_t)) == 0);
        }
    }
    cr_assert(came_out.count == k);
}

Test(twin_batch, what_is_put_in_comes_out)
{
    static const size_t sizes[] = {UCI_TWIN_BATCH_MIN, UCI_TWIN_BATCH_MIN + 8, 1024, 8192};
    uci_twin_batch_t batch;
    const char *reason;
    entry_t entry;
    uint32_t number;
    size_t i, length;

    seed = 1;
    for (i = 0; i < uci_array_size(sizes); ++i) {
        uci_twin_batch_init(&batch, buffer, sizes[i], 2);
        entry = make_entry();
        for (number = 0; number < 500; ++number) {
            put_in.count = 0;
            cr_assert(uci_twin_batch_is_empty(&batch));
            while (put(&batch, &entry)) {
                keep(&put_in, &entry);
                entry = make_entry();
            }
            cr_assert(!uci_twin_batch_is_empty(&batch));
            length = uci_twin_batch_seal(&batch);
            cr_assert(length <= sizes[i]);
            cr_assert(sizes[i] - length < sizeof(uci_twin_probe_t), "full");
            cr_assert(read_batch(buffer, length, number, &reason) == UCI_OK, "%s", reason);
            cr_assert(came_out.count == put_in.count);
            cr_assert(memcmp(came_out.entries, put_in.entries, put_in.count * sizeof(entry_t)) == 0);
            check_values_alone(length);
            uci_twin_batch_next(&batch, buffer);
        }
    }
}

Test(twin_batch, values_one_after_the_other_take_8_bytes)
{
    enum { COUNT = 100000 }; /* more than fit into an entry */
    uci_twin_value_t value = {0, 8, 1};
    uci_twin_batch_t batch;
    const char *reason;
    size_t length, seen;
    uint32_t i;

    uci_twin_batch_init(&batch, buffer, sizeof(buffer), 2);
    for (i = 0; i < COUNT; ++i) {
        value.digest = i;
        cr_assert(uci_twin_batch_put_value(&batch, 3, i - 50, &value));
    }
    length = uci_twin_batch_seal(&batch);
    cr_expect(length <= 8 * COUNT + 100, "%zu", length);
    came_out.count   = 0;
    came_out.fail_at = MAX_ENTRIES - 1; /* no more are kept */
    cr_expect(read_batch(buffer, length, 0, &reason) == UCI_ERR_BUSY);
    cr_expect(reason == NULL);
    seen = came_out.count;
    cr_expect(seen == MAX_ENTRIES - 1);
    for (i = 0; i < seen; ++i) {
        cr_assert((came_out.entries[i].b == i - 50) && (came_out.entries[i].tag == i));
    }
}

Test(twin_batch, an_error_of_a_function_ends_it)
{
    uci_twin_batch_t batch;
    const char *reason = "";
    size_t length;

    uci_twin_batch_init(&batch, buffer, 1024, 2);
    uci_twin_batch_put_done(&batch);
    uci_twin_batch_put_done(&batch);
    uci_twin_batch_put_done(&batch);
    length           = uci_twin_batch_seal(&batch);
    came_out.fail_at = 2;
    cr_expect(read_batch(buffer, length, 0, &reason) == UCI_ERR_BUSY);
    cr_expect((reason == NULL) && (came_out.count == 2));
}

Test(twin_batch, an_error_of_a_function_ends_the_visit_of_values)
{
    uci_twin_value_t value = {1, 2, 3};
    uci_twin_batch_t batch;
    uint32_t i;

    uci_twin_batch_init(&batch, buffer, 1024, 2);
    for (i = 0; i < 5; ++i) {
        uci_twin_batch_put_value(&batch, i, 0, &value); /* each by itself */
    }
    came_out.count   = 0;
    came_out.fail_at = 2;
    cr_expect(uci_twin_batch_visit_values(buffer, uci_twin_batch_seal(&batch), got_values, &came_out) == UCI_ERR_BUSY);
    cr_expect(came_out.count == 2);
}

static void expect_refused(const void *bytes, size_t length, uint32_t number, const char *part)
{
    const char *reason = NULL;

    cr_expect(read_batch(bytes, length, number, &reason) == UCI_ERR_INVALID_PARAM, "%s", part);
    cr_assert(reason != NULL);
    cr_expect(strstr(reason, part) != NULL, "'%s' instead of '%s'", reason, part);
    cr_expect(came_out.count == 0);
}

/* Change something and make the check right again, as another build would */
static void reseal(void)
{
    uci_twin_batch_head_t *head = (void *)buffer;

    head->check = uci_twin_batch_check(buffer, head->length);
}

Test(twin_batch, bad_input_is_refused_with_the_reason)
{
    uci_twin_batch_head_t *head = (void *)buffer;
    uci_twin_entry_t *entry     = (void *)(head + 1);
    uci_twin_value_t value      = {1, 2, 3};
    uci_twin_batch_t batch;
    const char *reason;
    size_t length, bit, i;

    uci_twin_batch_init(&batch, buffer, 1024, 2);
    for (i = 0; i < 5; ++i) {
        uci_twin_batch_put_value(&batch, 3, (uint32_t)i, &value);
    }
    length = uci_twin_batch_seal(&batch);
    cr_expect(read_batch(buffer, length, 0, &reason) == UCI_OK);
    for (bit = 0; bit < 8 * length; ++bit) {
        ((uint8_t *)buffer)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        cr_assert(read_batch(buffer, length, 0, &reason) == UCI_ERR_INVALID_PARAM, "bit %zu", bit);
        cr_assert((reason != NULL) && (came_out.count == 0));
        ((uint8_t *)buffer)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (i = 0; i < length; ++i) {
        expect_refused(buffer, i, 0, (i < sizeof(*head)) ? "shorter" : "as long as it says");
    }
    expect_refused((uint8_t *)buffer + 1, length, 0, "multiple of 8");
    expect_refused(buffer, length, 1, "missing");

    head->magic ^= 1;
    expect_refused(buffer, length, 0, "byte order");
    head->magic ^= 1;
    head->version = 2;
    expect_refused(buffer, length, 0, "another version");
    head->version = 1;
    head->twin    = 1;
    reseal();
    expect_refused(buffer, length, 0, "another twin");
    head->twin   = 2;
    entry->count = 6;
    reseal();
    expect_refused(buffer, length, 0, "not whole");
    entry->count = 0;
    reseal();
    expect_refused(buffer, length, 0, "not whole");
    entry->count = 5;
    entry->type  = UCI_TWIN_ENTRY_DONE;
    reseal();
    expect_refused(buffer, length, 0, "not whole");
    entry->type = UCI_TWIN_ENTRY_LAST;
    reseal();
    expect_refused(buffer, length, 0, "no type");
    entry->type = 0;
    reseal();
    expect_refused(buffer, length, 0, "no type");
    entry->type  = UCI_TWIN_ENTRY_VALUES;
    entry->count = 4; /* the last digest is taken for an entry */
    reseal();
    expect_refused(buffer, length, 0, "no type that this version knows");
}
