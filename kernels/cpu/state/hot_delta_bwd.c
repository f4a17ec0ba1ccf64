// hot_delta_bwd.c: the derivative of the gated delta rule. Compiled once per instruction-set level
// (vec.h).
//
// C = 16 tokens are computed together, as products of small matrices. For token t of a chunk with
// the state S before it, the factors h(t, i) = g(i+1) .. g(t), and the factor h(t) = g(1) .. g(t):
//   e(t) = v(t) - h(t) S^T k(t) - sum over i < t of h(t, i) (k(t) . k(i)) d(i),   d(t) = b(t) e(t),
//   S' = h(C) S + sum of h(C, i) k(i) d(i)^T, the state after the chunk.
// With D the gradient of S', o(t) that of the output, and f(t) = D(t)^T k(t), where D(t) is the
// gradient of the state after token t:
//   f(t) = h(C, t) D^T k(t) + sum over s >= t of h(s, t) (q(s) . k(t)) o(s)
//          - sum over s > t of h(s, t) (k(s) . k(t)) dv(s),   dv(t) = b(t) f(t),   db(t) = f . e,
//   dq(t) = h(t) S o(t) + sum over i <= t of h(t, i) (o(t) . d(i)) k(i),
//   dk(t) = h(C, t) D d(t) - h(t) S dv(t) + sum over s >= t of h(s, t) (o(s) . d(t)) q(s)
//           - sum over s > t of h(s, t) (dv(s) . d(t)) k(s)
//           - sum over i < t of h(t, i) (dv(t) . d(i)) k(i),
//   D before the chunk = h(C) D + sum of h(s) (q(s) o(s)^T - k(s) dv(s)^T).
// The gradient of log g(t) is the sum of D * S before token t (element by element). Call it r(t-1):
//   r(t-1) = r(t) + q(t) . dq(t) - d(t) . f(t) - dv(t) . (v(t) - e(t)),
// and before a chunk r is computed from D and S themselves, so errors do not accumulate.
//
// States are kept every SPAN tokens, and recomputed in between. A product of matrices adds its
// terms in ascending order, so the bits are the same at all levels.
#include "delta_chunk.h"

_Static_assert((int)C == (int)VF_LANES, "a row of a [C, C] matrix is a vector");

// The tokens of a chunk after the row's end have k, q, v, b and dout 0, and log g 0: they change
// nothing.
INLINE void read_rows(float *to, size_t width, const void *x, const int bf16, int64_t stride,
                      size_t n, size_t d) {
    for (size_t t = 0; t < C; t++)
        for (size_t i = 0; i < width; i += VF_LANES) {
            const size_t m = t < n ? lanes(i, d) : 0;
            const char *row = (const char *)x + t * (size_t)stride * (bf16 ? 2 : 4);
            vf_store(to + t * width + i, m ? load_any(row, bf16, i, m) : vf_zero());
        }
}

// Reads what the state needs of the tokens t0 .. t0+n-1.
INLINE void read_chunk(const struct work *w, const struct chunk *c,
                       const struct rlhf__delta_item *it, const int bf16, size_t t0, size_t n) {
    const size_t size = bf16 ? 2 : 4, row = (size_t)it->x_stride * size;
    const struct gates g = read_gates(it, bf16, t0, n);
    vf_store(c->log_g, g.log_g);
    vf_store(c->b, g.b);
    vf_store(c->z, g.z);
    float sum[C], total = 0.0f;
    for (size_t t = 0; t < C; t++)
        sum[t] = total += c->log_g[t];
    const vf sums = vf_load(sum);
    vf_store(c->from, vf_exp(sums));
    for (size_t t = 0; t < C; t++) {
        const vf gone = vf_min(vf_sub(vf_set1(sum[t]), sums), vf_zero());
        vf_store(c->decay + t * C, vf_keep_n(vf_exp(gone), t + 1, vf_zero()));
        for (size_t i = 0; t >= n && i < w->keys; i += VF_LANES)
            vf_store(c->k + t * w->keys + i, vf_zero());
        if (t < n)
            read_unit(c->k + t * w->keys, (const char *)it->k + (t0 + t) * row, bf16, 1.0f, it->eps,
                      (size_t)it->key_dim);
    }
    read_rows(c->v, w->values, (const char *)it->v + t0 * row, bf16, it->x_stride, n,
              (size_t)it->value_dim);
    turn(c->kt, c->k, C, w->keys);
}

