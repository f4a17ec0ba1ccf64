// test_worker_same.c: a reward may run in one worker, in several workers, or in the host's process.
// It gives the same bytes of weights, state and metrics. This also holds if it uses services.
#include "e2e/e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--prompts prompts.txt --set policy.init=random --set batch.size=8 "                           \
    "--set sampling.max_new_tokens=6 --set run.phases=2 --set rewards.nan_policy=zero "
#define PPO   "--algo ppo.so"
#define GRPO  "--algo grpo.so --set algo.group_size=2"
#define RETRY "--set rewards.on_failure=retry --set rewards.retries=1 "
#define METRICS                                                                                    \
    "m() { jq -S -c 'with_entries(select(.key | test(\"^(time|perf)/|/time$|elapsed|date\") | "    \
    "not))' $1/metrics.jsonl; }; "

// Asserts that two runs whose only difference is `one` and `two` end with the same bytes.
static void same(struct e2e *t, const char *algo, const char *reward, const char *one,
                 const char *two) {
    e2e_shell(t, "rm -rf a b");
    assert_int_equal(
        e2e_run(t, RUN "--policy model --set run.dir=a %s --reward \"%s%s", algo, reward, one), 0);
    assert_int_equal(
        e2e_run(t, RUN "--policy model --set run.dir=b %s --reward \"%s%s", algo, reward, two), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
    if (e2e_shell(t, "command -v jq") == 0)
        assert_int_equal(e2e_shell(t, METRICS "m a >x && m b >y && cmp x y"), 0);
}

static void as_in_the_process(void **state) {
    struct e2e *t = *state;
    static const char *const rewards[] = {
        "period_count.so:weight=1",
        "length.so:max_len=4",
        "format.so:pattern=a",
        "$RLHF_TEST_PLUGINS/token_reward.so:weight=1",
        "$RLHF_TEST_PLUGINS/wild_stateful.so:weight=1",
    };
    for (size_t i = 0; i < sizeof rewards / sizeof *rewards; i++)
        same(t, PPO, rewards[i], ",isolate=false\"", ",isolate=true\"");
}

static void with_any_number_of_workers(void **state) {
    struct e2e *t = *state;
    const char *reward = "$RLHF_TEST_PLUGINS/wild_reward.so:by_group=true\" ";
    same(t, GRPO, reward, "--set rewards.isolate=never", "--set rewards.workers=2");
    same(t, GRPO, reward, "--set rewards.workers=1", "--set rewards.workers=3");
    same(t, GRPO, reward, "--set rewards.workers=1", "--set rewards.workers=64");
}

// A worker gets a list of strings as the user gave it. This also holds in a resumed run.
static void with_a_list(void **state) {
    struct e2e *t = *state;
    const char *reward = "$RLHF_TEST_PLUGINS/wild_reward.so:by_group=true,words=";
    same(t, GRPO, reward, "x,yy,[z]\" --set rewards.isolate=never",
         "[\\\"x\\\",\\\"yy\\\",\\\"[z]\\\"]\" ");
    assert_int_equal(e2e_shell(t, "grep -A3 '\"words\"' b/config.json | tr -d ' \\n' >got; "
                                  "test \"$(cat got)\" = '\"words\":[\"x\",\"yy\",\"[z]\"'"),
                     0);
    assert_int_equal(
        e2e_run(t,
                RUN GRPO
                " --policy model --set run.dir=c --set run.stop_after=1 --reward \"%sx,yy,[z]\"",
                reward),
        0);
    assert_int_equal(e2e_run(t, "--resume c --trust-run"), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "c/checkpoints/000002");
    assert_int_equal(
        e2e_run(t, RUN GRPO " --policy model --set run.dir=d --reward \"%sa\"", reward), 0);
    assert_int_not_equal(e2e_shell(t, "cmp a/checkpoints/000002/model.safetensors "
                                      "d/checkpoints/000002/model.safetensors"),
                         0);
}

// Classifier, tokenizer, reward model and language model are the default models. They are in the
// host, and the worker calls the host to use them.
static void through_the_services(void **state) {
    struct e2e *t = *state;
    static const char *const rewards[] = {
        "imdb.so:", "ngram3.so:", "bt_rm.so:", "lm_judge.so:model=default,ask=Is it good?,",
        "$RLHF_TEST_PLUGINS/language_reward.so:"};
#define DEFAULT PPO " --set batch.size=4 --set sampling.max_new_tokens=4 --set run.phases=1 "
    for (size_t i = 0; i < sizeof rewards / sizeof *rewards; i++) {
        e2e_shell(t, "rm -rf a b");
        for (int k = 0; k < 2; k++)
            assert_int_equal(e2e_run(t, DEFAULT "--set run.dir=%s --reward \"%sisolate=%s\"",
                                     k ? "b" : "a", rewards[i], k ? "true" : "false"),
                             0);
        e2e_same_tree(t, "a/checkpoints/000001", "b/checkpoints/000001");
    }
}

// If a reward scores rows one by one, it is called while responses are sampled, in one worker or
// several. If a reward may compare the rows of a group, it is not called early.
static void asked_early(void **state) {
    struct e2e *t = *state;
    static const char run[] = RUN GRPO " --policy model --set rewards.on_failure=retry --reward "
                                       "\"$RLHF_TEST_PLUGINS/wild_alone.so:how=host,every=1\"";
    e2e_shell(t, "rm -rf a b");
    assert_int_equal(e2e_run(t, "%s --set run.dir=a", run), 0);
    assert_null(strstr(t->out, "asked again"));
    assert_int_equal(e2e_run(t, "%s --set run.dir=b --set rewards.overlap=true", run), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
    same(t, GRPO, "$RLHF_TEST_PLUGINS/wild_alone.so:every=1\" ", "",
         "--set rewards.overlap=true --set rewards.workers=3");
    assert_int_equal(e2e_run(t,
                             RUN GRPO " --policy model --set run.dir=c --set rewards.overlap=true "
                                      "--reward \"$RLHF_TEST_PLUGINS/wild_reward.so\""),
                     2);
    e2e_says(t, "no reward does its work outside the process (RLHF_REWARD_EXTERNAL)");
}

// A reward's metrics are the same for any number of workers, also if a call failed and was
// repeated.
static void metrics_of_any_number_of_workers(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--set rewards.isolate=never", "--set rewards.workers=1", "--set rewards.workers=2",
        "--set rewards.workers=3", RETRY "--set rewards.isolate=never",
        // Here the reward marks rows as failed, and their calls are repeated.
        RETRY "--set rewards.isolate=never", RETRY "--set rewards.workers=1",
        RETRY "--set rewards.workers=2", RETRY "--set rewards.workers=3"};
    if (e2e_shell(t, "command -v jq") != 0) return;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        e2e_shell(t, "rm -rf a; rm -f once");
        assert_int_equal(
            e2e_run(t,
                    RUN GRPO " --policy model --set run.dir=a --reward "
                             "\"$RLHF_TEST_PLUGINS/wild_reward.so:by_group=true,measures=true%s\" "
                             "%s",
                    i == 4  ? ",how=fail,row=5,file=$PWD/once"
                    : i > 4 ? ",how=mark,row=1,times=1"
                            : "",
                    how[i]),
            0);
        if (i > 4) e2e_says(t, "rewards.on_failure says retry: scoring again, 1 of ");
        assert_int_equal(e2e_shell(t,
                                   "jq -S -c 'with_entries(select(.key | test(\"measured\")))' "
                                   "a/metrics.jsonl >%s",
                                   i ? "b.txt" : "a.txt"),
                         0);
        if (i == 4) assert_int_equal(e2e_shell(t, "test -e once"), 0);
        if (i) assert_int_equal(e2e_shell(t, "cmp a.txt b.txt"), 0);
    }
    assert_int_equal(e2e_shell(t, "grep -q measured/rows.:8 a.txt"), 0);
}

