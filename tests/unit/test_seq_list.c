/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/seq_list.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define ITEMS 200000ul
#define FIRST 0xfffffff0ul /* they pass 2^32 */

static uci_seq_list_t list;
static uci_seq_link_t *items;

static void set_up(void)
{
    size_t i;

    uci_seq_list_init(&list);
    items = calloc(ITEMS, sizeof(*items));
    cr_assert(items != NULL);
    for (i = 0; i < ITEMS; ++i) {
        items[i].seq = FIRST + i;
    }
}

static void tear_down(void)
{
    free(list.table);
    free(items);
}

TestSuite(seq_list, .init = set_up, .fini = tear_down);

/* In order, as many as are counted, each found, and not those that are not there */
static void check(size_t count)
{
    uint64_t last = 0;
    size_t walked = 0;

    uci_list_for_each(elem, &list.list, uci_seq_link_t, link)
    {
        cr_assert(elem->seq > last);
        cr_assert(uci_seq_list_find(&list, elem->seq) == elem);
        last = elem->seq;
        ++walked;
    }
    cr_assert(walked == count && list.count == count, "%zu walked, %zu counted, %zu expected", walked, list.count,
              count);
    cr_assert(uci_seq_list_is_empty(&list) == (count == 0));
    cr_assert(uci_seq_list_find(&list, FIRST - 1) == NULL);
    cr_assert(uci_seq_list_find(&list, FIRST + ITEMS) == NULL);
    cr_assert(uci_seq_list_find(&list, (FIRST & UINT32_MAX) + (1ul << 40)) == NULL);
}

Test(seq_list, empty)
{
    check(0);
}

Test(seq_list, any_order)
{
    static const size_t counts[] = {1, 2, 5, 31, 32, 33, 129, 1000};
    size_t k, i, other, count;
    uci_seq_link_t item;

    srand(1);
    for (k = 0; k < uci_array_size(counts); ++k) {
        count = counts[k];
        for (i = count; i > 1; --i) { /* Fisher and Yates */
            other            = (size_t)rand() % i;
            item             = items[i - 1];
            items[i - 1]     = items[other];
            items[other].seq = item.seq;
        }
        for (i = 0; i < count; ++i) {
            cr_assert(uci_seq_list_find(&list, items[i].seq) == NULL);
            uci_seq_list_add(&list, &items[i]);
            check(i + 1);
        }
        for (i = 0; i < count; ++i) {
            uci_seq_list_del(&list, &items[i]);
            cr_assert(uci_seq_list_find(&list, items[i].seq) == NULL);
        }
        check(0);
        cr_assert(list.table == NULL, "its memory goes with the last element");
    }
}

/* A million small messages behind one that is missing, then those that are late, each asked for several times: by walking along the list it took
 * minutes (MPICH's transpose7 with faults). 10^5 steps each would be 10^10. */
Test(seq_list, late_ones_find_their_place_at_once, .timeout = 20)
{
    size_t i, again;

    for (i = 0; i < ITEMS; ++i) {
        if ((i & 1) == 0) {
            uci_seq_list_add(&list, &items[i]);
        }
    }
    for (i = ITEMS / 2; i < ITEMS + (ITEMS / 2); ++i) { /* from the middle on, then those before */
        if ((i & 1) == 1) {
            for (again = 0; again < 5; ++again) {
                cr_assert(uci_seq_list_find(&list, items[i % ITEMS].seq) == NULL);
            }
            uci_seq_list_add(&list, &items[i % ITEMS]);
        }
    }
    check(ITEMS);
}
