/* Kernels of the product: pairs of i16 digits multiplied and added in 32 bits, moved out before they can overflow.

   A sum of 32 bits is kept as lo + 2^16 hi. With |a| <= x and |b| <= y a pair adds at most 2 x y, so from lo < 2^16 a
   run of r pairs stays below 2^31 while 2^16 + 2 x y r < 2^31 (15 pairs for 14-bit operands), and by Cauchy and Schwarz
   also while 2^16 + |a| |b| < 2^31 with the norms of the run's terms; the driver chooses r by these inequalities.
   Between runs hi += lo >> 16, lo &= 2^16 - 1: hi is a floor of at most K - 1 products over 2^16. A product of one run
   has no hi. Which K keep all of it inside 32 bits stands in `assay/engine/runtime/exact/limits.py`. */
#ifndef ASSAY_DOT_KERNEL_H
#define ASSAY_DOT_KERNEL_H

#include "dot.h"
#include "four.h"
#include "vnni.h"

#define TILE_ROWS 8
#define TILE_COLUMNS 32
#define TILE (TILE_ROWS * TILE_COLUMNS)

#if VBYTES == 64
#define ROWS 8
#define PER_PANEL 1
typedef __m512i vector;
#define LOAD(p) _mm512_load_si512(p)
#define STORE(p, v) _mm512_store_si512(p, v)
#define PAIR(p) _mm512_set1_epi32(*(const int32_t *)(p))
#define ADD(a, b) _mm512_add_epi32(a, b)
#define HIGH(a) _mm512_srai_epi32(a, 16)
#define LOW(a) _mm512_and_si512(a, _mm512_set1_epi32(0xFFFF))
#if defined(VNNI)
#define DOT(s, a, b) dpwssd(s, a, b)
#else
#define DOT(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#endif
#elif VBYTES == 32
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
#if defined(NEON)
#define ROWS 4
#else
#define ROWS 2
#endif
#define PER_PANEL 4
typedef four_i vector;
#define LOAD(p) load4_i(p)
#define STORE(p, v) store4(p, v)
#define PAIR(p) ((vector)((vector){0} + *(const int32_t *)(p)))
#define ADD(a, b) ((a) + (b))
#define HIGH(a) ((a) >> 16)
#define LOW(a) ((a) & 0xFFFF)
#define DOT(s, a, b) ((s) + multiply_pairs4(a, b))
#endif

#define VECTOR (PANEL / PER_PANEL)

static const int32_t zero = 0;

/* s += the products of one pair of terms of ROWS rows and of `panels` panels. */
#if defined(NEON)
INLINE void add_pair(vector s[ROWS][2 * PER_PANEL], const int16_t *a, const int16_t *b, int64_t b_stride,
                     const int panels)
{
    (void)b_stride, (void)panels;                            /* one panel */
    int16x8_t x = vld1q_s16(a);                              /* both terms of four rows */
    int16x8x2_t y[2] = {vld2q_s16(b), vld2q_s16(b + PANEL)}; /* the first terms of eight columns, and the second */
#define ROW_OF(r, t)                                                                                                   \
    s[r][0] = (vector)vmlal_laneq_s16((int32x4_t)s[r][0], vget_low_s16(y[0].val[t]), x, 2 * (r) + (t));                \
    s[r][1] = (vector)vmlal_high_laneq_s16((int32x4_t)s[r][1], y[0].val[t], x, 2 * (r) + (t));                         \
    s[r][2] = (vector)vmlal_laneq_s16((int32x4_t)s[r][2], vget_low_s16(y[1].val[t]), x, 2 * (r) + (t));                \
    s[r][3] = (vector)vmlal_high_laneq_s16((int32x4_t)s[r][3], y[1].val[t], x, 2 * (r) + (t))
    ROW_OF(0, 0);
    ROW_OF(1, 0);
    ROW_OF(2, 0);
    ROW_OF(3, 0);
    ROW_OF(0, 1);
    ROW_OF(1, 1);
    ROW_OF(2, 1);
    ROW_OF(3, 1);
#undef ROW_OF
}
#elif VBYTES == 32
/* Written out: by intrinsics GCC 12 reads b from memory for every row, and the loop waits for its loads. */
INLINE void add_pair(vector s[ROWS][2 * PER_PANEL], const int16_t *a, const int16_t *b, int64_t b_stride,
                     const int panels)
{
    (void)b_stride, (void)panels; /* one panel */
    vector y0, y1, x, t;
#define ROW_OF(at, left, right)                                                                                        \
    "vpbroadcastd " at "(%[a]), %[x]\n\tvpmaddwd %[y0], %[x], %[t]\n\tvpmaddwd %[y1], %[x], %[x]\n\t"                  \
    "vpaddd %[t], %[" left "], %[" left "]\n\tvpaddd %[x], %[" right "], %[" right "]\n\t"
    __asm__("vmovdqa (%[b]), %[y0]\n\tvmovdqa 32(%[b]), %[y1]\n\t" /* pairs of eight columns, and of eight more */
            ROW_OF("0", "s0", "t0") ROW_OF("4", "s1", "t1") ROW_OF("8", "s2", "t2") ROW_OF("12", "s3", "t3")
            : [s0] "+x"(s[0][0]), [t0] "+x"(s[0][1]), [s1] "+x"(s[1][0]), [t1] "+x"(s[1][1]), [s2] "+x"(s[2][0]),
              [t2] "+x"(s[2][1]), [s3] "+x"(s[3][0]), [t3] "+x"(s[3][1]), [y0] "=&x"(y0), [y1] "=&x"(y1), [x] "=&x"(x),
              [t] "=&x"(t)
            : [a] "r"(a), [b] "r"(b), "m"(*(const char (*)[4 * ROWS]) a), "m"(*(const char (*)[64])b));
#undef ROW_OF
}
#else
INLINE void add_pair(vector s[ROWS][2 * PER_PANEL], const int16_t *a, const int16_t *b, int64_t b_stride,
                     const int panels)
{
    vector y[2 * PER_PANEL];
#pragma GCC unroll 8
    for (int v = 0; v < panels * PER_PANEL; v++) y[v] = LOAD(b + v / PER_PANEL * b_stride + v % PER_PANEL * 2 * VECTOR);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
        vector x = PAIR(a + 2 * r);
#pragma GCC unroll 8
        for (int v = 0; v < panels * PER_PANEL; v++) s[r][v] = DOT(s[r][v], x, y[v]);
    }
}
#endif

/* ROWS rows times `panels` panels; b_stride: i16 between panels. */
INLINE void block(const int16_t *a, const int16_t *b, int64_t b_stride, int64_t pairs, int64_t run, const int panels,
                  int fresh, int last, int32_t *lo, int32_t *hi)
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
        for (; done < end; done++) add_pair(s, a + done * 2 * PANEL, b + done * 2 * PANEL, b_stride, panels);
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
#if VBYTES == 64
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
