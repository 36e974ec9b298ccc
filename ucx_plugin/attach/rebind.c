/* SPDX-License-Identifier: BSD-3-Clause */
#include "rebind.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/log.h"
#include "util/process.h"

#if defined(__x86_64__)
#define UCI_REBIND_JUMP_SLOT R_X86_64_JUMP_SLOT
#define UCI_REBIND_GLOB_DAT  R_X86_64_GLOB_DAT
#define UCI_REBIND_POINTER   R_X86_64_64
#elif defined(__aarch64__)
#define UCI_REBIND_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define UCI_REBIND_GLOB_DAT  R_AARCH64_GLOB_DAT
#define UCI_REBIND_POINTER   R_AARCH64_ABS64
#endif

/* One loaded object, as far as it matters here. We know ourselves by _DYNAMIC, the linker's name for our own section */
typedef struct uci_object {
    const char *name;
    const ElfW(Dyn) * dynamic;
    ElfW(Addr) base;
    char *relro; /* what the loader has made read-only */
    size_t relro_size;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t soname;        /* offset in strings; 0: none */
    const uint32_t *hash; /* DT_GNU_HASH */
    const ElfW(Rela) * tables[2];
    size_t sizes[2]; /* bytes */
} uci_object_t;

typedef struct uci_slot {
    void **place;
    void *old;
    bool sealed; /* its page is read-only but for the moment */
} uci_slot_t;

/* The page that is being written to */
typedef struct uci_page {
    char *address; /* NULL: none */
    bool sealed;
} uci_page_t;

/* Objects that are done, and the slots of one pass */
static struct {
    struct {
        const void *dynamic;
        uint64_t name;
    } * seen;
    size_t seen_count;
    unsigned long long unloaded; /* how many objects have gone, when they were seen */
    uci_object_t own;            /* ourselves */
} uci_rebind_state;

typedef struct uci_rebind_pass {
    uci_rebind_func_t func;
    const uci_rebind_extent_t *extent;
    size_t visited; /* objects */
    uci_page_t page;
    uci_slot_t *slots;
    uci_rebind_result_t result;
    uci_status_t status;
} uci_rebind_pass_t;

/* Some loaders and the vDSO leave addresses as they are in the file. @return NULL: there is none */
static const void *uci_object_address(const uci_object_t *object, ElfW(Addr) value)
{
    return (const void *)(((value != 0) && (value < object->base)) ? object->base + value : value);
}

static void uci_object_read_dynamic(uci_object_t *object)
{
    ElfW(Addr) values[DT_JMPREL + 1] = {0}; /* by tag; 0: it has none */
    const ElfW(Dyn) * entry;

    for (entry = object->dynamic; entry->d_tag != DT_NULL; ++entry) {
        if ((entry->d_tag > 0) && (entry->d_tag <= DT_JMPREL)) {
            values[entry->d_tag] = entry->d_un.d_val;
        } else if (entry->d_tag == DT_GNU_HASH) {
            object->hash = uci_object_address(object, entry->d_un.d_ptr);
        }
    }
    object->symbols   = uci_object_address(object, values[DT_SYMTAB]);
    object->strings   = uci_object_address(object, values[DT_STRTAB]);
    object->soname    = values[DT_SONAME];
    object->tables[0] = uci_object_address(object, values[DT_JMPREL]);
    object->tables[1] = uci_object_address(object, values[DT_RELA]);
    object->sizes[0]  = ((values[DT_PLTREL] == 0) || (values[DT_PLTREL] == DT_RELA)) ? values[DT_PLTRELSZ] : 0;
    object->sizes[1]  = values[DT_RELASZ];
}

