// test_cost.c: checks the forecast's formulas against numbers that cost_vectors.py computed without
// the program. Also checks the conclusions that the program draws from them.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "scale/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rlhf__scale_figures read_file(const char *name) {
    struct rlhf__scale_figures f = {.has_run = 0};
    struct rlhf__error err = {0, ""};
    if (rlhf__scale_figures_read(name, &f, &err) != RLHF_OK) fail_msg("%s", err.text);
    return f;
}

static void close_to(double got, double want, const char *what, const char *line) {
    if (fabs(got - want) > 1e-12 * fmax(fabs(want), 1e-3))
        fail_msg("%s is %.17g, expected %.17g: %s", what, got, want, line);
}

static void vector(const char *line) {
    static const char *const name[] = {
        "draw",   "reward", "passes", "compute", "tree",      "reduce", "step", "spread",
        "gather", "other",  "hidden", "total",   "imbalance", "memory", "sent", "efficiency"};
    enum { N = sizeof name / sizeof *name };
    char file[64];
    struct rlhf__scale_layout l;
    double want[N];
    int at = 0, used;
    assert_int_equal(sscanf(line, "%63s %lf %lf %lf%n", file, &l.ranks, &l.per_host, &l.rows, &at),
                     4);
    for (int i = 0; i < N; i++, at += used)
        assert_int_equal(sscanf(line + at, "%lf%n", &want[i], &used), 1);
    const struct rlhf__scale_figures f = read_file(file);
    assert_int_equal(rlhf__scale_refuses(&f, &l), RLHF__SCALE_FITS);
    const struct rlhf__scale_cost c = rlhf__scale_cost(&f, &l);
    const double got[N] = {c.draw,      c.reward, c.passes, c.compute,
                           c.tree,      c.reduce, c.step,   c.spread,
                           c.gather,    c.other,  c.hidden, c.total,
                           c.imbalance, c.memory, c.sent,   rlhf__scale_efficiency(&f, &l, l.rows)};
    for (int i = 0; i < N; i++)
        close_to(got[i], want[i], name[i], line);
    close_to(c.rows_per_s, l.rows / c.total, "rows_per_s", line);
}

static void vectors(void **state) {
    char line[2000];
    int n = 0;
    FILE *in = fopen("cost_vectors.txt", "r");
    (void)state;
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (line[0] == '#') continue;
        vector(line);
        n++;
    }
    fclose(in);
    assert_int_equal(n, 13);
}

static void curves(void **state) {
    const struct rlhf__scale_curve two = {2, 0, {{2, 10}, {4, 14}}}, one = {1, 0, {{4, 8}}};
    const struct rlhf__scale_curve none = {0, 0, {{0, 0}}};
    (void)state;
    assert_true(rlhf__scale_curve_at(&two, 1) == 10); // half of a row does not exist
    assert_true(rlhf__scale_curve_at(&two, 2) == 10);
    assert_true(rlhf__scale_curve_at(&two, 3) == 12);
    assert_true(rlhf__scale_curve_at(&two, 10) == 26);
    const struct rlhf__scale_curve four = {4, 0, {{1, 10}, {2, 20}, {4, 21}, {8, 34}}};
    assert_true(rlhf__scale_curve_at(&four, 10) == 34 + 2 * (34 - 20) / 6.0);
    assert_true(rlhf__scale_curve_at(&one, 8) == 16);
    assert_true(rlhf__scale_curve_at(&none, 8) == 0);
}

static void refusals(void **state) {
    struct rlhf__scale_figures f = read_file("ppo.json");
    (void)state;
    const struct rlhf__scale_layout many = {128, 1, 64}, odd = {3, 1, 64}, two = {2, 1, 64};
    assert_int_equal(rlhf__scale_refuses(&f, &many), RLHF__SCALE_FEW_ROWS);
    assert_int_equal(rlhf__scale_refuses(&f, &odd), RLHF__SCALE_FITS);
    f.plan.shards = 8;
    assert_int_equal(rlhf__scale_refuses(&f, &odd), RLHF__SCALE_SHARDS);
    assert_int_equal(rlhf__scale_refuses(&f, &two), RLHF__SCALE_FITS);
}

// The program doubles the ranks until a doubling gains less than the user requires. Its answer is
// the number of ranks before that doubling.
static void where_ranks_stop_helping(void **state) {
    struct rlhf__scale_figures f = read_file("ppo.json");
    int few;
    (void)state;
    const double stops = rlhf__scale_stops(&f, 1, 64, 1.3, 65536, &few);
    assert_true(stops == 1); // 1 Gbit/s is too slow for so few tokens
    assert_int_equal(few, 0);
    f.line.bytes = 1e12;
    f.line.latency = 0;
    const double fast = rlhf__scale_stops(&f, 1, 64, 1.3, 65536, &few);
    assert_true(fast > stops);
    for (uint32_t r = 1; r <= fast; r *= 2) {
        const struct rlhf__scale_layout l = {r, 1, 64}, twice = {2 * r, 1, 64};
        if (rlhf__scale_refuses(&f, &twice)) continue;
        const double gain =
            rlhf__scale_cost(&f, &twice).rows_per_s / rlhf__scale_cost(&f, &l).rows_per_s;
        assert_true(r < fast ? gain >= 1.3 : gain < 1.3);
    }
    assert_true(rlhf__scale_stops(&f, 1, 2, 1.01, 65536, &few) == 2); // two rows, two ranks
    assert_int_equal(few, 1);
    // The ranks of one machine share its cores. So doubling begins with the ranks of one machine.
    assert_true(rlhf__scale_stops(&f, 8, 64, 1e9, 65536, &few) == 8);
    assert_int_equal(few, 0);
    assert_true(rlhf__scale_stops(&f, 8, 4, 1.3, 65536, &few) == 1);
    assert_int_equal(few, 1);
}

static void rows_for_an_efficiency(void **state) {
    const struct rlhf__scale_figures f = read_file("ppo.json");
    (void)state;
    for (uint32_t ranks = 2; ranks <= 16; ranks *= 2) {
        const double rows = rlhf__scale_rows_for(&f, ranks, 1, 0.9);
        const struct rlhf__scale_layout l = {ranks, 1, rows}, less = {ranks, 1, rows - 4};
        assert_true(rows > 0 && fmod(rows, 4) == 0); // four minibatches
        assert_true(rlhf__scale_efficiency(&f, &l, rows) >= 0.9);
        assert_true(rlhf__scale_refuses(&f, &less) ||
                    rlhf__scale_efficiency(&f, &less, rows - 4) < 0.9);
    }
    // Every rank gets all rows, so the number of rows grows with the number of ranks.
    assert_true(rlhf__scale_rows_for(&f, 64, 1, 0.9) == 0);
    struct rlhf__scale_figures slow = f;
    slow.line.bytes = 1; // no batch makes up for that
    assert_true(rlhf__scale_rows_for(&slow, 2, 1, 0.9) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(curves),

        cmocka_unit_test(refusals),
        cmocka_unit_test(where_ranks_stop_helping),
        cmocka_unit_test(rows_for_an_efficiency),
    };
    return cmocka_run_group_tests_name("scale_cost", tests, NULL, NULL);
}
