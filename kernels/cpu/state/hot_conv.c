// hot_conv.c: causal convolution of each channel over the tokens of a row, and its derivative.
// Compiled once per instruction-set level (vec.h).
//
// y[t] = f(z[t]), z[t] = bias + sum_j weight[j] x[t - taps + 1 + j], added in the order of j.
#include "machine/hot.h"
#include "row/act_vec.h"

enum { BLOCK = RLHF__CONV_BLOCK };

static const float zeros[BLOCK];

// The inputs of token t, oldest first.
INLINE void inputs(const void **p, const struct rlhf__conv_item *it, size_t t) {
    const size_t before = (size_t)it->taps - 1, size = it->bf16 ? 2 : 4;
    for (size_t j = 0; j <= before; j++) {
        if (t + j >= before)
            p[j] = (const char *)it->x + (t + j - before) * (size_t)it->x_stride * size;
        else
            p[j] = it->before[t + j] ? it->before[t + j] : zeros;
    }
}

// z of the channels i .. i+m-1.
INLINE vf sum_at(const struct rlhf__conv_item *it, const void *const *p, const int bf16,
                 const int taps, size_t i, size_t m) {
    vf z = vf_load(it->bias + i);
    for (int j = 0; j < taps; j++)
        z = vf_fma(vf_load(it->weight + (size_t)j * BLOCK + i), load_any(p[j], bf16, i, m), z);
    return z;
}

INLINE size_t lanes(size_t i, size_t n) { return n - i < VF_LANES ? n - i : VF_LANES; }

INLINE void forward(const struct rlhf__conv_item *it, const int bf16, const int taps) {
    const void *p[RLHF__CONV_TAPS];
    char *y = it->y;
    for (size_t t = 0; t < it->n; t++, y += (size_t)it->y_stride * (bf16 ? 2 : 4)) {
        size_t i = 0;
        inputs(p, it, t);
        for (; i + VF_LANES <= it->channels; i += VF_LANES)
            store_any(y, bf16, i, act_any(it->act, sum_at(it, p, bf16, taps, i, VF_LANES)),
                      VF_LANES);
        const size_t m = it->channels - i;
        if (m) store_any(y, bf16, i, act_any(it->act, sum_at(it, p, bf16, taps, i, m)), m);
    }
}

// Models have 3 or 4 taps, whose loops are unrolled.
#define WITH_TAPS(f, it)                                                                           \
    do {                                                                                           \
        if ((it)->taps == 4)                                                                       \
            (it)->bf16 ? f(it, 1, 4) : f(it, 0, 4);                                                \
        else if ((it)->taps == 3)                                                                  \
            (it)->bf16 ? f(it, 1, 3) : f(it, 0, 3);                                                \
        else                                                                                       \
            (it)->bf16 ? f(it, 1, (it)->taps) : f(it, 0, (it)->taps);                              \
    } while (0)

void RLHF__HOT(conv)(const struct rlhf__conv_item *it) { WITH_TAPS(forward, it); }

// Computes dz of all tokens, and the row's sums for the weight and the bias.
INLINE void sums_vec(const struct rlhf__conv_item *it, float *dz, float *sums, const void *dy,
                     const void *const *p, const int bf16, const int taps, size_t i, size_t m) {
    vf d = load_any(dy, bf16, i, m);
    if (it->act) d = act_any_d(it->act, sum_at(it, p, bf16, taps, i, m), d);
    d = vf_keep_n(d, m, vf_zero());
    vf_store(dz + i, d);
    float *s = sums + i;
    for (int j = 0; j < taps; j++, s += BLOCK)
        vf_store(s, vf_fma(d, load_any(p[j], bf16, i, m), vf_load(s)));
    vf_store(s, vf_add(d, vf_load(s)));
}
INLINE void sums_bwd(const struct rlhf__conv_item *it, float *dz, float *sums, const int bf16,
                     const int taps) {
    const void *p[RLHF__CONV_TAPS];
    const char *dy = it->dy;
    for (size_t t = 0; t < it->n; t++, dz += BLOCK, dy += (size_t)it->y_stride * (bf16 ? 2 : 4)) {
        size_t i = 0;
        inputs(p, it, t);
        for (; i + VF_LANES <= it->channels; i += VF_LANES)
            sums_vec(it, dz, sums, dy, p, bf16, taps, i, VF_LANES);
        if (i < it->channels) sums_vec(it, dz, sums, dy, p, bf16, taps, i, it->channels - i);
    }
}

// The gradient of the token that is k tokens after the row's first, in the channels from i on.
INLINE vf gradient(const struct rlhf__conv_item *it, const float *dz, const int taps, int64_t k,
                   size_t i) {
    vf d = vf_zero();
    for (int j = 0; j < taps; j++) {
        const int64_t t = k + taps - 1 - j;
        if (t < 0 || t >= it->n) continue;
        d = vf_fma(vf_load(it->weight + (size_t)j * BLOCK + i), vf_load(dz + (size_t)t * BLOCK + i),
                   d);
    }
    return d;
}

INLINE void backward(const struct rlhf__conv_item *it, const int bf16, const int taps) {
    const int64_t tail = taps - 1, n = it->n;
    float *dz = it->scratch, sums[(RLHF__CONV_TAPS + 1) * BLOCK] = {0};
    char *dx = it->dx;
    sums_bwd(it, dz, sums, bf16, taps);
    for (int64_t t = 0; t < n; t++, dx += (size_t)it->x_stride * (bf16 ? 2 : 4))
        for (size_t i = 0; i < it->channels; i += VF_LANES) {
            vf d = gradient(it, dz, taps, t, i);
            if (it->later && t - n + tail >= 0)
                d = vf_add(d, vf_load(it->later + (size_t)(t - n + tail) * BLOCK + i));
            store_any(dx, bf16, i, d, lanes(i, it->channels));
        }
    for (int64_t r = 0; it->earlier && r < tail; r++)
        for (size_t i = 0; i < it->channels; i += VF_LANES) {
            float *e = it->earlier + (size_t)r * BLOCK + i;
            vf_store(e, vf_add(vf_load(e), gradient(it, dz, taps, r - tail, i)));
        }
    for (size_t i = 0; i < ((size_t)taps + 1) * BLOCK; i += VF_LANES)
        vf_store(it->sums + i, vf_add(vf_load(it->sums + i), vf_load(sums + i)));
}

void RLHF__HOT(conv_bwd)(const struct rlhf__conv_item *it) { WITH_TAPS(backward, it); }
