// test_chat.c: where the program searches for a directory's template, the message if it finds none,
// and the conversations that templates refuse.
#include "support/scratch.h"
#include "vectors.h"

#include "chat/chat.h"

#include <sys/stat.h>
#include <unistd.h>

#define CHATML                                                                                     \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"   \
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static const struct rlhf__chat_tokens
    tokens = {.vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"},
    none = {0};

static struct rlhf__chat *open_dir(struct scratch *s, const struct rlhf__chat_tokens *t) {
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    check_ok(rlhf__chat_open(s->dir, t, &c, &err), &err);
    return c;
}

static rlhf_status render(const struct rlhf__chat *c, const char *json, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *row = json_pack("{s:o}", "messages", json_loads(json, 0, NULL));
    vectors_messages(row, &m);
    rlhf_status st = rlhf__chat_render(c, &m, 0, &text, err);
    rlhf__messages_finish(&m);
    rlhf__buf_finish(&text);
    json_decref(row);
    return st;
}

#define S  "{\"role\":\"system\",\"content\":\"S\"}"
#define U  "{\"role\":\"user\",\"content\":\"U\"}"
#define A  "{\"role\":\"assistant\",\"content\":\"A\"}"
#define HI "[{\"role\":\"user\",\"content\":\"Hi\"}]"

// Writes tokenizer_config.json with this chat_template, and releases `template`.
static void write_config(struct scratch *s, json_t *template) {
    json_t *config = json_pack("{s:o}", "chat_template", template);
    char *text = json_dumps(config, 0);
    scratch_text(s, "tokenizer_config.json", text);
    free(text);
    json_decref(config);
}

static void places(void **state) {
    struct scratch *s = *state;
    struct rlhf__chat *c;
    struct rlhf__buf say = RLHF__BUF_INIT;
    write_config(s, json_string(CHATML));
    c = open_dir(s, &tokens);
    assert_string_equal(rlhf__chat_known(c), scratch_path(s, "tokenizer_config.json"));
    rlhf__chat_describe(c, &say);
    assert_non_null(strstr(rlhf__buf_text(&say), "tokenizer_config.json (before a first question: "
                                                 "\"<|im_start|>user\\n\")"));
    assert_string_equal(rlhf__chat_turn_end(c), "<|im_end|>");
    rlhf__buf_finish(&say);
    rlhf__chat_close(c);
    // In a list, the template named "default" is used.
    write_config(s, json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "rag", "template", "x", "name",
                              "default", "template", CHATML));
    c = open_dir(s, &tokens);
    assert_string_equal(rlhf__chat_turn_end(c), "<|im_end|>");
    rlhf__chat_close(c);
    // chat_template.jinja takes precedence.
    scratch_text(s, "chat_template.jinja",
                 "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}"
                 "{{ eos_token }}{% endif %}{% endfor %}");
    c = open_dir(s, &tokens);
    assert_string_equal(rlhf__chat_known(c), scratch_path(s, "chat_template.jinja"));
    assert_string_equal(rlhf__chat_turn_end(c), "</s>");
    rlhf__chat_close(c);
}

static void unknown(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = open_dir(s, &tokens);
    assert_null(rlhf__chat_known(c));
    assert_null(rlhf__chat_turn_end(c));
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err,
                "has no chat template; name the template");
    assert_non_null(strstr(err.text, "prompts.template=NAME (chatml, llama2, llama3, qwen2.5, "));
    rlhf__chat_close(c);
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"\n{% include 'x' %}", "(line 2: the tag 'include' is not known)"},
        {"{{ raise_exception('always') }}", "(it does not render a question: always)"},
        {"{{ messages[1].content }}", "(it does not render a question: 'content' of an undefined"},
        {"{{ strftime_now('%d') }}{{ messages[0].content }}",
         "give the date, for example prompts.date=2026-11-28"},
        {"", "(it does not write what a user says)"},
        {"{% for i in range(4000) %}{% for k in range(4000) %}{% endfor %}{% endfor %}",
         "more steps than are allowed"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        scratch_text(s, "chat_template.jinja", cases[i].text);
        c = open_dir(s, &tokens);
        err = (struct rlhf__error){0, ""};
        check_error(render(c, HI, &err), RLHF_E_INVALID, &err, cases[i].part);
        assert_non_null(strstr(err.text, "chat_template.jinja cannot be used"));
        rlhf__chat_close(c);
    }
}

