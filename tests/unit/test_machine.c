/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "util/machine.h"

Test(machine, has_a_name_and_cores)
{
    const char *name = uci_machine_cpu();

    cr_expect_gt(strlen(name), 0);
    cr_expect_null(strpbrk(name, "\n:"));
    cr_expect_neq(name[0], ' ');
    cr_expect_str_eq(uci_machine_cpu(), name);
    cr_expect_geq(uci_machine_cores(), 1);
}

Test(machine, usable_cores_are_the_affinity)
{
    cpu_set_t one;
    unsigned cpu = 0;

    cr_expect_leq(uci_machine_cores_usable(), uci_machine_cores());
    cr_assert_eq(sched_getaffinity(0, sizeof(one), &one), 0);
    while (!CPU_ISSET(cpu, &one)) {
        ++cpu;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    cr_expect_eq(uci_machine_cores_usable(), 1);
}
