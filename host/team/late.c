// late.c: see late.h.
#include "team/late.h"

#include "base/signals.h"

static void ended(void *ctx, uint32_t windows) {
    struct rlhf__late *l = ctx;
    pthread_mutex_lock(&l->lock);
    l->ended = windows;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void *spread(void *arg) {
    struct rlhf__late *l = arg;
    l->status = rlhf__sum_spread(l->sum, &l->table, &l->err);
    ended(l, UINT32_MAX);
    return NULL;
}

void rlhf__late_begin(struct rlhf__late *l, struct rlhf__sum *s) {
    *l = (struct rlhf__late){.sum = s};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    s->by_hand = 1;
    s->ended = ended;
    s->ended_ctx = l;
    if (rlhf__signals_thread(&l->thread, spread, l)) return;
    s->by_hand = 0;
    s->ended = NULL;
    spread(l);
}

void rlhf__late_wait(struct rlhf__late *l, rlhf_dev value, uint64_t bytes) {
    const uint32_t until = rlhf__sum_until(l->sum, value, bytes);
    pthread_mutex_lock(&l->lock);
    while (l->ended < until)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

rlhf_status rlhf__late_end(struct rlhf__late *l, rlhf_status *table, struct rlhf__error *err) {
    struct rlhf__sum *s = l->sum;
    *table = RLHF_OK;
    if (!s) return RLHF_OK;
    if (s->ended) pthread_join(l->thread, NULL);
    s->by_hand = 0;
    s->ended = NULL;
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    l->sum = NULL;
    *table = l->table;
    if (l->status != RLHF_OK && err) *err = l->err;
    return l->status;
}
