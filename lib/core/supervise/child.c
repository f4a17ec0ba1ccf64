// child.c: see child.h.
#include "supervise/child.h"

#include "base/clock.h"
#include "base/signals.h"
#include "supervise/descendants.h"
#include "supervise/last_words.h"
#include "supervise/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 200, ANSWER_MAX = 16 << 20 };
#define LATE_S 5.0 // seconds to wait after the child's alarm, and again for its end

static void limit(int what, rlim_t most) {
    struct rlimit now;
    if (getrlimit(what, &now) != 0) return;
    if (most < now.rlim_cur) now.rlim_cur = most;
    if (most < now.rlim_max) now.rlim_max = most;
    setrlimit(what, &now);
}

static void confine(const struct rlhf__child_limits *limits) {
    const rlim_t seconds = (rlim_t)limits->seconds + 1; // later than the alarm
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef __SANITIZE_THREAD__ // because its runtime enlarges a file when the program starts
    limit(RLIMIT_FSIZE, (rlim_t)limits->file_bytes);
#endif
    limit(RLIMIT_CORE, 0);
    // The factor allows for threads: this limit counts the processor time of all threads together.
    limit(RLIMIT_CPU, 64 * seconds);
    fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

// The child's work, and the descriptor for its answer.
struct job {
    const struct rlhf__child_limits *limits;
    rlhf_status (*work)(void *arg, struct rlhf__buf *out);
    void *arg;
    int fd;
};

// Send the status as 4 bytes, then the text.
static int work_and_tell(void *arg, unsigned spaces) {
    const struct job *job = arg;
    struct rlhf__buf text = RLHF__BUF_INIT;
    (void)spaces;
    alarm((unsigned)job->limits->seconds);
    if (job->limits->confined) confine(job->limits);
    int32_t status = job->work(job->arg, &text);
    ssize_t n = write(job->fd, &status, sizeof status);
    for (size_t at = 0; n > 0 && at < text.len; at += (size_t)n) {
        n = write(job->fd, text.data + at, text.len - at);
        if (n < 0 && errno == EINTR) n = 0;
    }
    return 0; // the caller then calls _exit(), so that no exit handlers of plugins run
}

// Runs in the forked process; never returns.
_Noreturn static void child(long parent, struct job *job) {
    const struct rlhf__warden_rules rules = {.host = parent, .orders = -1};
    rlhf__last_words_silence();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    rlhf__warden(&rules, work_and_tell, job);
}

// End the child. If `again` is 0, asks the child's warden to do so. If the child has not ended
// after a while, the caller calls this function with `again` 1, which kills the child's session and
// the warden.
static void end_child(pid_t pid, int again) {
    if (again) {
        rlhf__session_kill(pid);
        kill(pid, SIGKILL);
    } else {
        kill(pid, SIGTERM);
    }
}

enum how { AS_IT_ENDED, TOO_LATE, TOO_MUCH };

// Read everything that the child sends. Meanwhile, forward signals that ask this program to end:
// the child is in another session, so it does not receive signals of the terminal such as Ctrl-C.
// The child has its own alarm. The time limit here is longer, and matters only if the child's code
// removed the alarm.
static enum how read_all(int fd, pid_t pid, double seconds, struct rlhf__buf *out) {
    const volatile sig_atomic_t *asked = rlhf__signals_flag();
    double until = rlhf__seconds() + seconds + LATE_S;
    enum how how = AS_IT_ENDED;
    char chunk[4096];
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        const int ready = poll(&p, 1, TICK_MS);
        if (*asked) kill(pid, *asked);
        const int late = rlhf__seconds() > until, much = !how && out->len > ANSWER_MAX;
        if (late && how) {
            end_child(pid, 1);
            return how;
        }
        if (late || much) {
            how = late ? TOO_LATE : TOO_MUCH;
            until = rlhf__seconds() + LATE_S;
            end_child(pid, 0);
        }
        if (ready <= 0) continue;
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return how;
        if (!how) rlhf__buf_put(out, chunk, (size_t)n);
    }
}

static rlhf_status how_it_ended(const struct rlhf__child_limits *limits, enum how how,
                                int wait_status, struct rlhf__child_end *end,
                                struct rlhf__error *err) {
    const char *what = limits->what;
    if (how == TOO_MUCH)
        return rlhf__fail(err, RLHF_E_INTERNAL, "%s: sent more than %d MiB while being loaded",
                          what, ANSWER_MAX >> 20);
    if (how == TOO_LATE)
        end->signal = SIGALRM;
    else if (WIFSIGNALED(wait_status))
        end->signal = WTERMSIG(wait_status);
    else
        end->status = WEXITSTATUS(wait_status);
    if (end->signal == SIGALRM)
        return rlhf__fail(err, RLHF_E_INTERNAL, "%s: still loading after %d seconds", what,
                          limits->seconds);
    if (end->signal)
        return rlhf__fail(err, RLHF_E_INTERNAL, "%s: crashed while being loaded (signal %d, %s)",
                          what, end->signal, strsignal(end->signal));
    return rlhf__fail(err, RLHF_E_INTERNAL, "%s: ended the process while being loaded (status %d)",
                      what, end->status);
}

rlhf_status rlhf__child_ask(const struct rlhf__child_limits *limits,
                            rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                            struct rlhf__buf *out, struct rlhf__child_end *end,
                            struct rlhf__error *err) {
    const char *what = limits->what;
    struct rlhf__child_end own;
    int fd[2];
    if (!end) end = &own;
    *end = (struct rlhf__child_end){0};
    if (pipe(fd) != 0) return rlhf__fail(err, RLHF_E_IO, "%s: no pipe: %s", what, strerror(errno));
    const long self = (long)getpid();
    pid_t pid = fork();
    if (pid < 0) {
        int why = errno;
        close(fd[0]);
        close(fd[1]);
        return rlhf__fail(err, RLHF_E_IO, "%s: no process: %s", what, strerror(why));
    }
    if (pid == 0) {
        struct job job = {limits, work, arg, fd[1]};
        close(fd[0]);
        child(self, &job);
    }
    close(fd[1]);
    struct rlhf__buf answer = RLHF__BUF_INIT;
    int wait_status = 0;
    int32_t status;
    const enum how how = read_all(fd[0], pid, limits->seconds, &answer);
    close(fd[0]);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (how || answer.len < sizeof status || !WIFEXITED(wait_status)) {
        rlhf__buf_finish(&answer);
        return how_it_ended(limits, how, wait_status, end, err);
    }
    end->answered = 1;
    memcpy(&status, answer.data, sizeof status);
    if (status < 0)
        rlhf__fail(err, status, "%s", answer.data + sizeof status);
    else
        rlhf__buf_put(out, answer.data + sizeof status, answer.len - sizeof status);
    rlhf__buf_finish(&answer);
    return status < 0 ? status : rlhf__buf_ok(out, err);
}

rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err) {
    const struct rlhf__child_limits limits = {.what = what, .seconds = RLHF__CHILD_SECONDS};
    return rlhf__child_ask(&limits, work, arg, out, NULL, err);
}
