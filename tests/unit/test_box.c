/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "box_yard.h"
#include "digest/digest.h"
#include "util/process.h"

#include <criterion/logging.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define ALL      (UCI_BOX_GRANULES + UCI_BOX_OVERFLOW)
#define FRAMES_N 1000000u

/* As if that many granules had gone through: a multiple of the ring */
static void both_seek(uci_box_tx_t *tx, uci_box_rx_t *rx, uint64_t lap)
{
    tx->lap      = lap;
    tx->consumed = lap;
    tx->mark     = tx->keys.mark + lap * UCI_BOX_MARK_STEP;
    uci_box_rx_begin_lap(rx, lap);
}

/* --- one thread --- */

Test(box, a_frame_is_taken_as_it_was_posted)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint64_t mark = 0;
    char *place;
    wire_t wire;

    memset(box, 0xFF, sizeof(*box));
    both_init(&tx, &rx, box, KEY);
    cr_expect(uci_box_rx_peek(&rx) == NULL, "what lies in the memory is no frame");
    cr_expect(uci_box_tx_position(&tx) == 0 && uci_box_rx_position(&rx) == 0);

    place = uci_box_tx_place(&tx, 48, &mark);
    cr_assert(place == box->ring);
    cr_expect(uci_box_tx_place(&tx, 48, &mark) == place, "asking for a place reserves nothing");
    cr_expect(uci_box_rx_peek(&rx) == NULL);
    frame_fill(&wire, 48, 1);
    uci_box_tx_post(&tx, place, wire.bytes, 48, mark);
    cr_expect(uci_box_tx_position(&tx) == 1 && uci_box_rx_position(&rx) == 0);

    cr_assert(uci_box_rx_peek(&rx) == place);
    cr_expect(uci_box_rx_peek(&rx) == place, "a look takes nothing");
    cr_expect(uci_box_rx_mark(&rx) == mark);
    take_frame(&rx, 48, 1);
    cr_expect(uci_box_rx_position(&rx) == 1);
    cr_expect(uci_box_rx_peek(&rx) == NULL);
    yard_check(&yard);
}

Test(box, frames_of_each_length)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked;
    size_t total;

    both_init(&tx, &rx, box, KEY);
    for (total = 8; total <= UCI_BOX_FRAME_MAX; ++total) {
        cr_assert(send_frame(&tx, total, total), "%zu bytes", total);
        take_frame(&rx, total, total);
        cr_assert(uci_box_rx_peek(&rx) == NULL);
        cr_assert(uci_box_rx_position(&rx) == uci_box_tx_position(&tx));
        uci_box_rx_tell(&rx, (uint32_t)total);
        cr_assert(uci_box_tx_heard(&tx, &acked) && (acked == total));
    }
    yard_check(&yard);
}

/* The largest frame at each place; the last one ends where the box does, before a page that faults */
Test(box, the_largest_frame_at_each_place)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint64_t first, next;
    unsigned i;

    for (first = 0; first < UCI_BOX_GRANULES; ++first) {
        both_init(&tx, &rx, box, KEY + first);
        for (i = 0; i < first; ++i) {
            cr_assert(send_frame(&tx, 8, i));
            take_frame(&rx, 8, i);
        }
        uci_box_rx_tell(&rx, 0);
        cr_assert(send_frame(&tx, UCI_BOX_FRAME_MAX, 5), "at %lu", (unsigned long)first);
        take_frame(&rx, UCI_BOX_FRAME_MAX, 5);
        next = uci_min(first + UCI_BOX_OVERFLOW + 1, UCI_BOX_GRANULES);
        cr_assert(uci_box_tx_position(&tx) == next && uci_box_rx_position(&rx) == next, "at %lu", (unsigned long)first);
        uci_box_rx_tell(&rx, 0);
        cr_assert(send_frame(&tx, 8, 6));
        take_frame(&rx, 8, 6);
        cr_assert(uci_box_rx_position(&rx) == next + 1);
    }
    yard_check(&yard);
}

/* What the box should do, from the definition, granule by granule */
typedef struct model {
    uint8_t owned[ALL]; /**< granules of frames the sender does not know to be taken */
    struct {
        uint64_t position, granules, number;
        size_t total;
    } frames[UCI_BOX_GRANULES];
    uint64_t posted, taken, told, position, known;
} model_t;

static bool model_has_room(const model_t *model, uint64_t granules)
{
    uint64_t place = model->position % UCI_BOX_GRANULES, i;

    for (i = 0; i < granules; ++i) {
        if (model->owned[place + i]) {
            return false;
        }
    }
    return true;
}

static void model_post(model_t *model, size_t total)
{
    uint64_t index    = model->posted % UCI_BOX_GRANULES;
    uint64_t granules = (total + 63) / 64;

    model->frames[index].position = model->position;
    model->frames[index].granules = granules;
    model->frames[index].number   = model->posted++;
    model->frames[index].total    = total;
    memset(model->owned + model->position % UCI_BOX_GRANULES, 1, granules);
    while (granules-- > 0) {
        if (++model->position % UCI_BOX_GRANULES == 0) {
            break;
        }
    }
}

static void model_tell(model_t *model)
{
    uint64_t index;

    for (; model->told < model->taken; ++model->told) {
        index = model->told % UCI_BOX_GRANULES;
        memset(model->owned + model->frames[index].position % UCI_BOX_GRANULES, 0, model->frames[index].granules);
    }
}

static size_t random_total(uint64_t *state)
{
    uint64_t random = next_random(state);

    switch (random % 16) {
    case 0:
        return 8 + (random >> 8) % (UCI_BOX_FRAME_MAX - 7);
    case 1:
    case 2:
        return 8 + (random >> 8) % 1024;
    default:
        return 8 + (random >> 8) % 200;
    }
}

