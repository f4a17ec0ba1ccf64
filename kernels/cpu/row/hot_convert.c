// hot_convert.c: f32 <-> bf16 and the residual sum. Compiled once per instruction-set level
// (vec.h).
#include "machine/hot.h"
#include "machine/vec.h"

void RLHF__HOT(to_bf16)(uint16_t *dst, const float *src, size_t n) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store_bf16(dst + i, vf_load(src + i));
    if (i < n) vf_store_bf16_n(dst + i, vf_load_n(src + i, n - i), n - i);
}

void RLHF__HOT(to_f32)(float *dst, const uint16_t *src, size_t n) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_load_bf16(src + i));
    if (i < n) vf_store_n(dst + i, vf_load_bf16_n(src + i, n - i), n - i);
}

void RLHF__HOT(to_f32_pairs)(float *dst, const uint16_t *src, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t pair, f[2];
        memcpy(&pair, src + 2 * i, sizeof pair);
        f[0] = pair & 0xffff0000u;
        f[1] = pair << 16;
        memcpy(dst + 2 * i, f, sizeof f);
    }
    if (n % 2 == 0) return;
    const uint32_t last = (uint32_t)src[n - 1] << 16;
    dst[n - 1] = 0.0f;
    memcpy(dst + n, &last, sizeof last);
}

void RLHF__HOT(add)(float *dst, const void *src, int bf16, size_t n) {
    const uint16_t *h = src;
    const float *f = src;
    size_t i = 0;
    if (bf16) {
        for (; i + VF_LANES <= n; i += VF_LANES)
            vf_store(dst + i, vf_add(vf_load(dst + i), vf_load_bf16(h + i)));
        if (i < n)
            vf_store_n(dst + i, vf_add(vf_load_n(dst + i, n - i), vf_load_bf16_n(h + i, n - i)),
                       n - i);
        return;
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_add(vf_load(dst + i), vf_load(f + i)));
    if (i < n)
        vf_store_n(dst + i, vf_add(vf_load_n(dst + i, n - i), vf_load_n(f + i, n - i)), n - i);
}

// An element of x plus the elements of src at the same place.
static inline vp sum_at(const float *x, const float *const *src, size_t n_src, size_t i) {
    vp v = vp_load(x + i);
    for (size_t j = 0; j < n_src; j++)
        v = vp_add(v, vp_load(src[j] + i));
    return v;
}

// Like add_all. Returns the number of elements done, in whole vectors.
static inline size_t add_vectors(float *x, const float *const *src, size_t n_src, float *to,
                                 const int stream, size_t n) {
    size_t i = 0;
    for (; i + VP_LANES <= n; i += VP_LANES) {
        const vp v = sum_at(x, src, n_src, i);
        vp_store(x + i, to ? vp_zero() : v);
        if (to && stream)
            vp_stream(to + i, v);
        else if (to)
            vp_store(to + i, v);
    }
    return i;
}

void RLHF__HOT(add_all)(float *x, const float *const *src, size_t n_src, float *to, int stream,
                        size_t n) {
    size_t i = stream ? add_vectors(x, src, n_src, to, 1, n) : add_vectors(x, src, n_src, to, 0, n);
    if (stream) vp_stream_end();
    for (; i < n; i++) {
        float v = x[i];
        for (size_t j = 0; j < n_src; j++)
            v += src[j][i];
        x[i] = to ? 0 : v;
        if (to) to[i] = v;
    }
}
