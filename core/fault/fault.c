/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Randomness is counter based: lane l of decision n is mix(stream + 4 * n + l), where the stream is fixed by
 * seed and rank. No state but the counter n is kept, so threads need no lock and a run can be repeated.
 */
#include "fault.h"
#include "util/parse_size.h"
#include "util/word.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

bool uci_fault_enabled;
bool uci_fault_asked;

#define UCI_FAULT_BLOCK_MAX 4096
#define UCI_FAULT_BURST_MAX 32
#define UCI_FAULT_TEXT_MAX  512

#define UCI_FAULT_KINDS_ANY   ((1u << UCI_FAULT_KIND_LAST) - 1)
#define UCI_FAULT_TARGETS_ANY ((1u << UCI_FAULT_REPAIR) - 1) /* repair and what follows are not part of it */

const char *const uci_fault_kind_names[]   = {"bitflip", "burst", "zero", "stale", "swap", "truncate", NULL};
const char *const uci_fault_target_names[] = {"payload", "header", "tree",  "ack",    "memory", "repair",
                                              "region",  "leaf",   "frame", "escape", NULL};
_Static_assert(uci_array_size(uci_fault_kind_names) == UCI_FAULT_KIND_LAST + 1, "kinds");
_Static_assert(uci_array_size(uci_fault_target_names) == UCI_FAULT_TARGET_LAST + 1, "targets");

enum { UCI_FAULT_LANE_HIT, UCI_FAULT_LANE_KIND, UCI_FAULT_LANE_RANDOM, UCI_FAULT_LANES = 4 };

static struct {
    uci_fault_spec_t spec;
    uint64_t stream;
    uint64_t decisions; /* taken so far: the next n */
    uint64_t count;     /* faults drawn and not taken back */
} uci_fault_injector;

/* One step of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t uci_fault_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ul;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

static uint64_t uci_fault_random(uint64_t n, unsigned lane)
{
    return uci_fault_mix(uci_fault_injector.stream + (n * UCI_FAULT_LANES) + lane);
}

/*
 * The text of UCI_FAULT. A key's parser returns false if the value is not what its row says is allowed.
 */

static bool uci_fault_parse_number(const char *text, uint64_t max, uint64_t *value_p)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if ((*text < '0') || (*text > '9') || (*end != '\0') || (errno != 0) || (value > max)) {
        return false;
    }

    *value_p = value;
    return true;
}

static bool uci_fault_parse_bytes(const char *text, uint64_t *value_p)
{
    size_t value;

    if (uci_parse_size(text, false, &value) != UCI_OK) {
        return false;
    }

    *value_p = value;
    return true;
}

static bool uci_fault_parse_set(char *text, const char *const *names, uint32_t any, uint32_t *set_p)
{
    uint32_t set = 0;
    char *save, *name;
    unsigned i;

    for (name = strtok_r(text, "+", &save); name != NULL; name = strtok_r(NULL, "+", &save)) {
        if (uci_word_is(name, "any")) {
            set |= any;
            continue;
        }

        for (i = 0; (names[i] != NULL) && !uci_word_is(name, names[i]); ++i) {
        }
        if (names[i] == NULL) {
            return false;
        }
        set |= 1u << i;
    }

    *set_p = set;
    return set != 0;
}

