// test_gradient.c: tests by finite differences (diff.h) that every backward op of the reference
// backend is the derivative of its forward op. Other tests compare the other backends with the
// reference.
#include "diff.h"
#include "support/tensor_close.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static rlhf_dev up(struct call *k, const float *x, uint64_t n) {
    return call_floats(k, x, n, RLHF_F32);
}

static rlhf_dev zeros(struct call *k, uint64_t n) { return call_zeros(k, n, RLHF_F32); }

static void down(struct call *k, float *to, rlhf_dev p, uint64_t n) {
    kit_read(k->c, to, p, n, RLHF_F32);
}

// ---- norm: inputs x, gamma, beta ----

enum { NORM_ROWS = 5, NORM_D = 24 };

static void norm_forward(struct call *k, struct diff *d) {
    rlhf_dev y = zeros(k, NORM_ROWS * NORM_D);
    KIT_OK(k->c,
           k->c->norm(k->c->ctx, y, RLHF_F32, NULL, up(k, d->in[0], NORM_ROWS * NORM_D),
                      up(k, d->in[1], NORM_D), up(k, d->in[2], NORM_D), 1e-5, NORM_ROWS, NORM_D));
    down(k, d->out[0], y, NORM_ROWS * NORM_D);
}

static void norm_backward(struct call *k, struct diff *d) {
    enum { N = NORM_ROWS * NORM_D };
    rlhf_dev y = zeros(k, N), dx = zeros(k, N), stats = zeros(k, 2 * NORM_ROWS);
    rlhf_dev dgamma = zeros(k, NORM_D), dbeta = zeros(k, NORM_D), x = up(k, d->in[0], N);
    rlhf_dev gamma = up(k, d->in[1], NORM_D), beta = up(k, d->in[2], NORM_D);
    KIT_OK(k->c,
           k->c->norm(k->c->ctx, y, RLHF_F32, stats, x, gamma, beta, 1e-5, NORM_ROWS, NORM_D));
    KIT_OK(k->c, k->c->norm_bwd(k->c->ctx, dx, 0, dgamma, dbeta, up(k, d->r[0], N), RLHF_F32, x,
                                stats, gamma, NORM_ROWS, NORM_D));
    down(k, d->grad[0], dx, N);
    down(k, d->grad[1], dgamma, NORM_D);
    down(k, d->grad[2], dbeta, NORM_D);
}

static void norm_is_differentiated(void **state) {
    struct kit *kit = *state;
    struct call k = {.c = kit->ref};
    struct diff d = {.name = "norm",
                     .n_in = 3,
                     .n_out = 1,
                     .in_n = {NORM_ROWS * NORM_D, NORM_D, NORM_D},
                     .out_n = {NORM_ROWS * NORM_D},
                     .forward = norm_forward,
                     .backward = norm_backward};
    diff_init(&k, &d, 1.0);
    diff_check(kit->ref, &d, 2e-3, 2e-3);
    call_finish(&k);
}

// ---- act: input x ----

enum { ACT_N = 200 };

static void act_forward(struct call *k, struct diff *d) {
    rlhf_dev y = zeros(k, ACT_N);
    KIT_OK(k->c, k->c->act(k->c->ctx, y, up(k, d->in[0], ACT_N), *(const int32_t *)d->shape,
                           RLHF_F32, ACT_N));
    down(k, d->out[0], y, ACT_N);
}

static void act_backward(struct call *k, struct diff *d) {
    rlhf_dev dx = zeros(k, ACT_N);
    KIT_OK(k->c, k->c->act_bwd(k->c->ctx, dx, up(k, d->r[0], ACT_N), up(k, d->in[0], ACT_N),
                               *(const int32_t *)d->shape, RLHF_F32, ACT_N));
    down(k, d->grad[0], dx, ACT_N);
}

