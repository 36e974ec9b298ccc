/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots of other objects, and above all of one whose relocation by another thread has not ended.
 */
#include "attach/rebind.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/process.h"
#include "rebind_object.h"

__attribute__((visibility("default"))) void rebind_target(void);

static unsigned target_calls, hook_calls;
static char object_path[4096]; /* beside this program */

/* The object calls this by its PLT */
void rebind_target(void)
{
    ++target_calls;
}

static void hook(void)
{
    ++hook_calls;
}

static void *lookup(const char *symbol, void *current)
{
    return (strcmp(symbol, "rebind_target") == 0) ? (void *)hook : NULL;
}

static void set_up(void)
{
    void *stage = mmap(REBIND_STAGE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                       -1, 0);

    cr_assert_eq(stage, (void *)REBIND_STAGE);
    cr_assert_gt(readlink("/proc/self/exe", object_path, sizeof(object_path) - 100), 0);
    strcpy(strrchr(object_path, '/') + 1, "librebind_object.so");
}

TestSuite(rebind, .init = set_up, .timeout = 20);

static uci_rebind_result_t rebind(const uci_rebind_extent_t *extent)
{
    uci_rebind_result_t result;

    cr_assert_eq(uci_rebind(lookup, false, extent, &result), UCI_OK);
    return result;
}

static uci_rebind_result_t settle_and_rebind(void)
{
    uci_rebind_extent_t extent;

    uci_rebind_settle(&extent);
    return rebind(&extent);
}

static void call(void *object)
{
    void (*function)(void);

    *(void **)&function = dlsym(object, "rebind_call");
    cr_assert_not_null(function);
    function();
}

static void *open_object(void *arg)
{
    return dlopen(object_path, RTLD_NOW);
}

static int find_relro(struct dl_phdr_info *info, size_t size, void *arg)
{
    const ElfW(Phdr) * segment;
    char **address_p = arg;

    if (strstr(info->dlpi_name, "rebind_object") == NULL) {
        return 0;
    }
    for (segment = info->dlpi_phdr; segment < info->dlpi_phdr + info->dlpi_phnum; ++segment) {
        if (segment->p_type == PT_GNU_RELRO) {
            *address_p = (char *)((info->dlpi_addr + segment->p_vaddr) & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
        }
    }
    return 1;
}

static char *relro_of_object(void)
{
    char *address = NULL;

    cr_assert(dl_iterate_phdr(find_relro, &address) && (address != NULL));
    return address;
}

static void wait_for_relocation(void)
{
    while (!__atomic_load_n(&REBIND_STAGE->is_waiting, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
}

Test(rebind, object_that_is_being_opened)
{
    uci_rebind_extent_t extent;
    void *object;
    pthread_t thread;

    uci_rebind_settle(&extent);
    cr_assert_eq(pthread_create(&thread, NULL, open_object, NULL), 0);
    wait_for_relocation();
    cr_expect_eq(rebind(&extent).slots, 0);
    cr_expect(uci_process_is_writable(relro_of_object()), "the loader goes on to write there");
    __atomic_store_n(&REBIND_STAGE->may_go_on, 1, __ATOMIC_RELEASE);
    pthread_join(thread, &object);
    cr_assert_not_null(object);
    call(object);
    cr_expect_eq(target_calls, 1, "not led anywhere yet");

    cr_expect_eq(settle_and_rebind().objects, 1, "nor taken for done");
    call(object);
    cr_expect_eq(hook_calls, 1);
    cr_expect_not(uci_process_is_writable(relro_of_object()), "read-only as before");
    cr_expect_eq(settle_and_rebind().objects, 0, "once");
}

/* So late that a settling that does not wait is seen */
static void *release_later(void *arg)
{
    wait_for_relocation();
    usleep(50000);
    __atomic_store_n(&REBIND_STAGE->may_go_on, 1, __ATOMIC_RELEASE);
    return NULL;
}

Test(rebind, settling_waits_for_it)
{
    pthread_t opening, releasing;
    uci_rebind_extent_t extent;
    void *object;

    /* in this order: the loader lets no thread be made while it relocates */
    cr_assert_eq(pthread_create(&releasing, NULL, release_later, NULL), 0);
    cr_assert_eq(pthread_create(&opening, NULL, open_object, NULL), 0);
    wait_for_relocation();
    uci_rebind_settle(&extent);
    cr_expect_not(uci_process_is_writable(relro_of_object()), "it has been made read-only");
    cr_expect_eq(rebind(&extent).objects, 1);
    pthread_join(opening, &object);
    pthread_join(releasing, NULL);
    call(object);
    cr_expect_eq(hook_calls, 1);
}

Test(rebind, pages_that_somebody_has_made_writable_stay_so)
{
    void *object;

    REBIND_STAGE->may_go_on = 1;
    object                  = open_object(NULL);
    cr_assert_not_null(object);
    cr_assert_eq(mprotect(relro_of_object(), (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE), 0);
    cr_expect_eq(settle_and_rebind().objects, 1);
    call(object);
    cr_expect_eq(hook_calls, 1);
    cr_expect(uci_process_is_writable(relro_of_object()));
}

Test(rebind, unloaded_meanwhile)
{
    uci_rebind_extent_t extent;
    uci_rebind_result_t result;
    void *object;

    REBIND_STAGE->may_go_on = 1;
    object                  = open_object(NULL);
    cr_assert_not_null(object);
    uci_rebind_settle(&extent);
    dlclose(object);
    cr_expect_eq(uci_rebind(lookup, false, &extent, &result), UCI_ERR_BUSY);
}
