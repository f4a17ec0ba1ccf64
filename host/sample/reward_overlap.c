// reward_overlap.c: see reward_overlap.h.
#include "sample/reward_overlap.h"

#include "base/signals.h"
#include "sample/reward_call.h"

#include <rlhf/service.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A finished row that waits to be scored.
struct waiting {
    int32_t *ids; // [prompt_len + response_len] owned; NULL: out of memory
    int32_t prompt_len, response_len;
    int64_t source;
    uint8_t finished, here; // here: 1 = the row has been sampled
};

struct rlhf__reward_overlap {
    struct rlhf__overlap_request q;
    // [n_reward] the early answers of each reward. If the member `known` of an element is NULL,
    // this reward is not called early
    struct rlhf__overlap_answers *early;
    uint32_t unit;   // rows per call
    int32_t started; // 1: the thread is running
    pthread_t thread;
    pthread_mutex_t lock; // protects all members below
    pthread_cond_t news;
    struct waiting *row; // [n]
    // [n] rows that are ready to be scored, in the order in which they finished
    uint32_t *ready;
    uint32_t n_ready, done; // number of ready rows, and of those that the thread has taken
    int32_t closing;
};

// Returns 1 if a reward may be called while rows are being sampled. Three kinds of rewards may not:
// - Rewards without RLHF_REWARD_EXTERNAL, even in a worker. They may use models, which sampling
//   uses at the same time.
// - Rewards with state. Their scores would depend on how the batch is divided into calls.
// - Rewards that need log-probs. Log-probs exist only after sampling.
int rlhf__overlap_allowed(const struct rlhf__instance *reward) {
    const uint32_t flags = reward->plugin->ops.reward.flags;
    return (flags & RLHF_REWARD_EXTERNAL) != 0 && reward->plugin->desc.state_version == 0 &&
           (flags & (RLHF_REWARD_LOGP_SAMPLED | RLHF_REWARD_LOGP_REF)) == 0;
}

// ---- scoring, on the thread ----

// Copy the rows number[0..n) to a new batch.
static rlhf_status gather(const struct rlhf__reward_overlap *a, const uint32_t *number, uint32_t n,
                          struct rlhf__rows *e, struct rlhf__error *err) {
    uint32_t total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += (uint32_t)(a->row[number[k]].prompt_len + a->row[number[k]].response_len);
    RLHF_TRY(rlhf__rows_init(e, n, total, err));
    for (uint32_t k = 0; k < n; k++) {
        const struct waiting *w = &a->row[number[k]];
        const int32_t len = w->prompt_len + w->response_len;
        memcpy(e->ids + e->offset[k], w->ids, (size_t)len * sizeof *e->ids);
        e->offset[k + 1] = e->offset[k] + len;
        e->prompt_len[k] = w->prompt_len;
        e->source[k] = w->source;
        e->finished[k] = w->finished;
        e->group[k] = (int32_t)(number[k] / a->q.group);
    }
    return RLHF_OK;
}

static void ask_all(struct rlhf__reward_overlap *a, const uint32_t *number,
                    const struct rlhf__reward_rows *r) {
    for (size_t k = 0; k < a->q.config->n_reward; k++) {
        const struct rlhf__reward_call q = {.rules = &a->q.config->mixing,
                                            .plugin = a->q.rewards[k],
                                            .phase = a->q.phase,
                                            .bisects = rlhf__reward_bisects(&a->q.config->mixing),
                                            .log = a->q.log,
                                            .tally = &a->early[k].tally};
        if (!a->early[k].known) continue;
        rlhf__reward_ask_overlapped(&q, r, number, &a->early[k]);
    }
}

// Score some rows early. If memory runs out, they are scored later with the batch.
static void ask(struct rlhf__reward_overlap *a, const uint32_t *number, uint32_t n) {
    struct rlhf__error err;
    struct rlhf__rows e = {0};
    struct rlhf__scored x = {0};
    struct rlhf__reward_rows r = {0};
    rlhf_status st = gather(a, number, n, &e, &err);
    if (st == RLHF_OK) st = rlhf__scored_init(&x, &a->q.by, &e, &err);
    if (st == RLHF_OK) st = rlhf__reward_rows_init(&r, &x, &e, 0, &err);
    if (st == RLHF_OK) ask_all(a, number, &r);
    rlhf__reward_rows_finish(&r);
    rlhf__scored_finish(&x);
    rlhf__rows_finish(&e);
}

