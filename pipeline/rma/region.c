/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "digest/digest_small.h"
#include "execute.h"
#include "util/process_id.h"
#include "util/log.h"
#include "util/process.h"

_Static_assert(sizeof(uci_rma_packed_t) == 64, "as design.md has it");

static uint64_t uci_rma_check(const uci_rma_packed_t *packed)
{
    return uci_digest_xxh3_small(packed, offsetof(uci_rma_packed_t, check));
}

/* ------------------------------------------------------------ the table */

/* Without random bytes: what tells this context from others is its process, its address and the time */
static uint64_t uci_rma_owner(const uci_rma_regions_t *regions)
{
    uint64_t owner = 0;

    if (getrandom(&owner, sizeof(owner), GRND_NONBLOCK) != (ssize_t)sizeof(owner)) {
        owner = (uci_process_time_ns() * 0x9e3779b97f4a7c15ul) ^ (uint64_t)(uintptr_t)regions;
    }
    return owner | 1;
}

uci_rma_regions_t *uci_rma_regions_create(void)
{
    uci_rma_regions_t *regions = calloc(1, sizeof(*regions));

    if (regions == NULL) {
        uci_error("no memory for a context's regions");
        return NULL;
    }
    pthread_rwlock_init(&regions->lock, NULL);
    regions->owner = uci_rma_owner(regions);
    return regions;
}

void uci_rma_regions_destroy(uci_rma_regions_t *regions)
{
    if (regions != NULL) {
        pthread_rwlock_destroy(&regions->lock);
        free(regions->sorted);
        free(regions);
    }
}

static uci_rma_region_t *uci_rma_region_of(const uci_rma_regions_t *regions, ucp_mem_h memh)
{
    unsigned i;

    for (i = regions->count; i > 0; --i) {
        if (regions->sorted[i - 1].memh == memh) {
            return &regions->sorted[i - 1];
        }
    }
    return NULL;
}

