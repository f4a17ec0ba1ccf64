// test_e2e_episodes.c: runs with an environment: log-probs of sampling and training, the contents
// of rows, rewards of the environment, limits, broken rules and refusals. Results do not depend on
// slots and threads.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE                                                                                   \
    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif " \
    "%}{% endfor %}"
// In the tiny model, bytes are ids. A turn ends at one of many letters or at the end token 259.
#define STOP "--set 'sampling.stop=[\"a\",\"e\",\"o\",\"i\",\"n\",\"t\",\"s\",\"r\",259]' "
#define ANY                                                                                        \
    "--set batch.size=12 --set run.phases=2 --set sampling.max_new_tokens=40 "                     \
    "--set episodes.reply_tokens=20 --set optim.lr=0.01 --set log.rollouts=true --set run.seed=5 " \
    "--set episodes.tokens=62 " STOP
#define RUN          "--policy model --set policy.init=random " ANY
#define ENV(options) "--env \"$RLHF_TEST_PLUGINS/answering_env.so" options "\" "
#define GRPO         "--algo grpo.so --set algo.group_size=4 " RUN

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "chat.txt", TEMPLATE);
    return 0;
}

static void run(struct e2e *t, const char *args) {
    if (e2e_run(t, "%s", args) != 0) fail_msg("%s\n%s", args, t->out);
}

// For every algorithm, sampling and training give the same log-probs. Episodes have several turns.
static void log_probs_are_equal(void **state) {
    struct e2e *t = *state;
#define GROUPS "--set algo.group_size=4 "
    static const char *const algos[] = {
        "--algo ppo.so " RUN, "--algo grpo.so " GROUPS RUN, "--algo rloo.so " GROUPS RUN,
        "--algo ppo.so --set sampling.top_k=40 " RUN,
        "--algo grpo.so " GROUPS
        "--policy algo1/checkpoints/latest --set policy.adapter.rank=2 " ANY};
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++) {
        char args[2048];
        snprintf(args, sizeof args, "%s" ENV("") "--set run.dir=algo%zu", algos[i], i);
        run(t, args);
        snprintf(args, sizeof args, "algo%zu", i);
        json_t *rows = e2e_metrics(t, args);
        for (int phase = 0; phase < 2; phase++) {
            assert_true(e2e_metric(rows, phase, "sampling/logp_difference/max") <= 0);
            assert_true(e2e_metric(rows, phase, "episodes/turns") > 1.5);
            assert_true(e2e_metric(rows, phase, "episodes/given_tokens") > 1);
            assert_true(e2e_metric(rows, phase, "environment/bytes") > 1);
            assert_true(e2e_metric(rows, phase, "rewards/environment/std") > 0);
        }
        json_decref(rows);
    }
}

// Results do not depend on slots and threads. Shared prompts do not change any row. (They change
// how gradients are rounded, also without an environment.)
static void nothing_depends_on_slots(void **state) {
    struct e2e *t = *state;
    static const char *const others[] = {"--set sampling.slots=1",
                                         "--set sampling.slots=5 --threads 2",
                                         "--set sampling.slots=64 --set batch.share_prompts=false"};
    run(t, GRPO ENV("") "--set run.dir=first");
    for (size_t i = 0; i < 3; i++) {
        char args[2048];
        snprintf(args, sizeof args, GRPO ENV("") "--set run.dir=other%zu %s", i, others[i]);
        run(t, args);
        assert_int_equal(e2e_shell(t,
                                   "for run in first other%zu; do head -12 $run/rollouts.jsonl "
                                   "> $run.rows; done; cmp first.rows other%zu.rows",
                                   i, i),
                         0);
        if (i == 2) continue;
        assert_int_equal(e2e_shell(t,
                                   "cmp first/checkpoints/latest/model.safetensors "
                                   "other%zu/checkpoints/latest/model.safetensors",
                                   i),
                         0);
    }
}

