// tests/models/test_states.c: layers with a state (convolutions, the delta rule). A row's bits do
// not depend on its neighbours or on earlier rows, in training and in sessions. A slot continues
// with its own state. Every parameter learns, also behind such layers.
//
// Each check is also made against a backend with a fault that other trainers had, and must then
// fail: rows that see each other's state, a state that is dropped, a backward pass that does
// nothing, memory that grows with the number of tokens.
#include "decoders.h"
#include "on_backends.h"
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct kind {
    const char *plugin;
    const struct setting *settings;
} kinds[] = {{"lfm2", tiny_lfm2},
             {"lfm2", biased_lfm2},
             {"qwen3_5_text", tiny_qwen3_5},
             {"qwen3_5_text", biased_qwen3_5}};
enum { N_KINDS = sizeof kinds / sizeof *kinds, LONG = 24, MANY = 5 };

// ---- faults ----

enum fault {
    NONE,
    SEES_OTHERS,  // one sequence instead of separate rows
    DROPS,        // a row of a session always begins with zeros
    FROM_OF_NEXT, // a row begins with the state of another slot
    NO_BACKWARD,  // the backward pass of the convolution is not called, and dx is 0
    NO_DELTA_BACKWARD,
    UNROLLS // keeps the states of all tokens for the backward pass
};

// A table with a fault on the group's backend.
static struct faulty {
    rlhf_compute table;
    enum fault fault;
    rlhf_dev zeros;    // i32 [LONG]
    rlhf_dev unrolled; // states, or NULL
} faulty;

static rlhf_ragged one_row(const rlhf_ragged *r) {
    rlhf_ragged one = *r;
    int32_t offset[2] = {0, (int32_t)r->total};
    if (faulty.fault != SEES_OTHERS) return one;
    assert_int_equal(
        backend.compute->upload(backend.compute->ctx, faulty.zeros, offset, sizeof offset),
        RLHF_OK);
    one.n = 1;
    one.max_q = one.max_k = r->total;
    one.offset = faulty.zeros;
    return one;
}

static const rlhf_states *wrong(const rlhf_states *s, uint32_t n, rlhf_states *out) {
    int32_t from[LONG];
    if (!s || (faulty.fault != DROPS && faulty.fault != FROM_OF_NEXT)) return s;
    const rlhf_compute *c = backend.compute;
    assert_int_equal(c->download(c->ctx, from, s->from, n * sizeof *from), RLHF_OK);
    for (uint32_t i = 0; i < n; i++)
        from[i] = faulty.fault == DROPS || from[i] < 0 ? -1 : (from[i] + 1) % 3;
    assert_int_equal(c->upload(c->ctx, faulty.zeros, from, n * sizeof *from), RLHF_OK);
    *out = *s;
    out->from = faulty.zeros;
    return out;
}

static rlhf_status f_conv(void *ctx, const rlhf_conv *a, const rlhf_ragged *r, const rlhf_states *s,
                          rlhf_dev y, rlhf_dev x) {
    rlhf_states other;
    const rlhf_ragged rows = one_row(r);
    return backend.compute->conv(ctx, a, &rows, wrong(s, r->n, &other), y, x);
}
static rlhf_status f_delta(void *ctx, const rlhf_delta *a, const rlhf_ragged *r,
                           const rlhf_states *s, rlhf_dev out, rlhf_dev x, rlhf_dev beta,
                           rlhf_dev alpha) {
    rlhf_states other;
    const rlhf_ragged rows = one_row(r);
    return backend.compute->delta(ctx, a, &rows, wrong(s, r->n, &other), out, x, beta, alpha);
}
static rlhf_status f_conv_bwd(void *ctx, const rlhf_conv *a, const rlhf_ragged *r, rlhf_dev dx,
                              rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x) {
    const rlhf_compute *c = backend.compute;
    if (faulty.fault != NO_BACKWARD) return c->conv_bwd(ctx, a, r, dx, dweight, dbias, dy, x);
    return c->zero(ctx, dx, r->total * (uint64_t)a->channels * rlhf_dtype_size(a->dtype));
}

