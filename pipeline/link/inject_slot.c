/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_slot.h"

#include "live/stats.h"

/* Of the faults that hit one content of a slot, one is seen if it has been read */
static void uci_inject_slot_settle(uint8_t *hits, bool read)
{
    UCI_STATS_ADD(faults_unseen, *hits - (read && (*hits > 0)));
    *hits = 0;
}

void uci_inject_slot_begin(uci_bounce_t *bounce, uci_slot_t *slot, uint64_t mark)
{
    /* whoever comes for the old content from now on finds the new word */
    uint64_t claim = __atomic_exchange_n(&slot->claim, ~mark, __ATOMIC_ACQ_REL);

    uci_inject_slot_settle(&bounce->hits[slot - bounce->slots], claim == slot->mark);
}

void uci_inject_slot_hit(uci_bounce_t *bounce, const uci_slot_t *slot, uint64_t count)
{
    bounce->hits[slot - bounce->slots] += (uint8_t)count;
}

void uci_inject_slots_end(uci_bounce_t *bounce)
{
    unsigned i;

    for (i = 0; (bounce->slots != NULL) && (i < UCI_SLOT_COUNT); ++i) {
        uci_inject_slot_begin(bounce, &bounce->slots[i], 0);
    }
}

void uci_inject_slot_read(uci_slot_t *slot, uint64_t mark)
{
    uint64_t unread = ~mark;

    (void)__atomic_compare_exchange_n(&slot->claim, &unread, mark, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
