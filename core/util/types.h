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

/* Names that are new in each use, so that one use can be within another */
#define UCI_UNIQUE_JOIN(_name, _number) _name##_number
#define UCI_UNIQUE_NAME(_name, _number) UCI_UNIQUE_JOIN(_name, _number)
#define UCI_UNIQUE(_name)               UCI_UNIQUE_NAME(_name, __COUNTER__)

/* What evaluates an argument twice: of constants alone, where an expression has to be one (sizes of arrays, values of static data) */
#define UCI_DIV_UP_CONST(_n, _d)   (((_n) + (_d)-1) / (_d))
#define UCI_ALIGN_UP_CONST(_n, _a) (UCI_DIV_UP_CONST(_n, _a) * (_a))

#define UCI_ONCE(_a, _b, _x, _y, _result) \
    ({ \
        __auto_type _x = (_a); \
        __auto_type _y = (_b); \
        _result; \
    })
#define UCI_MIN_ONCE(_a, _b, _x, _y)      UCI_ONCE(_a, _b, _x, _y, _x < _y ? _x : _y)
#define UCI_MAX_ONCE(_a, _b, _x, _y)      UCI_ONCE(_a, _b, _x, _y, _x > _y ? _x : _y)
#define UCI_DIV_UP_ONCE(_n, _d, _x, _y)   UCI_ONCE(_n, _d, _x, _y, (_x + _y - 1) / _y)
#define UCI_ALIGN_UP_ONCE(_n, _a, _x, _y) UCI_ONCE(_n, _a, _x, _y, (_x + _y - 1) / _y * _y)

/* Each argument is evaluated once, whatever it does */
#define uci_min(_a, _b)                        UCI_MIN_ONCE(_a, _b, UCI_UNIQUE(_uci_x), UCI_UNIQUE(_uci_y))
#define uci_max(_a, _b)                        UCI_MAX_ONCE(_a, _b, UCI_UNIQUE(_uci_x), UCI_UNIQUE(_uci_y))
#define uci_div_up(_n, _d)                     UCI_DIV_UP_ONCE(_n, _d, UCI_UNIQUE(_uci_x), UCI_UNIQUE(_uci_y))
#define uci_align_up(_n, _a)                   UCI_ALIGN_UP_ONCE(_n, _a, UCI_UNIQUE(_uci_x), UCI_UNIQUE(_uci_y))
#define uci_array_size(_a)                     (sizeof(_a) / sizeof((_a)[0]))
#define uci_container_of(_ptr, _type, _member) ((_type *)(void *)((char *)(_ptr)-offsetof(_type, _member)))

/** @return a constant, lower-case English text for @a status. Thread safe. */
const char *uci_status_string(uci_status_t status);

#endif
