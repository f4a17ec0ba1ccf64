// test_on_call.c: what a plugin may report and write while one of its functions runs.
#include "plugin/one_instance.h"

#include "plugin/combine.h"
#include "plugin/metric_names.h"

#include <math.h>
#include <pthread.h>

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
                 {"", "objective/scores_error", ""},
                 {"", "objective/scores_noise", ""},
                 {"", "mean", "mean"},
                 {"", "hosts", "hosts"},
                 {"", "mine/host_x", "mine/host_x"}};
    log_begin(f, &log);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->owner = cases[i].owner;
        check_ok(make(f, NULL, &err), &err);
        report(f, cases[i].name);
        assert_string_equal(f->metric, cases[i].kept);
        report(f, cases[i].name);
    }
    // one per instance
    assert_int_equal(log_end(f, &log, "is left out: it is the host's own"), 9);
}

// create() and the like belong to no phase, so a metric from there would be lost.
static void metrics_come_from_a_phase(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    static const char *const outside[] = {
        "create()", "destroy()",    "plan()", "check_row()", "save()",  "load()",    "close()",
        "tools()",  "why_unused()", "open()", "info()",      "param()", "describe()"};
    static const char *const inside[] = {"score()", "loss()", "advantages()", "phase_end()"};
    for (size_t i = 0; i < CHECK_COUNT(outside); i++) {
        char want[128];
        log_begin(f, &log);
        check_ok(make(f, NULL, &err), &err);
        struct rlhf__call call = rlhf__call_begin(f->instance, outside[i]);
        f->metric[0] = '\0';
        rlhf_metric_last(f->instance->host, "early", 1);
        rlhf__call_end(&call, RLHF_OK, NULL);
        assert_string_equal(f->metric, "");
        snprintf(want, sizeof want, "sample, %s: the metric \"early\" is left out: it was not",
                 outside[i]);
        assert_int_equal(log_end(f, &log, want), 1);
    }
    for (size_t i = 0; i < 4; i++) {
        struct rlhf__call call = rlhf__call_begin(f->instance, inside[i]);
        f->metric[0] = '\0';
        rlhf_metric_last(f->instance->host, "in_time", 1);
        rlhf__call_end(&call, RLHF_OK, NULL);
        assert_string_not_equal(f->metric, "");
    }
}

// fail() always gives a negative status. Its message is dropped if the call succeeds.
static void fail_is_negative(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *host = f->instance->host;
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    assert_int_equal((host->fail)(host, 3, "three"), RLHF_E_INTERNAL);
    assert_int_equal((host->fail)(host, RLHF_OK, "none"), RLHF_E_INTERNAL);
    assert_int_equal(rlhf__call_end(&call, RLHF_E_INTERNAL, &err), RLHF_E_INTERNAL);
    assert_non_null(strstr(err.text, "none"));
    call = rlhf__call_begin(f->instance, "score()");
    (host->fail)(host, RLHF_E_IO, "an attempt");
    assert_int_equal(rlhf__call_end(&call, RLHF_OK, &err), RLHF_OK);
}

// Later hosts may add metrics, but only under names that plugins cannot use.
static void names_for_later_hosts_are_left_out(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    static const char *const owners[] = {"", "rewards/a", "judge", "models/policy", "environment"};
    static const char *const names[] = {"host/queue", "host_queue"};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        for (size_t k = 0; k < 2; k++) {
            struct rlhf__log log;
            f->owner = owners[i];
            log_begin(f, &log);
            check_ok(make(f, NULL, &err), &err);
            report(f, names[k]);
            assert_string_equal(f->metric, "");
            assert_int_equal(log_end(f, &log,
                                     "is left out: a name that begins with \"host_\" or "
                                     "\"host/\" is the host's"),
                             1);
        }
}

