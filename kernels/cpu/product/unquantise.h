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
//   Q4_K        before the integers, three arrays of words: the low 4 bits of the scales of the
//               eight runs of 32 steps; the same of the minima; the high 2 bits of the scales, then
//               of the minima
//   Q6_K        before the integers, four arrays of words: the scales of 16 runs of 16 steps, four
//               in a word; after them, 16 arrays of words: the high 2 bits of 16 steps
//   Q5_0, Q5_1  after the integers, one array of words: the high bits of 32 steps
//
// The panels of a bf16 weight on a CPU with bf16 GEMMs have the same parts, but another order of
// the integers: see bf16_unpack.h.
//
// The arithmetic is that of enum rlhf_format. So all levels give the same bits.
#ifndef RLHF_CPU_PRODUCT_UNQUANTISE_H
#define RLHF_CPU_PRODUCT_UNQUANTISE_H

#include "gemm_tile.h"
#include "product/quantised_layout.h"

typedef uint32_t vi __attribute__((vector_size(VP_LANES * 4)));
typedef int32_t vi_signed __attribute__((vector_size(VP_LANES * 4)));
typedef uint16_t vi_half __attribute__((vector_size(VP_LANES * 2)));
typedef int8_t vi_bytes __attribute__((vector_size(VP_LANES)));
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

// VP_LANES signed bytes.
UNQUANTISE_INLINE vp vi_bytes_to_f32(const uint8_t *p) {
#if VP_LANES == 16
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
#elif VP_LANES == 8
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
#else
    vi_bytes bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vi_to_f32((vi) __builtin_convertvector(bytes, vi_signed));
#endif
}

// d * q + m. The product is exact, because d has at most 17 bits and q at most 5. So a fused
// operation gives the same bits.
UNQUANTISE_INLINE vp times_plus(vp d, vp q, vp m) {
#if defined VP_FMA_TO || defined VP_FMA_LANE_TO
    return vp_fma(d, q, m);
#else
    return vp_add(vp_mul(d, q), m);
#endif
}

// vi_nibble_to_f32 returns the four bits of each lane from bit `at` on, and vi_nibble_less_8 these
// bits less 8. vi_five and vi_six take four bits of `low` and one or two of `high`; vi_five_less_16
// and vi_six_less_32 subtract. f16_to_f32 widens VP_LANES f16 numbers.
#if VP_LANES == 16
// Entry (v >> at) % 16 of a table, in each lane.
#define LOOK_UP(v, at, ...)                                                                        \
    _mm512_permutexvar_ps((__m512i)((v) >> (at)), _mm512_setr_ps(__VA_ARGS__))

