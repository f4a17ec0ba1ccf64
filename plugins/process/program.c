// program.c: see program.h.
#include "process/program.h"

#include <rlhf/log.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 1000, STEP_MS = 10, TIMEOUT_S = 300 };

// ---- the file ----

// The reason why the file cannot be run, or NULL.
static const char *fault(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return errno == ENOENT ? "it does not exist" : strerror(errno);
    if (S_ISDIR(st.st_mode)) return "it is a directory";
    if (!S_ISREG(st.st_mode)) return "it is not a regular file";
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

// Relative directories in PATH are skipped, because the directories that they mean depend on the
// working directory.
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
                      found ? found : "it is not in PATH");
}

const void *rlhf__program_extension(void *self, const char *id) {
    static const rlhf_program_use use = {.size = sizeof use};
    (void)self;
    return strcmp(id, RLHF_EXT_PROGRAM) == 0 ? &use : NULL;
}

char *rlhf__program_word(const char *text) {
    const union {
        const char *text;
        char *word;
    } u = {text};
    return u.word;
}

rlhf_status rlhf__program_init(struct rlhf__program *p, const rlhf_host *host, char *const *argv,
                               const char *const *env) {
    memset(p, 0, sizeof *p);
    p->host = host;
    p->argv = argv;
    p->name = argv[0];
    p->env = env;
    p->limits = host->service(host, RLHF_SVC_LIMITS);
    p->programs = host->service(host, RLHF_SVC_PROGRAM);
    if (!p->programs)
        return rlhf_failf(
            host, RLHF_E_UNSUPPORTED,
            "programs are started by the host, and here it starts none: the plugin has "
            "to be the file that came with rlhf-host, or have isolate=false");
    return strchr(argv[0], '/') ? find_by_path(p, argv[0]) : find_by_name(p, argv[0]);
}

// ---- running ----

double rlhf__program_timeout(const struct rlhf__program *p) {
    if (p->timeout_s > 0) return p->timeout_s;
    return p->limits ? p->limits->timeout_s : TIMEOUT_S;
}

uint64_t rlhf__program_memory(const struct rlhf__program *p) {
    return p->limits ? p->limits->memory_bytes : 0;
}

static rlhf_status refuse(const struct rlhf__program *p, int why) {
    const char *text = strerror(why);
    if (why == ENOEXEC) text = "it is neither a program nor a script that begins with #!";
    if (why == ENOENT) text = "the interpreter named in its first line does not exist";
    if (why == ENOMEM && rlhf__program_memory(p))
        text = "it needs more memory than rewards.memory_mib allows";
    return rlhf_failf(p->host, why == ENOEXEC || why == ENOENT ? RLHF_E_INVALID : RLHF_E_IO,
                      "the program %s cannot be run: %s", p->argv[0], text);
}

static void say_walls(struct rlhf__program *p) {
    const char *confined = p->process->confined;
    const char *walls = confined ? confined : "none";
    if (strncmp(p->walls, walls, sizeof p->walls - 1) == 0) return;
    snprintf(p->walls, sizeof p->walls, "%s", walls);
    if (confined)
        rlhf_logf(p->host, RLHF_LOG_INFO, "%s runs in a worker process: %s", p->name, confined);
    else
        rlhf_logf(p->host, RLHF_LOG_INFO,
                  "%s runs with your rights: your files and the network are open to it "
                  "(isolate=true closes them)",
                  p->name);
}

rlhf_status rlhf__program_start(struct rlhf__program *p) {
    const rlhf_program what = {.size = sizeof what,
                               .path = p->path,
                               .argv = p->argv,
                               .env = p->env,
                               .memory_bytes = rlhf__program_memory(p)};
    int32_t why = 0;
    rlhf__said_forget(&p->said);
    p->ended = 0;
    const rlhf_status st = p->programs->start(p->host, &what, &p->process, &why);
    if (st == RLHF_E_NOMEM) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
    if (st < 0) return refuse(p, why);
    say_walls(p);
    return RLHF_OK;
}

int rlhf__program_has_ended(struct rlhf__program *p) {
    if (p->process && !p->ended) p->ended = p->programs->ended(p->host, p->process, &p->how);
    return !p->process || p->ended;
}

const char *rlhf__program_end(const struct rlhf__program *p, char *out, size_t cap) {
    if (WIFSIGNALED(p->how))
        snprintf(out, cap, "was ended by signal %d (%s)", WTERMSIG(p->how),
                 strsignal(WTERMSIG(p->how)));
    else
        snprintf(out, cap, "ended with status %d", WEXITSTATUS(p->how));
    return out;
}

void rlhf__program_kill(struct rlhf__program *p) {
    if (!p->process) return;
    rlhf__said_read(&p->said, p->host, p->process->err);
    p->programs->end(p->host, p->process);
    p->process = NULL;
}

void rlhf__program_finish(struct rlhf__program *p) {
    if (!p->process) return;
    p->programs->works(p->host, p->process, 1);
    if (p->process->in >= 0) close(p->process->in);
    p->process->in = -1;
    for (int left = GRACE_MS; left > 0 && !rlhf__program_has_ended(p); left -= STEP_MS) {
        rlhf__said_read(&p->said, p->host, p->process->err);
        poll(NULL, 0, STEP_MS);
    }
    rlhf__program_kill(p);
}
