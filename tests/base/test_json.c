// test_json.c: strict reading of JSON, and lines of keys.
#include "support/scratch.h"

#include "base/json.h"

static void refusals_have_a_place(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    json_t *v;
    const struct {
        const char *text, *part;
    } bad[] = {
        {"{\"a\": 1,\n \"a\": 2}", "c.json:2:"},
        {"{\"a\": 1", "c.json:1:"},
        {"{} x", "c.json:1:"},
        {"", "c.json:1:"},
        {"{\"a\": \"\xff\"}", "c.json:1:"},
        {"{\"a\": 01}", "not valid JSON"},
        {"{\"a\":\n\n nope}", "c.json:3:"},
        {"{\"a\": NaN}", "not valid JSON"},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        rlhf_status st = rlhf__json_parse("c.json", bad[i].text, strlen(bad[i].text), &v, &err);
        check_error(st, RLHF_E_INVALID, &err, bad[i].part);
        assert_null(v);
    }
    check_error(rlhf__json_parse("c.json", "{\"a\": 1, \"a\": 2}", 16, &v, &err), RLHF_E_INVALID,
                &err, "duplicate object key");
}

static void counts_are_whole_numbers(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    int64_t a = -1, b = -1;
    const struct rlhf__json_count list[] = {{"a", &a}, {"b", &b}};
    const struct {
        const char *text, *part;
    } bad[] = {
        {"{\"a\": 1}", "\"b\" must be a whole number, it is missing"},
        {"{\"a\": 1, \"b\": 1.5}", "\"b\" must be a whole number"},
        {"{\"a\": \"1\", \"b\": 2}", "\"a\" must be a whole number, it is a string"},
        {"{\"a\": 1, \"b\": -2}", "\"b\" is -2; it must be 0 or more"},
        {"[]", "\"a\" must be a whole number"},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        json_t *v = json_loads(bad[i].text, 0, NULL);
        rlhf_status st = rlhf__json_counts(v, list, 2, &err);
        json_decref(v);
        check_error(st, RLHF_E_INVALID, &err, bad[i].part);
        assert_int_equal(a, -1); // all numbers are set, or none
    }
    json_t *v = json_loads("{\"b\": 9007199254740993, \"a\": 0, \"c\": null}", 0, NULL);
    assert_int_equal(rlhf__json_counts(v, list, 2, &err), RLHF_OK);
    json_decref(v);
    assert_int_equal(a, 0);
    assert_true(b == 9007199254740993);
    assert_int_equal(rlhf__json_counts(NULL, list, 1, &err), RLHF_E_INVALID);
}

static void lines_of_keys(void **state) {
    (void)state;
    const char *text = "{\n"
                       "  \"a\": {\"x\": \"}, \\\" {\", \"lr\": 1},\n"
                       "  \"list\": [1,\n"
                       "    {\"w\": [2, 3]},\n"
                       "    4],\n"
                       "  \"optim\": {\n"
                       "    \"lr\":\n"
                       "      5\n"
                       "  }\n"
                       "}\n";
    const struct {
        const char *path;
        int64_t line;
    } want[] = {{"a", 2},        {"a.x", 2},        {"a.lr", 2},   {"list", 3},   {"list.0", 3},
                {"list.1.w", 4}, {"list.1.w.1", 4}, {"list.2", 5}, {"list.3", 0}, {"optim", 6},
                {"optim.lr", 8}, {"optim.none", 0}, {"none", 0},   {"a.x.y", 0}};
    for (size_t i = 0; i < CHECK_COUNT(want); i++) {
        int64_t line = rlhf__json_line_of(text, strlen(text), want[i].path);
        if (line != want[i].line) fail_msg("%s: line %d", want[i].path, (int)line);
    }
    // Cut text must not be read beyond its end.
    for (size_t n = 0; n < strlen(text); n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, text, n);
        rlhf__json_line_of(cut, n, "optim.lr");
        free(cut);
    }
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    const char *text =
        "{\"s\": \"a\\\"\\\\\\n\\u0001\xc3\xa9\", \"e\": {}, \"l\": [1, 2.5, true, null, []]}";
    json_t *v, *again;
    check_ok(rlhf__json_parse("t", text, strlen(text), &v, &err), &err);
    for (int indent = 0; indent <= 2; indent += 2) {
        struct rlhf__buf b = RLHF__BUF_INIT;
        rlhf__json_write(&b, v, indent);
        if (indent == 0) assert_string_equal(rlhf__buf_text(&b), text);
        check_ok(rlhf__json_parse("t", rlhf__buf_text(&b), b.len, &again, &err), &err);
        assert_true(json_equal(v, again));
        json_decref(again);
        rlhf__buf_finish(&b);
    }
    json_decref(v);
}

static void strings_that_are_no_utf8(void **state) {
    (void)state;
    const char bytes[] = "a\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82\0z";
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    json_t *v;
    rlhf__buf_putc(&b, '[');
    rlhf__json_write_string(&b, bytes, sizeof bytes - 1);
    rlhf__buf_putc(&b, ']');
    assert_non_null(strstr(rlhf__buf_text(&b), "a\xef\xbf\xbd"));
    assert_non_null(strstr(rlhf__buf_text(&b), "\\u0000z"));
    v = json_loads(rlhf__buf_text(&b), JSON_ALLOW_NUL, NULL);
    assert_non_null(v);
    json_decref(v);
    (void)err;
    rlhf__buf_finish(&b);
}