static void act_is_differentiated(void **state) {
    struct kit *kit = *state;
    const char *names[] = {"gelu_tanh", "gelu_erf", "relu", "silu", "relu2", "sigmoid"};
    for (int32_t kind = RLHF_ACT_GELU_TANH; kind <= RLHF_ACT_SIGMOID; kind++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = names[kind - 1],
                         .shape = &kind,
                         .n_in = 1,
                         .n_out = 1,
                         .in_n = {ACT_N},
                         .out_n = {ACT_N},
                         .forward = act_forward,
                         .backward = act_backward};
        diff_init(&k, &d, 1.5);
        for (int i = 0; i < ACT_N; i++)
            d.in[0][i] += d.in[0][i] < 0.0f ? -0.05f : 0.05f; // away from 0
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- linear: inputs x, w, bias ----

struct linear_shape {
    uint32_t rows, flags;
    int32_t k, n;
};

static void linear_forward(struct call *k, struct diff *d) {
    const struct linear_shape *s = d->shape;
    rlhf_weight *w = call_weight(k, d->in[1], s->k, s->n, RLHF_F32, s->flags);
    rlhf_dev y = zeros(k, d->out_n[0]);
    KIT_OK(k->c, k->c->linear(k->c->ctx, y, RLHF_F32, 0, up(k, d->in[0], d->in_n[0]), w,
                              up(k, d->in[2], d->in_n[2]), s->rows));
    down(k, d->out[0], y, d->out_n[0]);
}

static void linear_backward(struct call *k, struct diff *d) {
    const struct linear_shape *s = d->shape;
    rlhf_weight *w = call_weight(k, d->in[1], s->k, s->n, RLHF_F32, s->flags);
    rlhf_dev dx = zeros(k, d->in_n[0]), dw = zeros(k, d->in_n[1]), db = zeros(k, d->in_n[2]);
    rlhf_dev dy = up(k, d->r[0], d->out_n[0]), x = up(k, d->in[0], d->in_n[0]);
    KIT_OK(k->c, k->c->linear_dx(k->c->ctx, dx, RLHF_F32, 0, dy, w, s->rows));
    KIT_OK(k->c, k->c->linear_dw(k->c->ctx, dw, db, x, dy, w, s->rows));
    down(k, d->grad[0], dx, d->in_n[0]);
    down(k, d->grad[1], dw, d->in_n[1]);
    down(k, d->grad[2], db, d->in_n[2]);
}

static void linear_is_differentiated(void **state) {
    struct kit *kit = *state;
    for (uint32_t flags = 0; flags < 2; flags++) {
        struct call k = {.c = kit->ref};
        const struct linear_shape s = {7, flags | RLHF_WEIGHT_BACKWARD, 12, 9};
        struct diff d = {.name = flags ? "linear [n,k]" : "linear",
                         .shape = &s,
                         .n_in = 3,
                         .n_out = 1,
                         .in_n = {7 * 12, 12 * 9, 9},
                         .out_n = {7 * 9},
                         .forward = linear_forward,
                         .backward = linear_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 1e-2, 1e-3);
        call_finish(&k);
    }
}

// ---- embed: inputs wte, wpe; pool: input x ----

enum { EMBED_D = 8, EMBED_VOCAB = 11, EMBED_POS = 5, EMBED_ROWS = 13 };

static void embed_forward(struct call *k, struct diff *d) {
    int32_t ids[EMBED_ROWS], pos[EMBED_ROWS];
    for (int32_t i = 0; i < EMBED_ROWS; i++) {
        ids[i] = i * i % EMBED_VOCAB;
        pos[i] = i % EMBED_POS;
    }
    rlhf_dev y = zeros(k, d->out_n[0]), dev_ids = call_ints(k, ids, EMBED_ROWS);
    rlhf_dev dev_pos = call_ints(k, pos, EMBED_ROWS), wte = up(k, d->in[0], d->in_n[0]);
    rlhf_dev wpe = up(k, d->in[1], d->in_n[1]);
    KIT_OK(k->c, k->c->embed(k->c->ctx, y, dev_ids, dev_pos, wte, wpe, 2.5, EMBED_ROWS, EMBED_D));
    down(k, d->out[0], y, d->out_n[0]);
    KIT_OK(k->c, k->c->zero(k->c->ctx, wte, d->in_n[0] * sizeof(float)));
    KIT_OK(k->c, k->c->zero(k->c->ctx, wpe, d->in_n[1] * sizeof(float)));
    KIT_OK(k->c, k->c->embed_bwd(k->c->ctx, wte, wpe, up(k, d->r[0], d->out_n[0]), dev_ids, dev_pos,
                                 2.5, EMBED_ROWS, EMBED_D, EMBED_VOCAB, EMBED_POS));
    if (!d->shape) return; // this is only the backward call
    down(k, d->grad[0], wte, d->in_n[0]);
    down(k, d->grad[1], wpe, d->in_n[1]);
}

static void embed_backward(struct call *k, struct diff *d) {
    d->shape = d;
    embed_forward(k, d);
    d->shape = NULL;
}

static void embed_is_differentiated(void **state) {
    struct kit *kit = *state;
    struct call k = {.c = kit->ref};
    struct diff d = {.name = "embed",
                     .n_in = 2,
                     .n_out = 1,
                     .in_n = {EMBED_VOCAB * EMBED_D, EMBED_POS * EMBED_D},
                     .out_n = {EMBED_ROWS * EMBED_D},
                     .forward = embed_forward,
                     .backward = embed_backward};
    diff_init(&k, &d, 1.0);
    diff_check(kit->ref, &d, 1e-2, 1e-3);
    call_finish(&k);
}

enum { POOL_ROWS = 4, POOL_TOTAL = 17, POOL_D = 6 };
static const int32_t pool_offset[POOL_ROWS + 1] = {0, 1, 6, 14, POOL_TOTAL};

static void pool_forward(struct call *k, struct diff *d) {
    rlhf_dev y = zeros(k, d->out_n[0]), offset = call_ints(k, pool_offset, POOL_ROWS + 1);
    KIT_OK(k->c, k->c->pool(k->c->ctx, y, up(k, d->in[0], d->in_n[0]), offset, POOL_ROWS, POOL_D,
                            *(const int32_t *)d->shape));
    down(k, d->out[0], y, d->out_n[0]);
}

static void pool_backward(struct call *k, struct diff *d) {
    rlhf_dev dx = zeros(k, d->in_n[0]), offset = call_ints(k, pool_offset, POOL_ROWS + 1);
    KIT_OK(k->c, k->c->pool_bwd(k->c->ctx, dx, up(k, d->r[0], d->out_n[0]), offset, POOL_ROWS,
                                POOL_D, *(const int32_t *)d->shape));
    down(k, d->grad[0], dx, d->in_n[0]);
}

static void pool_is_differentiated(void **state) {
    struct kit *kit = *state;
    const char *names[] = {"pool mean", "pool first", "pool last"};
    for (int32_t mode = RLHF_POOL_MEAN; mode <= RLHF_POOL_LAST; mode++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = names[mode - 1],
                         .shape = &mode,
                         .n_in = 1,
                         .n_out = 1,
                         .in_n = {POOL_TOTAL * POOL_D},
                         .out_n = {POOL_ROWS * POOL_D},
                         .forward = pool_forward,
                         .backward = pool_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 1e-2, 1e-3);
        call_finish(&k);
    }
}

