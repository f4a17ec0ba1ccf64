// test_e2e_generate.c: where `generate` gets its prompts: from the command line (one or several),
// from a file, or from standard input.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL "generate --model s/checkpoints/latest --max-new 6 --ignore-eos "

static int setup(void **state) {
    int failed = e2e_setup(state);
    struct e2e *t = *state;
    return failed ? failed
                  : e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set "
                               "policy.init=random --set batch.size=8 --phases 1 --out s");
}

static void run(struct e2e *t, const char *args) {
    int status = e2e_run(t, "%s", args);
    if (status != 0) fail_msg("%s: exit status %d\n%s", args, status, t->out);
}

// Collects the members `key` of the JSON lines in the output, separated by '|'.
static void members(const struct e2e *t, const char *key, char *out, size_t cap) {
    const char *at = t->out;
    size_t used = 0;
    out[0] = '\0';
    for (json_t *row; *at; json_decref(row)) {
        json_error_t err;
        row = json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &err);
        if (!row) fail_msg("no JSON: %s", at);
        used += (size_t)snprintf(out + used, cap - used, "%s%s", used ? "|" : "",
                                 json_string_value(json_object_get(row, key)));
        assert_true(used < cap);
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
}

static void several_prompts(void **state) {
    struct e2e *t = *state;
    char prompts[512], all[4096], first[4096];
    run(t, MODEL "--json --prompt 'It was' --prompt '' --prompt 'The film' --n 2");
    members(t, "prompt", prompts, sizeof prompts);
    assert_string_equal(prompts, "It was|It was|||The film|The film");
    members(t, "response", all, sizeof all);
    // The first prompt gets the same texts as without the other prompts.
    run(t, MODEL "--json --prompt 'It was' --n 2");
    members(t, "response", first, sizeof first);
    assert_int_equal(strncmp(all, first, strlen(first)), 0);
    // Without --json, texts follow each other with "---" in between.
    run(t, MODEL "--greedy --prompt aa --prompt bb");
    assert_int_equal(strncmp(t->out, "aa", 2), 0);
    e2e_says(t, "\n---\nbb");
}

static void prompts_of_a_file(void **state) {
    struct e2e *t = *state;
    char prompts[512], got[4096], want[4096];
    run(t, MODEL "--json --prompts prompts.txt");
    members(t, "prompt", prompts, sizeof prompts);
    assert_string_equal(prompts, "It was|The film|I think|the thing in it");
    members(t, "response", want, sizeof want);
    e2e_write(t, "p.jsonl",
              "{\"prompt\": \"It was\"}\n{\"text\": \"The film\"}\n"
              "{\"prompt\": \"I think\"}\n{\"prompt\": \"the thing in it\"}\n");
    run(t, MODEL "--json --prompts p.jsonl --threads 2");
    members(t, "response", got, sizeof got);
    assert_string_equal(got, want);
    assert_int_equal(e2e_run(t, MODEL "--prompts p.jsonl --prompt a"), 2);
    e2e_says(t, "by --prompt or by --prompts, not by both");
    assert_int_equal(e2e_run(t, MODEL "--prompts nowhere.txt"), 2);
    e2e_says(t, "nowhere.txt");
    e2e_write(t, "p.jsonl", "{\"prompt\": \"a\"}\n{\"other\": \"b\"}\n");
    assert_int_equal(e2e_run(t, MODEL "--prompts p.jsonl"), 2);
    e2e_says(t, "p.jsonl:2");
    e2e_write(t, "p.txt",
              "a\nThis is much longer than the context leaves room for, which is 64.\n");
    assert_int_equal(e2e_run(t, MODEL "--prompts p.txt"), 2);
    e2e_says(t, "p.txt:2 has 6");
}

