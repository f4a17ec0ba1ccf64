// test_dpo.c: dpo.so against the float64 reference of make_dpo_vectors.py, by hand, by finite
// differences and signs, in any split that keeps groups whole, and what it refuses.
#include "algos/fixture.h"

#include <math.h>

struct dpo_case {
    const char *options;
    double loss;
    const double *d;
    double metrics[6];
};
#include "algos/dpo_vectors.h"

static const char *const names[] = {"dpo/accuracy", "dpo/margin",      "dpo/chosen",
                                    "dpo/rejected", "dpo/logp_chosen", "dpo/logp_rejected"};
static struct batch b;

static void load(void) {
    memset(&b, 0, sizeof b);
    b.n = DPO_N;
    b.total = DPO_TOTAL;
    b.max_len = 8;
    for (int32_t i = 0; i < DPO_N; i++) {
        b.offset[i + 1] = dpo_offset[i + 1];
        b.prompt_len[i] = dpo_prompt_len[i];
        b.group[i] = dpo_group[i];
        b.label[i] = dpo_label[i];
    }
    for (int32_t t = 0; t < DPO_TOTAL; t++) {
        b.logp[t] = (float)dpo_logp[t];
        b.ref[t] = (float)dpo_ref[t];
    }
}

// One row of n responses of one token each, whose x - f are lead[]; the first is preferred.
static void one_row(const float *lead, int32_t n) {
    memset(&b, 0, sizeof b);
    b.n = n;
    b.total = 2 * n;
    b.label[0] = 1;
    for (int32_t i = 0; i < n; i++) {
        b.prompt_len[i] = 1;
        b.offset[i + 1] = 2 * (i + 1);
        b.ref[2 * i + 1] = -2;
        b.logp[2 * i + 1] = -2 + lead[i];
    }
}

static void plan(void **state) {
    (void)state;
    struct algo a;
    algo_open(&a, "dpo.so", "", 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_PREFERENCES);
    assert_int_equal(a.plan.heads, RLHF_HEAD_LOGP);
    assert_int_equal(a.plan.flags, RLHF_PLAN_REFERENCE);
    assert_int_equal(a.plan.epochs * a.plan.minibatches * a.plan.group_size, 1);
    algo_close(&a);
}

// The whole minibatch at once, row by row, and cut unevenly.
static void reference(void **state) {
    (void)state;
    static const int32_t whole[] = {0, DPO_N}, each[] = {0, 2, 4, 8, 11, DPO_N},
                         uneven[] = {0, 4, 11, DPO_N};
    static const int32_t *const splits[] = {whole, each, uneven};
    for (size_t i = 0; i < 3 * sizeof dpo_cases / sizeof *dpo_cases; i++) {
        const struct dpo_case *c = dpo_cases + i / 3;
        struct algo a;
        double loss = 0;
        load();
        algo_open(&a, "dpo.so", c->options, DPO_N);
        for (const int32_t *cut = splits[i % 3]; cut[0] < DPO_N; cut++)
            loss += batch_loss(&a, &b, cut[0], cut[1], 0);
        assert_near(loss, c->loss, 1e-12, c->options);
        for (int t = 0; t < DPO_TOTAL; t++)
            assert_near((double)b.d_logp[t], c->d[t], 2e-7, c->options);
        assert_int_equal(a.ops->phase_end(a.self, 0), RLHF_OK);
        assert_near(metric(&a, "objective/loss"), c->loss, 1e-12, "objective/loss");
        for (int k = 0; k < 6; k++)
            assert_near(metric(&a, names[k]), c->metrics[k], 1e-9, names[k]);
        assert_int_equal(a.host->n_metrics, 7);
        // The next phase starts from nothing.
        a.host->n_metrics = 0;
        assert_int_equal(a.ops->phase_end(a.self, 1), RLHF_OK);
        assert_int_equal(a.host->n_metrics, 0);
        algo_close(&a);
    }
}

static double loss_with(const char *options, const float *lead, int32_t n) {
    struct algo a;
    one_row(lead, n);
    algo_open(&a, "dpo.so", options, n);
    double loss = batch_loss(&a, &b, 0, n, 0);
    algo_close(&a);
    return loss;
}

static void by_hand(void **state) {
    (void)state;
    static const float even[] = {0, 0, 0, 0}, lead[] = {1.5f, -0.5f}, two[] = {1, 0, -1};
    // The policy is the reference: ln 2, however many are rejected.
    for (int32_t n = 2; n <= 4; n++) {
        assert_true((float)loss_with("", even, n) == 0.6931471824645996f);
        assert_true((float)loss_with("label_smoothing=0.3", even, n) == 0.6931471824645996f);
        assert_near(loss_with("loss=ipo", even, n), 25, 1e-12, "(1 / 2 beta)^2");
    }
    assert_near(loss_with("beta=0.5", lead, 2), log1p(exp(-1)), 1e-12, "-log sigmoid(1)");
    assert_near(loss_with("beta=0.5,label_smoothing=0.25", lead, 2),
                0.75 * log1p(exp(-1)) + 0.25 * log1p(exp(1)), 1e-12, "conservative");
    assert_near(loss_with("loss=ipo,beta=0.25", lead, 2), 0, 1e-12, "a lead of 1 / 2 beta");
    assert_near(loss_with("beta=1", two, 3), (log1p(exp(-1)) + log1p(exp(-2))) / 2, 1e-12,
                "each other one");
}

