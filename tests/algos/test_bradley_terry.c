// test_bradley_terry.c: bradley_terry.so against the float64 reference of make_bt_vectors.py, by
// hand, by finite differences and signs, in any split that keeps groups whole, and what it refuses.
#include "algos/fixture.h"

#include <math.h>

struct bt_case {
    const char *options;
    double loss;
    const double *d;
};
#include "algos/bt_vectors.h"

static struct batch b;

static void load(void) {
    memset(&b, 0, sizeof b);
    b.n = BT_N;
    b.n_labels = 1;
    b.total = BT_N;
    for (int32_t i = 0; i < BT_N; i++) {
        b.offset[i + 1] = i + 1;
        b.group[i] = bt_group[i];
        b.label[i] = bt_label[i];
        b.class_score[i] = (float)bt_reward[i];
    }
}

// n rows of one group; the first is preferred.
static void one_group(const float *reward, int32_t n) {
    memset(&b, 0, sizeof b);
    b.n = b.total = n;
    b.n_labels = 1;
    b.label[0] = 1;
    for (int32_t i = 0; i < n; i++) {
        b.offset[i + 1] = i + 1;
        b.class_score[i] = reward[i];
    }
}

static void finish(struct algo *a) {
    int32_t stop = 7;
    assert_int_equal(a->ops->minibatch_end(a->self, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    assert_int_equal(a->ops->phase_end(a->self, 0), RLHF_OK);
}

static void plan(void **state) {
    (void)state;
    struct algo a;
    algo_open(&a, "bradley_terry.so", "", 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_PREFERENCES);
    assert_int_equal(a.plan.heads, RLHF_HEAD_SCORE);
    assert_int_equal(a.plan.flags, 0);
    assert_int_equal(a.plan.epochs, 1);
    assert_int_equal(a.plan.minibatches, 1);
    algo_close(&a);
}

// The whole minibatch at once, group by group, and two groups beside four.
static void reference(void **state) {
    (void)state;
    static const int32_t whole[] = {0, BT_N}, each[] = {0, 2, 4, 8, 11, 13, BT_N},
                         uneven[] = {0, 4, BT_N};
    static const int32_t *const splits[] = {whole, each, uneven};
    static const char *const names[] = {"reward_model/accuracy", "reward_model/margin",
                                        "reward_model/chosen", "reward_model/rejected"};
    for (size_t i = 0; i < 3 * sizeof bt_cases / sizeof *bt_cases; i++) {
        const struct bt_case *c = bt_cases + i / 3;
        struct algo a;
        double loss = 0;
        load();
        algo_open(&a, "bradley_terry.so", c->options, BT_N);
        for (const int32_t *cut = splits[i % 3]; cut[0] < BT_N; cut++)
            loss += batch_loss(&a, &b, cut[0], cut[1], 0);
        assert_near(loss, c->loss, 1e-12, c->options);
        for (int k = 0; k < BT_N; k++)
            assert_near((double)b.d_class_score[k], c->d[k], 2e-7, c->options);
        finish(&a);
        assert_near(metric(&a, "objective/loss"), c->loss, 1e-12, "objective/loss");
        for (int k = 0; k < 4; k++)
            assert_near(metric(&a, names[k]), bt_metrics[k], 1e-9, names[k]);
        assert_int_equal(a.host->n_metrics, 5);
        algo_close(&a);
    }
}

static void by_hand(void **state) {
    (void)state;
    static const float even[] = {1, 1}, lead[] = {1, -1}, four[] = {0, 0, 0, 0};
    struct algo a;
    one_group(even, 2); // a coin flip; a tie is not right
    algo_open(&a, "bradley_terry.so", "", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2), 1e-12, "log 2");
    assert_near((double)b.d_class_score[0], -0.5, 1e-7, "up");
    assert_near((double)b.d_class_score[1], 0.5, 1e-7, "down");
    finish(&a);
    assert_true(metric(&a, "reward_model/accuracy") == 0);
    one_group(lead, 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log1p(exp(-2)), 1e-12, "-log sigmoid(2)");
    finish(&a);
    assert_true(metric(&a, "reward_model/accuracy") == 1);
    assert_near(metric(&a, "reward_model/margin"), 2, 1e-12, "margin");
    one_group(four, 4);
    assert_near(batch_loss(&a, &b, 0, 4, 0), log(4), 1e-12, "log 4");
    algo_close(&a);
    one_group(lead, 2); // with a margin of 2 the lead is a coin flip again
    algo_open(&a, "bradley_terry.so", "margin=2", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2), 1e-12, "margin");
    algo_close(&a);
    one_group(even, 2);
    algo_open(&a, "bradley_terry.so", "center_coef=0.5", 2);
    assert_near(batch_loss(&a, &b, 0, 2, 0), log(2) + 0.5 * 4, 1e-12, "centred");
    assert_near((double)b.d_class_score[0], -0.5 + 0.5 * 2 * 2, 1e-6, "centred");
    algo_close(&a);
}

