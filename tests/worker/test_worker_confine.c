// test_worker_confine.c: how many processes a worker may have where its PID namespace has no
// largest number of its own: by the limit of its user's, which does not act for root. In processes
// of the test's own, as nobody can leave a namespace again.
#include "support/check.h"

#include "worker/confine.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, NOBODY = 65534, FEW = 8 };

// Until the kernel gives no more: how many, FEW at most.
static int start_some(void) {
    pid_t pid[FEW];
    int n = 0;
    while (n < FEW && (pid[n] = fork()) >= 0) {
        if (pid[n] == 0)
            for (;;)
                pause();
        n++;
    }
    const int why = n < FEW ? errno : 0;
    for (int i = 0; i < n; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
    return why == 0 || why == EAGAIN ? n : -1;
}

// As a worker is, but for the namespace's largest number. What does not hold is the status.
static int as_worker(unsigned spaces, int of_root) {
    const unsigned in_force = rlhf__confine(spaces, 1);
    struct rlimit limit;
    if (of_root) return in_force & RLHF__CONFINED_COUNT ? 1 : 0;
    if (!(in_force & RLHF__CONFINED_COUNT)) return 2;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_max != RLHF__MOST_PROCESSES ||
        limit.rlim_cur != RLHF__MOST_PROCESSES)
        return 3;
    limit.rlim_cur = 5;
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return 4;
    const int n = start_some(); // this one, and the one that waits for it, are of the user too
    return n > 0 && n < FEW ? 0 : 5;
}

static int run(int of_root) {
    if (!of_root && geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
         setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0))
        return SKIPPED;
    const unsigned spaces = rlhf__confine_spaces(1);
    if (!(spaces & RLHF__CONFINED_USERS)) return SKIPPED;
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) _exit(as_worker(spaces, of_root));
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 6;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

static int tried(int of_root) {
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) _exit(run(of_root));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}

static void the_users_limit_counts_them(void **state) {
    struct utsname u;
    unsigned major = 0, minor = 0;
    (void)state;
    assert_int_equal(uname(&u), 0);
    assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
    if (major < 5 || (major == 5 && minor < 14)) skip();
    const int status = tried(0);
    if (status == SKIPPED) skip();
    assert_int_equal(status, 0);
}

// It is no limit of root's, and is not said to be.
static void not_those_of_root(void **state) {
    (void)state;
    if (geteuid() != 0) skip();
    const int status = tried(1);
    if (status == SKIPPED) skip();
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_limit_counts_them),
        cmocka_unit_test(not_those_of_root),
    };
    return cmocka_run_group_tests_name("worker confine", tests, NULL, NULL);
}
