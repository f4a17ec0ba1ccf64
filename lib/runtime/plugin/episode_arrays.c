// episode_arrays.c: see episode_arrays.h.
#include "plugin/episode_arrays.h"

#include <stdlib.h>

int rlhf__episode_arrays_init(struct rlhf__episode_arrays *a, uint32_t n, int64_t phase) {
    const size_t two = 2 * (size_t)n;
    uint8_t *bytes = calloc(2 * two + n + 1, 1); // end, verdict, failed, later, ended
    a->state = calloc((size_t)n + 1, sizeof *a->state);
    a->episode = calloc(two + 1, sizeof *a->episode);
    a->turn = calloc(two + 1, sizeof *a->turn);
    a->meta = calloc(two + 1, sizeof *a->meta);
    a->reward = calloc((size_t)n + 1, sizeof *a->reward);
    a->out.end = bytes;
    if (!bytes || !a->state || !a->episode || !a->turn || !a->meta || !a->reward) return 0;
    a->seed = a->episode + n;
    a->call_offset = a->turn + n;
    a->text = a->meta + n;
    a->ended = bytes + 2 * two;
    a->in = (rlhf_episode_in){.size = sizeof a->in,
                              .n = n,
                              .phase = phase,
                              .state = a->state,
                              .episode = a->episode,
                              .seed = a->seed,
                              .turn = a->turn,
                              .meta = a->meta,
                              .text = a->text,
                              .call_offset = a->call_offset,
                              .end = a->ended};
    a->out = (rlhf_episode_out){.size = sizeof a->out,
                                .reward = a->reward,
                                .end = bytes,
                                .verdict = bytes + n,
                                .failed = bytes + two,
                                .later = bytes + two + n};
    return 1;
}

void rlhf__episode_arrays_finish(struct rlhf__episode_arrays *a) {
    free(a->state);
    free(a->episode);
    free(a->turn);
    free(a->meta);
    free(a->reward);
    free(a->out.end);
}
