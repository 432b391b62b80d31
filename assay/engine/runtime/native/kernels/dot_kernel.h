/* Kernels of the product: pairs of i16 digits multiplied and added in 32 bits, moved out before they can overflow.

   A sum of 32 bits is kept as lo + 2^16 hi. With |a| <= x and |b| <= y a pair adds at most 2 x y, so from lo < 2^16 a
   run of r pairs stays below 2^31 while 2^16 + 2 x y r < 2^31 (15 pairs for 14-bit operands), and by Cauchy and Schwarz
   also while 2^16 + |a| |b| < 2^31 with the norms of the run's terms; the driver chooses r by these inequalities.
   Between runs hi += lo >> 16, lo &= 2^16 - 1: hi is a floor of at most K - 1 products over 2^16. A product of one run
   has no hi. Which K keep all of it inside 32 bits stands in `assay/engine/runtime/exact/limits.py`. */
#ifndef ASSAY_DOT_KERNEL_H
#define ASSAY_DOT_KERNEL_H

#include <immintrin.h>

#include "dot.h"

#define TILE_ROWS 8
#define TILE_COLUMNS 32
#define TILE (TILE_ROWS * TILE_COLUMNS)

#if defined(__AVX512BW__)
#define ROWS 8
#define PER_PANEL 1
typedef __m512i vector;
#define LOAD(p) _mm512_load_si512(p)
#define STORE(p, v) _mm512_store_si512(p, v)
#define PAIR(p) _mm512_set1_epi32(*(const int32_t *)(p))
#define ADD(a, b) _mm512_add_epi32(a, b)
#define HIGH(a) _mm512_srai_epi32(a, 16)
#define LOW(a) _mm512_and_si512(a, _mm512_set1_epi32(0xFFFF))
#if defined(__AVX512VNNI__)
/* As an instruction: by the intrinsic, GCC 12 copies every accumulator twice per step. */
#define DOT(s, a, b)                                                                                                   \
    ({                                                                                                                 \
        vector t_ = s;                                                                                                 \
        __asm__("vpdpwssd %2, %1, %0" : "+v"(t_) : "v"(a), "v"(b));                                                    \
        t_;                                                                                                            \
    })
#else
#define DOT(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#endif
#elif defined(__AVX2__)
#define ROWS 4
#define PER_PANEL 2
typedef __m256i vector;
#define LOAD(p) _mm256_load_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_store_si256((__m256i *)(p), v)
#define PAIR(p) _mm256_set1_epi32(*(const int32_t *)(p))
#define ADD(a, b) _mm256_add_epi32(a, b)
#define HIGH(a) _mm256_srai_epi32(a, 16)
#define LOW(a) _mm256_and_si256(a, _mm256_set1_epi32(0xFFFF))
#define DOT(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#else
#define ROWS 2
#define PER_PANEL 4
typedef __m128i vector;
#define LOAD(p) _mm_load_si128((const __m128i *)(p))
#define STORE(p, v) _mm_store_si128((__m128i *)(p), v)
#define PAIR(p) _mm_set1_epi32(*(const int32_t *)(p))
#define ADD(a, b) _mm_add_epi32(a, b)
#define HIGH(a) _mm_srai_epi32(a, 16)
#define LOW(a) _mm_and_si128(a, _mm_set1_epi32(0xFFFF))
#define DOT(s, a, b) _mm_add_epi32(s, _mm_madd_epi16(a, b))
#endif

#define VECTOR (PANEL / PER_PANEL)

static const int32_t zero = 0;

/* ROWS rows times `panels` panels; b_stride: i16 between panels. */
static inline __attribute__((always_inline)) void block(const int16_t *a, const int16_t *b, int64_t b_stride,
                                                        int64_t pairs, int64_t run, const int panels, int fresh,
                                                        int last, int32_t *lo, int32_t *hi)
{
    vector s[ROWS][2 * PER_PANEL];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (int v = 0; v < panels * PER_PANEL; v++) {
            int at = r * TILE_COLUMNS + v * VECTOR;
            s[r][v] = fresh ? PAIR(&zero) : LOAD(lo + at);
            if (fresh && !(last && pairs <= run)) STORE(hi + at, s[r][v]);
        }
    for (int64_t done = 0; done < pairs;) {
        int64_t end = pairs - done < run ? pairs : done + run;
        for (; done < end; done++) {
            vector y[2 * PER_PANEL];
#pragma GCC unroll 8
            for (int v = 0; v < panels * PER_PANEL; v++)
                y[v] = LOAD(b + v / PER_PANEL * b_stride + done * 2 * PANEL + v % PER_PANEL * 2 * VECTOR);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; r++) {
                vector x = PAIR(a + done * 2 * PANEL + 2 * r);
#pragma GCC unroll 8
                for (int v = 0; v < panels * PER_PANEL; v++) s[r][v] = DOT(s[r][v], x, y[v]);
            }
        }
        if (last && done == pairs) break;
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
            for (int v = 0; v < panels * PER_PANEL; v++) {
                int32_t *h = hi + r * TILE_COLUMNS + v * VECTOR;
                STORE(h, ADD(LOAD(h), HIGH(s[r][v])));
                s[r][v] = LOW(s[r][v]);
            }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (int v = 0; v < panels * PER_PANEL; v++) STORE(lo + r * TILE_COLUMNS + v * VECTOR, s[r][v]);
}

/* lo and hi [TILE_ROWS][TILE_COLUMNS] += the products of some pairs, or = these if fresh; last: no others follow.
   b_stride: i16 between panels; columns: 16 or 32. */
static void multiply_tile(const int16_t *a, const int16_t *b, int64_t b_stride, int64_t pairs, int64_t run, int columns,
                          int fresh, int last, int32_t *lo, int32_t *hi)
{
    for (int r = 0; r < TILE_ROWS; r += ROWS) {
        int32_t *l = lo + r * TILE_COLUMNS, *h = hi + r * TILE_COLUMNS;
#if defined(__AVX512BW__)
        if (columns > PANEL) block(a + 2 * r, b, b_stride, pairs, run, 2, fresh, last, l, h);
        else block(a + 2 * r, b, b_stride, pairs, run, 1, fresh, last, l, h);
#else
        for (int c = 0; c < columns; c += PANEL)
            block(a + 2 * r, b + c / PANEL * b_stride, b_stride, pairs, run, 1, fresh, last, l + c, h + c);
#endif
    }
}

#undef LOAD
#undef STORE
#undef ADD
#undef HIGH
#undef LOW

#endif
