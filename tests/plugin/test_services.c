// test_services.c: instances, their options, and what the host offers to them.
#include "plugin/modules.h"

#include "plugin/services.h"

#include <pthread.h>

struct fixture {
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *sample;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    char metric[64];
    double value;
};

static const struct rlhf__origin from = {"test", "reward.0", NULL, 0, 0, 0};

static void take_metric(void *ctx, const char *name, double value) {
    struct fixture *f = ctx;
    snprintf(f->metric, sizeof f->metric, "%s", name);
    f->value = value;
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    char path[1024];
    if (!f) return -1;
    f->plugins = loader(&f->dirs, "/nowhere");
    f->services.metric = take_metric;
    f->services.metric_ctx = f;
    f->services.seed = 7;
    f->services.phase = -1;
    *state = f;
    return rlhf__plugin_open(f->plugins, module_path("sample.so", path), RLHF_KIND_REWARD,
                             RLHF__NAME_TYPED, "test", &f->sample, &err);
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__instance_destroy(f->instance);
    rlhf__plugins_destroy(f->plugins);
    free(f);
    return 0;
}

static rlhf_status make(struct fixture *f, const char *options, struct rlhf__error *err) {
    json_t *o = options ? json_loads(options, 0, NULL) : NULL;
    rlhf__instance_destroy(f->instance);
    rlhf_status st = rlhf__instance_create(f->sample, &f->services, o, &from, &f->instance, err);
    json_decref(o);
    return st;
}

// Score one response; the status and the score.
static rlhf_status score(struct fixture *f, const char *response, float *out) {
    rlhf_str text = {response, strlen(response)};
    rlhf_reward_in in = {.size = sizeof in, .n = 1, .prompt = &text, .response = &text};
    rlhf_reward_out result = {sizeof result, 0, out, NULL};
    return f->sample->ops.reward.score(f->instance->self, &in, &result);
}

static void options_reach_the_plugin(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    float r = 0;
    check_ok(make(f, NULL, &err), &err);
    assert_int_equal(score(f, "four", &r), RLHF_OK);
    assert_float_equal(r, 4, 0);
    check_ok(make(f, "{\"gain\": -2}", &err), &err);
    assert_int_equal(score(f, "four", &r), RLHF_OK);
    assert_float_equal(r, -8, 0);
    assert_string_equal(f->metric, "sample/calls");
    assert_float_equal(f->value, 1, 0);
    check_error(make(f, "{\"gain\": 11}", &err), RLHF_E_INVALID, &err,
                "test: reward.0.gain must be a number from -10 to 10, found 11");
    assert_null(f->instance);
}

static void a_failing_create_is_told(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_error(make(f, "{\"mode\": \"second\"}", &err), RLHF_E_INVALID, &err,
                "reward org.example.sample, create(): the second mode is not for use");
    assert_null(f->instance);
}

static void failures_name_plugin_function_and_phase(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    float r;
    check_ok(make(f, NULL, &err), &err);
    f->services.phase = 12;
    rlhf_status st = score(f, "bad", &r);
    assert_int_equal(rlhf__plugin_call_failed(f->instance, "score()", st, &err), RLHF_E_NUMERIC);
    assert_string_equal(err.text, "reward org.example.sample, score(), phase 12: row 0 is bad");
    // The text was used up; an unknown status reads as internal.
    assert_int_equal(rlhf__plugin_call_failed(f->instance, "score()", -99, &err), RLHF_E_INTERNAL);
    assert_string_equal(err.text, "reward org.example.sample, score(), phase 12: internal error");
}

static void *fail_elsewhere(void *arg) {
    struct fixture *f = arg;
    (f->instance->host->fail)(f->instance->host, RLHF_E_IO, "from the other thread");
    return NULL;
}

static void fail_texts_are_kept_per_thread(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *h = f->instance->host;
    assert_int_equal((h->fail)(h, RLHF_E_NOMEM, "from this thread"), RLHF_E_NOMEM);
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, f), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
    }
    rlhf__plugin_call_failed(f->instance, "score()", RLHF_E_NOMEM, &err);
    assert_string_equal(err.text, "reward org.example.sample, score(): from this thread");
}

static const void *one_service(void *ctx, const char *id) {
    return strcmp(id, "org.example.x/1") == 0 ? ctx : NULL;
}

static void the_table_does_what_it_says(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *h = f->instance->host;
    assert_int_equal(h->size, sizeof *h);
    unsigned char *p = h->alloc(h, 100);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    h->free(h, p);
    h->free(h, NULL);
    assert_null(h->alloc(h, 0));
    assert_null(h->alloc(h, UINT64_MAX));
    rlhf_rng a, b;
    h->rng(h, "a", &a);
    h->rng(h, "b", &b);
    assert_true(a.seed == 7 && a.counter == 0 && a.stream != b.stream);
    assert_int_equal(h->cancelled(h), 0);
    volatile sig_atomic_t flag = 0;
    f->services.cancelled = &flag;
    assert_int_equal(h->cancelled(h), 0);
    flag = 2;
    assert_int_not_equal(h->cancelled(h), 0);
    assert_null(h->service(h, "org.example.x/1"));
    f->services.service = one_service;
    f->services.service_ctx = f;
    assert_ptr_equal(h->service(h, "org.example.x/1"), f);
    assert_null(h->service(h, "org.example.x/2"));
}

static void log_lines_carry_the_plugin(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    char line[256] = "";
    float r;
    rlhf__log_init(&log);
    log.out = tmpfile();
    assert_non_null(log.out);
    f->services.log = &log;
    check_ok(make(f, "{\"loud\": true}", &err), &err);
    score(f, "x", &r);
    rewind(log.out);
    assert_non_null(fgets(line, sizeof line, log.out));
    assert_non_null(strstr(line, " sample: call 1\n"));
    f->services.log = NULL;
    score(f, "x", &r);
    fclose(log.out);
    rlhf__log_finish(&log);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(options_reach_the_plugin),
        T(a_failing_create_is_told),
        T(failures_name_plugin_function_and_phase),
        T(fail_texts_are_kept_per_thread),
        T(the_table_does_what_it_says),
        T(log_lines_carry_the_plugin),
    };
    return cmocka_run_group_tests_name("plugin_services", tests, NULL, NULL);
}
