// bf16_unpack.h: the words of a bf16 panel (bf16.h) from a quantised panel. Hot sources include
// this file.
//
// A unit has the parts of unquantise.h, but the integers are arranged for the words of pairs. The
// 32 columns are four groups of eight. Of each group, the integers of 16 steps are in vectors of 16
// words of 32 bits: word 2 c has the even steps of column c, word 2 c + 1 the odd steps. So the f32
// numbers of a pair of steps are in the order in which VCVTNE2PS2BF16 makes words of two groups.
// The vectors of the four groups follow each other, then those of the next 16 steps.
//
//   4 bits       one vector: pair 2 j at bit 4 j, pair 2 j + 1 at bit 16 + 4 j
//   8 bits       two vectors of four pairs: pair j at bit 8 j - 1. A bit before the lowest is the
//                highest, here and below. 128 is added to each integer
//   5 or 6 bits  the low 4 bits are in one vector: pair j at bit 8 j + 1, pair 4 + j at bit 8 j
//   + 5.
//                The high bits have vectors of their own. Of 6 bits: a vector for 32 steps; each 8
//                steps i, pair j at bit 8 j + 5 + 2 i. Of 5 bits: a vector for 32 steps of two
//                groups; each 8 steps i, pair j at bit 8 j + 5 + i, and 4 bits more for the second
//                group
#ifndef RLHF_CPU_PRODUCT_BF16_UNPACK_H
#define RLHF_CPU_PRODUCT_BF16_UNPACK_H

#include "machine/vec.h"

#include "unquantise.h"

#define UNPACK_STEPS ((size_t)16) // of k, which are unpacked together
#define UNPACK_PAIRS (UNPACK_STEPS / 2)

// The scales of a run, in the order of the f32 numbers: for each of the four groups.
struct unpack_scales {
    vp d[4], m[4];
};

UNQUANTISE_INLINE void unpack_scales_at(struct unpack_scales *to, const uint8_t *unit, size_t i,
                                        const int format) {
    static const uint32_t twice[2][16] __attribute__((aligned(64))) = {
        {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7},
        {8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15}};
    struct unquantise_scales s;
    unquantise_scales_at(&s, unit, i, format);
#pragma GCC unroll 4
    for (size_t g = 0; g < 4; g++) {
        const __m512i order = _mm512_load_si512(twice[g % 2]);
        to->d[g] = _mm512_permutexvar_ps(order, s.d[g / 2]);
        to->m[g] =
            rlhf__quantised_adds(format) ? _mm512_permutexvar_ps(order, s.m[g / 2]) : vp_zero();
    }
}

// The element of the number q, which is the integer less the format's zero.
UNQUANTISE_INLINE vp unpack_element(vp q, vp d, vp m, const int format) {
    return rlhf__quantised_adds(format) ? vp_fma(d, q, m) : vp_mul(d, q);
}

// Four bits at bit 0, and four bits at bit 16 (`high`), less 8 for Q4_0.
UNQUANTISE_INLINE vp unpack_nibble(__m512i v, const int high, const int format) {
    static const float low_of[2][16]
        __attribute__((aligned(64))) = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                        {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}};
    // The same as bf16, the upper halves of the f32 numbers, for five bits, the highest without
    // use.
#define NUMBERS                                                                                    \
    0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130,     \
        0x4140, 0x4150, 0x4160, 0x4170
#define NUMBERS_LESS_8                                                                             \
    0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040,     \
        0x4080, 0x40a0, 0x40c0, 0x40e0
    static const uint16_t high_of[2][32]
        __attribute__((aligned(64))) = {{NUMBERS, NUMBERS}, {NUMBERS_LESS_8, NUMBERS_LESS_8}};
#undef NUMBERS
#undef NUMBERS_LESS_8
    const int t = format == RLHF_FORMAT_Q4_0;
    if (high)
        return (vp)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, v, _mm512_load_si512(high_of[t]));
    return _mm512_permutexvar_ps(v, _mm512_load_ps(low_of[t]));
}

// Four integers of 5, 6 or 8 bits in each word of v, as the format's numbers. An integer at bit 17
// (of 8 bits: 15) of a word becomes a part of the fraction of 64 (256), so the f32 number is 64
// (256) and the integer.
UNQUANTISE_INLINE vp unpack_byte(__m512i v, const unsigned byte, const int format) {
    const int bits = rlhf__quantised_bits(format);
    const __m512i mask = _mm512_set1_epi32(bits == 8 ? 0x7f8000 : bits == 6 ? 0x7e0000 : 0x3e0000);
    const __m512i base = _mm512_set1_epi32(bits == 8 ? 0x43800000 : 0x42800000);
    const float zero = format == RLHF_FORMAT_Q8_0   ? 256 + 128
                       : format == RLHF_FORMAT_Q6_K ? 64 + 32
                       : format == RLHF_FORMAT_Q5_0 ? 64 + 16
                                                    : 64;
    const __m512i at = byte == 2   ? v
                       : byte == 0 ? _mm512_rol_epi32(v, 16)
                       : byte == 1 ? _mm512_rol_epi32(v, 8)
                                   : _mm512_ror_epi32(v, 8);
    const __m512i number = _mm512_ternarylogic_epi32(at, mask, base, 0xea); // at & mask | base
    return vp_sub((vp)number, vp_set1(zero));
}

