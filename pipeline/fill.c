/* SPDX-License-Identifier: BSD-3-Clause */
#include "fill.h"

#include "process.h"
#include "stats.h"

/* Of so many chunks one is measured; and of so many, one that goes the other way */
#define UCI_FILL_MEASURE 16
#define UCI_FILL_TRY     128

/* The way around the caches is taken if it needs less than this part of the other's time. Not just less: who fills does not see that the
 * receiver then reads from memory. */
#define UCI_FILL_PART 0.6f

/* A chunk during which the process was not running says nothing */
#define UCI_FILL_OUTLIER 8

static void uci_fill_smooth(float *mean, float value)
{
    if (*mean == 0) {
        *mean = value;
    } else if (value < UCI_FILL_OUTLIER * *mean) {
        *mean += (value - *mean) / 4;
    } else {
        *mean += *mean / 4; /* unless it happens again and again */
    }
}

void uci_fill_learn(uci_fill_t *fill, bool far, uint64_t ns, size_t length)
{
    uci_fill_smooth(far ? &fill->far_ns : &fill->near_ns, (float)ns * 1024 / (float)length);
    fill->far = (fill->far_ns != 0) && (fill->far_ns < UCI_FILL_PART * fill->near_ns);
}

uint64_t uci_fill_copy(uci_fill_t *fill, const uci_digest_ops_t *digest, void *dst, const void *src, size_t length)
{
    uint32_t count = ++fill->count;
    bool other     = (count % UCI_FILL_TRY == 0);
    bool measured  = (count % UCI_FILL_MEASURE == 0);
    bool far       = (fill->far != other);
    uint64_t begin = measured ? uci_process_time_ns() : 0;
    uint64_t value = uci_digest_copy_as(digest, far ? UCI_FORM_FAR : UCI_FORM_FUSED, dst, src, length);

    if (measured) {
        uci_fill_learn(fill, far, uci_process_time_ns() - begin, length);
    }
    if (far) {
        UCI_STATS_INC(far_chunks);
    }
    return value;
}
