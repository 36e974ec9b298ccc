/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded in front of a library: there is no memory for it. Of the allocations whose caller lies in SCARCE_FILE (a part of a library's name), the one of number
 * SCARCE_AT fails, from 1 on, or with SCARCE_ON all from there on. At exit their number is written to SCARCE_COUNT. It shares no code with what it is used against.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "count.h"

static unsigned long scarce_at, scarce_count;
static int scarce_goes_on, scarce_is_ready;
static uintptr_t scarce_begin[8], scarce_end[8];
static unsigned scarce_ranges;

/* libc's own, which dlsym() would have to allocate for */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int scarce_look(struct dl_phdr_info *info, size_t size, void *name)
{
    unsigned i;

    if ((info->dlpi_name == NULL) || (strstr(info->dlpi_name, name) == NULL)) {
        return 0;
    }
    for (i = 0; (i < info->dlpi_phnum) && (scarce_ranges < 8); ++i) {
        if ((info->dlpi_phdr[i].p_type == PT_LOAD) && (info->dlpi_phdr[i].p_flags & PF_X)) {
            scarce_begin[scarce_ranges] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            scarce_end[scarce_ranges]   = scarce_begin[scarce_ranges] + info->dlpi_phdr[i].p_memsz;
            ++scarce_ranges;
        }
    }
    return 0;
}

/* Its libraries have been mapped before the first of their constructors runs, this one's after those it depends on */
__attribute__((constructor(101))) static void scarce_init(void)
{
    const char *at = getenv("SCARCE_AT"), *name = getenv("SCARCE_FILE");

    scarce_at      = (at != NULL) ? strtoul(at, NULL, 10) : 0;
    scarce_goes_on = getenv("SCARCE_ON") != NULL;
    dl_iterate_phdr(scarce_look, (void *)((name != NULL) ? name : "libucx_integrity"));
    scarce_is_ready = 1;
}

__attribute__((destructor)) static void scarce_write(void)
{
    write_count("SCARCE_COUNT", scarce_count);
}

static int scarce_fails(void *caller)
{
    unsigned long number;
    unsigned i;

    if (!scarce_is_ready) {
        scarce_init();
    }
    for (i = 0; i < scarce_ranges; ++i) {
        if (((uintptr_t)caller >= scarce_begin[i]) && ((uintptr_t)caller < scarce_end[i])) {
            number = __atomic_add_fetch(&scarce_count, 1, __ATOMIC_RELAXED);
            if ((scarce_at != 0) && ((number == scarce_at) || (scarce_goes_on && (number > scarce_at)))) {
                if (getenv("SCARCE_TRAP") != NULL) {
                    __builtin_trap();
                }
                errno = ENOMEM;
                return 1;
            }
        }
    }
    return 0;
}

#define SCARCE_FAILS scarce_fails(__builtin_return_address(0))

void *malloc(size_t size)
{
    return SCARCE_FAILS ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return SCARCE_FAILS ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return SCARCE_FAILS ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size)
{
    return SCARCE_FAILS ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return SCARCE_FAILS ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory_p, size_t alignment, size_t size)
{
    void *memory = SCARCE_FAILS ? NULL : __libc_memalign(alignment, size);

    if (memory != NULL) {
        *memory_p = memory;
    }
    return (memory != NULL) ? 0 : ENOMEM;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);

    if (real == NULL) {
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    }
    return SCARCE_FAILS ? MAP_FAILED : real(address, length, protection, flags, fd, offset);
}
