// tests/models/test_adds_once.c: RLHF_PARAM_ADDS_ONCE. A backward pass leaves the old value plus
// the gradient in such a parameter's gradient, with one rounding. With RLHF_FORWARD_ADDS_ONCE, this
// is also true of parameters with RLHF_PARAM_CAN_ADD_ONCE.
#include "decoders.h"
#include "vectors.h"

#include <stdlib.h>

static struct backend backend;
static const char *backend_name; // set by main for each group

static int setup(void **state) {
    (void)state;
    backend = backend_open(backend_name, 2, 0);
    return backend.compute ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    backend_close(&backend);
    return 0;
}

// Three kinds of models, with the numbers of their parameters that must have each flag.
static const struct kind {
    const char *plugin;
    const struct setting *settings;
    uint32_t heads, n_once, n_can;
    int32_t n_labels, value_kind;
} kinds[] = {
    // 2 layers of c_attn, c_proj, c_fc and c_proj; both matrices of the value head
    {"gpt2", tiny_gpt2, RLHF_HEAD_LOGP | RLHF_HEAD_VALUE, 2 * 4 + 2, 1, 0, RLHF_VALUE_MLP},
    // 2 layers of q, k, v, o, gate, up and down
    {"qwen", tiny_qwen3, RLHF_HEAD_LOGP, 2 * 7, 2, 0, RLHF_VALUE_NONE},
    // 3 layers of q, k, v, out, lin1 and lin2
    {"distilbert", tiny_post_norm, RLHF_HEAD_SCORE, 3 * 6, 1, VEC_LABELS, RLHF_VALUE_NONE},
};

static void backward(struct model *m, const struct kind *k, uint32_t flags) {
    const uint64_t total = VEC_TOTAL + VEC_ROWS * VEC_LABELS;
    float *out = test_calloc(total, sizeof *out), *d = test_calloc(total, sizeof *d);
    rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = 1};
    const rlhf_heads h = {
        .size = sizeof h, .logp = out, .value = out, .token_score = out, .score = out};
    const rlhf_heads g = {.size = sizeof g, .logp = d, .value = d, .token_score = d, .score = d};
    for (uint64_t i = 0; i < total; i++)
        d[i] = vec_weight(i);
    must(m, m->ops->forward(m->self, &vec_batch, &f, &h));
    f.flags = flags;
    must(m, m->ops->backward(m->self, &vec_batch, &f, &g));
    test_free(out);
    test_free(d);
}

// Returns 1 if x is old + sum everywhere.
static int added(const float *x, const float *old, const float *sum, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (x[i] != old[i] + sum[i]) return 0;
    return 1;
}

static void check(const struct kind *k, int32_t dtype, uint32_t flags) {
    enum { MOST = 64 };
    float *sum[MOST] = {NULL}, *old[MOST] = {NULL};
    rlhf_model_open o = open_args(&backend, dtype, 1);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    struct model m = model_open(k->plugin, k->settings, &o);
    rlhf_param p = {.size = sizeof p};
    uint32_t n = 0, n_once = 0, n_can = 0, n_other = 0;
    model_fill(&m, 0.3);
    model_zero_grad(&m);
    backward(&m, k, 0);
    for (; m.ops->param(m.self, n, &p) == RLHF_OK; n++) {
        assert_true(n < MOST);
        const uint64_t size = param_count(&p);
        sum[n] = device_read(m.c, p.grad, size);
        old[n] = test_calloc(size, sizeof **old);
        for (uint64_t i = 0; i < size; i++)
            old[n][i] = 0.7f * vec_weight(i + n);
        device_write(m.c, p.grad, old[n], size);
    }
    backward(&m, k, flags);
    for (uint32_t i = 0; i < n; i++) {
        must(&m, m.ops->param(m.self, i, &p));
        float *x = device_read(m.c, p.grad, param_count(&p));
        const int once = added(x, old[i], sum[i], param_count(&p));
        const int can = (p.flags & RLHF_PARAM_CAN_ADD_ONCE) != 0;
        if ((p.flags & RLHF_PARAM_ADDS_ONCE || (can && flags)) && !once)
            fail_msg("%s is added up in more than one step", p.name);
        n_once += (p.flags & RLHF_PARAM_ADDS_ONCE) != 0;
        n_can += can != 0;
        n_other += !once;
        test_free(x);
        test_free(sum[i]);
        test_free(old[i]);
    }
    assert_int_equal(n_once, m.c->flags & RLHF_COMPUTE_ADDS_ONCE ? k->n_once : 0);
    assert_int_equal(n_can, m.c->flags & RLHF_COMPUTE_HEAD_ONCE ? k->n_can : 0);
    assert_true(n_other > 0); // so this test can tell the two apart
    model_close(&m);
}

static void adds_once(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (uint32_t flags = 0; flags <= RLHF_FORWARD_ADDS_ONCE; flags += RLHF_FORWARD_ADDS_ONCE) {
            check(&kinds[i], RLHF_F32, flags);
            check(&kinds[i], RLHF_BF16, flags);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(adds_once)};
    static const char *const names[] = {"cpu", "reference"};
    int failed = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        backend_name = names[i];
        failed += cmocka_run_group_tests_name(names[i], tests, setup, teardown);
    }
    return failed;
}
