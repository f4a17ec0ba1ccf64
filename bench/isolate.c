// isolate.c: rlhf-bench-isolate: the cost of a worker. period_count.so scores batches of 128 rows
// alternately in this process and in a worker.
//
//   rlhf-bench-isolate [BATCHES]     2000
#include "plugin/services.h"
#include "worker/stand_in.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 128, PROMPT = 200, RESPONSE = 400, TOKENS = 16 };

struct rows {
    rlhf_str prompt[ROWS], response[ROWS], meta[ROWS];
    int32_t ids[ROWS * TOKENS], offset[ROWS + 1], prompt_len[ROWS], group[ROWS];
    uint8_t finished[ROWS], verdict[ROWS], failed[ROWS];
    float seq[ROWS];
    char text[PROMPT + RESPONSE];
};

static void fill(struct rows *r) {
    for (int i = 0; i < PROMPT + RESPONSE; i++)
        r->text[i] = (char)(i % 60 == 59 ? '.' : 'a' + i % 26);
    for (int i = 0; i < ROWS; i++) {
        r->prompt[i] = (rlhf_str){r->text, PROMPT};
        r->response[i] = (rlhf_str){r->text + PROMPT, (uint64_t)(RESPONSE - i)};
        r->meta[i] = (rlhf_str){r->text, 0};
        r->offset[i + 1] = (i + 1) * TOKENS;
        r->prompt_len[i] = TOKENS / 2;
        r->group[i] = i;
    }
}

static _Noreturn void die(const char *what, const struct rlhf__error *err) {
    fprintf(stderr, "rlhf-bench-isolate: %s: %s\n", what, err->text);
    exit(1);
}

// Returns the seconds that scoring one batch takes.
static double score(const struct rlhf__instance *reward, struct rows *r, struct rlhf__error *err) {
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = ROWS,
                               .prompt = r->prompt,
                               .response = r->response,
                               .meta = r->meta,
                               .ids = r->ids,
                               .offset = r->offset,
                               .prompt_len = r->prompt_len,
                               .finished = r->finished,
                               .group = r->group};
    const rlhf_reward_out out = {
        .size = sizeof out, .seq = r->seq, .verdict = r->verdict, .failed = r->failed};
    const double from = rlhf__seconds();
    if (reward->plugin->ops.reward.score(reward->self, &in, &out) < 0) {
        rlhf__fail(err, RLHF_E_INTERNAL, "score() failed");
        die(reward->plugin->file, err);
    }
    return rlhf__seconds() - from;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Prints the shortest and the median time of a batch in milliseconds.
static void tell(const char *name, double *s, size_t n) {
    qsort(s, n, sizeof *s, by_size);
    printf("%-14s %d rows: %.3f ms a batch (median; best %.3f)\n", name, ROWS, 1000 * s[n / 2],
           1000 * s[0]);
}

static struct rlhf__instance *open_one(struct rlhf__plugins *plugins,
                                       struct rlhf__services *services, int apart) {
    const struct rlhf__worker_rules rules = {.timeout_s = 300, .workers = 1};
    const struct rlhf__origin from = {"the bench", "", NULL, 0, 0};
    const struct rlhf__plugin *p;
    struct rlhf__instance *one;
    struct rlhf__error err = {0, ""};
    const rlhf_status st =
        apart ? rlhf__worker_plugin(plugins, &rules, "period_count.so", RLHF_KIND_REWARD,
                                    RLHF__NAME_TYPED, "the bench", &p, &err)
              : rlhf__plugin_open(plugins, "period_count.so", RLHF_KIND_REWARD, RLHF__NAME_TYPED,
                                  "the bench", &p, &err);
    if (st < 0 || rlhf__instance_open(p, services, apart ? "rewards/b" : "rewards/a", NULL, &from,
                                      &one, &err) < 0)
        die("period_count.so", &err);
    return one;
}

int main(int argc, char **argv) {
    static struct rows rows[2];
    const int given = argc > 1 ? atoi(argv[1]) : 2000;
    const size_t n = given > 0 && given < 10000000 ? (size_t)given : 2000;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__services services = {.phase = -1};
    struct rlhf__instance *one[2];
    struct rlhf__error err = {0, ""};
    double *took[2] = {calloc(n, sizeof(double)), calloc(n, sizeof(double))};
    if (!took[0] || !took[1] || rlhf__dirs_find(&dirs, &err) < 0) die("it cannot start", &err);
    const int len = snprintf(dirs.program, sizeof dirs.program, "%.1000s/rlhf-host", dirs.exe);
    if (len >= 1000 || rlhf__plugins_open(&dirs, &plugins, &err) < 0) die(dirs.exe, &err);
    for (int k = 0; k < 2; k++) {
        one[k] = open_one(plugins, &services, k);
        fill(&rows[k]);
        for (int warm = 0; warm < 20; warm++)
            score(one[k], &rows[k], &err);
    }
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            took[k][i] = score(one[k], &rows[k], &err);
    const int same = memcmp(rows[0].seq, rows[1].seq, sizeof rows[0].seq) == 0;
    tell("in the process", took[0], n);
    tell("in a worker", took[1], n);
    printf("a worker costs %.3f ms a batch (median; best %.3f), %s\n",
           1000 * (took[1][n / 2] - took[0][n / 2]), 1000 * (took[1][0] - took[0][0]),
           same ? "the same rewards" : "OTHER REWARDS");
    for (int k = 0; k < 2; k++) {
        rlhf__instance_close(one[k]);
        free(took[k]);
    }
    rlhf__plugins_close(plugins);
    return same ? 0 : 1;
}
