// test_e2e_signal.c: Ctrl-C ends a run after the current update. If the run is resumed, its
// checkpoints have the same bytes as those of an uninterrupted run.
#include "e2e.h"

#include <string.h>

#define RUN                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set batch.size=16 --set optim.schedule_phases=100000 --threads 1 "

// Ends process $pid if it takes too long. The `sleep` of this watchdog ends together with the
// watchdog.
#define GUARD                                                                                      \
    "(trap 'kill $s; exit' TERM; sleep 60 & s=$!; wait $s; kill -KILL $pid 2>/dev/null) "          \
    ">/dev/null 2>&1 & guard=$!; "

// Asserts that the run ends with status `want` if it gets `signal` after the third phase.
static void interrupt_and_resume(struct e2e *t, const char *signal, int want) {
    // Waits for the third row of metrics, then interrupts the run. If the program then hangs, GUARD
    // kills it.
    int status = e2e_shell(
        t,
        "\"$HOST\" " RUN "--set run.phases=100000 --set run.dir=s & pid=$!; n=0; "
        "while [ $n -lt 300 ]; do [ -f s/metrics.jsonl ] && "
        "[ $(wc -l < s/metrics.jsonl) -ge 3 ] && break; sleep 0.1; n=$((n+1)); done; "
        "kill -%s $pid; " GUARD "wait $pid; status=$?; kill $guard 2>/dev/null; exit $status",
        signal);
    assert_int_equal(status, want);
    e2e_says(t, strcmp(signal, "INT") ? "; a second signal: at once" : "; Ctrl-C again: at once");
    e2e_says(t, " of 100000 phases: s\n");
    e2e_says(t, " go on: rlhf-host --resume s\n");
    assert_int_equal(e2e_shell(t, "readlink s/checkpoints/latest"), 0);
    int done = 0;
    for (const char *c = t->out; *c >= '0' && *c <= '9'; c++)
        done = done * 10 + *c - '0';
    assert_true(done >= 3);
    json_t *rows = e2e_metrics(t, "s");
    assert_int_equal(json_array_size(rows), done);
    json_decref(rows);
    assert_int_equal(e2e_run(t, "--resume s --set run.phases=%d --threads 1", done + 2), 0);
    assert_int_equal(e2e_run(t, RUN "--set run.phases=%d --set run.dir=u", done + 2), 0);
    e2e_same_tree(t, "s/checkpoints/latest/", "u/checkpoints/latest/");
}

static void ctrl_c(void **state) { interrupt_and_resume(*state, "INT", 130); }
static void terminated(void **state) { interrupt_and_resume(*state, "TERM", 143); }
static void hung_up(void **state) { interrupt_and_resume(*state, "HUP", 129); }

// In phase 1 there is nothing to keep, so the run does not finish the phase.
static void interrupt_in_the_first_phase(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--algo ppo.so --reward period_count.so --prompts prompts.txt --set batch.size=8192 --set "
        "sampling.max_new_tokens=40",
        "--algo sft.so --data texts.jsonl --set batch.size=30000 --set "
        "batch.microbatch_tokens=64"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        int status = e2e_shell(
            t,
            "rm -rf f; \"$HOST\" %s --policy model --set policy.init=random --phases 5 --out f "
            "--threads 1 2>log & pid=$!; n=0; "
            "while [ $n -lt 600 ] && ! [ -s f/events.jsonl ]; do sleep 0.1; n=$((n+1)); done; "
            "kill -INT $pid; " GUARD
            "wait $pid; status=$?; kill $guard 2>/dev/null; cat log; exit $status",
            how[i]);
        if (status != 130) fail_msg("exit %d\n%s", status, t->out);
        e2e_says(t, "stopping within phase 1, with nothing kept; Ctrl-C again: at once\n");
        e2e_says(t, "phase 1 is not finished and will be done again: stopped ");
        e2e_says(t, "stopped after 0 of 5 phases: f\n");
        assert_false(e2e_exists(t, "f/checkpoints/latest"));
    }
}

// The samples of a reward model are drawn before its first phase. At that time, there is nothing to
// save or resume.
static void interrupt_before_the_first_phase(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pair.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" was\"}\n");
    int status = e2e_shell(
        t,
        "yes \"$(cat pair.jsonl)\" | head -n 20000 >pairs.jsonl; "
        "\"$HOST\" --algo bradley_terry.so --policy model --data pairs.jsonl "
        "--set policy.init=random --set score.calibrate=1000000 --set sampling.max_new_tokens=20 "
        "--set batch.size=1 --set run.phases=1 --set run.dir=r --threads 1 2>log & pid=$!; n=0; "
        "while [ $n -lt 300 ] && ! grep -q data: log; do sleep 0.1; n=$((n+1)); done; "
        "kill -INT $pid; " GUARD
        "wait $pid; status=$?; kill $guard 2>/dev/null; cat log; exit $status");
    assert_int_equal(status, 130);
    e2e_says(t, "stopping");
    assert_null(strstr(t->out, "\n\n")); // only a terminal echoes ^C
    assert_null(strstr(t->out, "error"));
    assert_false(e2e_exists(t, "r"));
}

// Ctrl-C comes before the first phase: in one run while rows are read, in another after that.
// Nothing was trained, so the run leaves nothing behind. The plugins themselves send the signal at
// the required moment.
static void interrupt_while_loading(void **state) {
    struct e2e *t = *state;
    const char *how = "--policy model --set policy.init=random --phases 2 --out r";
    assert_int_equal(
        e2e_run(t, "--algo \"$RLHF_TEST_PLUGINS/interrupting.so\" --data texts.jsonl %s", how),
        130);
    e2e_says(t, "stopping");
    assert_null(strstr(t->out, "data: 64 rows"));
    assert_null(strstr(t->out, "error"));
    assert_false(e2e_exists(t, "r"));
    assert_int_equal(
        e2e_run(t,
                "--algo ppo.so --reward \"$RLHF_TEST_PLUGINS/interrupting.so:isolate=false\" "
                "--prompts prompts.txt --set batch.size=4 %s",
                how),
        130);
    assert_null(strstr(t->out, "phase"));
    assert_false(e2e_exists(t, "r"));
}

// With log.format=json every line is an object, including the signal handler's messages.
static void interrupted_in_json(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t,
                "--algo \"$RLHF_TEST_PLUGINS/interrupting.so\" --data texts.jsonl --policy model "
                "--set policy.init=random --phases 2 --set log.format=json --out r"),
        130);
    e2e_says(t, "\"message\": \"stopping when algorithm interrupting.so, plan() has "
                "returned; press again to stop at once\"}\n");
    for (const char *line = t->out; *line; line += strcspn(line, "\n") + 1) {
        json_t *object = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        if (!json_is_object(object)) fail_msg("no JSON: %s", line);
        json_decref(object);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ctrl_c, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(terminated, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(hung_up, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_before_the_first_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_in_the_first_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_while_loading, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupted_in_json, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_signal", tests, NULL, NULL);
}
