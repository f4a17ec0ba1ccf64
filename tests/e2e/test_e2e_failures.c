// test_e2e_failures.c: a failing reward never loses a run. rewards.on_failure decides how the run
// handles these rows, and failures are counted and reported. If retries succeed, the run ends with
// the same bytes as a run without failures.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define FAULTY(options) "--reward \"$RLHF_TEST_PLUGINS/faulty_reward.so:" options "\" "
#define ANY                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=16 "           \
    "--set sampling.max_new_tokens=6 --set optim.lr=0.01 --set log.tensorboard=false "             \
    "--set rewards.isolate=never "
#define GRPO    ANY "--algo grpo.so:group_size=4,kl_placement=none,epochs=1 --set run.phases=3 "
#define ONCE    GRPO "--set run.phases=1 "
#define RETRY   "--set rewards.on_failure=retry "
#define GONE_ON "rewards.on_failure says "

static double metric(struct e2e *t, const char *run, int phase, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    const double v = e2e_metric(rows, phase, name);
    json_decref(rows);
    return v;
}

// The two runs end with the same weights and moments. If `state` is set, they also end with the
// same state of the reward.
static void the_same_end(struct e2e *t, const char *a, const char *b, int state) {
    static const char *const files[] = {"model.safetensors", "state/optimizer.safetensors",
                                        "state/run.json", "state/reward_0.bin"};
    for (int k = 0; k < (state ? 4 : 3); k++)
        assert_int_equal(e2e_shell(t, "cmp %s/checkpoints/000003/%s %s/checkpoints/000003/%s", a,
                                   files[k], b, files[k]),
                         0);
}

// ---- stop ----

// The run ends with status 1. It leaves the checkpoint of the last finished phase, from which it
// resumes.
static void stop_keeps_the_run(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"status", "rows"};
    static const char *const says[] = {"score(), phase 3: the line is dead", "nobody answers"};
    static const char *const calls[] = {"true", "false"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(e2e_run(t, GRPO FAULTY("calls=%s") "--set run.dir=whole%d", calls[k], k),
                         0);
        assert_int_equal(e2e_run(t, GRPO FAULTY("phase=3,how=%s,calls=%s") "--set run.dir=%s",
                                 how[k], calls[k], how[k]),
                         1);
        e2e_says(t, "reward faulty_reward.so, score(), phase 3: ");
        e2e_says(t, says[k]);
        e2e_says(t, "rewards.on_failure says stop (retry, zero and drop are allowed too)");
        e2e_says(t, k == 0 ? "(all 16 rows)" : "(rows ");
        e2e_says(t, "2 phases are kept; go on: rlhf-host --resume");
        assert_null(strstr(t->out, "\x1b[2J"));
        assert_int_equal(
            e2e_run(t, "--resume %s --trust-run --set rewards.on_failure=retry", how[k]), 0);
        the_same_end(t, k == 0 ? "whole0" : "whole1", how[k], k == 0);
    }
}

static void stop_before_the_first_boundary(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO FAULTY("how=status,every=1") "--set run.dir=a"), 1);
    e2e_says(t, "nothing is kept: ");
    // A new run may use this directory. Its result is the same as in a new directory.
    assert_int_equal(e2e_shell(t, "mkdir -p a/tensorboard && echo old >a/tensorboard/events.old && "
                                  "echo old >a/metrics.csv && cp -r a c"),
                     0);
    assert_int_equal(e2e_run(t, ONCE FAULTY("how=none") "--set run.dir=a"), 0);
    e2e_says(t, "the run that was in it ended before its first phase; it starts over");
    assert_int_equal(e2e_run(t, ONCE FAULTY("how=none") "--set run.dir=b"), 0);
    if (e2e_shell(t, "(cd a && find . | sort) >la && (cd b && find . | sort) >lb && diff la lb && "
                     "cmp a/checkpoints/000001/model.safetensors "
                     "b/checkpoints/000001/model.safetensors && [ $(wc -l <a/metrics.jsonl) = 1 ]"))
        fail_msg("%s", t->out);
    // A directory that contains any other files is refused and left unchanged.
    static const char *const mine[] = {
        "echo mine >c/notes.txt",        // a file of another name
        "mkdir -p c/checkpoints/000001", // weights, though not linked from any phase
        "echo mine >c/samples.jsonl",    // rows
        "ln -sf ../prompts.txt c/manifest.json", "rm c/metrics.jsonl && mkfifo c/metrics.jsonl"};
    assert_int_equal(e2e_shell(t, "mv c d"), 0);
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        assert_int_equal(
            e2e_shell(t, "rm -rf c && cp -r d c && %s && (cd c && find . | sort) >lc", mine[i]), 0);
        assert_int_equal(e2e_run(t, ONCE FAULTY("how=none") "--set run.dir=c"), 2);
        e2e_says(t, "/c' exists already and has no checkpoint to resume from, but holds files "
                    "of a run");
        e2e_says(t, "rm -r '");
        assert_int_equal(e2e_shell(t, "(cd c && find . | sort) | diff - lc"), 0);
    }
}

