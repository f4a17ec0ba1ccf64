// test_prompts.c: prompt sets and the query rules.
#include "support/scratch.h"

#include "data/prompts.h"

struct fixture {
    struct rlhf__tokenizer *tok;
    struct rlhf__prompts *set;
    struct scratch *scratch;
};

static int setup(void **state) {
    static struct fixture f; // one group of tests at a time
    struct rlhf__error err = {0};
    void *scratch = NULL;
    f = (struct fixture){0};
    if (scratch_setup(&scratch) || rlhf__tokenizer_open("../text/data/bpe", &f.tok, &err))
        return -1;
    f.scratch = scratch;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *scratch = f->scratch;
    rlhf__prompts_close(f->set);
    rlhf__tokenizer_close(f->tok);
    return scratch_teardown(&scratch);
}

static void expect_open(struct fixture *f, struct rlhf__prompt_opts o, const char *path) {
    struct rlhf__error err = {0};
    rlhf__prompts_close(f->set);
    f->set = NULL;
    o.paths = &path;
    o.n_paths = path != NULL;
    if (!o.max_tokens) o.max_tokens = 256;
    check_ok(rlhf__prompts_open(&o, f->tok, &f->set, &err), &err);
}

static void expect_error(struct fixture *f, struct rlhf__prompt_opts o, const char *path,
                         const char *part) {
    struct rlhf__error err = {0};
    struct rlhf__prompts *set = NULL;
    o.paths = &path;
    o.n_paths = path != NULL;
    if (!o.max_tokens) o.max_tokens = 256;
    check_error(rlhf__prompts_open(&o, f->tok, &set, &err), RLHF_E_INVALID, &err, part);
    assert_null(set);
}

static void check_text(struct fixture *f, int64_t i, const char *want) {
    struct rlhf__prompt p = rlhf__prompts_get(f->set, i);
    if (p.text.len != strlen(want) || memcmp(p.text.ptr, want, strlen(want)))
        fail_msg("prompt %d is \"%.*s\", expected \"%s\"", (int)i, (int)p.text.len, p.text.ptr,
                 want);
}

static void constant(void **state) {
    struct fixture *f = *state;
    expect_open(f, (struct rlhf__prompt_opts){.text = "The harbour", .prepend_bos = 1}, NULL);
    assert_int_equal(rlhf__prompts_count(f->set), 1);
    check_text(f, 0, "The harbour");
    struct rlhf__prompt p = rlhf__prompts_get(f->set, 0);
    assert_int_equal(p.ids[0], rlhf__tokenizer_info(f->tok)->bos);
    assert_int_equal(p.n, rlhf__prompts_longest(f->set));
    assert_int_equal(p.meta.len, 0);
    expect_open(f, (struct rlhf__prompt_opts){.text = "", .prepend_bos = 1}, NULL);
    assert_int_equal(rlhf__prompts_get(f->set, 0).n, 1); // bos alone is a prompt
    expect_error(f, (struct rlhf__prompt_opts){.text = ""}, NULL,
                 "prompts.text: no prompt is left of 1 row; left out: 1 under 1 token");
}

static void files(void **state) {
    struct fixture *f = *state;
    struct rlhf__prompt_opts o = {0};
    expect_open(f, o, scratch_text(f->scratch, "p.txt", "one\ntwo\n\nthree\n"));
    assert_int_equal(rlhf__prompts_count(f->set), 3);
    check_text(f, 2, "three");
    expect_open(
        f, o,
        scratch_text(f->scratch, "p.jsonl",
                     "{\"prompt\": \"p\", \"text\": \"t\", \"k\": 1}\n{\"text\": \"t\"}\n"));
    check_text(f, 0, "p");
    check_text(f, 1, "t");
    struct rlhf__prompt p = rlhf__prompts_get(f->set, 0);
    assert_int_equal(p.meta.len, strlen("{\"prompt\": \"p\", \"text\": \"t\", \"k\": 1}"));
    assert_int_equal(p.row, 0);
    o.field = "question";
    expect_open(f, o, scratch_text(f->scratch, "q.jsonl", "{\"question\": \"q?\"}\n"));
    check_text(f, 0, "q?");
}

static void query_rules(void **state) {
    struct fixture *f = *state;
    const char *path = scratch_text(f->scratch, "p.txt",
                                    "No end. The old lighthouse. It was better. And more\n"
                                    "no period at all\n"
                                    "nothing after it.\n"
                                    "a . b c d f g\n");
    struct rlhf__prompt_opts o = {.start_after_period = 1};
    expect_open(f, o, path);
    assert_int_equal(rlhf__prompts_count(f->set), 2);
    assert_int_equal(rlhf__prompts_counts(f->set).no_period, 2);
    check_text(f, 0, " The old lighthouse. It was better. And more");
    check_text(f, 1, " b c d f g");
    assert_int_equal(rlhf__prompts_get(f->set, 1).row, 3);
    o.end_at_period = 1;
    expect_open(f, o, path);
    assert_int_equal(rlhf__prompts_count(f->set), 1);
    check_text(f, 0, " The old lighthouse. It was better.");
    o.length = 14; // the second period is the 15th token, so the prompt ends at the previous period
    expect_open(f, o, path);
    check_text(f, 0, " The old lighthouse.");
    o = (struct rlhf__prompt_opts){.length = 3, .start_after_period = 1, .prepend_bos = 1};
    expect_open(f, o, path);
    check_text(f, 1, " b c d");
    assert_int_equal(rlhf__prompts_get(f->set, 1).n, 4);
    o = (struct rlhf__prompt_opts){.end_at_period = 1};
    expect_open(f, o, path);
    assert_int_equal(rlhf__prompts_count(f->set), 3);
    check_text(f, 2, "a .");
}