/* The ring is as full as it can be, empty, and everything between: bursts of random length on both sides */
Test(box, random_lengths_against_a_model)
{
    static model_t model;
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uint64_t state = 42, full = 0, wait, number, index, mark, before;
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked;
    size_t total;
    char *place;

    both_init(&tx, &rx, box, KEY);
    while (model.position < 300 * UCI_BOX_GRANULES) {
        for (wait = next_random(&state) % 400; wait > 0; --wait) {
            total = random_total(&state);
            place = uci_box_tx_place(&tx, total, &mark);
            cr_assert((place != NULL) == model_has_room(&model, (total + 63) / 64), "%zu bytes at %lu: %s", total,
                      (unsigned long)model.position, (place != NULL) ? "a place that is taken" : "not full");
            if (place == NULL) {
                ++full;
                break;
            }
            cr_assert(place == box->ring + model.position % UCI_BOX_GRANULES * 64);
            cr_assert(send_frame(&tx, total, model.posted));
            model_post(&model, total);
            cr_assert(uci_box_tx_position(&tx) == model.position);
        }
        for (wait = next_random(&state) % 400; (wait > 0) && (model.taken < model.posted); --wait) {
            index = model.taken % UCI_BOX_GRANULES;
            cr_assert(uci_box_rx_position(&rx) == model.frames[index].position);
            number = model.frames[index].number;
            take_frame(&rx, model.frames[index].total, number);
            ++model.taken;
        }
        cr_assert((model.taken < model.posted) || (uci_box_rx_peek(&rx) == NULL));
        if (next_random(&state) % 3 != 0) {
            uci_box_rx_tell(&rx, (uint32_t)model.taken);
            if (next_random(&state) % 2 != 0) {
                before = model.told;
                cr_assert(uci_box_tx_heard(&tx, &acked) || (before == model.taken));
                cr_assert(tx.consumed == uci_box_rx_position(&rx));
                cr_assert(!uci_box_tx_heard(&tx, &acked), "nothing new");
            }
            model_tell(&model);
        }
    }
    cr_expect(full > 100, "full %lu times: too seldom to prove anything", (unsigned long)full);
    yard_check(&yard);
}

Test(box, positions_beyond_32_bits)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uint64_t state = 7, lap = (1ull << 32) - 4 * UCI_BOX_GRANULES, number;
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked;
    size_t total;

    both_init(&tx, &rx, box, KEY);
    both_seek(&tx, &rx, lap);
    for (number = 0; uci_box_tx_position(&tx) < (1ull << 32) + 4 * UCI_BOX_GRANULES; ++number) {
        total = random_total(&state);
        cr_assert(send_frame(&tx, total, number), "at %lx", (unsigned long)uci_box_tx_position(&tx));
        take_frame(&rx, total, number);
        if (uci_box_rx_should_tell(&rx)) {
            uci_box_rx_tell(&rx, (uint32_t)number);
            cr_assert(uci_box_tx_heard(&tx, &acked) && (acked == (uint32_t)number));
            cr_assert(tx.consumed == uci_box_rx_position(&rx));
        }
    }
    yard_check(&yard);
}

Test(box, the_sender_is_told_in_time)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked = 0;
    unsigned i;

    both_init(&tx, &rx, box, KEY);
    cr_expect(!uci_box_rx_should_tell(&rx));
    for (i = 1; i <= 32; ++i) {
        cr_assert(!uci_box_rx_should_tell(&rx));
        cr_assert(send_frame(&tx, 64, i));
        take_frame(&rx, 64, i);
    }
    cr_expect(uci_box_rx_should_tell(&rx), "after 32 frames");
    cr_expect(!uci_box_tx_heard(&tx, &acked), "nothing was told");
    uci_box_rx_tell(&rx, 77);
    cr_expect(!uci_box_rx_should_tell(&rx));
    cr_expect(uci_box_tx_heard(&tx, &acked) && (acked == 77));
    cr_expect(!uci_box_tx_heard(&tx, &acked), "told once, heard once");
    uci_box_rx_tell(&rx, 78);
    cr_expect(uci_box_tx_heard(&tx, &acked) && (acked == 78), "a new number at the same position");

    for (i = 1; i <= 8; ++i) {
        cr_assert(!uci_box_rx_should_tell(&rx));
        cr_assert(send_frame(&tx, (UCI_BOX_GRANULES / 4) / 8 * UCI_BOX_GRANULE, i));
        take_frame(&rx, (UCI_BOX_GRANULES / 4) / 8 * UCI_BOX_GRANULE, i);
    }
    cr_expect(uci_box_rx_should_tell(&rx), "after a quarter of the ring");
    yard_check(&yard);
}

/* A quiet conversation stays in a few lines; what the receiver told before a lap was begun early is not heard after it */
Test(box, a_lap_is_begun_early)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked = 0;
    unsigned i, laps = 0;
    uint64_t before, mark;

    both_init(&tx, &rx, box, KEY);
    for (i = 1; i <= 10000; ++i) {
        before = uci_box_tx_position(&tx);
        uci_box_tx_rewind(&tx);
        laps += (uci_box_tx_position(&tx) != before);
        cr_assert(uci_box_tx_place(&tx, 64, &mark) <= box->ring + UCI_BOX_REWIND * UCI_BOX_GRANULE);
        cr_assert(send_frame(&tx, 64, i));
        take_frame(&rx, 64, i);
        cr_assert(uci_box_rx_position(&rx) == uci_box_tx_position(&tx));
        if (i % 777 == 0) {
            uci_box_rx_tell(&rx, i);
            cr_assert(uci_box_tx_heard(&tx, &acked) && (acked == i));
        }
    }
    cr_expect(laps == (10000 - 1) / UCI_BOX_REWIND, "%u laps", laps);

    uci_box_rx_tell(&rx, 1);
    for (i = 0; i < UCI_BOX_REWIND; ++i) {
        cr_assert(send_frame(&tx, 64, i));
        take_frame(&rx, 64, i);
    }
    uci_box_tx_rewind(&tx);
    cr_expect(!uci_box_tx_heard(&tx, &acked), "an older lap's");
    for (i = 0; send_frame(&tx, 64, i); ++i) {
    }
    cr_expect(i == UCI_BOX_GRANULES, "the whole ring is free: %u", i);
    for (i = 0; i < UCI_BOX_GRANULES; ++i) {
        take_frame(&rx, 64, i);
    }
    yard_check(&yard);
}

/* A frame whose mark or length is damaged is passed over: the next one is found by its mark, wherever it is; in the next lap too */
Test(box, the_next_mark_is_found)
{
    static const size_t totals[] = {8, 64, 65, 1000, UCI_BOX_FRAME_MAX};
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    unsigned i, round;
    char *hidden;

    both_init(&tx, &rx, box, KEY);
    for (round = 0; round < 3 * UCI_BOX_GRANULES / 20; ++round) {
        for (i = 0; i < sizeof(totals) / sizeof(totals[0]); ++i) {
            hidden = (char *)(uintptr_t)rx.place;
            cr_assert(send_frame(&tx, totals[i], 1));
            cr_assert(!uci_box_rx_skip(&rx), "there is none behind it");
            cr_assert((uci_box_rx_peek(&rx) != NULL) && (hidden[0] ^= 16, uci_box_rx_peek(&rx) == NULL));
            cr_assert(send_frame(&tx, 100, 2));
            cr_assert(uci_box_rx_peek(&rx) == NULL || uci_box_rx_peek(&rx) == box->ring,
                      "only a new lap is found without a search");
            cr_assert((uci_box_rx_peek(&rx) != NULL) || uci_box_rx_skip(&rx));
            take_frame(&rx, 100, 2);
            cr_assert(uci_box_rx_position(&rx) == uci_box_tx_position(&tx));
            uci_box_rx_tell(&rx, 1);
        }
    }
    yard_check(&yard);
}

