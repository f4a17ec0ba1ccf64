// test_e2e_commands.c: generate and eval on a checkpoint.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void make_checkpoint(struct e2e *t) {
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --data texts.jsonl "
                                "--set policy.init=random --set batch.size=8 --set optim.lr=0.01 "
                                "--set run.phases=8 --set run.dir=s"),
                     0);
}

static void generate_is_a_function_of_the_seed(void **state) {
    struct e2e *t = *state;
    make_checkpoint(t);
    const char *run = "generate --model s/checkpoints/latest --prompt 'It was' --n 3 --max-new 12 "
                      "--temperature 0.8";
    char first[sizeof t->out];
    assert_int_equal(e2e_run(t, "%s --seed 5", run), 0);
    snprintf(first, sizeof first, "%s", t->out);
    assert_int_equal(strncmp(first, "It was", 6), 0);
    assert_int_equal(e2e_run(t, "%s --seed 5 --threads 2", run), 0);
    assert_string_equal(t->out, first);
    assert_int_equal(e2e_run(t, "%s --seed 6", run), 0);
    assert_string_not_equal(t->out, first);
    assert_int_equal(e2e_run(t, "%s --seed 5 --min-p 1", run), 0); // only the most likely token
    snprintf(first, sizeof first, "%s", t->out);
    assert_int_equal(e2e_run(t, "%s --seed 6 --min-p 1", run), 0);
    assert_string_equal(t->out, first);
    assert_int_equal(e2e_run(t, "%s --seed 5 --max-new 100", run), 2);
    e2e_says(t, "context");
    assert_int_equal(e2e_run(t, "generate --model nowhere --prompt a"), 2);
    e2e_says(t, "nowhere");
}

static void eval_judges_responses(void **state) {
    struct e2e *t = *state;
    make_checkpoint(t);
    assert_int_equal(e2e_run(t, "eval --model s/checkpoints/latest --data prompts.txt "
                                "--reward period_count.so --reference s/checkpoints/latest --n 24 "
                                "--set sampling.max_new_tokens=10 --json"),
                     0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    assert_int_equal(json_integer_value(json_object_get(v, "samples")), 24);
    assert_true(json_number_value(json_object_get(v, "kl")) == 0); // the model against itself
    double distinct = json_number_value(json_object_get(v, "distinct_3"));
    assert_true(distinct > 0 && distinct <= 1);
    json_decref(v);
}

static double number(json_t *v, const char *a, const char *b, const char *c) {
    v = json_object_get(v, a);
    if (b) v = json_object_get(v, b);
    if (c) v = json_object_get(v, c);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

// `eval` takes several files, several responses per prompt and a second model, and stores its
// results in the run.
static void eval_compares_and_stores(void **state) {
    struct e2e *t = *state;
    make_checkpoint(t);
    e2e_write(t, "few.txt", "the cat\na dog\nthe end\n");
    const char *eval = "eval --model s/checkpoints/latest --reward period_count.so "
                       "--set sampling.max_new_tokens=10";
    assert_int_equal(e2e_shell(t, "printf '{\"cut\": of' >s/evaluations.jsonl"), 0);
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" %s --data few.txt --data prompts.txt --per-prompt 4 "
                               "--pass 0 --compare s/checkpoints/latest --save --json 2>log",
                               eval),
                     0);
    json_t *v = json_loads(t->out, 0, NULL), *sets = json_object_get(v, "sets");
    assert_int_equal(json_array_size(sets), 2);
    json_t *few = json_array_get(sets, 0);
    assert_string_equal(json_string_value(json_object_get(few, "data")), "few.txt");
    assert_int_equal(json_integer_value(json_object_get(few, "samples")), 12);
    assert_int_equal(json_integer_value(json_object_get(few, "prompts")), 3);
    assert_true(number(few, "correct", NULL, NULL) == 1); // no reward is below 0
    assert_true(number(few, "pass", "4", "mean") == 1 && number(few, "pass", "4", "error") == 0);
    assert_true(number(few, "pass", "2", "mean") == 1);
    assert_true(isnan(number(few, "pass", "3", "mean")));
    // Both models are the same and get the same prompts with the same seed, so nothing differs.
    assert_true(number(few, "difference", "reward", "mean") == 0);
    assert_true(number(few, "difference", "reward", "error") == 0);
    assert_true(number(few, "reward", NULL, NULL) ==
                number(json_object_get(few, "compare"), "reward", NULL, NULL));
    json_decref(v);
    assert_int_equal(
        e2e_shell(t, "echo '{\"model\": \"x/000008\", \"data\": \"odd\", \"compare\": {}}' "
                     ">>s/evaluations.jsonl; \"$HOST\" export s --to exported"),
        0);
    e2e_says(t, "evaluations.jsonl: 1 line cannot be read");
    assert_int_equal(e2e_shell(t, "grep -c '\"right_from\": 0' s/evaluations.jsonl"), 0);
    e2e_says(t, "2");
    assert_int_equal(e2e_shell(t, "cat exported/README.md"), 0);
    e2e_says(t, "## Evaluation");
    e2e_says(t, "few.txt`, 12 responses to 3 prompts (4 to each), seed 1, right from a "
                "reward of 0, compared with `");
    e2e_says(t, "| pass@4 | 1.0000 (0.0000) | 1.0000 (0.0000) | +0.0000 (0.0000) |");
    assert_int_equal(e2e_run(t, "%s --data few.txt --per-prompt 2 --n 4", eval), 2);
    e2e_says(t, "give one of them");
    assert_int_equal(e2e_run(t, "%s --data few.txt --compare s/checkpoints/latest", eval), 0);
    e2e_says(t, "A - B");
    assert_int_equal(e2e_run(t, "eval --model s/checkpoints/latest --data texts.jsonl --save"), 2);
    e2e_says(t, "--save has no effect without --reward, whose results it stores; --json prints");
    assert_int_equal(
        e2e_run(t, "eval --model s/checkpoints/latest --data texts.jsonl --compare base"), 2);
    e2e_says(t, "whose scores it compares; on rows of texts, labels or preferences run eval once");
}

