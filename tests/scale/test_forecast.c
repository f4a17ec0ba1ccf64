// test_forecast.c: checks the files of measured figures and the network that a user types in. Also
// checks that the JSON has the numbers of the formulas.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "scale/forecast.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rlhf__scale_figures read_file(const char *name) {
    struct rlhf__scale_figures f = {.has_run = 0};
    struct rlhf__error err = {0, ""};
    if (rlhf__scale_figures_read(name, &f, &err) != RLHF_OK) fail_msg("%s", err.text);
    return f;
}

// If figures are written and read back, they do not change.
static void files(void **state) {
    static const char *const name[] = {"ppo.json", "grpo.json"};
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const struct rlhf__scale_figures f = read_file(name[i]);
        char path[] = "/tmp/scale-XXXXXX";
        struct rlhf__error err = {0, ""};
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(rlhf__json_save_new(NULL, path, rlhf__scale_figures_json(&f), 2, &err),
                         RLHF_OK);
        const struct rlhf__scale_figures again = read_file(path);
        unlink(path);
        assert_memory_equal(&f, &again, sizeof f);
    }
}

// Reads the file after a field was replaced, or removed if `value` is NULL, and expects an error.
static void wrong(const char *section, const char *key, json_t *value, const char *says) {
    char path[] = "/tmp/scale-XXXXXX";
    struct rlhf__error err = {0, ""};
    struct rlhf__scale_figures f = {.has_run = 0};
    json_t *file;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(rlhf__json_load("ppo.json", &file, &err), RLHF_OK);
    json_t *in = section ? json_object_get(file, section) : file;
    if (value)
        json_object_set_new(in, key, value);
    else
        json_object_del(in, key);
    assert_int_equal(rlhf__json_save_new(NULL, path, file, 0, &err), RLHF_OK);
    assert_int_equal(rlhf__scale_figures_read(path, &f, &err), RLHF_E_INVALID);
    unlink(path);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    assert_non_null(strstr(err.text, path));
}

static void bad_files(void **state) {
    (void)state;
    wrong(NULL, "rlhf_host_scale", json_integer(2), "rlhf_host_scale");
    wrong(NULL, "rlhf_host_scale", NULL, "\"rlhf_host_scale\" is missing");
    wrong("run", "rows", NULL, "run.rows is missing");
    wrong("run", "rows", json_integer(0), "run.rows is 0");
    wrong("run", "rows", json_real(1.5), "run.rows is 1.5");
    wrong("run", "reward_dealt", json_integer(2), "run.reward_dealt is 2");
    wrong("machine", "compute", json_integer(2), "machine.compute is an integer");
    wrong("machine", "copy_bytes_per_s", json_integer(0), "machine.copy_bytes_per_s is 0");
    wrong("machine", "passes_s", json_string("x"), "machine.passes_s is a string");
    wrong("machine", "draw", json_pack("[[i,i],[i,i]]", 2, 1, 1, 1), "machine.draw");
    wrong("machine", "learn", json_pack("[[i,i]]", 2, 0), "machine.learn");
    wrong("machine", "learn", json_pack("[[i]]", 2), "machine.learn");
    wrong("machine", "lengths", json_array(), "machine.lengths");
    wrong("machine", "lengths", json_pack("[i]", 0), "machine.lengths");
    wrong("network", "exchange", json_integer(1), "network.exchange is an integer");
    wrong("network", "latency_s", json_integer(-1), "network.latency_s is -1");
}

static void typed(void **state) {
    static const struct {
        const char *text;
        double bytes, latency;
    } good[] = {{"1gbit,1ms", 1.25e8, 1e-3},
                {"100mbit,50us", 1.25e7, 5e-5},
                {"12.5GB,2.5us", 12.5e9, 2.5e-6},
                {"800MB,0us", 8e8, 0}};
    static const char *const bad[] = {"",          "1gbit",       "1gbit,",      ",1ms",
                                      "0gbit,1ms", "-1gbit,1ms",  "1 gbit,1ms",  "1gbit,1s",
                                      "1Gbit,1ms", "infgbit,1ms", "nangbit,1ms", "1gbit,1ms,2ms",
                                      "gbit,1ms",  "1gbit,-1us"};
    struct rlhf__scale_line l;
    struct rlhf__error err = {0, ""};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(rlhf__scale_line_typed(good[i].text, &l, &err), RLHF_OK);
        assert_true(fabs(l.bytes / good[i].bytes - 1) < 1e-12);
        assert_true(fabs(l.latency - good[i].latency) < 1e-15);
        assert_true(l.locals == 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (rlhf__scale_line_typed(bad[i], &l, &err) == RLHF_OK) fail_msg("%s is read", bad[i]);
        assert_non_null(strstr(err.text, bad[i]));
    }
}

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) fail_msg("%s is missing", key);
    return json_number_value(v);
}

static void json(void **state) {
    const struct rlhf__scale_figures f = read_file("ppo.json");
    const struct rlhf__scale_question q = {.n = 3, .ranks = {1, 4, 128}, .per_host = 2};
    json_t *all = rlhf__scale_json(&f, &q);
    const json_t *list = json_object_get(all, "forecast"), *four = json_array_get(list, 1);
    const struct rlhf__scale_layout l = {4, 2, 64};
    const struct rlhf__scale_cost c = rlhf__scale_cost(&f, &l);
    double sum = 0;
    const char *key;
    json_t *v;
    (void)state;
    assert_int_equal(json_array_size(list), 3);
    assert_true(number(four, "ranks") == 4);
    assert_true(number(four, "phase_seconds") == c.total);
    assert_true(number(four, "efficiency") == rlhf__scale_efficiency(&f, &l, 64));
    assert_true(number(four, "rows_for_0.9") == rlhf__scale_rows_for(&f, 4, 2, 0.9));
    json_object_foreach(json_object_get(four, "seconds"), key, v) sum +=
        (strcmp(key, "hidden") == 0 ? -1 : 1) * json_number_value(v);
    assert_true(fabs(sum / c.total - 1) < 1e-12);
    assert_non_null(json_object_get(json_array_get(list, 2), "refused"));
    assert_true(number(all, "stops_helping_at") == 2); // one machine
    json_decref(all);
}

// If the rows are given per rank, a phase has that many rows for each of its ranks.
static void rows_a_rank(void **state) {
    const struct rlhf__scale_figures f = read_file("ppo.json");
    struct rlhf__scale_question q = {.n = 2, .ranks = {1, 128}, .per_host = 1, .grows = 1};
    (void)state;
    for (; q.per_host < 3; q.per_host++) {
        json_t *all = rlhf__scale_json(&f, &q);
        const json_t *one = json_array_get(json_object_get(all, "forecast"), 0);
        const json_t *many = json_array_get(json_object_get(all, "forecast"), 1);
        const struct rlhf__scale_layout l = {128, q.per_host, 8192};
        assert_true(number(one, "efficiency") == 1);
        assert_true(number(many, "rows") == 8192);
        // If one process has a whole machine, it has the rows of all ranks of that machine.
        assert_true(number(many, "efficiency") == rlhf__scale_efficiency(&f, &l, 64 * q.per_host));
        json_decref(all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files), cmocka_unit_test(bad_files),   cmocka_unit_test(typed),
        cmocka_unit_test(json),  cmocka_unit_test(rows_a_rank),
    };
    return cmocka_run_group_tests_name("scale_forecast", tests, NULL, NULL);
}
