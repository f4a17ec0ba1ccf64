// test_outside_skyrl.c: checks against constants from SkyRL,
// tests/backends/skyrl_train/utils/test_ppo_utils.py (advantages, KL) and
// tests/train/algorithms/test_losses.py (dual clip).
#include "outside/outside.h"

#include "common/advantage.h"
#include "common/kl.h"
#include "common/surrogate.h"

static const double reward[3] = {1, 2, 3}, value[3] = {0.5, 1, 1.5};

static void returns(double gamma, double lambda, const double want[3]) {
    double adv[3], ret[3], want_adv[3];
    for (int i = 0; i < 3; i++)
        want_adv[i] = want[i] - value[i];
    rlhf__gae(reward, value, 3, gamma, lambda, adv, ret);
    published_row(ret, want, 3, 1e-9);
    published_row(adv, want_adv, 3, 1e-9);
}

static void generalised_advantages(void **state) {
    (void)state;
    returns(1, 1, (const double[]){6, 5, 3});
    returns(0.5, 1, (const double[]){2.75, 3.5, 3});
    returns(1, 0.5, (const double[]){3.625, 4.25, 3});
}

static void groups_without_scaling(void **state) {
    (void)state;
    const double score[4] = {6, 3, 9, 12};
    const int32_t group[4] = {0, 0, 1, 1};
    int64_t order[4];
    double adv[4];
    rlhf__group_normalize(score, group, 4, 1e-6, 1, 0, order, adv);
    published_row(adv, (const double[]){1.5, -1.5, -1.5, 1.5}, 4, 1e-9);
}

static void leave_one_out(void **state) {
    (void)state;
    const double score[5] = {6, 3, 9, 12, 1};
    const int32_t group[5] = {0, 0, 1, 1, 2};
    int64_t order[5];
    double adv[5];
    rlhf__leave_one_out(score, group, 5, order, adv);
    published_row(adv, (const double[]){3, -3, -3, 3, 0}, 5, 1e-9);
}

static void adaptive_coefficient(void **state) {
    (void)state;
    published(rlhf__kl_adapt(0.2, 0.2, 0.1, 10, 100), 0.204, 1e-9);
}

static void kl_of_two_log_probs(void **state) {
    (void)state;
    const double x[2] = {0.2, 0.3}, f[2] = {0.1, 0.2};
    for (int i = 0; i < 2; i++) {
        published(rlhf__kl(RLHF__KL_K1, x[i], f[i]), 0.1, 1e-9);
        published(rlhf__kl(RLHF__KL_K2, x[i], f[i]), 0.005, 1e-9);
        published(rlhf__kl(RLHF__KL_K3, x[i], f[i]), 0.0048374, 1e-7); // exp(-0.1) + 0.1 - 1
    }
}

static void dual_clip(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generalised_advantages), cmocka_unit_test(groups_without_scaling),
        cmocka_unit_test(leave_one_out),          cmocka_unit_test(adaptive_coefficient),
        cmocka_unit_test(kl_of_two_log_probs),    cmocka_unit_test(dual_clip),
    };
    return cmocka_run_group_tests_name("outside_skyrl", tests, NULL, NULL);
}
