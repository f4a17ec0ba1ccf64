// test_e2e_closing.c: trends that a run reports while it trains, and the summary at its end.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --reward \"$RLHF_TEST_PLUGINS/parity_reward.so:levels=5\" --policy model "      \
    "--set policy.init=random "                                                                    \
    "--prompts prompts.txt --set batch.size=8 --set sampling.max_new_tokens=8 --threads 1 "        \
    "--set sampling.stop_at_eos=false --set log.samples=1 "
#define UNTAUGHT PPO "--set algo.value_coef=0 "
#define CRITIC   "The critic is worse than predicting the mean"

// If the critic does not train, the run reports this once, in phase 10, and again at the end.
static void a_trend_is_reported_in_its_phase(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, UNTAUGHT "--phases 12 --out a"), 0);
    e2e_says(t, "warning: phase 10: since phase 1: " CRITIC " (explained variance -");
    e2e_says(t, "). What helps: raise algo.value_coef");
    e2e_says(t, "found: " CRITIC);
    assert_int_equal(e2e_count(t, CRITIC), 2);
    assert_int_equal(e2e_run(t, UNTAUGHT "--phases 9 --out b"), 0);
    assert_int_equal(e2e_count(t, "warning: phase"), 0);
    e2e_says(t, "found: " CRITIC);
}

// A resumed run reads the earlier phases and reports the same trends as a run without a stop.
static void a_resumed_run_reports_the_same(void **state) {
    struct e2e *t = *state;
    const char *say = "grep -h -o 'warning: phase [0-9]*: since .*' ";
    assert_int_equal(e2e_shell(t, "$HOST " UNTAUGHT "--phases 12 --out a 2>a.txt"), 0);
    assert_int_equal(
        e2e_shell(t, "$HOST " UNTAUGHT "--phases 12 --set run.stop_after=6 --out b 2>b.txt"), 0);
    assert_int_equal(e2e_shell(t, "$HOST --resume b --trust-run --set run.stop_after=5 2>>b.txt"),
                     0);
    assert_int_equal(e2e_shell(t, "$HOST --resume b --trust-run 2>>b.txt"), 0);
    assert_int_equal(e2e_shell(t, "test $(%s a.txt | wc -l) -eq 1", say), 0);
    assert_int_equal(e2e_shell(t, "test \"$(%s a.txt)\" = \"$(%s b.txt)\"", say, say), 0);
    e2e_same_tree(t, "a/checkpoints/000012", "b/checkpoints/000012");
    // The last summary covers the phases before and after the resume.
    const char *best = "grep -h -o 'Reward .*; best .* in phase .*' ";
    assert_int_equal(e2e_shell(t, "test -n \"$(%s a.txt)\"", best), 0);
    assert_int_equal(e2e_shell(t, "test \"$(%s a.txt)\" = \"$(%s b.txt | tail -n 1)\"", best, best),
                     0);
}

static void lines_say_what_happened(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--phases 5 --out 'a run'"), 0);
    const char *done = strstr(t->out, "done after 5 of 5 phases: a run\n");
    assert_non_null(done);
    assert_non_null(strstr(done, " Reward "));
    assert_non_null(strstr(done, " in phase "));
    assert_non_null(strstr(done, " nats per sequence ("));
    assert_non_null(strstr(done, "length 8 tokens (8 at first)\n"));
    assert_non_null(strstr(done, "look closer: rlhf-host report 'a run'\n"));
    const char *try = strstr(done, "try it: rlhf-host generate --model 'a run' --prompt ");
    assert_non_null(try);
    assert_non_null(strstr(try, " --ignore-eos --max-new 8\n")); // as in the run
    assert_null(strstr(t->out, "\xe2\x96"));                     // curves are for terminals
    // The command can be pasted into a shell.
    assert_int_equal(
        e2e_shell(t, "$HOST " PPO "--phases 5 --out 'b c' 2>log >/dev/null && "
                     "grep -o 'rlhf-host generate .*' log | sed 's/^rlhf-host/\"$HOST\"/' "
                     ">go && sh ./go"),
        0);
    assert_int_equal(e2e_run(t, PPO "--phases 2 --out c"), 0);
    e2e_says(t, " Too short to judge: reward ");
    assert_int_equal(e2e_run(t, PPO "--phases 5 --set log.level=warn --out d"), 0);
    assert_int_equal(e2e_count(t, "look closer"), 0);
    assert_int_equal(e2e_count(t, "in phase"), 0);
}

static void a_terminal_has_a_curve(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_terminal(t, 100, "\"$HOST\" " PPO "--phases 5 --out a"), 0);
    const char *done = strstr(t->out, "done after 5 of 5 phases: a");
    assert_non_null(done);
    const char *best = strstr(done, "in phase ");
    assert_non_null(best);
    assert_non_null(strstr(best, "\xe2\x96\x88")); // its highest point
    assert_non_null(strstr(best, "\xe2\x96\x81")); // its lowest
}

static void json_has_one_object(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "$HOST " UNTAUGHT "--phases 5 --set log.format=json --out a "
                                  "2>&1 | grep '\"event\": \"summary\"'"),
                     0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(json_object_get(v, "metric")), "objective/scores");
    assert_true(json_is_number(json_object_get(v, "first")));
    assert_true(json_is_number(json_object_get(v, "last")));
    assert_true(json_integer_value(json_object_get(v, "best_phase")) > 0);
    assert_non_null(json_string_value(json_object_get(v, "verdict")));
    const json_t *found = json_object_get(v, "found");
    assert_string_equal(json_string_value(json_array_get(found, 0)), "critic");
    json_decref(v);
}

// After Ctrl-C, the summary covers the finished phases. The command that continues the run is below
// the summary.
static void a_stopped_run_says_how_to_go_on(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "$HOST " PPO "--phases 100000 --out a 2>log >/dev/null & p=$!; "
                                  "while kill -0 $p && { ! test -s a/metrics.jsonl || "
                                  "test $(wc -l <a/metrics.jsonl) -lt 6; }; do sleep 0.02; done; "
                                  "kill -INT $p; wait $p; cat log"),
                     0);
    const char *end = strstr(t->out, "stopped after ");
    assert_non_null(end);
    const char *verdict = strstr(end, " Reward ");
    assert_non_null(verdict);
    const char *resume = strstr(verdict, "go on: rlhf-host --resume a");
    assert_non_null(resume);
    assert_non_null(strstr(resume, "look closer: rlhf-host report a\n"));
}

// For models with scores, the run suggests measuring them on rows, not generating texts.
static void a_classifier_is_measured(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo classify.so --data labeled.jsonl --policy model --set "
                                "policy.init=random --set batch.size=4 --phases 5 --out a"),
                     0);
    e2e_says(t, " Accuracy ");
    // The command does not name the rows that the model was trained on.
    e2e_says(t, "measure it: rlhf-host eval --model a --data HELD-OUT.jsonl\n");
    assert_int_equal(e2e_count(t, "generate"), 0);
    assert_int_equal(e2e_run(t, "eval --model a --data labeled.jsonl"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_trend_is_reported_in_its_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_reports_the_same, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(lines_say_what_happened, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_terminal_has_a_curve, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(json_has_one_object, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_stopped_run_says_how_to_go_on, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_classifier_is_measured, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_closing", tests, NULL, NULL);
}
