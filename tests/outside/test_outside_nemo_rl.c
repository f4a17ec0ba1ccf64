// test_outside_nemo_rl.c: checks against constants from NeMo-RL, tests/unit/algorithms/test_ppo.py
// and test_loss_functions.py.
#include "outside/outside.h"

#include "common/advantage.h"
#include "common/kl.h"
#include "common/surrogate.h"

// A score of 5 on the last token, lambda 0.
static void one_step_advantages(void **state) {
    (void)state;
    const double reward[3] = {0, 0, 5}, value[3] = {1, 2, 3}, want[3] = {1, 1, 2};
    double adv[3], ret[3];
    rlhf__gae(reward, value, 3, 1, 0, adv, ret);
    published_row(adv, want, 3, 1e-9);
    rlhf__one_step(reward, value, 3, adv, ret);
    published_row(adv, want, 3, 1e-9);
}

static const double ratio[3] = {0.5, 1, 1.5}, advantage[3] = {1, -1, 2};

static void clipped_surrogate(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 0};
    const double want[3] = {-0.5, 1, -2.4};
    double mean = 0, d;
    int clipped;
    for (int i = 0; i < 3; i++) {
        const double got = rlhf__surrogate(ratio[i], advantage[i], &clip, &d, &clipped);
        published(got, want[i], 1e-9);
        assert_int_equal(clipped, i == 2);
        mean += got / 3;
    }
    published(mean, -0.6333, 1e-4);
}

// The same values, computed from a row of log-probs with a weight of 1/3 for each token.
static void row_of_log_probs(void **state) {
    (void)state;
    const struct rlhf__clip clip = {0.2, 0.2, 0};
    const float old[3] = {-1, -1, -1}, adv[3] = {1, -1, 2};
    float x[3], d[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        x[i] = (float)(log(ratio[i]) - 1);
    struct rlhf__surrogate_sums sums = {0};
    rlhf__surrogate_row(RLHF__RATIO_TOKEN, &clip, 1.0 / 3, x, old, adv, 3, d, &sums);
    published(sums.loss, -0.6333, 1e-4);
    published((double)d[0], -0.5 / 3, 1e-6);
    published((double)d[1], 1.0 / 3, 1e-6);
    assert_true(d[2] == 0); // clipped
}

static void kl_estimators(void **state) {
    (void)state;
    const double difference[3] = {-1, 14, 29};
    const double k2[3] = {0.5, 98, 420.5}, k3[3] = {0.7183, 13, 28};
    for (int i = 0; i < 3; i++) {
        published(rlhf__kl(RLHF__KL_K2, difference[i], 0), k2[i], 1e-9);
        published(rlhf__kl(RLHF__KL_K3, difference[i], 0), k3[i], 1e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_advantages),
        cmocka_unit_test(clipped_surrogate),
        cmocka_unit_test(row_of_log_probs),
        cmocka_unit_test(kl_estimators),
    };
    return cmocka_run_group_tests_name("outside_nemo_rl", tests, NULL, NULL);
}
