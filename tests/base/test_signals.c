// test_signals.c: the first SIGINT sets the flag, the second one kills.
#include "support/check.h"

#include "base/signals.h"

#include <sys/wait.h>
#include <unistd.h>

static int child(void) {
    rlhf__signals_install();
    if (*rlhf__signals_flag() != 0) return 1;
    raise(SIGPIPE);
    if (*rlhf__signals_flag() != 0) return 2;
    raise(SIGINT);
    if (*rlhf__signals_flag() != SIGINT) return 3;
    raise(SIGINT);
    return 4;
}

static void second_signal_ends_the_program(void **state) {
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGINT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(second_signal_ends_the_program)};
    return cmocka_run_group_tests_name("base_signals", tests, NULL, NULL);
}
