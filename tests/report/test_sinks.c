// test_sinks.c: a sink gets all that the run's files have of a phase, from the phase on that it
// asks for. After a failure it gets no further phases.
#include "support/scratch.h"

#include "base/file.h"
#include "report/sinks.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The latest calls.
static struct {
    int calls, ends, fails, slow, reserved;
    int64_t begun, from, phase;
    uint32_t n, samples, size;
    double value[4], elapsed;
    char name[4][16], text[16], own[256], told[256];
    double score;
} seen;

static rlhf_status begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    (void)self;
    seen.begun = run->phases_done;
    answer->from_phase = seen.from;
    answer->size += seen.size;
    answer->reserved = (uint32_t)seen.reserved;
    snprintf(seen.own, sizeof seen.own, "%s", run->own_dir);
    return RLHF_OK;
}

static void put(const char *format, const char *text, long long n) {
    const size_t at = strlen(seen.told);
    snprintf(seen.told + at, sizeof seen.told - at, format, text, n);
}

static rlhf_status phase(void *self, const rlhf_sink_phase *in) {
    (void)self;
    seen.calls++;
    seen.phase = in->phases_done;
    seen.n = in->n_metrics;
    seen.samples = in->n_samples;
    seen.elapsed = in->elapsed;
    seen.told[0] = '\0';
    for (uint32_t i = 0; i < in->n_metrics && i < 4; i++) {
        seen.value[i] = in->value[i];
        snprintf(seen.name[i], sizeof seen.name[i], "%s", in->name[i]);
    }
    if (in->n_samples) {
        snprintf(seen.text, sizeof seen.text, "%.*s", (int)in->response[0].len,
                 in->response[0].ptr);
        seen.score = in->score[0];
    }
    for (uint32_t i = 0; i < in->n_samples; i++)
        put("%s%lld ", isnan(in->ref_logp[i]) ? "held out " : "", in->held_out[i]);
    for (uint32_t i = 0; i < in->n_spreads; i++)
        put(in->spread[i]->count ? "%s %lld " : "%s %lld q ", in->spread[i]->name,
            (long long)in->spread[i]->numbers);
    for (uint32_t i = 0; i < in->n_warnings; i++)
        put(in->warning[i], in->warning_id[i], 0);
    if (in->checkpoint) put(" %s %lld", in->checkpoint, in->flags);
    if (seen.slow) usleep(1100000);
    return seen.fails ? 7 : RLHF_OK; // 7: not a valid status
}

static rlhf_status end(void *self, const rlhf_sink_end *in) {
    (void)self;
    seen.ends += 1 + in->how;
    return RLHF_OK;
}

static struct rlhf__plugin plugin = {
    .desc = {.size = sizeof(rlhf_plugin), .kind = RLHF_KIND_SINK, .id = "org.test", .version = "1"},
    .ops = {.sink = {.size = sizeof(rlhf_sink_ops), .begin = begin, .phase = phase, .end = end}},
    .table = {.stride = sizeof(rlhf_opt)},
    .file = (char[]){"seen.so"},
    .stem = (char[]){"seen"}};

static struct {
    struct rlhf__services services;
    struct rlhf__log log;
    struct rlhf__folder *dir;
    struct rlhf__sinks *sinks;
    FILE *said;
} run;

// Open a run of one sink, whose files have these lines.
static void open_run(struct scratch *s, int64_t done) {
    static const struct rlhf__plugin *const plugins[] = {&plugin, NULL};
    struct rlhf__plugin_config entry = {0};
    const struct rlhf__config config = {.sink = &entry, .n_sink = 1};
    struct rlhf__error err = {0};
    run.services = (struct rlhf__services){.phase = -1};
    run.said = tmpfile();
    rlhf__log_init(&run.log);
    run.log.out = run.said;
    run.dir = scratch_folder(s->dir);
    check_ok(rlhf__sinks_open(&config, plugins, &run.services, &run.log, &run.sinks, &err), &err);
    const rlhf_sink_run told = {.size = sizeof told,
                                .resumed = done > 0,
                                .phases_done = done,
                                .dir = s->dir,
                                .name = "",
                                .config = ""};
    rlhf__sinks_begin(run.sinks, run.dir, &told);
    assert_int_equal(seen.begun, done);
}