/* A frame may come to the next place after the last look at it, before the search: then those behind it are there as well */
Test(box, the_next_place_is_looked_at_once_more)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;

    both_init(&tx, &rx, box, KEY);
    cr_assert(uci_box_rx_peek(&rx) == NULL);
    cr_assert(send_frame(&tx, 64, 1) && send_frame(&tx, 64, 2));
    cr_assert(uci_box_rx_skip(&rx));
    take_frame(&rx, 64, 1);
    take_frame(&rx, 64, 2);
    yard_check(&yard);
}

/* Where a lap went on behind a frame that is hidden, and the next one has been begun, none is lost: they are found from where it was left */
Test(box, frames_that_were_passed_by_are_found)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uint64_t mark, position;
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    unsigned i, sent, found = 0;

    both_init(&tx, &rx, box, KEY);
    for (i = 0; i < 100; ++i) {
        cr_assert(send_frame(&tx, 64, i));
        take_frame(&rx, 64, i);
    }
    uci_box_rx_tell(&rx, 1);
    for (sent = 0; send_frame(&tx, 1000, sent); ++sent) {
    }
    ((char *)(uintptr_t)rx.place)[0] ^= 16;
    cr_assert(uci_box_rx_peek(&rx) == box->ring, "the next lap");
    position = rx.left;
    while (uci_box_rx_find(&rx, &position, uci_box_rx_lap_end(&rx, rx.left), &mark) != NULL) {
        cr_assert(position <= UCI_BOX_GRANULES);
        ++found;
    }
    cr_expect(found > 200);
    cr_expect(found == (UCI_BOX_GRANULES - 100 + 15) / 16 - 1, "%u of those of the lap, all but the hidden one", found);
    take_frame(&rx, 1000, found + 1);
    yard_check(&yard);
}

/* Wherever its sender is, ahead in the same lap or some laps on: what it posts from there on is taken */
Test(box, resumed_where_the_sender_is)
{
    const uint64_t steps[] = {1, 17, 1000, UCI_BOX_GRANULES - 1, UCI_BOX_GRANULES, 3 * UCI_BOX_GRANULES + 5};
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked;
    unsigned i, j, k = 0;

    both_init(&tx, &rx, box, KEY);
    for (i = 0; i < sizeof(steps) / sizeof(*steps); ++i) {
        for (j = 0; j < steps[i]; ++j) {
            cr_assert(send_frame(&tx, 64, ++k));
            uci_box_rx_resume(&rx, uci_box_tx_position(&tx));
            uci_box_rx_tell(&rx, k);
            (void)uci_box_tx_heard(&tx, &acked);
        }
        cr_assert(uci_box_rx_position(&rx) == uci_box_tx_position(&tx));
        cr_assert(uci_box_rx_peek(&rx) == NULL);
        cr_assert(send_frame(&tx, 1000, ++k));
        take_frame(&rx, 1000, k);
    }
    uci_box_rx_resume(&rx, UINT64_MAX);
    cr_expect((rx.place >= box->ring) && (rx.place < rx.end), "what it says may be anything");
    (void)uci_box_rx_peek(&rx);
    yard_check(&yard);
}

/* It is not true that all has been taken: what was not is skipped, and nothing else happens */
Test(box, a_lap_is_begun_too_early)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    unsigned i;

    both_init(&tx, &rx, box, KEY);
    for (i = 0; i < UCI_BOX_REWIND + 10; ++i) {
        cr_assert(send_frame(&tx, 64, i));
    }
    uci_box_tx_rewind(&tx);
    for (i = 0; i < 20; ++i) {
        cr_assert(send_frame(&tx, 64, 1000 + i)); /* over those that were not taken */
    }
    for (i = 0; i < 20; ++i) {
        take_frame(&rx, 64, 1000 + i);
    }
    cr_expect(uci_box_rx_peek(&rx) == NULL);
    yard_check(&yard);
}

/* Shared memory is not looked at as long as what is known is enough; and a full box tells so until there is news */
Test(box, a_full_box)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint64_t mark, i;

    both_init(&tx, &rx, box, KEY);
    for (i = 0; i < UCI_BOX_GRANULES; ++i) {
        cr_assert(send_frame(&tx, 48, i), "frame %lu", (unsigned long)i);
    }
    cr_expect(!send_frame(&tx, 8, i));
    cr_expect(!send_frame(&tx, UCI_BOX_FRAME_MAX, i));
    for (i = 0; i < 10; ++i) {
        take_frame(&rx, 48, i);
    }
    cr_expect(!send_frame(&tx, 8, i), "taken, but not told");
    uci_box_rx_tell(&rx, 0);
    cr_expect(uci_box_tx_place(&tx, 641, &mark) == NULL, "11 granules, 10 are free");
    cr_expect(uci_box_tx_place(&tx, 640, &mark) == box->ring);
    box->consumed = 0;
    for (i = 0; i < 10; ++i) {
        cr_expect(send_frame(&tx, 48, i), "known to be free");
    }
    cr_expect(!send_frame(&tx, 48, i));
    uci_box_rx_tell(&rx, 0);
    cr_expect(!send_frame(&tx, 48, i));
    yard_check(&yard);
}

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Marks of successive keys and of many laps, all different; and of those that come to lie at the same place, none is
 * another one but for a few bits */
Test(box, marks_differ)
{
    enum { KEYS = 16, LAPS = 64 };
    size_t count = KEYS * LAPS * UCI_BOX_GRANULES, n = 0;
    uint64_t *marks = malloc(count * sizeof(*marks));
    int distance, least = 64;
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    unsigned key, lap, place, before;
    uint64_t at_place[LAPS];
    uci_box_rx_t rx;

    for (key = 0; key < KEYS; ++key) {
        uci_box_rx_init(&rx, box, UCI_BOX_GRANULES, key);
        for (lap = 0; lap < LAPS; ++lap) {
            for (place = 0; place < UCI_BOX_GRANULES; ++place) {
                marks[n++] = uci_box_rx_mark(&rx);
                uci_box_rx_next(&rx, 8);
            }
            at_place[lap] = marks[n - 1];
            for (before = 0; before < lap; ++before) {
                distance = __builtin_popcountll(at_place[lap] ^ at_place[before]);
                least    = uci_min(least, distance);
            }
        }
    }
    cr_assert(n == count);
    qsort(marks, count, sizeof(*marks), compare_words);
    for (n = 1; n < count; ++n) {
        cr_assert(marks[n - 1] != marks[n]);
    }
    cr_expect(least >= 8, "%d bits make one lap's mark the mark of another", least);
    free(marks);
    yard_check(&yard);
}

