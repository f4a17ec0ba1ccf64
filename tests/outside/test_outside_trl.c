// test_outside_trl.c: checks against constants from TRL. They are the KL over a whole distribution
// (tests/test_ppo_trainer.py up to 0.11, commit 70036bf87^), the repetition penalty, which is -1
// times the value of ngram3.so over tokens (tests/test_rewards.py), and the first loss of DPO
// (tests/invariant/references/dpo.json).
#include "algos/fixture.h"
#include "kernels/kit.h"
#include "outside/outside.h"
#include "rewards/fixture.h"

// Each row has one distribution. The hidden states are its log-probs, and the head is the identity.
static void full_kl(struct kit *k, rlhf_compute *c, const float *p, const float *q, uint32_t rows,
                    double *out) {
    struct call call = {.c = c};
    const float eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const int32_t target[2] = {0, 0};
    const rlhf_dist dist = {.size = sizeof(rlhf_dist), .inv_temperature = 1, .top_p = 1};
    float log_p[6], log_q[6], kl[2];
    (void)k;
    for (uint32_t i = 0; i < rows * 3; i++) {
        log_p[i] = logf(p[i]);
        log_q[i] = logf(q[i]);
    }
    rlhf_weight *w = call_weight(&call, eye, 3, 3, RLHF_F32, 0);
    const rlhf_lm_head a = {.size = sizeof a,
                            .rows = rows,
                            .d = 3,
                            .vocab = 3,
                            .dtype = RLHF_F32,
                            .dist = &dist,
                            .hidden = call_floats(&call, log_p, rows * 3, RLHF_F32),
                            .weight = w,
                            .target = call_ints(&call, target, rows),
                            .logp = call_zeros(&call, rows, RLHF_F32),
                            .entropy = call_zeros(&call, rows, RLHF_F32),
                            .kl = call_zeros(&call, rows, RLHF_F32),
                            .ref_hidden = call_floats(&call, log_q, rows * 3, RLHF_F32),
                            .ref_weight = w};
    KIT_OK(c, c->lm_head(c->ctx, &a));
    kit_read(c, kl, a.kl, rows, RLHF_F32);
    for (uint32_t i = 0; i < rows; i++)
        out[i] = kl[i];
    call_finish(&call);
}

static void kl_over_the_vocabulary(void **state) {
    struct kit *k = *state;
    rlhf_compute *const backends[2] = {k->ref, k->cpu2};
    static const float p1[6] = {.98f, .01f, .01f, .01f, .98f, .01f};
    static const float q1[6] = {.01f, .01f, .98f, .01f, .01f, .98f};
    static const float p2[6] = {.49f, .02f, .49f, .49f, .02f, .49f};
    static const float q2[6] = {.01f, .98f, .01f, .49f, .02f, .49f};
    for (int i = 0; i < 2; i++) {
        double kl[2];
        full_kl(k, backends[i], p1, q1, 2, kl);
        published(kl[0], 4.4474, 1e-4);
        published(kl[1], 4.4474, 1e-4);
        full_kl(k, backends[i], p2, q2, 2, kl);
        published(kl[0], 3.7361, 1e-4);
        assert_true(fabs(kl[1]) < 1e-6);
    }
}

static struct reward r;

static void repetition(void **state) {
    (void)state;
    reward_open(&r, "ngram3.so", "n=2,unit=tokens"); // the fixture's tokens are bytes
    published(-score_text(&r, "55555"), -0.75, 1e-6);
    published(-score_text(&r, "121212"), -0.6, 1e-6);
    published(-score_text(&r, "123123"), -0.4, 1e-6);
    published(-score_text(&r, "12"), 0, 1e-6);
    published(-score_text(&r, "1"), 0, 1e-6);
    reward_close(&r);
    reward_open(&r, "ngram3.so", "n=3,unit=tokens");
    published(-score_text(&r, "123123"), -0.25, 1e-6);
    published(-score_text(&r, "12"), 0, 1e-6);
    reward_close(&r);
}

// Before the first step the policy is the reference, for all rows.
static void first_dpo_loss(void **state) {
    (void)state;
    struct algo a;
    static struct batch b;
    batch_random(&b, 8, 1);
    memcpy(b.logp, b.ref, sizeof b.logp);
    for (int32_t i = 0; i < b.n; i++)
        b.label[i] = i % 2;
    algo_open(&a, "dpo.so", "", b.n);
    assert_true((double)(float)batch_loss(&a, &b, 0, b.n, 0) == 0.6931471824645996);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kl_over_the_vocabulary, kit_setup, kit_teardown),
        cmocka_unit_test(repetition),
        cmocka_unit_test(first_dpo_loss),
    };
    return cmocka_run_group_tests_name("outside_trl", tests, NULL, NULL);
}
