// vec_avx2.h: the machine vectors of AVX2 + FMA, 8 lanes. Include vec.h instead.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_AVX2_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_AVX2_H

#define VP_LANES 8
#define VP_COUNT 16

typedef __m256 vp;

static inline __m256i vp__mask(size_t n) {
    static const int32_t ramp[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ramp + 8 - n));
}

static inline vp vp_zero(void) { return _mm256_setzero_ps(); }
static inline vp vp_set1(float x) { return _mm256_set1_ps(x); }
static inline vp vp_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vp_store(float *p, vp v) { _mm256_storeu_ps(p, v); }
static inline void vp_stream(float *p, vp v) { _mm256_stream_ps(p, v); }
#ifndef RLHF_SANITIZED // see vec_tails.h
#define VP_MASKED_F32
static inline vp vp_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, vp__mask(n)); }
static inline void vp_store_n(float *p, vp v, size_t n) { _mm256_maskstore_ps(p, vp__mask(n), v); }
#endif

static inline vp vp_load_bf16(const uint16_t *p) {
    __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
static inline __m128i vp__narrow(vp v) {
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
static inline void vp_store_bf16(uint16_t *p, vp v) {
    _mm_storeu_si128((__m128i *)(void *)p, vp__narrow(v));
}

static inline vp vp_add(vp a, vp b) { return _mm256_add_ps(a, b); }
static inline vp vp_sub(vp a, vp b) { return _mm256_sub_ps(a, b); }
static inline vp vp_mul(vp a, vp b) { return _mm256_mul_ps(a, b); }
static inline vp vp_div(vp a, vp b) { return _mm256_div_ps(a, b); }
static inline vp vp_sqrt(vp a) { return _mm256_sqrt_ps(a); }
static inline vp vp_abs(vp a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vp vp_fma(vp a, vp b, vp c) { return _mm256_fmadd_ps(a, b, c); }
#define VP_FMA_TO
static inline void vp_fma_to(vp *c, vp a, vp b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*c) : "x"(a), "x"(b));
}
static inline vp vp_fnma(vp a, vp b, vp c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vp vp_max(vp a, vp b) { return _mm256_max_ps(a, b); }
static inline vp vp_min(vp a, vp b) { return _mm256_min_ps(a, b); }
static inline vp vp_gt(vp a, vp b, vp x, vp y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline vp vp_copysign(vp mag, vp sign) {
    return _mm256_or_ps(mag, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}
static inline vp vp_round(vp x) { return _mm256_round_ps(x, 8); } // nearest even, no exception
static inline vp vp_scale2(vp p, vp n) {
    __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
}

static inline float vp_hsum(vp v) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline float vp_hmax(vp v) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

static inline vp vp_dp2(vp acc, vp a, vp b) {
    __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    vp xo = _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-65536)));
    vp yo = _mm256_castsi256_ps(_mm256_and_si256(y, _mm256_set1_epi32(-65536)));
    acc = vp_fma(xo, yo, acc);
    return vp_fma(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                  _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)), acc);
}
static inline void vp_transpose(vp r[VP_LANES]) {
    vp t[VP_LANES];
    for (int i = 0; i < 8; i += 4) { // 4 x 4 inside each 128-bit half
        vp a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
        vp c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
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

static inline vp vp_keep_n(vp v, size_t n, vp other) {
    return _mm256_blendv_ps(other, v, _mm256_castsi256_ps(vp__mask(n)));
}

// VD_LANES of f64, from as many of f32.
#define VD_LANES 4
typedef __m256d vd;
static inline vd vd_load_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }

#endif