/* --- epochs and damage --- */

/* A box full of an older epoch's frames, and of all its marks in places where frames begin now */
Test(box, nothing_of_an_older_epoch_is_taken)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint64_t state = 3, epoch, number;
    uint32_t acked;
    size_t total;

    for (epoch = 0; epoch < 20; ++epoch) {
        both_init(&tx, &rx, box, KEY + epoch);
        cr_assert(!uci_box_tx_heard(&tx, &acked), "told in epoch %lu", (unsigned long)epoch - 1);
        cr_assert(tx.consumed == 0);
        for (number = 0; uci_box_tx_position(&tx) < 3 * UCI_BOX_GRANULES + 100; ++number) {
            cr_assert(uci_box_rx_peek(&rx) == NULL, "epoch %lu, frame %lu", (unsigned long)epoch,
                      (unsigned long)number);
            total = (epoch % 2 == 0) ? 64 : random_total(&state);
            cr_assert(send_frame(&tx, total, number));
            take_frame(&rx, total, number);
            if (uci_box_rx_should_tell(&rx)) {
                uci_box_rx_tell(&rx, (uint32_t)number);
            }
        }
        uci_box_rx_tell(&rx, (uint32_t)number);
    }
    yard_check(&yard);
}

/* Only one side has begun the new epoch: neither takes what the other one says */
Test(box, sides_of_different_epochs_do_not_understand_each_other)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint32_t acked;

    both_init(&tx, &rx, box, KEY);
    cr_assert(send_frame(&tx, 100, 1));
    uci_box_rx_init(&rx, box, UCI_BOX_GRANULES, KEY + 1);
    cr_expect(uci_box_rx_peek(&rx) == NULL, "posted in the old epoch");
    uci_box_rx_tell(&rx, 5);
    cr_expect(!uci_box_tx_heard(&tx, &acked), "told in the new one");
    uci_box_tx_init(&tx, box, UCI_BOX_GRANULES, KEY + 1);
    cr_expect(uci_box_tx_heard(&tx, &acked) && (acked == 5));
    cr_assert(send_frame(&tx, 100, 2));
    take_frame(&rx, 100, 2);
    yard_check(&yard);
}

static void flip(void *memory, unsigned bit)
{
    ((uint8_t *)memory)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Each bit of the first line, damaged after a tell that frees a full box */
Test(box, a_damaged_word_is_not_heard)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx, tx_before;
    uci_box_rx_t rx;
    bool consumed_hit, word_hit;
    uint32_t acked;
    uint64_t mark, number;
    unsigned bit;

    both_init(&tx, &rx, box, KEY);
    for (number = 0; number < UCI_BOX_GRANULES; ++number) {
        cr_assert(send_frame(&tx, 64, number));
    }
    for (number = 0; number < 40; ++number) {
        take_frame(&rx, 64, number);
    }
    uci_box_rx_tell(&rx, 1234);
    tx_before = tx;

    for (bit = 0; bit < 8 * UCI_CACHE_LINE; ++bit) {
        consumed_hit = bit < 64;
        word_hit     = bit < 128;
        tx           = tx_before;
        flip(box, bit);
        acked = 1;
        cr_assert(uci_box_tx_heard(&tx, &acked) == !word_hit, "bit %u", bit);
        cr_assert(acked == (word_hit ? 1u : 1234u));
        if (word_hit) {
            cr_assert(memcmp(&tx, &tx_before, sizeof(tx)) == 0, "bit %u has changed something", bit);
        }
        cr_assert((uci_box_tx_place(&tx, 64, &mark) == NULL) == consumed_hit, "bit %u", bit);
        take_frame(&rx, 64, number++); /* the receiver does not notice */

        uci_box_rx_tell(&rx, 1235); /* what is damaged is written anew */
        cr_assert(uci_box_tx_heard(&tx, &acked) && (acked == 1235), "bit %u", bit);
        cr_assert(tx.consumed == uci_box_rx_position(&rx));
        cr_assert(uci_box_tx_place(&tx, 64, &mark) != NULL);
        uci_box_rx_tell(&rx, 1234);
    }
    yard_check(&yard);
}

/* Both words, two bits at a time, with many values: what the mix is for */
Test(box, two_flipped_bits_are_not_heard)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uint64_t state = 99, saved[2];
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    unsigned round, first, second, i, passed = 0;
    uint32_t acked;

    both_init(&tx, &rx, box, KEY);
    for (round = 0; round < 200; ++round) {
        for (i = next_random(&state) % 40; i < 40; ++i) {
            cr_assert(send_frame(&tx, 64, i));
            take_frame(&rx, 64, i);
        }
        uci_box_rx_tell(&rx, (uint32_t)next_random(&state));
        memcpy(saved, box, sizeof(saved));
        for (first = 0; first < 128; ++first) {
            for (second = first + 1; second < 128; ++second) {
                flip(box, first);
                flip(box, second);
                passed += uci_box_tx_heard(&tx, &acked);
                memcpy(box, saved, sizeof(saved));
            }
        }
        cr_assert(uci_box_tx_heard(&tx, &acked), "intact");
    }
    cr_expect(passed == 0, "%u damaged pairs of words were believed", passed);
    yard_check(&yard);
}

/* Intact words with positions that can't be: behind what was known, and beyond what was posted */
Test(box, an_impossible_position_is_not_heard)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx, tx_before;
    uci_box_rx_t rx, liar;
    uint64_t number, swap, mark;
    uint32_t acked;

    both_init(&tx, &rx, box, KEY);
    uci_box_rx_init(&liar, box, UCI_BOX_GRANULES, KEY);
    for (number = 0; number < 100; ++number) {
        cr_assert(send_frame(&tx, 64, number));
        take_frame(&rx, 64, number);
    }
    uci_box_rx_tell(&rx, 50);
    cr_assert(uci_box_tx_heard(&tx, &acked) && (tx.consumed == 100));
    for (; number < 150; ++number) {
        cr_assert(send_frame(&tx, 64, number));
    }
    tx_before = tx;
    for (number = 0; number < 3 * UCI_BOX_GRANULES; ++number) {
        uci_box_rx_tell(&liar, 51);
        cr_assert(uci_box_tx_heard(&tx, &acked) == ((number >= 100) && (number <= 150)), "position %lu",
                  (unsigned long)number);
        tx = tx_before;
        uci_box_rx_next(&liar, 64);
    }

    uci_box_rx_tell(&rx, 120); /* a position that could be */
    swap          = box->consumed;
    box->consumed = box->acked;
    box->acked    = swap;
    cr_expect(!uci_box_tx_heard(&tx, &acked), "each in the other's place");
    while (send_frame(&tx, 64, 1)) { /* and a full box, with noise where the position is */
    }
    for (number = 0; number < 1000000; ++number) {
        box->consumed = next_random(&swap);
        cr_assert(uci_box_tx_place(&tx, 64, &mark) == NULL, "%lx", (unsigned long)box->consumed);
    }
    cr_expect(tx.consumed == 100);
    yard_check(&yard);
}

