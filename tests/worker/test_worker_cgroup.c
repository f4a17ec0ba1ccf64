// test_worker_cgroup.c: control groups of workers, in a made-up tree of files. Checks where a group
// can be made, which limits are written, and how groups of killed hosts are removed. Wrapped
// functions do the kernel's part: mkdirat() fills a new group with files, and unlinkat() removes a
// group without processes.
#include "support/scratch.h"

#include "supervise/cgroup.h"
#include "supervise/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define MAX "max\n"

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

// The files of a new group and their contents. If a file's contents are NULL, the kernel does not
// have that file.
static struct file {
    const char *name, *text;
} files[] = {{"cgroup.procs", ""},         {"cgroup.kill", ""},
             {"memory.max", MAX},          {"memory.oom.group", "0\n"},
             {"memory.swap.max", MAX},     {"pids.max", MAX},
             {"memory.events", "low 0\n"}, {NULL, NULL}};

static void write_in(int dir, const char *name, const char *text) {
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode) {
    if (__real_mkdirat(dir, name, mode) != 0) return -1;
    const int group = openat(dir, name, O_RDONLY | O_DIRECTORY);
    assert_true(group >= 0);
    for (const struct file *f = files; f->name; f++)
        if (f->text) write_in(group, f->name, f->text);
    close(group);
    return 0;
}

// A group with processes stays until they are killed.
int __wrap_unlinkat(int dir, const char *name, int flags) {
    struct stat busy, killed;
    if (!(flags & AT_REMOVEDIR)) return __real_unlinkat(dir, name, flags);
    const int group = openat(dir, name, O_RDONLY | O_DIRECTORY);
    if (group < 0) return -1;
    if (fstatat(group, "cgroup.procs", &busy, 0) == 0 && busy.st_size > 0 &&
        (fstatat(group, "cgroup.kill", &killed, 0) != 0 || killed.st_size == 0)) {
        close(group);
        errno = EBUSY;
        return -1;
    }
    for (const struct file *f = files; f->name; f++)
        __real_unlinkat(group, f->name, 0);
    close(group);
    return __real_unlinkat(dir, name, flags);
}

// ---- the tree ----

static void say(const struct scratch *s, const char *path, const char *text) {
    char file[512], *cut;
    snprintf(file, sizeof file, "%.200s/%.200s", s->dir, path);
    cut = strrchr(file, '/');
    *cut = '\0';
    assert_int_equal(rlhf__make_dirs(file, NULL), RLHF_OK);
    const int dir = open(file, O_RDONLY | O_DIRECTORY);
    assert_true(dir >= 0);
    write_in(dir, cut + 1, text);
    close(dir);
}

// Asserts that the file holds exactly `want`.
static void holds(const char *dir, const char *name, const char *want) {
    char path[512], text[64] = "";
    snprintf(path, sizeof path, "%.300s/%.100s", dir, name);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is not there", path);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    assert_string_equal(text, want);
}

static int is_there(const struct scratch *s, const char *path) {
    char file[512];
    snprintf(file, sizeof file, "%.200s/%.200s", s->dir, path);
    return access(file, F_OK) == 0;
}

#define ROOT  "23 1 0:20 / / rw - ext4 /dev/vda rw\n"
#define MOUNT ROOT "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define APP   "sys/fs/cgroup/user/app"

// Sets up a host in user/app/shell.scope. Groups can be made next to that scope.
static void lay(const struct scratch *s) {
    say(s, "proc/self/cgroup", "4:memory:/not/ours\n0::/user/app/shell.scope\n");
    say(s, "proc/self/mountinfo", MOUNT);
    say(s, APP "/cgroup.subtree_control", "cpu memory pids\n");
    say(s, APP "/cgroup.type", "domain\n");
    say(s, APP "/shell.scope/cgroup.type", "domain\n");
    say(s, APP "/shell.scope/cgroup.subtree_control", "\n");
    say(s, "sys/fs/cgroup/cgroup.subtree_control", "memory pids\n");
}