// Some errors are not failures of a row. rewards.on_failure does not apply to them.
static void memory_and_cancelling_are_no_failures(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"nomem", "cancelled"};
    static const char *const says[] = {"no room here", "left alone"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(
            e2e_run(t,
                    GRPO FAULTY("phase=2,how=%s") "--set rewards.on_failure=zero --set run.dir=%s",
                    how[k], how[k]),
            1);
        e2e_says(t, says[k]);
        assert_null(strstr(t->out, GONE_ON));
        e2e_says(t, "1 phase is kept");
    }
}

// ---- retry ----

// Temporary failures of every kind leave no trace in the final checkpoint or in the reward's state,
// if there are at most rewards.retries of them.
static void retry_ends_with_the_same_bytes(void **state) {
    struct e2e *t = *state;
    static const char *const with[] = {
        "how=status,calls=true,every=1",        "how=status,times=3", "how=rows",
        "how=rows,times=3,every=2,tokens=true", "how=nan,every=3",    "how=rows,every=1"};
    static const char *const without[] = {"calls=true", "", "", "tokens=true", "", ""};
    char clean[8], run[8];
    for (int k = 0; k < (int)(sizeof with / sizeof *with); k++) {
        snprintf(clean, sizeof clean, "c%d", k);
        snprintf(run, sizeof run, "r%d", k);
        assert_int_equal(e2e_run(t,
                                 GRPO FAULTY("%s%show=none") "--set run.dir=%s --set log.csv=true",
                                 without[k], *without[k] ? "," : "", clean),
                         0);
        assert_int_equal(e2e_run(t, GRPO RETRY FAULTY("%s") "--set run.dir=%s", with[k], run), 0);
        e2e_says(t, "rewards.on_failure says retry: scoring again, 1 of 3");
        assert_true(metric(t, run, 0, "rewards/faulty_reward/retries") +
                        metric(t, run, 1, "rewards/faulty_reward/retries") +
                        metric(t, run, 2, "rewards/faulty_reward/retries") >
                    0);
        for (int i = 0; i < 3; i++)
            assert_true(metric(t, run, i, "objective/scores") ==
                        metric(t, clean, i, "objective/scores"));
        the_same_end(t, clean, run, k == 0);
    }
}

// If a call fails more often than rewards.retries allows, the run ends, as with on_failure=stop.
static void retries_are_used_up(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO RETRY FAULTY("how=rows,times=9,phase=2") "--set run.dir=a"),
                     1);
    e2e_says(t, "scoring again, 3 of 3");
    e2e_says(t, "nobody answers");
    e2e_says(t, "rewards.on_failure says retry, rewards.retries 3 (zero and drop go on)");
    e2e_says(t, "1 phase is kept");
    e2e_says(t, " no score (");
    assert_int_equal(e2e_run(t, GRPO RETRY FAULTY("how=nan,times=9") "--set run.dir=b "
                                                                     "--set rewards.retries=1"),
                     1);
    e2e_says(t, "it gave nan");
    e2e_says(t, "rewards.retries 1 and rewards.nan_policy stop");
    assert_int_equal(e2e_run(t, GRPO FAULTY("how=rows") "--set rewards.retries=2 "
                                                        "--set run.dir=c"),
                     2);
    e2e_says(t, "rewards.on_failure is not retry");
}

// A reward that compares the rows of a group gets whole groups again.
static void groups_are_asked_again_whole(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\", \"extra\": {\"points\": 3}}\n"
              "{\"prompt\": \"I think\", \"answer\": \"no\", \"extra\": {\"points\": 5}}\n");
    assert_int_equal(e2e_run(t, ONCE RETRY "--reward \"$RLHF_TEST_PLUGINS/gold_reward.so:rows=4,"
                                           "fails=4\" --prompts rows.jsonl --set run.dir=a"),
                     0);
    e2e_says(t, "(row 3 of 16)");
    assert_true(metric(t, "a", 0, "objective/scores") == 1.5);
    assert_true(metric(t, "a", 0, "rewards/gold_reward/retries") == 1);
    assert_true(metric(t, "a", 0, "objective/verifiable_correct_rate") == 0.5);
}

// ---- zero and drop ----

