// test_hf_runs.c: a user's own directories, as transformers writes them (make_dirs.py), are used
// in runs of the program. Checks what the checkpoints record.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET "--set log.tensorboard=false --set log.samples_every=0 "
#define CLASSIFY                                                                                   \
    "--algo classify.so --data labeled.jsonl --set batch.size=8 --set run.phases=1 " QUIET

// The e2e directory with a link to the directories.
static int setup(void **state) {
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!build || e2e_setup(state) != 0) return -1;
    return e2e_shell(*state, "ln -s '%s/tests/hf/dirs' hf", build) ? -1 : 0;
}

static void must(struct e2e *t, int status, const char *what) {
    if (status) fail_msg("%s: exit %d\n%s", what, status, t->out);
}

// Returns config.json of a directory below t->dir as a new reference.
static json_t *config_of(struct e2e *t, const char *dir) {
    must(t, e2e_shell(t, "cat %s/config.json", dir), "cat");
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    return v;
}

static void has_text(json_t *config, const char *key, const char *want) {
    const char *got = json_string_value(json_object_get(config, key));
    if (!got ? want != NULL : !want || strcmp(got, want) != 0)
        fail_msg("%s is %s, expected %s", key, got ? got : "absent", want ? want : "nothing");
}

// Weights are written in f32 or bf16, whatever the dtype of the starting model.
static void the_dtype_is_that_of_the_file(void **state) {
    struct e2e *t = *state;
    static const char *const starts[] = {"hf/gpt2", "hf/gpt2-bf16", "hf/gpt2-classic-f16", "both"};
    must(t,
         e2e_shell(t, "cp -rL hf/gpt2-bf16 both && chmod -R u+w both && "
                      "sed -i 's/\"dtype\": \"bfloat16\"/\"torch_dtype\": \"bfloat16\", "
                      "\"dtype\": \"bfloat16\"/' both/config.json"),
         "copy");
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            must(t,
                 e2e_run(t,
                         "--algo sft.so --policy %s --data texts.jsonl --set batch.size=4 "
                         "--set checkpoint.dtype=%s --set run.phases=1 --out r%d%d " QUIET,
                         starts[i], half ? "bf16" : "f32", i, half),
                 starts[i]);
            char dir[64];
            snprintf(dir, sizeof dir, "r%d%d/checkpoints/latest", i, half);
            json_t *config = config_of(t, dir);
            const char *want = half ? "bfloat16" : "float32";
            has_text(config, "dtype", want);
            has_text(config, "torch_dtype", i == 3 ? want : NULL);
            json_decref(config);
        }
    must(t,
         e2e_run(t, "--algo sft.so --policy model --set policy.init=random --data texts.jsonl "
                    "--set batch.size=4 --set run.phases=1 --out own " QUIET),
         "a start that does not say");
    json_t *config = config_of(t, "own/checkpoints/latest");
    has_text(config, "dtype", NULL);
    has_text(config, "torch_dtype", NULL);
    json_decref(config);
}

// An export of a run has the dtype of the model from which the run began, also after a second run
// that began from a checkpoint of the first.
static void an_export_has_the_first_dtype(void **state) {
    struct e2e *t = *state;
    static const char *const starts[][3] = {{"hf/gpt2", "float32", "as f32"},
                                            {"hf/gpt2-bf16", "bfloat16", "as bf16"},
                                            {"hf/gpt2-classic-f16", "float16", "as f16"}};
    for (int i = 0; i < 3; i++) {
        for (int again = 0; again < 2; again++) {
            char name[16], from[64];
            snprintf(name, sizeof name, "r%d%d", i, again);
            snprintf(from, sizeof from, "r%d0/checkpoints/latest", i);
            must(t,
                 e2e_run(t,
                         "--algo sft.so --policy %s --data texts.jsonl --set batch.size=4 "
                         "--set run.phases=1 --out %s " QUIET,
                         again ? from : starts[i][0], name),
                 starts[i][0]);
            must(t, e2e_shell(t, "rm -rf e f && \"$HOST\" export %s --to e 2>&1", name), "export");
            e2e_says(t, starts[i][2]);
            json_t *config = config_of(t, "e");
            has_text(config, "dtype", starts[i][1]);
            has_text(config, "rlhf_first_dtype", NULL);
            json_decref(config);
            must(t, e2e_shell(t, "\"$HOST\" export %s --to f --dtype f32", name), "exact");
            config = config_of(t, "f");
            has_text(config, "dtype", "float32");
            json_decref(config);
        }
    }
}