static void prompts_of_standard_input(void **state) {
    struct e2e *t = *state;
    char want[4096], got[4096];
    run(t, MODEL "--json --prompts prompts.txt");
    members(t, "response", want, sizeof want);
    static const char *const ways[] = {"cat prompts.txt | \"$HOST\" " MODEL "--json --prompts -",
                                       "cat prompts.txt | \"$HOST\" " MODEL "--json 2>log",
                                       "\"$HOST\" " MODEL "--json < prompts.txt 2>log"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e2e_shell(t, "%s --threads 1", ways[i]), 0);
        members(t, "response", got, sizeof got);
        assert_string_equal(got, want);
    }
    assert_int_equal(e2e_shell(t, "cat log"), 0);
    e2e_says(t, "prompts are read from standard input, one a line");
    // If prompts are on the command line, standard input is ignored. An empty standard input counts
    // as missing.
    assert_int_equal(
        e2e_shell(t, "printf 'rest\\n' | (\"$HOST\" " MODEL "--prompt a >/dev/null; cat)"), 0);
    e2e_says(t, "rest");
    assert_int_equal(e2e_shell(t, "\"$HOST\" " MODEL "--json </dev/null 2>log"), 0);
    members(t, "prompt", got, sizeof got);
    assert_string_equal(got, "");
    assert_int_equal(e2e_shell(t, "cat log"), 0);
    e2e_says(t, "no prompt is given: texts begin at the BOS token");
    assert_int_equal(e2e_shell(t, "printf 'caf\\351\\n' | \"$HOST\" " MODEL), 2);
    e2e_says(t, "standard input:1: invalid UTF-8");
}

// There are more texts than one decoding batch can hold.
static void many_texts(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" generate --model s/checkpoints/latest --max-new 1 --json --n 700 "
                     "--prompt a --prompt b --threads 1 > all; wc -l < all; "
                     "sort all | uniq | wc -l; grep -c '\"prompt\": \"b\"' all; "
                     "\"$HOST\" generate --model s/checkpoints/latest --max-new 1 --json --n 600 "
                     "--prompt a --threads 1 | cmp -n 20000 - all"),
        0);
    e2e_says(t, "1400\n");
    e2e_says(t, "\n700\n");
}

// With --json, a text comes with its tokens. Members have the same names as in rollouts.jsonl.
static void json_has_ids_and_log_probs(void **state) {
    struct e2e *t = *state;
    run(t, MODEL "--json --bos --prompt ab");
    json_t *row = json_loads(t->out, JSON_ALLOW_NUL, NULL);
    const json_t *ids = json_object_get(row, "ids"), *logp = json_object_get(row, "logp_sampled");
    assert_int_equal(json_integer_value(json_object_get(row, "prompt_length")), 3);
    assert_int_equal(json_array_size(ids), 3 + 6);
    assert_int_equal(json_integer_value(json_array_get(ids, 0)), 259);
    assert_int_equal(json_integer_value(json_array_get(ids, 2)), 'b');
    assert_int_equal(json_array_size(logp), 6);
    double sum = 0;
    for (size_t k = 0; k < 6; k++)
        sum += json_number_value(json_array_get(logp, k));
    assert_true(fabs(sum - json_number_value(json_object_get(row, "logp"))) < 1e-4);
    json_decref(row);
}

static void stops_at_texts_and_ids(void **state) {
    struct e2e *t = *state;
    run(t, MODEL "--json --prompt a --max-new 20");
    json_t *whole = json_loads(t->out, JSON_ALLOW_NUL, NULL);
    const json_t *ids = json_object_get(whole, "ids");
    int64_t id = json_integer_value(json_array_get(ids, 8)), at = 1;
    while (json_integer_value(json_array_get(ids, (size_t)at)) != id)
        at++;
    char args[200];
    snprintf(args, sizeof args, MODEL "--json --prompt a --max-new 20 --stop-id 258 --stop-id %lld",
             (long long)id);
    run(t, args);
    json_t *row = json_loads(t->out, JSON_ALLOW_NUL, NULL);
    assert_int_equal(json_array_size(json_object_get(row, "ids")), at + 1);
    assert_true(json_is_true(json_object_get(row, "finished")));
    json_decref(row);
    json_decref(whole);
    // Every byte is a stop text, so the response is one token and its text is empty.
    char stops[2000] = MODEL "--json --prompt a --max-new 40";
    for (int c = '!'; c <= '~'; c++)
        if (c != '\'' && c != '\\')
            snprintf(stops + strlen(stops), sizeof stops - strlen(stops), " --stop '%c'", c);
    run(t, stops);
    row = json_loads(t->out, JSON_ALLOW_NUL, NULL);
    assert_true(json_is_true(json_object_get(row, "finished")));
    const char *text = json_string_value(json_object_get(row, "response"));
    for (int c = '!'; c <= '~'; c++)
        assert_true(c == '\'' || c == '\\' || !strchr(text, c));
    json_decref(row);
    static const char *const bad[][2] = {
        {"--stop ''", "--stop must be a text that is not empty"},
        {"--stop-id x", "--stop-id must be a token id, an integer from 0 to 259, found x"},
        {"--stop-id 260", "--stop-id must be a token id, an integer from 0 to 259, found 260"},
    };
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(e2e_run(t, MODEL "--prompt a %s", bad[k][0]), 2);
        e2e_says(t, bad[k][1]);
    }
}

