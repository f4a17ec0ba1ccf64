// test_jinja.c: the Jinja that chat templates are written in, against transformers' environment;
// what is not known is an error, and no template gets beyond the limits.
#include "support/check.h"
#include "vectors.h"

#include "chat/jinja_parse.h"
#include "chat/jinja_run.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status render(const char *text, size_t n, const json_t *vars,
                          struct rlhf__jinja_result *out, struct rlhf__error *err) {
    struct rlhf__jinja j = {0};
    rlhf_status st = rlhf__jinja_parse(text, n, &j, err);
    if (st == RLHF_OK) st = rlhf__jinja_run(&j, vars, out, err);
    rlhf__jinja_finish(&j);
    return st;
}

static void as_transformers(void **state) {
    json_t *rows = vectors_load("data/jinja.jsonl", 60), *row;
    json_t *vars = vectors_load("data/vars.json", 0);
    size_t i;
    (void)state;
    json_array_foreach(rows, i, row) {
        struct rlhf__jinja_result got = {0};
        struct rlhf__error err = {0, ""};
        const json_t *t = json_object_get(row, "template");
        rlhf_status st = render(json_string_value(t), json_string_length(t), vars, &got, &err);
        if (st != RLHF_OK) fail_msg("%s: %s", json_string_value(t), err.text);
        if (got.raised != json_is_true(json_object_get(row, "raised")))
            fail_msg("%s: raised %d", json_string_value(t), (int)got.raised);
        if (!got.raised && strcmp(rlhf__buf_text(&got.turns.text), vectors_text(row, "text")) != 0)
            fail_msg("%s: '%s', not '%s'", json_string_value(t), rlhf__buf_text(&got.turns.text),
                     vectors_text(row, "text"));
        rlhf__turns_finish(&got.turns);
    }
    json_decref(rows);
    json_decref(vars);
}

static void generation_blocks(void **state) {
    struct rlhf__jinja_result got = {0};
    struct rlhf__error err = {0, ""};
    json_t *vars = json_object();
    static const char text[] = "ab{% generation %}cd{% endgeneration %}e{% generation %}"
                               "{% endgeneration %}";
    (void)state;
    assert_int_equal(render(text, sizeof text - 1, vars, &got, &err), RLHF_OK);
    assert_string_equal(rlhf__buf_text(&got.turns.text), "abcde");
    assert_int_equal(got.turns.n, 2);
    assert_int_equal(got.turns.item[0].from, 2);
    assert_int_equal(got.turns.item[0].to, 4);
    assert_int_equal(got.turns.item[1].from, 5);
    assert_int_equal(got.turns.item[1].to, 5);
    rlhf__turns_finish(&got.turns);
    json_decref(vars);
}

