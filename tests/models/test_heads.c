// tests/models/test_heads.c: value, entropy, kl and pooled score heads. Values are compared with
// sums over the vocabulary of log-probs. Gradients are compared with finite differences along each
// tensor's own gradient.
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct backend backend;
static const char *backend_name;

static int setup(void **state) {
    (void)state;
    backend = backend_open(backend_name, 1, 0);
    return backend.compute ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    backend_close(&backend);
    return 0;
}

static const rlhf_batch batch = {sizeof(rlhf_batch), VEC_ROWS,       VEC_TOTAL, 0,   vec_ids,
                                 vec_offset,         vec_prompt_len, NULL,      NULL};

enum { VOCAB = 61, D = 32 };

// A model under test, its planned heads, and its reference.
struct trial {
    struct model m, ref;
    rlhf_forward f;
    float *hidden; // the reference's
};

static void trial_open_as(struct trial *t, const char *plugin, const struct setting *settings,
                          uint32_t heads, rlhf_model_open o) {
    memset(t, 0, sizeof *t);
    o.size = sizeof o;
    o.dtype = RLHF_F32;
    o.trainable = 1;
    o.compute = backend.compute;
    t->m = model_open(plugin, settings, &o);
    model_fill(&t->m, 0.3);
    t->f.size = sizeof t->f;
    t->f.heads = heads;
    t->f.train = 1;
}

static void trial_open(struct trial *t, uint32_t heads, rlhf_model_open o) {
    trial_open_as(t, "gpt2", tiny_gpt2, heads, o);
    if (!(heads & RLHF_HEAD_KL)) return;
    const rlhf_model_open frozen = open_args(&backend, RLHF_F32, 0);
    t->ref = model_open("gpt2", tiny_gpt2, &frozen);
    model_fill(&t->ref, 0.25);
    t->hidden = test_malloc(VEC_TOTAL * D * sizeof *t->hidden);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = t->hidden};
    must(&t->ref, t->ref.ops->forward(t->ref.self, &batch, &f, &out));
    t->f.kl_self = t->ref.self;
    t->f.kl_hidden = t->hidden;
}

static void trial_close(struct trial *t) {
    model_close(&t->m);
    if (t->hidden) model_close(&t->ref);
    if (t->hidden) test_free(t->hidden);
}

struct outputs {
    float logp[VEC_TOTAL], entropy[VEC_TOTAL], kl[VEC_TOTAL], value[VEC_TOTAL];
    float score[VEC_ROWS * VEC_LABELS], token_score[VEC_TOTAL];
};

static rlhf_heads heads_of(struct outputs *o) {
    rlhf_heads h = {.size = sizeof h,
                    .logp = o->logp,
                    .entropy = o->entropy,
                    .kl = o->kl,
                    .value = o->value,
                    .score = o->score,
                    .token_score = o->token_score};
    return h;
}

// Loss: a weighted sum of every planned head.
static double loss(struct trial *t, struct outputs *o) {
    const rlhf_heads h = heads_of(o);
    double sum = 0;
    memset(o, 0, sizeof *o);
    must(&t->m, t->m.ops->forward(t->m.self, &batch, &t->f, &h));
    for (uint64_t i = 0; i < VEC_TOTAL; i++)
        sum += (double)vec_weight(i) *
               ((double)o->logp[i] + 2 * (double)o->entropy[i] + 3 * (double)o->kl[i] +
                (double)o->value[i] + (double)o->token_score[i]);
    for (uint64_t i = 0; i < VEC_ROWS * VEC_LABELS; i++)
        sum += (double)vec_weight(i) * (double)o->score[i];
    return sum;
}

static void gradient(struct trial *t) {
    struct outputs o, d;
    const rlhf_heads grad = heads_of(&d);
    loss(t, &o);
    for (uint64_t i = 0; i < VEC_TOTAL; i++) {
        d.logp[i] = d.value[i] = d.token_score[i] = vec_weight(i);
        d.entropy[i] = 2 * vec_weight(i);
        d.kl[i] = 3 * vec_weight(i);
    }
    for (uint64_t i = 0; i < VEC_ROWS * VEC_LABELS; i++)
        d.score[i] = vec_weight(i);
    model_zero_grad(&t->m);
    must(&t->m, t->m.ops->backward(t->m.self, &batch, &t->f, &grad));
}

static double norm2(const float *x, uint64_t n) {
    double s = 0;
    for (uint64_t i = 0; i < n; i++)
        s += (double)x[i] * (double)x[i];
    return sqrt(s);
}

