// test_closing.c: checks the small curve of the closing summary, and which findings of the rules
// are reported while a run trains.
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
    rlhf__buf_free(&out);
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

static int reports(struct rlhf__findings *f, int32_t level, const char *id, int64_t lasted) {
    const struct rlhf__run_note n = {.level = level, .id = id, .held = {3, lasted}};
    return rlhf__findings_note(f, &n);
}

// If a problem lasts, it is reported only once.
static void trends(void **state) {
    (void)state;
    struct rlhf__findings f = {0};
    assert_false(reports(&f, RLHF__NOTE_WARN, "critic", RLHF__TREND_LASTED - 1));
    assert_false(reports(&f, RLHF__NOTE_INFO, "critic", 99));
    assert_true(reports(&f, RLHF__NOTE_WARN, "critic", RLHF__TREND_LASTED));
    assert_false(reports(&f, RLHF__NOTE_WARN, "critic", 99));
    assert_true(reports(&f, RLHF__NOTE_BAD, "hacked", 99));           // another one
    assert_false(reports(&f, RLHF__NOTE_WARN, "kl_over_target", 99)); // only at the end
    assert_false(reports(&f, RLHF__NOTE_BAD, "no such finding", 99));
    json_t *v = rlhf__findings_save(&f);
    assert_non_null(v);
    f = (struct rlhf__findings){0};
    assert_int_equal(rlhf__findings_load(&f, v, NULL), RLHF_OK);
    json_decref(v);
    assert_false(reports(&f, RLHF__NOTE_WARN, "critic", 99));
    // After a collapse, only its cause is still reported. Other trends are its consequences.
    f.said |= RLHF__COLLAPSED;
    assert_false(reports(&f, RLHF__NOTE_WARN, "flat_groups", 99));
    assert_true(reports(&f, RLHF__NOTE_BAD, "right_answers_fell", 99)); // its cause
    assert_false(reports(&f, RLHF__NOTE_BAD, "collapsed", 99));
    f.said = RLHF__FAR;
    assert_false(reports(&f, RLHF__NOTE_WARN, "flat_groups", 99));
    assert_true(reports(&f, RLHF__NOTE_BAD, "collapsed", 99)); // only the distance was reported
}

// Each trend has its own bit, which no finding of a single phase uses.
static void bits(void **state) {
    (void)state;
    static const char *const ids[] = {"fell_apart",       "hacked",        "flat_groups",
                                      "negative_weights", "drowned",       "right_answers_fell",
                                      "lost_reward",      "measure_worse", "lengths",
                                      "clipped",          "critic"};
    int64_t seen = RLHF__COLLAPSED | RLHF__JUMPED | RLHF__EXPLODED | RLHF__ALL_CUT_OFF |
                   RLHF__DIVERGED | RLHF__FELL | RLHF__FAR;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct rlhf__findings f = {0};
        if (!reports(&f, RLHF__NOTE_WARN, ids[i], 99)) fail_msg("%s is not reported", ids[i]);
        if (f.said == 0 || (f.said & seen)) fail_msg("%s has the bit of another", ids[i]);
        seen |= f.said;
    }
    struct rlhf__findings f = {0};
    assert_true(reports(&f, RLHF__NOTE_WARN, "cut_off", 99));
    assert_int_equal(f.said, RLHF__ALL_CUT_OFF); // the same finding, by another rule
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves),
        cmocka_unit_test(trends),
        cmocka_unit_test(bits),
    };
    return cmocka_run_group_tests_name("report_closing", tests, NULL, NULL);
}
