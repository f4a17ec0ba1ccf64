// test_e2e_matrix.c: runs every algorithm with every reward from the command line, with the plugins
// as built. Algorithms and rewards must not depend on each other.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define QUIET "--set log.samples_every=0 --set log.tensorboard=false "
#define ROLLOUT                                                                                    \
    "--policy policy --prompts prompts.txt --set sampling.max_new_tokens=6 --set batch.size=8 "    \
    "--set run.phases=2 --set batch.microbatch_tokens=128 --set algo.group_size=4 " QUIET

// Makes a policy, a classifier and a reward model with one vocabulary, as users do.
static int models(void **state) {
    if (e2e_setup(state)) return 1;
    struct e2e *t = *state;
    e2e_write(
        t, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --set "
                                "policy.init=random --set run.phases=2 --set run.dir=s " QUIET),
                     0);
    assert_int_equal(e2e_shell(t, "cp -rL s/checkpoints/latest policy"), 0);
    assert_int_equal(
        e2e_run(t, "--algo classify.so --data labeled.jsonl --policy policy --set "
                   "score.labels=NEGATIVE,POSITIVE --set run.phases=2 --set run.dir=c " QUIET),
        0);
    assert_int_equal(e2e_run(t,
                             "--algo bradley_terry.so --data pairs.jsonl --policy policy --set "
                             "run.phases=2 --set run.dir=r --set sampling.max_new_tokens=6 " QUIET),
                     0);
    return 0;
}

static const char *const algos[] = {"ppo.so", "grpo.so", "grpo_iterative.so", "rloo.so"};
static const char *const rewards[] = {
    "--reward imdb.so:model=c/checkpoints/latest,self_test=false",
    "--reward bt_rm.so:model=r/checkpoints/latest",
    "--reward period_count.so",
    "--reward ngram3.so",
    "--reward period_count.so:weight=0.5 --reward ngram3.so:weight=-1",
};
enum { N_ALGOS = sizeof algos / sizeof *algos, N_REWARDS = sizeof rewards / sizeof *rewards };

static void every_algorithm_with_every_reward(void **state) {
    struct e2e *t = *state;
    for (int a = 0; a < N_ALGOS; a++)
        for (int r = 0; r < N_REWARDS; r++) {
            char run[32];
            snprintf(run, sizeof run, "m%d%d", a, r);
            int status =
                e2e_run(t, "--algo %s %s " ROLLOUT "--set run.dir=%s", algos[a], rewards[r], run);
            if (status) fail_msg("%s with %s: exit %d\n%s", algos[a], rewards[r], status, t->out);
            json_t *rows = e2e_metrics(t, run);
            assert_int_equal(json_array_size(rows), 2);
            assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
            e2e_metric(rows, 1, "objective/scores");
            e2e_metric(rows, 1, "objective/kl");
            json_decref(rows);
            char file[96];
            snprintf(file, sizeof file, "%s/checkpoints/000002/model.safetensors", run);
            assert_true(e2e_exists(t, file));
        }
}

// A model that scores texts cannot be sampled from, whichever command is used.
static void a_reward_model_writes_nothing(void **state) {
    struct e2e *t = *state;
    static const char *const commands[] = {
        "generate --model r/checkpoints/latest --prompt a",
        "eval --model r/checkpoints/latest --reward period_count.so --data prompts.txt",
        "--algo grpo.so --reward period_count.so --prompts prompts.txt --policy "
        "c/checkpoints/latest --set run.dir=w",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(e2e_run(t, "%s", commands[i]), 2);
        e2e_says(t, "is a classifier or a reward model: it scores texts and cannot write them");
    }
    assert_false(e2e_exists(t, "w"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_algorithm_with_every_reward, models, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_reward_model_writes_nothing, models, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_matrix", tests, NULL, NULL);
}
