// test_styles.c: each of the fixed set, as transformers renders a template of it: recognised by
// what it produces, the same text, the same masks, the same refusals.
#include "support/scratch.h"
#include "vectors.h"

#include "chat/chat.h"

static const struct rlhf__chat_tokens tokens = {"<s>", "</s>", "<unk>", NULL};

// The chat of a directory that has this template. Caller closes it.
static struct rlhf__chat *open_template(struct scratch *s, const char *template) {
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    scratch_text(s, "chat_template.jinja", template);
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    return c;
}

static void check_row(const struct rlhf__chat *c, const json_t *row) {
    struct rlhf__messages m = {0};
    struct rlhf__turns got = {0};
    struct rlhf__error err = {0, ""};
    const char *name = vectors_text(row, "template");
    const json_t *turns = json_object_get(row, "turns");
    vectors_messages(row, &m);
    rlhf_status st =
        rlhf__chat_render(c, &m, json_is_true(json_object_get(row, "generate")), &got, &err);
    if (json_is_true(json_object_get(row, "raised"))) {
        assert_int_equal(st, RLHF_E_INVALID);
    } else {
        if (st != RLHF_OK) fail_msg("%s: %s", name, err.text);
        if (strcmp(rlhf__buf_text(&got.text), vectors_text(row, "text")) != 0)
            fail_msg("%s: '%s', not '%s'", name, rlhf__buf_text(&got.text),
                     vectors_text(row, "text"));
        if (turns) assert_int_equal(got.n, json_array_size(turns));
        for (size_t i = 0; i < json_array_size(turns); i++) {
            const json_t *ends = json_array_get(turns, i);
            assert_int_equal(got.item[i].from, json_integer_value(json_array_get(ends, 0)));
            assert_int_equal(got.item[i].to, json_integer_value(json_array_get(ends, 1)));
        }
    }
    rlhf__turns_finish(&got);
    rlhf__messages_finish(&m);
}

static void recognised(void **state) {
    struct scratch *s = *state;
    json_t *templates = vectors_load("data/templates.json", 0), *t, *row;
    json_t *rows = vectors_load("data/styles.jsonl", 200);
    const char *name;
    size_t i, seen = 0;
    json_object_foreach(templates, name, t) {
        struct rlhf__chat *c = open_template(s, vectors_text(t, "text"));
        const char *form = vectors_text(t, "form"), *known = rlhf__chat_known(c);
        if (!form != !known || (form && strcmp(form, known) != 0))
            fail_msg("%s is %s", name, known ? known : "not recognised");
        json_array_foreach(rows, i, row) {
            if (strcmp(vectors_text(row, "template"), name) != 0) continue;
            check_row(c, row);
            seen++;
        }
        rlhf__chat_close(c);
    }
    assert_int_equal(seen, json_array_size(rows));
    json_decref(templates);
    json_decref(rows);
}

// A template of the set by its name writes what a model's does that is nothing but it.
static void named(void **state) {
    static const char *const names[] = {"chatml", "qwen2.5", "qwen3",  "llama2",
                                        "llama3", "gemma",   "zephyr", "plain"};
    struct scratch *s = *state;
    json_t *rows = vectors_load("data/styles.jsonl", 200), *row;
    size_t i;
    for (size_t k = 0; k < CHECK_COUNT(names); k++) {
        struct rlhf__chat *c = NULL;
        struct rlhf__error err = {0, ""};
        size_t seen = 0;
        check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
        assert_null(rlhf__chat_known(c));
        check_ok(rlhf__chat_name(c, names[k], &err), &err);
        assert_string_equal(rlhf__chat_known(c), names[k]);
        json_array_foreach(rows, i, row) {
            if (strcmp(vectors_text(row, "template"), names[k]) != 0) continue;
            check_row(c, row);
            seen++;
        }
        assert_true(seen >= 20);
        rlhf__chat_close(c);
    }
    json_decref(rows);
}

// A template that differs from one of the set on some conversation is none of it.
static void nearly(void **state) {
    static const struct {
        const char *from, *to;
    } changes[] = {{"~ '<|im_end|>\\n'", "~ '<|im_end|> '"},
                   {"m.content ~", "(m.content | trim) ~"},
                   {"m.role ~", "(m.role | upper) ~"},
                   {"assistant\\n' }}{% endif", "assistant' }}{% endif"},
                   {"m.content ~", "(m.content if loop.index < 4 else '') ~"},
                   {"m.content ~", "m.content.replace('</think>', '') ~"},
                   {"m.content ~", "(m.content if m.content else ' ') ~"},
                   {"{%- for m in messages %}", "{%- for m in messages if m.role != 'system' %}"}};
    struct scratch *s = *state;
    json_t *templates = vectors_load("data/templates.json", 0);
    const char *chatml = vectors_text(json_object_get(templates, "chatml"), "text");
    for (size_t i = 0; i < CHECK_COUNT(changes); i++) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        const char *at = strstr(chatml, changes[i].from);
        assert_non_null(at);
        rlhf__buf_put(&text, chatml, (size_t)(at - chatml));
        rlhf__buf_puts(&text, changes[i].to);
        rlhf__buf_puts(&text, at + strlen(changes[i].from));
        struct rlhf__chat *c = open_template(s, rlhf__buf_text(&text));
        if (rlhf__chat_known(c)) fail_msg("%s is %s", changes[i].to, rlhf__chat_known(c));
        rlhf__chat_close(c);
        rlhf__buf_free(&text);
    }
    json_decref(templates);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(recognised, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(named, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(nearly, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("styles", tests, NULL, NULL);
}
