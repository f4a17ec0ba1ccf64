// slice.c: see slice.h.
#include "team/slice.h"

#include <string.h>

uint32_t rlhf__slice_window(const struct rlhf__sum *s, struct rlhf__slice p) {
    return s->order[s->upwards ? rlhf__sum_windows(s) - 1 - p.window : p.window];
}

static uint32_t block_of(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank) {
    return s->blocks->dealt[rlhf__slice_window(s, p) * s->share->ranks + rank];
}

uint64_t rlhf__slice_len(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank) {
    const uint32_t b = block_of(s, p, rank);
    const uint64_t all = b != RLHF__NO_BLOCK ? s->blocks->block[b].len : 0;
    if (all <= p.from) return 0;
    return all - p.from < s->len ? all - p.from : s->len;
}

struct rlhf__slice rlhf__slice_next(const struct rlhf__sum *s, struct rlhf__slice p) {
    const struct rlhf__slice more = {p.window, p.from + s->len};
    for (uint32_t k = 0; k < s->share->ranks; k++)
        if (rlhf__slice_len(s, more, k) > 0) return more;
    return (struct rlhf__slice){p.window + 1, 0};
}

static rlhf_dev address(const struct rlhf__piece *p, enum rlhf__place place, rlhf_dev aside) {
    if (place == RLHF__ASIDE) return rlhf_dev_at(aside, p->at);
    return place == RLHF__GRAD ? p->grad : p->value;
}

// Copy between contiguous memory and `x`, without the table.
static void copy_by_hand(enum rlhf__way way, float *contiguous, float *x, uint64_t bytes) {
    if (way == RLHF__DOWN || way == RLHF__OUT)
        memcpy(contiguous, x, bytes);
    else
        memcpy(x, contiguous, bytes);
}

rlhf_status rlhf__slice_move(const struct rlhf__sum *s, struct rlhf__slice part, uint32_t rank,
                             enum rlhf__place place, rlhf_dev aside, enum rlhf__way way,
                             float *host, rlhf_dev dev) {
    const rlhf_compute *t = s->compute;
    uint64_t left = rlhf__slice_len(s, part, rank), skip = part.from, at = 0;
    if (left == 0) return RLHF_OK;
    if (s->on_device && host) { // a buffer in device memory
        dev = (rlhf_dev)(void *)host;
        host = NULL;
        way = way == RLHF__DOWN ? RLHF__OUT : RLHF__IN;
    }
    const struct rlhf__block *b = &s->blocks->block[block_of(s, part, rank)];
    for (uint32_t k = b->first; left > 0 && k < b->end; k++) {
        const struct rlhf__piece *p = &s->blocks->piece[k];
        if (skip >= p->len) {
            skip -= p->len;
            continue;
        }
        const uint64_t n = p->len - skip < left ? p->len - skip : left, bytes = n * sizeof(float);
        const rlhf_dev x = rlhf_dev_at(address(p, place, aside), skip * sizeof(float));
        const rlhf_dev d = rlhf_dev_at(dev, at * sizeof(float));
        if (s->by_hand)
            copy_by_hand(way, host ? host + at : (float *)(void *)d, (float *)(void *)x, bytes);
        else
            RLHF_TRY(way == RLHF__DOWN  ? t->download(t->ctx, host + at, x, bytes)
                     : way == RLHF__UP  ? t->upload(t->ctx, x, host + at, bytes)
                     : way == RLHF__OUT ? t->copy(t->ctx, d, x, bytes)
                                        : t->copy(t->ctx, x, d, bytes));
        at += n;
        left -= n;
        skip = 0;
    }
    return RLHF_OK;
}

rlhf_dev rlhf__slice_whole(const struct rlhf__sum *s, struct rlhf__slice part, uint32_t rank,
                           enum rlhf__place place, rlhf_dev aside) {
    if (rlhf__slice_len(s, part, rank) == 0) return NULL;
    const struct rlhf__block *b = &s->blocks->block[block_of(s, part, rank)];
    const struct rlhf__piece *p = &s->blocks->piece[b->first];
    if (b->end - b->first != 1) return NULL;
    return rlhf_dev_at(address(p, place, aside), part.from * sizeof(float));
}

float *rlhf__slice_direct(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank,
                          enum rlhf__place place) {
    return s->in_place ? (float *)(void *)rlhf__slice_whole(s, p, rank, place, NULL) : NULL;
}
