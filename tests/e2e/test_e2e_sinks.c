// test_e2e_sinks.c: sinks get the numbers that are in the files, and cannot harm a run.
#include "sink_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A sink in a worker.
#define APART(options) "--sink \"$RLHF_TEST_PLUGINS/recording_sink.so:" options "\" "

// Asserts the names of the calls, e.g. "create begin phase phase end".
static void assert_calls(const json_t *calls, const char *expected) {
    char all[512] = "";
    size_t i;
    json_t *c;
    json_array_foreach(calls, i, c) {
        const size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", n ? " " : "", text_of(c, "call"));
    }
    assert_string_equal(all, expected);
}

// Asserts that the calls of phase() got the rows of metrics.jsonl and the samples of samples.jsonl.
static void assert_files(const struct e2e *t, const json_t *calls, const char *run) {
    char path[64];
    size_t i, k, phases = 0, samples = 0;
    json_t *c, *one, *metrics = e2e_metrics(t, run);
    snprintf(path, sizeof path, "%s/samples.jsonl", run);
    json_t *lines = rows_of(t, path);
    json_array_foreach(calls, i, c) {
        if (strcmp(text_of(c, "call"), "phase") != 0) continue;
        json_t *row = json_array_get(metrics, phases++);
        assert_true(number_of(c, "phase") == number_of(row, "phase"));
        assert_metrics(json_object_get(c, "metrics"), row, 1);
        json_array_foreach(json_object_get(c, "samples"), k, one) {
            const json_t *line = json_array_get(lines, samples++);
            assert_true(number_of(line, "phase") == number_of(c, "phase"));
            assert_string_equal(json_string_value(json_array_get(one, 0)), text_of(line, "prompt"));
            assert_string_equal(json_string_value(json_array_get(one, 1)),
                                text_of(line, "response"));
            assert_true(json_number_value(json_array_get(one, 2)) == number_of(line, "reward"));
            assert_int_equal(json_is_true(json_array_get(one, 3)),
                             json_is_true(json_object_get(line, "eval")));
        }
    }
    assert_int_equal(phases, json_array_size(metrics));
    assert_int_equal(samples, json_array_size(lines));
    assert_true(samples > 0);
    json_decref(metrics);
    json_decref(lines);
}

// There are held-out prompts, so the metrics have a row before the first phase. A NaN reward gives
// a NaN metric.
static void a_sink_is_told_what_the_files_have(void **state) {
    struct e2e *t = *state;
    char path[300];
    assert_int_equal(e2e_run(t,
                             PPO SINK " --set data.eval_path=prompts.txt --set data.eval_limit=2 "
                                      "--set data.eval_every=2 --phases 3 --out r"),
                     0);
    json_t *calls = rows_of(t, "calls.jsonl");
    assert_calls(calls, "create begin phase phase phase phase end");
    assert_files(t, calls, "r");
    const json_t *begin = json_array_get(calls, 1), *end = json_array_get(calls, 6);
    assert_true(number_of(begin, "resumed") == 0 && number_of(begin, "phase") == 0);
    assert_true(number_of(begin, "phases") == 3);
    snprintf(path, sizeof path, "%s/r", t->dir);
    assert_string_equal(text_of(begin, "dir"), path);
    assert_string_equal(text_of(begin, "name"), "r");
    json_t *stored = rows_of(t, "calls.jsonl"), *config = json_object_get(begin, "config");
    assert_string_equal(text_of(json_object_get(config, "algo"), "plugin"), "ppo.so");
    json_decref(stored);
    assert_true(number_of(end, "how") == 0 && number_of(end, "phase") == 3);
    assert_string_equal(text_of(end, "why"), "");
    e2e_says(t, text_of(end, "verdict")); // among the closing lines
    assert_string_equal(text_of(end, "last"), "checkpoints/000003");
    assert_true(json_is_null(json_object_get(end, "best")));
    double elapsed = -1;
    for (size_t i = 2; i < 6; i++) {
        const json_t *c = json_array_get(calls, i);
        assert_true(number_of(c, "phase") == (double)(i - 2));
        assert_true(number_of(c, "elapsed") > elapsed);
        elapsed = number_of(c, "elapsed");
        assert_int_equal(json_array_size(json_object_get(c, "spread")), i == 2 ? 0 : 4);
    }
    json_decref(calls);
    // The run is the same as without the sink, and the sink's own metric does not appear in it.
    assert_int_equal(e2e_run(t, PPO "--set data.eval_path=prompts.txt --set data.eval_limit=2 "
                                    "--set data.eval_every=2 --phases 3 --out without"),
                     0);
    e2e_same_tree(t, "r/checkpoints/latest/", "without/checkpoints/latest/");
    json_t *a = e2e_metrics(t, "r"), *b = e2e_metrics(t, "without");
    for (size_t i = 0; i < 4; i++) {
        json_t *row = json_array_get(a, i);
        json_object_del(row, "phase");
        assert_metrics(row, json_array_get(b, i), 0);
    }
    json_decref(a);
    json_decref(b);
    assert_int_equal(e2e_shell(t, "grep -q '\"sinks\"' r/manifest.json && grep -q "
                                  "test.recording_sink r/manifest.json && ! grep -q '\"sink' "
                                  "without/manifest.json without/config.json"),
                     0);
}

