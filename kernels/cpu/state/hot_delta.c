// hot_delta.c: the gated delta rule, token by token. Compiled once per instruction-set level
// (vec.h).
//
// With S the state before a token, u = S^T k, d = b (v - g u), S = g S + k d^T, out = S^T q. The
// sums over the keys are added in ascending order, one column of values per lane. So the bits do
// not depend on how a row is divided into calls, or on the level.
//
// A block of columns stays in the first-level cache for a tile of tokens. The update of one token
// and the sum u of the next one are computed in the same pass over the block.
#include "delta_vec.h"

#if VP_LANES == 16
enum { VECTORS = 4 };
#else
enum { VECTORS = 2 };
#endif
enum { TILE = 32, COLUMNS = VECTORS * VF_LANES, COLUMNS_MOST = 64 };

// The tokens of a tile: normalized queries and keys [TILE, width], and the gates.
struct tile {
    float *q, *k, *g, *b;
    size_t width;
};

INLINE void read_tile(const struct tile *w, const struct rlhf__delta_item *it, const int bf16,
                      size_t t0, size_t n) {
    const size_t row = (size_t)it->x_stride * (bf16 ? 2 : 4), d = (size_t)it->key_dim;
    for (size_t t = 0; t < n; t += VF_LANES) {
        const struct gates g = read_gates(it, bf16, t0 + t, lanes(t, n));
        vf_store(w->g + t, vf_exp(g.log_g));
        vf_store(w->b + t, g.b);
    }
    for (size_t t = 0; t < n; t++) {
        read_unit(w->q + t * w->width, (const char *)it->q + (t0 + t) * row, bf16, it->scale,
                  it->eps, d);
        read_unit(w->k + t * w->width, (const char *)it->k + (t0 + t) * row, bf16, 1.0f, it->eps,
                  d);
    }
}

// u = S^T k of a block s of columns
INLINE void read_state(vf *u, const float *s, const float *k, size_t key_dim) {
    for (int c = 0; c < VECTORS; c++)
        u[c] = vf_zero();
    for (size_t i = 0; i < key_dim; i++, s += COLUMNS) {
        const vf ki = vf_set1(k[i]);
        for (int c = 0; c < VECTORS; c++)
            u[c] = vf_fma(vf_load(s + c * VF_LANES), ki, u[c]);
    }
}

// S = g S + k d^T; o = S^T q; if there is a next token, u = S^T next
INLINE void update(float *s, vf *o, vf *u, const vf *d, float g, const float *k, const float *q,
                   const float *next, const int with_next, size_t key_dim) {
    const vf gv = vf_set1(g);
    for (int c = 0; c < VECTORS; c++)
        o[c] = u[c] = vf_zero();
    for (size_t i = 0; i < key_dim; i++, s += COLUMNS) {
        const vf ki = vf_set1(k[i]), qi = vf_set1(q[i]), ni = vf_set1(with_next ? next[i] : 0.0f);
        for (int c = 0; c < VECTORS; c++) {
            const vf v = vf_fma(ki, d[c], vf_mul(gv, vf_load(s + c * VF_LANES)));
            vf_store(s + c * VF_LANES, v);
            o[c] = vf_fma(v, qi, o[c]);
            if (with_next) u[c] = vf_fma(v, ni, u[c]);
        }
    }
}

// The tokens t0 .. t0+n-1 in the columns from `column` on.
INLINE void run_tile(const struct tile *w, const struct rlhf__delta_item *it, const int bf16,
                     float *s, size_t column, size_t t0, size_t n) {
    const size_t size = bf16 ? 2 : 4, nk = (size_t)it->key_dim, nv = (size_t)it->value_dim;
    vf u[VECTORS], o[VECTORS], d[VECTORS];
    read_state(u, s, w->k, nk);
    for (size_t t = 0; t < n; t++) {
        const char *v = (const char *)it->v + (t0 + t) * (size_t)it->x_stride * size;
        const float *q = w->q + t * w->width, *k = w->k + t * w->width;
        for (int c = 0; c < VECTORS; c++) {
            const size_t at = column + (size_t)c * VF_LANES;
            const vf x = load_any(v, bf16, at, lanes(at, nv));
            d[c] = vf_mul(vf_set1(w->b[t]), vf_fnma(vf_set1(w->g[t]), u[c], x));
        }
        if (t + 1 < n)
            update(s, o, u, d, w->g[t], k, q, k + w->width, 1, nk);
        else
            update(s, o, u, d, w->g[t], k, q, k, 0, nk);
        char *out = it->out;
        for (int c = 0; out && c < VECTORS; c++) {
            const size_t at = column + (size_t)c * VF_LANES;
            store_any(out + (t0 + t) * (size_t)it->out_stride * size, bf16, at, o[c],
                      lanes(at, nv));
        }
    }
}

// Copies a state to blocks of columns, or back. Reads and writes the state from its first to its
// last number, because it comes from memory while a model samples.
INLINE void load_blocks(float *s, const float *from, size_t nk, size_t nv) {
    for (size_t i = 0; i < nk; i++)
        for (size_t c = 0; c < up(nv, COLUMNS); c += VF_LANES) {
            const size_t m = from ? lanes(c, nv) : 0;
            vf_store(s + c / COLUMNS * COLUMNS * nk + i * COLUMNS + c % COLUMNS,
                     m ? load_any(from + i * nv, 0, c, m) : vf_zero());
        }
}
INLINE void store_blocks(const float *s, float *to, size_t nk, size_t nv) {
    for (size_t i = 0; i < nk; i++)
        for (size_t c = 0; c < nv; c += VF_LANES)
            store_any(to + i * nv, 0, c,
                      vf_load(s + c / COLUMNS * COLUMNS * nk + i * COLUMNS + c % COLUMNS),
                      lanes(c, nv));
}

INLINE void forward(const struct rlhf__delta_item *it, const int bf16) {
    const size_t nk = (size_t)it->key_dim, nv = (size_t)it->value_dim, width = up(nk, VF_LANES);
    float *p = it->scratch;
    const struct tile w = {p, p + TILE * width, p + 2 * TILE * width, p + 2 * TILE * width + TILE,
                           width};
    float *s = w.b + TILE;
    load_blocks(s, it->from, nk, nv);
    for (size_t t = 0; t < it->n; t += TILE) {
        const size_t n = it->n - t < TILE ? it->n - t : TILE;
        read_tile(&w, it, bf16, t, n);
        for (size_t c = 0; c < nv; c += COLUMNS)
            run_tile(&w, it, bf16, s + c * nk, c, t, n);
    }
    if (it->to) store_blocks(s, it->to, nk, nv);
}

void RLHF__HOT(delta)(const struct rlhf__delta_item *it) {
    it->bf16 ? forward(it, 1) : forward(it, 0);
}
