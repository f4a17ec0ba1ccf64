// test_spread.c: distributions, their lines in spread.jsonl, and their TensorBoard histograms.
#include "support/scratch.h"

#include "report/distribution.h"
#include "report/spread_writer.h"

#include <math.h>

static void is(double *x, size_t n, const char *want) {
    struct rlhf__distribution d;
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__distribution_of(x, n, &d);
    rlhf__distribution_json(&d, &b);
    assert_string_equal(rlhf__buf_text(&b), want);
    rlhf__buf_finish(&b);
}

static void few_values_are_counted(void **state) {
    (void)state;
    double x[] = {1, 0, 1, 1, 0.25, NAN, 1, INFINITY, -INFINITY};
    is(x, 9, "{\"m\": 0.70833, \"n\": [[0, 1], [0.25, 1], [1, 4]]}");
    double none[] = {NAN};
    is(none, 1, "null");
    is(NULL, 0, "null");
    double sixteen[32];
    for (int i = 0; i < 32; i++)
        sixteen[i] = i % 16;
    struct rlhf__distribution d;
    rlhf__distribution_of(sixteen, 32, &d);
    assert_int_equal(d.counted, 16);
    assert_int_equal(d.count[15], 2);
}

// Quantile i is the value at the position nearest to i (n - 1) / 32.
static void many_values_have_quantiles(void **state) {
    (void)state;
    double x[17];
    struct rlhf__distribution d;
    for (int i = 0; i < 17; i++)
        x[i] = 16 - i;
    rlhf__distribution_of(x, 17, &d);
    assert_int_equal(d.counted, 0);
    assert_true(d.mean == 8);
    assert_true(fabs(d.deviation - sqrt(24)) < 1e-12); // deviation of 0 to 16: (17 17 - 1) / 12
    for (int i = 0; i <= 32; i++)
        assert_true(d.value[i] == floor(i / 2.0 + 0.5));
    double y[101];
    for (int i = 0; i < 101; i++)
        y[i] = i / 100.0;
    rlhf__distribution_of(y, 101, &d);
    assert_true(d.value[0] == 0 && d.value[32] == 1 && d.value[16] == 0.5);
    assert_true(d.value[1] == 0.03 && d.value[31] == 0.97); // 3.125 and 96.875
}

// Makes two rows with a prompt of 1 token and responses of 2 and 3 tokens.
static struct rlhf__rows make_rows(int turns) {
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__rows_init(&e, 2, 7, NULL), RLHF_OK);
    if (turns) assert_int_equal(rlhf__rows_add_turns(&e, NULL), RLHF_OK);
    e.offset[1] = 3;
    e.offset[2] = 7;
    for (int t = 0; t < 7; t++) {
        e.token[RLHF__LOGP_OLD][t] = (float)-t;
        e.token[RLHF__LOGP_REF][t] = -2 * (float)t;
        e.token[RLHF__ADVANTAGE][t] = t < 3 ? 1 : -1;
        if (turns) e.turn[t] = t == 0 || t == 3 || t == 5 ? -1 : 0;
    }
    for (int i = 0; i < 2; i++) {
        e.prompt_len[i] = 1;
        e.reward[i] = (float)i;
    }
    return e;
}

static void line_is(struct scratch *s, int turns, uint32_t flags, const char *want) {
    struct rlhf__error err = {0};
    struct rlhf__rows e = make_rows(turns);
    struct rlhf__folder *dir = scratch_folder(s->dir);
    struct rlhf__spread *out = NULL;
    struct rlhf__buf b = RLHF__BUF_INIT;
    check_ok(rlhf__spread_open(dir, -1, NULL, &out, &err), &err);
    check_ok(rlhf__spread_write(out, 5, &e, flags, &err), &err);
    rlhf__spread_close(out);
    check_ok(rlhf__file_read(scratch_path(s, "spread.jsonl"), 1 << 20, &b, &err), &err);
    assert_string_equal(rlhf__buf_text(&b), want);
    rlhf__buf_finish(&b);
    rlhf__folder_close(dir);
    rlhf__rows_finish(&e);
}

static void a_line_has_what_is_known(void **state) {
    const uint32_t all = RLHF__SPREAD_RESPONSES | RLHF__SPREAD_REWARD | RLHF__SPREAD_REFERENCE |
                         RLHF__SPREAD_ADVANTAGE;
    line_is(*state, 0, all,
            "{\"phase\": 5, \"reward\": {\"m\": 0.5, \"n\": [[0, 1], [1, 1]]}, "
            "\"length\": {\"m\": 2.5, \"n\": [[2, 1], [3, 1]]}, "
            "\"kl\": {\"m\": 9, \"n\": [[3, 1], [15, 1]]}, "
            "\"advantage\": {\"m\": -0.2, \"n\": [[-1, 3], [1, 2]]}}\n");
    line_is(*state, 0, 0,
            "{\"phase\": 5, \"reward\": null, \"length\": {\"m\": 3.5, \"n\": [[3, 1], [4, 1]]}, "
            "\"kl\": null, \"advantage\": null}\n");
    // Tokens that the policy did not write do not count.
    line_is(*state, 1, all,
            "{\"phase\": 5, \"reward\": {\"m\": 0.5, \"n\": [[0, 1], [1, 1]]}, "
            "\"length\": {\"m\": 2, \"n\": [[2, 2]]}, "
            "\"kl\": {\"m\": 6.5, \"n\": [[3, 1], [10, 1]]}, "
            "\"advantage\": {\"m\": 0, \"n\": [[-1, 2], [1, 2]]}}\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(few_values_are_counted),
        T(many_values_have_quantiles),
        T(a_line_has_what_is_known),
    };
    return cmocka_run_group_tests_name("report_spread", tests, NULL, NULL);
}
