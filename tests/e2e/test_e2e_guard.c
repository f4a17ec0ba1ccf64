// test_e2e_guard.c: one run of each algorithm on the reference backend, with device memory that the
// host cannot read. A dereference outside a table function kills the process.
#include "e2e.h"

#define GUARD                                                                                      \
    "--set compute.backend=reference --set compute.guard=true --set policy.init=random "           \
    "--policy model --set run.phases=1 --set run.dir=g "

static void ppo_passes(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t,
                             GUARD "--algo ppo.so --reward period_count.so --prompts prompts.txt "
                                   "--set batch.size=4 --set sampling.max_new_tokens=4"),
                     0);
    json_t *rows = e2e_metrics(t, "g");
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    json_decref(rows);
    assert_true(e2e_exists(t, "g/checkpoints/000001/state/value_head.safetensors"));
}

static void sft_passes(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GUARD "--algo sft.so --data texts.jsonl --set batch.size=2"), 0);
    assert_int_equal(e2e_run(t, "--resume g --set run.phases=2"), 0);
    assert_true(e2e_exists(t, "g/checkpoints/000002/model.safetensors"));
}

static void classify_passes(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GUARD "--algo classify.so --data labeled.jsonl --set batch.size=2"),
                     0);
    e2e_says(t, "guard");
}

// Trains a reward model and uses it to reward grpo. grpo_iterative then trains the reward model
// further. All runs share prompts.
static void reward_model_and_grpo_pass(void **state) {
    struct e2e *t = *state;
    e2e_write(
        t, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    assert_int_equal(e2e_run(t, GUARD "--algo bradley_terry.so --data pairs.jsonl --set "
                                      "score.calibrate=4 --set sampling.max_new_tokens=4"),
                     0);
    assert_int_equal(e2e_shell(t, "mv g r"), 0);
    const char *rollout = "--reward bt_rm.so:model=r/checkpoints/latest --prompts prompts.txt "
                          "--set batch.size=8 --set algo.group_size=4 --set "
                          "sampling.max_new_tokens=4";
    assert_int_equal(e2e_run(t, GUARD "--algo grpo.so %s", rollout), 0);
    json_t *rows = e2e_metrics(t, "g");
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "rm -r g"), 0);
    assert_int_equal(e2e_run(t,
                             GUARD "--algo grpo_iterative.so --judge period_count.so --set "
                                   "algo.replay=true %s",
                             rollout),
                     0);
    assert_true(e2e_exists(t, "g/checkpoints/000001/reward_model/model.safetensors"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ppo_passes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(sft_passes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(classify_passes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(reward_model_and_grpo_pass, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_guard", tests, NULL, NULL);
}