// The loss after p has moved by eps along direction / |direction|.
static double loss_at(struct trial *t, const rlhf_param *p, const float *at, const float *dir,
                      double step) {
    const uint64_t n = param_count(p);
    struct outputs o;
    float *x = test_malloc(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = at[i] + (float)(step * (double)dir[i]);
    device_write(t->m.c, p->value, x, n);
    test_free(x);
    must(&t->m, t->m.ops->refresh(t->m.self));
    return loss(t, &o);
}

// Central difference of the loss along x's own gradient g, whose length is len. The result should
// be len. Two step sizes are tried, because a long step may cross a corner of a ReLU and a short
// one is lost in rounding. The closer result counts.
static double slope(struct trial *t, const rlhf_param *p, const float *x, const float *g,
                    double len) {
    static const double eps[] = {4e-3, 5e-4};
    double best = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const double up = loss_at(t, p, x, g, eps[k] / len);
        const double down = loss_at(t, p, x, g, -eps[k] / len);
        const double s = (up - down) / (2 * eps[k]);
        if (k == 0 || fabs(s - len) < fabs(best - len)) best = s;
    }
    device_write(t->m.c, p->value, x, param_count(p));
    return best;
}

static void check_gradients(struct trial *t, uint32_t at_least) {
    rlhf_param p = {.size = sizeof p};
    uint32_t checked = 0;
    gradient(t);
    for (uint32_t i = 0; t->m.ops->param(t->m.self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        float *g = device_read(t->m.c, p.grad, n), *x = device_read(t->m.c, p.value, n);
        const double len = norm2(g, n);
        if (len > 0.05) {
            const double got = slope(t, &p, x, g, len);
            if (fabs(got - len) > 1e-2 * len)
                fail_msg("%s: gradient %.6g, finite difference %.6g", p.name, len, got);
            checked++;
        }
        test_free(g);
        test_free(x);
    }
    assert_true(checked >= at_least);
}

static void fd(uint32_t heads, rlhf_model_open o, uint32_t at_least) {
    struct trial t;
    trial_open(&t, heads, o);
    check_gradients(&t, at_least);
    trial_close(&t);
}

static void test_value_mlp(void **state) {
    (void)state;
    fd(RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP}, 28);
}
static void test_value_linear(void **state) {
    (void)state;
    fd(RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_LINEAR}, 26);
}
static void test_entropy(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, (rlhf_model_open){0}, 26);
}
static void test_kl(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_KL, (rlhf_model_open){0}, 26);
}
static void test_together(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE,
       (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .n_labels = VEC_LABELS}, 29);
}
static void test_together_mean(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_SCORE,
       (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN}, 26);
}
static void test_score_mean(void **state) {
    (void)state;
    fd(RLHF_HEAD_SCORE, (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN}, 26);
}
static void test_encoder_mean(void **state) {
    (void)state;
    static const struct setting s[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                       {"dim", "32"},        {"n_layers", "2"},
                                       {"n_heads", "2"},     {"hidden_dim", "64"},
                                       {NULL, NULL}};
    struct trial t;
    trial_open_as(&t, "distilbert", s, RLHF_HEAD_SCORE,
                  (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN});
    check_gradients(&t, 28);
    trial_close(&t);
}
static void test_token_score(void **state) {
    (void)state;
    fd(RLHF_HEAD_TOKEN_SCORE, (rlhf_model_open){.n_labels = 1}, 26);
}
static void test_together_token(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE | RLHF_HEAD_TOKEN_SCORE,
       (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .n_labels = 1}, 29);
}
static void test_score_first(void **state) {
    (void)state; // the first token sees only itself, so scores do not depend on query and key
    fd(RLHF_HEAD_SCORE, (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_FIRST}, 20);
}

// ---- values of entropy and kl ----

// log p(v | ids[0 .. t-1] of row) for all v, from a batch with one row for each v.
static void full_logp(struct model *m, uint32_t row, int32_t t, const rlhf_dist *dist,
                      float out[VOCAB]) {
    int32_t *ids = test_calloc((uint64_t)VOCAB * (uint64_t)(t + 1), sizeof *ids);
    int32_t offset[VOCAB + 1], prompt_len[VOCAB];
    float *logp = test_calloc((uint64_t)VOCAB * (uint64_t)(t + 1), sizeof *logp);
    offset[0] = 0;
    for (int32_t v = 0; v < VOCAB; v++) {
        memcpy(ids + offset[v], vec_ids + vec_offset[row], (uint64_t)t * 4);
        offset[v + 1] = offset[v] + t + 1;
        ids[offset[v + 1] - 1] = v;
        prompt_len[v] = t;
    }
    const rlhf_batch b = {
        sizeof(rlhf_batch), VOCAB, (uint32_t)offset[VOCAB], 0, ids, offset, prompt_len, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .dist = dist};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(m, m->ops->forward(m->self, &b, &f, &h));
    for (int32_t v = 0; v < VOCAB; v++)
        out[v] = logp[offset[v + 1] - 1];
    test_free(ids);
    test_free(logp);
}

