// test_e2e_signal.c: Ctrl-C ends a run after the current update. If the run is resumed, its
// checkpoints have the same bytes as those of an uninterrupted run. Ctrl-C ends every other
// command.
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
    if (!strstr(t->out, "; press again to stop at once")) // which it says between two phases
        e2e_says(t,
                 strcmp(signal, "INT") ? "; a second signal: at once" : "; Ctrl-C again: at once");
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

// The model gets the signal in one of its calls.
static void use_pressing_model(struct e2e *t) {
    assert_int_equal(e2e_shell(t, "sed -i 's/\"gpt2\"/\"ctrl_c_gpt2\"/' model/config.json"), 0);
}

// In phase 1 there is nothing to keep, so the run does not finish the phase.
static void interrupt_in_the_first_phase(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--algo ppo.so --reward period_count.so --prompts prompts.txt --set batch.size=512 "
        "--set sampling.max_new_tokens=40",
        "--algo sft.so --data texts.jsonl --set batch.size=2000"};
    use_pressing_model(t);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        const int status = e2e_shell(t,
                                     "rm -rf f; PRESS_AFTER=f/events.jsonl PRESS_AT=100 \"$HOST\" "
                                     "%s --set batch.microbatch_tokens=64 --policy model "
                                     "--set policy.init=random --phases 5 --out f --threads 1",
                                     how[i]);
        if (status != 130) fail_msg("exit %d\n%s", status, t->out);
        e2e_says(t, "stopping within phase 1, with nothing kept; Ctrl-C again: at once\n");
        e2e_says(t, "phase 1 is not finished: stopped ");
        e2e_says(t, "stopped after 0 of 5 phases: f\n");
        assert_false(e2e_exists(t, "f/checkpoints/latest"));
    }
}

// Sampling ends, too: the model gets the signal while it samples, 16 rows at a time.
static void interrupt_the_first_samples(void **state) {
    struct e2e *t = *state;
    use_pressing_model(t);
    const int status = e2e_shell(
        t, "PRESS_AT=300 \"$HOST\" --algo ppo.so --reward period_count.so --prompts prompts.txt "
           "--set batch.size=512 --set sampling.max_new_tokens=40 --set sampling.slots=16 "
           "--policy model --set policy.init=random --phases 2 --out f --threads 1");
    if (status != 130) fail_msg("exit %d\n%s", status, t->out);
    e2e_says(t, "phase 1 is not finished: stopped while generating");
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
    assert_null(strstr(t->out, "phase 1"));
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
    e2e_says(t, "\"message\": \"stopping when algorithm interrupting.so is done; press "
                "again to stop at once\"}\n");
    for (const char *line = t->out; *line; line += strcspn(line, "\n") + 1) {
        json_t *object = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        if (!json_is_object(object)) fail_msg("no JSON: %s", line);
        json_decref(object);
    }
}

// ---- other commands ----

// Make the run s and the classifier c.
static void make_models(struct e2e *t) {
    if (e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "
                   "--phases 2 --set batch.size=16 --set checkpoint.every=1 --out s") ||
        e2e_run(t, "--algo classify.so --policy model --data labeled.jsonl --set "
                   "policy.init=random --phases 1 --set batch.size=16 --out c"))
        fail_msg("%s", t->out);
}

// The command was stopped by its first Ctrl-C and has written nothing.
static void is_stopped(struct e2e *t, const char *args, int status) {
    if (status != 130) fail_msg("%s: exit %d\n%s", args, status, t->out);
    e2e_says(t, "stopping");
    if (strstr(t->out, "error")) fail_msg("%s:\n%s", args, t->out);
    assert_int_equal(e2e_shell(t, "! ls -d x*"), 0);
}

#define MODEL " --model s/checkpoints/latest "

// Rows come from a pipe whose writer is slow. `there` appears when the command has opened the pipe.
static void interrupt_a_wait_for_rows(void **state) {
    struct e2e *t = *state;
    static const char *const commands[] = {
        "tokenize" MODEL "--data f",
        "generate" MODEL "--prompts f",
        "eval" MODEL "--reward period_count.so --data f",
        "pairs" MODEL "--judge period_count.so --prompts f --out x",
        "label --model c/checkpoints/latest --data f --out x",
        "play --env guess.so --script f",
        "--algo sft.so --policy model --set policy.init=random --data f --phases 1 --out x"};
    make_models(t);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const int status = e2e_shell(
            t,
            "rm -f f there; mkfifo f; (exec 9>f; : >there; trap 'kill $s; exit' TERM; sleep 99 & "
            "s=$!; wait $s) >/dev/null 2>&1 & writer=$!; \"$HOST\" %s >log 2>&1 & pid=$!; n=0; "
            "while [ $n -lt 300 ] && ! [ -e there ]; do sleep 0.1; n=$((n+1)); done; "
            "kill -INT $pid; " GUARD
            "wait $pid; status=$?; kill $guard $writer 2>/dev/null; cat log; exit $status",
            commands[i]);
        is_stopped(t, commands[i], status);
    }
}

// Ctrl-C comes when the model begins to work or, if the command does not run a model, when it
// begins to read the weights.
static void interrupt_the_work_of_commands(void **state) {
    struct e2e *t = *state;
    static const char *const commands[] = {
        "generate --model p --prompts prompts.txt --n 4",
        "eval --model p --reward period_count.so --data prompts.txt",
        "pairs --model p --judge period_count.so --prompts prompts.txt --out x",
        "label --model q --data many.jsonl --out x",
        "inspect --tuned s/checkpoints/000002 --base s/checkpoints/000001 --prompt 'the ' --words "
        "a,b",
        "inspect --samples --tuned s/checkpoints/000002 --base s/checkpoints/000001 --prompt the",
        "inspect --weights --no-rank --tuned s/checkpoints/000002 --base s/checkpoints/000001",
        "export s --to x",
        "export s --gguf x.gguf"};
    make_models(t);
    assert_int_equal(
        e2e_shell(t, "cp -rL s/checkpoints/latest p && cp -rL c/checkpoints/latest q && "
                     "sed -i 's/\"gpt2\"/\"ctrl_c_gpt2\"/' p/config.json q/config.json && "
                     "for i in 1 2 3 4 5 6 7 8 9; do cat labeled.jsonl; done >many.jsonl"),
        0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const int reads = commands[i][0] == 'i' || strstr(commands[i], "export");
        const int status = e2e_shell(t,
                                     "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "
                                     "LD_PRELOAD=\"%s\" \"$HOST\" %s",
                                     reads ? "$RLHF_TEST_PLUGINS/ctrl_c.so" : "", commands[i]);
        is_stopped(t, commands[i], status);
    }
}

// The reader of a pipe presses Ctrl-C after the first line. The pipe is then full, so there is work
// left.
static void interrupt_the_output(void **state) {
    struct e2e *t = *state;
    const int status =
        e2e_shell(t, "yes 'It was a fine film' | head -n 40000 >many.txt; mkfifo out; "
                     "\"$HOST\" tokenize --model model --data many.txt >out 2>log & pid=$!; "
                     "{ read -r line; kill -INT $pid; wc -l >rest; } <out; wait $pid; status=$?; "
                     "cat log; [ $(cat rest) -lt 39999 ] || echo 'error: all lines'; exit $status");
    is_stopped(t, "tokenize", status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ctrl_c, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(terminated, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(hung_up, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_before_the_first_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_in_the_first_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_the_first_samples, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_while_loading, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_a_wait_for_rows, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_the_work_of_commands, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupt_the_output, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(interrupted_in_json, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_signal", tests, NULL, NULL);
}
