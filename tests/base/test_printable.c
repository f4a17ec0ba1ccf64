// test_printable.c: which parts of a text may reach a terminal and the log.
#include "support/check.h"

#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

static void check(const char *text, const char *keep, const char *want) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__put_printable(&out, text, strlen(text), keep);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
}

static void texts_stay_readable(void **state) {
    (void)state;
    check("", "", "");
    check("plain \\n text ~", "", "plain \\n text ~");
    check("caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", "",
          "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80");
    check("a\nb\tc\rd", "", "a\\nb\\tc\\rd");
    check("a\nb\tc\rd", "\n\t", "a\nb\tc\\rd");
}

static void nothing_that_a_terminal_obeys(void **state) {
    (void)state;
    check("\033[31m\x07\x7f", "", "\\x1b[31m\\x07\\x7f");
    check("\xc2\x9b"
          "2J\xc2\x85",
          "", "\\x9b2J\\x85"); // C1
    check("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f", "", "\\u202e\\u2066\\u200f");
    check("\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf", "", "\\u2028\\u2029\\ufeff");
    check("\xf3\xa0\x80\x81", "", "\\U000e0001");
}

static void what_is_no_utf8(void **state) {
    (void)state;
    check("a\xff\xfe", "", "a\\xff\\xfe");
    check("\xc0\xaf \xe0\x80\xaf \xed\xa0\x80 \xf4\x90\x80\x80", "",
          "\\xc0\\xaf \\xe0\\x80\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
    check("cut \xe2\x82", "", "cut \\xe2\\x82");
    // The low bits of these bytes equal the codes of line feed, tab and carriage return. But the
    // bytes are other characters, and must be escaped.
    check("\xca. \xc9. \xcd.", "", "\\xca. \\xc9. \\xcd.");
    check("\xca. \xc9.", "\n\t", "\\xca. \\xc9.");
}

static void cuts_are_between_characters(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; // of 1, 2, 3 and 4 bytes
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t n = 0; n < sizeof text; n++)
        assert_int_equal(rlhf__utf8_floor(text, n), want[n]);
    assert_int_equal(rlhf__utf8_floor("\x80\x80\x80\x80\x80\x80", 5), 5); // no UTF-8
}

static void a_fixed_buffer_ends_between_characters(void **state) {
    (void)state;
    char out[8];
    assert_string_equal(rlhf__printable("abc\033defgh", out, sizeof out), "abc\\x1b");
    assert_string_equal(rlhf__printable("abcd\033", out, sizeof out), "abcd");
    assert_string_equal(rlhf__printable("abcde\xc3\xa9\xc3\xa9", out, sizeof out), "abcde\xc3\xa9");
}

static void a_word_of_a_command_line(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"runs/a-1", "runs/a-1"},
                                           {"my runs/a", "'my runs/a'"},
                                           {"it's", "'it'\\''s'"},
                                           {"", "''"},
                                           {"$(x)", "'$(x)'"}};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__buf out = RLHF__BUF_INIT;
        rlhf__put_shell(&out, cases[i][0]);
        assert_string_equal(rlhf__buf_text(&out), cases[i][1]);
        rlhf__buf_finish(&out);
    }
}

static void json_says_it_in_its_own_escapes(void **state) {
    (void)state;
    static const char text[] = "\033\n\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81\xc3\xa9\xff";
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__json_write_string(&out, text, sizeof text - 1);
    assert_string_equal(rlhf__buf_text(&out),
                        "\"\\u001b\\n\\u009b\\u202e\\udb40\\udc01\xc3\xa9\xef\xbf\xbd\"");
    json_t *back = json_loads(rlhf__buf_text(&out), JSON_DECODE_ANY, NULL);
    assert_string_equal(json_string_value(back),
                        "\033\n\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81\xc3\xa9\xef\xbf\xbd");
    json_decref(back);
    rlhf__buf_finish(&out);
}

static void a_log_line_is_one_line(void **state) {
    (void)state;
    char *text = NULL;
    size_t n = 0;
    struct rlhf__log log;
    rlhf__log_init(&log);
    log.color = 0;
    log.out = open_memstream(&text, &n);
    rlhf__logf(&log, RLHF_LOG_WARN, "a\nerror: b\033%s", "\xff");
    rlhf__log_error(&log, "c\n\xc2\x9b");
    fclose(log.out);
    assert_non_null(strstr(text, "warning: a\\nerror: b\\x1b\\xff\n"));
    assert_non_null(strstr(text, "\nrlhf-host: error: c\\n\\x9b\n"));
    free(text);
    rlhf__log_finish(&log);
}

// The second column is wrapped within itself, or below the first one if it would be narrow. Words
// are whole, and a width of 0 leaves lines as they are.
static void two_columns_are_wrapped(void **state) {
    (void)state;
    static const char text[] = "usage: a thing [flags]\n"
                               "  --flag NAME      what the flag with this name does here\n"
                               "  --short          short\n";
    static const struct {
        int columns;
        const char *want;
    } cases[] = {
        {0, text},
        {80, text},
        {45, "usage: a thing [flags]\n"
             "  --flag NAME      what the flag with this\n"
             "                   name does here\n"
             "  --short          short\n"},
        {22, "usage: a thing [flags]\n"
             "  --flag NAME\n"
             "        what the flag\n"
             "        with this name\n"
             "        does here\n"
             "  --short\n"
             "        short\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__buf out = RLHF__BUF_INIT;
        rlhf__put_two_columns(&out, (rlhf_str){text, sizeof text - 1}, cases[i].columns);
        assert_string_equal(rlhf__buf_text(&out), cases[i].want);
        rlhf__buf_finish(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_stay_readable),
        cmocka_unit_test(nothing_that_a_terminal_obeys),
        cmocka_unit_test(what_is_no_utf8),
        cmocka_unit_test(cuts_are_between_characters),
        cmocka_unit_test(a_fixed_buffer_ends_between_characters),
        cmocka_unit_test(a_word_of_a_command_line),
        cmocka_unit_test(json_says_it_in_its_own_escapes),
        cmocka_unit_test(a_log_line_is_one_line),
        cmocka_unit_test(two_columns_are_wrapped),
    };
    return cmocka_run_group_tests_name("base_printable", tests, NULL, NULL);
}