// Huge leads: no overflow, and a derivative that still points the right way.
static void extremes(void **state) {
    (void)state;
    static const float wrong[] = {-1e6f, 1e6f}, right[] = {1e6f, -1e6f};
    struct algo a;
    algo_open(&a, "dpo.so", "", 2);
    one_row(wrong, 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), 2e5, 1e-6, "linear");
    assert_near((double)b.d_logp[1], -0.1, 1e-7, "full slope");
    one_row(right, 2);
    assert_true(batch_loss(&a, &b, 0, 2, 0) == 0);
    assert_true(b.d_logp[1] == 0);
    b.logp[1] = NAN; // the host must see it
    assert_true(isnan(batch_loss(&a, &b, 0, 2, 0)));
    assert_int_equal(a.ops->phase_end(a.self, 0), RLHF_OK);
    algo_close(&a);
}

// Descent raises every token of the preferred response and lowers every other; prompts get nothing.
static void signs(void **state) {
    (void)state;
    static const char *const options[] = {"", "beta=2", "loss=ipo,beta=0.01"};
    for (int k = 0; k < 3; k++) {
        struct algo a;
        load();
        algo_open(&a, "dpo.so", options[k], DPO_N);
        batch_loss(&a, &b, 0, DPO_N, 0);
        for (int32_t i = 0; i < DPO_N; i++)
            for (int32_t t = b.offset[i]; t < b.offset[i + 1]; t++)
                if (t < b.offset[i] + b.prompt_len[i])
                    assert_true(b.d_logp[t] == 0);
                else
                    assert_true(b.label[i] ? b.d_logp[t] < 0 : b.d_logp[t] > 0);
        algo_close(&a);
    }
}

static void finite_differences(void **state) {
    (void)state;
    static const char *const options[] = {"beta=0.4,label_smoothing=0.1", "loss=ipo,beta=0.5"};
    for (int k = 0; k < 2; k++) {
        struct algo a;
        algo_open(&a, "dpo.so", options[k], DPO_N);
        load();
        for (int32_t t = 0; t < DPO_TOTAL; t++) {
            float keep = b.logp[t], up = keep + 1e-3f, down = keep - 1e-3f;
            b.logp[t] = up;
            double plus = batch_loss(&a, &b, 0, DPO_N, 0);
            b.logp[t] = down;
            double minus = batch_loss(&a, &b, 0, DPO_N, 0);
            b.logp[t] = keep;
            batch_loss(&a, &b, 0, DPO_N, 0);
            assert_near((double)b.d_logp[t], (plus - minus) / ((double)up - (double)down), 1e-6,
                        options[k]);
        }
        algo_close(&a);
    }
}

static rlhf_status try_loss(struct algo *a, int32_t n, float *logp, const float *ref) {
    rlhf_heads x = {.size = sizeof x, .logp = logp};
    rlhf_heads d = {.size = sizeof d, .logp = b.d_logp};
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)n,
                       .total = (uint32_t)b.offset[n],
                       .batch_sequences = b.n,
                       .offset = b.offset,
                       .prompt_len = b.prompt_len,
                       .group = b.group,
                       .heads = &x,
                       .logp_ref = ref,
                       .label = b.label};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    return a->ops->loss(a->self, &in, &out);
}

// A split group, none or two preferred, no reference, no head: a sentence, not a wrong number. No
// rows are fine.
static void broken_batches(void **state) {
    (void)state;
    static const float lead[] = {1, 2, 3};
    struct algo a;
    algo_open(&a, "dpo.so", "", 3);
    one_row(lead, 3);
    assert_int_equal(try_loss(&a, 3, b.logp, b.ref), RLHF_OK);
    assert_int_equal(try_loss(&a, 0, b.logp, NULL), RLHF_OK);
    assert_int_equal(try_loss(&a, 1, b.logp, b.ref), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "preferred"));
    assert_int_equal(try_loss(&a, 3, b.logp, NULL), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "logp_ref"));
    assert_int_equal(try_loss(&a, 3, NULL, b.ref), RLHF_E_INTERNAL);
    b.label[1] = 1;
    assert_int_equal(try_loss(&a, 3, b.logp, b.ref), RLHF_E_INTERNAL);
    b.label[0] = b.label[1] = 0;
    assert_int_equal(try_loss(&a, 3, b.logp, b.ref), RLHF_E_INTERNAL);
    b.label[0] = 2;
    assert_int_equal(try_loss(&a, 3, b.logp, b.ref), RLHF_E_INTERNAL);
    algo_close(&a);
}

static void allocation_failure(void **state) {
    (void)state;
    struct algo a;
    void *self = NULL;
    algo_open(&a, "dpo.so", "", 2);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan),           cmocka_unit_test(reference),
        cmocka_unit_test(by_hand),        cmocka_unit_test(extremes),
        cmocka_unit_test(signs),          cmocka_unit_test(finite_differences),
        cmocka_unit_test(broken_batches), cmocka_unit_test(allocation_failure)};
    return cmocka_run_group_tests_name("algos/dpo", tests, NULL, NULL);
}
