// test_http_parts.c: parts of http.so, without a service: reading answers of any form, and the
// decision when to retry.
#include "support/check.h"
#include <rlhf/reward.h>
#include <rlhf/test.h>

#include "http/pause.h"
#include "http/reply.h"

#include <math.h>

static struct rlhf_test_host host;

// ---- answers ----

static float seq[4];
static uint8_t verdict[4], failed[4];
static struct rlhf__tally *tally;
static char why[RLHF__WHY];

static rlhf_status answer(int32_t form, uint32_t n, const char *text) {
    const struct rlhf__reply reply = {
        .form = form, .n = n, .seq = seq, .verdict = verdict, .failed = failed, .tally = &tally};
    return rlhf__reply_read(&reply, &host.table, text, strlen(text), why);
}

static void good_answers(void **state) {
    (void)state;
    assert_int_equal(
        answer(RLHF__FORM_ROWS, 4, " [1, -2.5e1, null, {\"reward\": 123456789012345678901}]"),
        RLHF_OK);
    assert_true(seq[0] == 1 && seq[1] == -25 && isnan(seq[2]) &&
                seq[3] == 123456789012345678901.0f);
    assert_string_equal(why, "");
    assert_int_equal(answer(RLHF__FORM_ROWS, 1,
                            "[{\"reward\": 1e39, \"verdict\": null, \"metrics\": {\"a\": null}}]"),
                     RLHF_OK);
    assert_true(isinf(seq[0]) && !failed[0] && verdict[0] == RLHF_VERDICT_NONE);
    assert_int_equal(answer(RLHF__FORM_OPENRLHF, 2, "{\"rewards\": [null, 1]}"), RLHF_OK);
    assert_true(isnan(seq[0]) && seq[1] == 1 && !failed[0]);
    for (int form = RLHF__FORM_ROWS; form <= RLHF__FORM_OPENRLHF; form++) { // booleans
        const int rows = form == RLHF__FORM_ROWS;
        const char *text =
            rows ? "[true, false, {\"reward\": true}]" : "{\"rewards\": [true, false, true]}";
        assert_int_equal(answer(form, 3, text), RLHF_OK);
        assert_true(seq[0] == 1 && seq[1] == 0 && seq[2] == 1 && !failed[0] && !failed[1]);
    }
}

