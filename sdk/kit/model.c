// model.c: fills a model's parameters and compares its backward() with finite differences. See
// rlhf/test.h.
#include <rlhf/test.h>

#include <math.h>
#include <stdlib.h>

static uint64_t count_of(const rlhf_param *p) {
    uint64_t n = 1;
    for (int32_t i = 0; i < p->ndim; i++)
        n *= (uint64_t)p->shape[i];
    return n;
}

static rlhf_status fill(const rlhf_param *p, rlhf_dev to, const rlhf_compute *c, uint64_t seed,
                        double scale) {
    const uint64_t n = count_of(p);
    const double base = p->init == RLHF_INIT_ONE ? 1 : 0;
    rlhf_rng r = {seed, rlhf_rng_stream(p->name), 0};
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) return RLHF_E_NOMEM;
    for (uint64_t i = 0; i < n; i++)
        x[i] = (float)(base + (2 * rlhf_rng_next(&r) - 1) * scale);
    const rlhf_status st = c->upload(c->ctx, to, x, n * sizeof *x);
    free(x);
    return st;
}

rlhf_status rlhf_test_model_fill(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                 uint64_t seed, double scale) {
    rlhf_param p = {.size = (uint32_t)sizeof p};
    for (uint32_t i = 0; ops->param(self, i, &p) >= 0; i++) {
        rlhf_dev to = p.value;
        if (!to) RLHF_TRY(ops->fill_begin(self, i, &to));
        RLHF_TRY(fill(&p, to, c, seed, scale));
        if (!p.value) RLHF_TRY(ops->fill_end(self, i));
    }
    return ops->refresh(self);
}

// ---- finite differences ----

enum { N_HEADS = 5 };
static const uint32_t bits[N_HEADS] = {RLHF_HEAD_LOGP, RLHF_HEAD_ENTROPY, RLHF_HEAD_VALUE,
                                       RLHF_HEAD_TOKEN_SCORE, RLHF_HEAD_SCORE};

struct pass {
    const rlhf_model_ops *ops;
    void *self;
    const rlhf_compute *c;
    const rlhf_batch *batch;
    uint32_t heads, some;
    double h;
    float *out[N_HEADS], *slope[N_HEADS]; // NULL if the head is not in the plan
    uint64_t n[N_HEADS];
};

static rlhf_heads heads_of(float *const array[N_HEADS]) {
    return (rlhf_heads){.size = (uint32_t)sizeof(rlhf_heads),
                        .logp = array[0],
                        .entropy = array[1],
                        .value = array[2],
                        .token_score = array[3],
                        .score = array[4]};
}

// Sets the slopes of head k, one for each entry of the head. For prompt tokens, the slope is 0.
static void put_slopes(struct pass *p, int k) {
    rlhf_rng r = {1, (uint64_t)k, 0};
    for (uint64_t i = 0; i < p->n[k]; i++)
        p->slope[k][i] = (float)(0.5 + rlhf_rng_next(&r));
    for (uint32_t row = 0; k != N_HEADS - 1 && row < p->batch->n; row++)
        for (int32_t t = 0; t < p->batch->prompt_len[row]; t++)
            p->slope[k][p->batch->offset[row] + t] = 0;
}

static int begin(struct pass *p) {
    int64_t labels = 1;
    rlhf_param q = {.size = (uint32_t)sizeof q};
    for (uint32_t i = 0; p->ops->param(p->self, i, &q) >= 0; i++)
        // the number of labels is the number of rows of the score head's last matrix
        if (q.group == RLHF_PARAM_SCORE && q.ndim == 2) labels = q.shape[0];
    for (int k = 0; k < N_HEADS; k++) {
        if (!(p->heads & bits[k])) continue;
        p->n[k] = bits[k] == RLHF_HEAD_SCORE ? p->batch->n * (uint64_t)labels : p->batch->total;
        p->out[k] = calloc((size_t)p->n[k], sizeof(float));
        p->slope[k] = calloc((size_t)p->n[k], sizeof(float));
        if (!p->out[k] || !p->slope[k]) return 0;
        put_slopes(p, k);
    }
    return 1;
}

// Returns the loss. With `train`, also runs the backward pass.
static double loss(struct pass *p, int train) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_forward how = {
        .size = (uint32_t)sizeof how, .heads = p->heads, .train = train, .dist = &whole};
    const rlhf_heads out = heads_of(p->out), slope = heads_of(p->slope);
    if (p->ops->refresh(p->self) < 0) return (double)NAN;
    if (p->ops->forward(p->self, p->batch, &how, &out) < 0) return (double)NAN;
    if (train && p->ops->backward(p->self, p->batch, &how, &slope) < 0) return (double)NAN;
    double sum = 0;
    for (int k = 0; k < N_HEADS; k++)
        for (uint64_t i = 0; i < p->n[k]; i++)
            sum += (double)p->slope[k][i] * (double)p->out[k][i];
    return sum;
}

// Returns the loss after the value at `at` is replaced with x.
static double loss_at(struct pass *p, rlhf_dev at, float x) {
    return p->c->upload(p->c->ctx, at, &x, sizeof x) < 0 ? (double)NAN : loss(p, 0);
}

static double try_entry(struct pass *p, const rlhf_param *q, uint64_t i) {
    const rlhf_dev at = rlhf_dev_at(q->value, i * sizeof(float));
    float x, g;
    if (p->c->download(p->c->ctx, &x, at, sizeof x) < 0) return (double)NAN;
    if (p->c->download(p->c->ctx, &g, rlhf_dev_at(q->grad, i * sizeof g), sizeof g) < 0)
        return (double)NAN;
    const float up = (float)((double)x + p->h), down = (float)((double)x - p->h);
    const double above = loss_at(p, at, up), below = loss_at(p, at, down);
    if (p->c->upload(p->c->ctx, at, &x, sizeof x) < 0) return (double)NAN;
    const double slope = (above - below) / ((double)up - (double)down);
    return fabs(slope - (double)g) / fmax(fabs((double)g), 0.01);
}

static double try_all(struct pass *p) {
    double most = 0;
    rlhf_param q = {.size = (uint32_t)sizeof q};
    for (uint32_t i = 0; p->ops->param(p->self, i, &q) >= 0; i++)
        if (q.grad && p->c->zero(p->c->ctx, q.grad, count_of(&q) * sizeof(float)) < 0)
            return (double)NAN;
    if (isnan(loss(p, 1))) return (double)NAN;
    for (uint32_t i = 0; p->ops->param(p->self, i, &q) >= 0; i++) {
        rlhf_rng r = {2, rlhf_rng_stream(q.name), 0};
        for (uint32_t k = 0; q.grad && k < p->some; k++) {
            const double off = try_entry(p, &q, rlhf_rng_below(&r, count_of(&q)));
            if (isnan(off)) return off;
            if (off > most) most = off;
        }
    }
    return p->ops->refresh(p->self) < 0 ? (double)NAN : most;
}

double rlhf_test_model_derivative(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                  const rlhf_batch *batch, uint32_t heads, uint32_t some,
                                  double h) {
    struct pass p = {
        .ops = ops, .self = self, .c = c, .batch = batch, .heads = heads, .some = some, .h = h};
    const double most = begin(&p) ? try_all(&p) : (double)NAN;
    for (int k = 0; k < N_HEADS; k++) {
        free(p.out[k]);
        free(p.slope[k]);
    }
    return most;
}
