// tests/models/test_adapter.c: low-rank adapters. A model with one is the model whose matrices have
// been merged with it, in heads and gradients; with B = 0 it is its base bit for bit; whatever
// holds of a model's bits holds with an adapter; instances on one base are models of their own.
#include "decoders.h"
#include "families.h"
#include "recorder.h"
#include "rollout.h"
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct backend backend;
static const char *backend_name; // set by main for each group
static uint32_t guard;

static int setup(void **state) {
    (void)state;
    backend = backend_open(backend_name, 2, guard);
    return backend.compute ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    backend_close(&backend);
    return 0;
}

static const struct setting post_norm[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                           {"dim", "32"},        {"n_layers", "2"},
                                           {"n_heads", "2"},     {"hidden_dim", "64"},
                                           {NULL, NULL}};
static const struct setting untied_qwen2[] = {{"vocab_size", "61"},
                                              {"hidden_size", "16"},
                                              {"intermediate_size", "20"},
                                              {"num_hidden_layers", "2"},
                                              {"num_attention_heads", "2"},
                                              {"num_key_value_heads", "1"},
                                              {"max_position_embeddings", "24"},
                                              {NULL, NULL}};

// An architecture and what of it has an adapter. stored_in_out: its linear layers are [in, out].
static const struct kind {
    const char *plugin;
    const struct setting *settings;
    const char *target[3];
    int32_t rank, n_labels, value_kind, stored_in_out;
    uint32_t heads;
} kinds[] = {
    {"gpt2",
     tiny_gpt2,
     {"all-linear"},
     3,
     0,
     RLHF_VALUE_MLP,
     1,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE},
    {"gpt2", tiny_gpt2, {"c_attn"}, 4, 0, RLHF_VALUE_NONE, 1, RLHF_HEAD_LOGP},
    {"gpt2", tiny_gpt2, {"mlp.c_proj"}, 2, 0, RLHF_VALUE_NONE, 1, RLHF_HEAD_LOGP},
    {"qwen",
     tiny_qwen2,
     {"q_proj", "v_proj"},
     4,
     1,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE},
    {"qwen",
     tiny_qwen2,
     {"self_attn.k_proj", "up_proj", "1.mlp.down_proj"},
     5,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP},
    {"qwen",
     tiny_qwen3,
     {"all-linear"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"qwen",
     untied_qwen2,
     {"all-linear"},
     1,
     0,
     RLHF_VALUE_LINEAR,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_VALUE},
    {"distilbert", post_norm, {"all-linear"}, 3, VEC_LABELS, RLHF_VALUE_NONE, 0, RLHF_HEAD_SCORE},
    {"distilbert",
     post_norm,
     {"q_lin", "lin2"},
     3,
     VEC_LABELS,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_SCORE},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
#define SCALE 1.75

// How a kind is opened beside its own arguments. zero: B stays 0.
struct how {
    int32_t dtype, plain, recompute, zero, trainable;
    const void *base;
};

static rlhf_adapter adapter_of(const struct kind *k) {
    rlhf_adapter a = {
        .size = sizeof a, .rank = k->rank, .scale = SCALE, .target = k->target, .n_targets = 0};
    while (a.n_targets < 3 && k->target[a.n_targets])
        a.n_targets++;
    return a;
}

static void zero_ups(struct model *m) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++)
        if (p.group == RLHF_PARAM_ADAPTER && strstr(p.name, "lora_B"))
            must(m, m->c->zero(m->c->ctx, p.value, param_count(&p) * sizeof(float)));
    must(m, m->ops->refresh(m->self));
}

// plain: without the adapter.
static struct model open_on(const struct backend *b, const struct kind *k, struct how h) {
    const rlhf_adapter a = adapter_of(k);
    rlhf_model_open o = open_args(b, h.dtype, h.trainable);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    o.recompute = h.recompute;
    o.adapter = h.plain ? NULL : &a;
    o.base = h.base;
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    if (h.zero) zero_ups(&m);
    return m;
}

static struct model open_kind(const struct kind *k, struct how h) {
    return open_on(&backend, k, h);
}

// ---- one step ----

enum { HEADS = 5 };

// All heads of a batch, [HEADS, per_head]; test_free.
static uint64_t per_head(const rlhf_batch *b) { return b->total + VEC_ROWS * VEC_LABELS; }
static float *heads_of(struct model *m, const struct kind *k, const rlhf_batch *b, int32_t train,
                       uint32_t flags) {
    const uint64_t n = per_head(b);
    float *all = test_calloc(HEADS * n, sizeof *all);
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = train, .flags = flags};
    const rlhf_heads h = {.size = sizeof h,
                          .logp = all,
                          .entropy = all + n,
                          .value = all + 2 * n,
                          .token_score = all + 3 * n,
                          .score = all + 4 * n};
    must(m, m->ops->forward(m->self, b, &f, &h));
    return all;
}

