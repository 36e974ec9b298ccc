/* SPDX-License-Identifier: BSD-3-Clause */
#include "hostmem.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/process.h"

/* The kernel leaves at least this much free below the first thread's stack; of an unlimited one the C library says that it goes on
 * down to the next mapping */
#define UCI_HOSTMEM_STACK_MAX ((uintptr_t)128 << 20)

/* Remembered pages: a word for a block of 16 pages, with its number plus 1 above a bit for each page */
#define UCI_HOSTMEM_PAGE_SHIFT  12
#define UCI_HOSTMEM_BLOCK_SHIFT 16
#define UCI_HOSTMEM_BLOCKS      4096

/* Where the heap ends now. The C library keeps it and lets others see it (glibc does so for all its architectures), while its sbrk(0)
 * asks the kernel each time */
extern void *__curbrk __attribute__((weak));

typedef struct uci_range {
    uintptr_t begin, end;
} uci_range_t;

static uci_range_t uci_hostmem_program; /* its variables */
static uintptr_t uci_hostmem_heap;      /* where it begins; UINTPTR_MAX: there is none */
static pthread_once_t uci_hostmem_once = PTHREAD_ONCE_INIT;

static __thread uci_range_t uci_hostmem_stack;

static uint64_t uci_hostmem_blocks[UCI_HOSTMEM_BLOCKS];

UCI_INLINE bool uci_range_has(const uci_range_t *range, uintptr_t address)
{
    return (address >= range->begin) && (address < range->end);
}

/* ------------------------------------------------- what never changes */

/* The program is the first object */
static int uci_hostmem_find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_range_t *range = arg;
    const ElfW(Phdr) * segment;
    uintptr_t begin;

    *range = (uci_range_t){UINTPTR_MAX, 0};
    for (segment = info->dlpi_phdr; segment < info->dlpi_phdr + info->dlpi_phnum; ++segment) {
        if ((segment->p_type == PT_LOAD) && (segment->p_flags & PF_W)) {
            begin        = info->dlpi_addr + segment->p_vaddr;
            range->begin = uci_min(range->begin, begin);
            range->end   = uci_max(range->end, begin + segment->p_memsz);
        }
    }
    return 1;
}

static uintptr_t uci_hostmem_find_heap(void)
{
    unsigned long begin = UINTPTR_MAX;
    char *line          = NULL;
    size_t size         = 0;
    FILE *stream        = fopen("/proc/self/maps", "re");

    if (stream == NULL) {
        return UINTPTR_MAX;
    }
    while (getline(&line, &size, stream) > 0) {
        if ((strstr(line, "[heap]") != NULL) && (sscanf(line, "%lx-", &begin) == 1)) {
            break;
        }
    }
    free(line);
    fclose(stream);
    return begin;
}

static void uci_hostmem_init(void)
{
    dl_iterate_phdr(uci_hostmem_find_program, &uci_hostmem_program);
    uci_hostmem_heap = uci_hostmem_find_heap();
}

static void uci_hostmem_find_stack(void)
{
    pthread_attr_t attr;
    void *lowest;
    size_t size;

    uci_hostmem_stack = (uci_range_t){UINTPTR_MAX, UINTPTR_MAX}; /* looked for once */
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        return;
    }
    if (pthread_attr_getstack(&attr, &lowest, &size) == 0) {
        uci_hostmem_stack.end   = (uintptr_t)lowest + size;
        uci_hostmem_stack.begin = uci_hostmem_stack.end - uci_min(size, UCI_HOSTMEM_STACK_MAX);
    }
    pthread_attr_destroy(&attr);
}

/* Of a program that switches stacks this may be another one: nothing is known of that */
static bool uci_hostmem_is_stack(uintptr_t address)
{
    uintptr_t now = (uintptr_t)__builtin_frame_address(0);

    if (uci_unlikely(uci_hostmem_stack.end == 0)) {
        uci_hostmem_find_stack();
    }
    return (address >= now) && uci_range_has(&uci_hostmem_stack, now) && (address < uci_hostmem_stack.end);
}

static uintptr_t uci_hostmem_heap_end(void)
{
    return (&__curbrk != NULL) ? (uintptr_t)__atomic_load_n(&__curbrk, __ATOMIC_RELAXED) : (uintptr_t)sbrk(0);
}

bool uci_hostmem_is_fixed(const void *address)
{
    uintptr_t byte = (uintptr_t)address;

    pthread_once(&uci_hostmem_once, uci_hostmem_init);
    return uci_hostmem_is_stack(byte) || uci_range_has(&uci_hostmem_program, byte) ||
           ((byte >= uci_hostmem_heap) && (byte < uci_hostmem_heap_end()));
}

/* ------------------------------------------------- what is remembered */

/* @return the word of an address's block; @a tag_p receives what marks it as that block's, @a bit_p the page's */
static uint64_t *uci_hostmem_block(const void *address, uint64_t *tag_p, uint64_t *bit_p)
{
    uint64_t block = (uintptr_t)address >> UCI_HOSTMEM_BLOCK_SHIFT;

    *tag_p = (block + 1) << 16;
    *bit_p = UINT64_C(1) << (((uintptr_t)address >> UCI_HOSTMEM_PAGE_SHIFT) % 16);
    return &uci_hostmem_blocks[(block * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - 12)];
}

_Static_assert(UCI_HOSTMEM_BLOCKS == 1 << 12, "bits of the product that choose a block");

/* What two threads note of one block at the same time may be lost: it is asked for again */
void uci_hostmem_remember(const void *address)
{
    uint64_t tag, bit, *block = uci_hostmem_block(address, &tag, &bit);
    uint64_t old = __atomic_load_n(block, __ATOMIC_RELAXED);

    __atomic_store_n(block, (((old >> 16) == (tag >> 16)) ? old : tag) | bit, __ATOMIC_RELAXED);
}

bool uci_hostmem_is_remembered(const void *address)
{
    uint64_t tag, bit, *block = uci_hostmem_block(address, &tag, &bit);
    uint64_t old = __atomic_load_n(block, __ATOMIC_RELAXED);

    if (((old >> 16) != (tag >> 16)) || !(old & bit)) {
        return false;
    }
    if (uci_likely(uci_process_is_readable(address, 1))) {
        return true;
    }
    __atomic_store_n(block, tag, __ATOMIC_RELAXED); /* nor are its neighbours what they were, perhaps */
    return false;
}
