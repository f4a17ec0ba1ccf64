// test_e2e_supervised.c: sft and classify as a user runs them, and the promise of equal bits.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SFT                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set data.long_rows=split --set batch.size=8 --set optim.lr=0.01 "                           \
    "--set optim.schedule_phases=16 --set batch.microbatch_tokens=200 "

static void sft_lowers_the_loss(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT
                             "--set run.phases=16 --set run.dir=a --set data.eval_path=texts.jsonl "
                             "--set data.eval_every=8"),
                     0);
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 16);
    double half = e2e_metric(rows, 7, "eval/bits_per_byte");
    double end = e2e_metric(rows, 15, "eval/bits_per_byte");
    assert_true(end < half);
    double first = e2e_metric(rows, 0, "objective/loss"),
           last = e2e_metric(rows, -1, "objective/loss");
    assert_true(fabs(first - log(260)) < 0.1); // a random model has learned nothing
    assert_true(last < 0.6 * first);
    assert_true(e2e_metric(rows, -1, "optim/grad_norm") > 0);
    assert_true(e2e_metric(rows, -1, "perf/mfu") > 0);
    json_decref(rows);
    assert_int_equal(e2e_run(t, "eval --model a/checkpoints/latest --data texts.jsonl --json"), 0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    double bits = json_number_value(json_object_get(v, "bits_per_byte"));
    json_decref(v);
    assert_true(bits == end);
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set run.phases=6 --set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, SFT "--set run.phases=6 --set run.dir=b --threads 2"), 0);
    assert_int_equal(e2e_run(t, SFT "--set run.phases=3 --set run.dir=c"), 0);
    assert_int_equal(e2e_run(t, "--resume c --set run.phases=6"), 0);
    assert_int_equal(e2e_run(t, SFT "--set run.phases=6 --set run.dir=d --seed 2"), 0);
    e2e_same_tree(t, "a/checkpoints/000006", "b/checkpoints/000006");
    e2e_same_tree(t, "a/checkpoints/000006", "c/checkpoints/000006");
    json_t *rows = e2e_metrics(t, "c");
    assert_int_equal(json_array_size(rows), 6);
    json_decref(rows);
    assert_int_not_equal(e2e_shell(t, "cmp a/checkpoints/000006/model.safetensors "
                                      "d/checkpoints/000006/model.safetensors"),
                         0);
}

static void muon_resumes_exactly_from_bf16(void **state) {
    struct e2e *t = *state;
    const char *how = "--set optim.kind=muon --set checkpoint.dtype=bf16 --set optim.muon_lr=0.02";
    assert_int_equal(e2e_run(t, SFT "%s --set run.phases=4 --set run.dir=a", how), 0);
    assert_int_equal(
        e2e_run(t, SFT "%s --set run.phases=4 --set run.stop_after=2 --set run.dir=b", how), 0);
    assert_true(e2e_exists(t, "b/checkpoints/000002/state/master.safetensors"));
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
}

// The log reports the tokens before and after a text. By default, a text begins as the tokenizer
// says, and the checkpoint's tokenizer says what the setting said.
static void around_texts(void **state) {
    struct e2e *t = *state;
    static const char both[] =
        " texts: BOS \"<|endoftext|>\" before, EOS \"<|endoftext|>\" after\n";
    assert_int_equal(e2e_run(t, SFT "--dry-run"), 0);
    e2e_says(t, " texts: no BOS before, EOS \"<|endoftext|>\" after\n");
    assert_int_equal(
        e2e_run(t, SFT "--set run.phases=1 --set run.dir=a --set prompts.prepend_bos=true"), 0);
    e2e_says(t, both);
    assert_int_equal(e2e_run(t, "--algo sft.so --policy a --data texts.jsonl --dry-run"), 0);
    e2e_says(t, both);
    assert_int_equal(e2e_run(t, "--algo sft.so --policy models/arith --data texts.jsonl --dry-run "
                                "--set batch.size=8"),
                     0);
    e2e_says(t, " texts: no BOS before, EOS \"<|endoftext|>\" after\n");
    const char *draws = "--algo ppo.so --policy model --set policy.init=random --prompts "
                        "prompts.txt --reward period_count.so --phases 1 --dry-run";
    assert_int_equal(e2e_run(t, "%s", draws), 0);
    e2e_says(t, " texts: no BOS before\n");
    assert_int_equal(e2e_run(t, "%s --set prompts.prepend_bos=true", draws), 0);
    e2e_says(t, " texts: BOS \"<|endoftext|>\" before\n");
    assert_int_equal(e2e_run(t, "%s --policy a --set prompts.prepend_bos=false", draws), 0);
    e2e_says(t, " texts: no BOS before\n");
}

