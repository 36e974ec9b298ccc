/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "util/list.h"

#include <criterion/criterion.h>

typedef struct item {
    int value;
    uci_list_t link;
} item_t;

static uci_list_t head;
static item_t items[5];

static void set_up(void)
{
    int i;

    uci_list_init(&head);
    for (i = 0; i < 5; ++i) {
        items[i].value = i;
        uci_list_init(&items[i].link);
    }
}

TestSuite(list, .init = set_up);

/* Values, in order, as a decimal number; and the same backwards */
static long values(const uci_list_t *list)
{
    long forward = 0, backward = 0, scale = 1;
    const uci_list_t *link;

    uci_list_for_each(item, (uci_list_t *)list, item_t, link)
    {
        forward = (forward * 10) + item->value + 1;
    }
    for (link = list->prev; link != list; link = link->prev) {
        backward = (backward * 10) + uci_container_of(link, item_t, link)->value + 1;
    }
    for (; backward > 0; backward /= 10) {
        scale = (scale * 10) + (backward % 10);
    }
    for (backward = 1; backward <= forward; backward *= 10) {
    }
    cr_assert(scale == forward + backward, "forward %ld, backward %ld", forward, scale);
    return forward;
}

Test(list, empty)
{
    cr_expect(uci_list_is_empty(&head));
    cr_expect(values(&head) == 0);
}

Test(list, order)
{
    uci_list_add_tail(&head, &items[0].link);
    uci_list_add_tail(&head, &items[1].link);
    uci_list_add_head(&head, &items[2].link);
    cr_expect(!uci_list_is_empty(&head));
    cr_expect(values(&head) == 312);
}

Test(list, removed_twice)
{
    uci_list_add_tail(&head, &items[0].link);
    uci_list_add_tail(&head, &items[1].link);
    uci_list_add_tail(&head, &items[2].link);
    uci_list_del(&items[1].link);
    cr_expect(values(&head) == 13);
    cr_expect(uci_list_is_empty(&items[1].link));
    uci_list_del(&items[1].link);
    cr_expect(values(&head) == 13);
    uci_list_del(&items[0].link);
    uci_list_del(&items[2].link);
    cr_expect(uci_list_is_empty(&head));
}

Test(list, move_all)
{
    uci_list_t other;
    int i;

    uci_list_move(&head, &other);
    cr_expect(uci_list_is_empty(&head) && uci_list_is_empty(&other));
    for (i = 0; i < 4; ++i) {
        uci_list_add_tail(&head, &items[i].link);
    }
    uci_list_move(&head, &other);
    cr_expect(uci_list_is_empty(&head));
    cr_expect(values(&other) == 1234);
    uci_list_add_tail(&head, &items[4].link);
    cr_expect(values(&head) == 5);
}

Test(list, move_one)
{
    uci_list_t other;

    uci_list_add_tail(&head, &items[3].link);
    uci_list_move(&head, &other);
    cr_expect(values(&other) == 4);
    uci_list_del(&items[3].link);
    cr_expect(uci_list_is_empty(&other));
}

Test(list, elements_may_go_while_walking)
{
    unsigned seen = 0;
    int i;

    for (i = 0; i < 5; ++i) {
        uci_list_add_tail(&head, &items[i].link);
    }
    uci_list_for_each_safe(item, &head, item_t, link)
    {
        ++seen;
        if (item->value % 2 == 0) {
            uci_list_del(&item->link);
        }
    }
    cr_expect(seen == 5);
    cr_expect(values(&head) == 24);
}

Test(list, elements_are_put_behind_in_turn)
{
    uci_list_t todo;
    int i;

    for (i = 0; i < 3; ++i) {
        uci_list_add_tail(&head, &items[i].link);
    }
    uci_list_move(&head, &todo);
    cr_expect(uci_list_requeue(&todo, &head) == &items[0].link);
    uci_list_del(&items[1].link); /* goes while it waits for its turn */
    cr_expect(uci_list_requeue(&todo, &head) == &items[2].link);
    cr_expect(uci_list_is_empty(&todo));
    cr_expect(values(&head) == 13);
}
