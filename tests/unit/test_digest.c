/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests: published vectors, oracles written here or by others, and every kernel against the reference, over
 * lengths, alignments, pieces and pages that must not be touched.
 */
#include <criterion/criterion.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chance.h"
#include "digest/digest.h"
#include "digest/digest_small.h"

#define SHORT_MAX 4096
#define GUARD     128

static uint8_t *test_buffer(size_t length)
{
    uint8_t *p = aligned_alloc(64, uci_align_up(length + GUARD, 64));
    size_t i;

    cr_assert_not_null(p);
    for (i = 0; i < length; ++i) {
        p[i] = test_random() >> 56;
    }
    return p;
}

/* The word form of FNV-1a, from its definition: word by word, lanes last */
static uint64_t test_fnv1a(const uint8_t *data, size_t length)
{
    const uint64_t basis = 0xcbf29ce484222325ull, prime = 0x100000001b3ull;
    uint64_t lanes[16], h                               = basis, word;
    size_t i, words                                     = (length + 7) / 8;

    for (i = 0; i < 16; ++i) {
        lanes[i] = basis;
    }
    for (i = 0; i < words; ++i) {
        word = 0;
        memcpy(&word, data + 8 * i, uci_min((size_t)8, length - 8 * i));
        lanes[i % 16] = (lanes[i % 16] ^ word) * prime;
    }
    for (i = 0; i < uci_min(words, (size_t)16); ++i) {
        h = (h ^ lanes[i]) * prime;
    }
    return (h ^ length) * prime;
}

/* Fletcher-64, reduced at every step */
static uint64_t test_fletcher(const uint8_t *data, size_t length)
{
    uint64_t first = 0, second = 0;
    uint32_t word;
    size_t i;

    for (i = 0; i < length; i += 4) {
        word = 0;
        memcpy(&word, data + i, uci_min((size_t)4, length - i));
        first  = (first + word) % UINT32_MAX;
        second = (second + first) % UINT32_MAX;
    }
    return (second << 32) | first;
}

/* CRC, bit by bit, reflected */
static uint64_t test_crc(const uint8_t *data, size_t length, uint64_t poly, uint64_t ones)
{
    uint64_t crc = ones;
    size_t i;
    int bit;

    for (i = 0; i < length; ++i) {
        crc ^= data[i];
        for (bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1) ? poly : 0);
        }
    }
    return crc ^ ones;
}

static uint64_t test_oracle(unsigned id, const uint8_t *data, size_t length)
{
    switch (id) {
    case UCI_DIGEST_XXH3:
        return XXH3_64bits(data, length);
    case UCI_DIGEST_XXH128:
        return XXH3_128bits(data, length).low64;
    case UCI_DIGEST_FNV1A:
        return test_fnv1a(data, length);
    case UCI_DIGEST_FLETCHER:
        return test_fletcher(data, length);
    case UCI_DIGEST_CRC32C:
        return test_crc(data, length, 0x82f63b78u, UINT32_MAX);
    case UCI_DIGEST_CRC64:
        return test_crc(data, length, 0xc96c5795d7870f42ull, UINT64_MAX);
    default:
        return 0;
    }
}

/* digest() and copy() have the value, the copy is right and writes nothing else */
static void test_check(const uci_digest_ops_t *ops, uint8_t *dst, const uint8_t *src, size_t length, uint64_t value)
{
    size_t i;

    cr_assert_eq(ops->digest(src, length), value, "%s (%s): digest of %zu bytes", ops->name, ops->title, length);
    memset(dst - GUARD, 0xa5, length + 2 * GUARD);
    cr_assert_eq(ops->copy(dst, src, length), value, "%s (%s): copy of %zu bytes", ops->name, ops->title, length);
    cr_assert_eq(memcmp(dst, src, length), 0, "%s: copied bytes, %zu bytes", ops->title, length);
    for (i = 0; i < GUARD; ++i) {
        cr_assert((dst[-1 - (int)i] == 0xa5) && (dst[length + i] == 0xa5), "%s: bytes around, %zu bytes", ops->title,
                  length);
    }
}

