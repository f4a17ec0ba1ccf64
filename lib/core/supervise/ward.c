// ward.c: see ward.h.
#include "supervise/ward.h"

#include "base/clock.h"
#include "supervise/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 5.0 // seconds that a warden has to end its processes

// ---- starting ----

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
    bad |= posix_spawn_file_actions_addclosefrom_np(&files, RLHF__WARD_FILES);
    // A new session detaches it from the user's terminal.
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

// ---- the end ----

int rlhf__ward_over(const struct rlhf__ward *w) {
    siginfo_t info = {.si_pid = 0};
    return w->pid && waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == w->pid;
}

// Wait for the warden for up to `seconds`; 1 when it has ended, with its wait status.
static int wait_for(pid_t pid, double seconds, int *status) {
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

// Kill the processes that a killed or unresponsive warden left in its session.
static void end_session(pid_t warden) {
    const double until = rlhf__seconds() + PATIENCE;
    const struct timespec ms = {0, 1000000};
    while (rlhf__session_kill(warden) > 0 && rlhf__seconds() < until)
        nanosleep(&ms, NULL);
}

int rlhf__ward_end(struct rlhf__ward *w, double patience, int *status) {
    if (!w->pid) return 0;
    const int own = (patience > 0 || rlhf__ward_over(w)) && wait_for(w->pid, patience, status);
    if (!own) {
        kill(w->pid, SIGTERM);
        if (!wait_for(w->pid, PATIENCE, status)) {
            end_session(w->pid);
            kill(w->pid, SIGKILL);
            wait_for(w->pid, PATIENCE, status);
        }
    } else if (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL) {
        end_session(w->pid); // it may have been the warden that was killed
    }
    close(w->orders);
    *w = (struct rlhf__ward){0, -1};
    return own;
}
