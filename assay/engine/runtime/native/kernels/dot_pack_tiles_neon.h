/* Packing for tiles of 64 terms by vectors of four words. */
#ifndef ASSAY_DOT_PACK_TILES_NEON_H
#define ASSAY_DOT_PACK_TILES_NEON_H

#include "dot_pack.h"

/* Digit i of q in base 256: the low byte, as a signed number, of (q + the halves of all lower places) >> 8 i. */
static inline four_i place(four_i q, int i)
{
    const int32_t halves[] = {0, 128, 32896};
    return (q + halves[i]) >> (8 * i);
}

/* Digit i of 16 values, a byte each. */
static inline four_i bytes_of(const four_i q[4], int i)
{
    four_i low = narrow(place(q[0], i), place(q[1], i)), high = narrow(place(q[2], i), place(q[3], i));
    return (four_i)SHUFFLE(sixteen_b, (sixteen_b)low, (sixteen_b)high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
                           26, 28, 30);
}

/* Digit i of four times four values, a word per row from one value of each. */
static inline four_i words_of(const four_i q[4], int i)
{
    return (place(q[0], i) & 255) | (place(q[1], i) & 255) << 8 | (place(q[2], i) & 255) << 16 | place(q[3], i) << 24;
}

/* Words of four rows from r on and of four fours of terms from g on: by row, or by four of terms. */
static inline void store_words(four_i w[4], int by_terms, int across, int64_t r, int64_t g, int8_t *to)
{
    if (by_terms != across) transpose4(w);
    for (int i = 0; i < 4; i++) store4(across ? to + 64 * (g + i) + 4 * r : to + 64 * (r + i) + 4 * g, w[i]);
}

/* Quantized values of up to 16 terms of a row, zeros behind them. */
static inline void quantize_terms(const float *x, int64_t count, factors by, four_i q[4])
{
    float tail[16];
    if (count < 16) {
        memset(tail, 0, sizeof tail);
        memcpy(tail, x, (size_t)count * 4);
        x = tail;
    }
    for (int i = 0; i < 4; i++) q[i] = quantize(load4_f(x + 4 * i), by);
}

/* Digits of i8 in base 256 of the terms [k0, end), by tiles of 64: per digit [ceil(k/64)] tiles of [row][64 k], or
   [16][row][4 k] (across). No bytes are flipped: both operands are signed. */
static void pack_tiles(const dot_side *s, int digits, int across, int8_t flip, const float *x, int64_t batch,
                       int64_t first, int64_t rows, int64_t k, int64_t k0, int64_t end, int8_t *out, const scales *f)
{
    (void)flip;
    float buf[PANEL * 64];
    const float *row[2][PANEL] = {{NULL}}; /* of the first and the second RED_BLOCK */
    int64_t at = s->batch[batch], plane = (k + 63) / 64 * 1024;
    int own_kind = at == OUTSIDE ? GENERAL : s->own_kind[first / PANEL];
    for (; k0 < end; k0 += 64) {
        int64_t count = least(64, k - k0);
        int halves = count > RED_BLOCK ? 2 : 1;
        int red_kind = s->red_kind[k0 / RED_BLOCK] & s->red_kind[k0 / RED_BLOCK + halves - 1];
        int by_column = own_kind == UNIT && red_kind >= INSIDE && !(red_kind == UNIT && rows <= count);
        int64_t from = by_column ? at + s->own[first] : 0; /* only with a place of red does it lie inside the source */
        if (!by_column) {
            int in_place = red_kind == UNIT && own_kind >= INSIDE;
            if (!in_place) collect(s, x, batch, first, rows, k0, count, 64, buf);
            for (int h = 0; h < halves; h++)
                for (int64_t r = 0; r < rows; r++)
                    row[h][r] = in_place ? x + (at + s->own[first + r] + s->red[k0 + h * RED_BLOCK])
                                         : buf + r * 64 + h * RED_BLOCK;
        }
        for (int64_t r = 0; r < 16; r += 4)
            for (int64_t g = 0; g < 16; g += 4) {
                four_i word[3][4];
                for (int64_t i = 0; i < 4; i++) {
                    four_i q[4] = {{0}, {0}, {0}, {0}};
                    int64_t term = by_column ? 4 * (g + i) : 4 * g;
                    if (by_column) {
                        for (int64_t t = 0; t < 4 && term + t < count && r < rows; t++)
                            q[t] = quantize_rows(x + (from + s->red[k0 + term + t]), r, rows, f);
                    } else if (r + i < rows && term < count) {
                        factors by = {splat4(f->first[r + i]), splat4(f->second[r + i]), splat4(f->limit), f->two};
                        quantize_terms(row[term / RED_BLOCK][r + i] + term % RED_BLOCK, least(16, count - term), by, q);
                    }
                    for (int d = 0; d < digits; d++) word[d][i] = by_column ? words_of(q, d) : bytes_of(q, d);
                }
                for (int d = 0; d < digits; d++)
                    store_words(word[d], by_column, across, r, g, out + k0 * PANEL + d * plane);
            }
    }
}

#endif
