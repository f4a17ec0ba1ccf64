// test_e2e_contract.c: the host does what a plugin's plan requests, or refuses it. Missing
// functions are reported before a run begins.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FREE  "--algo \"$RLHF_TEST_PLUGINS/free_plan.so\""
#define LOOKS "--algo \"$RLHF_TEST_PLUGINS/looks_first.so\""
#define ROWS                                                                                       \
    " --policy model --set policy.init=random --set batch.size=4 --set run.phases=2 "              \
    "--set optim.lr=0.01 --set log.progress=off "
#define PAIRS ROWS "--data pairs.jsonl "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n"
              "{\"prompt\": \"I think\", \"chosen\": \" it is\", \"rejected\": \" not\"}\n"
              "{\"prompt\": \"The\", \"chosen\": \" best\", \"rejected\": \" worst thing\"}\n"
              "{\"prompt\": \"One\", \"chosen\": \" of them\", \"rejected\": \" less\"}\n");
    return 0;
}

// If the source of rows cannot serve a request of the plan, the host refuses the run before
// anything is written. The message names the request.
static void what_cannot_be_given_is_refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *options, *data, *says;
    } cases[] = {
        {"source=7", "pairs.jsonl", "plans the source 7, which this host does not know"},
        {"source=0", "pairs.jsonl", "plans the source 0, which this host does not know"},
        {"flags=8192", "pairs.jsonl", "plans the flag bit 13, which this host does not know"},
        {"heads=4097", "pairs.jsonl", "plans the head bit 12, which this host does not know"},
        {"heads=0", "pairs.jsonl", "plans no heads"},
        {"heads=65", "pairs.jsonl", "head 'token score' cannot be planned"},
        {"heads=513", "pairs.jsonl", "plans the head bit 9, which this host does not know"},
        {"heads=33", "pairs.jsonl", "head 'hidden' cannot be planned"},
        {"heads=2049", "pairs.jsonl", "plans the head bit 11, which this host does not know"},
        {"heads=9", "pairs.jsonl", "head 'value', which rows of preferences cannot give"},
        {"source=2,heads=17", "texts.jsonl", "head 'score', which rows of text cannot give"},
        {"source=3,heads=8", "labeled.jsonl", "head 'value', which labeled rows cannot give"},
        {"epochs=2", "pairs.jsonl", "plans 2 epochs"},
        {"source=2,minibatches=3", "texts.jsonl", "plans 3 minibatches"},
        {"group=4", "pairs.jsonl", "plans groups of 4"},
        {"flags=2", "pairs.jsonl", "RLHF_PLAN_MINIBATCH_SCOPE"},
        {"flags=4", "pairs.jsonl", "RLHF_PLAN_RECOMPUTE_LOGP"},
        {"flags=16777216", "pairs.jsonl", "plans the flag bit 24, which"},
        {"flags=33554432", "pairs.jsonl", "plans the flag bit 25, which"},
        {"flags=4", "pairs.jsonl", "but lacks the function advantages()"},
        {"flags=256", "pairs.jsonl", "RLHF_PLAN_MISMATCHED, which rows of preferences cannot give"},
        {"source=1,flags=256", "pairs.jsonl", "RLHF_PLAN_MISMATCHED, which rollouts cannot give"},
        {"source=1,flags=512", "pairs.jsonl", "RLHF_PLAN_MARGINS, which rollouts cannot give"},
        {"flags=64", "pairs.jsonl", "RLHF_PLAN_GROUPS_TOGETHER, which rows of preferences cannot"},
        {"source=2,flags=2048", "texts.jsonl", "RLHF_PLAN_EACH_REWARD, which rows of text cannot"},
        {"carry=1", "pairs.jsonl", "advantages(), which fills them, is not called"},
        {"source=5,heads=17", "pairs.jsonl", "head 'score', which rows of completions cannot give"},
        {"flags=8192", "pairs.jsonl", "plans the flag bit 13, which this host does not know"},
        {"second=1", "pairs.jsonl", "source was 4, is 2"},
        {"second=2", "pairs.jsonl", "changes its plan when the rows are known: heads was 1, is 3"},
        {"second=3", "pairs.jsonl", "flags was 1, is 0"},
        {"second=4", "pairs.jsonl", "plans 2 epochs"},
        {"second=5", "pairs.jsonl", "plans 2 minibatches"},
        {"second=6", "pairs.jsonl", "plans groups of 2"},
        {"fresh=2", "pairs.jsonl", "plans resample_rounds, which replace groups of two or more"},
        {"source=1,fresh=2", "pairs.jsonl", "it has rollouts in groups of 1"},
        {"positive=plan", "pairs.jsonl", "plan(): it returned 3, which is not a valid status"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = e2e_run(t, FREE ":%s" ROWS "--data %s --set run.dir=x", cases[i].options,
                             cases[i].data);
        e2e_says(t, cases[i].says);
        assert_int_equal(status, strstr(cases[i].options, "positive") ? 1 : 2);
        assert_false(e2e_exists(t, "x"));
    }
}

