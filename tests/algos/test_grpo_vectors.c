// test_grpo_vectors.c: compares grpo.so with the float64 reference of make_grpo_vectors.py for
// every option value. The numbers must be the same for every split into microbatches.
#include "algos/vector_case.h"

static struct vector_file cases;

static int setup(void **state) {
    (void)state;
    vector_open(&cases, "grpo");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    vector_close(&cases);
    return 0;
}

static void every_case_and_split(void **state) {
    (void)state;
    static const int32_t uneven[] = {0, 2, 5, 6, V_N};
    vector_check_all(&cases, "grpo.so", uneven);
}

// Options without an effect on these numbers are tested in test_grpo_phase.c.
static void every_choice_has_a_case(void **state) {
    (void)state;
    static const char *const elsewhere[] = {
        "correction", "correction_mode",     "kl_controller",   "kl_unit",
        "old_logp",   "logprob_temperature", "logprob_support", NULL};
    vector_choices(&cases, "grpo.so", elsewhere);
}

static void every_metric_is_documented(void **state) {
    (void)state;
    vector_documented(&cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_and_split),
                                       cmocka_unit_test(every_choice_has_a_case),
                                       cmocka_unit_test(every_metric_is_documented)};
    return cmocka_run_group_tests_name("algos/grpo_vectors", tests, setup, teardown);
}
