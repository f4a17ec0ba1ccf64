// hot_rope.c: rotary positions, optionally after norms, forward and backward. Compiled once per
// instruction-set level (vec.h). The formulas are in kernels/reference/rope.c.
//
// A vector of channels c in the first half of a head, or of its part that is rotated, is rotated
// together with the vector of channels c + h in the second half. The result of a head depends only
// on the heads of its norm and on their position.
#include "machine/any.h"
#include "machine/hot.h"

// Channels c .. c+m-1 of both halves of a head.
struct pair {
    vf a, b;
};

INLINE struct pair load_pair(const void *p, const int bf16, size_t half, size_t c, size_t m) {
    return (struct pair){load_any(p, bf16, c, m), load_any(p, bf16, half + c, m)};
}
INLINE void store_pair(void *p, const int bf16, size_t half, size_t c, struct pair v, size_t m) {
    store_any(p, bf16, c, v.a, m);
    store_any(p, bf16, half + c, v.b, m);
}

// Rotate x by the angle whose cosine is t.a and whose sine is t.b. With `back`, rotate in the other
// direction.
INLINE struct pair turn(struct pair x, struct pair t, const int back) {
    if (back)
        return (struct pair){vf_fma(x.b, t.b, vf_mul(x.a, t.a)),
                             vf_fnma(x.a, t.b, vf_mul(x.b, t.a))};
    return (struct pair){vf_fnma(x.b, t.b, vf_mul(x.a, t.a)), vf_fma(x.a, t.b, vf_mul(x.b, t.a))};
}

// NOLINTBEGIN(bugprone-macro-parentheses): c and m are declared here
#define EACH_PAIR(c, m, half)                                                                      \
    for (size_t c = 0, m; c < (half) && ((m = (half)-c < VF_LANES ? (half)-c : VF_LANES), 1);      \
         c += VF_LANES)
// NOLINTEND(bugprone-macro-parentheses)

// Rotate all heads of a row, without norms. Each angle is read once for all heads. `step` is the
// number of bytes from head to head.
INLINE void turn_row(char *x, const int bf16, size_t heads, size_t step, size_t half,
                     const float *angles, const int back) {
    EACH_PAIR(c, m, half) {
        struct pair t = load_pair(angles, 0, half, c, m);
        for (size_t h = 0; h < heads; h++)
            store_pair(x + h * step, bf16, half, c,
                       turn(load_pair(x + h * step, bf16, half, c, m), t, back), m);
    }
}

// ---- with norms ----
//
// A head has up to two parts: the elements that are rotated, and the rest. The rest is computed in
// pairs too, so that both parts have the same code. The functions below are for one part: its
// pointers point to the part's first element, and `angles` is NULL for the rest.

// offset + gamma
INLINE struct pair factors(const float *gamma, float offset, size_t half, size_t c, size_t m) {
    const vf o = vf_set1(offset);
    struct pair g = load_pair(gamma, 0, half, c, m);
    return (struct pair){vf_add(o, g.a), vf_add(o, g.b)};
}

// Rotates x by the position's angle, if the part is rotated.
INLINE struct pair turn_part(struct pair x, const float *angles, size_t half, size_t c, size_t m,
                             const int back) {
    return angles ? turn(x, load_pair(angles, 0, half, c, m), back) : x;
}

// sum + the squares of the part's elements
INLINE vf add_squares(vf sum, const char *x, const int bf16, size_t half) {
    EACH_PAIR(c, m, half) {
        struct pair v = load_pair(x, bf16, half, c, m);
        sum = vf_fma(v.b, v.b, vf_fma(v.a, v.a, sum));
    }
    return sum;
}

INLINE void norm_part(char *x, const int bf16, size_t half, const float *angles, const float *gamma,
                      float offset, vf rs) {
    EACH_PAIR(c, m, half) {
        struct pair v = load_pair(x, bf16, half, c, m), g = factors(gamma, offset, half, c, m);
        v = (struct pair){vf_mul(vf_mul(v.a, rs), g.a), vf_mul(vf_mul(v.b, rs), g.b)};
        store_pair(x, bf16, half, c, turn_part(v, angles, half, c, m, 0), m);
    }
}

// sum + d(loss)/d(normalized element) times xhat, over the part. Unless part is NULL, adds the
// derivative of gamma to part[2 half].
INLINE vf add_products(vf sum, const char *dx, const char *raw, const int bf16, size_t half,
                       const float *angles, const float *gamma, float offset, vf rs, float *part) {
    EACH_PAIR(c, m, half) {
        struct pair x = load_pair(raw, bf16, half, c, m);
        struct pair d = turn_part(load_pair(dx, bf16, half, c, m), angles, half, c, m, 1);
        struct pair g = factors(gamma, offset, half, c, m);
        d = (struct pair){vf_mul(d.a, vf_mul(x.a, rs)), vf_mul(d.b, vf_mul(x.b, rs))};
        sum = vf_fma(d.b, g.b, vf_fma(d.a, g.a, sum));
        if (!part) continue;
        struct pair p = load_pair(part, 0, half, c, m);
        store_pair(part, 0, half, c, (struct pair){vf_add(p.a, d.a), vf_add(p.b, d.b)}, m);
    }
    return sum;
}