static void backward(struct model *m, const struct kind *k, const rlhf_batch *b) {
    const uint64_t n = per_head(b);
    float *d = test_calloc(n, sizeof *d);
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = 1};
    const rlhf_heads g = {
        .size = sizeof g, .logp = d, .entropy = d, .value = d, .token_score = d, .score = d};
    for (uint64_t i = 0; i < n; i++)
        d[i] = vec_weight(i);
    must(m, m->ops->backward(m->self, b, &f, &g));
    test_free(d);
}

// Heads, then the gradients of all that is trained, of one step. *n: numbers. test_free.
static float *step(struct model *m, const struct kind *k, const rlhf_batch *b, uint64_t *n) {
    const uint64_t heads = HEADS * per_head(b);
    float *all = test_calloc(heads + (uint64_t)m->info.n_params, sizeof *all);
    float *h = heads_of(m, k, b, 1, 0);
    memcpy(all, h, heads * sizeof *h);
    test_free(h);
    backward(m, k, b);
    *n = heads;
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        if (!p.grad) continue;
        float *x = device_read(m->c, p.grad, param_count(&p));
        memcpy(all + *n, x, param_count(&p) * sizeof *x);
        *n += param_count(&p);
        test_free(x);
    }
    return all;
}

static rlhf_param param_named(struct model *m, const char *name) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, model_find(m, name), &p));
    return p;
}

// ---- merged ----

// One adapted layer: the parameters' names, and the merged model's matrix.
struct pair {
    char a[RLHF_PARAM_NAME_MAX + 1], b[RLHF_PARAM_NAME_MAX + 1], whole[RLHF_PARAM_NAME_MAX + 1];
    uint64_t in, out, rank;
};

// The pair whose A is p; 0 when p is no A.
static int pair_of(struct model *m, const rlhf_param *p, struct pair *out) {
    const char *end = strstr(p->name, "lora_A.weight");
    if (!end) return 0;
    const int n = (int)(end - p->name);
    snprintf(out->a, sizeof out->a, "%s", p->name);
    snprintf(out->b, sizeof out->b, "%.*slora_B.weight", n, p->name);
    snprintf(out->whole, sizeof out->whole, "%.*sweight", n, p->name);
    const rlhf_param b = param_named(m, out->b);
    out->rank = (uint64_t)p->shape[0];
    out->in = (uint64_t)p->shape[1];
    out->out = (uint64_t)b.shape[0];
    assert_int_equal(b.shape[1], p->shape[0]);
    return 1;
}

// Of a matrix of in x out as it is stored.
static uint64_t at(const struct kind *k, const struct pair *q, uint64_t i, uint64_t o) {
    return k->stored_in_out ? i * q->out + o : o * q->in + i;
}

// merged's matrix += scale * B A.
static void merge(const struct kind *k, struct model *m, struct model *merged,
                  const struct pair *q) {
    const rlhf_param w = param_named(merged, q->whole);
    float *a = device_read(m->c, param_named(m, q->a).value, q->rank * q->in);
    float *b = device_read(m->c, param_named(m, q->b).value, q->out * q->rank);
    float *x = device_read(m->c, w.value, param_count(&w));
    for (uint64_t o = 0; o < q->out; o++)
        for (uint64_t i = 0; i < q->in; i++) {
            double sum = 0;
            for (uint64_t r = 0; r < q->rank; r++)
                sum += (double)b[o * q->rank + r] * (double)a[r * q->in + i];
            float *to = &x[at(k, q, i, o)];
            *to = (float)((double)*to + SCALE * sum);
        }
    device_write(m->c, w.value, x, param_count(&w));
    test_free(a);
    test_free(b);
    test_free(x);
}

