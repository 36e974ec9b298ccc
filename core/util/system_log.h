/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines in the system's log (journald, syslog), for who runs the machine. Rate limited, so that no job can fill it.
 */
#ifndef UCI_SYSTEM_LOG_H_
#define UCI_SYSTEM_LOG_H_

#include "types.h"

#define UCI_SYSTEM_LOG_LINES  10u           /**< of a process */
#define UCI_SYSTEM_LOG_PERIOD 60000000000ul /**< in so many ns */

/**
 * One line, "UCI: " and the text, as a warning of facility user. What the program itself may have said to openlog() is left as it is.
 * Lines beyond UCI_SYSTEM_LOG_LINES in a period are counted; their number is said with the first one of a later period, or when the
 * process ends. Thread safe. May wait for the log's daemon.
 */
void uci_system_log(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#endif
