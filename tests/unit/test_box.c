/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "box.h"
#include "digest.h"
#include "doorbell.h"
#include "process.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY      0x0123456789ABCDEFull
#define CANARY   0xA5
#define ALL      (UCI_BOX_GRANULES + UCI_BOX_OVERFLOW)
#define FRAMES_N 1000000u

/* As long as a frame gets, and aligned as a wire has to be */
typedef struct wire {
    char bytes[UCI_BOX_FRAME_MAX];
} __attribute__((aligned(64))) wire_t;

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9E3779B97F4A7C15ull);

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* --- boxes between guards: canaries before them, a page that faults behind them --- */

typedef struct yard {
    char *map;
    size_t slack, size, page;
    uci_box_t *boxes;
} yard_t;

static uci_box_t *yard_make(yard_t *yard, unsigned count)
{
    size_t length = count * sizeof(uci_box_t);

    yard->page = (size_t)sysconf(_SC_PAGESIZE);
    yard->size = uci_align_up(length, yard->page) + yard->page;
    yard->map  = mmap(NULL, yard->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(yard->map != MAP_FAILED);
    yard->slack = yard->size - yard->page - length;
    yard->boxes = (uci_box_t *)(void *)(yard->map + yard->slack);
    memset(yard->map, CANARY, yard->slack);
    cr_assert(mprotect(yard->map + yard->size - yard->page, yard->page, PROT_NONE) == 0);
    return yard->boxes;
}

static void yard_check(yard_t *yard)
{
    size_t i;

    for (i = 0; i < yard->slack; ++i) {
        cr_assert((uint8_t)yard->map[i] == CANARY, "written to %zu bytes before the box", yard->slack - i);
    }
    munmap(yard->map, yard->size);
}

/* --- frames: whatever follows the mark depends on a number --- */

static void frame_fill(wire_t *wire, size_t total, uint64_t number)
{
    uint64_t state = number * 0x100000001B3ull, word;
    size_t offset;

    for (offset = 8; offset < total; offset += sizeof(word)) {
        word = next_random(&state);
        memcpy(wire->bytes + offset, &word, uci_min(sizeof(word), total - offset));
    }
}

static bool frame_is(const char *frame, size_t total, uint64_t number)
{
    wire_t wire;

    frame_fill(&wire, total, number);
    return memcmp(frame + 8, wire.bytes + 8, total - 8) == 0;
}

static bool send_frame(uci_box_tx_t *tx, size_t total, uint64_t number)
{
    wire_t wire;
    uint64_t mark;
    char *place = uci_box_tx_place(tx, total, &mark);

    if (place == NULL) {
        return false;
    }
    frame_fill(&wire, total, number);
    memset(wire.bytes, 0xEE, 8); /* not what ends up in the frame */
    uci_box_tx_post(tx, place, wire.bytes, total, mark);
    return true;
}

static void take_frame(uci_box_rx_t *rx, size_t total, uint64_t number)
{
    const char *frame = uci_box_rx_peek(rx);
    uint64_t mark;

    cr_assert(frame != NULL, "frame %lu of %zu bytes is not there", (unsigned long)number, total);
    memcpy(&mark, frame, sizeof(mark));
    cr_assert(mark == uci_box_rx_mark(rx));
    cr_assert(frame_is(frame, total, number), "frame %lu of %zu bytes", (unsigned long)number, total);
    uci_box_rx_next(rx, total);
}

static void both_init(uci_box_tx_t *tx, uci_box_rx_t *rx, uci_box_t *box, uint64_t key)
{
    uci_box_tx_init(tx, box, key);
    uci_box_rx_init(rx, box, key);
}

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
        cr_assert(send_frame(&tx, 32 * 64, i));
        take_frame(&rx, 32 * 64, i);
    }
    cr_expect(uci_box_rx_should_tell(&rx), "after a quarter of the ring");
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
        uci_box_rx_init(&rx, box, key);
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
    uci_box_rx_init(&rx, box, KEY + 1);
    cr_expect(uci_box_rx_peek(&rx) == NULL, "posted in the old epoch");
    uci_box_rx_tell(&rx, 5);
    cr_expect(!uci_box_tx_heard(&tx, &acked), "told in the new one");
    uci_box_tx_init(&tx, box, KEY + 1);
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
    uci_box_rx_init(&liar, box, KEY);
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

    uci_box_rx_tell(&rx, 51);
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

    uci_box_rx_init(&rx, box, KEY);
    for (i = 0; i < uci_array_size(totals); ++i) {
        for (j = 0; j < 3000; ++j) {
            uci_box_rx_next(&rx, totals[i]);
            cr_assert((rx.place >= box->ring) && (rx.place < rx.end) && ((uintptr_t)rx.place % 64 == 0));
        }
    }
    yard_check(&yard);
}
