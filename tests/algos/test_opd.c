// test_opd.c: compares opd.so with finite differences (test_vectors.c compares it with its float64
// reference). Also tests the plan and refusals of opd.so.
#include "algos/vector_case.h"

#include <rlhf/compute.h>

#include <math.h>

static struct batch b;

static void plan_is(const char *options, uint32_t heads, uint32_t flags, int32_t divergence,
                    double beta, const char *from) {
    struct algo a;
    algo_open(&a, "opd.so", options, 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_ROLLOUT);
    assert_int_equal(a.plan.heads, heads);
    assert_int_equal(a.plan.flags, flags | RLHF_PLAN_REWARDS_OPTIONAL);
    assert_int_equal(a.plan.divergence, divergence);
    assert_true(a.plan.divergence_beta == beta);
    assert_int_equal(a.plan.n_named, 1);
    assert_string_equal(a.plan.named[0], "teacher");
    if (from)
        assert_string_equal(a.plan.divergence_from, from);
    else
        assert_null(a.plan.divergence_from);
    algo_close(&a);
}

static void plan(void **state) {
    (void)state;
    const uint32_t two = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, full = RLHF_PLAN_FULL_SUPPORT;
    plan_is("", two | RLHF_HEAD_KL, full, RLHF_DIVERGENCE_REVERSE, 0, "teacher");
    plan_is("divergence=forward", two | RLHF_HEAD_KL, full, RLHF_DIVERGENCE_FORWARD, 0, "teacher");
    plan_is("divergence=js,beta=0.1", two | RLHF_HEAD_KL, full, RLHF_DIVERGENCE_JS, 0.1, "teacher");
    plan_is("divergence=sampled", two, full, 0, 0, NULL);
    plan_is("logprob_support=sampled,logprob_temperature=unit", two | RLHF_HEAD_KL,
            RLHF_PLAN_UNIT_TEMPERATURE, 0, 0, "teacher");
    struct algo a;
    algo_open(&a, "opd.so", "epochs=3,minibatches=2,group_size=4", 8);
    assert_int_equal(a.plan.epochs, 3);
    assert_int_equal(a.plan.minibatches, 2);
    assert_int_equal(a.plan.group_size, 4);
    algo_close(&a);
    rlhf_run_info info = {.size = sizeof info, .phases = 1, .batch_size = 8};
    assert_int_equal(algo_try(&a, "opd.so", "minibatches=9"), RLHF_OK);
    assert_int_equal(a.ops->plan(a.self, &info, &a.plan), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "minibatches is 9"));
    algo_close(&a);
}

// Compares derivatives of the loss with respect to the log-prob or, with a full divergence, to the
// kl head.
static void finite_differences(void **state) {
    (void)state;
    static const char *const options[] = {"divergence=sampled,clip_range=1", "divergence=js",
                                          "aggregation=sequence"};
    for (int k = 0; k < 3; k++) {
        struct algo a;
        batch_random(&b, 10, 43);
        float *x = k ? b.kl : b.logp, *d = k ? b.d_kl : b.d_logp;
        algo_open(&a, "opd.so", options[k], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        batch_differences(&a, &b, x, d, b.total, 2e-6, 0, options[k]);
        algo_close(&a);
    }
}

// After the first epoch, the policy is no longer the one that sampled the rows. So only the first
// epoch contributes to metrics about the sampling policy.
static void later_epochs(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 10, 45);
    algo_open(&a, "opd.so", "epochs=2", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    const double first = batch_loss(&a, &b, 0, b.n, 0);
    double entropy = 0, tokens = 0;
    for (int32_t i = 0; i < b.n; i++)
        for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++, tokens++)
            entropy += (double)b.entropy[t];
    algo_step_end(&a, 0, 0);
    for (int32_t t = 0; t < b.total; t++)
        b.entropy[t] = b.kl[t] = 0;
    assert_true(first > 0 && batch_loss(&a, &b, 0, b.n, 1) == 0);
    algo_step_end(&a, 1, 0);
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_near(metric(&a, "objective/loss"), 0, 1e-12, "the last epoch");
    assert_near(metric(&a, "opd/divergence"), first / 2, 1e-6, "both epochs");
    assert_near(metric(&a, "policy/entropy_avg"), entropy / tokens, 1e-6, "the first epoch");
    algo_close(&a);
}

// Violations of the contract and running out of memory are reported, and nothing leaks.
static void failures(void **state) {
    (void)state;
    struct algo a;
    void *self = NULL;
    batch_random(&b, 4, 44);
    algo_open(&a, "opd.so", "", b.n);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    int32_t last = b.offset[1] - 1;
    for (int32_t i = 1; b.offset[i] == b.offset[i - 1] + b.prompt_len[i - 1]; i++)
        last = b.offset[i + 1] - 1;
    float keep = b.ref[last];
    b.ref[last] = -INFINITY;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NUMERIC);
    b.ref[last] = keep;
    a.plan.n_named = 0; // the fixture passes no log-probs of the teacher
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    a.plan.n_named = 1;
    b.offset[0] = 1;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan), cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(later_epochs), cmocka_unit_test(failures)};
    return cmocka_run_group_tests_name("algos/opd", tests, NULL, NULL);
}