// The resumed run repeats the phases after the last checkpoint. The sink, which asks for the phases
// from 2 on, gets the phase of the checkpoint a second time, from the files, and then the repeated
// phases, with the same numbers.
static void a_resumed_run_repeats_phases(void **state) {
    struct e2e *t = *state;
    static const char run[] =
        PPO SINK_WITH("from=2") "--set checkpoint.every=2 --set checkpoint.keep=0 --phases 4 "
                                "--set checkpoint.best=objective/scores --out r ";
    assert_int_equal(e2e_run(t, "%s --set run.stop_after=3", run), 0);
    // The files are as after a crash: the newest checkpoint is that of phase 2.
    assert_int_equal(e2e_shell(t, "rm -r r/checkpoints/000003 && ln -sfn 000002 "
                                  "r/checkpoints/latest && sed -i 's|\"time/training\": "
                                  "[^,]*|\"time/training\": 1000|' r/metrics.jsonl"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run"), 0);
    json_t *calls = rows_of(t, "calls.jsonl");
    assert_calls(calls, "create begin phase phase end create begin phase phase phase end");
    const json_t *stop = json_array_get(calls, 4), *begin = json_array_get(calls, 6);
    assert_true(number_of(stop, "how") == 1);
    assert_string_equal(text_of(stop, "why"), "run.stop_after is 3");
    assert_true(number_of(begin, "resumed") == 1 && number_of(begin, "phase") == 2);
    assert_true(number_of(begin, "phases") == 4);
    for (size_t i = 0; i < 2; i++) {
        json_t *first = json_array_get(calls, 2 + i), *again = json_array_get(calls, 7 + i);
        assert_true(number_of(again, "phase") == (double)(2 + i));
        assert_metrics(json_object_get(again, "metrics"), json_object_get(first, "metrics"), 0);
        json_object_del(first, "metrics");
        json_object_del(again, "metrics");
        // The elapsed time includes the seconds of all phases.
        assert_true(number_of(again, "elapsed") >= 2000 && number_of(again, "elapsed") < 2900);
        json_object_del(first, "elapsed");
        json_object_del(again, "elapsed");
        if (i ==
            1) { // the run stopped after phase 3, with a checkpoint and samples; now it goes on
            json_object_del(first, "samples");
            json_object_del(again, "samples");
            assert_string_equal(text_of(first, "checkpoint"), "checkpoints/000003");
            assert_true(json_is_null(json_object_get(again, "checkpoint")));
            json_object_del(first, "checkpoint");
            json_object_del(again, "checkpoint");
            json_object_del(first, "best");
            json_object_del(again, "best");
        }
        char *a = json_dumps(first, 0), *b = json_dumps(again, 0);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    // The checkpoint of phase 2 is the first that can be the best.
    assert_string_equal(text_of(json_array_get(calls, 2), "checkpoint"), "checkpoints/000002");
    assert_true(number_of(json_array_get(calls, 2), "best") == 1);
    const json_t *end = json_array_get(calls, 10);
    assert_string_equal(text_of(end, "last"), "checkpoints/000004");
    assert_non_null(strstr(text_of(end, "best"), "checkpoints/00000"));
    json_decref(calls);
}

// A sink in a worker gets the same calls as one in the host's process, and writes its own
// directory.
static void a_sink_runs_in_a_worker(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t,
                PPO APART("own=true") SINK_WITH(
                    "own=true,at=2") "--set data.eval_path=prompts.txt --set data.eval_limit=2 "
                                     "--set data.eval_every=2 --set checkpoint.every=2 "
                                     "--set checkpoint.best=objective/scores --phases 3 --out r"),
        0);
    e2e_says(t, "recording_sink: runs in a worker process: ");
    e2e_says(t, "writing to files only in its own directory");
    assert_int_equal(count(t->out, "a worker process"), 1);
    assert_int_equal(e2e_shell(t, "sed 's/recording_sink-2/recording_sink/' "
                                  "r/sinks/recording_sink-2/calls.jsonl >two; "
                                  "cmp r/sinks/recording_sink/calls.jsonl two"),
                     0);
    json_t *calls = rows_of(t, "r/sinks/recording_sink/calls.jsonl");
    assert_calls(calls, "begin phase phase phase phase end");
    json_decref(calls);
    // After a resume it keeps its file. It cannot write elsewhere, which ends its worker.
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=4"), 0);
    calls = rows_of(t, "r/sinks/recording_sink/calls.jsonl");
    assert_int_equal(json_array_size(calls), 13);
    json_decref(calls);
    assert_int_equal(e2e_run(t, PPO APART("own=true,file=../x.jsonl") "--phases 1 --out s"), 0);
    e2e_says(t, "warning: sink.0 failed: sink recording_sink.so, begin(): its worker was ended by "
                "signal 6 (Aborted); the run goes on without it");
    assert_int_equal(e2e_exists(t, "s/sinks/x.jsonl"), 0);
}

// A sink crashes after the phase's checkpoint. In a worker, the run goes on. In the host's process,
// the run can be resumed, and the sink gets this phase again.
static void a_crash_loses_no_phase(void **state) {
    struct e2e *t = *state;
    static const char run[] = PPO "--set checkpoint.every=1 --phases 3 ";
    assert_int_equal(e2e_run(t, "%s" APART("own=true,fail=crash,at=2") "--out apart", run), 0);
    e2e_says(t, "phase(), phase 2: its worker was ended by signal 6 (Aborted); the run goes on");
    json_t *calls = rows_of(t, "apart/sinks/recording_sink/calls.jsonl");
    assert_calls(calls, "begin phase");
    json_decref(calls);
    assert_int_equal(e2e_run(t, "%s" SINK_WITH("own=true,fail=crash,at=2,from=1") "--out r", run),
                     134);
    assert_int_equal(e2e_shell(t, "readlink r/checkpoints/latest"), 0);
    assert_string_equal(t->out, "000002\n");
    assert_int_equal(e2e_run(t, "--resume r " SINK_WITH("from=2,fail=none")), 0);
    calls = rows_of(t, "r/sinks/recording_sink/calls.jsonl");
    assert_calls(calls, "begin phase begin phase phase end");
    assert_true(number_of(json_array_get(calls, 3), "phase") == 2);
    json_decref(calls);
    e2e_same_tree(t, "r/checkpoints/latest/", "apart/checkpoints/latest/");
    // The run's own file cannot weaken the walls.
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=4"), 2);
    e2e_says(t, "the run's config.json runs ");
    e2e_says(t, "without a worker's walls: sink.0 is isolate=false");
}

// A resumed run says of each earlier phase what was said after it: its checkpoint, and whether that
// was the best one so far.
static void the_best_phases_come_again(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, PPO SINK_WITH(
                       "from=1") "--set checkpoint.every=1 --set checkpoint.keep=9 "
                                 "--set checkpoint.best=val/sequence_lengths --phases 4 --out r"),
        0);
    assert_int_equal(e2e_shell(t, "grep '\"call\": \"phase\"' calls.jsonl >first && "
                                  "grep -c '\"best\": 1' first && rm calls.jsonl"),
                     0);
    // A crash between a checkpoint and its event. Then the event \"resume\" names the checkpoint.
    assert_int_equal(e2e_shell(t, "sed -i '/\"phase\": 4, \"event\"/d' r/events.jsonl"), 0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=5"), 0);
    assert_int_equal(
        e2e_shell(t, "grep '\"call\": \"phase\"' calls.jsonl | head -n 4 | diff first - && "
                     "rm calls.jsonl"),
        0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --set run.phases=6"), 0);
    assert_int_equal(
        e2e_shell(t, "grep '\"call\": \"phase\"' calls.jsonl | head -n 4 | diff first -"), 0);
}

// The process dies between the last checkpoint and the sink's call. A resume runs no phase,
// but still reports it.
static void the_last_phase_is_not_lost(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO SINK_WITH("from=2") "--phases 2 --out r"), 0);
    assert_int_equal(e2e_shell(t, "rm calls.jsonl"), 0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run"), 0);
    e2e_says(t, "nothing to do");
    json_t *calls = rows_of(t, "calls.jsonl");
    assert_calls(calls, "create");
    json_decref(calls);
    assert_int_equal(e2e_shell(t, "rm calls.jsonl && sed -i '$d' r/events.jsonl"), 0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run"), 0);
    calls = rows_of(t, "calls.jsonl");
    assert_calls(calls, "create begin phase end");
    assert_string_equal(text_of(json_array_get(calls, 2), "checkpoint"), "checkpoints/000002");
    assert_string_equal(text_of(json_array_get(calls, 3), "last"), "checkpoints/000002");
    assert_true(number_of(json_array_get(calls, 3), "how") == 0);
    json_decref(calls);
}

static void a_failing_sink_loses_nothing(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *fail, *calls;
    } cases[] = {{"begin", "create begin end"},
                 {"phase", "create begin phase phase end"},
                 {"end", "create begin phase phase phase end"}};
    assert_int_equal(e2e_run(t, PPO "--phases 3 --out without"), 0);
    for (size_t i = 0; i < 3; i++) {
        char says[128];
        assert_int_equal(e2e_shell(t, "rm -rf r calls.jsonl"), 0);
        assert_int_equal(
            e2e_run(t, PPO SINK_WITH("fail=%s,at=2") "--phases 3 --out r", cases[i].fail), 0);
        snprintf(says, sizeof says, "warning: sink.0 failed: sink recording_sink.so, %s()",
                 cases[i].fail);
        e2e_says(t, says);
        snprintf(says, sizeof says, "no %s today", cases[i].fail);
        e2e_says(t, says);
        assert_int_equal(count(t->out, "recording_sink"), 1);
        json_t *calls = rows_of(t, "calls.jsonl");
        assert_calls(calls, cases[i].calls);
        json_decref(calls);
        e2e_same_tree(t, "r/checkpoints/latest/", "without/checkpoints/latest/");
    }
    for (size_t i = 0; i < 2; i++) { // a worker, the host's process
        assert_int_equal(e2e_run(t,
                                 "%s" PPO "%s"
                                 "--phases 3 --out more%d",
                                 "", i ? SINK_WITH("fail=more") : APART("own=true,fail=more"),
                                 (int)i),
                         0);
        e2e_says(t, "sink recording_sink.so, begin(): it returned 1, which is not a valid status");
    }
    // A sink's options are checked before the run starts.
    assert_int_equal(e2e_run(t, PPO SINK_WITH("fail=create") "--out s"), 1);
    e2e_says(t, "sink recording_sink.so: no create today");
    assert_int_equal(e2e_exists(t, "s"), 0);
}

