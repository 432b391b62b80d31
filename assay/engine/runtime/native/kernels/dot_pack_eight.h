/* Packing by vectors of eight words (AVX2). */
#ifndef ASSAY_DOT_PACK_EIGHT_H
#define ASSAY_DOT_PACK_EIGHT_H

typedef struct {
    __m256 first, second, limit;
    int two;
} factors;

static inline __m256i quantize(__m256 x, factors f)
{
    __m256i exponent = _mm256_set1_epi32(0x7F800000);
    __m256i not_finite = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(x), exponent), exponent);
    x = _mm256_mul_ps(x, f.first);
    if (f.two) x = _mm256_mul_ps(x, f.second);
    x = _mm256_max_ps(_mm256_min_ps(x, f.limit), _mm256_sub_ps(_mm256_setzero_ps(), f.limit));
    return _mm256_andnot_si256(not_finite, _mm256_cvtps_epi32(x));
}

static inline __m256i quantize_how(__m256 x, factors f, const int how)
{
    if (how == ANY) return quantize(x, f);
    x = _mm256_mul_ps(x, f.first);
    if (how == WITHIN_TWO) x = _mm256_mul_ps(x, f.second);
    return _mm256_cvtps_epi32(x);
}

/* The digits of q for i16 pairs: low in [-2^(s-1), 2^(s-1)), high the rest. */
static inline __m256i low_digit(__m256i q, int shift)
{
    __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    __m256i masked = _mm256_and_si256(_mm256_add_epi32(q, half), _mm256_set1_epi32((1 << shift) - 1));
    return _mm256_sub_epi32(masked, half);
}
static inline __m256i high_digit(__m256i q, int shift)
{
    return _mm256_srai_epi32(_mm256_add_epi32(q, _mm256_set1_epi32(1 << (shift - 1))), shift);
}

/* After packing two vectors lane by lane, dword j of the result holds the pair PAIR_OF[j]. */
static const uint8_t PAIR_OF[8] = {0, 1, 4, 5, 2, 3, 6, 7};

/* 8 rows of 16 k to 8 pairs of 8 rows. */
static inline void store_pairs(__m256i row[8], int16_t *out)
{
    transpose8(row);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) _mm256_store_si256((__m256i *)(out + 32 * PAIR_OF[i]), row[i]);
}

/* 16 rows of 32 k, one digit: what nearly every block of a large product is. Of places nothing is asked, and nothing is
 * read again since what is stored might have changed it. A row of zeros needs two factors, and so does its panel. */
static inline __attribute__((always_inline)) void whole_rows_to_pairs(const float *const *row, const scales *f,
                                                                      const int how, int16_t *out)
{
    __m256 limit = _mm256_set1_ps(f->limit);
    for (int r0 = 0; r0 < 16; r0 += 8) {
        const float *const *p = row + r0;
        for (int k = 0; k < 32; k += 16) {
            __m256i low[8];
#pragma GCC unroll 8
            for (int r = 0; r < 8; r++) {
                __m256 first = _mm256_broadcast_ss(f->first + r0 + r);
                factors by = {first, how == WITHIN ? first : _mm256_broadcast_ss(f->second + r0 + r), limit, 1};
                __m256i q0 = quantize_how(_mm256_loadu_ps(p[r] + k), by, how);
                __m256i q1 = quantize_how(_mm256_loadu_ps(p[r] + k + 8), by, how);
                low[r] = _mm256_packs_epi32(q0, q1);
            }
            store_pairs(low, out + k * 16 + r0 * 2);
        }
    }
}

static void rows_to_pairs(const float *const *row, int64_t rows, int64_t count, const scales *f, const dot_digits d,
                          int16_t *out, int64_t plane)
{
    float tail[16];
    __m256 limit = _mm256_set1_ps(f->limit);
    if (rows == 16 && count == 32 && d.count == 1) {
        if (f->how == WITHIN) whole_rows_to_pairs(row, f, WITHIN, out);
        else if (f->how == WITHIN_TWO) whole_rows_to_pairs(row, f, WITHIN_TWO, out);
        else whole_rows_to_pairs(row, f, ANY, out);
        return;
    }
    for (int64_t r0 = 0; r0 < 16; r0 += 8) {
        for (int64_t k = 0; k < 32; k += 16) {
            __m256i low[8], high[8];
#pragma GCC unroll 8
            for (int64_t r = 0; r < 8; r++) {
                low[r] = high[r] = _mm256_setzero_si256();
                if (r0 + r >= rows || k >= count) continue;
                const float *p = row[r0 + r] + k;
                if (count - k < 16) {
                    memset(tail, 0, sizeof tail);
                    memcpy(tail, p, (size_t)(count - k) * 4);
                    p = tail;
                }
                factors by = {_mm256_set1_ps(f->first[r0 + r]), _mm256_set1_ps(f->second[r0 + r]), limit, f->two};
                __m256i q0 = quantize(_mm256_loadu_ps(p), by), q1 = quantize(_mm256_loadu_ps(p + 8), by);
                if (d.count == 1) {
                    low[r] = _mm256_packs_epi32(q0, q1);
                } else {
                    low[r] = _mm256_packs_epi32(low_digit(q0, d.shift), low_digit(q1, d.shift));
                    high[r] = _mm256_packs_epi32(high_digit(q0, d.shift), high_digit(q1, d.shift));
                }
            }
            store_pairs(low, out + k * 16 + r0 * 2);
            if (d.count > 1) store_pairs(high, out + plane + k * 16 + r0 * 2);
        }
    }
}

