// preference_case.c: see preference_case.h.
#include "algos/preference_case.h"

void preference_read(struct preference_cases *to, const json_t *vectors, const char *key,
                     size_t n_values) {
    const json_t *list = numbers_get(vectors, key);
    to->n = json_array_size(list);
    assert_true(to->n > 0 && to->n <= PREFERENCE_CASES && n_values <= PREFERENCE_TOKENS);
    for (size_t i = 0; i < to->n; i++) {
        const json_t *from = json_array_get(list, i);
        struct preference_case *c = &to->at[i];
        const size_t metrics = json_array_size(numbers_get(from, "metrics"));
        assert_true(metrics <= sizeof c->metrics / sizeof *c->metrics);
        snprintf(c->options, sizeof c->options, "%s", numbers_text(from, "options"));
        c->loss = numbers_one(from, "loss");
        numbers_doubles(from, "d", c->d, n_values);
        numbers_doubles(from, "metrics", c->metrics, metrics);
    }
}

void preference_group(struct batch *b, int32_t n, int32_t prompt_len, int32_t response) {
    memset(b, 0, sizeof *b);
    b->n = n;
    b->n_labels = 1;
    b->total = n * (prompt_len + response);
    b->label[0] = 1;
    for (int32_t i = 0; i < n; i++) {
        b->prompt_len[i] = prompt_len;
        b->offset[i + 1] = (i + 1) * (prompt_len + response);
    }
}

void preference_phase_end(struct algo *a) {
    int32_t stop = 0;
    if (a->ops->minibatch_end) assert_int_equal(algo_minibatch_end(a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    assert_int_equal(algo_phase_end(a, 0), RLHF_OK);
}

void preference_check(const struct preference_algo *p, const struct preference_case *c,
                      const int32_t *ends) {
    struct algo a;
    double loss = 0;
    uint32_t n = 0;
    p->load();
    algo_open(&a, p->so, c->options, p->batch->n);
    for (int32_t begin = 0; begin < p->batch->n; begin = *ends++)
        loss += batch_loss(&a, p->batch, begin, *ends, 0);
    assert_near(loss, c->loss, 1e-12, c->options);
    for (int32_t k = 0; k < p->n_values; k++)
        assert_near((double)p->d[k], c->d[k], 2e-7, c->options);
    preference_phase_end(&a);
    assert_near(metric(&a, "objective/loss"), c->loss, 1e-12, "objective/loss");
    for (; p->names[n]; n++)
        assert_near(metric(&a, p->names[n]), c->metrics[n], 1e-9, p->names[n]);
    assert_int_equal(a.host->n_metrics, n + 1);
    a.host->n_metrics = 0;
    preference_phase_end(&a);
    assert_int_equal(a.host->n_metrics, 0);
    algo_close(&a);
}

void preference_differences(const struct preference_algo *p, const char *options) {
    struct algo a;
    p->load();
    algo_open(&a, p->so, options, p->batch->n);
    batch_differences(&a, p->batch, p->value, p->d, p->n_values, 1e-6, 0, options);
    algo_close(&a);
}

rlhf_status preference_try(struct algo *a, const struct batch *b, int32_t n,
                           const rlhf_head_values *x, rlhf_head_gradients *d, const float *ref) {
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)n,
                       .total = (uint32_t)b->offset[n],
                       .batch_sequences = b->n,
                       .offset = b->offset,
                       .prompt_len = b->prompt_len,
                       .group = b->group,
                       .heads = x,
                       .logp_ref = ref,
                       .label = b->label,
                       .n_labels = (uint32_t)b->n_labels};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = d};
    return a->ops->loss(a->self, &in, &out);
}

void preference_refusals(struct algo *a, struct batch *b, const rlhf_head_values *x,
                         rlhf_head_gradients *d) {
    static const int32_t wrong[][2] = {{1, 1}, {0, 0}, {2, 0}};
    assert_int_equal(preference_try(a, b, 3, x, d, b->ref), RLHF_OK);
    assert_int_equal(preference_try(a, b, 0, x, d, NULL), RLHF_OK);
    assert_int_equal(preference_try(a, b, 1, x, d, b->ref), RLHF_E_INTERNAL);
    assert_non_null(strstr(a->host->fail_text, "preferred"));
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        memcpy(b->label, wrong[k], sizeof wrong[k]);
        assert_int_equal(preference_try(a, b, 3, x, d, b->ref), RLHF_E_INTERNAL);
    }
    b->label[0] = 1;
}