// The thread's function. Each iteration scores all rows that have become ready. Ready rows no
// longer change, so only the counts need the lock.
static void *work(void *arg) {
    struct rlhf__reward_overlap *a = arg;
    for (;;) {
        pthread_mutex_lock(&a->lock);
        while (a->n_ready == a->done && !a->closing)
            pthread_cond_wait(&a->news, &a->lock);
        const uint32_t from = a->done, to = a->n_ready;
        a->done = to;
        pthread_mutex_unlock(&a->lock);
        if (from == to) return NULL;
        ask(a, a->ready + from, to - from);
    }
}

static void end(struct rlhf__reward_overlap *a) {
    if (!a->started) return;
    pthread_mutex_lock(&a->lock);
    a->closing = 1;
    pthread_cond_signal(&a->news);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    a->started = 0;
}

// ---- rows, on the main thread ----

// When all rows of a unit are finished, mark them as ready. The caller holds the lock.
static void see_unit(struct rlhf__reward_overlap *a, uint32_t first) {
    const uint32_t last = first + a->unit < a->q.n ? first + a->unit : a->q.n;
    for (uint32_t i = first; i < last; i++)
        if (!a->row[i].here || !a->row[i].ids) return;
    for (uint32_t i = first; i < last; i++)
        a->ready[a->n_ready++] = i;
    pthread_cond_signal(&a->news);
}

void rlhf__overlap_add(struct rlhf__reward_overlap *a, const struct rlhf__overlap_row *row) {
    const size_t head = (size_t)row->prompt_len, tail = (size_t)row->response_len;
    struct waiting w = {.ids = malloc((head + tail + 1) * sizeof *w.ids),
                        .prompt_len = row->prompt_len,
                        .response_len = row->response_len,
                        .source = row->source,
                        .finished = (uint8_t)row->finished,
                        .here = 1};
    if (w.ids && head) memcpy(w.ids, row->prompt, head * sizeof *w.ids);
    if (w.ids && tail) memcpy(w.ids + head, row->response, tail * sizeof *w.ids);
    pthread_mutex_lock(&a->lock);
    a->row[row->row] = w;
    see_unit(a, row->row / a->unit * a->unit);
    pthread_mutex_unlock(&a->lock);
}

struct rlhf__overlap_answers *rlhf__overlap_take(struct rlhf__reward_overlap *a, size_t k) {
    end(a);
    return a->early[k].known ? &a->early[k] : NULL;
}

// ---- life ----

static rlhf_status make_early(struct rlhf__reward_overlap *a, struct rlhf__error *err) {
    int alone = 1;
    for (size_t k = 0; k < a->q.config->n_reward; k++) {
        if (!rlhf__overlap_allowed(a->q.rewards[k])) continue;
        alone &= (a->q.rewards[k]->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
        RLHF_TRY(rlhf__overlap_answers_init(&a->early[k], a->q.n, err));
    }
    a->unit = alone ? 1 : a->q.group;
    return RLHF_OK;
}

static rlhf_status make_room(struct rlhf__reward_overlap *a, struct rlhf__error *err) {
    a->early = calloc(a->q.config->n_reward + 1, sizeof *a->early);
    a->row = calloc((size_t)a->q.n + 1, sizeof *a->row);
    a->ready = calloc((size_t)a->q.n + 1, sizeof *a->ready);
    if (!a->early || !a->row || !a->ready)
        return RLHF__NOMEM(err, "out of memory for rewards.overlap");
    return make_early(a, err);
}

rlhf_status rlhf__overlap_open(const struct rlhf__overlap_request *q,
                               struct rlhf__reward_overlap **out, struct rlhf__error *err) {
    int any = 0;
    *out = NULL;
    for (size_t k = 0; k < q->config->n_reward; k++)
        any |= rlhf__overlap_allowed(q->rewards[k]);
    if (!any) return RLHF_OK;
    struct rlhf__reward_overlap *a = calloc(1, sizeof *a);
    if (!a) return RLHF__NOMEM(err, "out of memory for rewards.overlap");
    a->q = *q;
    if (a->q.group == 0) a->q.group = 1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->news, NULL);
    rlhf_status st = make_room(a, err);
    if (st == RLHF_OK && !(a->started = rlhf__signals_thread(&a->thread, work, a)))
        st = RLHF__NOMEM(err, "no thread for rewards.overlap");
    if (st == RLHF_OK)
        *out = a;
    else
        rlhf__overlap_close(a);
    return st;
}

void rlhf__overlap_close(struct rlhf__reward_overlap *a) {
    if (!a) return;
    end(a);
    for (uint32_t i = 0; a->row && i < a->q.n; i++)
        free(a->row[i].ids);
    for (size_t k = 0; a->early && k < a->q.config->n_reward; k++)
        rlhf__overlap_answers_finish(&a->early[k]);
    free(a->early);
    free(a->row);
    free(a->ready);
    pthread_cond_destroy(&a->news);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
