// test_jinja.c: the Jinja of chat templates, compared with transformers' environment. Unknown
// constructs are errors, and limits stop templates that run too long or grow too large.
#include "support/check.h"
#include "vectors.h"

#include "jinja/jinja_parse.h"
#include "jinja/jinja_run.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status render(const char *text, size_t n, const json_t *vars,
                          struct rlhf__jinja_result *out, struct rlhf__error *err) {
    struct rlhf__jinja j = {0};
    rlhf_status st = rlhf__jinja_parse(text, n, &j, err);
    const struct rlhf__jinja_input in = {.vars = vars};
    if (st == RLHF_OK) st = rlhf__jinja_run(&j, &in, out, err);
    rlhf__jinja_finish(&j);
    return st;
}

static void as_transformers(void **state) {
    json_t *rows = vectors_load("data/jinja.jsonl", 120), *row;
    json_t *vars = vectors_load("data/vars.json", 0);
    size_t i, wrong = 0;
    (void)state;
    json_array_foreach(rows, i, row) {
        struct rlhf__jinja_result got = {0};
        struct rlhf__error err = {0, ""};
        const json_t *t = json_object_get(row, "template");
        const int raised = json_is_true(json_object_get(row, "raised"));
        const int refused = json_is_true(json_object_get(row, "refused"));
        rlhf_status st = render(json_string_value(t), json_string_length(t), vars, &got, &err);
        const int same = refused ? st == RLHF_E_UNSUPPORTED
                                 : st == RLHF_OK && got.raised == raised &&
                                       (raised || strcmp(rlhf__buf_text(&got.turns.text),
                                                         vectors_text(row, "text")) == 0);
        if (!same)
            print_error("%s: '%s' %s%s, not '%s'\n", json_string_value(t),
                        rlhf__buf_text(&got.turns.text), got.raised ? "raised: " : "",
                        got.raised ? got.why : err.text,
                        raised    ? "raised"
                        : refused ? "refused"
                                  : vectors_text(row, "text"));
        wrong += !same;
        rlhf__turns_finish(&got.turns);
    }
    json_decref(rows);
    json_decref(vars);
    assert_int_equal(wrong, 0);
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

struct refused {
    const char *text, *part;
};

static void check_refused(const struct refused *cases, size_t n) {
    json_t *vars = vectors_load("data/vars.json", 0);
    for (size_t i = 0; i < n; i++) {
        struct rlhf__jinja_result got = {0};
        struct rlhf__error err = {0, ""};
        rlhf_status st = render(cases[i].text, strlen(cases[i].text), vars, &got, &err);
        if (st != RLHF_E_UNSUPPORTED || !strstr(err.text, cases[i].part))
            fail_msg("%s: %d '%s', expected '%s'", cases[i].text, (int)st, err.text, cases[i].part);
        rlhf__turns_finish(&got.turns);
    }
    json_decref(vars);
}

// Unknown constructs are errors that name the line.
static void not_known(void **state) {
    (void)state;
    static const struct refused cases[] = {
        {"a\n{% do x %}", "line 2: the tag 'do' is not known"},
        {"{% include 'x' %}", "the tag 'include'"},
        {"{% import 'os' as os %}", "the tag 'import'"},
        {"{% extends 'x' %}", "the tag 'extends'"},
        {"{% block x %}{% endblock %}", "the tag 'block'"},
        {"{% set x y %}", "a 'set' without '='"},
        {"{% set x.y.z = 1 %}", "a 'set' without '='"},
        {"{% set none = 1 %}", "a value for 'none'"},
        {"{% break %}", "a 'break' outside of a loop"},
        {"{% call 1 %}{% endcall %}", "a 'call' without '('"},
        {"{% raw %}{{ x }}", "'endraw' is missing"},
        {"{% macro m(a=1, b) %}{% endmacro %}", "a parameter without a default"},
        {"{{ f(a=1, 2) }}", "an argument after name=value"},
        {"{{ f(**d, *l) }}", "an argument after **object"},
        {"{{ messages | random }}", "the filter 'random' of a list"},
        {"{{ messages | map('nope') | list }}", "the filter 'nope' of an object"},
        {"{{ strftime_now('%d') }}",
         "the function 'strftime_now' would write today's date, and a run must be the same "
         "tomorrow: give the date, for example prompts.date=2026-11-28 (--date 2026-11-28)"},
        {"{{ lipsum() }}", "the function 'lipsum'"},
        {"{{ 'a'.__class__() }}", "the member '__class__' of a string"},
        {"{{ 'a'.encode() }}", "the method 'encode' of a string"},
        {"{{ [1].append(2) }}", "the method 'append' of a list"},
        {"{{ messages[0].update(1) }}", "the method 'update' of an object"},
        {"{{ 'a' is nope }}", "the test 'nope'"},
        {"{{ 'a' is string is string }}", "a test of the test 'string'"},
        {"{{ range }}", "printing a function"},
        {"{{ 'a'.upper }}", "printing a method"},
        {"{{ [1] | map('string') }}", "printing an iterator"},
        {"{% macro m() %}{% generation %}a{% endgeneration %}{% endmacro %}{{ m() }}",
         "a generation block in a macro"},
        {"{{ (-8) ** 0.5 }}", "a complex number"},
        {"{{ range(5)[1:] }}", "such a slice of a range"},
        {"{{ f(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17) }}", "more than 16 arguments"},
        {"{{ dict(*range(17)) }}", "more than 16 arguments"},
        {"{{ 'a' }", "a tag that does not end"},
        {"{% if true %}", "'elif' is missing"},
        {"{% endif %}", "the tag 'endif'"},
        {"{{ 'a", "a string that does not end"},
        {"{# a", "a comment that does not end"},
        {"{{ '\\N{DIGIT ONE}' }}", "an escape"},
        {"{{ '\\0' }}", "an escape"},
        {"{{ '\\x4' }}", "an escape"},
        {"{{ '\\", "an escape"},
        {"{{ x. }}", "a name or an index is missing after '.'"},
        {"{{ 1x }}", "'}}' is missing"},
        {"{{ \xff }}", "the sign '?'"},
        {"\xff", "no UTF-8"},
    };
    check_refused(cases, CHECK_COUNT(cases));
}

// Limits stop templates that never end, that call themselves, or whose text grows without bounds.
static void limits(void **state) {
    static const struct refused cases[] = {
        {"{% for i in range(10 ** 9) %}{% endfor %}", "a range() of more than 100000 numbers"},
        {"{% for i in range(0, 10 ** 12, 1) %}{% endfor %}", "a range() of more than 100000"},
        {"a\n{% for i in range(4000) %}{% for k in range(4000) %}{% endfor %}{% endfor %}",
         "line 2: more steps than are allowed (2097152)"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too many levels (200)"},
        {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
         "too many levels (200)"},
        {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
         "{{ m(35) }}",
         "more steps than are allowed (2097152)"},
        {"{{ 'abc' * 10 ** 9 }}", "more steps than are allowed"},
        {"{{ 'abc' * 10 ** 5 * 10 ** 5 }}", "more text than is allowed (64 MiB of values)"},
        {"{{ '' * 10 ** 9 }}{{ ([1] * 10 ** 9) | length }}", "more "},
        {"{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}"
         "{% set ns.s = ns.s + ns.s %}{% endfor %}",
         "more text than is allowed (64 MiB of values)"},
        {"{% set ns = namespace(s=['a']) %}{% for i in range(64) %}"
         "{% set ns.s = ns.s + ns.s %}{% endfor %}",
         "more "},
        {"{% set ns = namespace(s=['a']) %}{% for i in range(64) %}"
         "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
         "more "},
        {"{% set ns = namespace(s=['a']) %}{% for i in range(300) %}"
         "{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s | tojson }}",
         "too many levels (200)"},
        {"{% set ns = namespace(s=['a']) %}{% for i in range(300) %}"
         "{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s == [ns.s[0]] }}",
         "too many levels (200)"},
        {"{% set s = 'abcdefgh' * 4096 %}{% for i in range(4000) %}{{ s }}{% endfor %}",
         "more text than is allowed (32 MiB)"},
        {"{{ ('a ' * 30000) | replace('a', 'a ' * 30000) }}", "more text than is allowed"},
        {"{{ ('a' * 3000) | list | tojson(indent=100000) }}", "more text than is allowed"},
        {"{{ 10 ** 5000 }}", "an integer of more than 4300 digits"},
        {"{{ 2 ** (2 ** 70) }}", "an integer of more than 4300 digits"},
        {"{% set ns = namespace(i=3) %}{% for i in range(64) %}{% set ns.i = ns.i * ns.i %}"
         "{% endfor %}",
         "an integer of more than 4300 digits"},
        {"{{ ('9' * 5000) | int }}", "an integer of more than 4300 digits"},
        {"{{ 'a'.center(10 ** 12) }}", "more text than is allowed"},
        {"{{ 'a'.zfill(10 ** 20) }}", "more text than is allowed"},
        {"{{ '%999999999d' % 1 }}", "more text than is allowed"},
        {"{{ '%*d' % (10 ** 12, 1) }}", "more text than is allowed"},
        {"{{ '%.999999999d' % 1 }}", "more text than is allowed"},
        {"{{ '%.99999f' % 1 }}", "the format of a number"},
        {"{{ '{:999999999}'.format(1) }}", "more text than is allowed"},
        {"{{ '{:0999999999,}'.format(1) }}", "more text than is allowed"},
        {"{{ 'a\t'.expandtabs(10 ** 12) }}", "a tab of"},
        {"{{ [1] | batch(10 ** 12, 0) | list }}", "more "},
        {"{{ [] | slice(10 ** 12) | list }}", "more "},
        {"{{ 'abc'.replace('', 'a' * 30000).replace('', 'a' * 30000) }}", "more "},
        {"{{ ('<' * 30000 * 300) | e | forceescape | forceescape }}", "more "},
        {"{{ ('%s' * 30000) % (('a' * 30000,) * 30000) }}", "more "},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "too many levels (200)"},
        {"{% for x in [1] recursive %}{{ loop([1, 1]) }}{{ loop([1]) }}{% endfor %}", "too many"},
        {"{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}"
         "{% call m() %}{% endcall %}",
         "too many levels (200)"},
        {"{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}"
         "{% call m() %}{% endcall %}",
         "too many levels (200)"},
        {"{% set d = namespace(d={}) %}{% for i in range(300) %}{% set d.d = dict(a=d.d) %}"
         "{% endfor %}{{ d.d }}",
         "too many levels (200)"},
        {"{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me }}", "too many levels (200)"},
        {"{% set ns = namespace(l=((),)) %}{% for i in range(64) %}"
         "{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} | length }}",
         "more steps"},
        {"{{ ('a' * 1000000) | list | unique | list | length }}{{ range(90000) | sort(reverse=true)"
         " | length }}",
         "more "},
    };
    (void)state;
    check_refused(cases, CHECK_COUNT(cases));
}

// The steps of an operation on a long text or list grow with its bytes, however short the template
// is. If each operation counted as one step, these templates could run for hours or allocate
// gigabytes.
static void costs(void **state) {
#define TEXT        "{% set s = (' ' * 30000) * 500 %}"
#define ZEROS       "{% set s = ('0' * 30000) * 500 %}"
#define TWICE       "{% set a = ('x' * 30000) * 500 %}{% set b = ('x' * 30000) * 500 %}"
#define OFTEN(what) "{% for i in range(100000) %}{% set x = " what " %}{% endfor %}"
#define LIST(item)  "{% set l = [" item "] * 90000 %}"
    static const struct refused cases[] = {
        {TWICE OFTEN("a == b"), "more steps"},
        {TWICE OFTEN("a.startswith(b)"), "more steps"},
        {TWICE OFTEN("{a: 1}[b]"), "more steps"},
        {TWICE OFTEN("{a: 1}.get(b)"), "more steps"},
        {TWICE OFTEN("b in {a: 1}"), "more steps"},
        {TEXT OFTEN("s.strip()"), "more steps"},
        {TEXT OFTEN("s | trim"), "more steps"},
        {TEXT OFTEN("s.rstrip()"), "more steps"},
        {TEXT OFTEN("s | int"), "more steps"},
        {TEXT OFTEN("s.isspace()"), "more steps"},
        {ZEROS OFTEN("s.split()"), "more steps"},
        {ZEROS OFTEN("s.splitlines()"), "more steps"},
        {"{% set l = range(90000) | list %}" OFTEN("l | max"), "more steps"},
        {"{% set l = range(90000) | list %}" OFTEN("l | sum"), "more steps"},
        {LIST("''") OFTEN("l | join"), "more steps"},
        {LIST("''") OFTEN("''.join(l)"), "more steps"},
        {"{% set l = ('x',) * 90000 %}" OFTEN("''.startswith(l)"), "more steps"},
        {"{% set l = range(90000) | list %}" OFTEN("l.copy()"), "more "},
        {"{% set l = (1,) * 90000 %}" OFTEN("l.count(2)"), "more steps"},
        {"{% set l = [1] * 90000 %}" OFTEN("'a' if l is lower"), "more "},
        {TEXT OFTEN("s.upper()"), "more "},
        {TEXT OFTEN("s.isalpha()"), "more steps"},
        {TEXT OFTEN("s.islower()"), "more steps"},
        {TEXT OFTEN("s | title"), "more "},
        {TEXT OFTEN("s | wordcount"), "more steps"},
        {TEXT OFTEN("s | truncate(9)"), "more steps"},
        {TEXT OFTEN("s | urlencode"), "more "},
        {TEXT OFTEN("s | e"), "more "},
        {TEXT OFTEN("s.partition('x')"), "more steps"},
        {TEXT OFTEN("s.find('x', 5)"), "more steps"},
        {TEXT OFTEN("s.rsplit(none, 1)"), "more steps"},
        {TEXT OFTEN("s | float"), "more "},
        {TEXT OFTEN("'%s' % s"), "more "},
        {TEXT OFTEN("'{:5}'.format(s)"), "more "},
        {ZEROS OFTEN("s.zfill(20000000)"), "more "},
        {ZEROS OFTEN("s.expandtabs()"), "more "},
        // The sigmas look for letters on both sides, over a long row of marks.
        {"{% set s = ('\xce\xa3' ~ '.' * 30000) * 90 %}" OFTEN("s.lower()"), "more "},
        {"{% set n = 10 ** 2000 %}" OFTEN("n * n // n"), "more "},
        {"{% set n = 10 ** 4000 %}" OFTEN("n | string"), "more "},
        {"{% set n = '9' * 4000 %}" OFTEN("n | int"), "more "},
        // Long keys that share their bytes
        {"{% set d = namespace(d={}, s=('a' * 30000) * 100) %}{% for i in range(300) %}"
         "{% set d.s = d.s.removeprefix('a') %}{% set d.d = dict(d.d, **{d.s: 1}) %}{% endfor %}"
         "{{ d.d | tojson(sort_keys=true) }}",
         "more steps"},
        {"{% set ns = namespace(s=1) %}{% for i in range(50000) %}{% set ns.s = [ns.s] %}"
         "{% endfor %}{% set p = (['0'] * 50000) | join('.') %}"
         "{{ ([ns.s] * 50000) | map(attribute=p) | list | length }}",
         "more steps"},
        {"{{ [1] | tojson(indent=100000000000) }}", "more text than is allowed (32 MiB)"},
        {"{{ [[[1]]] | tojson(indent=900000000000000000) }}", "more text than is allowed (32 MiB)"},
        // A macro's result is text, so it counts against the limit for text while it is collected.
        {"{% set s = ('x' * 30000) * 400 %}{% macro m() %}{{ s }}{{ s }}{{ m() }}{% endmacro %}"
         "{{ m() }}",
         "more text than is allowed (32 MiB)"},
        {"{% set s = ('x' * 30000) * 400 %}{{ s }}{{ s }}{% set x %}{{ s }}{% endset %}",
         "more text than is allowed (32 MiB)"},
    };
    (void)state;
    check_refused(cases, CHECK_COUNT(cases));
}

// None of 40 open loops defines this name, so each use searches all of them.
static void many_names(void **state) {
    enum { LOOPS = 40, NAMES = 400, TIMES = 50 };
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct refused one = {NULL, "more steps"};
    (void)state;
    for (int i = 0; i < LOOPS; i++) {
        rlhf__buf_printf(&text, "{%% for i%d in [1] %%}", i);
        for (int k = 0; k < NAMES; k++)
            rlhf__buf_printf(&text, "{%% set v%d = 1 %%}", k);
    }
    rlhf__buf_puts(&text, "{% for i in range(100000) %}");
    for (int i = 0; i < TIMES; i++)
        rlhf__buf_puts(&text, "{{ zz }}");
    for (int i = 0; i < LOOPS + 1; i++)
        rlhf__buf_puts(&text, "{% endfor %}");
    one.text = rlhf__buf_text(&text);
    check_refused(&one, 1);
    rlhf__buf_finish(&text);
}

// A range() may end at the largest number.
static void last_numbers(void **state) {
    static const char text[] = "{% set a = 900000000000000000 * 10 + 223372036854775800 %}"
                               "{{ range(a, a + 7, 5) | list }}{{ range(-a, -a - 7, -5) | list }}";
    struct rlhf__jinja_result got = {0};
    struct rlhf__error err = {0, ""};
    json_t *vars = json_object();
    (void)state;
    assert_int_equal(render(text, sizeof text - 1, vars, &got, &err), RLHF_OK);
    assert_string_equal(rlhf__buf_text(&got.turns.text),
                        "[9223372036854775800, 9223372036854775805]"
                        "[-9223372036854775800, -9223372036854775805]");
    rlhf__turns_finish(&got.turns);
    json_decref(vars);
}

// Messages are variables of the template; their contents are not templates.
static void messages(void **state) {
    static const char text[] = "{% for m in messages %}{{ m.role }}={{ m['content'] }}"
                               "{{ m.reasoning_content }}{{ m | length }};{% endfor %}"
                               "{{ add_generation_prompt }}{{ bos_token }}";
    const struct rlhf__message m[] = {
        {.role = RLHF__ROLE_USER, .content = {"{{ 1 }}", 7}},
        {.role = RLHF__ROLE_ASSISTANT, .content = {"", 0}, .thoughts = {"why", 3}}};
    struct rlhf__jinja j = {0};
    struct rlhf__jinja_result got = {0};
    struct rlhf__error err = {0, ""};
    json_t *vars = json_pack("{s:s}", "bos_token", "<s>");
    const struct rlhf__jinja_input in = {.vars = vars, .messages = m, .n = 2, .generate = 1};
    (void)state;
    assert_int_equal(rlhf__jinja_parse(text, sizeof text - 1, &j, &err), RLHF_OK);
    for (int i = 0; i < 2; i++) { // a template is read once and run often
        assert_int_equal(rlhf__jinja_run(&j, &in, &got, &err), RLHF_OK);
        assert_string_equal(rlhf__buf_text(&got.turns.text),
                            "user={{ 1 }}2;assistant=why4;True<s>");
    }
    rlhf__turns_finish(&got.turns);
    rlhf__jinja_finish(&j);
    json_decref(vars);
}

static void raised(void **state) {
    struct rlhf__jinja_result got = {0};
    struct rlhf__error err = {0, ""};
    json_t *vars = json_object();
    static const char text[] = "a\n\n{{ raise_exception('no ' ~ 1) }}";
    (void)state;
    assert_int_equal(render(text, sizeof text - 1, vars, &got, &err), RLHF_OK);
    assert_int_equal(got.raised, 1);
    assert_int_equal(got.line, 3);
    assert_string_equal(got.why, "no 1");
    static const char no_list[] = "{{ ', '.join(1) }}";
    assert_int_equal(render(no_list, sizeof no_list - 1, vars, &got, &err), RLHF_OK);
    assert_string_equal(got.why, "a loop over an integer");
    rlhf__turns_finish(&got.turns);
    json_decref(vars);
}

// Nesting of every kind that is too deep is an error, not a crash.
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
        rlhf__buf_finish(&text);
    }
    // A long chain of operators is parsed into a deep tree.
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
    rlhf__buf_finish(&chain);
    json_decref(vars);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_transformers), cmocka_unit_test(generation_blocks),
        cmocka_unit_test(not_known),       cmocka_unit_test(limits),
        cmocka_unit_test(messages),        cmocka_unit_test(raised),
        cmocka_unit_test(depth),           cmocka_unit_test(costs),
        cmocka_unit_test(many_names),      cmocka_unit_test(last_numbers),
    };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
