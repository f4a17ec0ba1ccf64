// test_e2e_play.c: episodes outside training: played by hand or by a script, with generate --env
// and with eval --env. Also checks that samples.jsonl, rollouts.jsonl and the report mark who wrote
// each turn.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP "'sampling.stop=[\"a\",\"e\",\"o\",\"i\",\"n\",\"t\",\"s\",\"r\",259]'"
#define RUN                                                                                        \
    "--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random "              \
    "--set batch.size=12 --set run.phases=2 --set sampling.max_new_tokens=40 "                     \
    "--set episodes.reply_tokens=20 --set log.rollouts=true --set run.seed=5 "                     \
    "--set episodes.tokens=62 --set " STOP " "
#define ENV(options) "--env \"$RLHF_TEST_PLUGINS/answering_env.so" options "\" "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    if (e2e_run(t, RUN ENV("") "--set run.dir=run") != 0) fail_msg("%s", t->out);
    e2e_says(t, "try it: rlhf-host generate --model run --env /");
    e2e_says(t, "/answering_env.so\n");
    return 0;
}

static json_t *lines_of(const struct e2e *t, const char *file, const char *with) {
    static char line[1 << 20];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    json_t *rows = json_array();
    while (fgets(line, sizeof line, f)) {
        json_t *v = json_loads(line, 0, NULL);
        assert_non_null(v);
        if (json_object_get(v, with))
            json_array_append_new(rows, v);
        else
            json_decref(v);
    }
    fclose(f);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

static json_int_t integer(const json_t *v, const char *key) {
    return json_integer_value(json_object_get(v, key));
}

// Samples and rollouts have the same turns as the row.
static void turns_in_files(void **state) {
    struct e2e *t = *state;
    json_t *samples = lines_of(t, "run/samples.jsonl", "turns"), *v;
    json_t *rows = lines_of(t, "run/rollouts.jsonl", "segments");
    size_t i, several = 0;
    json_array_foreach(samples, i, v) {
        const json_t *turns = json_object_get(v, "turns"), *turn;
        json_int_t tokens = 0;
        size_t k;
        json_array_foreach(turns, k, turn) {
            const int own = strcmp(json_string_value(json_object_get(turn, "by")), "policy") == 0;
            assert_int_equal(own, k % 2 == 0);
            assert_int_equal(json_object_get(turn, "paid") != NULL, own);
            assert_non_null(json_string_value(json_object_get(turn, "text")));
            tokens += integer(turn, "tokens");
        }
        assert_true(json_is_number(json_object_get(json_object_get(v, "rewards"), "environment")));
        several += k > 1;
        assert_int_equal(tokens, integer(v, "length"));
        assert_non_null(json_string_value(json_object_get(v, "end")));
    }
    assert_true(several > 0);
    json_array_foreach(rows, i, v) {
        const json_t *segments = json_object_get(v, "segments"), *s;
        double paid = 0;
        size_t k, own = 0;
        json_array_foreach(segments, k, s) own +=
            strcmp(json_string_value(json_array_get(s, 0)), "policy") == 0;
        assert_int_equal(json_array_size(json_object_get(v, "paid")), own);
        json_array_foreach(json_object_get(v, "paid"), k, s) paid += json_number_value(s);
        assert_true(paid >= 0);
        assert_non_null(json_string_value(json_object_get(v, "end")));
    }
    json_decref(samples);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "$HOST report run --out page.html && grep -q "
                                  "'\"by\": \"environment\"\\|\"by\":\"environment\"' page.html"),
                     0);
}

// With a run's seed, `play` begins the same episode as the run did.
static void played_by_a_script(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "printf 'aa\\nbbbb\\n' > turns; for k in 1 2; do $HOST play "
                                  "--json --seed 5 --script turns " ENV(
                                      ":turns=2") "> out$k; done; cmp out1 out2"),
                     0);
    json_t *rows = lines_of(t, "out1", "end");
    assert_int_equal(json_array_size(rows), 3);
    const json_t *last = json_array_get(rows, 2);
    assert_string_equal(json_string_value(json_object_get(last, "end")), "done");
    assert_int_equal(integer(last, "turns"), 2);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "$HOST play " ENV(":fault=silent") "--script turns"), 1);
    e2e_says(t, "stays open, but nothing was said to the policy");
    assert_int_equal(e2e_shell(t, "echo '{\"prompt\": \"a\"}' > row.jsonl; $HOST play --prompts "
                                  "row.jsonl " ENV(":fault=change_row,isolate=false")),
                     1);
    e2e_says(t, "it changes byte 4 of the host's rlhf_row_in");
    assert_int_equal(e2e_shell(t, "printf '\\377\\n' | $HOST play " ENV("")), 2);
    e2e_says(t, "invalid UTF-8 at byte 1");
}

// The player sees how to call a tool, and the call works.
static void a_tool_called_by_hand(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "echo '{\"prompt\": \"3 * 4?\"}' > p.jsonl; "
                                  "echo '/call calculator {\"expression\": \"3*4\"}' | "
                                  "$HOST play --env tools.so --prompts p.jsonl"),
                     0);
    e2e_says(t, "\n(for a turn that calls one: /call NAME {\"argument\": 1})\n");
    e2e_says(t, "\ntool: 12\n");
}

#define TYPED "exec env XDG_STATE_HOME=\"$PWD/state\" \"$HOST\" play --env guess.so"

static void played_at_a_terminal(void **state) {
    struct e2e *t = *state;
    static const struct e2e_keys keys[] = {{"1 to 63?", "7\n"}, {"\n> ", "\4"}};
    e2e_typed(t, 24, 80, keys, 2, TYPED);
    e2e_says(t, "[the input ended after 1 turn");
}

