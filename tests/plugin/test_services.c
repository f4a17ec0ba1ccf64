// test_services.c: instances, their options, and the host's services.
#include "plugin/modules.h"

#include "plugin/combine.h"
#include "plugin/metric_names.h"
#include "plugin/services.h"

#include <math.h>
#include <pthread.h>

struct fixture {
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *sample;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    const char *owner;
    char metric[512];
    double value, weight;
    int64_t combine;
};

static const struct rlhf__origin from = {"test", "reward.0", NULL, 0, 0};

static void take_metric(void *ctx, const char *name, double value, double weight, int32_t combine) {
    struct fixture *f = ctx;
    f->weight = weight;
    f->combine = combine;
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
    f->owner = "rewards/one";
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
    rlhf_status st =
        rlhf__instance_create(f->sample, &f->services, f->owner, o, &from, &f->instance, err);
    json_decref(o);
    return st;
}

// Scores one response. Returns the status, and sets *out to the score.
static rlhf_status score(struct fixture *f, const char *response, float *out) {
    rlhf_str text = {response, strlen(response)};
    rlhf_reward_in in = {.size = sizeof in, .n = 1, .prompt = &text, .response = &text};
    rlhf_reward_out result = {.size = sizeof result, .seq = out};
    const struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    const rlhf_status st = f->sample->ops.reward.score(f->instance->self, &in, &result);
    rlhf__call_end(&call, RLHF_OK, NULL);
    return st;
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
    assert_string_equal(f->metric, "rewards/one/sample/calls");
    assert_float_equal(f->value, 1, 0);
    check_error(make(f, "{\"gain\": 11}", &err), RLHF_E_INVALID, &err,
                "test: reward.0.gain must be a number from -10 to 10, found 11");
    assert_null(f->instance);
}

static void keep_metric(void *ctx, const char *name, double value, double weight, int32_t combine) {
    (void)weight;
    (void)combine;
    snprintf(ctx, 100, "%s %g", name, value);
}

// There, the metric has the same name as in the run.
static void a_metric_can_be_sent_elsewhere(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    float r = 0;
    check_ok(make(f, NULL, &err), &err);
    char kept[100] = "";
    rlhf__instance_metrics_to(f->instance, keep_metric, kept);
    assert_int_equal(score(f, "four", &r), RLHF_OK);
    assert_string_equal(kept, "rewards/one/sample/calls 1");
    assert_string_equal(f->metric, "");
    rlhf__instance_metrics_to(f->instance, NULL, NULL);
    assert_int_equal(score(f, "four", &r), RLHF_OK);
    assert_string_equal(f->metric, "rewards/one/sample/calls");
}

// Reports a metric during a call, as a plugin does.
static void report(struct fixture *f, const char *name) {
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    f->metric[0] = '\0';
    rlhf_metric_last(f->instance->host, name, 1);
    rlhf__call_end(&call, RLHF_OK, NULL);
}

// Begin to collect the lines of the log.
static void log_begin(struct fixture *f, struct rlhf__log *log) {
    rlhf__log_init(log);
    log->out = tmpfile();
    assert_non_null(log->out);
    f->services.log = log;
}

// Returns the number of lines that contain `text`, and ends the log.
static int log_end(struct fixture *f, struct rlhf__log *log, const char *text) {
    char line[512];
    int lines = 0;
    rewind(log->out);
    while (fgets(line, sizeof line, log->out))
        lines += strstr(line, text) != NULL;
    f->services.log = NULL;
    fclose(log->out);
    rlhf__log_finish(log);
    return lines;
}

static void a_metric_with_a_wrong_name_is_left_out(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    static const char *const bad[] = {"", "my metric", "x\n", "caf\xc3\xa9", "a\"b", "a\\b"};
    char name[RLHF_METRIC_NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[RLHF_METRIC_NAME_MAX + 1] = '\0';
    log_begin(f, &log);
    check_ok(make(f, NULL, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        report(f, bad[i]);
        assert_string_equal(f->metric, "");
    }
    report(f, NULL);
    assert_string_equal(f->metric, "");
    report(f, name);
    assert_string_equal(f->metric, "");
    name[RLHF_METRIC_NAME_MAX] = '\0';
    report(f, name);
    assert_int_equal(strlen(f->metric), RLHF_METRIC_NAME_MAX + strlen("rewards/one/"));
    report(f, "aZ09_-./x");
    assert_string_equal(f->metric, "rewards/one/aZ09_-./x");
    assert_int_equal(
        log_end(f, &log, "sample, score(): the metric \"\" is left out: it has no name"), 1);
}

struct misplaced {
    const rlhf_host *host;
    rlhf_status status;
    int32_t reduces;
};

static void *on_thread(void *arg) {
    struct misplaced *m = arg;
    double sum = 1;
    if (m->reduces)
        m->status = m->host->reduce(m->host, &sum, 1);
    else
        rlhf_metric_last(m->host, "x", 1);
    return NULL;
}

static void misplace(struct misplaced *m) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, on_thread, m), 0);
    pthread_join(thread, NULL);
}

