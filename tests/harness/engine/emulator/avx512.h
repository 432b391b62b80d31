/* AVX-512 on a processor that has AVX2 alone: what the kernels use of it, by Intel's descriptions.

   Included before everything else of a unit (`-include`). Whatever treats lanes or pairs of lanes alike is the
   instruction of AVX2 on both halves; the others are written out by element. The compiler is told last that the
   instructions are there, so that the kernels take their widest form. */
#ifndef ASSAY_EMULATED_AVX512_H
#define ASSAY_EMULATED_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#if !defined(__AVX2__) || defined(__AVX512F__)
#error "for AVX2 alone: elsewhere the instructions are there, or are not emulated"
#endif

#define EMULATED static inline __attribute__((always_inline))
#define LANES(n) for (int i = 0; i < (n); i++)

typedef uint32_t words __attribute__((vector_size(64)));
typedef int32_t signed_words __attribute__((vector_size(64)));

/* All 64 bytes, as whatever is read of them. */
typedef union {
    __m512i v;
    __m512 f;
    __m512d d;
    __m256i half[2];
    __m256 half_f[2];
    __m256d half_d[2];
    __m128i quarter[4];
    __m128 quarter_f[4];
    int8_t i8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    int64_t i64[8];
    float f32[16];
} wide;

EMULATED wide of_i(__m512i x) { return (wide){.v = x}; }
EMULATED wide of_f(__m512 x) { return (wide){.f = x}; }
EMULATED wide of_d(__m512d x) { return (wide){.d = x}; }

/* The instruction of AVX2 on both halves, of one operand and of two. */
#define ONE(name, result, field, operand, read, part, by)                                                              \
    EMULATED result emulated_##name(operand x)                                                                         \
    {                                                                                                                  \
        wide a = read(x), r;                                                                                           \
        r.field[0] = by(a.part[0]);                                                                                    \
        r.field[1] = by(a.part[1]);                                                                                    \
        return r.OUT_##result;                                                                                         \
    }
#define TWO(name, type, read, part, by)                                                                                \
    EMULATED type emulated_##name(type x, type y)                                                                      \
    {                                                                                                                  \
        wide a = read(x), b = read(y), r;                                                                              \
        r.part[0] = by(a.part[0], b.part[0]);                                                                          \
        r.part[1] = by(a.part[1], b.part[1]);                                                                          \
        return r.OUT_##type;                                                                                           \
    }
#define OUT___m512i v
#define OUT___m512 f
#define OUT___m512d d
#define TWO_I(name) TWO(name, __m512i, of_i, half, _mm256_##name)
#define TWO_F(name) TWO(name, __m512, of_f, half_f, _mm256_##name)

TWO_I(add_epi32)
TWO_I(sub_epi32)
TWO_I(min_epi32)
TWO_I(max_epi32)
TWO_I(packs_epi32)
TWO_I(madd_epi16)
TWO_I(shuffle_epi8)
TWO_I(unpacklo_epi32)
TWO_I(unpackhi_epi32)
TWO_I(unpacklo_epi64)
TWO_I(unpackhi_epi64)
TWO_F(add_ps)
TWO_F(sub_ps)
TWO_F(mul_ps)
TWO_F(min_ps)
TWO_F(max_ps)
ONE(sqrt_ps, __m512, half_f, __m512, of_f, half_f, _mm256_sqrt_ps)
ONE(cvtps_epi32, __m512i, half, __m512, of_f, half_f, _mm256_cvtps_epi32)
ONE(cvttps_epi32, __m512i, half, __m512, of_f, half_f, _mm256_cvttps_epi32)
ONE(cvtepi32_ps, __m512, half_f, __m512i, of_i, half, _mm256_cvtepi32_ps)

EMULATED __m512i emulated_load(const void *p)
{
    wide r;
    memcpy(&r, p, sizeof r);
    return r.v;
}
EMULATED __m512i emulated_load_aligned(const void *p)
{
    if ((uintptr_t)p % 64) __builtin_trap();
    return emulated_load(p);
}
EMULATED void emulated_store_aligned(void *p, __m512i x)
{
    if ((uintptr_t)p % 64) __builtin_trap();
    memcpy(p, &x, sizeof x);
}
EMULATED void emulated_storeu_ps(void *p, __m512 x) { memcpy(p, &x, sizeof x); }

