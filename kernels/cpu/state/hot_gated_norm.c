// hot_gated_norm.c: RMS norm of the heads of a row, times the activation of a gate, and its
// derivative. Compiled once per instruction-set level (vec.h).
//
// A head is summed in four vectors, whose lanes are then added in halving order, as in
// hot_rms_norm.c.
#include "machine/hot.h"
#include "row/act_vec.h"

enum { SUMS = 4 };

INLINE size_t lanes(size_t i, size_t n) { return n - i < VF_LANES ? n - i : VF_LANES; }

// The four sums of one pass over a head, added up.
INLINE float total(const vf *s) { return vf_hsum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3]))); }

INLINE float inverse_rms(const void *x, const int bf16, float eps, size_t d) {
    vf s[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < d; i += VF_LANES) {
        const vf v = load_any(x, bf16, i, lanes(i, d));
        s[i / VF_LANES % SUMS] = vf_fma(v, v, s[i / VF_LANES % SUMS]);
    }
    return 1.0f / __builtin_sqrtf(total(s) / (float)d + eps);
}

INLINE void forward(const struct rlhf__gated_row *r, const int bf16) {
    const size_t d = r->head_dim, size = bf16 ? 2 : 4;
    for (size_t h = 0; h < r->heads; h++) {
        const void *x = (const char *)r->x + h * d * size,
                   *gate = (const char *)r->gate + h * d * size;
        const float rinv = inverse_rms(x, bf16, r->eps, d);
        for (size_t i = 0; i < d; i += VF_LANES) {
            const size_t m = lanes(i, d);
            const vf y =
                vf_mul(vf_mul(load_any(x, bf16, i, m), vf_set1(rinv)), load_any(r->gamma, 0, i, m));
            store_any((char *)r->out + h * d * size, bf16, i,
                      vf_mul(y, act_any(r->act, load_any(gate, bf16, i, m))), m);
        }
        if (r->stats) r->stats[h] = rinv;
    }
}

void RLHF__HOT(gated_norm)(const struct rlhf__gated_row *r) {
    r->bf16 ? forward(r, 1) : forward(r, 0);
}

// One head, whose arrays begin `at` bytes after those of the row.
INLINE void head_bwd(const struct rlhf__gated_row *r, const int bf16, size_t at, float rinv) {
    const size_t d = r->head_dim;
    const void *x = (const char *)r->x + at, *gate = (const char *)r->gate + at,
               *dout = (const char *)r->dout + at;
    const vf rs = vf_set1(rinv);
    vf s[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < d; i += VF_LANES) {
        const size_t m = lanes(i, d), u = i / VF_LANES % SUMS;
        const vf xhat = vf_mul(load_any(x, bf16, i, m), rs); // 0 past the head
        const vf g = vf_mul(
            vf_mul(load_any(dout, bf16, i, m), act_any(r->act, load_any(gate, bf16, i, m))), xhat);
        if (r->part) store_any(r->part, 0, i, vf_add(g, load_any(r->part, 0, i, m)), m);
        s[u] = vf_fma(g, load_any(r->gamma, 0, i, m), s[u]);
    }
    const vf mean = vf_set1(total(s) / (float)d);
    for (size_t i = 0; i < d; i += VF_LANES) {
        const size_t m = lanes(i, d);
        const vf xhat = vf_mul(load_any(x, bf16, i, m), rs), z = load_any(gate, bf16, i, m);
        const vf g = vf_mul(load_any(dout, bf16, i, m), load_any(r->gamma, 0, i, m));
        store_any((char *)r->dx + at, bf16, i,
                  vf_mul(rs, vf_fnma(xhat, mean, vf_mul(g, act_any(r->act, z)))), m);
        store_any((char *)r->dgate + at, bf16, i, act_any_d(r->act, z, vf_mul(g, xhat)), m);
    }
}

INLINE void backward(const struct rlhf__gated_row *r, const int bf16) {
    const size_t bytes = r->head_dim * (bf16 ? 2 : 4);
    for (size_t h = 0; h < r->heads; h++)
        head_bwd(r, bf16, h * bytes,
                 r->stats ? r->stats[h]
                          : inverse_rms((const char *)r->x + h * bytes, bf16, r->eps, r->head_dim));
}

void RLHF__HOT(gated_norm_bwd)(const struct rlhf__gated_row *r) {
    r->bf16 ? backward(r, 1) : backward(r, 0);
}