static bool uci_fault_parse_rate(char *text, uci_fault_spec_t *spec)
{
    /* Not strtod(): an application's locale may want a decimal comma. This locale object is static. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL);
    char *end;

    spec->rate = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    return (end != text) && (*end == '\0') && (spec->rate >= 0) && (spec->rate <= 1);
}

static bool uci_fault_parse_kind(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_set(text, uci_fault_kind_names, UCI_FAULT_KINDS_ANY, &spec->kinds);
}

static bool uci_fault_parse_target(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_set(text, uci_fault_target_names, UCI_FAULT_TARGETS_ANY, &spec->targets);
}

static bool uci_fault_parse_seed(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_number(text, UINT64_MAX, &spec->seed);
}

static bool uci_fault_parse_count(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_number(text, UINT64_MAX, &spec->count);
}

static bool uci_fault_parse_min(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_bytes(text, &spec->min);
}

static bool uci_fault_parse_max(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_bytes(text, &spec->max);
}

static bool uci_fault_parse_after(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_number(text, UINT64_MAX, &spec->after);
}

/* Of a process: a rank, or a twin */
static bool uci_fault_parse_index(const char *text, int64_t *index_p)
{
    uint64_t index;

    if (!uci_fault_parse_number(text, INT32_MAX, &index)) {
        return false;
    }

    *index_p = (int64_t)index;
    return true;
}

static bool uci_fault_parse_peer(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_index(text, &spec->peer);
}

static bool uci_fault_parse_rank(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_index(text, &spec->rank);
}

static bool uci_fault_parse_twin(char *text, uci_fault_spec_t *spec)
{
    return uci_fault_parse_index(text, &spec->twin);
}

static const struct {
    const char *name;
    bool (*parse)(char *text, uci_fault_spec_t *spec);
    const char *allowed;
} uci_fault_keys[] = {
        {"rate", uci_fault_parse_rate, "a probability from 0 to 1, such as 1e-3"},
        {"kind", uci_fault_parse_kind, "bitflip, burst, zero, stale, swap, truncate, several joined by '+', or any"},
        {"target", uci_fault_parse_target,
         "payload, header, tree, ack, memory, repair, region, leaf, frame, escape, several joined by '+', or any"},
        {"seed", uci_fault_parse_seed, "a whole number"},
        {"count", uci_fault_parse_count, "a whole number"},
        {"min", uci_fault_parse_min, "a number of bytes, such as 4k"},
        {"max", uci_fault_parse_max, "a number of bytes, such as 1m"},
        {"peer", uci_fault_parse_peer, "a rank"},
        {"rank", uci_fault_parse_rank, "a rank"},
        {"twin", uci_fault_parse_twin, "the number of a twin, from 0"},
        {"after", uci_fault_parse_after, "a whole number"}};

static uci_status_t uci_fault_parse_pair(char *pair, uci_fault_spec_t *spec, unsigned *seen, char *error,
                                         size_t error_size)
{
    char *text = strchr(pair, '=');
    char value[UCI_FAULT_TEXT_MAX];
    unsigned i;

    if (text == NULL) {
        snprintf(error, error_size, "'%s' has no value, expected KEY=VALUE", pair);
        return UCI_ERR_INVALID_PARAM;
    }
    *text++ = '\0';

    for (i = 0; (i < uci_array_size(uci_fault_keys)) && !uci_word_is(pair, uci_fault_keys[i].name); ++i) {
    }
    if (i == uci_array_size(uci_fault_keys)) {
        snprintf(error, error_size,
                 "unknown key '%s', allowed: rate, kind, target, seed, count, min, max, peer, rank, twin, after", pair);
        return UCI_ERR_INVALID_PARAM;
    }
    if (*seen & (1u << i)) {
        snprintf(error, error_size, "'%s' is given twice, allowed is once", pair);
        return UCI_ERR_INVALID_PARAM;
    }
    *seen |= 1u << i;

    strcpy(value, text); /* the parser may cut its text up, the error shows it whole */
    if (!uci_fault_keys[i].parse(text, spec)) {
        snprintf(error, error_size, "bad %s '%s', allowed: %s", pair, value, uci_fault_keys[i].allowed);
        return UCI_ERR_INVALID_PARAM;
    }
    return UCI_OK;
}

uci_status_t uci_fault_parse(const char *text, uci_fault_spec_t *spec_p, char *error, size_t error_size)
{
    uci_fault_spec_t spec = {.rate    = 0,
                             .kinds   = 1u << UCI_FAULT_BITFLIP,
                             .targets = 1u << UCI_FAULT_PAYLOAD,
                             .seed    = 1,
                             .count   = UINT64_MAX,
                             .min     = 0,
                             .max     = UINT64_MAX,
                             .peer    = -1,
                             .rank    = -1,
                             .twin    = -1};
    char copy[UCI_FAULT_TEXT_MAX];
    unsigned seen = 0;
    uci_status_t status;
    char *save, *pair;

    if ((text == NULL) || (*text == '\0')) {
        *spec_p = spec;
        return UCI_OK;
    }

    if (strlen(text) >= sizeof(copy)) {
        snprintf(error, error_size, "too long, allowed are %zu characters", sizeof(copy) - 1);
        return UCI_ERR_INVALID_PARAM;
    }
    snprintf(copy, sizeof(copy), "%s", text);

    for (pair = strtok_r(copy, ",", &save); pair != NULL; pair = strtok_r(NULL, ",", &save)) {
        status = uci_fault_parse_pair(pair, &spec, &seen, error, error_size);
        if (status != UCI_OK) {
            return status;
        }
    }

    if (!(seen & 1u)) { /* the first key. Without it nothing would be injected, which nobody asks for. */
        snprintf(error, error_size, "rate is missing, expected rate=R with R from 0 to 1");
        return UCI_ERR_INVALID_PARAM;
    }
    if (spec.min > spec.max) {
        snprintf(error, error_size, "min is above max, allowed is min <= max");
        return UCI_ERR_INVALID_PARAM;
    }

    *spec_p = spec;
    return UCI_OK;
}

static void uci_fault_print_set(FILE *stream, const char *key, uint32_t set, const char *const *names)
{
    const char *separator = "=";
    unsigned i;

    fprintf(stream, ",%s", key);
    for (i = 0; names[i] != NULL; ++i) {
        if (set & (1u << i)) {
            fprintf(stream, "%s%s", separator, names[i]);
            separator = "+";
        }
    }
}

static void uci_fault_print_rate(FILE *stream, double rate)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL), saved = uselocale(c_locale);
    char text[32];

    snprintf(text, sizeof(text), "%g", rate);
    if (strtod(text, NULL) != rate) {
        snprintf(text, sizeof(text), "%.17g", rate);
    }
    fprintf(stream, "rate=%s", text);

    uselocale(saved);
    freelocale(c_locale);
}

