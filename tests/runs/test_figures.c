// test_figures.c: checks sizes, durations and dates.
#include "support/check.h"

#include "runs/figures.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define PUTS(want, call)                                                                           \
    do {                                                                                           \
        struct rlhf__buf out = RLHF__BUF_INIT;                                                     \
        call;                                                                                      \
        assert_string_equal(rlhf__buf_text(&out), want);                                           \
        rlhf__buf_finish(&out);                                                                    \
    } while (0)

static void sizes(void **state) {
    (void)state;
    PUTS("0", rlhf__put_bytes(&out, 0));
    PUTS("1023", rlhf__put_bytes(&out, 1023));
    PUTS("1.0 K", rlhf__put_bytes(&out, 1024));
    PUTS("9.9 K", rlhf__put_bytes(&out, 10188 - 20));
    PUTS("10 K", rlhf__put_bytes(&out, 10200));
    PUTS("1023 K", rlhf__put_bytes(&out, 1023 * 1024));
    PUTS("1.0 M", rlhf__put_bytes(&out, 1024 * 1024 - 1));
    PUTS("182 M", rlhf__put_bytes(&out, (int64_t)182 << 20));
    PUTS("3.0 G", rlhf__put_bytes(&out, (int64_t)3 << 30));
    PUTS("8192 P", rlhf__put_bytes(&out, INT64_MAX));
}

static void durations(void **state) {
    (void)state;
    PUTS("0:00", rlhf__put_duration(&out, 0.4));
    PUTS("0:09", rlhf__put_duration(&out, 9));
    PUTS("1:00", rlhf__put_duration(&out, 59.6));
    PUTS("59:59", rlhf__put_duration(&out, 3599));
    PUTS("2:05:11", rlhf__put_duration(&out, 2 * 3600 + 5 * 60 + 11));
    PUTS("3 d 4:05", rlhf__put_duration(&out, 3 * 86400 + 4 * 3600 + 5 * 60));
    PUTS("", rlhf__put_duration(&out, NAN));
    PUTS("", rlhf__put_duration(&out, -1));
    PUTS("", rlhf__put_duration(&out, INFINITY));
    PUTS("", rlhf__put_duration(&out, 1e300));
}

static void dates(void **state) {
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    const double now = 1763721000; // 21 Nov 2025, 10:30
    PUTS("today 10:29", rlhf__put_when(&out, now - 60, now));
    PUTS("today 00:00", rlhf__put_when(&out, now - 37800, now));
    PUTS("20 Nov", rlhf__put_when(&out, now - 37801, now));
    PUTS("1 Jan", rlhf__put_when(&out, 1735689600, now));
    PUTS("31 Dec 2024", rlhf__put_when(&out, 1735689599, now));
    PUTS("21 Nov 2026", rlhf__put_when(&out, now + 365 * 86400.0, now)); // a clock that was wrong
    PUTS("", rlhf__put_when(&out, NAN, now));
    PUTS("", rlhf__put_when(&out, 1e300, now));
    PUTS("", rlhf__put_when(&out, -5, now));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(durations),
        cmocka_unit_test(dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
