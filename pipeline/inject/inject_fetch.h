/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults in what UCX fetches: between the two users' buffers there is no place of ours, so that they are drawn where it arrives.
 */
#ifndef UCI_INJECT_FETCH_H_
#define UCI_INJECT_FETCH_H_

#include <stdbool.h>

/** Take the places of UCX's functions, or give them back. */
void uci_inject_fetch_install(bool here);

#endif