static inline __m256i joined(__m256i q0, __m256i q1) { return _mm256_blend_epi16(q0, _mm256_slli_epi32(q1, 16), 0xAA); }

/* Quantized values of rows r .. r + 7 at x, which lie side by side; of rows beyond the last nothing is read. */
static inline __m256i quantize_rows(const float *x, int64_t r, int64_t rows, const scales *f)
{
    float tail[8];
    factors by = {_mm256_loadu_ps(f->first + r), _mm256_loadu_ps(f->second + r), _mm256_set1_ps(f->limit), f->two};
    if (rows - r < 8) {
        memset(tail, 0, sizeof tail);
        memcpy(tail, x + r, (size_t)(rows - r) * 4);
        return quantize(_mm256_loadu_ps(tail), by);
    }
    return quantize(_mm256_loadu_ps(x + r), by);
}

/* 16 columns of 32 k, of so many digits. */
static inline __attribute__((always_inline)) void whole_columns_to_pairs(const float *x, int64_t at, const int64_t *red,
                                                                         const scales *f, const int how,
                                                                         const int digits, int shift, int16_t *out,
                                                                         int64_t plane)
{
    __m256 limit = _mm256_set1_ps(f->limit);
    factors by[2] = {{_mm256_loadu_ps(f->first), _mm256_loadu_ps(f->second), limit, 1},
                     {_mm256_loadu_ps(f->first + 8), _mm256_loadu_ps(f->second + 8), limit, 1}};
#pragma GCC unroll 4
    for (int t = 0; t < 16; t++) {
        const float *p0 = x + (at + red[2 * t]), *p1 = x + (at + red[2 * t + 1]);
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            __m256i q0 = quantize_how(_mm256_loadu_ps(p0 + 8 * r), by[r], how);
            __m256i q1 = quantize_how(_mm256_loadu_ps(p1 + 8 * r), by[r], how);
            __m256i *to = (__m256i *)(out + 32 * t + 16 * r), *above = (__m256i *)(out + plane + 32 * t + 16 * r);
            if (digits == 1) {
                _mm256_store_si256(to, joined(q0, q1));
                continue;
            }
            _mm256_store_si256(to, joined(low_digit(q0, shift), low_digit(q1, shift)));
            _mm256_store_si256(above, joined(high_digit(q0, shift), high_digit(q1, shift)));
        }
    }
}

static void columns_to_pairs(const float *x, int64_t at, const int64_t *red, int64_t rows, int64_t count,
                             const scales *f, dot_digits d, int16_t *out, int64_t plane)
{
    if (rows == 16 && count == 32) {
        if (d.count > 1) whole_columns_to_pairs(x, at, red, f, ANY, 2, d.shift, out, plane);
        else if (f->how == WITHIN) whole_columns_to_pairs(x, at, red, f, WITHIN, 1, 0, out, plane);
        else if (f->how == WITHIN_TWO) whole_columns_to_pairs(x, at, red, f, WITHIN_TWO, 1, 0, out, plane);
        else whole_columns_to_pairs(x, at, red, f, ANY, 1, 0, out, plane);
        return;
    }
    for (int64_t r = 0; r < 16; r += 8) {
        for (int64_t t = 0; t < 16; t++) {
            __m256i q0 = _mm256_setzero_si256(), q1 = q0;
            if (2 * t < count && r < rows) q0 = quantize_rows(x + (at + red[2 * t]), r, rows, f);
            if (2 * t + 1 < count && r < rows) q1 = quantize_rows(x + (at + red[2 * t + 1]), r, rows, f);
            __m256i *to = (__m256i *)(out + 32 * t + 2 * r);
            if (d.count == 1) {
                _mm256_store_si256(to, joined(q0, q1));
                continue;
            }
            _mm256_store_si256(to, joined(low_digit(q0, d.shift), low_digit(q1, d.shift)));
            to = (__m256i *)(out + plane + 32 * t + 2 * r);
            _mm256_store_si256(to, joined(high_digit(q0, d.shift), high_digit(q1, d.shift)));
        }
    }
}

#endif
