// test_device_info.c: valid results of a backend's describe(), and results that are refused.
#include "model/device_info.h"

#include "support/scratch.h"

#include <string.h>

static void members_are_read(void **state) {
    struct rlhf__device_info d;
    struct rlhf__error err = {0, ""};
    (void)state;
    check_ok(rlhf__device_info_read(
                 "{\"devices\": 2, \"name\": \"A card\", \"capability\": 90, \"memory\": "
                 "85899345920, \"memory_free\": 1, \"missing\": \"\", \"levels\": [{\"name\": "
                 "\"avx2\", \"supported\": true, \"used\": false, \"why_unused\": \"slow\"}], "
                 "\"later\": [1]}",
                 &d, &err),
             &err);
    assert_int_equal(d.devices, 2);
    assert_int_equal(d.capability, 90);
    assert_true(d.memory == 85899345920u && d.memory_free == 1);
    assert_string_equal(d.name, "A card");
    assert_string_equal(d.driver, "");
    assert_int_equal(json_array_size(d.levels), 1);
    rlhf__device_info_finish(&d);
    check_ok(rlhf__device_info_read("{}", &d, &err), &err);
    assert_true(d.devices == 1 && !*d.library && json_array_size(d.levels) == 0);
    rlhf__device_info_finish(&d);
    check_ok(rlhf__device_info_read("{\"missing\": \"there is no driver\"}", &d, &err), &err);
    assert_int_equal(d.devices, 0);
    rlhf__device_info_finish(&d);
    check_ok(rlhf__device_info_read(NULL, &d, &err), &err); // no describe()
    assert_int_equal(d.devices, 1);
    rlhf__device_info_finish(&d);
}

static void what_is_not_as_agreed_is_refused(void **state) {
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "its answer:1"},
        {"[]", "its answer is a list; expected an object"},
        {"{\"name\": 3}",
         "\"name\" is an integer; expected a printable string of at most 512 bytes"},
        {"{\"name\": \"a\\u001b[31m\"}", "\"name\" is a string; expected a printable string"},
        {"{\"devices\": -1}", "\"devices\" is an integer; expected a whole number in its range"},
        {"{\"devices\": 1e3}", "\"devices\" is a"},
        {"{\"memory\": \"12\"}", "\"memory\" is a string; expected a whole number"},
        {"{\"levels\": {}}", "\"levels\" is an object; expected a list of at most 16 objects"},
        {"{\"levels\": [1]}", "\"levels\" is an integer; expected a list of objects"},
        {"{\"levels\": [{\"used\": 1}]}", "\"used\" is an integer; expected true or false"},
        {"{\"levels\": [{\"f32\": null}]}", "\"f32\" is null; expected a printable string"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__device_info d;
        struct rlhf__error err = {0, ""};
        check_error(rlhf__device_info_read(cases[i].json, &d, &err), RLHF_E_INVALID, &err,
                    cases[i].why);
        rlhf__device_info_finish(&d);
    }
    struct rlhf__device_info d;
    struct rlhf__error err = {0, ""};
    static char longer[70000] = "{\"name\": \"";
    memset(longer + strlen(longer), 'x', sizeof longer - 1 - strlen(longer));
    check_error(rlhf__device_info_read(longer, &d, &err), RLHF_E_INVALID, &err,
                "its answer has more than 65536 bytes");
    rlhf__device_info_finish(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(members_are_read),
                                       cmocka_unit_test(what_is_not_as_agreed_is_refused)};
    return cmocka_run_group_tests_name("device_info", tests, NULL, NULL);
}
