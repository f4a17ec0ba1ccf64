// probe_processes.c: tries to send signals to the host and to the user's other processes, and to
// reach their memory, files, command lines and scheduling. Signal 0 only checks the permission.
#include "worker/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ---- reaching them ----

static long signals(const struct bait *b) { return kill(b->victim, 0); }
static long signals_thread(const struct bait *b) { return tgkill(b->victim, b->victim, 0); }
static long signals_tkill(const struct bait *b) { return syscall(SYS_tkill, b->victim, 0); }

static long signals_queue(const struct bait *b) {
    const union sigval none = {.sival_int = 0};
    return sigqueue(b->victim, 0, none);
}

static long signals_pidfd(const struct bait *b) {
    const long fd = syscall(434, b->victim, 0);
    return fd < 0 ? -1 : syscall(424, fd, 0, NULL, 0);
}

static long signals_by_file(const struct bait *b) {
    int fd[2];
    if (pipe(fd) != 0) return -1;
    return fcntl(fd[0], F_SETOWN, b->victim) | fcntl(fd[0], F_SETSIG, SIGTERM);
}

static long files_of(const struct bait *b) {
    const long fd = syscall(434, b->victim, 0);
    return fd < 0 ? -1 : syscall(438, fd, 0, 0);
}

static long limits_of(const struct bait *b) {
    struct rlimit now;
    return prlimit(b->victim, RLIMIT_CORE, NULL, &now);
}

static long slows(const struct bait *b) { return setpriority(PRIO_PROCESS, (id_t)b->victim, 19); }

// Tries to slow down all of the user's processes. In a PID namespace, this reaches only the
// worker's own processes.
static long slows_all(const struct bait *b) {
    const int was = getpriority(PRIO_PROCESS, 0);
    errno = 0;
    if (setpriority(PRIO_USER, 0, was) != 0) return -1;
    return getpriority(PRIO_PROCESS, (id_t)b->victim) == -1 && errno ? -1 : 0;
}

static long pins(const struct bait *b) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return -1;
    return sched_setaffinity(b->victim, sizeof cores, &cores);
}

static long schedules(const struct bait *b) {
    const struct sched_param none = {0};
    return sched_setscheduler(b->victim, SCHED_OTHER, &none);
}

static long slows_disk(const struct bait *b) {
    return syscall(SYS_ioprio_set, 1, b->victim, (2 << 13) | 4);
}

static const struct probe reaching[] = {
    {"kill", signals},
    {"tgkill", signals_thread},
    {"tkill", signals_tkill},
    {"sigqueue", signals_queue},
    {"pidfd_signal", signals_pidfd},
    {"sigio", signals_by_file},
    {"pidfd_getfd", files_of},
    {"prlimit", limits_of},
    {"setpriority", slows},
    {"priority_user", slows_all},
    {"affinity", pins},
    {"scheduler", schedules},
    {"ioprio", slows_disk},
};

// ---- reading from them ----

static long traces(const struct bait *b) {
    const long got = ptrace(PTRACE_SEIZE, b->victim, NULL, NULL);
    if (got == 0) ptrace(PTRACE_DETACH, b->victim, NULL, NULL);
    return got;
}

static long reads_memory(const struct bait *b) {
    char byte;
    const struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)&byte, 1};
    const long got = (long)process_vm_readv(b->victim, &here, 1, &there, 1, 0);
    return got < 0 && errno == EFAULT ? 0 : got; // allowed, but empty
}

static long compares(const struct bait *b) {
    return syscall(SYS_kcmp, getpid(), b->victim, 0, 0, 0);
}

static long of_proc(const struct bait *b, const char *what, int how) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)b->victim, what);
    return open(path, how);
}

static long proc_memory(const struct bait *b) { return of_proc(b, "mem", O_RDONLY); }
static long proc_environment(const struct bait *b) { return of_proc(b, "environ", O_RDONLY); }
static long proc_status(const struct bait *b) { return of_proc(b, "status", O_RDONLY); }
static long proc_files(const struct bait *b) { return of_proc(b, "fd", O_RDONLY | O_DIRECTORY); }

// Looks in /proc for any process with the command line of the victim.
static long proc_command_lines(const struct bait *b) {
    DIR *dir = opendir("/proc");
    const struct dirent *e;
    long found = -1;
    (void)b;
    while (dir && (e = readdir(dir)) != NULL) {
        char path[300], line[256] = "";
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        const ssize_t n = read(fd, line, sizeof line - 1);
        close(fd);
        for (ssize_t i = 0; i < n; i++)
            if (strncmp(line + i, "probe-victim", 12) == 0) found = 0;
    }
    if (dir) closedir(dir);
    errno = ENOENT;
    return found;
}

