/* SPDX-License-Identifier: BSD-3-Clause */
#include "seq_list.h"

#include <stdlib.h>

/* Elements that are looked at one by one, and how many times as many places a table has when it has to grow */
#define UCI_SEQ_LIST_SHORT 32u
#define UCI_SEQ_LIST_GROWS 4u

static uci_seq_link_t *uci_seq_list_elem(const uci_list_t *link)
{
    return uci_container_of(link, uci_seq_link_t, link);
}

static void uci_seq_list_chain(uci_seq_list_t *list, uci_seq_link_t *elem)
{
    uci_seq_link_t **place = &list->table[elem->seq & list->mask];

    elem->chain = *place;
    *place      = elem;
}

static void uci_seq_list_unchain(uci_seq_list_t *list, const uci_seq_link_t *elem)
{
    uci_seq_link_t **place = &list->table[elem->seq & list->mask];

    while (*place != elem) {
        place = &(*place)->chain;
    }
    *place = elem->chain;
}

/* What is not had for want of memory is had at the next element, or takes longer */
static void uci_seq_list_grow(uci_seq_list_t *list)
{
    size_t size = (size_t)1 << (64 - __builtin_clzl((UCI_SEQ_LIST_GROWS * list->count) - 1)); /* a power of 2 */
    uci_seq_link_t **table = calloc(size, sizeof(*table));

    if (table == NULL) {
        return;
    }
    free(list->table);
    list->table = table;
    list->mask  = size - 1;
    uci_list_for_each(elem, &list->list, uci_seq_link_t, link)
    {
        uci_seq_list_chain(list, elem);
    }
}

/* @return the first link, or the head, that a number goes before */
static uci_list_t *uci_seq_list_place(uci_list_t *list, uint64_t seq)
{
    uci_list_t *front = list->next,
               *back  = list; /* what is before front is lower; back, and what is behind it, is not */

    while (front != back) {
        if (uci_seq_list_elem(back->prev)->seq < seq) {
            return back;
        }
        back = back->prev;
        if ((front == back) || (uci_seq_list_elem(front)->seq >= seq)) {
            return front;
        }
        front = front->next;
    }
    return back;
}

uci_seq_link_t *uci_seq_list_find(const uci_seq_list_t *list, uint64_t seq)
{
    uci_seq_link_t *elem;

    if (list->table == NULL) {
        uci_list_t *place = uci_seq_list_place((uci_list_t *)&list->list, seq);

        elem = uci_seq_list_elem(place);
        return ((place != &list->list) && (elem->seq == seq)) ? elem : NULL;
    }
    for (elem = list->table[seq & list->mask]; (elem != NULL) && (elem->seq != seq); elem = elem->chain) {
    }
    return elem;
}

void uci_seq_list_add(uci_seq_list_t *list, uci_seq_link_t *elem)
{
    uci_seq_link_t *before = (list->table != NULL) ? uci_seq_list_find(list, elem->seq - 1) : NULL;

    if (before != NULL) {
        uci_list_add_head(&before->link, &elem->link);
    } else {
        uci_list_add_tail(uci_seq_list_place(&list->list, elem->seq), &elem->link);
    }
    ++list->count;
    if (list->table != NULL) {
        uci_seq_list_chain(list, elem);
    }
    if (list->count > ((list->table != NULL) ? list->mask + 1 : UCI_SEQ_LIST_SHORT)) {
        uci_seq_list_grow(list);
    }
}

void uci_seq_list_del(uci_seq_list_t *list, uci_seq_link_t *elem)
{
    uci_list_del(&elem->link);
    if (list->table != NULL) {
        uci_seq_list_unchain(list, elem);
    }
    if (--list->count == 0) {
        free(list->table);
        list->table = NULL;
    }
}
