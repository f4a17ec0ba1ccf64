// unquantise.h: the elements of a quantised panel, eight steps of k at a time. Hot sources include
// this file after vec.h.
//
// A panel is the weight of NC columns. It is stored as one unit after the other along k. A unit has
// the blocks of all columns for the same 32 or 256 steps of k, and as many bytes as these blocks.
// All parts of a unit are arrays over the columns. The first is that of the f16 scales d, followed
// by that of m or dmin. The integers are in words of 32 bits, the lowest bits first: a word has
// four steps of Q8_0, otherwise eight steps of 4 bits. So an instruction unpacks the same step of
// many columns. The rest:
//
//   Q4_K  before the integers, three arrays of words: the low 4 bits of the scales of the eight
//   runs
//         of 32 steps; the same of the minima; the high 2 bits of the scales, then of the minima
//   Q6_K  before the integers, four arrays of words: the scales of 16 runs of 16 steps, four in a
//         word; after them, 16 arrays of words: the high 2 bits of 16 steps
//
// The arithmetic is that of enum rlhf_format. No operation is fused, so all levels give the same
// bits.
#ifndef RLHF_CPU_PRODUCT_UNQUANTISE_H
#define RLHF_CPU_PRODUCT_UNQUANTISE_H

#include "gemm_tile.h"
#include "product/quantised_layout.h"

typedef uint32_t vi __attribute__((vector_size(VP_LANES * 4)));
typedef int32_t vi_signed __attribute__((vector_size(VP_LANES * 4)));
typedef uint16_t vi_half __attribute__((vector_size(VP_LANES * 2)));
typedef float vi_float __attribute__((vector_size(VP_LANES * 4)));

#define UNQUANTISE_INLINE static inline __attribute__((always_inline))

UNQUANTISE_INLINE vi vi_load(const uint8_t *p) {
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Whole numbers below 2^24 in magnitude as floats. The lanes are signed.
UNQUANTISE_INLINE vp vi_to_f32(vi v) {
    return (vp) __builtin_convertvector((vi_signed)v, vi_float);
}

// Byte `byte` of each lane, as a signed number.
UNQUANTISE_INLINE vp vi_byte_to_f32(vi v, unsigned byte) {
    return vi_to_f32((vi)((vi_signed)(v << (24 - 8 * byte)) >> 24));
}

// Four bits of each lane, from bit `at` on.
#if VP_LANES == 16
UNQUANTISE_INLINE vp vi_nibble_to_f32(vi v, unsigned at) {
    const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps((__m512i)(v >> at), numbers); // reads the low 4 bits
}
#else
UNQUANTISE_INLINE vp vi_nibble_to_f32(vi v, unsigned at) { return vi_to_f32(v >> at & 15); }
#endif

// VP_LANES f16 numbers.
UNQUANTISE_INLINE vp f16_to_f32(const uint8_t *p) {
    vi_half half;
    memcpy(&half, p, sizeof half);
    const vi bits = __builtin_convertvector(half, vi), number = bits & 0x7fff;
    const vi exponent = bits & 0x7c00, bias = {0};
    const vi normal = (number << 13) + (bias + (112u << 23));
    const vi infinite = (vi)(exponent == 0x7c00) & (112u << 23); // the exponent becomes 255
    const vi denormal = (vi)vp_mul(vi_to_f32(number), vp_set1(0x1p-24f));
    const vi is_denormal = (vi)(exponent == 0);
    const vi size = (denormal & is_denormal) | ((normal + infinite) & ~is_denormal);
    return (vp)(size | (bits & 0x8000) << 16);
}

// The numbers that a format's scales are for a run of steps.
struct unquantise_scales {
    vp d[2], m[2]; // of the two vectors of columns; m: only Q4_1, Q4_K
};

UNQUANTISE_INLINE size_t unquantise_run(const int format) {
    return format == RLHF_FORMAT_Q6_K ? 16 : 32;
}

// The scales of step i of a unit.
UNQUANTISE_INLINE void unquantise_scales_at(struct unquantise_scales *s, const uint8_t *unit,
                                            size_t i, const int format) {
    for (size_t h = 0; h < 2; h++) {
        const size_t c = h * VP_LANES;
        const vp d = f16_to_f32(unit + 2 * c);
        s->d[h] = d;
        if (format == RLHF_FORMAT_Q4_1) s->m[h] = f16_to_f32(unit + 2 * (NC + c));
        if (format == RLHF_FORMAT_Q4_K) {
            const uint8_t *words = unit + 4 * (NC + c);
            const unsigned run = (unsigned)(i / 32);
            const vi low = vi_load(words) >> 4 * run & 15;
            const vi low_min = vi_load(words + 4 * NC) >> 4 * run & 15;
            const vi high = vi_load(words + 8 * NC) >> 2 * run;
            s->d[h] = vp_mul(d, vi_to_f32(low | (high & 3) << 4));
            s->m[h] =
                vp_mul(f16_to_f32(unit + 2 * (NC + c)), vi_to_f32(low_min | (high >> 16 & 3) << 4));
        }
        if (format == RLHF_FORMAT_Q6_K) {
            const unsigned run = (unsigned)(i / 16);
            const vi words = vi_load(unit + 2 * NC + 4 * (run / 4 * NC + c));
            s->d[h] = vp_mul(d, vi_byte_to_f32(words, run % 4));
        }
    }
}

// Elements of the steps i .. i + 7 of a unit, of the columns of vector h. i is a multiple of 8.
UNQUANTISE_INLINE void unquantise_eight(vp w[8], const uint8_t *unit, size_t i, const size_t h,
                                        const struct unquantise_scales *s, const int format) {
    const size_t c = h * VP_LANES;
    const vp d = s->d[h];
    const uint8_t *q = unit + rlhf__quantised_at(format) * NC + 4 * c;
    if (format == RLHF_FORMAT_Q8_0) {
        const vi low = vi_load(q + i * NC), high = vi_load(q + (i + 4) * NC);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            w[j] = vp_mul(vi_byte_to_f32(low, j), d);
            w[4 + j] = vp_mul(vi_byte_to_f32(high, j), d);
        }
        return;
    }
    const vi low = vi_load(q + i / 2 * NC);
    if (format == RLHF_FORMAT_Q6_K) {
        const uint8_t *at = unit + RLHF__Q6_K_HIGH * NC + 4 * (i / 16 * NC + c);
        const vi high = vi_load(at) >> (unsigned)(2 * (i % 16));
#pragma GCC unroll 8
        for (unsigned j = 0; j < 8; j++) {
            const vi v = (low >> 4 * j & 15) | (high >> 2 * j & 3) << 4;
            w[j] = vp_mul(d, vp_sub(vi_to_f32(v), vp_set1(32.0f)));
        }
        return;
    }
#pragma GCC unroll 8
    for (unsigned j = 0; j < 8; j++) {
        const vp v = vi_nibble_to_f32(low, 4 * j);
        if (format == RLHF_FORMAT_Q4_0) w[j] = vp_mul(d, vp_sub(v, vp_set1(8.0f)));
        if (format == RLHF_FORMAT_Q4_1) w[j] = vp_add(vp_mul(d, v), s->m[h]);
        if (format == RLHF_FORMAT_Q4_K) w[j] = vp_sub(vp_mul(d, v), s->m[h]);
    }
}

#endif
