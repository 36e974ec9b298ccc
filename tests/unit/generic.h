/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the generic datatypes of unit tests have in common: their state is the user's memory. A test brings test_packed_size(),
 * test_pack() and test_unpack().
 */
#ifndef UCI_TESTS_UNIT_GENERIC_H_
#define UCI_TESTS_UNIT_GENERIC_H_

#include "data/buffer.h"

static size_t test_packed_size(void *state);
static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length);
static ucs_status_t test_unpack(void *state, size_t offset, const void *src, size_t length);

static void *test_start_pack(void *context, const void *buffer, size_t count)
{
    return (void *)(uintptr_t)buffer;
}

static void *test_start_unpack(void *context, void *buffer, size_t count)
{
    return buffer;
}

static void test_finish(void *state)
{
}

static uci_generic_dt_t test_generic = {.ops = {.start_pack   = test_start_pack,
                                                .start_unpack = test_start_unpack,
                                                .packed_size  = test_packed_size,
                                                .pack         = test_pack,
                                                .unpack       = test_unpack,
                                                .finish       = test_finish}};

static uci_generic_dt_t *test_generic_lookup(ucp_datatype_t datatype)
{
    return &test_generic;
}

#endif
