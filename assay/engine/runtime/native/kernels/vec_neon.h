/* What vectors of NEON have no operator for. Minimum and maximum give a NaN where either operand is one. */
#ifndef ASSAY_VEC_NEON_H
#define ASSAY_VEC_NEON_H

INLINE vf vsqrt(vf x) { return (vf)vsqrtq_f32((float32x4_t)x); }
INLINE vf vrint(vf x) { return (vf)vrndnq_f32((float32x4_t)x); }
INLINE vf vfloor(vf x) { return (vf)vrndmq_f32((float32x4_t)x); }
INLINE vi vround_int(vf x) { return (vi)vcvtnq_s32_f32((float32x4_t)x); }
INLINE vi vtrunc_int(vf x) { return (vi)vcvtq_s32_f32((float32x4_t)x); }
INLINE vd low_d(vf x) { return (vd)vcvt_f64_f32(vget_low_f32((float32x4_t)x)); }
INLINE vd high_d(vf x) { return (vd)vcvt_high_f64_f32((float32x4_t)x); }
INLINE vf join_d(vd a, vd b) { return (vf)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)a), (float64x2_t)b); }
INLINE vl low_l(vi x) { return (vl)vmovl_s32(vget_low_s32((int32x4_t)x)); }
INLINE vl high_l(vi x) { return (vl)vmovl_high_s32((int32x4_t)x); }
INLINE vf vmin_raw(vf a, vf b) { return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b); }
INLINE vf vmax_raw(vf a, vf b) { return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
INLINE vi vmax_i(vi a, vi b) { return (vi)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
INLINE vi vmin_i(vi a, vi b) { return (vi)vminq_s32((int32x4_t)a, (int32x4_t)b); }
INLINE int any(vi mask) { return vmaxvq_u32((uint32x4_t)mask) != 0; }

#endif
