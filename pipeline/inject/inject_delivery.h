/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults that escape: what has been verified is damaged in the user's buffer, as a processor or a memory would that computes wrong.
 */
#ifndef UCI_INJECT_DELIVERY_H_
#define UCI_INJECT_DELIVERY_H_

/** Take the place where messages are delivered, if that is asked for, or leave it. */
void uci_inject_delivery_install(void);

#endif