static const uci_rma_region_t *uci_rma_region_find(const uci_rma_regions_t *regions, uint32_t number)
{
    unsigned low = 0, high = regions->count, middle;

    while (low < high) {
        middle = low + ((high - low) / 2);
        if (regions->sorted[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return ((low < regions->count) && (regions->sorted[low].number == number)) ? &regions->sorted[low] : NULL;
}

static bool uci_rma_regions_grow(uci_rma_regions_t *regions)
{
    unsigned room            = (regions->room > 0) ? 2 * regions->room : 16;
    uci_rma_region_t *sorted = realloc(regions->sorted, room * sizeof(*sorted));

    if (sorted == NULL) {
        uci_error("no memory for a region: what is done to it passes, not verified");
        return false;
    }
    regions->sorted = sorted;
    regions->room   = room;
    return true;
}

void uci_rma_region_add(uci_rma_regions_t *regions, ucp_mem_h memh, void *base, size_t length)
{
    uci_rma_region_t *region;

    pthread_rwlock_wrlock(&regions->lock);
    region = uci_rma_region_of(regions, memh);
    if (region != NULL) {
        ++region->maps;
    } else if ((regions->count < regions->room) || uci_rma_regions_grow(regions)) {
        regions->sorted[regions->count++] = (uci_rma_region_t){
                .number = ++regions->last, .maps = 1, .memh = memh, .base = base, .length = length};
    }
    pthread_rwlock_unlock(&regions->lock);
}

void uci_rma_region_remove(uci_rma_regions_t *regions, ucp_mem_h memh)
{
    uci_rma_region_t *region;

    pthread_rwlock_wrlock(&regions->lock);
    region = uci_rma_region_of(regions, memh);
    if ((region != NULL) && (--region->maps == 0)) {
        memmove(region, region + 1, (size_t)(regions->sorted + --regions->count - region) * sizeof(*region));
    }
    pthread_rwlock_unlock(&regions->lock);
}

/* ----------------------------------------------------------------- keys */

/* UCX's part: a set of memory domains and a byte, a byte and up to 255 for each domain, what it tells of the device and of distances. How
 * long it is no call tells whoever unpacks it */
#define UCI_RMA_KEY_FIRST  9u
#define UCI_RMA_KEY_DOMAIN 256u
#define UCI_RMA_KEY_LAST   256u

static bool uci_rma_packed_init(uci_rma_regions_t *regions, ucp_mem_h memh, size_t place, uci_rma_packed_t *packed)
{
    const uci_rma_region_t *region;

    pthread_rwlock_rdlock(&regions->lock);
    region = uci_rma_region_of(regions, memh);
    if (region != NULL) {
        *packed = (uci_rma_packed_t){.magic   = UCI_RMA_KEY_MAGIC,
                                     .owner   = regions->owner,
                                     .machine = uci_process_machine(),
                                     .base    = (uint64_t)(uintptr_t)region->base,
                                     .length  = region->length,
                                     .region  = region->number,
                                     .pid     = (uint32_t)getpid(),
                                     .place   = place};
    }
    pthread_rwlock_unlock(&regions->lock);
    return region != NULL;
}

void *uci_rma_key_pack(uci_rma_regions_t *regions, ucp_mem_h memh, const void *ucx, size_t *size_p)
{
    uci_rma_packed_t packed;
    char *key;

    if (!uci_rma_packed_init(regions, memh, *size_p, &packed)) {
        return NULL;
    }
    key = malloc(sizeof(packed) + *size_p);
    if (key == NULL) {
        uci_error("no memory for a key: what is done with it passes, not verified");
        return NULL;
    }
    packed.check = uci_rma_check(&packed);
    memcpy(key, ucx, *size_p);
    memcpy(key + *size_p, &packed, sizeof(packed));
    *size_p += sizeof(packed);
    return key;
}

size_t uci_rma_key_room(const void *key)
{
    uint64_t domains;

    memcpy(&domains, key, sizeof(domains));
    return uci_min(UCI_RMA_KEY_FIRST + ((unsigned)__builtin_popcountl(domains) * UCI_RMA_KEY_DOMAIN) +
                           UCI_RMA_KEY_LAST + sizeof(uci_rma_packed_t),
                   UCI_RMA_KEY_ROOM);
}

bool uci_rma_key_find(const char *key, size_t length, uci_rma_packed_t *packed_p)
{
    size_t place;

    for (place = UCI_RMA_KEY_FIRST; place + sizeof(*packed_p) <= length; ++place) {
        memcpy(packed_p, key + place, sizeof(*packed_p));
        if ((packed_p->magic == UCI_RMA_KEY_MAGIC) && (packed_p->place == place)) {
            return true;
        }
    }
    return false;
}

/* As far as a mark says: where nothing is sealed it does not tell the machine. The target knows all its contexts' regions */
static bool uci_rma_key_is_foreign(const uci_ep_t *ep, const uci_rma_packed_t *packed)
{
    const uci_mark_t *mark = &ep->peer->mark;

    return ep->peer->known &&
           ((packed->pid != mark->pid) || ((mark->machine != 0) && (packed->machine != mark->machine)));
}

/* What can't be attached, or is not to be without being sealed, is reached by messages */
static char *uci_rma_attach(const uci_ep_t *ep, const uci_rma_packed_t *packed, ucp_rkey_h ucx)
{
    void *memory = NULL;

    if (ep->peer->uid == ep->peer->worker->uid) {
        return (char *)(uintptr_t)packed->base;
    }
    if (!ep->peer->in_clear || (uci_ucp.rkey_ptr(ucx, packed->base, &memory) != UCS_OK)) {
        return NULL;
    }
    return memory;
}

uci_rma_key_t *uci_rma_key_unpack(const uci_rma_packed_t *packed)
{
    uci_rma_key_t *key = calloc(1, sizeof(*key));

    if (key == NULL) {
        uci_error("no memory for a key");
        return NULL;
    }
    key->packed = *packed;
    if (key->packed.check != uci_rma_check(&key->packed)) {
        uci_error("a key for memory at 0x%lx is damaged", (unsigned long)packed->base);
        free(key);
        return NULL;
    }
    return key;
}

void uci_rma_key_settle(uci_ep_t *ep, uci_rma_key_t *key, ucp_rkey_h ucx)
{
    key->foreign = uci_rma_key_is_foreign(ep, &key->packed);
    key->memory  = key->foreign ? NULL : uci_rma_attach(ep, &key->packed, ucx);
    key->settled = true;
}

/* ------------------------------------------------------------ operations */

static const char *uci_rma_region_complaint(const uci_rma_regions_t *regions, const uci_rma_header_t *what,
                                            const uci_rma_region_t **region_p)
{
    if (what->owner != regions->owner) {
        return "that is another context's";
    }
    *region_p = uci_rma_region_find(regions, what->region);
    if (*region_p == NULL) {
        return (what->region <= regions->last) ? "that has been unmapped" : "that there is not";
    }
    return uci_rma_is_within(what, (uintptr_t)(*region_p)->base, (*region_p)->length) ? NULL : "and outside of it";
}

ucs_status_t uci_rma_region_enter(uci_rma_regions_t *regions, const uci_rma_header_t *what, char **data_p,
                                  const char **why)
{
    const uci_rma_region_t *region = NULL;

    if (regions == NULL) {
        *why = "that there is not";
        return UCS_ERR_INVALID_ADDR;
    }
    pthread_rwlock_rdlock(&regions->lock);
    *why = uci_rma_region_complaint(regions, what, &region);
    if (*why != NULL) {
        pthread_rwlock_unlock(&regions->lock);
        return UCS_ERR_INVALID_ADDR;
    }
    *data_p = region->base + (what->address - (uint64_t)(uintptr_t)region->base);
    return UCS_OK;
}

void uci_rma_region_leave(uci_rma_regions_t *regions)
{
    pthread_rwlock_unlock(&regions->lock);
}
