/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the messages of this suite are made of, so that a stranger who meets them in memory or on a wire knows that they
 * are payload, whose, and which byte should stand where. Shares no code with UCI, on purpose.
 *
 * A message is a row of lines of 64 bytes, the last one cut where the message ends:
 *
 *     | key (8) | number (8) | line (4) | length (4) | words (5 x 8) |
 *
 * The key is drawn for each job (FOREIGN_KEY), so no other job's bytes look like this. The words follow from the rest, so
 * every byte of a line is known from its first 24; what is not exactly as it should be is no line, and is left alone.
 */
#ifndef UCI_TESTS_FOREIGN_PATTERN_H_
#define UCI_TESTS_FOREIGN_PATTERN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN_UNUSED __attribute__((unused))

enum {
    FOREIGN_LINE       = 64,
    FOREIGN_LINE_HEAD  = 24,       /* bytes that tell what the rest of a line is; shorter messages are not attacked */
    FOREIGN_LENGTH_MAX = 64 << 20, /* of a message */
    FOREIGN_ZERO_MAX   = 4096,     /* bytes of the largest block of zeros */
    FOREIGN_BURST_MAX  = 32
};

typedef struct foreign_line {
    uint64_t key;
    uint64_t number; /* foreign_number() */
    uint32_t line;
    uint32_t length; /* of the whole message */
    uint64_t words[5];
} foreign_line_t;

_Static_assert(sizeof(foreign_line_t) == FOREIGN_LINE, "a line has no holes");

/** Names message @a count from @a source: younger ones have higher numbers. */
static inline uint64_t foreign_number(int source, uint64_t count)
{
    return ((uint64_t)(uint32_t)source << 40) | count;
}

static inline unsigned foreign_source(uint64_t number)
{
    return (unsigned)(number >> 40);
}

/** Next number of a reproducible sequence (splitmix64). */
static inline uint64_t foreign_random(uint64_t *state)
{
    uint64_t value = (*state += 0x9e3779b97f4a7c15ull);

    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

/** A random number in 0..@a limit - 1; 0 for a limit of 0. */
static inline size_t foreign_below(uint64_t *state, size_t limit)
{
    return (limit == 0) ? 0 : (size_t)(foreign_random(state) % limit);
}

static inline void foreign_line_make(foreign_line_t *line, uint64_t key, uint64_t number, uint32_t index,
                                     uint32_t length)
{
    uint64_t state = key ^ (number * 0xd1342543de82ef95ull) ^ (((uint64_t)index << 32) + length);
    size_t i;

    *line = (foreign_line_t){.key = key, .number = number, .line = index, .length = length};
    for (i = 0; i < sizeof(line->words) / sizeof(line->words[0]); ++i) {
        line->words[i] = foreign_random(&state);
    }
}

/** Bytes of this line: fewer than 64 at the end of its message. */
static inline size_t foreign_line_bytes(const foreign_line_t *line)
{
    size_t rest = (size_t)line->length - ((size_t)line->line * FOREIGN_LINE);

    return (rest < FOREIGN_LINE) ? rest : FOREIGN_LINE;
}

/** Does a line begin at @a bytes, all that is of it within @a there bytes as it should be? Sets @a line to how it should be.
 *  @return how many bytes of it are there; 0: this is no line. Alignment does not matter. */
static inline size_t foreign_line_at(const void *bytes, size_t there, uint64_t key, foreign_line_t *line)
{
    foreign_line_t head;
    size_t length;

    if (there < FOREIGN_LINE_HEAD) {
        return 0;
    }
    memcpy(&head, bytes, FOREIGN_LINE_HEAD);
    if ((head.key != key) || (head.length > FOREIGN_LENGTH_MAX) ||
        ((uint64_t)head.line * FOREIGN_LINE + FOREIGN_LINE_HEAD > head.length)) {
        return 0;
    }
    foreign_line_make(line, key, head.number, head.line, head.length);
    length = foreign_line_bytes(line);
    length = (length < there) ? length : there;
    return (memcmp(bytes, line, length) == 0) ? length : 0;
}

/** The next place in @a bytes where a line may begin, NULL if there is none. */
static inline const uint8_t *foreign_line_search(const uint8_t *bytes, size_t length, uint64_t key)
{
    return memmem(bytes, length, &key, sizeof(key));
}

/** Write message @a number of @a length bytes. */
static inline void foreign_fill(void *buffer, size_t length, uint64_t key, uint64_t number)
{
    uint8_t *bytes = buffer;
    foreign_line_t line;
    size_t offset;

    for (offset = 0; offset < length; offset += FOREIGN_LINE) {
        foreign_line_make(&line, key, number, (uint32_t)(offset / FOREIGN_LINE), (uint32_t)length);
        memcpy(bytes + offset, &line, foreign_line_bytes(&line));
    }
}

/** @return how many bytes are not those of message @a number; @a first_p, if there are any: the first one. */
static inline size_t foreign_count_wrong(const void *buffer, size_t length, uint64_t key, uint64_t number,
                                         size_t *first_p)
{
    const uint8_t *bytes = buffer;
    foreign_line_t line;
    size_t offset, i, wrong = 0;

    for (offset = 0; offset < length; offset += FOREIGN_LINE) {
        foreign_line_make(&line, key, number, (uint32_t)(offset / FOREIGN_LINE), (uint32_t)length);
        if (memcmp(bytes + offset, &line, foreign_line_bytes(&line)) == 0) {
            continue;
        }
        for (i = 0; i < foreign_line_bytes(&line); ++i) {
            if (bytes[offset + i] != ((const uint8_t *)&line)[i]) {
                *first_p = (wrong++ == 0) ? offset + i : *first_p;
            }
        }
    }
    return wrong;
}

/** The key of this job, from the environment. */
static inline uint64_t foreign_key(void)
{
    const char *text = getenv("FOREIGN_KEY");

    return (text == NULL) ? 0 : strtoull(text, NULL, 16);
}

/* ---- kinds of damage, the same in memory and on a wire ---- */

typedef enum { FOREIGN_FLIP, FOREIGN_BURST, FOREIGN_ZERO, FOREIGN_KINDS } foreign_kind_t;

static const char *const foreign_kind_names[] FOREIGN_UNUSED = {"flip", "burst", "zero"};

/** "any", or one of the names. @return FOREIGN_KINDS for any, -1 for none of them. */
static inline int foreign_kind_parse(const char *name)
{
    int kind;

    for (kind = 0; kind < FOREIGN_KINDS; ++kind) {
        if (strcmp(name, foreign_kind_names[kind]) == 0) {
            return kind;
        }
    }
    return (strcmp(name, "any") == 0) ? FOREIGN_KINDS : -1;
}

/** How many adjacent bytes the next damage of this kind changes. */
static inline size_t foreign_extent(foreign_kind_t kind, uint64_t *state)
{
    switch (kind) {
    case FOREIGN_FLIP:
        return 1;
    case FOREIGN_BURST:
        return 2 + foreign_below(state, FOREIGN_BURST_MAX - 1);
    default:
        return (size_t)1 << (3 + foreign_below(state, 10)); /* 8 to 4096 */
    }
}

/** What becomes of a byte: never what it was, but for zeros. */
static inline uint8_t foreign_damaged(foreign_kind_t kind, uint8_t byte, uint64_t *state)
{
    switch (kind) {
    case FOREIGN_FLIP:
        return (uint8_t)(byte ^ (1u << foreign_below(state, 8)));
    case FOREIGN_BURST:
        return (uint8_t)(byte + 1 + foreign_below(state, 255));
    default:
        return 0;
    }
}

#endif
