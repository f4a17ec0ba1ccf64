// test_sft_classify.c: tests sft.so and classify.so. Compares losses with numbers computed by hand,
// and derivatives with finite differences. Different splits into microbatches must give the same
// results. Also tests metrics and refusals.
#include "algos/fixture.h"

#include <math.h>

static struct batch b;

static double whole(struct algo *a) { return batch_loss(a, &b, 0, b.n, 0); }

static void finish(struct algo *a) {
    int32_t stop = 7;
    assert_int_equal(algo_minibatch_end(a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    assert_int_equal(algo_phase_end(a, 0), RLHF_OK);
}

static void sft_by_hand(void **state) {
    (void)state;
    // rows of 1 and 3 trained tokens: log-probs -4 and -1, -2, -3
    memset(&b, 0, sizeof b);
    b.n = 2;
    b.offset[1] = 2;
    b.total = b.offset[2] = 6;
    b.prompt_len[0] = b.prompt_len[1] = 1;
    b.logp[1] = -4;
    b.logp[3] = -1;
    b.logp[4] = -2;
    b.logp[5] = -3;
    struct algo a;
    algo_open(&a, "sft.so", "", 2);
    assert_int_equal(a.plan.source, RLHF_SOURCE_TEXT);
    assert_int_equal(a.plan.heads, RLHF_HEAD_LOGP);
    assert_near(whole(&a), 2.5, 1e-12, "token mean");
    assert_near((double)b.d_logp[1], -0.25, 1e-7, "derivative");
    assert_true(b.d_logp[0] == 0 && b.d_logp[2] == 0);
    finish(&a);
    assert_near(metric(&a, "objective/loss"), 2.5, 1e-12, "loss");
    assert_near(metric(&a, "sft/perplexity"), exp(2.5), 1e-9, "perplexity");
    assert_near(metric(&a, "sft/bits_per_token"), 2.5 / log(2), 1e-12, "bits");
    algo_close(&a);

    algo_open(&a, "sft.so", "aggregation=sequence", 2);
    assert_near(whole(&a), (4 + 2) / 2.0, 1e-12, "mean of row means");
    assert_near((double)b.d_logp[1], -0.5, 1e-7, "derivative");
    assert_near((double)b.d_logp[4], -1.0 / 6, 1e-7, "derivative");
    finish(&a);
    assert_near(metric(&a, "sft/bits_per_token"), 2.5 / log(2), 1e-12, "bits stay per token");
    algo_close(&a);
}

// Tokens that are left out of the loss do not count in means, and their derivative is 0.
static void sft_leaves_out(void **state) {
    static const struct {
        const char *options;
        double loss, d[6];
    } cases[] = {{"", (4 + 1 + 3) / 3.0, {0, -1 / 3.0, 0, -1 / 3.0, 0, -1 / 3.0}},
                 {"aggregation=sequence", (4 + 2) / 2.0, {0, -0.5, 0, -0.25, 0, -0.25}}};
    const int32_t offset[] = {0, 2, 6}, prompt_len[] = {1, 1};
    const uint8_t left_out[] = {0, 0, 0, 0, 1, 0};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        float logp[] = {0, -4, 0, -1, -20, -3}, d[6] = {0};
        rlhf_head_values heads = {.size = sizeof heads, .logp = logp};
        rlhf_head_gradients d_heads = {.size = sizeof d_heads, .logp = d};
        rlhf_loss_in in = {.size = sizeof in,
                           .n = 2,
                           .total = 6,
                           .batch_sequences = 2,
                           .batch_tokens = 3,
                           .offset = offset,
                           .prompt_len = prompt_len,
                           .heads = &heads,
                           .left_out = left_out};
        rlhf_loss_out out = {.size = sizeof out, .d_heads = &d_heads};
        struct algo a;
        algo_open(&a, "sft.so", cases[k].options, 2);
        assert_true(a.plan.flags & RLHF_PLAN_LEAVES_OUT);
        assert_int_equal(a.ops->loss(a.self, &in, &out), RLHF_OK);
        assert_near(out.loss, cases[k].loss, 1e-12, "loss");
        for (int t = 0; t < 6; t++)
            assert_near((double)d[t], cases[k].d[t], 1e-7, "derivative");
        finish(&a);
        assert_near(metric(&a, "sft/bits_per_token"), (4 + 1 + 3) / 3.0 / log(2), 1e-12, "bits");
        // An older host's struct lacks the field that marks tokens. Then all tokens count.
        in.size = (uint32_t)offsetof(rlhf_loss_in, left_out);
        in.batch_tokens = 4;
        assert_int_equal(a.ops->loss(a.self, &in, &out), RLHF_OK);
        assert_near(out.loss, k ? (4 + 8) / 2.0 : (4 + 24) / 4.0, 1e-12, "all tokens");
        algo_close(&a);
    }
}

static void classify_by_hand(void **state) {
    (void)state;
    memset(&b, 0, sizeof b);
    b.n = 2;
    b.n_labels = 2;
    b.offset[1] = 1;
    b.total = b.offset[2] = 2;
    b.label[1] = 1;
    b.class_score[0] = (float)log(3); // p = 3/4, 1/4; right
    b.class_score[2] = (float)log(3); // wrong
    struct algo a;
    algo_open(&a, "classify.so", "", 2);
    assert_int_equal(a.plan.source, RLHF_SOURCE_LABELED);
    assert_int_equal(a.plan.heads, RLHF_HEAD_SCORE);
    assert_near(whole(&a), -(log(0.75) + log(0.25)) / 2, 1e-7, "loss");
    assert_near((double)b.d_class_score[0], -0.125, 1e-7, "d right");
    assert_near((double)b.d_class_score[1], 0.125, 1e-7, "d right");
    assert_near((double)b.d_class_score[2], 0.375, 1e-7, "d wrong");
    finish(&a);
    assert_near(metric(&a, "classify/accuracy"), 0.5, 0, "accuracy");
    algo_close(&a);
    algo_open(&a, "classify.so", "label_smoothing=0.2", 2); // targets 0.9 and 0.1
    assert_near(whole(&a),
                -(0.9 * log(0.75) + 0.1 * log(0.25) + 0.1 * log(0.75) + 0.9 * log(0.25)) / 2, 1e-7,
                "smoothed");
    assert_near((double)b.d_class_score[0], (0.75 - 0.9) / 2, 1e-7, "smoothed derivative");
    algo_close(&a);
}

static void derivatives(void **state) {
    (void)state;
    static const char *const files[][2] = {{"sft.so", ""},
                                           {"sft.so", "aggregation=sequence"},
                                           {"classify.so", ""},
                                           {"classify.so", "label_smoothing=0.3"}};
    for (int k = 0; k < 4; k++) {
        struct algo a;
        batch_random(&b, 9, 70 + (uint64_t)k);
        b.n_labels = 3;
        algo_open(&a, files[k][0], files[k][1], b.n);
        batch_differences(&a, &b, k < 2 ? b.logp : b.class_score,
                          k < 2 ? b.d_logp : b.d_class_score, k < 2 ? b.total : b.n * 3, 1e-6, 0,
                          files[k][0]);
        algo_close(&a);
    }
}

static void microbatches_add_up(void **state) {
    (void)state;
    static const char *const files[][2] = {
        {"sft.so", ""}, {"sft.so", "aggregation=sequence"}, {"classify.so", "label_smoothing=0.1"}};
    for (int k = 0; k < 3; k++)
        for (int32_t step = 1; step <= 4; step *= 2) {
            struct algo a, c;
            batch_random(&b, 8, 80);
            b.n_labels = 3;
            algo_open(&a, files[k][0], files[k][1], b.n);
            double all = whole(&a), sum = 0;
            float want[MAX_TOKENS], want_score[MAX_ROWS * 8];
            memcpy(want, b.d_logp, sizeof want);
            memcpy(want_score, b.d_class_score, sizeof want_score);
            algo_close(&a);
            algo_open(&c, files[k][0], files[k][1], b.n);
            for (int32_t i = 0; i < b.n; i += step)
                sum += batch_loss(&c, &b, i, i + step, 0);
            finish(&c);
            assert_near(sum, all, 1e-12, files[k][0]);
            assert_near(metric(&c, "objective/loss"), all, 1e-12, files[k][0]);
            assert_memory_equal(want, b.d_logp, sizeof want);
            assert_memory_equal(want_score, b.d_class_score, sizeof want_score);
            algo_close(&c);
        }
}

static void bad_input(void **state) {
    (void)state;
    struct algo a;
    rlhf_run_info info = {.size = sizeof info, .n_labels = 1};
    rlhf_plan plan = {.size = sizeof plan};
    assert_int_equal(algo_try(&a, "classify.so", ""), RLHF_OK);
    assert_int_equal(a.ops->plan(a.self, &info, &plan), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "1 label;"));
    info.n_labels = 3;
    assert_int_equal(a.ops->plan(a.self, &info, &plan), RLHF_OK);
    float score[3] = {0}, d[3];
    int32_t label = 3;
    rlhf_head_values x = {.size = sizeof x, .score = score};
    rlhf_head_gradients dx = {.size = sizeof dx, .score = d};
    rlhf_loss_in in = {.size = sizeof in,
                       .n = 1,
                       .batch_sequences = 1,
                       .heads = &x,
                       .label = &label,
                       .n_labels = 3};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &dx};
    assert_int_equal(a.ops->loss(a.self, &in, &out), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "label 3"));
    algo_close(&a);
    static const char *const files[] = {"sft.so", "classify.so"};
    for (int i = 0; i < 2; i++) {
        void *self = NULL;
        assert_int_equal(algo_try(&a, files[i], ""), RLHF_OK);
        rlhf_test_fail_alloc(a.host, 1, 0);
        assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
        a.plugin->destroy(NULL);
        algo_close(&a);
    }
}

// A label learned by plain gradient descent on the scores reaches full accuracy.
static void classify_learns(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 16, 90);
    b.n_labels = 3;
    algo_open(&a, "classify.so", "", b.n);
    for (int step = 0; step < 60; step++) {
        whole(&a);
        for (int32_t i = 0; i < b.n * 3; i++)
            b.class_score[i] -= 10 * b.d_class_score[i];
        finish(&a);
    }
    assert_near(metric(&a, "classify/accuracy"), 1, 0, "accuracy");
    assert_true(metric(&a, "objective/loss") < 0.1);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sft_by_hand),         cmocka_unit_test(sft_leaves_out),
        cmocka_unit_test(classify_by_hand),    cmocka_unit_test(derivatives),
        cmocka_unit_test(microbatches_add_up), cmocka_unit_test(bad_input),
        cmocka_unit_test(classify_learns)};
    return cmocka_run_group_tests_name("algos/supervised", tests, NULL, NULL);
}
