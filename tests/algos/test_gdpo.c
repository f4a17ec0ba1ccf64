// test_gdpo.c: grpo.so with advantage_rewards=each against the float64 reference of
// make_gdpo_vectors.py.
#include "algos/fixture.h"

#include "support/numbers.h"

#include <math.h>
#include <string.h>

enum { ROWS = 12, REWARDS = 3, LEN = 2 };

static json_t *vectors;
static struct batch b;
static float score[ROWS * REWARDS];
static double weight[REWARDS];

static int setup(void **state) {
    (void)state;
    vectors = numbers_open("algos/gdpo_vectors.json");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_decref(vectors);
    return 0;
}

// Rows of one prompt token and LEN response tokens. `score` and `weight` are those of the case.
static void rows_of(const json_t *c) {
    const json_t *scores = json_object_get(c, "score");
    const uint32_t n = (uint32_t)json_array_size(json_object_get(c, "weight"));
    const int32_t group = numbers_int(vectors, "group");
    assert_int_equal(numbers_int(vectors, "rows"), ROWS);
    memset(&b, 0, sizeof b);
    b.n = ROWS;
    b.total = ROWS * (1 + LEN);
    b.max_len = LEN;
    b.n_rewards = n;
    b.reward_score = score;
    b.reward_weight = weight;
    numbers_doubles(c, "weight", weight, n);
    for (int32_t i = 0; i < ROWS; i++) {
        b.prompt_len[i] = 1;
        b.offset[i + 1] = (i + 1) * (1 + LEN);
        b.group[i] = i / group;
        b.finished[i] = 1;
        for (uint32_t k = 0; k < n; k++) {
            const json_t *v = json_array_get(scores, (size_t)i * n + k);
            score[(uint32_t)i * n + k] = json_is_null(v) ? NAN : (float)json_number_value(v);
            if (!json_is_null(v)) b.score[i] += (float)(weight[k] * json_number_value(v));
        }
        for (int32_t t = b.offset[i] + 1; t < b.offset[i + 1]; t++)
            b.old[t] = b.logp[t] = b.ref[t] = -1;
    }
}

static void open_case(struct algo *a, const json_t *c, const char *more) {
    char options[256];
    snprintf(options, sizeof options,
             "group_size=%d,advantage_rewards=each,advantage_eps=%g,advantage_std=%s%s",
             (int)numbers_int(vectors, "group"), numbers_one(c, "eps"), numbers_text(c, "std"),
             more);
    algo_open(a, "grpo.so", options, ROWS);
    assert_true(a->plan.flags & RLHF_PLAN_EACH_REWARD);
}

static void advantages(void **state) {
    (void)state;
    const json_t *cases = json_object_get(vectors, "cases"), *c;
    double want[ROWS];
    size_t k;
    assert_int_equal(json_array_size(cases), 8);
    json_array_foreach(cases, k, c) {
        struct algo a;
        rows_of(c);
        open_case(&a, c, "");
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        numbers_doubles(c, "advantage", want, ROWS);
        for (int32_t i = 0; i < ROWS; i++)
            for (int32_t t = b.offset[i] + 1; t < b.offset[i + 1]; t++)
                assert_near((double)b.advantage[t], want[i], 1e-6, numbers_text(c, "name"));
        algo_close(&a);
    }
}

static const json_t *case_of(const char *name) {
    const json_t *cases = json_object_get(vectors, "cases"), *c;
    size_t k;
    json_array_foreach(cases, k, c) {
        if (strcmp(numbers_text(c, "name"), name) == 0) return c;
    }
    fail_msg("no case %s", name);
    return NULL;
}

// A group in which every reward gives all rows the same score has advantages of exactly 0, and
// counts as one without spread. A group whose rows have equal sums of different scores does not.
static void groups_without_spread(void **state) {
    (void)state;
    const json_t *c = case_of("binary");
    struct algo a;
    rows_of(c);
    for (int32_t i = 0; i < 4; i++) { // of the first group: equal sums
        score[2 * i] = (float)(i % 2);
        score[2 * i + 1] = 1 - score[2 * i];
        b.score[i] = 1;
    }
    weight[1] = 0.5;
    open_case(&a, c, ",kl_placement=none");
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    for (int32_t i = 4; i < 8; i++) {
        assert_true(b.advantage[b.offset[i] + 1] == 0);
        assert_int_equal(b.use[i], RLHF_USE_NO_GRADIENT);
    }
    for (int32_t i = 0; i < 4; i++)
        assert_true(b.advantage[b.offset[i] + 1] != 0);
    batch_loss(&a, &b, 0, b.n, 0);
    assert_int_equal(algo_step_end(&a, 0, 0), 0);
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_near(metric(&a, "frac_reward_zero_std"), 1.0 / 3, 1e-12, "flat groups");
    algo_close(&a);
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"advantage_rewards=each,advantage_scale=none", "advantage_scale is none, but"},
        {"advantage_rewards=each,kl_placement=reward", "the KL is not part of a reward"}};
    struct algo a;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(algo_try(&a, "grpo.so", cases[i][0]), RLHF_E_INVALID);
        assert_non_null(strstr(a.host->fail_text, cases[i][1]));
    }
    rows_of(case_of("two"));
    b.reward_score = NULL;
    open_case(&a, case_of("two"), "");
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(advantages),
                                       cmocka_unit_test(groups_without_spread),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests_name("algos/gdpo", tests, setup, teardown);
}
