// test_e2e_iterative.c: grpo_iterative as a user runs it: the moving reference, the reward model
// that is trained between iterations, the judge, and the state of all three across a resume.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVEN "\"$RLHF_TEST_PLUGINS/even_judge.so\""
#define BASE                                                                                       \
    "--policy model --set policy.init=random --prompts prompts.txt --set compute.dtype=f32 "       \
    "--set sampling.max_new_tokens=8 --set batch.size=32 --set batch.microbatch_tokens=128 "       \
    "--set optim.schedule_phases=8 --set optim.lr=0.003 --set log.samples=0 "
#define REPLAY                                                                                     \
    "--algo grpo_iterative.so:replay=true,group_size=4,rm_batch=4,rm_lr=0.01,replay_share=0.5,"    \
    "iteration_phases=1 --reward bt_rm.so:model=rm --judge " EVEN                                  \
    " --set score.calibrate=64 " BASE
#define TWO_MODELS                                                                                 \
    "--algo grpo_iterative.so:group_size=4,iteration_phases=1 --reward " EVEN " " BASE

// The e2e directory, with a barely trained reward model in rm/. The model was trained on rows that
// begin with bos, like the rows of the runs below.
static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n"
              "{\"prompt\": \"I think\", \"chosen\": \" it is\", \"rejected\": \" not\"}\n");
    return e2e_shell(t, "\"$HOST\" --algo bradley_terry.so --data pairs.jsonl --policy model "
                        "--set policy.init=random --set batch.size=2 --set score.calibrate=0 "
                        "--set compute.dtype=f32 --phases 1 --out r --threads 1 && mv "
                        "r/checkpoints/000001 rm && "
                        "echo '{\"add_bos_token\": true}' >rm/tokenizer_config.json")
               ? -1
               : 0;
}

// ---- both forms ----

// If the reference moves after each phase, the sampling policy equals the reference.
static void the_reference_follows_the_policy(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, TWO_MODELS "--phases 3 --out a"), 0);
    assert_int_equal(e2e_run(t, TWO_MODELS "--set algo.iteration_phases=2 --phases 4 --out b"), 0);
    json_t *a = e2e_metrics(t, "a"), *b = e2e_metrics(t, "b");
    for (int i = 0; i < 3; i++) {
        assert_true(e2e_metric(a, i, "objective/kl") == 0);
        assert_true(e2e_metric(a, i, "iteration/completed") == i + 1);
    }
    for (int i = 0; i < 4; i++) // moved after the second phase
        assert_int_equal(e2e_metric(b, i, "objective/kl") != 0, i % 2);
    json_decref(a);
    json_decref(b);
    assert_true(e2e_exists(t, "a/checkpoints/000003/state/reference.safetensors"));
    assert_false(e2e_exists(t, "a/checkpoints/000003/reward_model"));
}

static void the_reward_model_is_trained_on(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REPLAY "--set optim.lr=1e-6 --phases 12 --out a"), 0);
    json_t *rows = e2e_metrics(t, "a");
    double early = 0, late = 0, after = 0, history = 0;
    for (int i = 0; i < 12; i++) {
        double fresh = e2e_metric(rows, i, "reward_model/fresh");
        double replayed = e2e_metric(rows, i, "reward_model/replayed");
        // In every round after the first, fresh pairs and pairs of the history alternate. A round
        // begins and ends with a fresh pair.
        assert_true(replayed == (i ? fresh - 1 : 0));
        assert_true(e2e_metric(rows, i, "iteration/pairs") == fresh);
        history += fresh;
        assert_true(e2e_metric(rows, i, "reward_model/history") == history);
        assert_true(e2e_metric(rows, i, "reward_model/steps") == ceil((fresh + replayed) / 4));
        *(i < 6 ? &early : &late) += e2e_metric(rows, i, "reward_model/fresh_before") / 6;
        after += e2e_metric(rows, i, "reward_model/fresh_after") / 12;
    }
    json_decref(rows);
    // The reward model learns to agree with the judge on pairs that it has not seen.
    if (!(late > early && late > 0.6 && after > 0.8))
        fail_msg("accuracy on new pairs: %g, then %g; after training %g", early, late, after);
}

// The judge's preferences affect the policy only through the reward model.
static void the_policy_learns_what_the_judge_prefers(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REPLAY "--set optim.lr=0.01 --phases 24 --out a"), 0);
    json_t *rows = e2e_metrics(t, "a");
    double first = 0, last = 0;
    for (int i = 0; i < 3; i++) {
        first += e2e_metric(rows, i, "judge/mean") / 3;
        last += e2e_metric(rows, -1 - i, "judge/mean") / 3;
    }
    json_decref(rows);
    if (!(last > first + 0.2)) fail_msg("the judge's mean went from %g to %g", first, last);
}