static void bad_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    write_config(s, json_integer(3));
    struct rlhf__chat *c = open_dir(s, &tokens);
    check_error(
        render(c, HI, &err), RLHF_E_INVALID, &err,
        "chat_template of tokenizer_config.json is an integer, expected a string or a list");
    rlhf__chat_close(c);
    write_config(s, json_pack("[{s:s, s:s}]", "name", "rag", "template", CHATML));
    c = open_dir(s, &tokens);
    err = (struct rlhf__error){0, ""};
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err, "a list with one named default");
    rlhf__chat_close(c);
    char *large = malloc(400001);
    memset(large, 'a', 400000);
    large[400000] = '\0';
    write_config(s, json_string(large));
    c = open_dir(s, &tokens);
    err = (struct rlhf__error){0, ""};
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err, "it has 400000 bytes; at most 262144");
    const char *path = scratch_text(s, "chat_template.jinja", large);
    free(large);
    err = (struct rlhf__error){0, ""};
    check_error(rlhf__chat_name(c, path, &err), RLHF_E_INVALID, &err,
                "more than the 262144 bytes allowed here");
    rlhf__chat_close(c);
    c = open_dir(s, &tokens);
    err = (struct rlhf__error){0, ""};
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err, "the chat template cannot be read");
    rlhf__chat_close(c);
    // The program does not wait for a pipe that nothing writes to.
    write_config(s, json_null());
    path = scratch_path(s, "chat_template.jinja");
    assert_true(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    c = open_dir(s, &tokens);
    err = (struct rlhf__error){0, ""};
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err, "has no chat template");
    rlhf__chat_close(c);
}

static void names(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = open_dir(s, &none);
    check_error(rlhf__chat_name(c, "chatmll", &err), RLHF_E_INVALID, &err,
                "there is no chat template 'chatmll' (did you mean \"chatml\"?); allowed: auto, ");
    for (size_t i = 1; rlhf__chat_names()[i]; i++) {
        err = (struct rlhf__error){0, ""};
        check_ok(rlhf__chat_name(c, rlhf__chat_names()[i], &err), &err);
        assert_string_equal(rlhf__chat_known(c), rlhf__chat_names()[i]);
    }
    err = (struct rlhf__error){0, ""};
    check_ok(rlhf__chat_name(c, "auto", &err), &err); // keeps the current template
    assert_string_equal(rlhf__chat_known(c), "plain");
    rlhf__chat_close(c);
}