// Huge rewards: no overflow, and a derivative that still points the right way.
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
    b.class_score[1] = NAN; // the host must see it
    assert_true(isnan(batch_loss(&a, &b, 0, 2, 0)));
    algo_close(&a);
}

// Descent raises the preferred reward and lowers every other; without centring they add up to 0.
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
    struct algo a;
    algo_open(&a, "bradley_terry.so", "margin=0.4,center_coef=0.1", BT_N);
    load();
    for (int32_t i = 0; i < BT_N; i++) {
        float keep = b.class_score[i], up = keep + 1e-3f, down = keep - 1e-3f;
        b.class_score[i] = up;
        double plus = batch_loss(&a, &b, 0, BT_N, 0);
        b.class_score[i] = down;
        double minus = batch_loss(&a, &b, 0, BT_N, 0);
        b.class_score[i] = keep;
        batch_loss(&a, &b, 0, BT_N, 0);
        assert_near((double)b.d_class_score[i], (plus - minus) / ((double)up - (double)down), 1e-6,
                    "derivative");
    }
    algo_close(&a);
}

static rlhf_status try_loss(struct algo *a, int32_t n, int32_t n_labels, float *score) {
    rlhf_heads x = {.size = sizeof x, .score = score};
    rlhf_heads d = {.size = sizeof d, .score = score ? b.d_class_score : NULL};
    rlhf_loss_in in = {.size = sizeof in,
                       .n = (uint32_t)n,
                       .total = (uint32_t)n,
                       .batch_sequences = b.n,
                       .offset = b.offset,
                       .prompt_len = b.prompt_len,
                       .group = b.group,
                       .heads = &x,
                       .label = b.label,
                       .n_labels = n_labels};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    return a->ops->loss(a->self, &in, &out);
}

// A split group, none or two preferred, two labels, no head: a sentence, not a wrong number.
static void broken_batches(void **state) {
    (void)state;
    static const float reward[] = {1, 2, 3};
    struct algo a;
    algo_open(&a, "bradley_terry.so", "", 3);
    one_group(reward, 3);
    assert_int_equal(try_loss(&a, 3, 1, b.class_score), RLHF_OK);
    assert_int_equal(try_loss(&a, 1, 1, b.class_score), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "preferred"));
    b.label[1] = 1;
    assert_int_equal(try_loss(&a, 3, 1, b.class_score), RLHF_E_INTERNAL);
    b.label[0] = b.label[1] = 0;
    assert_int_equal(try_loss(&a, 3, 1, b.class_score), RLHF_E_INTERNAL);
    b.label[0] = 2;
    assert_int_equal(try_loss(&a, 3, 1, b.class_score), RLHF_E_INTERNAL);
    b.label[0] = 1;
    assert_int_equal(try_loss(&a, 3, 2, b.class_score), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "2 labels"));
    assert_int_equal(try_loss(&a, 3, 1, NULL), RLHF_E_INTERNAL);
    algo_close(&a);
}

static void allocation_failure(void **state) {
    (void)state;
    struct algo a;
    void *self = NULL;
    algo_open(&a, "bradley_terry.so", "", 2);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan),           cmocka_unit_test(reference),
        cmocka_unit_test(by_hand),        cmocka_unit_test(extreme_rewards),
        cmocka_unit_test(signs),          cmocka_unit_test(finite_differences),
        cmocka_unit_test(broken_batches), cmocka_unit_test(allocation_failure)};
    return cmocka_run_group_tests_name("algos/bradley_terry", tests, NULL, NULL);
}
