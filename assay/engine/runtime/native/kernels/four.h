/* Vectors of four words, for packing and hashing where no wider one is at hand. */
#ifndef ASSAY_FOUR_H
#define ASSAY_FOUR_H

#include "machine.h"

typedef int32_t four_i __attribute__((vector_size(16), aligned(4), may_alias));
typedef float four_f __attribute__((vector_size(16), aligned(4), may_alias));
typedef int16_t eight_s __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint8_t sixteen_b __attribute__((vector_size(16), aligned(1), may_alias));

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#if !defined(SHUFFLE)
#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

INLINE four_f splat4(float x) { return (four_f){x, x, x, x}; }
INLINE four_i load4_i(const void *p) { return *(const four_i *)p; }
INLINE four_i load4_b(const uint8_t *p) { return (four_i) * (const sixteen_b *)p; } /* from any address */
INLINE four_f load4_f(const void *p) { return *(const four_f *)p; }
INLINE void store4(void *p, four_i x) { *(four_i *)p = x; }

/* x within +-limit, a power of two up to 2^23 or 127, to the nearest integer, ties to even; of a NaN any. */
INLINE four_i round_within(four_f x, four_f limit)
{
#if defined(X86)
    __m128 y = _mm_max_ps(_mm_min_ps((__m128)x, (__m128)limit), (__m128)-limit);
    return (four_i)_mm_cvtps_epi32(y);
#elif defined(NEON)
    float32x4_t y = vmaxq_f32(vminq_f32((float32x4_t)x, (float32x4_t)limit), (float32x4_t)-limit);
    return (four_i)vcvtnq_s32_f32(y);
#else
    four_i below = (four_i)(x < limit), above;
    x = (four_f)((below & (four_i)x) | (~below & (four_i)limit));
    above = (four_i)(x > -limit);
    x = (four_f)((above & (four_i)x) | (~above & (four_i)-limit));
    four_f far = (four_f)(((four_i)x & INT32_MIN) | 0x4b000000); /* +-2^23: adding it rounds to an integer */
    return __builtin_convertvector(x + far - far, four_i);
#endif
}

/* Eight words, each of them within 16 bits, as i16. */
INLINE four_i narrow(four_i a, four_i b)
{
#if defined(X86)
    return (four_i)_mm_packs_epi32((__m128i)a, (__m128i)b);
#else
    return (four_i)SHUFFLE(eight_s, (eight_s)a, (eight_s)b, 0, 2, 4, 6, 8, 10, 12, 14);
#endif
}

/* Per word the products of both i16 of it, added. */
INLINE four_i multiply_pairs4(four_i a, four_i b)
{
#if defined(X86)
    return (four_i)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(NEON)
    int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    return (four_i)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
#else
    return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* The bytes of each word in reverse. */
INLINE four_i turn_bytes(four_i x)
{
#if defined(X86)
    return (four_i)_mm_shuffle_epi8((__m128i)x, _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
#else
    return (four_i)SHUFFLE(sixteen_b, (sixteen_b)x, (sixteen_b)x, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
#endif
}

#endif
