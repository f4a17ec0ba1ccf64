// test_signals.c: the first signal that asks the program to end sets a flag, and the second one
// kills the process.
#include "support/check.h"

#include "base/clock.h"
#include "base/running.h"
#include "base/signals.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(int first, int second) {
    rlhf__signals_install();
    if (*rlhf__signals_flag() != 0) return 1;
    raise(SIGPIPE);
    if (*rlhf__signals_flag() != 0) return 2;
    raise(SIGXFSZ);
    raise(SIGUSR1);
    if (*rlhf__signals_flag() != 0 || !*rlhf__signals_checkpoint()) return 3;
    raise(first);
    if (*rlhf__signals_flag() != first) return 4;
    raise(second);
    return 5;
}

static void second_signal_ends_the_program(void **state) {
    static const int pairs[][2] = {
        {SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGINT}, {SIGHUP, SIGTERM}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) _exit(child(pairs[i][0], pairs[i][1]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), pairs[i][1]);
    }
}

// For work that leaves nothing unfinished, the first signal ends the program.
static void the_first_signal_may_end_the_program(void **state) {
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        rlhf__signals_install();
        rlhf__signals_at_once(1);
        rlhf__signals_at_once(0);
        raise(SIGUSR1);
        rlhf__signals_at_once(1);
        raise(SIGTERM);
        _exit(5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

// nohup ignores SIGHUP. The program then ignores SIGHUP, too.
static void an_ignored_hangup_stays_ignored(void **state) {
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGHUP, SIG_IGN);
        rlhf__signals_install();
        raise(SIGHUP);
        _exit(*rlhf__signals_flag() != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

// Asserts that the message about the first signal is `says`. Log lines are JSON if `json` is set.
// If `in_call` is set, the signal comes during a plugin's call.
static void stopping_says(int json, int in_call, const char *says) {
    char text[256] = "";
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        rlhf__signals_install();
        rlhf__signals_json(json);
        if (in_call) rlhf__running_begin("reward", "mi\"\\\nne.so", "score()");
        raise(SIGTERM);
        _exit(0);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (json) memset(text + sizeof "{\"time\": \"" - 1, '-', RLHF__UTC_BYTES - 2);
    assert_string_equal(text, says);
}

// How a line with a time begins.
#define TIMED "{\"time\": \"-----------------------Z\", \"event\": \"log\", \"level\": \"info\", "

static void stopping_is_json_where_lines_are(void **state) {
    (void)state;
    stopping_says(1, 0, TIMED "\"message\": \"stopping; press again to stop at once\"}\n");
    stopping_says(0, 0, "stopping; press again to stop at once\n");
}

static void stopping_names_what_is_waited_for(void **state) {
    (void)state;
    stopping_says(0, 1,
                  "stopping when reward mine.so is done; press again to "
                  "stop at once\n");
    stopping_says(1, 1,
                  TIMED "\"message\": \"stopping when "
                        "reward mine.so is done; press again to stop at "
                        "once\"}\n");
}

// During a phase, the message says what will happen to the phase. The child gets signal `number`
// first, and then signal `then` if that is not 0.
static void phase_says(int number, int64_t phase, double seconds, const char *kind, int then,
                       const char *says) {
    char text[512] = "";
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        rlhf__signals_install();
        rlhf__signals_phase(phase, seconds, phase == 1);
        rlhf__running_begin(kind, "mine.so", strcmp(kind, "model") == 0 ? "backward()" : "score()");
        raise(number);
        if (then) raise(then);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(text, says);
}

static void in_a_phase(void **state) {
    (void)state;
    phase_says(SIGINT, 87, 0.5, "model", 0,
               "finishing phase 87 (about 1 s), then a checkpoint; Ctrl-C again: at once\n");
    phase_says(SIGTERM, 1, -1, "model", 0,
               "stopping within phase 1, with nothing kept; a second signal: at once\n");
    phase_says(SIGINT, 88, 300, "model", SIGALRM,
               "finishing phase 88 (about 300 s), then a checkpoint; Ctrl-C again: at once\n"
               "still waiting for a backward pass (model mine.so); Ctrl-C again: at once\n");
    phase_says(SIGINT, 2, 3, "reward", 0,
               "finishing phase 2 (about 3 s) if reward mine.so answers soon, else "
               "going back to the end of phase 1; then a checkpoint; Ctrl-C again: at once\n");
    phase_says(SIGINT, 1, 3, "reward", 0,
               "stopping within phase 1, with nothing kept; Ctrl-C again: at once\n");
}

static void a_second_signal_says_what_it_does(void **state) {
    (void)state;
    char longer[600];
    rlhf__signals_kept("phase 2 and those before it are kept; go on: rlhf-host --resume r");
    phase_says(SIGINT, 3, -1, "model", SIGINT,
               "finishing phase 3, then a checkpoint; Ctrl-C again: at once\n"
               "stopped at once; phase 2 and those before it are kept; go on: rlhf-host --resume "
               "r\n");
    phase_says(SIGTERM, 3, -1, "model", 0,
               "finishing phase 3, then a checkpoint; a second signal: at once; if the run is "
               "killed first: phase 2 and those before it are kept; go on: rlhf-host --resume r\n");
    rlhf__signals_kept(NULL);
    phase_says(SIGINT, 3, -1, "model", SIGINT,
               "finishing phase 3, then a checkpoint; Ctrl-C again: at once\n"
               "stopped at once; nothing is kept, because the run has no checkpoint yet\n");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    rlhf__signals_kept(longer);
    phase_says(SIGINT, 3, -1, "model", SIGINT,
               "finishing phase 3, then a checkpoint; Ctrl-C again: at once\n"
               "stopped at once; the work since the last checkpoint is lost\n");
    phase_says(SIGTERM, 0, -1, "model", SIGTERM,
               "stopping when a backward pass (model mine.so) is done; press again to stop at "
               "once\nstopped at once\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_signal_ends_the_program),
        cmocka_unit_test(the_first_signal_may_end_the_program),
        cmocka_unit_test(an_ignored_hangup_stays_ignored),
        cmocka_unit_test(stopping_is_json_where_lines_are),
        cmocka_unit_test(stopping_names_what_is_waited_for),
        cmocka_unit_test(in_a_phase),
        cmocka_unit_test(a_second_signal_says_what_it_does),
    };
    return cmocka_run_group_tests_name("base_signals", tests, NULL, NULL);
}
