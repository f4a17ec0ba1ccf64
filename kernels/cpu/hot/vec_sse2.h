// hot/vec_sse2.h: the 4-lane level of vec.h, every x86-64 CPU. Include vec.h instead.
// SSE2 lacks fma: vf_fma rounds the product and then the sum.
#ifndef RLHF_KERNELS_CPU_HOT_VEC_SSE2_H
#define RLHF_KERNELS_CPU_HOT_VEC_SSE2_H

#define VF_LANES 4

typedef __m128 vf;

static inline vf vf_zero(void) { return _mm_setzero_ps(); }
static inline vf vf_set1(float x) { return _mm_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm_storeu_ps(p, v); }

static inline vf vf_load_bf16(const uint16_t *p) {
    __m128i h = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), h));
}
static inline void vf_store_bf16(uint16_t *p, vf v) {
    __m128i u = _mm_castps_si128(v);
    __m128i odd = _mm_and_si128(_mm_srli_epi32(u, 16), _mm_set1_epi32(1));
    __m128i r = _mm_add_epi32(u, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
    __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(v, v));
    __m128i q = _mm_or_si128(u, _mm_set1_epi32(0x400000));
    r = _mm_or_si128(_mm_and_si128(nan, q), _mm_andnot_si128(nan, r));
    __m128i exponent = _mm_and_si128(u, _mm_set1_epi32(0x7f800000));
    __m128i small = _mm_cmpeq_epi32(exponent, _mm_setzero_si128());
    r = _mm_andnot_si128(_mm_srli_epi32(small, 1), r); // below 2^-126: keep the sign only
    r = _mm_srai_epi32(r, 16);                         // makes the signed pack below exact
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi32(r, r));
}

static inline vf vf_add(vf a, vf b) { return _mm_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm_sqrt_ps(a); }
static inline vf vf_abs(vf a) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm_sub_ps(c, _mm_mul_ps(a, b)); }
static inline vf vf_max(vf a, vf b) { return _mm_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm_min_ps(a, b); }
static inline vf vf_gt(vf a, vf b, vf x, vf y) {
    __m128 m = _mm_cmpgt_ps(a, b);
    return _mm_or_ps(_mm_and_ps(m, x), _mm_andnot_ps(m, y));
}
static inline vf vf_copysign(vf mag, vf sign) {
    return _mm_or_ps(mag, _mm_and_ps(sign, _mm_set1_ps(-0.0f)));
}
static inline vf vf_round(vf x) { return _mm_cvtepi32_ps(_mm_cvtps_epi32(x)); }
static inline vf vf_scale2(vf p, vf n) {
    __m128i e = _mm_slli_epi32(_mm_cvtps_epi32(n), 23);
    return _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(p), e));
}

static inline float vf_hsum(vf v) {
    __m128 b = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline float vf_hmax(vf v) {
    __m128 b = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

static inline vf vf_dp2(vf acc, vf a, vf b) {
    __m128i x = _mm_castps_si128(a), y = _mm_castps_si128(b);
    vf xo = _mm_castsi128_ps(_mm_and_si128(x, _mm_set1_epi32(-65536)));
    vf yo = _mm_castsi128_ps(_mm_and_si128(y, _mm_set1_epi32(-65536)));
    acc = vf_fma(xo, yo, acc);
    return vf_fma(_mm_castsi128_ps(_mm_slli_epi32(x, 16)), _mm_castsi128_ps(_mm_slli_epi32(y, 16)),
                  acc);
}
static inline void vf_transpose(vf r[VF_LANES]) { _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]); }

static inline vf vf_keep_n(vf v, size_t n, vf other) {
    static const int32_t ramp[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    __m128 m = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)(ramp + 4 - n)));
    return _mm_or_ps(_mm_and_ps(m, v), _mm_andnot_ps(m, other));
}

// VF_LANES / 2 of f64, from as many of f32.
typedef __m128d vd;
static inline vd vd_load_f32(const float *p) {
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

#endif