/* @return false if there is nothing in it to look at */
static bool uci_object_read(uci_object_t *object, const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin, end;
    const ElfW(Phdr) * segment;

    memset(object, 0, sizeof(*object));
    object->name = info->dlpi_name;
    object->base = info->dlpi_addr;
    for (segment = info->dlpi_phdr; segment < info->dlpi_phdr + info->dlpi_phnum; ++segment) {
        if (segment->p_type == PT_DYNAMIC) {
            object->dynamic = (const void *)(object->base + segment->p_vaddr);
        } else if (segment->p_type == PT_GNU_RELRO) {
            /* whole pages within it, as the loader does */
            begin              = (object->base + segment->p_vaddr) & ~(page - 1);
            end                = (object->base + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
            object->relro      = (char *)begin;
            object->relro_size = end - begin;
        }
    }
    if (object->dynamic == NULL) {
        return false;
    }
    uci_object_read_dynamic(object);
    return (object->symbols != NULL) && (object->strings != NULL);
}

#ifdef UCI_REBIND_JUMP_SLOT

static size_t uci_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool uci_page_protect(const uci_page_t *page, const char *owner, int protection)
{
    if (!page->sealed || (mprotect(page->address, uci_page_size(), protection) == 0)) {
        return true;
    }
    uci_error("failed to change the protection of %s: %m", owner);
    return false;
}

/* Others than the loader change RELRO pages too, and leave them writable (UCX's memory hooks) */
static bool uci_page_is_sealed(const uci_object_t *object, const char *address)
{
    return (address >= object->relro) && (address < object->relro + object->relro_size) &&
           !uci_process_is_writable(address);
}

static bool uci_rebind_close_page(uci_rebind_pass_t *pass, const uci_object_t *object)
{
    bool ok = uci_page_protect(&pass->page, object->name, PROT_READ);

    pass->page = (uci_page_t){NULL, false};
    return ok;
}

/* Make the page of a slot writable, as the one that is so for the moment */
static bool uci_rebind_open_page(uci_rebind_pass_t *pass, const uci_object_t *object, void **place)
{
    char *address = (char *)((uintptr_t)place & ~(uci_page_size() - 1));

    if (pass->page.address == address) {
        return true;
    }
    if (!uci_rebind_close_page(pass, object)) {
        return false;
    }
    pass->page = (uci_page_t){address, uci_page_is_sealed(object, address)};
    return uci_page_protect(&pass->page, object->name, PROT_READ | PROT_WRITE);
}

static bool uci_rebind_note(uci_rebind_pass_t *pass, void **place)
{
    unsigned count = pass->result.slots;
    uci_slot_t *slots;

    if ((count & (count - 1)) == 0) {
        slots = realloc(pass->slots, 2 * uci_max(count, 1u) * sizeof(*slots));
        if (slots == NULL) {
            uci_error("failed to allocate a list of %u slots", count);
            return false;
        }
        pass->slots = slots;
    }
    pass->slots[count] = (uci_slot_t){place, *place, pass->page.sealed};
    ++pass->result.slots;
    return true;
}

/* @return false after an error */
static bool uci_rebind_slot(uci_rebind_pass_t *pass, const uci_object_t *object, const ElfW(Rela) * entry)
{
    const char *symbol = object->strings + object->symbols[ELF64_R_SYM(entry->r_info)].st_name;
    void **place       = (void **)(object->base + entry->r_offset);
    void *function     = pass->func(symbol, *place);

    if ((function == NULL) || (*place == function)) {
        return true;
    }
    if (!uci_rebind_open_page(pass, object, place)) {
        pass->status = UCI_ERR_IO;
        return false;
    }
    if (!uci_rebind_note(pass, place)) {
        pass->status = UCI_ERR_NO_MEMORY;
        return false;
    }
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
    return true;
}

static bool uci_rebind_is_slot(const ElfW(Rela) * entry)
{
    switch (ELF64_R_TYPE(entry->r_info)) {
    case UCI_REBIND_JUMP_SLOT:
    case UCI_REBIND_GLOB_DAT:
        return true;
    case UCI_REBIND_POINTER:
        return (ELF64_R_SYM(entry->r_info) != 0) && (entry->r_addend == 0);
    default:
        return false;
    }
}

static bool uci_rebind_object(uci_rebind_pass_t *pass, const uci_object_t *object)
{
    unsigned before = pass->result.slots, i;
    const ElfW(Rela) * entry, *end;
    bool ok = true;

    for (i = 0; i < uci_array_size(object->tables); ++i) {
        entry = object->tables[i];
        end   = entry + (object->sizes[i] / sizeof(*entry));
        for (; ok && (entry < end); ++entry) {
            ok = !uci_rebind_is_slot(entry) || uci_rebind_slot(pass, object, entry);
        }
    }
    if (!uci_rebind_close_page(pass, object)) {
        pass->status = UCI_ERR_IO;
        ok           = false;
    }
    pass->result.objects += (pass->result.slots > before);
    return ok;
}

static uint64_t uci_rebind_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ul;

    for (; *name != '\0'; ++name) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3ul;
    }
    return hash;
}

