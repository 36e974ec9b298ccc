/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_info --check: is UCI on for a process that is started here and now? It starts one and asks (uci_probe).
 */
#ifndef UCI_INFO_CHECK_H_
#define UCI_INFO_CHECK_H_

#include <stdbool.h>

/** Exit codes of uci_info --check; see uci_info(1). */
enum {
    UCI_INFO_CHECK_ON          = 0,
    UCI_INFO_CHECK_OFF         = 1, /**< no process that is started here has UCI */
    UCI_INFO_CHECK_UNPROTECTED = 3, /**< UCI is there, and does not protect */
    UCI_INFO_CHECK_UNKNOWN     = 4  /**< it can't be found out: no UCX, or UCX fails */
};

/**
 * Find out, and tell on stdout.
 * @param as_json  one JSON object instead of lines for people.
 * @return one of the codes above.
 */
int uci_info_check(bool as_json);

#endif
