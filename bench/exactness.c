// exactness.c: the cost of exactness. Runs the same training steps, generations and whole phases
// alternately with the CPU backend and with kernels_cpu_free.so, which is the same backend without
// the promise of exactness: oneDNN computes its GEMMs, and the compiler may reorder sums in its
// loops. The benchmark also compares the log-probs of sampling with the log-probs of training.
#include "model.h"
#include "series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct side {
    struct bench b;
    struct series times;
    double max, mean; // differences of log-probs
};

static void print_pair(const char *what, const char *unit, double scale, const struct side s[2]) {
    const double el = series_least(&s[0].times) * scale, em = series_median(&s[0].times) * scale;
    const double fl = series_least(&s[1].times) * scale, fm = series_median(&s[1].times) * scale;
    printf("%-36s exact %9.2f %9.2f %s, free %9.2f %9.2f: exact costs %+.1f %% %+.1f %% "
           "(shortest, median of %d)\n",
           what, el, em, unit, fl, fm, 100 * (el / fl - 1), 100 * (em / fm - 1), s[0].times.n);
}

static void print_difference(const struct side s[2]) {
    printf("%-36s exact %.3g largest, %.3g mean; free %.3g largest, %.3g mean (nats)\n",
           "  log-prob of sampling less training", s[0].max, s[0].mean, s[1].max, s[1].mean);
}

static int wants(const struct bench *b, const char *part) {
    return !*b->part || strcmp(b->part, part) == 0;
}

static void train(struct side s[2], struct model m[2]) {
    enum { WARMUP = 1 };
    for (int i = 0; i < s->b.rounds + WARMUP; i++)
        for (int k = 0; k < 2; k++) {
            const int side = (i + k) % 2;
            const double t = bench_train_step(&s[side].b, &m[side], i + 1).total;
            if (i >= WARMUP) series_add(&s[side].times, t);
        }
    print_pair("training step", "ms", 1e3, s);
}

// Generate all rows and time each step. Then compute the log-probs of the same tokens in one
// forward pass.
static void generate(struct side *s, const struct model *m, int counts) {
    const struct bench *b = &s->b;
    const int len = b->prompt + b->fresh, n = b->slots;
    const size_t all = (size_t)n * (size_t)len;
    int32_t *ids = bench_zeros(all), *next = bench_zeros((size_t)n);
    float *drawn = bench_zeros(all), *logp = bench_zeros((size_t)n);
    float *scored = bench_zeros(all);
    rlhf_gen *gen = NULL;
    bench_check(b, m->ops->gen_open(m->self, (uint32_t)n, (uint32_t)len, &gen), "gen_open");
    for (int t = 0; t < b->fresh; t++) {
        const double from = bench_now(b);
        bench_decode_step(b, m, gen, t, next, logp);
        if (t > 0 && counts) series_add(&s->times, bench_now(b) - from);
        for (int i = 0; i < n; i++) {
            ids[i * len + b->prompt + t] = next[i];
            drawn[i * len + b->prompt + t] = logp[i];
        }
    }
    m->ops->gen_close(m->self, gen);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < b->prompt; k++)
            ids[i * len + k] = bench_prompt_token(m, i, k);
    bench_score(b, m, ids, n, len, scored);
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int k = b->prompt; k < len; k++) {
            const double d = fabs((double)drawn[i * len + k] - (double)scored[i * len + k]);
            if (!(d <= s->max)) s->max = d;
            sum += d;
        }
    s->mean = sum / (n * b->fresh);
    free(ids);
    free(next);
    free(drawn);
    free(logp);
    free(scored);
}

static void decode(struct side s[2], struct model m[2]) {
    for (int i = 0; i < s->b.rounds + 1; i++)
        for (int k = 0; k < 2; k++)
            generate(&s[(i + k) % 2], &m[(i + k) % 2], i > 0);
    print_pair("decode step", "ms", 1e3, s);
    print_difference(s);
}

static void phase(struct side s[2]) {
    for (int i = 0; i < s->b.rounds; i++)
        for (int k = 0; k < 2; k++) {
            struct side *one = &s[(i + k) % 2];
            const struct phase_times t = bench_phase_times(&one->b);
            series_add(&one->times, t.training);
            if (!(t.difference_max <= one->max)) one->max = t.difference_max;
            one->mean = t.difference_mean;
        }
    print_pair("default PPO run, a phase", "s", 1, s);
    print_difference(s);
}

static void begin(struct side s[2]) {
    for (int i = 0; i < 2; i++) {
        s[i].times.n = 0;
        s[i].max = s[i].mean = 0;
    }
}

static void compare(struct side s[2], int32_t dtype) {
    for (int i = 0; i < 2; i++)
        s[i].b.dtype = dtype;
    printf("%s\n", dtype == RLHF_BF16 ? "bf16" : "f32");
    if (wants(&s->b, "train") || wants(&s->b, "decode")) {
        struct model m[2] = {bench_model_open(&s[0].b), bench_model_open(&s[1].b)};
        begin(s);
        if (wants(&s->b, "train")) train(s, m);
        begin(s);
        if (wants(&s->b, "decode")) decode(s, m);
        for (int i = 0; i < 2; i++)
            bench_model_close(&s[i].b, &m[i]);
    }
    begin(s);
    if (wants(&s->b, "phase")) phase(s);
}

void bench_exactness(const struct bench *b) {
    static struct side s[2]; // too large for the stack
    char path[4200];
    snprintf(path, sizeof path, "%s/../../rlhf-free/kernels_cpu_free.so", b->lib_dir);
    s[0].b = s[1].b = *b;
    s[1].b.backend = path;
    bench_load(&s[1].b);
    printf("%s: %s\n", s[1].b.c->name, s[1].b.c->detail);
    const int has_bf16 = (b->c->dtypes & 1u << RLHF_BF16) != 0;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++)
        if (b->only_dtype ? dtype == b->dtype : dtype == RLHF_F32 || has_bf16) compare(s, dtype);
}
