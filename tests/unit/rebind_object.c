/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An object for test_rebind.c. Its relocation lasts until the test lets it end: it calls the resolver below, which waits, and fills
 * in the slots of the PLT thereafter, in pages that it makes read-only when all are done.
 */
#include "rebind_object.h"

void rebind_target(void);
void rebind_call(void);

static void indirect_body(void)
{
}

/* Nothing here is relocated yet, so it knows the test by an address alone */
static __attribute__((used)) void (*resolve(void))(void)
{
    rebind_stage_t *stage = REBIND_STAGE;

    __atomic_store_n(&stage->is_waiting, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stage->may_go_on, __ATOMIC_ACQUIRE)) {
    }
    return indirect_body;
}

__attribute__((visibility("default"))) void rebind_indirect(void) __attribute__((ifunc("resolve")));

__attribute__((visibility("default"))) void (*rebind_pointer)(void) = rebind_indirect;

__attribute__((visibility("default"))) void rebind_call(void)
{
    rebind_target();
}
