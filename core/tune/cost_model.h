/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What moving and checking n bytes costs: T(n) in nanoseconds.
 *
 * A measured cost is a list of points (size, time); between two of them time is linear in the size. Each piece is then a
 * model of Hockney's, latency + n / bandwidth (R. Hockney, "The communication challenge for MPP", 1994), and the pieces
 * meet where a cache ends or a protocol changes.
 */
#ifndef UCI_COST_MODEL_H_
#define UCI_COST_MODEL_H_

#include "util/path_id.h"
#include "util/types.h"

#define UCI_COST_POINTS_MAX 32

typedef struct uci_cost_point {
    uint64_t size; /**< bytes */
    double ns;
} uci_cost_point_t;

/** Points by ascending size, all different. The caller's storage; all zero is an empty one. */
typedef struct uci_cost {
    unsigned count;
    uci_cost_point_t points[UCI_COST_POINTS_MAX];
} uci_cost_t;

/**
 * Add a point, or replace the one of this size.
 * @return UCI_OK, or UCI_ERR_INVALID_PARAM (not logged) if @a ns is not a positive number or there is no more room.
 */
uci_status_t uci_cost_add(uci_cost_t *cost, uint64_t size, double ns);

/**
 * T(@a size): between points as the line through them; below the first one its time, since a call takes that long
 * whatever its size; beyond the last one at the bandwidth of the last piece.
 * @return nanoseconds; 0 if there are no points.
 */
double uci_cost_at(const uci_cost_t *cost, uint64_t size);

/** Latency and bandwidth of one link, engine or protocol. */
typedef struct uci_cost_line {
    double latency_ns;
    double bytes_per_ns; /**< GB/s */
} uci_cost_line_t;

/**
 * Hockney's two parameters for all points together, by least squares of the relative error (so that small sizes count).
 * @return UCI_OK, or UCI_ERR_NO_ELEM (not logged) with fewer than two points.
 */
uci_status_t uci_cost_fit(const uci_cost_t *cost, uci_cost_line_t *line_p);

#endif
