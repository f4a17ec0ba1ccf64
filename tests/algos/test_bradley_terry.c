// test_bradley_terry.c: compares bradley_terry.so with the float64 reference of make_bt_vectors.py,
// with numbers computed by hand, and with finite differences. Also tests the signs of derivatives
// and refusals. The numbers are the same for any split that keeps groups whole.
#include "algos/preference_case.h"

#include <math.h>

static const char *const names[] = {"reward_model/accuracy", "reward_model/margin",
                                    "reward_model/chosen", "reward_model/rejected", NULL};
static struct batch b;

// The numbers of bt_vectors.json.
enum { BT_N = 17 };
static json_t *vectors;
static float row_margins[BT_N];
static struct preference_cases cases, row_cases;

static void load(void) {
    memset(&b, 0, sizeof b);
    b.n = BT_N;
    b.n_labels = 1;
    b.total = BT_N;
    for (int32_t i = 0; i < BT_N; i++)
        b.offset[i + 1] = i + 1;
    numbers_ints(vectors, "group", b.group, BT_N);
    numbers_ints(vectors, "label", b.label, BT_N);
    numbers_floats(vectors, "reward", b.class_score, BT_N);
}

static int setup(void **state) {
    (void)state;
    vectors = numbers_open("algos/bt_vectors.json");
    numbers_floats(vectors, "row_margins", row_margins, BT_N);
    preference_read(&cases, vectors, "cases", BT_N);
    preference_read(&row_cases, vectors, "row_cases", BT_N);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_decref(vectors);
    return 0;
}

static const struct preference_algo bt = {
    "bradley_terry.so", &b, b.class_score, b.d_class_score, BT_N, load, names};

static void load_with_margins(void) {
    load();
    b.margin = row_margins;
}

static const struct preference_algo bt_rows = {
    "bradley_terry.so", &b, b.class_score, b.d_class_score, BT_N, load_with_margins, names};

// Makes n rows of one group; the first is preferred.
static void one_group(const float *reward, int32_t n) {
    preference_group(&b, n, 0, 1);
    memcpy(b.class_score, reward, sizeof *reward * (size_t)n);
}

static void plan(void **state) {
    (void)state;
    struct algo a;
    algo_open(&a, "bradley_terry.so", "", 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_PREFERENCES);
    assert_int_equal(a.plan.heads, RLHF_HEAD_SCORE);
    assert_int_equal(a.plan.flags, RLHF_PLAN_MARGINS);
    assert_int_equal(a.plan.epochs, 1);
    assert_int_equal(a.plan.minibatches, 1);
    algo_close(&a);
}

// Compares with the reference: the whole minibatch at once, then group by group, then two groups
// followed by four.
static void reference(void **state) {
    (void)state;
    static const int32_t whole[] = {BT_N}, each[] = {2, 4, 8, 11, 13, BT_N}, uneven[] = {4, BT_N};
    for (size_t i = 0; i < cases.n; i++) {
        preference_check(&bt, &cases.at[i], whole);
        preference_check(&bt, &cases.at[i], each);
        preference_check(&bt, &cases.at[i], uneven);
    }
    for (size_t i = 0; i < row_cases.n; i++) {
        preference_check(&bt_rows, &row_cases.at[i], whole);
        preference_check(&bt_rows, &row_cases.at[i], each);
    }
}

// An older host's rlhf_loss_in ends before `margin`: the plugin must not read it.
static void an_older_host(void **state) {
    (void)state;
    static const float lead[] = {1, -1}, margin[] = {2, 2};
    struct algo a;
    one_group(lead, 2);
    algo_open(&a, "bradley_terry.so", "", 2);
    rlhf_head_values x = {.size = sizeof x, .score = b.class_score};
    rlhf_head_gradients d = {.size = sizeof d, .score = b.d_class_score};
    rlhf_loss_in in = {.size = (uint32_t)offsetof(rlhf_loss_in, margin),
                       .n = 2,
                       .total = (uint32_t)b.total,
                       .batch_sequences = 2,
                       .offset = b.offset,
                       .prompt_len = b.prompt_len,
                       .group = b.group,
                       .heads = &x,
                       .label = b.label,
                       .n_labels = 1,
                       .margin = margin};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    assert_int_equal(a.ops->loss(a.self, &in, &out), RLHF_OK);
    assert_near(out.loss, log1p(exp(-2)), 1e-12, "-log sigmoid(2)");
    algo_close(&a);
}

