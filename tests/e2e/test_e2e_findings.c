// test_e2e_findings.c: a run reports a problem once, in the phase in which it occurs, with its
// cause and the setting to change. Also tests run.stop_on=collapse.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define ANY                                                                                        \
    "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so:levels=5\" --policy model "                    \
    "--set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=8 "              \
    "--set batch.size=16 --set log.samples=0 --set log.tensorboard=false "
#define SUPPLIED                                                                                   \
    "--policy model --set policy.init=random --prompts prompts.txt --set "                         \
    "sampling.max_new_tokens=8 --set batch.size=16 --set log.tensorboard=false "
#define WHOLE "--set sampling.stop_at_eos=false "
#define SOUND "--set optim.lr=1e-4 "
#define GRPO  ANY WHOLE "--algo grpo.so:group_size=4 "
#define STEPS(n)                                                                                   \
    ANY WHOLE SOUND "--algo \"$RLHF_TEST_PLUGINS/group_algo.so:kl=steps,kl_step=" n "\" "

#define COLLAPSED "read its texts (samples.jsonl)"

// The number of warnings of phases that contain `what`.
static int warned(const struct e2e *t, const char *what) {
    static const char begin[] = "warning: phase ";
    int n = 0;
    for (const char *at = t->out; (at = strstr(at, begin)); at += sizeof begin - 1) {
        const char *found = strstr(at, what);
        n += found && found < at + strcspn(at, "\n");
    }
    return n;
}

static int phases(struct e2e *t, const char *run) {
    json_t *rows = e2e_metrics(t, run);
    int n = (int)json_array_size(rows);
    json_decref(rows);
    return n;
}

// If the learning rate is far too large, every algorithm reports it, also without a KL penalty.
static void a_learning_rate_that_is_too_large(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--algo grpo.so:group_size=4 --set optim.lr=1", "--algo ppo.so --set optim.lr=1",
        "--algo rloo.so:group_size=4 --set optim.lr=1",
        "--algo grpo.so:group_size=4,kl_placement=none --set optim.lr=1",
        "--algo \"$RLHF_TEST_PLUGINS/group_algo.so\" --set optim.lr=1"};
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf a"), 0);
        assert_int_equal(e2e_run(t, ANY WHOLE "%s --phases 6 --out a", how[k]), 0);
        // A policy that is far from the reference may collapse later.
        if (warned(t, COLLAPSED) < 1 || warned(t, COLLAPSED) > 2)
            fail_msg("%s:\n%s", how[k], t->out);
        e2e_says(t, "lower the learning rate (optim.lr 1)");
        e2e_says(t, "; run.stop_on=collapse ends such a run");
        assert_int_equal(e2e_count(t, "more responses per prompt"), 0);
        assert_int_equal(e2e_count(t, "which teaches nothing"), 0);
    }
    assert_int_equal(e2e_run(t, ANY WHOLE "--algo grpo.so:group_size=4 --phases 6 --set "
                                          "optim.kind=muon --set optim.muon_lr=9 --set optim.lr=1 "
                                          "--out m"),
                     0);
    e2e_says(t, "(optim.muon_lr 9 and optim.lr 1)");
}

static void a_sound_run_says_nothing(void **state) {
    struct e2e *t = *state;
    static const char *const algos[] = {"ppo.so", "grpo.so:group_size=4", "rloo.so:group_size=4",
                                        "\"$RLHF_TEST_PLUGINS/group_algo.so\""};
    for (size_t k = 0; k < sizeof algos / sizeof *algos; k++)
        for (int seed = 1; seed <= 3; seed++) {
            assert_int_equal(e2e_run(t,
                                     ANY WHOLE SOUND "--algo %s --phases 6 --set run.seed=%d "
                                                     "--out s%zu-%d",
                                     algos[k], seed, k, seed),
                             0);
            if (strstr(t->out, "warning: phase")) fail_msg("%s:\n%s", algos[k], t->out);
        }
}

// The test's algorithm reports a KL that grows by 0.55 nats per token in each phase.
static void a_jump_and_then_far_away(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, STEPS("4.4") "--phases 4 --out a"), 0);
    e2e_says(t,
             "phase 2: The policy jumped away from the reference: KL 0.55 nats per token, at most "
             "0 before. What helps: lower the learning rate (optim.lr 0.0001)");
    e2e_says(t,
             "phase 3: The policy is far from the reference: KL 1.1 nats per token (more than 1); "
             "entropy ");
    assert_int_equal(warned(t, "jumped"), 1);
    assert_int_equal(warned(t, COLLAPSED), 1);
    assert_int_equal(e2e_count(t, "collapsed:"), 0);
    // A slow drift ends equally far from the reference. It is reported, too, but not as a jump.
    assert_int_equal(e2e_run(t, STEPS("1.2") "--phases 9 --out b"), 0);
    assert_int_equal(e2e_count(t, "jumped"), 0);
    e2e_says(t, "phase 8: The policy is far from the reference: KL 1.05 nats per token");
}

