/* Reductions of several rows at a time, whose terms lie side by side: columns of memory. */
#ifndef ASSAY_COLUMNS_H
#define ASSAY_COLUMNS_H

#include "floats.h"
#include "rows.h"
#include "scratch.h"
#include "team.h"

INLINE vi key_of(vi bits, int is_max)
{
    if (is_max) return order_of(bits);
    return bits & splat_i(ABS_BITS);
}

#define TOGETHER (128 / VBYTES) /* vectors of columns that are read side by side: two whole lines of memory */

/* Keys of columns over some terms that lie `step` apart: each column stays in a register. */
INLINE void column_most(int32_t *most, const int32_t *x, int64_t n, int64_t terms, int64_t step, int is_max)
{
    int64_t c = 0;
    for (; c + TOGETHER * LANES <= n; c += TOGETHER * LANES) {
        vi m[TOGETHER];
#pragma GCC unroll 8
        for (int v = 0; v < TOGETHER; v++) m[v] = load_i(most + c + v * LANES);
        for (int64_t k = 0; k < terms; k++)
#pragma GCC unroll 8
            for (int v = 0; v < TOGETHER; v++)
                m[v] = vmax_i(m[v], key_of(load_i(x + k * step + c + v * LANES), is_max));
#pragma GCC unroll 8
        for (int v = 0; v < TOGETHER; v++) store_i(most + c + v * LANES, m[v]);
    }
    for (; c + LANES <= n; c += LANES) {
        vi m = load_i(most + c);
        for (int64_t k = 0; k < terms; k++) m = vmax_i(m, key_of(load_i(x + k * step + c), is_max));
        store_i(most + c, m);
    }
    if (c < n) {
        vi m = load_i(most + c);
        for (int64_t k = 0; k < terms; k++) m = vmax_i(m, key_of(load_part(x + k * step + c, n - c), is_max));
        store_i(most + c, m);
    }
}

/* Sums of quantized values over the same. What is left of terms and columns is quantized by any exponents: alike. */
INLINE void column_totals(int64_t *total, const int32_t *x, int64_t n, int64_t terms, int64_t step, const float *first,
                          const float *second, const int how)
{
    int64_t c = 0;
    for (; c + 2 * LANES <= n; c += 2 * LANES) {
        vl *t = (vl *)(total + c), sums[4] = {t[0], t[1], t[2], t[3]};
        vf f[2] = {load_f(first + c), load_f(first + c + LANES)};
        vf s[2] = {load_f(second + c), load_f(second + c + LANES)};
        int64_t k = 0;
        for (; how != ANY && k + 2 <= terms; k += 2)
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++) {
                const int32_t *p = x + k * step + c + v * LANES;
                vi q = add_i(quantize_within(load_i(p), f[v], s[v], how),
                             quantize_within(load_i(p + step), f[v], s[v], how));
                sums[2 * v] += low_l(q), sums[2 * v + 1] += high_l(q);
            }
        for (; k < terms; k++)
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++) {
                vi q = quantize(load_i(x + k * step + c + v * LANES), f[v], s[v]);
                sums[2 * v] += low_l(q), sums[2 * v + 1] += high_l(q);
            }
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) t[v] = sums[v];
    }
    for (; c < n; c += LANES) {
        vl *t = (vl *)(total + c), low = t[0], high = t[1];
        vf f = load_f(first + c), s = load_f(second + c);
        if (c + LANES <= n)
            for (int64_t k = 0; k < terms; k++) {
                vi q = quantize(load_i(x + k * step + c), f, s);
                low += low_l(q), high += high_l(q);
            }
        else
            for (int64_t k = 0; k < terms; k++) {
                vi q = quantize(load_part(x + k * step + c, n - c), f, s);
                low += low_l(q), high += high_l(q);
            }
        t[0] = low, t[1] = high;
    }
}

/* What a reduction carries along up to WIDTH columns. */
typedef struct {
    int32_t e[WIDTH + LANES], most[WIDTH + LANES], tile[WIDTH + LANES];
    float first[WIDTH + LANES], second[WIDTH + LANES];
    int64_t total[WIDTH + LANES];
    int how; /* they are quantized */
} Columns;