static void by_hand(void **state) {
    (void)state;
    static const float even[] = {1, 1}, lead[] = {1, -1}, four[] = {0, 0, 0, 0};
    struct algo a;
    one_group(even, 2); // both are equally likely; a tie does not count as right
    algo_open(&a, "bradley_terry.so", "", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2), 1e-12, "log 2");
    assert_near((double)b.d_class_score[0], -0.5, 1e-7, "up");
    assert_near((double)b.d_class_score[1], 0.5, 1e-7, "down");
    preference_phase_end(&a);
    assert_true(metric(&a, "reward_model/accuracy") == 0);
    one_group(lead, 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log1p(exp(-2)), 1e-12, "-log sigmoid(2)");
    preference_phase_end(&a);
    assert_true(metric(&a, "reward_model/accuracy") == 1);
    assert_near(metric(&a, "reward_model/margin"), 2, 1e-12, "margin");
    one_group(four, 4);
    assert_near(batch_loss(&a, &b, 0, 4, 0), log(4), 1e-12, "log 4");
    algo_close(&a);
    one_group(lead, 2); // with a margin of 2, both are equally likely again
    algo_open(&a, "bradley_terry.so", "margin=2", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2), 1e-12, "margin");
    algo_close(&a);
    one_group(even, 2);
    algo_open(&a, "bradley_terry.so", "center_coef=0.5", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2) + 0.5 * 4, 1e-12, "centred");
    assert_near((double)b.d_class_score[0], -0.5 + 0.5 * 2 * 2, 1e-6, "centred");
    algo_close(&a);
}

// Huge rewards do not overflow, and the derivative has the right sign.
static void extreme_rewards(void **state) {
    (void)state;
    static const float wrong[] = {-1e4f, 1e4f}, right[] = {1e4f, -1e4f};
    struct algo a;
    algo_open(&a, "bradley_terry.so", "", 2);
    one_group(wrong, 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), 2e4, 1e-9, "linear");
    assert_near((double)b.d_class_score[0], -1, 1e-7, "full slope");
    one_group(right, 2);
    assert_true(batch_loss(&a, &b, 0, 2, 0) == 0);
    assert_true(b.d_class_score[0] == 0);
    one_group(right, 2);
    b.class_score[1] = NAN; // the host must see the NaN
    assert_true(isnan(batch_loss(&a, &b, 0, 2, 0)));
    algo_close(&a);
}

// Descent raises the preferred reward and lowers every other reward. Without centering, the sum of
// all changes is 0.
static void signs(void **state) {
    (void)state;
    rlhf_rng r = {3, rlhf_rng_stream("tests/bt"), 0};
    for (int k = 0; k < 50; k++) {
        struct algo a;
        float reward[6];
        int32_t n = 2 + (int32_t)rlhf_rng_below(&r, 5);
        for (int i = 0; i < 6; i++)
            reward[i] = (float)(6 * rlhf_rng_next(&r) - 3);
        one_group(reward, n);
        algo_open(&a, "bradley_terry.so", k % 2 ? "margin=0.5" : "", n);
        batch_loss(&a, &b, 0, n, 0);
        double sum = 0;
        for (int32_t i = 0; i < n; i++) {
            assert_true((b.d_class_score[i] < 0) == (i == 0));
            sum += (double)b.d_class_score[i];
        }
        assert_near(sum, 0, 1e-6, "sum");
        algo_close(&a);
    }
}

static void finite_differences(void **state) {
    (void)state;
    preference_differences(&bt, "margin=0.4,center_coef=0.1");
}

// Two labels or a missing head give an error message, not a wrong number.
static void broken_batches(void **state) {
    (void)state;
    static const float reward[] = {1, 2, 3};
    rlhf_head_values x = {.size = sizeof x, .score = b.class_score}, none = {.size = sizeof none};
    rlhf_head_gradients d = {.size = sizeof d, .score = b.d_class_score};
    struct algo a;
    algo_open(&a, "bradley_terry.so", "", 3);
    one_group(reward, 3);
    preference_refusals(&a, &b, &x, &d);
    b.n_labels = 2;
    assert_int_equal(preference_try(&a, &b, 3, &x, &d, NULL), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "2 labels"));
    b.n_labels = 1;
    assert_int_equal(preference_try(&a, &b, 3, &none, &d, NULL), RLHF_E_INTERNAL);
    algo_close(&a);
}

static void allocation_failure(void **state) {
    (void)state;
    algo_needs_memory("bradley_terry.so");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan),
                                       cmocka_unit_test(reference),
                                       cmocka_unit_test(an_older_host),
                                       cmocka_unit_test(by_hand),
                                       cmocka_unit_test(extreme_rewards),
                                       cmocka_unit_test(signs),
                                       cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(broken_batches),
                                       cmocka_unit_test(allocation_failure)};
    return cmocka_run_group_tests_name("algos/bradley_terry", tests, setup, teardown);
}