// In a worker and in the host's process. The second sink gets what the first one has changed.
static void a_sink_that_changes_a_struct_fails(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *fail, *says;
    } cases[] = {
        {"change_begin", "begin(): it changes byte 16 of the host's rlhf_sink_run; a plugin must"},
        {"change_phase",
         "phase(), phase 1: it changes byte 8 of the host's rlhf_sink_phase; a plugin must"},
        {"change_spread",
         "phase(), phase 1: it changes byte 16 of the host's rlhf_spread; a plugin must"},
        {"change_end", "end(): it changes byte 52 of the host's rlhf_sink_end; a plugin must"}};
    for (size_t i = 0; i < 2 * CHECK_COUNT(cases); i++) {
        const char *fail = cases[i / 2].fail;
        assert_int_equal(e2e_shell(t, "rm -rf r a.jsonl b.jsonl"), 0);
        if (i % 2)
            assert_int_equal(e2e_run(t, PPO APART("own=true,fail=%s") "--phases 1 --out r", fail),
                             0);
        else
            assert_int_equal(e2e_run(t,
                                     PPO SINK_WITH("file=a.jsonl,fail=%s")
                                         SINK_WITH("file=b.jsonl") "--phases 1 --out r",
                                     fail),
                             0);
        e2e_says(t, "warning: sink.0 failed: sink recording_sink.so, ");
        e2e_says(t, cases[i / 2].says);
        if (i % 2) continue;
        json_t *b = rows_of(t, "b.jsonl");
        assert_calls(b, "create begin phase end");
        assert_files(t, b, "r");
        json_decref(b);
    }
}