// If the environment ends every episode after one turn and gives no reward, the run is the same as
// a run without an environment.
static void one_turn_is_a_response(void **state) {
    struct e2e *t = *state;
#define ALONE "--prompts prompts.txt --reward period_count.so --set response.truncate=none "
    run(t, GRPO ALONE ENV(":turns=1,fault=quiet,starts=false") "--set run.dir=one");
    assert_int_equal(e2e_shell(t, "$HOST " ALONE
                                  "--algo grpo.so --set algo.group_size=4 --policy model "
                                  "--set policy.init=random --set batch.size=12 --set run.phases=2 "
                                  "--set sampling.max_new_tokens=40 --set optim.lr=0.01 "
                                  "--set run.seed=5 --threads 1 " STOP "--set run.dir=none"),
                     0);
    assert_int_equal(e2e_shell(t, "cmp one/checkpoints/latest/model.safetensors "
                                  "none/checkpoints/latest/model.safetensors"),
                     0);
}

// ---- forms of models ----

#define SHAPE                                                                                      \
    "\"vocab_size\": 260, \"hidden_size\": 32, \"intermediate_size\": 48, "                        \
    "\"num_hidden_layers\": 2, \"max_position_embeddings\": 64, \"bos_token_id\": 259, "           \
    "\"eos_token_id\": 259, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06"

static void write_form(struct e2e *t, const char *form) {
    char path[64];
    if (strcmp(form, "model") == 0) return;
    assert_int_equal(e2e_shell(t, "cp -r model %s", form), 0);
    snprintf(path, sizeof path, "%s/config.json", form);
    e2e_write(t, path,
              strcmp(form, "llama") == 0
                  ? "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], " SHAPE
                    ", \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                    "\"tie_word_embeddings\": false, \"rope_theta\": 10000.0}\n"
                  : "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], " SHAPE
                    ", \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 24, "
                    "\"tie_word_embeddings\": true, \"rope_theta\": 1000000.0}\n");
}

static void same_log_probs(struct e2e *t, const char *form, const char *dtype,
                           const char *adapter) {
    static const char *const others[] = {"--threads 1", "--threads 2 --set sampling.slots=5 --set "
                                                        "batch.share_prompts=false"};
    for (size_t i = 0; i < 2; i++) {
        char args[2048];
        snprintf(args, sizeof args,
                 "--algo grpo.so --set algo.group_size=4 --policy %s-start/checkpoints/latest " ANY
                 "--set run.phases=1 " ENV("") "--set compute.dtype=%s %s %s --set run.dir=kind%zu",
                 form, dtype, adapter, others[i], i);
        run(t, args);
        snprintf(args, sizeof args, "kind%zu", i);
        json_t *rows = e2e_metrics(t, args);
        assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") <= 0);
        assert_true(e2e_metric(rows, 0, "episodes/turns") > 1.2);
        json_decref(rows);
    }
    assert_int_equal(e2e_shell(t, "for k in kind0 kind1; do grep segments $k/rollouts.jsonl > "
                                  "$k.rows; done; cmp kind0.rows kind1.rows"),
                     0);
    assert_int_equal(e2e_shell(t, "rm -r kind0 kind1"), 0);
}

// Log-probs are equal in sampling and training for all forms of models, in f32 and bf16, with and
// without an adapter. Threads, slots and shared prompts do not change any row.
static void log_probs_of_forms(void **state) {
    struct e2e *t = *state;
    static const char *const forms[] = {"model", "llama", "qwen3"};
    for (size_t i = 0; i < 3; i++) {
        char args[512];
        write_form(t, forms[i]);
        snprintf(args, sizeof args,
                 "--algo sft.so --data texts.jsonl --policy %s --set policy.init=random --set "
                 "run.phases=1 --set run.dir=%s-start",
                 forms[i], forms[i]);
        run(t, args);
        for (int bf16 = 0; bf16 < 2; bf16++)
            for (int adapter = 0; adapter < 2; adapter++)
                same_log_probs(t, forms[i], bf16 ? "bf16" : "f32",
                               adapter ? "--set policy.adapter.rank=2" : "");
    }
}

// ---- time ----

