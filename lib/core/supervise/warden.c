// warden.c: see warden.h.
#include "supervise/warden.h"

#include "base/clock.h"
#include "supervise/confine.h"
#include "supervise/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOW_FDS = 64, TICK_MS = 300, MOST_RESTLESS = 3 };
#define CHECK    2.0 // seconds between two checks of a suspended process tree
#define PATIENCE 5.0 // seconds that a warden has to end its processes

// ---- the end ----

// End this process with the wait status of the worker.
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

// Kill all descendants and reap them. The children of a killed process become children of this
// process, so the next round finds them, as well as processes that were forked during this round.
static void end_all(void) {
    const struct timespec pause = {0, 1000000};
    for (;;) {
        pid_t got = waitpid(-1, NULL, WNOHANG);
        if (got == 0) {
            rlhf__descendants_kill();
            got = waitpid(-1, NULL, 0);
            if (got > 0) nanosleep(&pause, NULL); // wait, so that one round reaps many
        }
        while (got > 0)
            got = waitpid(-1, NULL, WNOHANG);
        if (got < 0 && errno == ECHILD) return;
    }
}

// ---- waiting ----

// Set *set to the signals that this process blocks and reads through signalfd.
static void waited_for(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

// Close all files except these descriptors; -1 = none.
static void close_but(int a, int b, int c) {
    for (int fd = 0; fd < LOW_FDS; fd++)
        if (fd != a && fd != b && fd != c) close(fd);
    syscall(SYS_close_range, LOW_FDS, ~0u, 0); // fails on kernels before 5.9
}

// The calls are the kernel's, because glibc has functions for them only since 2.34.
void rlhf__ward_close_others(void) {
    if (syscall(SYS_close_range, RLHF__WARD_FILES, ~0u, 0) == 0) return;
    DIR *open = opendir("/proc/self/fd");
    for (const struct dirent *d; open && (d = readdir(open));) {
        const long fd = strtol(d->d_name, NULL, 10); // "." and ".." become 0
        if (fd >= RLHF__WARD_FILES && fd != dirfd(open)) close((int)fd);
    }
    if (open) closedir(open);
}

// Reap ended children. Returns 1 and sets *status if `child` has ended. Returns -1 if no children
// are left, otherwise 0. Kills the process group of `child` before it reaps `child`, because
// afterwards the kernel may reuse the process id, and the kill could hit other processes.
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

// What a warden, or the first process of a namespace, waits for, and which processes it controls.
struct watch {
    pid_t child; // the process whose end is awaited
    long host;   // the parent process; ends the wait if it has ended; 0: do not check
    int orders;  // the socket on which orders arrive; -1 = none arrive
    int to;      // the socket to pass orders on to; -1 = this process obeys them
    pid_t whom;  // the target of kill() for an order: a group, or -1 = the namespace
    int resting, signals, seen;
    int told;       // the signal that asked this process to end, 0 = none
    int restless;   // how often the tree was found running although it was suspended
    double checked; // time of the last check
    struct rlhf__process_tree tree;
};

enum { GOES_ON = -2, BURNS = -1, GONE = 0, ENDED = 1 };

static void pass_on(const struct watch *w, char order) {
    if (w->to >= 0)
        send(w->to, &order, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    else
        kill(w->whom, order == RLHF__WARDEN_REST ? SIGSTOP : SIGCONT);
}

// Obey the last of the orders received so far and ignore the earlier ones. Returns 0 if the sender
// is gone.
static int obey(struct watch *w) {
    char order[64];
    const ssize_t n = recv(w->orders, order, sizeof order, MSG_DONTWAIT);
    if (n == 0) return 0;
    if (n < 0) return 1;
    w->resting = order[n - 1] == RLHF__WARDEN_REST;
    w->seen = w->restless = 0;
    w->checked = rlhf__seconds();
    pass_on(w, order[n - 1]);
    return 1;
}

// Check that a suspended tree is still suspended. Such a tree uses no processor time and starts no
// processes, so two successive checks must find the same processor time and the same processes. A
// tree that is being debugged is not checked, because a debugger may continue a suspended process.
// A worker cannot pretend to be debugged, because seccomp refuses ptrace().
static int rests(struct watch *w) {
    if (!w->resting || rlhf__seconds() < w->checked + CHECK) return 1;
    pass_on(w, RLHF__WARDEN_REST);
    const struct rlhf__process_tree now = rlhf__descendants_look(w->to >= 0 ? w->child : 0);
    const int same = now.ticks == w->tree.ticks && now.newest == w->tree.newest;
    if (w->seen && !same && !now.traced) w->restless++;
    w->seen = 1;
    w->tree = now;
    w->checked = rlhf__seconds();
    return w->restless < MOST_RESTLESS;
}

// Handle signals, orders and the end of the parent. Returns GOES_ON, or the reason to end the wait.
static int look(struct watch *w) {
    struct pollfd p[2] = {{w->signals, POLLIN, 0}, {w->orders, POLLIN, 0}};
    struct signalfd_siginfo got;
    if (poll(p, 2, w->host ? TICK_MS : -1) > 0) {
        if (p[0].revents && read(w->signals, &got, sizeof got) == (ssize_t)sizeof got &&
            got.ssi_signo != SIGCHLD) {
            w->told = (int)got.ssi_signo;
            return GONE;
        }
        if (p[1].revents && !obey(w)) return GONE;
    }
    if (w->host && (long)getppid() != w->host) return GONE;
    return w->host && !rests(w) ? BURNS : GOES_ON;
}

// Wait for the child to end. Returns ENDED if the child has ended (*status is set), GONE if a
// signal asks this process to end or its parent has ended, and BURNS if the tree does not stay
// suspended. PR_SET_PDEATHSIG cannot report the parent's end: it fires when the thread that started
// this process ends, and that thread may end before the host does.
static int wait_for(struct watch *w, int *status) {
    sigset_t set;
    waited_for(&set);
    w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        const int got = reap(w->child, status);
        if (got != 0) return got > 0 ? ENDED : GONE;
        const int how = w->signals < 0 ? GONE : look(w);
        if (how != GOES_ON) return how;
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

// fork() a child that is killed when its parent ends.
static pid_t fork_with_parent(void) {
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        // In a new PID namespace, getppid() is 0 if the parent is outside.
        if (getppid() != parent && getppid() != 0) _exit(1);
    }
    return pid;
}

// The work that this process watches over.
struct job {
    const struct rlhf__warden_rules *rules;
    int (*work)(void *arg, unsigned spaces);
    void *arg;
};

// The first process of a PID namespace. It writes the wait status of the work to `report`.
_Noreturn static void first_process(const struct job *job, int report, int orders,
                                    unsigned spaces) {
    struct watch w = {.orders = orders, .to = -1, .whom = -1};
    int status = 0;
    spaces |= rlhf__confine_count();
    spaces |= rlhf__mounts(job->rules->writes); // here: this process sees the namespace's /proc
    w.child = fork_with_parent();
    if (w.child == 0) {
        close(report);
        close(orders);
        work_in_child(job->work, job->arg, spaces);
    }
    close_but(report, orders, -1);
    if (w.child > 0 && wait_for(&w, &status) == ENDED) {
        const ssize_t put = write(report, &status, sizeof status);
        (void)put;
    }
    _exit(0);
}

_Noreturn static void with_space(const struct job *job, unsigned spaces) {
    struct watch w = {.host = job->rules->host, .orders = job->rules->orders};
    int report[2], orders[2], status = 0, ended = 0;
    if (pipe(report) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, orders) != 0) _exit(1);
    w.child = fork_with_parent();
    if (w.child == 0) {
        close(report[0]);
        close(orders[0]);
        if (w.orders >= 0) close(w.orders);
        first_process(job, report[1], orders[1], spaces);
    }
    close_but(report[0], orders[0], w.orders);
    if (w.child < 0) _exit(1);
    w.to = orders[0];
    const int how = wait_for(&w, &ended);
    end_all();
    if (how == BURNS) end_as(SIGXCPU);
    end_as(read(report[0], &status, sizeof status) == (ssize_t)sizeof status ? status : ended);
}

_Noreturn static void without_space(const struct job *job) {
    struct watch w = {.host = job->rules->host, .orders = job->rules->orders, .to = -1};
    int status = SIGTERM;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    w.child = fork_with_parent();
    if (w.child == 0) {
        if (w.orders >= 0) close(w.orders);
        work_in_child(job->work, job->arg, 0);
    }
    close_but(w.orders, -1, -1);
    if (w.child < 0) _exit(1);
    setpgid(w.child, w.child);
    w.whom = -w.child;
    const int how = wait_for(&w, &status);
    if (how != ENDED) kill(-w.child, SIGKILL);
    end_all();
    end_as(how == BURNS ? SIGXCPU : how == ENDED ? status : w.told ? w.told : SIGTERM);
}

_Noreturn void rlhf__warden(const struct rlhf__warden_rules *rules,
                            int (*work)(void *arg, unsigned spaces), void *arg) {
    const struct job job = {rules, work, arg};
    sigset_t set;
    waited_for(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setsid(); // leave the terminal; fails if this process already leads a session
    if ((long)getppid() != rules->host) _exit(1); // the host has ended already
    const unsigned spaces = rules->walls ? rlhf__confine_spaces(rules->network) : 0;
    if (spaces & RLHF__CONFINED_PROCESSES) with_space(&job, spaces);
    without_space(&job);
}

// ---- in the host: starting a warden ----

int rlhf__ward_file(int fd) {
    const int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, RLHF__WARD_FILES);
    if (fd >= 0) close(fd);
    return high;
}

static int spawn(pid_t *pid, const char *program, char *const *argv, char *const *env,
                 const int given[RLHF__WARD_FILES]) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int bad = 0;
    for (int i = 0; i < RLHF__WARD_FILES; i++)
        bad |= given[i] >= 0 ? posix_spawn_file_actions_adddup2(&files, given[i], i)
                             : posix_spawn_file_actions_addclose(&files, i);
    // A new session detaches the warden from the user's terminal.
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    if (!bad) bad = posix_spawn(pid, program, &files, &attr, argv, env ? env : environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return bad;
}

int rlhf__ward_start(struct rlhf__ward *w, const char *program, char *const *argv, char *const *env,
                     int given[RLHF__WARD_FILES]) {
    int orders[2];
    *w = (struct rlhf__ward){0, -1};
    int why = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) == 0 ? 0 : errno;
    if (!why) {
        w->orders = orders[0];
        given[RLHF__WARD_ORDERS] = rlhf__ward_file(orders[1]);
        why = given[RLHF__WARD_ORDERS] < 0 ? errno : spawn(&w->pid, program, argv, env, given);
    }
    for (int i = 0; i < RLHF__WARD_FILES; i++) {
        if (given[i] >= 0) close(given[i]);
        given[i] = -1;
    }
    if (!why) return 0;
    if (w->orders >= 0) close(w->orders);
    *w = (struct rlhf__ward){0, -1};
    return why;
}

