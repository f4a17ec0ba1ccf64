// test_calculator.c: the sums of tools.so's calculator.
#include "support/check.h"

#include "sum.h"

#include <string.h>

static void values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"12*34", 408},
        {" 12 * ( 3 + 4 ) ", 84},
        {"2+3*4-5", 9},
        {"-3*-4", 12},
        {"2-3-4", -5},
        {"84/4/3", 7},
        {"--5", 5},
        {"999*999", 998001},
        {"1000000000000000", 1000000000000000},
        {"((((((1))))))", 1},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        int64_t value = 1;
        const char *why = rlhf__sum((rlhf_str){cases[i].text, strlen(cases[i].text)}, &value);
        if (why || value != cases[i].value)
            fail_msg("%s: %lld, %s", cases[i].text, (long long)value, why ? why : "");
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "it is no sum of whole numbers"},
        {"a", "it is no sum of whole numbers"},
        {"1+", "it is no sum of whole numbers"},
        {"1 2", "it is no sum of whole numbers"},
        {"1.5", "it is no sum of whole numbers"},
        {"*3", "it is no sum of whole numbers"},
        {"(1", "a bracket is not closed"},
        {"1)", "it is no sum of whole numbers"},
        {"1/0", "it divides by zero"},
        {"7/2", "the quotient is no whole number"},
        {"99999999999999999999", "the number is too large"},
        {"1000000000000000*1000000000000000", "the number is too large"},
        {"((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))",
         "it has too many brackets"},
        {"1/(2-2)", "it divides by zero"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        int64_t value = 1;
        const char *why = rlhf__sum((rlhf_str){cases[i].text, strlen(cases[i].text)}, &value);
        assert_non_null(why);
        assert_string_equal(why, cases[i].why);
        assert_int_equal(value, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("calculator", tests, NULL, NULL);
}
