/* Quantizing an operand and packing its digits, in one pass over the f32 values.

   q = clamp(rint(x 2^(p-1-e)), +-limit), 0 for what is not finite. The power is applied as two f32 factors, each of
   them normal: scaling up is exact, and scaling down loses bits only of what rounds to zero. */
#ifndef ASSAY_DOT_PACK_H
#define ASSAY_DOT_PACK_H

#include <math.h>
#include <string.h>

#include "dot.h"
#include "transpose.h"

typedef struct { /* of the rows of a panel */
    float first[PANEL], second[PANEL];
    float squares[PANEL]; /* of the q in the present segment */
    float limit;          /* of |q| */
    int two;              /* whether some second factor is not 1 */
    int how;              /* they are quantized by AVX2 and AVX-512; others ask always */
    int32_t least, most;  /* exponents of `up` below, the NaN's aside: of what a sum is multiplied by */
} scales;

static float power_f32(int64_t n)
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static inline int32_t clamp(int32_t n, int32_t low, int32_t high) { return n < low ? low : n > high ? high : n; }

/* The factors of some rows, and up = 2^(e-(p-1)), NaN for e >= 129. Rows beyond the last one get zeros. Loops without
   branches, which compilers turn into vectors. */
static void make_scales(const dot_side *s, const int32_t *e, int64_t batch, int64_t first, int64_t rows, scales *f,
                        double *up)
{
    int32_t exponent[PANEL], one[PANEL], two[PANEL], live[PANEL], differs = 0, p = (int32_t)s->precision - 1;
    int64_t at = s->e_batch[batch];
    memset(f->squares, 0, sizeof f->squares);
    f->limit = p == 7 ? 127.0f : power_f32(p);
    for (int64_t r = 0; r < PANEL; r++) {
        int64_t own = s->e_own[first + (r < rows ? r : 0)];
        int32_t found = at == OUTSIDE || own == OUTSIDE ? (int32_t)s->e_fill : e[at + own];
        exponent[r] = clamp(found, E_LOWEST, -E_LOWEST), live[r] = -(r < rows);
    }
    for (int r = 0; r < PANEL; r++) {
        /* Beyond 2^+-250 every f32 is clamped or rounded to zero alike. */
        int32_t n = clamp(p - exponent[r], -250, 250), half = clamp(n, -126, 127);
        differs |= (n - half) & live[r];
        one[r] = (half + 127) << 23 & live[r];
        two[r] = (((n - half) & live[r]) + 127) << 23;
    }
    memcpy(f->first, one, sizeof one);
    memcpy(f->second, two, sizeof two);
    f->two = differs != 0;
    /* The limit of 8 bits is 127, below what some x is rounded to. */
    f->how = !s->own_exponents || p == 7 ? ANY : f->two ? WITHIN_TWO : WITHIN;
    f->least = f->most = clamp(exponent[0], E_LOWEST, E_NONFINITE) - p; /* rows beyond the last one have the first's */
    for (int r = 1; r < PANEL; r++) {
        int32_t kept = clamp(exponent[r], E_LOWEST, E_NONFINITE) - p;
        f->least = kept < f->least ? kept : f->least, f->most = kept > f->most ? kept : f->most;
    }
    for (int r = 0; r < PANEL; r++) {
        int64_t kept = clamp(exponent[r], E_LOWEST, E_NONFINITE) - p, bits = (kept + 1023) << 52;
        bits = exponent[r] >= E_NONFINITE ? 0x7FF8000000000000 : bits;
        bits &= live[r];
        memcpy(up + r, &bits, 8);
    }
}