// A resumed run prints the same warnings as a run that was never stopped, and ends with the same
// bytes.
static void a_resumed_run_finds_the_same(void **state) {
    struct e2e *t = *state;
    const char *say = "grep -h -o 'warning: phase [0-9]*: The .*' ";
    assert_int_equal(e2e_shell(t, "$HOST " STEPS("4.4") "--threads 1 --phases 4 --out a 2>a.txt"),
                     0);
    assert_int_equal(e2e_shell(t, "$HOST " STEPS("4.4") "--threads 1 --phases 4 --set "
                                                        "run.stop_after=1 --out b 2>b.txt"),
                     0);
    assert_int_equal(e2e_shell(t, "$HOST --resume b --set run.stop_after=1 --trust-run 2>>b.txt"),
                     0);
    assert_int_equal(e2e_shell(t, "$HOST --resume b --trust-run 2>>b.txt"), 0);
    assert_int_equal(e2e_shell(t, "test $(%s a.txt | wc -l) -eq 2", say), 0);
    assert_int_equal(e2e_shell(t, "test \"$(%s a.txt)\" = \"$(%s b.txt)\"", say, say), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
}

static void a_collapse_may_end_the_run(void **state) {
    struct e2e *t = *state;
    const char *ends = STEPS("9") "--set run.stop_on=collapse --set log.samples=2 ";
    assert_int_equal(e2e_run(t, "%s --phases 9 --out a", ends), 3);
    e2e_says(t, "run.stop_on=collapse: the run ends after phase 2 with exit status 3");
    assert_int_equal(e2e_count(t, "run.stop_on=collapse ends such a run"), 0);
    e2e_says(t, "text of phase 2");
    e2e_says(t, "stopped after 2 of 9 phases, and the policy is far from the reference");
    assert_int_equal(phases(t, "a"), 2);
    assert_true(e2e_exists(t, "a/checkpoints/000002/model.safetensors"));
    // The policy is still far away, so a resumed run ends again unless the setting is changed.
    assert_int_equal(e2e_run(t, "--resume a --trust-run"), 3);
    assert_int_equal(phases(t, "a"), 3);
    assert_int_equal(e2e_run(t, "--resume a --trust-run --set run.stop_on=none --phases 5"), 0);
    assert_int_equal(phases(t, "a"), 5);
    assert_int_equal(e2e_run(t, STEPS("4") "--set run.stop_on=collapse --phases 2 --out b"), 0);
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --set "
                                "policy.init=random --set run.stop_on=collapse --out c"),
                     2);
    e2e_says(t, "run.stop_on has no effect here: sft.so draws no responses");
    assert_int_equal(e2e_run(t, "%s --set run.stop_on=jump --out d", ends), 2);
    e2e_says(t, "run.stop_on must be one of none, collapse");
}

// Supervised runs do not report a KL. A problem shows in the loss, and is reported once.
static void a_loss_that_diverges_is_reported(void **state) {
    struct e2e *t = *state;
    const char *sft = "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "
                      "--phases 4 ";
    assert_int_equal(e2e_run(t, "%s--set optim.lr=10 --out a", sft), 0);
    const char *at = strstr(t->out, "The loss has diverged: ");
    assert_non_null(at);
    e2e_says(t, "lower the learning rate (optim.lr 10)");
    assert_null(strstr(at + 1, "warning: phase 3: The loss"));
    assert_int_equal(e2e_run(t, "%s--set optim.lr=1e-3 --out b", sft), 0);
    assert_null(strstr(t->out, "diverged"));
}

// A bounded loss cannot diverge. But the responses that the model should learn may become less
// likely, and this is reported.
static void preferred_responses_that_are_lost_are_reported(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"kto.so --data wanted.jsonl",
                                      "dpo.so:loss=apo_zero --data pairs.jsonl"};
    e2e_write(t, "wanted.jsonl",
              "{\"prompt\": \"It\", \"completion\": \" was good.\", \"label\": true}\n"
              "{\"prompt\": \"So\", \"completion\": \" it is bad.\", \"label\": false}\n");
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" was good.\", \"rejected\": \" was bad.\"}\n");
    for (size_t k = 0; k < 2; k++) {
        const char *run = "--policy model --set policy.init=random --set batch.size=2 --phases 6 ";
        assert_int_equal(e2e_run(t, "--algo %s %s--set optim.lr=1 --out a%zu", how[k], run, k), 0);
        const char *say =
            "warning: phase 2: The policy has lost the preferred responses: their log-prob is ";
        if (e2e_count(t, say) != 1) fail_msg("%s:\n%s", how[k], t->out);
        e2e_says(t, "lower the learning rate (optim.lr 1)");
        assert_int_equal(e2e_run(t, "--algo %s %s--set optim.lr=1e-4 --out b%zu", how[k], run, k),
                         0);
        assert_int_equal(e2e_count(t, "lost"), 0);
        assert_int_equal(e2e_count(t, "had nothing to teach"), 0); // KTO's mismatched rows
    }
}

