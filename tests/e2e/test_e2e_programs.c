// test_e2e_programs.c: runs whose reward is a program or a Python function: scores, resumes,
// Ctrl-C, and programs that cannot be run.
#include "e2e.h"

#include <stdlib.h>
#include <string.h>

#define MODEL                                                                                      \
    " --policy model --set policy.init=random --set sampling.max_new_tokens=6 "                    \
    "--set log.progress=off --prompts rows.jsonl "
#define RUN                                                                                        \
    "--algo grpo.so:group_size=4,kl_placement=none,kl_measure=false" MODEL "--set batch.size=8 "
#define EXEC(args) "--reward \"exec.so:command='$RLHF_BUILD_DIR/tests/answering' " args "\" "
#define PYTHON     "--reward python.so:file=rewards.py,function=length "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\"}\n"
              "{\"prompt\": \"I think\", \"answer\": \"no\"}\n");
    e2e_write(
        *state, "rewards.py",
        "def length(completions, answer, **kwargs):\n"
        "    return [len(set(c)) + 0.25 * (a == 'yes') for c, a in zip(completions, answer)]\n");
    return 0;
}

static int has_python(void) { return system("python3 -c 'import sys' >/dev/null 2>&1") == 0; }

// A run of one phase that is resumed for a second gives the same bytes as a run of two phases. The
// two runs start at the same time.
static void resumes(struct e2e *t, const char *reward, const char *metric) {
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" " RUN "%s --set run.phases=2 --set run.dir=a --threads 1 "
                               "& \"$HOST\" " RUN
                               "%s --set run.phases=1 --set run.dir=b --threads 1; wait $!",
                               reward, reward),
                     0);
    // A run directory may come from another person. So a resume runs the directory's programs only
    // if the user allows this.
    assert_int_equal(e2e_run(t, "--resume b --set run.phases=2"), 2);
    e2e_says(t, "--resume: the run's config.json says what ");
    e2e_says(t, " sends and where to: reward.0.");
    e2e_says(t, "; it is used only if you give it again (--set reward.0.");
    assert_int_equal(e2e_run(t, "--resume b --trust-run --set run.phases=2"), 0);
    e2e_same_tree(t, "a/checkpoints/latest/", "b/checkpoints/latest/");
    json_t *x = e2e_metrics(t, "a"), *y = e2e_metrics(t, "b");
    for (int i = 0; i < 2; i++)
        assert_true(e2e_metric(x, i, metric) == e2e_metric(y, i, metric));
    assert_true(e2e_metric(x, 1, metric) > 0);
    json_decref(x);
    json_decref(y);
}

static void a_program_pays(void **state) {
    struct e2e *t = *state;
    resumes(t, EXEC("length"), "rewards/exec/mean");
    assert_int_equal(e2e_shell(t, "\"$HOST\" --resume b --set run.phases=2 --threads 1 --set "
                                  "reward.0.command=\"'$RLHF_BUILD_DIR/tests/answering' length\""),
                     0);
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" eval --model a/checkpoints/latest --data rows.jsonl --n "
                               "4 --set sampling.max_new_tokens=4 --threads 1 " EXEC("each 0.5")),
                     0);
    e2e_says(t, "0.5000");
    assert_int_equal(e2e_shell(t, "\"$HOST\" " RUN EXEC("length") "--dry-run"), 0);
    assert_int_equal(e2e_exists(t, "runs"), 0);
    assert_int_equal(e2e_run(t, "plugin info exec.so"), 0);
    e2e_says(t, "org.rlhf-host.exec");
}