// The gradients of A and B are those that the merged matrix's leads to.
static void check_pair(const struct kind *k, struct model *m, struct model *merged,
                       const struct pair *q) {
    const rlhf_param w = param_named(merged, q->whole), pa = param_named(m, q->a);
    const rlhf_param pb = param_named(m, q->b);
    float *a = device_read(m->c, pa.value, q->rank * q->in);
    float *b = device_read(m->c, pb.value, q->out * q->rank);
    float *ga = device_read(m->c, pa.grad, q->rank * q->in);
    float *gb = device_read(m->c, pb.grad, q->out * q->rank);
    float *g = device_read(m->c, w.grad, param_count(&w));
    float *want_a = test_calloc(q->rank * q->in, sizeof *want_a);
    float *want_b = test_calloc(q->out * q->rank, sizeof *want_b);
    for (uint64_t o = 0; o < q->out; o++)
        for (uint64_t r = 0; r < q->rank; r++) {
            double sum = 0;
            for (uint64_t i = 0; i < q->in; i++)
                sum += (double)g[at(k, q, i, o)] * (double)a[r * q->in + i];
            want_b[o * q->rank + r] = (float)(SCALE * sum);
        }
    for (uint64_t r = 0; r < q->rank; r++)
        for (uint64_t i = 0; i < q->in; i++) {
            double sum = 0;
            for (uint64_t o = 0; o < q->out; o++)
                sum += (double)g[at(k, q, i, o)] * (double)b[o * q->rank + r];
            want_a[r * q->in + i] = (float)(SCALE * sum);
        }
    assert_tensor_close(ga, want_a, q->rank * q->in, VEC_RTOL, 0, q->a);
    assert_tensor_close(gb, want_b, q->out * q->rank, VEC_RTOL, 0, q->b);
    float *all[] = {a, b, ga, gb, g, want_a, want_b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_free(all[i]);
}

static void check_merged(const struct kind *k) {
    struct model m = open_kind(k, (struct how){.dtype = RLHF_F32, .trainable = 1});
    struct model merged = open_kind(k, (struct how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    rlhf_param p = {.size = sizeof p};
    struct pair q;
    uint32_t pairs = 0;
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++)
        if (pair_of(&m, &p, &q)) merge(k, &m, &merged, &q);
    must(&merged, merged.ops->refresh(merged.self));
    float *got = heads_of(&m, k, &vec_batch, 1, 0), *want = heads_of(&merged, k, &vec_batch, 1, 0);
    assert_tensor_close(got, want, HEADS * per_head(&vec_batch), 2e-5, 0, k->plugin);
    backward(&m, k, &vec_batch);
    backward(&merged, k, &vec_batch);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        if (pair_of(&m, &p, &q)) {
            pairs++;
            check_pair(k, &m, &merged, &q);
        }
        if (p.group == RLHF_PARAM_ADAPTER) continue;
        assert_int_equal(p.grad == NULL, p.group == RLHF_PARAM_TRUNK);
        if (!p.grad) continue; // heads are trained in full
        float *x = device_read(m.c, p.grad, n);
        float *y = device_read(m.c, param_named(&merged, p.name).grad, n);
        assert_tensor_close(x, y, n, VEC_RTOL, 0, p.name);
        test_free(x);
        test_free(y);
    }
    assert_true(pairs > 0);
    test_free(got);
    test_free(want);
    model_close(&merged);
    model_close(&m);
}

static void is_the_merged_model(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++)
        check_merged(&kinds[i]);
}

static void same(const float *a, const float *b, uint64_t n, const char *what) {
    for (uint64_t i = 0; i < n; i++)
        if (a[i] != b[i])
            fail_msg("%s: number %u is %.9g, not %.9g", what, (unsigned)i, (double)a[i],
                     (double)b[i]);
}

// ---- full rank ----

