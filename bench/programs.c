// programs.c: how long rewards that run in another process take for a row. exec.so starts this same
// program, which answers each line with 1. python.so calls a function that returns ones.
#include "plugin.h"

#include <rlhf/reward.h>
#include <rlhf/test.h>

#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 128, BATCHES = 200, PROMPT = 200, RESPONSE = 400 };

void bench_answer(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        puts("1");
        fflush(stdout);
    }
    free(line);
}

struct rows {
    rlhf_str prompt[ROWS], response[ROWS], meta[ROWS];
    int32_t ids[ROWS], offset[ROWS + 1], prompt_len[ROWS];
    uint8_t finished[ROWS], verdict[ROWS], failed[ROWS];
    float seq[ROWS];
    char text[PROMPT + RESPONSE];
};

static void fill(struct rows *r) {
    static const char row[] = "{\"prompt\": \"text\", \"answer\": \"42\"}";
    memset(r, 0, sizeof *r);
    for (int i = 0; i < PROMPT + RESPONSE; i++)
        r->text[i] = (char)(i % 60 == 59 ? '\n' : 'a' + i % 26);
    for (int i = 0; i < ROWS; i++) {
        r->prompt[i] = (rlhf_str){r->text, PROMPT};
        r->response[i] = (rlhf_str){r->text + PROMPT, RESPONSE};
        r->meta[i] = (rlhf_str){row, sizeof row - 1};
        r->offset[i + 1] = i + 1;
    }
}

// Prints the time of the fastest of several batches. The first batch is not timed, because it
// starts the program.
static void measure(const struct bench *b, const char *plugin, const char *const (*set)[2]) {
    static struct rows r;
    struct bench_plugin p;
    bench_plugin_open(&p, b, "rewards", plugin, set);
    fill(&r);
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = ROWS,
                               .prompt = r.prompt,
                               .response = r.response,
                               .meta = r.meta,
                               .ids = r.ids,
                               .offset = r.offset,
                               .prompt_len = r.prompt_len,
                               .finished = r.finished};
    const rlhf_reward_out out = {
        .size = sizeof out, .seq = r.seq, .verdict = r.verdict, .failed = r.failed};
    const rlhf_reward_ops *ops = p.plugin->ops;
    double best = 1e9, all = 0;
    for (int i = 0; i <= BATCHES; i++) {
        const double begun = bench_seconds();
        if (ops->score(p.self, &in, &out) < 0) bench_die("%s: %s", plugin, p.host.fail_text);
        const double took = bench_seconds() - begun;
        if (i == 0) continue;
        all += took;
        if (took < best) best = took;
    }
    printf("%-9s %d rows of %d + %d bytes: %.2f ms a batch (best %.2f), %.0f rows/s (best %.0f)\n",
           plugin, ROWS, PROMPT, RESPONSE, 1000 * all / BATCHES, 1000 * best, ROWS * BATCHES / all,
           ROWS / best);
    bench_plugin_close(&p);
}

static void measure_python(const struct bench *b) {
    char path[] = "/tmp/rlhf-bench-XXXXXX.py";
    static const char text[] =
        "def ones(completions, **kwargs):\n    return [1] * len(completions)\n";
    bench_python_file(path, text);
    const char *const set[][2] = {{"file", path}, {"function", "ones"}, {NULL, NULL}};
    measure(b, "python.so", set);
    unlink(path);
}

void bench_programs(const struct bench *b) {
    char exe[3072], command[3200];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0) bench_die("cannot find the program's own path");
    exe[n] = 0;
    snprintf(command, sizeof command, "'%s' --answer", exe);
    const char *const set[][2] = {{"command", command}, {NULL, NULL}};
    measure(b, "exec.so", set);
    if (system("python3 -c 'import sys' >/dev/null 2>&1") == 0) measure_python(b);
}