// "/help" does not count as a turn. Ctrl-C and "/quit" end the game at once.
static void ended_at_a_terminal(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys ctrl_c[] = {{"1 to 63?", "/help\n"}, {"ends\r\n> ", "1"}, {"1", "\3"}},
                          quit[] = {{"1 to 63?", "/quit\n"}};
    assert_int_equal(e2e_typed(t, 24, 80, ctrl_c, 3, TYPED), 0);
    e2e_says(t, "[the input ended after 0 turns");
    assert_int_equal(e2e_typed(t, 24, 80, quit, 1, TYPED), 0);
    e2e_says(t, "[the input ended after 0 turns");
}

static void generated(void **state) {
    struct e2e *t = *state;
#define GENERATE "$HOST generate --model run --threads 1 --seed 3 "
    assert_int_equal(e2e_shell(t, GENERATE ENV("") "--n 5 --json > five; " GENERATE ENV(
                                      "") "--n 3 --json > three; head -3 five | cmp - three"),
                     0);
    json_t *rows = lines_of(t, "five", "turns"), *v;
    size_t i, given = 0;
    assert_int_equal(json_array_size(rows), 5);
    json_array_foreach(rows, i, v) {
        const json_t *turns = json_object_get(v, "turns"), *turn;
        json_int_t tokens = integer(v, "prompt_length"), own = 0;
        size_t k;
        json_array_foreach(turns, k, turn) {
            tokens += integer(turn, "tokens");
            if (json_object_get(turn, "paid")) own += integer(turn, "tokens");
        }
        given += json_array_size(turns) > 1;
        assert_int_equal(json_array_size(json_object_get(v, "ids")), tokens);
        assert_int_equal(json_array_size(json_object_get(v, "logp_sampled")), own);
    }
    assert_true(given > 0);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, GENERATE ENV("") "--turns 1 2>log; ! grep -e --set log"), 0);
    e2e_says(t, "after 1 turn; pays");
    assert_int_equal(e2e_shell(t, GENERATE ENV("") "--greedy"), 2);
    e2e_says(t, "--greedy has no effect with --env");
    assert_int_equal(e2e_shell(t, GENERATE "--turns 2 --prompt a"), 2);
    e2e_says(t, "--turns has no effect without --env");
}

static void evaluated(void **state) {
    struct e2e *t = *state;
#define EVAL "$HOST eval --model run --threads 1 "
    assert_int_equal(e2e_shell(t, EVAL ENV("") "--n 40 --json 2>log > eval.json; grep -q 'as in "
                                               "the run' log"),
                     0);
    json_t *rows = lines_of(t, "eval.json", "rewards"), *v = json_array_get(rows, 0);
    assert_true(json_number_value(json_object_get(v, "turns")) > 1);
    const json_t *paid = json_object_get(json_object_get(v, "rewards"), "environment");
    assert_true(json_number_value(json_object_get(paid, "error")) > 0);
    assert_true(json_number_value(json_object_get(paid, "std")) > 0);
    assert_true(json_number_value(json_object_get(v, "reward_error")) > 0);
    assert_int_equal(integer(v, "prompts"), 40);
    json_decref(rows);
    assert_int_equal(
        e2e_shell(t, EVAL ENV("") "--n 8 --reward period_count.so "
                                  "--data prompts.txt --compare run/checkpoints/000002 --save"),
        0);
    e2e_says(t, "period_count");
    assert_int_equal(e2e_shell(t, EVAL ENV("") "--per-prompt 2"), 2);
    e2e_says(t, "--per-prompt has no effect here");
    assert_int_equal(e2e_shell(t, EVAL "--reward period_count.so --set episodes.turns=2"), 2);
    e2e_says(t, "there is no environment (--env)");
}

// With --n 2, `generate` plays two episodes in all, although the run has more prompts. The command
// that a run suggests has the options of the environment.
static void suggested(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN ENV(":turns=2") "--reward period_count.so --prompts "
                                                    "prompts.txt --set run.dir=given"),
                     0);
    e2e_says(t, "/answering_env.so:turns=2\n");
    assert_int_equal(
        e2e_shell(t, "$HOST generate --model given " ENV("") "--n 2 | grep -c '^\\[ended'"), 0);
    e2e_says(t, "2\n");
}

// The message about an adapter that does not move names the environment's rewards.
static void unpaid_adapter(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, "--algo grpo.so --set algo.group_size=2 --env guess.so --policy models/policy "
                   "--set policy.adapter.rank=2 --set batch.size=4 --set run.phases=1 "
                   "--set sampling.max_new_tokens=1 --set run.dir=unpaid"),
        1);
    e2e_says(t, "(last rewards: environment (mean 0, ");
}

// Without prompts, an environment that says nothing in reset() leaves an episode without a text.
static void no_beginning(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t,
                               "printf 'class Quiet:\\n    def reset(self, **row): return None\\n"
                               "    def get_reward(self): return 1.0\\n' > quiet.py"),
                     0);
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=2 --policy models/calc --set "
                                "batch.size=4 --set run.phases=1 --env "
                                "env_python.so:file=quiet.py,class=Quiet --out quiet"),
                     1);
    e2e_says(t, "the environment says nothing in reset(), and the run has no prompts");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(turns_in_files),
                                       cmocka_unit_test(played_by_a_script),
                                       cmocka_unit_test(a_tool_called_by_hand),
                                       cmocka_unit_test(played_at_a_terminal),
                                       cmocka_unit_test(ended_at_a_terminal),
                                       cmocka_unit_test(generated),
                                       cmocka_unit_test(evaluated),
                                       cmocka_unit_test(suggested),
                                       cmocka_unit_test(unpaid_adapter),
                                       cmocka_unit_test(no_beginning)};
    return cmocka_run_group_tests_name("play", tests, setup, e2e_teardown);
}
