// test_verdict.c: the verdict's title, figures, checks and advice.
#include "support/check.h"

#include "made_up.h"

#include <math.h>

static const struct run headlines[] = {
    {"the share of right answers comes first",
     0,
     {REWARD_ROSE, {"objective/verifiable_correct_rate", 0.2, 0.6, 0.01, 0, 0}},
     {0},
     "good",
     "Share of right answers rose from 0.19 to 0.589",
     "",
     NULL},
    {"reward", 0, {REWARD_ROSE, {"objective/loss", 4, 1, 0.01, 0, 0}}, {0}, "good", ROSE, "", NULL},
    {"a reward that falls",
     0,
     {{"objective/scores", 0.9, 0.5, 0.01, 0, 0}},
     {0},
     "bad",
     "Reward fell from 0.89 to 0.511",
     "",
     NULL},
    {"a reward that stays",
     0,
     {REWARD_STAYS},
     {0},
     "warn",
     "Reward did not move: 0.49 before, 0.5 after",
     "",
     NULL},
    {"a move within the noise",
     0,
     {{"objective/scores", 0.5, 0.9, 0.2, 0, 0}},
     {0},
     "warn",
     "Reward went from 0.3 to 0.889, which may be noise",
     "",
     NULL},
    {"a move within the noise of the phases, beyond that of the rows",
     10,
     {{"objective/scores", 0.5, 0.9, 0.2, 0, 0}, {"objective/scores_error", 0.05, 0.05, 0, 0, 0}},
     {0},
     "good",
     "Reward rose from 0.3 to 1.1",
     "",
     NULL},
    {"a move within the noise of both",
     10,
     {{"objective/scores", 0.5, 0.9, 0.2, 0, 0}, {"objective/scores_error", 0.3, 0.3, 0, 0, 0}},
     {0},
     "warn",
     "Reward went from 0.3 to 1.1, which may be noise",
     "",
     NULL},
    {"the rows' errors at the end are small, those at first are not",
     10,
     {{"objective/scores", 0.5, 0.9, 0.2, 0, 0}, {"objective/scores_error", 0.5, 0.01, 0, 0, 0}},
     {0},
     "warn",
     "Reward went from",
     "",
     NULL},
    {"accuracy of a reward model",
     0,
     {{"reward_model/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Accuracy of the reward model rose",
     "",
     NULL},
    {"preferences",
     0,
     {{"dpo/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Preference accuracy rose",
     "",
     NULL},
    {"labels",
     0,
     {{"classify/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Accuracy rose",
     "",
     NULL},
    {"texts: lower is better",
     0,
     {{"sft/bits_per_token", 8, 4, 0.01, 0, 0}, {"objective/loss", 1, 4, 0.01, 0, 0}},
     {0},
     "good",
     "Bits per token fell from 7.99 to 4.11",
     "",
     NULL},
    {"a loss that diverges, and so is noisy",
     0,
     {{"sft/bits_per_token", 9, 9, 0, 1, 1},
      {"sft/bits_per_token", 2000, 1000, 500, 2, 20},
      {"objective/loss", 6, 900, 0, 1, 2}},
     {0},
     "bad",
     "Diverged at phase 2",
     "diverged",
     "it rose from 6 to 900"},
    {"a loss that is large at the end only",
     0,
     {{"sft/bits_per_token", 8, 8, 0.01, 0, 0}, {"objective/loss", 1, 9, 0, 19, 20}},
     {0},
     "bad",
     "Diverged at phase 20",
     "diverged",
     NULL},
    {"a loss that rises",
     0,
     {{"objective/loss", 1, 3, 0.01, 0, 0}},
     {0},
     "bad",
     "Loss rose from 0.99 to 2.95",
     "",
     NULL},
    {"a move of fewer digits than are shown",
     40,
     {{"objective/scores", 0.5, 0.5001, 0, 0, 0}},
     {0},
     "warn",
     "Reward did not move: 0.5 before, 0.5 after",
     "",
     NULL},
    {"four phases",
     4,
     {REWARD_ROSE},
     {0},
     "none",
     "Too short to judge: reward 0.49, then 0.91",
     "",
     NULL},
    {"five phases",
     5,
     {{"objective/scores", 0.5, 0.9, 0.3, 3, 4}},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"one phase", 1, {REWARD_ROSE}, {0}, "none", "Too short to judge", "", NULL},
    {"nothing", 0, {{0}}, {0}, "none", "Nothing to judge yet", "", NULL},
};

static void by_headline(void **state) {
    (void)state;
    JUDGE_ALL(headlines);
}

static void advice_fits_the_run(void **state) {
    (void)state;
    const struct rlhf__run_facts some = {.lr = 0.5}, held = {.lr = 0.5, .holds = 1};
    // A policy that collapsed early made too large steps; one that collapsed late drifted away.
    static const char rate[] = "; lower the learning rate (optim.lr 0.5)";
    const struct line early[] = {REWARD_STAYS, ENTROPY(4, 0.9)},
                      late[] = {REWARD_STAYS, {"objective/entropy_per_token", 4, 0.9, 0, 8, 9}},
                      jump[] = {late[0], late[1], {"objective/kl_per_token", 0, 0.6, 0, 3, 4}};
    assert_non_null(strstr(advice(early, 2, &held, "collapsed"), rate));
    assert_non_null(strstr(advice(late, 2, &held, "collapsed"), "the KL penalty (algo.kl_coef 0)"));
    assert_non_null(strstr(advice(late, 2, &some, "collapsed"), rate));
    assert_non_null(strstr(advice(jump, 3, &held, "collapsed"), rate));
    const struct line flat[] = {REWARD_ROSE, FLAT(0.62), {"judge/mean", 0.8, 0.4, 0.01, 0, 0}};
    assert_non_null(strstr(advice(flat, 2, &some, "flat_groups"), "have become easy"));
    assert_string_equal(advice(flat, 3, &some, "flat_groups"), ""); // it may be the wrong reward
    const struct line failed[] = {
        REWARD_STAYS, FLAT(0.62), {"rewards/one/failures", 96, 96, 0, 0, 0}};
    assert_non_null(strstr(advice(failed, 3, &some, "flat_groups"), "fix the reward first"));
}

static void figures(void **state) {
    (void)state;
    char out[40];
    assert_string_equal(rlhf__figure(0.56789, out), "0.568");
    assert_string_equal(rlhf__figure(-1234.5, out), "-1234");
    assert_string_equal(rlhf__figure(12345, out), "12345");
    assert_string_equal(rlhf__figure(1e20, out), "1e+20");
    assert_string_equal(rlhf__figure(0, out), "0");
    assert_string_equal(rlhf__figure(999.6, out), "1000");
    assert_string_equal(rlhf__figure(-999.4, out), "-999");
}

// Checks the first, last and best value of a series and its noise, the text after a collapse, and
// the phase since which a note applies.
static void numbers_of_a_verdict(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    const struct rlhf__run_facts facts = {.phases = 10};
    static const double reward[] = {1, 2, 3, 9, 4, 4, 4, 3, 3, 1};
    for (int64_t p = 1; p <= 10; p++) {
        rlhf__series_set_put(&s, "objective/scores", p, reward[p - 1], NULL);
        rlhf__series_set_put(&s, "objective/entropy_per_token", p, p < 6 ? 4 : 0.5, NULL);
    }
    rlhf__series_set_put(&s, "objective/verifiable_correct_rate", 1, 0.5,
                         NULL); // once: no headline
    const struct rlhf__history h = {&s, &facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_true(v.first == 1 && v.last == 1 && v.best == 9 && v.best_phase == 4 && v.width == 1);
    assert_true(fabs(v.noise - 1.05) < 1e-12 && v.moved == 0);
    assert_string_equal(v.title, "Collapsed at phase 6");
    assert_string_equal(v.text, "Reward went from 1 to 1; its best was 9 in phase 4.");
    assert_true(v.notes.all[0].held.phase == 6 && v.notes.all[0].held.n == 5);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

static const struct rlhf__verdict_check *find(const struct rlhf__verdict *v, const char *text) {
    for (size_t i = 0; i < v->n_checks; i++)
        if (strcmp(v->check[i].text, text) == 0) return &v->check[i];
    fail_msg("no check '%s'", text);
    return NULL;
}

static void put(struct rlhf__series_set *s, const char *name, double a, double b) {
    assert_int_equal(rlhf__series_set_put(s, name, 1, a, NULL), RLHF_OK);
    assert_int_equal(rlhf__series_set_put(s, name, 2, b, NULL), RLHF_OK);
}

static void checks(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    struct rlhf__run_facts facts = {.phases = 2};
    const struct rlhf__history h = {&s, &facts};
    put(&s, "objective/scores", 1, 2);
    put(&s, "sampling/logp_difference/max", 0, 0);
    put(&s, "optim/skipped_steps", 0, 0);
    put(&s, "judge/mean", 1, 1);
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_int_equal(v.n_checks, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(v.check[i].ok, 1);
    find(&v, "all 2 phases");
    find(&v, "sampled and trained log-probs equal");
    find(&v, "no step skipped");
    find(&v, "every response scored");
    find(&v, "a measure that nothing is trained on");
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
    facts.phases = 7;
    put(&s, "objective/scores", 1, 2);
    put(&s, "sampling/logp_difference/max", 0.25, 0);
    put(&s, "optim/skipped_steps", 0, 1);
    put(&s, "rewards/a/failures", 2, 1);
    put(&s, "rewards/not_finite", 0, 1);
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_int_equal(find(&v, "2 of 7 phases")->ok, 0);
    assert_int_equal(find(&v, "sampled and trained log-probs differ by up to 0.25")->ok, 0);
    assert_int_equal(find(&v, "1 step skipped")->ok, 0);
    assert_int_equal(find(&v, "4 rewards failed or not finite")->ok, 0);
    assert_int_equal(find(&v, "no held-out measure, no judge")->ok, -1);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

static void what_could_not_be_read(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    static const char *const trouble[] = {"metrics.jsonl ends within a line"};
    const struct rlhf__run_facts facts = {.trouble = trouble, .n_trouble = 1};
    const struct rlhf__history h = {&s, &facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_string_equal(v.notes.all[0].id, "unreadable");
    assert_string_equal(v.notes.all[0].text, "metrics.jsonl ends within a line.");
    assert_int_equal(find(&v, "0 phases of an unknown number")->ok, -1);
    rlhf__verdict_finish(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_headline), cmocka_unit_test(advice_fits_the_run),
        cmocka_unit_test(figures),     cmocka_unit_test(numbers_of_a_verdict),
        cmocka_unit_test(checks),      cmocka_unit_test(what_could_not_be_read),
    };
    return cmocka_run_group_tests_name("history_verdict", tests, NULL, NULL);
}