static void check_labels(struct e2e *t, const char *dir, int n, const char *first) {
    json_t *config = config_of(t, dir);
    json_t *names = json_object_get(config, "id2label"), *ids = json_object_get(config, "label2id");
    assert_int_equal(json_object_size(names), n);
    assert_int_equal(json_object_size(ids), n);
    has_text(names, "0", first);
    assert_int_equal(json_integer_value(json_object_get(ids, first)), 0);
    json_decref(config);
}

static void classes_keep_their_names(void **state) {
    struct e2e *t = *state;
    must(t, e2e_run(t, CLASSIFY "--policy hf/distilbert --out a"), "named labels");
    check_labels(t, "a/checkpoints/latest", 3, "bad"); // though the rows have only two labels
    must(t, e2e_run(t, CLASSIFY "--policy hf/gpt2-classifier --out b"), "default labels");
    check_labels(t, "b/checkpoints/latest", 2, "LABEL_0");
    must(t, e2e_run(t, CLASSIFY "--policy hf/gpt2-classifier --set score.labels=no,yes --out c"),
         "labels given");
    check_labels(t, "c/checkpoints/latest", 2, "no");
    must(t, e2e_run(t, "--resume a --set run.phases=2"), "resume");
    check_labels(t, "a/checkpoints/latest", 3, "bad");
    e2e_write(t, "named.jsonl",
              "{\"text\": \"a\", \"label\": \"good\"}\n"
              "{\"text\": \"b\", \"label\": \"bad\"}\n");
    must(t, e2e_run(t, CLASSIFY "--policy hf/distilbert --data named.jsonl --out d"), "by name");
    e2e_write(t, "named.jsonl", "{\"text\": \"a\", \"label\": 3}\n");
    assert_int_equal(e2e_run(t, CLASSIFY "--policy hf/distilbert --data named.jsonl --out e"), 2);
    e2e_says(t, "named.jsonl:1: field 'label' is 3; allowed: 0 to 2");
}

// Further training does not change how a classifier reads texts, so nothing is recorded.
static void a_classifier_keeps_its_front(void **state) {
    struct e2e *t = *state;
    must(t, e2e_run(t, CLASSIFY "--policy hf/gpt2-classifier --out a"), "classify");
    must(t,
         e2e_shell(t, "cmp hf/gpt2-classifier/tokenizer.json a/checkpoints/latest/tokenizer.json"),
         "the same tokenizer");
    must(t, e2e_run(t, CLASSIFY "--policy hf/gpt2 --out b"), "classify from a language model");
    must(t,
         e2e_shell(t, "grep -q '\"SpecialToken\"' b/checkpoints/latest/tokenizer.json && "
                      "cmp hf/gpt2/tokenizer_config.json "
                      "b/checkpoints/latest/tokenizer_config.json"),
         "a record in tokenizer.json");
    must(t, e2e_run(t, CLASSIFY "--policy b/checkpoints/latest --out c"), "classify further");
    must(
        t,
        e2e_shell(t, "cmp b/checkpoints/latest/tokenizer.json c/checkpoints/latest/tokenizer.json"),
        "the same record");
}

// ---- several end tokens ----

