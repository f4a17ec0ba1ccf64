// hot/optim.c: element loops of the optimisers, sums of squares and of columns.
#include "hot.h"
#include "vec.h"

void RLHF__HOT(adamw)(float *w, const float *g, float *m, float *v, size_t n,
                      const struct rlhf__adam_step *a) {
    const vf gs = vf_set1(a->grad_scale), b1 = vf_set1(a->beta1), r1 = vf_set1(a->beta1_rest);
    const vf b2 = vf_set1(a->beta2), r2 = vf_set1(a->beta2_rest), decay = vf_set1(a->decay);
    const vf step = vf_set1(a->step), root = vf_set1(a->root_scale), eps = vf_set1(a->eps);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf gv = vf_mul(vf_load_n(g + i, l), gs);
        vf mv = vf_fma(vf_load_n(m + i, l), b1, vf_mul(gv, r1));
        vf vv = vf_fma(vf_load_n(v + i, l), b2, vf_mul(vf_mul(gv, gv), r2));
        vf u = vf_div(vf_mul(step, mv), vf_fma(vf_sqrt(vv), root, eps));
        vf_store_n(m + i, mv, l);
        vf_store_n(v + i, vv, l);
        vf_store_n(w + i, vf_sub(vf_mul(vf_load_n(w + i, l), decay), u), l);
    }
}

// Sixteen running sums in f64, then added in order; the same at every level.
void RLHF__HOT(sumsq)(double *out, const float *x, size_t n) {
    double acc[16] = {0};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t j = 0; j < 16; j++)
            acc[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        acc[j] += (double)x[i + j] * (double)x[i + j];
    double sum = 0.0;
    for (size_t j = 0; j < 16; j++)
        sum += acc[j];
    *out = sum;
}

void RLHF__HOT(column_sums)(float *db, const void *dy, int bf16, size_t rows, size_t cols,
                            size_t stride) {
    for (size_t c = 0; c < cols; c += VF_LANES) {
        size_t l = cols - c < VF_LANES ? cols - c : VF_LANES;
        vf sum = vf_zero();
        for (size_t r = 0; r < rows; r++) {
            size_t at = r * stride + c;
            sum = vf_add(sum, bf16 ? vf_load_bf16_n((const uint16_t *)dy + at, l)
                                   : vf_load_n((const float *)dy + at, l));
        }
        vf_store_n(db + c, vf_add(vf_load_n(db + c, l), sum), l);
    }
}

void RLHF__HOT(muon_momentum)(float *u, float *mom, const float *g, size_t n, float momentum,
                              float grad_scale, int nesterov) {
    const vf mu = vf_set1(momentum), gs = vf_set1(grad_scale);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf gv = vf_mul(vf_load_n(g + i, l), gs);
        vf next = vf_fma(vf_load_n(mom + i, l), mu, gv);
        vf_store_n(mom + i, next, l);
        vf_store_n(u + i, nesterov ? vf_fma(next, mu, gv) : next, l);
    }
}

void RLHF__HOT(scale)(float *x, size_t n, float a) {
    const vf av = vf_set1(a);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_n(x + i, vf_mul(vf_load_n(x + i, l), av), l);
    }
}

void RLHF__HOT(blend)(float *out, const float *x, const float *y, size_t n, float a, float b) {
    const vf av = vf_set1(a), bv = vf_set1(b);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf v = vf_fma(vf_load_n(x + i, l), av, vf_mul(vf_load_n(y + i, l), bv));
        vf_store_n(out + i, v, l);
    }
}

void RLHF__HOT(apply_step)(float *w, const float *u, size_t n, float decay, float step) {
    const vf dv = vf_set1(decay), sv = vf_set1(step);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf v = vf_fnma(sv, vf_load_n(u + i, l), vf_mul(vf_load_n(w + i, l), dv));
        vf_store_n(w + i, v, l);
    }
}