// With A the identity and B = 0, rank the layer's width, B's gradient is the layer's own in full,
// so that a step on B is a step on the matrix.
static void full_rank(void **state) {
    (void)state;
    enum { WIDTH = 16, OUT = 8 }; // v_proj of tiny_qwen2
    static const char name[] = "model.layers.1.self_attn.v_proj.";
    const struct kind k = {"qwen",          tiny_qwen2, {"1.self_attn.v_proj"}, WIDTH, 0,
                           RLHF_VALUE_NONE, 0,          RLHF_HEAD_LOGP};
    rlhf_adapter a = adapter_of(&k);
    a.scale = 1;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    o.adapter = &a;
    struct model m = model_open(k.plugin, k.settings, &o);
    struct model full = open_kind(&k, (struct how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    model_fill(&m, 0.3);
    char text[3][RLHF_PARAM_NAME_MAX + 1];
    const char *const end[] = {"lora_A.weight", "lora_B.weight", "weight"};
    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "%s%s", name, end[i]);
    const rlhf_param pa = param_named(&m, text[0]), pb = param_named(&m, text[1]);
    const rlhf_param w = param_named(&full, text[2]);
    assert_int_equal(param_count(&pb), OUT * WIDTH);
    float one[WIDTH * WIDTH] = {0};
    for (int i = 0; i < WIDTH; i++)
        one[i * WIDTH + i] = 1;
    device_write(m.c, pa.value, one, WIDTH * WIDTH);
    zero_ups(&m);
    struct model *both[] = {&m, &full};
    for (int i = 0; i < 2; i++) {
        float *heads = heads_of(both[i], &k, &vec_batch, 1, 0);
        test_free(heads);
        backward(both[i], &k, &vec_batch);
    }
    float *g = device_read(m.c, pb.grad, OUT * WIDTH),
          *want = device_read(m.c, w.grad, OUT * WIDTH);
    assert_tensor_close(g, want, OUT * WIDTH, 1e-6, 0, "gradient of full rank");
    float *x = device_read(m.c, w.value, OUT * WIDTH);
    for (int i = 0; i < OUT * WIDTH; i++) {
        x[i] -= 0.01f * want[i];
        g[i] *= -0.01f;
    }
    device_write(m.c, pb.value, g, OUT * WIDTH);
    device_write(m.c, w.value, x, OUT * WIDTH);
    must(&m, m.ops->refresh(m.self));
    must(&full, full.ops->refresh(full.self));
    float *got = heads_of(&m, &k, &vec_batch, 0, 0), *after = heads_of(&full, &k, &vec_batch, 0, 0);
    assert_tensor_close(got, after, HEADS * per_head(&vec_batch), 1e-5, 0, "after a step");
    float *all[] = {g, want, x, got, after};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_free(all[i]);
    model_close(&full);
    model_close(&m);
}

// ---- the base ----

// With B = 0, and with the flag whatever B is, the base's bits.
static void is_its_base(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const struct kind *k = &kinds[i];
            const uint64_t n = HEADS * per_head(&vec_batch);
            struct model base = open_kind(k, (struct how){.dtype = dtype, .plain = 1});
            struct model zero = open_kind(k, (struct how){.dtype = dtype, .zero = 1});
            struct model m = open_kind(k, (struct how){.dtype = dtype});
            float *want = heads_of(&base, k, &vec_batch, 0, 0);
            float *of_zero = heads_of(&zero, k, &vec_batch, 0, 0);
            float *flagged = heads_of(&m, k, &vec_batch, 0, RLHF_FORWARD_BASE);
            float *moved = heads_of(&m, k, &vec_batch, 0, 0);
            same(of_zero, want, n, "B = 0");
            same(flagged, want, n, "RLHF_FORWARD_BASE");
            assert_memory_not_equal(moved, want, n * sizeof *want);
            test_free(want);
            test_free(of_zero);
            test_free(flagged);
            test_free(moved);
            model_close(&m);
            model_close(&zero);
            model_close(&base);
        }
}

// ---- bits ----

static void same_step(const struct kind *k, struct model *x, struct model *y, const rlhf_batch *b) {
    uint64_t n = 0, other = 0;
    float *p = step(x, k, b, &n), *q = step(y, k, b, &other);
    assert_int_equal(n, other);
    same(p, q, n, k->plugin);
    test_free(p);
    test_free(q);
}

static void recomputed(void **state) {
    (void)state;
    struct families rows = families_make(tiny_families, N_FAMILIES, TINY_VOCAB);
    for (int32_t i = 0; i < N_KINDS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const struct how keep = {.dtype = dtype, .trainable = 1};
            struct how again = keep;
            again.recompute = RLHF_RECOMPUTE_LAYER;
            struct model x = open_kind(&kinds[i], keep), y = open_kind(&kinds[i], again);
            same_step(&kinds[i], &x, &y,
                      kinds[i].heads & RLHF_HEAD_SCORE ? &vec_batch : &rows.compact);
            model_close(&y);
            model_close(&x);
        }
    families_free(&rows);
}

static void threads(void **state) {
    (void)state;
    if (backend_is_slow()) return; // it has none
    struct backend one = backend_open(backend_name, 1, guard);
    for (int32_t i = 0; i < N_KINDS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const struct how h = {.dtype = dtype, .trainable = 1};
            struct model x = open_kind(&kinds[i], h), y = open_on(&one, &kinds[i], h);
            same_step(&kinds[i], &x, &y, &vec_batch);
            model_close(&y);
            model_close(&x);
        }
    backend_close(&one);
}

// Rows that share a prompt have the log-probs they have by themselves, and its gradients added up.
static void shared_prompts(void **state) {
    (void)state;
    struct families rows = families_make(tiny_families, N_FAMILIES, TINY_VOCAB);
    for (int32_t i = 0; i < N_KINDS; i++) {
        if (kinds[i].heads & RLHF_HEAD_SCORE) continue;
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            struct model m = open_kind(&kinds[i], (struct how){.dtype = dtype});
            float *full = heads_of(&m, &kinds[i], &rows.full, 0, 0);
            float *compact = heads_of(&m, &kinds[i], &rows.compact, 0, 0);
            int32_t compared = 0;
            for (uint32_t r = 0; r < rows.compact.n; r++)
                for (int32_t t = rows.c_offset[r] + rows.c_prompt_len[r]; t < rows.c_offset[r + 1];
                     t++, compared++)
                    same(compact + t, full + rows.at[t], 1, kinds[i].plugin);
            if (compared < 30) fail_msg("%d tokens", compared);
            test_free(full);
            test_free(compact);
            model_close(&m);
        }
    }
    families_free(&rows);
}

