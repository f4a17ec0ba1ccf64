// test_growth.c: plugins that were built with longer headers, those of a next minor version, run in
// this host and give the same bits, whether they read structs in place or with rlhf_copy_in. If
// they set a field that this host does not know, they are refused. (later.sh: this version's
// plugins in a later host.)
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define KINDS(age, reward, algo, model)                                                            \
    "--reward \"$RLHF_TEST_PLUGINS/grown_reward_" reward ".so:word=1\" --algo "                    \
    "\"$RLHF_TEST_PLUGINS/grown_algo_" algo ".so\" --policy m-" model " --set run.dir=" age
#define RUN                                                                                        \
    " --set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=8 "             \
    "--set batch.size=12 --set batch.microbatch_tokens=64 --set optim.lr=0.01 --set run.phases=2 " \
    "--set checkpoint.every=1"

#define KERNELS(age) " --set compute.backend=\"$RLHF_TEST_PLUGINS/grown_kernels_" age ".so\""

#define NOW           KINDS("x", "now", "now", "now")
#define BACKEND_LACKS "struct size"

static int setup(void **state) {
    int failed = e2e_setup(state);
    if (failed) return failed;
    return e2e_shell(*state,
                     "for age in now longer; do cp -r model m-$age && "
                     "sed -i \"s/\\\"gpt2\\\"/\\\"grown_model_$age\\\"/\" m-$age/config.json; "
                     "done");
}

static void learns(struct e2e *t, const char *args, const char *run) {
    if (e2e_run(t, "%s", args) != 0) fail_msg("%s: %s", run, t->out);
    json_t *rows = e2e_metrics(t, run);
    assert_int_equal(json_array_size(rows), 2);
    json_decref(rows);
}

// Only one plugin at a time has another version, so a failure shows which kind of plugin is broken.
static void every_age_gives_the_same_weights(void **state) {
    struct e2e *t = *state;
    static const char *const runs[][2] = {
        {"copying", KINDS("copying", "now_copying", "now_copying", "now") RUN},
        {"reward-copying", KINDS("reward-copying", "longer_copying", "now", "now") RUN},
        {"algo-copying", KINDS("algo-copying", "now", "longer_copying", "now") RUN},
        {"reward-longer", KINDS("reward-longer", "longer", "now", "now") RUN},
        {"algo-longer", KINDS("algo-longer", "now", "longer", "now") RUN},
        {"model-longer", KINDS("model-longer", "now", "now", "longer") RUN},
    };
    learns(t, KINDS("now", "now", "now", "now") RUN, "now");
    assert_int_equal(e2e_shell(t, "! cmp -s now/checkpoints/000001/model.safetensors "
                                  "now/checkpoints/000002/model.safetensors"),
                     0); // there is something to learn
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        learns(t, runs[i][1], runs[i][0]);
        if (e2e_shell(t,
                      "cmp now/checkpoints/000002/model.safetensors "
                      "%s/checkpoints/000002/model.safetensors",
                      runs[i][0]) != 0)
            fail_msg("%s: %s", runs[i][0], t->out);
    }
}

// The same for kernels, on the reference backend.
static void every_age_of_kernels_gives_the_same_weights(void **state) {
    struct e2e *t = *state;
    static const char *const runs[][2] = {
        {"k-now", KINDS("k-now", "now", "now", "now") RUN KERNELS("now")},
        {"k-longer", KINDS("k-longer", "now", "now", "now") RUN KERNELS("longer")},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        learns(t, runs[i][1], runs[i][0]);
        if (e2e_shell(t,
                      "cmp k-now/checkpoints/000002/model.safetensors "
                      "%s/checkpoints/000002/model.safetensors",
                      runs[i][0]) != 0)
            fail_msg("%s: %s", runs[i][0], t->out);
    }
}

// Sinks and environments.
static void every_age_plays_the_same(void **state) {
    struct e2e *t = *state;
    static const char *const ages[] = {"now", "longer", "now_copying", "longer_copying"};
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        if (e2e_shell(t,
                      "\"$HOST\" --algo grpo.so --env \"$RLHF_TEST_PLUGINS/grown_environment_%s.so:"
                      "most=9\" --policy model --set policy.init=random --set run.dir=%s "
                      "--sink \"$RLHF_TEST_PLUGINS/grown_sink_%s.so\" --set optim.lr=0.01 "
                      "--set sampling.max_new_tokens=4 --set batch.size=8 --set run.phases=2 "
                      "--set algo.group_size=4 --set episodes.turns=3 --set checkpoint.every=1",
                      ages[i], ages[i], ages[i]) != 0)
            fail_msg("%s: %s", ages[i], t->out);
        if (strstr(t->out, "sink.0 failed")) fail_msg("%s: %s", ages[i], t->out);
        if (e2e_shell(t,
                      "cmp now/checkpoints/000002/model.safetensors "
                      "%s/checkpoints/000002/model.safetensors && cat %s/sinks/*/progress.txt | "
                      "grep -q .",
                      ages[i], ages[i]) != 0)
            fail_msg("%s: %s", ages[i], t->out);
    }
}