static void kinds_in_words(void **state) {
    (void)state;
    json_t *v = json_loads("[{}, [], \"\", 1, 1.5, true, false, null]", 0, NULL);
    const char *want[] = {"an object", "a list",    "a string",  "an integer",
                          "a number",  "a boolean", "a boolean", "null"};
    for (size_t i = 0; i < CHECK_COUNT(want); i++)
        assert_string_equal(rlhf__json_kind(json_array_get(v, i)), want[i]);
    assert_string_equal(rlhf__json_kind(json_array_get(v, 8)),
                        "missing"); // the value does not exist
    json_decref(v);
}

// Integers beyond 64 bits become reals, as in other JSON readers. If an error comes later in the
// text, its message still has the right position.
static void integers_of_any_size(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    json_t *v;
    const char *text =
        "{\"model_max_length\": 1000000000000000019884624838656,\n"
        " \"s\": \"99999999999999999999 \\\" 99999999999999999999\",\n"
        " \"n\": [9223372036854775807, -9223372036854775808, 9223372036854775808,\n"
        "  -9223372036854775809, 9999999999999999999, 18446744073709551616, 1, 0.5]}";
    check_ok(rlhf__json_parse("c.json", text, strlen(text), &v, &err), &err);
    assert_true(json_real_value(json_object_get(v, "model_max_length")) == 1e30);
    assert_string_equal(json_string_value(json_object_get(v, "s")),
                        "99999999999999999999 \" 99999999999999999999");
    const json_t *n = json_object_get(v, "n");
    assert_true(json_integer_value(json_array_get(n, 0)) == INT64_MAX);
    assert_true(json_integer_value(json_array_get(n, 1)) == INT64_MIN);
    const double want[] = {9223372036854775808.0, -9223372036854775808.0, 1e19,
                           18446744073709551616.0};
    for (size_t i = 0; i < CHECK_COUNT(want); i++)
        assert_true(json_real_value(json_array_get(n, i + 2)) == want[i]);
    assert_true(json_integer_value(json_array_get(n, 6)) == 1);
    json_decref(v);
    static const char *const bad[] = {
        "{\"a\": 99999999999999999999, \"b\": 1, x}", "{\"a\": 99999999999999999999,\n\"b\": 1, x}",
        "{\"a\": [99999999999999999999, 0999999999999999999999]}", "{\"a\": 99999999999999999999x}",
        "{\"a\": [99999999999999999999, \""};
    for (size_t i = 0; i < CHECK_COUNT(bad);
         i++) { // the error position is right after a short number
        struct rlhf__error same = {0};
        char other[80];
        snprintf(other, sizeof other, "%s", bad[i]);
        memcpy(strchr(other, '9'), "0.8", 3);
        check_error(rlhf__json_parse("c.json", other, strlen(other), &v, &same), RLHF_E_INVALID,
                    &same, "c.json:");
        check_error(rlhf__json_parse("c.json", bad[i], strlen(bad[i]), &v, &err), RLHF_E_INVALID,
                    &err, same.text);
        assert_null(v);
    }
    char huge[500] = "{\"a\": ";
    memset(huge + 6, '7', 400);
    check_error(rlhf__json_parse("c.json", huge, strlen(huge), &v, &err), RLHF_E_INVALID, &err,
                "too big integer");
    check_error(rlhf__json_parse("c.json", "[-77777777777777777777-1]", 25, &v, &err),
                RLHF_E_INVALID, &err, "c.json:1:");
    check_error(rlhf__json_parse("c.json", "{\"a\": 1e999}", 12, &v, &err), RLHF_E_INVALID, &err,
                "real number overflow");
    check_error(rlhf__json_parse("c.yaml", "optim:\n", 7, &v, &err), RLHF_E_INVALID, &err,
                "; YAML and TOML are not read, only JSON");
}

// ---- integers that keep their digits ----

static json_t *digits_of(const char *text) {
    json_t *v = rlhf__json_decode_digits(text, strlen(text), JSON_ALLOW_NUL, NULL);
    assert_non_null(v);
    return v;
}

static void check_written(const json_t *v, const char *want) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__json_write(&out, v, 0);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
}

static void digits_are_kept(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [123456789012345678901, -9223372036854775809, 7, 1.5], "
                               "\"b\": {\"c\": 18446744073709551615}, \"s\": "
                               "\"12345678901234567890123 \\\" 98765432109876543210\"}";
    json_t *v = digits_of(text);
    const json_t *list = json_object_get(v, "a"), *first = json_array_get(list, 0);
    assert_string_equal(rlhf__json_digits(first), "123456789012345678901");
    assert_string_equal(rlhf__json_digits(json_array_get(list, 1)), "-9223372036854775809");
    assert_null(rlhf__json_digits(json_array_get(list, 2)));
    assert_null(rlhf__json_digits(json_object_get(v, "s")));
    assert_string_equal(rlhf__json_kind(first), "an integer");
    assert_false(rlhf__json_is_object(first));
    assert_true(rlhf__json_is_object(json_object_get(v, "b")));
    check_written(v, text);
    json_t *copy = json_deep_copy(v);
    assert_true(json_equal(v, copy));
    json_decref(copy);
    json_decref(v);
}

