// launched.c: the process that starts a program, and its warden; see programs.h.
#include "supervise/cgroup.h"
#include "supervise/confine.h"
#include "supervise/warden.h"
#include "worker/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct launched {
    const char *path;
    char **argv;
    uint64_t memory; // bytes, 0 = no limit
    int walls, network;
    unsigned group; // limits that its control group enforces
};

static void limit_memory(const struct launched *l) {
    const struct rlimit none = {0, 0};
    struct rlimit limit;
    if (!l->memory || getrlimit(RLIMIT_AS, &limit) != 0) return;
    if (limit.rlim_max > l->memory) limit.rlim_max = l->memory;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    // RLIMIT_AS does not count files in memory, so forbid writing files.
    if (l->walls) setrlimit(RLIMIT_FSIZE, &none);
}

static void tell(uint32_t word) {
    const ssize_t put = write(RLHF__PROGRAM_TOLD, &word, sizeof word);
    (void)put;
}

// Become the program. Returns only if it cannot be executed.
static int become(void *arg, unsigned spaces) {
    const struct launched *l = arg;
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int s = 1; s < NSIG; s++) // the program would inherit ignored signals
        sigaction(s, &normal, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    fcntl(RLHF__PROGRAM_TOLD, F_SETFD, FD_CLOEXEC);
    tell(l->walls ? rlhf__confine(spaces | l->group, l->network, NULL) : 0);
    limit_memory(l);
    execve(l->path, l->argv, environ);
    tell((uint32_t)errno);
    return 127;
}

int rlhf__launched(const struct rlhf__env *env, int argc, char **argv) {
    if (argc <= RLHF__PROGRAM_WORDS + 1 || fcntl(RLHF__PROGRAM_TOLD, F_GETFD) < 0) {
        rlhf__log_error(env->log, "worker: the host starts programs itself; see "
                                  "docs/rewards-outside.md");
        return 2;
    }
    struct launched l = {.path = argv[RLHF__PROGRAM_WORDS],
                         .argv = argv + RLHF__PROGRAM_WORDS + 1,
                         .memory = strtoull(argv[4], NULL, 10),
                         .walls = strcmp(argv[3], "open") != 0,
                         .network = strcmp(argv[3], "network") == 0};
    const struct rlhf__warden_rules rules = {.host = strtol(argv[1], NULL, 10),
                                             .walls = l.walls,
                                             .network = l.network,
                                             .orders = RLHF__WARD_ORDERS};
    rlhf__ward_close_others();
    // before the first fork, so that the warden is in the group
    l.group = rlhf__cgroup_enter(argv[5]);
    rlhf__warden(&rules, become, &l);
}
