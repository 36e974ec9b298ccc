/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Doubly linked ring list with a head, as in the Linux kernel and UCX.
 */
#ifndef UCI_LIST_H_
#define UCI_LIST_H_

#include "types.h"

typedef struct uci_list {
    struct uci_list *prev, *next;
} uci_list_t;

UCI_INLINE void uci_list_init(uci_list_t *head)
{
    head->prev = head->next = head;
}

UCI_INLINE bool uci_list_is_empty(const uci_list_t *head)
{
    return head->next == head;
}

UCI_INLINE void uci_list_add_tail(uci_list_t *head, uci_list_t *elem)
{
    elem->prev       = head->prev;
    elem->next       = head;
    head->prev->next = elem;
    head->prev       = elem;
}

UCI_INLINE void uci_list_add_head(uci_list_t *head, uci_list_t *elem)
{
    uci_list_add_tail(head->next, elem);
}

/** Remove; the element becomes an empty list, so that removing it again does no harm. */
UCI_INLINE void uci_list_del(uci_list_t *elem)
{
    /* it does not see that a ring's end is its head: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    elem->prev->next = elem->next;
    elem->next->prev = elem->prev;
    uci_list_init(elem);
}

/** Move all elements of @a from to @a to, which need not be initialized. */
UCI_INLINE void uci_list_move(uci_list_t *from, uci_list_t *to)
{
    uci_list_init(to);
    if (!uci_list_is_empty(from)) {
        *to            = *from;
        to->next->prev = to;
        to->prev->next = to;
        uci_list_init(from);
    }
}

/** Put the first element of @a todo at the end of @a list: for a walk during which elements of both come and go.
 *  @return that element. */
UCI_INLINE uci_list_t *uci_list_requeue(uci_list_t *todo, uci_list_t *list)
{
    uci_list_t *elem = todo->next;

    uci_list_del(elem);
    uci_list_add_tail(list, elem);
    return elem;
}

#define uci_list_for_each(_elem, _head, _type, _member) \
    for (_type *_elem = uci_container_of((_head)->next, _type, _member); &_elem->_member != (_head); \
         _elem        = uci_container_of(_elem->_member.next, _type, _member))

/** From the last element to the first; the body must not remove the current one. */
#define uci_list_for_each_back(_elem, _head, _type, _member) \
    for (_type *_elem = uci_container_of((_head)->prev, _type, _member); &_elem->_member != (_head); \
         _elem        = uci_container_of(_elem->_member.prev, _type, _member))

/** As uci_list_for_each(); the current element may be removed in the body. */
#define uci_list_for_each_safe(_elem, _head, _type, _member) \
    for (_type *_elem        = uci_container_of((_head)->next, _type, _member), \
               *_elem##_next = uci_container_of(_elem->_member.next, _type, _member); \
         &_elem->_member != (_head); \
         _elem = _elem##_next, _elem##_next = uci_container_of(_elem->_member.next, _type, _member))

#endif