static void responses_that_are_cut_off_are_said(void **state) {
    struct e2e *t = *state;
    const char *say = "warning: phase 1: 100 % of the responses reach sampling.max_new_tokens (2) "
                      "and are cut off";
    const char *run = ANY SOUND "--algo grpo.so:group_size=4 --set sampling.max_new_tokens=2 ";
    assert_int_equal(e2e_run(t, "%s --phases 3 --out a", run), 0);
    assert_int_equal(e2e_count(t, say), 1);
    e2e_says(t, "sampling.stop_at_eos=false says that they need not end");
    assert_int_equal(e2e_run(t, "%s " WHOLE "--phases 2 --out b", run), 0);
    assert_int_equal(e2e_count(t, "cut off"), 0);
    assert_int_equal(e2e_run(t, "%s --set response.truncate=period --phases 2 --out c", run), 0);
    assert_int_equal(e2e_count(t, "cut off"), 0);
}

// Runs `args` and asserts that samples.jsonl has rows of exactly these phases, and of those with a
// warning.
static void sampled(struct e2e *t, const char *args, const char *phases) {
    const int st = e2e_shell(
        t,
        "rm -rf a; \"$HOST\" %s --threads 1 --set log.samples=2 --set log.samples_every=1000 --out "
        "a "
        "2>log || exit; cat log; n=$(grep -o '^{\"phase\": [0-9]*' a/samples.jsonl | "
        "grep -o '[0-9]*$' | uniq | tr '\\n' ' '); want=$({ printf '%%s\\n' %s; "
        "grep -o 'warning: phase [0-9]*' log | grep -o '[0-9]*$'; } | sort -nu | tr '\\n' ' '); "
        "echo \"$n, wanted $want\"; [ \"$n\" = \"$want\" ]",
        args, phases);
    if (st) fail_msg("%s", t->out);
}

// The texts of a phase with a warning are written, also if the warning comes from a trend, and
// texts are written by time.
static void warned_texts_are_written(void **state) {
    struct e2e *t = *state;
    sampled(t, GRPO "--set optim.lr=1 --phases 8", "1 8");
    e2e_says(t, "warning: phase 2: ");
    sampled(t, ANY WHOLE "--algo ppo.so --set algo.value_coef=0 --phases 12", "1 12");
    e2e_says(t, "warning: phase 10: since phase 1: The critic");
    e2e_write(t, "slow.py",
              "import time\n"
              "def slow(completions, **kwargs):\n"
              "    time.sleep(1.1)\n"
              "    return [float(len(set(c))) for c in completions]\n");
#define SLOW                                                                                       \
    SUPPLIED "--algo rloo.so --reward python.so:file=slow.py,function=slow --phases 4 --set "      \
             "log.samples_every_s="
    sampled(t, SLOW "1", "1 2 3 4");
    sampled(t, SLOW "0", "1 4");
}

// Episodes whose turns are all cut off, or that never call a tool, are named with their cause.
static void episodes_that_get_nowhere_are_said(void **state) {
    struct e2e *t = *state;
#define CALC                                                                                       \
    "--preset calculator --policy \"$RLHF_SOURCE_DIR/models/calc\" --set policy.init=random "      \
    "--set "                                                                                       \
    "batch.size=8 --set algo.group_size=4 --set sampling.max_new_tokens=8 --phases 2 --set "       \
    "data.eval_path= "
    assert_int_equal(e2e_run(t, CALC "--out a"), 0);
    assert_int_equal(
        e2e_count(
            t, "warning: phase 1: None of the episodes called a tool. What helps: teach the form"),
        1);
    assert_int_equal(e2e_count(t,
                               "warning: phase 1: 100 % of the episodes end in a turn that reaches "
                               "sampling.max_new_tokens (8) and are cut off, so that the "
                               "environment does not answer it. What helps: "),
                     1);
    e2e_says(t, "supervised training on whole episodes teaches turns that end");
    assert_int_equal(e2e_run(t, CALC "--set sampling.stop_at_eos=false --set sampling.stop=[] "
                                     "--out b"),
                     0);
    e2e_says(t, "nothing ends a turn here: set sampling.stop_at_eos=true or sampling.stop");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(episodes_that_get_nowhere_are_said, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(warned_texts_are_written, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_learning_rate_that_is_too_large, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sound_run_says_nothing, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_jump_and_then_far_away, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_finds_the_same, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_collapse_may_end_the_run, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_loss_that_diverges_is_reported, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(preferred_responses_that_are_lost_are_reported, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(responses_that_are_cut_off_are_said, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_findings", tests, NULL, NULL);
}