static void log_levels_are_known(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    static const int32_t wrong[] = {-1, RLHF_LOG_ERROR + 1, INT32_MIN};
    check_ok(make(f, NULL, &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rlhf__log log;
        char want[128];
        log_begin(f, &log);
        f->instance->host->log(f->instance->host, wrong[i], "a line");
        snprintf(want, sizeof want,
                 "warning: sample: a line (its level is %d; it must be from 0 to 3", wrong[i]);
        assert_int_equal(log_end(f, &log, want), 1);
    }
    struct rlhf__log log;
    log_begin(f, &log);
    f->instance->host->log(f->instance->host, RLHF_LOG_ERROR, "a line");
    assert_int_equal(log_end(f, &log, "its level"), 0);
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

static void a_metric_with_a_wrong_name_is_left_out(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__log log;
    static const char *const bad[] = {"",     "my metric", "x\n",   "caf\xc3\xa9", "a\"b",
                                      "a\\b", "/a",        "a/",    "a//b",        "/",
                                      ".",    "..",        "a/./b", "../a"};
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
    for (size_t i = 6; i < 10; i++)
        assert_string_equal(rlhf__metric_name_fault(bad[i]),
                            "a part of its name before or after a '/' is empty");
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
                 {INFINITY, RLHF_COMBINE_SUM, 0}, {INFINITY, RLHF_COMBINE_MEAN, 0},
                 {INFINITY, RLHF_COMBINE_MAX, 1}, {1, 0, 0},
                 {-1, RLHF_COMBINE_MIN, 1},       {0, RLHF_COMBINE_LAST, 1},
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
    for (int32_t combine = RLHF_COMBINE_MAX; combine <= RLHF_COMBINE_MIN; combine++) {
        struct rlhf__combined odd = {0};
        rlhf__combine_add(&odd, NAN, 1, combine);
        rlhf__combine_add(&odd, 1, 1, combine);
        assert_true(isnan(odd.value));
    }
}

// Two processes, of which the other one has the same sums.
static rlhf_status add_twice(void *ctx, double *sums, uint32_t n, struct rlhf__error *err) {
    (void)ctx;
    (void)err;
    for (uint32_t i = 0; i < n; i++)
        sums[i] *= 2;
    return RLHF_OK;
}

static void reduce_is_for_algorithms(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    double sum = 1;
    char said[128];
    f->services.reduce = add_twice;
    check_ok(make(f, NULL, &err), &err);
    const rlhf_host *h = f->instance->host;
    struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    assert_int_equal(h->reduce(h, &sum, 1), RLHF_E_UNSUPPORTED);
    assert_true(sum == 1);
    assert_int_equal(rlhf__instance_said(f->instance, said, sizeof said), RLHF_E_UNSUPPORTED);
    assert_string_equal(said, "it called reduce(), which is only for algorithms; the sums were not "
                              "changed");
    check_error(rlhf__call_end(&call, RLHF_E_UNSUPPORTED, &err), RLHF_E_UNSUPPORTED, &err,
                "reward sample.so, score(): it called reduce(), which is only for algorithms");
}

// A call in which the algorithm calls reduce() although it must not fails, even if the algorithm
// ignores the status.
static void reduce_has_its_places(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    double sum = 1;
    char path[1024];
    f->owner = "";
    f->services.reduce = add_twice;
    check_ok(rlhf__plugin_open(f->plugins, module_path("algo.so", path), RLHF_KIND_ALGO,
                               RLHF__NAME_TYPED, "test", &f->sample, &err),
             &err);
    check_ok(make(f, "{\"rate\": 0.5}", &err), &err);
    const rlhf_host *h = f->instance->host;
    struct rlhf__call call = rlhf__call_begin(f->instance, "loss()");
    assert_int_equal(h->reduce(h, &sum, 1), RLHF_E_INVALID);
    check_error(rlhf__call_end(&call, RLHF_OK, &err), RLHF_E_INVALID, &err,
                "algorithm algo.so, loss(): it called reduce(), which is not allowed in loss()");
    call = rlhf__call_begin(f->instance, "minibatch_end()");
    assert_int_equal(h->reduce(h, &sum, 1), RLHF_OK);
    assert_true(sum == 2);
    assert_int_equal(rlhf__call_end(&call, RLHF_OK, &err), RLHF_OK);
    struct misplaced m = {h, RLHF_OK, 1};
    misplace(&m);
    assert_int_equal(m.status, RLHF_E_INVALID);
    call = rlhf__call_begin(f->instance, "phase_end()");
    check_error(
        rlhf__call_end(&call, RLHF_OK, &err), RLHF_E_INVALID, &err,
        "algorithm algo.so, phase_end(): it called reduce() on a thread of its own or after "
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

// A struct that the plugin gets as a pointer to const is restored, and a plugin that changes it is
// named.
static void a_change_of_a_lent_struct_is_named(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(make(f, NULL, &err), &err);
    for (size_t at = 0; at <= sizeof(rlhf_row_in); at++) {
        rlhf_row_in row = {.index = 3}, want;
        char text[256];
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_row_in, &row, RLHF_ABI_MINOR, &tails);
        assert_int_equal(row.size, sizeof row);
        want = row;
        struct rlhf__call call = rlhf__call_begin(f->instance, "check_row()");
        if (at < sizeof row) ((unsigned char *)&row)[at] ^= 1;
        const rlhf_status st = rlhf__call_wrote(&call, &tails, RLHF_OK, &err);
        assert_memory_equal(&row, &want, sizeof row);
        if (at == sizeof row) assert_int_equal(st, RLHF_OK);
        if (at == sizeof row) break;
        snprintf(text, sizeof text, "it changes byte %zu of the host's rlhf_row_in; a plugin must",
                 at / 4 * 4);
        assert_int_equal(st, RLHF_E_INTERNAL);
        assert_non_null(strstr(err.text, text));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(metrics_have_owners),
        T(a_change_of_a_lent_struct_is_named),
        T(metrics_come_from_a_phase),
        T(fail_is_negative),
        T(names_for_later_hosts_are_left_out),
        T(log_levels_are_known),
        T(a_metric_can_be_sent_elsewhere),
        T(a_metric_with_a_wrong_name_is_left_out),
        T(a_metric_outside_of_its_call_is_left_out),
        T(reports_are_checked),
        T(reports_combine),
        T(reduce_is_for_algorithms),
        T(reduce_has_its_places),
        T(a_write_past_an_array_is_named),
    };
    return cmocka_run_group_tests_name("plugin_on_call", tests, NULL, NULL);
}
