/* Rounding exact sums to f32 and storing them where the node wants them. */
#ifndef ASSAY_DOT_FINISH_H
#define ASSAY_DOT_FINISH_H

#include "dot.h"
#include "dot_kernel.h"
#include "dot_pack.h"

typedef struct {
    const int32_t *value;
    double weight;
} term; /* S = sum weight value, all exact in binary64 */

typedef struct {
    char *data;    /* bytes per panel as the job says */
    double *up;    /* PANEL per panel: 2^(e-(p-1)) */
    float *square; /* per panel: see pack_pairs */
    scales *by;    /* per panel */
} packed;

typedef struct {
    const dot_plan *plan;
    const float *a, *b;
    const int32_t *ea, *eb;
    float *out;
    double *raw;
    dot_digits da, db;
    int64_t run[2][2];
    int by_norm;                                  /* whether norms can allow longer runs */
    int64_t panels_m, panels_n, bytes_a, bytes_b; /* packed bytes per panel */
    int64_t panels_block, blocks, terms;          /* panels of A per block, blocks per batch, terms packed at a time */
    packed b_panels;                              /* of all batches, unless every thread packs its own */
    int failed;
} job;

#if VBYTES == 64
#define LANES 8
typedef __m512d doubles;
#define ALL(x) _mm512_set1_pd(x)
#define INTEGERS(p) _mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)(p)))
#define LOAD(p) _mm512_loadu_pd(p)
#define ROUNDED(p, v) _mm256_storeu_ps(p, _mm512_cvtpd_ps(v))
#elif VBYTES == 32
#define LANES 4
typedef __m256d doubles;
#define ALL(x) _mm256_set1_pd(x)
#define INTEGERS(p) _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(p)))
#define LOAD(p) _mm256_loadu_pd(p)
#define ROUNDED(p, v) _mm_storeu_ps(p, _mm256_cvtpd_ps(v))
#else
#define LANES 2
typedef double doubles __attribute__((vector_size(16), aligned(8), may_alias));
typedef int32_t two_i __attribute__((vector_size(8), aligned(4), may_alias));
typedef float two_f __attribute__((vector_size(8), aligned(4), may_alias));
#define ALL(x) ((doubles){x, x})
#define INTEGERS(p) __builtin_convertvector(*(const two_i *)(p), doubles)
#define LOAD(p) (*(const doubles *)(p))
#define ROUNDED(p, v) (*(two_f *)(p) = __builtin_convertvector(v, two_f))
#endif

/* f32(S up_a up_b) of a row of 16 sums, NaN where a factor is. Weights and factors are powers of two: all products and
   sums are exact in binary64, their exponents above -900, and the conversion rounds once. */
static inline __attribute__((always_inline)) void round_row(const term *t, const int terms, int64_t at, double up_a,
                                                            const double *up_b, float *to)
{
    doubles s[PANEL / LANES], weight = ALL(t[0].weight * up_a);
#pragma GCC unroll 8
    for (int c = 0; c < PANEL / LANES; c++) s[c] = INTEGERS(t[0].value + at + c * LANES) * weight;
#pragma GCC unroll 8
    for (int i = 1; i < terms; i++) {
        weight = ALL(t[i].weight * up_a);
#pragma GCC unroll 8
        for (int c = 0; c < PANEL / LANES; c++) s[c] += INTEGERS(t[i].value + at + c * LANES) * weight;
    }
#pragma GCC unroll 8
    for (int c = 0; c < PANEL / LANES; c++) ROUNDED(to + c * LANES, s[c] * LOAD(up_b + c * LANES));
}

typedef float some_floats __attribute__((vector_size(VBYTES), aligned(4), may_alias));
typedef int32_t some_integers __attribute__((vector_size(VBYTES), aligned(4), may_alias));

/* Whether all factors of two panels, and all their products, are normal binary32 numbers, or NaN. */
static inline int factors_are_normal(const scales *a, const scales *b)
{
    int32_t least = a->least < b->least ? a->least : b->least, most = a->most > b->most ? a->most : b->most;
    return least >= -126 && most <= 127 && a->least + b->least >= -126 && a->most + b->most <= 127;
}

/* The same where S is one i32 and the factors are normal: a sum that is not 0 gives no subnormal then, and S rounded to
   24 bits before it is scaled is what S scaled and rounded is. */
INLINE void round_words(const int32_t *sums, float up_a, const float *up_b, float *to)
{
#pragma GCC unroll 4
    for (int c = 0; c < PANEL; c += VBYTES / 4) {
        some_floats factor = *(const some_floats *)(up_b + c) * up_a;
        *(some_floats *)(to + c) = __builtin_convertvector(*(const some_integers *)(sums + c), some_floats) * factor;
    }
}

/* A row of 16 results; words: by round_words, with factors of the columns in f32. */
INLINE void round_some(const term *t, const int terms, int words, int64_t at, double up_a, const double *up_b,
                       const float *words_up_b, float *to)
{
    if (terms == 1 && words) round_words(t[0].value + at, (float)up_a, words_up_b, to);
    else round_row(t, terms, at, up_a, up_b, to);
}

INLINE void finish_rows(const job *j, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        const term *t, const int terms, int stride, packed a, packed b)
{
    const dot_plan *p = j->plan;
    const double *up_a = a.up + row % PANEL;
    for (int64_t c = 0; c < columns; c += PANEL) {
        int64_t at = column + c, panel = at / PANEL, count = columns - c < PANEL ? columns - c : PANEL;
        const double *up_b = b.up + at;
        int words = terms == 1 && factors_are_normal(a.by, b.by + panel);
        float words_up_b[PANEL], one[PANEL];
        for (int i = 0; i < PANEL && words; i++) words_up_b[i] = (float)up_b[i];
        float *to = j->out + p->c_batch[batch];
        const int64_t *place = p->c_row + row;
        if (p->c_kind[panel] == UNIT && count == PANEL) {
            to += p->c_column[at];
            for (int64_t r = 0; r < rows; r++)
                round_some(t, terms, words, r * stride + c, up_a[r], up_b, words_up_b, to + place[r]);
            continue;
        }
        for (int64_t r = 0; r < rows; r++) {
            round_some(t, terms, words, r * stride + c, up_a[r], up_b, words_up_b, one);
            for (int64_t i = 0; i < count; i++) to[place[r] + p->c_column[at + i]] = one[i];
        }
    }
}

static void keep_sums(const job *j, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      const term *t, int terms, int stride)
{
    const dot_plan *p = j->plan;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double s = 0.0;
            for (int i = 0; i < terms; i++) s += (double)t[i].value[r * stride + c] * t[i].weight;
            j->raw[(batch * p->m + row + r) * p->n + column + c] = s;
        }
}

/* Sums of some rows of a panel of A and of one or two panels of columns; b: all of B. */
static void finish_tile(const job *j, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        const term *t, int terms, int stride, packed a, packed b)
{
    if (j->raw) keep_sums(j, batch, row, rows, column, columns, t, terms, stride);
    else if (terms == 1) finish_rows(j, batch, row, rows, column, columns, t, 1, stride, a, b);
    else if (terms == 2) finish_rows(j, batch, row, rows, column, columns, t, 2, stride, a, b);
    else if (terms == 3) finish_rows(j, batch, row, rows, column, columns, t, 3, stride, a, b);
    else if (terms == 4) finish_rows(j, batch, row, rows, column, columns, t, 4, stride, a, b);
    else finish_rows(j, batch, row, rows, column, columns, t, terms, stride, a, b);
}

#endif
