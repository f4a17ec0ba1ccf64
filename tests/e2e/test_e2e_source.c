// test_e2e_source.c: algorithms and rewards get the source index of each row, for every kind of
// rows, even if some rows of the file were left out or dropped. They also get the number of the
// phase.
#include "e2e.h"

#include <string.h>

#define ALGO   "--algo \"$RLHF_TEST_PLUGINS/source_algo.so"
#define REWARD "--reward \"$RLHF_TEST_PLUGINS/source_reward.so"
#define ANY                                                                                        \
    "--policy model --set policy.init=random --set optim.lr=0.01 --set run.phases=4 "              \
    "--set log.progress=off --set run.dir=r "
#define FILES ANY "--set batch.size=2 --data rows.jsonl "
#define SKIP  "--set prompts.long_rows=skip --set prompts.max_tokens=30 "
#define ROLLS ANY "--set batch.size=8 --set sampling.max_new_tokens=4 "

// Asserts that every phase of the run has checked at least `rows` rows, all without errors.
static void all_right(struct e2e *t, double rows) {
    json_t *m = e2e_metrics(t, "r");
    for (int p = 0; p < 4; p++) {
        assert_true(e2e_metric(m, -4 + p, "test/rows") >= rows);
        assert_true(e2e_metric(m, -4 + p, "test/wrong") == 0);
    }
    json_decref(m);
    assert_int_equal(e2e_shell(t, "rm -r r"), 0);
}

static void rows_of_a_file(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.jsonl",
              "{\"text\": \"Aa is it\"}\n{\"text\": \"Bb is it\"}\n{\"text\": \"C\"}\n"
              "{\"text\": \"Dd is it, is it, is it, is it, is it, is it, is it, is it\"}\n"
              "{\"text\": \"Ee is it\"}\n");
    assert_int_equal(e2e_run(t, ALGO ":source=2\" " FILES), 0);
    all_right(t, 2);
    assert_int_equal(e2e_run(t, ALGO ":source=2\" " FILES "--set data.skip=2"), 0);
    all_right(t, 2);
    e2e_write(t, "rows.jsonl",
              "{\"text\": \"Aa is it\", \"label\": 1}\n{\"text\": \"Bb\", \"label\": 0}\n"
              "{\"text\": \"Cc is it\", \"label\": 1}\n{\"text\": \"Dd\", \"label\": 0}\n");
    assert_int_equal(e2e_run(t, ALGO ":source=3\" " FILES "--set data.skip=1"), 0);
    all_right(t, 2);
}

static void preferences_and_completions(void **state) {
    struct e2e *t = *state;
    // The two responses of row 1 become equal when they are cut to the context, so the row is left
    // out.
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"xA\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n"
              "{\"prompt\": \"xB\", \"chosen\": \" same x\", \"rejected\": \" same y\"}\n"
              "{\"prompt\": \"xC\", \"responses\": [\" so\", \" no\", \" oh\"], \"best\": 1}\n"
              "{\"prompt\": \"xD\", \"chosen\": \" good\", \"rejected\": \" bad\"}\n");
    const char *cut = "--set data.max_tokens=6 ";
    assert_int_equal(e2e_run(t, ALGO ":source=4\" " FILES "%s", cut), 0);
    e2e_says(t, "1 left out (equal tokens)");
    all_right(t, 4);
    assert_int_equal(e2e_run(t, ALGO ":source=4\" " FILES "%s--set data.skip=1", cut), 0);
    all_right(t, 4);
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"Aa\", \"completion\": \" fine\", \"label\": true}\n"
              "{\"prompt\": \"Bb\", \"completion\": \" dull\", \"label\": false}\n"
              "{\"prompt\": \"Cc\", \"completion\": \" good\", \"label\": true}\n");
    assert_int_equal(e2e_run(t, ALGO ":source=5\" " FILES), 0);
    all_right(t, 2);
    assert_int_equal(e2e_run(t, ALGO ":source=5,mismatched=1\" " FILES "--set data.skip=1"), 0);
    all_right(t, 4);
}

// Prompts that are left out do not count in the source index. Tested with groups, further rounds,
// dropped rows, held-out rows and workers.
static void responses_to_prompts(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.txt",
              "skipped and much longer than the others, far too long, and longer\n"
              "Aa is it\nBb is it\nso skipped and much longer than the others, and longer\n"
              "Cc is it\nDd is it\nEe is it\n");
    e2e_write(t, "held.txt", "so it is\nis it so\n");
#define PROMPTS                                                                                    \
    ROLLS "--prompts rows.txt " SKIP "--set data.eval_path=held.txt --set data.eval_every=2 "
    assert_int_equal(e2e_run(t, ALGO "\" " REWARD "\" " PROMPTS), 0);
    all_right(t, 16);
    assert_int_equal(e2e_run(t, ALGO ":group_size=2,rounds=5\" " REWARD "\" " PROMPTS), 0);
    all_right(t, 16);
    assert_int_equal(e2e_run(t, ALGO ":group_size=2\" " REWARD ":every=3\" " PROMPTS
                                     "--set rewards.nan_policy=drop --set rewards.workers=2 "
                                     "--set batch.microbatch_tokens=20"),
                     0);
    all_right(t, 10);
    // In other commands, too, the index counts only prompts that are in use.
    assert_int_equal(e2e_run(t, ALGO "\" " REWARD "\" " PROMPTS), 0);
    assert_int_equal(e2e_run(t, "eval --model r/checkpoints/latest --data rows.txt --n 7 "
                                "--set sampling.max_new_tokens=4 " SKIP REWARD "\""),
                     0);
    e2e_run(t, "pairs --model r/checkpoints/latest --prompts rows.txt --out p.jsonl "
               "--set sampling.max_new_tokens=4 " SKIP "--judge "
               "\"$RLHF_TEST_PLUGINS/source_reward.so\"");
    assert_null(strstr(t->out, "another prompt"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {T(rows_of_a_file), T(preferences_and_completions),
                                       T(responses_to_prompts)};
    return cmocka_run_group_tests_name("e2e_source", tests, NULL, NULL);
}
