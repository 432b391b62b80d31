/* Packing for matrix tiles and for fours of bytes: digits of i8 in base 256. */
#ifndef ASSAY_DOT_PACK_TILES_H
#define ASSAY_DOT_PACK_TILES_H

#include "dot_pack.h"

#if defined(VNNI)

/* Digit i of q in base 256: the low byte, as a signed number, of (q + the halves of all lower places) >> 8 i. */
static inline __m512i place(__m512i q, int i)
{
    return i == 0 ? q
                  : _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(i == 1 ? 128 : 32896)), (unsigned)(8 * i));
}

static inline void store_tile(__m512i *t, int turned, int8_t flip, int8_t *to)
{
    __m512i sign = _mm512_set1_epi8(flip);
    if (turned) transpose16(t);
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) _mm512_store_si512(to + 64 * r, _mm512_xor_si512(t[r], sign));
}

/* Digits of i8 in base 256 of the terms [k0, end), by tiles of 64: per digit [ceil(k/64)] tiles of [row][64 k], or
   [16][row][4 k] (across). flip: what all bytes are joined to by xor. */
INLINE void pack_digits(const dot_side *s, const int digits, int across, int8_t flip, const float *x, int64_t batch,
                        int64_t first, int64_t rows, int64_t k, int64_t k0, int64_t end, int8_t *out, const scales *f)
{
    float buf[PANEL * 64] __attribute__((aligned(64)));
    const float *row[2][PANEL]; /* of the first and the second RED_BLOCK */
    int64_t at = s->batch[batch], plane = (k + 63) / 64 * 1024;
    int own_kind = at == OUTSIDE ? GENERAL : s->own_kind[first / PANEL];
    __m512 limit = _mm512_set1_ps(f->limit);
    for (; k0 < end; k0 += 64) {
        int64_t count = least(64, k - k0);
        int halves = count > RED_BLOCK ? 2 : 1;
        int red_kind = s->red_kind[k0 / RED_BLOCK] & s->red_kind[k0 / RED_BLOCK + halves - 1];
        int8_t *to = out + k0 * PANEL;
        __m512i tile[3][16];
        int by_column = own_kind == UNIT && red_kind >= INSIDE;
        if (by_column && !(red_kind == UNIT && rows <= count)) {
            int64_t from = at + s->own[first];
            const int64_t *red = s->red + k0;
            __mmask16 m = first_lanes(rows);
            factors by = {_mm512_loadu_ps(f->first), _mm512_loadu_ps(f->second), limit, f->two, f->how};
            __m512i byte = _mm512_set1_epi32(255);
            for (int t = 0; t < 16; t++) {
                __m512i q[4];
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                    q[i] = 4 * t + i < count
                               ? quantize(_mm512_maskz_loadu_ps(m, ahead_of(x + (from + red[4 * t + i]))), by)
                               : _mm512_setzero_si512();
#pragma GCC unroll 3
                for (int d = 0; d < 3; d++) {
                    if (d >= digits) break;
                    __m512i even = _mm512_or_si512(_mm512_and_si512(place(q[0], d), byte),
                                                   _mm512_slli_epi32(_mm512_and_si512(place(q[2], d), byte), 16));
                    __m512i odd = _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(place(q[1], d), byte), 8),
                                                  _mm512_slli_epi32(place(q[3], d), 24));
                    tile[d][t] = _mm512_or_si512(even, odd);
                }
            }
            for (int d = 0; d < digits; d++) store_tile(tile[d], !across, flip, to + d * plane);
            continue;
        }
        if (red_kind == UNIT && own_kind >= INSIDE) {
            for (int h = 0; h < halves; h++)
                for (int64_t r = 0; r < rows; r++)
                    row[h][r] = x + (at + s->own[first + r] + s->red[k0 + h * RED_BLOCK]);
        } else {
            collect(s, x, batch, first, rows, k0, count, 64, buf);
            for (int h = 0; h < halves; h++)
                for (int64_t r = 0; r < rows; r++) row[h][r] = buf + r * 64 + h * RED_BLOCK;
        }
        for (int r = 0; r < 16; r++) {
            for (int d = 0; d < digits; d++) tile[d][r] = _mm512_setzero_si512();
            if (r >= rows) continue;
            factors by = {_mm512_set1_ps(f->first[r]), _mm512_set1_ps(f->second[r]), limit, f->two, f->how};
            __m512i q[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                q[i] =
                    i / 2 < halves
                        ? quantize(_mm512_maskz_loadu_ps(first_lanes(count - 16 * i), row[i / 2][r] + 16 * (i % 2)), by)
                        : _mm512_setzero_si512();
#pragma GCC unroll 3
            for (int d = 0; d < 3; d++) {
                if (d >= digits) break;
                __m512i wide = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(place(q[0], d)));
                wide = _mm512_inserti32x4(wide, _mm512_cvtepi32_epi8(place(q[1], d)), 1);
                wide = _mm512_inserti32x4(wide, _mm512_cvtepi32_epi8(place(q[2], d)), 2);
                tile[d][r] = _mm512_inserti32x4(wide, _mm512_cvtepi32_epi8(place(q[3], d)), 3);
            }
        }
        for (int d = 0; d < digits; d++) store_tile(tile[d], across, flip, to + d * plane);
    }
}

static void pack_tiles(const dot_side *s, int digits, int across, int8_t flip, const float *x, int64_t batch,
                       int64_t first, int64_t rows, int64_t k, int64_t k0, int64_t end, int8_t *out, const scales *f)
{
    if (digits == 1) pack_digits(s, 1, across, flip, x, batch, first, rows, k, k0, end, out, f);
    else if (digits == 2) pack_digits(s, 2, across, flip, x, batch, first, rows, k, k0, end, out, f);
    else pack_digits(s, digits, across, flip, x, batch, first, rows, k, k0, end, out, f);
}

#elif defined(DOTPROD)
#include "dot_pack_tiles_neon.h"
#else

static void pack_tiles(const dot_side *s, int digits, int across, int8_t flip, const float *x, int64_t batch,
                       int64_t first, int64_t rows, int64_t k, int64_t k0, int64_t end, int8_t *out, const scales *f)
{
    (void)s, (void)digits, (void)across, (void)flip, (void)x, (void)batch, (void)first, (void)rows, (void)k, (void)k0,
        (void)end;
    (void)out, (void)f;
}

#endif

#endif
