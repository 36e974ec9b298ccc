/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers of which each depends on a seed and on what it is for, and on nothing that was drawn before: what is left out of a
 * program does not change the rest of it.
 */
#ifndef UCI_TESTS_RANDOM_DRAW_H_
#define UCI_TESTS_RANDOM_DRAW_H_

#include "util/types.h"

typedef struct draw {
    uint64_t state;
} draw_t;

/* Finalizer of SplitMix64 (Steele, Lea, Flood 2014) */
UCI_INLINE uint64_t draw_finish(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

UCI_INLINE uint64_t draw_mix(uint64_t a, uint64_t b)
{
    return draw_finish(draw_finish(a + 0x9e3779b97f4a7c15ul) ^ b);
}

UCI_INLINE draw_t draw_for(uint64_t seed, uint64_t what, uint64_t number)
{
    return (draw_t){draw_mix(draw_mix(seed, what), number)};
}

UCI_INLINE uint64_t draw_next(draw_t *draw)
{
    draw->state += 0x9e3779b97f4a7c15ul;
    return draw_finish(draw->state);
}

/** 0 to count - 1 */
UCI_INLINE uint64_t draw_below(draw_t *draw, uint64_t count)
{
    return draw_next(draw) % count;
}

UCI_INLINE bool draw_hits(draw_t *draw, unsigned percent)
{
    return draw_below(draw, 100) < percent;
}

#endif
