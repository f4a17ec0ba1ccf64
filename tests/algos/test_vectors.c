// test_vectors.c: compares ppo.so, grpo.so, rloo.so and opd.so with the float64 references of
// make_ppo_vectors.py and its siblings for every option value. The numbers must be the same for
// every split into microbatches.
#include "algos/vector_case.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

// Options without an effect on these numbers are tested in test_ppo_phase.c and test_grpo_phase.c.
static const char *const no_option[] = {NULL};
static const char *const correction[] = {"correction", "correction_mode", NULL};
static const char *const of_phase[] = {
    "correction",          "correction_mode", "kl_controller",     "kl_unit", "old_logp",
    "logprob_temperature", "logprob_support", "advantage_rewards", NULL};

static const struct {
    const char *name, *so;
    const char *const *elsewhere; // options that other tests cover
    int32_t uneven[5];
} algos[] = {{"ppo", "ppo.so", of_phase, {0, 2, 5, V_N}},
             {"grpo", "grpo.so", of_phase, {0, 2, 5, 6, V_N}},
             {"rloo", "rloo.so", correction, {0, 2, 5, 6, V_N}},
             {"opd", "opd.so", no_option, {0, 2, 5, 6, V_N}}};
static struct vector_file cases[COUNT(algos)];

static int setup(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(algos); i++)
        vector_open(&cases[i], algos[i].name);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(algos); i++)
        vector_close(&cases[i]);
    return 0;
}

static void every_case_and_split(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(algos); i++)
        vector_check_all(&cases[i], algos[i].so, algos[i].uneven);
}

static void every_choice_has_a_case(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(algos); i++)
        vector_choices(&cases[i], algos[i].so, algos[i].elsewhere);
}

static void every_metric_is_documented(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(algos); i++)
        vector_documented(&cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_and_split),
                                       cmocka_unit_test(every_choice_has_a_case),
                                       cmocka_unit_test(every_metric_is_documented)};
    return cmocka_run_group_tests_name("algos/vectors", tests, setup, teardown);
}