// Reads what the gradients need in addition.
INLINE void read_more(const struct work *w, const struct chunk *c,
                      const struct rlhf__delta_item *it, const int bf16, size_t t0, size_t n) {
    const size_t size = bf16 ? 2 : 4, row = (size_t)it->x_stride * size;
    for (size_t t = 0; t < C; t++) {
        for (size_t i = 0; t >= n && i < w->keys; i += VF_LANES)
            vf_store(c->q + t * w->keys + i, vf_zero());
        if (t < n)
            read_unit(c->q + t * w->keys, (const char *)it->q + (t0 + t) * row, bf16, it->scale,
                      it->eps, (size_t)it->key_dim);
    }
    read_rows(c->grads, w->values, (const char *)it->dout + t0 * (size_t)it->out_stride * size,
              bf16, it->out_stride, n, (size_t)it->value_dim);
}

// to[rows, width] = from, row t times factor[t] (and times -1 if `minus` is set)
INLINE void scale_rows(float *to, const float *from, const float *factor, size_t step, float sign,
                       size_t width) {
    for (size_t t = 0; t < C; t++)
        for (size_t i = 0; i < width; i += VF_LANES)
            vf_store(to + t * width + i,
                     vf_mul(vf_load(from + t * width + i), vf_set1(sign * factor[t * step])));
}

// The columns of solve from c on.
INLINE void solve_columns(float *x, float *y, const float *a, const float *b, int down,
                          size_t width, size_t c, const int vectors) {
    for (size_t n = 0; n < C; n++) {
        const size_t t = down ? C - 1 - n : n;
        vf s[MM_ROWS];
        for (int v = 0; v < vectors; v++)
            s[v] = vf_load(x + t * width + c + (size_t)v * VF_LANES);
        for (size_t j = 0; j < n; j++) {
            const size_t i = down ? C - 1 - j : j;
            const vf f = vf_set1(a[t * C + i]);
            for (int v = 0; v < vectors; v++)
                s[v] = vf_fnma(f, vf_load(y + i * width + c + (size_t)v * VF_LANES), s[v]);
        }
        for (int v = 0; v < vectors; v++) {
            vf_store(x + t * width + c + (size_t)v * VF_LANES, s[v]);
            vf_store(y + t * width + c + (size_t)v * VF_LANES, vf_mul(vf_set1(b[t]), s[v]));
        }
    }
}

// x[t] -= sum of a[t, i] y[i] over the tokens i before t, for t ascending; or over those after t,
// for t descending. Between, y[t] = b[t] x[t].
INLINE void solve(float *x, float *y, const float *a, const float *b, int down, size_t width) {
    size_t c = 0;
    for (; c + MM_ROWS * VF_LANES <= width; c += MM_ROWS * VF_LANES)
        solve_columns(x, y, a, b, down, width, c, MM_ROWS);
    for (; c < width; c += VF_LANES)
        solve_columns(x, y, a, b, down, width, c, 1);
}

// Computes e and d of a chunk, and the state after it.
static void chunk_forward(const struct work *w, const struct chunk *c, const float *s, float *to) {
    const size_t nk = w->keys, nv = w->values;
    scale_rows(w->big[0], c->k, c->from, 1, -1.0f, nk);
    mm(c->e, c->v, 1.0f, C, nv, (struct mat){w->big[0], nk, 1}, s, nk);
    mm(c->kk, NULL, 0.0f, C, C, (struct mat){c->k, nk, 1}, c->kt, nk);
    for (size_t t = 0; t < C; t++)
        vf_store(w->small[0] + t * C, vf_mul(vf_load(c->kk + t * C), vf_load(c->decay + t * C)));
    solve(c->e, c->d, w->small[0], c->b, 0, nv);
    const vf last = vf_load(c->decay + (C - 1) * C);
    for (size_t i = 0; i < nk; i++)
        vf_store(w->wide + i * C, vf_mul(vf_load(c->kt + i * C), last));
    mm(to, s, c->from[C - 1], nk, nv, (struct mat){w->wide, C, 1}, c->d, C);
}

