// test_styles.c: compares templates of model directories, and those shipped with the program, with
// transformers. Texts, masks and refusals must be the same.
#include "support/scratch.h"
#include "vectors.h"

#include "chat/chat.h"

static const struct rlhf__chat_tokens tokens = {
    .vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};

// Opens the chat of a directory that has this template. The caller closes it.
static struct rlhf__chat *open_template(struct scratch *s, const char *template) {
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    scratch_text(s, "chat_template.jinja", template);
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    return c;
}

// Compares the turns that were found with those of a row. `how` appears in messages.
static void check_turns(const struct rlhf__turns *got, const json_t *turns, const char *how,
                        const char *name) {
    for (size_t i = 0; i < json_array_size(turns); i++) {
        const json_t *ends = json_array_get(turns, i);
        const json_int_t from = json_integer_value(json_array_get(ends, 0)),
                         to = json_integer_value(json_array_get(ends, 1));
        if (i >= got->n || got->item[i].from != (size_t)from || got->item[i].to != (size_t)to)
            fail_msg("%s, %s: '%s': turn %zu is %zu to %zu, not %d to %d", name, how,
                     rlhf__buf_text(&got->text), i, i < got->n ? got->item[i].from : 0,
                     i < got->n ? got->item[i].to : 0, (int)from, (int)to);
    }
    assert_int_equal(got->n, json_array_size(turns));
}

static void check_row(const struct rlhf__chat *c, const json_t *row) {
    struct rlhf__messages m = {0};
    struct rlhf__turns got = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    const char *name = vectors_text(row, "template");
    const int generate = json_is_true(json_object_get(row, "generate"));
    vectors_messages(row, &m);
    rlhf_status st = rlhf__chat_render(c, &m, generate, &text, &err);
    if (json_is_true(json_object_get(row, "raised"))) {
        assert_int_equal(st, RLHF_E_INVALID);
    } else {
        if (st != RLHF_OK) fail_msg("%s: %s", name, err.text);
        if (strcmp(rlhf__buf_text(&text), vectors_text(row, "text")) != 0)
            fail_msg("%s: '%s', not '%s'", name, rlhf__buf_text(&text), vectors_text(row, "text"));
        st = rlhf__chat_turns(c, &m, 0, generate, &got, &err);
        if (st != RLHF_OK) fail_msg("%s: '%s': %s", name, rlhf__buf_text(&text), err.text);
        assert_string_equal(rlhf__buf_text(&got.text), rlhf__buf_text(&text));
        if (json_object_get(row, "turns"))
            check_turns(&got, json_object_get(row, "turns"), rlhf__chat_known(c), name);
    }
    rlhf__buf_finish(&text);
    rlhf__turns_finish(&got);
    rlhf__messages_finish(&m);
}

// Checks each row of a template. Returns their number.
static size_t check_rows(const struct rlhf__chat *c, const json_t *rows, const char *name) {
    const json_t *row;
    size_t i, seen = 0;
    json_array_foreach(rows, i, row) {
        if (strcmp(vectors_text(row, "template"), name) != 0) continue;
        check_row(c, row);
        seen++;
    }
    return seen;
}

static void check_all(struct scratch *s, const char *texts, const char *vectors, size_t least) {
    json_t *templates = vectors_load(texts, 0), *rows = vectors_load(vectors, least), *t;
    const char *name;
    size_t seen = 0;
    json_object_foreach(templates, name, t) {
        struct rlhf__chat *c = open_template(s, json_string_value(t));
        if (rlhf__chat_unknown(c)) fail_msg("%s: %s", name, rlhf__chat_unknown(c));
        assert_string_equal(rlhf__chat_known(c), scratch_path(s, "chat_template.jinja"));
        seen += check_rows(c, rows, name);
        rlhf__chat_close(c);
    }
    assert_int_equal(seen, json_array_size(rows));
    json_decref(templates);
    json_decref(rows);
}

static void own(void **state) {
    check_all(*state, "data/templates.json", "data/styles.jsonl", 300);
}

static void published(void **state) {
    check_all(*state, "data/published.json", "data/published.jsonl", 400);
}

// A shipped template writes the same text as the model's own template. With it, the program finds
// the same turns as with a copy of the model's template in which the turns are marked.
static void named(void **state) {
    static const char *const names[][2] = {
        {"chatml", "chatml"},      {"qwen2.5", "qwen2.5"},   {"qwen3", "qwen3"},
        {"llama2", "llama2"},      {"llama3", "llama3"},     {"gemma", "gemma"},
        {"zephyr", "zephyr"},      {"plain", "plain"},       {"chatml", "chatml-mask"},
        {"llama2", "llama2-mask"}, {"llama3", "llama3-mask"}};
    struct scratch *s = *state;
    json_t *rows = vectors_load("data/styles.jsonl", 200);
    for (size_t k = 0; k < CHECK_COUNT(names); k++) {
        struct rlhf__chat *c = NULL;
        struct rlhf__error err = {0, ""};
        check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
        assert_null(rlhf__chat_known(c));
        check_ok(rlhf__chat_name(c, names[k][0], &err), &err);
        assert_string_equal(rlhf__chat_known(c), names[k][0]);
        assert_true(check_rows(c, rows, names[k][1]) >= 20);
        rlhf__chat_close(c);
    }
    json_decref(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(published, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(named, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("styles", tests, NULL, NULL);
}
