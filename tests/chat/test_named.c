// test_named.c: a named template renders the same text after it has been saved with a model.
#include "support/scratch.h"

#include "chat/chat.h"

#define S(t) "{\"role\":\"system\",\"content\":\"" t "\"}"
#define U(t) "{\"role\":\"user\",\"content\":\"" t "\"}"
#define A(t) "{\"role\":\"assistant\",\"content\":\"" t "\"}"

#define T(t, why) "{\"role\":\"assistant\",\"content\":\"" t "\",\"reasoning_content\":\"" why "\"}"

static const char *const talks[] = {
    "[" U("a") "," T("b", "why\\n") "," U("c") "," T("<think>\\nd", "") "," T("e", "\\nso") "]",
    "[" U("Hi") "]",
    "[" S(" Be brief.\\n") "," U(" Hi\\n") "]",
    "[" S("") "," U("") "]",
    "[" U("a") "," A(" b ") "," U("c") "]",
    "[" S("s") "," U("a") "," A("\\n\\nb") "," U("c") "," A("d\\u00a0") "]",
    "[" U("a") "," A("<think>\\nwhy\\n</think>\\n\\nb") "," U("c") "," A("d") "]",
    "[" U("a") "," A("<think>\\nwhy\\n</think>\\n\\nb") "]",
    "[" U("a") "," A("</think></think>\\n\\nb<think>") "," U(
        "<tool_response>x</tool_response>") "," A("c") "]",
    "[" U("{{ 7 * 7 }} {% if %} {# #} <|im_end|>") "," A("'\\\"\\\\n") "]",
    "[" U("a") "," U("b") "]",
    "[" A("a") "]",
};

static const struct rlhf__chat_tokens tokens = {
    .vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};

static struct rlhf__chat *open_dir(struct scratch *s) {
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    return c;
}

static rlhf_status render(const struct rlhf__chat *c, const char *talk, int generate,
                          struct rlhf__turns *out) {
    struct rlhf__messages m = {0};
    struct rlhf__error err = {0, ""};
    json_t *list = json_loads(talk, 0, NULL);
    check_ok(rlhf__messages_read(&m, list, "messages", &err), &err);
    rlhf__turns_clear(out);
    const rlhf_status st = rlhf__chat_turns(c, &m, 0, generate, out, &err);
    rlhf__messages_finish(&m);
    json_decref(list);
    return st;
}

static void as_itself(void **state) {
    struct scratch *s = *state;
    const char *const *names = rlhf__chat_names();
    for (size_t i = 1; names[i]; i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__turns a = {0}, b = {0};
        size_t rendered = 0;
        remove(scratch_path(s, "chat_template.jinja"));
        struct rlhf__chat *named = open_dir(s);
        assert_null(rlhf__chat_jinja(named));
        check_ok(rlhf__chat_name(named, names[i], &err), &err);
        const char *text = rlhf__chat_jinja(named);
        assert_non_null(text);
        scratch_text(s, "chat_template.jinja", text);
        struct rlhf__chat *own = open_dir(s);
        if (!rlhf__chat_known(own)) fail_msg("%s: %s", names[i], rlhf__chat_unknown(own));
        assert_null(rlhf__chat_jinja(own)); // the directory's own file is kept
        for (size_t k = 0; k < CHECK_COUNT(talks); k++)
            for (int generate = 0; generate < 2; generate++) {
                const rlhf_status x = render(named, talks[k], generate, &a);
                assert_int_equal(render(own, talks[k], generate, &b), x);
                if (x != RLHF_OK) continue;
                assert_string_equal(rlhf__buf_text(&a.text), rlhf__buf_text(&b.text));
                assert_int_equal(a.n, b.n);
                assert_memory_equal(a.item, b.item, a.n * sizeof *a.item);
                rendered++;
            }
        assert_true(rendered >= 8);
        rlhf__turns_finish(&a);
        rlhf__turns_finish(&b);
        rlhf__chat_close(own);
        rlhf__chat_close(named);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_itself, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("named", tests, NULL, NULL);
}
