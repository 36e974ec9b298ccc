/* SPDX-License-Identifier: BSD-3-Clause */
#include "region.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "datatype.h"

struct uci_mpi_layout {
    unsigned references;
    size_t count, room;
    bool failed; /* there is no memory for it, or it is in too many pieces */
    uci_mpi_block_t *blocks;
};

static int uci_mpi_layout_keyval           = MPI_KEYVAL_INVALID;
static pthread_mutex_t uci_mpi_layout_lock = PTHREAD_MUTEX_INITIALIZER; /* of who gives a type its layout */

/* -------------------------------------------------------------- layouts */

static uci_mpi_layout_t *uci_mpi_layout_hold(uci_mpi_layout_t *layout)
{
    __atomic_fetch_add(&layout->references, 1, __ATOMIC_RELAXED);
    return layout;
}

static void uci_mpi_layout_release(uci_mpi_layout_t *layout)
{
    if ((layout != NULL) && (__atomic_sub_fetch(&layout->references, 1, __ATOMIC_ACQ_REL) == 0)) {
        free(layout->blocks);
        free(layout);
    }
}

static uci_mpi_layout_t *uci_mpi_layout_alloc(void)
{
    uci_mpi_layout_t *layout = calloc(1, sizeof(*layout));

    if (layout != NULL) {
        layout->references = 1;
    }
    return layout;
}

static void uci_mpi_layout_add(uci_mpi_layout_t *layout, intptr_t begin, intptr_t end)
{
    uci_mpi_block_t *blocks, *last = (layout->count > 0) ? &layout->blocks[layout->count - 1] : NULL;
    size_t room;

    if ((last != NULL) && (last->end == begin)) {
        last->end = end;
        return;
    }
    if (layout->count == layout->room) {
        room   = uci_max(2 * layout->room, (size_t)16);
        blocks = (room <= UCI_MPI_REGION_BLOCKS_MAX) ? realloc(layout->blocks, room * sizeof(*blocks)) : NULL;
        if (blocks == NULL) {
            layout->failed = true;
            return;
        }
        layout->blocks = blocks;
        layout->room   = room;
    }
    layout->blocks[layout->count++] = (uci_mpi_block_t){begin, end};
}

static int uci_mpi_block_compare(const void *one, const void *other)
{
    intptr_t a = ((const uci_mpi_block_t *)one)->begin, b = ((const uci_mpi_block_t *)other)->begin;

    return (a > b) - (a < b);
}

/* Of elements that lie in each other, as columns of a matrix do, blocks do not ascend */
static void uci_mpi_layout_sort(uci_mpi_layout_t *layout)
{
    uci_mpi_block_t *blocks = layout->blocks;
    size_t i, count = 0;

    for (i = 1; (i < layout->count) && (blocks[i - 1].end < blocks[i].begin); ++i) {
    }
    if (i >= layout->count) {
        return;
    }
    qsort(blocks, layout->count, sizeof(*blocks), uci_mpi_block_compare);
    for (i = 1; i < layout->count; ++i) {
        if (blocks[i].begin <= blocks[count].end) {
            blocks[count].end = uci_max(blocks[count].end, blocks[i].end);
        } else {
            blocks[++count] = blocks[i];
        }
    }
    layout->count = count + 1;
}

/* ---------------------------------------------------------------- types */

void uci_mpi_layout_forget(MPI_Datatype type)
{
    uci_mpi_datatype_drop(type, uci_mpi_layout_keyval);
}

static int uci_mpi_layout_on_delete(MPI_Datatype datatype, int keyval, void *value, void *extra)
{
    uci_mpi_layout_release(value);
    return MPI_SUCCESS;
}

static void uci_mpi_layout_make_keyval(void)
{
    if (PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, uci_mpi_layout_on_delete, &uci_mpi_layout_keyval, NULL) !=
        MPI_SUCCESS) {
        uci_mpi_layout_keyval = MPI_KEYVAL_INVALID;
    }
}

static void uci_mpi_layout_read_map(uci_mpi_layout_t *layout, const char *map, size_t length, intptr_t offset)
{
    const char *end = map + length, *from = map, *next;

    while ((from != NULL) && ((from = memchr(from, 1, (size_t)(end - from))) != NULL)) {
        next = memchr(from, 0, (size_t)(end - from));
        uci_mpi_layout_add(layout, offset + (from - map), offset + (((next != NULL) ? next : end) - map));
        from = next;
    }
}

