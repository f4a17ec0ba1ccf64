// episode_arrays.c: see episode_arrays.h.
#include "plugin/episode_arrays.h"

#include "supervise/tail.h"

#include <stdlib.h>

int rlhf__episode_arrays_init(struct rlhf__episode_arrays *a, uint32_t n, int64_t phase) {
    const size_t two = 2 * (size_t)n;
    a->state = calloc((size_t)n + 1, sizeof *a->state);
    a->episode = calloc(two + 1, sizeof *a->episode);
    a->turn = calloc(two + 1, sizeof *a->turn);
    a->meta = calloc(two + 1, sizeof *a->meta);
    a->ended = calloc((size_t)n + 1, 1);
    a->reward = rlhf__tail_alloc(n, sizeof *a->reward);
    uint8_t *end = rlhf__tail_alloc(n, 1), *verdict = rlhf__tail_alloc(n, 1),
            *failed = rlhf__tail_alloc(n, 1), *later = rlhf__tail_alloc(n, 1);
    a->out = (rlhf_episode_out){
        .reward = a->reward, .end = end, .verdict = verdict, .failed = failed, .later = later};
    if (!a->state || !a->episode || !a->turn || !a->meta || !a->ended || !a->reward || !end ||
        !verdict || !failed || !later)
        return 0;
    a->seed = a->episode + n;
    a->call_offset = a->turn + n;
    a->text = a->meta + n;
    a->in = (rlhf_episode_in){.n = n,
                              .phase = phase,
                              .state = a->state,
                              .episode = a->episode,
                              .seed = a->seed,
                              .turn = a->turn,
                              .meta = a->meta,
                              .text = a->text,
                              .call_offset = a->call_offset,
                              .end = a->ended};
    return 1;
}

void rlhf__episode_arrays_mark(const struct rlhf__episode_arrays *a, struct rlhf__tails *t) {
    const uint32_t n = a->in.n;
    rlhf__tails_mark(t, "out->reward", a->out.reward, n * sizeof *a->out.reward);
    rlhf__tails_mark(t, "out->end", a->out.end, n);
    rlhf__tails_mark(t, "out->verdict", a->out.verdict, n);
    rlhf__tails_mark(t, "out->failed", a->out.failed, n);
    rlhf__tails_mark(t, "out->later", a->out.later, n);
}

void rlhf__episode_arrays_finish(struct rlhf__episode_arrays *a) {
    free(a->state);
    free(a->episode);
    free(a->turn);
    free(a->meta);
    free(a->ended);
    free(a->reward);
    free(a->out.end);
    free(a->out.verdict);
    free(a->out.failed);
    free(a->out.later);
}
