// test_bandit.c: the shipped ppo.so and grpo.so teach a policy of two tokens, in well under a
// second.
//
// The state never changes, so one logit and one value make up the policy. The test plays the host's
// part: sampling, chain rule and gradient descent. Token 1 has reward 1, and token 0 has reward 0.
#include "algos/fixture.h"

#include <math.h>

enum { ROWS = 32, LEN = 4 };
static struct batch b;

static double log_sigmoid(double z) { return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z)); }

struct bandit {
    double logit, value, reference; // reference: the logit from which the KL is measured
    rlhf_rng rng;
    int32_t action[MAX_TOKENS];
};

static void sample(struct bandit *p) {
    memset(&b, 0, sizeof b);
    b.n = ROWS;
    b.max_len = LEN;
    b.total = ROWS * (LEN + 1);
    for (int32_t i = 0; i < ROWS; i++) {
        b.prompt_len[i] = 1;
        b.group[i] = i / 4;
        b.offset[i + 1] = b.offset[i] + LEN + 1;
        int32_t paid = 0;
        for (int32_t t = b.offset[i] + 1; t < b.offset[i + 1]; t++) {
            p->action[t] = rlhf_rng_next(&p->rng) < 1 / (1 + exp(-p->logit));
            double side = p->action[t] ? 1 : -1;
            b.old[t] = (float)log_sigmoid(side * p->logit);
            b.ref[t] = (float)log_sigmoid(side * p->reference);
            b.value_old[t] = (float)p->value;
            paid += p->action[t];
        }
        b.score[i] = (float)paid / LEN;
    }
}

// One step of gradient descent. Computes the policy's heads, gets their derivatives from the loss,
// and applies the chain rule to the logit and the value.
static void update(struct algo *a, struct bandit *p, uint32_t epoch, double lr) {
    double q = 1 / (1 + exp(-p->logit)), dz = 0, dv = 0;
    double kl = q * (log_sigmoid(p->logit) - log_sigmoid(p->reference)) +
                (1 - q) * (log_sigmoid(-p->logit) - log_sigmoid(-p->reference));
    double dkl = q * (1 - q) * (p->logit - p->reference);
    for (int32_t t = 0; t < b.total; t++) {
        b.logp[t] = (float)log_sigmoid(p->action[t] ? p->logit : -p->logit);
        b.entropy[t] = (float)(-q * log_sigmoid(p->logit) - (1 - q) * log_sigmoid(-p->logit));
        b.value[t] = (float)p->value;
        b.kl[t] = (float)kl;
    }
    batch_loss(a, &b, 0, ROWS, epoch);
    for (int32_t t = 0; t < b.total; t++) {
        dz += (double)b.d_logp[t] * (p->action[t] ? 1 - q : -q);
        dz += (double)b.d_entropy[t] * -p->logit * q * (1 - q) + (double)b.d_kl[t] * dkl;
        dv += (double)b.d_value[t];
    }
    p->logit -= lr * dz;
    p->value -= lr * dv;
}

// Trains a policy that begins with equal probabilities for `phases` phases. Returns the probability
// of the rewarded token.
static double train_with(const char *so, const char *options, int phases) {
    struct algo a;
    struct bandit p = {.rng = {11, rlhf_rng_stream("bandit"), 0}};
    algo_open(&a, so, options, ROWS);
    for (int phase = 0; phase < phases; phase++) {
        int32_t stop = 0;
        sample(&p);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        for (uint32_t e = 0; e < a.plan.epochs && !stop; e++) {
            update(&a, &p, e, 0.5);
            assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
        }
        assert_int_equal(algo_phase_end(&a, phase), RLHF_OK);
    }
    algo_close(&a);
    return 1 / (1 + exp(-p.logit));
}

static double train(const char *options, int phases) {
    return train_with("ppo.so", options, phases);
}

static void every_advantage_learns(void **state) {
    (void)state;
    static const char *const options[] = {
        "kl_coef=0",
        "kl_coef=0,advantage=one_step,value_coef=1",
        "kl_coef=0,advantage=sequence",
        "kl_coef=0,advantage=group,group_size=4",
        "kl_coef=0,advantage=group_mean,group_size=4,aggregation=dr_grpo",
        "kl_coef=0,advantage=sequence,ratio=sequence,aggregation=sequence",
        "kl_coef=0,advantage=group,group_size=4,ratio=sequence_mean,aggregation=grpo",
        "kl_coef=0,whiten_rewards=true,whiten_scope=minibatch",
        "kl_coef=0,entropy_coef=0.001,target_kl=0.05,dual_clip=3"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        double p = train(options[i], 100);
        if (!(p > 0.9)) fail_msg("%s: p = %.3f", options[i], p);
    }
}

// A KL penalty, in the reward or in the loss, keeps the policy nearer to its reference.
static void kl_holds_back(void **state) {
    (void)state;
    static const char *const options[] = {"kl_coef=2,whiten_advantages=off",
                                          "kl_placement=loss,kl_estimator=k3,kl_coef=2",
                                          "kl_placement=loss,kl_estimator=k2,kl_coef=2",
                                          "kl_placement=loss,kl_estimator=full,kl_coef=2"};
    double free_p = train("kl_coef=0", 100);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        double p = train(options[i], 100);
        if (!(p < free_p - 0.02 && p > 0.4))
            fail_msg("%s: p = %.3f, without a penalty %.3f", options[i], p, free_p);
    }
}

// The policy learns with every loss and normalization of grpo.so, and the KL term limits the
// change.
static void grpo_learns(void **state) {
    (void)state;
    static const char *const options[] = {"",
                                          "loss=bnpo,advantage_scale=batch",
                                          "loss=dr_grpo,advantage_scale=none",
                                          "loss=dapo,clip_range_high=0.28,dual_clip=3",
                                          "loss=cispo,clip_range_high=1",
                                          "ratio=sequence",
                                          "ratio=sequence_mean,advantage_scope=minibatch",
                                          "target_kl=0.05,entropy_coef=0.001"};
    static const char *const held[] = {"", "kl_estimator=k2,", "kl_estimator=full,",
                                       "kl_placement=reward,kl_estimator=k1,"};
    char all[128];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(all, sizeof all, "group_size=4,epochs=4,kl_coef=0,%s", options[i]);
        double p = train_with("grpo.so", all, 100);
        if (!(p > 0.9)) fail_msg("%s: p = %.3f", all, p);
    }
    double free_p = train_with("grpo.so", "group_size=4,epochs=4,kl_coef=0", 100);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        snprintf(all, sizeof all, "%sgroup_size=4,epochs=4,kl_coef=2", held[i]);
        double p = train_with("grpo.so", all, 100);
        if (!(p < free_p - 0.02 && p > 0.4))
            fail_msg("%s: p = %.3f, without a penalty %.3f", all, p, free_p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_advantage_learns),
                                       cmocka_unit_test(kl_holds_back),
                                       cmocka_unit_test(grpo_learns)};
    return cmocka_run_group_tests_name("algos/bandit", tests, NULL, NULL);
}
