/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "attach/handles.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>

static uci_handles_t table;

static void *handle(uintptr_t i)
{
    return (void *)(0x7f0000000000ul + (i * 64));
}

Test(handles, empty)
{
    cr_expect(uci_handles_find(&table, handle(1)) == NULL);
    cr_expect(uci_handles_remove(&table, handle(1)) == NULL);
}

Test(handles, many)
{
    enum { COUNT = 20000 };
    uintptr_t i;

    for (i = 0; i < COUNT; ++i) {
        cr_assert(uci_handles_add(&table, handle(i), handle(i + 1)));
    }
    for (i = 0; i < COUNT; ++i) {
        cr_assert(uci_handles_find(&table, handle(i)) == handle(i + 1), "handle %lu", (unsigned long)i);
    }
    cr_expect(uci_handles_find(&table, handle(COUNT)) == NULL);
    for (i = 0; i < COUNT; i += 2) {
        cr_assert(uci_handles_remove(&table, handle(i)) == handle(i + 1));
        cr_assert(uci_handles_remove(&table, handle(i)) == NULL);
    }
    for (i = 0; i < COUNT; ++i) {
        cr_assert(uci_handles_find(&table, handle(i)) == ((i % 2 == 0) ? NULL : handle(i + 1)));
    }
}

Test(handles, adding_again_replaces)
{
    size_t mask;
    int i;

    cr_assert(uci_handles_add(&table, handle(1), handle(2)));
    mask = table.slots->mask;
    for (i = 0; i < 10000; ++i) {
        cr_assert(uci_handles_add(&table, handle(1), handle(3)));
    }
    cr_expect(uci_handles_find(&table, handle(1)) == handle(3));
    cr_expect(table.slots->mask == mask, "one handle fills a table of %zu entries", table.slots->mask + 1);
    cr_expect(uci_handles_remove(&table, handle(1)) == handle(3));
    cr_expect(uci_handles_find(&table, handle(1)) == NULL);
}

/* A program that makes and frees datatypes all its life must not fill memory */
Test(handles, coming_and_going_does_not_grow)
{
    uintptr_t i;

    for (i = 0; i < 100000; ++i) {
        cr_assert(uci_handles_add(&table, handle(i), handle(i)));
        cr_assert(uci_handles_remove(&table, handle(i)) == handle(i));
    }
    cr_expect(table.slots->mask < 4096, "a table of %zu entries for one handle at a time", table.slots->mask + 1);
}

/* Nor where some stay. Old tables are kept for readers: only growing may leave one */
Test(handles, what_stays_beside_what_comes_and_goes)
{
    const uci_handle_slots_t *slots = NULL;
    size_t tables = 0, heap = 0;
    uintptr_t i;

    for (i = 0; i < 500; ++i) {
        cr_assert(uci_handles_add(&table, handle(i * 1000), handle(i)));
    }
    for (i = 1; i < 1000000; ++i) {
        tables += (table.slots != slots);
        slots = table.slots;
        cr_assert(uci_handles_add(&table, handle(1000000 + (i * i)), handle(i)));
        cr_assert(uci_handles_remove(&table, handle(1000000 + (i * i))) == handle(i));
        heap = (i == 1000) ? mallinfo2().uordblks : heap;
    }
    cr_expect(tables == 1, "%zu tables", tables);
    cr_expect(mallinfo2().uordblks <= heap + 4096, "%zu bytes more", mallinfo2().uordblks - heap);
    for (i = 0; i < 500; ++i) {
        cr_assert(uci_handles_find(&table, handle(i * 1000)) == handle(i));
    }
}

/* One entry is kept twice: whatever comes and goes, both ways to look up find the same */
Test(handles, first_finds_what_find_finds)
{
    uintptr_t i, j;

    cr_expect(uci_handles_find_first(&table, handle(1)) == NULL);
    for (i = 0; i < 1000; ++i) {
        if (i % 7 < 4) {
            cr_assert(uci_handles_add(&table, handle(i % 5), handle(i)));
        } else {
            uci_handles_remove(&table, handle(i % 5));
        }
        for (j = 0; j < 6; ++j) {
            cr_assert(uci_handles_find_first(&table, handle(j)) == uci_handles_find(&table, handle(j)), "step %lu, %lu",
                      (unsigned long)i, (unsigned long)j);
        }
        cr_assert(uci_handles_find_first(&table, NULL) == NULL);
    }
}

static bool stop;

static void *look_up(void *arg)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (uci_handles_find(&table, handle(1)) != handle(2)) {
            return (void *)1;
        }
    }
    return NULL;
}

/* Readers hold no lock: what stays is found at any time */
Test(handles, readers_beside_a_writer, .timeout = 20)
{
    pthread_t threads[2];
    void *wrong;
    uintptr_t i;

    cr_assert(uci_handles_add(&table, handle(1), handle(2)));
    for (i = 0; i < 2; ++i) {
        pthread_create(&threads[i], NULL, look_up, NULL);
    }
    for (i = 100; i < 60000; ++i) {
        uci_handles_add(&table, handle(i), handle(i));
        if (i % 3 != 0) {
            uci_handles_remove(&table, handle(i));
        }
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (i = 0; i < 2; ++i) {
        pthread_join(threads[i], &wrong);
        cr_expect(wrong == NULL, "a handle that stays was not found");
    }
}
