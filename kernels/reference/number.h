// number.h: reads and writes the elements of f32 and bf16 arrays as doubles.
//
// Every kernel in this directory computes in double, and rounds when it stores a result with these
// functions. Exception: linear_sum also rounds between its two products. The code is slow by
// design.
#ifndef RLHF_KERNELS_REFERENCE_NUMBER_H
#define RLHF_KERNELS_REFERENCE_NUMBER_H

#include "context.h"
#include <string.h>

static inline float rlhf__ref_from_bf16(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Rounds to nearest even. A NaN stays a NaN. A number smaller than 2^-126 in magnitude becomes a
// zero of the same sign, as with the AVX512_BF16 instruction.
static inline uint16_t rlhf__ref_to_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
    if ((bits & 0x7f800000u) == 0) return (uint16_t)((bits >> 16) & 0x8000u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float *rlhf__ref_f32(rlhf_dev p) { return (float *)rlhf__ref_mem(p); }
static inline uint16_t *rlhf__ref_u16(rlhf_dev p) { return (uint16_t *)rlhf__ref_mem(p); }
static inline const int32_t *rlhf__ref_i32(rlhf_dev p) { return (const int32_t *)rlhf__ref_mem(p); }

// Element i of an array of dtype f32 or bf16.
static inline double rlhf__ref_get(rlhf_dev p, int32_t dtype, uint64_t i) {
    if (dtype == RLHF_BF16) return (double)rlhf__ref_from_bf16(rlhf__ref_u16(p)[i]);
    return (double)rlhf__ref_f32(p)[i];
}

static inline void rlhf__ref_put(rlhf_dev p, int32_t dtype, uint64_t i, double v) {
    if (dtype == RLHF_BF16)
        rlhf__ref_u16(p)[i] = rlhf__ref_to_bf16((float)v);
    else
        rlhf__ref_f32(p)[i] = (float)v;
}

// Returns `y`, element c of an output of the size `gamma`: a normalized row times gamma, or a
// log-prob. If r->rounding is set, adds an error of at most rounding_size * gamma. The error
// depends only on the seed, y and c, so equal rows stay equal.
static inline double rlhf__ref_disturbed(const struct rlhf__ref *r, double y, float gamma,
                                         uint64_t c) {
    uint64_t h;
    if (r->rounding == 0) return y;
    memcpy(&h, &y, sizeof h);
    h ^= r->rounding * 0x9e3779b97f4a7c15u + c * 0xd1342543de82ef95u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u; // the mixer of splitmix64 (Steele et al. 2014)
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    const double error = (double)((h ^ (h >> 31)) >> 11) * 0x1p-52 - 1; // in [-1, 1)
    return y + (double)gamma * error * r->rounding_size;
}

#endif
