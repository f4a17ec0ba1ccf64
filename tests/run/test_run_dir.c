// test_run_dir.c: a run's directory and its lock. A message names the process that holds the lock;
// if that process has already written the name of its machine to the lock file, the message names
// the machine, too. Also tests a lock that is released while the program waits for it, and several
// processes that create one directory at the same time: one gets it; the others get an error and do
// not touch it.
#include "base/folder.h"
#include "keep/run_dir.h"
#include "keep/run_lock.h"
#include "support/check.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

// ---- several processes create one directory ----

enum { PAIRS = 60, REFUSED = 10, BROKEN = 11 };

// Chooses and creates the directory as a run does, once `gate` is closed. If this process wins, it
// keeps the lock until `end` is closed. The exit status is 0 if this process won, and REFUSED if
// the directory already exists.
static void contend(const struct rlhf__config *config, int ready, int gate, int done, int end) {
    struct rlhf__error err = {0};
    struct rlhf__run_dir dir;
    char byte = 0;
    rlhf__run_dir_begin(&dir, NULL);
    if (rlhf__run_dir_choose(&dir, config, "test", &err) != RLHF_OK) _exit(BROKEN);
    if (write(ready, &byte, 1) != 1 || read(gate, &byte, 1) != 0) _exit(BROKEN);
    rlhf_status st = rlhf__run_dir_make(&dir, config, NULL, &err);
    if (write(done, &byte, 1) != 1 || read(end, &byte, 1) != 0) _exit(BROKEN);
    if (st == RLHF_OK) _exit(0);
    _exit(st == RLHF_E_INVALID && strstr(err.text, "exists already") ? REFUSED : BROKEN);
}

struct gates {
    int ready[2], gate[2], done[2], end[2];
};

static pid_t start(const struct rlhf__config *config, const struct gates *g) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0) return pid;
    close(g->gate[1]);
    close(g->end[1]);
    contend(config, g->ready[1], g->gate[0], g->done[1], g->end[0]);
    _exit(BROKEN);
}

// Runs two processes at once. Stores their exit statuses in statuses[2].
static void race(const struct rlhf__config *config, int *statuses) {
    struct gates g;
    pid_t pid[2];
    char byte;
    assert_int_equal(pipe(g.ready) + pipe(g.gate) + pipe(g.done) + pipe(g.end), 0);
    for (int i = 0; i < 2; i++)
        pid[i] = start(config, &g);
    close(g.ready[1]);
    close(g.done[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(g.ready[0], &byte, 1), 1);
    close(g.gate[1]); // both processes start now
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(g.done[0], &byte, 1), 1);
    close(g.end[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(waitpid(pid[i], statuses + i, 0), pid[i]);
    const int open[] = {g.ready[0], g.gate[0], g.done[0], g.end[0]};
    for (int i = 0; i < 4; i++)
        close(open[i]);
}

static void one_of_two_has_it(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__config config;
    static const struct rlhf__dirs dirs = {.exe = "", .lib = "/nowhere", .share = "/nowhere"};
    const struct rlhf__config_request req = {.dirs = &dirs, .algo = "test.so"};
    check_ok(rlhf__config_load(&req, &config, &err), &err);
    for (int i = 0; i < PAIRS; i++) {
        char name[32], path[512];
        int status[2];
        snprintf(name, sizeof name, "run%d", i);
        snprintf(path, sizeof path, "%s", scratch_path(s, name));
        config.run.dir = path;
        if (i % 2) assert_int_equal(mkdir(path, 0777), 0); // an empty directory may be used
        race(&config, status);
        for (int k = 0; k < 2; k++)
            if (!WIFEXITED(status[k])) fail_msg("pair %d: status %d", i, status[k]);
        int a = WEXITSTATUS(status[0]), b = WEXITSTATUS(status[1]);
        if (a + b != REFUSED || (a && b)) fail_msg("pair %d ended with %d and %d", i, a, b);
        struct rlhf__folder *run = scratch_folder(path); // the loser removed nothing
        assert_true(rlhf__folder_is_file(run, "config.json"));
        rlhf__folder_close(run);
    }
    rlhf__config_finish(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lock_that_is_released_in_time_is_taken, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_host_is_named_only_when_known, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(one_of_two_has_it, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("run_dir", tests, NULL, NULL);
}
