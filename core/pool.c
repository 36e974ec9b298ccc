/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "log.h"

#define UCI_RANGE_MIN (16ul << 20)

typedef struct uci_pool_slab {
    struct uci_pool_slab *next;
    size_t size;
} uci_pool_slab_t;

/* Slabs of ranges outlive their pool: they wait here, by size, for the next one. */
static uci_pool_slab_t *uci_pool_spare_slabs;
static pthread_mutex_t uci_pool_range_lock = PTHREAD_MUTEX_INITIALIZER;

uci_status_t uci_range_reserve(uci_range_t *range, size_t size)
{
    void *base;

    for (; size >= UCI_RANGE_MIN; size /= 2) {
        base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base != MAP_FAILED) {
            range->base = range->next = base;
            range->end                = range->base + size;
            return UCI_OK;
        }
    }

    uci_error("failed to reserve %lu bytes of addresses: %m (is there a limit, ulimit -v?)", UCI_RANGE_MIN);
    return UCI_ERR_NO_MEMORY;
}

static uci_pool_slab_t *uci_pool_slab_from_range(uci_range_t *range, size_t size)
{
    uci_pool_slab_t **slab_p, *slab = NULL;

    size = uci_align_up(size, 4096);
    pthread_mutex_lock(&uci_pool_range_lock);
    for (slab_p = &uci_pool_spare_slabs; *slab_p != NULL; slab_p = &(*slab_p)->next) {
        if (((*slab_p)->size == size) && uci_range_has(range, *slab_p)) {
            slab    = *slab_p;
            *slab_p = slab->next;
            goto out;
        }
    }

    if (((size_t)(range->end - range->next) >= size) && (mprotect(range->next, size, PROT_READ | PROT_WRITE) == 0)) {
        slab = (uci_pool_slab_t *)(void *)range->next;
        range->next += size;
        slab->size = size;
    }

out:
    pthread_mutex_unlock(&uci_pool_range_lock);
    return slab;
}

static void uci_pool_slab_release(uci_pool_t *pool, uci_pool_slab_t *slab)
{
    if (pool->range == NULL) {
        free(slab);
        return;
    }

    pthread_mutex_lock(&uci_pool_range_lock);
    slab->next           = uci_pool_spare_slabs;
    uci_pool_spare_slabs = slab;
    pthread_mutex_unlock(&uci_pool_range_lock);
}

void uci_pool_init(uci_pool_t *pool, size_t size, size_t per_slab, uci_range_t *range, uci_pool_func_t init,
                   uci_pool_func_t cleanup, void *arg)
{
    memset(pool, 0, sizeof(*pool));
    pool->size     = uci_align_up(size, UCI_CACHE_LINE);
    pool->per_slab = per_slab;
    pool->range    = range;
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

    slab = (pool->range != NULL) ? uci_pool_slab_from_range(pool->range, size)
                                 : aligned_alloc(UCI_CACHE_LINE, uci_align_up(size, UCI_CACHE_LINE));
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
        uci_pool_slab_release(pool, slab);
    }
    pool->slabs = NULL;
    pool->free  = NULL;
}
