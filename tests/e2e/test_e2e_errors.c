// test_e2e_errors.c: bad input and run-time failures give one clear sentence and the right exit
// status. No data is lost, and no file is half written.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define SFT "--algo sft.so --data texts.jsonl --set batch.size=4 --set policy.init=random "
#define PPO                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=4 "
#define BAD "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so"

static void nan_reward_stops_and_names(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO BAD "\" --set run.phases=2 --set run.dir=n"), 1);
    e2e_says(t, "bad_reward");
    e2e_says(t, "gave nan for row 3"); // regardless of its sign
    e2e_says(t, "nothing is kept: n has no checkpoint");
    assert_null(strstr(t->out, "try it:"));
    assert_int_equal(e2e_run(t, PPO BAD ":how=inf\" --set run.phases=1 --set run.dir=i"), 1);
    e2e_says(t, "inf for row 3");
    assert_int_equal(e2e_run(t, PPO BAD ":how=skip\" --set run.phases=1 --set run.dir=s"), 1);
    e2e_says(t, "row 3");
}

static void nan_reward_can_be_zero_or_dropped(void **state) {
    struct e2e *t = *state;
    static const char *const policies[] = {"zero", "drop"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(e2e_run(t,
                                 PPO BAD "\" --set run.phases=2 --set run.dir=n%d "
                                         "--set rewards.nan_policy=%s",
                                 k, policies[k]),
                         0);
        char run[8];
        snprintf(run, sizeof run, "n%d", k);
        json_t *rows = e2e_metrics(t, run);
        assert_true(e2e_metric(rows, 0, "rewards/not_finite") == 2);
        // Rewards are 0 1 2 NaN 1 2 0 NaN. Their sum, 6, is divided by all 8 rows if NaN counts as
        // zero, or by the 6 rows that are left if rows with NaN are dropped.
        assert_true(e2e_metric(rows, 0, "objective/scores") == (k == 0 ? 0.75 : 1.0));
        json_decref(rows);
    }
}

// With rewards of +-3e38, rloo.so's advantages overflow.
static void skipped_steps_are_said(void **state) {
    struct e2e *t = *state;
    static const char run[] = "--algo rloo.so --policy model --set policy.init=random --prompts "
                              "prompts.txt --set batch.size=8 --set sampling.max_new_tokens=4 "
                              "--set optim.max_skipped=0 ";
    assert_int_equal(e2e_run(t, "%s" BAD ":how=huge,every=8\" --phases 1 --out some", run), 0);
    e2e_says(t, "warning: phase 1: ");
    e2e_says(t,
             "skipped so far, because the loss or a gradient was not finite. What helps: a lower");
    e2e_says(t, "rloo.so, advantages(): it gave row 7 the advantage -inf");
    e2e_says(t, "found: ");
    assert_int_equal(
        e2e_run(t, "%s" BAD ":how=huge\" --set algo.minibatches=1 --phases 2 --out all", run), 1);
    e2e_says(t, "updates were skipped, because the loss or a gradient was not finite: the run has "
                "taught nothing");
    assert_int_equal(e2e_exists(t, "all/checkpoints/latest/model.safetensors"), 1);
}

// data.bad_rows=skip leaves out rows that cannot be used, and names the first three.
static void bad_rows_can_be_left_out(void **state) {
    struct e2e *t = *state;
    static const char good[] = "{\"text\": \"It was good.\"}\n";
    char rows[512];
    snprintf(rows, sizeof rows,
             "%s{\"text\": null}\nnot json\n%s{\"txt\": 1}\n{\"text\": NaN}\n%s%s", good, good,
             good, good);
    e2e_write(t, "rows.jsonl", rows);
    e2e_write(t, "good.jsonl",
              "{\"text\": \"It was good.\"}\n{\"text\": \"It was good.\"}\n"
              "{\"text\": \"It was good.\"}\n{\"text\": \"It was good.\"}\n");
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" good\", \"rejected\": \"\"}\n"
              "{\"prompt\": \"It was\", \"chosen\": \" good\", \"rejected\": \" bad\"}\n"
              "{\"prompt\": \"It was\", \"chosen\": \" good\", \"rejected\": \" good\"}\n");
    e2e_write(t, "p.jsonl", "{\"prompt\": 5}\n{\"prompt\": \"It was\"}\n");
