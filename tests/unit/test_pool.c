/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "capture.h"
#include "util/pool.h"

#include <string.h>

static unsigned inits, cleanups;

static void count_init(void *arg, void *object)
{
    cr_assert(arg == &inits);
    memset(object, 0x11, 100);
    ++inits;
}

static void count_cleanup(void *arg, void *object)
{
    cr_assert(arg == &inits);
    ++cleanups;
}

Test(pool, objects_are_apart_and_aligned)
{
    enum { COUNT = 1000 };
    static char *objects[COUNT];
    uci_pool_t pool;
    size_t i;

    uci_pool_init(&pool, 100, 7, NULL, NULL, NULL);
    for (i = 0; i < COUNT; ++i) {
        objects[i] = uci_pool_get(&pool);
        cr_assert(objects[i] != NULL);
        cr_assert((uintptr_t)objects[i] % UCI_CACHE_LINE == 0);
        memset(objects[i], (int)i, 100);
    }
    cr_expect(pool.in_use == COUNT);
    for (i = 0; i < COUNT; ++i) {
        cr_assert((objects[i][0] == (char)i) && (objects[i][99] == (char)i), "object %zu was overwritten", i);
        uci_pool_put(&pool, objects[i]);
    }
    cr_expect(pool.in_use == 0);
    uci_pool_cleanup(&pool);
}

Test(pool, last_in_is_first_out)
{
    uci_pool_t pool;
    void *one, *two;

    uci_pool_init(&pool, 64, 4, NULL, NULL, NULL);
    one = uci_pool_get(&pool);
    two = uci_pool_get(&pool);
    uci_pool_put(&pool, two);
    uci_pool_put(&pool, one);
    cr_expect(uci_pool_get(&pool) == one);
    cr_expect(uci_pool_get(&pool) == two);
    uci_pool_cleanup(&pool);
}

Test(pool, fresh_objects_come_in_the_order_of_their_addresses)
{
    uci_pool_t pool;
    char *last, *next;
    int i;

    uci_pool_init(&pool, 65, 8, NULL, NULL, NULL);
    last = uci_pool_get(&pool);
    for (i = 1; i < 8; ++i) {
        next = uci_pool_get(&pool);
        cr_expect(next - last == 128);
        last = next;
    }
    uci_pool_cleanup(&pool);
}

Test(pool, init_and_cleanup_once_for_each_object)
{
    uci_pool_t pool;
    char *object;
    int i;

    uci_pool_init(&pool, 100, 5, count_init, count_cleanup, &inits);
    cr_expect(inits == 0);
    object = uci_pool_get(&pool);
    cr_expect(inits == 5);
    for (i = 8; i < 100; ++i) {
        cr_assert(object[i] == 0x11, "the object changed behind the link");
    }
    uci_pool_put(&pool, object);
    for (i = 0; i < 6; ++i) {
        uci_pool_get(&pool);
    }
    cr_expect(inits == 10);
    uci_pool_cleanup(&pool);
    cr_expect(cleanups == 10);
    uci_pool_cleanup(&pool);
    cr_expect(cleanups == 10, "a second cleanup does nothing");
}

Test(pool, works_again_after_cleanup)
{
    uci_pool_t pool;

    uci_pool_init(&pool, 64, 4, NULL, NULL, NULL);
    uci_pool_get(&pool);
    uci_pool_cleanup(&pool);
    cr_expect(uci_pool_get(&pool) != NULL);
    uci_pool_cleanup(&pool);
}

Test(pool, no_memory_is_an_error)
{
    test_capture_t capture;
    uci_pool_t pool;
    char *text;

    uci_pool_init(&pool, SIZE_MAX / 8, 4, NULL, NULL, NULL);
    capture = test_capture_start();
    cr_expect(uci_pool_get(&pool) == NULL);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "failed to allocate a slab") != NULL, "%s", text);
    free(text);
    uci_pool_cleanup(&pool);
}
