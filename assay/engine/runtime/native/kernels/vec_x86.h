/* What vectors of x86 have no operator for, by width. */
#ifndef ASSAY_VEC_X86_H
#define ASSAY_VEC_X86_H

#if VBYTES == 64
INLINE vf vsqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
INLINE vf vrint(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf vfloor(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
INLINE vi vround_int(vf x) { return (vi)_mm512_cvtps_epi32((__m512)x); }
INLINE vi vtrunc_int(vf x) { return (vi)_mm512_cvttps_epi32((__m512)x); }
INLINE vd low_d(vf x) { return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x)); }
INLINE vd high_d(vf x) { return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1)); }
INLINE vf join_d(vd a, vd b)
{
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)a)), _mm512_cvtpd_ps((__m512d)b), 1);
}
INLINE vl low_l(vi x) { return (vl)_mm512_cvtepi32_epi64(_mm512_castsi512_si256((__m512i)x)); }
INLINE vl high_l(vi x) { return (vl)_mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32((__m512i)x, 1)); }
INLINE vf vmin_raw(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE vf vmax_raw(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vi vmax_i(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
INLINE vi vmin_i(vi a, vi b) { return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b); }
INLINE int any(vi mask) { return _mm512_movepi32_mask((__m512i)mask) != 0; }
#elif VBYTES == 32
INLINE vf vsqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
INLINE vf vrint(vf x) { return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf vfloor(vf x) { return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
INLINE vi vround_int(vf x) { return (vi)_mm256_cvtps_epi32((__m256)x); }
INLINE vi vtrunc_int(vf x) { return (vi)_mm256_cvttps_epi32((__m256)x); }
INLINE vd low_d(vf x) { return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)); }
INLINE vd high_d(vf x) { return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1)); }
INLINE vf join_d(vd a, vd b)
{
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)a)), _mm256_cvtpd_ps((__m256d)b),
                                    1);
}
INLINE vl low_l(vi x) { return (vl)_mm256_cvtepi32_epi64(_mm256_castsi256_si128((__m256i)x)); }
INLINE vl high_l(vi x) { return (vl)_mm256_cvtepi32_epi64(_mm256_extracti128_si256((__m256i)x, 1)); }
INLINE vf vmin_raw(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE vf vmax_raw(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE vi vmax_i(vi a, vi b) { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
INLINE vi vmin_i(vi a, vi b) { return (vi)_mm256_min_epi32((__m256i)a, (__m256i)b); }
INLINE int any(vi mask) { return _mm256_movemask_ps((__m256)mask) != 0; }
#else
INLINE vf vsqrt(vf x) { return (vf)_mm_sqrt_ps((__m128)x); }
INLINE vf vrint(vf x) { return (vf)_mm_round_ps((__m128)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf vfloor(vf x) { return (vf)_mm_round_ps((__m128)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
INLINE vi vround_int(vf x) { return (vi)_mm_cvtps_epi32((__m128)x); }
INLINE vi vtrunc_int(vf x) { return (vi)_mm_cvttps_epi32((__m128)x); }
INLINE vd low_d(vf x) { return (vd)_mm_cvtps_pd((__m128)x); }
INLINE vd high_d(vf x) { return (vd)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x)); }
INLINE vf join_d(vd a, vd b) { return (vf)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)a), _mm_cvtpd_ps((__m128d)b)); }
INLINE vl low_l(vi x) { return (vl)_mm_cvtepi32_epi64((__m128i)x); }
INLINE vl high_l(vi x) { return (vl)_mm_cvtepi32_epi64(_mm_unpackhi_epi64((__m128i)x, (__m128i)x)); }
INLINE vf vmin_raw(vf a, vf b) { return (vf)_mm_min_ps((__m128)a, (__m128)b); }
INLINE vf vmax_raw(vf a, vf b) { return (vf)_mm_max_ps((__m128)a, (__m128)b); }
INLINE vi vmax_i(vi a, vi b) { return (vi)_mm_max_epi32((__m128i)a, (__m128i)b); }
INLINE vi vmin_i(vi a, vi b) { return (vi)_mm_min_epi32((__m128i)a, (__m128i)b); }
INLINE int any(vi mask) { return _mm_movemask_ps((__m128)mask) != 0; }
#endif

#endif
