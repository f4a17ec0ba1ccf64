// test_reward_bisect.c: some rows end a reward's process. Calls with parts of the rows find them.
// Checks which parts are called, how the reported position is used, and when the search is skipped.
#include "reward_ask_kit.h"

struct parts {
    const char *kills, *asked;
    int32_t late, liar, alone;
};

// The search trusts the reported position as long as the position proves right.
static void rows_that_end_it_are_found(void **state) {
    struct fixture *f = *state;
    static const struct parts how[] = {{"c", "abcdefgh|ab|c|defgh|", 0, 0, 1},
                                       {"a", "abcdefgh|a|bcdefgh|", 0, 0, 1},
                                       {"h", "abcdefgh|abcdefg|h|", 0, 0, 1},
                                       {"bf", "abcdefgh|a|b|cdefgh|cde|f|gh|", 0, 0, 1},
                                       {"c", "abcdefgh|ab|cd|efgh|", 0, 0, 0},
                                       {"c", "abcdefgh|abcd|ab|cd|c|d|efgh|", 1, 0, 1},
                                       {"c", "abcdefgh|abcd|ab|cd|efgh|", 1, 0, 0},
                                       {"g", "abcdefgh|a|bcdefgh|bcd|efgh|ef|gh|g|h|", 0, 1, 1}};
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    for (size_t k = 0; k < CHECK_COUNT(how); k++) {
        f->plugin.ops.reward.flags = how[k].alone ? RLHF_REWARD_ROW_ALONE : 0;
        f->s->kills = how[k].kills;
        f->s->late = how[k].late;
        f->s->liar = how[k].liar;
        f->s->asked[0] = 0;
        f->tally = (struct rlhf__reward_tally){0};
        ask(f);
        assert_string_equal(f->s->asked, how[k].asked);
        only_failed(f, how[k].alone ? how[k].kills : "cd");
        assert_int_equal(f->tally.failures, how[k].alone ? strlen(how[k].kills) : 2);
        assert_int_equal(f->tally.retries,
                         strlen(how[k].asked) - ROWS - f->s->n); // rows after the first call
        f->s->n = 0;
    }
    f->plugin.outside = NULL;
}

// With retry, only the last try searches for the row that ends the process. If calls with parts of
// the rows would change a reward's state, the search is skipped.
static void they_are_looked_for_when_it_counts(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.retries = 2;
    f->s->kills = "c";
    refused(f, RLHF_E_IO, "(row 2 of 8)");
    assert_string_equal(f->s->asked, "abcdefgh|abcdefgh|abcdefgh|ab|c|defgh|");
    f->s->asked[0] = 0;
    f->rules.retries = 1;
    f->plugin.desc.state_version = 1;
    refused(f, RLHF_E_IO, "(all 8 rows)");
    assert_string_equal(f->s->asked, ">abcdefgh|<>abcdefgh|");
    // With `stop` the search is not needed.
    f->plugin.desc.state_version = 0;
    f->s->asked[0] = 0;
    f->rules.on_failure = RLHF__FAILURE_STOP;
    refused(f, RLHF_E_IO, "(all 8 rows)");
    assert_string_equal(f->s->asked, "abcdefgh|");
    f->plugin.outside = NULL;
}

// A single group cannot be divided. The search ends after sixteen crashes.
static void looking_for_them_has_bounds(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    enum { MANY = 40 };
    struct rlhf__reward_rows many = {0};
    struct rlhf__reward_answer answer = {0};
    uint32_t pick[MANY];
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->kills = "a";
    memset(f->group, 0, sizeof f->group);
    ask(f);
    only_failed(f, "abcdefgh");
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_null(strstr(f->said, "in parts"));
    // A call with forty copies of the failing row.
    alone(f);
    f->s->n = 0;
    memset(pick, 0, sizeof pick);
    check_ok(rlhf__reward_rows_pick(&many, &f->rows, pick, MANY, &err), &err);
    check_ok(rlhf__reward_answer_init(&answer, &many, &err), &err);
    check_ok(rlhf__reward_ask(&f->q, NULL, &many, &answer, &err), &err);
    assert_int_equal(f->s->n, 16);
    assert_int_equal(rlhf__marks_count(answer.failed, MANY), MANY);
    rlhf__reward_answer_finish(&answer);
    rlhf__reward_rows_finish(&many);
    f->plugin.outside = NULL;
}

// If a row ends the process once and then succeeds, it has not failed. The log only reports that
// the rows were divided.
static void one_end_leaves_nothing(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.on_failure = RLHF__FAILURE_DROP;
    f->s->kills = "c";
    f->s->once = 1;
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|ab|c|defgh|");
    only_failed(f, "");
    logged(f, "it ended; scoring again in parts");
    assert_null(strstr(f->said, "rewards.on_failure says"));
    f->s->kills = "c";
    ask_early(f, 0, ROWS);
    assert_int_equal(f->early.why.code, 0);
    struct rlhf__error why, err;
    int32_t whole = 1;
    f->s->kills = "c";
    f->q.bisects = 1;
    check_ok(
        rlhf__reward_bisect(&f->q, &f->early.metrics, &f->rows, &f->answer, &why, &whole, &err),
        &err);
    assert_int_equal(why.code, 0);
    assert_int_equal(whole, 0);
    f->plugin.outside = NULL;
}

// The search ends at its time limit. The rows that are not decided by then have failed.
static void looking_for_them_takes_no_longer(void **state) {
    struct fixture *f = *state;
    f->plugin.outside = &f->outside;
    alone(f);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->rules.timeout_s = 1e-300;
    f->s->kills = "c";
    ask(f);
    only_failed(f, "abcdefgh");
    assert_string_equal(f->s->asked, "abcdefgh|");
    f->plugin.outside = NULL;
}

// If rows that are called early end the process, they are searched at once.
static void early_rows_are_parted(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->plugin.outside = &f->outside;
    f->rules.on_failure = RLHF__FAILURE_DROP;
    f->s->kills = "b";
    ask_early(f, 0, 4);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcd|a|b|cd|efgh|");
    only_failed(f, "b");
    assert_int_equal(f->tally.failures, 1);
    assert_int_equal(f->tally.retries, 4);
    f->plugin.outside = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_that_end_it_are_found),       TEST(they_are_looked_for_when_it_counts),
        TEST(looking_for_them_has_bounds),      TEST(one_end_leaves_nothing),
        TEST(looking_for_them_takes_no_longer), TEST(early_rows_are_parted),
    };
    return cmocka_run_group_tests_name("reward_bisect", tests, NULL, NULL);
}
