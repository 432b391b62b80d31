/* The product of i8 digits by NEON's dot products: a sum of four terms per lane (`sdot`), or two rows by two columns of
   eight terms at once (`smmla`, i8mm).

   Packing is that of AMX: A by rows of 64 terms, B by fours of terms across its columns. Each sum adds one pair of
   digit planes in 32 bits, for as many terms as `assay/engine/runtime/exact/limits.py` admits. */
#ifndef ASSAY_DOT_NEON_H
#define ASSAY_DOT_NEON_H

#include "dot.h"
#include "machine.h"

static int tiles_available(void) { return 1; }
static void tiles_begin(void) {}
static void tiles_end(void) {}

#if defined(I8MM)

#define PAIR_OF_ROWS(zip, x, y) vreinterpretq_s8_s64(zip(vreinterpretq_s64_s8(x), vreinterpretq_s64_s8(y)))
#define PAIR_OF_COLUMNS(zip, x, y) vreinterpretq_s8_s32(zip(vreinterpretq_s32_s8(x), vreinterpretq_s32_s8(y)))

/* s [2 rows][2 columns] of four pairs of rows and of columns += eight terms of packed rows x0 .. and fours y. */
#define STEP(zip, y)                                                                                                   \
    {                                                                                                                  \
        int8x16_t b[4];                                                                                                \
        for (int v = 0; v < 2; v++) {                                                                                  \
            int8x16_t now = vld1q_s8((y) + 16 * v), next = vld1q_s8((y) + 64 + 16 * v);                                \
            b[2 * v] = PAIR_OF_COLUMNS(vzip1q_s32, now, next), b[2 * v + 1] = PAIR_OF_COLUMNS(vzip2q_s32, now, next);  \
        }                                                                                                              \
        for (int i = 0; i < 4; i++) {                                                                                  \
            int8x16_t a = PAIR_OF_ROWS(zip, row[2 * i], row[2 * i + 1]);                                               \
            for (int c = 0; c < 4; c++) s[i][c] = vmmlaq_s32(s[i][c], a, b[c]);                                        \
        }                                                                                                              \
    }

/* sums [.][16] of 8 rows and 8 columns. */
static void multiply_eight(const int8_t *x, const int8_t *y, int64_t tiles, int32_t *sums)
{
    int32x4_t s[4][4];
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++) s[i][c] = vdupq_n_s32(0);
    for (int64_t t = 0; t < tiles; t++, x += 1024, y += 1024)
        for (int g = 0; g < 16; g += 4) {
            int8x16_t row[8];
            for (int r = 0; r < 8; r++) row[r] = vld1q_s8(x + 64 * r + 4 * g);
            STEP(vzip1q_s64, y + 64 * g)
            STEP(vzip2q_s64, y + 64 * g + 128)
        }
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++) {
            vst1_s32(sums + 32 * i + 2 * c, vget_low_s32(s[i][c]));
            vst1_s32(sums + 32 * i + 16 + 2 * c, vget_high_s32(s[i][c]));
        }
}

#else

#define STEP(lane)                                                                                                     \
    {                                                                                                                  \
        int8x16_t b0 = vld1q_s8(y + 64 * (g + lane)), b1 = vld1q_s8(y + 64 * (g + lane) + 16);                         \
        for (int r = 0; r < 8; r++) {                                                                                  \
            s[r][0] = vdotq_laneq_s32(s[r][0], b0, row[r], lane);                                                      \
            s[r][1] = vdotq_laneq_s32(s[r][1], b1, row[r], lane);                                                      \
        }                                                                                                              \
    }

/* sums [.][16] of 8 rows and 8 columns. */
static void multiply_eight(const int8_t *x, const int8_t *y, int64_t tiles, int32_t *sums)
{
    int32x4_t s[8][2];
    for (int r = 0; r < 8; r++) s[r][0] = s[r][1] = vdupq_n_s32(0);
    for (int64_t t = 0; t < tiles; t++, x += 1024, y += 1024)
        for (int g = 0; g < 16; g += 4) {
            int8x16_t row[8];
            for (int r = 0; r < 8; r++) row[r] = vld1q_s8(x + 64 * r + 4 * g);
            STEP(0)
            STEP(1)
            STEP(2)
            STEP(3)
        }
    for (int r = 0; r < 8; r++) vst1q_s32(sums + 16 * r, s[r][0]), vst1q_s32(sums + 16 * r + 4, s[r][1]);
}

#endif
#undef STEP

/* Writes sums [16][16] of pairs of digits and returns how many; the weight of each is 256^place (TILE_PLACES). */
static int tiles_multiply(const int8_t *a, const int8_t *b, int64_t tiles, int digits_a, int digits_b, int32_t *sums)
{
    int64_t plane = 1024 * tiles;
    for (int y = 0; y < digits_b; y++)
        for (int x = 0; x < digits_a; x++, sums += PANEL * PANEL)
            for (int r = 0; r < 2; r++)
                for (int c = 0; c < 2; c++)
                    multiply_eight(a + x * plane + 512 * r, b + y * plane + 32 * c, tiles, sums + 128 * r + 8 * c);
    return digits_a * digits_b;
}

#endif