static void zero_pays_nothing(void **state) {
    struct e2e *t = *state;
    const char *zero = "--set rewards.on_failure=zero";
    assert_int_equal(e2e_run(t,
                             ONCE FAULTY("tokens=true,how=rows") "%s --set run.dir=a "
                                                                 "--set log.rollouts=true "
                                                                 "--set log.progress=plain",
                             zero),
                     0);
    e2e_says(t, "rewards.on_failure says zero: their reward is 0");
    const double failed = metric(t, "a", 0, "rewards/faulty_reward/failures");
    char says[64];
    assert_true(failed > 0 && failed < 16);
    assert_true(metric(t, "a", 0, "rewards/faulty_reward/retries") == 0);
    assert_true(metric(t, "a", 0, "rewards/not_finite") == 0);
    snprintf(says, sizeof says, "  failures %.0f  elapsed", failed);
    e2e_says(t, says);
    snprintf(says, sizeof says, "reward faulty_reward: %.0f row%s no score (", failed,
             failed == 1 ? " has" : "s have");
    e2e_says(t, says);
    snprintf(says, sizeof says, "test $(grep -c '\"score\": 0,' a/rollouts.jsonl) = %.0f", failed);
    assert_int_equal(e2e_shell(t, "%s", says), 0); // other rows never score as little
    // When a reward gives up on a row, other rewards still score the row. All rows may fail, too.
    assert_int_equal(e2e_run(t,
                             ONCE FAULTY("how=status,name=a") FAULTY("name=b") "%s "
                                                                               "--set run.dir=b",
                             zero),
                     0);
    assert_true(metric(t, "b", 0, "rewards/a/failures") == 16);
    assert_int_equal(e2e_shell(t, "grep -q rewards/a/mean b/metrics.jsonl"), 1); // of no row
    assert_true(metric(t, "b", 0, "rewards/b/failures") == 0);
    assert_true(metric(t, "b", 0, "objective/scores") == metric(t, "b", 0, "rewards/b/mean"));
}

// Failed rows leave the batch. A group may lose some or all of its rows.
static void drop_leaves_rows_out(void **state) {
    struct e2e *t = *state;
    const char *drop = "--set rewards.on_failure=drop";
    assert_int_equal(e2e_run(t,
                             GRPO FAULTY("how=rows,every=2") "%s --set run.dir=a "
                                                             "--set log.rollouts=true",
                             drop),
                     0);
    e2e_says(t, "rewards.on_failure says drop: they are left out");
    double left = 48;
    for (int i = 0; i < 3; i++)
        left -= metric(t, "a", i, "rewards/faulty_reward/failures");
    char says[64];
    snprintf(says, sizeof says, "test $(grep -c '\"row\":' a/rollouts.jsonl) = %.0f", left);
    assert_true(left > 0 && left < 48);
    assert_int_equal(e2e_shell(t, "%s", says), 0);
    assert_true(metric(t, "a", 2, "episode") == 48);
    // If all rows are dropped, the run ends and gives the reason.
    assert_int_equal(e2e_run(t, GRPO FAULTY("how=status,phase=2") "%s --set run.dir=b", drop), 1);
    e2e_says(t, "no row of phase 2 is left: 16 could not be scored (rewards.on_failure), 0 had");
    e2e_says(t, "1 phase is kept");
    // Further prompts replace dropped groups.
    assert_int_equal(e2e_run(t,
                             GRPO FAULTY("how=rows,every=2") "%s --set run.dir=c "
                                                             "--set algo.dynamic_sampling=true",
                             drop),
                     0);
    // PPO does not use groups.
    assert_int_equal(e2e_run(t,
                             ANY "--algo ppo.so --set run.phases=2 " FAULTY(
                                 "how=rows,tokens=true") "%s --set run.dir=d",
                             drop),
                     0);
}

// ---- other callers ----

static void the_judge_fails_too(void **state) {
    struct e2e *t = *state;
#define JUDGE "--reward period_count.so --judge \"$RLHF_TEST_PLUGINS/faulty_reward.so:how=%s\" "
    assert_int_equal(e2e_run(t, ONCE JUDGE "--set run.dir=a", "rows"), 1);
    e2e_says(t, "nobody answers (rows ");
    assert_int_equal(e2e_run(t, ONCE JUDGE "--set run.dir=n", "none"), 0);
    assert_int_equal(e2e_run(t, ONCE JUDGE RETRY "--set run.dir=b", "rows"), 0);
    assert_true(metric(t, "b", 0, "judge/mean") == metric(t, "n", 0, "judge/mean"));
    assert_true(metric(t, "b", 0, "judge/retries") > 0);
    assert_true(metric(t, "b", 0, "judge/time") >= 0);
    assert_int_equal(e2e_run(t, ONCE JUDGE "--set rewards.on_failure=drop --set run.dir=c", "rows"),
                     0);
    e2e_says(t, "drop: they get no score");
    assert_true(metric(t, "c", 0, "judge/failures") > 0);
    assert_true(metric(t, "c", 0, "objective/scores") == metric(t, "n", 0, "objective/scores"));
    e2e_says(t, "the judge: ");
    assert_int_equal(
        e2e_run(t, ONCE JUDGE "--set rewards.on_failure=zero --set run.dir=d", "status"), 0);
    assert_int_equal(e2e_shell(t, "! grep -q judge/mean d/metrics.jsonl"), 0);
}

