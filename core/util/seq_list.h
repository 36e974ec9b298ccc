/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A list by number, which may have millions of elements: what comes in order, and what is late, finds its place at once.
 *
 * A list in order, and over it, once it is long, a table by number (chained, at least as many places as elements). A new element belongs to the end, or
 * behind the one that has the number before; where neither is so it is looked for from both ends at once.
 *
 * Not thread safe; elements belong to who adds them.
 */
#ifndef UCI_SEQ_LIST_H_
#define UCI_SEQ_LIST_H_

#include "list.h"

/** What an element begins with. */
typedef struct uci_seq_link {
    uci_list_t link;
    struct uci_seq_link *chain; /**< the next one in its place of the table */
    uint64_t seq;
} uci_seq_link_t;

typedef struct uci_seq_list {
    uci_list_t list;        /**< uci_seq_link_t, by number: for who walks along it */
    uci_seq_link_t **table; /**< NULL: the list is short, or there was no memory */
    size_t mask;            /**< places in the table, less 1 */
    size_t count;           /**< elements */
} uci_seq_list_t;

UCI_INLINE void uci_seq_list_init(uci_seq_list_t *list)
{
    uci_list_init(&list->list);
    list->table = NULL;
    list->count = 0;
}

UCI_INLINE bool uci_seq_list_is_empty(const uci_seq_list_t *list)
{
    return uci_list_is_empty(&list->list);
}

/** @return the element of this number, or NULL */
uci_seq_link_t *uci_seq_list_find(const uci_seq_list_t *list, uint64_t seq);

/** @param elem  with a number that no other element has */
void uci_seq_list_add(uci_seq_list_t *list, uci_seq_link_t *elem);

/** Take away an element that is in the list; with the last one the table's memory goes. */
void uci_seq_list_del(uci_seq_list_t *list, uci_seq_link_t *elem);

#endif
