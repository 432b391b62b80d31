/* Which instructions a unit is compiled for. PLAIN is C alone, for any processor: vectors of 16 bytes are the
 * compiler's own, and it takes what the machine's baseline has. */
#ifndef ASSAY_MACHINE_H
#define ASSAY_MACHINE_H

#include "common.h"

#if !defined(PLAIN) && defined(__SSE4_1__)
#define X86
#include <immintrin.h>
#if defined(__AVX512BW__)
#define VBYTES 64
#elif defined(__AVX2__)
#define VBYTES 32
#endif
#if defined(__AVX512VNNI__)
#define VNNI
#endif
#elif !defined(PLAIN) && defined(__aarch64__)
#define NEON
#include <arm_neon.h>
#if defined(__ARM_FEATURE_DOTPROD)
#define DOTPROD
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define I8MM
#endif
#endif

#if !defined(VBYTES)
#define VBYTES 16
#endif

#endif
