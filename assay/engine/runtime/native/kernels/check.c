/* Freivalds' check of a product, and its results rounded from the checked sums.
 *
 * S r = A (B r) in wrapping 64-bit integers. Operands are quantized here element by element, not by the packing whose
 * product is checked; what a plan's tables mean stands in dot.h. */
#include "dot.h"
#include "philox.h"
#include "scratch.h"
#include "vec.h"

#define LINE 1024

/* Two factors of 2^(p-1-e), each a normal binary32 number: p - 1 - e goes down to 2 - 1 - 128. Beyond 2^+-250 every x
 * is clamped or rounds to zero alike. A product that overflows is clamped; one that underflows is below 2^-124 and
 * rounds to zero: both are right. */
INLINE void factors(int64_t e, int64_t p, float *first, float *second)
{
    int64_t s = p - 1 - e;
    s = s < -250 ? -250 : s > 250 ? 250 : s;
    int64_t half = s < -126 ? -126 : s > 127 ? 127 : s;
    int32_t bits = (int32_t)((half + 127) << 23);
    memcpy(first, &bits, 4);
    bits = (int32_t)((s - half + 127) << 23);
    memcpy(second, &bits, 4);
}

INLINE float limit_of(int64_t p) { return p == 8 ? 127.0f : (float)((int64_t)1 << (p - 1)); }

INLINE vi quantized(vi bits, vf first, vf second, vf limit)
{
    vf y = (vf)bits * first * second;
    y = vmin_raw(vmax_raw(y, -limit), limit);
    return vround_int(y) & (vi)((bits & splat_i(ABS_BITS)) < splat_i(INF_BITS));
}

typedef struct {
    const dot_side *side;
    const float *data;
    const int32_t *e;       /* per own, of this batch */
    int64_t own, red, base; /* counts; the batch's offset */
    float *first, *second;  /* per own */
} Operand;

/* Elements first .. first + n of a line: along red for one own, or along own for one red. */
static void read_line(const Operand *o, int along_red, int64_t fixed, int64_t from, int64_t n, int32_t *out)
{
    const dot_side *s = o->side;
    const int64_t *moving = (along_red ? s->red : s->own) + from;
    int64_t at = along_red ? s->own[fixed] : s->red[fixed];
    int32_t fill = (int32_t)s->fill;
    if (o->base == OUTSIDE || at == OUTSIDE) {
        for (int64_t i = 0; i < n; i++) out[i] = fill;
        return;
    }
    const int32_t *x = (const int32_t *)o->data;
    at += o->base;
    for (int64_t i = 0; i < n; i++) out[i] = moving[i] == OUTSIDE ? fill : x[at + moving[i]];
}

static void quantize_line(const Operand *o, int along_red, int64_t fixed, int64_t from, int64_t n, int32_t *q)
{
    vf limit = splat_f(limit_of(o->side->precision));
    read_line(o, along_red, fixed, from, n, q);
    for (int64_t i = 0; i < n; i += LANES) {
        vf first = along_red ? splat_f(o->first[fixed]) : load_f(o->first + from + i);
        vf second = along_red ? splat_f(o->second[fixed]) : load_f(o->second + from + i);
        store_i(q + i, quantized(load_i(q + i), first, second, limit));
    }
}

/* Lines along the direction in which elements lie together. */
static int runs_along_red(const dot_side *s, int64_t own, int64_t red)
{
    if (red > 1 && s->red[0] != OUTSIDE && s->red[1] == s->red[0] + 1) return 1;
    return !(own > 1 && s->own[0] != OUTSIDE && s->own[1] == s->own[0] + 1);
}

/* By red: out[k] = sum over own of q w[own]. Otherwise out[own] = sum over red of q w[k]. */
static void multiply(const Operand *o, int by_red, const uint64_t *w, uint64_t *out, int32_t *q)
{
    int along_red = runs_along_red(o->side, o->own, o->red);
    int64_t lines = along_red ? o->own : o->red, length = along_red ? o->red : o->own;
    memset(out, 0, (size_t)(by_red ? o->red : o->own) * 8);
    for (int64_t j = 0; j < lines; j++)
        for (int64_t from = 0; from < length; from += LINE) {
            int64_t n = length - from < LINE ? length - from : LINE;
            quantize_line(o, along_red, j, from, n, q);
            if (along_red == by_red)
                for (int64_t i = 0; i < n; i++) out[from + i] += (uint64_t)(int64_t)q[i] * w[j];
            else {
                uint64_t sum = 0;
                for (int64_t i = 0; i < n; i++) sum += (uint64_t)(int64_t)q[i] * w[from + i];
                out[j] += sum;
            }
        }
}