// Checks the rows of a JSON Lines file below t->dir. Each response either ends at its first end
// token (an id below `ends`) and is marked as finished, or has `most` tokens without an end token.
// Returns how many responses ended.
static int ended_rows(struct e2e *t, const char *name, int ends, size_t most) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", name);
    int ended = 0, rows = 0;
    for (json_t *row; (row = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL));
         json_decref(row)) {
        const json_t *ids = json_object_get(row, "ids");
        const size_t from = (size_t)json_integer_value(json_object_get(row, "prompt_length"));
        const size_t n = json_array_size(ids);
        const int finished = json_is_true(json_object_get(row, "finished"));
        if (!ids) continue; // a minibatch of rollouts.jsonl
        for (size_t k = from; k < n; k++) {
            const int end = json_integer_value(json_array_get(ids, k)) < ends;
            if (end != (finished && k + 1 == n)) fail_msg("%s: row %d, token %zu", name, rows, k);
        }
        if (!finished) assert_int_equal(n - from, most);
        ended += finished;
        rows++;
    }
    fclose(f);
    assert_true(rows >= 24);
    return ended;
}

// Every id of eos_token_id in config.json and generation_config.json ends a text.
static void several_end_tokens(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_shell(t,
                   "cp -rL hf/gpt2 chat && chmod -R u+w chat && "
                   "sed -i 's/\"eos_token_id\": 0/\"eos_token_id\": [1, 2]/' chat/config.json && "
                   "echo '{\"eos_token_id\": [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], "
                   "\"temperature\": 0.1}' > chat/generation_config.json"),
         "copy");
    must(t,
         e2e_shell(t,
                   "$HOST generate --model chat --prompt The --n 48 --max-new 9 --json > a.jsonl"),
         "generate");
    assert_in_range(ended_rows(t, "a.jsonl", 16, 9), 5, 43);
    must(t,
         e2e_shell(t, "$HOST generate --model chat --prompt The --n 48 --max-new 9 --json "
                      "--ignore-eos | grep -c '\"finished\": false' | grep -x 48"),
         "--ignore-eos");
    static const char *const ways[] = {"stop_at_eos=true", "stop_at_eos=false"};
    for (int i = 0; i < 2; i++) {
        char file[64];
        must(t,
             e2e_run(t,
                     "--algo ppo.so --policy chat --prompts prompts.txt --reward period_count.so "
                     "--set batch.size=24 --set sampling.max_new_tokens=9 --set sampling.%s "
                     "--set response.truncate=stop --set run.phases=1 --set log.rollouts=true "
                     "--out p%d " QUIET,
                     ways[i], i),
             ways[i]);
        snprintf(file, sizeof file, "p%d/rollouts.jsonl", i);
        const int ended = ended_rows(t, file, 16, 9);
        assert_in_range(ended, 3, 21);
        snprintf(file, sizeof file, "p%d", i);
        json_t *metrics = e2e_metrics(t, file);
        assert_int_equal((int)e2e_metric(metrics, 0, "val/num_stop_token_ids"), ended);
        json_decref(metrics);
    }
}

// Runs `generate` with hf/gpt2-bf16 or a checkpoint of it, and checks that it samples only the 290
// tokens of that model.
static void draws_tokens(struct e2e *t, const char *model) {
    must(t,
         e2e_shell(t,
                   "$HOST generate --model %s --prompt The --n 48 --max-new 20 --json "
                   "--ignore-eos > a.jsonl",
                   model),
         model);
    char path[512];
    snprintf(path, sizeof path, "%s/a.jsonl", t->dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    int drawn = 0;
    for (json_t *row; (row = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL));
         json_decref(row)) {
        const json_t *id;
        size_t k;
        json_array_foreach(json_object_get(row, "ids"), k, id) {
            if (json_integer_value(id) >= 290) fail_msg("id %d", (int)json_integer_value(id));
            drawn++;
        }
    }
    fclose(f);
    assert_true(drawn > 48 * 20);
}