// The time that an environment takes to answer does not change the results.
static void delays(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "slow.py",
              "import os, time\n"
              "class Slow:\n"
              "    def reset(self, seed=None, options=None):\n"
              "        self.wait()\n"
              "        self.sum = seed % 4\n"
              "        return f'{self.sum}?', {}\n"
              "    def step(self, text):\n"
              "        self.wait()\n"
              "        self.sum += len(text)\n"
              "        return f'{self.sum}.', float(self.sum % 3), self.sum % 5 == 0, False, {}\n"
              "    def wait(self):\n"
              "        if 'SLOW' in os.environ: time.sleep(os.urandom(1)[0] / 20000)\n");
    for (int slow = 0; slow < 2; slow++)
        assert_int_equal(e2e_shell(t,
                                   "%s $HOST " GRPO
                                   "--env env_python.so:file=slow.py,class=Slow,api=gymnasium "
                                   "--threads 1 --set run.dir=slow%d",
                                   slow ? "SLOW=1" : "", slow),
                         0);
    assert_int_equal(e2e_shell(t, "cmp slow0/rollouts.jsonl slow1/rollouts.jsonl && cmp "
                                  "slow0/checkpoints/latest/model.safetensors "
                                  "slow1/checkpoints/latest/model.safetensors"),
                     0);
}

// ---- what rows contain ----

static json_t *rows_of(struct e2e *t, const char *dir) {
    assert_int_equal(e2e_shell(t, "grep '\"segments\"' %s/rollouts.jsonl > rows", dir), 0);
    json_t *rows = e2e_lines(t, "rows");
    assert_true(json_array_size(rows) >= 12);
    return rows;
}

static int32_t id_at(const json_t *row, size_t k) {
    return (int32_t)json_integer_value(json_array_get(json_object_get(row, "ids"), k));
}

// Checks the segments of `row` that the environment wrote. If `templated` is set, each of them
// begins with the end token, unless the turn before it ended with that token. All other ids in
// these segments are bytes. Returns the number of these segments.
static size_t check_segments(const json_t *row, int templated, int *bare) {
    const json_t *segments = json_object_get(row, "segments"), *s;
    size_t at = (size_t)json_integer_value(json_object_get(row, "prompt_length")), i, given = 0;
    json_array_foreach(segments, i, s) {
        const size_t n = (size_t)json_integer_value(json_array_get(s, 1));
        if (strcmp(json_string_value(json_array_get(s, 0)), "environment") == 0) {
            const int closed = id_at(row, at - 1) == 259, begins = id_at(row, at) == 259;
            assert_int_equal(begins, templated && !closed);
            *bare += closed;
            for (size_t k = at + (begins ? 1 : 0); k < at + n; k++)
                assert_true(id_at(row, k) < 256);
            assert_int_equal(id_at(row, at + n - 1), '.');
            given++;
        }
        at += n;
    }
    return given;
}

// If the policy's turn lacks the template's end token, the environment's segment begins with this
// token. If a reply contains the text of a special token, the text is encoded as single bytes.
static void bridges(void **state) {
    struct e2e *t = *state;
    static const char *const forms[] = {"plain", "chat.jinja"};
    assert_int_equal(e2e_shell(t, "mv chat.txt chat.jinja"), 0);
    for (int templated = 0; templated < 2; templated++) {
        char args[2048];
        int bare = 0;
        size_t given = 0, i;
        json_t *row;
        snprintf(args, sizeof args,
                 GRPO "--set run.dir=form%d --set prompts.template=%s " ENV(":fault=special"),
                 templated, forms[templated]);
        run(t, args);
        snprintf(args, sizeof args, "form%d", templated);
        json_t *rows = rows_of(t, args), *metrics = e2e_metrics(t, args);
        json_array_foreach(rows, i, row) given += check_segments(row, templated, &bare);
        assert_true(given > 12);
        assert_true(e2e_metric(metrics, 0, "sampling/logp_difference/max") <= 0);
        assert_int_equal(e2e_metric(metrics, 0, "episodes/special_in_replies") > 0, templated);
        json_decref(metrics);
        json_decref(rows);
    }
}

