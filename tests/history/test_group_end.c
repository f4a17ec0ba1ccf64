// test_group_end.c: checks means, ranges and standard errors at the end of runs.
#include "support/check.h"

#include "history/group_end.h"

#include <math.h>
#include <string.h>

#define SCORES "objective/scores"

static void put(struct rlhf__judged_run *r, const char *name, int64_t phase, double v) {
    assert_int_equal(rlhf__series_set_put(&r->series, name, phase, v, NULL), RLHF_OK);
}

// Makes a run of `phases` phases. In their last tenth, the metric has the value `end`.
static void make(struct rlhf__judged_run *r, int64_t phases, double end, int seed) {
    *r = (struct rlhf__judged_run){0};
    for (int64_t i = 1; i <= phases; i++)
        put(r, SCORES, i, i > phases - (phases + 9) / 10 ? end : 100);
    r->curves.first = 1;
    r->curves.last = phases;
    r->files.config = json_pack("{s{si}}", "run", "seed", seed);
}

static void finish(struct rlhf__judged_run *r) {
    r->curves.all = NULL; // a local variable of the test
    r->curves.n = 0;
    rlhf__judged_run_finish(r);
}

static void close_to(double a, double b) {
    if (!(fabs(a - b) < 1e-12 * (1 + fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void seeds(void **state) {
    (void)state;
    struct rlhf__judged_run run[3];
    const struct rlhf__judged_run *all[] = {&run[0], &run[1], &run[2]};
    make(&run[0], 20, 1, 1);
    make(&run[1], 20, 4, 2);
    make(&run[2], 20, 2.5, 3);
    const struct rlhf__group_end e = rlhf__group_end_of(all, 3, SCORES);
    close_to(e.mean, 2.5);
    close_to(e.low, 1);
    close_to(e.high, 4);
    close_to(e.error, 1.5 / sqrt(3)); // standard deviation 1.5 over n - 1
    assert_int_equal(e.error_by, RLHF__ERROR_SEEDS);
    assert_true(e.n == 3 && e.seeds == 3);
    const struct rlhf__group_end none = rlhf__group_end_of(all, 3, "objective/kl");
    assert_int_equal(none.n, 0);
    assert_true(isnan(none.mean) && isnan(none.error));
    close_to(rlhf__group_end_of(all, 3, RLHF__END_PHASES).mean, 20);
    // One of the runs lacks this metric.
    put(&run[1], "objective/kl", 20, 7);
    const struct rlhf__group_end one = rlhf__group_end_of(all, 3, "objective/kl");
    assert_int_equal(one.n, 1);
    assert_int_equal(one.error_by, RLHF__ERROR_NONE);
    for (int i = 0; i < 3; i++)
        finish(&run[i]);
}

// 64 rows in each of 20 phases; the last two phases count.
static void rows(void **state) {
    (void)state;
    struct rlhf__judged_run run;
    const struct rlhf__judged_run *all[] = {&run};
    char name[] = "episode";
    struct rlhf__curve episodes = {.name = name, .first = 64, .last = 1280, .n = 20};
    make(&run, 20, 0.25, 1);
    run.curves.all = &episodes;
    run.curves.n = 1;
    assert_true(isnan(rlhf__group_end_of(all, 1, SCORES).error)); // no spread is known
    for (int64_t i = 1; i <= 20; i++)
        put(&run, "reward_std", i, i > 18 ? 0.5 : 9);
    close_to(rlhf__group_end_of(all, 1, SCORES).error, 0.5 / sqrt(128));
    assert_int_equal(rlhf__group_end_of(all, 1, SCORES).error_by, RLHF__ERROR_ROWS);
    // If spread.jsonl has a distribution, it takes precedence over other sources of the variance.
    // Its values 0 and 1, with equal counts, have the variance 1/4. Phase 17 does not count.
    run.spread =
        json_pack("{s[iii]s{s[{s[[ii][ii]]},{s[[ii][ii]]},{s[[ii][ii]]}]s[n,n,{s[ii]sf}]}}", "x",
                  17, 19, 20, "of", "reward", "n", 0, 1, 100, 1, "n", 0, 32, 1, 32, "n", 0, 1, 1, 1,
                  "kl", "q", 1, 3, "s", 1.0);
    assert_non_null(run.spread);
    close_to(rlhf__group_end_of(all, 1, SCORES).error, 0.5 / sqrt(128));
    put(&run, "objective/kl", 20, 2);
    close_to(rlhf__group_end_of(all, 1, "objective/kl").error,
             1 / sqrt(64)); // one value: one phase
    // Right or wrong: p (1 - p).
    for (int64_t i = 1; i <= 20; i++)
        put(&run, "objective/verifiable_correct_rate", i, 0.1);
    close_to(rlhf__group_end_of(all, 1, "objective/verifiable_correct_rate").error,
             sqrt(0.1 * 0.9 / 128));
    finish(&run);
}

// Two runs with the same seed do not show how results vary between seeds.
static void one_seed_twice(void **state) {
    (void)state;
    struct rlhf__judged_run run[2];
    const struct rlhf__judged_run *all[] = {&run[0], &run[1]};
    make(&run[0], 20, 1, 7);
    make(&run[1], 20, 4, 7);
    const struct rlhf__group_end e = rlhf__group_end_of(all, 2, SCORES);
    assert_true(e.n == 2 && e.seeds == 1 && e.mean == 2.5);
    assert_int_equal(e.error_by, RLHF__ERROR_NONE);
    finish(&run[0]);
    finish(&run[1]);
}

// Quantiles have a standard deviation.
static void deviation_of_quantiles(void **state) {
    (void)state;
    struct rlhf__judged_run run;
    const struct rlhf__judged_run *all[] = {&run};
    char name[] = "episode";
    struct rlhf__curve episodes = {.name = name, .first = 64, .last = 1280, .n = 20};
    make(&run, 20, 0.25, 1);
    run.curves.all = &episodes;
    run.curves.n = 1;
    run.spread =
        json_pack("{s[i]s{s[{s[iii]sf}]}}", "x", 20, "of", "reward", "q", -2, 0, 2, "s", 0.5);
    close_to(rlhf__group_end_of(all, 1, SCORES).error, 0.5 / sqrt(128));
    finish(&run);
}

static struct rlhf__group_end range(double low, double high, int64_t n) {
    return (struct rlhf__group_end){.low = low, .high = high, .n = n, .seeds = n};
}

static void apart(void **state) {
    (void)state;
    const struct rlhf__group_end e[] = {range(0, 1, 2), range(2, 3, 2), range(3, 4, 3),
                                        range(5, 6, 1)};
    assert_false(rlhf__group_ends_apart(e, 1));
    assert_true(rlhf__group_ends_apart(e, 2));
    assert_false(rlhf__group_ends_apart(e, 3)); // 3 is in both ranges
    assert_false(rlhf__group_ends_apart(e + 1, 2));
    assert_false(rlhf__group_ends_apart(e + 2, 2)); // both have one seed
    struct rlhf__group_end twice[] = {e[0], e[1]};
    twice[0].seeds = 1; // two runs of one seed
    assert_false(rlhf__group_ends_apart(twice, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds),          cmocka_unit_test(rows),
        cmocka_unit_test(one_seed_twice), cmocka_unit_test(deviation_of_quantiles),
        cmocka_unit_test(apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
