// test_http_parts.c: what http.so is made of, without a service: answers of any form, when a
// service is asked again, texts in requests.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rlhf/reward.h>
#include <rlhf/test.h>

#include "http/pause.h"
#include "http/reply.h"
#include "http/text.h"

#include <math.h>

static struct rlhf_test_host host;

// ---- answers ----

static float seq[4];
static uint8_t verdict[4], failed[4];
static struct rlhf__tally tally;
static char why[RLHF__WHY];

static rlhf_status answer(int32_t form, uint32_t n, const char *text) {
    const struct rlhf__reply reply = {
        .form = form, .n = n, .seq = seq, .verdict = verdict, .failed = failed, .tally = &tally};
    return rlhf__reply_read(&reply, &host.table, text, strlen(text), why);
}

static void good_answers(void **state) {
    (void)state;
    assert_int_equal(answer(RLHF__FORM_ROWS, 4,
                            " [1, -2.5e1, null, {\"reward\": 123456789012345678901, \"why\": []}]"),
                     RLHF_OK);
    assert_true(seq[0] == 1 && seq[1] == -25 && isnan(seq[2]) &&
                seq[3] == 123456789012345678901.0f);
    assert_string_equal(why, "");
    assert_int_equal(
        answer(RLHF__FORM_ROWS, 1, "[{\"reward\": 1e39, \"verdict\": null, \"metrics\": null}]"),
        RLHF_OK);
    assert_true(isinf(seq[0]) && !failed[0] && verdict[0] == RLHF_VERDICT_NONE);
    assert_int_equal(answer(RLHF__FORM_OPENRLHF, 2, "{\"rewards\": [null, 1]}"), RLHF_OK);
    assert_true(isnan(seq[0]) && seq[1] == 1 && !failed[0]);
}

