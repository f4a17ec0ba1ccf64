// test_row_service.c: the service "rlhf.row/1", which reads values of a data row.
#include "plugin/row_service.h"

#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char failure[512];
static rlhf_status failed;

static rlhf_status keep(const rlhf_host *host, rlhf_status code, const char *msg) {
    (void)host;
    failed = code;
    snprintf(failure, sizeof failure, "%s", msg);
    return code;
}

static const rlhf_host host = {.size = sizeof host, .fail = keep};
static const rlhf_row_service *svc;

static int setup(void **state) {
    (void)state;
    svc = rlhf__row_service();
    failed = RLHF_OK;
    failure[0] = 0;
    return svc ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    return 0;
}

static rlhf_status open_row(const char *json, rlhf_row **row) {
    return svc->open(&host, (rlhf_str){json, strlen(json)}, row);
}

// Asserts that the caller's host has the message `text`.
static void said(const char *text) {
    assert_int_equal(failed, RLHF_E_INVALID);
    assert_string_equal(failure, text);
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
    assert_int_equal(svc->string(&host, row, "answer", &s), RLHF_OK);
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.ptr, "7 \xc3\xa9", 4);
    assert_int_equal(svc->number(&host, row, "a.b", &x), RLHF_OK);
    assert_true(x == 2.5);
    assert_int_equal(svc->number(&host, row, "big", &x), RLHF_OK);
    assert_true(x == ldexp(1, 64));
    assert_int_equal(svc->boolean(&host, row, "ok", &yes), RLHF_OK);
    assert_int_equal(yes, 1);
    assert_int_equal(svc->length(&host, row, "steps", &n), RLHF_OK);
    assert_int_equal(n, 2);
    assert_int_equal(svc->string(&host, row, "/steps/0/text", &s), RLHF_OK);
    assert_memory_equal(s.ptr, "one", 3);
    assert_int_equal(svc->number(&host, row, "/steps/1/x~1y", &x), RLHF_OK);
    assert_true(x == 1);
    assert_int_equal(svc->boolean(&host, row, "/steps/1/m~0n", &yes), RLHF_OK);
    assert_int_equal(yes, 0);
    assert_int_equal(svc->number(&host, row, "/", &x), RLHF_OK); // the empty key
    assert_true(x == -3);
    svc->close(&host, row);
    svc->close(&host, NULL);
}

static void types(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int32_t type;
    } cases[] = {{"answer", RLHF_JSON_STRING},     {"a.b", RLHF_JSON_NUMBER},
                 {"ok", RLHF_JSON_BOOL},           {"none", RLHF_JSON_NULL},
                 {"steps", RLHF_JSON_LIST},        {"/steps/1", RLHF_JSON_OBJECT},
                 {"/steps/2", RLHF_JSON_ABSENT},   {"/steps/-", RLHF_JSON_ABSENT},
                 {"/steps/01", RLHF_JSON_ABSENT},  {"/answer/0", RLHF_JSON_ABSENT},
                 {"gold", RLHF_JSON_ABSENT},       {"a/b", RLHF_JSON_ABSENT},
                 {"/steps/1/x", RLHF_JSON_ABSENT}, {"", RLHF_JSON_OBJECT},
                 {"big", RLHF_JSON_NUMBER},        {"/", RLHF_JSON_NUMBER}};
    rlhf_row *row;
    assert_int_equal(open_row(sample, &row), RLHF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (svc->type(&host, row, cases[i].path) != cases[i].type)
            fail_msg("%s is %d", cases[i].path, svc->type(&host, row, cases[i].path));
    assert_int_equal(svc->type(&host, row, NULL), RLHF_JSON_ABSENT);
    svc->close(&host, row);
}

// The beginning of the sample: 60 bytes without a partial character.
#define START ": {\"answer\": \"7 \xc3\xa9\", \"a.b\": 2.5, \"big\": 18446744073709551616, ..."