static void a_positive_status_is_an_error(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, FREE ":positive=loss" PAIRS "--set run.dir=x"), 1);
    e2e_says(t, "loss(), phase 1: it returned 3, which is not a valid status");
    assert_int_equal(e2e_run(t, FREE ":positive=end" PAIRS "--set run.dir=y"), 1);
    e2e_says(t, "phase_end(), phase 1: it returned 3, which is not a valid status");
}

// If the plan requests a reference, the host adds the reference's log-probs to rows of every kind.
// They equal the log-probs of the policy in the first phase.
static void supervised_rows_get_a_reference(void **state) {
    struct e2e *t = *state;
    static const char *const source[] = {"4", "2", "3"};
    static const char *const data[] = {"pairs.jsonl", "texts.jsonl", "labeled.jsonl"};
    for (int k = 0; k < 3; k++)
        for (int heads = 1; heads <= 5; heads += 4) {
            assert_int_equal(e2e_run(t,
                                     "%s:source=%s,heads=%d" ROWS "--data %s --set run.dir=r%d%d",
                                     FREE, source[k], heads, data[k], k, heads),
                             0);
            char run[16];
            snprintf(run, sizeof run, "r%d%d", k, heads);
            json_t *m = e2e_metrics(t, run);
            assert_true(e2e_metric(m, 0, "test/ref") < -1);
            assert_true(e2e_metric(m, 0, "test/apart") == 0); // same weights, same bits
            assert_true(e2e_metric(m, 1, "test/apart") > 1e-3);
            if (k == 0 && heads == 1)
                assert_true(fabs(e2e_metric(m, 0, "test/loss") - log(2)) < 1e-6);
            if (heads == 5) {
                assert_true(fabs(e2e_metric(m, 0, "test/kl")) < 1e-4);
                assert_true(e2e_metric(m, 1, "test/kl") > 1e-4);
            }
            json_decref(m);
        }
    // If the flag is not set, no reference is opened or passed.
    assert_int_equal(e2e_run(t, FREE ":flags=0" PAIRS "--set run.dir=n"), 0);
    json_t *m = e2e_metrics(t, "n");
    assert_true(e2e_metric(m, 0, "test/ref") == 0);
    json_decref(m);
}

static void a_resumed_run_keeps_its_reference(void **state) {
    struct e2e *t = *state;
    const char *how = "--set run.phases=4 --set optim.schedule_phases=4";
    assert_int_equal(e2e_run(t, FREE ":heads=5" PAIRS "%s --set run.dir=a", how), 0);
    assert_int_equal(
        e2e_run(t, FREE ":heads=5" PAIRS "%s --set run.stop_after=2 --set run.dir=b", how), 0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/000004/model.safetensors "
                                  "b/checkpoints/000004/model.safetensors"),
                     0);
}

// Completions that are held out get the same rewards as the same responses in pairs.
static void held_out_completions_of_a_policy(void **state) {
    struct e2e *t = *state;
#define TRAINED(name)                                                                              \
    " --policy g/checkpoints/latest --set reference.path=f/checkpoints/latest --set batch.size=4 " \
    "--set optim.lr=1e-30 --set run.phases=1 --set log.progress=off --set run.dir=" name " "
    assert_int_equal(
        e2e_shell(t, "sed -E 's/^(.*), \"chosen\": (.*), \"rejected\": (.*)}$/"
                     "\\1, \"completion\": \\2, \"label\": true}\\n"
                     "\\1, \"completion\": \\3, \"label\": false}/' pairs.jsonl >singles.jsonl"),
        0);
    assert_int_equal(e2e_run(t, FREE PAIRS "--set run.dir=f"), 0);
    assert_int_equal(e2e_run(t, FREE " --policy f/checkpoints/latest --set batch.size=4 --data "
                                     "pairs.jsonl --set run.phases=10 --set optim.lr=0.01 --set "
                                     "log.progress=off --set run.dir=g"),
                     0);
    assert_int_equal(e2e_run(t, FREE TRAINED("h") "--data pairs.jsonl --set "
                                                  "data.eval_path=pairs.jsonl"),
                     0);
    assert_int_equal(e2e_run(t, LOOKS TRAINED("i") "--data singles.jsonl --set "
                                                   "data.eval_path=singles.jsonl"),
                     0);
    assert_int_equal(e2e_run(t, LOOKS TRAINED("j") "--data singles.jsonl --set "
                                                   "data.eval_path=singles.jsonl --set "
                                                   "data.eval_limit=1"),
                     0);
    json_t *h = e2e_metrics(t, "h"), *i = e2e_metrics(t, "i"), *j = e2e_metrics(t, "j");
    const double pairs = e2e_metric(h, 0, "eval/margin"), singles = e2e_metric(i, 0, "eval/margin"),
                 wanted = e2e_metric(i, 0, "eval/wanted"),
                 unwanted = e2e_metric(i, 0, "eval/unwanted");
    if (!(fabs(pairs) > 0.1) || fabs(pairs - singles) > 1e-5 * fabs(pairs))
        fail_msg("margin %g of pairs, %g of completions", pairs, singles);
    assert_true(fabs(wanted - unwanted - singles) < 1e-9);
    assert_true(wanted > 0 && unwanted < 0);
    const json_t *one = json_array_get(j, 0);
    assert_non_null(json_object_get(one, "eval/wanted"));
    assert_null(json_object_get(one, "eval/unwanted"));
    assert_null(json_object_get(one, "eval/margin"));
    json_decref(h);
    json_decref(i);
    json_decref(j);
}