#define RUN  "--policy model --set policy.init=random --phases 1 --set batch.size=2 " SKIP
#define SKIP "--set data.bad_rows=skip "
    assert_int_equal(
        e2e_run(t, "--algo sft.so --data rows.jsonl " RUN "--set data.bad_rows=refuse"), 2);
    e2e_says(t, "rows.jsonl:2: field 'text' is null, expected a string");
    assert_int_equal(e2e_run(t, "--algo sft.so --data rows.jsonl " RUN "--out s"), 0);
    e2e_says(t, "data.bad_rows=skip: 4 rows are left out: ");
    e2e_says(t, "rows.jsonl:2: field 'text' is null, expected a string; ");
    e2e_says(t, "rows.jsonl:5: the row has neither a field 'text'");
    e2e_says(t, "; ...\n");
    assert_int_equal(e2e_run(t, "--algo sft.so --data good.jsonl " RUN "--out g"), 0);
    assert_int_equal(e2e_shell(t, "cmp s/checkpoints/latest/model.safetensors "
                                  "g/checkpoints/latest/model.safetensors"),
                     0);
    assert_int_equal(e2e_run(t, "--algo dpo.so --data pairs.jsonl " RUN "--out d"), 0);
    e2e_says(t, "2 rows are left out: ");
    e2e_says(t, "pairs.jsonl:3: fields 'chosen' and 'rejected' are the same text");
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=2,minibatches=1 --prompts p.jsonl "
                                "--reward period_count.so "
                                "--set sampling.max_new_tokens=4 " RUN "--out r"),
                     0);
    e2e_says(t, "1 row is left out: ");
    e2e_write(t, "none.jsonl", "{\"txt\": 1}\n");
    assert_int_equal(e2e_run(t, "--algo sft.so --data none.jsonl " RUN "--out n"), 2);
    e2e_says(t, "no rows are left: the data has 1 and 0 are skipped; bad rows: 1, the first: ");
    assert_int_equal(
        e2e_run(t, "--algo ppo.so:minibatches=1 --prompts none.jsonl --reward period_count.so " RUN
                   "--out q"),
        2);
    e2e_says(t, "no prompt is left of 0 rows; bad rows: 1, the first: ");
    assert_int_equal(e2e_run(t, "--algo ppo.so:minibatches=1 --set prompts.text=It --reward "
                                "period_count.so " RUN "--out x"),
                     2);
    e2e_says(t, "data.bad_rows has no effect here: prompts.text is the one prompt");
}

// The same for conversations that the chat template refuses, which is known only when the rows are
// tokenized. With many rows, several threads tokenize; the first three are named anyway.
static void bad_chats_can_be_left_out(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "model/chat_template.jinja",
              "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
              "{% endif %}{{ m.content }}{% endfor %}");
    assert_int_equal(
        e2e_shell(t, "ok='{\"messages\": [{\"role\": \"user\", \"content\": \"It was\"}, "
                     "{\"role\": \"assistant\", \"content\": \" good.\"}]}'; "
                     "bad='{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, "
                     "{\"role\": \"assistant\", \"content\": \"b\"}]}'; for i in $(seq 600); do "
                     "echo \"$ok\"; [ $((i %% 100)) -ne 7 ] || echo \"$bad\"; done >rows.jsonl; "
                     "grep -v system rows.jsonl >good.jsonl; grep system rows.jsonl >bad.jsonl"),
        0);
    assert_int_equal(e2e_shell(t, "\"$HOST\" --algo sft.so --data rows.jsonl " RUN
                                  "--set run.threads=4 --out s"),
                     0);
    e2e_says(t, "data.bad_rows=skip: 6 rows are left out: ");
    e2e_says(t, "rows.jsonl:8: ");
    e2e_says(t, "rows.jsonl:109: the chat template");
    e2e_says(t, "rows.jsonl:210: the chat template");
    e2e_says(t, "no system");
    assert_int_equal(e2e_run(t, "--algo sft.so --data good.jsonl " RUN "--out g"), 0);
    assert_int_equal(e2e_shell(t, "cmp s/checkpoints/latest/model.safetensors "
                                  "g/checkpoints/latest/model.safetensors"),
                     0);
    assert_int_equal(e2e_run(t, "--algo sft.so --data bad.jsonl " RUN "--out n"), 2);
    e2e_says(t, "; bad rows: 6, the first: ");
    assert_int_equal(
        e2e_run(t, "--algo sft.so --data rows.jsonl " RUN "--set data.bad_rows=refuse"), 2);
    e2e_says(t, "rows.jsonl:8: ");