#define test_for_each_row(_isa, _id, _table, _ops) \
    for (_isa = 0; _isa <= (int)uci_digest_isa_best(); ++_isa) \
        for (uci_digest_fill(_table, _isa), _id = 0; (_ops = &_table[_id]), _id < UCI_DIGEST_LAST; ++_id)

Test(digest, table)
{
    unsigned id;

    uci_digest_init();
    uci_digest_init();
    for (id = 0; id < UCI_DIGEST_LAST; ++id) {
        const uci_digest_ops_t *ops = uci_digest_by_id(id);

        cr_assert_not_null(ops);
        cr_assert_eq(ops->id, id);
        cr_assert_eq(uci_digest_find(ops->name), ops);
        cr_assert(ops->title && ops->guarantee && ops->digest && ops->copy && ops->init && ops->update && ops->final);
        cr_assert_eq(ops->combine != NULL, ops->combine_grain > 0);
        cr_assert(uci_digest_set() & (1u << id));
    }
    cr_assert_null(uci_digest_by_id(UCI_DIGEST_LAST));
    cr_assert_null(uci_digest_by_id(UINT32_MAX));
    cr_assert_eq(uci_digest_set() >> UCI_DIGEST_LAST, 0);
    cr_assert_eq(uci_digest_find("XXH3"), &uci_digest_table[UCI_DIGEST_XXH3]);
    cr_assert_eq(uci_digest_find("Crc32C"), &uci_digest_table[UCI_DIGEST_CRC32C]);
    cr_assert_null(uci_digest_find("xxh"));
    cr_assert_null(uci_digest_find(""));
    cr_assert_str_eq(uci_digest_isa_names[UCI_DIGEST_ISA_SCALAR], "scalar");
    cr_assert_null(uci_digest_isa_names[UCI_DIGEST_ISA_LAST]);
}