// Asserts that the log has the text, or nothing if `text` is NULL.
static void assert_said(const char *text) {
    char all[1024] = "";
    rewind(run.said);
    all[fread(all, 1, sizeof all - 1, run.said)] = '\0';
    if (text ? !strstr(all, text) : all[0]) fail_msg("the log is: %s", all);
}

static void close_run(void) {
    rlhf__sinks_close(run.sinks);
    rlhf__folder_close(run.dir);
    rlhf__log_finish(&run.log);
    fclose(run.said);
    memset(&seen, 0, sizeof seen);
}

static const char metrics[] = "{\"phase\": 0, \"a\": 0.5}\n"
                              "{\"phase\": 1, \"a\": null, \"c\": 0.1, \"time/training\": 2.5}\n"
                              "{\"phase\": 2, \"b\": -3, \"time/training\": 4}\n";
static const char samples[] =
    "{\"phase\": 0, \"eval\": true, \"prompt\": \"early\", \"response\": \"\", \"reward\": 1}\n"
    "{\"phase\": 1, \"prompt\": \"p\", \"response\": \"r\\u0000s\", \"reward\": 0.25, "
    "\"ref_logp\": -2}\n"
    "{\"phase\": 1, \"eval\": true, \"prompt\": \"p\", \"response\": \"q\", \"reward\": null, "
    "\"ref_logp\": null}\n"
    "{\"phase\": 1, \"label\": null, \"prompt\": \"\", \"response\": \"a row of a file\"}\n";
static const char spread[] =
    "{\"phase\": 1, \"reward\": {\"m\": 0.7, \"n\": [[0, 37], [1, 91]]}, \"kl\": null, "
    "\"length\": {\"m\": 4, \"s\": 1, \"c\": 64, \"q\": [1, 2, 9]}}\n";
static const char events[] =
    "{\"time\": 1.5, \"phase\": 0, \"event\": \"start\"}\n"
    "{\"time\": 2.5, \"phase\": 1, \"event\": \"warning\", \"finding\": \"flat\", \"text\": \"it "
    "is "
    "%s\"}\n"
    "{\"time\": 3.5, \"phase\": 1, \"event\": \"checkpoint\", \"path\": \"checkpoints/000001\"}\n";

static void write_files(struct scratch *s) {
    scratch_bytes(s, "metrics.jsonl", metrics, sizeof metrics - 1);
    scratch_bytes(s, "samples.jsonl", samples, sizeof samples - 1);
    scratch_bytes(s, "spread.jsonl", spread, sizeof spread - 1);
    scratch_bytes(s, "events.jsonl", events, sizeof events - 1);
}

static void a_phase_arrives_whole(void **state) {
    struct scratch *s = *state;
    char own[300];
    write_files(s);
    open_run(s, 0);
    snprintf(own, sizeof own, "%s/sinks/seen", s->dir);
    assert_string_equal(seen.own, own);
    assert_true(rlhf__is_dir(own));
    rlhf__sinks_report(run.sinks, 0, NULL, 0);
    assert_true(seen.calls == 1 && seen.phase == 0 && seen.value[0] == 0.5 && seen.samples == 1);
    rlhf__sinks_report(run.sinks, 1, "checkpoints/000001", 1);
    assert_int_equal(seen.phase, 1);
    assert_int_equal(seen.n, 3);
    assert_string_equal(seen.name[0], "a");
    assert_string_equal(seen.name[2], "time/training");
    assert_true(isnan(seen.value[0]) && seen.value[1] == 0.1 && seen.elapsed == 2.5);
    assert_int_equal(seen.samples, 2);
    assert_true(seen.score == 0.25);
    assert_string_equal(seen.told, "0 held out 1 reward 128 length 64 q it is flat "
                                   "checkpoints/000001 1");
    rlhf__sinks_report(run.sinks, 1, NULL, 0); // it has this phase
    assert_int_equal(seen.calls, 2);
    rlhf__sinks_report(run.sinks, 2, NULL, 0);
    assert_true(seen.n == 2 && seen.samples == 0 && seen.elapsed == 6.5);
    assert_string_equal(seen.told, "");
    // Lines that come later are read, too.
    FILE *f = fopen(scratch_path(s, "metrics.jsonl"), "ae");
    fputs("{\"phase\": 3, \"a\": 7}\n", f);
    fclose(f);
    seen.fails = 1;
    rlhf__sinks_report(run.sinks, 3, NULL, 0);
    assert_true(seen.phase == 3 && seen.value[0] == 7);
    assert_said("sink.0 failed: sink seen.so, phase(), phase 3: ");
    // After a failure, only end() is called.
    rlhf__sinks_report(run.sinks, 4, NULL, 0);
    assert_int_equal(seen.calls, 4);
    rlhf__sinks_end(run.sinks, &(rlhf_sink_end){.how = RLHF_RUN_STOPPED});
    assert_int_equal(seen.ends, 1 + RLHF_RUN_STOPPED);
    close_run();
}