/* Lanes without a bit are neither read nor written. */
EMULATED __m512i emulated_maskz_loadu(__mmask16 mask, const void *p)
{
    wide r = {{0}};
    LANES(16) if (mask >> i & 1) memcpy(&r.i32[i], (const char *)p + 4 * i, 4);
    return r.v;
}
EMULATED void emulated_mask_storeu(void *p, __mmask16 mask, __m512i x)
{
    wide a = of_i(x);
    LANES(16) if (mask >> i & 1) memcpy((char *)p + 4 * i, &a.i32[i], 4);
}
EMULATED __m512i emulated_set1(int32_t x) { return (__m512i)((signed_words){0} + x); }
EMULATED __m512i emulated_slli(__m512i x, unsigned by) { return by > 31 ? (__m512i){0} : (__m512i)((words)x << by); }
EMULATED __m512i emulated_srai(__m512i x, unsigned by) { return (__m512i)((signed_words)x >> (by > 31 ? 31 : by)); }
EMULATED __m512i emulated_ror(__m512i x, unsigned by)
{
    return (__m512i)((words)x >> by % 32 | (words)x << (32 - by % 32) % 32);
}
/* Bit of the table at the number that the bits of x, y and z make, x's the highest. */
EMULATED __m512i emulated_ternarylogic(__m512i x, __m512i y, __m512i z, unsigned table)
{
    __m512i r = {0};
    for (unsigned n = 0; n < 8; n++)
        if (table >> n & 1) r |= (n & 4 ? x : ~x) & (n & 2 ? y : ~y) & (n & 1 ? z : ~z);
    return r;
}
EMULATED __m512i emulated_mask_blend_epi16(__mmask32 mask, __m512i x, __m512i y)
{
    wide a = of_i(x), b = of_i(y);
    LANES(32) if (mask >> i & 1) a.u16[i] = b.u16[i];
    return a.v;
}
EMULATED __m512i emulated_shuffle_i32x4(__m512i x, __m512i y, unsigned order)
{
    wide a = of_i(x), b = of_i(y), r;
    LANES(4) r.quarter[i] = (i < 2 ? a : b).quarter[order >> 2 * i & 3];
    return r.v;
}
EMULATED __m512i emulated_inserti32x4(__m512i x, __m128i part, unsigned at)
{
    wide a = of_i(x);
    a.quarter[at & 3] = part;
    return a.v;
}
EMULATED __m512i emulated_broadcast_i32x4(__m128i x)
{
    wide r;
    LANES(4) r.quarter[i] = x;
    return r.v;
}
EMULATED __m128i emulated_cvtepi32_epi8(__m512i x)
{
    wide a = of_i(x);
    union {
        __m128i v;
        int8_t i8[16];
    } r;
    LANES(16) r.i8[i] = (int8_t)a.i32[i];
    return r.v;
}
EMULATED __m512i emulated_cvtepi32_epi64(__m256i x)
{
    wide a = {.half = {x}}, r;
    LANES(8) r.i64[i] = a.i32[i];
    return r.v;
}
EMULATED __m512d emulated_cvtepi32_pd(__m256i x)
{
    wide r;
    r.half_d[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(x));
    r.half_d[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1));
    return r.d;
}
EMULATED __m512d emulated_cvtps_pd(__m256 x)
{
    wide r;
    r.half_d[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    r.half_d[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    return r.d;
}
EMULATED __m256 emulated_cvtpd_ps(__m512d x)
{
    wide a = of_d(x), r;
    LANES(2) r.quarter_f[i] = _mm256_cvtpd_ps(a.half_d[i]);
    return r.half_f[0];
}
EMULATED __m512i emulated_maskz_cvtps_epi32(__mmask16 mask, __m512 x)
{
    wide r = of_i(emulated_cvtps_epi32(x));
    LANES(16) if (!(mask >> i & 1)) r.i32[i] = 0;
    return r.v;
}
EMULATED __mmask16 emulated_movepi32_mask(__m512i x)
{
    wide a = of_i(x);
    unsigned mask = 0;
    LANES(16) mask |= (unsigned)(a.i32[i] < 0) << i;
    return (__mmask16)mask;
}
/* The classes, by bit: quiet NaN, 0, -0, infinity, -infinity, subnormal, negative, signalling NaN. */
EMULATED __mmask16 emulated_fpclass_ps_mask(__m512 x, unsigned classes)
{
    wide a = of_f(x);
    unsigned mask = 0;
    LANES(16)
    {
        uint32_t u = a.u32[i], exponent = u >> 23 & 255, fraction = u & 0x7FFFFF, negative = u >> 31;
        uint32_t nan = exponent == 255 && fraction, quiet = nan && fraction >> 22, zero = !(u << 1);
        uint32_t infinity = exponent == 255 && !fraction, subnormal = !exponent && fraction;
        uint32_t is = quiet | (zero && !negative) << 1 | (zero && negative) << 2 | (infinity && !negative) << 3 |
                      (infinity && negative) << 4 | subnormal << 5 | (negative && !nan && !zero && !infinity) << 6 |
                      (nan && !quiet) << 7;
        mask |= (unsigned)((is & classes) != 0) << i;
    }
    return (__mmask16)mask;
}
EMULATED int32_t emulated_reduce_max_epi32(__m512i x)
{
    wide a = of_i(x);
    int32_t most = a.i32[0];
    LANES(16) most = a.i32[i] > most ? a.i32[i] : most;
    return most;
}
EMULATED int64_t emulated_reduce_add_epi64(__m512i x)
{
    wide a = of_i(x);
    uint64_t sum = 0;
    LANES(8) sum += (uint64_t)a.i64[i];
    return (int64_t)sum;
}
EMULATED __m512 emulated_castps256_ps512(__m256 x) { return (wide){.half_f = {x}}.f; }
EMULATED __m512i emulated_castsi128_si512(__m128i x) { return (wide){.quarter = {x}}.v; }
EMULATED __m512 emulated_insertf32x8(__m512 x, __m256 part, unsigned at)
{
    wide a = of_f(x);
    a.half_f[at & 1] = part;
    return a.f;
}

/* Pairs of i16, and fours of unsigned by signed bytes, added to i32 modulo 2^32 (`vnni.h`). */
EMULATED __m512i emulated_dpwssd(__m512i s, __m512i x, __m512i y)
{
    return emulated_add_epi32(s, emulated_madd_epi16(x, y));
}
EMULATED __m512i emulated_dpbusd(__m512i s, __m512i x, __m512i y)
{
    wide r = of_i(s), a = of_i(x), b = of_i(y);
    LANES(64) r.u32[i / 4] += (uint32_t)((uint8_t)a.i8[i] * b.i8[i]);
    return r.v;
}

#define _mm512_add_epi32 emulated_add_epi32
#define _mm512_sub_epi32 emulated_sub_epi32
#define _mm512_min_epi32 emulated_min_epi32
#define _mm512_max_epi32 emulated_max_epi32
#define _mm512_packs_epi32 emulated_packs_epi32
#define _mm512_madd_epi16 emulated_madd_epi16
#define _mm512_shuffle_epi8 emulated_shuffle_epi8
#define _mm512_unpacklo_epi32 emulated_unpacklo_epi32
#define _mm512_unpackhi_epi32 emulated_unpackhi_epi32
#define _mm512_unpacklo_epi64 emulated_unpacklo_epi64
#define _mm512_unpackhi_epi64 emulated_unpackhi_epi64
#define _mm512_add_ps emulated_add_ps
#define _mm512_sub_ps emulated_sub_ps
#define _mm512_mul_ps emulated_mul_ps
#define _mm512_min_ps emulated_min_ps
#define _mm512_max_ps emulated_max_ps
#define _mm512_sqrt_ps emulated_sqrt_ps
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
#define _mm512_cvttps_epi32 emulated_cvttps_epi32
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_and_si512(x, y) ((x) & (y))
#define _mm512_or_si512(x, y) ((x) | (y))
#define _mm512_xor_si512(x, y) ((x) ^ (y))
#define _mm512_load_si512 emulated_load_aligned
#define _mm512_store_si512 emulated_store_aligned
#define _mm512_loadu_si512 emulated_load
#define _mm512_loadu_ps(p) ((__m512)emulated_load(p))
#define _mm512_loadu_pd(p) ((__m512d)emulated_load(p))
#define _mm512_storeu_ps emulated_storeu_ps
#define _mm512_maskz_loadu_ps(mask, p) ((__m512)emulated_maskz_loadu(mask, p))
#define _mm512_maskz_loadu_epi32 emulated_maskz_loadu
#define _mm512_mask_storeu_epi32 emulated_mask_storeu
#define _mm512_set1_epi32 emulated_set1
#define _mm512_set1_epi8(x) emulated_set1((int32_t)(0x01010101u * (uint8_t)(x)))
#define _mm512_set1_ps(x) ((__m512){0} + (float)(x))
#define _mm512_set1_pd(x) ((__m512d){0} + (double)(x))
#define _mm512_setzero_si512() ((__m512i){0})
#define _mm512_setzero_ps() ((__m512){0})
#define _mm512_slli_epi32 emulated_slli
#define _mm512_srai_epi32 emulated_srai
#define _mm512_ror_epi32 emulated_ror
#define _mm512_ternarylogic_epi32 emulated_ternarylogic
#define _mm512_mask_blend_epi16 emulated_mask_blend_epi16
#define _mm512_shuffle_i32x4 emulated_shuffle_i32x4
#define _mm512_inserti32x4 emulated_inserti32x4
#define _mm512_broadcast_i32x4 emulated_broadcast_i32x4
#define _mm512_cvtepi32_epi8 emulated_cvtepi32_epi8
#define _mm512_cvtepi32_epi64 emulated_cvtepi32_epi64
#define _mm512_cvtepi32_pd emulated_cvtepi32_pd
#define _mm512_cvtps_pd emulated_cvtps_pd
#define _mm512_cvtpd_ps emulated_cvtpd_ps
#define _mm512_maskz_cvtps_epi32 emulated_maskz_cvtps_epi32
#define _mm512_movepi32_mask emulated_movepi32_mask
#define _mm512_fpclass_ps_mask emulated_fpclass_ps_mask
#define _mm512_reduce_max_epi32 emulated_reduce_max_epi32
#define _mm512_reduce_add_epi64 emulated_reduce_add_epi64
#define _mm512_castps256_ps512 emulated_castps256_ps512
#define _mm512_castsi128_si512 emulated_castsi128_si512
#define _mm512_castsi512_si256(x) (of_i(x).half[0])
#define _mm512_castps512_ps256(x) (of_f(x).half_f[0])
#define _mm512_extracti32x8_epi32(x, at) (of_i(x).half[at])
#define _mm512_extractf32x8_ps(x, at) (of_f(x).half_f[at])
#define _mm512_insertf32x8 emulated_insertf32x8
#define _mm512_roundscale_ps(x, how)                                                                                   \
    ({                                                                                                                 \
        wide a_ = of_f(x);                                                                                             \
        a_.half_f[0] = _mm256_round_ps(a_.half_f[0], how);                                                             \
        a_.half_f[1] = _mm256_round_ps(a_.half_f[1], how);                                                             \
        a_.f;                                                                                                          \
    })

#define __AVX512BW__ 1
#if defined(EMULATED_VNNI)
#define __AVX512VNNI__ 1
#define ASSAY_VNNI_H /* its two instructions are these */
#define dpwssd emulated_dpwssd
#define dpbusd emulated_dpbusd
#endif

#undef EMULATED
#undef LANES
#undef ONE
#undef TWO
#undef TWO_I
#undef TWO_F
#endif
