// algo_shards.c: tests an algorithm with a minibatch that is divided into two shards. Either one
// process has both shards, or two processes have one shard each. The algorithm's sums should have
// the same bits in both cases (shards.h). A difference is reported only as a fact, because it does
// not affect runs of one process.
#include "check/algo_batch.h"
#include "check/cases.h"
#include "check/guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 2, PHASES = 12 }; // many phases, because sums of few numbers can round alike

// Exchanges the sums of two processes in host->reduce.
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double *sums[SHARDS];
    uint32_t n[SHARDS], arrived, round;
    int32_t ended, odd; // odd: the processes made different calls
};

struct process {
    struct rlhf__probe t;
    struct rlhf__algo_batch *b;
    struct meeting *meeting;  // NULL: no other process
    int32_t rank, ends_phase; // ends_phase 1: call phase_end(); 0: minibatch_end()
    int32_t stop, failed;
    rlhf_plan plan;
};

// One process with both shards, or two processes with one shard each.
struct side {
    struct process p[SHARDS];
    struct meeting meeting;
    uint32_t n;
    double loss[SHARDS]; // of each shard, in the last phase
};

static void meet(void *ctx, double *sums, uint32_t n) {
    struct process *p = ctx;
    struct meeting *m = p->meeting;
    pthread_mutex_lock(&m->lock);
    const uint32_t round = m->round;
    m->sums[p->rank] = sums;
    m->n[p->rank] = n;
    if (++m->arrived == SHARDS) {
        m->odd |= m->n[0] != m->n[1];
        for (uint32_t i = 0; i < n && !m->odd; i++)
            m->sums[0][i] = m->sums[1][i] = m->sums[0][i] + m->sums[1][i];
        m->arrived = 0;
        m->round++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->round == round && !m->ended)
        pthread_cond_wait(&m->changed, &m->lock);
    if (m->round == round) { // the other process has returned without making this call
        m->arrived--;
        m->odd = 1;
    }
    pthread_mutex_unlock(&m->lock);
}

// ---- calls ----

static void lock(struct process *p) {
    if (p->meeting) pthread_mutex_lock(&p->meeting->lock);
}

static void unlock(struct process *p) {
    if (p->meeting) pthread_mutex_unlock(&p->meeting->lock);
}

// Calls minibatch_end() or phase_end(), on any thread.
static void *end_part(void *arg) {
    struct process *p = arg;
    const rlhf_algo_ops *ops = &p->t.check->plugin->ops.algo;
    const char *what = p->ends_phase ? "phase_end()" : "minibatch_end()";
    rlhf_step_info info = {
        .loss = 1, .grad_norm = 1, .grad_norm_clipped = 1, .lr = 1e-5, .lr_factor = 1, .steps = 1};
    rlhf_phase_info phase = {.phases = 10, .steps = 1};
    rlhf_step_out out = {0};
    struct rlhf__error err;
    if (p->ends_phase ? !ops->phase_end : !ops->minibatch_end) return NULL;
    RLHF__PASS(rlhf_step_info, &info, p->t.check->plugin->abi_minor);
    RLHF__PASS(rlhf_phase_info, &phase, p->t.check->plugin->abi_minor);
    RLHF__PASS(rlhf_step_out, &out, p->t.check->plugin->abi_minor);
    lock(p);
    rlhf__probe_begin(&p->t, what);
    unlock(p);
    rlhf_status st = p->ends_phase ? ops->phase_end(p->t.self, &phase)
                                   : ops->minibatch_end(p->t.self, &info, &out);
    if (!p->ends_phase) p->stop = out.stop;
    lock(p);
    p->failed |= rlhf__probe_end(&p->t, st, &err) < 0;
    if (p->meeting) {
        p->meeting->ended = 1;
        pthread_cond_broadcast(&p->meeting->changed);
    }
    unlock(p);
    return NULL;
}

// Ends the minibatch or phase in all processes at the same time. Returns 0 if a process failed.
static int end_all(struct side *s, int32_t ends_phase) {
    const int two = s->n == SHARDS;
    pthread_t other;
    s->meeting.ended = 0;
    for (uint32_t r = 0; r < s->n; r++)
        s->p[r].ends_phase = ends_phase;
    if (two && pthread_create(&other, NULL, end_part, &s->p[1]) != 0) return 0;
    end_part(&s->p[0]);
    if (two) pthread_join(other, NULL);
    return !s->p[0].failed && !s->p[s->n - 1].failed;
}

static struct process *owner(struct side *s, int32_t shard) {
    return &s->p[s->n == SHARDS ? shard : 0];
}

static int32_t group_end(const struct rlhf__algo_batch *b, int32_t from) {
    int32_t to = from + 1;
    while (to < b->n && b->group[to] == b->group[from])
        to++;
    return to;
}

