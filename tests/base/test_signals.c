// test_signals.c: the first signal that asks to end sets the flag, the second one kills.
#include "support/check.h"

#include "base/signals.h"

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

// nohup sets SIGHUP aside; so does the program then.
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_signal_ends_the_program),
        cmocka_unit_test(an_ignored_hangup_stays_ignored),
    };
    return cmocka_run_group_tests_name("base_signals", tests, NULL, NULL);
}
