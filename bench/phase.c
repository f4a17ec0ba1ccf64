// phase.c: a few phases of the default PPO run. Starts rlhf-host as a user would, and reads the
// time of each part from the run's metrics. bench/ppo-phase measures the same parts with GPT-2
// 124M.
#include "bench.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PHASES = 5 };

struct phase_times { // seconds, of the fastest phase
    double training, rollout, reward, reference, update;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

// Runs a program and discards its standard output. Returns the exit status, or -1 if a signal ended
// the program.
static int run_program(const char *program, char *const *argv) {
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) bench_die("cannot start %s", program);
    if (pid == 0) {
        const int null = open("/dev/null", O_WRONLY);
        if (null >= 0) dup2(null, STDOUT_FILENO);
        execv(program, argv);
        _exit(127);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

// Returns the value of a metric in one line of metrics.jsonl.
static double metric(const char *line, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    if (!at) bench_die("metrics.jsonl has no %s", name);
    return strtod(at + strlen(key), NULL);
}

// Returns the times of the fastest phase.
static struct phase_times best_phase(const char *run_dir) {
    char path[4200], line[16384];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run_dir);
    FILE *f = fopen(path, "r");
    if (!f) bench_die("the run left no %s", path);
    struct phase_times best = {.training = 1e30};
    while (fgets(line, sizeof line, f)) {
        const struct phase_times s = {metric(line, "time/training"), metric(line, "time/rollout"),
                                      metric(line, "time/reward"), metric(line, "time/reference"),
                                      metric(line, "time/update")};
        if (s.training < best.training) best = s;
    }
    fclose(f);
    return best;
}

static void print_split(const struct phase_times *s) {
    const double other = s->training - s->rollout - s->reward - s->reference - s->update;
    printf("%-44s %10.2f s\n", "default PPO run (ppo.so, imdb.so), a phase", s->training);
    printf("%-44s %10.2f rollout, %.2f reward, %.2f reference, %.2f update, %.2f other (s)\n", "",
           s->rollout, s->reward, s->reference, s->update, other);
}

// Starts the default PPO run without its progress display, and returns the exit status.
static int run_default(const struct bench *b, const char *run_dir) {
    enum { SETTINGS = 7 };
    char program[4200], set[SETTINGS][4200];
    char *argv[5 + 2 * SETTINGS + 1] = {program, "--algo", "ppo.so", "--reward", "imdb.so"};
    snprintf(program, sizeof program, "%s/../../../bin/rlhf-host", b->lib_dir);
    snprintf(set[0], sizeof set[0], "run.dir=%s", run_dir);
    snprintf(set[1], sizeof set[1], "run.phases=%d", PHASES);
    snprintf(set[2], sizeof set[2], "run.threads=%u", b->threads);
    snprintf(set[3], sizeof set[3], "compute.backend=%s", b->backend);
    snprintf(set[4], sizeof set[4], "compute.dtype=%s", b->dtype == RLHF_BF16 ? "bf16" : "f32");
    snprintf(set[5], sizeof set[5], "log.progress=off");
    snprintf(set[6], sizeof set[6], "log.level=warn");
    for (int i = 0; i < SETTINGS; i++) {
        argv[5 + 2 * i] = "--set";
        argv[6 + 2 * i] = set[i];
    }
    return run_program(program, argv);
}

void bench_phase(const struct bench *b) {
    char work[] = "/tmp/rlhf-bench-XXXXXX", run[48];
    struct phase_times best = {0};
    if (!mkdtemp(work)) bench_die("cannot make a directory under /tmp");
    snprintf(run, sizeof run, "%s/run", work);
    const int status = run_default(b, run);
    if (status == 0) best = best_phase(run);
    nftw(work, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (status != 0) bench_die("rlhf-host ended with status %d", status);
    print_split(&best);
}
