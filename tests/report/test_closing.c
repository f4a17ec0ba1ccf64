// test_closing.c: checks the small curve of the closing summary.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "base/buf.h"
#include "report/closing.h"

#include <string.h>

static void draws(const double *v, int64_t n, int columns, const char *want) {
    struct rlhf__series_set s = {0};
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(rlhf__series_set_put(&s, "x", i + 1, v[i], NULL), RLHF_OK);
    rlhf__put_sparkline(&out, rlhf__series_of(&s, "x"), columns);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
    rlhf__series_set_finish(&s);
}

static void curves(void **state) {
    (void)state;
    draws((const double[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 24, "▁▂▃▄▅▆▇██");
    draws((const double[]){3, -1, 1}, 3, 24, "█▁▅");
    draws((const double[]){0, 2, 4, 6, 8, 10}, 6, 3, "▁▅█"); // means of two: 1, 5, 9
    draws((const double[]){0, 0, 9, 9, 9}, 5, 2, "▁█");      // means of two and of three values
    draws((const double[]){7, 7, 7}, 3, 24, "▅▅▅");
    draws((const double[]){7}, 1, 24, "");
    draws(NULL, 0, 24, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves),
    };
    return cmocka_run_group_tests_name("report_closing", tests, NULL, NULL);
}
