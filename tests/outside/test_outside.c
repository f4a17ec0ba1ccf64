// test_outside.c: checks against constants that other projects published. Each section names its
// source.
#include "outside/outside.h"

#include "common/advantage.h"
#include "common/kl.h"
#include "common/surrogate.h"

#include <rlhf/rng.h>

// ---- SkyRL, tests/backends/skyrl_train/utils/test_ppo_utils.py (advantages, KL) and
// tests/train/algorithms/test_losses.py (dual clip) ----

static const double skyrl_reward[3] = {1, 2, 3}, skyrl_value[3] = {0.5, 1, 1.5};

static void skyrl_returns(double gamma, double lambda, const double want[3]) {
    double adv[3], ret[3], want_adv[3];
    for (int i = 0; i < 3; i++)
        want_adv[i] = want[i] - skyrl_value[i];
    rlhf__gae(skyrl_reward, skyrl_value, 3, gamma, lambda, adv, ret);
    published_row(ret, want, 3, 1e-9);
    published_row(adv, want_adv, 3, 1e-9);
}

static void skyrl_generalised_advantages(void **state) {
    (void)state;
    skyrl_returns(1, 1, (const double[]){6, 5, 3});
    skyrl_returns(0.5, 1, (const double[]){2.75, 3.5, 3});
    skyrl_returns(1, 0.5, (const double[]){3.625, 4.25, 3});
}

static void skyrl_groups_without_scaling(void **state) {
    (void)state;
    const double score[4] = {6, 3, 9, 12};
    const int32_t group[4] = {0, 0, 1, 1};
    int64_t order[4];
    double adv[4];
    rlhf__group_normalize(score, group, 4, 1e-6, 1, 0, order, adv);
    published_row(adv, (const double[]){1.5, -1.5, -1.5, 1.5}, 4, 1e-9);
}

static void skyrl_leave_one_out(void **state) {
    (void)state;
    const double score[5] = {6, 3, 9, 12, 1};
    const int32_t group[5] = {0, 0, 1, 1, 2};
    int64_t order[5];
    double adv[5];
    rlhf__leave_one_out(score, group, 5, order, adv);
    published_row(adv, (const double[]){3, -3, -3, 3, 0}, 5, 1e-9);
}

static void skyrl_adaptive_coefficient(void **state) {
    (void)state;
    published(rlhf__kl_adapt(0.2, 0.2, 0.1, 10, 100), 0.204, 1e-9);
}

static void skyrl_kl_of_two_log_probs(void **state) {
    (void)state;
    const double x[2] = {0.2, 0.3}, f[2] = {0.1, 0.2};
    for (int i = 0; i < 2; i++) {
        published(rlhf__kl(RLHF__KL_K1, x[i], f[i]), 0.1, 1e-9);
        published(rlhf__kl(RLHF__KL_K2, x[i], f[i]), 0.005, 1e-9);
        published(rlhf__kl(RLHF__KL_K3, x[i], f[i]), 0.0048374, 1e-7); // exp(-0.1) + 0.1 - 1
    }
}

static void skyrl_dual_clip(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 3};
    const double ratio[3] = {0.5, 1, 10}, adv[3] = {1, -1, -4}, want[3] = {-0.5, 1, 12};
    for (int i = 0; i < 3; i++) {
        double d;
        int clipped;
        published(rlhf__surrogate(ratio[i], adv[i], &clip, &d, &clipped), want[i], 1e-9);
        assert_int_equal(clipped, i == 2);
    }
}

// ---- NeMo-RL, tests/unit/algorithms/test_ppo.py and test_loss_functions.py ----

// A score of 5 on the last token, lambda 0.
static void nemo_one_step_advantages(void **state) {
    (void)state;
    const double reward[3] = {0, 0, 5}, value[3] = {1, 2, 3}, want[3] = {1, 1, 2};
    double adv[3], ret[3];
    rlhf__gae(reward, value, 3, 1, 0, adv, ret);
    published_row(adv, want, 3, 1e-9);
    rlhf__one_step(reward, value, 3, adv, ret);
    published_row(adv, want, 3, 1e-9);
}

static const double nemo_ratio[3] = {0.5, 1, 1.5}, nemo_advantage[3] = {1, -1, 2};

static void nemo_clipped_surrogate(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 0};
    const double want[3] = {-0.5, 1, -2.4};
    double mean = 0, d;
    int clipped;
    for (int i = 0; i < 3; i++) {
        const double got = rlhf__surrogate(nemo_ratio[i], nemo_advantage[i], &clip, &d, &clipped);
        published(got, want[i], 1e-9);
        assert_int_equal(clipped, i == 2);
        mean += got / 3;
    }
    published(mean, -0.6333, 1e-4);
}

// The same values, computed from a row of log-probs with a weight of 1/3 for each token.
static void nemo_row_of_log_probs(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 0};
    const float old[3] = {-1, -1, -1}, adv[3] = {1, -1, 2};
    float x[3], d[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        x[i] = (float)(log(nemo_ratio[i]) - 1);
    struct rlhf__surrogate_sums sums = {0};
    rlhf__surrogate_row(RLHF__RATIO_TOKEN, &clip, 1.0 / 3, x, old, adv, 3, d, &sums);
    published(sums.loss, -0.6333, 1e-4);
    published((double)d[0], -0.5 / 3, 1e-6);
    published((double)d[1], 1.0 / 3, 1e-6);
    assert_true(d[2] == 0); // clipped
}

