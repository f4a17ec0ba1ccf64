// probe_program.c: a program for exec.so and env_exec.so. It tries the things that an isolated
// program must not be able to do (probe.h), and writes the results to its standard error.
//
//     probe_program all DIR     all probes, with the bait in DIR
//     probe_program plays DIR   the same, as an environment that ends episodes at their first turn
//     probe_program forks       starts as many processes as it can, which stay: "forked: N"
//     probe_program burn|wake   starts a child that computes for ever; with wake, the child also
//                               wakes itself
//
// Then the program answers 1 for each row.
#include "worker/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_FORKS = 3000 };

static void tell(void *ctx, const char *line) { fprintf(ctx, "%s\n", line); }

// Starts processes. If allowed, each is in a separate session.
static void fork_all(void) {
    int n = 0;
    for (pid_t pid = 1; n < MOST_FORKS && pid > 0; n += pid > 0) {
        pid = fork();
        if (pid == 0) {
            setsid();
            prctl(PR_SET_NAME, "probe-forked");
            for (;;)
                pause();
        }
    }
    fprintf(stderr, "forked: %d\n", n);
}

static void answer(const char *line, int plays) {
    unsigned long long episode;
    if (!plays)
        puts("1");
    else if (sscanf(line, "{\"reset\": %llu", &episode) == 1)
        printf("{\"episode\": %llu}\n", episode);
    else if (sscanf(line, "{\"step\": %llu", &episode) == 1)
        printf("{\"episode\": %llu, \"reward\": 1, \"done\": true}\n", episode);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char *line = NULL;
    size_t room = 0;
    struct bait b;
    int begun = 0;
    const int plays = argc > 2 && strcmp(argv[1], "plays") == 0;
    if (plays) puts("{}");
    fflush(stdout);
    while (getline(&line, &room, stdin) > 0) {
        if (!begun && argc > 2 && (plays || strcmp(argv[1], "all") == 0)) {
            if (probe_bait(argv[2], &b) != 0) return 3;
            probe_all(&b, tell, stderr);
        }
        if (!begun && argc > 1 && strcmp(argv[1], "forks") == 0) fork_all();
        if (!begun && argc > 1 && strcmp(argv[1], "burn") == 0) probe_burns(NULL);
        if (!begun && argc > 1 && strcmp(argv[1], "wake") == 0) probe_wakes(NULL);
        begun = 1;
        answer(line, plays);
    }
    free(line);
    return 0;
}