// The embedding of hf/gpt2-bf16 has 320 rows for 290 tokens. With random weights, the 30 rows of
// padding have a tenth of the probability. No padding is sampled, and training reproduces the
// log-probs of samples. The softmax of sft.so includes the padding, but the trained model does not
// sample it either.
static void padding_is_never_drawn(void **state) {
    struct e2e *t = *state;
    draws_tokens(t, "hf/gpt2-bf16");
    must(t,
         e2e_run(t, "--algo sft.so --policy hf/gpt2-bf16 --data texts.jsonl --set run.phases=1 "
                    "--set batch.size=4 --set optim.lr=1e-6 --out s " QUIET),
         "sft");
    draws_tokens(t, "s/checkpoints/latest");
    static const char *const how[] = {
        "--algo ppo.so --set algo.kl_estimator=full --set algo.kl_placement=loss",
        "--algo grpo.so --set algo.logprob_support=sampled --set sampling.top_k=7"};
    for (int i = 0; i < 2; i++) {
        must(t,
             e2e_run(t,
                     "%s --policy hf/gpt2-bf16 --prompts prompts.txt --reward period_count.so "
                     "--set batch.size=24 --set sampling.max_new_tokens=9 --set run.phases=2 "
                     "--out p%d " QUIET,
                     how[i], i),
             how[i]);
        char run[16];
        snprintf(run, sizeof run, "p%d", i);
        json_t *metrics = e2e_metrics(t, run);
        assert_true(e2e_metric(metrics, 0, "sampling/logp_difference/max") == 0);
        json_decref(metrics);
    }
    // The checkpoint needs these rows, so they are kept.
    must(t, e2e_shell(t, "$HOST generate --model p0/checkpoints/latest --prompt The"), "again");
}

static void refused(struct e2e *t, const char *args, const char *why) {
    int status = e2e_run(t, "%s", args);
    if (status != 2) fail_msg("%s: exit %d\n%s", args, status, t->out);
    e2e_says(t, why);
}

// A model that cannot generate is refused with a message, whichever head was requested first.
static void an_encoder_writes_nothing(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_shell(t, "cp -rL hf/distilbert enc && chmod -R u+w enc && "
                      "sed -i s/ForSequenceClassification/ForMaskedLM/ enc/config.json"),
         "copy");
    refused(t, "--algo ppo.so --reward period_count.so --policy enc --out a",
            "/enc': model distilbert.so: an encoder reads whole texts and "
            "cannot write them, so it has no value head; give a language model");
    const char *words = "/enc' is an encoder (model_type distilbert): it reads whole texts and "
                        "cannot write them; give a language model";
    refused(t, "--algo grpo.so --reward period_count.so --policy enc --out a", words);
    refused(t, "--algo sft.so --data texts.jsonl --policy enc --out a", words);
    refused(t, "generate --model enc --prompt a", words);
    assert_false(e2e_exists(t, "a"));
}

static void other_architectures(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "model/config.json",
              "{\"model_type\": \"bloom\", \"architectures\": [\"BloomForCausalLM\"]}\n");
    refused(t, "generate --model model --prompt a",
            "model/config.json: model_type 'bloom' is not supported; supported: ");
}

// The CPU backend does not support heads that are 4 wide. Each command says so before it computes
// anything, the dry run too. The reference backend supports them.
static void a_width_of_heads_is_asked_for(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_shell(t, "cp -rL hf/gpt2 narrow && chmod -R u+w narrow && "
                      "sed -i 's/\"n_head\": 2/\"n_head\": 4/' narrow/config.json"),
         "copy");
    const char *words = "/narrow': model gpt2.so: attention: head_dim is 4 (config.json: head_dim, "
                        "else the hidden size divided by the number of heads), supported are "
                        "multiples of 8 up to 512; the backend 'reference' is slow but supports "
                        "every width";
    const char *run = "--algo grpo.so --reward period_count.so --policy narrow --phases 1 --out a";
    char args[512];
    snprintf(args, sizeof args, "%s --set compute.backend=cpu --dry-run", run);
    refused(t, args, words);
    snprintf(args, sizeof args, "%s --set compute.backend=cpu", run);
    refused(t, args, words);
    refused(t, "generate --model narrow --prompt a --backend cpu", words);
    refused(t, "eval --model narrow --data texts.jsonl --backend cpu", words);
    assert_false(e2e_exists(t, "a"));
    must(t, e2e_run(t, "%s --set compute.backend=reference --dry-run", run), "reference");
}

