/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Side table: from a handle of UCX to what UCI knows of it. Looked up by every hook, so a look-up is a hash and
 * usually one comparison, without a lock: writers are serialized, readers see an entry or do not.
 */
#ifndef UCI_HANDLES_H_
#define UCI_HANDLES_H_

#include "util/types.h"

typedef struct uci_handle_entry {
    uintptr_t handle; /* 0: empty; UCI_HANDLE_REMOVED: empty, but what is looked for may be farther on */
    void *object;
} uci_handle_entry_t;

typedef struct uci_handle_slots {
    size_t mask;
    uci_handle_entry_t entries[];
} uci_handle_slots_t;

typedef struct uci_handles {
    uci_handle_entry_t first; /* a copy of one entry, or empty: uci_handles_find_first() */
    uci_handle_slots_t
            *slots; /* replaced by one of twice the size; old ones, together smaller than it, stay for readers
                                * that still look at them */
    size_t used;    /* entries that are not empty */
} uci_handles_t;

#define UCI_HANDLE_REMOVED ((uintptr_t)1)

/** Add or replace. @return false if there is no memory (logged). */
bool uci_handles_add(uci_handles_t *table, const void *handle, void *object);

/** @return what was removed, or NULL. */
void *uci_handles_remove(uci_handles_t *table, const void *handle);

/** Call @a func for each object. */
void uci_handles_for_each(const uci_handles_t *table, void (*func)(void *object));

UCI_INLINE size_t uci_handle_hash(uintptr_t handle)
{
    return (size_t)((handle * 0x9e3779b97f4a7c15ul) >> 40);
}

/** @return the object of a handle, or NULL: then UCI does not know it. */
UCI_INLINE void *uci_handles_find(const uci_handles_t *table, const void *handle)
{
    const uci_handle_slots_t *slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
    uintptr_t found;
    size_t i;

    if (uci_unlikely(slots == NULL)) {
        return NULL;
    }
    for (i = uci_handle_hash((uintptr_t)handle);; ++i) {
        const uci_handle_entry_t *entry = &slots->entries[i & slots->mask];

        found = __atomic_load_n(&entry->handle, __ATOMIC_ACQUIRE);
        if (uci_likely(found == (uintptr_t)handle)) {
            return __atomic_load_n(&entry->object, __ATOMIC_RELAXED);
        }
        if (found == 0) {
            return NULL;
        }
    }
}

/** As uci_handles_find(), for tables that usually have one entry. */
UCI_INLINE void *uci_handles_find_first(const uci_handles_t *table, const void *handle)
{
    return uci_likely(__atomic_load_n(&table->first.handle, __ATOMIC_ACQUIRE) == (uintptr_t)handle)
                   ? __atomic_load_n(&table->first.object, __ATOMIC_RELAXED)
                   : uci_handles_find(table, handle);
}

#endif
