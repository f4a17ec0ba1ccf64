// probe_reward.c: a reward that tries what a worker must not be able to do (probe.h) and logs the
// outcomes: "probed: F.write=13 F.append=13 ...": the wall, the probe, and errno, 0 if it
// succeeded, or -N if signal N ended it. Each probe runs in a separate process.
#include "worker/probe.h"

#include "support/plugin.h"

#include <rlhf/reward.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct config {
    const char *dir, *probe;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, dir, "", "where the bait lies"),
    RLHF_OPT_STR(struct config, probe, "", "one that is tried alone, empty: all others"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

enum { SECONDS = 20, PER_LINE = 25 };

// dir/bait: what the test wrote.
static int read_bait(const char *dir, struct bait *b) {
    char path[600];
    long victim = 0;
    memset(b, 0, sizeof *b);
    b->dir = dir;
    snprintf(b->file, sizeof b->file, "%s/file", dir);
    snprintf(path, sizeof path, "%s/bait", dir);
    FILE *f = fopen(path, "re");
    if (!f) return -1;
    const int n = fscanf(f, "%ld %d %d %d %d %127s", &victim, &b->port, &b->shm, &b->msg, &b->sem,
                         b->terminal);
    fclose(f);
    b->victim = (pid_t)victim;
    return n >= 5 ? 0 : -1;
}

static int try_one(const struct probe *p, const struct bait *b) {
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(SECONDS);
        errno = 0;
        const long got = p->run(b);
        _exit(got < 0 ? (errno ? errno : 255) : 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 254;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void try_area(const struct self *s, const struct area *a, const struct bait *b) {
    char line[1000];
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (i % PER_LINE == 0) at = (size_t)snprintf(line, sizeof line, "probed:");
        at += (size_t)snprintf(line + at, sizeof line - at, " %c.%s=%d", a->wall, a->probes[i].name,
                               try_one(&a->probes[i], b));
        if (i % PER_LINE == PER_LINE - 1 || i + 1 == a->n)
            s->host->log(s->host, RLHF_LOG_INFO, line);
    }
}

static void try_all(const struct self *s, const struct bait *b) {
    static const struct area *const areas[] = {probe_files,   probe_terminal, probe_processes,
                                               probe_machine, probe_network,  probe_memory};
    for (size_t k = 0; k < sizeof areas / sizeof *areas; k++)
        for (const struct area *a = areas[k]; a->n; a++)
            try_area(s, a, b);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    struct bait b;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)in->response[i].len;
    if (in->phase != 0) return RLHF_OK;
    if (read_bait(s->config->dir, &b) != 0)
        return s->host->fail(s->host, RLHF_E_INVALID, "there is no bait");
    if (!*s->config->probe) try_all(s, &b);
    for (const struct probe *p = probe_alone; p->name; p++)
        if (strcmp(p->name, s->config->probe) == 0) p->run(&b);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "probe_reward", .summary = "tries what it must not",
            TEST_OPTIONS(opts), TEST_INSTANCES)