// This template renders a turn differently once later turns follow. The row keeps the tokens that
// the policy wrote. Depending on episodes.rewrites, the run reports the share of such turns, or the
// run ends.
static void rewrites(void **state) {
    struct e2e *t = *state;
    static const char *const marks[] = {"", "!"}; // written before earlier turns
    for (int k = 0; k < 2; k++) {
        char args[2048], text[512];
        snprintf(text, sizeof text,
                 "{%% for m in messages %%}{%% if m.role == 'assistant' %%}{%% if not loop.last "
                 "%%}%s{%% endif %%}{{ m.content }}{{ eos_token }}{%% else %%}{{ m.content }}{%% "
                 "endif %%}{%% endfor %%}",
                 marks[k]);
        e2e_write(t, "past.jinja", text);
        snprintf(args, sizeof args,
                 GRPO "--set run.dir=past%d --set prompts.template=past.jinja " ENV(""), k);
        run(t, args);
        if (k) e2e_says(t, "of the turns differently once later turns follow");
        snprintf(args, sizeof args, "past%d", k);
        json_t *m = e2e_metrics(t, args);
        const double share = e2e_metric(m, 0, "episodes/rewritten_turns");
        assert_true(k ? share >= 1 : share <= 0);
        assert_true(e2e_metric(m, 0, "sampling/logp_difference/max") <= 0);
        json_decref(m);
    }
    assert_int_equal(e2e_shell(t, "cmp past0/rollouts.jsonl past1/rollouts.jsonl"), 0);
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=past2 --set prompts.template=past.jinja --set "
                                     "episodes.rewrites=refuse " ENV("")),
                     1);
    e2e_says(t, "past.jinja rewrites a turn once later turns follow: turn 1 of episode");
}

// This template cannot render the whole conversation. That is an error only with
// episodes.rewrites=refuse.
static void later_turns_are_refused(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "short.jinja",
              "{% for m in messages %}{% if loop.index > 4 %}{{ raise_exception('too long') }}{% "
              "endif %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% "
              "endfor %}");
    run(t, GRPO "--set run.dir=kept --set prompts.template=short.jinja " ENV(""));
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=ended --set prompts.template=short.jinja --set "
                                     "episodes.rewrites=refuse " ENV("")),
                     1);
    e2e_says(t, "short.jinja");
    e2e_says(t, "too long");
}

// A long reply is cut, and the run reports this. If a row has no room for a reply, its episode
// ends.
static void limits(void **state) {
    struct e2e *t = *state;
    run(t, GRPO ENV(":fault=huge") "--set run.dir=cut --set episodes.reply_tokens=30 ");
    json_t *m = e2e_metrics(t, "cut");
    assert_true(e2e_metric(m, 0, "episodes/cut_replies") > 0);
    json_decref(m);
    json_t *rows = rows_of(t, "cut"), *row;
    size_t i, cut = 0;
    json_array_foreach(rows, i, row) cut += json_array_size(json_object_get(row, "segments")) > 1;
    assert_true(cut > 0);
    json_decref(rows);
    run(t, GRPO ENV(":turns=9") "--set run.dir=two --set episodes.turns=2");
    m = e2e_metrics(t, "two");
    assert_true(e2e_metric(m, 0, "episodes/turns_max") <= 2);
    assert_true(e2e_metric(m, 0, "episodes/ended/turns") > 0.2);
    assert_true(e2e_metric(m, 0, "episodes/ended/done") <= 0);
    json_decref(m);
}

// The tokens from 256 on are "th", "the", "in" and the end.
static int is_stop(json_int_t id) { return id >= 256 || (id > 0 && strchr("aeointsr", (int)id)); }

// Checks a row that an end of its length stopped: the policy wrote its last tokens, and the
// environment's answer, if there was one, is not in it. `turn` is the most tokens of a turn, and
// `all` of the row. Returns 1 if the end is `end`.
static int check_length(const json_t *row, const char *end, json_int_t turn, size_t all) {
    const json_t *segments = json_object_get(row, "segments"), *ids = json_object_get(row, "ids");
    const json_t *last = json_array_get(segments, json_array_size(segments) - 1);
    const char *by = json_string_value(json_array_get(last, 0));
    const json_int_t n = json_integer_value(json_array_get(last, 1));
    const char *found = json_string_value(json_object_get(row, "end"));
    const size_t total = json_array_size(ids);
    const int stopped = is_stop(json_integer_value(json_array_get(ids, total - 1)));
    assert_int_equal(json_is_true(json_object_get(row, "finished")), strcmp(found, "done") == 0);
    assert_true(total <= all);
    if (strcmp(found, "turn_length") == 0) {
        assert_string_equal(by, "policy");
        assert_false(stopped);
        assert_true(n == turn || total == all);
    } else if (strcmp(found, "length") == 0) {
        assert_string_equal(by, "policy");
        assert_true(stopped);
        assert_true(total + 30 >= all); // a reply of 30 tokens does not fit
    }
    return strcmp(found, end) == 0;
}