// Held-out responses have separate metrics.
static void held_out_responses_fail_too(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ONCE FAULTY("how=rows,every=2") "--set data.eval_path=prompts.txt "
                                                                "--set rewards.on_failure=zero "
                                                                "--set run.dir=a"),
                     0);
    assert_true(metric(t, "a", 0, "eval/rewards/faulty_reward/failures") > 0);
    assert_true(metric(t, "a", 0, "eval/rewards/faulty_reward/time") >= 0);
    assert_true(metric(t, "a", 1, "rewards/faulty_reward/failures") > 0);
}

static void eval_and_pairs_follow(void **state) {
    struct e2e *t = *state;
#define TEXTS "--set sampling.max_new_tokens=6 --set rewards.isolate=never "
    assert_int_equal(e2e_run(t, ONCE "--reward period_count.so --set run.dir=a"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL a/checkpoints/latest m"), 0);
#define EVAL "eval --model m --data prompts.txt --n 16 " TEXTS
    assert_int_equal(e2e_run(t, EVAL FAULTY("how=rows,every=2")), 1);
    e2e_says(t, "nobody answers");
    assert_int_equal(e2e_run(t, EVAL FAULTY("how=rows,every=2") RETRY), 0);
    e2e_says(t, "reward faulty_reward: ");
    assert_int_equal(e2e_run(t, EVAL FAULTY("how=rows,every=2") "--set rewards.retries=2"), 2);
    e2e_says(t, "rewards.on_failure is not retry");
#define PAIRS                                                                                      \
    "pairs --model m --prompts prompts.txt --k 4 --out p%d.jsonl " TEXTS                           \
    "--judge \"$RLHF_TEST_PLUGINS/faulty_reward.so:how=%s,every=2\" "
    assert_int_equal(e2e_run(t, PAIRS, 0, "none"), 0);
    assert_int_equal(e2e_run(t, PAIRS RETRY, 1, "rows"), 0);
    assert_int_equal(e2e_shell(t, "cmp p0.jsonl p1.jsonl"), 0);
    assert_int_equal(e2e_run(t, PAIRS "--set rewards.on_failure=drop", 2, "rows"), 0);
    assert_int_equal(e2e_shell(t, "! cmp -s p0.jsonl p2.jsonl"), 0);
}

// If a reward reports metrics in several calls, the host averages them, weighted by rows. A reward
// cannot report metrics under the host's names.
static void metrics_of_several_calls(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ONCE RETRY FAULTY("how=rows,every=1,times=2") "--set run.dir=a"),
                     0);
    e2e_says(t,
             "reward faulty_reward: in the end, every row has a score (failures: 32, retries: 32)");
    assert_int_equal(e2e_run(t, ONCE FAULTY("how=none") "--set run.dir=b"), 0);
    assert_null(strstr(t->out, "reward faulty_reward: "));
    assert_int_equal(e2e_run(t, ONCE FAULTY("how=nan") "--set rewards.nan_policy=zero "
                                                       "--set run.dir=c"),
                     0);
    char says[96];
    const double odd = metric(t, "c", 0, "rewards/not_finite");
    snprintf(says, sizeof says, "reward faulty_reward: %.0f row%s got no finite number", odd,
             odd == 1 ? "" : "s");
    assert_true(odd > 0);
    e2e_says(t, says);
    assert_true(metric(t, "a", 0, "rewards/faulty_reward/worth") ==
                metric(t, "b", 0, "rewards/faulty_reward/worth"));
    assert_true(metric(t, "a", 0, "rewards/faulty_reward/failures") == 32);
    assert_true(metric(t, "a", 0, "rewards/faulty_reward/retries") == 32);
    assert_true(metric(t, "b", 0, "rewards/faulty_reward/failures") == 0);
    assert_true(metric(t, "b", 0, "rewards/faulty_reward/time") <=
                metric(t, "b", 0, "time/reward"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(stop_keeps_the_run),
        TEST(stop_before_the_first_boundary),
        TEST(memory_and_cancelling_are_no_failures),
        TEST(retry_ends_with_the_same_bytes),
        TEST(retries_are_used_up),
        TEST(groups_are_asked_again_whole),
        TEST(zero_pays_nothing),
        TEST(drop_leaves_rows_out),
        TEST(the_judge_fails_too),
        TEST(held_out_responses_fail_too),
        TEST(eval_and_pairs_follow),
        TEST(metrics_of_several_calls),
    };
    return cmocka_run_group_tests_name("e2e_failures", tests, NULL, NULL);
}
