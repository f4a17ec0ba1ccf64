// vec_tails.h: the _n loads and stores of vec.h, which copy through a small array. Include
// vec.h instead.
//
// These functions are for levels without masked accesses, and for all levels in sanitizer builds:
// AddressSanitizer and ThreadSanitizer do not see masked accesses, but they see memcpy.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_TAILS_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_TAILS_H

#ifndef VF_MASKED_F32
static inline vf vf_load_n(const float *p, size_t n) {
    float f[VF_LANES] = {0};
    memcpy(f, p, n * sizeof *p);
    return vf_load(f);
}
static inline void vf_store_n(float *p, vf v, size_t n) {
    float f[VF_LANES];
    vf_store(f, v);
    memcpy(p, f, n * sizeof *p);
}
#endif

#if VP_LANES < VF_LANES && !defined(VP_MASKED_F32)
static inline vp vp_load_n(const float *p, size_t n) {
    float f[VP_LANES] = {0};
    memcpy(f, p, n * sizeof *p);
    return vp_load(f);
}
static inline void vp_store_n(float *p, vp v, size_t n) {
    float f[VP_LANES];
    vp_store(f, v);
    memcpy(p, f, n * sizeof *p);
}
#endif

#ifndef VF_MASKED_BF16
static inline vf vf_load_bf16_n(const uint16_t *p, size_t n) {
    uint16_t h[VF_LANES] = {0};
    memcpy(h, p, n * sizeof *p);
    return vf_load_bf16(h);
}
static inline void vf_store_bf16_n(uint16_t *p, vf v, size_t n) {
    uint16_t h[VF_LANES];
    vf_store_bf16(h, v);
    memcpy(p, h, n * sizeof *p);
}
#endif

#endif