// The {% generation %} block of this template includes the line break after a turn. The masks cover
// the whole block, but a turn still ends at its end token.
static void marks(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__messages m = {0};
    struct rlhf__turns t = {0};
    scratch_text(
        s, "chat_template.jinja",
        "{% for m in messages %}{{ '<|im_start|>' + m.role }}{% if m.role == 'assistant' %}"
        "{% generation %}{{ '\\n' + m.content + '<|im_end|>\\n' }}{% endgeneration %}"
        "{% else %}{{ '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
    struct rlhf__chat *c = open_dir(s, &tokens);
    check_ok(rlhf__messages_add(&m, RLHF__ROLE_ASSISTANT, (rlhf_str){"A", 1}, &err), &err);
    check_ok(rlhf__chat_turns(c, &m, 0, 0, &t, &err), &err);
    assert_string_equal(rlhf__buf_text(&t.text), "<|im_start|>assistant\nA<|im_end|>\n");
    assert_int_equal(t.n, 1);
    assert_int_equal(t.item[0].from, strlen("<|im_start|>assistant"));
    assert_int_equal(t.item[0].to, t.text.len);
    assert_int_equal(t.item[0].end, t.text.len - 1);
    rlhf__turns_finish(&t);
    rlhf__messages_finish(&m);
    rlhf__chat_close(c);
}

// A template file of the user.
static void files(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = open_dir(s, &tokens);
    struct rlhf__buf say = RLHF__BUF_INIT;
    const char *mine = scratch_text(s, "mine.jinja", "{{ messages[-1].content }}{{ eos_token }}");
    check_ok(rlhf__chat_name(c, mine, &err), &err);
    assert_string_equal(rlhf__chat_known(c), mine);
    assert_string_equal(rlhf__chat_jinja(c), "{{ messages[-1].content }}{{ eos_token }}");
    rlhf__chat_describe(c, &say);
    assert_non_null(strstr(rlhf__buf_text(&say), "/mine.jinja (named)"));
    rlhf__buf_finish(&say);
    check_ok(render(c, HI, &err), &err);
    // If a template is invalid, the current one stays in place.
    scratch_text(s, "bad.jinja", "a\n{% nope %}");
    check_error(rlhf__chat_name(c, scratch_path(s, "bad.jinja"), &err), RLHF_E_INVALID, &err,
                "bad.jinja cannot be used: line 2: the tag 'nope' is not known");
    err = (struct rlhf__error){0, ""};
    check_error(rlhf__chat_name(c, scratch_path(s, "none.jinja"), &err), RLHF_E_INVALID, &err,
                "none.jinja");
    assert_true(rlhf__chat_is_file("a/b") && rlhf__chat_is_file("b.jinja"));
    assert_false(rlhf__chat_is_file("jinja") || rlhf__chat_is_file("chatml"));
    scratch_text(s, "no.jinja",
                 "{{ messages[0].content }}{% if messages | length > 1 %}"
                 "{{ raise_exception('one message, please') }}{% endif %}");
    err = (struct rlhf__error){0, ""};
    check_ok(rlhf__chat_name(c, scratch_path(s, "no.jinja"), &err), &err);
    check_error(render(c, "[" S "," U "]", &err), RLHF_E_INVALID, &err,
                "no.jinja: one message, please");
    assert_non_null(strstr(err.text, "the chat template /"));
    rlhf__chat_close(c);
}

// In these templates, the text around a turn depends on the turn itself. So it is hard or
// impossible to find turns.
static void untold(void **state) {
    static const struct {
        const char *text, *json, *part; // part NULL: turns are found
        size_t from, to;
    } cases[] = {
        // writes the total length of all turns before each turn
        {"{% for m in messages %}{{ messages | map(attribute='content') | join | length }}"
         "{{ m.content }}{% endfor %}",
         "[" U "," A "]", "messages[1]: cannot tell which part of the text is this turn", 0, 0},
        {"{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[-1].content }}",
         "[" U "," A "]", "mark the turns in the template with {% generation %} blocks", 0, 0},
        // omits the assistant's turns
        {"{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", "[" U "," A "]",
         "cannot tell which", 0, 0},
        {"{% for m in messages %}<{{ m.role }}>{{ m.content | tojson }}{% endfor %}",
         "[" U "," A "]", NULL, 9, 22}, // everything after the prompt, up to the quote
        {"{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}", "[" A "," U "]",
         NULL, 0, 12},
        {"{% for m in messages %}{% if m.content %}[{{ m.role }}]{{ m.content }}</s>{% endif %}"
         "{% endfor %}",
         "[" U "," A "]", NULL, 11, 27}, // everything after the prompt
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__messages m = {0};
        struct rlhf__turns t = {0};
        struct rlhf__error err = {0, ""};
        scratch_text(s, "chat_template.jinja", cases[i].text);
        struct rlhf__chat *c = open_dir(s, &tokens);
        json_t *row = json_pack("{s:o}", "messages", json_loads(cases[i].json, 0, NULL));
        vectors_messages(row, &m);
        const rlhf_status st = rlhf__chat_turns(c, &m, 0, 0, &t, &err);
        if (cases[i].part) {
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
            check_ok(rlhf__chat_render(c, &m, 0, &t.text, &err), &err); // rendering still works
        } else {
            check_ok(st, &err);
            assert_int_equal(t.n, 1);
            assert_int_equal(t.item[0].from, cases[i].from);
            assert_int_equal(t.item[0].to, cases[i].to);
        }
        rlhf__turns_finish(&t);
        rlhf__messages_finish(&m);
        json_decref(row);
        rlhf__chat_close(c);
    }
}

// A row of half a MiB has 8,000 turns. Finding these turns would take an hour, so the program
// refuses the row without trying. In other rows, turns are found even if the text already contains
// the placeholders that the program tries first.
static void many_turns(void **state) {
    struct scratch *s = *state;
    struct rlhf__messages m = {0};
    struct rlhf__turns t = {0};
    struct rlhf__error err = {0, ""};
    scratch_text(s, "chat_template.jinja",
                 "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
                 "{% if add_generation_prompt %}<assistant>{% endif %}");
    struct rlhf__chat *c = open_dir(s, &tokens);
    for (int i = 0; i < 8000; i++) {
        check_ok(
            rlhf__messages_add(&m, RLHF__ROLE_USER, (rlhf_str){"Why do you say that?", 20}, &err),
            &err);
        check_ok(
            rlhf__messages_add(&m, RLHF__ROLE_ASSISTANT, (rlhf_str){"Since it is so.", 15}, &err),
            &err);
    }
    check_error(rlhf__chat_turns(c, &m, 0, 0, &t, &err), RLHF_E_INVALID, &err,
                "8000 turns in a text of ");
    rlhf__messages_finish(&m);
    rlhf__turns_clear(&t);
    m = (struct rlhf__messages){0};
    err = (struct rlhf__error){0, ""};
    check_ok(
        rlhf__messages_add(&m, RLHF__ROLE_USER, (rlhf_str){"Zq7turn07qZ Zq7turn17qZ", 23}, &err),
        &err);
    check_ok(rlhf__messages_add(&m, RLHF__ROLE_ASSISTANT, (rlhf_str){"A", 1}, &err), &err);
    check_ok(rlhf__chat_turns(c, &m, 0, 0, &t, &err), &err);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.item[0].to, t.text.len);
    rlhf__turns_finish(&t);
    rlhf__messages_finish(&m);
    rlhf__chat_close(c);
}