static int can_be_made(const struct scratch *s) {
    struct rlhf__cgroup g;
    if (rlhf__cgroup_make(s->dir, 80 * MIB, &g) != 0) {
        assert_null(g.dir);
        return 0;
    }
    assert_int_equal(rlhf__cgroup_close(&g), RLHF__CGROUP_FINE);
    assert_null(g.dir);
    return 1;
}

// ---- making ----

static void it_lies_beside_the_hosts_and_has_bounds(void **state) {
    const struct scratch *s = *state;
    struct rlhf__cgroup g, second;
    char want[512];
    lay(s);
    assert_int_equal(rlhf__cgroup_make(s->dir, 80 * MIB, &g), 0);
    snprintf(want, sizeof want, "%s/" APP "/rlhf-host-%ld-0", s->dir, (long)getpid());
    assert_string_equal(g.dir, want);
    holds(g.dir, "memory.max", "83886080");
    holds(g.dir, "memory.oom.group", "1\n"); // "1" was written over "0\n"
    holds(g.dir, "memory.swap.max", "0ax\n");
    holds(g.dir, "pids.max", "1024");
    holds(g.dir, "cgroup.kill", "");
    assert_int_equal(rlhf__cgroup_make(s->dir, 80 * MIB, &second), 0);
    snprintf(want, sizeof want, "%s/" APP "/rlhf-host-%ld-1", s->dir, (long)getpid());
    assert_string_equal(second.dir, want);
    assert_int_equal(access(g.dir, F_OK), 0); // it is not mistaken for an old group
    assert_int_equal(rlhf__cgroup_close(&second), RLHF__CGROUP_FINE);
    assert_int_equal(access(want, F_OK), -1);
    assert_int_equal(rlhf__cgroup_close(&g), RLHF__CGROUP_FINE);
    assert_int_equal(rlhf__cgroup_close(&g), RLHF__CGROUP_FINE); // it is already closed
}

// Checks that the hierarchy's mount is found at any place, if it shows only a part of the
// hierarchy, and if the cgroup namespace begins below the root. Other mounts must not be used.
static void it_is_found_where_it_is_mounted(void **state) {
    const struct scratch *s = *state;
    lay(s);
    assert_true(can_be_made(s));
    // The host is in a container whose cgroup namespace begins at /user.
    say(s, "proc/self/mountinfo", ROOT "9 2 0:28 /user /a\\040b rw - cgroup2 cgroup rw\n");
    assert_false(can_be_made(s)); // the directory does not exist yet
    say(s, "a b/app/cgroup.subtree_control", "memory\n");
    say(s, "a b/app/shell.scope/cgroup.type", "domain\n");
    assert_true(can_be_made(s));
    say(s, "a br/app/cgroup.subtree_control", "memory\n");
    say(s, "a br/app/shell.scope/cgroup.type", "domain\n");
    say(s, "proc/self/mountinfo", ROOT "9 2 0:28 /use /a\\040b rw - cgroup2 cgroup rw\n");
    assert_false(can_be_made(s)); // the tree of another group
    say(s, "proc/self/mountinfo", ROOT "9 2 0:28 / /sys/fs/cgroup rw - tmpfs cgroup2 rw\n");
    assert_false(can_be_made(s)); // version 1 and nothing else
    say(s, "proc/self/mountinfo", MOUNT);
    say(s, "sys/fs/app/cgroup.subtree_control", "memory\n");
    say(s, "sys/fs/app/shell.scope/cgroup.type", "domain\n");
    say(s, "proc/self/cgroup", "0::/../app/shell.scope\n");
    assert_false(can_be_made(s)); // outside the namespace
    say(s, "proc/self/cgroup", "4:memory:/user/app/shell.scope\n");
    assert_false(can_be_made(s));
}