// A run directory stands for its best checkpoint if it keeps one, otherwise for its last
// checkpoint. The output names that checkpoint.
static void a_run(void **state) {
    struct e2e *t = *state;
#define SFT                                                                                        \
    "--algo sft.so --policy model --set policy.init=random --data texts.jsonl --set batch.size=4 " \
    "--set run.phases=3 --set checkpoint.every=1 --set checkpoint.keep=0 --set optim.lr=0.1 "
    assert_int_equal(e2e_run(t, SFT "--out r"), 0);
    assert_int_equal(e2e_run(t, "generate --model r --prompt It --max-new 4 --ignore-eos"), 0);
    e2e_says(t, "checkpoint 000003 of r\n");
    assert_int_equal(e2e_run(t, SFT "--set checkpoint.best=objective/loss --set "
                                    "checkpoint.best_mode=max --out b"),
                     0);
    assert_int_equal(e2e_shell(t, "ln -sfn 000001 b/checkpoints/best"), 0);
    assert_int_equal(
        e2e_shell(t, "for m in b b/checkpoints/000001; do \"$HOST\" eval --model $m --data "
                     "texts.jsonl || exit; \"$HOST\" generate --model $m --prompt It "
                     "--max-new 6 --seed 2 --ignore-eos || exit; done >said && n=$(wc -l <said) && "
                     "head -n $((n/2)) said >one && tail -n $((n/2)) said | cmp - one"),
        0);
    e2e_says(t, "checkpoint 000001 of b: its best; b/checkpoints/latest takes the newest");
    assert_int_equal(e2e_run(t, "label --model b --data texts.jsonl --out l.jsonl"), 2);
    e2e_says(t, "checkpoints/000001/config.json: the model is not a classifier");
    assert_int_equal(e2e_shell(t, "rm -r b/checkpoints/*"), 0);
    assert_int_equal(e2e_run(t, "eval --model b --data texts.jsonl"), 2);
    e2e_says(t,
             "--model: the run 'b' has no checkpoint: it ended before the first one was written");
    assert_int_equal(e2e_shell(t, "printf '{' >b/config.json"), 0);
    assert_int_equal(e2e_run(t, "generate --model b --prompt It"), 2);
    e2e_says(t, "--model: b/config.json:1:1: not valid JSON");
}

#undef SFT
#define SFT                                                                                        \
    "--algo sft.so --data texts.jsonl --set batch.size=4 --set checkpoint.every=1 --set "          \
    "checkpoint.keep=0 "
#define GRPO                                                                                       \
    "--algo grpo.so --prompts prompts.txt --set sampling.max_new_tokens=4 --set batch.size=8 "     \
    "--set algo.group_size=4 --set run.phases=1 "

static void names(struct e2e *t, const char *run, const char *text) {
    if (e2e_shell(t, "grep -qF '%s' %s/config.json", text, run) != 0)
        fail_msg("%s/config.json does not have %s", run, text);
}