/* A block of up to 16 rows and `width` k, read one by one into buf [16][width]. */
static void collect(const dot_side *s, const float *x, int64_t batch, int64_t first, int64_t rows, int64_t k0,
                    int64_t count, int64_t width, float *buf)
{
    float fill;
    uint32_t bits = (uint32_t)s->fill;
    memcpy(&fill, &bits, 4);
    int64_t at = s->batch[batch], last = (k0 + count - 1) / RED_BLOCK;
    int inside = at != OUTSIDE && s->own_kind[first / PANEL] >= INSIDE;
    for (int64_t i = k0 / RED_BLOCK; i <= last; i++) inside &= s->red_kind[i] >= INSIDE;
    for (int64_t r = 0; r < rows; r++) {
        int64_t own = s->own[first + r];
        if (inside) {
            for (int64_t k = 0; k < count; k++) buf[r * width + k] = x[at + own + s->red[k0 + k]];
            continue;
        }
        for (int64_t k = 0; k < count; k++) {
            int64_t red = s->red[k0 + k];
            buf[r * width + k] = at == OUTSIDE || own == OUTSIDE || red == OUTSIDE ? fill : x[at + own + red];
        }
    }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#if VBYTES == 64

typedef struct {
    __m512 first, second, limit;
    int two, how;
} factors;

static inline __m512i quantize(__m512 x, factors f)
{
    if (f.how == WITHIN) return _mm512_cvtps_epi32(_mm512_mul_ps(x, f.first));
    __mmask16 finite = (__mmask16)~_mm512_fpclass_ps_mask(x, 0x99);
    x = _mm512_mul_ps(x, f.first);
    if (f.two) x = _mm512_mul_ps(x, f.second);
    x = _mm512_max_ps(_mm512_min_ps(x, f.limit), _mm512_sub_ps(_mm512_setzero_ps(), f.limit));
    return _mm512_maskz_cvtps_epi32(finite, x);
}

static inline __mmask16 first_lanes(int64_t n) { return n >= 16 ? 0xFFFF : n <= 0 ? 0 : (__mmask16)((1u << n) - 1); }

/* The digits of q for i16 pairs: low in [-2^(s-1), 2^(s-1)), high the rest. */
static inline __m512i low_digit(__m512i q, int shift)
{
    __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    __m512i masked = _mm512_and_si512(_mm512_add_epi32(q, half), _mm512_set1_epi32((1 << shift) - 1));
    return _mm512_sub_epi32(masked, half);
}
static inline __m512i high_digit(__m512i q, int shift)
{
    return _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(1 << (shift - 1))), (unsigned)shift);
}

/* After packing two vectors lane by lane, dword j of the result holds the pair PAIR_OF[j]. */
static const uint8_t PAIR_OF[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};

/* 16 rows of up to 32 consecutive k, of so many digits. Of places and digits a whole block asks nothing. */
INLINE void some_rows_to_pairs(const float *const *row, const int64_t rows, const int64_t count, const scales *f,
                               const int how, const int digits, int shift, int16_t *out, int64_t plane)
{
    __m512i low[16], high[16];
    __mmask16 m0 = first_lanes(count), m1 = first_lanes(count - 16);
    __m512 limit = _mm512_set1_ps(f->limit);
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) {
        if (r >= rows) {
            low[r] = high[r] = _mm512_setzero_si512();
            continue;
        }
        factors by = {_mm512_set1_ps(f->first[r]), _mm512_set1_ps(f->second[r]), limit, f->two, how};
        __m512i q0 = quantize(_mm512_maskz_loadu_ps(m0, row[r]), by);
        __m512i q1 = quantize(_mm512_maskz_loadu_ps(m1, row[r] + 16), by);
        if (digits == 1) {
            low[r] = _mm512_packs_epi32(q0, q1), high[r] = _mm512_setzero_si512();
        } else {
            low[r] = _mm512_packs_epi32(low_digit(q0, shift), low_digit(q1, shift));
            high[r] = _mm512_packs_epi32(high_digit(q0, shift), high_digit(q1, shift));
        }
    }
    transpose16(low);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) _mm512_store_si512(out + PAIR_OF[j] * 32, low[j]);
    if (digits == 1) return;
    transpose16(high);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) _mm512_store_si512(out + plane + PAIR_OF[j] * 32, high[j]);
}

static void rows_to_pairs(const float *const *row, int64_t rows, int64_t count, const scales *f, const dot_digits d,
                          int16_t *out, int64_t plane)
{
    if (d.count > 1) some_rows_to_pairs(row, rows, count, f, f->how, 2, d.shift, out, plane);
    else if (rows == 16 && count == 32 && f->how == WITHIN)
        some_rows_to_pairs(row, 16, 32, f, WITHIN, 1, 0, out, plane);
    else some_rows_to_pairs(row, rows, count, f, f->how, 1, 0, out, plane);
}

/* The same place, when what lies PANEL further has been asked for: the next panel takes it soon (see `pack`), and of
   rows that are pages apart no processor guesses it. */
INLINE const float *ahead_of(const float *p)
{
    __builtin_prefetch(p + PANEL);
    return p;
}