// Not known: said with the line, never a guess.
static void not_known(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"a\n{% macro x() %}{% endmacro %}", "line 2: the tag 'macro' is not known"},
        {"{% include 'x' %}", "the tag 'include'"},
        {"{% import 'os' as os %}", "the tag 'import'"},
        {"{% extends 'x' %}", "the tag 'extends'"},
        {"{% set x %}a{% endset %}", "a 'set' without '='"},
        {"{{ messages | map(attribute='x') }}", "the argument 'attribute'"},
        {"{{ messages | tojson }}", "the filter 'tojson' of a list"},
        {"{{ strftime_now('%d') }}", "the function 'strftime_now'"},
        {"{{ cycler() }}", "the function 'cycler'"},
        {"{{ 'a'.__class__() }}", "the method '__class__' of a string"},
        {"{{ 'a'.format(1) }}", "the method 'format'"},
        {"{{ 'a' is divisibleby 2 }}", "the test 'divisibleby'"},
        {"{{ messages }}", "printing a list"},
        {"{% for a, b in [[1, 2]] %}{% endfor %}", "a loop over several names"},
        {"{% for c in 'abc' %}{% endfor %}", "a loop over what is no list"},
        {"{% set messages.x = 1 %}", "setting the attribute 'x'"},
        {"{% set ns = namespace() %}{% set ns.me = [ns] %}", "setting the attribute 'me'"},
        {"{{ '\xc3\xa9'.upper() }}", "letters beyond ASCII"},
        {"{{ 'a' }", "a tag that does not end"},
        {"{% if true %}", "'elif' is missing"},
        {"{% endif %}", "the tag 'endif'"},
        {"{{ 'a", "a string that does not end"},
        {"{# a", "a comment that does not end"},
        {"{{ 1 < 2 < 3 }}", "a chain of '<'"},
        {"{{ '\\q' }}", "an escape"},
        {"{{ 99999999999 }}", "a number"},
        {"{{ \xff }}", "the sign '?'"},
        {"\xff", "no UTF-8"},
        // The limits.
        {"{% for i in range(5000) %}{% endfor %}", "such a range()"},
        {"{% for i in range(4000) %}{% for k in range(4000) %}{% endfor %}{% endfor %}",
         "more steps than are allowed"},
        {"{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}"
         "{% set ns.s = ns.s + ns.s %}{% endfor %}",
         "more text than is allowed"},
        {"{% set s = "
         "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaa'"
         " %}{% for i in range(4000) %}{{ s }}{{ s }}{{ s }}{% endfor %}",
         "more text than is allowed"},
    };
    json_t *vars = vectors_load("data/vars.json", 0);
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__jinja_result got = {0};
        struct rlhf__error err = {0, ""};
        rlhf_status st = render(cases[i].text, strlen(cases[i].text), vars, &got, &err);
        if (st != RLHF_E_UNSUPPORTED || !strstr(err.text, cases[i].part))
            fail_msg("%s: %d '%s', expected '%s'", cases[i].text, (int)st, err.text, cases[i].part);
        rlhf__turns_finish(&got.turns);
    }
    json_decref(vars);
}

// Levels of every kind end in an error.
static void depth(void **state) {
    static const struct {
        const char *open, *close;
    } kinds[] = {{"{{ (", ""},
                 {"{{ [", ""},
                 {"{{ - ", ""},
                 {"{{ not ", ""},
                 {"{{ x if ", ""},
                 {"{% if x %}", ""},
                 {"{% for i in x %}", ""},
                 {"{{ x | f(", ""}};
    json_t *vars = json_object();
    (void)state;
    for (size_t k = 0; k < CHECK_COUNT(kinds); k++) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        struct rlhf__jinja_result got = {0};
        struct rlhf__error err = {0, ""};
        rlhf__buf_puts(&text, kinds[k].open);
        for (int i = 0; i < 20000; i++)
            rlhf__buf_puts(&text, kinds[k].open[1] == '{' ? kinds[k].open + 3 : kinds[k].open);
        assert_int_equal(render(rlhf__buf_text(&text), text.len, vars, &got, &err),
                         RLHF_E_UNSUPPORTED);
        rlhf__turns_finish(&got.turns);
        rlhf__buf_free(&text);
    }
    // A long chain is a deep tree.
    struct rlhf__buf chain = RLHF__BUF_INIT;
    struct rlhf__jinja_result got = {0};
    struct rlhf__error err = {0, ""};
    rlhf__buf_puts(&chain, "{{ 1");
    for (int i = 0; i < 20000; i++)
        rlhf__buf_puts(&chain, " + 1");
    rlhf__buf_puts(&chain, " }}");
    assert_int_equal(render(rlhf__buf_text(&chain), chain.len, vars, &got, &err),
                     RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "too many levels"));
    rlhf__turns_finish(&got.turns);
    rlhf__buf_free(&chain);
    json_decref(vars);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_transformers),
        cmocka_unit_test(generation_blocks),
        cmocka_unit_test(not_known),
        cmocka_unit_test(depth),
    };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
