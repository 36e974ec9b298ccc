/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCI_TESTS_REBIND_OBJECT_H_
#define UCI_TESTS_REBIND_OBJECT_H_

/** At an address that both sides know: no relocation leads there. */
#define REBIND_STAGE ((rebind_stage_t *)0x1d0000000000ul)

typedef struct rebind_stage {
    int is_waiting; /**< relocation has begun */
    int may_go_on;
} rebind_stage_t;

#endif
