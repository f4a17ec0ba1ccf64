// difference.c: compares the derivatives of a function, or of an algorithm's loss, with central
// differences. See rlhf/test.h.
#include <rlhf/test.h>

#include <math.h>
#include <stdlib.h>

double rlhf_test_derivative(double (*f)(void *arg), void *arg, float *x, const float *d, uint64_t n,
                            double h, uint64_t *worst) {
    double most = 0;
    if (worst) *worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        const float at = x[i], up = (float)((double)at + h), down = (float)((double)at - h);
        x[i] = up;
        const double above = f(arg);
        x[i] = down;
        const double below = f(arg);
        x[i] = at;
        const double slope = (above - below) / ((double)up - (double)down), want = (double)d[i];
        const double off = fabs(slope - want) / fmax(1, fabs(want));
        if (off <= most) continue;
        if (worst) *worst = i;
        most = off;
        if (isnan(off)) return off;
    }
    return most;
}

// ---- the loss of an algorithm ----

enum { N_HEADS = 5 };

struct loss {
    const rlhf_algo_ops *ops;
    void *self;
    const rlhf_loss_in *in;
    float *head[N_HEADS]; // copies of in->heads, whose entries are varied
    float *slope[N_HEADS];
    uint64_t n[N_HEADS];
};

static double value(void *arg) {
    struct loss *l = arg;
    for (int k = 0; k < N_HEADS; k++)
        if (l->slope[k]) memset(l->slope[k], 0, (size_t)l->n[k] * sizeof(float));
    const rlhf_head_values heads = {.size = (uint32_t)sizeof heads,
                                    .logp = l->head[0],
                                    .entropy = l->head[1],
                                    .kl = l->head[2],
                                    .value = l->head[3],
                                    .score = l->head[4]};
    const rlhf_head_gradients slopes = {.size = (uint32_t)sizeof slopes,
                                        .logp = l->slope[0],
                                        .entropy = l->slope[1],
                                        .kl = l->slope[2],
                                        .value = l->slope[3],
                                        .score = l->slope[4]};
    rlhf_loss_in in = *l->in;
    rlhf_loss_out out = {.size = (uint32_t)sizeof out, .d_heads = &slopes};
    in.heads = &heads;
    return l->ops->loss(l->self, &in, &out) < 0 ? (double)NAN : out.loss;
}

static int copy_heads(struct loss *l) {
    const rlhf_head_values *h = l->in->heads;
    const float *const from[N_HEADS] = {h->logp, h->entropy, h->kl, h->value, h->score};
    for (int k = 0; k < N_HEADS; k++) {
        if (!from[k]) continue;
        l->n[k] = k == 4 ? (uint64_t)l->in->n * (uint32_t)l->in->n_labels : l->in->total;
        const size_t bytes = (size_t)(l->n[k] ? l->n[k] : 1) * sizeof(float);
        l->head[k] = malloc(bytes);
        l->slope[k] = calloc(1, bytes);
        if (!l->head[k] || !l->slope[k]) return 0;
        memcpy(l->head[k], from[k], (size_t)l->n[k] * sizeof(float));
    }
    return 1;
}

double rlhf_test_loss_derivative(const rlhf_algo_ops *ops, void *self, const rlhf_loss_in *in,
                                 double h) {
    struct loss l = {.ops = ops, .self = self, .in = in};
    double most = copy_heads(&l) ? 0 : (double)NAN;
    for (int k = 0; k < N_HEADS && !isnan(most); k++) {
        if (!l.head[k] || !l.n[k]) continue;
        float *want = malloc((size_t)l.n[k] * sizeof *want);
        const double base = value(&l); // slope[] is the derivative at this point
        double off = (double)NAN;
        if (want && !isnan(base)) {
            memcpy(want, l.slope[k], (size_t)l.n[k] * sizeof *want);
            off = rlhf_test_derivative(value, &l, l.head[k], want, l.n[k], h, NULL);
        }
        if (!(off <= most)) most = off;
        free(want);
    }
    for (int k = 0; k < N_HEADS; k++) {
        free(l.head[k]);
        free(l.slope[k]);
    }
    return most;
}