// The first group is the first shard. The other groups are the second shard, and each of them is a
// microbatch.
static int run_phase(struct side *s) {
    struct rlhf__error err;
    for (uint32_t r = 0; r < s->n; r++)
        if (rlhf__algo_batch_advantages(&s->p[r].t, s->p[r].b, RLHF__GUARD_END, &err) < 0) return 0;
    for (int32_t k = 0; k < SHARDS; k++) {
        struct process *p = owner(s, k);
        int32_t to = k ? group_end(p->b, 0) : 0;
        const int32_t end = k ? p->b->n : group_end(p->b, 0);
        s->loss[k] = 0;
        p->b->shard = k;
        for (int32_t from = to; from < end; from = to) {
            to = group_end(p->b, from);
            if (rlhf__algo_batch_loss(&p->t, p->b, from, to, RLHF__GUARD_END, &s->loss[k], &err) <
                0)
                return 0;
        }
    }
    return end_all(s, 0) && end_all(s, 1);
}

// Returns 0 if something failed. An earlier case has then already reported the same failure.
static int open_side(struct rlhf__check *c, struct side *s, uint32_t n) {
    s->n = n;
    pthread_mutex_init(&s->meeting.lock, NULL);
    pthread_cond_init(&s->meeting.changed, NULL);
    for (uint32_t r = 0; r < n; r++) {
        struct process *p = &s->p[r];
        p->rank = (int32_t)r;
        if (!rlhf__algo_open(c, SHARDS, &p->t, &p->plan) ||
            !rlhf__algo_batch_new(c, &p->plan, 1, &p->b))
            return 0;
        if (n < SHARDS) continue;
        p->meeting = &s->meeting;
        rlhf__probe_reduce_to(&p->t, meet, p);
    }
    return 1;
}

static void side_finish(struct side *s) {
    for (uint32_t r = 0; r < s->n; r++) {
        if (s->p[r].t.check) rlhf__probe_finish(&s->p[r].t);
        free(s->p[r].b);
    }
    pthread_cond_destroy(&s->meeting.changed);
    pthread_mutex_destroy(&s->meeting.lock);
}

// ---- the same? ----

static void say(struct rlhf__check *c, const char *what, double a, double b, double alone) {
    const struct rlhf__check_source from = rlhf__check_source(RLHF__CHECK_SHARDS);
    rlhf__child_log_fact(
        c->log,
        "with a minibatch on two processes, %s is %.17g and %.17g, and %.17g on one: "
        "sums of loss() need host->reduce and rlhf/shards.h (%s:%d)",
        what, a, b, alone, from.header, from.line);
}

static int differ(double a, double b) {
    uint64_t bits_a, bits_b;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    return bits_a != bits_b;
}

static int other_metric(struct rlhf__check *c, const struct side *one, const struct side *two) {
    const char *name;
    double alone, got[SHARDS] = {0};
    for (size_t i = 0; (name = rlhf__probe_metric(&one->p[0].t, i, &alone)) != NULL; i++) {
        char what[140];
        int same = 1;
        for (int r = 0; r < SHARDS; r++) {
            const char *n = rlhf__probe_metric(&two->p[r].t, i, &got[r]);
            same = same && n && strcmp(n, name) == 0 && !differ(got[r], alone);
        }
        if (same) continue;
        snprintf(what, sizeof what, "\"%.100s\"", name);
        say(c, what, got[0], got[1], alone);
        return 1;
    }
    return 0;
}

// Returns 1 if the two sides differ.
static int compare(struct rlhf__check *c, const struct side *one, const struct side *two) {
    const int32_t stop[] = {two->p[0].stop != 0, two->p[1].stop != 0, one->p[0].stop != 0};
    const int loss = differ(one->loss[0], two->loss[0]) || differ(one->loss[1], two->loss[1]);
    if (two->meeting.odd)
        rlhf__child_log_found(c->log, RLHF__CHECK_REDUCE,
                              "two processes with one shard each did not make the same calls of "
                              "host->reduce");
    else if (stop[0] != stop[2] || stop[1] != stop[2])
        say(c, "out->stop of minibatch_end()", stop[0], stop[1], stop[2]);
    else if (loss)
        say(c, "the loss of a later phase", two->loss[0] + two->loss[1],
            two->loss[0] + two->loss[1], one->loss[0] + one->loss[1]);
    else
        return other_metric(c, one, two);
    return 1;
}

// Changes the numbers for the next phase.
static void change(struct side *s) {
    for (uint32_t r = 0; r < s->n; r++)
        for (int32_t t = 0; t < s->p[r].b->total; t++)
            s->p[r].b->head[0][t] *= 1 + (float)(t % 7) / 256;
}

int rlhf__try_shards(struct rlhf__check *c, int32_t step) {
    struct side one = {0}, two = {0};
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "a minibatch of two shards, on one process and on two");
    int goes_on = open_side(c, &one, 1) && open_side(c, &two, SHARDS);
    for (int k = 0; goes_on && k < PHASES; k++) {
        goes_on = run_phase(&one) && run_phase(&two) && !compare(c, &one, &two);
        if (!goes_on) break;
        change(&one);
        change(&two);
    }
    side_finish(&one);
    side_finish(&two);
    return 1;
}
