// test_e2e_stop.c: how responses end: sampling.stop and end tokens. A run with sampling.stop
// samples the same tokens as a run without it, up to the stop.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=24 "                \
    "--set sampling.max_new_tokens=24 --set sampling.stop_at_eos=true --set log.samples=24 "       \
    "--set optim.schedule_phases=8 --set optim.lr=0.01 --set log.samples_every=1 "                 \
    "--set log.rollouts=true "

#define ROWS 24
#define EOS  259

// Writes the ids of row i's response to out[]. Returns their number.
static size_t response(const json_t *lines, size_t i, int64_t out[64]) {
    const json_t *row = json_array_get(lines, i), *ids = json_object_get(row, "ids");
    size_t from = (size_t)json_integer_value(json_object_get(row, "prompt_length")), n = 0;
    for (size_t k = from; k < json_array_size(ids); k++)
        out[n++] = json_integer_value(json_array_get(ids, k));
    return n;
}

// Returns the text of the response of row i.
static const char *text_of(const json_t *samples, size_t i) {
    const json_t *s = NULL;
    for (size_t k = 0; k < ROWS && !s; k++) {
        const json_t *one = json_array_get(samples, k);
        if (json_integer_value(json_object_get(one, "row")) == (json_int_t)i) s = one;
    }
    assert_non_null(s);
    return json_string_value(json_object_get(s, "response"));
}

static int is_letter(int64_t id) { return (id >= 'a' && id <= 'z') || (id >= 'A' && id <= 'Z'); }

// Finds two adjacent letters in some response, but not at its beginning.
static void find_pair(const json_t *lines, char out[3]) {
    int64_t ids[64];
    for (size_t i = 0; i < ROWS; i++) {
        size_t n = response(lines, i, ids);
        for (size_t k = 3; k + 4 < n; k++) {
            if (!is_letter(ids[k]) || !is_letter(ids[k + 1])) continue;
            snprintf(out, 3, "%c%c", (int)ids[k], (int)ids[k + 1]);
            return;
        }
    }
    fail_msg("no two letters side by side");
}

// Returns the length of the response up to and including the first token that completes `text` or
// whose id is `id`. Returns -1 if the response lacks such a token.
static int64_t expected(const int64_t *ids, size_t n, const char *text, int64_t id) {
    static const char *const merged[] = {"th", "the", "in", ""};
    char bytes[512] = "";
    size_t len = 0;
    for (size_t k = 0; k < n; k++) {
        if (ids[k] == id) return (int64_t)k + 1;
        if (ids[k] >= 256) len += (size_t)sprintf(bytes + len, "%s", merged[ids[k] - 256]);
        if (ids[k] < 256) bytes[len++] = ids[k] ? (char)ids[k] : ' ';
        bytes[len] = 0;
        if (strstr(bytes, text)) return (int64_t)k + 1;
    }
    return -1;
}

static void responses_end_at_texts_and_ids(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set run.phases=1 --set run.dir=a"), 0);
    json_t *all = e2e_lines(t, "a/rollouts.jsonl");
    char pair[3];
    int64_t long_ids[64], ids[64], id;
    find_pair(all, pair);
    assert_true(response(all, 1, long_ids) > 5);
    id = long_ids[5];
    assert_int_equal(e2e_run(t,
                             RUN "--set run.phases=1 --set run.dir=b "
                                 "--set 'sampling.stop=[\"%s\", \"never to be seen\", %lld]'",
                             pair, (long long)id),
                     0);
    json_t *cut = e2e_lines(t, "b/rollouts.jsonl"), *samples = e2e_lines(t, "b/samples.jsonl");
    int by_text = 0, by_id = 0, whole = 0, finished = 0;
    for (size_t i = 0; i < ROWS; i++) {
        size_t n = response(all, i, long_ids), m = response(cut, i, ids);
        int64_t want = expected(long_ids, n, pair, id);
        const json_t *row = json_array_get(cut, i);
        const char *text = text_of(samples, i);
        assert_int_equal(m, want < 0 ? (int64_t)n : want);
        assert_memory_equal(ids, long_ids, m * sizeof *ids);
        int ended = want >= 0 || ids[m - 1] == EOS;
        assert_int_equal(json_is_true(json_object_get(row, "finished")), ended);
        finished += ended;
        const json_t *logp = json_object_get(row, "logp_sampled");
        const json_t *before = json_object_get(json_array_get(all, i), "logp_sampled");
        for (size_t k = 0; k < m; k++)
            assert_true(json_equal(json_array_get(logp, k), json_array_get(before, k)));
        // The text of a response ends before the stop text. But if a stop token ends the response
        // and is not special, the text includes that token.
        assert_null(strstr(text, pair));
        if (want >= 0 && ids[m - 1] == id && id < 128) assert_int_equal(text[strlen(text) - 1], id);
        by_id += want >= 0 && ids[m - 1] == id;
        by_text += want >= 0 && ids[m - 1] != id;
        whole += want < 0;
    }
    assert_true(by_text > 0 && by_id > 0 && whole > 0);
    json_t *metrics = e2e_metrics(t, "b");
    assert_true(e2e_metric(metrics, 0, "val/num_stop_token_ids") == finished);
    assert_true(e2e_metric(metrics, 0, "sampling/logp_difference/max") == 0);
    json_decref(metrics);
    json_decref(all);
    json_decref(cut);
    json_decref(samples);
}

