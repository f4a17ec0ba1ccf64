// test_judge.c: the judge of a run: a file, --judge or --set names it. Its options are completed,
// printed and read back, and invalid options are refused.
#include "config/config_json.h"
#include "config/fixture.h"

// fixture_setup with an algorithm whose one required option is given.
static int setup(void **state) {
    if (fixture_setup(state) != 0) return -1;
    struct fixture *f = *state;
    f->req.algo = f->algo;
    add_set(f, "algo.rate=0.5");
    return 0;
}

static void a_judge_is_named_by_its_flag(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char spec[1200];
    check_ok(resolve(f, &err), &err);
    assert_null(f->config.judge.plugin);
    snprintf(spec, sizeof spec, "%s:gain=3,label=a,b", f->sample);
    f->req.judge = spec;
    add_set(f, "judge.count=42");
    check_ok(resolve(f, &err), &err);
    assert_non_null(f->config.judge.plugin);
    assert_true(option(&f->config.judge, "gain") == 3 && option(&f->config.judge, "count") == 42);
    assert_string_equal(json_string_value(json_object_get(f->config.judge.options, "label")),
                        "a,b");
}

static void a_judge_comes_back_as_printed(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf first = RLHF__BUF_INIT, second = RLHF__BUF_INIT;
    f->req.judge = f->sample;
    add_set(f, "judge.gain=3");
    check_ok(resolve(f, &err), &err);
    check_ok(rlhf__config_print(&f->config, &first, &err), &err);
    assert_non_null(strstr(rlhf__buf_text(&first), "\"judge\": {"));
    f->req.judge = NULL;
    f->req.n_set = 0;
    f->req.algo = NULL;
    f->req.config_file = scratch_text(f->scratch, "c.json", rlhf__buf_text(&first));
    check_ok(resolve(f, &err), &err);
    check_ok(rlhf__config_print(&f->config, &second, &err), &err);
    assert_string_equal(rlhf__buf_text(&first), rlhf__buf_text(&second));
    rlhf__buf_finish(&first);
    rlhf__buf_finish(&second);
}

// If the run names a judge other than the file's, the options in the file do not apply. If the run
// names the file's judge, they do.
static void options_belong_to_their_judge(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    f->req.config_file =
        scratch_text(f->scratch, "j.json", "{\"judge\": {\"plugin\": \"other.so\", \"depth\": 2}}");
    check_ok(load(f, &err), &err);
    assert_true(option(&f->config.judge, "depth") == 2);
    f->req.judge = "other.so:width=1";
    check_ok(load(f, &err), &err);
    assert_true(option(&f->config.judge, "depth") == 2);
    f->req.judge = f->sample;
    check_ok(resolve(f, &err), &err);
    assert_null(json_object_get(f->config.judge.options, "depth"));
}

static void bad_judges_are_refused(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    add_set(f, "judge.gain=3");
    assert_int_equal(resolve(f, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "judge.plugin is missing"));
    f->req.n_set = 1;
    f->req.judge = f->algo; // an algorithm is not a reward
    assert_int_equal(resolve(f, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "--judge"));
    f->req.judge = f->sample;
    add_set(f, "judge.gian=3");
    assert_int_equal(resolve(f, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "judge.gian"));
    f->req.n_set = 1;
    f->req.judge = NULL;
    f->req.config_file = scratch_text(f->scratch, "j.json", "{\"judge\": [1]}");
    assert_int_equal(resolve(f, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "judge must be an object"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_judge_is_named_by_its_flag, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_judge_comes_back_as_printed, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(options_belong_to_their_judge, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(bad_judges_are_refused, setup, fixture_teardown),
    };
    return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
