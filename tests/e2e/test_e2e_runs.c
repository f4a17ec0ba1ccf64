// test_e2e_runs.c: `rlhf-host runs` lists and prunes runs of the program. Tests the states of runs,
// the output on terminals, and which checkpoints pruning keeps.
#include "e2e.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SFT                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set batch.size=16 --threads 1 --set checkpoint.every=2 --set checkpoint.keep=0 "

static void fine(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit status %d:\n%s", status, t->out);
}

// Check the cell `column` (counted from 1) of a run's line in the table.
static void cell(struct e2e *t, const char *run, int column, const char *want) {
    fine(t, e2e_shell(t, "\"$HOST\" runs list | awk '$1 == \"%s\" { print $%d }'", run, column));
    t->out[strcspn(t->out, "\n")] = '\0';
    if (strcmp(t->out, want) != 0) fail_msg("%s: expected \"%s\", found \"%s\"", run, want, t->out);
}

// Make runs/done with all 6 of its 6 phases, and runs/stopped and runs/died with 4 of 6 phases.
static void make_runs(struct e2e *t) {
    fine(t, e2e_run(t, SFT "--phases 6 --out runs/done"));
    fine(t, e2e_run(t, SFT "--phases 6 --set run.stop_after=4 --out runs/stopped"));
    fine(t, e2e_shell(
                t, "cp -r runs/stopped runs/died && cd runs/died && "
                   "rm -r checkpoints/000004 && ln -sfn 000002 checkpoints/latest && "
                   "if [ -f events.jsonl ]; then sed -i '/\"event\": \"end\"/d' events.jsonl; fi"));
}

static void states(void **state) {
    struct e2e *t = *state;
    make_runs(t);
    cell(t, "done", 2, "done");
    cell(t, "done", 3, "6/6");
    cell(t, "stopped", 2, "stopped");
    cell(t, "stopped", 3, "4/6");
    cell(t, "died", 2, "died");
    fine(t, e2e_shell(t, "\"$HOST\" runs list"));
    e2e_says(t, "rlhf-host --resume runs/stopped goes on after phase 4");
    e2e_says(t, "rlhf-host --resume runs/died goes on after phase 2");
    // Resumes the run with the command that its line suggests.
    fine(t, e2e_run(t, "--resume runs/died --set run.stop_after=0"));
    cell(t, "died", 2, "done");
    fine(t, e2e_shell(t, "\"$HOST\" runs show runs/died"));
    e2e_says(t, "died: done, 6 of 6 phases");
    e2e_says(t, "yes   all 6 phases");
    fine(t, e2e_shell(t, "\"$HOST\" runs compare runs/done runs/died"));
    e2e_says(t, "Bits per token ends at");
}

// Without run.phases, the run's events say how many phases were planned. The error of a failed run
// is shown whole by `runs show`, and cut in the list, also in a pipe.
static void plans_and_errors(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set data.epochs=2 --set run.stop_after=3 --out runs/half"));
    cell(t, "half", 2, "stopped");
    cell(t, "half", 3, "3/8");
    fine(t, e2e_shell(t, "\"$HOST\" runs show runs/half"));
    e2e_says(t, "no    3 of 8 phases");
    fine(t,
         e2e_shell(t,
                   "printf '%%s\\n' '{\"time\": 1, \"phase\": 3, \"event\": \"end\", \"status\": "
                   "\"failed\", \"reason\": \"reward r: %s\"}' >>runs/half/events.jsonl; "
                   "\"$HOST\" runs list | awk '{ if (length($0) > 220) exit 1 }' && "
                   "\"$HOST\" runs show runs/half",
                   "a long story of one thing after another, with file and line and what else "
                   "was found, which fills more than one line and ends here at last, at length "
                   "and in full, as a person would want to read it but not in a list THE END"));
    e2e_says(t, "THE END");
}