// Computes dv of a chunk in the second half of c->grads, and f.
static void chunk_dv(const struct work *w, const struct chunk *c, const float *grad) {
    const size_t nk = w->keys, nv = w->values;
    vf m[C];
    scale_rows(w->big[0], c->k, c->decay + (C - 1) * C, 1, 1.0f, nk);
    mm(w->f, NULL, 0.0f, C, nv, (struct mat){w->big[0], nk, 1}, grad, nk);
    mm(w->small[0], NULL, 0.0f, C, C, (struct mat){c->q, nk, 1}, c->kt, nk);
    for (size_t s = 0; s < C; s++)
        m[s] = vf_mul(vf_load(w->small[0] + s * C), vf_load(c->decay + s * C));
    vf_transpose_n(m, C, C);
    for (size_t t = 0; t < C; t++)
        vf_store(w->small[1] + t * C, m[t]);
    mm(w->f, w->f, 1.0f, C, nv, (struct mat){w->small[1], C, 1}, c->grads, C);
    for (size_t s = 0; s < C; s++)
        m[s] = vf_mul(vf_load(c->kk + s * C), vf_load(c->decay + s * C));
    vf_transpose_n(m, C, C);
    for (size_t t = 0; t < C; t++)
        vf_store(w->small[1] + t * C, m[t]);
    solve(w->f, c->grads + C * nv, w->small[1], c->b, 1, nv);
}

// The matrices of the scores: small[0] = decay * (o . d), small[1] its transpose, small[2] = minus
// decay * (dv . d) without the diagonal, plus its transpose.
static void chunk_scores(const struct work *w, const struct chunk *c) {
    const size_t nv = w->values;
    vf m[C], n[C];
    turn(w->dt, c->d, C, nv);
    mm(w->small[0], NULL, 0.0f, C, C, (struct mat){c->grads, nv, 1}, w->dt, nv);
    mm(w->small[2], NULL, 0.0f, C, C, (struct mat){c->grads + C * nv, nv, 1}, w->dt, nv);
    for (size_t s = 0; s < C; s++) {
        const vf decay = vf_load(c->decay + s * C);
        m[s] = vf_mul(vf_load(w->small[0] + s * C), decay);
        vf_store(w->small[0] + s * C, m[s]);
        n[s] = vf_keep_n(vf_mul(vf_load(w->small[2] + s * C), decay), s, vf_zero());
        vf_store(w->small[2] + s * C, n[s]);
    }
    vf_transpose_n(m, C, C);
    vf_transpose_n(n, C, C);
    for (size_t s = 0; s < C; s++) {
        vf_store(w->small[1] + s * C, m[s]);
        const vf both = vf_add(n[s], vf_load(w->small[2] + s * C));
        vf_store(w->small[2] + s * C, vf_sub(vf_zero(), both));
    }
}

// Computes dq in big[0] and dk in big[1]; s is the state before the chunk. Uses w->wide.
static void chunk_dqk(const struct work *w, const struct chunk *c, const float *s,
                      const float *grad) {
    const size_t nk = w->keys, nv = w->values;
    const struct mat wide = {w->wide, nv, 1};
    turn(w->turned, s, nk, nv);
    turn(w->grad_turned, grad, nk, nv);
    scale_rows(w->wide, c->grads, c->from, 1, 1.0f, nv);
    mm(w->big[0], NULL, 0.0f, C, nk, wide, w->turned, nv);
    mm(w->big[0], w->big[0], 1.0f, C, nk, (struct mat){w->small[0], C, 1}, c->k, C);
    scale_rows(w->wide, c->d, c->decay + (C - 1) * C, 1, 1.0f, nv);
    mm(w->big[1], NULL, 0.0f, C, nk, wide, w->grad_turned, nv);
    scale_rows(w->wide, c->grads + C * nv, c->from, 1, -1.0f, nv);
    mm(w->big[1], w->big[1], 1.0f, C, nk, wide, w->turned, nv);
    mm(w->big[1], w->big[1], 1.0f, C, nk, (struct mat){w->small[1], C, 1}, c->q, C);
    mm(w->big[1], w->big[1], 1.0f, C, nk, (struct mat){w->small[2], C, 1}, c->k, C);
}

