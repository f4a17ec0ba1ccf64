// test_worker_failures.c: a reward in a worker fails in every possible way. The message names
// plugin, phase and row, no processes or files are left behind, and earlier work is kept.
#include "e2e/e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=4 --set run.phases=2 --set run.dir=r "
#define WILD     "--reward \"$RLHF_TEST_PLUGINS/wild_reward.so:"
#define NAMED    "reward wild_reward.so, score(), phase "
#define SANITIZE "test -n \"$RLHF_TEST_SANITIZE\""

// Asserts that a run fails once, in phase 2 at row 3. The run ends with status 1 and a message, and
// has a checkpoint of phase 1.
static void fails(struct e2e *t, const char *how, const char *says) {
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN WILD "phase=1,row=3,how=%s\"", how), 1);
    e2e_says(t, NAMED);
    e2e_says(t, says);
    assert_true(e2e_exists(t, "r/checkpoints/000001"));
    assert_false(e2e_exists(t, "r/checkpoints/000002"));
}

static void an_end_is_named(void **state) {
    struct e2e *t = *state;
    fails(t, "crash", "its worker was ended by signal 11 (Segmentation fault) at row 3");
    fails(t, "abort", "its worker was ended by signal 6 (Aborted) at row 3");
    fails(t, "exit", "its worker ended with status 7 at row 3");
    fails(t, "fail", "no opinion\\x1b[31m today");
}

// If a plugin returns an invalid status, this counts neither as an intended failure nor as a
// success. The status is handled as in the host's process.
static void a_status_that_is_none_is_named(void **state) {
    struct e2e *t = *state;
    static const char *const where[] = {"", ",isolate=false"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, RUN WILD "phase=1,row=3,how=status%s\"", where[k]), 1);
        e2e_says(t, NAMED "2: it returned 7, which is not a valid status (all 8 rows)");
        e2e_shell(t, "rm -rf r");
        assert_int_not_equal(e2e_run(t, RUN WILD "at_create=true,how=status%s\"", where[k]), 0);
        e2e_says(t, "it returned 7, which is not a valid status");
    }
}

static void a_row_that_is_not_written_is_named(void **state) {
    struct e2e *t = *state;
    static const char *const where[] = {"", ",isolate=false"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, RUN WILD "phase=1,row=3,how=unwritten%s\"", where[k]), 1);
        e2e_says(t, "wild_reward.so) did not write row 3 of phase 2, response \"");
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t,
                                 RUN WILD "phase=1,row=0,how=unwritten%s\" --set "
                                          "rewards.on_failure=retry --set rewards.retries=1",
                                 where[k]),
                         1);
        e2e_says(t, NAMED "2: it wrote no result (row 0 of 8); rewards.on_failure says retry");
    }
}

static void a_write_out_of_bounds_is_named(void **state) {
    struct e2e *t = *state;
    fails(t, "behind", "wrote past the end of out->seq, its worker was ended by signal 11");
    fails(t, "tokens", "wrote past the end of out->verdict, its worker was ended by signal 11");
    fails(t, "before", "it wrote before the start of out->failed");
    fails(t, "input", "wrote to its input, its worker was ended by signal 11");
}

// Several workers fail in one call. All failures are reported, and one of them becomes the failure
// of the call.
static void each_of_several_is_named(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"fail", "before", "crash"};
    static const char *const says[] = {"no opinion\\x1b[31m today",
                                       "it wrote before the start of out->failed",
                                       "its worker was ended by signal 11 (Segmentation fault)"};
    char line[256];
    for (int k = 0; k < 3; k++) {
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, RUN WILD "every=1,how=%s\" --set rewards.workers=2", how[k]),
                         1);
        snprintf(line, sizeof line, "wild_reward: in the same call: %s", says[k]);
        e2e_says(t, line);
        snprintf(line, sizeof line, NAMED "1: %s", says[k]);
        e2e_says(t, line);
    }
}

// Only the deadline ends a call that hangs for ever.
static void a_call_that_takes_too_long_is_ended(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN WILD "phase=1,row=3,how=hang\" --set rewards.timeout_s=2"), 1);
    e2e_says(t, "its worker has not answered for 1");
    e2e_says(t, " s; its limit is 2 s");
    e2e_says(t, "it took longer than 2 s (rewards.timeout_s); its worker was ended at row 3");
    assert_true(e2e_exists(t, "r/checkpoints/000001"));
}