static void two_sinks_are_told_the_same(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO SINK_WITH("file=a.jsonl,fail=phase,at=1")
                                    SINK_WITH("file=b.jsonl") "--phases 2 --out r"),
                     0);
    e2e_says(t, "sink.0 failed: sink recording_sink.so");
    json_t *a = rows_of(t, "a.jsonl"), *b = rows_of(t, "b.jsonl");
    assert_calls(a, "create begin phase end");
    assert_calls(b, "create begin phase phase end");
    assert_files(t, b, "r");
    json_decref(a);
    json_decref(b);
}

static void a_sink_hears_how_it_ends(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *why;
        int status, how;
    } cases[] = {
        {"--phases 5 " SINK_WITH("at=2,interrupt=true"), "the user stopped it", 130, 1},
        {"--phases 5 --set early_stop.reward=-1 --set early_stop.patience=1 " SINK,
         "a limit of early_stop is reached", 0, 1},
        {"--phases 5 --reward \"$RLHF_TEST_PLUGINS/bad_reward.so:how=fail,isolate=false\" " SINK,
         "no opinion today", 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf r calls.jsonl"), 0);
        assert_int_equal(e2e_run(t, PPO "%s --out r", cases[i].args), cases[i].status);
        json_t *calls = rows_of(t, "calls.jsonl");
        const json_t *end = json_array_get(calls, json_array_size(calls) - 1);
        assert_string_equal(text_of(end, "call"), "end");
        assert_true(number_of(end, "how") == cases[i].how);
        if (!strstr(text_of(end, "why"), cases[i].why)) fail_msg("%s", text_of(end, "why"));
        json_decref(calls);
    }
}

