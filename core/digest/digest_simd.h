/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which vectors this architecture has, with their intrinsics; private to core/digest*.c.
 */
#ifndef UCI_DIGEST_SIMD_H_
#define UCI_DIGEST_SIMD_H_

#ifdef __x86_64__
#include <immintrin.h>
#define UCI_DIGEST_HAVE_X86 1
#else
#define UCI_DIGEST_HAVE_X86 0
#endif

#ifdef __aarch64__
#include <arm_neon.h>
#define UCI_DIGEST_HAVE_NEON 1
#else
#define UCI_DIGEST_HAVE_NEON 0
#endif

#endif