// What is sampled is what is trained on: exactly, however many rows are in flight.
static void sampled_is_trained(void **state) {
    (void)state;
    const rlhf_dist dist = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct rollout *r = test_malloc(2 * sizeof *r);
    for (int32_t i = 0; i < N_KINDS; i++) {
        if (!(kinds[i].heads & RLHF_HEAD_LOGP)) continue;
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            struct model m = open_kind(&kinds[i], (struct how){.dtype = dtype, .trainable = 1});
            rollout_init(r, 61, 7, 12);
            rollout_run(r, &m, 4, 100, &dist, &dist, 0);
            rollout_init(r + 1, 61, 7, 12);
            rollout_run(r + 1, &m, ROLL_ROWS, 7, &dist, &dist, 0);
            assert_memory_equal(r, r + 1, sizeof *r);
            struct rollout_batch b = rollout_batch(r, 0, ROLL_ROWS, 61);
            float *logp = test_malloc(b.b.total * sizeof *logp);
            const rlhf_forward f = {
                .size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1, .dist = &dist};
            const rlhf_heads out = {.size = sizeof out, .logp = logp};
            must(&m, m.ops->forward(m.self, &b.b, &f, &out));
            same(logp, b.logp, b.b.total, "sampled = trained");
            test_free(logp);
            rollout_batch_free(&b);
            model_close(&m);
        }
    }
    test_free(r);
}

// ---- instances on one base ----

// The same adapter on a base, and as a model of its own.
static void on_a_base(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const struct kind *k = &kinds[i];
            const struct how alone = {.dtype = dtype, .trainable = 1};
            struct how on = alone;
            const uint64_t nothing = backend.compute->bytes_in_use(backend.compute->ctx);
            struct model x = open_kind(k, alone);
            const uint64_t one = backend.compute->bytes_in_use(backend.compute->ctx);
            struct model base = open_kind(k, alone);
            const uint64_t two = backend.compute->bytes_in_use(backend.compute->ctx);
            zero_ups(&base); // it has an adapter of its own, which is another
            on.base = base.self;
            struct model y = open_kind(k, on), z;
            const uint64_t three = backend.compute->bytes_in_use(backend.compute->ctx);
            assert_true(three - two < one - nothing);
            rlhf_param p = {.size = sizeof p};
            for (uint32_t j = 0; y.ops->param(y.self, j, &p) == RLHF_OK; j++)
                assert_int_not_equal(p.group, RLHF_PARAM_TRUNK);
            same_step(k, &x, &y, &vec_batch);
            // Without an adapter it is the base, and so is what has this one as its base.
            on = (struct how){.dtype = dtype, .plain = 1, .base = y.self};
            z = open_kind(k, on);
            float *want = heads_of(&base, k, &vec_batch, 0, 0);
            float *got = heads_of(&z, k, &vec_batch, 0, 0);
            same(got, want, HEADS * per_head(&vec_batch), "the base");
            test_free(want);
            test_free(got);
            model_close(&z);
            model_close(&y);
            model_close(&base);
            model_close(&x);
        }
}

