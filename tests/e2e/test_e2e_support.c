// test_e2e_support.c: runs that sample with top-k, top-p or min-p, and compute the log-probs of
// policy and reference over the kept tokens (algo.logprob_support=sampled).
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --policy model "                     \
    "--set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=8 "              \
    "--set batch.microbatch_tokens=64 --set batch.size=12 --set optim.lr=0.01 "                    \
    "--set optim.schedule_phases=40 --set algo.logprob_support=sampled "

static const struct {
    const char *name, *how;
} cases[] = {
    {"ppo, top-k", "--algo ppo.so --set sampling.top_k=5"},
    {"ppo, top-p, another temperature",
     "--algo ppo.so --set sampling.top_p=0.6 --set sampling.temperature=0.7"},
    {"ppo, full KL, top-k", "--algo ppo.so --set sampling.top_k=7 --set algo.kl_estimator=full "
                            "--set algo.kl_placement=loss --set algo.kl_coef=0.1 "
                            "--set algo.minibatches=1"},
    {"ppo, log-probs of a second forward at temperature 1",
     "--algo ppo.so --set sampling.top_p=0.8 --set sampling.temperature=1.5 "
     "--set algo.logprob_temperature=unit --set algo.old_logp=recompute"},
    {"ppo, min-p", "--algo ppo.so --set sampling.min_p=0.5"},
    {"grpo, top-k", "--algo grpo.so --set sampling.top_k=5 --set algo.group_size=4"},
    {"grpo, top-k and top-p, k2", "--algo grpo.so --set sampling.top_k=20 --set sampling.top_p=0.7 "
                                  "--set algo.group_size=4 --set algo.kl_estimator=k2"},
};

enum { CASES = sizeof cases / sizeof *cases };

static void check_rows(const json_t *rows, const char *name) {
    assert_int_equal(json_array_size(rows), 4);
    for (int i = 0; i < 4; i++) {
        double kl = e2e_metric(rows, i, "objective/kl"); // absent if it is not finite
        if (!isfinite(kl)) fail_msg("%s: KL %g in phase %d", name, kl, i + 1);
        if (i == 0 && fabs(kl) > 0) fail_msg("%s: KL %g before any update", name, kl);
        if (i == 3 && !(fabs(kl) > 0)) fail_msg("%s: nothing was learnt", name);
        if (e2e_metric(rows, i, "sampling/logp_difference/max") > 0)
            fail_msg("%s: sampled and trained log-probs differ", name);
        if (e2e_metric(rows, i, "policy/out_of_support") > 0)
            fail_msg("%s: a token outside what it was sampled from", name);
        assert_true(e2e_metric(rows, i, "optim/skipped_steps") == 0);
    }
}

static void the_kl_is_finite(void **state) {
    struct e2e *t = *state;
    for (int k = 0; k < CASES; k++) {
        if (e2e_run(t, RUN "%s --set run.phases=4 --set run.dir=r%d", cases[k].how, k) != 0)
            fail_msg("%s: %s", cases[k].name, t->out);
        char run[16];
        snprintf(run, sizeof run, "r%d", k);
        json_t *rows = e2e_metrics(t, run);
        check_rows(rows, cases[k].name);
        json_decref(rows);
    }
}

// The bytes are the same with other slots, other threads, a resume, and prompts of full length.
static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    const char *how = cases[5].how;
    assert_int_equal(e2e_run(t, RUN "%s --set run.phases=4 --set run.dir=a", how), 0);
    assert_int_equal(e2e_run(t,
                             RUN "%s --set run.phases=4 --set run.dir=b --threads 2 "
                                 "--set sampling.slots=5",
                             how),
                     0);
    assert_int_equal(e2e_run(t, RUN "%s --set run.phases=2 --set run.dir=c", how), 0);
    assert_int_equal(e2e_run(t, "--resume c --set run.phases=4"), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
}

// In the reference backend's guard mode, buffers are unreadable outside a table function.
static void guarded(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t,
                             RUN "%s --set run.phases=2 --set run.dir=g "
                                 "--set compute.backend=reference --set compute.guard=true",
                             cases[4].how),
                     0);
}

// If a model plugin cannot compute log-probs over a given support, the program refuses it before it
// writes any file, with a message that names the plugin. Without top-k, the program accepts the
// plugin.
static void a_model_that_cannot_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp -r model plain && "
                                  "sed -i 's/\"gpt2\"/\"plain_gpt2\"/' plain/config.json"),
                     0);
    assert_int_equal(e2e_run(t, RUN "--policy plain --algo ppo.so --set sampling.top_k=5 "
                                    "--set run.phases=1 --set run.dir=n"),
                     2);
    e2e_says(t, "algo.logprob_support=sampled): plain_gpt2.so cannot give them for");
    e2e_says(t, "algo.logprob_support=full does without");
    assert_false(e2e_exists(t, "n"));
    assert_int_equal(
        e2e_run(t, RUN "--policy plain --algo ppo.so --set run.phases=1 --set run.dir=y"), 0);
}

// Tests a full KL over several minibatches. The reference's states stay on the device. If the model
// cannot keep them there, they go through the host, with the same bits.
static void hidden_states_either_way(void **state) {
    struct e2e *t = *state;
    static const char args[] =
        RUN "--algo grpo.so --set algo.group_size=4 --set algo.kl_placement=loss "
            "--set algo.kl_estimator=full --set algo.minibatches=2 --set run.phases=2 ";
    char command[1024];
    assert_int_equal(e2e_shell(t, "for m in plain device; do cp -r model $m && sed -i "
                                  "\"s/\\\"gpt2\\\"/\\\"${m}_gpt2\\\"/\" $m/config.json; done"),
                     0);
    for (int dtype = 0; dtype < 2; dtype++)
        for (int share = 0; share < 2; share++) {
            for (int k = 0; k < 2; k++) {
                snprintf(command, sizeof command,
                         "%s --policy %s --set run.dir=%c --set compute.dtype=%s "
                         "--set batch.share_prompts=%s",
                         args, k ? "plain" : "device", "ab"[k], dtype ? "bf16" : "f32",
                         share ? "true" : "false");
                if (e2e_run(t, command) != 0) fail_msg("%s", t->out);
            }
            assert_int_equal(
                e2e_shell(t, "for f in model.safetensors state/optimizer.safetensors; do cmp "
                             "a/checkpoints/latest/$f b/checkpoints/latest/$f || exit 1; done; "
                             "rm -r a b"),
                0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_kl_is_finite, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(guarded, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(hidden_states_either_way, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_support", tests, NULL, NULL);
}
