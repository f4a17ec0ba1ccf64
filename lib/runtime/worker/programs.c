// programs.c: see programs.h.
#include "worker/programs.h"

#include "plugin/growth.h"
#include "supervise/cgroup.h"
#include "supervise/confine.h"
#include "supervise/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN = 0, OUT = 1, ERR = 2, TOLD = RLHF__PROGRAM_TOLD, N_PIPES = 4 };

struct process {
    rlhf_process api; // first member: the functions cast it back
    struct rlhf__ward ward;
    struct rlhf__cgroup group;
    int how, rests; // how: the way it ended
};

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

// ---- starting ----

static int open_pipes(int ours[N_PIPES], int given[RLHF__WARD_FILES]) {
    for (int i = 0; i < N_PIPES; i++) {
        int fd[2];
        if (pipe2(fd, O_CLOEXEC) != 0) return -1;
        ours[i] = i == IN ? fd[1] : fd[0];
        given[i] = rlhf__ward_file(i == IN ? fd[0] : fd[1]);
        if (given[i] < 0) return -1;
        if (i != TOLD && fcntl(ours[i], F_SETFL, O_NONBLOCK) != 0) return -1;
    }
    return 0;
}

static size_t count(char *const *list) {
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static char *word(const char *text) {
    const union {
        const char *text;
        char *word; // execve() does not change its arguments
    } u = {text};
    return u.word;
}

// Returns the user's environment with the plugin's additions. The caller frees it.
static char **join_env(const rlhf_program *what) {
    const size_t n = count(environ);
    size_t more = 0;
    while (what->env && what->env[more])
        more++;
    char **all = calloc(n + more + 1, sizeof *all);
    if (!all) return NULL;
    memcpy(all, environ, n * sizeof *all);
    for (size_t i = 0; i < more; i++)
        all[n + i] = word(what->env[i]);
    return all;
}

// Start the warden. Returns 0 or an errno.
static int spawn(const struct rlhf__programs *p, const struct rlhf__program_walls *walls,
                 const rlhf_program *what, int given[RLHF__WARD_FILES], struct process *k) {
    char host[32], bytes[32];
    const size_t n = count(what->argv), own = RLHF__PROGRAM_WORDS + 2;
    snprintf(host, sizeof host, "%ld", (long)getpid());
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)what->memory_bytes);
    const char *const level = !walls ? "open" : walls->network ? "network" : "closed";
    const char *const group = k->group.dir ? k->group.dir : "";
    char *const front[] = {word("rlhf-host"), word("worker"), host,        word(RLHF__PROGRAM_WORD),
                           word(level),       bytes,          word(group), word(what->path)};
    char **argv = calloc(own + n + 1, sizeof *argv), **env = join_env(what);
    int why = ENOMEM;
    _Static_assert(sizeof front / sizeof *front == RLHF__PROGRAM_WORDS + 2,
                   "what launched.c reads");
    if (argv && env) {
        memcpy(argv, front, sizeof front);
        memcpy(argv + own, what->argv, n * sizeof *argv);
        why = rlhf__ward_start(&k->ward, p->program, argv, env, given);
    }
    free(argv);
    free(env);
    return why;
}

