// test_reward_ask.c: calls a reward, and calls it again after failures. Checks which rows the
// reward gets and in which order, its state, and that the metrics of a failed call are dropped.
#include "reward_ask_kit.h"

#include <math.h>

enum { PAUSE_MS = 20 };
#define ODD_MEAN 0.69 // 7 * 0.69 / 7 gives another number

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

// ---- which rows ----

static void only_what_failed_is_asked_again(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->call[0] = (struct call){.fails = "bg", .odd = "c"};
    f->s->call[1] = (struct call){.fails = "g"};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|bcg|g|");
    assert_int_equal(f->tally.failures, 4);
    assert_int_equal(f->tally.retries, 4);
    logged(f, "score(), phase 3: it could not score row 1 (rows 1, 2, 6 of 8); rewards.on_failure "
              "says retry: scoring again, 1 of 3");
    logged(f, "(row 6 of 8); rewards.on_failure says retry: scoring again, 2 of 3");
}

// On a retry, the other rows of a group are passed again. But their first results are kept.
static void a_group_is_asked_again_whole(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "d"};
    f->s->call[1] = (struct call){.fails = "c", .odd = "c"};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|cd|");
    assert_int_equal(f->tally.failures, 1);
    assert_int_equal(f->tally.retries, 1);
    // The same is true if the failures cover all groups.
    f->s->n = 0;
    f->s->call[0].fails = "bdfh";
    f->s->call[1] = (struct call){.odd = "aceg"};
    ask(f);
    only_failed(f, "");
}

// A score that is not finite is retried only if it would end the run.
static void numbers_are_asked_for_again(void **state) {
    struct fixture *f = *state;
    static const struct {
        int32_t failure, nan;
        const char *asked;
    } how[] = {{RLHF__FAILURE_RETRY, RLHF__NAN_STOP, "abcdefgh|b|"},
               {RLHF__FAILURE_RETRY, RLHF__NAN_ZERO, "abcdefgh|"},
               {RLHF__FAILURE_RETRY, RLHF__NAN_DROP, "abcdefgh|"},
               {RLHF__FAILURE_ZERO, RLHF__NAN_STOP, "abcdefgh|"}};
    alone(f);
    f->s->call[0].odd = "b";
    for (size_t k = 0; k < CHECK_COUNT(how); k++) {
        f->rules.on_failure = how[k].failure;
        f->rules.nan_policy = how[k].nan;
        f->s->n = 0;
        f->s->asked[0] = 0;
        ask(f);
        assert_string_equal(f->s->asked, how[k].asked);
        assert_int_equal(isnan(f->answer.seq[1]) != 0, k > 0);
    }
    assert_int_equal(f->tally.failures, 1);
}

// Each failure is reported with its reason, which is the reason in the call in which the failure
// occurred.
static void a_reason_is_of_its_try(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "b", .words = "no line"};
    f->s->call[1].odd = "b";
    ask(f);
    logged(f,
           "phase 3: no line (row 1 of 8); rewards.on_failure says retry: scoring again, 1 of 3");
    logged(
        f,
        "phase 3: it gave nan (row 1 of 8); rewards.on_failure says retry: scoring again, 2 of 3");
}

static void tries_have_an_end(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->rules.retries = 2;
    for (int k = 0; k < 3; k++)
        f->s->call[k].fails = "bc";
    refused(f, RLHF_E_IO,
            "(rows 1, 2 of 8); rewards.on_failure says retry, rewards.retries 2 ("
            "zero and drop go on)");
    assert_string_equal(f->s->asked, "abcdefgh|bc|bc|");
    assert_int_equal(f->tally.failures, 6);
    assert_int_equal(f->tally.retries, 4);
    // The message names rewards.nan_policy only if another policy would let the run continue. This
    // depends on the rows that remain at the end.
    static const char *const odd[][3] = {{"b", NULL, NULL}, {"bc", "bc", "b"}, {"bc", "bc", "bc"}};
    static const char *const policy[] = {"rewards.retries 2 (zero", "rewards.retries 2 (zero",
                                         "rewards.retries 2 and rewards.nan_policy stop (zero"};
    for (int k = 0; k < 3; k++) {
        f->s->n = 0;
        for (int i = 0; i < 3; i++) {
            f->s->call[i].odd = odd[k][i];
            f->s->call[i].fails = k == 0 ? "c" : k == 1 && i == 2 ? "c" : NULL;
        }
        refused(f, RLHF_E_IO, policy[k]);
    }
    // If the call has a single row, its failure does not show that all rows would fail.
    f->rows.n = 1;
    f->s->n = 0;
    for (int k = 0; k < 3; k++)
        f->s->call[k] = (struct call){.fails = "a"};
    refused(f, RLHF_E_IO, "(row 0 of 1)");
}

