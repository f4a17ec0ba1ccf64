// test_preferences.c: rows of preferences: both forms, truncation, refusals and their messages.
// Also tests completions with a label, read alone or together with another row's completion.
#include "support/scratch.h"

#include "batch/preference_source.h"

struct fixture {
    struct rlhf__tokenizer *tok;
    struct rlhf__preferences *set;
    struct scratch *scratch;
};

static int setup(void **state) {
    static struct fixture f; // one test at a time
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
    rlhf__preferences_close(f->set);
    rlhf__tokenizer_close(f->tok);
    return scratch_teardown(&scratch);
}

static rlhf_status open_text(struct fixture *f, struct rlhf__preference_opts o, const char *text,
                             struct rlhf__error *err) {
    const char *path = scratch_text(f->scratch, "p.jsonl", text);
    rlhf__preferences_close(f->set);
    f->set = NULL;
    o.paths = &path;
    o.n_paths = 1;
    if (!o.max_tokens) o.max_tokens = 256;
    return rlhf__preferences_open(&o, f->tok, &f->set, err);
}

static void expect_open(struct fixture *f, struct rlhf__preference_opts o, const char *text) {
    struct rlhf__error err = {0};
    check_ok(open_text(f, o, text, &err), &err);
}

static void expect_error(struct fixture *f, struct rlhf__preference_opts o, const char *text,
                         const char *part) {
    struct rlhf__error err = {0};
    check_error(open_text(f, o, text, &err), RLHF_E_INVALID, &err, part);
    assert_null(f->set);
}

static void check_text(struct fixture *f, const int32_t *ids, int32_t n, const char *want) {
    size_t len = 0;
    char *text = rlhf__tokenizer_text(f->tok, ids, (size_t)n, RLHF__DECODE_SKIP_SPECIAL, &len);
    assert_non_null(text);
    int same = strcmp(text, want) == 0;
    char got[256];
    snprintf(got, sizeof got, "%s", text);
    free(text);
    if (!same) fail_msg("the text is \"%s\", expected \"%s\"", got, want);
}

static void check_response(struct fixture *f, int64_t row, int32_t i, const char *want) {
    struct rlhf__preference p = rlhf__preferences_get(f->set, row);
    const int32_t *ids = p.ids;
    assert_true(i < p.n);
    for (int32_t k = 0; k < i; k++)
        ids += p.len[k];
    check_text(f, ids, p.len[i], want);
}

#define PAIR(prompt, chosen, rejected)                                                             \
    "{\"prompt\": \"" prompt "\", \"chosen\": \"" chosen "\", \"rejected\": \"" rejected           \
    "\", \"scores\": [1, 0]}\n"

static void both_forms(void **state) {
    struct fixture *f = *state;
    expect_open(
        f, (struct rlhf__preference_opts){.prepend_bos = 1},
        PAIR("The harbour", " was calm", " burned") "\n"
                                                    "{\"prompt\": \"It\", \"responses\": [\" a\", "
                                                    "\" b\", \" c\"], \"best\": 2}\n");
    assert_int_equal(rlhf__preferences_count(f->set), 2);
    assert_int_equal(rlhf__preferences_responses(f->set), 5);
    struct rlhf__preference p = rlhf__preferences_get(f->set, 0);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.best, 0);
    assert_int_equal(p.row, 0);
    assert_int_equal(p.prompt[0], rlhf__tokenizer_info(f->tok)->bos);
    check_text(f, p.prompt, p.n_prompt, "The harbour");
    check_response(f, 0, 0, " was calm");
    check_response(f, 0, 1, " burned");
    assert_int_equal(rlhf__preference_tokens(&p), 2 * p.n_prompt + p.len[0] + p.len[1]);
    p = rlhf__preferences_get(f->set, 1);
    assert_int_equal(p.best, 2);
    assert_int_equal(p.row, 1);
    check_response(f, 1, 2, " c");
}

// A response is tokenized separately. It continues the prompt's tokens and does not change them.
static void prompt_and_response_apart(void **state) {
    struct fixture *f = *state;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    expect_open(f, (struct rlhf__preference_opts){0}, PAIR("th", "e", "is"));
    check_ok(rlhf__tokenizer_encode(f->tok, (rlhf_str){"th", 2}, 0, 0, &ids, &err), &err);
    struct rlhf__preference p = rlhf__preferences_get(f->set, 0);
    int same =
        p.n_prompt == (int32_t)ids.n && memcmp(p.prompt, ids.data, ids.n * sizeof *ids.data) == 0;
    rlhf__ids_finish(&ids);
    assert_true(same);
    check_response(f, 0, 0, "e");
    assert_int_equal(rlhf__preferences_get(f->set, 0).row, 0);
}

