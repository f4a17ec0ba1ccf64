// vec_neon.h: the machine vectors of aarch64 (Advanced SIMD), 4 lanes. Include vec.h
// instead.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_NEON_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_NEON_H

#include <arm_neon.h>

#define VP_LANES 4
#define VP_COUNT 32

typedef float32x4_t vp;

static inline vp vp_zero(void) { return vdupq_n_f32(0.0f); }
static inline vp vp_set1(float x) { return vdupq_n_f32(x); }
static inline vp vp_load(const float *p) { return vld1q_f32(p); }
static inline void vp_store(float *p, vp v) { vst1q_f32(p, v); }
// The compiler has no intrinsic for a store that bypasses the caches, so this is an ordinary store.
static inline void vp_stream(float *p, vp v) { vp_store(p, v); }
static inline void vp_stream_end(void) {}

static inline vp vp_load_bf16(const uint16_t *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
static inline void vp_store_bf16(uint16_t *p, vp v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t r = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t number = vceqq_f32(v, v);
    r = vbslq_u32(number, r, vorrq_u32(u, vdupq_n_u32(0x400000)));
    const uint32x4_t small = vceqq_u32(vandq_u32(u, vdupq_n_u32(0x7f800000)), vdupq_n_u32(0));
    r = vbslq_u32(small, vandq_u32(u, vdupq_n_u32(0x80000000u)), r); // keep the sign only
    vst1_u16(p, vshrn_n_u32(r, 16));
}

static inline vp vp_add(vp a, vp b) { return vaddq_f32(a, b); }
static inline vp vp_sub(vp a, vp b) { return vsubq_f32(a, b); }
static inline vp vp_mul(vp a, vp b) { return vmulq_f32(a, b); }
static inline vp vp_div(vp a, vp b) { return vdivq_f32(a, b); }
static inline vp vp_sqrt(vp a) { return vsqrtq_f32(a); }
static inline vp vp_abs(vp a) { return vabsq_f32(a); }
static inline vp vp_fma(vp a, vp b, vp c) { return vfmaq_f32(c, a, b); }
#define VP_FMA_LANE_TO
#define VP__FMLA(c, b, a, lane)                                                                    \
    __asm__("fmla %0.4s, %1.4s, %2.s[" #lane "]" : "+w"(*(c)) : "w"(b), "w"(a))
static inline void vp_fma_lane_to(vp *c, vp a, size_t lane, vp b) {
    if (lane == 0) // a constant after inlining
        VP__FMLA(c, b, a, 0);
    else if (lane == 1)
        VP__FMLA(c, b, a, 1);
    else if (lane == 2)
        VP__FMLA(c, b, a, 2);
    else
        VP__FMLA(c, b, a, 3);
}
static inline vp vp_fnma(vp a, vp b, vp c) { return vfmsq_f32(c, a, b); }
// vp_max returns a if a > b, otherwise b. vp_min returns a if a < b, otherwise b. x86-64 does the
// same. NEON's own maximum and minimum give other results for zeros and NaN, so they are not used.
static inline vp vp_max(vp a, vp b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vp vp_min(vp a, vp b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vp vp_gt(vp a, vp b, vp x, vp y) { return vbslq_f32(vcgtq_f32(a, b), x, y); }
static inline vp vp_copysign(vp mag, vp sign) {
    return vbslq_f32(vdupq_n_u32(0x80000000u), sign, mag);
}
static inline vp vp_round(vp x) { return vrndnq_f32(x); }
static inline vp vp_scale2(vp p, vp n) {
    const int32x4_t e = vshlq_n_s32(vcvtnq_s32_f32(n), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), e));
}

// The halving order: adds lanes 0 + 2 and 1 + 3, then these two sums.
static inline float vp_hsum(vp v) {
    const float32x2_t b = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}
static inline float vp_hmax(vp v) {
    const float32x2_t l = vget_low_f32(v), h = vget_high_f32(v);
    const float32x2_t b = vbsl_f32(vcgt_f32(l, h), l, h);
    const float x = vget_lane_f32(b, 0), y = vget_lane_f32(b, 1);
    return x > y ? x : y;
}

static inline vp vp_dp2(vp acc, vp a, vp b) {
    const uint32x4_t x = vreinterpretq_u32_f32(a), y = vreinterpretq_u32_f32(b);
    const uint32x4_t odd = vdupq_n_u32(0xffff0000u);
    acc = vp_fma(vreinterpretq_f32_u32(vandq_u32(x, odd)), vreinterpretq_f32_u32(vandq_u32(y, odd)),
                 acc);
    return vp_fma(vreinterpretq_f32_u32(vshlq_n_u32(x, 16)),
                  vreinterpretq_f32_u32(vshlq_n_u32(y, 16)), acc);
}
static inline void vp_transpose(vp r[VP_LANES]) {
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

static inline vp vp_keep_n(vp v, size_t n, vp other) {
    static const uint32_t ramp[8] = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};
    return vbslq_f32(vld1q_u32(ramp + 4 - n), v, other);
}

// VD_LANES of f64, from as many of f32.
#define VD_LANES 2
typedef float64x2_t vd;
static inline vd vd_load_f32(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }

#endif
