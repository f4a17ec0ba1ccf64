// vec_flush.h: flushes denormals in the same way as VDPBF16PS, for code that computes the
// same dot products with other instructions. Include vec.h instead.
//
// vp_flush_on() returns the previous mode, and vp_flush_off() restores it. Between the two calls,
// denormal operands count as zero, and results that are denormal after rounding become zero. The
// sign is kept. (aarch64 differs in one case, because it tests the result before rounding: a result
// that rounds up to 2^-126 is 2^-126 on x86-64 and 0 on aarch64.) VP_PIN(v) and VF_PIN(v) stop the
// compiler from moving the computation of v across such a call.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_FLUSH_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_FLUSH_H

#ifdef __aarch64__
// FPCR, bit 24 (FZ).
static inline unsigned vp_flush_on(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" ::"r"(mode | (uint64_t)1 << 24));
    return (unsigned)mode;
}
static inline void vp_flush_off(unsigned mode) {
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)mode));
}
#else
static inline unsigned vp_flush_on(void) {
    const unsigned flush_and_daz = 0x8040;
    unsigned mode, flush;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    flush = mode | flush_and_daz;
    __asm__ volatile("ldmxcsr %0" ::"m"(flush));
    return mode;
}
static inline void vp_flush_off(unsigned mode) { __asm__ volatile("ldmxcsr %0" ::"m"(mode)); }
#endif

#if defined(__aarch64__)
#define VP_PIN(v) __asm__ volatile("" : "+w"(v))
#elif VP_LANES == 16
#define VP_PIN(v) __asm__ volatile("" : "+v"(v))
#else
#define VP_PIN(v) __asm__ volatile("" : "+x"(v))
#endif

// For vf_dp2. With AVX512_BF16, the instruction itself flushes.
#ifdef __AVX512BF16__
static inline unsigned vf_flush_on(void) { return 0; }
static inline void vf_flush_off(unsigned mode) { (void)mode; }
#define VF_PIN(v) ((void)(v))
#else
static inline unsigned vf_flush_on(void) { return vp_flush_on(); }
static inline void vf_flush_off(unsigned mode) { vp_flush_off(mode); }
#if VP_LANES == 16
#define VF_PIN(v) VP_PIN(v)
#elif VP_LANES == 8
#define VF_PIN(v)                                                                                  \
    do {                                                                                           \
        VP_PIN((v).p[0]);                                                                          \
        VP_PIN((v).p[1]);                                                                          \
    } while (0)
#else
#define VF_PIN(v)                                                                                  \
    do {                                                                                           \
        VP_PIN((v).p[0]);                                                                          \
        VP_PIN((v).p[1]);                                                                          \
        VP_PIN((v).p[2]);                                                                          \
        VP_PIN((v).p[3]);                                                                          \
    } while (0)
#endif
#endif

#endif
