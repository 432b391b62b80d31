/* The product of operands of up to 8 bits by vectors: four i8 at a time, where the processor has VNNI.

   The instruction multiplies unsigned by signed bytes, so rows of A are packed as a + 128 and every column starts from
   -128 times the sum of its b. Sums are kept mod 2^32, and the result lies within 32 bits
   (`assay/engine/runtime/exact/limits.py`). */
#ifndef ASSAY_DOT_BYTES_H
#define ASSAY_DOT_BYTES_H

#include "dot.h"
#include "dot_kernel.h"

#define BYTES_FLIP ((int8_t)-128) /* a xor this, read as an unsigned byte, is a + 128 */
#define BLOCK_TILES 8             /* packed tiles of 64 terms whose columns stay in the first cache */

#if defined(VNNI)
#define HAS_BYTES 1

/* -128 times the sums of b over the terms of each column of a packed panel. */
static void byte_starts(const int8_t *b, int64_t fours, int32_t *start)
{
    __m512i ones = _mm512_set1_epi8(1), sum = _mm512_setzero_si512();
    for (int64_t t = 0; t < fours; t++) sum = dpbusd(sum, ones, _mm512_load_si512(b + 64 * t));
    _mm512_store_si512(start, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 7)));
}

/* sums [TILE_ROWS][TILE_COLUMNS] = start of each column, or what they were, + the products of some fours of terms. a,
   b: packed tiles; b_stride: bytes between panels of columns. */
static inline __attribute__((always_inline)) void bytes_block(const int8_t *a, const int8_t *b, int64_t b_stride,
                                                              int64_t fours, const int panels, const int32_t *start,
                                                              int32_t *sums)
{
    __m512i s[TILE_ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < panels; v++)
            s[r][v] = _mm512_load_si512((start ? start : sums + r * TILE_COLUMNS) + v * PANEL);
    for (int64_t t = 0; t < fours; t++) {
        const int8_t *x = a + t / 16 * 1024 + t % 16 * 4;
        __m512i y[2];
#pragma GCC unroll 2
        for (int v = 0; v < panels; v++) y[v] = _mm512_load_si512(b + v * b_stride + 64 * t);
#pragma GCC unroll 8
        for (int r = 0; r < TILE_ROWS; r++) {
            __m512i four = _mm512_set1_epi32(*(const int32_t *)(x + 64 * r));
#pragma GCC unroll 2
            for (int v = 0; v < panels; v++) s[r][v] = dpbusd(s[r][v], four, y[v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < panels; v++) _mm512_store_si512(sums + r * TILE_COLUMNS + v * PANEL, s[r][v]);
}

static void multiply_fours(const int8_t *a, const int8_t *b, int64_t b_stride, int64_t fours, int panels,
                           const int32_t *start, int32_t *sums)
{
    if (panels == 2) bytes_block(a, b, b_stride, fours, 2, start, sums);
    else bytes_block(a, b, b_stride, fours, 1, start, sums);
}

#else
#define HAS_BYTES 0

static void byte_starts(const int8_t *b, int64_t fours, int32_t *start) { (void)b, (void)fours, (void)start; }
static void multiply_fours(const int8_t *a, const int8_t *b, int64_t b_stride, int64_t fours, int panels,
                           const int32_t *start, int32_t *sums)
{
    (void)a, (void)b, (void)b_stride, (void)fours, (void)panels, (void)start, (void)sums;
}
#endif

#endif