static void test_values(void **state) {
    (void)state;
    static const rlhf_dist warm = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct trial t;
    struct outputs o;
    trial_open(&t, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL, (rlhf_model_open){0});
    t.f.dist = &warm;
    loss(&t, &o);
    for (uint32_t row = 0; row < VEC_ROWS; row++)
        for (int32_t k = vec_prompt_len[row]; k < vec_offset[row + 1] - vec_offset[row]; k++) {
            float p[VOCAB], q[VOCAB];
            double mass = 0, entropy = 0, kl = 0;
            const int32_t at = vec_offset[row] + k;
            full_logp(&t.m, row, k, &warm, p);
            full_logp(&t.ref, row, k, &warm, q);
            for (int32_t v = 0; v < VOCAB; v++) {
                mass += exp((double)p[v]);
                entropy -= exp((double)p[v]) * (double)p[v];
                kl += exp((double)p[v]) * ((double)p[v] - (double)q[v]);
            }
            assert_true(fabs(mass - 1) < 1e-5);
            assert_true(fabs(entropy - (double)o.entropy[at]) < 1e-5 * (1 + entropy));
            assert_true(fabs(kl - (double)o.kl[at]) < 1e-5 * (1 + kl));
            assert_true(kl > 1e-4);
        }
    trial_close(&t);
}

static float *param_read(struct model *m, const char *name) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, model_find(m, name), &p));
    return device_read(m->c, p.value, param_count(&p));
}

// The value head, d -> 4d -> ReLU -> 1, on the hidden state before the token, in double.
static void test_value_values(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    float hidden[VEC_TOTAL * D];
    trial_open(&t, RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP});
    loss(&t, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = hidden};
    must(&t.m, t.m.ops->forward(t.m.self, &batch, &f, &out));
    float *w1 = param_read(&t.m, "v_head.fc.weight"), *b1 = param_read(&t.m, "v_head.fc.bias");
    float *w2 = param_read(&t.m, "v_head.out.weight"), *b2 = param_read(&t.m, "v_head.out.bias");
    for (uint32_t row = 0; row < VEC_ROWS; row++)
        for (int32_t i = vec_offset[row] + vec_prompt_len[row]; i < vec_offset[row + 1]; i++) {
            double v = (double)b2[0];
            for (int32_t j = 0; j < 4 * D; j++) {
                double x = (double)b1[j];
                for (int32_t k = 0; k < D; k++)
                    x += (double)w1[j * D + k] * (double)hidden[(i - 1) * D + k];
                if (x > 0) v += x * (double)w2[j];
            }
            assert_true(fabs(v - (double)o.value[i]) < 1e-5 * (1 + fabs(v)));
        }
    test_free(w1);
    test_free(b1);
    test_free(w2);
    test_free(b2);
    trial_close(&t);
}

// The score matrix on the hidden state at the token itself, in double; 0 on prompts. The score of
// the last token equals last pooling, bit for bit.
static void test_token_score_values(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    float hidden[VEC_TOTAL * D];
    trial_open(&t, RLHF_HEAD_SCORE | RLHF_HEAD_TOKEN_SCORE,
               (rlhf_model_open){.n_labels = 1, .pooling = RLHF_POOL_LAST});
    loss(&t, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = hidden};
    must(&t.m, t.m.ops->forward(t.m.self, &batch, &f, &out));
    float *w = param_read(&t.m, "score.weight");
    for (uint32_t row = 0; row < VEC_ROWS; row++) {
        const int32_t end = vec_offset[row + 1], first = vec_offset[row] + vec_prompt_len[row];
        for (int32_t i = vec_offset[row]; i < end; i++) {
            double s = 0;
            for (int32_t k = 0; i >= first && k < D; k++)
                s += (double)w[k] * (double)hidden[i * D + k];
            assert_true(fabs(s - (double)o.token_score[i]) <=
                        (i < first ? 0 : 1e-5 * (1 + fabs(s))));
        }
        if (first < end) assert_memory_equal(&o.score[row], &o.token_score[end - 1], sizeof(float));
    }
    test_free(w);
    trial_close(&t);
}

