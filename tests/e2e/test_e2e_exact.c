// test_e2e_exact.c: the check before the first update asks the backend whether its rows are exact.
// One that says so and is not (tests/outside/row_dependent.c) is found out; one that does not say
// so may differ by rounding.
#include "e2e.h"

#define PPO                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--reward period_count.so --set batch.size=4 --set sampling.max_new_tokens=24 "                \
    "--set run.phases=1 --set compute.dtype=bf16 "

static void a_claim_that_is_not_kept_ends_the_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set compute.backend=" ROW_DEPENDENT_SO), 1);
    e2e_says(t, "before the first update the log-probs of sampling and of ");
}

static void without_the_claim_rounding_is_allowed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, PPO "--set run.dir=r --set compute.backend=" ROW_DEPENDENT_HONEST_SO), 0);
    json_t *rows = e2e_metrics(t, "r");
    const double d = e2e_metric(rows, 0, "sampling/logp_difference/max");
    assert_true(d > 0 && d < 1e-3);
    json_decref(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_that_is_not_kept_ends_the_run, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(without_the_claim_rounding_is_allowed, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e: exactness", tests, NULL, NULL);
}
