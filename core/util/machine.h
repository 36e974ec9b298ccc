/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which machine is this, as far as speed is concerned.
 */
#ifndef UCI_MACHINE_H_
#define UCI_MACHINE_H_

#include "types.h"

/** @return the CPU's model as the kernel names it ("AMD EPYC 9654 96-Core Processor"), read once; "unknown" where it
 *  has no name. Thread safe. */
const char *uci_machine_cpu(void);

/** @return the number of cores that are on line. */
unsigned uci_machine_cores(void);

/** @return how many of them this process may use: its affinity, which mpirun may have set. */
unsigned uci_machine_cores_usable(void);

#endif
