/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "util/types.h"

#include <criterion/criterion.h>

static int calls;

static size_t next(void)
{
    return (size_t)++calls * 10;
}

/* What has an effect has it once: a fault that is applied twice is none */
#define CHECK_ONCE(_expression, _value, _calls) \
    do { \
        calls = 0; \
        cr_expect_eq(_expression, (size_t)(_value)); \
        cr_expect_eq(calls, _calls, #_expression ": %d calls", calls); \
    } while (0)

Test(types, arguments_are_evaluated_once)
{
    CHECK_ONCE(uci_min(next(), 100ul), 10, 1);
    CHECK_ONCE(uci_min(100ul, next()), 10, 1);
    CHECK_ONCE(uci_min(next(), 1ul), 1, 1);
    CHECK_ONCE(uci_max(next(), 100ul), 100, 1);
    CHECK_ONCE(uci_max(next(), 1ul), 10, 1);
    CHECK_ONCE(uci_max(1ul, next()), 10, 1);
    CHECK_ONCE(uci_div_up(21ul, next()), 3, 1);
    CHECK_ONCE(uci_div_up(next(), 3ul), 4, 1);
    CHECK_ONCE(uci_align_up(11ul, next()), 20, 1);
    CHECK_ONCE(uci_align_up(next(), 8ul), 16, 1);
}

Test(types, one_is_within_another)
{
    CHECK_ONCE(uci_min(uci_max(next(), 5ul), uci_min(next(), 100ul)), 10, 2);
    CHECK_ONCE(uci_align_up(uci_div_up(uci_max(next(), next()), 3ul), 8ul), 8, 2);
    cr_expect_eq(uci_max(uci_min(3, -1), uci_min(-2, 2)), -1);
}

/* Where an expression has to be constant */
static const size_t pages[UCI_DIV_UP_CONST(9, 4)] = {UCI_ALIGN_UP_CONST(9, 4)};

Test(types, constants)
{
    cr_expect_eq(uci_array_size(pages), 3);
    cr_expect_eq(pages[0], 12);
}

Test(types, status_strings)
{
    cr_expect_str_eq(uci_status_string(UCI_INPROGRESS), "operation in progress");
    cr_expect_str_eq(uci_status_string(UCI_OK), "success");
    cr_expect_str_eq(uci_status_string(UCI_ERR_NO_ELEM), "no such element");
    cr_expect_str_eq(uci_status_string(UCI_ERR_BUSY), "resource busy");
    cr_expect_str_eq(uci_status_string((uci_status_t)(UCI_ERR_BUSY - 1)), "unknown status");
    cr_expect_str_eq(uci_status_string((uci_status_t)(UCI_INPROGRESS + 1)), "unknown status");
}