// Every command that takes a model finds the program's own models from any directory.
static void models_of_the_program(void **state) {
    struct e2e *t = *state;
    static const char *const args[] = {
        "eval --model models/arith --data texts.jsonl",
        "eval --model models/arith --reference models/arith --data pairs.jsonl",
        "generate --model models/policy --prompt It --max-new 2",
        "label --model models/classifier --data texts.jsonl --out l.jsonl",
        "pairs --model models/policy --prompts prompts.txt --judge period_count.so --out p.jsonl "
        "--set sampling.max_new_tokens=40",
        "export models/policy --to exported"};
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n");
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        if (e2e_shell(t, "\"$HOST\" %s", args[i]) != 0) fail_msg("%s: %s", args[i], t->out);
}

// A label covers a whole text, so a long row is not split but truncated. Truncated rows are
// counted.
static void long_rows_of_a_classifier(void **state) {
    struct e2e *t = *state;
#define CLASSIFY                                                                                   \
    "--algo classify.so --policy model --set policy.init=random --data labeled.jsonl "             \
    "--set batch.size=8 --set run.phases=1 --set data.max_tokens=10 "
    assert_int_equal(e2e_run(t, CLASSIFY "--set data.long_rows=split --set run.dir=s"), 2);
    e2e_says(t, "data.long_rows is split, but classify.so trains on whole rows; truncate is "
                "allowed");
    assert_false(e2e_exists(t, "s"));
    assert_int_equal(e2e_run(t, CLASSIFY "--set run.dir=c"), 0);
    e2e_says(t, "data: 64 rows, 64 sequences of 632 tokens in all; 48 were cut to 10 tokens");
}

static void classify_learns_and_names_its_labels(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo classify.so --policy model --data labeled.jsonl "
                                "--set policy.init=random --set score.labels=NEGATIVE,POSITIVE "
                                "--set score.pooling=mean --set batch.size=16 --set optim.lr=0.01 "
                                "--set run.phases=30 --set run.dir=c"),
                     0);
    json_t *rows = e2e_metrics(t, "c");
    assert_true(e2e_metric(rows, -1, "objective/loss") < 0.4);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "grep -q GPT2ForSequenceClassification "
                                  "c/checkpoints/latest/config.json && "
                                  "grep -q '\"add_bos_token\": true' "
                                  "c/checkpoints/latest/tokenizer_config.json"),
                     0);
    assert_int_equal(e2e_run(t, "eval --model c/checkpoints/latest --data labeled.jsonl --json"),
                     0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    assert_true(json_number_value(json_object_get(v, "accuracy")) > 0.9);
    json_decref(v);
}

static void epochs_decide_the_phases(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set data.epochs=1.5 --set data.long_rows=truncate "
                                    "--set run.dir=e"),
                     0);
    json_t *rows = e2e_metrics(t, "e");
    assert_int_equal(json_array_size(rows), 12); // 1.5 * 64 rows / 8
    assert_true(fabs(e2e_metric(rows, -1, "epoch") - 1.5) < 1e-9);
    json_decref(rows);
}

