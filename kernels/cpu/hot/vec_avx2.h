// hot/vec_avx2.h: the 8-lane level of vec.h (AVX2 + FMA). Include vec.h instead.
#ifndef RLHF_KERNELS_CPU_HOT_VEC_AVX2_H
#define RLHF_KERNELS_CPU_HOT_VEC_AVX2_H

#define VF_LANES 8

typedef __m256 vf;

static inline __m256i vf__mask(size_t n) {
    static const int32_t ramp[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ramp + 8 - n));
}

static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_set1(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
#ifndef RLHF_SANITIZED // see vec_tails.h
#define VF_MASKED_F32
static inline vf vf_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, vf__mask(n)); }
static inline void vf_store_n(float *p, vf v, size_t n) { _mm256_maskstore_ps(p, vf__mask(n), v); }
#endif

static inline vf vf_load_bf16(const uint16_t *p) {
    __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
static inline __m128i vf__narrow(vf v) {
    __m256i u = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    r = _mm256_blendv_epi8(r, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
    __m256i exponent = _mm256_and_si256(u, _mm256_set1_epi32(0x7f800000));
    __m256i small = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    r = _mm256_andnot_si256(_mm256_srli_epi32(small, 1), r); // below 2^-126: keep the sign only
    r = _mm256_srai_epi32(r, 16);
    return _mm_packs_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
static inline void vf_store_bf16(uint16_t *p, vf v) {
    _mm_storeu_si128((__m128i *)(void *)p, vf__narrow(v));
}

static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_gt(vf a, vf b, vf x, vf y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline vf vf_copysign(vf mag, vf sign) {
    return _mm256_or_ps(mag, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}
static inline vf vf_round(vf x) { return _mm256_round_ps(x, 8); } // nearest even, no exception
static inline vf vf_scale2(vf p, vf n) {
    __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
}

static inline float vf_hsum(vf v) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline float vf_hmax(vf v) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

static inline vf vf_dp2(vf acc, vf a, vf b) {
    __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    vf xo = _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-65536)));
    vf yo = _mm256_castsi256_ps(_mm256_and_si256(y, _mm256_set1_epi32(-65536)));
    acc = vf_fma(xo, yo, acc);
    return vf_fma(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                  _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)), acc);
}
static inline void vf_transpose(vf r[VF_LANES]) {
    vf t[VF_LANES];
    for (int i = 0; i < 8; i += 4) { // 4 x 4 inside each 128-bit half
        vf a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
        vf c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (int i = 0; i < 4; i++) { // then the halves
        r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
}

static inline vf vf_keep_n(vf v, size_t n, vf other) {
    return _mm256_blendv_ps(other, v, _mm256_castsi256_ps(vf__mask(n)));
}

// VF_LANES / 2 of f64, from as many of f32.
typedef __m256d vd;
static inline vd vd_load_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }

#endif
