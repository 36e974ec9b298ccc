/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Damage to bytes, as drawn by fault/fault.h.
 */
#ifndef UCI_INJECT_BYTES_H_
#define UCI_INJECT_BYTES_H_

#include "fault/fault.h"

/** Damage a fixed number of bytes: the lost tail of a truncation becomes zeros. @param stale  older content, or NULL. */
void uci_inject_in_place(const uci_fault_t *fault, void *data, size_t length, const void *stale);

/** The same, without older content. */
void uci_inject_bytes(const uci_fault_t *fault, void *data, size_t length);

/** So many drawn faults could not be applied: no memory for what was to be damaged. */
void uci_inject_undo(unsigned count);

/** Keep what goes by now for later faults of kind stale. */
void uci_inject_remember(const void *data, size_t length);

/** @return what went by before, at least @a length bytes; NULL: there is none. */
const void *uci_inject_stale(size_t length);

#endif
