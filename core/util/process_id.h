/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What tells a process from all others, those of other times among them, to who knows it from a file.
 */
#ifndef UCI_PROCESS_ID_H_
#define UCI_PROCESS_ID_H_

#include <sys/types.h>
#include "types.h"

/** Boot id of this host as the kernel gives it (a UUID), read once; "" if it gives none. */
const char *uci_process_boot(void);

/** Inode of this process's pid namespace, in which a pid means something; 0 if that can't be read. */
uint64_t uci_process_pid_space(void);

/**
 * What two processes have in common whose messages to each other stay on the node: boot, host name and network namespace. A container with
 * a network of its own is another node. @return 0 if it is not known.
 */
uint64_t uci_process_machine(void);

/**
 * When a process began, in clock ticks after boot: one that has its number later began later.
 * @param dead_p  it has ended, and its parent has not asked for it yet. @return 0 if it can't be seen.
 */
uint64_t uci_process_start(pid_t pid, bool *dead_p);

/**
 * Does the process @a pid still run that began at @a start (uci_process_start(); 0 if not known)? Where others are hidden from us, and as long
 * as nothing says that it is another one, yes. Only for pids of this host and this pid namespace.
 */
bool uci_process_lives(pid_t pid, uint64_t start);

#endif