Test(digest, vectors)
{
    static const struct {
        unsigned id;
        const char *text;
        uint64_t value;
    } vectors[] = {
            {UCI_DIGEST_NONE, "abc", 0},
            {UCI_DIGEST_XXH3, "", 0x2d06800538d394c2ull},
            {UCI_DIGEST_XXH128, "", 0x6001c324468d497full},
            {UCI_DIGEST_FLETCHER, "", 0},
            {UCI_DIGEST_FLETCHER, "abcde", 0xc8c6c527646362c6ull},
            {UCI_DIGEST_FLETCHER, "abcdef", 0xc8c72b276463c8c6ull},
            {UCI_DIGEST_FLETCHER, "abcdefgh", 0x312e2b28cccac8c6ull},
            {UCI_DIGEST_CRC32C, "", 0},
            {UCI_DIGEST_CRC32C, "123456789", 0xe3069283u},
            {UCI_DIGEST_CRC64, "", 0},
            {UCI_DIGEST_CRC64, "123456789", 0x995dc9bbdf1939faull},
    };
    uint8_t bytes[32];
    size_t i;

    for (i = 0; i < uci_array_size(vectors); ++i) {
        const uci_digest_ops_t *ops = uci_digest_by_id(vectors[i].id);

        cr_assert_eq(ops->digest(vectors[i].text, strlen(vectors[i].text)), vectors[i].value, "%s of '%s'", ops->name,
                     vectors[i].text);
    }

    /* RFC 3720 B.4 */
    memset(bytes, 0, sizeof(bytes));
    cr_assert_eq(uci_digest_table[UCI_DIGEST_CRC32C].digest(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof(bytes));
    cr_assert_eq(uci_digest_table[UCI_DIGEST_CRC32C].digest(bytes, 32), 0x62a8ab43u);
    for (i = 0; i < 32; ++i) {
        bytes[i] = i;
    }
    cr_assert_eq(uci_digest_table[UCI_DIGEST_CRC32C].digest(bytes, 32), 0x46dd794eu);
}

/* RFC 9923 and the authors' test vectors */
Test(digest, fnv1a_bytes)
{
    cr_assert_eq(uci_fnv1a_bytes("", 0), 0xcbf29ce484222325ull);
    cr_assert_eq(uci_fnv1a_bytes(NULL, 0), 0xcbf29ce484222325ull);
    cr_assert_eq(uci_fnv1a_bytes("a", 1), 0xaf63dc4c8601ec8cull);
    cr_assert_eq(uci_fnv1a_bytes("foobar", 6), 0x85944171f73967e8ull);
    cr_assert_eq(uci_fnv1a_bytes("foobar", 7), 0x34531ca7168b8f38ull);
    cr_assert_eq(uci_fnv1a_bytes("chongo was here!\n", 17), 0x46810940eff5f915ull);
}

Test(digest, empty)
{
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    uci_digest_stream_t stream;
    int isa, id;

    test_for_each_row(isa, id, table, ops)
    {
        uint64_t value = ops->digest("", 0);

        cr_assert_eq(ops->digest(NULL, 0), value);
        cr_assert_eq(ops->copy(NULL, NULL, 0), value);
        ops->init(&stream);
        cr_assert_eq(ops->final(&stream), value);
        ops->update(&stream, NULL, NULL, 0);
        cr_assert_eq(ops->final(&stream), value);
    }
}

Test(digest, small)
{
    uint8_t *src = test_buffer(64 + UCI_DIGEST_SMALL_MAX), dst[2 * GUARD + UCI_DIGEST_SMALL_MAX];
    size_t length, shift, i;

    for (length = 0; length <= UCI_DIGEST_SMALL_MAX; ++length) {
        for (shift = 0; shift < 64; ++shift) {
            uint64_t value = XXH3_64bits(src + shift, length);

            cr_assert_eq(uci_digest_xxh3_small(src + shift, length), value, "%zu bytes", length);
            memset(dst, 0xa5, sizeof(dst));
            cr_assert_eq(uci_digest_xxh3_small_copy(dst + GUARD, src + shift, length), value, "%zu bytes", length);
            cr_assert_eq(memcmp(dst + GUARD, src + shift, length), 0, "%zu bytes", length);
            for (i = 0; i < GUARD; ++i) {
                cr_assert((dst[i] == 0xa5) && (dst[GUARD + length + i] == 0xa5), "%zu bytes", length);
            }
        }
    }
    free(src);
}

Test(digest, lengths)
{
    uint8_t *src = test_buffer(SHORT_MAX + 64), *dst = test_buffer(SHORT_MAX + 64 + 2 * GUARD);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    size_t length;
    int isa, id;

    for (length = 0; length <= SHORT_MAX; ++length) {
        size_t src_shift = (length * 7) % 64, dst_shift = (length * 29 + length / 64) % 64;
        uint64_t values[UCI_DIGEST_LAST];

        for (id = 0; id < UCI_DIGEST_LAST; ++id) {
            values[id] = test_oracle(id, src + src_shift, length);
        }
        test_for_each_row(isa, id, table, ops)
        {
            test_check(ops, dst + GUARD + dst_shift, src + src_shift, length, values[id]);
        }
    }
    free(src);
    free(dst);
}

Test(digest, alignments)
{
    static const size_t lengths[] = {1,   3,   7,   8,   15,  16,  17,  33,  63,   64,   65,   100,  127,  128,
                                     129, 200, 240, 241, 255, 256, 257, 511, 1000, 1024, 1025, 2048, 2049, 3333};
    uint8_t *src = test_buffer(SHORT_MAX + 64), *dst = test_buffer(SHORT_MAX + 64 + 2 * GUARD);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    size_t i, shift;
    int isa, id;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        for (shift = 0; shift < 64; ++shift) {
            uint64_t values[UCI_DIGEST_LAST];

            for (id = 0; id < UCI_DIGEST_LAST; ++id) {
                values[id] = test_oracle(id, src + shift, lengths[i]);
            }
            test_for_each_row(isa, id, table, ops)
            {
                test_check(ops, dst + GUARD + (shift * 37 + i) % 64, src + shift, lengths[i], values[id]);
            }
        }
    }
    free(src);
    free(dst);
}

