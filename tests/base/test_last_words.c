// test_last_words.c: what handlers of fatal signals run on. What they say is tested on the program,
// in tests/faults.
#include "support/check.h"

#include "base/last_words.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// 0 when handlers have a stack of their own that is large enough for this CPU's registers.
static int child(void) {
    stack_t own;
    rlhf__last_words_install();
    if (sigaltstack(NULL, &own) != 0 || (own.ss_flags & SS_DISABLE)) return 1;
    return own.ss_size >= 32768 && (long)own.ss_size >= sysconf(_SC_SIGSTKSZ) ? 0 : 2;
}

static void handlers_have_room(void **state) {
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(handlers_have_room)};
    return cmocka_run_group_tests_name("base_last_words", tests, NULL, NULL);
}