void uci_fault_print(const uci_fault_spec_t *spec, FILE *stream)
{
    if (spec->rate == 0) {
        return;
    }

    uci_fault_print_rate(stream, spec->rate);
    uci_fault_print_set(stream, "kind", spec->kinds, uci_fault_kind_names);
    uci_fault_print_set(stream, "target", spec->targets, uci_fault_target_names);
    fprintf(stream, ",seed=%lu", spec->seed);
    if (spec->count != UINT64_MAX) {
        fprintf(stream, ",count=%lu", spec->count);
    }
    if (spec->min != 0) {
        fprintf(stream, ",min=%lu", spec->min);
    }
    if (spec->max != UINT64_MAX) {
        fprintf(stream, ",max=%lu", spec->max);
    }
    if (spec->peer >= 0) {
        fprintf(stream, ",peer=%ld", spec->peer);
    }
    if (spec->rank >= 0) {
        fprintf(stream, ",rank=%ld", spec->rank);
    }
    if (spec->twin >= 0) {
        fprintf(stream, ",twin=%ld", spec->twin);
    }
    if (spec->after != 0) {
        fprintf(stream, ",after=%lu", spec->after);
    }
}

/*
 * Decisions
 */

bool uci_fault_init(const uci_fault_spec_t *spec, int64_t rank, int64_t twin)
{
    bool is_here = ((spec->rank < 0) || (spec->rank == rank)) && ((spec->twin < 0) || (spec->twin == twin));

    uci_fault_injector.spec      = *spec;
    uci_fault_injector.spec.rate = is_here ? spec->rate : 0;
    uci_fault_injector.stream    = uci_fault_mix(uci_fault_mix(spec->seed) + (uint64_t)rank);
    if (twin > 0) { /* the same damage in all twins would be none to them */
        uci_fault_injector.stream = uci_fault_mix(uci_fault_injector.stream + (uint64_t)twin);
    }
    uci_fault_asked              = spec->rate > 0;
    uci_fault_injector.decisions = 0;
    uci_fault_injector.count     = 0;
    return uci_fault_injector.spec.rate > 0;
}

