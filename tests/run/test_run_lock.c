// test_run_lock.c: a message names the process that holds a lock. If that process has already
// written the name of its machine to the lock file, the message names the machine, too. Also tests
// a lock that is released while the program waits for it.
#include "support/check.h"
#include "support/scratch.h"

#include "base/folder.h"
#include "keep/run_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Starts a process that holds `path` and has written `text`. The process ends 0.2 s after `gate` is
// closed.
static pid_t hold(const char *path, const char *text, int *gate) {
    int ready[2], wait[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(wait), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
        close(wait[1]);
        if (fd < 0 || fcntl(fd, F_SETLK, &l) != 0) _exit(1);
        if (write(fd, text, strlen(text)) < 0 || write(ready[1], &byte, 1) < 0) _exit(2);
        const int read_some = read(wait[0], &byte, 1) != 0;
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        _exit(read_some);
    }
    close(wait[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *gate = wait[1];
    return pid;
}

// The holder has written `text`. Asserts that the message names the process `named` (0: the holder)
// and the machine `on`.
static void check_said(struct scratch *s, const char *text, long named, const char *on) {
    struct rlhf__error err = {0};
    struct rlhf__folder *run = NULL;
    char want[128];
    int gate, status;
    pid_t pid = hold(scratch_path(s, "lock"), text, &gate);
    snprintf(want, sizeof want, "process %ld%s holds", named ? named : (long)pid, on);
    check_ok(rlhf__folder_open(NULL, s->dir, &run, &err), &err);
    check_error(rlhf__run_lock_probe(run, &err), RLHF_E_INVALID, &err, want);
    rlhf__folder_close(run);
    close(gate);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_host_is_named_only_when_known(void **state) {
    check_said(*state, "", 0, "");
    check_said(*state, "12", 0, "");
    check_said(*state, "12 unknown\n", 12, "");
    check_said(*state, "12 some.host\n", 12, " on some.host");
}

// A killed process still holds its lock for a moment. The run can be resumed all the same.
static void a_lock_that_is_released_in_time_is_taken(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__folder *run = NULL;
    int gate, fd = -1, status;
    const pid_t pid = hold(scratch_path(s, "lock"), "12 some.host\n", &gate);
    check_ok(rlhf__folder_open(NULL, s->dir, &run, &err), &err);
    check_error(rlhf__run_lock(run, 100, NULL, &fd, &err), RLHF_E_INVALID, &err,
                "on some.host holds");
    assert_int_equal(fd, -1);
    close(gate);
    check_ok(rlhf__run_lock(run, 10000, NULL, &fd, &err), &err);
    assert_true(fd >= 0);
    close(fd);
    rlhf__folder_close(run);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lock_that_is_released_in_time_is_taken, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_host_is_named_only_when_known, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("train_run_lock", tests, NULL, NULL);
}
