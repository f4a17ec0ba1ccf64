// vec_sse2.h: the machine vectors of every x86-64 CPU, 4 lanes. Include vec.h instead.
// SSE2 lacks fma. vp_fma computes it in f64 with the same result bit for bit, and is slow.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_SSE2_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_SSE2_H

#define VP_LANES 4
#define VP_COUNT 16

typedef __m128 vp;

static inline vp vp_zero(void) { return _mm_setzero_ps(); }
static inline vp vp_set1(float x) { return _mm_set1_ps(x); }
static inline vp vp_load(const float *p) { return _mm_loadu_ps(p); }
static inline void vp_store(float *p, vp v) { _mm_storeu_ps(p, v); }
static inline void vp_stream(float *p, vp v) { _mm_stream_ps(p, v); }

static inline vp vp_load_bf16(const uint16_t *p) {
    __m128i h = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), h));
}
static inline void vp_store_bf16(uint16_t *p, vp v) {
    __m128i u = _mm_castps_si128(v);
    __m128i odd = _mm_and_si128(_mm_srli_epi32(u, 16), _mm_set1_epi32(1));
    __m128i r = _mm_add_epi32(u, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
    __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(v, v));
    __m128i q = _mm_or_si128(u, _mm_set1_epi32(0x400000));
    r = _mm_or_si128(_mm_and_si128(nan, q), _mm_andnot_si128(nan, r));
    __m128i exponent = _mm_and_si128(u, _mm_set1_epi32(0x7f800000));
    __m128i small = _mm_cmpeq_epi32(exponent, _mm_setzero_si128());
    r = _mm_andnot_si128(_mm_srli_epi32(small, 1), r); // below 2^-126: keep the sign only
    r = _mm_srai_epi32(r, 16);                         // so that the signed pack below is exact
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi32(r, r));
}

static inline vp vp_add(vp a, vp b) { return _mm_add_ps(a, b); }
static inline vp vp_sub(vp a, vp b) { return _mm_sub_ps(a, b); }
static inline vp vp_mul(vp a, vp b) { return _mm_mul_ps(a, b); }
static inline vp vp_div(vp a, vp b) { return _mm_div_ps(a, b); }
static inline vp vp_sqrt(vp a) { return _mm_sqrt_ps(a); }
static inline vp vp_abs(vp a) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a); }
// p + c, rounded to odd: if the sum is inexact, its last bit is set. A result that is rounded in
// this way and then to f32 equals the exact sum rounded only to f32 (S. Boldo, G. Melquiond,
// "Emulation of a FMA and correctly rounded sums", IEEE Transactions on Computers 57, 2008). The
// error e of the sum comes from TwoSum.
static inline __m128d vp__sum_to_odd(__m128d p, __m128d c) {
    const __m128d s = _mm_add_pd(p, c), cs = _mm_sub_pd(s, p);
    const __m128d e = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, cs)), _mm_sub_pd(c, cs));
    // If the last bit of s is 0 and e is neither 0 nor NaN, move s one step in the direction of e.
    // The step is away from zero if s and e have the same sign.
    const __m128i even = _mm_andnot_si128(_mm_castpd_si128(s), _mm_set1_epi64x(1));
    const __m128d inexact = _mm_and_pd(_mm_cmpneq_pd(e, _mm_setzero_pd()), _mm_cmpord_pd(e, e));
    const __m128i sign = _mm_srai_epi32(_mm_castpd_si128(_mm_xor_pd(s, e)), 31);
    const __m128i toward_zero = _mm_shuffle_epi32(sign, 0xf5);
    const __m128i one = _mm_and_si128(even, _mm_castpd_si128(inexact));
    const __m128i step = _mm_sub_epi64(_mm_xor_si128(one, toward_zero), toward_zero);
    return _mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(s), step));
}
// The product of two f32 is exact in f64.
static inline vp vp_fma(vp a, vp b, vp c) {
    const vp a1 = _mm_movehl_ps(a, a), b1 = _mm_movehl_ps(b, b), c1 = _mm_movehl_ps(c, c);
    const __m128d p0 = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
    const __m128d p1 = _mm_mul_pd(_mm_cvtps_pd(a1), _mm_cvtps_pd(b1));
    const __m128d s0 = vp__sum_to_odd(p0, _mm_cvtps_pd(c));
    const __m128d s1 = vp__sum_to_odd(p1, _mm_cvtps_pd(c1));
    return _mm_movelh_ps(_mm_cvtpd_ps(s0), _mm_cvtpd_ps(s1));
}
static inline vp vp_fnma(vp a, vp b, vp c) {
    return vp_fma(_mm_xor_ps(a, _mm_set1_ps(-0.0f)), b, c);
}
static inline vp vp_max(vp a, vp b) { return _mm_max_ps(a, b); }
static inline vp vp_min(vp a, vp b) { return _mm_min_ps(a, b); }
static inline vp vp_gt(vp a, vp b, vp x, vp y) {
    __m128 m = _mm_cmpgt_ps(a, b);
    return _mm_or_ps(_mm_and_ps(m, x), _mm_andnot_ps(m, y));
}
static inline vp vp_copysign(vp mag, vp sign) {
    return _mm_or_ps(mag, _mm_and_ps(sign, _mm_set1_ps(-0.0f)));
}
static inline vp vp_round(vp x) { return _mm_cvtepi32_ps(_mm_cvtps_epi32(x)); }
static inline vp vp_scale2(vp p, vp n) {
    __m128i e = _mm_slli_epi32(_mm_cvtps_epi32(n), 23);
    return _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(p), e));
}

static inline float vp_hsum(vp v) {
    __m128 b = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline float vp_hmax(vp v) {
    __m128 b = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

static inline vp vp_dp2(vp acc, vp a, vp b) {
    __m128i x = _mm_castps_si128(a), y = _mm_castps_si128(b);
    vp xo = _mm_castsi128_ps(_mm_and_si128(x, _mm_set1_epi32(-65536)));
    vp yo = _mm_castsi128_ps(_mm_and_si128(y, _mm_set1_epi32(-65536)));
    acc = vp_fma(xo, yo, acc);
    return vp_fma(_mm_castsi128_ps(_mm_slli_epi32(x, 16)), _mm_castsi128_ps(_mm_slli_epi32(y, 16)),
                  acc);
}
static inline void vp_transpose(vp r[VP_LANES]) { _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]); }

static inline vp vp_keep_n(vp v, size_t n, vp other) {
    static const int32_t ramp[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    __m128 m = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)(ramp + 4 - n)));
    return _mm_or_ps(_mm_and_ps(m, v), _mm_andnot_ps(m, other));
}

// VD_LANES of f64, from as many of f32.
#define VD_LANES 2
typedef __m128d vd;
static inline vd vd_load_f32(const float *p) {
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

#endif
