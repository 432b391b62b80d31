/* The scalar machine on tiles: one function per operation and per choice of which operands are one element for all.
 * Every operation rounds as assay/protocol/arithmetic/f32.py says: the vector instructions used are correctly rounded
 * IEEE ones. NaNs may carry any payload between operations; where bits are read the one NaN is put in first. */
#ifndef ASSAY_SCALAR_H
#define ASSAY_SCALAR_H

#include "vec.h"

typedef void (*TileFunction)(void *out, const void *a, const void *b, const void *c, int64_t n);

/* a (and b, c) are loaded by v_load or taken once by s_load; R is what remains for the masked tail. */
#define LOAD_v(p, i) load_i((const int32_t *)(p) + (i))
#define PART_v(p, i, r) load_part((const int32_t *)(p) + (i), r)
#define LOAD_s(p, i) p##_all
#define PART_s(p, i, r) p##_all
#define ONCE_v(p)
#define ONCE_s(p) const vi p##_all = splat_i(*(const int32_t *)(p));

#define TILE_1(name, body)                                                                                             \
    INLINE vi name##_of(vi A) { return (vi)(body); }                                                                   \
    static void name(void *out, const void *a, const void *b, const void *c, int64_t n)                                \
    {                                                                                                                  \
        (void)b, (void)c;                                                                                              \
        int32_t *o = out;                                                                                              \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) store_i(o + i, name##_of(LOAD_v(a, i)));                                    \
        if (i < n) store_part(o + i, name##_of(PART_v(a, i, n - i)), n - i);                                           \
    }

#define TILE_2_AS(name, ka, kb)                                                                                        \
    static void name##_##ka##kb(void *out, const void *a, const void *b, const void *c, int64_t n)                     \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        ONCE_##ka(a) ONCE_##kb(b) int32_t *o = out;                                                                    \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) store_i(o + i, name##_of(LOAD_##ka(a, i), LOAD_##kb(b, i)));                \
        if (i < n) store_part(o + i, name##_of(PART_##ka(a, i, n - i), PART_##kb(b, i, n - i)), n - i);                \
    }
#define TILE_2(name, body)                                                                                             \
    INLINE vi name##_of(vi A, vi B) { return (vi)(body); }                                                             \
    TILE_2_AS(name, v, v)                                                                                              \
    TILE_2_AS(name, v, s)                                                                                              \
    TILE_2_AS(name, s, v)

#define TILE_3_AS(name, ka, kb, kc)                                                                                    \
    static void name##_##ka##kb##kc(void *out, const void *a, const void *b, const void *c, int64_t n)                 \
    {                                                                                                                  \
        ONCE_##ka(a) ONCE_##kb(b) ONCE_##kc(c) int32_t *o = out;                                                       \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            store_i(o + i, name##_of(LOAD_##ka(a, i), LOAD_##kb(b, i), LOAD_##kc(c, i)));                              \
        if (i < n)                                                                                                     \
            store_part(o + i, name##_of(PART_##ka(a, i, n - i), PART_##kb(b, i, n - i), PART_##kc(c, i, n - i)),       \
                       n - i);                                                                                         \
    }
#define TILE_3(name, body)                                                                                             \
    INLINE vi name##_of(vi A, vi B, vi C) { return (vi)(body); }                                                       \
    TILE_3_AS(name, v, v, v)                                                                                           \
    TILE_3_AS(name, v, v, s)                                                                                           \
    TILE_3_AS(name, v, s, v)                                                                                           \
    TILE_3_AS(name, v, s, s)                                                                                           \
    TILE_3_AS(name, s, v, v)                                                                                           \
    TILE_3_AS(name, s, v, s)                                                                                           \
    TILE_3_AS(name, s, s, v)

#define FA ((vf)A)
#define FB ((vf)B)
#define FC ((vf)C)
#define UA ((vu)A)
#define UB ((vu)B)

INLINE vi canonical_bits(vi x) { return blend((vi)((vf)x == (vf)x), x, splat_i(NAN_BITS)); }

/* The hardware's minimum gives its second operand when either is NaN; adding +0 makes a zero of either sign +0. */
INLINE vi extreme_of(vf raw, vf a, vf b) { return blend((vi)(a == a), (vi)(raw + splat_f(0.0f)), (vi)(a + b)); }

/* 2^n in binary64 has room for every n that matters, and the product is rounded once, to binary32. */
INLINE vf scale_wide(vf x, vi n)
{
    n = vmax_i(vmin_i(n, splat_i(400)), splat_i(-400));
    vl bias = (vl){0} + 1023;
    vd low = (vd)((low_l(n) + bias) << 52), high = (vd)((high_l(n) + bias) << 52);
    return join_d(low_d(x) * low, high_d(x) * high);
}

/* Powers that are normal in binary32 need one product; the others are rare and go the wide way. */
INLINE vi scale_any(vf x, vi n)
{
    vi wide = (n > splat_i(127)) | (n < splat_i(-126));
    if (__builtin_expect(any(wide), 0)) return (vi)scale_wide(x, n);
    return (vi)(x * (vf)((n + 127) << 23));
}

INLINE vi to_int(vf x)
{
    vi cut = vtrunc_int(x); /* INT_MIN for all that does not fit, which is right below -2^31 */
    cut = blend((vi)(x >= splat_f(2147483648.0f)), splat_i(INT32_MAX), cut);
    return cut & (vi)(x == x);
}

INLINE vi mulhi(vu a, vu b)
{
    typedef uint64_t vlu __attribute__((vector_size(VBYTES), aligned(8), may_alias));
    const vlu low = (vlu){0} + 0xffffffffu;
    vlu even = ((vlu)a & low) * ((vlu)b & low), odd = ((vlu)a >> 32) * ((vlu)b >> 32);
    return (vi)((even >> 32) | (odd & ~low));
}

TILE_2(f32_add, FA + FB)
TILE_2(f32_sub, FA - FB)
TILE_2(f32_mul, FA *FB)
TILE_2(f32_div, FA / FB)
TILE_1(f32_sqrt, vsqrt(FA))
TILE_1(f32_neg, A ^ splat_i(INT32_MIN))
TILE_1(f32_abs, A &splat_i(ABS_BITS))
TILE_2(f32_min, extreme_of(vmin_raw(FA, FB), FA, FB))
TILE_2(f32_max, extreme_of(vmax_raw(FA, FB), FA, FB))
TILE_2(f32_eq, FA == FB)
TILE_2(f32_lt, FA < FB)
TILE_2(f32_le, FA <= FB)
TILE_1(f32_rint, vrint(FA))
TILE_1(f32_floor, vfloor(FA))
TILE_2(f32_scale2, scale_any(FA, B))
TILE_1(f32_exponent, vexponent_of_bits(A &splat_i(ABS_BITS)))
TILE_1(i32_to_f32, __builtin_convertvector(A, vf))
TILE_1(f32_to_i32, to_int(FA))
TILE_1(bool_to_i32, -A)
TILE_1(i32_to_bool, A != splat_i(0))
TILE_1(f32_bits, canonical_bits(A))
TILE_1(copy, A)
TILE_2(i32_add, UA + UB)
TILE_2(i32_sub, UA - UB)
TILE_2(i32_mul, UA *UB)
TILE_2(i32_mulhi, mulhi(UA, UB))
TILE_2(i32_and, A &B)
TILE_2(i32_or, A | B)
TILE_2(i32_xor, A ^ B)
TILE_1(i32_not, ~A)
TILE_2(i32_shl, UA << (UB & 31))
TILE_2(i32_shr_logical, UA >> (UB & 31))
TILE_2(i32_shr_arith, A >> (B & 31))
TILE_2(i32_min, vmin_i(A, B))
TILE_2(i32_max, vmax_i(A, B))
TILE_2(i32_eq, A == B)
TILE_2(i32_lt, A < B)
TILE_2(i32_ltu, UA < UB)
TILE_3(select_word, blend(A, B, C))
/* Two instructions in one pass, each rounded on its own: a b + c, a b - c, c - a b, (a + b) c, (a - b) c. */
TILE_3(mul_add, FA *FB + FC)
TILE_3(mul_sub, FA *FB - FC)
TILE_3(sub_mul, FC - FA * FB)
TILE_3(add_mul, (FA + FB) * FC)
TILE_3(dif_mul, (FA - FB) * FC)

/* One element for all the others of a tile. */
static void spread(void *out, const void *a, const void *b, const void *c, int64_t n)
{
    (void)b, (void)c;
    vi x = splat_i(*(const int32_t *)a);
    int32_t *o = out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store_i(o + i, x);
    if (i < n) store_part(o + i, x, n - i);
}

/* i64 tiles are rare: plain loops. A scalar operand is spread first. */
#define WIDE(name, from, to, body)                                                                                     \
    static void name(void *out, const void *pa, const void *pb, const void *pc, int64_t n)                             \
    {                                                                                                                  \
        (void)pb, (void)pc;                                                                                            \
        const from *a = pa, *b = pb, *c = pc;                                                                          \
        (void)b, (void)c;                                                                                              \
        to *o = out;                                                                                                   \
        for (int64_t i = 0; i < n; i++) o[i] = (to)(body);                                                             \
    }

INLINE int64_t f32_to_i64_of(float x)
{
    if (x != x) return 0;
    if (x >= 9223372036854775808.0f) return INT64_MAX;
    return x >= -9223372036854775808.0f ? (int64_t)x : INT64_MIN;
}

WIDE(i64_to_f32, int64_t, float, a[i])
WIDE(f32_to_i64, float, int64_t, f32_to_i64_of(a[i]))
WIDE(i64_to_i32, int64_t, int32_t, (uint64_t)a[i])
WIDE(i32_to_i64, int32_t, int64_t, a[i])
WIDE(i64_add, int64_t, int64_t, (uint64_t)a[i] + (uint64_t)b[i])
WIDE(i64_sub, int64_t, int64_t, (uint64_t)a[i] - (uint64_t)b[i])
WIDE(i64_mul, int64_t, int64_t, (uint64_t)a[i] * (uint64_t)b[i])
WIDE(i64_eq, int64_t, int32_t, -(a[i] == b[i]))
WIDE(i64_lt, int64_t, int32_t, -(a[i] < b[i]))
WIDE(spread_i64, int64_t, int64_t, a[0])
WIDE(copy_i64, int64_t, int64_t, a[i])
static void select_i64(void *out, const void *a, const void *b, const void *c, int64_t n)
{
    const int32_t *mask = a;
    const int64_t *x = b, *y = c;
    int64_t *o = out;
    for (int64_t i = 0; i < n; i++) o[i] = mask[i] ? x[i] : y[i];
}

/* Stores of node values that are not 4 bytes wide. */
WIDE(store_byte, int32_t, uint8_t, a[i])
WIDE(store_bool, int32_t, uint8_t, a[i] & 1)
WIDE(store_u16, int32_t, uint16_t, a[i])

#endif