// On a base and without an adapter the heads learn, and nothing else is kept or computed.
static void heads_alone(void **state) {
    (void)state;
    const struct kind k = {
        "gpt2", tiny_gpt2,      {"c_fc"}, 2,
        1,      RLHF_VALUE_MLP, 1,        RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE | RLHF_HEAD_LOGP};
    const struct how h = {.dtype = RLHF_F32, .trainable = 1, .zero = 1};
    struct model base = open_kind(&k, h);
    struct model full = open_kind(&k, (struct how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    struct model m = open_kind(
        &k, (struct how){.dtype = RLHF_F32, .trainable = 1, .plain = 1, .base = base.self});
    rlhf_param p = {.size = sizeof p};
    float *x = heads_of(&m, &k, &vec_batch, 1, 0), *y = heads_of(&full, &k, &vec_batch, 1, 0);
    same(x, y, HEADS * per_head(&vec_batch), "heads");
    test_free(x);
    test_free(y);
    backward(&m, &k, &vec_batch);
    backward(&full, &k, &vec_batch);
    uint32_t n = 0;
    for (; m.ops->param(m.self, n, &p) == RLHF_OK; n++) {
        x = device_read(m.c, p.grad, param_count(&p));
        y = device_read(m.c, param_named(&full, p.name).grad, param_count(&p));
        same(x, y, param_count(&p), p.name);
        test_free(x);
        test_free(y);
    }
    assert_int_equal(n, 5);
    model_close(&m);
    model_close(&full);
    model_close(&base);
}

// A base that is frozen, and the reference's kl against what was made from it.
static void frozen_base(void **state) {
    (void)state;
    const struct kind *k = &kinds[5];
    rlhf_model_open o = open_args(&backend, RLHF_BF16, 0);
    o.frozen = 1;
    struct model base = model_open(k->plugin, k->settings, &o);
    model_fill(&base, 0.3);
    struct model m = open_kind(k, (struct how){.dtype = RLHF_BF16, .base = base.self});
    struct model alone = open_kind(k, (struct how){.dtype = RLHF_BF16});
    float *x = heads_of(&m, k, &vec_batch, 0, 0), *y = heads_of(&alone, k, &vec_batch, 0, 0);
    same(x, y, HEADS * per_head(&vec_batch), "a frozen base");
    test_free(x);
    test_free(y);
    const uint64_t states = VEC_TOTAL * (uint64_t)m.info.d_model;
    float *hidden = test_calloc(states, sizeof *hidden), kl[VEC_TOTAL], self[VEC_TOTAL];
    const rlhf_forward ref = {
        .size = sizeof ref, .heads = RLHF_HEAD_HIDDEN, .flags = RLHF_FORWARD_BASE};
    const rlhf_heads h = {.size = sizeof h, .hidden = hidden};
    for (int32_t r = 0; r < 2; r++) { // the base is the reference, or the model itself is
        struct model *from = r ? &m : &base;
        const rlhf_forward f = {.size = sizeof f,
                                .heads = RLHF_HEAD_LOGP | RLHF_HEAD_KL,
                                .kl_self = from->self,
                                .kl_hidden = hidden};
        const rlhf_heads out = {.size = sizeof out, .kl = r ? self : kl};
        must(from, from->ops->forward(from->self, &vec_batch, &ref, &h));
        must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    }
    assert_memory_equal(kl, self, sizeof kl);
    double sum = 0;
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        sum += (double)kl[t];
    assert_true(sum > 0.01);
    test_free(hidden);
    model_close(&alone);
    model_close(&m);
    model_close(&base);
}

// ---- what is computed ----

// The backend's table, counting.
static struct counted { int32_t dw, dx, across, embeddings, head_weights; } counted;

static rlhf_status count_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                            const rlhf_weight *w, uint32_t rows) {
    counted.dw++;
    return backend.compute->linear_dw(ctx, dw, db, x, dy, w, rows);
}
static rlhf_status count_dx(void *ctx, rlhf_dev dx, int32_t dtype, int32_t add, rlhf_dev dy,
                            const rlhf_weight *w, uint32_t rows) {
    counted.dx++;
    return backend.compute->linear_dx(ctx, dx, dtype, add, dy, w, rows);
}
static rlhf_status count_sum(void *ctx, const rlhf_linear_sum *a) {
    counted.across += a->across;
    return backend.compute->linear_sum(ctx, a);
}
static rlhf_status count_embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout,
                                   rlhf_dev ids, rlhf_dev pos, uint32_t rows, int32_t d,
                                   int32_t vocab, int32_t n_pos) {
    counted.embeddings++;
    return backend.compute->embed_bwd(ctx, dwte, dwpe, dout, ids, pos, rows, d, vocab, n_pos);
}
static rlhf_status count_head(void *ctx, const rlhf_lm_head *a) {
    counted.head_weights += a->d_weight != NULL;
    return backend.compute->lm_head_bwd(ctx, a);
}