static void a_resumed_run_stops_at_the_same(void **state) {
    struct e2e *t = *state;
    const char *how = "--set 'sampling.stop=[\"a\", \"e\", \"th\", 200, 201]' --set run.phases=3";
    assert_int_equal(e2e_run(t, RUN "%s --set run.dir=a", how), 0);
    assert_int_equal(e2e_run(t,
                             RUN "%s --set run.dir=b --set run.stop_after=1 "
                                 "--set sampling.slots=5",
                             how),
                     0);
    assert_int_equal(e2e_run(t, "--resume b --set run.stop_after=0"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/rollouts.jsonl b/rollouts.jsonl"), 0);
    e2e_same_tree(t, "a/checkpoints/000003", "b/checkpoints/000003");
    assert_int_equal(e2e_shell(t, "grep -A6 '\"stop\": ' b/config.json | tr -d ' \\n'"), 0);
    e2e_says(t, "\"stop\":[\"a\",\"e\",\"th\",200,201]");
}

// If an option takes a list, a single word is read as a list with this one text, and a single
// number as a list with this one id.
static void a_list_of_one(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "$HOST " RUN "--set sampling.stop=END --print-config | grep -A1 '\"stop\"'"),
        0);
    e2e_says(t, "\"END\"");
    assert_int_equal(
        e2e_shell(t, "$HOST " RUN "--set sampling.stop=7 --print-config | grep -A1 '\"stop\"'"), 0);
    e2e_says(t, " 7\n");
}

static void what_can_not_stop_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set 'sampling.stop=[\"\"]' --set run.dir=p"), 2);
    e2e_says(t,
             "sampling.stop must be a list of texts that are not empty and of token ids, such as "
             "[\"\\n\\n\", 13], found a list with \"\"");
    assert_int_equal(e2e_run(t, RUN "--set 'sampling.stop=[1.5]' --set run.dir=p"), 2);
    e2e_says(t, "found a list with 1.5");
    assert_int_equal(e2e_run(t, RUN "--set 'sampling.stop={\"a\": 1}' --set run.dir=p"), 2);
    e2e_says(t, "found an object");
    assert_int_equal(e2e_run(t, RUN "--set 'sampling.stop=[260]' --set run.dir=p"), 2);
    e2e_says(t, "sampling.stop: the policy has no token 260; its tokens are 0 to 259");
    assert_false(e2e_exists(t, "p"));
}

// ---- the period rule ----

static void a_period_can_be_one_token(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set response.truncate=period --set run.phases=1 "
                                    "--set response.period_token=. --set run.dir=a"),
                     0);
    assert_int_equal(e2e_run(t, RUN "--set response.truncate=period --set run.dir=b "
                                    "--set response.period_token=..."),
                     2);
    e2e_says(t, "response.period_token: \"...\" is 3 tokens of the policy; it must be one");
    assert_false(e2e_exists(t, "b"));
}

// ---- end tokens ----

#define ENDS(algo)                                                                                 \
    "--algo " algo " --policy model --set policy.init=random --prompts prompts.txt "               \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=24 "                \
    "--set sampling.max_new_tokens=24 --set log.tensorboard=false --phases 1 "
#define GROUPS "\"$RLHF_TEST_PLUGINS/group_algo.so\""

// Sets rlhf_stop_at_eos to false in the model's config.json, so an end token does not end the
// model's texts. The default policy has this setting, too.
static void goes_on(struct e2e *t) {
    assert_int_equal(
        e2e_shell(t, "sed -i '0,/{/s//{\"rlhf_stop_at_eos\": false, /' model/config.json"), 0);
}

static void same_weights(struct e2e *t, const char *a, const char *b, int same) {
    int differ = e2e_shell(t,
                           "cmp -s %s/checkpoints/latest/model.safetensors "
                           "%s/checkpoints/latest/model.safetensors",
                           a, b);
    assert_int_equal(differ == 0, same);
}

