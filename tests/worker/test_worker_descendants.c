// test_worker_descendants.c: a worker has started several processes. Checks which of them the
// warden finds.
#include "support/check.h"

#include "supervise/descendants.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

// The process to which the debugger attaches.
static void a_debugger_is_seen(void **state) {
    int ready[2];
    pid_t grandchild = 0;
    (void)state;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const pid_t pid = fork();
        if (pid > 0 && write(ready[1], &pid, sizeof pid) != (ssize_t)sizeof pid) _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &grandchild, sizeof grandchild), sizeof grandchild);
    const int before = rlhf__descendants_look(0).traced;
    const long attached = ptrace(PTRACE_SEIZE, grandchild, NULL, NULL);
    const int during = rlhf__descendants_look(0).traced;
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(before, 0);
    if (attached != 0) skip(); // the machine forbids it
    assert_int_equal(during, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_debugger_is_seen)};
    return cmocka_run_group_tests_name("worker descendants", tests, NULL, NULL);
}
