/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "digest.h"
#include "digest_kernels.h"
#include "util/word.h"

#define UCI_DIGEST_SEPARATE_BLOCK 8192u

uci_digest_ops_t uci_digest_table[UCI_DIGEST_LAST];
uci_digest_ops_t uci_digest_auto;

static uci_digest_ops_t uci_digest_rows[UCI_DIGEST_ISA_LAST][UCI_DIGEST_LAST];

const char *const uci_digest_isa_names[] = {"scalar",
#ifdef __aarch64__
                                            "neon",
#elif defined(__x86_64__)
                                            "sse2", "avx2", "avx512",
#endif
                                            NULL};
const char *const uci_form_names[] = {"digest", "fused", "separate", "far", "kernel", NULL};

static uint64_t uci_none_digest(const void *data, size_t length)
{
    return 0;
}

static uint64_t uci_none_copy(void *dst, const void *src, size_t length)
{
    uci_digest_store(dst, src, length);
    return 0;
}

static void uci_none_init(uci_digest_stream_t *stream)
{
    stream->length = 0;
}

static void uci_none_update(uci_digest_stream_t *stream, void *dst, const void *src, size_t length)
{
    uci_digest_store(dst, src, length);
    stream->length += length;
}

static uint64_t uci_none_final(const uci_digest_stream_t *stream)
{
    return 0;
}

static uint64_t uci_none_combine(uint64_t left, uint64_t right, size_t right_length)
{
    return 0;
}

static const uci_digest_ops_t uci_digest_none_row = {
        .name          = "none",
        .title         = "no digest, always 0",
        .id            = UCI_DIGEST_NONE,
        .width         = 0,
        .digest        = uci_none_digest,
        .copy          = uci_none_copy,
        .guarantee     = "nothing is detected",
        .init          = uci_none_init,
        .update        = uci_none_update,
        .final         = uci_none_final,
        .combine       = uci_none_combine,
        .combine_grain = 1,
};

uci_digest_isa_t uci_digest_isa_best(void)
{
#if UCI_DIGEST_HAVE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        return UCI_DIGEST_ISA_AVX512;
    }
    return __builtin_cpu_supports("avx2") ? UCI_DIGEST_ISA_AVX2 : UCI_DIGEST_ISA_SSE2;
#elif UCI_DIGEST_HAVE_NEON
    return UCI_DIGEST_ISA_NEON;
#else
    return UCI_DIGEST_ISA_SCALAR;
#endif
}

void uci_digest_fill(uci_digest_ops_t table[UCI_DIGEST_LAST], uci_digest_isa_t isa)
{
    table[UCI_DIGEST_NONE]     = uci_digest_none_row;
    table[UCI_DIGEST_XXH3]     = uci_digest_xxh3_rows[isa];
    table[UCI_DIGEST_XXH128]   = uci_digest_xxh128_rows[isa];
    table[UCI_DIGEST_FNV1A]    = uci_digest_fnv1a_rows[isa];
    table[UCI_DIGEST_FLETCHER] = uci_digest_fletcher_rows[isa];
    table[UCI_DIGEST_CRC32C]   = *uci_digest_crc32c_row(isa);
    table[UCI_DIGEST_CRC64]    = *uci_digest_crc64_row(isa);
}

/* By blocks that stay in L1, in memory of our own: others may write to the source between two looks at it, and to the destination before
 * one. memcpy() is the compiler's best copy, and some digests have no kernel that copies. */
static uint64_t uci_digest_copy_separate(const uci_digest_ops_t *ops, void *dst, const void *src, size_t length)
{
    uint8_t own[UCI_DIGEST_SEPARATE_BLOCK];
    uci_digest_stream_t stream;
    size_t offset, piece;
    uint64_t value;

    if (length <= sizeof(own)) {
        value = ops->digest(uci_digest_own(own, src, length), length);
        memcpy(dst, own, length);
        return value;
    }

    ops->init(&stream);
    for (offset = 0; offset < length; offset += piece) {
        piece = uci_min(length - offset, sizeof(own));
        ops->update(&stream, NULL, uci_digest_own(own, (const uint8_t *)src + offset, piece), piece);
        memcpy((uint8_t *)dst + offset, own, piece);
    }
    return ops->final(&stream);
}

uint64_t uci_digest_copy_as(const uci_digest_ops_t *ops, uci_form_t form, void *dst, const void *src, size_t length)
{
    switch (form) {
    case UCI_FORM_FAR:
        return uci_digest_copy_far(ops, dst, src, length);
    case UCI_FORM_SEPARATE:
        return uci_digest_copy_separate(ops, dst, src, length);
    default:
        return ops->copy(dst, src, length);
    }
}

uci_form_t uci_digest_form_at(uci_form_t form, size_t length)
{
    if ((form == UCI_FORM_FAR) && (length < UCI_DIGEST_FAR_SMALL)) {
        return UCI_FORM_FUSED;
    }
    return ((form == UCI_FORM_FUSED) && (length >= UCI_DIGEST_FAR_MIN)) ? UCI_FORM_FAR : form;
}

const uci_digest_ops_t *uci_digest_row(uci_digest_id_t id, uci_digest_isa_t isa)
{
    return &uci_digest_rows[isa][id];
}

void uci_digest_use(uci_digest_id_t id, uci_digest_isa_t isa)
{
    uci_digest_table[id] = uci_digest_rows[isa][id];
}

/* A constructor too, so that the table is never seen empty; other constructors call it for themselves, because
 * their order is not known */
__attribute__((constructor)) void uci_digest_init(void)
{
    uci_digest_isa_t best = uci_digest_isa_best();
    unsigned isa;

    if (uci_digest_table[UCI_DIGEST_NONE].name != NULL) {
        return; /* others may be reading it */
    }

    uci_digest_far_use(best);
    for (isa = 0; isa <= (unsigned)best; ++isa) {
        uci_digest_fill(uci_digest_rows[isa], (uci_digest_isa_t)isa);
    }
    memcpy(uci_digest_table, uci_digest_rows[best], sizeof(uci_digest_table));
    uci_digest_auto      = uci_digest_table[UCI_DIGEST_XXH3];
    uci_digest_auto.name = "auto";
}

const uci_digest_ops_t *uci_digest_find(const char *name)
{
    unsigned id;

    for (id = 0; id < UCI_DIGEST_LAST; ++id) {
        if (uci_word_is(uci_digest_table[id].name, name)) {
            return &uci_digest_table[id];
        }
    }
    return NULL;
}

const uci_digest_ops_t *uci_digest_by_id(unsigned id)
{
    return (id < UCI_DIGEST_LAST) ? &uci_digest_table[id] : NULL;
}

uint32_t uci_digest_set(void)
{
    return (1u << UCI_DIGEST_LAST) - 1;
}