// ---- attention: inputs q, k, v with different strides ----

enum { AT_TOTAL = 13, AT_HEADS = 2, AT_DIM = 8, AT_D = AT_HEADS * AT_DIM };
static const int32_t at_offset[] = {0, 1, 8, AT_TOTAL};

struct at_shape {
    const char *name;
    int32_t causal, kv_heads, window;
    double softcap;
};

struct at {
    rlhf_attn attn;
    rlhf_ragged ragged;
    rlhf_dev q, k, v, out, lse;
};

static struct at attention_run(struct call *k, struct diff *d) {
    const int32_t zero[3] = {0, 0, 0};
    const struct at_shape *s = d->shape;
    const int32_t kv = s->kv_heads * AT_DIM;
    struct at a = {.attn = {sizeof(rlhf_attn), AT_HEADS, s->kv_heads, AT_DIM, s->causal, RLHF_F32,
                            AT_D, kv, AT_D, .scale = 0.5, .window = s->window,
                            .softcap = s->softcap}};
    a.ragged = (rlhf_ragged){.size = sizeof(rlhf_ragged),
                             .n = 3,
                             .total = AT_TOTAL,
                             .max_q = 7,
                             .max_k = 7,
                             .offset = call_ints(k, at_offset, 4),
                             .start = call_ints(k, zero, 3),
                             .kv_base = call_ints(k, at_offset, 3)};
    a.q = up(k, d->in[0], AT_TOTAL * AT_D);
    a.k = up(k, d->in[1], d->in_n[1]);
    a.v = up(k, d->in[2], d->in_n[2]);
    a.out = zeros(k, AT_TOTAL * AT_D);
    a.lse = zeros(k, AT_TOTAL * AT_HEADS);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &a.attn, &a.ragged, a.out, a.lse, a.q, a.k, a.v));
    return a;
}

