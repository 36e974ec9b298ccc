/* SPDX-License-Identifier: BSD-3-Clause */
#include "handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/log.h"

#define UCI_HANDLES_MIN 64

static pthread_mutex_t uci_handles_lock = PTHREAD_MUTEX_INITIALIZER;

static void uci_handle_entry_set(uci_handle_entry_t *entry, uintptr_t handle, void *object)
{
    __atomic_store_n(&entry->object, object, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
}

/* @return true if an entry that was empty is used now; one whose handle was removed is used again */
static bool uci_handles_store(uci_handle_slots_t *slots, uintptr_t handle, void *object)
{
    uci_handle_entry_t *entry, *place = NULL;
    bool was_empty;
    size_t i;

    for (i = uci_handle_hash(handle);; ++i) {
        entry = &slots->entries[i & slots->mask];
        if ((entry->handle == handle) || (entry->handle == 0)) {
            break;
        }
        if ((entry->handle == UCI_HANDLE_REMOVED) && (place == NULL)) {
            place = entry;
        }
    }
    if ((entry->handle == handle) || (place == NULL)) {
        place = entry;
    }
    was_empty = (place->handle == 0);
    uci_handle_entry_set(place, handle, object);
    return was_empty;
}

/* At most half full, removed entries included; what was removed is dropped on the way */
static bool uci_handles_grow(uci_handles_t *table)
{
    uci_handle_slots_t *old = table->slots, *slots;
    size_t size             = (old == NULL) ? UCI_HANDLES_MIN : 2 * (old->mask + 1);
    size_t i;

    slots = calloc(1, sizeof(*slots) + (size * sizeof(slots->entries[0])));
    if (slots == NULL) {
        uci_error("failed to allocate a table of %zu handles", size);
        return false;
    }
    slots->mask = size - 1;
    table->used = 0;
    for (i = 0; (old != NULL) && (i <= old->mask); ++i) {
        if (old->entries[i].handle > UCI_HANDLE_REMOVED) {
            uci_handles_store(slots, old->entries[i].handle, old->entries[i].object);
            ++table->used;
        }
    }
    __atomic_store_n(&table->slots, slots, __ATOMIC_RELEASE);
    return true;
}

/* @return true if some entry behind this one is found by way of it */
static bool uci_handles_is_passed(const uci_handle_slots_t *slots, size_t place)
{
    size_t i;

    for (i = place + 1; slots->entries[i & slots->mask].handle != 0; ++i) {
        uintptr_t handle = slots->entries[i & slots->mask].handle;

        if ((handle > UCI_HANDLE_REMOVED) && (((i - uci_handle_hash(handle)) & slots->mask) >= i - place)) {
            return true;
        }
    }
    return false;
}

/* The entry in this place goes. What no other is found by way of is empty again: else the table would fill with what
 * was removed, and each new table would leave an old one. Entries never move, as readers may look at them */
static void uci_handles_clear(uci_handles_t *table, size_t place)
{
    uci_handle_slots_t *slots = table->slots;
    uintptr_t handle          = slots->entries[place & slots->mask].handle;
    size_t distance           = (place - uci_handle_hash(handle)) & slots->mask;
    size_t i;

    __atomic_store_n(&slots->entries[place & slots->mask].handle, UCI_HANDLE_REMOVED, __ATOMIC_RELEASE);
    for (i = 0; i <= distance; ++i) {
        uci_handle_entry_t *entry = &slots->entries[(place - i) & slots->mask];

        if ((entry->handle == UCI_HANDLE_REMOVED) && !uci_handles_is_passed(slots, place - i)) {
            uci_handle_entry_set(entry, 0, NULL);
            --table->used;
        }
    }
}

bool uci_handles_add(uci_handles_t *table, const void *handle, void *object)
{
    bool ok = true;

    pthread_mutex_lock(&uci_handles_lock);
    if ((table->slots == NULL) || (2 * (table->used + 1) > table->slots->mask + 1)) {
        ok = uci_handles_grow(table);
    }
    if (ok && uci_handles_store(table->slots, (uintptr_t)handle, object)) {
        ++table->used;
    }
    if (ok && ((table->first.handle == 0) || (table->first.handle == (uintptr_t)handle))) {
        uci_handle_entry_set(&table->first, (uintptr_t)handle, object);
    }
    pthread_mutex_unlock(&uci_handles_lock);
    return ok;
}

void *uci_handles_remove(uci_handles_t *table, const void *handle)
{
    void *object = NULL;
    size_t i;

    pthread_mutex_lock(&uci_handles_lock);
    if (table->slots == NULL) {
        goto out;
    }
    if (table->first.handle == (uintptr_t)handle) {
        uci_handle_entry_set(&table->first, 0, NULL);
    }
    for (i = uci_handle_hash((uintptr_t)handle);; ++i) {
        uci_handle_entry_t *entry = &table->slots->entries[i & table->slots->mask];

        if (entry->handle == 0) {
            break;
        }
        if (entry->handle == (uintptr_t)handle) {
            object = entry->object;
            uci_handles_clear(table, i);
            break;
        }
    }
out:
    pthread_mutex_unlock(&uci_handles_lock);
    return object;
}

void uci_handles_for_each(const uci_handles_t *table, void (*func)(void *object))
{
    size_t i;

    pthread_mutex_lock(&uci_handles_lock);
    for (i = 0; (table->slots != NULL) && (i <= table->slots->mask); ++i) {
        if (table->slots->entries[i].handle > UCI_HANDLE_REMOVED) {
            func(table->slots->entries[i].object);
        }
    }
    pthread_mutex_unlock(&uci_handles_lock);
}