// After the user has asked to stop, calls are not retried.
static void stopping_ends_the_tries(void **state) {
    struct fixture *f = *state;
    f->s->stop = 1;
    f->s->call[0].fails = "b";
    refused(f, RLHF_E_CANCELLED, "stopped");
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_int_equal(f->tally.retries, 0);
    assert_null(f->said && strstr(f->said, "scoring again"));
    // Results of earlier successful calls are used.
    f->s->call[1].fails = NULL;
    ask(f);
    only_failed(f, "");
}

// Running out of memory and cancelling are not failures of rows, unless the reward named some rows.
static void what_is_no_failure_of_rows_ends_it(void **state) {
    struct fixture *f = *state;
    static const rlhf_status status[] = {RLHF_E_NOMEM, RLHF_E_CANCELLED};
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    for (int k = 0; k < 2; k++) {
        f->s->call[k].status = status[k];
        refused(f, status[k], "score(), phase 3: no");
    }
    assert_int_equal(f->tally.failures, 0);
    // If a call failed as a whole, the rows that it marked are ignored.
    f->s->n = 0;
    f->s->call[0] = (struct call){.status = RLHF_E_IO, .fails = "b"};
    ask(f);
    only_failed(f, "abcdefgh");
    // If the call succeeded, the rows that it marked count first.
    f->s->n = 0;
    f->s->call[0] = (struct call){.fails = "b", .words = "no line"};
    ask(f);
    only_failed(f, "b");
    logged(f, "score(), phase 3: no line (row 1 of 8)");
}

// ---- state ----

// If a call fails as a whole, the reward's state is restored. If only rows fail, the state stays.
static void the_state_goes_back_where_a_call_failed(void **state) {
    struct fixture *f = *state;
    f->plugin.desc.state_version = 1;
    f->s->calls = 5;
    f->s->call[0].fails = "b";
    f->s->call[1].status = RLHF_E_IO;
    f->s->call[2].fails = "b";
    ask(f);
    // Call 1 failed only at a row, so the state after it is kept. Call 2 failed as a whole, so the
    // state before it is restored.
    assert_string_equal(f->s->asked, ">abcdefgh|>ab|<>ab|>ab|");
    assert_int_equal(f->s->calls, 8);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->n = 0;
    f->s->asked[0] = 0;
    f->s->call[0] = (struct call){.status = RLHF_E_IO};
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|");
    only_failed(f, "abcdefgh");
}

// ---- metrics ----

// Only calls that report a metric count in its mean, with the weights that they give.
static void metrics_are_of_the_calls_that_report(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->call[0] = (struct call){.fails = "bc", .metric = 1};
    f->s->call[1] = (struct call){.fails = "c"};
    f->s->call[2] = (struct call){.metric = 8};
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|bc|c|");
    assert_int_equal(f->metrics, 1);
    assert_true(fabs(f->metric - (6 * 1 + 1 * 8) / 7.0) < 1e-12);
    assert_true(f->weight == 7 && f->counted == 7);
}

// If a call for whole groups fails at a row, the metrics that it reported include rows that are
// scored again. So the whole call is repeated, and the metrics are those of a single call without
// failures. Rows that already had an answer keep it.
static void metrics_of_repeated_groups_count_once(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "d", .metric = 3};
    // both rows keep their answers
    f->s->call[1] = (struct call){.fails = "g", .odd = "a", .metric = 5};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|abcdefgh|");
    f->metric = f->weight = f->counted = 0;
    f->s->n = 0;
    f->s->asked[0] = 0;
    f->s->call[1] = (struct call){.status = RLHF_E_IO, .metric = 8};
    f->s->call[2] = (struct call){.fails = "c", .metric = ODD_MEAN};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|abcdefgh|abcdefgh|");
    f->metrics = 0;
    f->metric = f->weight = f->counted = 0;
    f->s->n = 0;
    f->s->call[0] = (struct call){.fails = "d", .metric = 3};
    f->s->call[1] = (struct call){.metric = ODD_MEAN};
    ask(f);
    assert_int_equal(f->metrics, 1);
    assert_true(f->metric == ODD_MEAN && f->weight == ROWS && f->counted == ROWS);
    assert_int_equal(f->tally.retries, 4); // rows that had failed
}