/* Each bit of a posted frame: in its mark it hides the frame, elsewhere the frame's own verification has to see it */
Test(box, a_damaged_mark_hides_the_frame)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    char *place = NULL;
    uint64_t mark;
    unsigned bit;

    both_init(&tx, &rx, box, KEY);
    place = uci_box_tx_place(&tx, 200, &mark);
    cr_assert(send_frame(&tx, 200, 1));
    cr_assert(send_frame(&tx, 200, 2));
    for (bit = 0; bit < 8 * 200; ++bit) {
        flip(place, bit);
        cr_assert((uci_box_rx_peek(&rx) == NULL) == (bit < 64), "bit %u", bit);
        cr_assert((bit < 64) || !frame_is(place, 200, 1));
        flip(place, bit);
        cr_assert(uci_box_rx_peek(&rx) == place);
    }
    take_frame(&rx, 200, 1);
    take_frame(&rx, 200, 2);
    yard_check(&yard);
}

/* A length that a careless caller did not check must not lead the receiver out of the box */
Test(box, the_next_place_lies_in_the_ring_whatever_the_length)
{
    static const size_t totals[] = {0, 1, UCI_BOX_FRAME_MAX + 1, 1u << 20, UINT32_MAX};
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_rx_t rx;
    unsigned i, j;

    uci_box_rx_init(&rx, box, UCI_BOX_GRANULES, KEY);
    for (i = 0; i < uci_array_size(totals); ++i) {
        for (j = 0; j < 3000; ++j) {
            uci_box_rx_next(&rx, totals[i]);
            cr_assert((rx.place >= box->ring) && (rx.place < rx.end) && ((uintptr_t)rx.place % 64 == 0));
        }
    }
    yard_check(&yard);
}

/* --- two sides at once --- */

/* What the sides share besides the box. Findings are literals: good in both processes */
typedef struct stream {
    uint64_t frames;
    const char *sender_wrong, *receiver_wrong;
    bool failed; /**< the other side need not wait */
    uci_box_t *box;
} stream_t;

static size_t stream_total(uint64_t number)
{
    uint64_t state = number;

    return random_total(&state);
}

static bool stream_fail(stream_t *stream, const char **wrong_p, const char *text)
{
    *wrong_p = text;
    __atomic_store_n(&stream->failed, true, __ATOMIC_RELEASE);
    return false;
}

static bool stream_has_failed(stream_t *stream)
{
    return __atomic_load_n(&stream->failed, __ATOMIC_ACQUIRE);
}

/* Acknowledged numbers count frames. They are at least as new as the position that comes with them. */
static bool stream_hear(stream_t *stream, uci_box_tx_t *tx, const uint64_t *positions, uint64_t posted,
                        uint64_t *acked_p)
{
    uint64_t before = tx->consumed, acked;
    uint32_t low;

    if (!uci_box_tx_heard(tx, &low)) {
        return true;
    }
    acked = *acked_p + (uint32_t)(low - (uint32_t)*acked_p);
    if ((acked > posted) || (tx->consumed < before)) {
        return stream_fail(stream, &stream->sender_wrong, "acknowledged what was not sent, or less than before");
    }
    if ((acked < posted ? positions[acked % UCI_BOX_GRANULES] : uci_box_tx_position(tx)) < tx->consumed) {
        return stream_fail(stream, &stream->sender_wrong, "the number is older than the position");
    }
    *acked_p = acked;
    return true;
}

static void *stream_send(void *arg)
{
    stream_t *stream = (stream_t *)arg;
    uint64_t positions[UCI_BOX_GRANULES], acked = 0, number;
    unsigned turns = 0;
    uci_box_tx_t tx;

    uci_box_tx_init(&tx, stream->box, UCI_BOX_GRANULES, KEY);
    for (number = 0; number < stream->frames; ++number) {
        positions[number % UCI_BOX_GRANULES] = uci_box_tx_position(&tx);
        while (!send_frame(&tx, stream_total(number), number)) {
            if (stream_has_failed(stream)) {
                return NULL;
            }
            pause_for(&turns);
        }
        if ((number % 16 == 0) && !stream_hear(stream, &tx, positions, number + 1, &acked)) {
            return NULL;
        }
    }
    while (acked < stream->frames) {
        if (stream_has_failed(stream) || !stream_hear(stream, &tx, positions, stream->frames, &acked)) {
            return NULL;
        }
        pause_for(&turns);
    }
    return NULL;
}

static void stream_receive(stream_t *stream)
{
    unsigned turns = 0;
    const char *frame;
    uint64_t number;
    uci_box_rx_t rx;
    size_t total;

    uci_box_rx_init(&rx, stream->box, UCI_BOX_GRANULES, KEY);
    for (number = 0; number < stream->frames; ++number) {
        while ((frame = uci_box_rx_peek(&rx)) == NULL) {
            if (stream_has_failed(stream)) {
                return;
            }
            pause_for(&turns);
        }
        total = stream_total(number);
        if (!frame_is(frame, total, number)) {
            stream_fail(stream, &stream->receiver_wrong, "a frame arrived that was not sent");
            return;
        }
        uci_box_rx_next(&rx, total);
        if (uci_box_rx_should_tell(&rx)) {
            uci_box_rx_tell(&rx, (uint32_t)(number + 1));
        }
    }
    uci_box_rx_tell(&rx, (uint32_t)number);
}