static void check_thoughts(const struct rlhf__chat *c, const char *json, const char *want) {
    struct rlhf__messages m = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    json_t *row = json_pack("{s:o}", "messages", json_loads(json, 0, NULL));
    vectors_messages(row, &m);
    check_ok(rlhf__chat_render(c, &m, 0, &text, &err), &err);
    assert_string_equal(rlhf__buf_text(&text), want);
    rlhf__messages_finish(&m);
    rlhf__buf_finish(&text);
    json_decref(row);
}

// Qwen3's template gets the thoughts of a message from a field, and writes them as in transformers
// 5.23. A template that does not write this field is refused, and the message names the field.
static void thoughts(void **state) {
    static const char row[] = "[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\","
                              "\"content\":\"\\n</think>A\","
                              "\"reasoning_content\":\"\\nwhy\\n\"}]";
    static const char old[] =
        "[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\",\"content\":\"\\nA\","
        "\"reasoning_content\":\"why\"},{\"role\":\"user\",\"content\":\"R\"}]";
    static const char says[] = "message.reasoning_content is string";
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = open_dir(s, &tokens);
    check_ok(rlhf__chat_name(c, "qwen3", &err), &err);
    check_thoughts(c, row,
                   "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<think>\nwhy\n</think>"
                   "\n\n</think>A<|im_end|>\n");
    check_thoughts(c, old,
                   "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n\nA<|im_end|>\n"
                   "<|im_start|>user\nR<|im_end|>\n");
    char *jinja = strdup(rlhf__chat_jinja(c)), *at = strstr(jinja, says);
    assert_non_null(at);
    memset(at + strlen("message."), 'x', strlen("reasoning_content")); // as in older templates
    scratch_text(s, "chat_template.jinja", jinja);
    free(jinja);
    rlhf__chat_close(c);
    c = open_dir(s, &tokens);
    check_error(render(c, row, &err), RLHF_E_INVALID, &err,
                "chat_template.jinja does not write them here");
    assert_non_null(strstr(err.text, "messages[1] has thoughts (field 'reasoning_content'), and "
                                     "the chat template /"));
    check_ok(rlhf__chat_name(c, "chatml", &err), &err);
    check_error(render(c, row, &err), RLHF_E_INVALID, &err,
                "messages[1] has thoughts (field 'reasoning_content'), and the chat template "
                "chatml does not");
    rlhf__chat_close(c);
}

static void refused(void **state) {
    static const struct {
        const char *name, *json, *part;
    } cases[] = {
        {"gemma", "[" S "," U "]", "messages[0]: the chat template gemma has no role system"},
        {"gemma", "[" U "," U "]",
         "messages[1] is the user's, where the chat template gemma wants the assistant's"},
        {"gemma", "[" A "," U "]", "messages[0] is the assistant's"},
        {"llama2", "[" S "]", "the chat template llama2 wants a user's turn behind the system's"},
        {"llama2", "[" S "," A "]", "messages[1] is the assistant's"},
        {"llama2", "[" U "," S "]", "messages[1] is the system's"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__chat *c = open_dir(s, &tokens);
        check_ok(rlhf__chat_name(c, cases[i].name, &err), &err);
        check_error(render(c, cases[i].json, &err), RLHF_E_INVALID, &err, cases[i].part);
        rlhf__chat_close(c);
    }
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = open_dir(s, &none);
    check_ok(rlhf__chat_name(c, "llama3", &err), &err);
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err,
                "begins with the bos token, and the tokenizer has none");
    err = (struct rlhf__error){0, ""};
    check_ok(rlhf__chat_name(c, "zephyr", &err), &err);
    check_error(render(c, HI, &err), RLHF_E_INVALID, &err,
                "ends turns with the eos token, and the tokenizer has none");
    rlhf__chat_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(places, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(unknown, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(bad_files, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(marks, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(files, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(untold, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(many_turns, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(thoughts, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