/* Bytes of 1 are unpacked into memory of 0. What no element reaches of that memory is not there */
static void uci_mpi_layout_fill(uci_mpi_layout_t *layout, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    int size = 0, position = 0;
    void *packed;
    char *map;

    PMPI_Type_size(type, &size);
    PMPI_Type_get_true_extent(type, &lb, &extent);
    if ((size <= 0) || (extent <= 0) || ((size_t)extent > UCI_MPI_MAP_MAX)) {
        layout->failed = (size != 0);
        return;
    }
    packed = malloc((size_t)size);
    map    = mmap(NULL, (size_t)extent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if ((packed == NULL) || (map == MAP_FAILED)) {
        layout->failed = true;
    } else if (PMPI_Unpack(memset(packed, 1, (size_t)size), size, &position, map - lb, 1, type, MPI_COMM_SELF) ==
               MPI_SUCCESS) {
        uci_mpi_layout_read_map(layout, map, (size_t)extent, lb);
    }
    if (map != MAP_FAILED) {
        munmap(map, (size_t)extent);
    }
    free(packed);
}

static uci_mpi_layout_t *uci_mpi_layout_create(MPI_Datatype type)
{
    uci_mpi_layout_t *layout = uci_mpi_layout_alloc();

    if (layout != NULL) {
        uci_mpi_layout_fill(layout, type);
    }
    return layout;
}

/* @return that of one element, for uci_mpi_layout_release(), if the type has it; else NULL */
static uci_mpi_layout_t *uci_mpi_layout_get(MPI_Datatype type)
{
    int found = 0;
    void *value;

    return ((PMPI_Type_get_attr(type, uci_mpi_layout_keyval, &value, &found) == MPI_SUCCESS) && found)
                   ? uci_mpi_layout_hold(value)
                   : NULL;
}

/* The lock is held: a type gets its layout once, for a second one would delete the first, which others use. @return it, likewise; NULL: no memory */
static uci_mpi_layout_t *uci_mpi_layout_give(MPI_Datatype type)
{
    uci_mpi_layout_t *layout = uci_mpi_layout_get(type);

    if (layout != NULL) {
        return layout;
    }
    layout = uci_mpi_layout_create(type);
    if ((layout != NULL) &&
        (PMPI_Type_set_attr(type, uci_mpi_layout_keyval, uci_mpi_layout_hold(layout)) != MPI_SUCCESS)) {
        uci_mpi_layout_release(layout);
    }
    return layout;
}

/* @return that of one element, for uci_mpi_layout_release(); NULL: no memory */
static uci_mpi_layout_t *uci_mpi_layout_of_type(MPI_Datatype type)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uci_mpi_layout_t *layout;

    pthread_once(&once, uci_mpi_layout_make_keyval);
    if ((uci_mpi_layout_keyval == MPI_KEYVAL_INVALID) || uci_mpi_is_named(type)) {
        return uci_mpi_layout_create(type);
    }
    layout = uci_mpi_layout_get(type);
    if (layout == NULL) {
        pthread_mutex_lock(&uci_mpi_layout_lock);
        layout = uci_mpi_layout_give(type);
        pthread_mutex_unlock(&uci_mpi_layout_lock);
    }
    return layout;
}

/* Elements follow each other without gaps, wherever the first of them begins */
static bool uci_mpi_layout_is_gapless(const uci_mpi_layout_t *one, MPI_Aint extent)
{
    return (one->count == 1) && (one->blocks[0].end - one->blocks[0].begin == extent);
}

static uci_mpi_layout_t *uci_mpi_layout_repeat(const uci_mpi_layout_t *one, uint64_t count, MPI_Aint extent)
{
    uci_mpi_layout_t *layout = uci_mpi_layout_alloc();
    uint64_t i;
    size_t j;

    if ((layout != NULL) && uci_mpi_layout_is_gapless(one, extent)) {
        uci_mpi_layout_add(layout, one->blocks[0].begin, one->blocks[0].begin + ((intptr_t)count * extent));
        return layout;
    }
    for (i = 0; (layout != NULL) && (i < count) && !layout->failed; ++i) {
        for (j = 0; j < one->count; ++j) {
            uci_mpi_layout_add(layout, ((intptr_t)i * extent) + one->blocks[j].begin,
                               ((intptr_t)i * extent) + one->blocks[j].end);
        }
    }
    if (layout != NULL) {
        uci_mpi_layout_sort(layout);
    }
    return layout;
}

/* -------------------------------------------------------------- regions */

/* Of entries that lie in each other there may be as many bytes as the extent has, and gaps */
static bool uci_mpi_is_one_block(MPI_Datatype type, MPI_Aint size)
{
    uci_mpi_layout_t *layout;
    bool one;

    if (uci_mpi_is_named(type)) {
        return true;
    }
    layout = uci_mpi_layout_of_type(type);
    one    = (layout != NULL) && !layout->failed && uci_mpi_layout_is_gapless(layout, size);
    uci_mpi_layout_release(layout);
    return one;
}

