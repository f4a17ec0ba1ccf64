// program.c: see program.h.
#include "process/program.h"

#include "process/descendants.h"
#include "process/launch.h"

#include <rlhf/log.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 1000, STUCK_MS = 2000, STEP_MS = 10, TIMEOUT_S = 300 };

// ---- the file ----

// What is wrong with the file as a program, NULL = nothing.
static const char *fault(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return errno == ENOENT ? "there is no such file" : strerror(errno);
    if (S_ISDIR(st.st_mode)) return "it is a directory";
    if (!S_ISREG(st.st_mode)) return "it is no file";
    return access(path, X_OK) == 0 ? NULL : "it is not executable (chmod +x)";
}

static rlhf_status find_by_path(struct rlhf__program *p, const char *name) {
    char here[RLHF__PROGRAM_PATH / 2] = "";
    if (*name != '/' && !getcwd(here, sizeof here))
        return rlhf_failf(p->host, RLHF_E_IO, "the working directory is not known: %s",
                          strerror(errno));
    const int n = snprintf(p->path, sizeof p->path, "%s%s%s", here, *name == '/' ? "" : "/", name);
    if (n < 0 || (size_t)n >= sizeof p->path)
        return rlhf_failf(p->host, RLHF_E_INVALID, "the program's path is too long: %s", name);
    const char *why = fault(p->path);
    return why ? rlhf_failf(p->host, RLHF_E_INVALID, "the program %s cannot be run: %s", name, why)
               : RLHF_OK;
}

// Directories of PATH that are not absolute are left out: what they mean changes with the working
// directory.
static rlhf_status find_by_name(struct rlhf__program *p, const char *name) {
    const char *at = getenv("PATH");
    if (!at) at = "/usr/local/bin:/usr/bin:/bin";
    const char *found = NULL;
    while (*at) {
        const size_t len = strcspn(at, ":");
        if (*at == '/' && len + strlen(name) + 2 <= sizeof p->path) {
            snprintf(p->path, sizeof p->path, "%.*s/%s", (int)len, at, name);
            const char *why = fault(p->path);
            if (!why) return RLHF_OK;
            if (access(p->path, F_OK) == 0) found = why;
        }
        at += len + (at[len] == ':');
    }
    return rlhf_failf(p->host, RLHF_E_INVALID, "the program %s cannot be run: %s", name,
                      found ? found : "there is none of that name in PATH");
}

rlhf_status rlhf__program_init(struct rlhf__program *p, const rlhf_host *host, char *const *argv,
                               const char *const *env) {
    memset(p, 0, sizeof *p);
    p->host = host;
    p->argv = argv;
    p->name = argv[0];
    p->env = env;
    p->in = p->out = p->err = -1;
    p->limits = host->service(host, RLHF_SVC_LIMITS);
    return strchr(argv[0], '/') ? find_by_path(p, argv[0]) : find_by_name(p, argv[0]);
}

// ---- its life ----

double rlhf__program_timeout(const struct rlhf__program *p) {
    return p->limits ? p->limits->timeout_s : TIMEOUT_S;
}

uint64_t rlhf__program_memory(const struct rlhf__program *p) {
    return p->limits ? p->limits->memory_bytes : 0;
}

rlhf_status rlhf__program_start(struct rlhf__program *p) {
    struct timespec now;
    rlhf__said_forget(&p->said);
    p->ended = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(p->mark, sizeof p->mark, "RLHF_REWARD_%ld_%lld_%09ld=1", (long)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
    return rlhf__program_launch(p);
}

int rlhf__program_has_ended(struct rlhf__program *p) {
    if (!p->pid) return 1;
    if (!p->ended && waitpid(p->pid, &p->how, WNOHANG) == p->pid) p->ended = 1;
    return p->ended;
}

const char *rlhf__program_end(const struct rlhf__program *p, char *out, size_t cap) {
    if (WIFSIGNALED(p->how))
        snprintf(out, cap, "was ended by signal %d (%s)", WTERMSIG(p->how),
                 strsignal(WTERMSIG(p->how)));
    else
        snprintf(out, cap, "ended with status %d", WEXITSTATUS(p->how));
    return out;
}

// Up to ms for it to end, reading what it still says.
static void wait_for_end(struct rlhf__program *p, int ms) {
    for (int left = ms; left > 0 && !rlhf__program_has_ended(p); left -= STEP_MS) {
        rlhf__said_read(&p->said, p->host, p->err);
        poll(NULL, 0, STEP_MS);
    }
}

static void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void rlhf__program_kill(struct rlhf__program *p) {
    if (!p->pid) return;
    rlhf__said_read(&p->said, p->host, p->err);
    // As long as it is not waited for, nobody else has its number.
    rlhf__descendants_kill(p->pid, !p->ended, p->mark);
    wait_for_end(p, STUCK_MS);
    close_end(&p->in);
    close_end(&p->out);
    close_end(&p->err);
    p->pid = 0;
}

void rlhf__program_finish(struct rlhf__program *p) {
    if (!p->pid) return;
    close_end(&p->in);
    wait_for_end(p, GRACE_MS);
    rlhf__program_kill(p);
}
