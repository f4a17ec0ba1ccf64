// early.c: see early.h.
#include "team/early.h"

#include "base/signals.h"

static int ready(void *ctx, uint64_t low, int wait) {
    struct rlhf__early *e = ctx;
    pthread_mutex_lock(&e->lock);
    while (wait && e->complete > low)
        pthread_cond_wait(&e->changed, &e->lock);
    const int is = e->complete <= low;
    pthread_mutex_unlock(&e->lock);
    return is;
}

static void *reduce(void *arg) {
    struct rlhf__early *e = arg;
    e->status = rlhf__sum_reduce(e->sum, e->aside, &e->table, &e->err);
    return NULL;
}

void rlhf__early_begin(struct rlhf__early *e, struct rlhf__sum *s, const rlhf_dev *aside) {
    *e = (struct rlhf__early){.sum = s, .aside = aside, .complete = UINT64_MAX};
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    s->by_hand = 1;
    s->ready = ready;
    s->ready_ctx = e;
    if (rlhf__signals_thread(&e->thread, reduce, e)) return;
    s->by_hand = 0;
    s->ready = NULL;
}

void rlhf__early_complete(struct rlhf__early *e, uint64_t from) {
    if (!e->sum) return;
    pthread_mutex_lock(&e->lock);
    if (from < e->complete) e->complete = from;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

rlhf_status rlhf__early_end(struct rlhf__early *e, rlhf_status *table, struct rlhf__error *err) {
    struct rlhf__sum *s = e->sum;
    *table = RLHF_OK;
    if (!s) return RLHF_OK;
    rlhf__early_complete(e, 0);
    if (s->ready)
        pthread_join(e->thread, NULL);
    else
        reduce(e);
    s->by_hand = 0;
    s->ready = NULL;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    e->sum = NULL;
    *table = e->table;
    if (e->status != RLHF_OK && err) *err = e->err;
    return e->status;
}