INLINE void norm_part_bwd(char *dx, const char *raw, const int bf16, size_t half,
                          const float *angles, const float *gamma, float offset, vf rs, vf mean) {
    EACH_PAIR(c, m, half) {
        struct pair x = load_pair(raw, bf16, half, c, m);
        struct pair d = turn_part(load_pair(dx, bf16, half, c, m), angles, half, c, m, 1);
        struct pair g = factors(gamma, offset, half, c, m);
        d.a = vf_fnma(vf_mul(x.a, rs), mean, vf_mul(d.a, g.a));
        d.b = vf_fnma(vf_mul(x.b, rs), mean, vf_mul(d.b, g.b));
        store_pair(dx, bf16, half, c, (struct pair){vf_mul(d.a, rs), vf_mul(d.b, rs)}, m);
    }
}

// Normalizes and rotates the heads of one norm. Returns 1 / rms.
INLINE float norm_heads(const struct rlhf__rope_rows *r, char *x, char *raw, const int bf16,
                        size_t heads, const float *angles, const float *gamma) {
    const size_t half = r->half, rest = r->rest, es = bf16 ? 2 : 4, dim = 2 * (half + rest);
    const size_t step = dim * es, skip = 2 * half * es; // skip: the part that is rotated
    vf sum = vf_zero();
    for (size_t h = 0; h < heads; h++)
        sum = add_squares(add_squares(sum, x + h * step, bf16, half), x + h * step + skip, bf16,
                          rest);
    if (raw) memcpy(raw, x, heads * step);
    const float rinv = 1.0f / __builtin_sqrtf(vf_hsum(sum) / (float)(dim * heads) + r->eps);
    const vf rs = vf_set1(rinv);
    for (size_t h = 0; h < heads; h++, x += step, gamma += dim) {
        norm_part(x, bf16, half, angles, gamma, r->offset, rs);
        norm_part(x + skip, bf16, rest, NULL, gamma + 2 * half, r->offset, rs);
    }
    return rinv;
}

// The derivative of norm_heads. Unless part is NULL, adds the derivative of gamma to part.
INLINE void norm_heads_bwd(const struct rlhf__rope_rows *r, char *dx, const char *raw,
                           const int bf16, size_t heads, const float *angles, const float *gamma,
                           float rinv, float *part) {
    const size_t half = r->half, rest = r->rest, es = bf16 ? 2 : 4, dim = 2 * (half + rest);
    const size_t step = dim * es, to = 2 * half, skip = to * es;
    const vf rs = vf_set1(rinv);
    vf sum = vf_zero();
    for (size_t h = 0; h < heads; h++) {
        char *d = dx + h * step;
        const char *x = raw + h * step;
        const float *g = gamma + h * dim;
        float *p = part ? part + h * dim : NULL;
        sum = add_products(sum, d, x, bf16, half, angles, g, r->offset, rs, p);
        sum = add_products(sum, d + skip, x + skip, bf16, rest, NULL, g + to, r->offset, rs,
                           p ? p + to : NULL);
    }
    const vf mean = vf_set1(vf_hsum(sum) / (float)(dim * heads));
    for (size_t h = 0; h < heads; h++, dx += step, raw += step, gamma += dim) {
        norm_part_bwd(dx, raw, bf16, half, angles, gamma, r->offset, rs, mean);
        norm_part_bwd(dx + skip, raw + skip, bf16, rest, NULL, gamma + to, r->offset, rs, mean);
    }
}

// Row t, with norms.
INLINE void norm_row(const struct rlhf__rope_rows *r, const int bf16, const int back, size_t t,
                     char *x, const float *angles) {
    const size_t dim = 2 * (r->half + r->rest), width = dim * (bf16 ? 2 : 4); // bytes per head
    const size_t heads = r->heads + r->kv_heads, norms = r->whole ? 2 : heads;
    size_t h = 0;
    for (size_t i = 0; i < norms; i++) {
        const size_t keys = h >= r->heads, n = !r->whole ? 1 : keys ? r->kv_heads : r->heads;
        const float *gamma = keys ? r->gamma_k : r->gamma_q;
        char *raw = r->raw ? (char *)r->raw + (t * heads + h) * width : NULL;
        if (back) {
            const size_t before = keys ? (r->whole ? r->heads : 1) * dim : 0;
            norm_heads_bwd(r, x + h * width, raw, bf16, n, angles, gamma, r->stats[t * norms + i],
                           r->part ? r->part + before : NULL);
        } else {
            const float rinv = norm_heads(r, x + h * width, raw, bf16, n, angles, gamma);
            if (r->stats) r->stats[t * norms + i] = rinv;
        }
        h += n;
    }
}

INLINE void rows_of(const struct rlhf__rope_rows *r, const int bf16, const int back) {
    const size_t heads = r->heads + r->kv_heads, es = bf16 ? 2 : 4;
    const size_t width = 2 * (r->half + r->rest) * es; // bytes per head
    for (size_t t = 0; t < r->rows; t++) {
        char *x = (char *)r->x + t * r->stride * es;
        const float *angles = r->turn + (size_t)r->pos[t] * 2 * r->half;
        if (r->gamma_q)
            norm_row(r, bf16, back, t, x, angles);
        else
            turn_row(x, bf16, heads, width, r->half, angles, back);
    }
}

void RLHF__HOT(rope)(const struct rlhf__rope_rows *r, int bf16) {
    if (bf16)
        rows_of(r, 1, 0);
    else
        rows_of(r, 0, 0);
}

void RLHF__HOT(rope_bwd)(const struct rlhf__rope_rows *r, int bf16) {
    if (bf16)
        rows_of(r, 1, 1);
    else
        rows_of(r, 0, 1);
}