// After a round of training, the new weights give the rewards, and gain and bias are fitted again.
static void rewards_are_those_of_the_new_weights(void **state) {
    struct e2e *t = *state;
    const char *how = "--phases 2 --set optim.lr=1e-6";
    assert_int_equal(e2e_run(t, REPLAY "%s --out a", how), 0);
    assert_int_equal(e2e_run(t, REPLAY "%s --set algo.rm_lr=0.001 --out b", how), 0);
    assert_int_equal(e2e_run(t, REPLAY "%s --set algo.rm_refit=false --out c", how), 0);
    assert_int_equal(e2e_run(t, REPLAY "%s --set score.calibrate=0 --out d", how), 0);
    json_t *a = e2e_metrics(t, "a"), *b = e2e_metrics(t, "b"), *c = e2e_metrics(t, "c");
    const char *mean = "rewards/bt_rm/mean", *std = "rewards/bt_rm/std";
    assert_true(e2e_metric(a, 0, mean) == e2e_metric(b, 0, mean));
    assert_true(e2e_metric(a, 1, mean) != e2e_metric(b, 1, mean));
    // Gain and bias were fitted so that the scores of 64 samples of the reference have mean 0 and
    // deviation 1. The scores of 32 samples of the policy are close to this.
    assert_true(fabs(e2e_metric(a, 1, mean)) < 0.5 && fabs(e2e_metric(a, 1, std) - 1) < 0.4);
    assert_true(e2e_metric(c, 1, std) < 0.6);
    assert_true(e2e_metric(a, 1, "reward_model/gain") > 1);
    assert_true(e2e_metric(c, 1, "reward_model/gain") == 1);
    assert_true(e2e_metric(c, 1, "reward_model/bias") == 0);
    json_decref(a);
    json_decref(b);
    json_decref(c);
    e2e_same_tree(t, "c/checkpoints/000002", "d/checkpoints/000002");
}

// ---- the same bits ----

static void resumes_exactly(void **state) {
    struct e2e *t = *state;
    static const char *const forms[] = {
        REPLAY "--set algo.iteration_phases=1", REPLAY "--set algo.iteration_phases=3",
        REPLAY "--set algo.iteration_phases=3 --set checkpoint.dtype=bf16",
        TWO_MODELS "--set algo.iteration_phases=1"};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf a b c"), 0);
        assert_int_equal(e2e_run(t, "%s --phases 4 --out a", forms[k]), 0);
        assert_int_equal(e2e_run(t, "%s --phases 4 --out b --threads 2", forms[k]), 0);
        assert_int_equal(e2e_run(t, "%s --phases 2 --out c", forms[k]), 0);
        assert_int_equal(e2e_run(t, "--resume c --phases 4 --threads 2"), 0);
        e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
        e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
    }
}

static void a_checkpoint_holds_a_reward_model(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REPLAY "--phases 2 --out a"), 0);
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=4 --reward "
                                "bt_rm.so:model=a/checkpoints/latest/reward_model " BASE
                                "--phases 1 --out b"),
                     0);
    assert_int_equal(e2e_shell(t, "cmp -s rm/model.safetensors "
                                  "a/checkpoints/latest/reward_model/model.safetensors"),
                     1);
}

// ---- the judge ----

static void a_judge_changes_nothing(void **state) {
    struct e2e *t = *state;
    const char *how = "--algo grpo.so:group_size=4 --reward period_count.so " BASE "--phases 2";
    assert_int_equal(e2e_run(t, "%s --out a", how), 0);
    assert_int_equal(e2e_run(t, "%s --out b --judge " EVEN, how), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
    json_t *a = e2e_metrics(t, "a"), *b = e2e_metrics(t, "b");
    assert_null(json_object_get(json_array_get(a, 0), "judge/mean"));
    double mean = e2e_metric(b, 0, "judge/mean");
    assert_true(mean > 0.2 && mean < 0.8 && e2e_metric(b, 0, "judge/std") > 0);
    json_decref(a);
    json_decref(b);
    assert_int_equal(e2e_shell(t, "grep -A5 '\"role\": \"judge\"' b/manifest.json | "
                                  "grep '\"sha256\": \"[0-9a-f]\\{64\\}\"'"),
                     0);
    assert_int_equal(e2e_run(t, "%s --print-config --judge " EVEN, how), 0);
    e2e_says(t, "\"judge\": {");
}

// ---- random numbers ----

static void succeeds(struct e2e *t, const char *script) {
    if (e2e_shell(t, "%s", script) != 0) fail_msg("%s", t->out);
}

// In the two runs, no pair of stream and counter is drawn twice. There are five streams: for
// calibrating the reward model, for rollouts, for refits, for the trial rollout at the start, and
// for the rehearsal.
static void no_number_is_drawn_with_twice(void **state) {
    struct e2e *t = *state;
    succeeds(t, "cp -r model spy && sed -i 's/\"gpt2\"/\"spying_gpt2\"/' spy/config.json");
    succeeds(t, "export DRAWS=$PWD/draws; \"$HOST\" --algo bradley_terry.so --data pairs.jsonl "
                "--policy spy --set policy.init=random --set batch.size=2 --threads 1 --phases 1 "
                "--set score.calibrate=16 --set sampling.max_new_tokens=8 --out first && "
                "echo '{\"add_bos_token\": true}' "
                ">first/checkpoints/latest/tokenizer_config.json && cut -d' ' -f1 draws | sort -u "
                ">calibration && [ $(wc -l <calibration) = 1 ] && \"$HOST\" "
                "--algo grpo_iterative.so:replay=true,group_size=4,iteration_phases=1 --judge " EVEN
                " --reward bt_rm.so:model=first/checkpoints/latest " BASE
                "--policy spy --set score.calibrate=16 --phases 2 --out second");
    succeeds(t, "sort draws | uniq -d | head -3; cut -d' ' -f1 draws | sort | uniq -c; "
                "[ -z \"$(sort draws | uniq -d)\" ] && "
                "[ $(cut -d' ' -f1 draws | sort -u | wc -l) = 5 ]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_reference_follows_the_policy, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_reward_model_is_trained_on, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_policy_learns_what_the_judge_prefers, setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(rewards_are_those_of_the_new_weights, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(resumes_exactly, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_holds_a_reward_model, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_judge_changes_nothing, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(no_number_is_drawn_with_twice, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_iterative", tests, NULL, NULL);
}