// The worker's children, in separate sessions and two levels deep, end with the worker.
static void what_it_started_is_ended(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "export WILD_MARK=$PWD; $HOST " RUN WILD
                                  "phase=1,row=3,how=forks\" --threads 1"),
                     1);
    e2e_says(t, "its worker was ended by signal 11 (Segmentation fault) at row 3");
    assert_int_equal(e2e_shell(t,
                               "for e in /proc/[0-9]*/environ; do "
                               "  tr '\\0' '\\n' 2>/dev/null <$e | grep -qx \"WILD_MARK=$PWD\" && "
                               "  { echo \"$e is still there\"; exit 1; }; done; exit 0"),
                     0);
}

static void memory_is_limited(void **state) {
    struct e2e *t = *state;
    if (e2e_shell(t, SANITIZE) == 0) skip(); // limits cannot be set there
    assert_int_equal(e2e_run(t, RUN WILD "phase=1,row=3,how=memory\" --set rewards.memory_mib=64"),
                     1);
    e2e_says(t, NAMED "2: there is no memory left (rewards.memory_mib allows its worker 64 MiB)");
}

// If a worker prints text, the text becomes a line of the log, escaped, and does not go to stdout.
static void what_it_prints_is_caught(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "$HOST " RUN WILD
                                  "how=print\" --threads 1 --set log.progress=off 2>err | "
                                  "grep to && exit 9; grep 'it printed: to stdout\\\\x1b' err && "
                                  "grep 'it printed: to stderr' err"),
                     0);
}

static void a_flood_of_lines_is_cut(void **state) {
    struct e2e *t = *state;
    static const char says[] = "wild_reward: 7950 more lines of this call are left out";
    assert_int_equal(e2e_run(t, RUN WILD "how=loud,every=1\""), 0);
    const char *first = strstr(t->out, says);
    assert_true(first && strstr(first + 1, says)); // one line for each of the two calls
}

#define ALONE(options) "--reward \"$RLHF_TEST_PLUGINS/wild_alone.so:" options "\" "

// If some rows always end the worker, only these rows fail, whatever their positions in the call.
// The run ends with the same bytes as if the reward itself had marked them as failed.
static void only_the_rows_that_end_it_fail(void **state) {
    struct e2e *t = *state;
    static const char *const policy[] = {"zero", "drop"};
    static const char *const late[] = {"false", "true"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t, "rm -rf r m");
        assert_int_equal(e2e_run(t,
                                 RUN "--set run.dir=m --set rewards.on_failure=%s " ALONE(
                                     "how=mark,every=5,isolate=false"),
                                 policy[k]),
                         0);
        assert_int_equal(
            e2e_run(t, RUN "--set rewards.on_failure=%s " ALONE("how=crash,every=5,late=%s"),
                    policy[k], late[k]),
            0);
        e2e_says(t, "; scoring again in parts");
        e2e_same_tree(t, "m/checkpoints/000002", "r/checkpoints/000002");
        if (e2e_shell(t, "command -v jq") != 0) continue;
        assert_int_equal(e2e_shell(t, "for d in m r; do jq -c '[.\"rewards/wild_alone/failures\", "
                                      ".\"objective/scores\"]' $d/metrics.jsonl >$d.f; done; "
                                      "grep -q '^\\[[1-7]' m.f && cmp m.f r.f"),
                         0);
    }
}

// With retry, the last try finds the rows that end the worker. If a reward compares the rows of a
// group, the whole group fails. A reward with state is not called with parts of the rows.
static void rows_that_end_it_are_found_at_last(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set rewards.on_failure=retry --set rewards.retries=2 " ALONE(
                                    "how=crash,phase=1,row=3,late=true")),
                     0);
    e2e_says(t, "(all 8 rows); rewards.on_failure says retry: scoring again, 2 of 2");
    e2e_says(t, "; scoring again in parts");
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN "--set rewards.on_failure=retry --set rewards.retries=1 " ALONE(
                                    "how=crash,every=5")),
                     1);
    assert_null(strstr(t->out, "(all 8 rows); rewards.on_failure says retry, "));
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t,
                             RUN "--algo grpo.so:group_size=4 --set rewards.on_failure=zero " WILD
                                 "how=crash,every=5\""),
                     0);
    e2e_says(t, "; scoring again in parts");
    assert_null(strstr(t->out, "(all 8 rows)"));
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN "--set rewards.on_failure=zero --reward "
                                    "\"$RLHF_TEST_PLUGINS/wild_stateful.so:how=crash,every=5\""),
                     0);
    e2e_says(t, "(all 8 rows); rewards.on_failure says zero");
}