static void what_is_not_there_is_said(void **state) {
    (void)state;
    rlhf_row *row;
    rlhf_str s;
    double x;
    uint64_t n;
    int32_t yes;
    assert_int_equal(open_row(sample, &row), RLHF_OK);
    assert_int_equal(svc->string(&host, row, "gold", &s), RLHF_E_INVALID);
    said("the data row has no \"gold\"; expected a string" START);
    assert_int_equal(svc->number(&host, row, "answer", &x), RLHF_E_INVALID);
    said("\"answer\" of the data row is a string; expected a number" START);
    assert_int_equal(svc->boolean(&host, row, "none", &yes), RLHF_E_INVALID);
    said("\"none\" of the data row is null; expected true or false" START);
    assert_int_equal(svc->length(&host, row, "a.b", &n), RLHF_E_INVALID);
    said("\"a.b\" of the data row is a number; expected a list or an object" START);
    svc->close(&host, row);
    assert_int_equal(open_row("{\"text\": \"a\\u001b[31m\"}", &row), RLHF_OK);
    assert_int_equal(svc->number(&host, row, "n", &x), RLHF_E_INVALID);
    said("the data row has no \"n\"; expected a number: {\"text\": \"a\\u001b[31m\"}");
    svc->close(&host, row);
    assert_int_equal(open_row("{\"x\": \"123456789012345678901234567890123456789012345678901"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\"}",
                              &row),
                     RLHF_OK);
    assert_int_equal(svc->number(&host, row, "n", &x), RLHF_E_INVALID);
    said("the data row has no \"n\"; expected a number: "
         "{\"x\": \"123456789012345678901234567890123456789012345678901\xc3\xa9...");
    svc->close(&host, row);
    assert_int_equal(open_row("[1]", &row), RLHF_E_INVALID);
    said("the data row is a list; expected an object");
    assert_null(row);
    assert_int_equal(open_row("", &row), RLHF_E_INVALID);
    said("there is no data row: the prompts do not come from a file of JSON rows");
    assert_int_equal(open_row("{\"a\": }", &row), RLHF_E_INVALID);
    assert_int_equal(open_row("{\"a\": {\"b\": 1, \"b\": 1}}", &row), RLHF_E_INVALID);
    assert_int_equal(open_row("{\"a\": 1e400}", &row), RLHF_E_INVALID);
}

// Integers have at most 4300 digits. One beyond the doubles has no number, but its digits.
static void long_integers(void **state) {
    (void)state;
    static char text[5000], json[5000];
    rlhf_row *row;
    double x;
    uint64_t len;
    for (int digits = 300; digits <= 4301; digits += 4001) {
        snprintf(text, sizeof text, "{\"n\": %0*d}", digits, 7);
        memset(strchr(text, '0'), '9', (size_t)digits);
        const int is_read = open_row(text, &row) == RLHF_OK;
        assert_int_equal(is_read, digits == 300);
        if (is_read) assert_int_equal(svc->number(&host, row, "n", &x), RLHF_OK);
        if (is_read) svc->close(&host, row);
    }
    snprintf(text, sizeof text, "{\"n\": %0400d}", 7);
    memset(strchr(text, '0'), '9', 400);
    assert_int_equal(open_row(text, &row), RLHF_OK);
    assert_int_equal(svc->number(&host, row, "n", &x), RLHF_E_INVALID);
    assert_non_null(strstr(failure, "is an integer; expected a number that a double can hold"));
    assert_int_equal(svc->json(&host, row, "n", json, sizeof json, &len), RLHF_OK);
    assert_int_equal(len, 400);
    svc->close(&host, row);
}

