// hot_bf16_unquantise.c: the elements of a quantised panel (bf16_unpack.h) as a panel of a bf16
// GEMM (bf16.h), or as f32 numbers.
#include "bf16.h"
#include "bf16_unpack.h"

#define INLINE static inline __attribute__((always_inline))

// Writes words to `to` or, if it is NULL, f32 numbers to `rows`. `format` is a constant after
// inlining, and one of the pointers is NULL.
INLINE void panel_of(uint32_t *to, float *rows, const uint8_t *panel, size_t k0, size_t k,
                     const int format) {
    const size_t elements = (size_t)rlhf_format_elements(format);
    const size_t run = unquantise_run(format), unit_bytes = NC * (size_t)rlhf_format_bytes(format);
    for (size_t i = k0; i < k0 + k; i += run) {
        const uint8_t *unit = panel + i / elements * unit_bytes;
        struct unpack_scales s;
        unquantise_fetch(panel, i, format);
        unpack_scales_at(&s, unit, i % elements, format);
#pragma GCC unroll 2
        for (size_t at = i; at < i + run; at += UNPACK_STEPS)
#pragma GCC unroll 2
            for (size_t h = 0; h < 2; h++) {
                float *row = rows ? rows + (at - k0) * NC + h * VP_LANES : NULL;
                __m512i w[UNPACK_PAIRS];
                unpack_words(w, row, unit, at % elements, h, &s, format);
#pragma GCC unroll 8
                for (size_t j = 0; to && j < UNPACK_PAIRS; j++)
                    _mm512_storeu_si512(to + ((at - k0) / 2 + j) * NC + h * VP_LANES, w[j]);
            }
    }
}

#define FORMAT(format)                                                                             \
    case format:                                                                                   \
        panel_of(TO, panel, k0, k, format);                                                        \
        break;
#define FORMATS                                                                                    \
    FORMAT(RLHF_FORMAT_Q8_0)                                                                       \
    FORMAT(RLHF_FORMAT_Q4_0)                                                                       \
    FORMAT(RLHF_FORMAT_Q4_1)                                                                       \
    FORMAT(RLHF_FORMAT_Q4_K)                                                                       \
    FORMAT(RLHF_FORMAT_Q6_K)                                                                       \
    FORMAT(RLHF_FORMAT_Q5_0)                                                                       \
    FORMAT(RLHF_FORMAT_Q5_1)

void rlhf__bf16_unquantise(uint32_t *to, const uint8_t *panel, int format, size_t k0, size_t k) {
#define TO to, NULL
    switch (format) {
        FORMATS
    default:
        break;
    }
#undef TO
}

void rlhf__bf16_unquantise_f32(float *to, const uint8_t *panel, int format, size_t k0, size_t k) {
#define TO NULL, to
    switch (format) {
        FORMATS
    default:
        break;
    }
#undef TO
}