/* The pages before and behind both buffers cannot be touched */
Test(digest, pages)
{
    size_t page = sysconf(_SC_PAGESIZE), length;
    uint8_t *src, *dst, *maps[2];
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    int isa, id, i;

    for (i = 0; i < 2; ++i) {
        maps[i] = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(maps[i], MAP_FAILED);
        cr_assert_eq(mprotect(maps[i] + page, page, PROT_READ | PROT_WRITE), 0);
    }
    src = maps[0] + page;
    dst = maps[1] + page;
    memset(src, 0x5a, page);
    test_for_each_row(isa, id, table, ops)
    {
        for (length = 0; length <= page; length += 1 + length / 600) {
            cr_assert_eq(ops->copy(dst, src, length), ops->digest(src, length));
            cr_assert_eq(ops->copy(dst + page - length, src + page - length, length),
                         ops->digest(src + page - length, length));
        }
    }
}

/* Long buffers: block borders of kernels and copies, values that overflow badly kept sums */
Test(digest, long_buffers)
{
    static const size_t lengths[] = {
            65535, 65536, 65537, 131072, 200001, (1 << 20) + 4095, (9 << 20) + 77, (33 << 20) + 1001};
    size_t max   = lengths[uci_array_size(lengths) - 1], i;
    uint8_t *src = test_buffer(max + 64), *dst = aligned_alloc(64, uci_align_up(max + 64 + 2 * GUARD, 64));
    uci_digest_ops_t table[UCI_DIGEST_LAST], reference[UCI_DIGEST_LAST], *ops;
    int isa, id, fill;

    uci_digest_fill(reference, UCI_DIGEST_ISA_SCALAR);
    for (fill = 0; fill < 2; ++fill) {
        for (i = 0; i < uci_array_size(lengths); ++i) {
            const uint8_t *data = src + test_random() % 64;
            uint64_t values[UCI_DIGEST_LAST];

            for (id = 0; id < UCI_DIGEST_LAST; ++id) {
                /* bit by bit takes too long here; one-shot CRCs are checked by combine and stream */
                values[id] = ((id == UCI_DIGEST_CRC32C) || (id == UCI_DIGEST_CRC64))
                                     ? reference[id].digest(data, lengths[i])
                                     : test_oracle(id, data, lengths[i]);
            }
            test_for_each_row(isa, id, table, ops)
            {
                test_check(ops, dst + GUARD + test_random() % 64, data, lengths[i], values[id]);
            }
            if (fill == 1) {
                break; /* all ones: one length is enough */
            }
        }
        memset(src, 0xff, max + 64);
    }
    free(src);
    free(dst);
}

/* Around the caches: every alignment of the destination, lengths about the block and the smallest */
Test(digest, copy_far)
{
    static const size_t lengths[] = {0, 8, 16383, 16384, 16385, 20000, 20480, 20481, 24575};
    size_t max                    = 24576 + 64, i, j, shift, length;
    uint8_t *src = test_buffer(max), *dst = test_buffer(max + 2 * GUARD);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    int isa, id;

    test_for_each_row(isa, id, table, ops)
    {
        for (i = 0; i < uci_array_size(lengths); ++i) {
            for (shift = 0; shift < 64; shift += 1 + 6 * (i % 2)) {
                uint8_t *to = dst + GUARD + shift, *from = src + (shift * 11 + i) % 64;

                length = lengths[i];
                memset(dst, 0xa5, max + 2 * GUARD);
                cr_assert_eq(uci_digest_copy_far(ops, to, from, length), ops->digest(from, length), "%s: %zu bytes",
                             ops->title, length);
                cr_assert_eq(memcmp(to, from, length), 0, "%s: %zu bytes", ops->title, length);
                for (j = 0; j < GUARD; ++j) {
                    cr_assert((to[-1 - (int)j] == 0xa5) && (to[length + j] == 0xa5), "%s: %zu bytes", ops->title,
                              length);
                }
            }
        }
    }
    free(src);
    free(dst);
}