static void nemo_kl_estimators(void **state) {
    (void)state;
    const double difference[3] = {-1, 14, 29};
    const double k2[3] = {0.5, 98, 420.5}, k3[3] = {0.7183, 13, 28};
    for (int i = 0; i < 3; i++) {
        published(rlhf__kl(RLHF__KL_K2, difference[i], 0), k2[i], 1e-9);
        published(rlhf__kl(RLHF__KL_K3, difference[i], 0), k3[i], 1e-4);
    }
}

// ---- Stanford CS336's alignment assignment (its tests/_snapshots): the group advantages of
// 2 x 4 rewards, with the unbiased standard deviation and eps 1e-6 ----

static const double cs336_reward[8] = {0.2, 0.5, 0, 0.4, 0.9, 0.7, 0.2, 0};
static const int32_t cs336_group[8] = {0, 0, 0, 0, 1, 1, 1, 1};

static void cs336_scaled(void **state) {
    (void)state;
    static const double want[8] = {-0.3382392, 1.0147176, -1.2402104, 0.563732,
                                   1.0706171,  0.5947873, -0.5947872, -1.0706171};
    int64_t order[8];
    double adv[8];
    struct rlhf__group_stats s =
        rlhf__group_normalize(cs336_reward, cs336_group, 8, 1e-6, 1, 1, order, adv);
    published_row(adv, want, 8, 4e-7); // the published numbers are f32
    assert_int_equal(s.groups, 2);
    assert_int_equal(s.zero, 0);
}

static void cs336_not_scaled(void **state) {
    (void)state;
    static const double want[8] = {-0.075, 0.225, -0.275, 0.125, 0.45, 0.25, -0.25, -0.45};
    int64_t order[8];
    double adv[8];
    rlhf__group_normalize(cs336_reward, cs336_group, 8, 1e-6, 1, 0, order, adv);
    published_row(adv, want, 8, 1e-9);
}

// The rows of a cs336_group need not be adjacent.
static void cs336_dealt_in_turn(void **state) {
    (void)state;
    double mixed[8], adv[8], want[8];
    int32_t turn[8];
    int64_t order[8];
    for (int i = 0; i < 8; i++) {
        mixed[i] = cs336_reward[i % 2 * 4 + i / 2];
        turn[i] = i % 2;
    }
    rlhf__group_normalize(cs336_reward, cs336_group, 8, 1e-6, 1, 1, order, want);
    rlhf__group_normalize(mixed, turn, 8, 1e-6, 1, 1, order, adv);
    for (int i = 0; i < 8; i++)
        assert_true(adv[i] == want[i % 2 * 4 + i / 2]);
}

// ---- slime, test_policy_loss.py: clip 0.2, dual clip 1.5 ----

static void slime_dual_clip(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 1.5};
    const double ratio[3] = {2, 2, 0.5}, adv[3] = {2, -2, 2}, want[3] = {-2.4, 3, -1};
    for (int i = 0; i < 3; i++) {
        double d;
        int clipped;
        published(rlhf__surrogate(ratio[i], adv[i], &clip, &d, &clipped), want[i], 1e-9);
        assert_int_equal(clipped, i < 2);
        published(d, i < 2 ? 0 : -2, 1e-9);
    }
}

// ---- lm-human-preference-details. Two implementations of generalized advantages, as in its
// tests/test_gae.py, with lambda 0.95 and gamma 1: the recursion equals the sum that defines them
// (Schulman et al. 2016, eq. 16). Also the published double-clipping of the KL controller (Ziegler
// et al. 2019) ----

enum { N = 24 };

static void preferences_recursion_is_the_sum(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        rlhf_rng g = {seed, 1, 0};
        double r[N], v[N + 1] = {0}, adv[N], ret[N];
        for (int i = 0; i < N; i++) {
            r[i] = 2 * rlhf_rng_next(&g) - 1;
            v[i] = 2 * rlhf_rng_next(&g) - 1;
        }
        rlhf__gae(r, v, N, 1, 0.95, adv, ret);
        for (int t = 0; t < N; t++) {
            double sum = 0;
            for (int l = t; l < N; l++)
                sum += pow(0.95, l - t) * (r[l] + v[l + 1] - v[l]);
            published(adv[t], sum, 1e-12);
            published(ret[t], sum + v[t], 1e-12);
        }
    }
}

// beta 0.15, target 6, horizon 10000, batch 512, as in the paper's runs.
static void preferences_controller(void **state) {
    (void)state;
    published(rlhf__kl_adapt(0.15, 6, 6, 512, 10000), 0.15, 1e-12);
    published(rlhf__kl_adapt(0.15, 60, 6, 512, 10000), 0.15 * (1 + 0.2 * 0.0512), 1e-12);
    published(rlhf__kl_adapt(0.15, 0, 6, 512, 10000), 0.15 * (1 - 0.2 * 0.0512), 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skyrl_generalised_advantages),
        cmocka_unit_test(skyrl_groups_without_scaling),
        cmocka_unit_test(skyrl_leave_one_out),
        cmocka_unit_test(skyrl_adaptive_coefficient),
        cmocka_unit_test(skyrl_kl_of_two_log_probs),
        cmocka_unit_test(skyrl_dual_clip),
        cmocka_unit_test(nemo_one_step_advantages),
        cmocka_unit_test(nemo_clipped_surrogate),
        cmocka_unit_test(nemo_row_of_log_probs),
        cmocka_unit_test(nemo_kl_estimators),
        cmocka_unit_test(cs336_scaled),
        cmocka_unit_test(cs336_not_scaled),
        cmocka_unit_test(cs336_dealt_in_turn),
        cmocka_unit_test(slime_dual_clip),
        cmocka_unit_test(preferences_recursion_is_the_sum),
        cmocka_unit_test(preferences_controller),
    };
    return cmocka_run_group_tests_name("outside", tests, NULL, NULL);
}
