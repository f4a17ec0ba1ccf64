// test_utf8.c: well-formedness and repair of UTF-8.
#include "support/scratch.h"

#include "text/unicode.h"

static void valid_and_invalid(void **state) {
    (void)state;
    static const struct {
        const char *s;
        size_t n, good;
    } cases[] = {
        {"", 0, 0},
        {"plain ascii, longer than eight bytes", 36, 36},
        {"caf\xC3\xA9", 5, 5},
        {"\xE2\x82\xAC\xF0\x9F\x98\x80", 7, 7},
        {"\xF4\x8F\xBF\xBF", 4, 4},       // U+10FFFF
        {"a\x80", 2, 1},                  // lone continuation
        {"ab\xC3", 3, 2},                 // cut short
        {"\xC0\xAF", 2, 0},               // overlong
        {"\xE0\x80\x80", 3, 0},           // overlong
        {"\xED\xA0\x80", 3, 0},           // surrogate
        {"\xF4\x90\x80\x80", 4, 0},       // above U+10FFFF
        {"12345678abcdefg\xFFz", 17, 15}, // after a fast block
        {"\xF0\x80\x80\x80", 4, 0},       // overlong
        {"\0ok", 3, 3},                   // NUL is a character
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        assert_int_equal(rlhf__utf8_valid(cases[i].s, cases[i].n), cases[i].good);
}

static void every_code_point(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        uint32_t back = 0;
        size_t n = rlhf__utf8_put(cp, s);
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            assert_int_equal(rlhf__utf8_next(s, n, NULL, NULL), 0);
            continue;
        }
        assert_int_equal(rlhf__utf8_next(s, n, &back, NULL), n);
        assert_int_equal(back, cp);
    }
}

static void check_repair(const char *s, size_t n, const char *want) {
    char out[64];
    size_t len = rlhf__utf8_repair(s, n, out, sizeof out);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(out, want, len);
    assert_int_equal(rlhf__utf8_repair(s, n, NULL, 0), len);
}

// The examples of the Unicode standard, section 3.9, "U+FFFD substitution of maximal subparts".
static void repair(void **state) {
    (void)state;
#define R "\xEF\xBF\xBD"
    check_repair("ok", 2, "ok");
    check_repair("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 9, R R R R R R R R "A");
    check_repair("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 9, R R R R R R R R "A");
    check_repair("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 9, R R R R R "A" R R "B");
    check_repair("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 9, R R R R "A");
    check_repair("\xF0\x9F\x98", 3, R);
}

static void repair_stops_at_whole_characters(void **state) {
    (void)state;
    char out[8] = "zzzzzzz";
    assert_int_equal(rlhf__utf8_repair("ab\xE2\x82\xAC"
                                       "c",
                                       6, out, 4),
                     6);
    assert_memory_equal(out, "abzz", 4); // the half character and its successor are both missing
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_and_invalid),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(repair),
        cmocka_unit_test(repair_stops_at_whole_characters),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