static void python_pays(void **state) {
    struct e2e *t = *state;
    if (!has_python()) skip();
    resumes(t, PYTHON, "rewards/python/mean");
    // The user may give the file again, typed as at the start, from the original directory.
    assert_int_equal(e2e_run(t, "--resume b --set reward.0.file=rewards.py --set run.phases=3"), 0);
    assert_int_equal(e2e_run(t, "--resume b " PYTHON "--set run.phases=4"), 0);
    // As with plugins, the file may have moved, because its contents are compared.
    assert_int_equal(e2e_shell(t, "mkdir moved other && cp rewards.py moved && "
                                  "(cat rewards.py; echo '# more') >other/rewards.py"),
                     0);
    assert_int_equal(
        e2e_run(t, "--resume b --set reward.0.file=moved/rewards.py --set run.phases=5"), 0);
    assert_int_equal(
        e2e_run(t, "--resume b --set reward.0.file=other/rewards.py --set run.phases=6"), 2);
    e2e_says(t, "reads has changed: reward.0.file ");
    // Other functions make it a different run.
    assert_int_equal(e2e_shell(t, "echo '# more' >> rewards.py"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=3"), 2);
    e2e_says(t, "or give --trust-run; it has changed since, too: reward.0.file ");
    e2e_says(t, ", which --allow-changed-inputs accepts");
    assert_int_equal(e2e_shell(t, "cp -r a early && rm -r early/checkpoints"), 0);
    assert_int_equal(e2e_run(t, "--resume early --set run.phases=3"), 2);
    e2e_says(t, "early has no checkpoint");
    assert_null(strstr(t->out, "--trust-run"));
    assert_int_equal(e2e_run(t, "--resume a --trust-run --set run.phases=3"), 2);
    e2e_says(t, "reward.0.file ");
    assert_int_equal(e2e_run(t, "--resume a --trust-run --allow-changed-inputs --set run.phases=3"),
                     0);
    assert_int_equal(e2e_run(t, "eval --model a/checkpoints/latest --data rows.jsonl --n 4 "
                                "--set sampling.max_new_tokens=4 " PYTHON),
                     0);
    e2e_says(t, "reward ");
    assert_int_equal(e2e_run(t, RUN PYTHON "--dry-run"), 0);
    assert_int_equal(e2e_run(t, "plugin info python.so"), 0);
    e2e_says(t, "org.rlhf-host.python");
}

// Another command is another reward, even if both commands are paths of files.
static void a_command_is_no_place(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "printf '#!/bin/sh\\nexec \"$RLHF_BUILD_DIR/tests/answering\" "
                                  "length\\n' >pay && chmod +x pay && cp pay pay2 && \"$HOST\" " RUN
                                  "--reward exec.so:command=$PWD/pay --set run.phases=1 "
                                  "--set run.dir=p --threads 1"),
                     0);
    assert_int_equal(e2e_run(t, "--resume p --set reward.0.command=$PWD/pay2 --set run.phases=2"),
                     2);
    e2e_says(t, "--resume: reward.0.command cannot be another file in a run that goes on");
    assert_int_equal(e2e_run(t, "--resume p --set reward.0.command=$PWD/pay --set run.phases=2"),
                     0);
}

// A program that cannot be run is refused with the reason, and no files are written.
static void what_cannot_be_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward python.so:rewards.py"), 2);
    e2e_says(t,
             "\"rewards.py\" is not of the form key=value: python.so:file=FILE.py,function=NAME");
    assert_int_equal(e2e_run(t, RUN "--reward exec.so:command=./nothing --set run.dir=c"), 2);
    e2e_says(t, "reward exec.so: the program ./nothing cannot be run: it does "
                "not exist");
    assert_int_equal(e2e_exists(t, "c"), 0);
    if (!has_python()) return;
    assert_int_equal(
        e2e_run(t, RUN "--reward python.so:file=rewards.py,function=lenght --set run.dir=c"), 2);
    e2e_says(t, "rewards.py has no function \"lenght\" (did you mean \"length\"?)");
    assert_int_equal(e2e_shell(t, "echo '{\"prompt\": \"x\"}' >> rows.jsonl"), 0);
    assert_int_equal(e2e_run(t, RUN PYTHON "--set run.dir=c"), 2);
    e2e_says(t, "rows.jsonl:3: reward python.so: the data row has no "
                "\"answer\", which length of rewards.py is called with");
    e2e_write(t, "rewards.py", "import os\nx = 1\n\nx.y\n");
    assert_int_equal(e2e_run(t, RUN PYTHON "--set run.dir=c"), 2);
    e2e_says(t, "rewards.py cannot be imported: line 4: AttributeError: 'int' object has no "
                "attribute 'y'");
    assert_int_equal(e2e_exists(t, "c"), 0);
}

static void a_program_that_fails(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" " RUN EXEC("after 3 kill 11") "--set run.dir=d --threads 1"), 1);
    e2e_says(t, "reward exec.so, score(), phase 1: ");
    e2e_says(t, "answering was ended by signal 11 (Segmentation fault) at row 3 of 8");
}