static void attention_forward(struct call *k, struct diff *d) {
    const struct at a = attention_run(k, d);
    down(k, d->out[0], a.out, AT_TOTAL * AT_D);
}

static void attention_backward(struct call *k, struct diff *d) {
    const struct at a = attention_run(k, d);
    rlhf_dev dout = up(k, d->r[0], AT_TOTAL * AT_D), g[3];
    for (int i = 0; i < 3; i++)
        g[i] = zeros(k, d->in_n[i]);
    KIT_OK(k->c, k->c->attention_bwd(k->c->ctx, &a.attn, &a.ragged, g[0], g[1], g[2], dout, a.out,
                                     a.lse, a.q, a.k, a.v));
    for (int i = 0; i < 3; i++)
        down(k, d->grad[i], g[i], d->in_n[i]);
}

static void attention_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const struct at_shape at_shapes[] = {
        {"full attention", 0, AT_HEADS, 0, 0},      {"causal attention", 1, AT_HEADS, 0, 0},
        {"attention of a group", 1, 1, 0, 0},       {"attention in a window", 1, 1, 3, 0},
        {"capped attention", 1, AT_HEADS, 0, 0.75}, {"capped in a window", 1, AT_HEADS, 2, 0.75}};
    for (size_t i = 0; i < CHECK_COUNT(at_shapes); i++) {
        struct call k = {.c = kit->ref};
        const uint64_t kv = AT_TOTAL * AT_DIM * (uint64_t)at_shapes[i].kv_heads;
        struct diff d = {.name = at_shapes[i].name,
                         .shape = &at_shapes[i],
                         .n_in = 3,
                         .n_out = 1,
                         .in_n = {AT_TOTAL * AT_D, kv, kv},
                         .out_n = {AT_TOTAL * AT_D},
                         .forward = attention_forward,
                         .backward = attention_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- lm_head: inputs hidden, weight; outputs logp, entropy, kl ----

enum { LM_ROWS = 6, LM_D = 10, LM_VOCAB = 40 };

struct lm {
    rlhf_dist dist;
    uint32_t flags;
    int32_t support; // 1: the target and a third of the ids, others in each row
    double logit_scale, softcap;
};

static const int32_t lm_target[LM_ROWS] = {3, 39, 0, 17, 17, 8};

static rlhf_dev lm_support(struct call *k) {
    int32_t bits[LM_ROWS * 2] = {0};
    for (int t = 0; t < LM_ROWS; t++)
        for (int v = 0; v < LM_VOCAB; v++)
            if (v == lm_target[t] || (v * 5 + t) % 3 == 0)
                bits[2 * t + v / 32] |= (int32_t)(1u << v % 32);
    return call_ints(k, bits, LM_ROWS * 2);
}

static rlhf_lm_head lm_run(struct call *k, struct diff *d) {
    const struct lm *s = d->shape;
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = LM_ROWS,
                      .d = LM_D,
                      .vocab = LM_VOCAB,
                      .dtype = RLHF_F32,
                      .dist = &s->dist,
                      .logit_scale = s->logit_scale,
                      .softcap = s->softcap,
                      .ref_softcap = s->softcap};
    a.hidden = up(k, d->in[0], LM_ROWS * LM_D);
    a.weight = call_weight(k, d->in[1], LM_D, LM_VOCAB, RLHF_F32, s->flags | RLHF_WEIGHT_BACKWARD);
    a.ref_hidden = up(k, call_normal(k, 40, LM_ROWS * LM_D, 1.0), LM_ROWS * LM_D);
    a.ref_weight =
        call_weight(k, call_normal(k, 41, LM_D * LM_VOCAB, 0.5), LM_D, LM_VOCAB, RLHF_F32, 0);
    a.target = call_ints(k, lm_target, LM_ROWS);
    if (s->support) a.support = lm_support(k);
    a.logp = zeros(k, LM_ROWS);
    a.entropy = zeros(k, LM_ROWS);
    a.kl = zeros(k, LM_ROWS);
    return a;
}

static void lm_forward(struct call *k, struct diff *d) {
    const rlhf_lm_head a = lm_run(k, d);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    down(k, d->out[0], a.logp, LM_ROWS);
    down(k, d->out[1], a.entropy, LM_ROWS);
    down(k, d->out[2], a.kl, LM_ROWS);
}

static void lm_backward(struct call *k, struct diff *d) {
    rlhf_lm_head a = lm_run(k, d);
    a.d_logp = up(k, d->r[0], LM_ROWS);
    a.d_entropy = up(k, d->r[1], LM_ROWS);
    a.d_kl = up(k, d->r[2], LM_ROWS);
    a.d_hidden = zeros(k, LM_ROWS * LM_D);
    a.d_weight = zeros(k, LM_D * LM_VOCAB);
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    down(k, d->grad[0], a.d_hidden, LM_ROWS * LM_D);
    down(k, d->grad[1], a.d_weight, LM_D * LM_VOCAB);
}

// `only` selects outputs: 0, 1 or 2 for one output, 3 for all of them.
static void check_lm(rlhf_compute *c, const struct lm *s, uint32_t only, const char *name) {
    struct call k = {.c = c};
    struct diff d = {.name = name,
                     .shape = s,
                     .n_in = 2,
                     .n_out = 3,
                     .in_n = {LM_ROWS * LM_D, LM_D * LM_VOCAB},
                     .out_n = {LM_ROWS, LM_ROWS, LM_ROWS},
                     .forward = lm_forward,
                     .backward = lm_backward};
    diff_init(&k, &d, 0.6);
    for (uint32_t o = 0; o < 3; o++)
        for (int t = 0; only < 3 && o != only && t < LM_ROWS; t++)
            d.r[o][t] = 0.0f;
    // Targets must be in the kept set, so each hidden state is moved toward its target.
    for (int t = 0; t < LM_ROWS; t++)
        for (int i = 0; i < LM_D; i++)
            d.in[0][t * LM_D + i] +=
                2.0f * d.in[1][s->flags & RLHF_WEIGHT_OUT_IN ? lm_target[t] * LM_D + i
                                                             : i * LM_VOCAB + lm_target[t]];
    diff_check(c, &d, 5e-4, 4e-3);
    call_finish(&k);
}

static void lm_head_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const struct {
        const char *name;
        struct lm s;
    } cases[] = {
        {"lm_head", {RLHF_DIST_WHOLE, RLHF_WEIGHT_OUT_IN, 0, 0.0, 0.0}},
        {"lm_head at 0.7", {RLHF_DIST(1.0 / 0.7, 1.0, 0, 0), 0, 0, 0.0, 0.0}},
        {"lm_head top-k", {RLHF_DIST(1.0, 1.0, 9, 0), RLHF_WEIGHT_OUT_IN, 0, 0.0, 0.0}},
        {"lm_head top-p", {RLHF_DIST(1.2, 0.7, 0, 0), 0, 0, 0.0, 0.0}},
        {"lm_head top-k top-p", {RLHF_DIST(1.0, 0.9, 15, 0), RLHF_WEIGHT_OUT_IN, 0, 0.0, 0.0}},
        {"lm_head support", {RLHF_DIST_WHOLE, RLHF_WEIGHT_OUT_IN, 1, 0.0, 0.0}},
        {"lm_head support at 1.5", {RLHF_DIST(1.0 / 1.5, 1.0, 0, 0), 0, 1, 0.0, 0.0}},
        {"lm_head scaled", {RLHF_DIST(1.2, 1.0, 0, 0), 0, 0, 0.5, 0.0}},
        {"lm_head capped", {RLHF_DIST(1.2, 1.0, 0, 0), RLHF_WEIGHT_OUT_IN, 0, 0.0, 2.0}},
        {"lm_head capped top-k", {RLHF_DIST(1.0, 1.0, 9, 0), 0, 0, 1.5, 3.0}}};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        for (uint32_t only = 0; only <= 3; only++)
            check_lm(kit->ref, &cases[i].s, only, cases[i].name);
}