// A worker that ends loses the state of its current call, but not the state of earlier successful
// calls. The checkpoint has the earlier state. The state is a number, which comes just before the
// checksum in the file of the state.
static void the_state_of_the_last_good_call_goes_on(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t,
                             RUN "--set run.phases=3 --set rewards.on_failure=zero --reward "
                                 "\"$RLHF_TEST_PLUGINS/wild_stateful.so:how=crash,phase=1,row=3\""),
                     0);
    e2e_says(t, "its worker is started again");
    assert_int_equal(e2e_shell(t, "paid=$(tail -c 12 r/checkpoints/000003/state/reward_0.bin | "
                                  "head -c 8 | od -An -tf8 | tr -d ' '); echo \"paid $paid\"; "
                                  "[ \"$paid\" = 16 ]"),
                     0);
}

// The search stops when the worker has been ended sixteen times.
static void looking_for_them_has_an_end(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "$HOST " RUN "--set batch.size=64 --set run.phases=1 "
                     "--set rewards.on_failure=zero --threads 1 " ALONE(
                         "how=exit,every=1") ">out 2>&1; s=$?; cat out; [ $s = 0 ] && "
                                             "[ $(grep -c 'is started again' out) -le 17 ]"),
        0);
    e2e_says(t, "(all 64 rows); rewards.on_failure says zero");
}

static void it_is_confined(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN WILD "how=nothing\""), 0);
    e2e_says(t, "wild_reward: runs in a worker process: no new privileges");
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
    // The log reports whether the kernel has landlock. With landlock, files cannot be written.
    if (e2e_shell(
            t, "grep 'no writing to files' r/manifest.json | grep -v 'not in force.*files'") == 0) {
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, RUN WILD "how=write,file=written\""), 0);
        assert_false(e2e_exists(t, "written"));
    }
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN WILD "how=network\""), 0);
    e2e_says(t, "wild_reward: sockets: refused");
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN WILD "how=network,network=true\""), 0);
    e2e_says(t, "wild_reward: sockets: allowed");
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN WILD "how=kill\""), 0);
}

// The number of simultaneous processes is limited. If the kernel cannot limit it, the log reports
// this.
static void processes_are_counted(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN WILD "how=nothing\""), 0);
    assert_int_equal(e2e_shell(t, "grep 'at most 1024 processes and threads' r/manifest.json"), 0);
    if (e2e_shell(t, "grep 'not in force.*at most 1024' r/manifest.json") == 0) skip();
    if (e2e_shell(t, "test \"$RLHF_TEST_SANITIZE\" = thread") == 0) skip(); // two in each process
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN WILD "how=bomb\""), 0);
    e2e_says(t, "wild_reward: it started its share of processes");
}

// rewards.timeout_s limits a worker's processor time on each core that it may use, here on one
// core. The limit is 2 s longer, because the time used so far is only known in whole seconds.
static void processor_time_is_limited(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "taskset -c \"$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')\" "
                                  "$HOST " RUN WILD "how=time,row=7,phase=1\" --threads 1 "
                                  "--set rewards.timeout_s=60"),
                     0);
    e2e_says(t, "processor time (rewards.timeout_s a core)");
    e2e_says(t, "wild_reward: it may compute for 62 s");
}

static void before_the_first_phase_it_is_bad_input(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN WILD "how=crash,at_create=true\""), 2);
    e2e_says(t, "reward wild_reward.so: its worker was ended by signal 11 "
                "(Segmentation fault)");
    assert_false(e2e_exists(t, "r"));
    assert_int_equal(e2e_run(t, RUN WILD "how=sideways\""), 2);
    e2e_says(t, "reward.0.how must be one of nothing, crash");
}

