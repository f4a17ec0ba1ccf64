// probe_try.c: runs all probes (probe.h), each in a separate process, and reports how they ended:
// "probed: F.write=13 F.append=13 ...". F is the protection, write the probe. The number is the
// errno, 0 if the probe succeeded, or -N if signal N ended it.
#include "worker/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 20, PER_LINE = 15 };

// Reads dir/bait, which the test wrote.
int probe_bait(const char *dir, struct bait *b) {
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

static void try_area(const struct area *a, const struct bait *b,
                     void (*tell)(void *ctx, const char *line), void *ctx) {
    char line[1000];
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (i % PER_LINE == 0) at = (size_t)snprintf(line, sizeof line, "probed:");
        at += (size_t)snprintf(line + at, sizeof line - at, " %c.%s=%d", a->wall, a->probes[i].name,
                               try_one(&a->probes[i], b));
        if (i % PER_LINE == PER_LINE - 1 || i + 1 == a->n) tell(ctx, line);
    }
}

void probe_all(const struct bait *b, void (*tell)(void *ctx, const char *line), void *ctx) {
    static const struct area *const areas[] = {probe_files,   probe_terminal, probe_processes,
                                               probe_machine, probe_network,  probe_memory};
    for (size_t k = 0; k < sizeof areas / sizeof *areas; k++)
        for (const struct area *a = areas[k]; a->n; a++)
            try_area(a, b, tell, ctx);
}
