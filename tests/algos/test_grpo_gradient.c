// test_grpo_gradient.c: compares the derivatives of grpo.so with finite differences of its own loss
// on random batches. Also tests the signs of derivatives, groups without spread, and different
// splits into microbatches, which must give the same numbers.
#include "algos/fixture.h"

#include <math.h>

static struct batch b;

static void open_and_prepare(struct algo *a, const char *options) {
    algo_open(a, "grpo.so", options, b.n);
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
}

static void check_head(struct algo *a, float *head, const float *d_head, const char *what) {
    batch_differences(a, &b, head, d_head, b.total, 2e-4, 4e-4, what);
}

// cispo is left out. It treats its weights as constants, so its derivative is not the slope of its
// loss.
static void all_heads(void **state) {
    (void)state;
    static const char *const options[] = {
        "group_size=2",
        "group_size=2,loss=bnpo,advantage_scale=batch,kl_estimator=k2",
        "group_size=2,loss=dr_grpo,advantage_scale=none,kl_estimator=k1,kl_coef=0.5",
        "group_size=2,loss=dapo,clip_range_high=0.28,kl_placement=none,entropy_coef=0.1",
        "group_size=2,kl_estimator=full,kl_coef=0.5",
        "group_size=2,ratio=sequence,clip_range=0.9",
        "group_size=2,ratio=sequence_mean,loss=bnpo",
        "group_size=2,dual_clip=1.3,clip_range=0.1"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct algo a;
        batch_random(&b, 10, 200 + i);
        open_and_prepare(&a, options[i]);
        check_head(&a, b.logp, b.d_logp, options[i]);
        check_head(&a, b.entropy, b.d_entropy, options[i]);
        if (a.plan.heads & RLHF_HEAD_KL) check_head(&a, b.kl, b.d_kl, options[i]);
        algo_close(&a);
    }
}

// cispo's derivative is the derivative of a weighted log-likelihood, which includes tokens beyond
// the bound.
static void cispo_keeps_every_token(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 10, 210);
    open_and_prepare(&a, "group_size=2,loss=cispo,clip_range_high=0.05,kl_placement=none");
    batch_loss(&a, &b, 0, b.n, 0);
    int64_t tokens = 0;
    for (int32_t i = 0; i < b.n; i++)
        tokens += b.offset[i + 1] - b.offset[i] - b.prompt_len[i];
    int beyond = 0;
    for (int32_t t = 0; t < b.total; t++) {
        double rho = exp((double)b.logp[t] - (double)b.old[t]);
        beyond += rho > 1.05 && b.advantage[t] != 0;
        double want = -fmin(rho, 1.05) * (double)b.advantage[t] / (double)tokens;
        assert_near((double)b.d_logp[t], want, 1e-7, "cispo");
    }
    assert_true(beyond > 3);
    algo_close(&a);
}

// In the first step, descent raises the log-prob of rows above their group's mean and lowers the
// log-prob of the other rows.
static void descent_follows_the_advantage(void **state) {
    (void)state;
    static const char *const losses[] = {"grpo", "bnpo", "dr_grpo", "dapo", "cispo"};
    static const char *const ratios[] = {"token", "sequence", "sequence_mean"};
    static const char *const scales[] = {"group", "batch", "none"};
    for (int k = 0; k < 45; k++) {
        struct algo a;
        char options[128];
        snprintf(options, sizeof options,
                 "group_size=2,kl_placement=none,loss=%s,ratio=%s,advantage_scale=%s",
                 losses[k % 5], ratios[k / 5 % 3], scales[k / 15]);
        batch_random(&b, 12, 220 + (uint64_t)k);
        memcpy(b.logp, b.old, sizeof b.logp);
        memset(b.token_reward, 0, sizeof b.token_reward);
        open_and_prepare(&a, options);
        batch_loss(&a, &b, 0, b.n, 0);
        for (int32_t i = 0; i < b.n; i++) {
            float other = b.score[i ^ 1]; // groups are pairs
            for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++) {
                assert_true((b.advantage[t] > 0) == (b.score[i] > other));
                assert_true((b.d_logp[t] < 0) == (b.advantage[t] > 0));
                assert_true(b.d_logp[t] != 0);
            }
        }
        algo_close(&a);
    }
}

static void kl_pulls_back(void **state) {
    (void)state;
    static const char *const options[] = {"group_size=2,kl_coef=1,kl_estimator=k2",
                                          "group_size=2,kl_coef=1,kl_estimator=k3"};
    for (size_t i = 0; i < 2; i++) {
        struct algo a;
        batch_random(&b, 8, 290);
        for (int k = 0; k < b.n; k++)
            b.score[k] = 0.5f;
        memset(b.token_reward, 0, sizeof b.token_reward);
        open_and_prepare(&a, options[i]);
        batch_loss(&a, &b, 0, b.n, 0);
        for (int32_t t = 0; t < b.total; t++) {
            assert_true(b.advantage[t] == 0);
            assert_true((b.d_logp[t] > 0) == (b.logp[t] > b.ref[t]));
        }
        algo_close(&a);
    }
    // KL in the reward: of two responses with equal scores, the one with the smaller KL to the
    // reference has a positive advantage.
    struct algo a;
    batch_random(&b, 8, 291);
    for (int k = 0; k < b.n; k++)
        b.score[k] = 0.5f;
    memset(b.token_reward, 0, sizeof b.token_reward);
    open_and_prepare(&a, "group_size=2,kl_placement=reward,kl_estimator=k1,kl_coef=1");
    double kl[MAX_ROWS] = {0};
    for (int32_t i = 0; i < b.n; i++)
        for (int32_t t = b.offset[i]; t < b.offset[i + 1]; t++)
            kl[i] += (double)b.old[t] - (double)b.ref[t];
    for (int32_t i = 0; i < b.n; i++) {
        if (b.offset[i + 1] == b.offset[i] + b.prompt_len[i]) continue;
        assert_true((b.advantage[b.offset[i + 1] - 1] > 0) == (kl[i] < kl[i ^ 1]));
    }
    algo_close(&a);
}

