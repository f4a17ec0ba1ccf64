// child.c: see child.h.
#include "cmd/child.h"

#include "base/last_words.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// In the child: never returns. The status goes first, as 4 bytes, then the text.
static void child(int fd, rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__last_words_silence();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    alarm(RLHF__CHILD_SECONDS);
    int32_t status = work(arg, &text);
    ssize_t n = write(fd, &status, sizeof status);
    for (size_t at = 0; n > 0 && at < text.len; at += (size_t)n) {
        n = write(fd, text.data + at, text.len - at);
        if (n < 0 && errno == EINTR) n = 0;
    }
    _exit(0); // no exit handlers of plugins
}

static void read_all(int fd, struct rlhf__buf *out) {
    char chunk[4096];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        rlhf__buf_put(out, chunk, (size_t)n);
    }
}

static rlhf_status how_it_ended(const char *what, int wait_status, struct rlhf__error *err) {
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGALRM)
        return rlhf__fail(err, RLHF_E_INTERNAL, "%s: still loading after %d seconds", what,
                          RLHF__CHILD_SECONDS);
    if (WIFSIGNALED(wait_status))
        return rlhf__fail(err, RLHF_E_INTERNAL, "%s: crashed while being loaded (signal %d, %s)",
                          what, WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    return rlhf__fail(err, RLHF_E_INTERNAL, "%s: ended the process while being loaded (status %d)",
                      what, WEXITSTATUS(wait_status));
}

rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err) {
    int fd[2];
    if (pipe(fd) != 0) return rlhf__fail(err, RLHF_E_IO, "%s: no pipe: %s", what, strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        int why = errno;
        close(fd[0]);
        close(fd[1]);
        return rlhf__fail(err, RLHF_E_IO, "%s: no process: %s", what, strerror(why));
    }
    if (pid == 0) {
        close(fd[0]);
        child(fd[1], work, arg);
    }
    close(fd[1]);
    struct rlhf__buf answer = RLHF__BUF_INIT;
    int wait_status = 0;
    int32_t status;
    read_all(fd[0], &answer);
    close(fd[0]);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (answer.len < sizeof status || !WIFEXITED(wait_status)) {
        rlhf__buf_free(&answer);
        return how_it_ended(what, wait_status, err);
    }
    memcpy(&status, answer.data, sizeof status);
    if (status < 0)
        rlhf__fail(err, status, "%s", answer.data + sizeof status);
    else
        rlhf__buf_put(out, answer.data + sizeof status, answer.len - sizeof status);
    rlhf__buf_free(&answer);
    return status < 0 ? status : rlhf__buf_ok(out, err);
}