// advantages() gets the same batch that loss() learns from. The plugin (looks_first.c) checks this.
static void an_algorithm_looks_at_the_batch_first(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "answers.jsonl",
              "{\"prompt\": \"It was\", \"completion\": \" a fine film\", \"label\": true}\n"
              "{\"prompt\": \"I think\", \"completion\": \" not\", \"label\": false}\n"
              "{\"prompt\": \"The\", \"completion\": \" best\", \"label\": true}\n"
              "{\"prompt\": \"One\", \"completion\": \" of them\", \"label\": true}\n");
    for (int mismatched = 0; mismatched < 2; mismatched++)
        for (int cut = 0; cut < 2; cut++) { // one microbatch for all, and one per group
            char run[8];
            snprintf(run, sizeof run, "%d%d", mismatched, cut);
            assert_int_equal(e2e_run(t,
                                     LOOKS ":mismatched=%s" ROWS "--data answers.jsonl "
                                           "--set batch.microbatch_tokens=%d --set run.dir=%s",
                                     mismatched ? "true" : "false", cut ? 1 : 4096, run),
                             0);
            json_t *m = e2e_metrics(t, run);
            for (int phase = 0; phase < 2; phase++) {
                assert_true(e2e_metric(m, phase, "test/looked") == 1);
                assert_true(e2e_metric(m, phase, "test/wanted") == 3);
                assert_true(e2e_metric(m, phase, "test/other") == (mismatched ? 4 : 0));
                assert_true(e2e_metric(m, phase, "test/checked") >= 6);
            }
            json_decref(m);
        }
    assert_int_equal(e2e_shell(t, "cmp 00/checkpoints/latest/model.safetensors "
                                  "10/checkpoints/latest/model.safetensors"),
                     0); // masked rows do not train
    assert_int_equal(e2e_run(t, LOOKS ":mismatched=true" ROWS "--data answers.jsonl --set "
                                      "data.limit=1 --set run.dir=x"),
                     2);
    e2e_says(t, "one row is left");
    assert_int_equal(e2e_run(t, LOOKS ROWS "--data pairs.jsonl --set run.dir=x"), 2);
    e2e_says(t, "pairs.jsonl:1: the row has 'chosen'; a row of one 'completion' with a 'label' is "
                "expected");
}

// With responses, the algorithm also gets the tokens and the data rows of their prompts.
static void an_algorithm_sees_what_it_is_paid_for(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "sums.jsonl",
              "{\"prompt\": \"It was\", \"answer\": 1}\n{\"prompt\": \"I think\", \"answer\": 2}\n"
              "{\"prompt\": \"The\", \"answer\": 4}\n{\"prompt\": \"One\", \"answer\": 8}\n");
    assert_int_equal(e2e_run(t, LOOKS ":source=1 --reward period_count.so --prompts sums.jsonl "
                                      "--set sampling.max_new_tokens=4" ROWS "--set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "test/answers") == 15);
    assert_true(e2e_metric(m, 1, "test/answers") == 15);
    assert_true(e2e_metric(m, 0, "test/checked") >= 4);
    json_decref(m);
}

// Held-out preferences are measured for policies too.
static void held_out_preferences_of_a_policy(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, FREE PAIRS "--set data.eval_path=pairs.jsonl --set run.phases=30 "
                                           "--set data.eval_every=1 --set run.dir=d"),
                     0);
    json_t *m = e2e_metrics(t, "d");
    assert_true(e2e_metric(m, 29, "eval/accuracy") == 1);
    assert_true(e2e_metric(m, 29, "eval/margin") > 1);
    assert_true(e2e_metric(m, 29, "eval/margin") > e2e_metric(m, 0, "eval/margin"));
    json_decref(m);
    assert_int_equal(e2e_run(t, FREE ":flags=0" PAIRS "--set data.eval_path=pairs.jsonl "
                                     "--set run.dir=e"),
                     0);
    m = e2e_metrics(t, "e");
    assert_true(e2e_metric(m, 1, "eval/margin") < 1e3);
    json_decref(m);
}