static void bad_answers(void **state) {
    (void)state;
    static const struct {
        int32_t form;
        const char *text, *says;
    } all[] = {
        {0, "", "the answer is empty"},
        {0, "[1", "the answer is no JSON ("},
        {0, "[1, 2] x", "the answer is no JSON ("},
        {0, "[1, Infinity]", "the answer is no JSON ("},
        {0, "[1, 1e999]", "the answer is no JSON ("},
        {0, "[{\"reward\": 1, \"reward\": 2}, 1]", "duplicate object key"},
        {0, "\"\xff\"", "the answer is no JSON ("},
        {0, "{}", "the answer is an object; a list of 2 rewards is wanted"},
        {0, "null", "the answer is null; a list of 2 rewards is wanted"},
        {0, "[]", "the answer has 0 rewards for 2 rows"},
        {1, "[1, 2]", "\"rewards\" of the answer is missing; a list of 2 numbers is wanted"},
        {1, "{\"rewards\": 1}", "\"rewards\" of the answer is a number; a list of 2"},
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
        {"[1, true]", "entry 1 of the answer is a truth; a number, null or an object is wanted"},
        {"[1, {}]", "\"reward\" of entry 1 of the answer is missing; a number or null is wanted"},
        {"[1, {\"reward\": [1]}]", "\"reward\" of entry 1 of the answer is a list;"},
        {"[1, {\"reward\": 1, \"verdict\": \"maybe\"}]",
         "\"verdict\" of entry 1 of the answer is neither \"right\" nor \"wrong\" nor null"},
        {"[1, {\"reward\": 1, \"verdict\": \"right\", \"metrics\": 3}]",
         "\"metrics\" of entry 1 of the answer is a number; an object is wanted"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(answer(RLHF__FORM_ROWS, 2, all[i][0]), RLHF_OK);
        assert_true(!failed[0] && failed[1] && verdict[1] == RLHF_VERDICT_NONE);
        if (!strstr(why, all[i][1])) fail_msg("\"%s\" does not say \"%s\"", why, all[i][1]);
    }
    assert_int_equal(answer(RLHF__FORM_OPENRLHF, 2, "{\"rewards\": [1, \"2\"]}"), RLHF_OK);
    assert_true(!failed[0] && failed[1]);
    assert_string_equal(why, "entry 1 of \"rewards\" is a string; a number is wanted");
}

static void metrics(void **state) {
    (void)state;
    double value;
    assert_int_equal(answer(RLHF__FORM_ROWS, 3,
                            "[{\"reward\": 1, \"metrics\": {\"a/b\": 1, \"c\": 2}},"
                            " {\"reward\": 1, \"metrics\": {\"a/b\": 4}}, 1]"),
                     RLHF_OK);
    assert_int_equal(tally.left_out, 0);
    rlhf__tally_report(&tally, &host.table);
    assert_true(rlhf_test_metric(&host, "a/b", &value) && value == 2.5);
    assert_true(rlhf_test_metric(&host, "c", &value) && value == 2);
    static const char *const bad[] = {"\"\": 1", "\"a b\": 1", "\"\\u001b[2J\": 1", "\"a\": \"x\"",
                                      "\"0123456789012345678901234567890123456789012345678901234567"
                                      "890123456\": 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        tally.left_out = 0;
        snprintf(text, sizeof text, "[{\"reward\": 1, \"metrics\": {%s}}]", bad[i]);
        assert_int_equal(answer(RLHF__FORM_ROWS, 1, text), RLHF_OK);
        assert_int_equal(tally.left_out, 1);
    }
    assert_int_equal(tally.n, 2);
}

// ---- when a service is asked again ----

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
    // Requests that were in flight together fail together: they are one failure.
    const double gate = p.gate;
    rlhf__pause_failed(&p, &patient, &jitter, p.last_failed - 50, p.last_failed + 0.1, 0);
    assert_true(p.gate == gate && p.failures == 8);
    // What the service asks for counts, but no longer than anybody waits.
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
    assert_true(rlhf__pause_answered(&p, 100.5) == 0); // nobody has to know
    rlhf__pause_failed(&p, &patient, &jitter, 100, 100, 0);
    for (int tenth = 0; tenth < 3000; tenth++) // five minutes
        lines += rlhf__pause_line_due(&p, 100 + tenth / 10.0);
    assert_int_equal(lines, 5);
    assert_true(rlhf__pause_left(&p, &patient, 400) == 300);
    assert_true(rlhf__pause_answered(&p, 400) == 300);
    assert_true(rlhf__pause_answered(&p, 401) == 0);
}

// ---- texts ----

static void texts(void **state) {
    (void)state;
    static const char bytes[] =
        "a\0\xc0\x80\xe0\x9f\xbf\xed\xa0\x80\xf4\x90\x80\x80\xf0\x9f\x98\x80"
        "\xe2\x82";
    struct rlhf__text text = {.host = &host.table};
    rlhf__text_json(&text, (rlhf_str){bytes, sizeof bytes - 1});
    rlhf__text_put(&text, "", 1);
#define BAD "\xef\xbf\xbd"
    assert_string_equal(text.at, "\"a\\u0000" BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD
                                 "\xf0\x9f\x98\x80" BAD BAD "\"");
    rlhf__text_clear(&text);
    rlhf__text_json(&text, (rlhf_str){NULL, 0});
    rlhf__text_put(&text, "", 1);
    assert_string_equal(text.at, "\"\"");
    rlhf__text_finish(&text);
    char shown[260];
    assert_string_equal(rlhf__excerpt("a\n\xff", 3, shown), "\"a\\x0a\\xff\"");
    char longer[300];
    memset(longer, 1, sizeof longer);
    rlhf__excerpt(longer, sizeof longer, shown);
    assert_int_equal(strlen(shown), 2 + 60 * 4 + 3);
}

static int setup(void **state) {
    (void)state;
    rlhf_test_init(&host, 1);
    memset(&tally, 0, sizeof tally);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rlhf__tally_finish(&tally, &host.table);
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
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
    };
    return cmocka_run_group_tests_name("http_parts", tests, NULL, NULL);
}
