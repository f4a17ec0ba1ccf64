// test_worker_confine.c: tests how many processes a worker may have if the kernel cannot limit its
// PID namespace. In that case the process limit of the worker's user applies, except to root. The
// tests run in child processes, because a process cannot leave a namespace. Also tests when the
// program lists the limits of a control group as in force.
#include "support/check.h"

#include "supervise/confine.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, NOBODY = 65534, FEW = 8 };

// Starts processes until the kernel refuses or there are FEW. Returns their number.
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

// Sets up the process like a worker, but without the namespace's limit. The exit status tells which
// check failed.
static int as_worker(unsigned spaces, int of_root) {
    const unsigned in_force = rlhf__confine(spaces, 1, NULL);
    struct rlimit limit;
    if (of_root) return in_force & RLHF__CONFINED_COUNT ? 1 : 0;
    if (!(in_force & RLHF__CONFINED_COUNT)) return 2;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_max != RLHF__MOST_PROCESSES ||
        limit.rlim_cur != RLHF__MOST_PROCESSES)
        return 3;
    limit.rlim_cur = 5;
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return 4;
    const int n = start_some(); // this process and the one that waits for it count, too
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

// The limit does not apply to root, and is not listed as in force.
static void not_those_of_root(void **state) {
    (void)state;
    if (geteuid() != 0) skip();
    const int status = tried(1);
    if (status == SKIPPED) skip();
    assert_int_equal(status, 0);
}

// Returns the bits of `given` that remain for a process without landlock. Here the process cannot
// use landlock because it may not open any more files.
static unsigned without_landlock(unsigned given) {
    const struct rlimit few = {3, 3};
    unsigned left = 0;
    int fd[2], status;
    assert_int_equal(pipe(fd), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_NOFILE, &few);
        left = rlhf__confine(given, 1, NULL);
        _exit(write(fd[1], &left, sizeof left) != (ssize_t)sizeof left);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(read(fd[0], &left, sizeof left), sizeof left);
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(left & RLHF__CONFINED_FILES, 0);
    return left;
}

// If a process can write files, it can change the limits of a control group. So these limits are
// not listed as in force.
static void a_group_bounds_who_cannot_write(void **state) {
    const unsigned group = RLHF__CONFINED_GROUP | RLHF__CONFINED_GROUP_COUNT;
    (void)state;
    assert_int_equal(without_landlock(group) & group, 0);
    assert_int_equal(without_landlock(group | RLHF__CONFINED_READ_ONLY) & group, group);
}

// The line shows whether a limit is per process or for all processes together.
static void words_tell_which_bounds_hold(void **state) {
    static const char each[] = "rewards.memory_mib for each process",
                      all[] = "rewards.memory_mib for all of them (cgroup)",
                      count[] = "at most 1024 processes and threads";
    static const struct {
        unsigned in_force;
        int each, all, count;
    } cases[] = {{0, 0, 0, 0},
                 {RLHF__CONFINED_MEMORY, 1, 0, 0},
                 {RLHF__CONFINED_GROUP, 0, 1, 0},
                 {RLHF__CONFINED_GROUP_COUNT, 0, 0, 1},
                 {RLHF__CONFINED_COUNT | RLHF__CONFINED_MEMORY, 1, 0, 1}};
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__buf out = RLHF__BUF_INIT;
        rlhf__confined_text(cases[i].in_force, 64, &out);
        const char *text = rlhf__buf_text(&out), *lacks = strstr(text, "not in force");
        assert_non_null(lacks);
        assert_int_equal(strstr(text, each) < lacks, cases[i].each);
        assert_int_equal(strstr(text, all) < lacks, cases[i].all);
        assert_int_equal(strstr(text, count) < lacks, cases[i].count);
        rlhf__buf_clear(&out);
        rlhf__confined_text(cases[i].in_force, 0, &out);
        lacks = strstr(rlhf__buf_text(&out), "not in force");
        assert_null(strstr(lacks, "memory_mib")); // it was not requested
        rlhf__buf_finish(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_limit_counts_them),
        cmocka_unit_test(not_those_of_root),
        cmocka_unit_test(a_group_bounds_who_cannot_write),
        cmocka_unit_test(words_tell_which_bounds_hold),
    };
    return cmocka_run_group_tests_name("worker confine", tests, NULL, NULL);
}