#define NEAR_ELEMENTS 4096 /* whose terms are added column by column: they fit the first cache */

static void columns_start(const Op *op, Columns *c, int64_t i, int64_t n, void **table)
{
    if (op->kind == SUM) {
        load_exponents(op, i, n, table, c->e);
        for (int64_t k = 0; k < LANES; k++) c->e[n + k] = 0;
        vi low = splat_i(0);
        for (int64_t k = 0; k < n; k += LANES) {
            vi e = load_i(c->e + k);
            low |= (vi)(e < splat_i(ONE_FACTOR));
            scale_of(e, (vf *)(c->first + k), (vf *)(c->second + k));
        }
        memset(c->total, 0, (size_t)(n + LANES) * 8);
        c->how = !op->own_exponents ? ANY : any(low) ? WITHIN_TWO : WITHIN;
    } else
        for (int64_t k = 0; k < n + LANES; k++) c->most[k] = op->kind == MAX ? INT32_MIN : 0;
}

/* Terms from .. to of columns i .. i + n, of which the first lies at `address` (BY_COLUMNS). */
static void columns_add(const Op *op, Columns *c, int64_t i, int64_t n, int64_t address, int64_t from, int64_t to,
                        void **table)
{
    const View *v = op->views;
    const Space *space = &op->space;
    const int32_t *x = table[v->node];
    int64_t outer = op->out_rank, last = space->rank - 1, most = n < NEAR_ELEMENTS ? NEAR_ELEMENTS / n : 1;
    int planes = op->strategy == BY_PLANES;
    Space out = *space;
    out.rank = outer;
    Walk k;
    walk_start(&k, v, space, outer, space->rank, from, planes ? v->offset : address);
    while (from < to) {
        const int32_t *plane = c->tile;
        int64_t run = planes ? 1 : space->size[last] - k.index[last];
        run = run < most ? run : most;
        run = run < to - from ? run : to - from;
        if (planes) {
            if (walk_inside(&k, v)) gather(c->tile, v, &out, 0, k.address, i, n, x);
            else fill_run(c->tile, 0, n, v->fill, v->dtype);
        } else plane = x + k.address; /* inside: an address outside the bounds may be any number */
        int64_t step = v->stride[last];
        if (op->kind == SUM && c->how == WITHIN)
            column_totals(c->total, plane, n, run, step, c->first, c->second, WITHIN);
        else if (op->kind == SUM && c->how == WITHIN_TWO)
            column_totals(c->total, plane, n, run, step, c->first, c->second, WITHIN_TWO);
        else if (op->kind == SUM) column_totals(c->total, plane, n, run, step, c->first, c->second, ANY);
        else column_most(c->most, plane, n, run, step, op->kind == MAX);
        walk_on(&k, v, space, run);
        from += run;
    }
}

#define FEW_TERMS (1 << 20) /* whose totals are below 2^51: they are f64 without a rounding */

INLINE vd total_d(vl total, vl e)
{
    vl magic = (vl){0} + 0x4338000000000000; /* 1.5 2^52: adding it to the bits adds to the number */
    return ((vd)(total + magic) - (vd)magic) * (vd)((e - 30 + 1023) << 52);
}

/* What put_sum makes of totals below 2^51. Below 2^-400 all round to zero. */
INLINE vi sums_of(const int64_t *total, vi e)
{
    const vl *t = (const vl *)total;
    vi near = vmin_i(vmax_i(e, splat_i(-400)), splat_i(129));
    return blend((vi)(e < splat_i(129)), (vi)join_d(total_d(t[0], low_l(near)), total_d(t[1], high_l(near))),
                 splat_i(NAN_BITS));
}

