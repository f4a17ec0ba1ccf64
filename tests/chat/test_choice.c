// test_choice.c: variables and the date of a chat template: which are taken, what they change, and
// which are refused.
#include "chat/chat.h"
#include "support/scratch.h"
#include "values/date.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static const struct rlhf__chat_tokens tokens = {
    .vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};
static const struct rlhf__chat_choice flags = {"--template", "--template-vars", "--date"};

// A template that reads variables in the ways that published templates do.
static const char thinks[] =
    "{%- set ns = namespace(last=messages[-1].content) %}{% if style is not defined %}"
    "{% set style = 'plain' %}{% endif %}{% for message in messages %}"
    "[{{ message.role }}:{{ style }}]{{ message.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[A]{% if enable_thinking is defined and enable_thinking is "
    "false "
    "%}<no>{% endif %}{{ notes.deep[1] if notes }}{% endif %}"
    "{% for key, value in {}.items() %}{{ key }}{% endfor %}{% macro m(a) %}{{ a }}{% endmacro %}";

static struct rlhf__chat *open_template(struct scratch *s, const char *text) {
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    scratch_text(s, "chat_template.jinja", text);
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    return c;
}

// Renders a question of a row with the variables `row_vars` (NULL = none).
static rlhf_status ask(struct rlhf__chat *c, const char *row_vars, struct rlhf__buf *out,
                       struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *row =
        json_pack("{s:[{s:s,s:s}],s:o*}", "messages", "role", "user", "content", "Q",
                  "chat_template_kwargs", row_vars ? json_loads(row_vars, 0, NULL) : NULL);
    rlhf__buf_clear(out);
    check_ok(rlhf__messages_read(&m, json_object_get(row, "messages"), "messages", err), err);
    m.vars = rlhf__messages_vars(row);
    const rlhf_status st = rlhf__chat_render(c, &m, 1, out, err);
    rlhf__messages_finish(&m);
    json_decref(row);
    return st;
}

static void check_text(struct rlhf__chat *c, const char *row_vars, const char *want) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    check_ok(ask(c, row_vars, &text, &err), &err);
    assert_string_equal(rlhf__buf_text(&text), want);
    rlhf__buf_finish(&text);
}

static rlhf_status choose(struct rlhf__chat *c, const char *vars, const char *date,
                          struct rlhf__error *err) {
    const struct rlhf__chat_choice choice = {.vars = vars, .date = date};
    *err = (struct rlhf__error){0, ""};
    return rlhf__chat_choose(c, &choice, &flags, err);
}

static void variables(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err;
    struct rlhf__buf say = RLHF__BUF_INIT;
    struct rlhf__chat *c = open_template(s, thinks);
    check_text(c, NULL, "[user:plain]Q</s>[A]");
    check_text(c, "{\"enable_thinking\":false,\"style\":\"x\"}", "[user:x]Q</s>[A]<no>");
    check_ok(choose(c, "{\"enable_thinking\":false,\"notes\":{\"deep\":[1,\"a\\\"\\n\\u00e9\"]}}",
                    NULL, &err),
             &err);
    check_text(c, NULL, "[user:plain]Q</s>[A]<no>a\"\n\xc3\xa9");
    check_text(c, "{\"enable_thinking\":true,\"notes\":null}",
               "[user:plain]Q</s>[A]"); // the row wins
    rlhf__chat_describe(c, &say);
    assert_non_null(strstr(rlhf__buf_text(&say), " with {\"enable_thinking\": false, \"notes\""));
    rlhf__buf_finish(&say);
    // The text that a checkpoint gets renders the same, and its reader can still set the variables.
    assert_non_null(rlhf__chat_jinja(c));
    struct rlhf__chat *saved = open_template(s, rlhf__chat_jinja(c));
    check_text(saved, NULL, "[user:plain]Q</s>[A]<no>a\"\n\xc3\xa9");
    check_text(saved, "{\"enable_thinking\":true,\"notes\":null}", "[user:plain]Q</s>[A]");
    rlhf__chat_close(saved);
    check_ok(rlhf__chat_name(c, "qwen3", &err), &err); // they count for a template named later
    check_text(c, NULL,
               "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    rlhf__chat_close(c);
}

// The directory's own template cannot read a token that only an id names, as in transformers.
// A named template writes it, and so does the text that a checkpoint gets.
static void by_id(void **state) {
    static const struct rlhf__chat_tokens known = {
        .vars = "{\"bos_token\":\"<s>\"}", .more = "{\"eos_token\":\"<e>\",\"unk_token\":\"?\"}"};
    struct scratch *s = *state;
    struct rlhf__error err = {0, ""};
    struct rlhf__chat *c = NULL;
    scratch_text(s, "chat_template.jinja",
                 "{{ messages[0].content }}{{ eos_token }}{{ bos_token }}");
    check_ok(rlhf__chat_open(s->dir, &known, &c, &err), &err);
    check_text(c, NULL, "Q<s>");
    assert_null(rlhf__chat_jinja(c));
    check_ok(rlhf__chat_name(c, scratch_path(s, "chat_template.jinja"), &err), &err);
    check_text(c, NULL, "Q<e><s>");
    const char *saved = rlhf__chat_jinja(c);
    assert_non_null(
        strstr(saved, "{%- if eos_token is not defined %}{%- set eos_token = \"<e>\" %}"));
    assert_null(strstr(saved, "unk_token"));
    rlhf__chat_close(c);
}

static void refused(void **state) {
    static const struct {
        const char *vars, *date, *part;
    } cases[] = {
        {"{\"enable_thinkin\":1}", NULL,
         "--template-vars: the chat template never reads a variable 'enable_thinkin'; variables "
         "that it reads: style, enable_thinking, notes"},
        {"{\"message\":1}", NULL, "never reads a variable 'message'"}, // a loop sets it
        {"{\"m\":1}", NULL, "never reads a variable 'm'"},
        {"{\"key\":1}", NULL, "never reads a variable 'key'"}, // one of two names of a loop
        {"{\"a b\":1}", NULL, "never reads a variable 'a b'"},
        {"{\"tools\":[]}", NULL, "the variable 'tools' of the chat template is set by the program"},
        {"[1]", NULL, "--template-vars: a list; expected a JSON object, such as"},
        {"{", NULL, "--template-vars: not valid JSON"},
        {NULL, "2026-11-28", "--date: the chat template never asks for a date"},
        {NULL, "today", "--date: 'today' is not a date; expected one as 2026-11-28"},
    };
    struct scratch *s = *state;
    struct rlhf__error err;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__chat *c = open_template(s, thinks);
        const rlhf_status st = choose(c, cases[i].vars, cases[i].date, &err);
        if (cases[i].part)
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
        else
            check_ok(st, &err);
        rlhf__chat_close(c);
    }
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__chat *c = open_template(s, thinks);
    err = (struct rlhf__error){0, ""};
    check_error(ask(c, "{\"deep\":1}", &text, &err), RLHF_E_INVALID, &err,
                "field 'chat_template_kwargs': the chat template never reads a variable 'deep'");
    rlhf__chat_close(c);
    rlhf__buf_finish(&text);
}