// --max-new, --temperature and --greedy are the settings of the same meaning.
static void eval_decodes_as_generate(void **state) {
    struct e2e *t = *state;
    make_checkpoint(t);
    const char *eval =
        "\"$HOST\" eval --model s/checkpoints/latest --reward period_count.so --data "
        "prompts.txt --n 8 --json 2>>log";
    if (e2e_shell(t,
                  "%s --max-new 7 --greedy >a.txt && %s --set sampling.max_new_tokens=7 --set "
                  "sampling.top_k=1 >b.txt && cmp a.txt b.txt && %s --max-new 7 --temperature 0.5 "
                  ">c.txt && %s --set sampling.max_new_tokens=7 --set sampling.temperature=0.5 "
                  ">d.txt && cmp c.txt d.txt && ! cmp -s a.txt c.txt || { cat log; exit 1; }",
                  eval, eval, eval, eval))
        fail_msg("%s", t->out);
    assert_int_equal(e2e_run(t, "eval --model s/checkpoints/latest --reward period_count.so --data "
                                "prompts.txt --greedy --temperature 2"),
                     2);
    e2e_says(t, "eval: --temperature has no effect with --greedy");
    assert_int_equal(e2e_run(t, "eval --model s/checkpoints/latest --data texts.jsonl --greedy"),
                     2);
    e2e_says(t, "eval: --greedy has no effect without --reward");
}

// If the output could not be written, the command fails, both with text and with JSON output.
static void eval_notices_a_full_disk(void **state) {
    struct e2e *t = *state;
    make_checkpoint(t);
    const char *eval = "\"$HOST\" eval --model s/checkpoints/latest";
    assert_int_equal(e2e_shell(t, "%s --data texts.jsonl >/dev/full", eval), 1);
    e2e_says(t, "cannot write to standard output");
    assert_int_equal(e2e_shell(t, "%s --data texts.jsonl --json >/dev/full", eval), 1);
    assert_int_equal(e2e_shell(t,
                               "%s --data prompts.txt --reward period_count.so --n 2 "
                               "--set sampling.max_new_tokens=4 >/dev/full",
                               eval),
                     1);
}

static void eval_names_a_bad_label(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo classify.so --policy model --data labeled.jsonl "
                                "--set policy.init=random --set run.phases=1 --set batch.size=4 "
                                "--set run.dir=c"),
                     0);
    e2e_write(t, "three.jsonl",
              "{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\", \"label\": 2}\n");
    assert_int_equal(e2e_run(t, "eval --model c/checkpoints/latest --data three.jsonl"), 2);
    e2e_says(t, "three.jsonl:2");
}

static void one_row_is_no_rows(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "one.jsonl", "{\"text\": \"It was a film.\"}\n");
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --data one.jsonl --set "
                                "data.eval_path=one.jsonl --set policy.init=random "
                                "--set batch.size=1 --set run.phases=1 --set run.dir=o"),
                     0);
    e2e_says(t, "data: 1 row, 1 sequence of ");
    e2e_says(t, " after 1 phase\n");
    assert_int_equal(e2e_run(t, "eval --model o/checkpoints/latest --data one.jsonl"), 0);
    e2e_says(t, "(1 row, ");
}

// The list has one line for each id, even if several files have that id.
static void the_list_names_an_id_in_many_files_once(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t,
                               "mkdir -p p/rewards && for i in 1 2 3 4; do cp "
                               "$RLHF_TEST_PLUGINS/even_judge.so p/rewards/j$i.so; done; "
                               "RLHF_PLUGIN_PATH=$PWD/p \"$HOST\" plugin list 2>log; cat log; "
                               "[ $(grep -c 'is in 4 files' log) = 1 ] && [ $(wc -l <log) = 1 ]"),
                     0);
    e2e_says(t, "p/rewards/j1.so, ");
    e2e_says(t, "p/rewards/j4.so");
}

// eval warns about a reward model if its scores are far from the scale to which gain and bias were
// fitted. It does not warn right after gain and bias were fitted.
static void a_reward_model_off_its_scale(void **state) {
    struct e2e *t = *state;
    static const char run[] =
        "\"$HOST\" --algo ppo.so --reward bt_rm.so%s --phases 1 --set batch.size=32 "
        "--set sampling.max_new_tokens=24 --out %s 2>&1";
    assert_int_equal(e2e_shell(t, run, "", "a"), 0);
    assert_null(strstr(t->out, "begins at mean"));
    assert_int_equal(
        e2e_shell(t, "cp -rL \"$(dirname \"$HOST\")/../share/rlhf/models/reward_model\" m && "
                     "sed -i 's/\"bias\": *[-0-9.e]*/\"bias\": 5.0/' m/config.json && grep "
                     "'\"bias\": 5.0' m/config.json"),
        0);
    assert_int_equal(e2e_shell(t, run, ":model=m", "b"), 0);
    e2e_says(t, "warning: phase 1: Reward bt_rm begins at mean ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(generate_is_a_function_of_the_seed, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(eval_judges_responses, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(eval_compares_and_stores, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(eval_decodes_as_generate, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(eval_notices_a_full_disk, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(eval_names_a_bad_label, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_reward_model_off_its_scale, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(one_row_is_no_rows, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_list_names_an_id_in_many_files_once, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_commands", tests, NULL, NULL);
}