static rlhf_status f_delta_bwd(void *ctx, const rlhf_delta *a, const rlhf_ragged *r, rlhf_dev dx,
                               rlhf_dev dbeta, rlhf_dev dalpha, rlhf_dev da_log, rlhf_dev ddt_bias,
                               rlhf_dev dout, rlhf_dev x, rlhf_dev beta, rlhf_dev alpha) {
    const rlhf_compute *c = backend.compute;
    const uint64_t one = (uint64_t)(a->heads * a->key_dim * a->value_dim) * sizeof(float);
    if (faulty.fault == UNROLLS && !faulty.unrolled)
        assert_int_equal(c->alloc(c->ctx, r->total * one, &faulty.unrolled), RLHF_OK);
    if (faulty.fault != NO_DELTA_BACKWARD)
        return c->delta_bwd(ctx, a, r, dx, dbeta, dalpha, da_log, ddt_bias, dout, x, beta, alpha);
    return c->zero(ctx, dx, r->total * (uint64_t)a->x_stride * rlhf_dtype_size(a->dtype));
}

static const struct backend *with_fault(enum fault fault) {
    static struct backend b;
    faulty.table = *backend.compute;
    faulty.fault = fault;
    faulty.table.conv = f_conv;
    faulty.table.delta = f_delta;
    faulty.table.conv_bwd = f_conv_bwd;
    faulty.table.delta_bwd = f_delta_bwd;
    faulty.table.record = NULL; // a fault uploads what it changes
    faulty.table.record_end = NULL;
    b = (struct backend){NULL, NULL, &faulty.table, NULL};
    assert_int_equal(backend.compute->alloc(backend.compute->ctx, LONG * 4, &faulty.zeros),
                     RLHF_OK);
    return &b;
}

static void fault_over(void) {
    backend.compute->release(backend.compute->ctx, faulty.zeros);
    backend.compute->release(backend.compute->ctx, faulty.unrolled);
    faulty.zeros = faulty.unrolled = NULL;
}

static struct model open_kind(const struct kind *k, const struct backend *b, int32_t dtype) {
    const rlhf_model_open o = open_args(b, dtype, 1);
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    return m;
}

// ---- rows of a batch ----

// Log-probs of rows, the first token of each being its prompt.
static void forward(struct model *m, const int32_t *ids, const int32_t *offset, uint32_t n,
                    float *logp) {
    int32_t prompt[MANY] = {1, 1, 1, 1, 1};
    const rlhf_batch b = {sizeof b, n, (uint32_t)offset[n], 0, ids, offset, prompt, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(m, m->ops->forward(m->self, &b, &f, &h));
}

// 1 if row `row` of a batch has the bits that it has alone, and after other batches.
static int alone_is_packed(struct model *m) {
    static const int32_t offset[MANY + 1] = {0, 3, 10, 11, 17, LONG};
    int32_t ids[LONG];
    float all[LONG], again[LONG], alone[LONG];
    int same = 1;
    for (int32_t t = 0; t < LONG; t++)
        ids[t] = (t * 17 + 5) % 61;
    forward(m, ids, offset, MANY, all);
    for (uint32_t row = 0; row < MANY; row++) {
        const int32_t a = offset[row], one[2] = {0, offset[row + 1] - a};
        forward(m, ids + a, one, 1, alone);
        same &= !memcmp(alone, all + a, (size_t)one[1] * sizeof *alone);
    }
    forward(m, ids, offset, MANY, again);
    return same && !memcmp(all, again, sizeof all);
}

// ---- rows of a session ----

// Feeds a row to a slot in pieces and returns the log-prob of its greedy next token.
static float feed(struct model *m, rlhf_gen *g, int32_t slot, const int32_t *ids, int32_t n,
                  int32_t piece) {
    float logp = 0;
    int32_t next;
    const rlhf_dist greedy = RLHF_DIST(1, 1, 0, 1), whole = RLHF_DIST_WHOLE;
    for (int32_t at = 0; at < n; at += piece) {
        const int32_t some = n - at < piece ? n - at : piece, offset[2] = {0, some};
        const uint64_t counter = 0;
        const rlhf_gen_step s = {.size = sizeof s,
                                 .n = 1,
                                 .slot = &slot,
                                 .start = &at,
                                 .ids = ids + at,
                                 .offset = offset,
                                 .dist = &greedy,
                                 .logp_dist = &whole,
                                 .counter = &counter,
                                 .next = &next,
                                 .logp = &logp};
        must(m, m->ops->gen_step(m->self, g, &s));
    }
    return logp;
}

// 1 if a row gives the same bits for every size of pieces, in a slot that is new or had another
// row, and while other slots change.
static int slots_are_apart(struct model *m) {
    int32_t ids[LONG], other[LONG];
    float want = 0;
    int same = 1;
    for (int32_t t = 0; t < LONG; t++) {
        ids[t] = (t * 17 + 5) % 61;
        other[t] = (t * 11 + 2) % 61;
    }
    for (int32_t piece = LONG - 2; piece >= 1; piece = piece / 3) {
        rlhf_gen *g = NULL;
        must(m, m->ops->gen_open(m->self, 3, LONG, &g));
        feed(m, g, 1, other, 9, 4);
        feed(m, g, 0, other, 5, 2);
        feed(m, g, 2, other, 7, 7);
        const float logp = feed(m, g, 1, ids, LONG - 2, piece);
        if (piece == LONG - 2) want = logp;
        same &= !memcmp(&want, &logp, sizeof want);
        m->ops->gen_close(m->self, g);
        if (piece == 1) break;
    }
    return same;
}

static void rows_are_apart(void **state) {
    (void)state;
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const struct kind *k = &kinds[i / 2];
        if (!plugin_fits(backend.compute, k->plugin)) skip();
        const int32_t dtype = i & 1 ? RLHF_BF16 : RLHF_F32;
        struct model m = open_kind(k, &backend, dtype);
        assert_true(alone_is_packed(&m));
        assert_true(slots_are_apart(&m));
        model_close(&m);
        m = open_kind(k, with_fault(SEES_OTHERS), dtype);
        assert_false(alone_is_packed(&m));
        model_close(&m);
        fault_over();
        for (enum fault fault = DROPS; fault <= FROM_OF_NEXT; fault++) {
            m = open_kind(k, with_fault(fault), dtype);
            assert_false(slots_are_apart(&m));
            model_close(&m);
            fault_over();
        }
    }
}

