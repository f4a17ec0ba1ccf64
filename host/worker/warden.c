// warden.c: see warden.h.
#include "worker/warden.h"

#include "worker/confine.h"
#include "worker/descendants.h"
#include "worker/wire.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST_FD = RLHF__WORKER_OUTPUT };

// ---- the end ----

// End as the worker did.
_Noreturn static void end_as(int status) {
    const struct rlimit none = {0, 0};
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    sigset_t all;
    sigfillset(&all);
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

// A killed process's children become this process's, and processes forked in the meantime are found
// in the next round.
static void end_all(void) {
    const struct timespec pause = {0, 1000000};
    for (;;) {
        rlhf__descendants_kill();
        pid_t got = waitpid(-1, NULL, 0);
        if (got > 0) nanosleep(&pause, NULL); // they die at the same time: one round reaps many
        while (got > 0)
            got = waitpid(-1, NULL, WNOHANG);
        if (got < 0 && errno == ECHILD) return;
    }
}

// ---- waiting ----

// Signals that wait until the warden asks for them.
static void waited_for(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

static void close_all(void) {
    for (int fd = 0; fd <= LAST_FD; fd++)
        close(fd);
}

// Reap what has ended: 1 with the status of `child` when it has, -1 when no children are left. The
// kernel keeps the number of a process for its group only until the process is reaped, so the group
// is ended before that.
static int reap(pid_t child, int *status) {
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return -1;
        if (info.si_pid == 0) return 0;
        if (info.si_pid == child) kill(-child, SIGKILL);
        waitpid(info.si_pid, status, 0);
        if (info.si_pid == child) return 1;
    }
}

// Until `child` ended: 1 with its status; 0 when the warden is told to end or its parent, `host`,
// is gone (0: that is not looked at). The kernel's own signal of that comes when the thread is gone
// that started this process, which need not be the host's main one.
static int wait_for(pid_t child, long host, int *status) {
    const struct timespec tick = {0, 300000000};
    sigset_t set;
    waited_for(&set);
    for (;;) {
        const int got = reap(child, status);
        if (got != 0) return got > 0;
        const int number = host ? sigtimedwait(&set, NULL, &tick) : sigwaitinfo(&set, NULL);
        if (number > 0 && number != SIGCHLD) return 0;
        if (host && (long)getppid() != host) return 0;
    }
}

// ---- the processes ----

static void work_in_child(int (*work)(void *arg, unsigned spaces), void *arg, unsigned spaces) {
    sigset_t set;
    waited_for(&set);
    setpgid(0, 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    _exit(work(arg, spaces));
}

// The child of fork(), which dies with its parent; in the parent its pid, or -1.
static pid_t fork_with_parent(void) {
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        // In a new PID namespace a parent outside reads as 0.
        if (getppid() != parent && getppid() != 0) _exit(1);
    }
    return pid;
}

// The first process of a PID namespace: tells through `report` how the worker ended.
_Noreturn static void first_process(int report, int (*work)(void *arg, unsigned spaces), void *arg,
                                    unsigned spaces) {
    int status = 0;
    spaces |= rlhf__confine_count();
    spaces |= rlhf__mounts(); // here: the warden's /proc shows the namespace's processes
    const pid_t worker = fork_with_parent();
    if (worker == 0) {
        close(report);
        work_in_child(work, arg, spaces);
    }
    close_all();
    if (worker > 0 && wait_for(worker, 0, &status)) {
        const ssize_t put = write(report, &status, sizeof status);
        (void)put;
    }
    _exit(0);
}

_Noreturn static void with_space(long host, int (*work)(void *arg, unsigned spaces), void *arg,
                                 unsigned spaces) {
    int report[2], status = 0, ended = 0;
    if (pipe(report) != 0) _exit(1);
    const pid_t first = fork_with_parent();
    if (first == 0) {
        close(report[0]);
        first_process(report[1], work, arg, spaces);
    }
    close(report[1]);
    close_all();
    if (first < 0) _exit(1);
    wait_for(first, host, &ended);
    end_all();
    end_as(read(report[0], &status, sizeof status) == (ssize_t)sizeof status ? status : ended);
}

_Noreturn static void without_space(long host, int (*work)(void *arg, unsigned spaces), void *arg) {
    int status = SIGTERM;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const pid_t worker = fork_with_parent();
    if (worker == 0) work_in_child(work, arg, 0);
    close_all();
    if (worker < 0) _exit(1);
    setpgid(worker, worker);
    const int ended = wait_for(worker, host, &status);
    if (!ended) kill(-worker, SIGKILL);
    end_all();
    end_as(ended ? status : SIGTERM);
}

_Noreturn void rlhf__warden(long host, int network, int (*work)(void *arg, unsigned spaces),
                            void *arg) {
    sigset_t set;
    waited_for(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if ((long)getppid() != host) _exit(1); // it has gone before that
    const unsigned spaces = rlhf__confine_spaces(network);
    if (spaces & RLHF__CONFINED_PROCESSES) with_space(host, work, arg, spaces);
    without_space(host, work, arg);
}
