// hot_head.c: one row of the language-model head: softmax statistics, KL, derivative,
// sampling.
//
// Within a block of BLOCK elements, sums are kept in f32 lanes. The sums of the blocks are added in
// f64. The order is always from id 0 up. So the result of a row depends only on the row.
#include "head_row.h"

#include <rlhf/exact.h>

#define ABREAST 4    // vectors of maxima
#define AHEAD   1024 // derivatives

static float row_max(const float *z, size_t n) {
    vf best[ABREAST];
    size_t i = 0;
    for (size_t j = 0; j < ABREAST; j++)
        best[j] = vf_set1(-INFINITY);
    for (; i + ABREAST * VF_LANES <= n; i += ABREAST * VF_LANES)
        for (size_t j = 0; j < ABREAST; j++)
            best[j] = vf_max(best[j], vf_load(z + i + j * VF_LANES));
    for (; i + VF_LANES <= n; i += VF_LANES)
        best[0] = vf_max(best[0], vf_load(z + i));
    for (size_t j = 1; j < ABREAST; j++)
        best[0] = vf_max(best[0], best[j]);
    float m = vf_hmax(best[0]);
    for (; i < n; i++)
        m = z[i] > m ? z[i] : m;
    return m;
}

void RLHF__HOT(head_map)(float *z, size_t n, struct rlhf__head_map map) {
    const vf scale = vf_set1(map.scale), cap = vf_set1(map.cap);
    for (size_t i = 0; i < n; i += VF_LANES) {
        const size_t left = lanes_left(i, n);
        vf v = vf_mul(vf_load_n(z + i, left), scale);
        if (map.cap > 0.0f) v = vf_mul(cap, vf_tanh(vf_div(v, cap)));
        vf_store_n(z + i, v, left);
    }
}

// Add the sum of e^a to *sum and the sum of e^a a to *dot, where a = log_weight of each logit in
// [from, to). If `next` is not 0, also prefetches the logits that are `next` elements ahead,
// usually those of the next row. Without the prefetch, computing the next row's maximum would wait
// for memory.
static inline void block_sums(const float *z, size_t from, size_t to, vf max, vf it, size_t next,
                              double *sum, double *dot) {
    vf s = vf_zero(), t = vf_zero();
    size_t i = from;
    for (; i + VF_LANES <= to; i += VF_LANES) {
        if (next) __builtin_prefetch(z + i + next, 0, 2);
        vf a = log_weight(vf_load(z + i), max, it), e = vf_exp(a);
        s = vf_add(s, e);
        t = vf_fma(e, a, t);
    }
    if (i < to) { // lanes past the end are -inf
        float tail[VF_LANES];
        for (size_t j = 0; j < VF_LANES; j++)
            tail[j] = i + j < to ? z[i + j] : -INFINITY;
        vf a = log_weight(vf_load(tail), max, it), e = vf_exp(a);
        s = vf_add(s, e);
        t = vf_fma(e, a, t);
    }
    *sum += (double)vf_hsum(s);
    *dot += (double)vf_hsum(t);
}

void RLHF__HOT(head_stat)(struct rlhf__head_stat *s, const float *z, size_t n, float it,
                          int entropy, double *sums) {
    double sum = 0.0, dot = 0.0;
    s->max = row_max(z, n);
    for (size_t i = 0; i < n; i += BLOCK) {
        double block = 0.0;
        block_sums(z, i, i + BLOCK < n ? i + BLOCK : n, vf_set1(s->max), vf_set1(it), n, &block,
                   &dot);
        if (sums) sums[i / BLOCK] = block;
        sum += block;
    }
    s->log_sum = (float)rlhf_log(sum);
    s->entropy = entropy ? (float)(rlhf_log(sum) - dot / sum) : 0.0f;
    s->kl = s->kl_p = s->ref_max = s->ref_log_sum = 0.0f;
}