// grad becomes the gradient of the state before the chunk.
static void chunk_grad(const struct work *w, const struct chunk *c, float *grad) {
    const size_t nk = w->keys, nv = w->values;
    turn(w->turned, c->q, C, nk); // [K, C]
    const vf from = vf_load(c->from), minus = vf_sub(vf_zero(), from);
    for (size_t i = 0; i < nk; i++) {
        vf_store(w->wide + 2 * i * C, vf_mul(vf_load(w->turned + i * C), from));
        vf_store(w->wide + (2 * i + 1) * C, vf_mul(vf_load(c->kt + i * C), minus));
    }
    mm(grad, grad, c->from[C - 1], nk, nv, (struct mat){w->wide, 2 * C, 1}, c->grads, 2 * C);
}

// Stores m gates, `stride` elements apart.
INLINE void store_gates(void *p, const int bf16, int64_t stride, vf v, size_t m) {
    float f[VF_LANES];
    uint16_t h[VF_LANES];
    vf_store(f, v);
    vf_store_bf16(h, v);
    for (size_t i = 0; i < m; i++) {
        if (bf16)
            ((uint16_t *)p)[i * (size_t)stride] = h[i];
        else
            ((float *)p)[i * (size_t)stride] = f[i];
    }
}

// Stores the gradients of the gates. r is the sum of D * S after the chunk, `before` that before
// it.
INLINE void put_gates(const struct work *w, const struct chunk *c,
                      const struct rlhf__delta_item *it, const int bf16, size_t t0, size_t n,
                      float r, float before) {
    const size_t nk = w->keys, nv = w->values;
    float db[C] = {0}, dlog[C] = {0};
    const float *dv = c->grads + C * nv;
    for (size_t t = n; t-- > 0;) {
        float used[4];
        used[0] = dot(c->q + t * nk, w->big[0] + t * nk, nk);
        used[1] = dot(c->d + t * nv, w->f + t * nv, nv);
        used[2] = dot(dv + t * nv, c->v + t * nv, nv);
        used[3] = dot(dv + t * nv, c->e + t * nv, nv);
        r = r + used[0] - used[1] - (used[2] - used[3]);
        dlog[t] = t ? r : before;
        db[t] = dot(w->f + t * nv, c->e + t * nv, nv);
    }
    const vf b = vf_load(c->b), dl = vf_load(dlog), s = sigmoid(vf_load(c->z));
    const vf a = vf_exp(vf_set1(it->a_log));
    const vf dz = vf_mul(vf_sub(vf_zero(), vf_mul(a, s)), dl);
    const vf dbeta = vf_mul(vf_load(db), vf_mul(b, vf_sub(vf_set1(1.0f), b)));
    const size_t at = t0 * (size_t)it->gate_stride * (bf16 ? 2 : 4);
    store_gates((char *)it->dbeta + at, bf16, it->gate_stride, dbeta, n);
    store_gates((char *)it->dalpha + at, bf16, it->gate_stride, dz, n);
    it->sums[0] += vf_hsum(vf_mul(vf_load(c->log_g), dl));
    it->sums[1] += vf_hsum(dz);
}

// Stores dv, and adds dq and dk to it->dqk.
INLINE void put_rows(const struct work *w, const struct chunk *c, const struct rlhf__delta_item *it,
                     const int bf16, size_t t0, size_t n) {
    const size_t nk = w->keys, nv = (size_t)it->value_dim;
    for (size_t t = 0; t < n; t++) {
        const size_t row = (t0 + t) * (size_t)it->x_stride * (bf16 ? 2 : 4);
        for (size_t i = 0; i < nv; i += VF_LANES)
            store_any((char *)it->dv + row, bf16, i, vf_load(c->grads + (C + t) * w->values + i),
                      lanes(i, nv));
        float *to = it->dqk + (t0 + t) * 2 * nk;
        for (size_t i = 0; i < nk; i += VF_LANES) {
            vf q = vf_load(w->big[0] + t * nk + i), k = vf_load(w->big[1] + t * nk + i);
            if (!it->first) q = vf_add(vf_load(to + i), q), k = vf_add(vf_load(to + nk + i), k);
            vf_store(to + i, q);
            vf_store(to + nk + i, k);
        }
    }
}