#undef RUN
#undef SKIP
}

static void failing_plugin_is_named(void **state) {
    struct e2e *t = *state;
    int status = e2e_run(t, PPO BAD ":how=fail\" --set run.phases=1 --set run.dir=f");
    assert_true(status == 1 || status == 2);
    e2e_says(t, "reward bad_reward.so");
    e2e_says(t, "no opinion today");
    assert_int_equal(e2e_run(t, PPO BAD ":how=failed\" --set run.phases=1 --set run.dir=g"), 1);
    e2e_says(t, "reward bad_reward.so, score(), phase 1: it could not score row 3");
}

static void a_service_says_what_is_wrong(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--reward imdb.so:model=/nowhere --set run.dir=x"), 2);
    e2e_says(t, "imdb.so: model directory /nowhere does not exist");
    assert_int_equal(e2e_run(t, PPO "--reward imdb.so:model=model --set run.dir=x"), 2);
    e2e_says(t, "reward imdb.so: ");
    e2e_says(t, "model/config.json: the model is not a classifier");
    assert_int_equal(e2e_shell(t, "cp -r model bare && sed -i 's/GPT2LMHeadModel/"
                                  "GPT2ForSequenceClassification/' bare/config.json && "
                                  "sed -i 's/\"model_type\"/\"num_labels\": 2, &/' "
                                  "bare/config.json"),
                     0);
    assert_int_equal(e2e_run(t, PPO "--reward imdb.so:model=bare,label=LABEL_1 --set run.dir=x"),
                     2);
    e2e_says(t, "weights");
    assert_false(e2e_exists(t, "x"));
}

static void full_disk_keeps_the_old_checkpoint(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--policy model --set run.phases=1 --set run.dir=d"), 0);
    e2e_says(t, "done after 1 of 1 phase: d");
    assert_int_equal(e2e_shell(t, "cp -r d/checkpoints/000001 before"), 0);
    // Files may not grow beyond 40 KiB, which acts like a full disk.
    int status = e2e_shell(t, "(trap '' XFSZ; ulimit -f 40; exec \"$HOST\" --resume d "
                              "--set run.phases=2 --threads 1)");
    assert_int_equal(status, 1);
    e2e_says(t, "the checkpoint of phase 2 was not written");
    e2e_says(t, "1 phase is kept; ");
    e2e_same_tree(t, "d/checkpoints/000001", "before");
    assert_int_equal(e2e_shell(t, "test \"$(readlink d/checkpoints/latest)\" = 000001 && "
                                  "test \"$(ls -A d/checkpoints | wc -l)\" = 2"),
                     0);
    assert_int_equal(e2e_run(t, "--resume d --set run.phases=2"), 0);
}

static void existing_run_directory_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "mkdir taken && touch taken/mine"), 0);
    assert_int_equal(e2e_run(t, SFT "--policy model --set run.phases=1 --set run.dir=taken"), 2);
    e2e_says(t, "taken' exists already and holds something else than a run");
    assert_int_equal(e2e_shell(t, "test \"$(ls -A taken)\" = mine"), 0);
    assert_int_equal(e2e_run(t, "--resume taken"), 2);
    assert_int_equal(e2e_run(t, "--resume nowhere"), 2);
}