// Only the root group may have both processes and groups. The top of a namespace or of a mount
// looks like the root.
static void at_the_top_it_lies_below_the_root_only(void **state) {
    const struct scratch *s = *state;
    lay(s);
    say(s, "proc/self/cgroup", "0::/\n");
    assert_true(can_be_made(s));
    say(s, "sys/fs/cgroup/cgroup.type", "domain\n");
    assert_false(can_be_made(s));
    say(s, "proc/self/cgroup", "0::/shell.scope\n"); // one level down, its parent is the top
    say(s, "sys/fs/cgroup/shell.scope/cgroup.type", "domain\n");
    assert_true(can_be_made(s));
    say(s, "proc/self/cgroup", "0::/user/app/shell.scope\n");
    say(s, "proc/self/mountinfo",
        "9 2 0:28 /user/app/shell.scope /" APP "/shell.scope rw - cgroup2 cgroup rw\n");
    assert_false(can_be_made(s));
}

static void without_the_memory_controller_there_is_none(void **state) {
    static const char *const lacking[] = {"", "\n", "cpu pids\n", "memoryx pids\n", "xmemory\n"};
    const struct scratch *s = *state;
    lay(s);
    for (size_t i = 0; i < CHECK_COUNT(lacking); i++) {
        say(s, APP "/cgroup.subtree_control", lacking[i]);
        assert_false(can_be_made(s));
    }
    say(s, APP "/cgroup.subtree_control", "pids memory\n");
    assert_true(can_be_made(s));
}

// If memory cannot be limited, the group is removed again. If other limits are missing, the group
// stays.
static void what_the_kernel_must_have(void **state) {
    const struct scratch *s = *state;
    char dir[512];
    snprintf(dir, sizeof dir, APP "/rlhf-host-%ld-0", (long)getpid());
    lay(s);
    for (struct file *f = files; f->name; f++) {
        const char *text = f->text;
        const int needed =
            strcmp(f->name, "memory.max") == 0 || strcmp(f->name, "memory.oom.group") == 0;
        f->text = NULL;
        const int made = can_be_made(s), left = is_there(s, dir);
        f->text = text;
        if (made == needed) fail_msg("without %s: made %d", f->name, made);
        if (left) fail_msg("without %s: %s is left", f->name, dir);
    }
}

// ---- entering ----

static void who_enters_says_which_bounds_hold(void **state) {
    const struct scratch *s = *state;
    struct rlhf__cgroup g;
    lay(s);
    assert_int_equal(rlhf__cgroup_enter(""), 0);
    assert_int_equal(rlhf__cgroup_enter("/no/such/group"), 0);
    assert_int_equal(rlhf__cgroup_make(s->dir, 80 * MIB, &g), 0);
    assert_int_equal(rlhf__cgroup_enter(g.dir), RLHF__CONFINED_GROUP | RLHF__CONFINED_GROUP_COUNT);
    holds(g.dir, "cgroup.procs", "0");
    const int fd = open(g.dir, O_RDONLY | O_DIRECTORY);
    write_in(fd, "pids.max", MAX);
    assert_int_equal(rlhf__cgroup_enter(g.dir), RLHF__CONFINED_GROUP);
    write_in(fd, "memory.max", MAX);
    assert_int_equal(rlhf__cgroup_enter(g.dir), 0);
    write_in(fd, "memory.max", "80\n");
    __real_unlinkat(fd, "cgroup.procs", 0); // the group cannot be entered
    assert_int_equal(rlhf__cgroup_enter(g.dir), 0);
    close(fd);
    rlhf__cgroup_close(&g);
}

// ---- the end ----