// Of two layers with four products each: gradients of A and B alone, and none of what lies below
// the lowest adapter.
static void nothing_in_vain(void **state) {
    (void)state;
    static const struct {
        const char *target[3];
        struct counted want;
    } cases[] = {
        // B and A of both layers; back through the four products of layer 1 and three of layer 0,
        // of which those with an adapter are sums, and through each B
        {{"q_proj", "v_proj"}, {4, 3 + 3 + 2, 1, 0, 0}},
        {{"down_proj"}, {4, 3 + 2, 1, 0, 0}},
        {{"all-linear"}, {16, 8, 4 + 3, 0, 0}},
        {{"1.mlp.gate_proj"}, {2, 1 + 1, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kind k = {"qwen", tiny_qwen2, {NULL}, 2, 0, RLHF_VALUE_NONE, 0, RLHF_HEAD_LOGP};
        memcpy(k.target, cases[i].target, sizeof k.target);
        rlhf_compute table = *backend.compute;
        table.linear_dw = count_dw;
        table.linear_dx = count_dx;
        table.linear_sum = count_sum;
        table.embed_bwd = count_embed_bwd;
        table.lm_head_bwd = count_head;
        const struct backend counting = {NULL, NULL, &table};
        struct model m = open_on(&counting, &k, (struct how){.dtype = RLHF_BF16, .trainable = 1});
        test_free(heads_of(&m, &k, &vec_batch, 1, 0));
        counted = (struct counted){0, 0, 0, 0, 0};
        backward(&m, &k, &vec_batch);
        if (memcmp(&counted, &cases[i].want, sizeof counted) != 0)
            fail_msg("%s: %d dw, %d dx, %d sums, %d embeddings, %d head weights", k.target[0],
                     counted.dw, counted.dx, counted.across, counted.embeddings,
                     counted.head_weights);
        model_close(&m);
    }
}

// A backend that records calls draws the same, and breaks none of its rules.
static void recorded(void **state) {
    (void)state;
    const rlhf_dist dist = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct rollout *r = test_malloc(2 * sizeof *r);
    for (int32_t i = 0; i < N_KINDS; i++) {
        if (!(kinds[i].heads & RLHF_HEAD_LOGP) || backend_is_slow()) continue;
        struct recorder rec;
        recorder_init(&rec, backend.compute);
        const struct backend recording = {NULL, NULL, &rec.table};
        for (int32_t with = 0; with < 2; with++) {
            const struct how h = {.dtype = RLHF_BF16};
            struct model m = open_on(with ? &recording : &backend, &kinds[i], h);
            rollout_init(r + with, 61, 7, 12);
            rollout_run(r + with, &m, ROLL_ROWS, 100, &dist, &dist, 0);
            model_close(&m);
        }
        assert_string_equal(rec.broken, "");
        assert_true(rec.replays > 0);
        assert_memory_equal(r, r + 1, sizeof *r);
        recorder_finish(&rec);
    }
    test_free(r);
}

// ---- what is listed ----

static void listed(void **state) {
    (void)state;
    static const char *const want[] = {"model.layers.0.self_attn.q_proj.lora_A.weight",
                                       "model.layers.0.self_attn.q_proj.lora_B.weight",
                                       "model.layers.0.self_attn.v_proj.lora_A.weight",
                                       "model.layers.0.self_attn.v_proj.lora_B.weight",
                                       "model.layers.1.self_attn.q_proj.lora_A.weight",
                                       "model.layers.1.self_attn.q_proj.lora_B.weight",
                                       "model.layers.1.self_attn.v_proj.lora_A.weight",
                                       "model.layers.1.self_attn.v_proj.lora_B.weight"};
    static const int64_t shapes[][2] = {{4, 16}, {16, 4}, {4, 16}, {8, 4}};
    const struct kind k = {
        "qwen", untied_qwen2,  {"v_proj", "q_proj", "q_proj"}, 4, 0, RLHF_VALUE_NONE,
        0,      RLHF_HEAD_LOGP};
    const rlhf_adapter a = adapter_of(&k);
    rlhf_model_open o = open_args(&backend, RLHF_BF16, 1);
    o.adapter = &a;
    struct model m = model_open(k.plugin, k.settings, &o);
    assert_true(m.info.heads & RLHF_HEAD_ADAPTER);
    rlhf_param p = {.size = sizeof p};
    uint32_t n = 0;
    uint64_t trained = 0;
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        assert_non_null(p.value);
        if (p.group != RLHF_PARAM_ADAPTER) {
            assert_int_equal(n, 0); // they come last
            assert_true(p.flags & RLHF_PARAM_FROZEN);
            assert_null(p.grad);
            continue;
        }
        assert_string_equal(p.name, want[n]);
        assert_int_equal(p.shape[0], shapes[n % 4][0]);
        assert_int_equal(p.shape[1], shapes[n % 4][1]);
        assert_int_equal(p.flags, RLHF_PARAM_DECAY);
        assert_int_equal(p.init, n % 2 ? RLHF_INIT_ZERO : RLHF_INIT_UNIFORM);
        if (n % 2 == 0) assert_true(fabs(p.init_std - 0.25) < 1e-12);
        assert_non_null(p.grad);
        trained += param_count(&p);
        n++;
    }
    assert_int_equal(n, 8);
    assert_true(m.info.grad_bytes >= trained * sizeof(float) &&
                m.info.grad_bytes < 2 * 4 * trained);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    model_fill(&m, 0.3);
    must(&m, m.ops->refresh(m.self)); // as often as wanted
    assert_true(m.c->bytes_in_use(m.c->ctx) < before + 61 * 16 * 16);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        const int packed = p.group == RLHF_PARAM_TRUNK && p.ndim == 2 && !strstr(p.name, "embed");
        assert_int_equal(p.value == NULL, packed);
    }
    model_close(&m);
}