// The divergence of a model from itself is zero up to rounding, and prompt entries are 0.
static void test_kl_self(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    trial_open(&t, RLHF_HEAD_KL, (rlhf_model_open){0});
    model_fill(&t.ref, 0.3);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = t.hidden};
    must(&t.ref, t.ref.ops->forward(t.ref.self, &batch, &f, &out));
    loss(&t, &o);
    for (uint32_t i = 0; i < VEC_TOTAL; i++)
        assert_true(fabs((double)o.kl[i]) < 1e-6);
    trial_close(&t);
}

// ---- detached value head ----

static float *grads_of(struct trial *t, const char *name, uint64_t *n) {
    rlhf_param p = {.size = sizeof p};
    must(&t->m, t->m.ops->param(t->m.self, model_find(&t->m, name), &p));
    *n = param_count(&p);
    return device_read(t->m.c, p.grad, *n);
}

static void test_detach(void **state) {
    (void)state;
    static const char *const head[] = {"v_head.fc.weight", "v_head.out.weight", "v_head.out.bias"};
    struct trial a, b;
    uint64_t n;
    trial_open(&a, RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP});
    trial_open(&b, RLHF_HEAD_VALUE,
               (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .value_detach = 1});
    gradient(&a);
    gradient(&b);
    for (uint32_t i = 0; i < 3; i++) {
        float *x = grads_of(&a, head[i], &n), *y = grads_of(&b, head[i], &n);
        assert_true(norm2(x, n) > 0);
        assert_memory_equal(x, y, n * sizeof *x);
        test_free(x);
        test_free(y);
    }
    float *x = grads_of(&a, "transformer.wte.weight", &n);
    float *y = grads_of(&b, "transformer.wte.weight", &n);
    assert_true(norm2(x, n) > 0);
    assert_true(norm2(y, n) <= 0);
    test_free(x);
    test_free(y);
    trial_close(&a);
    trial_close(&b);
}

// ---- transfers that wait for the device ----

static int downloads, uploads;

static rlhf_status counted_download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    downloads++;
    return backend.compute->download(ctx, dst, src, bytes);
}

static rlhf_status counted_upload(void *ctx, rlhf_dev dst, const void *src, uint64_t bytes) {
    uploads++;
    return backend.compute->upload(ctx, dst, src, bytes);
}

// With any number of heads, forward uploads the batch once and downloads the results once, and
// backward uploads the derivatives once. An instance whose table lacks linear_add gives the same
// bits.
static void test_one_transfer_each_way(void **state) {
    (void)state;
    struct outputs o, plain;
    float *want = NULL;
    for (int without = 0; without < 2; without++) {
        struct trial t;
        rlhf_compute table = *backend.compute;
        table.download = counted_download;
        table.upload = counted_upload;
        if (without) table.linear_add = NULL;
        rlhf_model_open open = {.size = sizeof open,
                                .dtype = RLHF_F32,
                                .trainable = 1,
                                .n_labels = 1,
                                .value_kind = RLHF_VALUE_MLP,
                                .compute = &table};
        memset(&t, 0, sizeof t);
        t.m = model_open("gpt2", tiny_gpt2, &open);
        model_fill(&t.m, 0.3);
        t.f.size = sizeof t.f;
        t.f.heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE;
        t.f.train = 1;
        downloads = uploads = 0;
        loss(&t, &o);
        assert_int_equal(downloads, 1);
        assert_int_equal(uploads, 1);
        gradient(&t); // forward once more, and backward
        assert_int_equal(downloads, 2);
        assert_int_equal(uploads, 3);
        const uint64_t n = t.m.info.grad_bytes / sizeof(float);
        float *got = device_read(backend.compute, t.m.info.grad_base, n);
        if (without) {
            assert_memory_equal(&o, &plain, sizeof o);
            assert_memory_equal(got, want, n * sizeof *got);
            test_free(got);
        } else {
            plain = o;
            want = got;
        }
        trial_close(&t);
    }
    test_free(want);
}

// ---- the reference's states on the device ----

enum { KL_HEADS = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL };

static uint32_t response_tokens(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < VEC_ROWS; i++)
        n += (uint32_t)(vec_offset[i + 1] - vec_offset[i] - vec_prompt_len[i]);
    return n;
}

// The results of gradient(t) and of its forward pass.
static float *bits_of(struct trial *t, struct outputs *o) {
    loss(t, o);
    gradient(t);
    return device_read(t->m.c, t->m.info.grad_base, t->m.info.grad_bytes / sizeof(float));
}

// The rows of the states at `from`, in reverse order.
static void turn_round(rlhf_dev to, rlhf_dev from, uint32_t n, uint64_t row) {
    const rlhf_compute *c = backend.compute;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            c->copy(c->ctx, rlhf_dev_at(to, i * row), rlhf_dev_at(from, (n - 1 - i) * row), row),
            RLHF_OK);
}