// A run directory is given as the policy and as the reference. The log names the checkpoint, and
// config.json stores its path. So a resume uses that checkpoint, even if the named run has
// continued since.
static void a_run_to_start_from(void **state) {
    struct e2e *t = *state;
    run(t, SFT "--policy model --set policy.init=random --set run.phases=2 --out r");
    run(t, SFT "--policy r --set run.phases=1 --out a");
    e2e_says(t, "policy.path: checkpoint 000002 of ");
    names(t, "a", "/r/checkpoints/000002\"");
    run(t, SFT "--policy r/checkpoints/latest --set run.phases=1 --out b");
    e2e_same_tree(t, "a/checkpoints/000001", "b/checkpoints/000001");
    run(t, GRPO "--policy a --set reference.path=r --reward period_count.so --out g");
    e2e_says(t, "reference.path: checkpoint 000002 of ");
    run(t, "--resume r --set run.phases=3");
    run(t, "--resume g --set run.phases=2");
    names(t, "g", "/r/checkpoints/000002\"");
    assert_int_equal(e2e_shell(t, "ln -s 000001 r/checkpoints/best"), 0);
    run(t, "eval --model a --reference r --reward period_count.so --data prompts.txt --n 4 --set "
           "sampling.max_new_tokens=4");
    e2e_says(t, "--reference: checkpoint 000001 of r: its best; r/checkpoints/latest takes");
    assert_int_equal(e2e_shell(t, "rm -r r/checkpoints/*"), 0);
    assert_int_equal(e2e_run(t, SFT "--policy r --out c"), 2);
    e2e_says(t, "policy.path: the run '");
    e2e_says(t, "has no checkpoint: it ended before the first one was written");
    assert_false(e2e_exists(t, "c"));
}

// A run directory can also be the model of a reward or of a judge.
static void a_run_that_judges(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" w\"}\n"
              "{\"prompt\": \"So\", \"chosen\": \" he\", \"rejected\": \"s\"}\n");
    run(t, "--algo classify.so --data labeled.jsonl --policy model --set policy.init=random --set "
           "score.labels=NEGATIVE,POSITIVE --set run.phases=1 --set batch.size=4 --out c");
    run(t, "--algo bradley_terry.so --data pairs.jsonl --policy model --set policy.init=random "
           "--set run.phases=1 --set batch.size=2 --set checkpoint.every=1 --out m");
    run(t, GRPO "--policy model --set policy.init=random --reward "
                "imdb.so:model=c,self_test=false --reward bt_rm.so:model=m --judge "
                "bt_rm.so:model=m --out g");
    e2e_says(t, "classifier: checkpoint 000001 of ");
    e2e_says(t, "reward model: checkpoint 000001 of ");
    names(t, "g", "/c/checkpoints/000001\"");
    assert_int_equal(e2e_shell(t, "test $(grep -c '/m/checkpoints/000001\"' g/config.json) = 2"),
                     0);
    run(t, "--resume m --set run.phases=2");
    run(t, "--resume g --set run.phases=2");
    run(t, "eval --model g --reward bt_rm.so:model=m --data prompts.txt --n 4 --set "
           "sampling.max_new_tokens=4");
    e2e_says(t, "reward model: checkpoint 000002 of ");
    assert_int_equal(e2e_shell(t, "rm -r m/checkpoints/*"), 0);
    assert_int_equal(e2e_run(t, "eval --model g --reward bt_rm.so:model=m --data prompts.txt"), 2);
    e2e_says(t, "has no checkpoint: it ended before the first one was written");
}