static long proc_list(const struct bait *b) {
    DIR *dir = opendir("/proc");
    const struct dirent *e;
    int n = 0;
    (void)b;
    while (dir && (e = readdir(dir)) != NULL) // more than the worker and its children
        n += strtol(e->d_name, NULL, 10) > 0;
    if (dir) closedir(dir);
    errno = ENOENT;
    return n > 4 ? n : -1;
}

// Gets the address of a thread's list of locks.
static long lock_list(const struct bait *b) {
    void *list;
    size_t n;
    return syscall(SYS_get_robust_list, b->victim, &list, &n);
}

// Reads a core-scheduling cookie of the victim (PR_SCHED_CORE, PR_SCHED_CORE_GET). The kernel
// checks the permission before it reports ENODEV (no SMT siblings) or EINVAL (old kernel).
static long core_cookie(const struct bait *b) {
    uint64_t cookie;
    const long got = prctl(62, 0, (long)b->victim, 0, &cookie);
    return got < 0 && errno != EPERM ? 0 : got;
}

static const struct probe inside[] = {
#ifndef __SANITIZE_ADDRESS__
    {"ptrace", traces},
#endif
    {"vm_readv", reads_memory}, {"kcmp", compares},
    {"robust_list", lock_list}, {"core_cookie", core_cookie},
};

static const struct probe sight[] = {
    {"proc_mem", proc_memory}, {"proc_environ", proc_environment},   {"proc_status", proc_status},
    {"proc_fd", proc_files},   {"proc_cmdline", proc_command_lines}, {"proc_list", proc_list},
};

// ---- namespaces ----

static long unshares(const struct bait *b) {
    (void)b;
    return unshare(CLONE_NEWUSER);
}

static long clones(const struct bait *b) {
    (void)b;
    const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long clones_3(const struct bait *b) {
    const uint64_t args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
    (void)b;
    const long pid = syscall(435, args, sizeof args);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long joins(const struct bait *b) {
    (void)b;
    const int fd = open("/proc/self/ns/uts", O_RDONLY);
    const long got =
        setns(fd, CLONE_NEWUSER); // wrong kind: EINVAL means that the attempt was allowed
    return got < 0 && errno == EINVAL ? 0 : got;
}

// Makes a system call that is newer than all those in the filter's list. The test makes the filter
// refuse it with EXDEV.
static long newer(const struct bait *b) {
    (void)b;
    const long got = syscall(472);
    return got < 0 && errno == ENOSYS ? -1 : 0;
}

static const struct probe spaces[] = {{"unshare", unshares},
                                      {"clone", clones},
                                      {"clone3", clones_3},
                                      {"setns", joins},
                                      {"newer_call", newer}};

const struct area probe_processes[] = {AREA(WALL_PROCESSES, reaching),
                                       AREA(WALL_CALLS, inside),
                                       AREA(WALL_SIGHT, sight),
                                       AREA(WALL_CALLS, spaces),
                                       {0, NULL, 0}};

// ---- children that continue to compute after score() has returned ----

enum { SECONDS = 120 };

_Noreturn static void burn(void) {
    volatile unsigned long n = 0;
    for (;;)
        n++;
}

static void continue_it(int number) { (void)number; }

// Sets 600 timers, one for each tenth of a second of the next minute. Each sends SIGCONT, which
// continues a stopped process.
static void set_timers(void) {
    signal(SIGCONT, continue_it);
    for (long i = 1; i <= 600; i++) {
        struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
        const struct itimerspec once = {{0, 0}, {i / 10, i % 10 * 100000000 + 1}};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &how, &timer) == 0) timer_settime(timer, 0, &once, NULL);
    }
}

// Returns only when the child is ready, because the child may be stopped as soon as score() has
// returned.
static long leave_behind(int wakes) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, "probe-burner");
        signal(SIGXCPU, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        alarm(SECONDS); // so that processes do not stay for ever
        if (wakes) set_timers();
        if (write(ready[1], &byte, 1) == 1) burn();
        _exit(1);
    }
    close(ready[1]);
    const long got = read(ready[0], &byte, 1);
    close(ready[0]);
    return got;
}

// Leaves a child that computes and ignores the soft limit of its processor time.
long probe_burns(const struct bait *b) {
    (void)b;
    return leave_behind(0);
}

// Leaves a child that also wakes itself when it is stopped.
long probe_wakes(const struct bait *b) {
    (void)b;
    return leave_behind(1);
}