// ---- learning ----

// 1 if all gradients are those of transformers in float64 (make_vectors.py).
static int learns(struct model *m, const char *name) {
    struct vectors v = vectors_open(name);
    rlhf_param p = {.size = sizeof p};
    float logp[VEC_TOTAL];
    int same = 1;
    model_zero_grad(m);
    vec_lm_step(m, 1, logp);
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        char key[512];
        const uint64_t n = param_count(&p);
        double most = 0, far = 0;
        snprintf(key, sizeof key, "grad:%s", p.name);
        float *want = vectors_need(&v, key, n), *got = device_read(m->c, p.grad, n);
        for (uint64_t k = 0; k < n; k++) {
            most = fmax(most, fabs((double)want[k]));
            far = fmax(far, fabs((double)want[k] - (double)got[k]));
        }
        assert_true(most > 0);
        same &= far <= VEC_RTOL * most;
        test_free(want);
        test_free(got);
    }
    vectors_close(&v);
    return same;
}

static void every_parameter_learns(void **state) {
    (void)state;
    static const char *const names[N_KINDS] = {"lfm2", "lfm2_bias", "qwen3_5", "qwen3_5_bias"};
    for (int i = 0; i < N_KINDS; i++) {
        if (!plugin_fits(backend.compute, kinds[i].plugin)) skip();
        struct model m = open_kind(&kinds[i], &backend, RLHF_F32);
        assert_true(learns(&m, names[i]));
        model_close(&m);
        for (enum fault fault = NO_BACKWARD; fault <= NO_DELTA_BACKWARD; fault++) {
            if (fault == NO_DELTA_BACKWARD && strcmp(kinds[i].plugin, "lfm2") == 0) continue;
            m = open_kind(&kinds[i], with_fault(fault), RLHF_F32);
            assert_false(learns(&m, names[i]));
            model_close(&m);
            fault_over();
        }
    }
}

static double loss_of(struct model *m) {
    float logp[VEC_TOTAL];
    double sum = 0;
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(m, m->ops->refresh(m->self));
    must(m, m->ops->forward(m->self, &vec_batch, &f, &h));
    for (uint64_t t = 0; t < VEC_TOTAL; t++)
        sum += (double)vec_weight(t) * (double)logp[t];
    return sum;
}

// The derivative of the loss along the gradient g of parameter p, divided by the length of g, and
// that length. They are equal.
static int slope_is_length(struct model *m, const rlhf_param *p) {
    const uint64_t n = param_count(p);
    float *g = device_read(m->c, p->grad, n), *x = device_read(m->c, p->value, n);
    float *moved = test_malloc(n * sizeof *moved);
    double length = 0, loss[2] = {0};
    for (uint64_t i = 0; i < n; i++)
        length += (double)g[i] * (double)g[i];
    length = sqrt(length);
    const double step = 0.01;
    for (int side = 0; side < 2 && length > 0; side++) {
        for (uint64_t i = 0; i < n; i++)
            moved[i] = (float)((double)x[i] + (side ? -step : step) * (double)g[i] / length);
        device_write(m->c, p->value, moved, n);
        loss[side] = loss_of(m);
    }
    device_write(m->c, p->value, x, n);
    const double slope = length > 0 ? (loss[0] - loss[1]) / (2 * step) : 0;
    test_free(g);
    test_free(x);
    test_free(moved);
    return length > 1e-4 && fabs(slope - length) <= 0.02 * length + 1e-3;
}