void rlhf__ward_order(const struct rlhf__ward *w, char order) {
    if (w->pid) send(w->orders, &order, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// ---- in the host: ending it ----

int rlhf__ward_over(const struct rlhf__ward *w) {
    siginfo_t info = {.si_pid = 0};
    return w->pid && waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == w->pid;
}

// Wait at most `seconds` for the warden to end. If it ends, returns 1 and sets *status to its wait
// status. Otherwise returns 0.
static int wait_until_ended(pid_t pid, double seconds, int *status) {
    const double until = rlhf__seconds() + seconds;
    for (;;) {
        const pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid) return 1;
        if (got < 0 && errno != EINTR) return 0;
        if (rlhf__seconds() > until) return 0;
        const struct timespec ms = {0, 500000};
        nanosleep(&ms, NULL);
    }
}

// Kill the processes that are left in the session of a warden that was killed or did not respond.
static void end_session(pid_t warden) {
    const double until = rlhf__seconds() + PATIENCE;
    const struct timespec ms = {0, 1000000};
    while (rlhf__session_kill(warden) > 0 && rlhf__seconds() < until)
        nanosleep(&ms, NULL);
}

int rlhf__ward_end(struct rlhf__ward *w, double patience, int *status) {
    if (!w->pid) return 0;
    const int own =
        (patience > 0 || rlhf__ward_over(w)) && wait_until_ended(w->pid, patience, status);
    if (!own) {
        kill(w->pid, SIGTERM);
        if (!wait_until_ended(w->pid, PATIENCE, status)) {
            end_session(w->pid);
            kill(w->pid, SIGKILL);
            wait_until_ended(w->pid, PATIENCE, status);
        }
    } else if (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL) {
        end_session(w->pid); // in case the warden was killed and left processes
    }
    close(w->orders);
    *w = (struct rlhf__ward){0, -1};
    return own;
}
