// test_e2e_prompts.c: prompts that are too long, too short or empty. They are cut or left out,
// counted, and reported. Such a row ends a run only if a setting says so.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts p.jsonl "                     \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=4 "                 \
    "--set sampling.max_new_tokens=4 --set run.phases=1 --set prompts.shuffle=false "              \
    "--set log.rollouts=true --set prompts.prepend_bos=true "

#define BOS 259

static void write_prompts(const struct e2e *t) {
    e2e_write(t, "p.jsonl",
              "{\"prompt\": \"abcdefgh\"}\n"
              "{\"prompt\": \"\"}\n"
              "{\"prompt\": \"xyz\"}\n"
              "{\"prompt\": \"q\"}\n");
}

// Writes the prompt of row i of a run to `out` as text, without BOS.
static void prompt_of(const struct e2e *t, const char *run, int i, char out[80]) {
    char path[512];
    snprintf(path, sizeof path, "%s/rollouts.jsonl", run);
    json_t *rows = e2e_lines(t, path);
    const json_t *row = json_array_get(rows, (size_t)i);
    const json_t *ids = json_object_get(row, "ids");
    size_t n = (size_t)json_integer_value(json_object_get(row, "prompt_length"));
    assert_int_equal(json_integer_value(json_array_get(ids, 0)), BOS);
    for (size_t k = 1; k < n; k++)
        out[k - 1] = (char)json_integer_value(json_array_get(ids, k));
    out[n - 1] = 0;
    json_decref(rows);
}

static void expect_prompts(struct e2e *t, const char *run, const char *const want[4]) {
    for (int i = 0; i < 4; i++) {
        char got[80];
        prompt_of(t, run, i, got);
        assert_string_equal(got, want[i]);
    }
}

static void long_prompts_are_cut_or_skipped(void **state) {
    struct e2e *t = *state;
    write_prompts(t);
    assert_int_equal(e2e_run(t, RUN "--set prompts.max_tokens=5 --set run.dir=left"), 0);
    e2e_says(t, "prompts: 4 of 4 rows are used; 1 of them is cut to 5 tokens");
    expect_prompts(t, "left", (const char *const[]){"efgh", "", "xyz", "q"});
    assert_int_equal(e2e_run(t, RUN "--set prompts.max_tokens=5 --set run.dir=right "
                                    "--set prompts.long_rows=cut_right"),
                     0);
    expect_prompts(t, "right", (const char *const[]){"abcd", "", "xyz", "q"});
    assert_int_equal(e2e_run(t, RUN "--set prompts.max_tokens=5 --set run.dir=skip "
                                    "--set prompts.long_rows=skip --set prompts.min_tokens=3"),
                     0);
    e2e_says(t, "prompts: 1 of 4 rows is used; left out: 2 under 3 tokens, 1 over 5 tokens");
    expect_prompts(t, "skip", (const char *const[]){"xyz", "xyz", "xyz", "xyz"});
    assert_int_equal(e2e_run(t, RUN "--set prompts.max_tokens=5 --set run.dir=no "
                                    "--set prompts.long_rows=refuse"),
                     2);
    e2e_says(t, "p.jsonl:1: the prompt has 9 tokens, 5 are allowed (prompts.long_rows is refuse)");
    assert_false(e2e_exists(t, "no"));
}

// Without prompts.max_tokens a prompt must fit into the context.
static void the_context_cuts_too(void **state) {
    struct e2e *t = *state;
    char text[256];
    snprintf(text, sizeof text, "{\"prompt\": \"%0100d\"}\n{\"prompt\": \"short\"}\n", 7);
    e2e_write(t, "p.jsonl", text);
    assert_int_equal(e2e_run(t, RUN "--set run.dir=p"), 0);
    e2e_says(t, "prompts: 2 of 2 rows are used; 1 of them is cut to 60 tokens");
    assert_null(strstr(t->out, "do not fit into"));
    assert_int_equal(e2e_run(t, RUN "--set run.dir=s --set prompts.limit=1"), 0);
    e2e_says(t, "warning: prompts: 100 % of the prompts do not fit into 60 tokens and were cut at "
                "their beginning; what helps: a lower sampling.max_new_tokens, or");
    // If all prompts fit, there is no message.
    assert_int_equal(e2e_run(t, RUN "--set run.dir=q --prompts prompts.txt"), 0);
    assert_null(strstr(t->out, "prompts:"));
    assert_int_equal(e2e_run(t, RUN "--set run.dir=r --set prompts.length=60"), 2);
    e2e_says(t, "prompts.length 60, the BOS token and sampling.max_new_tokens 4 are together more "
                "than the context of");
}

static void empty_prompts_are_left_out(void **state) {
    struct e2e *t = *state;
    write_prompts(t);
    assert_int_equal(e2e_run(t, RUN "--set prompts.prepend_bos=false --set run.dir=p"), 0);
    e2e_says(t, "prompts: 3 of 4 rows are used; left out: 1 under 1 token");
    e2e_write(t, "p.jsonl", "{\"prompt\": \"\"}\n{\"prompt\": \"\"}\n");
    assert_int_equal(e2e_run(t, RUN "--set prompts.prepend_bos=false --set run.dir=q"), 2);
    e2e_says(t, "p.jsonl: no prompt is left of 2 rows; left out: 2 under 1 token");
    write_prompts(t);
    assert_int_equal(e2e_run(t, RUN "--set prompts.end_at_period=true --set run.dir=q"), 2);
    e2e_says(t, "p.jsonl: no prompt is left of 4 rows; left out: 4 without a period where the "
                "query rules need one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(long_prompts_are_cut_or_skipped, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_context_cuts_too, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(empty_prompts_are_left_out, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_prompts", tests, NULL, NULL);
}
