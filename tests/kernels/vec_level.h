// vec_level.h: the functions of vec_level.c at each level. Call a level's functions only if the CPU
// supports that level.
#ifndef RLHF_TESTS_KERNELS_VEC_LEVEL_H
#define RLHF_TESTS_KERNELS_VEC_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __aarch64__
#define VEC_LEVELS(X) X(neon)
#else
#define VEC_LEVELS(X) X(baseline) X(avx2) X(avx512) X(avx512_bf16)
#endif

#define VEC_PROTO(level)                                                                           \
    void vec_exp_##level(float *out, const float *x, size_t n);                                    \
    void vec_to_bf16_##level(uint16_t *out, const float *x, size_t n);
VEC_LEVELS(VEC_PROTO)

#endif