/* Others may write to the source meanwhile: whatever they hit, after its block has been digested or for just that moment, the digest is of
 * what has been stored */
static uint8_t *attacked;
static bool attacked_for_a_moment;

static void attacked_update(uci_digest_stream_t *stream, void *dst, const void *src, size_t length)
{
    bool here = (attacked >= (const uint8_t *)src) && (attacked < (const uint8_t *)src + length);

    *attacked ^= (here && attacked_for_a_moment);
    uci_digest_table[UCI_DIGEST_XXH3].update(stream, dst, src, length);
    *attacked ^= here;
}

Test(digest, copy_far_reads_what_others_write)
{
    size_t length = 40000 + 17, shift;
    uint8_t *src = test_buffer(length), *dst = test_buffer(length + 64), *right = malloc(length);
    uci_digest_ops_t ops;
    uint64_t value;
    unsigned way;

    uci_digest_init();
    ops        = uci_digest_table[UCI_DIGEST_XXH3];
    ops.update = attacked_update;
    memcpy(right, src, length);
    for (attacked = src; attacked < src + length; attacked += 4096 / 8 + 1) {
        for (shift = 0; shift < 64; shift += 9) {
            for (way = 0; way < 2; ++way) {
                attacked_for_a_moment = (way == 1);
                value                 = uci_digest_copy_far(&ops, dst + shift, src, length);
                cr_assert((*attacked != right[attacked - src]) == (way == 0), "nobody attacked");
                cr_assert(value == ops.digest(dst + shift, length), "byte %zd is wrong, and the digest right",
                          attacked - src);
                *attacked = right[attacked - src];
            }
        }
    }
    free(src);
    free(dst);
    free(right);
}

/* All forms give the same digest and the same copy; about the sizes of blocks and those where forms become the same */
Test(digest, copy_as)
{
    static const size_t lengths[] = {0, 1, 100, 8191, 8192, 8193, 16383, 16384, 20000, (16 << 20) - 1, 16 << 20};
    size_t max                    = 16 << 20, i;
    uint8_t *src = test_buffer(max), *dst = test_buffer(max);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    int isa, id, form;

    test_for_each_row(isa, id, table, ops)
    {
        for (i = 0; i < uci_array_size(lengths); ++i) {
            if ((lengths[i] > 20000) && (id != UCI_DIGEST_XXH3)) {
                continue;
            }
            for (form = UCI_FORM_FUSED; form <= UCI_FORM_FAR; ++form) {
                memset(dst, 0xa5, lengths[i]);
                cr_assert_eq(uci_digest_copy_as(ops, (uci_form_t)form, dst, src, lengths[i]),
                             ops->digest(src, lengths[i]), "%s: %zu bytes, %s", ops->title, lengths[i],
                             uci_form_names[form]);
                cr_assert_eq(memcmp(dst, src, lengths[i]), 0, "%s: %zu bytes, %s", ops->title, lengths[i],
                             uci_form_names[form]);
            }
        }
    }
    free(src);
    free(dst);

    cr_expect_eq(uci_digest_form_at(UCI_FORM_FAR, 16383), UCI_FORM_FUSED);
    cr_expect_eq(uci_digest_form_at(UCI_FORM_FAR, 16384), UCI_FORM_FAR);
    cr_expect_eq(uci_digest_form_at(UCI_FORM_FUSED, 16384), UCI_FORM_FUSED);
    cr_expect_eq(uci_digest_form_at(UCI_FORM_FUSED, 16 << 20), UCI_FORM_FAR);
    cr_expect_eq(uci_digest_form_at(UCI_FORM_SEPARATE, 64 << 20), UCI_FORM_SEPARATE);
}

