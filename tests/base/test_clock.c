// Times of day as text.
#include "support/check.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

// Writes the C library's text for the same time.
static void expected(const struct timespec *t, char out[RLHF__UTC_BYTES]) {
    char day[20];
    struct tm tm;
    assert_non_null(gmtime_r(&t->tv_sec, &tm));
    assert_int_equal(strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm), 19);
    snprintf(out, RLHF__UTC_BYTES, "%s.%03dZ", day, (int)(t->tv_nsec / 1000000));
}

static void check(int64_t s, long ns) {
    const struct timespec t = {(time_t)s, ns};
    char got[RLHF__UTC_BYTES], want[RLHF__UTC_BYTES];
    rlhf__utc_of(&t, got);
    expected(&t, want);
    assert_string_equal(got, want);
}

// Tests every day from 1970 to 2499, so all kinds of leap years, with various hours and fractions.
static void as_the_c_library(void **state) {
    (void)state;
    for (int64_t day = 0; day < 193600; day++) {
        check(day * 86400, 0);
        check(day * 86400 + day * 7919 % 86400, (long)(day * 104729 % 1000000000));
        check(day * 86400 + 86399, 999999999);
    }
}

static void now(void **state) {
    char text[RLHF__UTC_BYTES], want[RLHF__UTC_BYTES] = "";
    struct timespec t;
    (void)state;
    clock_gettime(CLOCK_REALTIME, &t);
    rlhf__utc(text);
    rlhf__utc_of(&t, want);
    assert_true(text[4] == '-' && text[23] == 'Z' && text[24] == '\0');
    assert_true(strcmp(want, text) <= 0); // the order of such texts is the order of their times
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_c_library),
        cmocka_unit_test(now),
    };
    return cmocka_run_group_tests_name("base_clock", tests, NULL, NULL);
}