UNQUANTISE_INLINE __m512i unpack_load(const uint8_t *p) { return _mm512_loadu_si512(p); }

// Four integers in each word: of 8 steps of group g. i: the step in the unit.
UNQUANTISE_INLINE __m512i unpack_bytes_of(const uint8_t *unit, size_t i, const size_t half,
                                          const size_t g, const int format) {
    const uint8_t *at = unit + rlhf__quantised_at(format) * NC, *high = unit;
    const size_t run = i / UNPACK_STEPS, part = i / UNPACK_STEPS % 2 * 2 + half;
    if (format == RLHF_FORMAT_Q8_0) return unpack_load(at + ((run * 2 + half) * 4 + g) * 64);
    __m512i low = unpack_load(at + (run * 4 + g) * 64), v;
    if (half) low = _mm512_ror_epi32(low, 4);
    high += rlhf__quantised_high(format) * NC;
    if (format == RLHF_FORMAT_Q6_K)
        v = _mm512_rorv_epi32(unpack_load(high + (run / 2 * 4 + g) * 64),
                              _mm512_set1_epi32((int)(2 * part)));
    else
        v = _mm512_rorv_epi32(unpack_load(high + g / 2 * 64),
                              _mm512_set1_epi32((int)(part + g % 2 * 4)));
    const __m512i mask = _mm512_set1_epi32(0x1e1e1e1e);
    return _mm512_ternarylogic_epi32(mask, low, v, 0xca); // mask ? low : v
}

// Words of a pair, of the numbers of the groups 2 h and 2 h + 1. If `rows` is not NULL, it gets the
// numbers of the two steps instead, and the result is not used.
UNQUANTISE_INLINE __m512i unpack_pair(vp x, vp y, float *rows) {
    static const uint32_t every_other[2][16] __attribute__((aligned(64))) = {
        {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
        {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}};
    if (!rows) return (__m512i)_mm512_cvtne2ps_pbh(y, x);
    for (size_t odd = 0; odd < 2; odd++)
        vp_store(rows + odd * NC,
                 _mm512_permutex2var_ps(x, _mm512_load_si512(every_other[odd]), y));
    return _mm512_setzero_si512();
}

// Words of the steps i .. i + 15 of a unit, for the columns of the groups 2 h and 2 h + 1. i is a
// multiple of 16. If `rows` is not NULL, it gets the numbers of the steps instead, and w is not
// used.
UNQUANTISE_INLINE void unpack_words(__m512i w[UNPACK_PAIRS], float *rows, const uint8_t *unit,
                                    size_t i, const size_t h, const struct unpack_scales *s,
                                    const int format) {
    const vp d0 = s->d[2 * h], d1 = s->d[2 * h + 1], m0 = s->m[2 * h], m1 = s->m[2 * h + 1];
    if (rlhf__quantised_bits(format) == 4) {
        const uint8_t *at =
            unit + rlhf__quantised_at(format) * NC + (i / UNPACK_STEPS * 4 + 2 * h) * 64;
        const __m512i v0 = unpack_load(at), v1 = unpack_load(at + 64);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            const __m512i a = _mm512_srli_epi32(v0, 4 * j), b = _mm512_srli_epi32(v1, 4 * j);
#pragma GCC unroll 2
            for (int high = 0; high < 2; high++) {
                const vp x = unpack_element(unpack_nibble(a, high, format), d0, m0, format);
                const vp y = unpack_element(unpack_nibble(b, high, format), d1, m1, format);
                const size_t pair = 2 * j + (unsigned)high;
                w[pair] = unpack_pair(x, y, rows ? rows + 2 * pair * NC : NULL);
            }
        }
        return;
    }
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++) {
        const __m512i v0 = unpack_bytes_of(unit, i, half, 2 * h, format);
        const __m512i v1 = unpack_bytes_of(unit, i, half, 2 * h + 1, format);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            const vp x = unpack_element(unpack_byte(v0, j, format), d0, m0, format);
            const vp y = unpack_element(unpack_byte(v1, j, format), d1, m1, format);
            const size_t pair = 4 * half + j;
            w[pair] = unpack_pair(x, y, rows ? rows + 2 * pair * NC : NULL);
        }
    }
}

#endif
