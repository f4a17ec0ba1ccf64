// scores.c: see scores.h.
#include "check/scores.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int rlhf__scores_init(struct rlhf__scores *s, uint32_t n) {
    *s =
        (struct rlhf__scores){calloc(n, sizeof *s->seq), calloc(n, 1), calloc(n, 1), RLHF_OK, 0, 0};
    return s->seq && s->verdict && s->failed;
}

void rlhf__scores_finish(struct rlhf__scores *s) {
    free(s->seq);
    free(s->verdict);
    free(s->failed);
}

struct call {
    struct rlhf__probe *probe;
    struct rlhf__row_call *rows;
    rlhf_status status;
    int32_t reserved;
    struct rlhf__error err;
};

static void *run_score(void *arg) {
    struct call *c = arg;
    rlhf__probe_begin(c->probe, "score()");
    const rlhf_status st =
        c->probe->check->plugin->ops.reward.score(c->probe->self, &c->rows->in, &c->rows->out);
    c->status = rlhf__probe_end(c->probe, st, &c->err);
    return NULL;
}

// Report rows that the test skips. Without memory no scores are expected.
static void say_refused(struct rlhf__probe *t, const struct call *call, const uint8_t *failed,
                        uint32_t n) {
    uint32_t some = 0;
    for (uint32_t i = 0; i < n; i++)
        some += failed[i] != 0;
    if (rlhf__probe_starved(t) || call->status == RLHF_E_NOMEM || call->status == RLHF_E_CANCELLED)
        return;
    if (call->status < 0)
        rlhf__child_log_fact(t->check->log, "it refused rows, so their scores were not tested: %s",
                             call->err.text);
    else if (some)
        rlhf__child_log_fact(t->check->log,
                             "score() marked %u of %u rows as failed, which were not compared: %s",
                             some, n, rlhf__probe_words(t));
}

rlhf_status rlhf__check_score(struct rlhf__probe *t, const struct rlhf__row_set *set,
                              const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                              struct rlhf__scores *to) {
    const uint32_t flags = t->check->plugin->ops.reward.flags;
    const uint32_t unwritten =
        side == RLHF__GUARD_END ? RLHF__UNWRITTEN_END : RLHF__UNWRITTEN_BEGIN;
    struct rlhf__row_call rows_call;
    struct call call = {.probe = t, .rows = &rows_call, .status = RLHF_E_NOMEM};
    pthread_t thread;
    if (rlhf__row_call_make(&rows_call, t->check->log, set, rows, n, side, flags, unwritten)) {
        const double from = rlhf__seconds();
        if (!elsewhere || pthread_create(&thread, NULL, run_score, &call) != 0)
            run_score(&call);
        else
            pthread_join(thread, NULL);
        to->seconds = rlhf__seconds() - from;
        for (uint32_t i = 0; i < n; i++) {
            memcpy(&to->seq[rows[i]], &rows_call.out.seq[i], sizeof *to->seq);
            to->verdict[rows[i]] = rows_call.out.verdict[i];
            to->failed[rows[i]] = rows_call.out.failed[i];
        }
        say_refused(t, &call, rows_call.out.failed, n);
    }
    rlhf__row_call_finish(&rows_call);
    to->status = call.status;
    return call.status;
}

rlhf_status rlhf__check_score_afresh(struct rlhf__check *c, const struct rlhf__row_set *set,
                                     const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                                     struct rlhf__scores *to) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_status st = rlhf__probe_create(c, NULL, 0, &t, &err);
    if (st == RLHF_OK) st = rlhf__check_score(&t, set, rows, n, side, elsewhere, to);
    rlhf__probe_finish(&t);
    to->status = st;
    return st;
}

static float number_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint32_t rlhf__scores_differ(const struct rlhf__scores *a, const struct rlhf__scores *b,
                             uint32_t n) {
    uint32_t i = 0;
    while (i < n && (a->seq[i] == b->seq[i] || a->failed[i] || b->failed[i]))
        i++;
    return i;
}

int rlhf__scores_compare(struct rlhf__check *c, int32_t rule, const char *how,
                         const struct rlhf__scores *a, const struct rlhf__scores *b, uint32_t n) {
    const uint32_t i = rlhf__scores_differ(a, b, n);
    if (i < n)
        rlhf__child_log_found(c->log, rule, "row %u has the score %.9g, and %.9g %s", i,
                              (double)number_of(a->seq[i]), (double)number_of(b->seq[i]), how);
    return i == n;
}