static void prepare(Operand *o, int64_t batch, const int32_t *e, int32_t *own_e)
{
    const dot_side *s = o->side;
    o->base = s->batch[batch];
    for (int64_t i = 0; i < o->own; i++) {
        int outside = s->e_batch[batch] == OUTSIDE || s->e_own[i] == OUTSIDE;
        own_e[i] = outside ? (int32_t)s->e_fill : e[s->e_batch[batch] + s->e_own[i]];
        factors(own_e[i], s->precision, o->first + i, o->second + i);
    }
    o->e = own_e;
}

/* 2^(e + power) in binary64, where two of them times a sum below 2^52 are exact; NaN where e says so. */
INLINE double up_of(int64_t e, int64_t power)
{
    if (e >= E_NONFINITE) return __builtin_nan("");
    return power_of_two((e < E_LOWEST ? E_LOWEST : e) + power);
}

/* Check raw [batches][m][n] with the random numbers of a key, and write the results that it rounds to. Rows and columns
 * that are not finite are left out: their results are NaN whatever the sums say. 0 when right, 1 when wrong, 2 without
 * memory. */
EXPORT int64_t assay_check_product(const dot_plan *p, const float *a, const int32_t *ea, const float *b,
                                   const int32_t *eb, const double *raw, const uint32_t *key, float *out)
{
    int64_t m = p->m, n = p->n, k = p->k;
    char *memory =
        scratch(0, (m + n + LANES) * 12 + (m + n + k) * 8 + (m + n + 2 * LANES) * 8 + (LINE + LANES) * 4 + n * 12 + 64);
    if (!memory) return 2;
    uint64_t *v = (uint64_t *)memory, *right = v + k, *w = right + m;
    double *up = (double *)(w + n);
    const uint32_t step[2] = {0, 0};
    int32_t *r = (int32_t *)(up + n), *e_a = r + n, *e_b = e_a + m, *q = e_b + n;
    float *factor = (float *)(q + LINE + LANES);
    Operand left = {&p->a, a, 0, m, k, 0, factor, factor + m + LANES};
    factor += 2 * (m + LANES);
    Operand other = {&p->b, b, 0, n, k, 0, factor, factor + n + LANES};
    philox_words((uint32_t *)r, 0, n, 0, key, step);
    int straight = p->c_column[n - 1] == n - 1; /* places ascend, so nothing is left out */
    int64_t power = 2 - p->a.precision - p->b.precision, wrong = 0;
    for (int64_t batch = 0; batch < p->batches && !wrong; batch++) {
        prepare(&left, batch, ea, e_a);
        prepare(&other, batch, eb, e_b);
        for (int64_t c = 0; c < n; c++) w[c] = e_b[c] < E_NONFINITE ? (uint64_t)(int64_t)r[c] : 0;
        multiply(&other, 1, w, v, q);
        multiply(&left, 0, v, right, q);
        for (int64_t c = 0; c < n; c++) up[c] = up_of(e_b[c], 0);
        for (int64_t i = 0; i < m; i++) {
            const double *s = raw + (batch * m + i) * n;
            float *o = out + p->c_batch[batch] + p->c_row[i];
            double own = up_of(e_a[i], power);
            uint64_t sum = 0;
            /* Where a column is not finite its weight is 0, whatever the sum there is. */
            for (int64_t c = 0; c < n; c++) sum += (uint64_t)(int64_t)s[c] * w[c];
            wrong |= e_a[i] < E_NONFINITE && sum != right[i];
            if (straight)
                for (int64_t c = 0; c < n; c++) o[c] = (float)((s[c] + 0.0) * own * up[c]);
            else
                for (int64_t c = 0; c < n; c++) o[p->c_column[c]] = (float)((s[c] + 0.0) * own * up[c]);
        }
    }
    return wrong;
}