/* 16 consecutive rows at x + (at + red[k]): of these sums alone is it known that they lie inside the source. */
INLINE void some_columns_to_pairs(const float *x, int64_t at, const int64_t *red, const int64_t rows,
                                  const int64_t count, const scales *f, const int how, const int digits, int shift,
                                  int16_t *out, int64_t plane)
{
    __mmask16 m = first_lanes(rows);
    factors by = {_mm512_loadu_ps(f->first), _mm512_loadu_ps(f->second), _mm512_set1_ps(f->limit), f->two, how};
#pragma GCC unroll 4
    for (int64_t t = 0; t < 16; t++) {
        __m512i q0 = _mm512_setzero_si512(), q1 = q0;
        if (2 * t < count) q0 = quantize(_mm512_maskz_loadu_ps(m, ahead_of(x + (at + red[2 * t]))), by);
        if (2 * t + 1 < count) q1 = quantize(_mm512_maskz_loadu_ps(m, ahead_of(x + (at + red[2 * t + 1]))), by);
        if (digits == 1) {
            _mm512_store_si512(out + 32 * t, _mm512_mask_blend_epi16(0xAAAAAAAA, q0, _mm512_slli_epi32(q1, 16)));
            continue;
        }
        __m512i l = _mm512_slli_epi32(low_digit(q1, shift), 16), h = _mm512_slli_epi32(high_digit(q1, shift), 16);
        _mm512_store_si512(out + 32 * t, _mm512_mask_blend_epi16(0xAAAAAAAA, low_digit(q0, shift), l));
        _mm512_store_si512(out + plane + 32 * t, _mm512_mask_blend_epi16(0xAAAAAAAA, high_digit(q0, shift), h));
    }
}

static void columns_to_pairs(const float *x, int64_t at, const int64_t *red, int64_t rows, int64_t count,
                             const scales *f, dot_digits d, int16_t *out, int64_t plane)
{
    if (d.count > 1) some_columns_to_pairs(x, at, red, rows, count, f, f->how, 2, d.shift, out, plane);
    else if (rows == 16 && count == 32 && f->how == WITHIN)
        some_columns_to_pairs(x, at, red, 16, 32, f, WITHIN, 1, 0, out, plane);
    else some_columns_to_pairs(x, at, red, rows, count, f, f->how, 1, 0, out, plane);
}

#elif VBYTES == 32

#include "dot_pack_eight.h"

#else

typedef struct {
    four_f first, second, limit;
    int two;
} factors;

static inline four_i quantize(four_f x, factors f)
{
    four_i finite = (four_i)(((four_i)x & 0x7F800000) != 0x7F800000);
    x = x * f.first;
    if (f.two) x = x * f.second;
    return finite & round_within(x, f.limit);
}

/* The digits of q for i16 pairs: low in [-2^(s-1), 2^(s-1)), high the rest. */
static inline four_i low_digit(four_i q, int shift)
{
    int32_t half = 1 << (shift - 1);
    return ((q + half) & ((1 << shift) - 1)) - half;
}
static inline four_i high_digit(four_i q, int shift) { return (q + (1 << (shift - 1))) >> shift; }

/* 4 rows of 8 k to 4 pairs of 4 rows. */
static inline void store_pairs(four_i row[4], int16_t *out)
{
    transpose4(row);
    for (int i = 0; i < 4; i++) store4(out + 32 * i, row[i]);
}

static void rows_to_pairs(const float *const *row, int64_t rows, int64_t count, const scales *f, dot_digits d,
                          int16_t *out, int64_t plane)
{
    float tail[8];
    for (int64_t r0 = 0; r0 < 16; r0 += 4) {
        for (int64_t k = 0; k < 32; k += 8) {
            four_i low[4], high[4];
            for (int64_t r = r0; r < r0 + 4; r++) {
                low[r - r0] = high[r - r0] = (four_i){0};
                if (r >= rows || k >= count) continue;
                const float *p = row[r] + k;
                if (count - k < 8) {
                    memset(tail, 0, sizeof tail);
                    memcpy(tail, p, (size_t)(count - k) * 4);
                    p = tail;
                }
                factors by = {splat4(f->first[r]), splat4(f->second[r]), splat4(f->limit), f->two};
                four_i q0 = quantize(load4_f(p), by), q1 = quantize(load4_f(p + 4), by);
                if (d.count == 1) {
                    low[r - r0] = narrow(q0, q1);
                } else {
                    low[r - r0] = narrow(low_digit(q0, d.shift), low_digit(q1, d.shift));
                    high[r - r0] = narrow(high_digit(q0, d.shift), high_digit(q1, d.shift));
                }
            }
            store_pairs(low, out + k * 16 + r0 * 2);
            if (d.count > 1) store_pairs(high, out + plane + k * 16 + r0 * 2);
        }
    }
}

static inline four_i joined(four_i q0, four_i q1) { return (q0 & 0xFFFF) | (q1 << 16); }

/* Quantized values of rows r .. r + 3 at x, which lie side by side; of rows beyond the last nothing is read. */
static inline four_i quantize_rows(const float *x, int64_t r, int64_t rows, const scales *f)
{
    float tail[4];
    factors by = {load4_f(f->first + r), load4_f(f->second + r), splat4(f->limit), f->two};
    if (rows - r < 4) {
        memset(tail, 0, sizeof tail);
        memcpy(tail, x + r, (size_t)(rows - r) * 4);
        return quantize(load4_f(tail), by);
    }
    return quantize(load4_f(x + r), by);
}

