// hot_embed.c: sums and scatters rows of embedding tables. Compiled once per instruction-set
// level (vec.h).
#include "machine/hot.h"
#include "machine/vec.h"

// a s + b[0..m); b NULL: a s
static inline vf scaled(vf a, vf s, const float *b, size_t m) {
    return b ? vf_fma(a, s, m == VF_LANES ? vf_load(b) : vf_load_n(b, m)) : vf_mul(a, s);
}

void RLHF__HOT(embed)(float *out, const int32_t *ids, const int32_t *pos, const float *wte,
                      const float *wpe, float scale, size_t rows, size_t d) {
    const vf s = vf_set1(scale);
    for (size_t t = 0; t < rows; t++) {
        const float *a = wte + (size_t)ids[t] * d, *b = pos ? wpe + (size_t)pos[t] * d : NULL;
        float *o = out + t * d;
        size_t i = 0;
        if (!b && scale == 1.0f) {
            memcpy(o, a, d * sizeof *o);
            continue;
        }
        for (; i + VF_LANES <= d; i += VF_LANES)
            vf_store(o + i, scaled(vf_load(a + i), s, b ? b + i : NULL, VF_LANES));
        if (i < d)
            vf_store_n(o + i, scaled(vf_load_n(a + i, d - i), s, b ? b + i : NULL, d - i), d - i);
    }
}

void RLHF__HOT(embed_bwd)(float *dw, const float *dout, const int32_t *idx, float scale,
                          size_t rows, size_t d, size_t c0, size_t c1) {
    const vf s = vf_set1(scale);
    for (size_t t = 0; t < rows; t++) {
        float *w = dw + (size_t)idx[t] * d;
        const float *g = dout + t * d;
        size_t i = c0;
        for (; i + VF_LANES <= c1; i += VF_LANES)
            vf_store(w + i, vf_fma(vf_load(g + i), s, vf_load(w + i)));
        if (i < c1)
            vf_store_n(w + i, vf_fma(vf_load_n(g + i, c1 - i), s, vf_load_n(w + i, c1 - i)),
                       c1 - i);
    }
}
