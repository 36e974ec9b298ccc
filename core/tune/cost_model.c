/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost_model.h"

#include <math.h>
#include <string.h>

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
