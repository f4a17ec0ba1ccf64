// hot_embed.c: sums and scatters rows of embedding tables. Compiled once per instruction-set
// level (vec.h).
#include "machine/hot.h"
#include "machine/vec.h"

void RLHF__HOT(embed)(float *out, const int32_t *ids, const int32_t *pos, const float *wte,
                      const float *wpe, size_t rows, size_t d) {
    for (size_t t = 0; !pos && t < rows; t++)
        memcpy(out + t * d, wte + (size_t)ids[t] * d, d * sizeof *out);
    for (size_t t = 0; pos && t < rows; t++) {
        const float *a = wte + (size_t)ids[t] * d, *b = wpe + (size_t)pos[t] * d;
        float *o = out + t * d;
        size_t i = 0;
        for (; i + VF_LANES <= d; i += VF_LANES)
            vf_store(o + i, vf_add(vf_load(a + i), vf_load(b + i)));
        if (i < d)
            vf_store_n(o + i, vf_add(vf_load_n(a + i, d - i), vf_load_n(b + i, d - i)), d - i);
    }
}

void RLHF__HOT(embed_bwd)(float *dw, const float *dout, const int32_t *idx, size_t rows, size_t d,
                          size_t c0, size_t c1) {
    for (size_t t = 0; t < rows; t++) {
        float *w = dw + (size_t)idx[t] * d;
        const float *g = dout + t * d;
        size_t i = c0;
        for (; i + VF_LANES <= c1; i += VF_LANES)
            vf_store(w + i, vf_add(vf_load(w + i), vf_load(g + i)));
        if (i < c1)
            vf_store_n(w + i, vf_add(vf_load_n(w + i, c1 - i), vf_load_n(g + i, c1 - i)), c1 - i);
    }
}
