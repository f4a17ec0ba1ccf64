// test_outside_slime.c: constants of slime, test_policy_loss.py: clip 0.2, dual clip 1.5.
#include "outside/outside.h"

#include "common/surrogate.h"

static void dual_clip(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dual_clip)};
    return cmocka_run_group_tests_name("outside_slime", tests, NULL, NULL);
}
