// test_sinks.c: a sink gets all metrics of a phase, including values that are not finite. After a
// failure it gets no further phases.
#include "support/scratch.h"

#include "report/sinks.h"

#include <math.h>
#include <string.h>

// The latest call.
static struct {
    int calls, ends, fails;
    int64_t phase;
    uint32_t n, samples;
    double value[4];
    char name[4][16], text[16];
    float score;
} seen;

static rlhf_status begin(void *self, const rlhf_sink_run *run) {
    (void)self;
    seen.phase = run->phase;
    return RLHF_OK;
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    (void)self;
    seen.calls++;
    seen.phase = in->phase;
    seen.n = in->n_metrics;
    seen.samples = in->n_samples;
    for (uint32_t i = 0; i < in->n_metrics && i < 4; i++) {
        seen.value[i] = in->value[i];
        snprintf(seen.name[i], sizeof seen.name[i], "%s", in->name[i]);
    }
    if (in->n_samples) {
        snprintf(seen.text, sizeof seen.text, "%.*s", (int)in->response[0].len,
                 in->response[0].ptr);
        seen.score = in->score[0];
    }
    return seen.fails ? 7 : RLHF_OK; // 7: not a valid status
}

static rlhf_status end(void *self, int32_t how, const char *why) {
    (void)self;
    (void)how;
    (void)why;
    seen.ends++;
    return RLHF_OK;
}

static struct rlhf__plugin plugin = {
    .desc = {.size = sizeof(rlhf_plugin), .kind = RLHF_KIND_SINK, .id = "org.test", .version = "1"},
    .ops = {.sink = {.size = sizeof(rlhf_sink_ops), .begin = begin, .phase = phase, .end = end}},
    .table = {.stride = sizeof(rlhf_opt)},
    .file = (char[]){"seen.so"},
    .stem = (char[]){"seen"}};

static void a_phase_arrives_whole(void **state) {
    struct scratch *s = *state;
    const struct rlhf__log_config log = {0};
    const struct rlhf__plugin *const plugins[] = {&plugin};
    struct rlhf__plugin_config entry = {0};
    const struct rlhf__config config = {.sink = &entry, .n_sink = 1};
    struct rlhf__services services = {.phase = -1};
    struct rlhf__error err = {0};
    struct rlhf__metrics *m;
    struct rlhf__sinks *sinks;
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__metrics_open(dir, &log, -1, NULL, &m, &err), &err);
    check_ok(rlhf__sinks_open(&config, plugins, &services, NULL, &sinks, &err), &err);
    const rlhf_sink_run run = {
        .size = sizeof run, .phase = 3, .dir = "/", .name = "", .config = ""};
    rlhf__sinks_begin(sinks, &run, 0);
    assert_int_equal(seen.phase, 3);
    rlhf__metrics_set(m, "c", 0.1);
    rlhf__metrics_set(m, "a", NAN);
    rlhf__metrics_set(m, "b", -INFINITY);
    const struct rlhf__sample sample = {
        .prompt = {"p", 1}, .response = {"r\0s", 3}, .reward = 0.25, .ref_logp = NAN, .logp = NAN};
    rlhf__sinks_take(sinks, m);
    check_ok(rlhf__metrics_flush(m, 4, &err), &err);
    rlhf__sinks_phase(sinks, 4, 9, &sample, 1);
    assert_int_equal(seen.phase, 4);
    assert_int_equal(seen.n, 3);
    assert_string_equal(seen.name[0], "a");
    assert_string_equal(seen.name[2], "c");
    assert_true(isnan(seen.value[0]) && seen.value[1] == -INFINITY && seen.value[2] == 0.1);
    assert_int_equal(seen.samples, 1);
    assert_true(seen.score == 0.25f);
    // The phase lacks metrics. After a failure, only end() is called.
    rlhf__sinks_take(sinks, m);
    seen.fails = 1;
    rlhf__sinks_phase(sinks, 5, 9, NULL, 0);
    assert_int_equal(seen.n, 0);
    assert_int_equal(seen.samples, 0);
    rlhf__sinks_phase(sinks, 6, 9, NULL, 0);
    assert_int_equal(seen.calls, 2);
    rlhf__sinks_end(sinks, RLHF_RUN_DONE, "");
    assert_int_equal(seen.ends, 1);
    rlhf__sinks_close(sinks);
    rlhf__metrics_close(m);
    rlhf__folder_close(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_phase_arrives_whole, scratch_setup, scratch_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