static void the_end_says_who_had_no_memory(void **state) {
    static const struct {
        const char *events;
        enum rlhf__cgroup_end want;
    } cases[] = {
        {"low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\noom_group_kill 0\n", RLHF__CGROUP_FINE},
        {"low 0\nhigh 0\nmax 9\noom 3\noom_kill 0\noom_group_kill 0\n", RLHF__CGROUP_FINE},
        {"low 0\nhigh 0\nmax 9\noom 1\noom_kill 4\noom_group_kill 1\n", RLHF__CGROUP_OWN},
        {"low 0\nhigh 0\nmax 0\noom 0\noom_kill 4\noom_group_kill 1\n", RLHF__CGROUP_MACHINE},
        {"oom_kill 1", RLHF__CGROUP_MACHINE},
        {"oom 1\noom_kill", RLHF__CGROUP_FINE},
        {"", RLHF__CGROUP_FINE},
    };
    const struct scratch *s = *state;
    lay(s);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__cgroup g;
        assert_int_equal(rlhf__cgroup_make(s->dir, 80 * MIB, &g), 0);
        const int fd = open(g.dir, O_RDONLY | O_DIRECTORY);
        write_in(fd, "memory.events", cases[i].events);
        close(fd);
        const enum rlhf__cgroup_end how = rlhf__cgroup_close(&g);
        if (how != cases[i].want) fail_msg("%s: %d", cases[i].events, (int)how);
    }
}

// Makes a group of the name NAME with a process in it.
static void leave(const struct scratch *s, const char *name) {
    char path[256];
    snprintf(path, sizeof path, APP "/%.60s/cgroup.procs", name);
    say(s, path, "77\n");
    snprintf(path, sizeof path, APP "/%.60s/cgroup.kill", name);
    say(s, path, "");
}

static void old_groups_go_and_others_stay(void **state) {
    static const char *const stay[] = {"rlhf-host-12",    "rlhf-host-12-0.scope", "rlhf-host-a-0",
                                       "rlhf-hosts-12-0", "other.scope",          "shell.scope"};
    const struct scratch *s = *state;
    char live[512];
    lay(s);
    leave(s, "rlhf-host-12-0");
    leave(s, "rlhf-host-4194304-17");
    leave(s, "rlhf-host-13-0"); // its host lives
    for (size_t i = 0; i < CHECK_COUNT(stay); i++)
        leave(s, stay[i]);
    snprintf(live, sizeof live, "%s/" APP "/rlhf-host-13-0", s->dir);
    const int fd = open(live, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_true(can_be_made(s));
    assert_false(is_there(s, APP "/rlhf-host-12-0"));
    assert_false(is_there(s, APP "/rlhf-host-4194304-17"));
    holds(live, "cgroup.kill", "");
    for (size_t i = 0; i < CHECK_COUNT(stay); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/" APP "/%s", s->dir, stay[i]);
        holds(path, "cgroup.kill", "");
    }
    close(fd);
    assert_true(can_be_made(s)); // its host has died
    assert_int_equal(access(live, F_OK), -1);
}

// When a host is killed, its lock is released.
static void a_killed_hosts_group_goes(void **state) {
    const struct scratch *s = *state;
    char dir[512], c;
    int fd[2], status;
    lay(s);
    assert_int_equal(pipe(fd), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct rlhf__cgroup g;
        prctl(PR_SET_PDEATHSIG, SIGKILL); // in case the test fails
        if (rlhf__cgroup_make(s->dir, 80 * MIB, &g) != 0 || write(fd[1], "x", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    snprintf(dir, sizeof dir, APP "/rlhf-host-%ld-0", (long)pid);
    assert_int_equal(read(fd[0], &c, 1), 1);
    assert_true(can_be_made(s));
    assert_true(is_there(s, dir));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(can_be_made(s));
    assert_false(is_there(s, dir));
    close(fd[0]);
    close(fd[1]);
}

int main(void) {
#define CGROUP_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CGROUP_TEST(it_lies_beside_the_hosts_and_has_bounds),
        CGROUP_TEST(it_is_found_where_it_is_mounted),
        CGROUP_TEST(at_the_top_it_lies_below_the_root_only),
        CGROUP_TEST(without_the_memory_controller_there_is_none),
        CGROUP_TEST(what_the_kernel_must_have),
        CGROUP_TEST(who_enters_says_which_bounds_hold),
        CGROUP_TEST(the_end_says_who_had_no_memory),
        CGROUP_TEST(old_groups_go_and_others_stay),
        CGROUP_TEST(a_killed_hosts_group_goes),
    };
    return cmocka_run_group_tests_name("worker cgroup", tests, NULL, NULL);
}
