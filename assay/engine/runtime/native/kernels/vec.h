/* Vectors as wide as the instruction set has them: f32, i32 (masks are 0 or all ones), f64 and i64 of the same bytes.
 * Arithmetic is the compiler's on vector types; what it has no word for is here, per instruction set. */
#ifndef ASSAY_VEC_H
#define ASSAY_VEC_H

#include "machine.h"
#include <string.h>

#define LANES (VBYTES / 4)

typedef float vf __attribute__((vector_size(VBYTES), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(VBYTES), aligned(4), may_alias));
typedef uint32_t vu __attribute__((vector_size(VBYTES), aligned(4), may_alias));
typedef double vd __attribute__((vector_size(VBYTES), aligned(8), may_alias));
typedef int64_t vl __attribute__((vector_size(VBYTES), aligned(8), may_alias));
typedef float vfh __attribute__((vector_size(VBYTES / 2), aligned(4), may_alias));
typedef int32_t vih __attribute__((vector_size(VBYTES / 2), aligned(4), may_alias));

INLINE vi splat_i(int32_t x) { return x - (vi){0}; }
INLINE vf splat_f(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return (vf)splat_i((int32_t)u);
}

INLINE vi load_i(const void *p) { return *(const vi *)p; }
INLINE vf load_f(const void *p) { return *(const vf *)p; }
INLINE void store_i(void *p, vi x) { *(vi *)p = x; }

/* The first n words; of what lies behind them nothing is read or written. */
#if VBYTES == 64
INLINE vi load_part(const void *p, int64_t n) { return (vi)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p); }
INLINE void store_part(void *p, vi x, int64_t n)
{
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), (__m512i)x);
}
INLINE vi blend(vi mask, vi x, vi y)
{
    return (vi)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)x, (__m512i)y, 0xca);
}
#else
INLINE vi load_part(const void *p, int64_t n)
{
    vi x = {0};
    memcpy(&x, p, (size_t)n * 4);
    return x;
}
INLINE void store_part(void *p, vi x, int64_t n) { memcpy(p, &x, (size_t)n * 4); }
INLINE vi blend(vi mask, vi x, vi y) { return (mask & x) | (~mask & y); }
#endif

#define ABS_BITS 0x7fffffff
#define INF_BITS 0x7f800000
#define NAN_BITS 0x7fc00000

#if defined(X86)
#include "vec_x86.h"
#elif defined(NEON)
#include "vec_neon.h"
#else
#include "vec_plain.h"
#endif

/* E(x): -149 for zero, 129 for NaN and infinity; bits without their sign. Subnormals by the integer's own exponent. */
INLINE vi vexponent_of_bits(vi bits)
{
    vi tiny = (vi) __builtin_convertvector(bits & splat_i(0x007fffff), vf);
    vi small = vmax_i((tiny >> 23) - 275, splat_i(-149));
    vi usual = vmin_i((bits >> 23) - 126, splat_i(129));
    return blend(bits < splat_i(0x00800000), small, usual);
}

INLINE int32_t exponent_of_bits(int32_t bits)
{
    if (bits >= INF_BITS) return 129;
    if (bits >= 0x00800000) return (bits >> 23) - 126;
    return bits ? -117 - __builtin_clz((uint32_t)bits) : -149;
}

INLINE double power_of_two(int64_t n)
{
    n = n < -1000 ? -1000 : n > 1000 ? 1000 : n;
    int64_t bits = (n + 1023) << 52;
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

/* The f32 nearest to total * 2^n, ties to even, one rounding. Above 2^53 the lost bits are kept as one sticky bit. */
INLINE float finish(int64_t total, int64_t n)
{
    uint64_t magnitude = total < 0 ? 0u - (uint64_t)total : (uint64_t)total;
    uint64_t wide = magnitude >> 53;
    if (wide) {
        int shift = 64 - __builtin_clzll(wide);
        uint64_t kept = magnitude >> shift;
        if ((kept << shift) != magnitude) kept |= 1;
        magnitude = kept;
        n += shift;
    }
    double d = (double)(int64_t)magnitude * power_of_two(n < -700 ? -700 : n > 700 ? 700 : n);
    return total < 0 ? (float)-d : (float)d;
}

#endif