static void skip_and_limit(void **state) {
    struct fixture *f = *state;
    const char *rows = PAIR("a", "b", "c") PAIR("d", "e", "f") PAIR("g", "h", "i");
    expect_open(f, (struct rlhf__preference_opts){.skip = 1, .limit = 1}, rows);
    assert_int_equal(rlhf__preferences_count(f->set), 1);
    struct rlhf__preference p = rlhf__preferences_get(f->set, 0);
    check_text(f, p.prompt, p.n_prompt, "d");
    assert_int_equal(p.row, 1);
    expect_error(f, (struct rlhf__preference_opts){.skip = 3}, rows, "no rows are left");
    expect_open(f, (struct rlhf__preference_opts){.prepend_bos = 1}, PAIR("", "b", "c"));
    assert_int_equal(rlhf__preferences_get(f->set, 0).n_prompt, 1); // bos alone is a prompt
}

static void cutting(void **state) {
    struct fixture *f = *state;
    // Each digit is one token. A response is cut at its end. A prompt is cut at its start but keeps
    // bos.
    struct rlhf__preference_opts o = {.max_tokens = 6, .prepend_bos = 1};
    const char *row = PAIR("1234", "789", "7");
    expect_open(f, o, row);
    struct rlhf__preference p = rlhf__preferences_get(f->set, 0);
    assert_int_equal(rlhf__preferences_truncated(f->set), 1);
    assert_int_equal(p.n_prompt, 3);
    assert_int_equal(p.prompt[0], rlhf__tokenizer_info(f->tok)->bos);
    check_text(f, p.prompt, p.n_prompt, "34");
    check_response(f, 0, 0, "789");
    check_response(f, 0, 1, "7");
    o.max_tokens = 4; // bos, one token of the prompt, two of the response
    expect_open(f, o, row);
    p = rlhf__preferences_get(f->set, 0);
    check_text(f, p.prompt, p.n_prompt, "4");
    check_response(f, 0, 0, "78");
    o.max_tokens = 8; // all fits
    expect_open(f, o, row);
    assert_int_equal(rlhf__preferences_truncated(f->set), 0);
    o.max_response = 1; // and then both are "7"
    expect_error(f, o, row, "no rows are left");
    expect_open(f, o, PAIR("1", "23", "24") PAIR("1", "2", "3"));
    assert_int_equal(rlhf__preferences_dropped(f->set), 1);
    assert_int_equal(rlhf__preferences_count(f->set), 1);
    assert_int_equal(rlhf__preferences_get(f->set, 0).row, 1);
    o = (struct rlhf__preference_opts){.max_tokens = 6, .long_rows = RLHF__PREFERENCE_REFUSE};
    expect_open(f, o, PAIR("123", "789", "7"));
    expect_error(f, o, PAIR("1", "2", "3") PAIR("1234", "789", "7"),
                 "p.jsonl:2: prompt and response have 7 tokens; allowed: 6");
    o.max_response = 2;
    expect_error(f, o, PAIR("1", "789", "7"), "response 0 has 3 tokens; allowed: 2");
    o.max_response = 9; // more than a row may have
    expect_error(f, o, PAIR("1", "2222222", "7"), "response 0 has 7 tokens; allowed: 6");
    o = (struct rlhf__preference_opts){.max_tokens = 2, .prepend_bos = 1};
    expect_error(f, o, row, "no room");
}