/* A row of its own for each instruction set, whatever the table uses */
Test(digest, rows)
{
    unsigned isa, id;

    for (isa = 0; isa <= (unsigned)uci_digest_isa_best(); ++isa) {
        for (id = 0; id < UCI_DIGEST_LAST; ++id) {
            cr_expect_eq(uci_digest_row((uci_digest_id_t)id, (uci_digest_isa_t)isa)->id, id);
        }
        uci_digest_use(UCI_DIGEST_XXH3, (uci_digest_isa_t)isa);
        cr_expect_eq(uci_digest_table[UCI_DIGEST_XXH3].digest,
                     uci_digest_row(UCI_DIGEST_XXH3, (uci_digest_isa_t)isa)->digest);
        cr_expect_not_null(strstr(uci_digest_table[UCI_DIGEST_XXH3].title, uci_digest_isa_names[isa]));
    }
}

#ifdef __x86_64__
#define XCR0_AVX (1u << 2) /* the upper halves of the registers ymm0 to ymm15 */

static bool test_can_see_registers(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) && (c & bit_AVX) &&
           __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & (1u << 2)) /* XGETBV with 1 */;
}

/* Which parts of the vector registers hold something */
static unsigned test_registers_in_use(void)
{
    unsigned low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low;
}

/* What a kernel leaves in the upper halves makes the program's own SSE code slow */
Test(digest, leaves_registers_clear)
{
    static const size_t lengths[] = {8, 64, 300, 2048, 70000};
    uint8_t *src = test_buffer(70000), *dst = test_buffer(70000);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    unsigned i, digested, copied, streamed;
    uci_digest_stream_t stream;
    int isa, id;

    if (!test_can_see_registers()) {
        cr_skip_test("this cpu does not tell which registers are in use");
    }
    test_for_each_row(isa, id, table, ops)
    {
        for (i = 0; i < uci_array_size(lengths); ++i) {
            __asm__ volatile("vzeroupper");
            ops->digest(src, lengths[i]);
            digested = test_registers_in_use();
            __asm__ volatile("vzeroupper");
            ops->copy(dst, src, lengths[i]);
            copied = test_registers_in_use();
            __asm__ volatile("vzeroupper");
            ops->init(&stream);
            ops->update(&stream, dst, src, lengths[i]);
            ops->final(&stream);
            streamed = test_registers_in_use();
            cr_assert_eq((digested | copied | streamed) & XCR0_AVX, 0, "%s, %s: %zu bytes: %x %x %x", ops->title,
                         uci_digest_isa_names[isa], lengths[i], digested, copied, streamed);
        }
    }
    free(src);
    free(dst);
}
#endif

static void test_stream(const uci_digest_ops_t *ops, uint8_t *dst, const uint8_t *src, size_t length, size_t piece_max)
{
    uci_digest_stream_t stream;
    size_t offset, piece;
    bool copy;

    memset(&stream, 0xee, sizeof(stream));
    memset(dst, 0, length);
    ops->init(&stream);
    for (offset = 0; offset < length; offset += piece) {
        piece = test_random() % (piece_max + 1);
        piece = uci_min(piece, length - offset);
        copy  = test_random() % 4;
        ops->update(&stream, copy ? dst + offset : NULL, src + offset, piece);
        cr_assert(memcmp(dst + offset, src + offset, copy ? piece : 0) == 0);
        if (test_random() % 8 == 0) {
            cr_assert_eq(ops->final(&stream), ops->digest(src, offset + piece), "%s: %zu of %zu bytes", ops->title,
                         offset + piece, length);
        }
    }
    cr_assert_eq(ops->final(&stream), ops->digest(src, length), "%s: %zu bytes by %zu", ops->title, length, piece_max);
    cr_assert_eq(ops->final(&stream), ops->digest(src, length));
}

