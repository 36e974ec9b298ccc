/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Accounting for faults in slots: which of those that hit a content were seen, since it was read, and which never were.
 */
#ifndef UCI_INJECT_SLOT_H_
#define UCI_INJECT_SLOT_H_

#include "slot.h"

/** A slot of our own is about to be filled, and marked with @a mark: what damaged its last content, was that read? */
void uci_inject_slot_begin(uci_bounce_t *bounce, uci_slot_t *slot, uint64_t mark);

/** The content of a slot has been hit by so many faults. */
void uci_inject_slot_hit(uci_bounce_t *bounce, const uci_slot_t *slot, uint64_t count);

/** The same as of uci_inject_slot_begin(), of all slots: they go. */
void uci_inject_slots_end(uci_bounce_t *bounce);

/** A reader is about to read a slot, which it has found to be marked with @a mark. */
void uci_inject_slot_read(uci_slot_t *slot, uint64_t mark);

#endif