bool uci_mpi_is_dense(MPI_Datatype type, uint64_t count)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    int size;

    if (type == MPI_DATATYPE_NULL) {
        return false;
    }
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lb, &extent);
    PMPI_Type_get_true_extent(type, &true_lb, &true_extent);
    return (size > 0) && (true_lb == 0) && (true_extent == size) && ((count == 1) || (extent == size)) &&
           uci_mpi_is_one_block(type, size);
}

void uci_mpi_region_release(uci_mpi_region_t *region)
{
    uci_mpi_layout_release(region->layout);
    *region = (uci_mpi_region_t){0};
}

/* It has its layout: where it begins and ends */
static void uci_mpi_region_bound(uci_mpi_region_t *region)
{
    const uci_mpi_layout_t *layout = region->layout;

    if ((layout == NULL) || layout->failed || (layout->count == 0)) {
        uci_mpi_region_release(region);
    } else {
        region->bounds = (uci_mpi_block_t){layout->blocks[0].begin, layout->blocks[layout->count - 1].end};
    }
}

uci_mpi_region_t uci_mpi_region_create(const void *buf, uint64_t count, MPI_Datatype type)
{
    uci_mpi_region_t region = {.buf = (uintptr_t)buf};
    uci_mpi_layout_t *one;
    MPI_Aint lb, extent;
    int size = 0;

    if (((int64_t)count <= 0) || (type == MPI_DATATYPE_NULL)) {
        return region; /* less than 0: an error, which MPI tells */
    }
    if (uci_mpi_is_dense(type, count)) {
        if (buf == NULL) {
            return region; /* an error, which MPI tells: addresses of its own, from MPI_BOTTOM on, has a type that is not dense alone */
        }
        PMPI_Type_size(type, &size);
        region.bounds.end = (intptr_t)((uint64_t)size * count);
        return region;
    }
    PMPI_Type_get_extent(type, &lb, &extent);
    one           = uci_mpi_layout_of_type(type);
    region.layout = ((one == NULL) || one->failed || (count == 1)) ? one : uci_mpi_layout_repeat(one, count, extent);
    if (region.layout != one) {
        uci_mpi_layout_release(one);
    }
    uci_mpi_region_bound(&region);
    return region;
}

static const uci_mpi_block_t *uci_mpi_region_blocks(const uci_mpi_region_t *region, size_t *count_p)
{
    *count_p = (region->layout != NULL) ? region->layout->count : 1;
    return (region->layout != NULL) ? region->layout->blocks : &region->bounds;
}

uci_mpi_region_t uci_mpi_region_begin(const void *buf)
{
    return (uci_mpi_region_t){.buf = (uintptr_t)buf, .layout = (buf != NULL) ? uci_mpi_layout_alloc() : NULL};
}

void uci_mpi_region_join(uci_mpi_region_t *region, const uci_mpi_region_t *part)
{
    const intptr_t shift = (intptr_t)(part->buf - region->buf);
    const uci_mpi_block_t *blocks;
    size_t i, count;

    if ((region->layout == NULL) || (part->bounds.begin == part->bounds.end)) {
        return;
    }
    blocks = uci_mpi_region_blocks(part, &count);
    for (i = 0; i < count; ++i) {
        uci_mpi_layout_add(region->layout, blocks[i].begin + shift, blocks[i].end + shift);
    }
}

void uci_mpi_region_end(uci_mpi_region_t *region)
{
    if (region->layout != NULL) {
        uci_mpi_layout_sort(region->layout);
    }
    uci_mpi_region_bound(region);
}

uint64_t uci_mpi_region_shared(const uci_mpi_region_t *one, const uci_mpi_region_t *other, intptr_t *offset_p)
{
    const intptr_t shift = (intptr_t)(other->buf - one->buf);
    const uci_mpi_block_t *ours, *theirs;
    size_t i = 0, j = 0, our_count, their_count;
    uint64_t bytes = 0;
    intptr_t begin, end;

    if ((one->bounds.begin >= other->bounds.end + shift) || (other->bounds.begin + shift >= one->bounds.end)) {
        return 0;
    }
    ours   = uci_mpi_region_blocks(one, &our_count);
    theirs = uci_mpi_region_blocks(other, &their_count);
    while ((i < our_count) && (j < their_count)) {
        begin = uci_max(ours[i].begin, theirs[j].begin + shift);
        end   = uci_min(ours[i].end, theirs[j].end + shift);
        if (begin < end) {
            *offset_p = (bytes == 0) ? begin : *offset_p;
            bytes += (uint64_t)(end - begin);
        }
        if (ours[i].end < theirs[j].end + shift) {
            ++i;
        } else {
            ++j;
        }
    }
    return bytes;
}