static bool uci_rebind_is_seen(const uci_object_t *object, uint64_t name)
{
    size_t i;

    for (i = 0; i < uci_rebind_state.seen_count; ++i) {
        if ((uci_rebind_state.seen[i].dynamic == object->dynamic) && (uci_rebind_state.seen[i].name == name)) {
            return true;
        }
    }
    return false;
}

/* Without memory it is looked at again next time */
static void uci_rebind_remember(const uci_object_t *object, uint64_t name)
{
    size_t count = uci_rebind_state.seen_count;
    void *seen   = realloc(uci_rebind_state.seen, (count + 1) * sizeof(*uci_rebind_state.seen));

    if (seen != NULL) {
        uci_rebind_state.seen                = seen;
        uci_rebind_state.seen[count].dynamic = object->dynamic;
        uci_rebind_state.seen[count].name    = name;
        ++uci_rebind_state.seen_count;
    }
}

/* What has gone may come back at the same place with fresh slots: then nothing counts as seen */
static void uci_rebind_forget_unloaded(unsigned long long unloaded)
{
    if (uci_rebind_state.unloaded != unloaded) {
        uci_rebind_state.unloaded   = unloaded;
        uci_rebind_state.seen_count = 0;
    }
}

/* With the loader's list still locked, so that nothing of it has gone */
static void uci_rebind_undo(const uci_rebind_pass_t *pass)
{
    const uci_slot_t *slot;
    uci_page_t page;
    unsigned i;

    for (i = pass->result.slots; i-- > 0;) {
        slot = &pass->slots[i];
        page = (uci_page_t){(char *)((uintptr_t)slot->place & ~(uci_page_size() - 1)), slot->sealed};
        if (uci_page_protect(&page, "an object", PROT_READ | PROT_WRITE)) {
            *slot->place = slot->old;
            uci_page_protect(&page, "an object", PROT_READ);
        }
    }
    uci_rebind_state.seen_count = 0;
}

static int uci_rebind_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_rebind_pass_t *pass = arg;
    uci_object_t object;
    uint64_t name;

    if (info->dlpi_subs != pass->extent->unloaded) {
        pass->status = UCI_ERR_BUSY;
        return 1;
    }
    if (pass->visited++ == pass->extent->objects) {
        return 1; /* the loader may not be done with this one, nor with those behind it */
    }
    uci_rebind_forget_unloaded(info->dlpi_subs);
    if (!uci_object_read(&object, info) || (object.dynamic == _DYNAMIC)) {
        return 0;
    }
    name = uci_rebind_hash(object.name);
    if (uci_rebind_is_seen(&object, name)) {
        return 0;
    }
    if (!uci_rebind_object(pass, &object)) {
        uci_rebind_undo(pass);
        return 1;
    }
    uci_rebind_remember(&object, name);
    return 0;
}

static int uci_rebind_count(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_rebind_extent_t *extent = arg;

    ++extent->objects;
    extent->unloaded = info->dlpi_subs;
    return 0;
}

/* New objects come to the end of the list. The lock that dlopen() holds from before it puts them there until they are
 * relocated and made read-only can't be taken as such, but by another dlopen() */
void uci_rebind_settle(uci_rebind_extent_t *extent_p)
{
    void *program;

    *extent_p = (uci_rebind_extent_t){0, 0};
    dl_iterate_phdr(uci_rebind_count, extent_p);
    program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (program != NULL) {
        dlclose(program);
    }
}

static int uci_rebind_find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
    return uci_object_read(&uci_rebind_state.own, info) && (uci_rebind_state.own.dynamic == _DYNAMIC);
}

/* As the loader looks a name up in one object */
void *uci_rebind_own_function(const char *name)
{
    const uci_object_t *own = &uci_rebind_state.own;
    uint32_t count = own->hash[0], first = own->hash[1], filter_words = own->hash[2], hash = 5381, i;
    const uint32_t *buckets = own->hash + 4 + (filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t)));
    const uint32_t *chain   = buckets + count;
    const char *c;

    for (c = name; *c != '\0'; ++c) {
        hash = (hash * 33) + (unsigned char)*c;
    }
    i = buckets[hash % count];
    if (i < first) {
        return NULL;
    }
    for (;; ++i) {
        if ((((chain[i - first] ^ hash) >> 1) == 0) && (strcmp(own->strings + own->symbols[i].st_name, name) == 0)) {
            return (void *)(own->base + own->symbols[i].st_value);
        }
        if (chain[i - first] & 1) {
            return NULL; /* the last one of this bucket */
        }
    }
}

