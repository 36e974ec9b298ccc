/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

typedef struct uci_pool_slab {
    struct uci_pool_slab *next;
} uci_pool_slab_t;

void uci_pool_init(uci_pool_t *pool, size_t size, size_t per_slab, uci_pool_func_t init, uci_pool_func_t cleanup,
                   void *arg)
{
    memset(pool, 0, sizeof(*pool));
    pool->size     = uci_align_up(size, UCI_CACHE_LINE);
    pool->per_slab = per_slab;
    pool->init     = init;
    pool->cleanup  = cleanup;
    pool->arg      = arg;
}

static char *uci_pool_slab_objects(uci_pool_slab_t *slab)
{
    return (char *)slab + UCI_CACHE_LINE;
}

bool uci_pool_grow(uci_pool_t *pool)
{
    size_t size = UCI_CACHE_LINE + (pool->per_slab * pool->size);
    uci_pool_slab_t *slab;
    char *object;
    size_t i;

    slab = aligned_alloc(UCI_CACHE_LINE, uci_align_up(size, UCI_CACHE_LINE));
    if (slab == NULL) {
        uci_error("failed to allocate a slab of %zu objects of %zu bytes", pool->per_slab, pool->size);
        return false;
    }

    slab->next  = pool->slabs;
    pool->slabs = slab;
    /* from the end, so that the objects are handed out in the order of their addresses */
    for (i = pool->per_slab; i-- > 0;) {
        object = uci_pool_slab_objects(slab) + (i * pool->size);
        if (pool->init != NULL) {
            pool->init(pool->arg, object);
        }
        ((uci_pool_elem_t *)(void *)object)->next = pool->free;
        pool->free                                = (uci_pool_elem_t *)(void *)object;
    }
    return true;
}

void uci_pool_cleanup(uci_pool_t *pool)
{
    uci_pool_slab_t *slab, *next;
    size_t i;

    for (slab = pool->slabs; slab != NULL; slab = next) {
        next = slab->next;
        for (i = 0; (pool->cleanup != NULL) && (i < pool->per_slab); ++i) {
            pool->cleanup(pool->arg, uci_pool_slab_objects(slab) + (i * pool->size));
        }
        free(slab);
    }
    pool->slabs = NULL;
    pool->free  = NULL;
}
