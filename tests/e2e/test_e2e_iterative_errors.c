// test_e2e_iterative_errors.c: grpo_iterative refuses bad input with one sentence and the right
// exit status.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define EVEN "\"$RLHF_TEST_PLUGINS/even_judge.so\""
#define BASE                                                                                       \
    "--policy model --set policy.init=random --prompts prompts.txt "                               \
    "--set sampling.max_new_tokens=4 --set batch.size=8 --set log.samples=0 --phases 2 --out x "
#define REPLAY "--algo grpo_iterative.so:replay=true,group_size=4,iteration_phases=1 " BASE
#define RM     "--reward bt_rm.so:model=rm "

// The e2e directory with two reward models, rm/ and other/.
static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n");
    return e2e_shell(t, "\"$HOST\" --algo bradley_terry.so --data pairs.jsonl --policy model "
                        "--set policy.init=random --set batch.size=1 --set score.calibrate=0 "
                        "--phases 1 --out r --threads 1 && mv r/checkpoints/000001 rm && "
                        "cp -r rm other && ln -s rm link")
               ? -1
               : 0;
}

// Asserts that `args` is refused with status 2 and this text, and leaves no run directory.
static void refused(struct e2e *t, const char *args, const char *text) {
    assert_int_equal(e2e_run(t, "%s", args), 2);
    e2e_says(t, text);
    assert_false(e2e_exists(t, "x"));
}

static void judge_and_reward_model_must_fit(void **state) {
    struct e2e *t = *state;
    refused(t, REPLAY RM, "pairs that a judge chooses: name one, e.g. --judge imdb.so");
    refused(t, REPLAY "--reward period_count.so --judge " EVEN,
            "the rewards must ask exactly one (--reward bt_rm.so:model=DIR); they ask 0");
    refused(t, REPLAY RM "--reward bt_rm.so:model=other --judge " EVEN, "they ask 2");
    refused(t, REPLAY RM "--judge bt_rm.so:model=rm",
            "the judge bt_rm.so is the reward being trained");
    refused(t, REPLAY RM "--judge bt_rm.so:model=link,pooling=last",
            "the judge bt_rm.so is the reward being trained");
    refused(t, REPLAY RM "--judge nowhere.so", "--judge");
    refused(t, REPLAY RM "--judge grpo.so", "--judge");
}

static void options_out_of_range(void **state) {
    struct e2e *t = *state;
    refused(t, REPLAY RM "--set algo.replay_share=1.5 --judge " EVEN, "algo.replay_share");
    refused(t, REPLAY RM "--set algo.replay_share=-0.1 --judge " EVEN, "algo.replay_share");
    refused(t,
            "--algo sft.so --data texts.jsonl --policy model --set policy.init=random --out x "
            "--phases 1 --judge " EVEN,
            "--judge: sft.so trains on rows of a file and has no responses to judge");
}

// It is allowed to give the same model twice, or another model as the judge.
static void what_is_allowed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REPLAY RM "--reward bt_rm.so:model=link,pooling=last "
                                          "--judge bt_rm.so:model=other"),
                     0);
}

static void the_service_is_not_misused(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][2] = {
        {"early", "reference_sync() is allowed in phase_end() of a rollout run only"},
        {"early_pairs", "collect_pairs() is allowed in phase_end() of a rollout run only"},
        {"sync", "reference_sync() needs rlhf_iteration.moves_reference"},
        {"unplanned_pairs", "collect_pairs() needs a judge and rlhf_iteration.reward_model"},
        {"unplanned_update", "reward_update() needs rlhf_iteration.reward_model"},
        {"epochs", "the reward model's epochs are 0; at least 1"},
        {"batch", "the reward model's batch is -1 pairs; at least 1"},
        {"lr", "the reward model's learning rate is 0; it must be above 0"},
        {"share", "the replay share is 1.5; it must be from 0 to 1"},
        {"history", "the replay history is limited to -1 pairs; 0 (all) or more"},
        {"short", "rlhf_reward_update"},
        {"group", "the group size is 1; at least 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = e2e_run(
            t, "--algo \"$RLHF_TEST_PLUGINS/bad_iteration.so:how=%s\" " BASE RM "--judge " EVEN,
            cases[i][0]);
        // The plan is checked before any phase, so an error in it gives status 2. Errors that
        // appear only in a phase are run-time failures, with status 1.
        int planned = strcmp(cases[i][0], "group") == 0;
        assert_int_equal(status, planned ? 2 : 1);
        e2e_says(t, cases[i][1]);
        assert_int_equal(e2e_shell(t, "rm -rf x"), 0);
    }
}

static void a_judge_that_fails_is_named(void **state) {
    struct e2e *t = *state;
    const char *bad = "--judge \"$RLHF_TEST_PLUGINS/bad_reward.so:how=%s\"";
    char args[512];
    snprintf(args, sizeof args, bad, "nan");
    assert_int_equal(e2e_run(t, REPLAY RM "%s", args), 1);
    e2e_says(t, "the judge bad_reward.so gave nan for row 3 of phase 1");
    assert_int_equal(e2e_run(t, REPLAY RM "%s --set rewards.nan_policy=drop --out y", args), 0);
    snprintf(args, sizeof args, bad, "fail");
    assert_int_equal(e2e_run(t, REPLAY RM "%s --out z", args), 1);
    e2e_says(t, "no opinion today");
}

static void damaged_state_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REPLAY RM "--judge " EVEN), 0);
    static const char *const files[] = {"state/replay.bin",
                                        "state/iteration.json",
                                        "state/reward_optimizer.safetensors",
                                        "state/reference.safetensors",
                                        "reward_model/config.json",
                                        "reward_model/model.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf y && cp -r x y && f=y/checkpoints/latest/%s && "
                                   "head -c 9 $f >cut && mv cut $f",
                                   files[i]),
                         0);
        assert_int_equal(e2e_run(t, "--resume y --phases 4"), 2);
        e2e_says(t, files[i]);
    }
    assert_int_equal(e2e_run(t, "--resume x --phases 3 --judge period_count.so"), 2);
    e2e_says(t, "judge.plugin cannot change from");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(judge_and_reward_model_must_fit, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(options_out_of_range, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_is_allowed, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_service_is_not_misused, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_judge_that_fails_is_named, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(damaged_state_is_refused, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_iterative_errors", tests, NULL, NULL);
}