// Every adapter of every linear layer gets its gradient.
static int adapters_learn(const struct kind *k, const struct backend *b) {
    const char *const all[] = {"all-linear"};
    const rlhf_adapter a = {.size = sizeof a, .rank = 2, .scale = 1, .target = all, .n_targets = 1};
    rlhf_model_open o = open_args(b, RLHF_F32, 1);
    rlhf_param p = {.size = sizeof p};
    float logp[VEC_TOTAL];
    int same = 1, pairs = 0;
    o.adapter = &a;
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++)
        if (p.group == RLHF_PARAM_ADAPTER)
            must(&m, m.c->zero(m.c->ctx, p.grad, param_count(&p) * sizeof(float)));
    vec_lm_step(&m, 1, logp);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        if (p.group != RLHF_PARAM_ADAPTER) continue;
        same &= slope_is_length(&m, &p);
        pairs++;
    }
    // three linear layers of the MLP; four of attention; two of LFM2's convolution, five of the
    // delta rule
    assert_int_equal(pairs, 2 * (6 + 4 + (strcmp(k->plugin, "lfm2") ? 5 : 2)));
    model_close(&m);
    return same;
}

static void every_adapter_learns(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        if (!plugin_fits(backend.compute, kinds[i].plugin)) skip();
        assert_true(adapters_learn(&kinds[i], &backend));
        assert_false(adapters_learn(&kinds[i], with_fault(NO_BACKWARD)));
        fault_over();
    }
}

// ---- memory ----

// Bytes in use after a training step with one row of so many tokens.
static uint64_t used(const struct kind *k, int32_t tokens, enum fault fault) {
    static int32_t ids[1024];
    const int32_t offset[2] = {0, tokens};
    int32_t prompt = 1;
    const rlhf_batch b = {sizeof b, 1, (uint32_t)tokens, 0, ids, offset, &prompt, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    float *d = test_calloc((uint64_t)tokens, sizeof *d);
    const rlhf_heads h = {.size = sizeof h}, g = {.size = sizeof g, .logp = d};
    const struct backend group = backend;
    backend = backend_again(1); // without the workspaces of other steps
    struct model m = open_kind(k, with_fault(fault), RLHF_F32);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    must(&m, m.ops->forward(m.self, &b, &f, &h));
    must(&m, m.ops->backward(m.self, &b, &f, &g));
    const uint64_t bytes = m.c->bytes_in_use(m.c->ctx) - before;
    model_close(&m);
    fault_over();
    backend_close(&backend);
    backend = group;
    test_free(d);
    return bytes;
}

// A further token costs its activations. The states are in memory for one token in 64 at most:
// those of all tokens would take 32 KiB a token here.
static void memory_is_flat(void **state) {
    (void)state;
    static const struct setting settings[] = {{"vocab_size", "61"},
                                              {"hidden_size", "16"},
                                              {"intermediate_size", "20"},
                                              {"num_hidden_layers", "1"},
                                              {"num_attention_heads", "2"},
                                              {"num_key_value_heads", "1"},
                                              {"head_dim", "8"},
                                              {"max_position_embeddings", "1024"},
                                              {"linear_num_key_heads", "1"},
                                              {"linear_num_value_heads", "2"},
                                              {"linear_key_head_dim", "64"},
                                              {"linear_value_head_dim", "64"},
                                              {"tie_word_embeddings", "true"},
                                              {NULL, NULL}};
    const struct kind k = {"qwen3_5_text", settings};
    const uint64_t state_bytes = 2 * 64 * 64 * sizeof(float);
    if (!plugin_fits(backend.compute, k.plugin) || backend_is_slow()) skip();
    for (int unrolls = 0; unrolls < 2; unrolls++) {
        const enum fault fault = unrolls ? UNROLLS : NONE;
        const uint64_t few = used(&k, 512, fault), more = used(&k, 1024, fault);
        assert_true(more > few);
        assert_int_equal(more - few < 512 * state_bytes / 2, !unrolls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_apart), cmocka_unit_test(every_parameter_learns),
        cmocka_unit_test(every_adapter_learns), cmocka_unit_test(memory_is_flat)};
    return on_backends("states", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
