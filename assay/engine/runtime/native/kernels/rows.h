/* Reductions along rows: rowexp, max, sum. All are exact: lanes, blocks and threads take the terms in any order. */
#ifndef ASSAY_ROWS_H
#define ASSAY_ROWS_H

#include "nodes.h"

#define WIDTH 512 /* columns, or terms of a tile, at a time */

INLINE int32_t largest_of(vi x)
{
#if VBYTES == 64
    return _mm512_reduce_max_epi32((__m512i)x);
#elif VBYTES == 32
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1)));
#else
    int32_t m = x[0];
    for (int i = 1; i < LANES; i++) m = m > x[i] ? m : x[i];
    return m;
#endif
}

INLINE int64_t sum_of(vl x)
{
#if VBYTES == 64
    return _mm512_reduce_add_epi64((__m512i)x);
#else
    int64_t s = 0;
    for (int i = 0; i < LANES / 2; i++) s += x[i];
    return s;
#endif
}

/* The largest pattern without its sign: patterns order as exponents do. */
INLINE vi magnitude_run(vi most, const int32_t *x, int64_t n)
{
    int64_t i = 0;
    vi second = most;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        most = vmax_i(most, load_i(x + i) & splat_i(ABS_BITS));
        second = vmax_i(second, load_i(x + i + LANES) & splat_i(ABS_BITS));
    }
    for (; i + LANES <= n; i += LANES) most = vmax_i(most, load_i(x + i) & splat_i(ABS_BITS));
    if (i < n) most = vmax_i(most, load_part(x + i, n - i) & splat_i(ABS_BITS));
    return vmax_i(most, second);
}

/* f32 order as i32 order, NaN of either sign above all, -0 as +0; and back. */
INLINE vi order_of(vi bits)
{
    vi magnitude = bits & splat_i(ABS_BITS);
    vi ordered = blend(bits < splat_i(0), -magnitude, bits);
    return blend(magnitude > splat_i(INF_BITS), splat_i(NAN_BITS), ordered);
}

INLINE vi bits_of_order(vi key) { return blend((vi)(key < splat_i(0)), -key | splat_i(INT32_MIN), key); }

INLINE vi order_run(vi most, const int32_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) most = vmax_i(most, order_of(load_i(x + i)));
    if (i < n) {
        int32_t rest[LANES];
        for (int64_t k = 0; k < LANES; k++) rest[k] = x[i + (k < n - i ? k : 0)];
        most = vmax_i(most, order_of(load_i(rest)));
    }
    return most;
}

#define ONE_FACTOR (-90) /* from this exponent on the second factor is 1 */

/* Two factors of 2^(30-e), both in binary32's range. Beyond 240 every non-zero x is clamped, below -126 (e > 156) the
 * result is NaN. A product that overflows is clamped, one that underflows rounds to zero: both are right. */
INLINE void scale_of(vi e, vf *first, vf *second)
{
    vi s = 30 - vmin_i(vmax_i(e, splat_i(-210)), splat_i(156)), half = vmin_i(s, splat_i(30 - ONE_FACTOR));
    *first = (vf)((half + 127) << 23), *second = (vf)((s - half + 127) << 23);
}

/* q_31: i32. */
INLINE vi quantize(vi bits, vf first, vf second)
{
    vf y = (vf)bits * first * second;
    y = vmin_raw(vmax_raw(y, splat_f(-1073741824.0f)), splat_f(1073741824.0f));
    return vround_int(y) & (vi)((bits & splat_i(ABS_BITS)) < splat_i(INF_BITS));
}

/* The same within a row's own exponent. |q| is 2^30 - 2^6 at most, since x has 24 bits: two of them fit an i32. */
INLINE vi quantize_within(vi bits, vf first, vf second, const int how)
{
    vf y = (vf)bits * first;
    if (how == WITHIN_TWO) y = y * second;
    return vround_int(y);
}

INLINE vi add_i(vi a, vi b) { return (vi)((vu)a + (vu)b); } /* what is not finite may overflow */

typedef struct {
    vl low, high;
} Totals;

INLINE Totals quantize_run(Totals t, const int32_t *x, int64_t n, vf first, vf second)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vi q = quantize(load_i(x + i), first, second);
        t.low += low_l(q), t.high += high_l(q);
    }
    if (i < n) {
        vi q = quantize(load_part(x + i, n - i), first, second);
        t.low += low_l(q), t.high += high_l(q);
    }
    return t;
}

INLINE Totals quantize_run_within(Totals t, const int32_t *x, int64_t n, vf first, vf second, const int how)
{
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vi q = add_i(quantize_within(load_i(x + i), first, second, how),
                     quantize_within(load_i(x + i + LANES), first, second, how));
        t.low += low_l(q), t.high += high_l(q);
    }
    return quantize_run(t, x + i, n - i, first, second);
}

