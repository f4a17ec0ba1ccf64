// test_dpo.c: compares dpo.so with the float64 reference of make_dpo_vectors.py (which
// tests/oracle/dpo_loss.py compares with TRL), with numbers computed by hand, and with finite
// differences. Also tests the signs of derivatives and refusals. The numbers are the same for any
// split that keeps groups whole.
#include "algos/preference_case.h"

#include <math.h>

static const char *const names[] = {
    "dpo/accuracy",    "dpo/margin",        "dpo/chosen", "dpo/rejected",
    "dpo/logp_chosen", "dpo/logp_rejected", NULL};
static struct batch b;

// The numbers of dpo_vectors.json.
enum { DPO_N = 13, DPO_TOTAL = 61 };
static json_t *vectors;
static struct preference_cases cases;

static void load(void) {
    memset(&b, 0, sizeof b);
    b.n = DPO_N;
    b.total = DPO_TOTAL;
    b.max_len = 8;
    numbers_ints(vectors, "offset", b.offset, DPO_N + 1);
    numbers_ints(vectors, "prompt_len", b.prompt_len, DPO_N);
    numbers_ints(vectors, "group", b.group, DPO_N);
    numbers_ints(vectors, "label", b.label, DPO_N);
    numbers_floats(vectors, "logp", b.logp, DPO_TOTAL);
    numbers_floats(vectors, "ref", b.ref, DPO_TOTAL);
}

