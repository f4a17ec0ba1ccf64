// tests/models/test_wanted.c: a forward pass that begins while parameter values are still being
// received (rlhf_forward.wanted) gives the same bits as a pass that begins later. All later calls
// give the same bits, too.
#include "decoders.h"
#include "on_backends.h"
#include "vectors.h"

#include <string.h>

static const struct kind {
    const char *plugin;
    const struct setting *settings;
    uint32_t heads;
    int32_t n_labels, value_kind, reserved;
} kinds[] = {
    {"gpt2", tiny_gpt2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE, 0, RLHF_VALUE_MLP, 0},
    {"qwen2", tiny_qwen2, RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE, 1, RLHF_VALUE_NONE, 0},
    {"lfm2", biased_lfm2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"qwen3_5_text", tiny_qwen3_5, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"distilbert", tiny_post_norm, RLHF_HEAD_SCORE, VEC_LABELS, RLHF_VALUE_NONE, 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MOST = 200 };

static struct model open_kind(const struct kind *k, int32_t dtype, double scale) {
    rlhf_model_open o = open_args(&backend, dtype, 1);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, scale);
    return m;
}

struct answers {
    float logp[VEC_TOTAL], entropy[VEC_TOTAL], value[VEC_TOTAL], token_score[VEC_TOTAL];
    float score[VEC_ROWS * VEC_LABELS];
};

static void ask(struct model *m, const struct kind *k, rlhf_forward f, struct answers *a) {
    const rlhf_heads h = {.size = sizeof h,
                          .logp = a->logp,
                          .entropy = a->entropy,
                          .value = a->value,
                          .token_score = a->token_score,
                          .score = a->score};
    memset(a, 0, sizeof *a);
    f.size = sizeof f;
    f.heads = k->heads;
    must(m, m->ops->forward(m->self, &vec_batch, &f, &h));
}

// Returns the gradient of the first parameter, which depends on all weights.
static float *gradient(struct model *m, const struct kind *k, uint64_t *n) {
    float d[VEC_TOTAL + VEC_ROWS * VEC_LABELS];
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = 1};
    const rlhf_heads g = {
        .size = sizeof g, .logp = d, .entropy = d, .value = d, .token_score = d, .score = d};
    rlhf_param p = {.size = sizeof p};
    for (uint64_t i = 0; i < sizeof d / sizeof *d; i++)
        d[i] = vec_weight(i);
    must(m, m->ops->backward(m->self, &vec_batch, &f, &g));
    must(m, m->ops->param(m->self, 0, &p));
    *n = param_count(&p);
    return device_read(m->c, p.grad, *n);
}

// Sends the values of one model to another model when they are wanted.
struct sender {
    struct model *from, *to;
    int calls, sent[MOST];
};

static void send_values(void *ctx, rlhf_dev value, uint64_t bytes) {
    struct sender *s = ctx;
    rlhf_param a = {.size = sizeof a}, b = {.size = sizeof b};
    const uintptr_t from = (uintptr_t)value, to = from + bytes;
    s->calls++;
    for (uint32_t i = 0; s->to->ops->param(s->to->self, i, &b) == RLHF_OK; i++) {
        const uintptr_t at = (uintptr_t)b.value, end = at + param_count(&b) * sizeof(float);
        if (at < from || at >= to) continue;
        assert_true(i < MOST && end <= to);
        must(s->from, s->from->ops->param(s->from->self, i, &a));
        float *x = device_read(s->from->c, a.value, param_count(&a));
        device_write(s->to->c, b.value, x, param_count(&b));
        test_free(x);
        s->sent[i]++;
    }
}

