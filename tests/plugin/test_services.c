// test_services.c: instances, their options, and the host's services.
#include "plugin/one_instance.h"

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
    assert_string_equal(f->metric, "rewards/one/sample/calls");
    assert_float_equal(f->value, 1, 0);
    check_error(make(f, "{\"gain\": 11}", &err), RLHF_E_INVALID, &err,
                "test: reward.0.gain must be a number from -10 to 10, found 11");
    assert_null(f->instance);
}

static void a_failing_create_is_told(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_error(make(f, "{\"mode\": \"second\"}", &err), RLHF_E_INVALID, &err,
                "reward sample.so: the second mode is not for use");
    assert_null(f->instance);
}

// Ends a call of score() with a failing status. If `response` is given, the status is the one that
// score() returns for the response. Otherwise it is `status`. Asserts that the host's message says
// `why`.
static void fails(struct fixture *f, const char *response, rlhf_status status, const char *why) {
    struct rlhf__error err = {0};
    char want[256];
    float r;
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    if (response) status = score(f, response, &r);
    assert_true(rlhf__call_end(&call, status, &err) < 0);
    snprintf(want, sizeof want, "reward sample.so, score(), phase 12: %s", why);
    assert_string_equal(err.text, want);
}

static void failures_name_plugin_function_and_phase(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    f->services.phase = 12;
    fails(f, "bad", 0, "row 0 is bad");
    // The message of the first call is not used for later calls. An unknown negative status becomes
    // "internal error". A positive status is not valid.
    fails(f, NULL, -99, "internal error");
    fails(f, NULL, 3, "it returned 3, which is not a valid status");
}

static void *fail_elsewhere(void *arg) {
    struct fixture *f = arg;
    (f->instance->host->fail)(f->instance->host, RLHF_E_NOMEM, "from a thread of its own");
    return NULL;
}

// A plugin may fail on its own threads. If it handles a failure, a later failure does not report it
// again.
static void what_a_plugin_says_goes_with_the_call(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    pthread_t t;
    check_ok(make(f, NULL, &err), &err);
    f->services.phase = 12;
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, f), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(rlhf__call_end(&call, RLHF_E_NOMEM, &err) == RLHF_E_NOMEM);
    assert_non_null(strstr(err.text, ": from a thread of its own"));
    call = rlhf__call_begin(f->instance, "score()");
    (f->instance->host->fail)(f->instance->host, RLHF_E_IO, "the first way is closed");
    assert_int_equal(rlhf__call_end(&call, RLHF_OK, &err), RLHF_OK);
    fails(f, NULL, RLHF_E_IO, "input/output error");
}

static rlhf_status service_fails(struct fixture *f, rlhf_status status, const char *text) {
    struct rlhf__error err = {0};
    rlhf__fail(&err, status, "%s", text);
    return rlhf__service_failed(f->instance->host, &err);
}

// If a service fails, the host reports the service's message as the message of the plugin that
// called it. If that plugin handles the failure, a later failure without a message does not get the
// service's message.
static void what_a_service_says_goes_with_the_call(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    rlhf_status st = service_fails(f, RLHF_E_IO, "models/x: no such file");
    assert_int_equal(rlhf__call_end(&call, st, &err), RLHF_E_IO);
    assert_string_equal(err.text, "reward sample.so, score(): models/x: no such file");
    // The plugin handles this failure. Then another one occurs, in the same call or in the next
    // one.
    call = rlhf__call_begin(f->instance, "score()");
    service_fails(f, RLHF_E_IO, "models/x: no such file");
    assert_int_equal(rlhf__call_end(&call, RLHF_E_NOMEM, &err), RLHF_E_NOMEM);
    assert_string_equal(err.text, "reward sample.so, score(): out of memory");
    call = rlhf__call_begin(f->instance, "score()");
    assert_int_equal(rlhf__call_end(&call, RLHF_E_IO, &err), RLHF_E_IO);
    assert_string_equal(err.text, "reward sample.so, score(): input/output error");
    // The plugin's own message takes precedence.
    call = rlhf__call_begin(f->instance, "score()");
    st = service_fails(f, RLHF_E_IO, "models/x: no such file");
    (f->instance->host->fail)(f->instance->host, st, "the judge has no model");
    assert_int_equal(rlhf__call_end(&call, st, &err), RLHF_E_IO);
    assert_string_equal(err.text, "reward sample.so, score(): the judge has no model");
}

