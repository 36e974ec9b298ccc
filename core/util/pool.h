/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Pool of equal objects: a free list, last in first out (the warmest object is handed out next), fed by
 * slabs from the process's heap.
 *
 * A pool belongs to one thread at a time.
 */
#ifndef UCI_POOL_H_
#define UCI_POOL_H_

#include "types.h"

typedef struct uci_pool_elem {
    struct uci_pool_elem *next;
} uci_pool_elem_t;

typedef void (*uci_pool_func_t)(void *arg, void *object);

typedef struct uci_pool {
    uci_pool_elem_t *free;
    size_t size; /**< of an object, a multiple of the cache line */
    size_t per_slab;
    void *slabs;             /**< list of slabs, for clean-up */
    uci_pool_func_t init;    /**< called once for each object when its slab is made; may be NULL */
    uci_pool_func_t cleanup; /**< called once for each object by uci_pool_cleanup(); may be NULL */
    void *arg;
    size_t in_use;
} uci_pool_t;

/** Prepare a pool; allocates nothing. @a size is rounded up to cache lines. */
void uci_pool_init(uci_pool_t *pool, size_t size, size_t per_slab, uci_pool_func_t init, uci_pool_func_t cleanup,
                   void *arg);

/** Call cleanup for every object and give the slabs back. */
void uci_pool_cleanup(uci_pool_t *pool);

/** Make one more slab. @return false if there is no memory (logged). */
bool uci_pool_grow(uci_pool_t *pool);

/** @return an object with whatever content it had, or NULL. The first 8 bytes were used by the free list. */
UCI_INLINE void *uci_pool_get(uci_pool_t *pool)
{
    uci_pool_elem_t *elem = pool->free;

    if (uci_unlikely(elem == NULL)) {
        if (!uci_pool_grow(pool)) {
            return NULL;
        }
        elem = pool->free;
    }
    pool->free = elem->next;
    ++pool->in_use;
    return elem;
}

UCI_INLINE void uci_pool_put(uci_pool_t *pool, void *object)
{
    uci_pool_elem_t *elem = (uci_pool_elem_t *)object;

    elem->next = pool->free;
    pool->free = elem;
    --pool->in_use;
}

#endif