void RLHF__HOT(head_kl)(struct rlhf__head_stat *s, const float *z, const float *r, size_t n,
                        float it) {
    vf best = vf_set1(-INFINITY), zv, rv;
    const vf itv = vf_set1(it), zmax = vf_set1(s->max);
    for (size_t i = 0; i < n; i += VF_LANES) {
        load_pair(&zv, &rv, z, r, i, n);
        best = vf_max(best, rv);
    }
    const float ref_max = vf_hmax(best);
    const vf rmax = vf_set1(ref_max);
    double ref_sum = 0.0, sum = 0.0, dot = 0.0;
    for (size_t b = 0; b < n; b += BLOCK) {
        vf q = vf_zero(), e = vf_zero(), t = vf_zero();
        for (size_t i = b; i < n && i < b + BLOCK; i += VF_LANES) {
            load_pair(&zv, &rv, z, r, i, n);
            vf a = log_weight(zv, zmax, itv), c = log_weight(rv, rmax, itv), p = vf_exp(a);
            q = vf_add(q, vf_exp(c));
            e = vf_add(e, p);
            t = vf_fma(p, vf_sub(a, c), t);
        }
        ref_sum += (double)vf_hsum(q);
        sum += (double)vf_hsum(e);
        dot += (double)vf_hsum(t);
    }
    s->ref_max = ref_max;
    s->ref_log_sum = (float)rlhf_log(ref_sum);
    s->kl = (float)(dot / sum - rlhf_log(sum) + rlhf_log(ref_sum));
}

// ---- derivative ----

struct grad_const {
    vf it, max, log_sum, rmax, rlog_sum, kl, entropy, d_logp, d_entropy, d_kl;
    struct slope slope;
};

// The derivative with respect to the products, in lanes that are not the target: slope_at(z) times
//   p (-d_logp - d_entropy (log p + H) + d_kl (log p - log q - K)).
static inline vf grad_lanes(vf z, vf r, int with_kl, const struct grad_const *c) {
    vf lp = vf_sub(log_weight(z, c->max, c->it), c->log_sum);
    vf p = vf_exp(lp);
    vf f = vf_fma(c->d_entropy, vf_add(lp, c->entropy), c->d_logp);
    if (with_kl) {
        vf lq = vf_sub(log_weight(r, c->rmax, c->it), c->rlog_sum);
        f = vf_fnma(c->d_kl, vf_sub(vf_sub(lp, lq), c->kl), f);
    }
    return vf_mul(vf_sub(vf_zero(), slope_at(z, &c->slope)), vf_mul(p, f));
}

static inline void grad_store(void *dz, int bf16, size_t i, vf v, size_t n) {
    if (bf16)
        vf_store_bf16_n((uint16_t *)dz + i, v, n);
    else
        vf_store_n((float *)dz + i, v, n);
}

static inline __attribute__((always_inline)) void
grad_row(void *dz, int bf16, const float *z, const float *r, size_t n, const struct grad_const *c) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        __builtin_prefetch(z + i + n, 0, 2); // logits of the row below
        if (bf16) __builtin_prefetch((uint16_t *)dz + i + AHEAD, 1, 3);
        vf zv = vf_load(z + i), rv = r ? on_kept(zv, vf_load(r + i)) : vf_zero();
        vf g = grad_lanes(zv, rv, r != NULL, c);
        if (bf16)
            vf_store_bf16((uint16_t *)dz + i, g);
        else
            vf_store((float *)dz + i, g);
    }
    if (i < n) {
        size_t left = lanes_left(i, n);
        vf zv = vf_load_n(z + i, left), rv = r ? on_kept(zv, vf_load_n(r + i, left)) : vf_zero();
        grad_store(dz, bf16, i, grad_lanes(zv, rv, r != NULL, c), left);
    }
}