// Read the report of the process: the confinement that is in force, followed by an errno if the
// program could not be executed. Returns 0 if the program was executed, otherwise an errno.
static int hear(int fd, uint32_t *in_force) {
    uint32_t said[2] = {0, 0};
    size_t n = 0;
    for (;;) {
        const ssize_t got = read(fd, (char *)said + n, sizeof said - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        n += (size_t)got;
    }
    *in_force = said[0];
    return n == sizeof said[0] ? 0 : n == sizeof said && said[1] ? (int)said[1] : EIO;
}

// Returns the confinement as text; NULL = out of memory.
static char *in_words(uint32_t in_force, uint64_t memory) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (memory) in_force |= RLHF__CONFINED_MEMORY;
    rlhf__confined_text(in_force, memory >> 20, &text);
    char *words = text.bad ? NULL : strdup(rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return words;
}

// Memory for the warden's own code, which the limit of each process does not include.
enum { OWN_BYTES = 16 << 20 };

static void make_group(struct process *k, uint64_t bytes) {
#ifndef RLHF_SANITIZED // the sanitizers' shadow memory needs several times as much
    if (bytes) rlhf__cgroup_make("", bytes + OWN_BYTES, &k->group);
#else
    (void)k;
    (void)bytes;
#endif
}

static void end_process(struct process *k) {
    rlhf__ward_end(&k->ward, 0, &k->how);
    rlhf__cgroup_close(&k->group);
    close_fd(&k->api.in);
    close_fd(&k->api.out);
    close_fd(&k->api.err);
    free(k);
}

static int launch(const struct rlhf__programs *p, struct rlhf__program_walls *walls,
                  const rlhf_program *what, struct process *k) {
    int ours[N_PIPES] = {-1, -1, -1, -1}, given[RLHF__WARD_FILES];
    uint32_t in_force = 0;
    if (walls) make_group(k, what->memory_bytes);
    for (int i = 0; i < RLHF__WARD_FILES; i++)
        given[i] = -1;
    int why = open_pipes(ours, given) == 0 ? spawn(p, walls, what, given, k) : errno;
    for (int i = 0; i < RLHF__WARD_FILES; i++)
        close_fd(&given[i]);
    k->api.in = ours[IN];
    k->api.out = ours[OUT];
    k->api.err = ours[ERR];
    if (!why) why = hear(ours[TOLD], &in_force);
    close_fd(&ours[TOLD]);
    if (why || !walls) return why;
    free(walls->confined);
    walls->confined = in_words(in_force, what->memory_bytes);
    if (walls->told) *walls->told = walls->confined;
    k->api.confined = walls->confined;
    k->rests = 1;
    return walls->confined ? 0 : ENOMEM;
}

// ---- the service ----

static rlhf_status do_start(const rlhf_host *host, const rlhf_program *what, rlhf_process **out,
                            int32_t *error) {
    const rlhf_program_service *table = host->service(host, RLHF_SVC_PROGRAM);
    const struct rlhf__programs *p = table->self;
    struct process *k = calloc(1, sizeof *k);
    *out = NULL;
    *error = ENOMEM;
    if (!k) return RLHF_E_NOMEM;
    k->api = (rlhf_process){.in = -1, .out = -1, .err = -1};
    RLHF__PASS(rlhf_process, &k->api, RLHF_ABI_MINOR);
    k->ward.orders = -1;
    *error = launch(p, p->walls ? p->walls(host) : NULL, what, k);
    if (*error) {
        end_process(k);
        return RLHF_E_IO;
    }
    *out = &k->api;
    return RLHF_OK;
}

static int32_t do_ended(const rlhf_host *host, rlhf_process *api, int32_t *how) {
    struct process *k = (struct process *)(void *)api;
    (void)host;
    if (k->ward.pid && rlhf__ward_over(&k->ward)) rlhf__ward_end(&k->ward, 0, &k->how);
    *how = k->how;
    return !k->ward.pid;
}

static void do_works(const rlhf_host *host, rlhf_process *api, int32_t on) {
    const struct process *k = (const struct process *)(const void *)api;
    (void)host;
    if (k->rests) rlhf__ward_order(&k->ward, on ? RLHF__WARDEN_WAKE : RLHF__WARDEN_REST);
}

static void do_end(const rlhf_host *host, rlhf_process *api) {
    (void)host;
    if (api) end_process((struct process *)(void *)api);
}

void rlhf__programs_init(struct rlhf__programs *p, const char *program,
                         struct rlhf__program_walls *(*walls)(const rlhf_host *plugin)) {
    *p = (struct rlhf__programs){.table = {.size = sizeof p->table,
                                           .self = p,
                                           .start = do_start,
                                           .ended = do_ended,
                                           .works = do_works,
                                           .end = do_end},
                                 .program = program,
                                 .walls = walls};
}
