// test_e2e_exact.c: before the first update, the host checks whether rows of the backend are exact.
// A backend that falsely promises exactness (tests/outside/row_dependent.c) is detected. A backend
// that does not promise it may differ by rounding.
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

// Returns compute.row_exact from the run's manifest, or -1 if it is missing.
static int noted_as_exact(struct e2e *t, const char *run) {
    if (e2e_shell(t, "grep -q '\"row_exact\": false' %s/manifest.json", run) == 0) return 0;
    return e2e_shell(t, "grep -q '\"row_exact\": true' %s/manifest.json", run) == 0 ? 1 : -1;
}

static void a_run_without_the_claim_is_marked(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set run.dir=exact --set compute.backend=reference"), 0);
    assert_int_equal(noted_as_exact(t, "exact"), 1);
    assert_int_equal(
        e2e_run(t, PPO "--set run.dir=r --set compute.backend=" ROW_DEPENDENT_HONEST_SO), 0);
    e2e_says(t, "the compute backend row_dependent does not promise exact rows");
    assert_int_equal(noted_as_exact(t, "r"), 0);
}

#define GO_ON "--resume exact --set run.phases=2 --set compute.backend=" ROW_DEPENDENT_HONEST_SO

static void an_exact_run_does_not_go_on_without_the_claim(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set run.dir=exact --set compute.backend=reference"), 0);
    assert_int_equal(e2e_run(t, GO_ON), 2);
    e2e_says(t, "its rows are not exact, those of reference were");
    assert_int_equal(noted_as_exact(t, "exact"), 1);
    assert_int_equal(e2e_run(t, GO_ON " --allow-changed-plugins"), 0);
    assert_int_equal(noted_as_exact(t, "exact"), 0);
    // The manifest keeps the old value. So the run can be continued on a backend that is not exact.
    assert_int_equal(e2e_shell(t, "grep -q '\"row_exact\": true' exact/manifest.json"), 0);
    assert_int_equal(e2e_run(t, GO_ON " --set run.phases=3"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_that_is_not_kept_ends_the_run, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(without_the_claim_rounding_is_allowed, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_without_the_claim_is_marked, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(an_exact_run_does_not_go_on_without_the_claim, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e: exactness", tests, NULL, NULL);
}