// ---- functions that a use needs ---------------------------------------------------------------

static void missing_functions_are_named(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t,
                             FREE ":source=1 --reward period_count.so --prompts prompts.txt " ROWS
                                  "--set run.dir=x"),
                     2);
    e2e_says(t, "plans rollouts, but lacks the function advantages()");
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl " ROWS "--set run.dir=r"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL r/checkpoints/latest mute; "
                                  "sed -i 's/\"gpt2\"/\"mute_model\"/' mute/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy mute --dry-run"), 2);
    e2e_says(t, "mute_model.so lacks the function backward(), which a model that is "
                "trained needs");
    assert_int_equal(e2e_run(t, "generate --model mute --prompt It"), 2);
    e2e_says(t, "mute_model.so offers to generate text, but lacks the function "
                "gen_open()");
    assert_int_equal(e2e_run(t, "plugin info \"$RLHF_TEST_PLUGINS/half_model.so\""), 2);
    e2e_says(t,
             "org.rlhf-host.test.mute has gen_open() but lacks the required function gen_step()");
    assert_int_equal(
        e2e_shell(
            t, "sed -i 's/\"model_type\"/\"tensors\": -5, &/; s/mute_/quiet_/' mute/config.json"),
        0);
    assert_int_equal(e2e_run(t, "generate --model mute --prompt It"), 2);
    e2e_says(t, "quiet_model.so, info(): ");
    e2e_says(t, "-5 parameters");
}

// The host passes the reference's instance to the policy's plugin, so the same plugin must open
// both.
static void a_reference_of_another_family_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl " ROWS "--set run.dir=r"), 0);
    // A model without parameters: a file without tensors.
    assert_int_equal(e2e_shell(t, "cp -rL r/checkpoints/latest mute; printf "
                                  "'\\2\\0\\0\\0\\0\\0\\0\\0{}' >mute/model.safetensors; "
                                  "sed -i 's/\"gpt2\"/\"quiet_model\"/' mute/config.json"),
                     0);
    assert_int_equal(e2e_run(t, FREE ":heads=5" PAIRS "--set reference.path=mute --dry-run"), 2);
    e2e_says(t, "the full KL needs a reference of the policy's family");
    assert_int_equal(e2e_run(t, FREE PAIRS "--set reference.path=mute --dry-run"), 0);
    assert_int_equal(e2e_shell(t, "sed -i 's/\"model_type\"/\"says_logp\": 0, &/' "
                                  "mute/config.json"),
                     0);
    assert_int_equal(e2e_run(t, FREE PAIRS "--set reference.path=mute --dry-run"), 2);
    e2e_says(t, "the reference '");
    e2e_says(t, "gives no log-probs");
}

// The loss that trains a run's reward model is built into the host. The host does not open a file
// bradley_terry.so, even if the search path contains one.
static void the_loss_of_pairs_is_no_plugin(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo bradley_terry.so --data pairs.jsonl " ROWS
                                "--set score.calibrate=0 --set run.dir=rm"),
                     0);
    int status = e2e_shell(t, "mkdir own; cp \"$RLHF_TEST_PLUGINS/../plugins/algo.so\" "
                              "own/bradley_terry.so; RLHF_PLUGIN_PATH=$PWD/own \"$HOST\" --algo "
                              "grpo_iterative.so:replay=true,group_size=2 --judge "
                              "\"$RLHF_TEST_PLUGINS/even_judge.so\" --reward "
                              "bt_rm.so:model=rm/checkpoints/latest --prompts prompts.txt "
                              "--threads 1" ROWS "--dry-run");
    e2e_says(t, "dry run: all is set up");
    assert_int_equal(status, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(what_cannot_be_given_is_refused),       T(a_positive_status_is_an_error),
        T(supervised_rows_get_a_reference),       T(a_resumed_run_keeps_its_reference),
        T(held_out_preferences_of_a_policy),      T(missing_functions_are_named),
        T(held_out_completions_of_a_policy),      T(a_reference_of_another_family_is_refused),
        T(the_loss_of_pairs_is_no_plugin),        T(an_algorithm_looks_at_the_batch_first),
        T(an_algorithm_sees_what_it_is_paid_for),
    };
    return cmocka_run_group_tests_name("e2e_contract", tests, NULL, NULL);
}
