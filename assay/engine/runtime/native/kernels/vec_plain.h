/* The same in C alone. Rounding is nearest-even wherever these are called, so adding 2^23 rounds to an integer. */
#ifndef ASSAY_VEC_PLAIN_H
#define ASSAY_VEC_PLAIN_H

#define TWO_23 0x4b000000 /* from here on every f32 is an integer */

INLINE vi vmax_i(vi a, vi b) { return blend((vi)(a > b), a, b); }
INLINE vi vmin_i(vi a, vi b) { return blend((vi)(a < b), a, b); }
INLINE vf vmin_raw(vf a, vf b) { return (vf)blend((vi)(a < b), (vi)a, (vi)b); }
INLINE vf vmax_raw(vf a, vf b) { return (vf)blend((vi)(a > b), (vi)a, (vi)b); }

INLINE vf vsqrt(vf x)
{
    for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
}

INLINE vf vrint(vf x)
{
    vi sign = (vi)x & splat_i(INT32_MIN);
    vf far = (vf)(sign | splat_i(TWO_23)), near = x + far - far;
    return (vf)blend((vi)(((vi)x & splat_i(ABS_BITS)) < splat_i(TWO_23)), (vi)near | sign, (vi)x);
}

INLINE vf vfloor(vf x)
{
    vf y = vrint(x);
    return y - (vf)((vi)(y > x) & (vi)splat_f(1.0f));
}

/* Below -2^31, and of a NaN, INT_MIN; above, the largest f32 that fits. */
INLINE vi vtrunc_int(vf x)
{
    x = vmin_raw(vmax_raw(x, splat_f(-2147483648.0f)), splat_f(2147483520.0f));
    return __builtin_convertvector(x, vi);
}

INLINE vi vround_int(vf x) { return vtrunc_int(vrint(x)); }

INLINE vd wide_d(const float *x)
{
    vfh half;
    memcpy(&half, x, sizeof half);
    return __builtin_convertvector(half, vd);
}
INLINE vd low_d(vf x) { return wide_d((const float *)&x); }
INLINE vd high_d(vf x) { return wide_d((const float *)&x + LANES / 2); }

INLINE vf join_d(vd a, vd b)
{
    vfh half[2] = {__builtin_convertvector(a, vfh), __builtin_convertvector(b, vfh)};
    vf x;
    memcpy(&x, half, sizeof x);
    return x;
}

INLINE vl wide_l(const int32_t *x)
{
    vih half;
    memcpy(&half, x, sizeof half);
    return __builtin_convertvector(half, vl);
}
INLINE vl low_l(vi x) { return wide_l((const int32_t *)&x); }
INLINE vl high_l(vi x) { return wide_l((const int32_t *)&x + LANES / 2); }

INLINE int any(vi mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }

#endif
