// launch.c: see launch.h.
#include "process/launch.h"

#include <rlhf/log.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN = 0, OUT = 1, ERR = 2, OOPS = 3, N_PIPES = 4 }; // OOPS: errno of an exec that failed

struct launch {
    const struct rlhf__program *p;
    char **env;
    int theirs[N_PIPES], ours[N_PIPES];
    uint64_t memory; // bytes of address space, 0 = no limit
    pid_t parent;
    int on_main; // the thread that starts it lives as long as the process
};

static void close_all(int *fd, int n) {
    for (int i = 0; i < n; i++) {
        if (fd[i] >= 0) close(fd[i]);
        fd[i] = -1;
    }
}

static int open_pipes(struct launch *l) {
    for (int i = 0; i < N_PIPES; i++)
        l->theirs[i] = l->ours[i] = -1;
    for (int i = 0; i < N_PIPES; i++) {
        int fd[2];
        if (pipe2(fd, O_CLOEXEC) != 0) return 0;
        l->theirs[i] = i == IN ? fd[0] : fd[1];
        l->ours[i] = i == IN ? fd[1] : fd[0];
        if (i != OOPS && fcntl(l->ours[i], F_SETFL, O_NONBLOCK) != 0) return 0;
    }
    return 1;
}

// The user's environment with ours behind it, in one block of pointers; NULL = out of memory.
static char **join_env(const struct rlhf__program *p) {
    size_t n = 0, more = 0, to = 0;
    while (environ[n])
        n++;
    while (p->env && p->env[more])
        more++;
    char **all = p->host->alloc(p->host, (n + more + 2) * sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i < n; i++)
        all[to++] = environ[i];
    const union {
        const char *text;
        char *word; // execve() changes none of them
    } mark = {p->mark};
    for (size_t i = 0; i < more; i++) {
        const union {
            const char *text;
            char *word;
        } own = {p->env[i]};
        all[to++] = own.word;
    }
    all[to] = mark.word;
    return all;
}

// ---- in the child: calls that are safe after a fork, and no others ----

static void limit_memory(uint64_t bytes) {
    struct rlimit limit;
    if (!bytes || getrlimit(RLIMIT_AS, &limit) != 0) return;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > bytes) limit.rlim_max = bytes;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

// Standard input, output and error, and the pipe for errno; all other files are closed.
static int take_files(const struct launch *l) {
    int high[N_PIPES];
    for (int i = 0; i < N_PIPES; i++)
        high[i] = fcntl(l->theirs[i], F_DUPFD_CLOEXEC, 16); // out of the way of 0 to 3
    for (int i = 0; i < OOPS; i++)
        if (high[i] < 0 || dup2(high[i], i) < 0) return 0;
    if (high[OOPS] < 0 || dup3(high[OOPS], OOPS, O_CLOEXEC) < 0) return 0;
    close_range(OOPS + 1, ~0u, 0); // a kernel without it leaves what is not close-on-exec
    return 1;
}

static void become(const struct launch *l) {
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;
    setsid();
    if (l->on_main) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->parent) _exit(127);
    for (int s = 1; s < NSIG; s++) // ignored ones would stay ignored
        sigaction(s, &normal, NULL);
    limit_memory(l->memory);
    int oops = l->theirs[OOPS];
    if (take_files(l)) {
        oops = OOPS;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(l->p->path, l->p->argv, l->env);
    }
    const int why = errno;
    if (write(oops, &why, sizeof why) != sizeof why) _exit(126);
    _exit(127);
}

// ---- in the host's process ----

static pid_t fork_quietly(const struct launch *l) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // no handler of the host runs in the child
    const pid_t pid = fork();
    if (pid == 0) become(l);
    const int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return pid;
}

static rlhf_status refuse(const struct rlhf__program *p, int why) {
    const char *text = strerror(why);
    if (why == ENOEXEC) text = "it is no program, and no script that begins with #!";
    if (why == ENOENT) text = "the interpreter that its first line names is not there";
    if (why == ENOMEM && rlhf__program_memory(p))
        text = "it needs more memory than rewards.memory_mib allows";
    return rlhf_failf(p->host, why == ENOEXEC || why == ENOENT ? RLHF_E_INVALID : RLHF_E_IO,
                      "the program %s cannot be run: %s", p->argv[0], text);
}

// 0 once the program runs, else the errno of what failed.
static int learn(struct launch *l, pid_t pid) {
    int why = 0, how;
    ssize_t n;
    close_all(l->theirs, N_PIPES);
    do
        n = read(l->ours[OOPS], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    if (n == 0) return 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        continue;
    return n == sizeof why && why ? why : EIO;
}

rlhf_status rlhf__program_launch(struct rlhf__program *p) {
    struct launch l = {.p = p,
                       .memory = rlhf__program_memory(p),
                       .parent = getpid(),
                       .on_main = gettid() == getpid()};
    l.env = join_env(p);
    if (!l.env) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
    int why = open_pipes(&l) ? 0 : errno;
    const pid_t pid = why ? -1 : fork_quietly(&l);
    if (!why && pid < 0) why = errno;
    if (pid > 0) why = learn(&l, pid);
    p->host->free(p->host, l.env);
    close_all(l.theirs, N_PIPES);
    if (why) {
        close_all(l.ours, N_PIPES);
        return refuse(p, why);
    }
    close_all(&l.ours[OOPS], 1);
    p->pid = pid;
    p->in = l.ours[IN];
    p->out = l.ours[OUT];
    p->err = l.ours[ERR];
    return RLHF_OK;
}