// A turn without a stop in its last token is not answered: its episode ends. So does an episode
// whose reply does not fit into the row. finish() gets these reasons, and the metrics count them.
static void ends_by_length(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *dir, *args, *end;
        json_int_t turn;
        size_t all;
    } cases[] = {{"turn",
                  GRPO ENV(":turns=9") "--set episodes.turns=9 --set sampling.max_new_tokens=3 ",
                  "turn_length", 3, 62},
                 {"row",
                  GRPO ENV(":turns=9,fault=huge") "--set episodes.turns=9 --set episodes.tokens=60 "
                                                  "--set episodes.reply_tokens=30 ",
                  "length", 40, 60}};
    static const char *const ends[] = {"open",        "done",  "truncated",
                                       "turn_length", "turns", "length"};
    for (size_t k = 0; k < 2; k++) {
        char args[1024], name[64];
        size_t i, found = 0, n = 0, of[6] = {0};
        double codes = 0;
        snprintf(args, sizeof args, "%s --set run.dir=%s", cases[k].args, cases[k].dir);
        run(t, args);
        json_t *rows = rows_of(t, cases[k].dir), *row, *m = e2e_metrics(t, cases[k].dir);
        json_array_foreach(rows, i, row) {
            if (json_integer_value(json_object_get(row, "phase")) != 1) continue;
            found += (size_t)check_length(row, cases[k].end, cases[k].turn, cases[k].all);
            n++;
            for (size_t e = 0; e < 6; e++)
                if (strcmp(ends[e], json_string_value(json_object_get(row, "end"))) == 0) {
                    of[e]++;
                    codes += (double)e;
                }
        }
        assert_true(found >= 3 && n == 12);
        for (size_t e = 1; e < 6; e++) {
            snprintf(name, sizeof name, "episodes/ended/%s", ends[e]);
            assert_true(fabs(e2e_metric(m, 0, name) - (double)of[e] / 12) < 1e-9);
        }
        assert_true(fabs(e2e_metric(m, 0, "environment/ended") - codes / 12) < 1e-9);
        assert_true(fabs(e2e_metric(m, 0, "completions/clipped_ratio") - (double)of[3] / 12) <
                    1e-9);
        assert_true(e2e_metric(m, 0, "val/num_stop_token_ids") == 12 - (double)of[3]);
        json_decref(m);
        json_decref(rows);
    }
}

// ---- faults and refusals ----

static void faults(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *fault, *says;
    } list[] = {
        {"silent", "stays open, but nothing was said to the policy"},
        {"bad_end", "has the end 4, which an environment cannot give"},
        {"bad_verdict", "has the verdict 3; it must be from 0 to 2 (enum rlhf_verdict)"},
        {"bad_failed", "has out->failed 255; it must be 0 or 1"},
        {"bad_later", "has out->later 2; it must be 0 or 1"},
        {"open_verdict", "stays open, but has a verdict; only an episode that ends has one"},
        {"end_again", "is ended by finish(), although it has ended before"},
        {"metric_of", "step(), phase 1: metric() names an episode that is not in this call"},
        {"long_message", "step(), phase 1: say(): byte 32 of its rlhf_message is set, but this "
                         "host knows only 24 bytes"},
        {"short_message", "step(), phase 1: say(): the member size of its rlhf_message is 4"},
        {"no_text", "step(), phase 1: say(): the member text of its rlhf_message is NULL"},
        {"change_n", "step(), phase 1: it changes byte 4 of the host's rlhf_episode_in"},
        {"change_end", "step(), phase 1: it changes byte 16 of the host's rlhf_episode_out"},
        {"reset_pays", "has a reward in reset(); only a turn or finish() may give one"},
        {"no_role", "say() has the role 0; set the message's role, such as RLHF_ROLE_USER"},
        {"failed", "could not be answered"},
        {"status", "step(), phase 1: the game's server is away"},
        {"tool", "it speaks as a tool, but the policy has called none"},
        {"nan", "rewards.nan_policy says stop (zero and drop are allowed too)"},
        {"other", "have the same seed and data row, but begin with different texts"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_true(e2e_run(t, GRPO "--set run.dir=f%zu " ENV(":fault=%s"), i, list[i].fault) != 0);
        e2e_says(t, list[i].says);
        if (strstr(list[i].fault, "_message") || strstr(list[i].fault, "_text"))
            assert_null(strstr(t->out, "played again")); // it would say the same
    }
    run(t, GRPO ENV(":fault=nan") "--set run.dir=zero --set rewards.nan_policy=zero");
}

