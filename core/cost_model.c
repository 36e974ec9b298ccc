/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cost_model.h"

#include <math.h>
#include <string.h>

const char *const uci_path_names[] = {"auto", "direct", "stream", "get", "bounce", "eager", NULL};

/* @return the number of points of a size below @a size */
static unsigned uci_cost_find(const uci_cost_t *cost, uint64_t size)
{
    unsigned i;

    for (i = 0; (i < cost->count) && (cost->points[i].size < size); ++i) {
    }
    return i;
}

uci_status_t uci_cost_add(uci_cost_t *cost, uint64_t size, double ns)
{
    unsigned i  = uci_cost_find(cost, size);
    bool is_new = (i == cost->count) || (cost->points[i].size != size);

    if (!isfinite(ns) || (ns <= 0) || (is_new && (cost->count == UCI_COST_POINTS_MAX))) {
        return UCI_ERR_INVALID_PARAM;
    }
    if (is_new) {
        memmove(&cost->points[i + 1], &cost->points[i], (cost->count - i) * sizeof(cost->points[0]));
        ++cost->count;
    }
    cost->points[i].size = size;
    cost->points[i].ns   = ns;
    return UCI_OK;
}

double uci_cost_at(const uci_cost_t *cost, uint64_t size)
{
    const uci_cost_point_t *low, *high;
    double slope;
    unsigned i;

    if (cost->count == 0) {
        return 0;
    }
    if ((cost->count == 1) || (size <= cost->points[0].size)) {
        return cost->points[0].ns;
    }

    i     = uci_min(uci_cost_find(cost, size), cost->count - 1);
    low   = &cost->points[i - 1];
    high  = &cost->points[i];
    slope = (high->ns - low->ns) / (double)(high->size - low->size);
    if (size > high->size) {
        /* noise must not make what is larger free */
        slope = (slope > 0) ? slope : high->ns / (double)uci_max(high->size, 1ul);
        return high->ns + slope * (double)(size - high->size);
    }
    return low->ns + slope * (double)(size - low->size);
}

uci_status_t uci_cost_fit(const uci_cost_t *cost, uci_cost_line_t *line_p)
{
    double weights = 0, sizes = 0, times = 0, squares = 0, products = 0;
    double weight, size, determinant, slope, latency;
    unsigned i;

    if (cost->count < 2) {
        return UCI_ERR_NO_ELEM;
    }

    for (i = 0; i < cost->count; ++i) {
        size   = (double)cost->points[i].size;
        weight = 1 / (cost->points[i].ns * cost->points[i].ns);
        weights += weight;
        sizes += weight * size;
        times += weight * cost->points[i].ns;
        squares += weight * size * size;
        products += weight * size * cost->points[i].ns;
    }
    determinant = weights * squares - sizes * sizes;
    slope       = (weights * products - sizes * times) / determinant;
    latency     = (times - slope * sizes) / weights;
    if (!isfinite(slope) || (slope <= 0)) {
        slope = times / sizes; /* no slope to be seen: all is bandwidth */
    }
    line_p->latency_ns   = uci_max(latency, 0.0);
    line_p->bytes_per_ns = 1 / slope;
    return UCI_OK;
}

double uci_cost_eager(const uci_cost_t *copy, uci_cost_line_t wire, uint64_t size)
{
    return 2 * uci_cost_at(copy, size) + uci_cost_line_at(wire, (double)size);
}

/* Bytes of the last chunk, and how many come before it */
static uint64_t uci_cost_last_chunk(uint64_t size, uint64_t chunk, uint64_t *before_p)
{
    *before_p = (size > 0) ? (size - 1) / chunk : 0;
    return size - *before_p * chunk;
}

double uci_cost_pipeline(const uci_cost_t *copy, uci_cost_line_t wire, double gap_ns, unsigned handshakes,
                         uint64_t size, uint64_t chunk)
{
    double stage    = gap_ns + uci_cost_at(copy, chunk);
    double transfer = (double)chunk / wire.bytes_per_ns;
    uint64_t before;
    uint64_t last = uci_cost_last_chunk(size, chunk, &before);

    return 2 * handshakes * wire.latency_ns + (double)before * uci_max(stage, transfer) +
           2 * (gap_ns + uci_cost_at(copy, last)) + uci_cost_line_at(wire, (double)last);
}

double uci_cost_get(const uci_cost_t *digest, uci_cost_line_t wire, double setup_ns, uint64_t size, uint64_t chunk)
{
    double transfer = (double)chunk / wire.bytes_per_ns;
    uint64_t before;
    uint64_t last = uci_cost_last_chunk(size, chunk, &before);

    return setup_ns + 3 * wire.latency_ns + (double)before * (transfer + uci_cost_at(digest, chunk)) +
           (double)last / wire.bytes_per_ns + uci_cost_at(digest, last);
}