static void what_cannot_be_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward period_count.so:network=true"), 2);
    e2e_says(t, "reward.0.network has no effect here");
    assert_int_equal(e2e_run(t, RUN "--reward period_count.so --set rewards.workers=2"), 2);
    e2e_says(t, "rewards.workers has no effect here: no reward runs in a worker");
    assert_int_equal(e2e_run(t, RUN "--reward period_count.so:isolate=perhaps"), 2);
    e2e_says(t, "reward.0.isolate must be true or false, found perhaps");
    assert_int_equal(e2e_run(t, RUN "--reward \"$RLHF_TEST_PLUGINS/wild_stateful.so\" "
                                    "--set rewards.workers=2"),
                     2);
    e2e_says(t, "it keeps a state, which several workers would each have a part of");
    assert_int_equal(e2e_shell(t, "$HOST worker"), 2);
    e2e_says(t, "worker: the host starts its workers itself");
}

// Prints "marked" if a worker that this test has started still exists. The worker's processes are
// identified by their environment.
#define MARKED                                                                                     \
    "export WILD_MARK=$PWD; workers() { for e in /proc/[0-9]*/environ; do "                        \
    "  tr '\\0' '\\n' 2>/dev/null <$e | grep -qx \"WILD_MARK=$PWD\" && "                           \
    "  tr '\\0' ' ' 2>/dev/null <${e%%environ}cmdline | grep -q ' worker ' && "                    \
    "  p=${e#/proc/} && echo ${p%%/environ}; done; }; marked() { test -n \"$(workers)\"; }; "

// The host is killed, or gets two signals to stop. In both cases its workers end.
static void without_a_host_it_ends(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"kill -9 $p", "kill -INT $p; sleep 1; kill -INT $p"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        e2e_shell(t, "rm -rf r out");
        assert_int_equal(e2e_shell(t,
                                   MARKED "$HOST " RUN WILD
                                          "how=hang\" --threads 1 >out 2>&1 & p=$!; "
                                          "until grep -qs 'runs in a worker' out; do sleep 0.1; "
                                          "done; marked || exit 3; %s; wait $p; "
                                          "while marked; do sleep 0.1; done; exit 0",
                                   how[i]),
                         0);
    }
}

// The call would never end. Ctrl-C ends the run at once, and the run keeps its work.
static void ctrl_c_ends_a_call_that_hangs(void **state) {
    struct e2e *t = *state;
    static const char *const where[] = {"phase=1,row=3", "at_create=true"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t, "rm -rf r out");
        assert_int_equal(
            e2e_shell(t,
                      MARKED "$HOST " RUN WILD
                             "how=hang,%s\" --threads 1 --set rewards.timeout_s=1e6 "
                             "--set log.progress=off >out 2>&1 & p=$!; "
                             "until ! kill -0 $p 2>/dev/null || { marked && { [ %d = 1 ] || [ -s "
                             "r/metrics.jsonl ]; }; }; do sleep 0.1; done; sleep 1; "
                             "kill -INT $p; wait $p; s=$?; cat out; "
                             "while marked; do sleep 0.1; done; exit $s",
                      where[k], k),
            130);
        assert_int_equal(e2e_exists(t, "r/checkpoints/000001"), k == 0);
    }
}

// If a worker is killed from outside, this counts as an ordinary failure. With retry, the run
// continues.
static void one_that_is_ended_by_somebody_is_named(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t,
                               MARKED "$HOST " RUN WILD "how=hang\" --threads 1 >out 2>&1 & p=$!; "
                                      "until grep -q 'runs in a worker' out; do sleep 0.1; done; "
                                      "sleep 1; kill -9 $(workers); wait $p; s=$?; cat out; "
                                      "while marked; do sleep 0.1; done; exit $s"),
                     1);
    e2e_says(t, NAMED "1: its worker was ended by signal 9 (Killed) at row 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_status_that_is_none_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_not_written_is_named, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_write_out_of_bounds_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(each_of_several_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_call_that_takes_too_long_is_ended, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(what_it_started_is_ended, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(memory_is_limited, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_it_prints_is_caught, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_flood_of_lines_is_cut, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(only_the_rows_that_end_it_fail, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_that_end_it_are_found_at_last, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(the_state_of_the_last_good_call_goes_on, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(looking_for_them_has_an_end, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(it_is_confined, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(processes_are_counted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(processor_time_is_limited, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_ends_a_call_that_hangs, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(before_the_first_phase_it_is_bad_input, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(without_a_host_it_ends, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(one_that_is_ended_by_somebody_is_named, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("worker failures", tests, NULL, NULL);
}