// An episode that failed reports nothing, also if it is played again: the run's metrics are those
// of a run without the failure.
static void failed_metrics(void **state) {
    struct e2e *t = *state;
    run(t, GRPO "--set run.dir=never " ENV(""));
    run(t, GRPO "--set run.dir=once --set episodes.retries=1 " ENV(":fault=once"));
    e2e_says(t, "1 episode is played again (1 of 1)");
    json_t *never = e2e_metrics(t, "never"), *once = e2e_metrics(t, "once");
    for (size_t i = 0; i < 2; i++) {
        const json_t *a = json_array_get(never, i), *b = json_array_get(once, i);
        assert_non_null(json_object_get(a, "environment/bytes"));
        assert_true(json_equal(json_object_get(a, "environment/bytes"),
                               json_object_get(b, "environment/bytes")));
        assert_null(json_object_get(b, "environment/only_failed"));
    }
    json_decref(never);
    json_decref(once);
}

// With episodes.starts=any, the episodes of a group may have different prompts.
static void groups_that_begin_at_random(void **state) {
    struct e2e *t = *state;
    run(t, GRPO "--set episodes.starts=any --set log.rollouts=true --set run.dir=random "
                "--set prompts.prepend_bos=true " ENV(":fault=other"));
    json_t *m = e2e_metrics(t, "random");
    for (int phase = 0; phase < 2; phase++)
        assert_true(e2e_metric(m, phase, "sampling/logp_difference/max") <= 0);
    json_decref(m);
    // Each prompt is the number of its episode, 0 to 11 in each phase, and a question mark.
    assert_int_equal(e2e_shell(t, "test $(grep -oE '\"ids\": .259(, [0-9]+){1,2}, 63,' "
                                  "random/rollouts.jsonl | sort -u | wc -l) -ge 12"),
                     0);
    assert_int_equal(e2e_run(t, "verify random --all"), 0);
}

static void refusals(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *says;
    } list[] = {
        {"--algo sft.so --data texts.jsonl --policy model --set policy.init=random " ENV(""),
         "--env: sft.so trains on rows of a file and takes no turns"},
        {GRPO "--set rollout.ahead=1 --set algo.correction=token " ENV(""),
         "rollout.ahead is 1, but episodes cannot be sampled ahead of training; use "
         "rollout.ahead=0"},
        {GRPO ENV(":fault=tools"),
         "give prompts that are messages, with another template than plain"},
        {GRPO "--set prompts.template=chatml " ENV(""),
         "it ends a turn with <|im_end|>, which is not a token of this model's vocabulary"},
        {GRPO "--env period_count.so ",
         "period_count.so is a reward, but --env needs an environment"},
        {GRPO ENV("") "--set episodes.tokens=1 ",
         "the longest prompt has 1 token, and a row may have at most 1 (episodes.tokens), which "
         "leaves no room for a turn; give a higher episodes.tokens"},
        {GRPO ENV("") "--set episodes.tokens=4 --prompts prompts.txt --set prompts.max_tokens=6 ",
         "(episodes.tokens), which leaves no room for a turn; give shorter prompts "
         "(prompts.max_tokens) or a higher episodes.tokens"},
        {GRPO ENV("") "--set episodes.tokens=65 ", "but the model's context has 64 tokens"},
        {GRPO ENV("") "--set environment.weight=x ", "environment.weight must be a number"},
        {GRPO ENV(":turm=1"), "unknown key \"environment.turm\""},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_int_equal(e2e_run(t, "%s --set run.dir=r%zu", list[i].args, i), 2);
        e2e_says(t, list[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(log_probs_are_equal, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nothing_depends_on_slots, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(one_turn_is_a_response, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(log_probs_of_forms, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(delays, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bridges, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rewrites, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(later_turns_are_refused, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(limits, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(ends_by_length, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(faults, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(failed_metrics, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(groups_that_begin_at_random, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("episodes", tests, NULL, NULL);
}