uci_status_t uci_rebind(uci_rebind_func_t func, bool all, const uci_rebind_extent_t *extent,
                        uci_rebind_result_t *result_p)
{
    uci_rebind_pass_t pass = {.func = func, .extent = extent, .status = UCI_OK};

    if ((uci_rebind_state.own.hash == NULL) &&
        ((dl_iterate_phdr(uci_rebind_find_own, NULL) == 0) || (uci_rebind_state.own.hash == NULL))) {
        uci_error("failed to find our own table of symbols (DT_GNU_HASH)");
        return UCI_ERR_UNSUPPORTED;
    }
    if (all) {
        uci_rebind_state.seen_count = 0;
    }
    dl_iterate_phdr(uci_rebind_visit, &pass);
    if (pass.status == UCI_OK) {
        *result_p = pass.result;
    }
    free(pass.slots);
    return pass.status;
}

#else

void *uci_rebind_own_function(const char *name)
{
    return NULL;
}

void uci_rebind_settle(uci_rebind_extent_t *extent_p)
{
    *extent_p = (uci_rebind_extent_t){0, 0};
}

uci_status_t uci_rebind(uci_rebind_func_t func, bool all, const uci_rebind_extent_t *extent,
                        uci_rebind_result_t *result_p)
{
    uci_error("calls can't be redirected on this processor: use LD_PRELOAD");
    return UCI_ERR_UNSUPPORTED;
}

#endif

typedef struct uci_rebind_search {
    const char *soname;
    const char *path;
} uci_rebind_search_t;

/* @return DT_SONAME, or "" */
static const char *uci_object_soname(const uci_object_t *object)
{
    return (object->soname != 0) ? object->strings + object->soname : "";
}

static int uci_rebind_compare(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_rebind_search_t *search = arg;
    uci_object_t object;

    if (uci_object_read(&object, info) && (object.dynamic != _DYNAMIC) &&
        (strcmp(uci_object_soname(&object), search->soname) == 0)) {
        search->path = info->dlpi_name;
    }
    return search->path != NULL;
}

static int uci_rebind_own_soname(struct dl_phdr_info *info, size_t size, void *arg)
{
    uci_rebind_search_t *search = arg;
    uci_object_t object;

    if (!uci_object_read(&object, info) || (object.dynamic != _DYNAMIC) || (object.soname == 0)) {
        return 0;
    }
    search->soname = uci_object_soname(&object);
    return 1;
}

const char *uci_rebind_other_copy(void)
{
    uci_rebind_search_t search = {NULL, NULL};

    if (dl_iterate_phdr(uci_rebind_own_soname, &search) != 0) {
        dl_iterate_phdr(uci_rebind_compare, &search);
    }
    return search.path;
}

/* @return its path, or NULL if it is not a copy of this library, but ourselves or another object */
static const char *uci_rebind_copy_of(const void *function)
{
    uci_rebind_search_t search = {NULL, NULL};
    uci_object_t object        = {.soname = 0};
    struct link_map *map       = NULL;
    Dl_info info;

    if ((dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) || (map == NULL) || (map->l_ld == _DYNAMIC) ||
        (dl_iterate_phdr(uci_rebind_own_soname, &search) == 0)) {
        return NULL;
    }
    object.dynamic = map->l_ld;
    object.base    = map->l_addr;
    uci_object_read_dynamic(&object);
    return (strcmp(uci_object_soname(&object), search.soname) == 0) ? map->l_name : NULL;
}

const char *uci_rebind_copy_in_front(const char **own_p)
{
    void *first = dlsym(RTLD_DEFAULT, "ucp_init_version");
    Dl_info info;

    *own_p = (dladdr(&uci_rebind_state, &info) != 0) ? info.dli_fname : "this copy";
    return (first != NULL) ? uci_rebind_copy_of(first) : NULL;
}

/* Ends at the C library or at us, whichever is first; what is preloaded is mapped before all libraries that anybody needs */
static int uci_rebind_find_first(struct dl_phdr_info *info, size_t size, void *arg)
{
    bool *ours_p = arg;
    uci_object_t object;

    if (!uci_object_read(&object, info)) {
        return 0;
    }
    *ours_p = (object.dynamic == _DYNAMIC);
    return *ours_p || (strncmp(uci_object_soname(&object), "libc.", 5) == 0);
}

bool uci_rebind_is_needless(void)
{
    bool ours = false;

    dl_iterate_phdr(uci_rebind_find_first, &ours);
    return ours;
}