static stream_t *stream_make(yard_t *yard, uint64_t frames)
{
    stream_t *stream = mmap(NULL, sizeof(*stream), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    cr_assert(stream != MAP_FAILED);
    stream->box    = yard_make(yard, 1);
    stream->frames = frames;
    return stream;
}

static void stream_check(stream_t *stream, yard_t *yard)
{
    cr_assert(stream->sender_wrong == NULL, "%s", stream->sender_wrong);
    cr_assert(stream->receiver_wrong == NULL, "%s", stream->receiver_wrong);
    yard_check(yard);
    munmap(stream, sizeof(*stream));
}

Test(box, two_threads_stream, .timeout = 120)
{
    yard_t yard;
    stream_t *stream = stream_make(&yard, FRAMES_N);
    pthread_t sender;

    cr_assert(pthread_create(&sender, NULL, stream_send, stream) == 0);
    stream_receive(stream);
    pthread_join(sender, NULL);
    stream_check(stream, &yard);
}

/* --- a header of each third frame is as good as damaged: what lies behind it is looked for while more is posted --- */

enum { CHASE_TOTAL = 128, CHASE_FRAMES = UCI_BOX_GRANULES / 2, CHASE_LAPS = 1000 };

static void *chase_post(void *arg)
{
    uci_box_tx_t *tx = arg;
    uint64_t number;

    for (number = 0; number < CHASE_FRAMES; ++number) {
        if (!send_frame(tx, CHASE_TOTAL, number)) {
            return "the box is full";
        }
    }
    return NULL;
}

static void chase_lap(uci_box_tx_t *tx, uci_box_rx_t *rx)
{
    pthread_t sender;
    void *wrong;
    unsigned number, turns = 0;

    cr_assert(pthread_create(&sender, NULL, chase_post, tx) == 0);
    for (number = 0; number < CHASE_FRAMES; ++number) {
        while ((uci_box_rx_peek(rx) == NULL) && ((number % 3 != 1) || !uci_box_rx_skip(rx))) {
            pause_for(&turns);
        }
        if (number % 3 != 0) {
            take_frame(rx, CHASE_TOTAL, number);
        } else {
            uci_box_rx_next(rx, 1); /* its length is not known */
        }
    }
    pthread_join(sender, &wrong);
    cr_assert(wrong == NULL, "%s", (const char *)wrong);
}

Test(box, none_is_passed_by_while_it_is_posted, .timeout = 120)
{
    yard_t yard;
    uci_box_t *box = yard_make(&yard, 1);
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    unsigned lap;

    for (lap = 0; lap < CHASE_LAPS; ++lap) {
        both_init(&tx, &rx, box, KEY + lap);
        chase_lap(&tx, &rx);
    }
    yard_check(&yard);
}

static pid_t child_start(void *(*func)(void *), void *arg)
{
    pid_t pid = fork();

    cr_assert(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        func(arg);
        _exit(0);
    }
    return pid;
}

/* @return false if it did not end by itself */
static bool child_wait(pid_t pid)
{
    int status;

    return (waitpid(pid, &status, 0) == pid) && WIFEXITED(status) && (WEXITSTATUS(status) == 0);
}

Test(box, two_processes_stream, .timeout = 120)
{
    yard_t yard;
    stream_t *stream = stream_make(&yard, FRAMES_N);
    pid_t sender     = child_start(stream_send, stream);

    stream_receive(stream);
    cr_expect(child_wait(sender));
    stream_check(stream, &yard);
}

/* --- a third process writes to the box --- */

/* A frame that says what it is, and proves it. The header has a digest of its own, for the length is needed first */
typedef struct toy_header {
    uint64_t mark, number;
    uint32_t total, reserved;
    uint64_t body_digest, header_digest;
} toy_header_t;

/* Memory that the third process leaves alone */
typedef struct toy {
    uci_box_t *box;
    uint64_t frames; /**< at most; it is over when TOY_FRAMES were taken and the flips have done all that they can do */
    uint64_t epoch;  /**< the receiver's: the sender follows */
    uint64_t resume; /**< first number to be sent in that epoch */
    uint64_t place;  /**< where the sender is about to write, in bytes from the box's beginning */
    bool done;
    uint64_t flips, bad, stuck, wrong, misheard;
} toy_t;

enum { TOY_FRAMES = 200000 };

static bool toy_saw_all(const toy_t *toy)
{
    return (toy->bad > 0) && (toy->stuck > 0);
}

static uint64_t toy_digest(const void *data, size_t length)
{
    return uci_digest_table[UCI_DIGEST_XXH3].digest(data, length);
}

static size_t toy_total(uint64_t number)
{
    return uci_min(sizeof(toy_header_t) + stream_total(number), UCI_BOX_FRAME_MAX);
}

static void toy_fill(wire_t *wire, uint64_t number, uint64_t mark)
{
    const size_t head    = sizeof(toy_header_t);
    toy_header_t *header = (toy_header_t *)(void *)wire->bytes;
    size_t total         = toy_total(number);

    frame_fill(wire, total, number);
    *header               = (toy_header_t){.mark = mark, .number = number, .total = (uint32_t)total};
    header->body_digest   = toy_digest(wire->bytes + head, total - head);
    header->header_digest = toy_digest(header, offsetof(toy_header_t, header_digest));
}

/* Copy, then verify the copy. @return 0 if it is not intact */
static size_t toy_verify(wire_t *copy, const char *frame, uint64_t mark)
{
    const size_t head    = sizeof(toy_header_t);
    toy_header_t *header = (toy_header_t *)(void *)copy->bytes;

    memcpy(header, frame, head);
    header->mark = mark;
    if ((header->header_digest != toy_digest(header, offsetof(toy_header_t, header_digest))) ||
        (header->total < head) || (header->total > UCI_BOX_FRAME_MAX)) {
        return 0;
    }
    memcpy(copy->bytes + head, frame + head, header->total - head);
    return (header->body_digest == toy_digest(copy->bytes + head, header->total - head)) ? header->total : 0;
}

static void *toy_send(void *arg)
{
    toy_t *toy     = (toy_t *)arg;
    uint64_t epoch = 0, number = 0, seen, mark;
    unsigned turns = 0;
    uint32_t acked;
    uci_box_tx_t tx;
    wire_t wire;
    char *place;

    uci_box_tx_init(&tx, toy->box, UCI_BOX_GRANULES, KEY);
    while (!__atomic_load_n(&toy->done, __ATOMIC_ACQUIRE)) {
        seen = __atomic_load_n(&toy->epoch, __ATOMIC_ACQUIRE);
        if (seen != epoch) {
            epoch  = seen;
            number = __atomic_load_n(&toy->resume, __ATOMIC_ACQUIRE);
            uci_box_tx_init(&tx, toy->box, UCI_BOX_GRANULES, KEY + epoch);
        }
        if (uci_box_tx_heard(&tx, &acked)) {
            toy->misheard += acked > number;
        }
        place = (number < toy->frames) ? uci_box_tx_place(&tx, toy_total(number), &mark) : NULL;
        if (place == NULL) {
            pause_for(&turns);
            continue;
        }
        toy_fill(&wire, number, mark);
        __atomic_store_n(&toy->place, (uint64_t)(place - (char *)toy->box), __ATOMIC_RELAXED);
        uci_box_tx_post(&tx, place, wire.bytes, toy_total(number), mark);
        ++number;
    }
    return NULL;
}

/* A new epoch, from the first frame on that was not taken */
static void toy_recover(toy_t *toy, uci_box_rx_t *rx, uint64_t number)
{
    uci_box_rx_init(rx, toy->box, UCI_BOX_GRANULES, KEY + toy->epoch + 1);
    __atomic_store_n(&toy->resume, number, __ATOMIC_RELEASE);
    __atomic_store_n(&toy->epoch, toy->epoch + 1, __ATOMIC_RELEASE);
}

/* Silence for long: tell again, it may have been damaged; then it's a mark that has been */
static void toy_wait(toy_t *toy, uci_box_rx_t *rx, uint64_t number, unsigned *silence_p)
{
    sched_yield();
    ++*silence_p;
    if (*silence_p == 500) {
        uci_box_rx_tell(rx, (uint32_t)number);
    } else if (*silence_p > 1000) {
        ++toy->stuck;
        toy_recover(toy, rx, number);
        *silence_p = 0;
    }
}

static void toy_receive(toy_t *toy)
{
    unsigned silence = 0;
    uint64_t number  = 0;
    wire_t copy, expected;
    const char *frame;
    uci_box_rx_t rx;
    size_t total;

    uci_box_rx_init(&rx, toy->box, UCI_BOX_GRANULES, KEY);
    while ((number < TOY_FRAMES) || (!toy_saw_all(toy) && (number < toy->frames))) {
        frame = uci_box_rx_peek(&rx);
        if (frame == NULL) {
            toy_wait(toy, &rx, number, &silence);
            continue;
        }
        silence = 0;
        total   = toy_verify(&copy, frame, uci_box_rx_mark(&rx));
        if ((total != 0) && (((toy_header_t *)(void *)copy.bytes)->number > number)) {
            ++toy->stuck; /* a mark was damaged, and the next lap begins */
            toy_recover(toy, &rx, number);
            continue;
        }
        if (total == 0) {
            ++toy->bad;
            toy_recover(toy, &rx, number);
            continue;
        }
        toy_fill(&expected, number, uci_box_rx_mark(&rx));
        toy->wrong += (total != toy_total(number)) || (memcmp(copy.bytes, expected.bytes, total) != 0);
        uci_box_rx_next(&rx, total);
        ++number;
        if (uci_box_rx_should_tell(&rx)) {
            uci_box_rx_tell(&rx, (uint32_t)number);
        }
    }
    __atomic_store_n(&toy->done, true, __ATOMIC_RELEASE);
}

static void *toy_flip(void *arg)
{
    toy_t *toy     = (toy_t *)arg;
    uint8_t *bytes = (uint8_t *)toy->box;
    uint64_t state = (uint64_t)getpid(), random, pause;
    size_t place, i;

    while (!__atomic_load_n(&toy->done, __ATOMIC_ACQUIRE)) {
        random = next_random(&state);
        place  = random % sizeof(uci_box_t);
        switch (next_random(&state) % 8) {
        case 0: /* the receiver's words */
            place %= 16;
            break;
        case 1: /* a line of anything */
            for (i = 0; i < UCI_CACHE_LINE; ++i) {
                bytes[place / UCI_CACHE_LINE * UCI_CACHE_LINE + i] = (uint8_t)next_random(&state);
            }
            break;
        case 2: /* anywhere */
            break;
        default: /* where frames are not taken yet */
            place = (__atomic_load_n(&toy->place, __ATOMIC_RELAXED) + place % 2048) % sizeof(uci_box_t);
            break;
        }
        __atomic_fetch_xor(&bytes[place], 1u << (random >> 61), __ATOMIC_RELAXED);
        ++toy->flips;
        for (pause = uci_process_time_ns() + 20000; uci_process_time_ns() < pause;) {
            sched_yield();
        }
    }
    return NULL;
}

Test(box, a_third_process_flips_bits, .timeout = 120)
{
    toy_t *toy = mmap(NULL, sizeof(*toy), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t sender, flipper;
    yard_t yard;

    cr_assert(toy != MAP_FAILED);
    uci_digest_init();
    toy->box    = yard_make(&yard, 1);
    toy->frames = 100 * TOY_FRAMES;
    sender      = child_start(toy_send, toy);
    flipper     = child_start(toy_flip, toy);
    toy_receive(toy);
    cr_expect(child_wait(sender));
    cr_expect(child_wait(flipper));
    cr_log_info("%lu flips, %lu bad frames, %lu times stuck, %lu epochs", (unsigned long)toy->flips,
                (unsigned long)toy->bad, (unsigned long)toy->stuck, (unsigned long)toy->epoch + 1);
    cr_expect(toy->wrong == 0, "%lu wrong frames were accepted", (unsigned long)toy->wrong);
    cr_expect(toy->misheard == 0, "%lu numbers were acknowledged that were not sent", (unsigned long)toy->misheard);
    cr_expect(toy_saw_all(toy), "%lu flips have not done enough", (unsigned long)toy->flips);
    yard_check(&yard);
}

/* --- a sender dies --- */

enum { STAGE_BEFORE, STAGE_POSTING, STAGE_POSTED };

typedef struct mortal {
    uci_box_t *boxes; /**< neighbour, the mortal's, neighbour */
    uci_box_tx_t tx;
    wire_t wire;
    size_t total;
    unsigned epoch;
    volatile int stage;
} mortal_t;

static void *mortal_post(void *arg)
{
    mortal_t *mortal = (mortal_t *)arg;
    uint64_t mark;
    char *place;

    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(1);
    }
    raise(SIGSTOP);
    mortal->stage = STAGE_POSTING;
    place         = uci_box_tx_place(&mortal->tx, mortal->total, &mark);
    uci_box_tx_post(&mortal->tx, place, mortal->wire.bytes, mortal->total, mark);
    mortal->stage = STAGE_POSTED;
    for (;;) {
        pause();
    }
    return NULL;
}

/* One instruction. @return false if it can't be traced */
static bool mortal_step(pid_t pid)
{
    int status;

    return (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0) && (waitpid(pid, &status, 0) == pid) && WIFSTOPPED(status);
}

/* @return a child about to post, or -1 if it can't be traced */
static pid_t mortal_start(mortal_t *mortal)
{
    pid_t pid;
    int status;

    mortal->stage = STAGE_BEFORE;
    pid           = child_start(mortal_post, mortal);
    if ((waitpid(pid, &status, 0) != pid) || !WIFSTOPPED(status)) {
        return -1;
    }
    while (mortal->stage == STAGE_BEFORE) {
        if (!mortal_step(pid)) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
    }
    return pid;
}

static void mortal_kill(pid_t pid)
{
    int status;

    cr_assert(kill(pid, SIGKILL) == 0);
    cr_assert((waitpid(pid, &status, 0) == pid) && WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL));
}

