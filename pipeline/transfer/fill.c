/* SPDX-License-Identifier: BSD-3-Clause */
#include "fill.h"

#include "util/process.h"
#include "live/stats.h"

/* Chunks before the first trial, when all memory has been touched, and between two: 1 GiB, or half of it around the caches. A trial of
 * the slower way costs 1 % of the bandwidth then. */
#define UCI_FILL_AGAIN 32768

/* Chunks before a change brings the next trial forward, and how much of a change */
#define UCI_FILL_SOON   8192
#define UCI_FILL_CHANGE 2.5f

/* Of so many chunks one is measured, of a trial more: of its second half, when all slots have been written that way. No powers of two,
 * which would always meet the same chunk of a message. */
#define UCI_FILL_MEASURE       31
#define UCI_FILL_MEASURE_TRIAL 5

/* The way around the caches is taken if it needs less than this part of the other's time. Not just less: who fills does not see that the
 * receiver then reads from memory. */
#define UCI_FILL_PART 0.6f

/* A chunk during which the process was not running says nothing */
#define UCI_FILL_OUTLIER 8

bool uci_fill_is_measured(const uci_fill_t *fill)
{
    return uci_fill_is_trial(fill)
                   ? (fill->count - fill->trial >= UCI_FILL_TRIAL / 2) && (fill->count % UCI_FILL_MEASURE_TRIAL == 0)
                   : (fill->count % UCI_FILL_MEASURE == 0);
}

static bool uci_fill_has_changed(const uci_fill_t *fill)
{
    float ns = fill->ns[fill->far];

    return (fill->settled != 0) && ((ns > UCI_FILL_CHANGE * fill->settled) || (UCI_FILL_CHANGE * ns < fill->settled));
}

void uci_fill_learn(uci_fill_t *fill, uint64_t ns, size_t length)
{
    float value = (float)ns * 1024 / (float)length;
    float *mean = &fill->ns[uci_fill_is_far(fill)];

    if (*mean == 0) {
        *mean = value;
    } else if (value < UCI_FILL_OUTLIER * *mean) {
        *mean += (value - *mean) / 8;
    } else {
        *mean += *mean / 8; /* if it happens again and again it is none */
    }
    if (!uci_fill_is_trial(fill) && (fill->count - fill->since >= UCI_FILL_SOON) && uci_fill_has_changed(fill)) {
        fill->trial = fill->count + 1;
    }
}

static void uci_fill_settle(uci_fill_t *fill)
{
    fill->far     = (fill->ns[true] < UCI_FILL_PART * fill->ns[false]);
    fill->settled = fill->ns[fill->far];
    fill->since   = fill->count;
    fill->trial   = fill->count + (fill->far ? UCI_FILL_AGAIN / 2 : UCI_FILL_AGAIN);
}

void uci_fill_next(uci_fill_t *fill)
{
    ++fill->count;
    if (fill->count == fill->trial) {
        fill->ns[!fill->far] = 0;
    } else if (fill->count - fill->trial == UCI_FILL_TRIAL) {
        uci_fill_settle(fill);
    }
}

uint64_t uci_fill_copy(uci_fill_t *fill, const uci_digest_ops_t *digest, void *dst, const void *src, size_t length)
{
    bool far       = uci_fill_is_far(fill);
    bool measured  = uci_fill_is_measured(fill);
    uint64_t begin = measured ? uci_process_time_ns() : 0;
    uint64_t value = uci_digest_copy_as(digest, far ? UCI_FORM_FAR : UCI_FORM_FUSED, dst, src, length);

    if (measured) {
        uci_fill_learn(fill, uci_process_time_ns() - begin, length);
    }
    if (far) {
        UCI_STATS_INC(far_chunks);
    }
    uci_fill_next(fill);
    return value;
}
