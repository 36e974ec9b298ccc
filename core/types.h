/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What every file of UCI may use: status codes, branch hints, small helpers. Nothing here knows of UCX.
 */
#ifndef UCI_TYPES_H_
#define UCI_TYPES_H_

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "uci_types.h"

#define uci_likely(_x)   __builtin_expect(!!(_x), 1)
#define uci_unlikely(_x) __builtin_expect(!!(_x), 0)
#define UCI_INLINE       static inline __attribute__((always_inline))
#define UCI_NOINLINE     __attribute__((noinline, cold))
#define UCI_CACHE_LINE   64

#define uci_min(_a, _b)                        ((_a) < (_b) ? (_a) : (_b))
#define uci_max(_a, _b)                        ((_a) > (_b) ? (_a) : (_b))
#define uci_div_up(_n, _d)                     (((_n) + (_d)-1) / (_d))
#define uci_align_up(_n, _a)                   ((((_n) + (_a)-1) / (_a)) * (_a))
#define uci_array_size(_a)                     (sizeof(_a) / sizeof((_a)[0]))
#define uci_container_of(_ptr, _type, _member) ((_type *)(void *)((char *)(_ptr)-offsetof(_type, _member)))

/** @return a constant, lower-case English text for @a status. Thread safe. */
const char *uci_status_string(uci_status_t status);

#endif