// A metric counts only if it is reported on the thread of a running call.
static void a_metric_outside_of_its_call_is_left_out(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    log_begin(f, &log);
    check_ok(make(f, NULL, &err), &err);
    f->metric[0] = '\0';
    rlhf_metric_last(f->instance->host, "late", 1);
    assert_string_equal(f->metric, "");
    assert_int_equal(log_end(f, &log,
                             "sample: the metric \"late\" is left out: it was reported after "
                             "create() had returned; metric() may be called only on the thread of "
                             "a running call"),
                     1);
    log_begin(f, &log);
    check_ok(make(f, NULL, &err), &err);
    struct misplaced m = {f->instance->host, RLHF_OK, 0};
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    misplace(&m);
    assert_int_equal(rlhf__call_end(&call, RLHF_OK, &err), RLHF_OK);
    assert_string_equal(f->metric, "");
    assert_int_equal(
        log_end(f, &log, "from another thread than the one that called score(); metric() may"), 1);
    report(f, "x"); // the other calls are not affected
    assert_string_equal(f->metric, "rewards/one/x");
}

// A call in which the algorithm calls reduce() although it must not fails, even if the algorithm
// ignores the status.
static void reduce_has_its_places(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    double sum = 1;
    f->owner = "";
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *h = f->instance->host;
    struct rlhf__call call = rlhf__call_begin(f->instance, "loss()");
    assert_int_equal(h->reduce(h, &sum, 1), RLHF_E_INVALID);
    check_error(rlhf__call_end(&call, RLHF_OK, &err), RLHF_E_INVALID, &err,
                "reward sample.so, loss(): it called reduce(), which is not allowed in loss()");
    call = rlhf__call_begin(f->instance, "minibatch_end()");
    assert_int_equal(h->reduce(h, &sum, 1), RLHF_OK);
    assert_int_equal(rlhf__call_end(&call, RLHF_OK, &err), RLHF_OK);
    struct misplaced m = {h, RLHF_OK, 1};
    misplace(&m);
    assert_int_equal(m.status, RLHF_E_INVALID);
    call = rlhf__call_begin(f->instance, "phase_end()");
    check_error(rlhf__call_end(&call, RLHF_OK, &err), RLHF_E_INVALID, &err,
                "reward sample.so, phase_end(): it called reduce() on a thread of its own or after "
                "a call had returned");
}

// The bytes after an array are marked during a call. A plugin that changes them is named.
static void a_write_past_an_array_is_named(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    float *x = rlhf__tail_alloc(3, sizeof *x);
    check_ok(make(f, NULL, &err), &err);
    for (int past = 0; past < 2; past++) {
        struct rlhf__tails tails = {.n = 0};
        struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
        rlhf__tails_mark(&tails, "out->token", NULL, 0);
        rlhf__tails_mark(&tails, "out->seq", x, 2 * sizeof *x); // a part of a longer array
        x[1] = 2;
        if (past) x[2 + (RLHF__TAIL - 1) / sizeof *x] = 0;
        const rlhf_status st = rlhf__call_wrote(&call, &tails, RLHF_OK, &err);
        assert_int_equal(st, past ? RLHF_E_INTERNAL : RLHF_OK);
        assert_float_equal(x[2], 0, 0); // restored
    }
    check_error(RLHF_E_INTERNAL, RLHF_E_INTERNAL, &err,
                "reward sample.so, score(): it wrote past the end of out->seq");
    free(x);
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
    check_ok(rlhf__instance_create(f->sample, &f->services, "kernels", NULL, &from, &kernels, &err),
             &err);
    struct rlhf__services with = f->services;
    with.kernels = kernels;
    check_ok(rlhf__instance_create(f->sample, &with, "models/x", NULL, &from, &f->instance, &err),
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
    rlhf__instance_destroy(f->instance);
    f->instance = NULL;
    rlhf__instance_destroy(kernels);
}

// Invalid reports are left out. The log reports this once.
static void reports_are_checked(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    static const struct {
        double weight;
        int32_t combine, kept;
    } cases[] = {{2, RLHF_COMBINE_MEAN, 1},       {0, RLHF_COMBINE_MEAN, 1},
                 {-1, RLHF_COMBINE_MEAN, 0},      {NAN, RLHF_COMBINE_SUM, 0},
                 {INFINITY, RLHF_COMBINE_MAX, 0}, {1, 0, 0},
                 {1, RLHF_COMBINE_MIN + 1, 0},    {1, RLHF_COMBINE_MIN, 1}};
    log_begin(f, &log);
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *h = f->instance->host;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->metric[0] = 0;
        const struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
        h->metric(h, "x", 7, cases[i].weight, cases[i].combine);
        rlhf__call_end(&call, RLHF_OK, NULL);
        assert_int_equal(f->metric[0] != 0, cases[i].kept);
        if (!cases[i].kept) continue;
        assert_int_equal(f->combine, cases[i].combine);
        assert_true(f->weight == cases[i].weight);
    }
    assert_int_equal(log_end(f, &log,
                             "sample, score(): the metric \"x\" is left out: its weight must be a "
                             "finite number of 0 or more"),
                     1);
}