UNQUANTISE_INLINE vp vi_nibble_to_f32(vi v, unsigned at) {
    return LOOK_UP(v, at, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

UNQUANTISE_INLINE vp vi_nibble_less_8(vi v, unsigned at) {
    return LOOK_UP(v, at, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
}

UNQUANTISE_INLINE vp vi_six_less_32(vi low, unsigned at, vi high, unsigned high_at) {
    const vp times_16 =
        LOOK_UP(high, high_at, -32, -16, 0, 16, -32, -16, 0, 16, -32, -16, 0, 16, -32, -16, 0, 16);
    return vp_add(vi_nibble_to_f32(low, at), times_16);
}

UNQUANTISE_INLINE vp vi_five(vi low, unsigned at, vi high, unsigned high_at) {
    const vp times_16 =
        LOOK_UP(high, high_at, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16);
    return vp_add(vi_nibble_to_f32(low, at), times_16);
}

UNQUANTISE_INLINE vp vi_five_less_16(vi low, unsigned at, vi high, unsigned high_at) {
    const vp times_16 =
        LOOK_UP(high, high_at, -16, 0, -16, 0, -16, 0, -16, 0, -16, 0, -16, 0, -16, 0, -16, 0);
    return vp_add(vi_nibble_to_f32(low, at), times_16);
}

UNQUANTISE_INLINE vp f16_to_f32(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#else
UNQUANTISE_INLINE vp vi_nibble_to_f32(vi v, unsigned at) { return vi_to_f32(v >> at & 15); }

UNQUANTISE_INLINE vp vi_nibble_less_8(vi v, unsigned at) {
    return vp_sub(vi_nibble_to_f32(v, at), vp_set1(8.0f));
}

UNQUANTISE_INLINE vp vi_six_less_32(vi low, unsigned at, vi high, unsigned high_at) {
    const vi v = (low >> at & 15) | (high >> high_at & 3) << 4;
    return vp_sub(vi_to_f32(v), vp_set1(32.0f));
}

UNQUANTISE_INLINE vp vi_five(vi low, unsigned at, vi high, unsigned high_at) {
    return vi_to_f32((low >> at & 15) | (high >> high_at & 1) << 4);
}

UNQUANTISE_INLINE vp vi_five_less_16(vi low, unsigned at, vi high, unsigned high_at) {
    return vp_sub(vi_five(low, at, high, high_at), vp_set1(16.0f));
}

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
#endif

// The numbers that a format's scales are for a run of steps.
struct unquantise_scales {
    vp d[2], m[2]; // of the two vectors of columns; m: see rlhf__quantised_adds
};

UNQUANTISE_INLINE size_t unquantise_run(const int format) {
    return format == RLHF_FORMAT_Q6_K ? 16 : 32;
}

// The bytes of a run in a panel, if they were stored together.
UNQUANTISE_INLINE size_t unquantise_run_bytes(const int format) {
    return NC * (size_t)rlhf_format_bytes(format) * unquantise_run(format) /
           (size_t)rlhf_format_elements(format);
}

// Prefetches as many bytes as step i's run has, which are read later. Processors do not notice by
// themselves in what order the parts of a unit are read.
UNQUANTISE_INLINE void unquantise_fetch(const uint8_t *panel, size_t i, const int format) {
    enum { AHEAD = 4096 };
    const size_t bytes = unquantise_run_bytes(format);
    const uint8_t *at = panel + i / unquantise_run(format) * bytes + AHEAD;
#pragma GCC unroll 32
    for (size_t line = 0; line < bytes; line += 64)
        __builtin_prefetch(at + line, 0, 3);
}

// The scales of step i of a unit.
UNQUANTISE_INLINE void unquantise_scales_at(struct unquantise_scales *s, const uint8_t *unit,
                                            size_t i, const int format) {
    for (size_t h = 0; h < 2; h++) {
        const size_t c = h * VP_LANES;
        const vp d = f16_to_f32(unit + 2 * c);
        s->d[h] = d;
        if (format == RLHF_FORMAT_Q4_1 || format == RLHF_FORMAT_Q5_1)
            s->m[h] = f16_to_f32(unit + 2 * (NC + c));
        if (format == RLHF_FORMAT_Q4_K) {
            const uint8_t *words = unit + 4 * (NC + c);
            const unsigned run = (unsigned)(i / 32);
            const vi low = vi_load(words) >> 4 * run & 15;
            const vi low_min = vi_load(words + 4 * NC) >> 4 * run & 15;
            const vi high = vi_load(words + 8 * NC) >> 2 * run;
            s->d[h] = vp_mul(d, vi_to_f32(low | (high & 3) << 4));
            const vp min = vi_to_f32(low_min | (high >> 16 & 3) << 4);
            const vp less = vp_mul(f16_to_f32(unit + 2 * (NC + c)), min);
            s->m[h] = (vp)((vi)less ^ 0x80000000u);
        }
        if (format == RLHF_FORMAT_Q6_K) {
            const unsigned run = (unsigned)(i / 16);
            const vi words = vi_load(unit + 2 * NC + 4 * (run / 4 * NC + c));
            s->d[h] = vp_mul(d, vi_byte_to_f32(words, run % 4));
        }
    }
}

// Elements of the steps i + from .. i + from + 3 of a unit, of the columns of vector h. i is a
// multiple of 8, and `from` is 0 or 4.
UNQUANTISE_INLINE void unquantise_four(vp w[4], const uint8_t *unit, size_t i, const unsigned from,
                                       const size_t h, const struct unquantise_scales *s,
                                       const int format) {
    const size_t c = h * VP_LANES;
    const vp d = s->d[h];
    if (format == RLHF_FORMAT_Q8_0) {
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++)
            w[j] = vp_mul(vi_bytes_to_f32(unit + 2 * NC + (i + from + j) * NC + c), d);
        return;
    }
    const vi low = vi_load(unit + rlhf__quantised_at(format) * NC + i / 2 * NC + 4 * c);
    if (format == RLHF_FORMAT_Q6_K) {
        const uint8_t *at = unit + rlhf__quantised_high(format) * NC + 4 * (i / 16 * NC + c);
        const vi high = vi_load(at) >> (unsigned)(2 * (i % 16));
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++)
            w[j] = vp_mul(d, vi_six_less_32(low, 4 * (from + j), high, 2 * (from + j)));
        return;
    }
    if (format == RLHF_FORMAT_Q5_0 || format == RLHF_FORMAT_Q5_1) {
        const vi high = vi_load(unit + rlhf__quantised_high(format) * NC + 4 * c) >> (unsigned)i;
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++)
            if (format == RLHF_FORMAT_Q5_0)
                w[j] = vp_mul(d, vi_five_less_16(low, 4 * (from + j), high, from + j));
            else
                w[j] = times_plus(d, vi_five(low, 4 * (from + j), high, from + j), s->m[h]);
        return;
    }
#pragma GCC unroll 4
    for (unsigned j = 0; j < 4; j++)
        if (format == RLHF_FORMAT_Q4_0)
            w[j] = vp_mul(d, vi_nibble_less_8(low, 4 * (from + j)));
        else
            w[j] = times_plus(d, vi_nibble_to_f32(low, 4 * (from + j)), s->m[h]);
}

// Rounds to bf16, to nearest even.
UNQUANTISE_INLINE vp rounded(vp v) {
    uint16_t h[VP_LANES];
    vp_store_bf16(h, v);
    return vp_load_bf16(h);
}

#endif
