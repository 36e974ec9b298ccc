/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults in what goes by active message: frames, messages, and the records that either is in.
 */
#ifndef UCI_INJECT_SEND_H_
#define UCI_INJECT_SEND_H_

#include <stdbool.h>

/** Take the place of UCX's function, or give it back. */
void uci_inject_send_install(bool here);

#endif