static int setup(void **state) {
    (void)state;
    vectors = numbers_open("algos/dpo_vectors.json");
    preference_read(&cases, vectors, "cases", DPO_TOTAL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_decref(vectors);
    return 0;
}

static const struct preference_algo dpo = {"dpo.so", &b, b.logp, b.d_logp, DPO_TOTAL, load, names};

// One group of n responses of one token each. `lead[i]` is the policy's log-prob of response i
// minus the reference's log-prob. The first response is preferred.
static void one_row(const float *lead, int32_t n) {
    preference_group(&b, n, 1, 1);
    for (int32_t i = 0; i < n; i++) {
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

// Compares with the reference: the whole minibatch at once, then row by row, then cut unevenly.
static void reference(void **state) {
    (void)state;
    static const int32_t whole[] = {DPO_N}, each[] = {2, 4, 8, 11, DPO_N},
                         uneven[] = {4, 11, DPO_N};
    for (size_t i = 0; i < cases.n; i++) {
        preference_check(&dpo, &cases.at[i], whole);
        preference_check(&dpo, &cases.at[i], each);
        preference_check(&dpo, &cases.at[i], uneven);
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
    // If the policy is the reference, the loss is ln 2 for any number of rejected responses.
    for (int32_t n = 2; n <= 4; n++) {
        assert_true((float)loss_with("", even, n) == 0.6931471824645996f);
        assert_true((float)loss_with("label_smoothing=0.3", even, n) == 0.6931471824645996f);
        assert_near(loss_with("loss=ipo", even, n), 25, 1e-12, "(1 / 2 beta)^2");
    }
    assert_near(loss_with("beta=0.5", lead, 2), log1p(exp(-1)), 1e-12, "-log sigmoid(1)");
    assert_near(loss_with("beta=0.5,label_smoothing=0.25", lead, 2),
                0.75 * log1p(exp(-1)) + 0.25 * log1p(exp(1)), 1e-12, "conservative");
    assert_near(loss_with("loss=ipo,beta=0.25", lead, 2), 0, 1e-12, "a lead of 1 / 2 beta");
    // The policy is the reference.
    assert_near(loss_with("loss=hinge", even, 2), 1, 1e-12, "hinge");
    assert_near(loss_with("loss=robust,label_smoothing=0.3", even, 2), log(2), 1e-12, "robust");
    assert_near(loss_with("loss=sppo_hard", even, 2), 50, 1e-12, "twice (1 / 2 beta)^2");
    assert_near(loss_with("loss=apo_zero", even, 2), 1, 1e-12, "apo_zero");
    assert_near(loss_with("loss=apo_down", even, 2), 1, 1e-12, "apo_down");
    assert_near(loss_with("loss=nca_pair", even, 2), 2 * log(2), 1e-12, "nca_pair");
    assert_near(loss_with("loss=hinge,beta=0.5", lead, 2), 0, 1e-12, "a lead of 1 / beta");
    assert_near(loss_with("beta=1", two, 3), (log1p(exp(-1)) + log1p(exp(-2))) / 2, 1e-12,
                "each other one");
}

// Huge leads do not overflow, and the derivative has the right sign.
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
    b.logp[1] = NAN; // the host must see the NaN
    assert_true(isnan(batch_loss(&a, &b, 0, 2, 0)));
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    algo_close(&a);
    static const char *const losses[] = {"loss=ipo",
                                         "loss=hinge",
                                         "loss=sppo_hard",
                                         "loss=apo_zero",
                                         "loss=apo_down",
                                         "loss=nca_pair",
                                         "loss=robust,label_smoothing=0.2"};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        assert_true(isfinite(loss_with(losses[i], wrong, 2)));
        assert_true(isfinite((double)b.d_logp[1]) && isfinite((double)b.d_logp[3]));
        static const float nan_lead[] = {NAN, 0};
        assert_true(isnan(loss_with(losses[i], nan_lead, 2)));
    }
}

static void refused(const char *options, const char *word) {
    struct algo a;
    assert_int_equal(algo_try(&a, "dpo.so", options), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, word));
    algo_close(&a);
}

// Label smoothing is allowed only in losses that support it. The robust loss requires label
// smoothing, and has a pole at 1/2.
static void smoothing_without_effect_is_refused(void **state) {
    (void)state;
    static const char *const without[] = {"ipo",      "hinge",    "sppo_hard",
                                          "apo_zero", "apo_down", "nca_pair"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        char options[64];
        snprintf(options, sizeof options, "loss=%s,label_smoothing=0.1", without[i]);
        refused(options, "has no label smoothing");
    }
    refused("loss=robust", "label_smoothing is 0; loss robust needs");
    refused("loss=robust,label_smoothing=0.5", "below 0.5");
}

// Descent raises the log-prob of every token of the preferred response, and lowers the log-prob of
// every token of the other responses. Prompts have derivative 0.
static void signs(void **state) {
    (void)state;
    static const char *const options[] = {"", "beta=2", "loss=ipo,beta=0.01",
                                          "loss=robust,label_smoothing=0.2", "loss=apo_zero"};
    for (int k = 0; k < 5; k++) {
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
    preference_differences(&dpo, "beta=0.4,label_smoothing=0.1");
    preference_differences(&dpo, "loss=ipo,beta=0.5");
    preference_differences(&dpo, "loss=nca_pair,beta=0.4");
    preference_differences(&dpo, "loss=apo_down,beta=0.4");
}

// A missing reference or head gives an error message, not a wrong number.
static void broken_batches(void **state) {
    (void)state;
    static const float lead[] = {1, 2, 3};
    rlhf_head_values x = {.size = sizeof x, .logp = b.logp}, none = {.size = sizeof none};
    rlhf_head_gradients d = {.size = sizeof d, .logp = b.d_logp};
    struct algo a;
    algo_open(&a, "dpo.so", "", 3);
    one_row(lead, 3);
    preference_refusals(&a, &b, &x, &d);
    assert_int_equal(preference_try(&a, &b, 3, &x, &d, NULL), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "logp_ref"));
    assert_int_equal(preference_try(&a, &b, 3, &none, &d, b.ref), RLHF_E_INTERNAL);
    algo_close(&a);
}

static void allocation_failure(void **state) {
    (void)state;
    algo_needs_memory("dpo.so");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan),
                                       cmocka_unit_test(reference),
                                       cmocka_unit_test(by_hand),
                                       cmocka_unit_test(extremes),
                                       cmocka_unit_test(signs),
                                       cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(broken_batches),
                                       cmocka_unit_test(allocation_failure),
                                       cmocka_unit_test(smoothing_without_effect_is_refused)};
    return cmocka_run_group_tests_name("algos/dpo", tests, setup, teardown);
}