INLINE void put_sum(float *out, int64_t total, int64_t e)
{
    if (e >= 129) ((int32_t *)out)[0] = NAN_BITS;
    else *out = finish(total, e - 30);
}

/* What a reduction carries along a row: the largest of something, or a total. */
typedef struct {
    vi most;
    Totals totals;
    vf first, second;
    int how; /* they are quantized */
} Row;

INLINE void row_start(const Op *op, Row *r, int64_t e)
{
    r->most = splat_i(op->kind == ROWEXP ? 0 : INT32_MIN);
    r->totals = (Totals){{0}, {0}};
    scale_of(splat_i((int32_t)e), &r->first, &r->second);
    r->how = !op->own_exponents ? ANY : e < ONE_FACTOR ? WITHIN_TWO : WITHIN;
}

INLINE void row_run(const Op *op, Row *r, const int32_t *x, int64_t n)
{
    if (op->kind == ROWEXP) r->most = magnitude_run(r->most, x, n);
    else if (op->kind == SUM && r->how == WITHIN)
        r->totals = quantize_run_within(r->totals, x, n, r->first, r->second, WITHIN);
    else if (op->kind == SUM && r->how == WITHIN_TWO)
        r->totals = quantize_run_within(r->totals, x, n, r->first, r->second, WITHIN_TWO);
    else if (op->kind == SUM) r->totals = quantize_run(r->totals, x, n, r->first, r->second);
    else if (op->dtype == F32) r->most = order_run(r->most, x, n);
    else
        for (int64_t i = 0; i < n; i++) r->most = vmax_i(r->most, splat_i(x[i]));
}

INLINE void row_end(const Op *op, const Row *r, int64_t e, int32_t *out)
{
    if (op->kind == ROWEXP) *out = exponent_of_bits(largest_of(r->most));
    else if (op->kind == SUM) put_sum((float *)out, sum_of(r->totals.low + r->totals.high), e);
    else *out = op->dtype == F32 ? bits_of_order(splat_i(largest_of(r->most)))[0] : largest_of(r->most);
}

/* The exponents of sums lo .. lo + n. */
INLINE void load_exponents(const Op *op, int64_t lo, int64_t n, void **table, int32_t *e)
{
    Space out = op->space;
    out.rank = op->out_rank;
    const View *v = op->views + 1;
    if (op->kind == SUM) gather(e, v, &out, 0, v->offset, lo, n, table[v->node]);
}

static void reduce_rows(const Op *op, int64_t lo, int64_t hi, void **table)
{
    const View *v = op->views;
    const Space *space = &op->space;
    int64_t outer = op->out_rank, last = space->rank - 1, run = space->size[last];
    int64_t runs = product(space, outer, last);
    const int32_t *x = table[v->node];
    int32_t *out = table[op->node], e[WIDTH] = {0};
    Walk o, k;
    walk_start(&o, v, space, 0, outer, lo, v->offset);
    for (int64_t i = lo; i < hi; i++) {
        if ((i - lo) % WIDTH == 0) load_exponents(op, i, hi - i < WIDTH ? hi - i : WIDTH, table, e);
        Row row;
        row_start(op, &row, e[(i - lo) % WIDTH]);
        if (runs == 1) row_run(op, &row, x + o.address, run);
        else {
            walk_start(&k, v, space, outer, last, 0, o.address);
            for (int64_t j = 0; j < runs; j++) {
                row_run(op, &row, x + k.address, run);
                walk_on(&k, v, space, 1);
            }
        }
        row_end(op, &row, e[(i - lo) % WIDTH], out + i);
        walk_on(&o, v, space, 1);
    }
}

static void reduce_tiles(const Op *op, int64_t lo, int64_t hi, void **table, char *work)
{
    const View *v = op->views;
    const Space *space = &op->space;
    int64_t outer = op->out_rank;
    int32_t *out = table[op->node], *tile = (int32_t *)work, e = 0;
    Walk o;
    walk_start(&o, v, space, 0, outer, lo, v->offset);
    for (int64_t i = lo; i < hi; i++) {
        load_exponents(op, i, 1, table, &e);
        Row row;
        row_start(op, &row, e);
        int inside = walk_inside(&o, v);
        for (int64_t at = 0; at < op->terms; at += WIDTH) {
            int64_t n = op->terms - at < WIDTH ? op->terms - at : WIDTH;
            if (inside) gather(tile, v, space, outer, o.address, at, n, table[v->node]);
            else fill_run(tile, 0, n, v->fill, v->dtype);
            row_run(op, &row, tile, n);
        }
        row_end(op, &row, e, out + i);
        walk_on(&o, v, space, 1);
    }
}

#endif