// A reward can give NaN or infinity for a row that it did not mark as failed. The metrics that it
// reported in that call already include this number.
static void metrics_of_odd_numbers_count_once(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->call[0] = (struct call){.fails = "c", .odd = "b", .metric = 3};
    f->s->call[1] = (struct call){.fails = "c", .metric = 4};
    f->s->call[2] = (struct call){.metric = 11};
    ask(f);
    only_failed(f, "");
    assert_string_equal(f->s->asked, "abcdefgh|abcdefgh|c|");
    assert_true(f->weight == ROWS && f->counted == ROWS);
    assert_true(fabs(f->metric - (7 * 4 + 11) / 8.0) < 1e-12);
}

// With on_failure=zero and drop, calls are not repeated.
static void metrics_count_where_nothing_is_repeated(void **state) {
    struct fixture *f = *state;
    f->rules.on_failure = RLHF__FAILURE_DROP;
    f->s->call[0] = (struct call){.fails = "d", .metric = ODD_MEAN};
    ask(f);
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_true(f->metric == ODD_MEAN && f->weight == ROWS - 1);
}

// If a batch is scored again after a failed call, its metrics are the same as if the first call had
// succeeded.
static void a_retry_leaves_no_metrics(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.metric = ODD_MEAN};
    ask(f);
    assert_true(f->metric == ODD_MEAN && f->weight == ROWS && f->counted == ROWS);
    f->metric = f->weight = f->counted = 0;
    f->s->n = 0;
    f->s->call[0] = (struct call){.status = RLHF_E_IO, .metric = 3};
    f->s->call[1] = (struct call){.metric = ODD_MEAN};
    ask(f);
    assert_int_equal(f->tally.retries, ROWS);
    assert_true(f->metric == ODD_MEAN && f->weight == ROWS && f->counted == ROWS);
}

// If a call fails, its metrics are ignored, even if later calls do not report any.
static void what_a_failed_call_reports_is_forgotten(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.status = RLHF_E_IO, .metric = 9};
    ask(f);
    assert_int_equal(f->metrics, 0);
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    alone(f);
    f->s->n = 0;
    f->s->call[0] = (struct call){.fails = "b", .metric = ODD_MEAN};
    ask(f);
    assert_int_equal(f->metrics, 1);
    assert_true(f->metric == ODD_MEAN); // the reported value, not a mean
}

// ---- early calls ----

// The time, failures and metrics of early calls count in those of the batch.
static void early_calls_count(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->s->pause = PAUSE_MS;
    f->s->call[0] = (struct call){.fails = "b", .metric = 2};
    f->s->call[1] = (struct call){.fails = "c", .metric = 7};
    f->s->call[2] = (struct call){.metric = 4};
    ask_early(f, 0, 2);
    ask_early(f, 2, 6);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "ab|cdef|gh|bc|");
    only_failed(f, "");
    assert_true(f->tally.seconds >= 4 * 0.95e-3 * PAUSE_MS);
    assert_int_equal(f->tally.failures, 2);
    assert_int_equal(f->tally.retries, 2);
    assert_int_equal(f->metrics, 1);
    assert_true(fabs(f->metric - (1 * 2 + 3 * 7 + 2 * 4) / 6.0) < 1e-12);
    // The first failure is reported together with the rows. Other failures are reported at once.
    logged(f, "it could not score row 0");
    assert_int_equal(lines_of(f->said), 2);
    logged(f, "it could not score row 1 (rows 1, 2 of 8); rewards.on_failure says retry");
}

// If an early call had a failure and reported metrics, the call is repeated for all its rows. Other
// early calls are not repeated.
static void early_metrics_count_once(void **state) {
    struct fixture *f = *state;
    f->s->call[0] = (struct call){.fails = "b", .metric = 2};
    f->s->call[1] = (struct call){.metric = 7};
    f->s->call[2] = (struct call){.metric = 4};
    f->s->call[3] = (struct call){.metric = 6};
    ask_early(f, 0, 4);
    ask_early(f, 4, 6);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcd|ef|gh|abcd|");
    only_failed(f, "");
    assert_true(f->weight == ROWS && f->counted == ROWS);
    assert_true(fabs(f->metric - (2 * 7 + 2 * 4 + 4 * 6) / 8.0) < 1e-12);
}

