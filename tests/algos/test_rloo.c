// test_rloo.c: compares rloo.so with numbers computed by hand and with finite differences
// (test_vectors.c compares it with its float64 reference). Also tests the signs of derivatives and
// refusals.
#include "algos/vector_case.h"

#include <math.h>

static struct batch b;

static void plan(void **state) {
    (void)state;
    struct algo a;
    algo_open(&a, "rloo.so", "epochs=3,minibatches=2", 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_ROLLOUT);
    assert_int_equal(a.plan.heads, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY);
    assert_int_equal(a.plan.flags, RLHF_PLAN_FULL_SUPPORT | RLHF_PLAN_REFERENCE | RLHF_PLAN_STALE);
    assert_int_equal(a.plan.epochs, 3);
    assert_int_equal(a.plan.minibatches, 2);
    assert_int_equal(a.plan.group_size, 4);
    assert_int_equal(a.plan.resample_rounds, 0);
    algo_close(&a);
    algo_open(&a, "rloo.so", "kl_coef=0,dynamic_sampling=true,dynamic_rounds=7", 8);
    assert_int_equal(a.plan.flags, RLHF_PLAN_FULL_SUPPORT | RLHF_PLAN_STALE);
    assert_int_equal(a.plan.resample_rounds, 7);
    algo_close(&a);
    rlhf_run_info info = {.size = sizeof info, .phases = 1, .batch_size = 8};
    assert_int_equal(algo_try(&a, "rloo.so", "minibatches=9"), RLHF_OK);
    assert_int_equal(a.ops->plan(a.self, &info, &a.plan), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "minibatches is 9"));
    algo_close(&a);
}

// A group whose rows are separated, a group without spread, and a group with dropped rows.
static void advantages_by_hand(void **state) {
    (void)state;
    static const float score[] = {6, 9, 3, 1, 12, 5, 5};
    static const int32_t group[] = {0, 1, 0, 2, 1, 3, 3};
    static const double want[] = {3, -3, -3, 0, 3, 0, 0};
    struct algo a;
    batch_random(&b, 7, 41);
    memset(b.token_reward, 0, sizeof b.token_reward);
    memcpy(b.score, score, sizeof score);
    memcpy(b.group, group, sizeof group);
    algo_open(&a, "rloo.so", "group_size=2,kl_coef=0", 7);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    for (int32_t i = 0; i < 7; i++)
        for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++)
            assert_true((double)b.advantage[t] == want[i]);
    algo_close(&a);
}

// In the first update both ratios have the gradient -A / n of REINFORCE.
static void the_first_gradient_is_reinforce(void **state) {
    (void)state;
    static const char *const options[] = {"group_size=2", "group_size=2,ratio=token"};
    for (int k = 0; k < 2; k++) {
        struct algo a;
        batch_random(&b, 10, 42);
        memcpy(b.logp, b.old, sizeof b.logp);
        algo_open(&a, "rloo.so", options[k], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        batch_loss(&a, &b, 0, b.n, 0);
        for (int32_t t = 0; t < b.total; t++)
            assert_near((double)b.d_logp[t], -(double)b.advantage[t] / b.n, 1e-7, options[k]);
        algo_close(&a);
    }
}

static void finite_differences(void **state) {
    (void)state;
    static const char *const options[] = {"group_size=2,clip_range=1",
                                          "group_size=2,ratio=token,clip_range=1,kl_coef=0"};
    for (int k = 0; k < 2; k++) {
        struct algo a;
        batch_random(&b, 10, 43);
        algo_open(&a, "rloo.so", options[k], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        for (int32_t t = 0; t < b.total; t++) {
            float keep = b.logp[t], up = keep + 1e-3f, down = keep - 1e-3f;
            b.logp[t] = up;
            double plus = batch_loss(&a, &b, 0, b.n, 0);
            b.logp[t] = down;
            double minus = batch_loss(&a, &b, 0, b.n, 0);
            b.logp[t] = keep;
            batch_loss(&a, &b, 0, b.n, 0);
            assert_near((double)b.d_logp[t], (plus - minus) / ((double)up - (double)down), 2e-6,
                        options[k]);
        }
        algo_close(&a);
    }
}

// Violations of the contract and running out of memory are reported, and nothing leaks.
static void failures(void **state) {
    (void)state;
    struct algo a;
    void *self = NULL;
    batch_random(&b, 4, 44);
    algo_open(&a, "rloo.so", "group_size=2", b.n);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NOMEM);
    rlhf_test_fail_alloc(a.host, 2, 0);
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NOMEM);
    int32_t last = b.offset[1] - 1;
    for (int32_t i = 1; b.offset[i] == b.offset[i - 1] + b.prompt_len[i - 1]; i++)
        last = b.offset[i + 1] - 1;
    float keep = b.ref[last];
    b.ref[last] = -INFINITY;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NUMERIC);
    b.ref[last] = keep;
    b.offset[0] = 1;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan), cmocka_unit_test(advantages_by_hand),
                                       cmocka_unit_test(the_first_gradient_is_reinforce),
                                       cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(failures)};
    return cmocka_run_group_tests_name("algos/rloo", tests, NULL, NULL);
}
