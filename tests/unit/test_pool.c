/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "capture.h"
#include "pool.h"

#include <string.h>
#include <sys/resource.h>

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

    uci_pool_init(&pool, 100, 7, NULL, NULL, NULL, NULL);
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

    uci_pool_init(&pool, 64, 4, NULL, NULL, NULL, NULL);
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

    uci_pool_init(&pool, 65, 8, NULL, NULL, NULL, NULL);
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

    uci_pool_init(&pool, 100, 5, NULL, count_init, count_cleanup, &inits);
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

    uci_pool_init(&pool, 64, 4, NULL, NULL, NULL, NULL);
    uci_pool_get(&pool);
    uci_pool_cleanup(&pool);
    cr_expect(uci_pool_get(&pool) != NULL);
    uci_pool_cleanup(&pool);
}

Test(pool, range_tells_its_objects)
{
    uci_range_t range;
    uci_pool_t pool;
    char *object;
    int local, i;

    cr_assert(uci_range_reserve(&range, 64ul << 20) == UCI_OK);
    uci_pool_init(&pool, 300, 64, &range, NULL, NULL, NULL);
    for (i = 0; i < 1000; ++i) {
        object = uci_pool_get(&pool);
        cr_assert(uci_range_has(&range, object) && uci_range_has(&range, object + 299));
        memset(object, 1, 300);
    }
    cr_expect(!uci_range_has(&range, &local));
    cr_expect(!uci_range_has(&range, NULL));
    cr_expect(!uci_range_has(&range, range.base - 1));
    cr_expect(!uci_range_has(&range, range.end));
    uci_pool_cleanup(&pool);
}

/* Workers come and go; the range does not run out */
Test(pool, slabs_of_a_range_are_used_again)
{
    uci_range_t range;
    uci_pool_t pool;
    char *next;
    int i;

    cr_assert(uci_range_reserve(&range, 16ul << 20) == UCI_OK);
    uci_pool_init(&pool, 1000, 64, &range, NULL, NULL, NULL);
    cr_assert(uci_pool_get(&pool) != NULL);
    uci_pool_cleanup(&pool);
    next = range.next;
    for (i = 0; i < 1000; ++i) {
        uci_pool_init(&pool, 1000, 64, &range, NULL, NULL, NULL);
        cr_assert(uci_pool_get(&pool) != NULL);
        uci_pool_cleanup(&pool);
    }
    cr_expect(range.next == next);
}

Test(pool, an_exhausted_range_is_an_error)
{
    test_capture_t capture;
    uci_range_t range;
    uci_pool_t pool;
    unsigned count = 0;
    char *text;

    cr_assert(uci_range_reserve(&range, 16ul << 20) == UCI_OK);
    uci_pool_init(&pool, 1 << 20, 3, &range, NULL, NULL, NULL);
    capture = test_capture_start();
    while (uci_pool_get(&pool) != NULL) {
        ++count;
    }
    text = test_capture_stop(&capture);
    cr_expect((count >= 12) && (count <= 16), "%u objects of 1 MiB in 16 MiB", count);
    cr_expect(strstr(text, "failed to allocate a slab") != NULL, "%s", text);
    free(text);
    uci_pool_cleanup(&pool);
}

Test(pool, reserving_takes_what_the_limit_allows)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("ASan itself needs more addresses than the limit of this test allows");
#endif
    struct rlimit limit;
    test_capture_t capture;
    uci_range_t range;
    uci_status_t status;
    char *text;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 1ul << 30;
    cr_assert(setrlimit(RLIMIT_AS, &limit) == 0);
    cr_assert(uci_range_reserve(&range, 64ul << 30) == UCI_OK);
    cr_expect((range.end - range.base >= (16l << 20)) && (range.end - range.base < (1l << 30)));

    limit.rlim_cur = 1;
    cr_assert(setrlimit(RLIMIT_AS, &limit) == 0);
    capture = test_capture_start();
    status  = uci_range_reserve(&range, 64ul << 30);
    text    = test_capture_stop(&capture);
    cr_expect(status == UCI_ERR_NO_MEMORY);
    cr_expect((text == NULL) || (strstr(text, "ulimit -v") != NULL), "%s", text);
}