// A plugin of a later version that does not promise to run on this host.
static void later_plugins_are_refused(void **state) {
    struct e2e *t = *state;
    static const char *const kinds[] = {"reward", "algo", "sink", "environment"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *info = "\"$HOST\" plugin info \"$RLHF_TEST_PLUGINS/grown_%s_longer.so\"";
        char script[256];
        snprintf(script, sizeof script, info, kinds[i]);
        if (e2e_shell(t, "%s", script) != 0) fail_msg("%s", t->out);
        assert_int_equal(e2e_shell(t, "GROWN_PROMISES_NOTHING=1 %s", script), 2);
        e2e_says(t, "needs plugin contract 1.");
        e2e_says(t, " or newer, this rlhf-host speaks 1.");
    }
}

// A field that the reader does not know must not be dropped silently.
static void what_the_reader_does_not_know_is_refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *set, *kinds, *says;
    } cases[] = {
        {"bundle", KINDS("x", "longer", "now", "now"), "grown_reward_longer.so: its bundle uses"},
        {"descriptor", KINDS("x", "longer", "now", "now"), "its descriptor uses fields newer"},
        {"ops", KINDS("x", "longer", "now", "now"), "its rlhf_reward_ops uses fields newer"},
        {"ops", KINDS("x", "now", "longer", "now"), "its rlhf_algo_ops uses fields newer"},
        {"ops", KINDS("x", "now", "longer_copying", "now"), "its rlhf_algo_ops uses fields newer"},
        {"plan", KINDS("x", "now", "longer", "now"), "plan(): it sets byte"},
        {"plan", KINDS("x", "now", "longer_copying", "now"), "plan(): not supported"},
        {"plan_size", KINDS("x", "now", "longer", "now"),
         "plan(): it changes the size of the host's rlhf_plan from"},
        {"loss", KINDS("x", "now", "longer", "now"), "it sets byte"},
        {"info", KINDS("x", "now", "now", "longer"), "info(): it sets byte"},
        {"param", KINDS("x", "now", "now", "longer"), "param(): it sets byte"},
        {"info_copied", KINDS("x", "now", "now", "longer"), "info(): not supported"},
        {"ops", KINDS("x", "now", "now", "longer"), "its rlhf_model_ops uses fields newer"},
        {"open", KINDS("x", "now", "now", "longer"), "rlhf_model_open sets a field newer than"},
        {"forward", KINDS("x", "now", "now", "longer"), "rlhf_forward sets a field newer than"},
        {"heads", KINDS("x", "now", "now", "longer"), "rlhf_heads sets a field newer than this"},
        {"flag", KINDS("x", "now", "now", "longer"),
         "sets bit 20 of the flags of its parameter 't"},
        {"group", KINDS("x", "now", "now", "longer"), "is of group 7 and init"},
        {"batch", KINDS("x", "now", "now", "longer"), "rlhf_batch sets a field newer than this"},
        {"dist", KINDS("x", "now", "now", "longer"), "the arguments set a field that this backend"},
        {"step", KINDS("x", "now", "now", "longer"), "rlhf_gen_step sets a field newer than this"},
        {"adapter", KINDS("x", "now", "now", "longer") " --set policy.adapter.rank=2",
         "rlhf_adapter sets a field newer than this"},
        {"ops", NOW KERNELS("longer"), "its rlhf_kernels_ops uses fields newer"},
        {"table", NOW KERNELS("longer"), "its rlhf_compute uses fields newer"},
        {"kernels_open", NOW KERNELS("longer"), "open: " BACKEND_LACKS},
        {"lm_head", NOW KERNELS("longer"), "lm_head: " BACKEND_LACKS},
        {"kernels_dist", NOW KERNELS("longer"), "lm_head: " BACKEND_LACKS},
        {"lm_head_bwd", NOW KERNELS("longer"), "lm_head_bwd: " BACKEND_LACKS},
        {"lm_sample", NOW KERNELS("longer"), "lm_sample: " BACKEND_LACKS},
        {"attn", NOW KERNELS("longer"), "attention: " BACKEND_LACKS},
        {"ragged", NOW KERNELS("longer"), "attention: " BACKEND_LACKS},
        {"kv_rows", NOW KERNELS("longer"), "kv_store: " BACKEND_LACKS},
        {"tensors", NOW KERNELS("longer"), "adamw_many: " BACKEND_LACKS},
        {"adamw", NOW KERNELS("longer"), "adamw_many: " BACKEND_LACKS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (e2e_shell(t, "GROWN_SET=%s \"$HOST\" %s%s", cases[i].set, cases[i].kinds, RUN) == 0)
            fail_msg("%s was taken", cases[i].says);
        e2e_says(t, cases[i].says);
        assert_int_equal(e2e_shell(t, "rm -rf x"), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_age_gives_the_same_weights, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(every_age_of_kernels_gives_the_same_weights, setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(every_age_plays_the_same, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(later_plugins_are_refused, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_the_reader_does_not_know_is_refused, setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("abi/growth", tests, NULL, NULL);
}