// To see whether a run is active, the program asks for the run's lock. Here this process holds the
// lock, as a training run would.
static void a_running_run_is_left_alone(void **state) {
    struct e2e *t = *state;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[400];
    make_runs(t);
    snprintf(path, sizeof path, "%s/runs/stopped/lock", t->dir);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    cell(t, "stopped", 2, "running");
    fine(t, e2e_shell(t, "\"$HOST\" runs list"));
    e2e_says(t, "ETA 0:0");
    assert_null(strstr(t->out, "--resume runs/stopped"));
    fine(t, e2e_shell(t, "\"$HOST\" runs prune --keep-last --yes"));
    e2e_says(t, "runs/stopped: keeps its checkpoints: the run is running");
    e2e_says(t, "runs/done: removed 000002, 000004, ");
    assert_true(e2e_exists(t, "runs/stopped/checkpoints/000002"));
    assert_false(e2e_exists(t, "runs/done/checkpoints/000004"));
    assert_true(e2e_exists(t, "runs/done/checkpoints/000006"));
    close(fd);
    cell(t, "stopped", 2, "stopped");
    fine(t, e2e_shell(t, "\"$HOST\" runs prune runs/stopped --keep-last --yes"));
    assert_false(e2e_exists(t, "runs/stopped/checkpoints/000002"));
    // The remaining checkpoints can be resumed and used.
    fine(t, e2e_run(t, "--resume runs/stopped --set run.stop_after=0"));
    fine(t, e2e_run(t, "generate --model runs/done --prompt a --max-new 2"));
}

// While a process reads a checkpoint, it holds a lock on the checkpoint.
static void a_checkpoint_in_use_stays(void **state) {
    struct e2e *t = *state;
    char path[400];
    make_runs(t);
    snprintf(path, sizeof path, "%s/runs/done/checkpoints/000002", t->dir);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0 && flock(fd, LOCK_SH) == 0);
    fine(t, e2e_shell(t, "\"$HOST\" runs prune runs/done --keep-last --yes"));
    e2e_says(t, "runs/done: removed 000004, ");
    e2e_says(t, "runs/done: keeps 000002: another process is reading it");
    assert_true(e2e_exists(t, "runs/done/checkpoints/000002"));
    close(fd);
}

// If a run began from another run's checkpoint, pruning keeps that checkpoint, so the run can still
// be resumed.
static void a_checkpoint_that_a_run_began_from_stays(void **state) {
    struct e2e *t = *state;
    make_runs(t);
    fine(t, e2e_run(t, "--algo sft.so --policy runs/done/checkpoints/000002 --data texts.jsonl "
                       "--phases 1 --out runs/next"));
    fine(t, e2e_shell(t, "\"$HOST\" runs prune runs/done --keep-last --yes"));
    e2e_says(t, "runs/done: removed 000004, ");
    e2e_says(t, "runs/done: keeps 000002: next began from it");
    assert_true(e2e_exists(t, "runs/done/checkpoints/000002"));
}

// A checkpoint from which another run began is kept even if its path contains "/checkpoints/"
// twice, the directory of the runs was moved, or the other run cannot be read. If a run was copied
// with hard links, copy and original share one lock file, which must not be written.
static void what_may_be_needed_stays(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--phases 4 --out c/checkpoints/runs/done"));
    fine(t, e2e_run(t, "--algo sft.so --policy c/checkpoints/runs/done/checkpoints/000002 --data "
                       "texts.jsonl --phases 1 --out c/checkpoints/runs/next"));
    fine(t, e2e_shell(t, "\"$HOST\" runs prune c/checkpoints/runs --keep-last --yes"));
    e2e_says(t, "keeps 000002: next began from it");
    fine(t, e2e_shell(t, "mv c/checkpoints/runs moved && \"$HOST\" runs prune moved/done "
                         "--keep-last --yes"));
    e2e_says(t, "keeps 000002: next began from it");
    fine(t,
         e2e_shell(t, "echo '{' >moved/next/config.json && cp moved/next/config.json "
                      "moved/next/manifest.json && \"$HOST\" runs prune moved --keep-last --yes"));
    e2e_says(t, "cannot be read, so it is not known which checkpoints it began from");
    assert_true(e2e_exists(t, "moved/done/checkpoints/000002"));
    fine(t, e2e_shell(t, "rm -r moved/next && echo kept >other && ln -f other moved/done/lock && "
                         "\"$HOST\" runs prune moved --keep-last --yes && cat other"));
    e2e_says(t, "removed 000002");
    e2e_says(t, "\nkept\n");
}

static size_t widest_line(const char *text) {
    size_t most = 0;
    while (*text) {
        const size_t n = strcspn(text, "\r\n");
        most = n > most ? n : most;
        text += n + strspn(text + n, "\r\n");
    }
    return most;
}