// dx = scale (dy - y (y . dy)) / |x|, y = x / |x|
INLINE void put_unit(void *dx, const void *x, const float *dy, const int bf16, float scale,
                     float eps, size_t d) {
    const float inv = inverse_length(x, bf16, eps, d);
    vf s[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < d; i += VF_LANES) {
        const vf y = vf_mul(load_any(x, bf16, i, lanes(i, d)), vf_set1(inv));
        s[i / VF_LANES % 4] = vf_fma(y, vf_load(dy + i), s[i / VF_LANES % 4]);
    }
    const vf along = vf_set1(vf_hsum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3]))));
    for (size_t i = 0; i < d; i += VF_LANES) {
        const size_t m = lanes(i, d);
        const vf y = vf_mul(load_any(x, bf16, i, m), vf_set1(inv));
        store_any(dx, bf16, i, vf_mul(vf_set1(scale * inv), vf_fnma(y, along, vf_load(dy + i))), m);
    }
}

// The chunks of span `i`, from the last one to the first. *r is the sum of D * S after the span on
// entry, unless `end` is set, and that before it on return.
INLINE void span_backward(const struct work *w, const struct rlhf__delta_item *it, const int bf16,
                          size_t i, int end, float *r) {
    const size_t state = w->keys * w->values, t0 = i * SPAN;
    const size_t n = it->n - t0 < SPAN ? it->n - t0 : SPAN, chunks = (n + C - 1) / C;
    memcpy(w->s[0], w->kept + i * state, state * sizeof(float));
    for (size_t j = 0; j < chunks; j++) {
        read_chunk(w, &w->chunk[j], it, bf16, t0 + j * C, n - j * C < C ? n - j * C : C);
        chunk_forward(w, &w->chunk[j], w->s[j], w->s[j + 1]);
    }
    if (end) *r = dot(it->grad, w->s[chunks], state);
    for (size_t j = chunks; j-- > 0;) {
        const struct chunk *c = &w->chunk[j];
        const size_t t = t0 + j * C, m = n - j * C < C ? n - j * C : C;
        read_more(w, c, it, bf16, t, m);
        chunk_dv(w, c, it->grad);
        chunk_scores(w, c);
        chunk_dqk(w, c, w->s[j], it->grad);
        chunk_grad(w, c, it->grad);
        const float before = dot(it->grad, w->s[j], state);
        put_gates(w, c, it, bf16, t, m, *r, before);
        put_rows(w, c, it, bf16, t, m);
        *r = before;
    }
}

INLINE void backward(const struct rlhf__delta_item *it, const int bf16) {
    struct work w;
    rlhf__delta_lay_out(&w, it->scratch, it->n, it->key_dim, it->value_dim);
    const size_t state = w.keys * w.values, spans = (it->n + SPAN - 1) / SPAN;
    const size_t nk = (size_t)it->key_dim, nv = (size_t)it->value_dim, size = bf16 ? 2 : 4;
    if (!spans) return;
    for (size_t i = 0; i < w.keys; i++)
        for (size_t c = 0; c < w.values; c += VF_LANES) {
            const size_t m = it->from && i < nk ? lanes(c, nv) : 0;
            vf_store(w.kept + i * w.values + c,
                     m ? load_any(it->from + i * nv, 0, c, m) : vf_zero());
        }
    for (size_t t = 0; t < (spans - 1) * SPAN; t += C) {
        float *s = w.kept + t / SPAN * state;
        read_chunk(&w, &w.chunk[0], it, bf16, t, C);
        chunk_forward(&w, &w.chunk[0], t % SPAN ? w.s[0] : s, (t + C) % SPAN ? w.s[0] : s + state);
    }
    float r = 0.0f;
    for (size_t i = spans; i-- > 0;)
        span_backward(&w, it, bf16, i, i + 1 == spans, &r);
    for (size_t t = 0; it->last && t < it->n; t++) {
        const size_t row = t * (size_t)it->x_stride * size;
        const float *dy = it->dqk + t * 2 * w.keys;
        put_unit((char *)it->dq + row, (const char *)it->q + row, dy, bf16, it->scale, it->eps, nk);
        put_unit((char *)it->dk + row, (const char *)it->k + row, dy + w.keys, bf16, 1.0f, it->eps,
                 nk);
    }
}

void RLHF__HOT(delta_bwd)(const struct rlhf__delta_item *it) {
    it->bf16 ? backward(it, 1) : backward(it, 0);
}