static void bad_rows(void **state) {
    static const struct {
        const char *row, *says;
    } bad[] = {
        {"{\"chosen\": \"a\", \"rejected\": \"b\"}", "p.jsonl:2: the row has no field 'prompt'"},
        {"{\"prompt\": \"p\", \"rejected\": \"b\"}", "no field 'chosen'"},
        {"{\"prompt\": \"p\", \"chosen\": \"b\"}", "no field 'rejected'"},
        {"{\"prompt\": \"p\"}", "no field 'chosen'"},
        {"{\"prompt\": \"\", \"chosen\": \"a\", \"rejected\": \"b\"}", "'prompt' is empty"},
        {"{\"prompt\": \"p\", \"chosen\": \"\", \"rejected\": \"b\"}", "'chosen' is empty"},
        {"{\"prompt\": \"p\", \"chosen\": \"a\", \"rejected\": \"\"}", "'rejected' is empty"},
        {"{\"prompt\": 3, \"chosen\": \"a\", \"rejected\": \"b\"}", "'prompt' is an integer"},
        {"{\"prompt\": \"p\", \"chosen\": \"a\", \"rejected\": \"a\"}", "the same text"},
        {"{\"prompt\": \"p\", \"chosen\": \"a\", \"responses\": [\"a\", \"b\"], \"best\": 0}",
         "also 'chosen'"},
        {"{\"prompt\": \"p\", \"responses\": \"a\", \"best\": 0}", "expected a list of strings"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\"], \"best\": 0}", "has 1 entries"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"\"], \"best\": 0}",
         "'responses[1]' is empty"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", 2], \"best\": 0}",
         "'responses[1]' is an integer"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"b\"]}", "no field 'best'"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"b\"], \"best\": 2}", "allowed: 0 to 1"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"b\"], \"best\": -1}", "'best' is -1"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"b\"], \"best\": \"a\"}",
         "'best' is a string, expected an integer"},
        {"{\"prompt\": \"p\", \"responses\": [\"a\", \"b\", \"b\"], \"best\": 2}",
         "responses 1 and 2 are the same text"},
        {"{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"d\", \"margin\": \"1\"}",
         "field 'margin' is a string, expected a number"},
        {"{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"d\", \"margin\": 1001}",
         "field 'margin' is 1001; allowed: -1000 to 1000"},
        {"[1]", "expected an object"},
        {"{\"prompt\"", "not valid JSON"},
        {"{\"prompt\": \"\xff\"}", "invalid UTF-8 at byte 13"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s\n", PAIR("p", "a", "b"), bad[i].row);
        expect_error(f, (struct rlhf__preference_opts){0}, text, bad[i].says);
        expect_error(f, (struct rlhf__preference_opts){0}, text, "p.jsonl:2:");
    }
    // Two responses may be equal if neither of them is the preferred one.
    expect_open(f, (struct rlhf__preference_opts){0},
                "{\"prompt\": \"p\", \"responses\": [\"a\", \"b\", \"b\"], \"best\": 0}");
    expect_error(f, (struct rlhf__preference_opts){0}, "\n\n", "the file has no rows");
    struct rlhf__error err = {0};
    struct rlhf__preferences *set = NULL;
    const char *path = scratch_path(f->scratch, "nothing.jsonl");
    struct rlhf__preference_opts o = {.paths = &path, .n_paths = 1, .max_tokens = 9};
    check_error(rlhf__preferences_open(&o, f->tok, &set, &err), RLHF_E_INVALID, &err,
                "nothing.jsonl");
}

#define WITH(margin)                                                                               \
    "{\"prompt\": \"p\", \"chosen\": \" a\", \"rejected\": \" b\", \"margin\": " margin "}\n"

// A margin applies to all responses of its row and is 0 by default. Rows that are picked keep their
// margins.
static void margins(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__rows e = {0}, some = {0};
    const struct rlhf__preference_opts o = {0}, none = {.no_margins = "dpo.so"};
    expect_open(f, o,
                PAIR("p", " a", " b") WITH("2.5")
                    WITH("null") "{\"prompt\": \"p\", \"responses\": "
                                 "[\" a\", \" b\", \" c\"], \"best\": 1, \"margin\": -1}\n");
    static const int64_t pick[] = {3, 2, 1, 0};
    static const float want[] = {-1, -1, -1, 0, 0, 2.5f, 2.5f, 0, 0};
    check_ok(rlhf__preference_rows(f->set, pick, 4, &e, &err), &err);
    assert_int_equal(e.n, 9);
    assert_memory_equal(e.margin, want, sizeof want);
    static const uint32_t rows[] = {5, 6, 0};
    static const float kept[] = {2.5f, 2.5f, -1};
    check_ok(rlhf__rows_pick(&some, &e, rows, 3, &err), &err);
    assert_memory_equal(some.margin, kept, sizeof kept);
    rlhf__rows_finish(&some);
    rlhf__rows_finish(&e);
    expect_open(f, none, PAIR("p", " a", " b") WITH("null"));
    check_ok(rlhf__preference_rows(f->set, pick + 2, 2, &e, &err), &err);
    assert_null(e.margin);
    rlhf__rows_finish(&e);
    expect_error(f, none, PAIR("p", " a", " b") WITH("0"),
                 "p.jsonl:2: the row has a 'margin', which dpo.so does not use; remove the field");
}

#define ANSWER(prompt, completion, label)                                                          \
    "{\"prompt\": \"" prompt "\", \"completion\": \"" completion "\", \"label\": " label "}\n"

static void completions(void **state) {
    struct fixture *f = *state;
    const struct rlhf__preference_opts o = {.completions = 1};
    expect_open(f, o, ANSWER("The harbour", " was calm", "true") ANSWER("It", " burned", "false"));
    assert_int_equal(rlhf__preferences_count(f->set), 2);
    assert_int_equal(rlhf__preferences_responses(f->set), 2);
    for (int i = 0; i < 2; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(f->set, i);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.best, i ? -1 : 0);
        assert_int_equal(p.row, i);
        check_text(f, p.prompt, p.n_prompt, i ? "It" : "The harbour");
        check_response(f, i, 0, i ? " burned" : " was calm");
    }
    static const struct {
        const char *row, *says;
    } bad[] = {
        {"{\"completion\": \"a\", \"label\": true}", "the row has no field 'prompt'"},
        {"{\"prompt\": \"p\", \"label\": true}", "the row has no field 'completion'"},
        {"{\"prompt\": \"p\", \"completion\": \"a\"}", "the row has no field 'label'"},
        {"{\"prompt\": \"p\", \"completion\": \"a\", \"label\": 1}",
         "field 'label' is an integer, expected true or false"},
        {"{\"prompt\": \"p\", \"completion\": \"a\", \"label\": null}", "'label' is null"},
        {"{\"prompt\": \"p\", \"completion\": \"\", \"label\": true}", "'completion' is empty"},
        {"{\"prompt\": \"p\", \"completion\": [{\"role\": \"assistant\", \"content\": \"a\"}], "
         "\"label\": true}",
         "field 'completion' is a list of messages, and the prompt is a text"},
        {"{\"prompt\": [{\"role\": \"user\", \"content\": \"p\"}], \"completion\": [{\"role\": "
         "\"user\", \"content\": \"a\"}], \"label\": true}",
         "'completion'"},
        {"{\"prompt\": \"p\", \"chosen\": \"a\", \"rejected\": \"b\"}",
         "the row has 'chosen'; a row of one 'completion' with a 'label' is expected"},
        {"{\"chosen\": [], \"rejected\": []}", "the row has no field 'prompt'"},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s\n", ANSWER("p", "a", "true"), bad[i].row);
        expect_error(f, o, text, bad[i].says);
        expect_error(f, o, text, "p.jsonl:2:");
    }
    // Rows of other forms are not preferences.
    expect_error(f, (struct rlhf__preference_opts){0}, ANSWER("p", "a", "true"),
                 "no field 'chosen'");
}