static void bad_answers(void **state) {
    (void)state;
    static const struct {
        int32_t form;
        const char *text, *says;
    } all[] = {
        {0, "", "the answer is empty"},
        {0, "[1", "the answer is not JSON ("},
        {0, "[1, 2] x", "the answer is not JSON ("},
        {0, "[1, Infinity]", "the answer is not JSON ("},
        {0, "[1, 1e999]", "the answer is not JSON ("},
        {0, "[{\"reward\": 1, \"reward\": 2}, 1]", "duplicate object key"},
        {0, "\"\xff\"", "the answer is not JSON ("},
        {0, "{}", "the answer is an object; expected a list of 2 rewards"},
        {0, "null", "the answer is null; expected a list of 2 rewards"},
        {0, "[]", "the answer has 0 rewards for 2 rows"},
        {1, "[1, 2]", "\"rewards\" of the answer is missing; expected a list of 2 numbers"},
        {1, "{\"rewards\": 1}", "\"rewards\" of the answer is a number; expected a list of 2"},
        {1, "{\"rewards\": [1]}", "the answer has 1 rewards for 2 rows"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(answer(all[i].form, 2, all[i].text), RLHF_E_INVALID);
        if (!strstr(why, all[i].says)) fail_msg("\"%s\" does not say \"%s\"", why, all[i].says);
    }
}

static void bad_entries(void **state) {
    (void)state;
    static const char *const all[][2] = {
        {"[1, \"1\"]", "entry 1 of the answer is a string; expected a number, null or an object"},
        {"[{\"reward\": 1, \"index\": 0}, {\"reward\": 1, \"index\": 0}]",
         "entry 1 of the answer has the index 0"},
        {"[1, {}]", "entry 1 of the answer: it has no \"reward\""},
        {"[1, {\"reward\": [1]}]", "entry 1 of the answer: its \"reward\" is a list, not a number"},
        {"[1, {\"reward\": 1, \"verdict\": \"maybe\"}]", "its \"verdict\" is not one of"},
        {"[1, {\"reward\": 1, \"verdict\": \"right\", \"metrics\": 3}]", "its \"metrics\" is"},
        {"[1, {\"reward\": 1, \"metrics\": {\"\": 1}}]", "a metric's name is empty"},
        {"[1, {\"reward\": 1, \"\\u001b[2J\": 1}]",
         "its member \"\\x1b[2J\" is not one of reward"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(answer(RLHF__FORM_ROWS, 2, all[i][0]), RLHF_OK);
        assert_true(!failed[0] && failed[1] && verdict[1] == RLHF_VERDICT_NONE);
        if (!strstr(why, all[i][1])) fail_msg("\"%s\" does not say \"%s\"", why, all[i][1]);
    }
    assert_int_equal(answer(RLHF__FORM_OPENRLHF, 2, "{\"rewards\": [1, \"2\"]}"), RLHF_OK);
    assert_true(!failed[0] && failed[1]);
    assert_string_equal(why, "entry 1 of \"rewards\" is a string; expected a number");
    assert_null(tally);
}

static void metrics(void **state) {
    (void)state;
    double value;
    assert_int_equal(answer(RLHF__FORM_ROWS, 3,
                            "[{\"reward\": 1, \"metrics\": {\"a/b\": 1, \"c\": 2}},"
                            " {\"reward\": 1, \"metrics\": {\"a/b\": 4, \"c\": null}}, 1]"),
                     RLHF_OK);
    assert_int_equal(answer(RLHF__FORM_OPENRLHF, 2,
                            "{\"rewards\": [1, 2], \"extra_logs\": {\"d\": [1, 2], \"e\": 7, "
                            "\"\": 1, \"f\": [1], \"g\": \"x\", \"h\": [null, 3]}}"),
                     RLHF_OK);
    struct rlhf__tally both = {0};
    rlhf__tally_merge(&both, tally);
    rlhf__tally_merge(&both, tally);
    rlhf__tally_report(&both, &host.table);
    static const struct {
        const char *name;
        double mean;
    } want[] = {{"a/b", 2.5}, {"c", 2}, {"d", 1.5}, {"e", 7}, {"h", 3}};
    assert_int_equal(both.n, 5);
    for (int i = 0; i < 5; i++)
        assert_true(rlhf_test_metric(&host, want[i].name, &value) && value == want[i].mean);
}

// ---- when to retry ----

static const struct rlhf__http_options patient = {
    .patience_s = 600, .backoff_s = 1, .backoff_max_s = 60};

static void backoff(void **state) {
    (void)state;
    struct rlhf__pause p = {0};
    rlhf_rng jitter = {1, 2, 0};
    double now = 100, full = 1;
    for (int i = 0; i < 8; i++) {
        rlhf__pause_failed(&p, &patient, &jitter, now, now, 0);
        assert_true(p.gate >= now + full / 2 && p.gate <= now + full);
        now = p.gate;
        full = fmin(2 * full, 60);
    }
    assert_true(p.since == 100);
    // If several requests are in flight at the same time and fail together, this counts as one
    // failure.
    const double gate = p.gate;
    rlhf__pause_failed(&p, &patient, &jitter, p.last_failed - 50, p.last_failed + 0.1, 0);
    assert_true(p.gate == gate && p.failures == 8);
    // If the service asks for a delay, the delay is kept, but not beyond the patience.
    rlhf__pause_failed(&p, &patient, &jitter, now, now, 90);
    assert_true(p.gate == now + 90);
    rlhf__pause_failed(&p, &patient, &jitter, now, now, 1e9);
    assert_true(p.gate == 700);
    assert_false(rlhf__pause_over(&p, &patient, 699.9));
    assert_true(rlhf__pause_over(&p, &patient, 700));
    rlhf__pause_answered(&p, 650);
    assert_false(rlhf__pause_over(&p, &patient, 1e6));
}

static void a_line_a_minute(void **state) {
    (void)state;
    struct rlhf__pause p = {0};
    rlhf_rng jitter = {1, 2, 0};
    int lines = 0;
    assert_false(rlhf__pause_line_due(&p, 50));
    rlhf__pause_failed(&p, &patient, &jitter, 100, 100, 0);
    assert_true(rlhf__pause_answered(&p, 100.5) == 0); // this is not reported
    rlhf__pause_failed(&p, &patient, &jitter, 100, 100, 0);
    for (int tenth = 0; tenth < 3000; tenth++) // five minutes
        lines += rlhf__pause_line_due(&p, 100 + tenth / 10.0);
    assert_int_equal(lines, 5);
    assert_true(rlhf__pause_left(&p, &patient, 400) == 300);
    assert_true(rlhf__pause_answered(&p, 400) == 300);
    assert_true(rlhf__pause_answered(&p, 401) == 0);
}

static int setup(void **state) {
    (void)state;
    rlhf_test_init(&host, 1);
    tally = NULL;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    if (tally) host.table.free(&host.table, tally);
    return host.live == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(backoff, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_a_minute, setup, teardown),
    };
    return cmocka_run_group_tests_name("http_parts", tests, NULL, NULL);
}
