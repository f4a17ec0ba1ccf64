// injected_reward.c: a reward that scores a row by its texts alone and, in a worker, fails at rows
// that a seed chooses. After each failure of a row, a new draw decides whether the row fails again.
// A worker cannot write files, so these failures are logged. The run's log is in the file `said`.
// Built with ALONE, it declares that it scores rows one by one and may be called early.
#include "support/plugin.h"

#include <rlhf/reward.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"crash", "abort", "exit",   "hang", "behind", "before",
                                    "input", "nan",   "memory", "bomb", "noise",  "slow"};
enum { KINDS = sizeof kinds / sizeof *kinds, MOST_FORKS = 3000 };

struct config {
    int64_t seed, every; // every 0: never fails
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, seed, 1, 0, 1 << 20, "which rows"),
    RLHF_OPT_I64(struct config, every, 0, 0, 1 << 20, "about every so many-th row"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

// FNV-1a.
static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

// Returns the number of lines of `said` that contain `text`.
static uint64_t said(const char *text) {
    char line[4096];
    uint64_t n = 0;
    FILE *f = fopen("said", "re");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, text) != NULL;
    if (f) fclose(f);
    return n;
}

// Allocate twice the allowed memory. Builds with a sanitizer have no limit.
static void eat_memory(void) {
    for (int i = 0; i < 32; i++) {
        char *p = malloc((size_t)16 << 20);
        if (!p) break;
        memset(p, 1, (size_t)16 << 20);
    }
    abort();
}

static void fork_all(void) {
    for (int i = 0; i < MOST_FORKS; i++) {
        const pid_t pid = fork();
        if (pid < 0) break;
        if (pid > 0) continue;
        if (i % 3 == 0) setsid();
        for (;;)
            pause();
    }
    abort();
}

// Fails at a row. Returns 1 if the rows after this row must not fail, because a call can report
// only one failure.
static int go_wrong(const struct self *s, const char *kind, const rlhf_reward_in *in,
                    const rlhf_reward_out *out, uint32_t row) {
    char text[64];
    snprintf(text, sizeof text, "injected: %s", kind);
    s->host->log(s->host, RLHF_LOG_INFO, text);
    if (strcmp(kind, "crash") == 0) raise(SIGSEGV);
    if (strcmp(kind, "abort") == 0) abort();
    if (strcmp(kind, "exit") == 0) exit(3);
    if (strcmp(kind, "memory") == 0) eat_memory();
    if (strcmp(kind, "bomb") == 0) fork_all();
    if (strcmp(kind, "behind") == 0) ((volatile float *)out->seq)[in->n] = 1;
    if (strcmp(kind, "before") == 0) ((volatile uint8_t *)out->verdict)[-1] = 1;
    if (strcmp(kind, "input") == 0) *(volatile int32_t *)(uintptr_t)in->ids = 1;
    if (strcmp(kind, "noise") == 0) puts("Loading checkpoint shards:\033[31m 100%");
    if (strcmp(kind, "slow") == 0) usleep(200000);
    if (strcmp(kind, "nan") == 0) out->seq[row] = NAN;
    while (strcmp(kind, "hang") == 0)
        pause();
    return strcmp(kind, "noise") != 0 && strcmp(kind, "slow") != 0;
}

// When a worker is restarted, creating it takes some time.
static rlhf_status create_slowly(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    if (c->every && said("is started again") % 3 == 2) usleep(300000);
    return create(host, config, self);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    const struct config *c = s->config;
    const uint64_t times = c->every ? said("score(), phase ") : 0;
    int wrong = !c->every;
    for (uint32_t i = 0; i < in->n; i++) {
        uint64_t h =
            mix(UINT64_C(14695981039346656037), in->prompt[i].ptr, (size_t)in->prompt[i].len);
        h = mix(h, in->response[i].ptr, (size_t)in->response[i].len);
        out->seq[i] = (float)(h >> 23 & 15) / 8;
        if (wrong) continue;
        uint64_t draw = mix(mix(h, &c->seed, sizeof c->seed), &times, sizeof times);
        draw = mix(mix(draw, &in->phase, sizeof in->phase), &i, sizeof i) >> 13;
        if (draw % (uint64_t)c->every == 0)
            wrong = go_wrong(s, kinds[draw / (uint64_t)c->every % KINDS], in, out, i);
    }
    return RLHF_OK;
}

#ifdef ALONE
static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL, .score = score};
#else
static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};
#endif

TEST_PLUGIN(RLHF_KIND_REWARD, "injected_reward", .summary = "goes wrong in a worker",
            TEST_OPTIONS(opts), .create = create_slowly, .destroy = destroy)