static void check_row(struct fixture *f, const struct rlhf__rows *e, uint32_t i, const char *text,
                      int32_t group, int32_t label) {
    check_text(f, e->ids + e->offset[i], e->offset[i + 1] - e->offset[i], text);
    assert_int_equal(e->group[i], group);
    assert_int_equal(e->label[i], label);
}

// With mismatched completions, each row is followed by an extra row, which has the row's prompt and
// the completion of the previous row, as in TRL.
static void mismatched_completions(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__rows e = {0};
    const int64_t pick[] = {2, 0, 1};
    expect_open(f, (struct rlhf__preference_opts){.completions = 1},
                ANSWER("a", " b", "true") ANSWER("c", " d", "false") ANSWER("e", " f", "true"));
    check_ok(rlhf__mismatched_rows(f->set, pick, 3, 256, &e, &err), &err);
    assert_int_equal(e.n, 6);
    static const char *const texts[] = {"e f", "e d", "a b", "a f", "c d", "c b"};
    for (uint32_t i = 0; i < 6; i++) {
        check_row(f, &e, i, texts[i], (int32_t)i / 2, i % 2 ? -1 : i < 4);
        assert_int_equal(e.source[i], pick[i / 2]);
        assert_int_equal(e.prompt_len[i], rlhf__preferences_get(f->set, pick[i / 2]).n_prompt);
    }
    assert_int_equal(e.offset[6], (int)e.total);
    rlhf__rows_finish(&e);
    // If only one row is requested, its extra row still has the completion of the previous row in
    // the file. For the first row, that is the completion of the last row.
    check_ok(rlhf__mismatched_rows(f->set, &pick[1], 1, 256, &e, &err), &err);
    check_row(f, &e, 1, "a f", 0, -1);
    rlhf__rows_finish(&e);
    // Completions that do not fit after the prompt are left out.
    expect_open(f, (struct rlhf__preference_opts){.completions = 1},
                ANSWER("x y z", " b", "true") ANSWER("c", " was calm and well", "false"));
    const struct rlhf__preference p = rlhf__preferences_get(f->set, 0);
    check_ok(rlhf__mismatched_rows(f->set, (const int64_t[]){0, 1}, 2, p.n_prompt + 2, &e, &err),
             &err);
    assert_int_equal(e.offset[2] - e.offset[1], p.n_prompt + 2);
    rlhf__rows_finish(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(prompt_and_response_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(skip_and_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(cutting, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(margins, setup, teardown),
        cmocka_unit_test_setup_teardown(completions, setup, teardown),
        cmocka_unit_test_setup_teardown(mismatched_completions, setup, teardown),
    };
    return cmocka_run_group_tests_name("preferences", tests, NULL, NULL);
}