static void a_dry_run_only_makes_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO SINK " --dry-run --out r"), 0);
    json_t *calls = rows_of(t, "calls.jsonl");
    assert_calls(calls, "create");
    json_decref(calls);
    assert_int_equal(e2e_run(t, PPO "--sink trackio.so:python=./none --dry-run --out r"), 2);
    e2e_says(t, "the program ./none cannot be run: it does not exist");
}

static void a_resumed_run_asks_for_its_sinks(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp \"$RLHF_TEST_PLUGINS/recording_sink.so\" own.so"), 0);
    assert_int_equal(e2e_run(t,
                             PPO "--sink ./own.so:isolate=false,file=mine.jsonl --phases 2 --set "
                                 "run.stop_after=1 --out r"),
                     0);
    e2e_says(t, "rlhf-host --resume r --sink /");
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=2"), 2);
    e2e_says(t, "sink.0.plugin (");
    e2e_says(t, "own.so)");
    e2e_says(t, "--sink");
    // Resumes five times: with the same sink, which keeps its options; with --trust-run; with
    // another sink; with --sink none; and without options, which now means no sink.
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=2 --sink ./own.so:isolate=false"), 0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=3 --trust-run"), 0);
    json_t *calls = rows_of(t, "mine.jsonl");
    assert_calls(calls, "create begin phase end create begin phase phase end create begin phase "
                        "phase phase end");
    json_decref(calls);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=4 " SINK_WITH("file=other.jsonl")), 0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=5 --sink none"), 0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=6"), 0);
    calls = rows_of(t, "other.jsonl"); // a sink that is new gets all phases
    assert_calls(calls, "create begin phase phase phase phase end");
    json_decref(calls);
    assert_int_equal(e2e_shell(t, "grep -c own.so r/manifest.json"), 0); // it was an earlier sink
    // On a resume, the user must confirm again where data goes and which code runs.
    assert_int_equal(e2e_shell(t, "sed -i 's/^  \"algo\"/  \"sink\": [{\"plugin\": \"trackio.so\", "
                                  "\"python\": \"\\/bin\\/echo\"}],\\n  \"algo\"/' r/config.json"),
                     0);
    assert_int_equal(e2e_run(t, "--resume r --set run.phases=7"), 2);
    e2e_says(t, "sink.0.python is /bin/echo");
    e2e_says(t, "--set sink.0.python=");
}

