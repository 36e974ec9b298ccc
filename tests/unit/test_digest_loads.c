/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a fused copy loads, and when. Either side of it may be memory that others write to: of a sender the destination, of a receiver the
 * source. So nothing may be loaded from the destination; and whatever somebody does to the source, for as long as one instruction takes and at
 * whichever one: if the digest is the right one, then so is every byte that was stored.
 *
 * A page of either side is made inaccessible: each instruction that touches it faults, is let through alone (the processor's trap flag), and is
 * counted; the processor says whether it was a load. Between two of them the source is changed, and changed back.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "chance.h"
#include "digest/digest.h"
#include "digest/digest_small.h"

#ifdef __x86_64__

#define PAGE         4096u
#define AREA         (64u << 10) /* room for a message: a watched page in the middle */
#define STRIP        72u         /* of a long message, in the watched page */
#define TRAP_FLAG    0x100
#define FAULT_STORES 2 /* of a page fault's error code */
#define NEVER        UINT32_MAX

typedef struct watch {
    uint8_t *page; /* NULL: nothing is watched */
    unsigned touched, loads;
    unsigned window;              /* the access during which the source is another one */
    size_t changed, changed_size; /* in there */
    uint8_t kept[PAGE];
} watch_t;

/* How the source looks for the length of one access */
typedef struct change {
    size_t offset, size;
    bool clear; /* zeros, or all bits inverted */
} change_t;

static watch_t watch;
static bool change_clears;
static uint8_t *src_page, *dst_page, right[AREA / 2];

static void watch_guard(int access)
{
    if (mprotect(watch.page, PAGE, access) != 0) {
        abort();
    }
}

static void watch_change(void)
{
    size_t i;

    memcpy(watch.kept, watch.page + watch.changed, watch.changed_size);
    for (i = watch.changed; i < watch.changed + watch.changed_size; ++i) {
        watch.page[i] = change_clears ? 0 : (uint8_t)~watch.page[i];
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

    if ((watch.page == NULL) || ((uint8_t *)info->si_addr < watch.page) ||
        ((uint8_t *)info->si_addr >= watch.page + PAGE)) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    watch_guard(PROT_READ | PROT_WRITE);
    watch.loads += !(registers[REG_ERR] & FAULT_STORES);
    if (watch.touched == watch.window) {
        watch_change();
    }
    registers[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    if (watch.touched++ == watch.window) {
        memcpy(watch.page + watch.changed, watch.kept, watch.changed_size);
    } else {
        watch_guard(PROT_NONE); /* after the change nothing is of interest any more */
    }
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* @return the one in the middle of what a message may need on either side */
static uint8_t *map_page(void)
{
    uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert(area != MAP_FAILED);
    return area + AREA / 2;
}

static void set_up(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    size_t i;

    uci_digest_init();
    src_page = map_page();
    dst_page = map_page();
    for (i = 0; i < sizeof(right); ++i) {
        right[i] = (uint8_t)(test_random() >> 56);
    }
    memcpy(src_page, right, PAGE);
    cr_assert(sigaction(SIGSEGV, &action, NULL) == 0);
    action.sa_sigaction = on_trap;
    cr_assert(sigaction(SIGTRAP, &action, NULL) == 0);
}

TestSuite(loads, .init = set_up);

/* One way of copying with a digest */
typedef struct way {
    const uci_digest_ops_t *ops;
    const char *isa, *name;
    uint64_t (*copy)(const struct way *way, uint8_t *dst, const uint8_t *src, size_t length);
} way_t;

static uint64_t way_fused(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    return way->ops->copy(dst, src, length);
}

static uint64_t way_separate(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    return uci_digest_copy_as(way->ops, UCI_FORM_SEPARATE, dst, src, length);
}

static uint64_t way_far(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    return uci_digest_copy_as(way->ops, UCI_FORM_FAR, dst, src, length);
}

static uint64_t way_small(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    return uci_digest_xxh3_small_copy(dst, src, length);
}

/* In three pieces: each of them may end what the one before has begun */
static uint64_t way_stream(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t ends[] = {length / 7, length / 7 + length / 2, length}, done = 0, i;
    uci_digest_stream_t stream;

    way->ops->init(&stream);
    for (i = 0; i < uci_array_size(ends); ++i) {
        way->ops->update(&stream, dst + done, src + done, ends[i] - done);
        done = ends[i];
    }
    return way->ops->final(&stream);
}

static uint64_t watched_copy(const way_t *way, uint8_t *page, unsigned window, uint8_t *dst, const uint8_t *src,
                             size_t length)
{
    uint64_t value;

    watch.touched = watch.loads = 0;
    watch.window                = window;
    watch.page                  = page;
    watch_guard(PROT_NONE);
    value = way->copy(way, dst, src, length);
    watch_guard(PROT_READ | PROT_WRITE);
    watch.page = NULL;
    return value;
}

static void check_destination(const way_t *way, size_t skew, size_t length)
{
    uint64_t value = way->ops->digest(right, length);

    memcpy(src_page, right, length);
    cr_assert(watched_copy(way, dst_page, NEVER, dst_page + skew, src_page, length) == value);
    cr_assert(watch.loads == 0, "%s, %s, %s: %u of %u accesses to the destination of %zu bytes at %zu are loads",
              way->ops->name, way->isa, way->name, watch.loads, watch.touched, length, skew);
    cr_assert(memcmp(dst_page + skew, right, length) == 0);
}

static void check_change(const way_t *way, const uint8_t *src, size_t length, uint64_t value, unsigned window,
                         const change_t *change)
{
    const uint8_t *begin = uci_max(src + change->offset, (const uint8_t *)src_page);
    const uint8_t *end   = uci_min(src + change->offset + change->size, (const uint8_t *)src_page + PAGE);
    uint64_t now;

    if (begin >= end) {
        return; /* not in the page */
    }
    change_clears      = change->clear;
    watch.changed      = (size_t)(begin - src_page);
    watch.changed_size = (size_t)(end - begin);
    now                = watched_copy(way, src_page, window, dst_page, src, length);
    cr_assert((now != value) || (memcmp(dst_page, right, length) == 0),
              "%s, %s, %s: bytes %zu..%zu of %zu %s during access %u: stored so, and certified to be right",
              way->ops->name, way->isa, way->name, change->offset, change->offset + change->size - 1, length,
              change->clear ? "cleared" : "inverted", window);
}

/* Each byte of short ones, and of others those at the end, where words overlap */
static void check_bytes(const way_t *way, const uint8_t *src, size_t length, uint64_t value, unsigned window)
{
    size_t i, first = (length <= 16) ? 0 : length - uci_min(length, (size_t)8);
    unsigned clear;

    for (clear = (length > 8); clear < 2; ++clear) {
        for (i = first; i < length; ++i) {
            check_change(way, src, length, value, window, &(change_t){.offset = i, .size = 1, .clear = clear});
        }
    }
}

/* A message that lies at @a src, and in the watched page with its beginning, its end, or all of it */
static void check_placed(const way_t *way, uint8_t *src, size_t length)
{
    change_t all = {.size = length};
    unsigned window, touched;
    uint64_t value;

    memcpy(src, right, length);
    value = way->ops->digest(right, length);
    cr_assert(watched_copy(way, src_page, NEVER, dst_page, src, length) == value);
    touched = watch.touched;
    for (window = 0; window < touched; ++window) {
        check_change(way, src, length, value, window, &all);
        if ((touched - window <= 3) && (length <= 200)) {
            check_bytes(way, src, length, value, window);
        }
    }
}

static void check_source(const way_t *way, size_t skew, size_t length)
{
    if (length <= 2 * STRIP) {
        check_placed(way, src_page + skew, length);
    } else {
        check_placed(way, src_page + PAGE - STRIP - skew, length);
        check_placed(way, src_page + STRIP + skew - length, length);
    }
}

static void check_lengths(const way_t *way, size_t from, size_t to, size_t step)
{
    size_t length;

    for (length = from; length <= to; length += step) {
        check_destination(way, length % 13, length);
        check_source(way, length % 17, length);
    }
}

static void check_way(const way_t *way, uint64_t (*copy)(const way_t *, uint8_t *, const uint8_t *, size_t),
                      const char *name, const size_t *lengths, size_t count)
{
    way_t now = *way;
    size_t i;

    now.copy = copy;
    now.name = name;
    for (i = 0; i < count; ++i) {
        check_destination(&now, 0, lengths[i]);
        check_destination(&now, 3, lengths[i]);
        check_source(&now, lengths[i] % 9, lengths[i]);
    }
}

/* Every digest that has a value, and its copies with each instruction set */
static void check_isa(uci_digest_isa_t isa)
{
    static const size_t fused[]    = {319, 1087, 4097};
    static const size_t separate[] = {7, 3000};
    static const size_t far[]      = {16384 + 77};
    static const size_t stream[]   = {5, 199, 700};
    uci_digest_ops_t table[UCI_DIGEST_LAST];
    way_t way = {.isa = uci_digest_isa_names[isa]};
    unsigned id;

    uci_digest_far_use(isa);
    uci_digest_fill(table, isa);
    for (id = UCI_DIGEST_XXH3; id < UCI_DIGEST_LAST; ++id) {
        if ((isa > 0) && (uci_digest_row(id, isa)->copy == uci_digest_row(id, isa - 1)->copy)) {
            continue; /* the same kernel */
        }
        way.ops  = &table[id];
        way.copy = way_fused;
        way.name = "fused";
        check_lengths(&way, 1, 17, 1);
        check_lengths(&way, 29, 250, 37);
        check_way(&way, way_fused, "fused", fused, uci_array_size(fused));
        check_way(&way, way_separate, "separate", separate, uci_array_size(separate));
        check_way(&way, way_far, "far", far, uci_array_size(far));
        check_way(&way, way_stream, "stream", stream, uci_array_size(stream));
    }
    uci_digest_far_use(uci_digest_isa_best());
}

Test(loads, scalar)
{
    check_isa(UCI_DIGEST_ISA_SCALAR);
}

Test(loads, sse2)
{
    check_isa(UCI_DIGEST_ISA_SSE2);
}

Test(loads, avx2)
{
    if (uci_digest_isa_best() < UCI_DIGEST_ISA_AVX2) {
        cr_skip_test("this processor has no AVX2");
    }
    check_isa(UCI_DIGEST_ISA_AVX2);
}

Test(loads, avx512)
{
    if (uci_digest_isa_best() < UCI_DIGEST_ISA_AVX512) {
        cr_skip_test("this processor has no AVX-512");
    }
    check_isa(UCI_DIGEST_ISA_AVX512);
}

/* What is in line for the smallest */
Test(loads, small)
{
    way_t way = {.ops = uci_digest_by_id(UCI_DIGEST_XXH3), .isa = "in line", .name = "small", .copy = way_small};

    check_lengths(&way, 1, 48, 1);
    check_lengths(&way, 53, UCI_DIGEST_SMALL_MAX, 5);
}

/* That the watch sees what it is for: a copy that digests its destination, and one that reads its source twice */
static uint64_t way_stored(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    memcpy(dst, src, length);
    return way->ops->digest(dst, length);
}

static uint64_t way_twice(const way_t *way, uint8_t *dst, const uint8_t *src, size_t length)
{
    memcpy(dst, src, length);
    return way->ops->digest(src, length);
}

Test(loads, watch)
{
    way_t way      = {.ops = uci_digest_by_id(UCI_DIGEST_XXH3), .copy = way_stored};
    uint64_t value = way.ops->digest(right, 100);
    bool is_seen   = false;
    unsigned i;

    (void)watched_copy(&way, dst_page, NEVER, dst_page, src_page, 100);
    cr_expect(watch.loads > 0);

    way.copy           = way_twice;
    watch.changed      = 0;
    watch.changed_size = 100;
    for (i = 0; i < 4; ++i) {
        is_seen |= (watched_copy(&way, src_page, i, dst_page, src_page, 100) == value) &&
                   (memcmp(dst_page, right, 100) != 0);
    }
    cr_expect(is_seen);
}

#else

Test(loads, watch)
{
    cr_skip_test("needs a processor that lets single instructions through: x86-64");
}

#endif
