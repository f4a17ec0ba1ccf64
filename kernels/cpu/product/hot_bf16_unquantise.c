// hot_bf16_unquantise.c: the elements of a quantised panel (unquantise.h) as a panel of a bf16 GEMM
// (bf16.h).
#include "bf16.h"
#include "bf16_words.h"

#define INLINE static inline __attribute__((always_inline))

// `format` is a constant after inlining.
INLINE void panel_of(uint32_t *to, const uint8_t *panel, size_t k0, size_t k, const int format) {
    const size_t elements = (size_t)rlhf_format_elements(format);
    const size_t run = unquantise_run(format), unit_bytes = NC * (size_t)rlhf_format_bytes(format);
    struct unquantise_scales s;
    for (size_t i = k0, end; i < k0 + k; i = end) { // the steps of one run
        const uint8_t *unit = panel + i / elements * unit_bytes;
        end = (i / run + 1) * run;
        if (end > k0 + k) end = k0 + k;
        unquantise_scales_at(&s, unit, i % elements, format);
        for (size_t at = i % elements, stop = at + end - i; at < stop; at += 8, to += 4 * NC) {
#pragma GCC unroll 4
            for (unsigned part = 0; part < 4; part++) { // four steps of one vector of columns
                const size_t h = part % 2;
                const unsigned from = part / 2 * 4;
                uint32_t *words = to + from / 2 * NC + h * VP_LANES;
                vp w[4];
                unquantise_four(w, unit, at, from, h, &s, format);
                _mm512_storeu_si512(words, bf16_words(w[0], w[1]));
                _mm512_storeu_si512(words + NC, bf16_words(w[2], w[3]));
            }
        }
    }
}

#define FORMAT(format)                                                                             \
    case format:                                                                                   \
        panel_of(to, panel, k0, k, format);                                                        \
        break;

void rlhf__bf16_unquantise(uint32_t *to, const uint8_t *panel, int format, size_t k0, size_t k) {
    switch (format) {
        FORMAT(RLHF_FORMAT_Q8_0)
        FORMAT(RLHF_FORMAT_Q4_0)
        FORMAT(RLHF_FORMAT_Q4_1)
        FORMAT(RLHF_FORMAT_Q4_K)
        FORMAT(RLHF_FORMAT_Q6_K)
    default:
        break;
    }
}
