/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: say what is wrong.
 */
#ifndef UCI_CHECK_COMPLAIN_H_
#define UCI_CHECK_COMPLAIN_H_

/** Complain on stderr, "uci_check: " in front, on a line of its own. */
void uci_check_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** @return @a memory, of an allocation. A tool that has none left can only say so, and end. */
void *uci_check_memory(void *memory);

#endif