// The metrics count a group without spread. The policy gradient of such a group is 0 with every
// normalization, even with eps 0. Without a KL term, its tokens have derivative exactly 0.
static void zero_spread(void **state) {
    (void)state;
    static const char *const scales[] = {"group", "batch", "none"};
    for (int k = 0; k < 3; k++) {
        struct algo a;
        char options[160];
        int32_t stop;
        snprintf(options, sizeof options,
                 "group_size=2,kl_placement=none,advantage_eps=0,advantage_scale=%s", scales[k]);
        batch_random(&b, 12, 300);
        memset(b.token_reward, 0, sizeof b.token_reward);
        for (int32_t i = 0; i < 6; i++) // groups 0 to 2 of 6
            b.score[i] = 0.1f * (float)(i / 2);
        open_and_prepare(&a, options);
        batch_loss(&a, &b, 0, b.n, 0);
        int moved = 0;
        for (int32_t t = 0; t < b.offset[6]; t++)
            assert_true(b.advantage[t] == 0 && b.d_logp[t] == 0);
        for (int32_t t = b.offset[6]; t < b.total; t++)
            moved += b.d_logp[t] != 0;
        assert_true(moved > 0);
        assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
        assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
        assert_near(metric(&a, "frac_reward_zero_std"), 0.5, 1e-15, "counted");
        algo_close(&a);
        for (int32_t i = 0; i < b.n; i++) // all groups lack spread: no division by 0
            b.score[i] = 0.7f;
        open_and_prepare(&a, options);
        for (int32_t t = 0; t < b.total; t++)
            assert_true(b.advantage[t] == 0);
        algo_close(&a);
    }
}

// 8 rows as 1 x 8, 8 x 1 and 2 x 4 give the same loss and derivatives, for every loss and ratio.
static void microbatches_add_up(void **state) {
    (void)state;
    static const char *const losses[] = {"grpo", "bnpo", "dr_grpo", "dapo", "cispo"};
    static const char *const ratios[] = {"token", "sequence", "sequence_mean"};
    static const int32_t sizes[] = {1, 2, 4};
    for (int k = 0; k < 15; k++) {
        struct algo a;
        char options[128];
        float want[2][MAX_TOKENS];
        snprintf(options, sizeof options, "group_size=2,entropy_coef=0.1,loss=%s,ratio=%s",
                 losses[k % 5], ratios[k / 5]);
        batch_random(&b, 8, 310 + (uint64_t)k);
        open_and_prepare(&a, options);
        double whole = batch_loss(&a, &b, 0, 8, 0);
        memcpy(want[0], b.d_logp, sizeof want[0]);
        memcpy(want[1], b.d_entropy, sizeof want[1]);
        for (int s = 0; s < 3; s++) {
            double sum = 0;
            for (int32_t i = 0; i < 8; i += sizes[s])
                sum += batch_loss(&a, &b, i, i + sizes[s], 0);
            assert_near(sum, whole, 1e-12, options);
            assert_memory_equal(b.d_logp, want[0], sizeof want[0]);
            assert_memory_equal(b.d_entropy, want[1], sizeof want[1]);
        }
        algo_close(&a);
    }
}

static void infinite_log_probs(void **state) {
    (void)state;
    static const char *const options[] = {
        "group_size=2,logprob_support=sampled,kl_placement=none",
        "group_size=2,logprob_support=sampled,loss=cispo",
        "group_size=2,logprob_support=sampled,loss=cispo,ratio=sequence", "group_size=2"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct algo a;
        batch_random(&b, 8, 330);
        open_and_prepare(&a, options[i]);
        for (int32_t k = 0; k < b.n; k++)
            if (b.offset[k + 1] > b.offset[k] + b.prompt_len[k])
                b.logp[b.offset[k + 1] - 1] = -INFINITY;
        assert_true(isfinite(batch_loss(&a, &b, 0, b.n, 0)));
        for (int32_t t = 0; t < b.total; t++)
            assert_true(isfinite(b.d_logp[t]));
        int32_t stop;
        assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
        assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
        for (uint32_t k = 0; k < a.host->n_metrics; k++)
            assert_true(isfinite(a.host->metric[k].value));
        if (i < 3) assert_true(metric(&a, "policy/out_of_support") > 0);
        algo_close(&a);
    }
}

// A NaN log-prob must reach the loss, so that the host skips the step.
static void not_a_number_shows(void **state) {
    (void)state;
    static const char *const losses[] = {"grpo", "cispo"};
    for (int k = 0; k < 2; k++) {
        struct algo a;
        char options[64];
        snprintf(options, sizeof options, "group_size=2,kl_placement=none,loss=%s", losses[k]);
        batch_random(&b, 8, 340);
        open_and_prepare(&a, options);
        for (int32_t t = 0; t < b.total; t++)
            if (b.advantage[t] > 0) b.logp[t] = NAN;
        assert_true(isnan(batch_loss(&a, &b, 0, b.n, 0)));
        algo_close(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_heads),          cmocka_unit_test(cispo_keeps_every_token),
        cmocka_unit_test(kl_pulls_back),      cmocka_unit_test(descent_follows_the_advantage),
        cmocka_unit_test(zero_spread),        cmocka_unit_test(microbatches_add_up),
        cmocka_unit_test(infinite_log_probs), cmocka_unit_test(not_a_number_shows)};
    return cmocka_run_group_tests_name("algos/grpo_gradient", tests, NULL, NULL);
}