static void weights_are_checked(void **state) {
    struct e2e *t = *state;
    const char *run = "--algo sft.so --data texts.jsonl --set run.phases=1 --policy";
    assert_int_equal(e2e_run(t, "%s model --set run.dir=m", run), 2);
    e2e_says(t, "model.safetensors");
    assert_false(e2e_exists(t, "m"));
    assert_int_equal(e2e_run(t, SFT "--policy model --set run.phases=1 --set run.dir=d"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL d/checkpoints/latest cut && "
                                  "truncate -s -1000 cut/model.safetensors"),
                     0);
    assert_int_equal(e2e_run(t, "%s cut --set run.dir=x", run), 2);
    e2e_says(t, "cut/model.safetensors");
    assert_int_equal(e2e_shell(t, "cp -rL d/checkpoints/latest wide && "
                                  "sed -i 's/\"n_embd\": 32/\"n_embd\": 64/' wide/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "%s wide --set run.dir=x", run), 2);
    e2e_says(t, "shape");
    assert_false(e2e_exists(t, "x"));
}

static void vocabulary_must_fit_the_model(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "cp -r model small && sed -i 's/\"vocab_size\": 260/\"vocab_size\": 250/' "
                     "small/config.json"),
        0);
    assert_int_equal(e2e_run(t, SFT "--policy small --set run.phases=1 --set run.dir=x"), 2);
    e2e_says(t, "small");
    assert_false(e2e_exists(t, "x"));
}

static void prompts_are_checked(void **state) {
    struct e2e *t = *state;
    const char *run =
        "--algo ppo.so --reward period_count.so --policy model --set run.dir=x "
        "--set policy.init=random --set run.phases=1 --set sampling.max_new_tokens=40";
    e2e_write(t, "long.txt", "This is a prompt that is longer than what is left of the context.\n");
    assert_int_equal(e2e_run(t, "%s --prompts long.txt --set prompts.long_rows=refuse", run), 2);
    e2e_says(t, "long.txt:1");
    e2e_write(t, "empty.txt", "\n\n");
    assert_int_equal(e2e_run(t, "%s --prompts empty.txt", run), 2);
    e2e_says(t, "empty.txt");
    e2e_write(t, "bad.txt", "caf\xe9\n");
    assert_int_equal(e2e_run(t, "%s --prompts bad.txt", run), 2);
    e2e_says(t, "UTF-8");
    assert_int_equal(e2e_run(t, "%s --prompts prompts.txt --set sampling.max_new_tokens=64", run),
                     2);
    e2e_says(t, "context");
    assert_false(e2e_exists(t, "x"));
}

// Limits of the shell are named.
static void limits_of_the_shell(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "ulimit -s 256; \"$HOST\" --version"), 2);
    e2e_says(t, "the stack is limited to 256 KiB (ulimit -s), and the program needs 1024");
    // What may recurse is limited, so that this stack is enough.
    e2e_write(t, "deep.jinja",
              "{% macro f(x) %}{{ caller(x) }}{% endmacro %}"
              "{% macro g(x) %}{% call(y) f(x) %}{{ g(y) }}{% endcall %}{% endmacro %}{{ g(1) }}");
    assert_int_equal(e2e_shell(t, "ulimit -s 1024; echo '{\"messages\": [{\"role\": \"user\", "
                                  "\"content\": \"hi\"}]}' | \"$HOST\" tokenize --model model "
                                  "--template ./deep.jinja"),
                     2);
    e2e_says(t, "too many levels (200)");
    static const int blocks[] = {100, 400}; // when the worker starts, and for a batch
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf f; ulimit -f %d; \"$HOST\" " PPO
                                   "--reward period_count.so --set rewards.isolate=always "
                                   "--set run.phases=1 --set run.dir=f --set batch.size=4096 "
                                   "--set sampling.max_new_tokens=32 --threads 1",
                                   blocks[i]),
                         1);
        e2e_says(t, "the limit on the size of files (ulimit -f) holds for the memory");
    }
    assert_int_equal(
        e2e_shell(t, "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "
                     "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/no_threads.so\" \"$HOST\" " PPO
                     "--reward period_count.so --set run.phases=1 --set run.dir=o --threads 4"),
        1);
    e2e_says(t, "compute backend 'cpu': cannot start 4 threads: Resource temporarily unavailable; "
                "a lower --threads (run.threads), a higher limit on processes (ulimit -u)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_of_the_shell, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nan_reward_stops_and_names, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nan_reward_can_be_zero_or_dropped, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(skipped_steps_are_said, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bad_rows_can_be_left_out, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bad_chats_can_be_left_out, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(failing_plugin_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_service_says_what_is_wrong, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(full_disk_keeps_the_old_checkpoint, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(existing_run_directory_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(weights_are_checked, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(vocabulary_must_fit_the_model, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(prompts_are_checked, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_errors", tests, NULL, NULL);
}