// With retries, a program that fails once gives the same bytes as a program that does not fail.
static void asked_again(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" " RUN EXEC(
                         "flaky $PWD/was-here") "--set rewards.on_failure=retry --set run.phases=2 "
                                                "--set run.dir=f --threads 1"),
        0);
    e2e_says(t, "answering was ended by signal 9 (Killed) at row 2 of 8");
    assert_int_equal(e2e_shell(t, "\"$HOST\" " RUN EXEC(
                                      "length") "--set run.phases=2 --set run.dir=g --threads 1"),
                     0);
    json_t *m = e2e_metrics(t, "f");
    assert_true(e2e_metric(m, 0, "rewards/exec/failures") > 0);
    json_decref(m);
    assert_int_equal(
        e2e_shell(
            t, "cmp f/checkpoints/latest/model.safetensors g/checkpoints/latest/model.safetensors"),
        0);
}

// Ctrl-C during a call without an answer ends the run and the program.
static void interrupted(void **state) {
    struct e2e *t = *state;
    const int status = e2e_shell(
        t, "\"$HOST\" " RUN EXEC("stuck $PWD/number") "--set run.dir=e --threads 1 & pid=$!; n=0; "
                                                      "while [ $n -lt 600 ] && ! [ -s number ]; do "
                                                      "sleep 0.1; n=$((n+1)); done; "
                                                      "kill -INT $pid; (sleep 100; kill -KILL "
                                                      "$pid) >/dev/null 2>&1 & guard=$!; "
                                                      "wait $pid; status=$?; kill $guard; n=0; "
                                                      "while [ $n -lt 600 ] && kill -0 $(cat "
                                                      "number) 2>/dev/null; do sleep 0.1; "
                                                      "n=$((n+1)); done; kill -0 $(cat number) "
                                                      "2>/dev/null && status=99; exit $status");
    assert_int_equal(status, 130);
    e2e_says(t, "stopping within phase 1, with nothing kept; Ctrl-C again: at once\n");
    e2e_says(t, "phase 1 is not finished: ");
    e2e_says(t, "nothing is kept: ");
}

// Ctrl-C during a call that is answered soon: the phase is finished and kept.
static void interrupted_and_answered(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "slow.sh",
              "n=0; while read line; do n=$((n+1))\n"
              "[ $n -lt 9 ] || [ -e fired ] || { touch fired; kill -INT $(cat host); sleep 0.3; }\n"
              "echo 1\n"
              "done\n");
    const int status =
        e2e_shell(t, "sh -c 'echo $$ >host; exec \"$HOST\" " RUN "--reward \"exec.so:command=sh "
                     "$PWD/slow.sh\" --set run.dir=i --set run.phases=50 --threads 1'");
    assert_int_equal(status, 130);
    e2e_says(t, "finishing phase 2 ");
    e2e_says(t, "stopped after 2 of 50 phases");
    assert_true(e2e_exists(t, "i/checkpoints/000002/state/run.json"));
}

// A stopped run prints the command that resumes it. Of the options that the user typed, the command
// repeats only those that name code to load.
static void the_command_that_goes_on(void **state) {
    struct e2e *t = *state;
    static const char *const how[][2] = {
        {PYTHON, "go on: rlhf-host --resume a --set reward.0.file=/"},
        {"--reward period_count.so " PYTHON, "go on: rlhf-host --resume a --set reward.1.file=/"},
        {"--reward ./mine.so ", "go on: rlhf-host --resume a --reward /"},
        {"--reward period_count.so ", "go on: rlhf-host --resume a\n"}};
    assert_int_equal(e2e_shell(t, "cp \"$RLHF_TEST_PLUGINS/parity_reward.so\" mine.so"), 0);
    for (size_t i = has_python() ? 0 : 2; i < sizeof how / sizeof *how; i++) {
        assert_int_equal(e2e_run(t, RUN "%s --set run.stop_after=1 --phases 2 --out a", how[i][0]),
                         0);
        e2e_says(t, how[i][1]);
        assert_null(strstr(t->out, "--trust-run"));
        e2e_write(t, "said", t->out);
        assert_int_equal(e2e_shell(t, "sed -n 's/.*go on: rlhf-host/\"$HOST\"/p' said >again && "
                                      "sh again && rm -r a"),
                         0);
        e2e_says(t, "done after 2 of 2 phases");
    }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(a_program_pays),     T(a_command_is_no_place),    T(python_pays),
        T(what_cannot_be_run), T(a_program_that_fails),     T(asked_again),
        T(interrupted),        T(interrupted_and_answered), T(the_command_that_goes_on)};
    return cmocka_run_group_tests_name("e2e_programs", tests, NULL, NULL);
}
