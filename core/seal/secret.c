/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions from mmap(), cut into blocks of powers of two, each with a header in front; freed blocks go on a list of their
 * size and the regions stay until the process ends. All of it is in no core dump, so a debugger's view of a dump shows nothing.
 */
#include "secret.h"
#include "util/log.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define UCI_SECRET_REGION      ((size_t)256 << 10) /* bytes of a region, at least */
#define UCI_SECRET_ORDERS      32                  /* sizes of blocks: 2^order bytes with the header */
#define UCI_SECRET_ORDER_MIN   7
#define UCI_SECRET_REGIONS_MAX 4096

/* In front of each block, as large as the alignment */
typedef struct uci_secret_block {
    struct uci_secret_block *next; /* when free */
    unsigned order;
} __attribute__((aligned(UCI_SECRET_ALIGN))) uci_secret_block_t;

typedef struct uci_secret_region {
    char *start;
    size_t size, used;
} uci_secret_region_t;

static pthread_mutex_t uci_secret_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_secret_block_t *uci_secret_free_blocks[UCI_SECRET_ORDERS];
static uci_secret_region_t uci_secret_regions[UCI_SECRET_REGIONS_MAX]; /* never removed: read without the lock */
static unsigned uci_secret_regions_count;

/* mlock() is allowed for little memory on many systems, and an encrypted swap area is a site's business: not an error. */
static void uci_secret_protect(void *start, size_t size)
{
    if (madvise(start, size, MADV_DONTDUMP) != 0) {
        uci_warn("keys are not left out of core dumps: madvise failed: %m");
    }
    if (madvise(start, size, MADV_WIPEONFORK) != 0) {
        uci_debug("keys are not wiped in forked children: madvise failed: %m"); /* before Linux 4.14 */
    }
    if (mlock(start, size) != 0) {
        uci_info("keys may be written to the swap area: mlock of %zu bytes failed: %m", size);
    }
}

static uci_secret_region_t *uci_secret_add_region(size_t size)
{
    uci_secret_region_t *region = &uci_secret_regions[uci_secret_regions_count];
    void *start;

    if (uci_secret_regions_count == UCI_SECRET_REGIONS_MAX) {
        uci_error("failed to allocate %zu bytes for keys: there are %u regions of them", size, UCI_SECRET_REGIONS_MAX);
        return NULL;
    }

    size  = uci_align_up(uci_max(size, UCI_SECRET_REGION), UCI_SECRET_REGION);
    start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        uci_error("failed to allocate %zu bytes for keys: %m", size);
        return NULL;
    }

    uci_secret_protect(start, size);
    region->start = start;
    region->size  = size;
    region->used  = 0;
    __atomic_store_n(&uci_secret_regions_count, uci_secret_regions_count + 1, __ATOMIC_RELEASE);
    return region;
}

/* What is left of the region before stays unused: at most half of a block that was too large for it */
static uci_secret_block_t *uci_secret_cut(unsigned order)
{
    size_t size                 = (size_t)1 << order;
    uci_secret_region_t *region = (uci_secret_regions_count > 0) ? &uci_secret_regions[uci_secret_regions_count - 1]
                                                                 : NULL;
    uci_secret_block_t *block;

    if ((region == NULL) || (region->size - region->used < size)) {
        region = uci_secret_add_region(size);
        if (region == NULL) {
            return NULL;
        }
    }

    block = (void *)(region->start + region->used);
    region->used += size;
    return block;
}

void *uci_secret_alloc(size_t size)
{
    unsigned order = UCI_SECRET_ORDER_MIN;
    uci_secret_block_t *block;

    while ((order < UCI_SECRET_ORDERS) && (((size_t)1 << order) - sizeof(*block) < size)) {
        ++order;
    }
    if (order == UCI_SECRET_ORDERS) {
        uci_error("failed to allocate %zu bytes for keys: more than is ever needed", size);
        return NULL;
    }

    pthread_mutex_lock(&uci_secret_lock);
    block = uci_secret_free_blocks[order];
    if (block != NULL) {
        uci_secret_free_blocks[order] = block->next;
    } else {
        block = uci_secret_cut(order);
    }
    pthread_mutex_unlock(&uci_secret_lock);
    if (block == NULL) {
        return NULL;
    }
    block->order = order;
    return block + 1;
}

void uci_secret_free(void *secret)
{
    uci_secret_block_t *block;

    if (secret == NULL) {
        return;
    }
    block = (uci_secret_block_t *)secret - 1;
    if (block->order == 0) { /* of the parent of a forked child: there is nothing left of it */
        return;
    }

    explicit_bzero(secret, uci_secret_size(secret));
    pthread_mutex_lock(&uci_secret_lock);
    block->next                          = uci_secret_free_blocks[block->order];
    uci_secret_free_blocks[block->order] = block;
    pthread_mutex_unlock(&uci_secret_lock);
}

bool uci_secret_owns(const void *ptr)
{
    unsigned i, count = __atomic_load_n(&uci_secret_regions_count, __ATOMIC_ACQUIRE);

    for (i = 0; i < count; ++i) {
        if (((const char *)ptr >= uci_secret_regions[i].start) &&
            ((const char *)ptr < uci_secret_regions[i].start + uci_secret_regions[i].size)) {
            return true;
        }
    }
    return false;
}

size_t uci_secret_size(const void *secret)
{
    unsigned order = ((const uci_secret_block_t *)secret - 1)->order;

    return (order == 0) ? 0 : ((size_t)1 << order) - sizeof(uci_secret_block_t);
}