static void columns_to_pairs(const float *x, int64_t at, const int64_t *red, int64_t rows, int64_t count,
                             const scales *f, dot_digits d, int16_t *out, int64_t plane)
{
    for (int64_t t = 0; t < 16; t++) {
        for (int64_t r = 0; r < 16; r += 4) {
            four_i q[2] = {{0}, {0}};
            for (int i = 0; i < 2; i++)
                if (2 * t + i < count && r < rows) q[i] = quantize_rows(x + (at + red[2 * t + i]), r, rows, f);
            int16_t *to = out + 32 * t + 2 * r;
            if (d.count == 1) {
                store4(to, joined(q[0], q[1]));
                continue;
            }
            store4(to, joined(low_digit(q[0], d.shift), low_digit(q[1], d.shift)));
            store4(to + plane, joined(high_digit(q[0], d.shift), high_digit(q[1], d.shift)));
        }
    }
}

#endif

/* squares[row] += the squares of 16 pairs of each of 16 rows. Rounded sums: a comparison adds a margin. */
static inline void add_squares(const int16_t *lines, float squares[PANEL])
{
#if VBYTES == 64
    __m512 sum = _mm512_loadu_ps(squares);
    for (int t = 0; t < 16; t++) {
        __m512i line = _mm512_load_si512(lines + 32 * t);
        sum = _mm512_add_ps(sum, _mm512_cvtepi32_ps(_mm512_madd_epi16(line, line)));
    }
    _mm512_storeu_ps(squares, sum);
#elif VBYTES == 32
    for (int r = 0; r < PANEL; r += 8) {
        __m256 sum = _mm256_loadu_ps(squares + r);
        for (int t = 0; t < 16; t += 2) { /* of digits up to 2^14 four squares fit an i32 */
            __m256i line = _mm256_load_si256((const __m256i *)(lines + 32 * t + 2 * r));
            __m256i next = _mm256_load_si256((const __m256i *)(lines + 32 * t + 32 + 2 * r));
            line = _mm256_add_epi32(_mm256_madd_epi16(line, line), _mm256_madd_epi16(next, next));
            sum = _mm256_add_ps(sum, _mm256_cvtepi32_ps(line));
        }
        _mm256_storeu_ps(squares + r, sum);
    }
#else
    for (int r = 0; r < PANEL; r += 4) {
        four_f sum = load4_f(squares + r);
        for (int t = 0; t < 16; t++) {
            four_i line = load4_i(lines + 32 * t + 2 * r);
            sum += __builtin_convertvector(multiply_pairs4(line, line), four_f);
        }
        store4(squares + r, (four_i)sum);
    }
#endif
}

/* Digits of i16 of the terms [k0, end) by pairs: per digit [pairs][PANEL][2], zeros beyond K and beyond the last row;
   k0 is a multiple of 2 SEGMENT. out: where those of k0 belong; plane: i16 from one digit to the next. largest (or
   NULL) grows to the largest sum of squares of a row in a segment. */
static void pack_pairs(const dot_side *s, dot_digits d, const float *x, int64_t batch, int64_t first, int64_t rows,
                       int64_t k, int64_t k0, int64_t end, int16_t *out, int64_t plane, scales *f, float *largest)
{
    float buf[PANEL * 32] __attribute__((aligned(64)));
    const float *row[PANEL];
    int64_t at = s->batch[batch];
    int own_kind = at == OUTSIDE ? GENERAL : s->own_kind[first / PANEL];
    for (int16_t *to = out; k0 < end; k0 += 32, to += 32 * PANEL) {
        int64_t count = least(32, k - k0);
        int red_kind = s->red_kind[k0 / RED_BLOCK];
        int by_column = own_kind == UNIT && red_kind >= INSIDE;
        if (red_kind == UNIT && own_kind >= INSIDE && !(by_column && rows > count)) {
            for (int64_t r = 0; r < rows; r++) row[r] = x + (at + s->own[first + r] + s->red[k0]);
            rows_to_pairs(row, rows, count, f, d, to, plane);
        } else if (by_column) {
            columns_to_pairs(x, at + s->own[first], s->red + k0, rows, count, f, d, to, plane);
        } else {
            collect(s, x, batch, first, rows, k0, count, 32, buf);
            for (int64_t r = 0; r < rows; r++) row[r] = buf + r * 32;
            rows_to_pairs(row, rows, count, f, d, to, plane);
        }
        if (!largest) continue;
        add_squares(to, f->squares);
        if ((k0 + 32) % (2 * SEGMENT) && k0 + 32 < k) continue;
        for (int r = 0; r < PANEL; r++) *largest = f->squares[r] > *largest ? f->squares[r] : *largest;
        memset(f->squares, 0, sizeof f->squares);
    }
}

#endif