static void dates(void **state) {
    static const char needs[] = "{{ strftime_now('%d %b %Y') }}:{{ messages[-1].content }}";
    static const char tests[] = "{{ strftime_now('%Y-%m-%d %A') if strftime_now is defined else "
                                "'then' }}:{{ messages[-1].content }}";
    struct scratch *s = *state;
    struct rlhf__error err;
    struct rlhf__chat *c = open_template(s, needs);
    assert_null(rlhf__chat_known(c));
    check_ok(choose(c, NULL, "2026-11-28", &err), &err);
    check_text(c, NULL, "28 Nov 2026:Q"); // usable after all
    assert_non_null(rlhf__chat_known(c));
    assert_null(rlhf__chat_jinja(c)); // the directory's own text is enough
    rlhf__chat_close(c);
    c = open_template(s, tests);
    check_text(c, NULL, "then:Q");
    check_ok(choose(c, NULL, "2024-02-29", &err), &err);
    check_text(c, NULL, "2024-02-29 Thursday:Q");
    rlhf__chat_close(c);
    c = open_template(s, "{{ strftime_now('%Q') }}{{ messages[-1].content }}");
    check_ok(choose(c, NULL, "2024-02-29", &err), &err);
    assert_non_null(strstr(rlhf__chat_unknown(c), "the format '%Q' of strftime_now"));
    rlhf__chat_close(c);
}

static void formats(void **state) {
    static const struct {
        const char *format, *text; // by Python's datetime(2026, 3, 5).strftime
    } cases[] = {{"%Y-%m-%d", "2026-03-05"},
                 {"%B %-d, %y", "March 5, 26"},
                 {"%a %A %b %j %H:%M:%S %p", "Thu Thursday Mar 064 00:00:00 AM"},
                 {"%e|%D|%F|%T|%R|%I|%u|%w|%U|%W|%V|%G|%C|%h",
                  " 5|03/05/26|2026-03-05|00:00:00|00:00|12|4|4|09|09|10|2026|20|Mar"},
                 {"100%% %z%Z.", "100% ."},
                 {"\xc3\xa9 %d", "\xc3\xa9 05"},
                 {"", ""},
                 {"%", "%"}};
    static const char *const wrong[] = {"2026-02-30",  "2026-13-01", "2026-1-01",  "26-01-01",
                                        "2026-01-01 ", "-026-01-01", "2026/01/01", ""};
    struct rlhf__error err = {0, ""};
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__buf out = RLHF__BUF_INIT;
        const rlhf_str format = {cases[i].format, strlen(cases[i].format)};
        assert_int_equal(rlhf__date_put("2026-03-05", format, &out), 1);
        assert_string_equal(rlhf__buf_text(&out), cases[i].text);
        rlhf__buf_finish(&out);
    }
    for (size_t i = 0; i < CHECK_COUNT(wrong); i++)
        assert_int_equal(rlhf__date_check(wrong[i], &err), RLHF_E_INVALID);
    check_ok(rlhf__date_check("2024-02-29", &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(variables, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(by_id, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(dates, scratch_setup, scratch_teardown),
        cmocka_unit_test(formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
