// test_ppo_gradient.c: compares every derivative of ppo.so with finite differences of its own loss
// on random batches. Also tests the signs that a user relies on: descent raises the log-probs of
// rewarded tokens, lowers the KL, and so on.
#include "algos/fixture.h"

#include <math.h>

static struct batch b;

static void check_head(struct algo *a, float *head, const float *d_head, const char *what) {
    batch_differences(a, &b, head, d_head, b.total, 2e-4, 5e-3, what);
}

static void all_heads(void **state) {
    (void)state;
    static const char *const options[] = {
        "",
        "entropy_coef=0.1,aggregation=sequence",
        "ratio=sequence,clip_range=0.5",
        "ratio=sequence_mean,aggregation=max_len",
        "dual_clip=1.3,clip_range=0.1",
        "kl_placement=loss,kl_estimator=k1,kl_coef=0.5",
        "kl_placement=loss,kl_estimator=k2",
        "kl_placement=loss,kl_estimator=k3,kl_coef=0.5,aggregation=sequence",
        "kl_placement=loss,kl_estimator=full,kl_coef=0.5,entropy_coef=0.2",
        "advantage=group,group_size=2,kl_placement=none,ratio=sequence_mean,aggregation=grpo",
        "value_clip=0.1,value_coef=1",
        "aggregation=dapo,entropy_coef=0.3"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct algo a;
        batch_random(&b, 10, 100 + i);
        algo_open(&a, "ppo.so", options[i], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        check_head(&a, b.logp, b.d_logp, options[i]);
        check_head(&a, b.entropy, b.d_entropy, options[i]);
        if (a.plan.heads & RLHF_HEAD_KL) check_head(&a, b.kl, b.d_kl, options[i]);
        if (a.plan.heads & RLHF_HEAD_VALUE) check_head(&a, b.value, b.d_value, options[i]);
        algo_close(&a);
    }
}

// In the first step, where the policy is the rollout policy, descent raises the log-prob of tokens
// with a positive advantage and lowers the log-prob of the other tokens, for every ratio level and
// aggregation.
static void descent_follows_the_advantage(void **state) {
    (void)state;
    static const char *const options[] = {
        "", "ratio=sequence,advantage=sequence", "aggregation=max_len",
        "ratio=sequence_mean,advantage=group,group_size=2,aggregation=sequence", "dual_clip=3"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct algo a;
        batch_random(&b, 8, 7 + i);
        memcpy(b.logp, b.old, sizeof b.logp);
        algo_open(&a, "ppo.so", options[i], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        batch_loss(&a, &b, 0, b.n, 0);
        for (int32_t t = 0; t < b.total; t++) {
            if (b.advantage[t] > 0) assert_true(b.d_logp[t] < 0);
            if (b.advantage[t] < 0) assert_true(b.d_logp[t] > 0);
            if (b.advantage[t] == 0) assert_true(b.d_logp[t] == 0);
        }
        algo_close(&a);
    }
}

// With equal scores and the policy away from the reference, only the KL term acts. With k2 and k3,
// a descent step along d_logp pulls every log-prob toward the reference's log-prob.
static void kl_in_the_loss_pulls_back(void **state) {
    (void)state;
    static const char *const options[] = {"kl_placement=loss,kl_estimator=k2,advantage=sequence",
                                          "kl_placement=loss,kl_estimator=k3,advantage=sequence"};
    for (size_t i = 0; i < 2; i++) {
        struct algo a;
        batch_random(&b, 8, 31);
        for (int k = 0; k < b.n; k++)
            b.score[k] = 0.5f;
        memset(b.token_reward, 0, sizeof b.token_reward);
        memcpy(b.logp, b.old, sizeof b.logp);
        algo_open(&a, "ppo.so", options[i], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        batch_loss(&a, &b, 0, b.n, 0);
        for (int32_t t = 0; t < b.total; t++) {
            double gap = (double)b.logp[t] - (double)b.ref[t];
            if (gap > 0) assert_true(b.d_logp[t] > 0);
            if (gap < 0) assert_true(b.d_logp[t] < 0);
        }
        algo_close(&a);
    }
}

// With the KL in the reward and equal scores, a token above the reference has a lower advantage
// than a token below it.
static void kl_in_the_reward_pulls_back(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 32);
    for (int k = 0; k < b.n; k++)
        b.score[k] = 0.5f;
    memset(b.token_reward, 0, sizeof b.token_reward);
    memset(b.value_old, 0, sizeof b.value_old);
    algo_open(&a, "ppo.so", "lambda=0,gamma=0,kl_coef=1,whiten_advantages=off", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    for (int32_t i = 0; i < b.n; i++)
        for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++) {
            double bonus = t == b.offset[i + 1] - 1 ? 0.5 : 0;
            assert_near((double)b.advantage[t], bonus - ((double)b.old[t] - (double)b.ref[t]), 1e-6,
                        "advantage");
        }
    algo_close(&a);
}

static void entropy_and_value_directions(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 33);
    algo_open(&a, "ppo.so", "entropy_coef=0.01,value_clip=0", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    batch_loss(&a, &b, 0, b.n, 0);
    for (int32_t i = 0; i < b.n; i++)
        for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++) {
            assert_true(b.d_entropy[t] < 0); // descent raises the entropy
            assert_true((b.d_value[t] > 0) == (b.value[t] > b.returns[t]));
        }
    algo_close(&a);
}

// If a token's ratio has already left the clip range in the direction of the token's advantage, its
// derivative is 0.
static void clipped_tokens_get_no_gradient(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 34);
    for (int32_t t = 0; t < b.total; t++)
        b.logp[t] = b.old[t] + 0.5f;
    algo_open(&a, "ppo.so", "", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    batch_loss(&a, &b, 0, b.n, 0);
    for (int32_t t = 0; t < b.total; t++) {
        if (b.advantage[t] > 0) assert_true(b.d_logp[t] == 0);
        if (b.advantage[t] < 0) assert_true(b.d_logp[t] > 0);
    }
    algo_close(&a);
}

// A token outside the sampled support (log-prob -inf) and a ratio that overflows do not affect
// other rows.
static void infinite_log_probs(void **state) {
    (void)state;
    static const char *const options[] = {"logprob_support=sampled", "ratio=sequence",
                                          "kl_placement=loss,kl_estimator=k3"};
    for (size_t i = 0; i < 3; i++) {
        struct algo a;
        batch_random(&b, 4, 35);
        for (int k = 0; k < b.n; k++)
            b.score[k] = (float)k;
        algo_open(&a, "ppo.so", options[i], b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        for (int32_t k = 0; k < b.n; k++)
            if (b.offset[k + 1] > b.offset[k] + b.prompt_len[k])
                b.logp[b.offset[k + 1] - 1] = -INFINITY;
        double loss = batch_loss(&a, &b, 0, b.n, 0);
        int32_t stop;
        assert_true(isfinite(loss));
        for (int32_t t = 0; t < b.total; t++)
            assert_true(isfinite(b.d_logp[t]));
        assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
        assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
        for (uint32_t k = 0; k < a.host->n_metrics; k++)
            assert_true(isfinite(a.host->metric[k].value));
        if (i == 0) assert_true(metric(&a, "policy/out_of_support") > 0);
        algo_close(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_heads),
                                       cmocka_unit_test(descent_follows_the_advantage),
                                       cmocka_unit_test(kl_in_the_loss_pulls_back),
                                       cmocka_unit_test(kl_in_the_reward_pulls_back),
                                       cmocka_unit_test(entropy_and_value_directions),
                                       cmocka_unit_test(clipped_tokens_get_no_gradient),
                                       cmocka_unit_test(infinite_log_probs)};
    return cmocka_run_group_tests_name("algos/ppo_gradient", tests, NULL, NULL);
}