// Besides encoding a whole text, there is a quick check of the text. Both must agree.
static void period_far_into_the_text(void **state) {
    struct fixture *f = *state;
    char text[4000] = "";
    for (int i = 0; i < 300; i++)
        strcat(text, " b");
    strcat(text, ". The end is here and goes on\n");
    struct rlhf__prompt_opts o = {.start_after_period = 1, .length = 4};
    expect_open(f, o, scratch_text(f->scratch, "p.txt", text));
    assert_int_equal(rlhf__prompts_get(f->set, 0).n, 4);
    assert_int_equal(rlhf__prompts_get(f->set, 0).text.ptr[1], 'T');
}

// One long, short or empty row does not prevent the use of the others.
static void long_and_short(void **state) {
    struct fixture *f = *state;
    const char *path = scratch_text(f->scratch, "p.jsonl",
                                    "{\"prompt\": \"a b c. d f g k\"}\n{\"prompt\": \"\"}\n"
                                    "{\"prompt\": \"a b\"}\n{\"prompt\": \"a\"}\n");
    struct rlhf__prompt_opts o = {.max_tokens = 4, .min_tokens = 2};
    expect_open(f, o, path);
    struct rlhf__prompt_counts c = rlhf__prompts_counts(f->set);
    assert_int_equal(rlhf__prompts_count(f->set), 2);
    assert_int_equal(c.rows, 4);
    assert_int_equal(c.too_short, 2);
    assert_int_equal(c.cut, 1);
    check_text(f, 0, " d f g k");
    assert_int_equal(rlhf__prompts_get(f->set, 1).row, 2);
    o.prepend_bos = 1;
    expect_open(f, o, path);
    check_text(f, 0, " f g k");
    assert_int_equal(rlhf__prompts_get(f->set, 0).ids[0], rlhf__tokenizer_info(f->tok)->bos);
    assert_int_equal(rlhf__prompts_count(f->set), 3);
    o.long_rows = RLHF__PROMPT_CUT_RIGHT;
    expect_open(f, o, path);
    check_text(f, 0, "a b c");
    o.prepend_bos = 0;
    o.end_at_period = 1; // the end rule sees the remaining text
    o.max_tokens = 5;
    expect_open(f, o, path);
    check_text(f, 0, "a b c.");
    o = (struct rlhf__prompt_opts){.max_tokens = 4, .long_rows = RLHF__PROMPT_SKIP};
    expect_open(f, o, path);
    assert_int_equal(rlhf__prompts_counts(f->set).too_long, 1);
    check_text(f, 0, "a b");
}

static void errors(void **state) {
    struct fixture *f = *state;
    struct rlhf__prompt_opts o = {.max_tokens = 4, .long_rows = RLHF__PROMPT_REFUSE};
    const char *path = scratch_text(f->scratch, "p.txt", "a b\n\na b c d f g k\n");
    expect_error(f, o, path,
                 "p.txt:3: the prompt has 7 tokens, 4 are allowed (prompts.long_rows is refuse)");
    expect_error(f, o, scratch_text(f->scratch, "e.txt", "\n"), "e.txt: the file has no rows");
    o = (struct rlhf__prompt_opts){.start_after_period = 1};
    expect_error(f, o, path, "no prompt is left of 2 rows; left out: 2 without a period");
    o = (struct rlhf__prompt_opts){0};
    expect_error(f, o, scratch_text(f->scratch, "p.jsonl", "{\"x\": 1}\n"),
                 "p.jsonl:1: the row has none of the fields 'prompt', 'messages' and "
                 "'text'; prompts.field=NAME reads the prompt from another field");
    expect_error(f, o, scratch_text(f->scratch, "p.jsonl", "{\"prompt\": \"\"}\n"),
                 "p.jsonl: no prompt is left of 1 row; left out: 1 under 1 token");
    o.field = "q";
    expect_error(f, o, scratch_text(f->scratch, "p.jsonl", "{\"prompt\": \"x\"}\n"),
                 "p.jsonl:1: the row has neither a field 'q' nor 'messages'");
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(constant),       TEST(files),  TEST(query_rules), TEST(period_far_into_the_text),
        TEST(long_and_short), TEST(errors),
    };
    return cmocka_run_group_tests_name("prompts", tests, NULL, NULL);
}
