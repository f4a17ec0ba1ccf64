// train.c: training steps of a model (model.h), part by part.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 6, WARMUP = 2 };

static struct optimizer *optimizer_of(const struct bench *b, const struct model *m) {
    const rlhf_compute *c = b->c;
    struct optimizer *o = bench_zeros((sizeof *o + 3) / 4);
    rlhf_param p = {.size = sizeof p};
    uint32_t n = 0;
    if (!RLHF_COMPUTE_HAS(c, sumsq_many) || !RLHF_COMPUTE_HAS(c, adamw_many))
        bench_die("the backend %s has no sumsq_many and adamw_many", c->name);
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        if (!p.grad) continue;
        if (n == MODEL_TENSORS) bench_die("the model has more than %d tensors", MODEL_TENSORS);
        o->len[n] = 1;
        for (int32_t k = 0; k < p.ndim; k++)
            o->len[n] *= (uint64_t)p.shape[k];
        o->g[n] = p.grad;
        o->w[n] = p.value;
        o->lr[n] = o->decay[n] = 1;
        bench_check(b, c->alloc(c->ctx, o->len[n] * 4, &o->m[n]), "alloc");
        bench_check(b, c->alloc(c->ctx, o->len[n] * 4, &o->v[n]), "alloc");
        n++;
    }
    o->list = (rlhf_tensors){sizeof o->list, n, o->len, o->g, o->w, o->m, o->v, o->lr, o->decay};
    bench_check(b, c->alloc(c->ctx, sizeof(rlhf_clip), &o->clip), "alloc");
    return o;
}

// Computes the norm of all gradients. Then runs AdamW on every tensor, which also zeroes the
// gradients. The host makes the same calls.
static void optimize(const struct bench *b, struct model *m, int64_t step, struct train_times *t) {
    const rlhf_compute *c = b->c;
    if (!m->optimizer) m->optimizer = optimizer_of(b, m);
    const struct optimizer *o = m->optimizer;
    const rlhf_adamw a = {sizeof(rlhf_adamw), 0, 1e-5, 0.9, 0.999, 1e-8, 0.01, 1.0, step};
    const double t0 = bench_now(b);
    bench_check(b, c->sumsq_many(c->ctx, &o->list, 1.0, 0, o->clip), "sumsq_many");
    const double t1 = bench_now(b);
    bench_check(b, c->adamw_many(c->ctx, &o->list, &a, o->clip), "adamw_many");
    const double t2 = bench_now(b);
    bench_check(b, m->ops->refresh(m->self), "refresh");
    t->clip = t1 - t0;
    t->update = t2 - t1;
    t->refresh = bench_now(b) - t2;
}

// Rows of equal length in the host's layout. All tokens of a row except the first are scored.
struct rows {
    int32_t *offset, *prompt;
    rlhf_batch batch;
};

static struct rows rows_of(const int32_t *ids, int n, int len) {
    struct rows r = {.offset = bench_zeros((size_t)n + 1), .prompt = bench_zeros((size_t)n)};
    for (int i = 0; i <= n; i++)
        r.offset[i] = i * len;
    for (int i = 0; i < n; i++)
        r.prompt[i] = 1;
    r.batch = (rlhf_batch){sizeof(rlhf_batch),
                           (uint32_t)n,
                           (uint32_t)(n * len),
                           0,
                           ids,
                           r.offset,
                           r.prompt,
                           NULL,
                           NULL};
    return r;
}

static void rows_free(struct rows *r) {
    free(r->offset);
    free(r->prompt);
}

// The forward and backward pass of a microbatch. Adds the times to *t.
static void pass(const struct bench *b, const struct model *m, const int32_t *ids, int n,
                 float *logp, float *grad, struct train_times *t) {
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_forward fwd = {
        .size = sizeof fwd, .heads = RLHF_HEAD_LOGP, .train = 1, .dist = &dist};
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    const rlhf_heads d = {.size = sizeof d, .logp = grad};
    struct rows r = rows_of(ids, n, b->len);
    const double t0 = bench_now(b);
    bench_check(b, m->ops->forward(m->self, &r.batch, &fwd, &out), "forward");
    const double t1 = bench_now(b);
    bench_check(b, m->ops->backward(m->self, &r.batch, &fwd, &d), "backward");
    t->forward += t1 - t0;
    t->backward += bench_now(b) - t1;
    rows_free(&r);
}

// The rows of a microbatch. As in the host, a microbatch has at most b->microbatch tokens, but at
// least one row.
static int microbatch_rows(const struct bench *b) {
    const int n = b->microbatch ? b->microbatch / b->len : b->rows;
    return n < 1 ? 1 : n < b->rows ? n : b->rows;
}

struct train_times bench_train_step(const struct bench *b, struct model *m, int64_t step) {
    const int total = b->rows * b->len, most = microbatch_rows(b);
    int32_t *ids = bench_zeros((size_t)total);
    float *logp = bench_zeros(2 * (size_t)total), *grad = logp + total;
    for (int i = 0; i < total; i++) {
        ids[i] = (i * 7919 + 13) % m->info.n_vocab;
        grad[i] = -1.0f / (float)total;
    }
    struct train_times t = {0};
    const double t0 = bench_now(b);
    for (int i = 0; i < b->rows; i += most) {
        const int n = b->rows - i < most ? b->rows - i : most, at = i * b->len;
        pass(b, m, ids + at, n, logp + at, grad + at, &t);
    }
    optimize(b, m, step, &t);
    t.total = bench_now(b) - t0;
    free(ids);
    free(logp);
    return t;
}

// Counted operations, two per multiply-add:
//   - 6 per parameter and token (for the tied head, per scored token), or 4 if the parameters are
//     frozen and only an adapter is trained (the adapter's parameters are not counted);
//   - scores and weighted sums of causal attention, three times (forward, and twice in backward).
// Recomputation, norms and activations are not counted.
double bench_train_flops(const struct bench *b, const struct model *m) {
    const double head = (double)m->info.n_vocab * m->info.d_model;
    const double trunk = (double)(m->info.n_params - m->position_params) - head;
    const double pairs = (double)b->len * (b->len + 1) / 2;
    const double each = b->rank ? 4.0 : 6.0;
    return each * trunk * b->rows * b->len + each * head * b->rows * (b->len - 1) +
           3.0 * 4.0 * pairs * m->info.d_model * b->rows * m->info.n_layer;
}

void bench_train(const struct bench *b, struct model *m) {
    struct train_times best = {.total = 1e30};
    for (int i = 0; i < (b->count ? b->count : WARMUP + STEPS); i++) {
        struct train_times t = bench_train_step(b, m, i + 1);
        if (i >= WARMUP && t.total < best.total) best = t;
    }
    if (b->count) return;
    const double rate = bench_train_flops(b, m) / best.total * 1e-9;
    char title[64];
    snprintf(title, sizeof title, "training step, %d x %d tokens", b->rows, b->len);
    printf("%-44s %10.1f ms, %.0f tokens/s, %.0f GFLOP/s, %.1f %% of peak\n", title,
           best.total * 1e3, b->rows * b->len / best.total, rate, 100 * rate / bench_peak_of(b));
    printf("%-44s %10.1f forward, %.1f backward, %.1f norm, %.1f AdamW, %.1f packing (ms)\n", "",
           best.forward * 1e3, best.backward * 1e3, best.clip * 1e3, best.update * 1e3,
           best.refresh * 1e3);
}
