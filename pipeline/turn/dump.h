/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCI is at, for a job that hangs: a text of all workers, their peers and operations. Meant to be called by a debugger in a
 * process that it has stopped anywhere (docs/debugging.md, tests/watchdog.sh), so it takes no lock, allocates nothing, writes
 * with write(2), and ends although a list may be half changed. For the same reason what it says may be a step behind.
 */
#ifndef UCI_DUMP_H_
#define UCI_DUMP_H_

/** Write the state of all workers of this process to @a fd. Nobody may be using them meanwhile: see above. */
void uci_dump(int fd);

#endif
