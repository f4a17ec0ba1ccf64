// sum_overlap.c: see sum_overlap.h.
#include "team/sum_overlap.h"

#include "base/signals.h"

// ---- called by the thread ----

static int ready(void *ctx, uint64_t low, int wait) {
    struct rlhf__overlap *o = ctx;
    pthread_mutex_lock(&o->lock);
    while (wait && o->complete > low)
        pthread_cond_wait(&o->changed, &o->lock);
    const int is = o->complete <= low;
    pthread_mutex_unlock(&o->lock);
    return is;
}

static void ended(void *ctx, uint32_t windows) {
    struct rlhf__overlap *o = ctx;
    pthread_mutex_lock(&o->lock);
    o->ended = windows;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void *exchange(void *arg) {
    struct rlhf__overlap *o = arg;
    o->status = o->spreads ? rlhf__sum_spread(o->sum, &o->table, &o->err)
                           : rlhf__sum_reduce(o->sum, o->aside, &o->table, &o->err);
    ended(o, UINT32_MAX); // even after a failure
    return NULL;
}

// ---- begin and end ----

// Connects a sum with the thread, or with nothing.
static void connect(struct rlhf__overlap *o, int threaded) {
    struct rlhf__sum *s = o->sum;
    o->threaded = s->by_hand = threaded;
    s->ready = threaded && !o->spreads ? ready : NULL;
    s->ended = threaded && o->spreads ? ended : NULL;
    s->ready_ctx = s->ended_ctx = o;
}

static void begin(struct rlhf__overlap *o) {
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    connect(o, 1);
    if (rlhf__signals_thread(&o->thread, exchange, o)) return;
    connect(o, 0);
    if (o->spreads) exchange(o);
}

void rlhf__overlap_reduce(struct rlhf__overlap *o, struct rlhf__sum *s, const rlhf_dev *aside) {
    *o = (struct rlhf__overlap){.sum = s, .aside = aside, .complete = UINT64_MAX};
    begin(o);
}

void rlhf__overlap_spread(struct rlhf__overlap *o, struct rlhf__sum *s) {
    *o = (struct rlhf__overlap){.sum = s, .spreads = 1};
    begin(o);
}

void rlhf__overlap_complete(struct rlhf__overlap *o, uint64_t from) {
    if (!o->sum) return;
    pthread_mutex_lock(&o->lock);
    if (from < o->complete) o->complete = from;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void rlhf__overlap_wait(struct rlhf__overlap *o, rlhf_dev value, uint64_t bytes) {
    const uint32_t until = rlhf__sum_until(o->sum, value, bytes);
    pthread_mutex_lock(&o->lock);
    while (o->ended < until)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

rlhf_status rlhf__overlap_end(struct rlhf__overlap *o, rlhf_status *table,
                              struct rlhf__error *err) {
    *table = RLHF_OK;
    if (!o->sum) return RLHF_OK;
    rlhf__overlap_complete(o, 0);
    if (o->threaded)
        pthread_join(o->thread, NULL);
    else if (!o->spreads)
        exchange(o);
    connect(o, 0);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    o->sum = NULL;
    *table = o->table;
    if (o->status != RLHF_OK && err) *err = o->err;
    return o->status;
}