static void columns_end(const Op *op, const Columns *c, int64_t n, int32_t *out)
{
    if (op->kind == SUM && op->terms > FEW_TERMS) {
        for (int64_t k = 0; k < n; k++) put_sum((float *)out + k, c->total[k], c->e[k]);
        return;
    }
    for (int64_t k = 0; k < n; k += LANES) {
        vi x = load_i(c->most + k);
        if (op->kind == SUM) x = sums_of(c->total + k, load_i(c->e + k));
        else if (op->kind == MAX) x = bits_of_order(x);
        else x = vexponent_of_bits(x);
        if (k + LANES <= n) store_i(out + k, x);
        else store_part(out + k, x, n - k);
    }
}

static void reduce_columns(const Op *op, int64_t lo, int64_t hi, void **table, char *work)
{
    const View *v = op->views;
    const Space *space = &op->space;
    int64_t outer = op->out_rank, inner = space->size[outer - 1];
    int planes = op->strategy == BY_PLANES;
    Columns *c = (Columns *)work;
    Walk o;
    walk_start(&o, v, space, 0, outer, lo, v->offset);
    for (int64_t i = lo; i < hi;) {
        int64_t n = planes ? WIDTH : inner - o.index[outer - 1];
        n = n < WIDTH ? n : WIDTH;
        n = n < hi - i ? n : hi - i;
        columns_start(op, c, i, n, table);
        columns_add(op, c, i, n, o.address, 0, op->terms, table);
        columns_end(op, c, n, (int32_t *)table[op->node] + i);
        i += n;
        if (!planes) walk_on(&o, v, space, n);
    }
}

/* Columns so few that their terms are divided instead: parts of them on several threads, put together at the end. */
typedef struct {
    const Op *op;
    void **table;
    Columns *parts;
    int64_t count, i, n, address;
} Divided;

#define LEAST_DIVIDED (1 << 16)   /* elements below which waking other threads costs more than it saves */
#define MOST_DIVIDED (16 * WIDTH) /* columns, of which there would otherwise be enough to share */

INLINE int is_divisible(const Op *op)
{
    int is_reduction = op->kind == ROWEXP || op->kind == MAX || op->kind == SUM;
    return is_reduction && op->strategy == BY_COLUMNS && op->numel <= MOST_DIVIDED &&
           op->numel * op->terms >= LEAST_DIVIDED;
}

static void add_part(void *context, int64_t p)
{
    Divided *d = context;
    /* Another library may have changed how this thread rounds. */
    float_control control = floats_begin();
    int64_t terms = d->op->terms;
    columns_start(d->op, d->parts + p, d->i, d->n, d->table);
    columns_add(d->op, d->parts + p, d->i, d->n, d->address, terms * p / d->count, terms * (p + 1) / d->count,
                d->table);
    floats_set(control);
}

/* All of a divisible reduction. Returns 0 when there is no memory. */
static int reduce_divided(const Op *op, void **table, int64_t threads)
{
    const View *v = op->views;
    int64_t parts = 2 * threads, inner = op->space.size[op->out_rank - 1];
    Columns *c = (Columns *)scratch(1, parts * (int64_t)sizeof(Columns));
    if (!c) return 0;
    Walk o;
    walk_start(&o, v, &op->space, 0, op->out_rank, 0, v->offset);
    for (int64_t i = 0, n; i < op->numel; i += n) {
        n = inner - o.index[op->out_rank - 1];
        n = n < WIDTH ? n : WIDTH;
        Divided d = {op, table, c, parts, i, n, o.address};
        share_work(add_part, &d, parts, threads);
        for (int64_t p = 1; p < parts; p++)
            for (int64_t k = 0; k < n; k++) {
                if (op->kind == SUM) c->total[k] += c[p].total[k];
                else c->most[k] = c->most[k] > c[p].most[k] ? c->most[k] : c[p].most[k];
            }
        columns_end(op, c, n, (int32_t *)table[op->node] + i);
        walk_on(&o, v, &op->space, n);
    }
    return 1;
}

static void run_reduction(const Op *op, int64_t lo, int64_t hi, void **table, char *work)
{
    if (op->strategy == BY_ROWS) reduce_rows(op, lo, hi, table);
    else if (op->strategy != BY_TILES) reduce_columns(op, lo, hi, table, work);
    else reduce_tiles(op, lo, hi, table, work);
}

#endif