bool uci_fault_targets(uci_fault_target_t target)
{
    return (uci_fault_injector.spec.rate > 0) && (uci_fault_injector.spec.targets & (1u << target));
}

static bool uci_fault_in_scope(uint64_t length, int64_t peer)
{
    const uci_fault_spec_t *spec = &uci_fault_injector.spec;

    return (length >= spec->min) && (length <= spec->max) && ((spec->peer < 0) || (spec->peer == peer));
}

static uint64_t *uci_fault_mirrored; /* the count once more, where others see it; NULL: nowhere */

static void uci_fault_show_count(void)
{
    if (uci_fault_mirrored != NULL) {
        __atomic_store_n(uci_fault_mirrored, uci_fault_count(), __ATOMIC_RELAXED);
    }
}

void uci_fault_mirror(uint64_t *place)
{
    uci_fault_mirrored = place;
    uci_fault_show_count();
}

/* Count one more fault, unless the limit is reached. */
static bool uci_fault_take(void)
{
    uint64_t count = __atomic_load_n(&uci_fault_injector.count, __ATOMIC_RELAXED);

    do {
        if (count >= uci_fault_injector.spec.count) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(&uci_fault_injector.count, &count, count + 1, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    uci_fault_show_count();
    return true;
}

bool uci_fault_once_more(void)
{
    return uci_fault_take();
}

/* One of the kinds in the spec's set. */
static uci_fault_kind_t uci_fault_pick_kind(uint64_t random)
{
    uint32_t kinds = uci_fault_injector.spec.kinds;
    unsigned skip  = (unsigned)(random % (unsigned)__builtin_popcount(kinds));

    for (; skip > 0; --skip) {
        kinds &= kinds - 1;
    }
    return (uci_fault_kind_t)__builtin_ctz(kinds);
}

bool uci_fault_draw(uci_fault_target_t target, uint64_t length, int64_t peer, uci_fault_t *fault_p)
{
    uint64_t n;

    if (!uci_fault_targets(target) || !uci_fault_in_scope(length, peer)) {
        return false;
    }

    n = __atomic_fetch_add(&uci_fault_injector.decisions, 1, __ATOMIC_RELAXED);

    /* 53 random bits make a double in [0, 1): rate 1 always hits */
    if ((n < uci_fault_injector.spec.after) ||
        (((double)(uci_fault_random(n, UCI_FAULT_LANE_HIT) >> 11) * 0x1p-53) >= uci_fault_injector.spec.rate)) {
        return false;
    }
    if (!uci_fault_take()) {
        return false;
    }

    fault_p->kind   = uci_fault_pick_kind(uci_fault_random(n, UCI_FAULT_LANE_KIND));
    fault_p->random = uci_fault_random(n, UCI_FAULT_LANE_RANDOM);
    return true;
}

uint64_t uci_fault_count(void)
{
    return __atomic_load_n(&uci_fault_injector.count, __ATOMIC_RELAXED);
}

void uci_fault_forget(void)
{
    __atomic_store_n(&uci_fault_injector.count, 0, __ATOMIC_RELAXED);
    uci_fault_show_count();
}

void uci_fault_undo(void)
{
    uint64_t count = uci_fault_count();

    while ((count > 0) && !__atomic_compare_exchange_n(&uci_fault_injector.count, &count, count - 1, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    uci_fault_show_count();
}

/*
 * Damage. Each kind returns whether the bytes changed.
 */

/* Next number below @a limit; the numbers drawn for one fault follow from its first. */
static size_t uci_fault_next(uint64_t *random, size_t limit)
{
    *random = uci_fault_mix(*random);
    return (size_t)(*random % limit);
}

/* Size of a block: a power of two that fits @a length (>= 1), up to 4 KiB. */
static size_t uci_fault_block_size(uint64_t *random, size_t length)
{
    size_t size = (size_t)1 << uci_fault_next(random, __builtin_ctz(UCI_FAULT_BLOCK_MAX) + 1);

    while (size > length) {
        size /= 2;
    }
    return size;
}

static void uci_fault_flip(uint64_t *random, unsigned char *data, size_t length)
{
    size_t offset = uci_fault_next(random, length);

    data[offset] ^= (unsigned char)(1u << uci_fault_next(random, 8));
}

static void uci_fault_burst(uint64_t *random, unsigned char *data, size_t length)
{
    size_t size = 2 + uci_fault_next(random, UCI_FAULT_BURST_MAX - 1);
    size_t first, i;

    size  = uci_min(size, length);
    first = uci_fault_next(random, length - size + 1);
    for (i = first; i < first + size; ++i) {
        data[i] ^= (unsigned char)(1 + uci_fault_next(random, 255)); /* never 0: each byte changes */
    }
}

static bool uci_fault_zero(uint64_t *random, unsigned char *data, size_t length)
{
    size_t size  = uci_fault_block_size(random, length);
    size_t first = uci_fault_next(random, length / size) * size;
    bool changed = false;
    size_t i;

    for (i = first; i < first + size; ++i) {
        changed |= (data[i] != 0);
        data[i] = 0;
    }
    return changed;
}

/* Without older content, all bytes move on by one place. */
static bool uci_fault_rotate(unsigned char *data, size_t length)
{
    unsigned char last = data[length - 1];
    bool changed       = memcmp(data, data + 1, length - 1) != 0; /* else all bytes are equal */

    memmove(data + 1, data, length - 1);
    data[0] = last;
    return changed;
}

static bool uci_fault_stale(uint64_t *random, unsigned char *data, size_t length, const unsigned char *stale)
{
    size_t size, first;
    bool changed;

    if (stale == NULL) {
        return uci_fault_rotate(data, length);
    }

    size    = uci_fault_block_size(random, length);
    first   = uci_fault_next(random, length / size) * size;
    changed = memcmp(data + first, stale + first, size) != 0;
    memcpy(data + first, stale + first, size);
    return changed;
}

static bool uci_fault_swap(uint64_t *random, unsigned char *data, size_t length)
{
    size_t size, blocks, one, other, i;
    unsigned char byte;
    bool changed = false;

    if (length < 2) {
        return false;
    }

    size   = uci_fault_block_size(random, length / 2);
    blocks = length / size;
    one    = uci_fault_next(random, blocks);
    other  = (one + 1 + uci_fault_next(random, blocks - 1)) % blocks; /* any but one */

    for (i = 0; i < size; ++i) {
        byte = data[(one * size) + i];
        changed |= (byte != data[(other * size) + i]);
        data[(one * size) + i]   = data[(other * size) + i];
        data[(other * size) + i] = byte;
    }
    return changed;
}

size_t uci_fault_apply(const uci_fault_t *fault, void *data, size_t length, const void *stale)
{
    uint64_t random = fault->random;
    bool changed    = true;

    if (length == 0) {
        return 0;
    }

    switch (fault->kind) {
    case UCI_FAULT_BURST:
        uci_fault_burst(&random, data, length);
        break;
    case UCI_FAULT_ZERO:
        changed = uci_fault_zero(&random, data, length);
        break;
    case UCI_FAULT_STALE:
        changed = uci_fault_stale(&random, data, length, stale);
        break;
    case UCI_FAULT_SWAP:
        changed = uci_fault_swap(&random, data, length);
        break;
    case UCI_FAULT_TRUNCATE:
        return uci_fault_next(&random, length);
    default:
        changed = false;
        break;
    }

    if (!changed) { /* a bit flip, or a fault that found nothing to change */
        uci_fault_flip(&random, data, length);
    }
    return length;
}