static void terminals(void **state) {
    struct e2e *t = *state;
    make_runs(t);
    assert_int_equal(e2e_terminal(t, 200, "\"$HOST\" runs list"), 0);
    e2e_says(t, "rlhf-host --resume runs/died goes on after phase 2");
    e2e_says(t, "started");
    assert_int_equal(e2e_terminal(t, 30, "\"$HOST\" runs list 2>&1 | cat"), 0); // not a terminal
    e2e_says(t, "goes on after phase 2");
    assert_int_equal(e2e_terminal(t, 30, "\"$HOST\" runs list | head -c 0; \"$HOST\" runs list"),
                     0);
    assert_null(strstr(t->out, "started"));
    assert_null(strstr(t->out, "goes on after"));
    e2e_says(t, "go on with 'rlhf-host --resume RUN'");
    t->out[strcspn(t->out, "3")] = '\0'; // before the line "3 runs in ..."
    if (widest_line(t->out) > 30) fail_msg("wider than the terminal:\n%s", t->out);
    assert_int_equal(
        e2e_terminal(t, 100, "timeout --preserve-status -s INT 5 \"$HOST\" runs list --watch"),
        130);
    e2e_says(t, "\033[H\033[2Jrun ");
}

// The file has 1 TiB, most of which is a hole. It is listed at once, because only its beginning and
// its end are read.
static void only_the_ends_of_a_file_are_read(void **state) {
    struct e2e *t = *state;
    make_runs(t);
    if (e2e_shell(t, "cd runs/died && tail -1 metrics.jsonl | sed 's/^{\"phase\": 4/"
                     "{\"phase\": 5/' >last && truncate -s 1T metrics.jsonl && "
                     "{ echo; cat last; } >>metrics.jsonl && rm last") != 0) {
        print_message("this file system has no files of 1 TiB: not checked\n");
        skip();
    }
    cell(t, "died", 3, "5/6");
}

// On a narrow terminal, a comparison leaves out the standard errors that follow ranges. It keeps
// every column.
static void says(struct e2e *t, const char *text) {
    if (!strstr(t->out, text)) fail_msg("\"%s\" is not in:\n%s", text, t->out);
}

static void samples(void **state) {
    struct e2e *t = *state;
    fine(t,
         e2e_run(t, SFT "--phases 3 --set log.samples=2 --set log.samples_every=1 --out runs/a"));
    fine(t, e2e_shell(t, "\"$HOST\" samples runs/a"));
    says(t, "phase 3: 2 rows\n\nrow 0");
    fine(t, e2e_shell(t, "\"$HOST\" samples runs/a --phase 2"));
    says(t, "phase 2: 2 rows\n");
    fine(t, e2e_shell(t, "\"$HOST\" samples runs/a --json | grep -c '\"phase\": 3'"));
    says(t, "2\n");
    // A text cannot control the terminal.
    fine(t,
         e2e_shell(
             t,
             "printf '{\"phase\": 4, \"row\": 7, \"reward\": 0.5, \"response\": \"\\\\u001b[2J\", "
             "\"length\": 1}\\n' >> runs/a/samples.jsonl; \"$HOST\" samples runs/a"));
    says(t, "phase 4: 1 row\n\nrow 7  reward 0.5  1 token\n  response \\x1b[2J\n");
    assert_int_equal(e2e_shell(t, "\"$HOST\" samples runs/a --phase 9"), 2);
    says(t, "has no rows of phase 9; the last phase in it is 4");
    assert_int_equal(e2e_shell(t, "\"$HOST\" samples runs/a --held-out"), 2);
    says(t, "has no rows of held-out prompts yet");
    assert_int_equal(e2e_shell(t, "\"$HOST\" samples"), 2);
    assert_int_equal(e2e_shell(t, "\"$HOST\" samples model"), 2);
}

static void a_narrow_comparison(void **state) {
    struct e2e *t = *state;
    for (int seed = 1; seed <= 2; seed++)
        fine(t, e2e_run(t, SFT "--phases 2 --seed %d --out runs/s-%d", seed, seed));
    fine(t, e2e_run(t, SFT "--phases 2 --set optim.lr=0.001 --out runs/other"));
    assert_int_equal(e2e_terminal(t, 200, "\"$HOST\" runs compare runs/*"), 0);
    e2e_says(t, "\xc2\xb1");
    e2e_says(t, "s-1 .. 2");
    static const unsigned short widths[] = {50, 30};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(e2e_terminal(t, widths[i], "\"$HOST\" runs compare runs/*"), 0);
        assert_null(strstr(t->out, "\xc2\xb1"));
        e2e_says(t, "s-1 .. 2");
        e2e_says(t, "other");
        e2e_says(t, "0.001");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_and_errors, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(states, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_running_run_is_left_alone, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_in_use_stays, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_that_a_run_began_from_stays, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(what_may_be_needed_stays, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(terminals, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(samples, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_narrow_comparison, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(only_the_ends_of_a_file_are_read, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
