/* SPDX-License-Identifier: BSD-3-Clause */
#include "handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "log.h"

#define UCI_HANDLES_MIN 64

static pthread_mutex_t uci_handles_lock = PTHREAD_MUTEX_INITIALIZER;

static void uci_handles_store(uci_handle_slots_t *slots, uintptr_t handle, void *object)
{
    size_t i = uci_handle_hash(handle);

    while ((slots->entries[i & slots->mask].handle != 0) && (slots->entries[i & slots->mask].handle != handle)) {
        ++i;
    }
    __atomic_store_n(&slots->entries[i & slots->mask].object, object, __ATOMIC_RELAXED);
    __atomic_store_n(&slots->entries[i & slots->mask].handle, handle, __ATOMIC_RELEASE);
}

/* At most half full, removed entries included; what was removed is dropped on the way */
static bool uci_handles_grow(uci_handles_t *table)
{
    uci_handle_slots_t *old = table->slots, *slots;
    size_t i, size = (old == NULL) ? UCI_HANDLES_MIN : 2 * (old->mask + 1);

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

bool uci_handles_add(uci_handles_t *table, const void *handle, void *object)
{
    bool ok = true;

    pthread_mutex_lock(&uci_handles_lock);
    if ((table->slots == NULL) || (2 * (table->used + 1) > table->slots->mask + 1)) {
        ok = uci_handles_grow(table);
    }
    if (ok) {
        uci_handles_store(table->slots, (uintptr_t)handle, object);
        ++table->used;
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
    for (i = uci_handle_hash((uintptr_t)handle);; ++i) {
        uci_handle_entry_t *entry = &table->slots->entries[i & table->slots->mask];

        if (entry->handle == 0) {
            break;
        }
        if (entry->handle == (uintptr_t)handle) {
            object = entry->object;
            __atomic_store_n(&entry->handle, UCI_HANDLE_REMOVED, __ATOMIC_RELEASE);
            break;
        }
    }
out:
    pthread_mutex_unlock(&uci_handles_lock);
    return object;
}
