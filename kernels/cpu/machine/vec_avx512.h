// vec_avx512.h: the 16-lane levels of vec.h (AVX-512 F/BW/DQ/VL, with or without BF16).
// Include vec.h instead.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_AVX512_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_AVX512_H

#define VF_LANES 16

typedef __m512 vf;

static inline __mmask16 vf__mask(size_t n) { return (__mmask16)((1u << n) - 1u); }

static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_set1(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }

static inline vf vf__widen(__m256i h) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
static inline vf vf_load_bf16(const uint16_t *p) {
    return vf__widen(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#ifdef __AVX512BF16__
static inline __m256i vf__narrow(vf v) { return (__m256i)_mm512_cvtneps_pbh(v); }
#else
static inline __m256i vf__narrow(vf v) {
    const __m512i u = _mm512_castps_si512(v), quiet = _mm512_set1_epi32(0x400000);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u, quiet);
    const __mmask16 small = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
    r = _mm512_mask_and_epi32(r, small, u, _mm512_set1_epi32(INT32_MIN)); // keep only the sign
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
}
#endif
static inline void vf_store_bf16(uint16_t *p, vf v) {
    _mm256_storeu_si256((__m256i *)(void *)p, vf__narrow(v));
}

#ifndef RLHF_SANITIZED // see vec_tails.h
#define VF_MASKED_F32
#define VF_MASKED_BF16
static inline vf vf_load_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(vf__mask(n), p);
}
static inline void vf_store_n(float *p, vf v, size_t n) {
    _mm512_mask_storeu_ps(p, vf__mask(n), v);
}
static inline vf vf_load_bf16_n(const uint16_t *p, size_t n) {
    return vf__widen(_mm256_maskz_loadu_epi16(vf__mask(n), p));
}
static inline void vf_store_bf16_n(uint16_t *p, vf v, size_t n) {
    _mm256_mask_storeu_epi16(p, vf__mask(n), vf__narrow(v));
}
#endif

static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf vf_abs(vf a) { return _mm512_abs_ps(a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_gt(vf a, vf b, vf x, vf y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}
static inline vf vf_copysign(vf mag, vf sign) {
    return _mm512_or_ps(mag, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
}
static inline vf vf_round(vf x) { return _mm512_roundscale_ps(x, 8); } // nearest even, no exception
static inline vf vf_scale2(vf p, vf n) { return _mm512_scalef_ps(p, n); }

static inline float vf_hsum(vf v) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline float vf_hmax(vf v) {
    __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

#ifdef __AVX512BF16__
static inline vf vf_dp2(vf acc, vf a, vf b) {
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_castps_si512(a),
                            (__m512bh)_mm512_castps_si512(b));
}
#else
static inline vf vf_dp2(vf acc, vf a, vf b) {
    const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
    const __m512i odd = _mm512_set1_epi32(-65536);
    acc = vf_fma(_mm512_castsi512_ps(_mm512_and_si512(x, odd)),
                 _mm512_castsi512_ps(_mm512_and_si512(y, odd)), acc);
    return vf_fma(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                  _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)), acc);
}
#endif
static inline void vp_transpose(vf r[VF_LANES]) {
    vf t[VF_LANES];
    for (int i = 0; i < 16; i += 4) { // 4 x 4 inside each 128-bit part
        vf a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
        vf c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm512_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int i = 0; i < 4; i++) { // then the 128-bit parts
        vf a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
        vf b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
        vf c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
        vf d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
        r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}
static inline void vf_transpose_n(vf r[VF_LANES], size_t rows, size_t columns) {
    (void)rows;
    (void)columns;
    vp_transpose(r);
}

static inline vf vf_keep_n(vf v, size_t n, vf other) {
    return _mm512_mask_blend_ps(vf__mask(n), other, v);
}

// VD_LANES of f64, from as many of f32.
#define VD_LANES 8
typedef __m512d vd;
static inline vd vd_load_f32(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }

// The machine's vector is vf itself.
#define VP_LANES VF_LANES
typedef vf vp;
#define vp_zero       vf_zero
#define vp_set1       vf_set1
#define vp_load       vf_load
#define vp_load_n     vf_load_n
#define vp_store      vf_store
#define vp_store_n    vf_store_n
#define vp_add        vf_add
#define vp_sub        vf_sub
#define vp_mul        vf_mul
#define vp_fma        vf_fma
#define vp_load_bf16  vf_load_bf16
#define vp_store_bf16 vf_store_bf16
#define vp_stream     _mm512_stream_ps
#define VP_COUNT      32
#define VP_FMA_TO
static inline void vp_fma_to(vp *c, vp a, vp b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*c) : "v"(a), "v"(b));
}

#endif