// The parts are combined by the rules of enum rlhf_combine, in any order.
static void reports_combine(void **state) {
    (void)state;
    static const struct {
        int32_t combine, reserved;
        double value;
    } cases[] = {{RLHF_COMBINE_MEAN, 0, 2.5},
                 {RLHF_COMBINE_SUM, 0, 15},
                 {RLHF_COMBINE_LAST, 0, 4},
                 {RLHF_COMBINE_MAX, 0, 4},
                 {RLHF_COMBINE_MIN, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__combined flat = {0}, front = {0}, back = {0};
        assert_int_equal(rlhf__combine_add(&flat, 1, 3, cases[i].combine), 1);
        assert_int_equal(rlhf__combine_add(&flat, 4, 1, cases[i].combine), 1);
        assert_int_equal(rlhf__combine_add(&flat, 4, 2, cases[i].combine), 1);
        assert_int_equal(rlhf__combine_add(&flat, 9, 1, cases[i].combine % 5 + 1), 0);
        rlhf__combine_add(&front, 1, 3, cases[i].combine);
        rlhf__combine_add(&back, 4, 1, cases[i].combine);
        rlhf__combine_add(&back, 4, 2, cases[i].combine);
        assert_int_equal(rlhf__combine_merge(&front, &back), 1);
        assert_true(front.value == flat.value);
        assert_true(flat.value == cases[i].value);
    }
    struct rlhf__combined none = {0};
    rlhf__combine_add(&none, 3, 0, RLHF_COMBINE_MEAN);
    assert_int_equal(none.n, 0); // a mean without weight
    rlhf__combine_add(&none, 1.0 / 3, 49, RLHF_COMBINE_MEAN);
    assert_true(none.value == 1.0 / 3); // a single report keeps its bits
    struct rlhf__combined odd = {0};
    rlhf__combine_add(&odd, NAN, 1, RLHF_COMBINE_MAX);
    rlhf__combine_add(&odd, 1, 1, RLHF_COMBINE_MAX);
    assert_true(isnan(odd.value));
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

// A metric gets its owner's name as a prefix. If the host itself reports a metric of that name, the
// plugin's metric is left out, and the log reports this once.
static void metrics_have_owners(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    static const struct {
        const char *owner, *name, *kept; // kept "": left out
    } cases[] = {{"rewards/a", "objective/kl", "rewards/a/objective/kl"},
                 {"rewards/b", "objective/kl", "rewards/b/objective/kl"},
                 {"rewards/b", "mean", ""},
                 {"judge", "std", ""},
                 {"judge", "meanness", "judge/meanness"},
                 {"models/policy", "load", "models/policy/load"},
                 {"", "objective/kl", "objective/kl"},
                 {"", "objective/scores", ""},
                 {"", "lr", ""},
                 {"", "lr_factor", "lr_factor"},
                 {"", "rewards/a/x", ""},
                 {"", "time/mine", ""},
                 {"", "eval/accuracy", ""},
                 {"", "mean", "mean"}};
    log_begin(f, &log);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->owner = cases[i].owner;
        check_ok(make(f, NULL, &err), &err);
        report(f, cases[i].name);
        assert_string_equal(f->metric, cases[i].kept);
        report(f, cases[i].name);
    }
    // one per instance
    assert_int_equal(log_end(f, &log, "is left out: it is the host's own"), 7);
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
        T(what_a_plugin_says_goes_with_the_call),
        T(what_a_service_says_goes_with_the_call),
        T(what_kernels_say_goes_with_the_call),
        T(reports_are_checked),
        T(reports_combine),
        T(the_table_does_what_it_says),
        T(services_are_offered_once),
        T(metrics_have_owners),
        T(a_metric_can_be_sent_elsewhere),
        T(a_metric_with_a_wrong_name_is_left_out),
        T(a_metric_outside_of_its_call_is_left_out),
        T(reduce_has_its_places),
        T(a_write_past_an_array_is_named),
        T(log_lines_carry_the_plugin),
    };
    return cmocka_run_group_tests_name("plugin_services", tests, NULL, NULL);
}