// If a model fails without a message, the message of the kernels is reported.
static void what_kernels_say_goes_with_the_call(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__instance *kernels;
    char said[64];
    check_ok(rlhf__instance_open(f->sample, &f->services, "kernels", NULL, &from, &kernels, &err),
             &err);
    struct rlhf__services with = f->services;
    with.kernels = kernels;
    check_ok(rlhf__instance_open(f->sample, &with, "models/x", NULL, &from, &f->instance, &err),
             &err);
    (kernels->host->fail)(kernels->host, RLHF_E_DEVICE, "an earlier one");
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    assert_int_equal(rlhf__call_end(&call, RLHF_E_DEVICE, &err), RLHF_E_DEVICE);
    assert_non_null(strstr(err.text, "score(): device error"));
    call = rlhf__call_begin(f->instance, "score()");
    (kernels->host->fail)(kernels->host, RLHF_E_DEVICE, "linear: the card is gone");
    assert_int_equal(rlhf__call_end(&call, RLHF_E_DEVICE, &err), RLHF_E_DEVICE);
    assert_non_null(strstr(err.text, "score(): linear: the card is gone"));
    assert_int_equal(rlhf__instance_said(kernels, said, sizeof said), RLHF_E_DEVICE);
    assert_string_equal(said, "linear: the card is gone");
    call = rlhf__call_begin(f->instance, "score()");
    (kernels->host->fail)(kernels->host, RLHF_E_DEVICE, "linear: the card is gone");
    assert_int_equal(rlhf__call_end(&call, RLHF_E_NOMEM, &err), RLHF_E_NOMEM);
    assert_non_null(strstr(err.text, "score(): out of memory"));
    rlhf__instance_close(f->instance);
    f->instance = NULL;
    rlhf__instance_close(kernels);
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
    // A plugin cannot get the random numbers that choose tokens, even with the name of their
    // stream. Changing the names of streams would change the bits of every run.
    h->rng(h, "rollout", &b);
    assert_true(b.stream != rlhf_rng_stream("rollout"));
    assert_true(b.stream == rlhf_rng_stream("org.example.sample/rewards/one/rollout"));
    f->owner = "rewards/two";
    check_ok(make(f, NULL, &err), &err);
    h = f->instance->host;
    h->rng(h, "a", &b);
    assert_true(a.stream != b.stream);
    h->rng(h, "a", &a);
    assert_true(a.stream == b.stream);
    assert_int_equal(h->cancelled(h), 0);
    volatile sig_atomic_t flag = 0;
    f->services.cancelled = &flag;
    assert_int_equal(h->cancelled(h), 0);
    flag = 2;
    assert_int_not_equal(h->cancelled(h), 0);
    assert_null(h->service(h, "org.example.x/1"));
    check_ok(
        rlhf__services_offer(&f->services, "org.example.x/1", RLHF__STRUCT_rlhf_limits, f, &err),
        &err);
    check_ok(rlhf__services_offer(&f->services, "org.example.y/1", RLHF__STRUCT_rlhf_limits,
                                  &f->value, &err),
             &err);
    assert_ptr_equal(h->service(h, "org.example.y/1"), &f->value);
    assert_ptr_equal(h->service(h, "org.example.x/1"), f);
    assert_null(h->service(h, "org.example.x/2"));
}

// A service can be offered only once, and the number of services is limited.
static void services_are_offered_once(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    static char id[RLHF__MAX_SERVICES + 1][24];
    for (int i = 0; i <= RLHF__MAX_SERVICES; i++)
        snprintf(id[i], sizeof id[i], "org.example.%d/1", i);
    check_ok(rlhf__services_offer(&f->services, id[0], RLHF__STRUCT_rlhf_limits, f, &err), &err);
    assert_int_equal(
        rlhf__services_offer(&f->services, id[0], RLHF__STRUCT_rlhf_limits, &f->value, &err),
        RLHF_E_INTERNAL);
    assert_string_equal(err.text, "the service org.example.0/1 is offered twice");
    assert_ptr_equal(rlhf__services_find(&f->services, id[0]), f);
    for (int i = 1; i < RLHF__MAX_SERVICES; i++)
        check_ok(rlhf__services_offer(&f->services, id[i], RLHF__STRUCT_rlhf_limits, f, &err),
                 &err);
    assert_int_equal(rlhf__services_offer(&f->services, id[RLHF__MAX_SERVICES],
                                          RLHF__STRUCT_rlhf_limits, f, &err),
                     RLHF_E_INTERNAL);
    assert_string_equal(err.text, "no room for the service org.example.16/1: there are 16 already");
    assert_int_equal(f->services.n_offered, RLHF__MAX_SERVICES);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        T(options_reach_the_plugin),
        T(a_failing_create_is_told),
        T(failures_name_plugin_function_and_phase),
        T(what_a_plugin_says_goes_with_the_call),
        T(what_a_service_says_goes_with_the_call),
        T(what_kernels_say_goes_with_the_call),
        T(the_table_does_what_it_says),
        T(services_are_offered_once),
        T(log_lines_carry_the_plugin),
    };
    return cmocka_run_group_tests_name("plugin_services", tests, NULL, NULL);
}