// A sink that changes the floating-point environment of the process changes no bit of the run. With
// rounding toward zero, every weight would differ.
static void a_sink_cannot_change_the_arithmetic(void **state) {
    struct e2e *t = *state;
    static const char *const functions[] = {"load", "create", "begin", "phase"};
    assert_int_equal(e2e_shell(t, "\"$HOST\" " PPO "--phases 2 --out plain"), 0);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        assert_int_equal(e2e_shell(t,
                                   "RLHF_TEST_FLOATS=%s \"$HOST\" " PPO SINK " --phases 2 --out %s",
                                   functions[i], functions[i]),
                         0);
        const int differs = e2e_shell(t,
                                      "cmp plain/checkpoints/latest/model.safetensors "
                                      "%s/checkpoints/latest/model.safetensors && "
                                      "cmp plain/checkpoints/latest/state/optimizer.safetensors "
                                      "%s/checkpoints/latest/state/optimizer.safetensors",
                                      functions[i], functions[i]);
        if (differs) fail_msg("the sink's %s changes the run:\n%s", functions[i], t->out);
    }
    assert_int_equal(e2e_run(t, "verify --all phase"), 0);
    e2e_says(t, "2 of 2 phases are equal to the bit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sink_cannot_change_the_arithmetic, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sink_is_told_what_the_files_have, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_repeats_phases, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sink_runs_in_a_worker, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_crash_loses_no_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_best_phases_come_again, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_last_phase_is_not_lost, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_failing_sink_loses_nothing, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sink_that_changes_a_struct_fails, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(two_sinks_are_told_the_same, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sink_hears_how_it_ends, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_only_makes_it, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_asks_for_its_sinks, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
