// episode_arrays.c: see episode_arrays.h.
#include "plugin/episode_arrays.h"

#include "plugin/growth.h"

#include <stdio.h>
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

void rlhf__episode_arrays_mark(struct rlhf__episode_arrays *a, struct rlhf__tails *t,
                               uint32_t minor) {
    const uint32_t n = a->in.n;
    rlhf__tails_mark(t, "out->reward", a->out.reward, n * sizeof *a->out.reward);
    rlhf__tails_mark(t, "out->end", a->out.end, n);
    rlhf__tails_mark(t, "out->verdict", a->out.verdict, n);
    rlhf__tails_mark(t, "out->failed", a->out.failed, n);
    rlhf__tails_mark(t, "out->later", a->out.later, n);
    RLHF__LEND(rlhf_episode_in, &a->in, minor, t);
    RLHF__LEND(rlhf_episode_out, &a->out, minor, t);
}

rlhf_status rlhf__message_read(rlhf_message *to, const rlhf_message *from, char *why, size_t cap) {
    const unsigned char *bytes = (const unsigned char *)from;
    const uint32_t own = sizeof *to;
    const rlhf_status st = rlhf_copy_in(to, own, from, RLHF_SIZE_TO(rlhf_message, text));
    if (st == RLHF_OK && (to->text.ptr || to->text.len == 0)) return RLHF_OK;
    uint32_t at = own;
    while (st == RLHF_E_UNSUPPORTED && !bytes[at])
        at++;
    if (st == RLHF_E_UNSUPPORTED)
        snprintf(
            why, cap,
            "say(): byte %u of its rlhf_message is set, but this host knows only %u bytes; use "
            "a newer rlhf-host, or leave the member 0",
            at, own);
    else if (st != RLHF_OK)
        snprintf(why, cap,
                 "say(): the member size of its rlhf_message is %u; it must be from %u to %u",
                 from->size, own, RLHF_STRUCT_MAX);
    else
        snprintf(why, cap, "say(): the member text of its rlhf_message is NULL, with %llu bytes",
                 (unsigned long long)to->text.len);
    return RLHF_E_INVALID;
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