static void digits_have_a_limit(void **state) {
    (void)state;
    char text[4400] = "[-";
    json_error_t why;
    memset(text + 2, '7', 4300);
    text[4302] = ']';
    json_t *v = digits_of(text);
    assert_int_equal(strlen(rlhf__json_digits(json_array_get(v, 0))), 4301);
    json_decref(v);
    text[4302] = '7';
    text[4303] = ']';
    assert_null(rlhf__json_decode_digits(text, 4304, 0, &why));
    assert_int_equal(json_error_code(&why), json_error_numeric_overflow);
    text[1] = ' ';
    assert_null(rlhf__json_decode_digits(text, 4304, 0, NULL));
}

// The place of an error is that in the text, and other texts do not become such integers.
static void digits_are_only_in_integers(void **state) {
    (void)state;
    static const char *const bad[] = {"[12345678901234567890", "[12345678901234567890, x]",
                                      "12345678901234567890", "[\"\xff\", 12345678901234567890]"};
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        json_error_t why, same;
        assert_null(rlhf__json_decode_digits(bad[i], strlen(bad[i]), 0, &why));
        assert_null(rlhf__json_decode(bad[i], strlen(bad[i]), 0, &same));
        assert_int_equal(why.position, same.position);
        assert_string_equal(why.text, same.text);
    }
    static const char *const other[] = {
        "{\"\xef\xb7\x90\": \"12\"}", "{\"\xef\xb7\x90\": \"99999999999999999999x\"}",
        "{\"\xef\xb7\x90\": \"99999999999999999999\", \"b\": 1}", "{\"\xef\xb7\x90\": 1.5}",
        "{\"a\": \"99999999999999999999\"}"};
    for (size_t i = 0; i < CHECK_COUNT(other); i++) {
        json_t *v = digits_of(other[i]);
        assert_null(rlhf__json_digits(v));
        assert_true(rlhf__json_is_object(v));
        json_decref(v);
    }
    json_t *v = rlhf__json_decode_digits("-99999999999999999999", 21, JSON_DECODE_ANY, NULL);
    assert_string_equal(rlhf__json_digits(v), "-99999999999999999999");
    json_decref(v);
}

// Outside of inner objects, long integers become doubles.
static void digits_are_widened(void **state) {
    (void)state;
    json_t *v = digits_of("{\"a\": 12345678901234567890, \"b\": [[-1e2, 99999999999999999999]], "
                          "\"c\": [{\"d\": 12345678901234567890}], \"e\": 1}");
    assert_true(rlhf__json_widen(v));
    check_written(v, "{\"a\": 1.2345678901234567e+19, \"b\": [[-100.0, 1e+20]], "
                     "\"c\": [{\"d\": 12345678901234567890}], \"e\": 1}");
    json_decref(v);
    char huge[500] = "{\"a\": [1";
    memset(huge + 8, '0', 400);
    strcpy(huge + 408, "]}");
    v = digits_of(huge);
    assert_false(rlhf__json_widen(v));
    json_decref(v);
}

// If memory runs out, the reader does not blame the text.
static void a_failure_to_decode_is_told_apart(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    json_error_t why = {.line = 1, .column = 7, .text = "out of memory"};
    why.text[sizeof why.text - 1] = json_error_out_of_memory;
    check_error(rlhf__json_line_failed("a.jsonl", 3, &why, &err), RLHF_E_NOMEM, &err,
                "a.jsonl: out of memory");
    why.text[sizeof why.text - 1] = json_error_invalid_syntax;
    check_error(rlhf__json_line_failed("a.jsonl", 3, &why, &err), RLHF_E_INVALID, &err,
                "a.jsonl:3:7: not valid JSON: ");
    snprintf(why.text, sizeof why.text - 1, "'}' expected near end of file");
    check_error(rlhf__json_line_failed("a.jsonl", 3, &why, &err), RLHF_E_INVALID, &err,
                "a.jsonl:3:7: not valid JSON: '}' expected near the end of the line");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_have_a_place),
        cmocka_unit_test(counts_are_whole_numbers),
        cmocka_unit_test(lines_of_keys),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(strings_that_are_no_utf8),
        cmocka_unit_test(kinds_in_words),
        cmocka_unit_test(integers_of_any_size),
        cmocka_unit_test(digits_are_kept),
        cmocka_unit_test(digits_have_a_limit),
        cmocka_unit_test(digits_are_only_in_integers),
        cmocka_unit_test(digits_are_widened),
        cmocka_unit_test(a_failure_to_decode_is_told_apart),
    };
    return cmocka_run_group_tests_name("base_json", tests, NULL, NULL);
}