// A trial of the full KL on `table`; its reference has not been called.
static void kl_open(struct trial *t, const rlhf_compute *table, int32_t dtype) {
    rlhf_model_open open = {.size = sizeof open, .dtype = dtype, .trainable = 1, .compute = table};
    memset(t, 0, sizeof *t);
    t->m = model_open("gpt2", tiny_gpt2, &open);
    model_fill(&t->m, 0.3);
    open.trainable = 0;
    t->ref = model_open("gpt2", tiny_gpt2, &open);
    model_fill(&t->ref, 0.25);
    assert_true(t->ref.info.caps & RLHF_CAP_DEV_HIDDEN);
    t->hidden = test_malloc(VEC_TOTAL * D * sizeof *t->hidden);
    t->f =
        (rlhf_forward){.size = sizeof t->f, .heads = KL_HEADS, .train = 1, .kl_self = t->ref.self};
}

// The reference's states are in order, or reversed and found by row number. In both cases the
// numbers are those of the path through the host, and only the batch and the results are
// transferred.
static void kl_is_the_same(struct trial *t, const float *want, const struct outputs *host,
                           uint64_t row) {
    const rlhf_compute *c = backend.compute;
    const uint32_t n = response_tokens();
    const uint64_t bytes = t->m.info.grad_bytes;
    rlhf_dev states, turned;
    int32_t rows[VEC_TOTAL];
    struct outputs o;
    assert_int_equal(c->alloc(c->ctx, n * row, &states), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, n * row, &turned), RLHF_OK);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .dev_hidden = states};
    downloads = uploads = 0;
    must(&t->ref, t->ref.ops->forward(t->ref.self, &batch, &f, &out));
    assert_int_equal(downloads, 0);
    assert_int_equal(uploads, 1);
    turn_round(turned, states, n, row);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (int32_t)(n - 1 - i);
    for (int k = 0; k < 2; k++) {
        t->f.kl_hidden = NULL;
        t->f.kl_dev_hidden = k ? turned : states;
        t->f.kl_dev_row = k ? rows : NULL;
        downloads = uploads = 0;
        loss(t, &o);
        assert_int_equal(downloads, 1);
        assert_int_equal(uploads, 1);
        float *got = bits_of(t, &o);
        assert_memory_equal(&o, host, sizeof o);
        assert_memory_equal(got, want, bytes);
        test_free(got);
    }
    rows[1] = -3;
    const rlhf_heads heads = heads_of(&o);
    assert_int_equal(t->m.ops->forward(t->m.self, &batch, &t->f, &heads), RLHF_E_INVALID);
    assert_string_equal(host_failure(), "kl head: kl_dev_row[1] is -3; at least 0");
    c->release(c->ctx, states);
    c->release(c->ctx, turned);
}

static void test_kl_on_the_device(void **state) {
    (void)state;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        rlhf_compute table = *backend.compute;
        struct outputs host;
        struct trial t;
        table.download = counted_download;
        table.upload = counted_upload;
        kl_open(&t, &table, dtype);
        const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
        const rlhf_heads out = {.size = sizeof out, .hidden = t.hidden};
        must(&t.ref, t.ref.ops->forward(t.ref.self, &batch, &f, &out));
        t.f.kl_hidden = t.hidden;
        float *want = bits_of(&t, &host);
        kl_is_the_same(&t, want, &host, D * rlhf_dtype_size(dtype));
        test_free(want);
        trial_close(&t);
    }
}

int main(void) {
    static const char *const names[] = {"reference", "cpu"};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_kl_self),
                                       cmocka_unit_test(test_kl_on_the_device),
                                       cmocka_unit_test(test_value_mlp),
                                       cmocka_unit_test(test_value_linear),
                                       cmocka_unit_test(test_entropy),
                                       cmocka_unit_test(test_kl),
                                       cmocka_unit_test(test_together),
                                       cmocka_unit_test(test_together_mean),
                                       cmocka_unit_test(test_encoder_mean),
                                       cmocka_unit_test(test_value_values),
                                       cmocka_unit_test(test_score_mean),
                                       cmocka_unit_test(test_score_first),
                                       cmocka_unit_test(test_detach),
                                       cmocka_unit_test(test_token_score_values),
                                       cmocka_unit_test(test_token_score),
                                       cmocka_unit_test(test_together_token),
                                       cmocka_unit_test(test_one_transfer_each_way)};
    int failed = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        backend_name = names[i];
        failed += cmocka_run_group_tests_name(names[i], tests, setup, teardown);
    }
    return failed != 0;
}
