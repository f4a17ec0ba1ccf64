// test_words.c: splitting a command into words, and foreign text in JSON and in messages.
#include "process/bytes.h"
#include "process/utf8.h"
#include "process/words.h"

#include "rewards/fixture.h"

static struct rlhf_test_host host;

// Asserts that splitting the command gives these words, which have | between them.
static void splits(const char *command, const char *want) {
    char **words, got[256] = "";
    rlhf_test_init(&host, 1);
    if (rlhf__words_split(&host.table, command, &words) != RLHF_OK)
        fail_msg("%s: %s", command, host.fail_text);
    for (char **w = words; *w; w++) {
        if (w != words) strcat(got, "|");
        strcat(got, *w);
    }
    host.table.free(&host.table, words);
    assert_string_equal(got, want);
    assert_int_equal(host.live, 0);
}

static void refuses(const char *command, const char *sentence) {
    char **words;
    rlhf_test_init(&host, 1);
    assert_int_equal(rlhf__words_split(&host.table, command, &words), RLHF_E_INVALID);
    assert_string_equal(host.fail_text, sentence);
    assert_int_equal(host.live, 0);
}

static void words_as_a_shell_splits_them(void **state) {
    (void)state;
    splits("./score", "./score");
    splits("  ./score\t--fast \n x ", "./score|--fast|x");
    splits("a 'b c' d", "a|b c|d");
    splits("a \"b c\"'d'e f", "a|b cde|f");
    splits("a '' \"\" b", "a|||b");
    splits("a\\ b \\'c\\' \\\\", "a b|'c'|\\");
    splits("'a\\n' \"a\\n\" \"\\\"\\\\\\$\\`\" a\\n", "a\\n|a\\n|\"\\$`|an");
    splits("a \\\n b", "a|b");
    splits("a\\\nb", "ab");
    splits("\"a\\\nb\"", "ab");
    splits("a '|&;<>()$`' \\| *.txt ~ #x {y,z}", "a||&;<>()$`|||*.txt|~|#x|{y,z}");
    splits("a \"|&;<>()'\"", "a||&;<>()'");
}

static void what_a_shell_would_act_on(void **state) {
    (void)state;
    refuses("./a | ./b", "the command has an unquoted |, but it is not run by a shell: ./a | ./b "
                         "(put the character in single quotes, or run sh -c '...')");
    refuses("./a \"$HOME\"", "the command has an unquoted $, but it is not run by a shell: ./a "
                             "\"$HOME\" (put the character in single quotes, or run sh -c '...')");
    refuses("./a 'b", "the command has a ' that is not closed: ./a 'b");
    refuses("./a \"b'", "the command has a \" that is not closed: ./a \"b'");
    refuses("./a \\", "the command ends in a backslash: ./a \\");
    refuses("", "the command is empty: it has to name a program");
    refuses(" \t", "the command is empty: it has to name a program");
    refuses("'' a", "the command is empty: it has to name a program");
}

static void json_of(rlhf_str text, const char *want) {
    struct rlhf__bytes b = {.host = &host.table};
    rlhf_test_init(&host, 1);
    rlhf__bytes_string(&b, text);
    rlhf__bytes_add(&b, "", 1);
    assert_int_equal(b.full, 0);
    assert_string_equal(b.data, want);
    rlhf__bytes_finish(&b);
    assert_int_equal(host.live, 0);
}
#define JSON_OF(text, want) json_of((rlhf_str){text, sizeof(text) - 1}, want)
#define BAD                 "\xef\xbf\xbd"

static void any_bytes_as_json(void **state) {
    (void)state;
    json_of((rlhf_str){NULL, 0}, "\"\"");
    JSON_OF("a \"b\" \\ / \x7f", "\"a \\\"b\\\" \\\\ / \x7f\"");
    JSON_OF("a\nb\r\t\0\x1f", "\"a\\nb\\u000d\\u0009\\u0000\\u001f\"");
    JSON_OF("\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    JSON_OF("\xe2\x80\xa8\xe2\x80\xa9\xc2\x85", "\"\\u2028\\u2029\\u0085\"");
    // An incomplete character gives one replacement for its longest valid prefix, as in Python's
    // and Rust's decoders.
    JSON_OF("a\xff\xfe", "\"a" BAD BAD "\"");
    JSON_OF("\xe2\x82", "\"" BAD "\"");
    JSON_OF("\xe2\x82x", "\"" BAD "x\"");
    JSON_OF("\xf0\x9f\x98\xf0\x9f\x98\x80", "\"" BAD "\xf0\x9f\x98\x80\"");
    JSON_OF("\xc0\x80", "\"" BAD BAD "\"");
    JSON_OF("\xed\xa0\x80", "\"" BAD BAD BAD "\"");
    JSON_OF("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\"");
    JSON_OF("\xe0\x9f\x80", "\"" BAD BAD BAD "\"");
}

static void json_on_one_line(void **state) {
    (void)state;
    struct rlhf__bytes b = {.host = &host.table};
    static const int32_t ids[] = {1, -2, 2147483647};
    rlhf_test_init(&host, 1);
    rlhf__bytes_json(&b, (rlhf_str){"{\"a\":\r\n 1}\n", 11});
    rlhf__bytes_json(&b, (rlhf_str){NULL, 0});
    rlhf__bytes_list(&b, ids, 3);
    rlhf__bytes_list(&b, ids, 0);
    rlhf__bytes_add(&b, "", 1);
    assert_string_equal(b.data, "{\"a\":   1} null[1,-2,2147483647][]");
    rlhf__bytes_finish(&b);
}

static void bytes_without_memory(void **state) {
    (void)state;
    struct rlhf__bytes b = {.host = &host.table};
    rlhf_test_init(&host, 1);
    rlhf_test_fail_alloc(&host, 2, 0);
    for (int i = 0; i < 5000; i++)
        rlhf__bytes_text(&b, "x");
    assert_int_equal(b.full, 1);
    assert_int_equal(b.len, 4096);
    rlhf__bytes_finish(&b);
    assert_int_equal(host.live, 0);
}

static void shown(const char *text, size_t n, size_t cap, const char *want) {
    char out[256];
    assert_string_equal(rlhf__utf8_shown(text, n, out, cap), want);
}

static void bytes_in_messages(void **state) {
    (void)state;
    shown("a\nb\t\x1b[31m\0", 10, 256, "a\\nb\\t\\x1b[31m\\x00");
    shown("\xc3\xa9\xff\xe2\x82", 5, 256, "\xc3\xa9\\xff\\xe2\\x82");
    shown("\xc2\x9b", 2, 256, "\\x9b");
    shown("0123456789abcdef", 16, 16, "0123456789ab...");
    shown("0123456789ab", 12, 16, "0123456789ab");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_as_a_shell_splits_them),
                                       cmocka_unit_test(what_a_shell_would_act_on),
                                       cmocka_unit_test(any_bytes_as_json),
                                       cmocka_unit_test(json_on_one_line),
                                       cmocka_unit_test(bytes_without_memory),
                                       cmocka_unit_test(bytes_in_messages)};
    return cmocka_run_group_tests_name("rewards/words", tests, NULL, NULL);
}