static void same_bits_of(const struct kind *k, int32_t dtype, int32_t train) {
    if (!plugin_fits(backend.compute, k->plugin)) return;
    struct answers early, late, again;
    struct model from = open_kind(k, dtype, 0.2), to = open_kind(k, dtype, 0.3);
    struct sender s = {.from = &from, .to = &to};
    uint64_t n = 0;
    assert_true(to.info.caps & RLHF_CAP_WANTED);
    ask(&from, k, (rlhf_forward){.train = 1}, &early);
    ask(&to, k, (rlhf_forward){.train = 1}, &late); // packs the old values
    assert_memory_not_equal(&early, &late, sizeof early);
    ask(&to, k, (rlhf_forward){.train = train, .wanted = send_values, .wanted_ctx = &s}, &late);
    assert_memory_equal(&early, &late, sizeof early);
    assert_int_equal(s.calls, 4 * to.info.n_layer + 1); // one for each product
    for (int32_t i = 0; i < to.info.n_tensors; i++)
        assert_int_equal(s.sent[i], 1);
    if (train) {
        float *a = gradient(&from, k, &n), *b = gradient(&to, k, &n);
        assert_memory_equal(a, b, n * sizeof *a);
        test_free(a);
        test_free(b);
    }
    ask(&to, k, (rlhf_forward){.train = 0}, &again);
    assert_memory_equal(&early, &again, sizeof early);
    model_close(&from);
    model_close(&to);
}

static void same_bits(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++)
        for (int32_t train = 0; train < 2; train++) {
            same_bits_of(&kinds[i], RLHF_F32, train);
            same_bits_of(&kinds[i], RLHF_BF16, train);
        }
}

// Gradients, copied when they were reported.
struct reader {
    const rlhf_compute *c;
    rlhf_dev base;
    uint64_t from, end; // in bytes; everything from `from` on has been reported
    float *seen;
    int calls;
};

static void read_gradients(void *ctx, rlhf_dev grad, uint64_t bytes) {
    struct reader *r = ctx;
    const uint64_t at = (uintptr_t)grad - (uintptr_t)r->base;
    assert_true(at + bytes == r->from); // from the last to the first, without gaps
    float *x = device_read(r->c, grad, bytes / sizeof *x);
    memcpy(r->seen + at / sizeof *x, x, bytes);
    test_free(x);
    r->from = at;
    r->calls++;
}

static void complete_of(const struct kind *k, int32_t dtype) {
    if (!plugin_fits(backend.compute, k->plugin)) return;
    float d[VEC_TOTAL + VEC_ROWS * VEC_LABELS];
    struct answers a;
    struct model m = open_kind(k, dtype, 0.3);
    struct reader r = {
        .c = m.c, .base = m.info.grad_base, .from = m.info.grad_bytes, .end = m.info.grad_bytes};
    const rlhf_forward f = {.size = sizeof f,
                            .heads = k->heads,
                            .train = 1,
                            .graded = read_gradients,
                            .graded_ctx = &r};
    const rlhf_heads g = {
        .size = sizeof g, .logp = d, .entropy = d, .value = d, .token_score = d, .score = d};
    r.seen = test_calloc(r.end, 1);
    for (uint64_t i = 0; i < sizeof d / sizeof *d; i++)
        d[i] = vec_weight(i);
    ask(&m, k, (rlhf_forward){.train = 1}, &a);
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &g));
    assert_int_equal(r.calls, 4 * m.info.n_layer); // one for each product
    float *all = device_read(m.c, r.base, r.end / sizeof *all);
    assert_memory_equal((char *)all + r.from, (char *)r.seen + r.from, r.end - r.from);
    test_free(all);
    test_free(r.seen);
    model_close(&m);
}

static void complete(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++) {
        complete_of(&kinds[i], RLHF_F32);
        complete_of(&kinds[i], RLHF_BF16);
    }
}

static void nothing_to_receive(void *ctx, rlhf_dev value, uint64_t bytes) {
    (void)ctx;
    (void)value;
    (void)bytes;
}

static void refused(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    struct answers a;
    model_fill(&m, 0.3);
    assert_false(m.info.caps & RLHF_CAP_WANTED);
    const rlhf_forward f = {
        .size = sizeof f, .heads = RLHF_HEAD_LOGP, .wanted = nothing_to_receive};
    const rlhf_heads h = {.size = sizeof h, .logp = a.logp};
    assert_refused(m.ops->forward(m.self, &vec_batch, &f, &h), RLHF_E_UNSUPPORTED,
                   "lacks RLHF_CAP_WANTED");
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(complete),
                                       cmocka_unit_test(refused)};
    return on_backends("wanted", ON_GUARD | ON_CPU, 2, tests, sizeof tests / sizeof *tests);
}