static void any_model_stops_at_its_end_tokens(void **state) {
    struct e2e *t = *state;
    static const char *const algos[] = {ENDS("ppo.so"), ENDS("grpo.so"), ENDS("rloo.so"),
                                        ENDS(GROUPS)};
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf a b c"), 0);
        assert_int_equal(e2e_run(t, "%s --out a", algos[i]), 0);
        e2e_says(t, "responses: at most 24 tokens, end at <|endoftext|>\n");
        assert_int_equal(e2e_run(t, "%s --set sampling.stop_at_eos=true --out b", algos[i]), 0);
        assert_int_equal(e2e_run(t, "%s --set sampling.stop_at_eos=false --out c", algos[i]), 0);
        e2e_says(t, "responses: 24 tokens each, and do not end early "
                    "(sampling.stop_at_eos=false)\n");
        same_weights(t, "a", "b", 1);
        same_weights(t, "a", "c", 0);
        json_t *rows = e2e_metrics(t, "a");
        assert_true(e2e_metric(rows, 0, "completions/mean_length") < 24);
        json_decref(rows);
    }
}

static void a_model_may_say_that_it_goes_on(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--set sampling.stop_at_eos=false --out never"), 0);
    goes_on(t);
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--out auto"), 0);
    e2e_says(t, "responses: 24 tokens each, and do not end early (config.json of the policy has "
                "rlhf_stop_at_eos=false");
    same_weights(t, "auto", "never", 1);
    // The checkpoint keeps the setting, and so does a resumed run.
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--phases 2 --out whole"), 0);
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--phases 2 --set run.stop_after=1 --out part"), 0);
    assert_int_equal(e2e_run(t, "--resume part"), 0);
    e2e_says(t, "and do not end early");
    e2e_same_tree(t, "whole/checkpoints/000002", "part/checkpoints/000002");
    assert_int_equal(e2e_shell(t, "grep -q rlhf_stop_at_eos whole/checkpoints/latest/config.json"),
                     0);
    // A model that was trained to end its texts does not have the setting.
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--set sampling.stop_at_eos=true --out ends"), 0);
    e2e_says(t, "responses: at most 24 tokens, end at");
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --set "
                                "policy.init=random --phases 1 --out texts"),
                     0);
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy "
                                "whole/checkpoints/latest --set policy.adapter.rank=2 --phases 1 "
                                "--out adapted"),
                     0);
    assert_int_equal(e2e_shell(t, "cat ends/checkpoints/latest/config.json "
                                  "texts/checkpoints/latest/config.json "
                                  "adapted/checkpoints/latest/config.json | grep rlhf_stop_at_eos"),
                     1);
    assert_int_equal(e2e_run(t, "--algo grpo.so --policy adapted/checkpoints/latest "
                                "--prompts prompts.txt --reward \"$RLHF_TEST_PLUGINS/"
                                "bad_reward.so:every=1000\" --phases 1 --dry-run"),
                     0);
    e2e_says(t, "end at <|endoftext|>");
    assert_int_equal(e2e_shell(t, "sed -i 's/_at_eos\": false/_at_eos\": 0/' model/config.json"),
                     0);
    assert_int_equal(e2e_run(t, ENDS("grpo.so") "--out bad"), 2);
    e2e_says(t, "model/config.json: rlhf_stop_at_eos is an integer; true or false is allowed");
}

static void a_switch_is_a_choice_now(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *value, *printed;
    } cases[] = {
        {"true", "true"}, {"false", "false"}, {"\"auto\"", "\"auto\""}, {"\"true\"", "true"}};
    char line[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(line, sizeof line, "{\"sampling\": {\"stop_at_eos\": %s}}", cases[i].value);
        e2e_write(t, "c.json", line);
        assert_int_equal(e2e_run(t, ENDS("ppo.so") "--config c.json --print-config"), 0);
        snprintf(line, sizeof line, "\"stop_at_eos\": %s,", cases[i].printed);
        e2e_says(t, line);
    }
    e2e_write(t, "c.json", "{\"sampling\": {\"stop_at_eos\": 1}}");
    assert_int_equal(e2e_run(t, ENDS("ppo.so") "--config c.json --print-config"), 2);
    e2e_says(t, "sampling.stop_at_eos must be one of auto, true, false, found 1");
}

static void texts_and_ids_are_named_too(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ENDS("ppo.so") "--set 'sampling.stop=[\"e\", 13]' --dry-run"), 0);
    e2e_says(t, "end at <|endoftext|> and at sampling.stop [\"e\", 13]\n");
    assert_int_equal(e2e_run(t, ENDS("ppo.so") "--set 'sampling.stop=[\"e\"]' --dry-run "
                                               "--set sampling.stop_at_eos=false"),
                     0);
    e2e_says(t, "responses: at most 24 tokens, end at sampling.stop [\"e\"] only "
                "(sampling.stop_at_eos=false)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(responses_end_at_texts_and_ids, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_stops_at_the_same, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_list_of_one, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_can_not_stop_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_period_can_be_one_token, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(any_model_stops_at_its_end_tokens, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_may_say_that_it_goes_on, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_switch_is_a_choice_now, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(texts_and_ids_are_named_too, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_stop", tests, NULL, NULL);
}
