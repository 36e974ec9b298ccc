/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_KERNEL_FILE, a digest's kernel, for each instruction set there is on this architecture. Included by the file of the digest,
 * hence no include guard.
 */
#if UCI_DIGEST_HAVE_X86
#define UCI_VEC       UCI_ISA_SSE2
#define UCI_VEC_ISA   UCI_DIGEST_ISA_SSE2
#define UCI_VEC_BYTES 16
#include UCI_KERNEL_FILE
#undef UCI_VEC
#undef UCI_VEC_ISA
#undef UCI_VEC_BYTES

UCI_KERNEL_BEGIN_AVX2
#define UCI_VEC       UCI_ISA_AVX2
#define UCI_VEC_ISA   UCI_DIGEST_ISA_AVX2
#define UCI_VEC_BYTES 32
#include UCI_KERNEL_FILE
#undef UCI_VEC
#undef UCI_VEC_ISA
#undef UCI_VEC_BYTES
UCI_KERNEL_END

UCI_KERNEL_BEGIN_AVX512
#define UCI_VEC       UCI_ISA_AVX512
#define UCI_VEC_ISA   UCI_DIGEST_ISA_AVX512
#define UCI_VEC_BYTES 64
#include UCI_KERNEL_FILE
#undef UCI_VEC
#undef UCI_VEC_ISA
#undef UCI_VEC_BYTES
UCI_KERNEL_END
#endif

#if UCI_DIGEST_HAVE_NEON
#define UCI_VEC       UCI_ISA_NEON
#define UCI_VEC_ISA   UCI_DIGEST_ISA_NEON
#define UCI_VEC_BYTES 16
#include UCI_KERNEL_FILE
#undef UCI_VEC
#undef UCI_VEC_ISA
#undef UCI_VEC_BYTES
#endif