/* Nothing or all of it. @return true for all */
static bool mortal_check(const mortal_t *mortal, uci_box_rx_t *rx, unsigned steps)
{
    const char *frame = uci_box_rx_peek(rx);

    cr_assert((frame == NULL) || frame_is(frame, mortal->total, 1), "after %u instructions: half a frame", steps);
    cr_assert((frame != NULL) || (mortal->stage != STAGE_POSTED), "posted, and not there");
    return frame != NULL;
}

typedef struct neighbour {
    uci_box_tx_t tx;
    uci_box_rx_t rx;
    uint64_t number;
} neighbour_t;

static void neighbour_go_on(neighbour_t *neighbour)
{
    unsigned i;

    for (i = 0; i < 20; ++i, ++neighbour->number) {
        cr_assert(send_frame(&neighbour->tx, stream_total(neighbour->number), neighbour->number));
        take_frame(&neighbour->rx, stream_total(neighbour->number), neighbour->number);
        if (uci_box_rx_should_tell(&neighbour->rx)) {
            uci_box_rx_tell(&neighbour->rx, 0);
        }
    }
}

static mortal_t *mortal_make(yard_t *yard, neighbour_t neighbours[2])
{
    mortal_t *mortal = mmap(NULL, sizeof(*mortal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    cr_assert(mortal != MAP_FAILED);
    mortal->boxes = yard_make(yard, 3);
    both_init(&neighbours[0].tx, &neighbours[0].rx, &mortal->boxes[0], KEY + 1);
    both_init(&neighbours[1].tx, &neighbours[1].rx, &mortal->boxes[2], KEY + 2);
    neighbours[0].number = neighbours[1].number = 0;
    return mortal;
}

/* A new epoch for each sender to be killed. Its frame lies at the ring's first or its last place */
static void mortal_prepare(mortal_t *mortal, uci_box_rx_t *rx, size_t total)
{
    unsigned i;

    both_init(&mortal->tx, rx, &mortal->boxes[1], KEY + 100 + mortal->epoch);
    for (i = (++mortal->epoch % 2 == 0) ? 0 : UCI_BOX_GRANULES - 1; i > 0; --i) {
        cr_assert(send_frame(&mortal->tx, 8, 0));
        take_frame(rx, 8, 0);
    }
    mortal->total = total;
    frame_fill(&mortal->wire, total, 1);
    memcpy(mortal->wire.bytes, &rx->expected, sizeof(rx->expected)); /* must not get there before its time */
    cr_assert(uci_box_rx_peek(rx) == NULL);
}

/* Without a tracer: a post as far as it can get before the mark is written, byte by byte */
static void mortal_by_hand(mortal_t *mortal, size_t total)
{
    uci_box_rx_t rx;
    uint64_t mark;
    char *place;
    size_t done;

    mortal_prepare(mortal, &rx, total);
    place = uci_box_tx_place(&mortal->tx, total, &mark);
    for (done = 8; done < total; ++done) {
        place[done] = mortal->wire.bytes[done];
        cr_assert(uci_box_rx_peek(&rx) == NULL);
    }
    uci_box_tx_post(&mortal->tx, place, mortal->wire.bytes, total, mark);
    take_frame(&rx, total, 1);
}

/* A stopped sender has written what a killed one would have. @return its instructions; 0 if it can't be traced */
static unsigned look_after_each(mortal_t *mortal, size_t total)
{
    unsigned steps = 0, nothing = 0;
    uci_box_rx_t rx;
    pid_t pid;

    mortal_prepare(mortal, &rx, total);
    pid = mortal_start(mortal);
    if (pid < 0) {
        return 0;
    }
    for (; mortal->stage != STAGE_POSTED; ++steps) {
        nothing += !mortal_check(mortal, &rx, steps);
        cr_assert(mortal_step(pid));
    }
    mortal_kill(pid);
    cr_assert(mortal_check(mortal, &rx, steps));
    cr_assert(nothing > 10);
    return steps;
}

/* Kill senders after 0, stride, 2 stride, ... instructions, until one lives to the end */
static void kill_after_each(mortal_t *mortal, neighbour_t neighbours[2], size_t total, unsigned stride)
{
    unsigned steps = 0, i;
    bool whole     = false;
    uci_box_rx_t rx;
    pid_t pid;

    for (mortal->stage = STAGE_BEFORE; mortal->stage != STAGE_POSTED; steps += stride) {
        mortal_prepare(mortal, &rx, total);
        pid = mortal_start(mortal);
        cr_assert(pid > 0);
        for (i = 0; (i < steps) && (mortal->stage != STAGE_POSTED); ++i) {
            cr_assert(mortal_step(pid));
        }
        mortal_kill(pid);
        whole = mortal_check(mortal, &rx, steps);
        neighbour_go_on(&neighbours[0]);
        neighbour_go_on(&neighbours[1]);
    }
    cr_assert(whole && (steps > 10), "%u instructions", steps);
}

Test(box, a_sender_is_killed_at_each_instruction_of_a_post, .timeout = 120)
{
    static const size_t totals[] = {8, 48, 200, 1000, UCI_BOX_FRAME_MAX};
    neighbour_t neighbours[2];
    yard_t yard;
    mortal_t *mortal = mortal_make(&yard, neighbours);
    unsigned i, steps;

    for (i = 0; i < uci_array_size(totals); ++i) {
        steps = look_after_each(mortal, totals[i]);
        if (steps == 0) {
            mortal_by_hand(mortal, totals[i]);
            continue;
        }
        if (totals[i] < UCI_BOX_FRAME_MAX) { /* the sum of steps goes with the square: not each one of many */
            kill_after_each(mortal, neighbours, totals[i], uci_div_up(steps, 128));
        }
        cr_log_info("%zu bytes: died at each of %u instructions", totals[i], steps);
    }
    yard_check(&yard);
    if (steps == 0) {
        cr_skip_test("no process may be traced here: senders that die were played by hand");
    }
}