Test(digest, stream)
{
    static const size_t pieces[] = {1, 3, 17, 64, 100, 256, 300, 1500, 5000};
    uint8_t *src = test_buffer(20000), *dst = test_buffer(20000);
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    size_t i, length;
    int isa, id, round;

    test_for_each_row(isa, id, table, ops)
    {
        for (i = 0; i < uci_array_size(pieces); ++i) {
            for (round = 0; round < 20; ++round) {
                length = test_random() % (round < 10 ? 600 : 20000);
                test_stream(ops, dst, src, length, pieces[i]);
            }
        }
        for (length = 0; length < 1300; ++length) {
            test_stream(ops, dst, src, length, 400);
        }
    }
    free(src);
    free(dst);
}

Test(digest, combine)
{
    size_t max   = 100000, split, length;
    uint8_t *src = test_buffer(max);
    uint64_t left, right;
    uci_digest_ops_t table[UCI_DIGEST_LAST], *ops;
    int isa, id, round, combining = 0;

    test_for_each_row(isa, id, table, ops)
    {
        if (ops->combine == NULL) {
            continue;
        }
        ++combining;
        for (round = 0; round < 500; ++round) {
            length = test_random() % (round < 300 ? 100 : max);
            split  = test_random() % (length + 1) / ops->combine_grain * ops->combine_grain;
            left   = ops->digest(src, split);
            right  = ops->digest(src + split, length - split);
            cr_assert_eq(ops->combine(left, right, length - split), ops->digest(src, length), "%s: %zu + %zu bytes",
                         ops->title, split, length - split);
        }
    }
    cr_assert_geq(combining, 4);
    free(src);
}

Test(digest, xxh128)
{
    uint8_t *src = test_buffer(SHORT_MAX);
    size_t length;

    for (length = 0; length <= SHORT_MAX; ++length) {
        XXH128_hash_t expected = XXH3_128bits(src, length);
        uci_digest128_t value  = uci_digest_xxh128(src, length);

        cr_assert((value.low == expected.low64) && (value.high == expected.high64), "%zu bytes", length);
        cr_assert_eq(uci_digest_table[UCI_DIGEST_XXH128].digest(src, length), value.low);
    }
    free(src);
}

/* What every guarantee promises: one flipped bit is seen, wherever it is */
Test(digest, bit_flips)
{
    static const size_t lengths[] = {1, 2, 3, 4, 8, 12, 16, 31, 64, 128, 200, 240, 300, 1100, 2500};
    uint8_t *src                  = test_buffer(SHORT_MAX);
    size_t i, bit;
    unsigned id;

    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        const uci_digest_ops_t *ops = &uci_digest_table[id];

        for (i = 0; i < uci_array_size(lengths); ++i) {
            uint64_t value = ops->digest(src, lengths[i]);

            cr_assert(ops->width == 64 || (value >> ops->width) == 0);
            for (bit = 0; bit < 8 * lengths[i]; ++bit) {
                src[bit / 8] ^= 1 << (bit % 8);
                cr_assert_neq(ops->digest(src, lengths[i]), value, "%s: bit %zu of %zu bytes", ops->name, bit,
                              lengths[i]);
                src[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    free(src);
}

Test(types, status_string)
{
    int status;

    cr_assert_str_eq(uci_status_string(UCI_OK), "success");
    for (status = UCI_ERR_BUSY; status <= UCI_INPROGRESS; ++status) {
        cr_assert_str_neq(uci_status_string(status), "unknown status");
    }
    cr_assert_str_eq(uci_status_string(-100), "unknown status");
}