// An adapter with tokenizer files of its own, but without a chat template, hides the template of
// its base. A line says so.
static void an_adapter_hides_a_template(void **state) {
    struct e2e *t = *state;
    const char *line = "warning: the chat template of the base '";
    must(t, e2e_shell(t, "cp -rL hf/gpt2 gpt2 && chmod -R u+w gpt2"), "copy");
    must(t,
         e2e_run(t, "--algo sft.so --policy gpt2 --data texts.jsonl --phases 1 --set batch.size=4 "
                    "--set policy.adapter.rank=2 --out r0 " QUIET),
         "an adapter");
    e2e_write(t, "gpt2/chat_template.jinja",
              "{% for m in messages %}<{{ m.content }}>{% endfor %}");
    must(t, e2e_shell(t, "cp -rL r0/checkpoints/latest own && rm -r r0 own/state && echo a >a.txt"),
         "copy");
    const char *const commands[] = {
        "generate --model own --prompt a --max-new 1", "tokenize --model own --data a.txt",
        "--algo sft.so --policy own --data texts.jsonl --phases 1 --set batch.size=4 --out r"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        must(t, e2e_shell(t, "\"$HOST\" %s", commands[i]), commands[i]);
        e2e_says(t, line);
        e2e_says(t, "/own' has a tokenizer of its own, without a template; to use the base's, ");
    }
    must(t, e2e_shell(t, "cp gpt2/chat_template.jinja own"), "copy");
    must(t, e2e_shell(t, "\"$HOST\" %s", commands[0]), "again");
    assert_null(strstr(t->out, line));
}

// If rows are in another form, a message names the form and a remedy.
static void rows_in_other_forms(void **state) {
    struct e2e *t = *state;
    static const char *const files[][2] = {
        {"a.csv", "a.csv: a CSV file is not read; rows are JSON Lines (.jsonl, .jsonl.gz) or lines "
                  "of text (.txt, .txt.gz): in Python, pandas.read_csv(\"FILE\")"},
        {"a.CSV.gz", "a.CSV.gz: a CSV file is not read"},
        {"a.tsv", "a TSV file is not read"},
        {"a.parquet", "a Parquet file is not read; rows are JSON Lines"},
        {"a.arrow", "datasets.Dataset.from_file(\"FILE\")"},
        {"a.jsonl.zst", "a Zstandard file is not read"},
        {"model.safetensors", "it holds weights, not rows"},
        {"a.json", "a.json:1: a JSON list, expected JSON Lines, one object a line"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char args[256];
        e2e_write(t, files[i][0], "[{\"text\": 1}]\n");
        snprintf(args, sizeof args, "eval --model hf/gpt2 --data %s", files[i][0]);
        refused(t, args, files[i][1]);
    }
    refused(t, "--algo sft.so --policy hf/gpt2 --data a.csv --out r", "a CSV file");
    refused(t, "--algo bradley_terry.so --policy hf/gpt2 --data a.parquet --out r", "a Parquet");
    refused(t, "--algo ppo.so --reward period_count.so --policy hf/gpt2 --prompts a.csv --out r",
            "a CSV file");
    refused(t, "eval --model hf/gpt2 --data none.csv", "cannot open none.csv: No such file");
    e2e_write(t, "list.txt", "[a line of text]\nand another\n");
    assert_int_equal(e2e_run(t, "eval --model hf/gpt2 --data list.txt"), 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_dtype_is_that_of_the_file), TEST(an_export_has_the_first_dtype),
        TEST(classes_keep_their_names),      TEST(a_classifier_keeps_its_front),
        TEST(an_encoder_writes_nothing),     TEST(several_end_tokens),
        TEST(padding_is_never_drawn),        TEST(other_architectures),
        TEST(an_adapter_hides_a_template),   TEST(a_width_of_heads_is_asked_for),
        TEST(rows_in_other_forms),
    };
    return cmocka_run_group_tests_name("runs from directories of transformers", tests, NULL, NULL);
}