// A resumed run reports the phases that the sink asks for, also those of earlier processes.
static void phases_come_again(void **state) {
    struct scratch *s = *state;
    static const struct {
        int64_t from, calls;
    } cases[] = {{0, 3}, {1, 2}, {2, 1}, {3, 0}, {40, 0}};
    write_files(s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen.from = cases[i].from;
        open_run(s, 2);
        rlhf__sinks_report(run.sinks, 2, NULL, 0);
        assert_int_equal(seen.calls, cases[i].calls);
        assert_true(seen.calls == 0 || seen.phase == 2);
        assert_true(seen.calls == 0 || seen.elapsed == 6.5); // with the phases that were left out
        assert_said(NULL);
        close_run();
    }
}

// A phase that is reported again has its checkpoint, and whether that was the best one. After a
// crash before the event "checkpoint", both are in the event "resume".
static void the_best_phase_comes_again(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *events, *told;
    } cases[] = {
        {"{\"phase\": 2, \"event\": \"checkpoint\", \"path\": \"checkpoints/000002\", \"best\": "
         "true}\n",
         " checkpoints/000002 1"},
        {"{\"phase\": 2, \"event\": \"checkpoint\", \"path\": \"checkpoints/000002\"}\n",
         " checkpoints/000002 0"},
        {"{\"phase\": 2, \"event\": \"resume\", \"checkpoint\": \"checkpoints/000002\", \"best\": "
         "true}\n",
         " checkpoints/000002 1"},
        {"{\"phase\": 2, \"event\": \"end\", \"status\": \"failed\"}\n", ""},
    };
    write_files(s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_bytes(s, "events.jsonl", cases[i].events, strlen(cases[i].events));
        seen.from = 2;
        open_run(s, 3);
        rlhf__sinks_report(run.sinks, 3, NULL, 0);
        assert_true(seen.calls == 1 && seen.phase == 2);
        assert_string_equal(seen.told, cases[i].told);
        close_run();
    }
}

static void an_answer_is_checked(void **state) {
    struct scratch *s = *state;
    write_files(s);
    seen.from = -1;
    open_run(s, 0);
    assert_said("seen.so, begin(): it answers with the from_phase -1; it must be 0 or more; the "
                "run goes on "
                "without it");
    rlhf__sinks_report(run.sinks, 2, NULL, 0);
    assert_int_equal(seen.calls, 0);
    close_run();
    seen.size = 8;
    open_run(s, 0);
    assert_said("it changes the size of the host's rlhf_sink_answer from 16 to 24");
    close_run();
    seen.reserved = 3;
    open_run(s, 0);
    assert_said("it sets `reserved` of the host's rlhf_sink_answer to 3; it must be 0");
    close_run();
}

static void a_slow_sink_is_named(void **state) {
    struct scratch *s = *state;
    write_files(s);
    scratch_bytes(s, "metrics.jsonl", metrics, 23);
    seen.slow = 1;
    open_run(s, 0);
    rlhf__sinks_report(run.sinks, 0, NULL, 0);
    assert_said("sink.0 (seen.so) is slow: the run waited 1 s for its phase()");
    close_run();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_phase_arrives_whole, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(phases_come_again, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(the_best_phase_comes_again, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(an_answer_is_checked, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_slow_sink_is_named, scratch_setup, scratch_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