// Early calls succeeded and later calls failed. Only the later calls are reported.
static void a_failure_after_early_calls_is_told(void **state) {
    struct fixture *f = *state;
    alone(f);
    f->plugin.ops.reward.flags |= RLHF_REWARD_PER_TOKEN;
    f->s->call[1].fails = "g";
    ask_early(f, 0, 6);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcdef|gh|g|");
    only_failed(f, "");
    logged(f, "score(), phase 3: it could not score row 0 (row 6 of 8)");
    assert_int_equal(f->tally.failures, 1);
}

// If early calls scored everything, the reward is not called again.
static void nothing_is_asked_twice(void **state) {
    struct fixture *f = *state;
    f->rules.on_failure = RLHF__FAILURE_ZERO;
    f->s->call[0] = (struct call){.fails = "b", .odd = "e"};
    ask_early(f, 0, ROWS);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcdefgh|");
    assert_true(isnan(f->answer.seq[4]));
    f->answer.seq[4] = 5;
    only_failed(f, "b");
    assert_int_equal(f->tally.failures, 1);
    assert_int_equal(f->tally.retries, 0);
}

// If memory runs out in an early call, or if the user stops the run, the batch is processed as if
// early calls had never been made.
static void no_failure_of_rows_leaves_them_unknown(void **state) {
    struct fixture *f = *state;
    f->s->call[0].status = RLHF_E_NOMEM;
    ask_early(f, 0, 4);
    ask_early(f, 4, 8);
    ask_with(f, &f->early);
    assert_string_equal(f->s->asked, "abcd|efgh|abcd|");
    only_failed(f, "");
    assert_int_equal(f->tally.failures, 0);
}

// ---- turns ----

// A reward with RLHF_REWARD_TURNS scores whole rows. Any other reward scores only the last turn of
// each row. If a reward returns values for tokens that it does not score, or that the policy did
// not write, the host drops these values.
static void rows_of_several_turns(void **state) {
    struct fixture *f = *state;
    static char letters[] = "hgfedcba", before[] = "before";
    struct rlhf__turn_texts texts[ROWS];
    const struct rlhf__turn_texts *all[ROWS];
    int32_t turn[ROWS] = {0};
    uint8_t end[ROWS] = {0};
    turn[2] = -1;
    for (int i = 0; i < ROWS; i++) {
        texts[i] = (struct rlhf__turn_texts){.before = before,
                                             .after = letters + i,
                                             .messages = before,
                                             .before_len = 6,
                                             .after_len = 1,
                                             .messages_len = 6,
                                             .last = i == 5};
        all[i] = &texts[i];
    }
    f->rows.turn = turn;
    f->rows.end = end;
    f->rows.texts = all;
    f->plugin.ops.reward.flags = RLHF_REWARD_PER_TOKEN;
    ask(f);
    for (int i = 0; i < ROWS; i++)
        assert_true(f->answer.token[i] == (i == 2 || i == 5 ? 0 : 0.5f));
    f->plugin.ops.reward.flags |= RLHF_REWARD_TURNS;
    ask(f);
    for (int i = 0; i < ROWS; i++)
        assert_true(f->answer.token[i] == (i == 2 ? 0 : 0.5f));
    assert_string_equal(f->s->asked, "abcdefgh|hgfedcba|");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(only_what_failed_is_asked_again),
        TEST(rows_of_several_turns),
        TEST(a_group_is_asked_again_whole),
        TEST(numbers_are_asked_for_again),
        TEST(a_reason_is_of_its_try),
        TEST(tries_have_an_end),
        TEST(stopping_ends_the_tries),
        TEST(what_is_no_failure_of_rows_ends_it),
        TEST(the_state_goes_back_where_a_call_failed),
        TEST(metrics_are_of_the_calls_that_report),
        TEST(metrics_of_repeated_groups_count_once),
        TEST(metrics_of_odd_numbers_count_once),
        TEST(metrics_count_where_nothing_is_repeated),
        TEST(early_metrics_count_once),
        TEST(a_retry_leaves_no_metrics),
        TEST(what_a_failed_call_reports_is_forgotten),
        TEST(early_calls_count),
        TEST(a_failure_after_early_calls_is_told),
        TEST(nothing_is_asked_twice),
        TEST(no_failure_of_rows_leaves_them_unknown),
    };
    return cmocka_run_group_tests_name("reward_ask", tests, NULL, NULL);
}