// Checks rows of a prompt and a completion. For rows in the format of another tool, the message
// prints a command that converts the rows. This test runs that command if jq is installed.
static void prompts_and_completions(void **state) {
    struct e2e *t = *state;
    static const char sft[] = "--algo sft.so --policy model --set policy.init=random --set "
                              "batch.size=2 --set run.phases=2 --set prompts.prepend_bos=true ";
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"It was\", \"completion\": \" good.\"}\n{\"text\": \"The film\"}\n");
    assert_int_equal(
        e2e_run(
            t,
            "%s--data rows.jsonl --set data.eval_path=rows.jsonl --set data.eval_every=1 --out a",
            sft),
        0);
    assert_int_equal(e2e_run(t, "eval --model a --data rows.jsonl --json"), 0);
    // In the first row, only the text " good." has a loss. In the second row, the whole row has a
    // loss.
    e2e_says(t, "\"rows\": 2, \"tokens\": 14, \"bytes\": 14");
    static const struct {
        const char *name, *row, *jq, *converted;
    } others[] = {
        {"alpaca",
         "{\"instruction\": \"Add.\", \"input\": \"1 2\", \"output\": \"3\"}\n"
         "{\"instruction\": \"Wait.\", \"input\": \"\", \"output\": \"I do.\"}",
         "jq -c '{prompt: (.instruction",
         "{\"prompt\":\"Add.\\n\\n1 2\\n\\n\",\"completion\":\"3\"}\n"
         "{\"prompt\":\"Wait.\\n\\n\",\"completion\":\"I do.\"}\n"},
        {"sharegpt",
         "{\"conversations\": [{\"from\": \"human\", \"value\": \"Hi\"}, {\"from\": \"gpt\", "
         "\"value\": \"Ho\"}]}",
         "jq -c '{messages: [.conversations[]",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\","
         "\"content\":\"Ho\"}]}\n"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        e2e_write(t, "FILE", others[i].row);
        assert_int_equal(e2e_run(t, "%s--data FILE --out %s", sft, others[i].name), 2);
        e2e_says(t, others[i].jq);
        const char *from = strstr(t->out, "jq -c"), *to = from ? strstr(from, " FILE") : NULL;
        assert_non_null(to);
        char command[600];
        snprintf(command, sizeof command, "%.*s FILE", (int)(to - from), from);
        e2e_write(t, "convert.sh", command);
        if (e2e_shell(t, "command -v jq") != 0) continue;
        assert_int_equal(e2e_shell(t, "sh convert.sh >converted.jsonl && cat converted.jsonl"), 0);
        assert_string_equal(t->out, others[i].converted);
        assert_int_equal(e2e_run(t,
                                 "%s--data converted.jsonl --set prompts.template=plain --out %s",
                                 sft, others[i].name),
                         0);
    }
    static const char *const bad[][2] = {
        {"{\"completion\": \"x\"}", "FILE:1: the row has a 'completion' but no field 'prompt'"},
        {"{\"prompt\": \"x\", \"completion\": \"\"}", "FILE:1: field 'completion' is empty"},
        {"{\"prompt\": \"x\", \"completion\": null}",
         "FILE:1: field 'completion' is null, expected a text or messages"},
        {"{\"prompt\": \"x\", \"completion\": 3}",
         "field 'completion' is an integer, expected a string"},
        {"{\"prompt\": \"x\", \"completion\": []}",
         "field 'completion' is a list, expected a string"},
        {"{\"prompt\": 3, \"completion\": \"x\"}", "field 'prompt' is an integer"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e2e_write(t, "FILE", bad[i][0]);
        assert_int_equal(e2e_run(t, "%s--data FILE --out b", sft), 2);
        e2e_says(t, bad[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts_and_completions, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(sft_lowers_the_loss, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(muon_resumes_exactly_from_bf16, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(around_texts, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(models_of_the_program, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(long_rows_of_a_classifier, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(classify_learns_and_names_its_labels, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(epochs_decide_the_phases, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_supervised", tests, NULL, NULL);
}