// The user types options of other programs, settings of runs, and values without a flag. For each,
// a hint shows the right spelling.
static void words_of_other_programs(void **state) {
    struct e2e *t = *state;
    static const char *const said[][2] = {
        {"--max_new_tokens 4",
         "generate: unknown option \"--max_new_tokens\"; here it is --max-new\n"},
        {"--max-new-tokens 4", "here it is --max-new\n"},
        {"--sampling.max_new_tokens=4", "here it is --max-new\n"},
        {"--max_completion_length=4", "here it is --max-new\n"},
        {"--prompts.template chatml", "here it is --template\n"},
        {"--chat-template-path chatml", "here it is --template\n"},
        {"--model_name_or_path model", "here it is --model\n"},
        {"--top_p 0.9", "here it is --top-p\n"},
        {"--set sampling.top_k=4", "unknown option \"--set\"; settings are of training runs"},
        {"--temperature 0",
         "must be above 0, found 0; --greedy always takes the most likely token"},
        {"--temperature 0.0 --prompt a", "--greedy always takes"},
        {"model", "\"model\" was not expected here; a model directory is given by --model DIR"},
        {"'It was'", "\"It was\" was not expected here; a text is given by --prompt TEXT"}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        assert_int_equal(e2e_run(t, "generate %s", said[i][0]), 2);
        e2e_says(t, said[i][1]);
    }
    assert_int_equal(e2e_run(t, "--algo sft.so model"), 2);
    e2e_says(t, "a model directory is given by --policy DIR");
    assert_int_equal(e2e_run(t, "train --algo sft.so"), 2);
    e2e_says(t, "unknown command \"train\"; training needs no command word: rlhf-host --algo X.so");
    assert_int_equal(e2e_run(t, "grpo.so"), 2);
    e2e_says(
        t, "an algorithm is given by --algo X.so, a reward by --reward X.so; see rlhf-host --help");
}

// The table has the log-probs of the text's tokens. It has values only if the run has a critic.
static void a_table_of_tokens(void **state) {
    struct e2e *t = *state;
    char row[64];
    run(t, MODEL "--json --prompt 'It was' --seed 4");
    json_t *v = json_loads(t->out, JSON_ALLOW_NUL, NULL);
    const json_t *logp = json_object_get(v, "logp_sampled");
    assert_int_equal(json_array_size(logp), 6);
    run(t, MODEL "--prompt 'It was' --seed 4 --token-table");
    e2e_says(t, "  token                  log-prob   entropy\n");
    const char *at = strstr(t->out, "entropy\n");
    for (size_t i = 0; i < 6; i++) {
        snprintf(row, sizeof row, "  %9.2f  ", json_number_value(json_array_get(logp, i)));
        at = strstr(at, row);
        if (!at) fail_msg("no row '%s' in its place in:\n%s", row, t->out);
        at += strlen(row);
    }
    json_decref(v);
    // The text is drawn from a distribution over the top token only. The printed table still has
    // the log-probs of the model's full distribution.
    run(t, MODEL "--prompt 'It was' --top-k 1 --token-table");
    assert_null(strstr(t->out, "       0.00 "));
    assert_int_equal(e2e_run(t, MODEL "--prompt It --json --token-table"), 2);
    e2e_says(t, "--token-table has no effect with --json");
    run(t, "--algo ppo.so --policy s/checkpoints/latest --reward period_count.so --set "
           "prompts.path=prompts.txt --set batch.size=8 --set sampling.max_new_tokens=4 --set "
           "algo.minibatches=1 --phases 1 --out p");
    run(t, "generate --model p --max-new 3 --ignore-eos --prompt It --token-table");
    e2e_says(t, "  token                  log-prob   entropy     value\n");
}

static void decoding_is_said(void **state) {
    struct e2e *t = *state;
#define ON_TERMINAL(args) e2e_terminal(t, 120, "\"$HOST\" " MODEL "--prompt It " args)
    assert_int_equal(ON_TERMINAL("--greedy --dtype f32"), 0);
    e2e_says(t, "decoding: greedy, in f32\r\n");
    assert_int_equal(ON_TERMINAL("--greedy --dtype bf16"), 0);
    e2e_says(t, "decoding: greedy, in bf16\r\n");
    assert_int_equal(ON_TERMINAL("--top-k 3 --top-p 0.5 --temperature 2 --dtype f32"), 0);
    e2e_says(t, "decoding: drawn at temperature 2, top-k 3, top-p 0.5, seed 1, in f32 (");
    run(t, MODEL "--prompt It --greedy");
    assert_null(strstr(t->out, "decoding"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_prompts, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(prompts_of_a_file, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(prompts_of_standard_input, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(many_texts, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(json_has_ids_and_log_probs, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(stops_at_texts_and_ids, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_to_start_from, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_that_judges, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(words_of_other_programs, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_table_of_tokens, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(decoding_is_said, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_generate", tests, NULL, NULL);
}
