// hot_divergence.c: divergences of one row of the language-model head, and their derivatives.
// p is the policy, q the reference. hot_head.c computes KL(p || q); this file computes the others.
//
//   forward  K = sum q (log q - log p)                          dK/dz = p - q
//   JS       K = b sum q log(q/m) + (1-b) sum p log(p/m)        dK/dz = (1-b) p (log(p/m) - P)
//            with m = b q + (1-b) p and P = sum p log(p/m)
//
// Sums run in f32 lanes within a block of BLOCK elements, and in f64 over the blocks, from id 0 up.
#include "head_row.h"

#include <rlhf/exact.h>

#define FAR 80.0f // if |log q - log p| is at least this, the smaller probability is ignored

struct pair {
    vf it, max, log_sum, rmax, rlog_sum;
};

static struct pair pair_of(const struct rlhf__head_stat *s, float it) {
    return (struct pair){vf_set1(it), vf_set1(s->max), vf_set1(s->log_sum), vf_set1(s->ref_max),
                         vf_set1(s->ref_log_sum)};
}

static inline vf log_p(vf z, const struct pair *c) {
    return vf_sub(log_weight(z, c->max, c->it), c->log_sum);
}

static inline vf log_q(vf r, const struct pair *c) {
    return vf_sub(log_weight(r, c->rmax, c->it), c->rlog_sum);
}

static inline vf lanes_log(vf x) {
    float v[VF_LANES];
    vf_store(v, x);
    for (size_t j = 0; j < VF_LANES; j++)
        v[j] = rlhf_log_f32(v[j]);
    return vf_load(v);
}

// log(p/m), from lp = log p and lq = log q: -log((1-b) + b q/p).
static inline vf log_p_over_m(vf lp, vf lq, float b) {
    const vf far = vf_set1(FAR), t = vf_max(vf_set1(-FAR), vf_min(far, vf_sub(lq, lp)));
    const vf m = vf_fma(vf_set1(b), vf_exp(t), vf_set1(1.0f - b));
    return vf_sub(vf_zero(), lanes_log(m));
}

static void forward_kl(struct rlhf__head_stat *s, const float *z, const float *r, size_t n,
                       const struct pair *c) {
    double sum = 0.0;
    vf zv, rv;
    for (size_t b = 0; b < n; b += BLOCK) {
        vf t = vf_zero();
        for (size_t i = b; i < n && i < b + BLOCK; i += VF_LANES) {
            load_pair(&zv, &rv, z, r, i, n);
            const vf lq = log_q(rv, c);
            t = vf_fma(vf_exp(lq), vf_sub(lq, log_p(zv, c)), t);
        }
        sum += (double)vf_hsum(t);
    }
    s->kl = (float)sum;
}

static void js(struct rlhf__head_stat *s, const float *z, const float *r, size_t n,
               const struct pair *c, float beta) {
    double of_p = 0.0, of_q = 0.0;
    vf zv, rv;
    for (size_t b = 0; b < n; b += BLOCK) {
        vf t = vf_zero(), u = vf_zero();
        for (size_t i = b; i < n && i < b + BLOCK; i += VF_LANES) {
            load_pair(&zv, &rv, z, r, i, n);
            const vf lp = log_p(zv, c), lq = log_q(rv, c);
            t = vf_fma(vf_exp(lp), log_p_over_m(lp, lq, beta), t);
            u = vf_fma(vf_exp(lq), log_p_over_m(lq, lp, 1.0f - beta), u);
        }
        of_p += (double)vf_hsum(t);
        of_q += (double)vf_hsum(u);
    }
    s->kl_p = (float)of_p;
    s->kl = (float)((double)beta * of_q + (1.0 - (double)beta) * of_p);
}

void RLHF__HOT(head_divergence)(struct rlhf__head_stat *s, const float *z, const float *r, size_t n,
                                float it, float beta) {
    const struct pair c = pair_of(s, it);
    if (beta > 0)
        js(s, z, r, n, &c, beta);
    else
        forward_kl(s, z, r, n, &c);
}

// ---- derivative ----

struct slopes {
    struct pair c;
    struct slope slope;
    float beta;
    vf entropy, of_p, d_logp, d_entropy, d_kl; // d_kl: times 1 - beta
};

// The derivative with respect to the products, in lanes that are not the target.
static inline vf slope_lanes(vf z, vf r, const struct slopes *g) {
    const vf lp = log_p(z, &g->c), lq = log_q(r, &g->c), p = vf_exp(lp);
    const vf k = g->beta > 0 ? vf_mul(p, vf_sub(log_p_over_m(lp, lq, g->beta), g->of_p))
                             : vf_sub(p, vf_exp(lq));
    const vf f = vf_fma(g->d_entropy, vf_add(lp, g->entropy), g->d_logp);
    return vf_mul(slope_at(z, &g->slope), vf_sub(vf_mul(g->d_kl, k), vf_mul(p, f)));
}

static inline void slope_store(void *dz, int bf16, size_t i, vf v, size_t n) {
    if (bf16)
        vf_store_bf16_n((uint16_t *)dz + i, v, n);
    else
        vf_store_n((float *)dz + i, v, n);
}

void RLHF__HOT(head_divergence_grad)(void *dz, int bf16, const float *z, const float *r, size_t n,
                                     float it, float beta, const struct rlhf__head_stat *s,
                                     const struct rlhf__head_grad *h) {
    const size_t t = (size_t)h->target;
    const int inside = z[t] > -INFINITY; // otherwise its log-prob is -inf, and its gradient 0
    const struct slopes g = {.c = pair_of(s, it),
                             .slope = slope_of(h->map, it),
                             .beta = beta,
                             .entropy = vf_set1(s->entropy),
                             .of_p = vf_set1(s->kl_p),
                             .d_logp = vf_set1(inside ? h->d_logp : 0.0f),
                             .d_entropy = vf_set1(h->d_entropy),
                             .d_kl = vf_set1(beta > 0 ? h->d_kl * (1.0f - beta) : h->d_kl)};
    vf zv, rv;
    load_pair(&zv, &rv, z + t, r + t, 0, 1);
    const vf at_target = slope_lanes(zv, rv, &g); // before dz overwrites z
    const vf of_target = vf_mul(slope_at(zv, &g.slope), g.d_logp);
    for (size_t i = 0; i < n; i += VF_LANES) {
        load_pair(&zv, &rv, z, r, i, n);
        slope_store(dz, bf16, i, slope_lanes(zv, rv, &g), lanes_left(i, n));
    }
    if (inside) slope_store(dz, bf16, t, vf_add(at_target, of_target), 1);
}
