// test_row_service.c: "rlhf.row/0", values of a data row.
#include "plugin/row_service.h"

#include "support/check.h"

#include <math.h>
#include <string.h>

static struct rlhf__services services;
static struct rlhf__note failure;
static struct rlhf__row_service rows;
static const rlhf_row_service *svc;

static int setup(void **state) {
    (void)state;
    services = (struct rlhf__services){.phase = -1, .failure = &failure};
    rlhf__note_init(&failure);
    if (rlhf__row_service_init(&rows, &services, NULL) != RLHF_OK) return -1;
    svc = rlhf__services_find(&services, RLHF_SVC_ROW);
    return svc ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rlhf__note_finish(&failure);
    return 0;
}

static rlhf_status open_row(const char *json, rlhf_row **row) {
    return svc->open(svc->host, (rlhf_str){json, strlen(json)}, row);
}

static void said(const char *text) {
    char got[512];
    assert_int_equal(rlhf__note_since(&failure, 0, got, sizeof got), RLHF_E_INVALID);
    assert_string_equal(got, text);
}

static const char *const sample =
    "{\"answer\": \"7 \\u00e9\", \"a.b\": 2.5, \"big\": 18446744073709551616, \"ok\": true, "
    "\"none\": null, \"steps\": [{\"text\": \"one\"}, {\"x/y\": 1, \"m~n\": false}], \"\": -3}";

static void values_by_key_and_by_pointer(void **state) {
    (void)state;
    rlhf_row *row;
    rlhf_str s;
    double x;
    int32_t yes;
    uint64_t n;
    assert_int_equal(open_row(sample, &row), RLHF_OK);
    assert_int_equal(svc->string(svc->host, row, "answer", &s), RLHF_OK);
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.ptr, "7 \xc3\xa9", 4);
    assert_int_equal(svc->number(svc->host, row, "a.b", &x), RLHF_OK);
    assert_true(x == 2.5);
    assert_int_equal(svc->number(svc->host, row, "big", &x), RLHF_OK);
    assert_true(x == ldexp(1, 64));
    assert_int_equal(svc->boolean(svc->host, row, "ok", &yes), RLHF_OK);
    assert_int_equal(yes, 1);
    assert_int_equal(svc->length(svc->host, row, "steps", &n), RLHF_OK);
    assert_int_equal(n, 2);
    assert_int_equal(svc->string(svc->host, row, "/steps/0/text", &s), RLHF_OK);
    assert_memory_equal(s.ptr, "one", 3);
    assert_int_equal(svc->number(svc->host, row, "/steps/1/x~1y", &x), RLHF_OK);
    assert_true(x == 1);
    assert_int_equal(svc->boolean(svc->host, row, "/steps/1/m~0n", &yes), RLHF_OK);
    assert_int_equal(yes, 0);
    assert_int_equal(svc->number(svc->host, row, "/", &x), RLHF_OK); // the empty key
    assert_true(x == -3);
    svc->close(svc->host, row);
    svc->close(svc->host, NULL);
}

static void types(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int32_t type;
    } cases[] = {{"answer", RLHF_ROW_STRING},     {"a.b", RLHF_ROW_NUMBER},
                 {"ok", RLHF_ROW_BOOL},           {"none", RLHF_ROW_NULL},
                 {"steps", RLHF_ROW_LIST},        {"/steps/1", RLHF_ROW_OBJECT},
                 {"/steps/2", RLHF_ROW_ABSENT},   {"/steps/-", RLHF_ROW_ABSENT},
                 {"/steps/01", RLHF_ROW_ABSENT},  {"/answer/0", RLHF_ROW_ABSENT},
                 {"gold", RLHF_ROW_ABSENT},       {"a/b", RLHF_ROW_ABSENT},
                 {"/steps/1/x", RLHF_ROW_ABSENT}, {"", RLHF_ROW_NUMBER}};
    rlhf_row *row;
    assert_int_equal(open_row(sample, &row), RLHF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (svc->type(svc->host, row, cases[i].path) != cases[i].type)
            fail_msg("%s is %d", cases[i].path, svc->type(svc->host, row, cases[i].path));
    assert_int_equal(svc->type(svc->host, row, NULL), RLHF_ROW_ABSENT);
    svc->close(svc->host, row);
}

// The beginning of the sample: 60 bytes without a partial character.
#define START ": {\"answer\": \"7 \xc3\xa9\", \"a.b\": 2.5, \"big\": 1.8446744073709552e+19..."

static void what_is_not_there_is_said(void **state) {
    (void)state;
    rlhf_row *row;
    rlhf_str s;
    double x;
    uint64_t n;
    int32_t yes;
    assert_int_equal(open_row(sample, &row), RLHF_OK);
    assert_int_equal(svc->string(svc->host, row, "gold", &s), RLHF_E_INVALID);
    said("the data row has no \"gold\"; a string is wanted" START);
    assert_int_equal(svc->number(svc->host, row, "answer", &x), RLHF_E_INVALID);
    said("\"answer\" of the data row is a string; a number is wanted" START);
    assert_int_equal(svc->boolean(svc->host, row, "none", &yes), RLHF_E_INVALID);
    said("\"none\" of the data row is null; true or false is wanted" START);
    assert_int_equal(svc->length(svc->host, row, "/steps/0", &n), RLHF_E_INVALID);
    said("\"/steps/0\" of the data row is an object; a list is wanted" START);
    svc->close(svc->host, row);
    assert_int_equal(open_row("{\"text\": \"a\\u001b[31m\"}", &row), RLHF_OK);
    assert_int_equal(svc->number(svc->host, row, "n", &x), RLHF_E_INVALID);
    said("the data row has no \"n\"; a number is wanted: {\"text\": \"a\\u001b[31m\"}");
    svc->close(svc->host, row);
    assert_int_equal(open_row("{\"x\": \"123456789012345678901234567890123456789012345678901"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\"}",
                              &row),
                     RLHF_OK);
    assert_int_equal(svc->number(svc->host, row, "n", &x), RLHF_E_INVALID);
    said("the data row has no \"n\"; a number is wanted: "
         "{\"x\": \"123456789012345678901234567890123456789012345678901\xc3\xa9...");
    svc->close(svc->host, row);
    assert_int_equal(open_row("[1]", &row), RLHF_E_INVALID);
    said("the data row is a list; an object is wanted");
    assert_null(row);
    assert_int_equal(open_row("", &row), RLHF_E_INVALID);
    said("there is no data row: the prompts do not come from a file of JSON rows");
    assert_int_equal(open_row("{\"a\": }", &row), RLHF_E_INVALID);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {T(values_by_key_and_by_pointer), T(types),
                                       T(what_is_not_there_is_said)};
    return cmocka_run_group_tests_name("plugin_row_service", tests, NULL, NULL);
}