void RLHF__HOT(head_grad)(void *dz, int bf16, const float *z, const float *r, size_t n, float it,
                          const struct rlhf__head_stat *s, const struct rlhf__head_grad *g) {
    const size_t t = (size_t)g->target;
    const int inside = z[t] > -INFINITY; // otherwise its log-prob is -inf, and its gradient 0
    const struct grad_const c = {.it = vf_set1(it),
                                 .max = vf_set1(s->max),
                                 .log_sum = vf_set1(s->log_sum),
                                 .rmax = vf_set1(s->ref_max),
                                 .rlog_sum = vf_set1(s->ref_log_sum),
                                 .kl = vf_set1(s->kl),
                                 .entropy = vf_set1(s->entropy),
                                 .d_logp = vf_set1(inside ? g->d_logp : 0.0f),
                                 .d_entropy = vf_set1(g->d_entropy),
                                 .d_kl = vf_set1(g->d_kl),
                                 .slope = slope_of(g->map, it)};
    vf zt = vf_load_n(z + t, 1), rt = r ? on_kept(zt, vf_load_n(r + t, 1)) : vf_zero();
    vf at_target = grad_lanes(zt, rt, r != NULL, &c); // before dz overwrites z
    if (bf16 && r)
        grad_row(dz, 1, z, r, n, &c);
    else if (bf16)
        grad_row(dz, 1, z, NULL, n, &c);
    else
        grad_row(dz, 0, z, r, n, &c);
    if (inside)
        grad_store(dz, bf16, t, vf_add(at_target, vf_mul(slope_at(zt, &c.slope), c.d_logp)), 1);
}

// ---- sampling ----

void RLHF__HOT(head_argmax)(int32_t *id, const float *z, size_t n) {
    const float m = row_max(z, n);
    size_t i = 0;
    while (i + 1 < n && !(z[i] == m))
        i++;
    *id = (int32_t)i;
}

// Returns the id in block [from, to) at which the running sum exceeds `want`. `want` was computed
// from sums that were added in another order (head_sums). Because of rounding, the running sum may
// end slightly below `want`. In this case, returns the last id in the block that has a probability
// above 0.
static int32_t draw_in_block(const float *z, size_t from, size_t to, vf max, vf it, double reached,
                             double want) {
    float e[BLOCK + VF_LANES];
    size_t last = from;
    for (size_t i = from; i < to; i += VF_LANES) {
        size_t left = lanes_left(i, to);
        vf_store(e + (i - from), vf_exp(log_weight(vf_load_n(z + i, left), max, it)));
    }
    for (size_t i = from; i < to; i++) {
        if (!(e[i - from] > 0.0f)) continue;
        reached += (double)e[i - from];
        last = i;
        if (reached > want) return (int32_t)i;
    }
    return (int32_t)last;
}

void RLHF__HOT(head_sums)(double *sums, const float *z, size_t n, float it, float max) {
    for (size_t i = 0; i < n; i += BLOCK) {
        double unused = 0.0;
        sums[i / BLOCK] = 0.0;
        block_sums(z, i, i + BLOCK < n ? i + BLOCK : n, vf_set1(max), vf_set1(it), 0,
                   &sums[i / BLOCK], &unused);
    }
}

void RLHF__HOT(head_draw)(int32_t *id, const float *z, size_t n, float it, float max, double u,
                          const double *sums) {
    const size_t blocks = rlhf__head_blocks(n);
    double total = 0.0, reached = 0.0, before = 0.0;
    for (size_t b = 0; b < blocks; b++)
        total += sums[b];
    const double want = u * total;
    size_t chosen = 0; // the last block with nonzero weight, unless an earlier one exceeds `want`
    for (size_t b = 0; b < blocks && reached <= want; b++) {
        if (sums[b] > 0.0) {
            chosen = b;
            before = reached;
        }
        reached += sums[b];
    }
    const size_t from = chosen * BLOCK, to = from + BLOCK < n ? from + BLOCK : n;
    *id = draw_in_block(z, from, to, vf_set1(max), vf_set1(it), before, want);
}