// An id beyond 2^53 has a neighbor that is the same double.
static void integers_are_exact(void **state) {
    (void)state;
    rlhf_row *row;
    int64_t i;
    double x;
    assert_int_equal(open_row("{\"id\": 9007199254740993, \"least\": -9223372036854775808, "
                              "\"more\": 9223372036854775808, \"whole\": 3.0, \"text\": \"3\"}",
                              &row),
                     RLHF_OK);
    assert_int_equal(svc->integer(&host, row, "id", &i), RLHF_OK);
    assert_true(i == 9007199254740993);
    assert_int_equal(svc->integer(&host, row, "least", &i), RLHF_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(svc->integer(&host, row, "more", &i), RLHF_E_INVALID);
    assert_non_null(strstr(failure,
                           "\"more\" of the data row is an integer; expected an integer of "
                           "at most 64 bits: {\"id\": 9007"));
    assert_int_equal(svc->number(&host, row, "more", &x), RLHF_OK);
    assert_true(x == ldexp(1, 63));
    assert_int_equal(svc->integer(&host, row, "whole", &i), RLHF_E_INVALID);
    assert_int_equal(svc->integer(&host, row, "text", &i), RLHF_E_INVALID);
    assert_int_equal(svc->integer(&host, row, "none", &i), RLHF_E_INVALID);
    svc->close(&host, row);
}

// Asserts that the value at `path` is this text; "": it is absent.
static void is_json(const rlhf_row *row, const char *path, const char *want) {
    char text[200];
    uint64_t len = 0;
    const rlhf_status st = svc->json(&host, row, path, text, sizeof text, &len);
    if (!*want) {
        assert_int_equal(st, RLHF_E_INVALID);
        return;
    }
    assert_int_equal(st, RLHF_OK);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(text, want, len);
}

static void any_value_is_json_text(void **state) {
    (void)state;
    rlhf_row *row;
    char text[4] = "abc";
    uint64_t len;
    assert_int_equal(open_row("{\"a\": [1, 99999999999999999999999, -0.5, \"\\u0000\\n\"], "
                              "\"b\": {\"c\": null}, \"d\": 1e2}",
                              &row),
                     RLHF_OK);
    is_json(row, "a", "[1, 99999999999999999999999, -0.5, \"\\u0000\\n\"]");
    is_json(row, "/a/1", "99999999999999999999999");
    is_json(row, "/b", "{\"c\": null}");
    is_json(row, "/b/c", "null");
    is_json(row, "c", "");
    is_json(row, "d", "100.0");
    is_json(row, "",
            "{\"a\": [1, 99999999999999999999999, -0.5, \"\\u0000\\n\"], \"b\": {\"c\": "
            "null}, \"d\": 100.0}");
    rlhf_row *none;
    assert_int_equal(open_row("{\"a\": \"\\ud800\"}", &none), RLHF_E_INVALID);
    assert_int_equal(open_row("{\"a\": \"\xff\"}", &none), RLHF_E_INVALID);
    assert_int_equal(svc->json(&host, row, "/a/1", text, 3, &len), RLHF_OK);
    assert_int_equal(len, 23);
    assert_string_equal(text, "999");
    text[2] = 'c';
    assert_int_equal(svc->json(&host, row, "/a/1", NULL, 0, &len), RLHF_OK);
    assert_int_equal(len, 23);
    svc->close(&host, row);
}

static void keys_and_items(void **state) {
    (void)state;
    rlhf_row *row, *item;
    rlhf_str key;
    uint64_t n;
    int64_t i;
    assert_int_equal(open_row("{\"z\": 1, \"/a\": {\"k\": [2, {\"x\": 3}]}, \"\": {}}", &row),
                     RLHF_OK);
    static const char *const keys[] = {"z", "/a", ""};
    assert_int_equal(svc->length(&host, row, "", &n), RLHF_OK);
    assert_int_equal(n, 3);
    for (uint64_t k = 0; k < n; k++) {
        assert_int_equal(svc->key(&host, row, "", k, &key), RLHF_OK);
        assert_int_equal(key.len, strlen(keys[k]));
        assert_memory_equal(key.ptr, keys[k], key.len);
    }
    assert_int_equal(svc->key(&host, row, "", 3, &key), RLHF_E_INVALID);
    assert_int_equal(svc->key(&host, row, "z", 0, &key), RLHF_E_INVALID);
    assert_int_equal(svc->length(&host, row, "/", &n), RLHF_OK);
    assert_int_equal(n, 0);
    // an item is a separate row, and outlives the row that it comes from
    assert_int_equal(svc->item(&host, row, "/~1a/k", 2, &item), RLHF_E_INVALID);
    assert_null(item);
    assert_int_equal(svc->item(&host, row, "", 1, &item), RLHF_OK);
    svc->close(&host, row);
    assert_int_equal(svc->type(&host, item, ""), RLHF_JSON_OBJECT);
    assert_int_equal(svc->integer(&host, item, "/k/1/x", &i), RLHF_OK);
    assert_int_equal(i, 3);
    assert_int_equal(svc->item(&host, item, "k", 0, &row), RLHF_OK);
    assert_int_equal(svc->integer(&host, row, "", &i), RLHF_OK);
    assert_int_equal(i, 2);
    assert_int_equal(svc->type(&host, row, "k"), RLHF_JSON_ABSENT);
    svc->close(&host, row);
    svc->close(&host, item);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {T(values_by_key_and_by_pointer),
                                       T(types),
                                       T(what_is_not_there_is_said),
                                       T(integers_are_exact),
                                       T(any_value_is_json_text),
                                       T(keys_and_items),
                                       T(long_integers)};
    return cmocka_run_group_tests_name("plugin_row_service", tests, NULL, NULL);
}
