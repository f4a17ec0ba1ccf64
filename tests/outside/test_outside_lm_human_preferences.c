// test_outside_lm_human_preferences.c: compares two implementations of generalized advantages, as
// lm-human-preference-details does (tests/test_gae.py), with lambda 0.95 and gamma 1: the recursion
// equals the sum that defines them (Schulman et al. 2016, eq. 16). Also tests the published
// double-clipping of the KL controller (Ziegler et al. 2019).
#include "outside/outside.h"

#include "common/advantage.h"
#include "common/kl.h"

#include <rlhf/rng.h>

enum { N = 24 };

static void recursion_is_the_sum(void **state) {
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
static void controller(void **state) {
    (void)state;
    published(rlhf__kl_adapt(0.15, 6, 6, 512, 10000), 0.15, 1e-12);
    published(rlhf__kl_adapt(0.15, 60, 6, 512, 10000), 0.15 * (1 + 0.2 * 0.0512), 1e-12);
    published(rlhf__kl_adapt(0.15, 0, 6, 512, 10000), 0.15 * (1 - 0.2 * 0.0512), 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recursion_is_the_sum),
        cmocka_unit_test(controller),
    };
    return cmocka_run_group_tests_name("outside_lm_human_preferences", tests, NULL, NULL);
}