// If a target is outside the kept set, its log-prob is -inf and its gradient is zero. This is
// tested on the other backends, too.
static void lm_head_outside_the_kept_set(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const struct lm s = {RLHF_DIST(1.0, 1.0, 1, 0), RLHF_WEIGHT_OUT_IN, 0, 0.0, 0.0};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        struct diff d = {.name = "outside",
                         .shape = &s,
                         .n_in = 2,
                         .n_out = 3,
                         .in_n = {LM_ROWS * LM_D, LM_D * LM_VOCAB},
                         .out_n = {LM_ROWS, LM_ROWS, LM_ROWS}};
        diff_init(&k, &d, 0.6);
        for (int t = 0; t < LM_ROWS; t++)
            d.r[1][t] = d.r[2][t] = 0.0f;
        for (int t = 0; t < LM_ROWS; t++) // as far from the target as possible
            for (int i = 0; i < LM_D; i++)
                d.in[0][t * LM_D + i] = -d.in[1][lm_target[t] * LM_D + i];
        lm_forward(&k, &d);
        lm_backward(&k, &d);
        for (int t = 0; t < LM_ROWS; t++)
            assert_true(d.out[0][t] == -INFINITY);
        const float none[LM_D * LM_VOCAB] = {0};
        assert_tensor_close(d.grad[0], none, LM_ROWS * LM_D, 0.0, 0.0, "d_hidden");
        assert_tensor_close(d.grad[1], none, LM_D * LM_VOCAB, 0.0, 0.0, "d_weight");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(norm_is_differentiated),
                                       cmocka_unit_test(act_is_differentiated),
                                       cmocka_unit_test(linear_is_differentiated),
                                       cmocka_unit_test(embed_is_differentiated),
                                       cmocka_unit_test(pool_is_differentiated),
                                       cmocka_unit_test(attention_is_differentiated),
                                       cmocka_unit_test(lm_head_is_differentiated),
                                       cmocka_unit_test(lm_head_outside_the_kept_set)};
    return cmocka_run_group_tests_name("kernels: gradient", tests, kit_setup, kit_teardown);
}