// A reward that starts processes can start them in a worker, too.
static void programs_and_functions(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "length.py",
              "def length(completions, **kwargs):\n"
              "    return [len(c) / 8 for c in completions]\n");
    e2e_write(t, "length.sh", "while read -r line; do echo ${#line}; done\n");
    same(t, PPO, "exec.so:command=sh $PWD/length.sh", ",isolate=false\"", ",isolate=true\"");
    if (e2e_shell(t, "python3 -c 'import sys'") != 0) return;
    same(t, PPO, "python.so:file=$PWD/length.py,function=length", ",isolate=false\"",
         ",isolate=true\"");
}

// Each run has separate workers and memory.
static void two_runs_at_once(void **state) {
    struct e2e *t = *state;
#define ONE "$HOST --threads 1 " RUN PPO " --policy model --reward period_count.so:isolate=true "
    assert_int_equal(e2e_shell(t, ONE "--set run.dir=a >a.log 2>&1 & p=$!; " ONE
                                      "--set run.dir=b >b.log 2>&1 && wait $p"),
                     0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
}

// The state continues from the checkpoint.
static void a_resumed_run_ends_the_same(void **state) {
    struct e2e *t = *state;
#define STATEFUL RUN PPO " --policy model --reward \"$RLHF_TEST_PLUGINS/wild_stateful.so\" "
    assert_int_equal(e2e_run(t, STATEFUL "--set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, STATEFUL "--set run.dir=b --set run.stop_after=1"), 0);
    assert_int_equal(e2e_run(t, "--resume b --reward \"$RLHF_TEST_PLUGINS/wild_stateful.so\" "
                                "--set run.stop_after=0"),
                     0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_in_the_process, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(with_any_number_of_workers, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(with_a_list, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(metrics_of_any_number_of_workers, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(through_the_services, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(asked_early, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(programs_and_functions, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(two_runs_at_once, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_ends_the_same, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("worker same", tests, NULL, NULL);
}
