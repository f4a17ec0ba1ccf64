// test_growth.c: plugins that were built with older or longer headers run in this host, and give
// the same bits.
//
// Each grown_{reward,algo,model,kernels,sink}.c is built three times: with the original headers
// (first.txt), with the present ones, and with two more members in every struct that can grow.
#include "e2e.h"

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
                     "for age in first now longer; do cp -r model m-$age && "
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
        {"reward-first", KINDS("reward-first", "first", "now", "now") RUN},
        {"algo-first", KINDS("algo-first", "now", "first", "now") RUN},
        {"model-first", KINDS("model-first", "now", "now", "first") RUN},
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
        {"k-first", KINDS("k-first", "now", "now", "now") RUN KERNELS("first")},
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

static void sinks_of_every_age_are_read(void **state) {
    struct e2e *t = *state;
    static const char *const ages[] = {"first", "now", "longer"};
    static const char *const refused[][2] = {{"bundle", "its bundle uses fields newer"},
                                             {"descriptor", "its descriptor uses fields newer"},
                                             {"ops", "its rlhf_sink_ops uses fields newer"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            e2e_shell(t, "\"$HOST\" plugin info $RLHF_TEST_PLUGINS/grown_sink_%s.so", ages[i]), 0);
        e2e_says(t, "kind     sink");
        e2e_says(t, "default \"progress.txt\"");
        assert_int_not_equal(
            e2e_shell(t,
                      "GROWN_SET=%s \"$HOST\" plugin info $RLHF_TEST_PLUGINS/grown_sink_longer.so",
                      refused[i][0]),
            0);
        e2e_says(t, refused[i][1]);
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
        cmocka_unit_test_setup_teardown(sinks_of_every_age_are_read, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_the_reader_does_not_know_is_refused, setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("abi/growth", tests, NULL, NULL);
}
