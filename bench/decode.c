// decode.c: generations of a model (model.h), step by step.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static int32_t prompt_token(const struct model *m, int row, int at) {
    return (row * 131 + at * 17) % m->info.n_vocab;
}

void bench_decode_step(const struct bench *b, const struct model *m, rlhf_gen *gen, int step,
                       int32_t *next, float *logp) {
    const int n = b->slots, new_tokens = step ? 1 : b->prompt;
    int32_t *ids = bench_zeros((size_t)n * (size_t)(b->prompt + 5) + 1),
            *offset = ids + n * b->prompt;
    int32_t *slot = offset + n + 1, *start = slot + n;
    uint64_t *counter = bench_zeros(2 * (size_t)n);
    for (int i = 0; i < n; i++) {
        slot[i] = i;
        start[i] = step ? b->prompt + step - 1 : 0;
        offset[i + 1] = (i + 1) * new_tokens;
        counter[i] = (uint64_t)(step * n + i);
        for (int k = 0; k < new_tokens; k++)
            ids[i * new_tokens + k] = step ? next[i] : prompt_token(m, i, k);
    }
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = (uint32_t)n,
                             .slot = slot,
                             .start = start,
                             .ids = ids,
                             .offset = offset,
                             .dist = &dist,
                             .logp_dist = &dist,
                             .seed = 1,
                             .stream = 2,
                             .counter = counter,
                             .next = next,
                             .logp = logp};
    bench_check(b, m->ops->gen_step(m->self, gen, &s), "gen_step");
    free(ids);
    free(counter);
}

// Times every step of several generations separately. Only the shortest time of each step is used,
// so that a brief disturbance by another program does not spoil a whole generation.
void bench_decode(const struct bench *b, const struct model *m) {
    enum { GENERATIONS = 6 };
    int32_t *next = bench_zeros((size_t)b->slots);
    float *logp = bench_zeros((size_t)b->slots);
    double *at = calloc((size_t)b->fresh, sizeof *at), sum = 0;
    rlhf_gen *gen = NULL;
    if (!at) bench_die("out of memory");
    bench_check(
        b, m->ops->gen_open(m->self, (uint32_t)b->slots, (uint32_t)(b->prompt + b->fresh), &gen),
        "gen_open");
    for (int r = 0; r < (b->count ? b->count : GENERATIONS); r++)
        for (int i = 0; i < b->fresh; i++) {
            double t = bench_now(b);
            bench_decode_step(b, m, gen, i, next, logp);
            t = bench_now(b) - t;
            if (r == 0 || t < at[i]) at[i] = t;
        }
    m->ops->gen_close(m->self, gen);
    for (int i = 1; i < b->fresh; i++)
        sum += at[i];
    const double best = sum / (b->fresh - 1), best_prefill = at[0];
    free(next);
    free(logp);
    free(at);
    if (b->count) return;
    const double params = (double)(m->info.n_params - m->position_params);
    const double keys = b->prompt + b->fresh / 2.0;
    const double work = b->slots * (2.0 * params + 4.0 * keys * m->info.d_model * m->info.n_layer);
    const double rate = work / best * 1e-9;
    char title[64];
    snprintf(title, sizeof title, "decode, %d rows, %d + %d tokens", b->slots, b->prompt, b->fresh);
    printf("%-44s %10.2f ms a step, %.0f tokens/s, %.0f GFLOP/s, %.1f %% of peak\n", title,
           best * 1e3, b->slots / best, rate, 100 * rate / bench_peak_of(b));
    printf("%-44s %10.2f ms\n", "prefill of the prompts", best_prefill * 1e3);
}
