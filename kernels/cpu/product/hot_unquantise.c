// hot_unquantise.c: the elements of a quantised panel (unquantise.h) as a panel of an f32 GEMM.
#include "machine/hot.h"
#include "machine/vec.h"

#include "unquantise.h"

#define INLINE static inline __attribute__((always_inline))

// `format` and `form` are constants after inlining.
INLINE void panel_of(float *to, const uint8_t *panel, size_t k0, size_t k, const int format,
                     const int form) {
    const size_t elements = (size_t)rlhf_format_elements(format);
    const size_t run = unquantise_run(format), unit_bytes = NC * (size_t)rlhf_format_bytes(format);
    const size_t swap = form == RLHF__UNQUANTISE_PAIRS;
    struct unquantise_scales s;
    for (size_t i = k0, end; i < k0 + k; i = end) { // the steps of one run
        const uint8_t *unit = panel + i / elements * unit_bytes;
        end = (i / run + 1) * run;
        if (end > k0 + k) end = k0 + k;
        unquantise_fetch(panel, i, format);
        unquantise_scales_at(&s, unit, i % elements, format);
        for (size_t at = i % elements, stop = at + end - i; at < stop; at += 8, to += 8 * NC) {
#pragma GCC unroll 4
            for (unsigned part = 0; part < 4; part++) { // four steps of one vector of columns
                const size_t h = part % 2;
                const unsigned from = part / 2 * 4;
                vp w[4];
                unquantise_four(w, unit, at, from, h, &s, format);
#pragma GCC unroll 4
                for (size_t j = 0; j < 4; j++)
                    vp_store(to + ((from + j) ^ swap) * NC + h * VP_LANES,
                             form ? rounded(w[j]) : w[j]);
            }
        }
    }
}

#define FORMS(format)                                                                              \
    case format:                                                                                   \
        if (form == RLHF__UNQUANTISE_F32)                                                          \
            panel_of(to, panel, k0, k, format, RLHF__UNQUANTISE_F32);                              \
        else if (form == RLHF__UNQUANTISE_BF16)                                                    \
            panel_of(to, panel, k0, k, format, RLHF__UNQUANTISE_BF16);                             \
        else                                                                                       \
            panel_of(to, panel, k0, k, format, RLHF__UNQUANTISE_PAIRS);                            \
        break;

void RLHF__HOT(unquantise)(float *to, const uint8_t *panel, int format, size_t k0, size_t k,
                           int form) {
    switch (format) {
        FORMS(RLHF_FORMAT_Q8_0)
        FORMS(RLHF_FORMAT_Q4_0)
        FORMS(RLHF_FORMAT_Q4_1)
        FORMS(RLHF_FORMAT_Q4_K)
        FORMS(RLHF_FORMAT_Q6_K)
        FORMS(RLHF_FORMAT_Q5_0)
        FORMS(RLHF_FORMAT_Q5_1)
    default:
        break;
    }
}