// ---- what is refused ----

static void refuse(const struct kind *k, const rlhf_adapter *a, const void *base, int32_t dtype,
                   const char *says) {
    rlhf_model_open o = open_args(&backend, dtype, 1);
    struct model m;
    o.adapter = a;
    o.base = base;
    o.n_labels = k->n_labels;
    must(&m, model_create(k->plugin, k->settings, &m));
    m.c = backend.compute;
    const rlhf_status st = m.ops->open(m.self, &o);
    if (st != RLHF_E_INVALID) fail_msg("%s: %d", says, st);
    if (!strstr(host_failure(), says)) fail_msg("\"%s\" does not say \"%s\"", host_failure(), says);
    model_close(&m);
}

static void refused(void **state) {
    (void)state;
    const struct kind *k = &kinds[3];
    const char *typo[] = {"q_proj", "gate_prj"}, *part[] = {"proj"}, *head[] = {"lm_head"};
    const char *empty[] = {""}, *both[] = {"all-linear", "q_proj"}, *norm[] = {"q_norm"};
    rlhf_adapter a = adapter_of(k);
    a.rank = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: rank 0 is outside 1 .. 65536");
    a = adapter_of(k);
    a.scale = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: scale 0 is not a number above 0");
    a.scale = NAN;
    refuse(k, &a, NULL, RLHF_F32, "is not a number above 0");
    a = adapter_of(k);
    a.n_targets = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: no target is given");
    a.n_targets = 2;
    a.target = typo;
    refuse(k, &a, NULL, RLHF_F32,
           "adapter: no linear layer of the trunk is called \"gate_prj\"; the nearest is "
           "gate_proj. There are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj; "
           "all-linear alone means all of them");
    a.n_targets = 1;
    const char *const *none[] = {part, head, empty, norm};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        a.target = none[i];
        refuse(k, &a, NULL, RLHF_F32, "no linear layer of the trunk is called");
    }
    a.n_targets = 2;
    a.target = both;
    refuse(k, &a, NULL, RLHF_F32, "is called \"all-linear\"");
}

static void refused_bases(void **state) {
    (void)state;
    const struct kind *k = &kinds[3], *other = &kinds[5];
    const rlhf_adapter a = adapter_of(k);
    struct model trained =
        open_kind(k, (struct how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    struct model fixed = open_kind(k, (struct how){.dtype = RLHF_F32});
    struct model good = open_kind(k, (struct how){.dtype = RLHF_F32, .trainable = 1});
    refuse(k, &a, trained.self, RLHF_F32, "the base is trained itself");
    refuse(k, &a, fixed.self, RLHF_F32, "the base was not opened for training");
    refuse(k, &a, good.self, RLHF_BF16, "differs in config, dtype or compute table");
    refuse(other, NULL, good.self, RLHF_F32, "differs in config, dtype or compute table");
    const struct kind plain = {"qwen", untied_qwen2, {"q_proj"}, 1, 1, RLHF_VALUE_NONE, 0, 0};
    struct model classifier = open_kind(&plain, (struct how){.dtype = RLHF_F32, .trainable = 1});
    struct kind wants_lm = plain;
    wants_lm.n_labels = 0;
    refuse(&wants_lm, &a, classifier.self, RLHF_F32, "a classifier without an LM head");
    struct model unopened;
    must(&unopened, model_create(k->plugin, k->settings, &unopened));
    refuse(k, &a, unopened.self, RLHF_F32, "no open model of the same plugin");
    model_close(&unopened);
    model_close(&classifier);
    model_close(&good);
    model_close(&fixed);
    model_close(&trained);
}

int main(void) {
    static const struct {
        const char *backend, *title;
        uint32_t guard, reserved;
    } groups[] = {{"reference", "adapter: reference", 0, 0},
                  {"reference", "adapter: reference, guard mode", 1, 0},
                  {"cpu", "adapter: cpu", 0, 0}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_the_merged_model),
                                       cmocka_unit_test(full_rank),
                                       cmocka_unit_test(is_its_base),
                                       cmocka_unit_test(recomputed),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(shared_prompts),
                                       cmocka_unit_test(sampled_is_trained),
                                       cmocka_unit_test(on_a_base),
                                       cmocka_unit_test(heads_alone),
                                       cmocka_unit_test(frozen_base),
                                       cmocka_unit_test(nothing_in_vain),
                                       cmocka_unit_test(recorded),
                                       cmocka_unit_test(listed),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(refused_bases)};
    int failed = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        backend_name = groups[i].backend;
        guard = groups[i].guard;
        failed += cmocka_run_group_tests_name(groups[i].title, tests, setup, teardown);
    }
    return failed != 0;
}
