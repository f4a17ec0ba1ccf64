// network.c: see network.h.
#include "scale/network.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { PINGS = 100, ROUNDS = 5, UNDER_WAY = 6 };
#define LEAST     ((uint64_t)1024)
#define BLOCK     ((uint64_t)1 << 20)  // bytes that a run sends to a rank at a time
#define LONG_S    0.1                  // a message that takes so long is large enough
#define IN_FLIGHT ((uint64_t)64 << 20) // bytes to receive at a time
#define TRIAL     ((uint64_t)1 << 22)  // steps of the computation whose speed is measured first

// The buffers of the measurement. Each window receives its messages at a separate place.
struct wires {
    struct rlhf__team *team;
    char *send, *recv;
    rlhf_block *out, *in; // [ranks]
    double result;        // of the computations
};

static rlhf_status open_wires(struct rlhf__team *t, uint64_t most, struct wires *w,
                              struct rlhf__error *err) {
    const size_t ranks = (size_t)t->ranks;
    const uint64_t in = most > IN_FLIGHT ? most : IN_FLIGHT;
    *w = (struct wires){.team = t,
                        .send = calloc(1, most),
                        .recv = calloc(1, in * (ranks - 1)),
                        .out = calloc(ranks, sizeof *w->out),
                        .in = calloc(ranks, sizeof *w->in)};
    if (w->send && w->recv && w->out && w->in) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for messages of %llu bytes", (unsigned long long)most);
}

static void close_wires(struct wires *w) {
    free(w->send);
    free(w->recv);
    free(w->out);
    free(w->in);
}

// Begin an exchange of `bytes` with each other rank. The messages are received into window `k`.
static rlhf_status begin(struct wires *w, uint64_t bytes, uint64_t k, uint64_t *ticket,
                         struct rlhf__error *err) {
    const struct rlhf__team *t = w->team;
    char *at = w->recv + k * bytes * (uint64_t)(t->ranks - 1);
    for (int32_t r = 0; r < t->ranks; r++) {
        w->out[r] = w->in[r] = (rlhf_block){NULL, 0};
        if (r == t->rank) continue;
        w->out[r] = (rlhf_block){w->send, bytes};
        w->in[r] = (rlhf_block){at, bytes};
        at += bytes;
    }
    return rlhf__team_exchange(w->team, w->out, w->in, ticket, err);
}

// Replace *seconds with the largest value of all ranks.
static rlhf_status slowest(struct rlhf__team *t, double *seconds, struct rlhf__error *err) {
    double *all = calloc((size_t)t->ranks, sizeof *all);
    if (!all) return RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    const rlhf_status st = rlhf__team_gather(t, seconds, sizeof *seconds, all, err);
    for (int32_t r = 0; st == RLHF_OK && r < t->ranks; r++)
        if (all[r] > *seconds) *seconds = all[r];
    free(all);
    return st;
}

// Send a message from rank `from` to rank `to`; the other ranks send nothing.
static rlhf_status one_way(struct wires *w, int32_t from, int32_t to, struct rlhf__error *err) {
    const struct rlhf__team *t = w->team;
    uint64_t ticket;
    for (int32_t r = 0; r < t->ranks; r++)
        w->out[r] = w->in[r] = (rlhf_block){NULL, 0};
    if (t->rank == from) w->out[to] = (rlhf_block){w->send, LEAST};
    if (t->rank == to) w->in[from] = (rlhf_block){w->recv, LEAST};
    RLHF_TRY(rlhf__team_exchange(w->team, w->out, w->in, &ticket, err));
    return rlhf__team_wait(w->team, ticket, err);
}

// Set *latency to half of the shortest round trip between the first rank and the last rank.
static rlhf_status ping(struct wires *w, double *latency, struct rlhf__error *err) {
    const int32_t last = w->team->ranks - 1;
    for (int i = 0; i < PINGS; i++) {
        double began = rlhf__seconds();
        RLHF_TRY(one_way(w, 0, last, err));
        RLHF_TRY(one_way(w, last, 0, err));
        const double half = (rlhf__seconds() - began) / 2;
        if (i == 0 || half < *latency) *latency = half;
    }
    // The first rank measured the whole round trip, from its message to the answer. The times of
    // other ranks do not count.
    if (w->team->rank != 0) *latency = 0;
    return slowest(w->team, latency, err);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Measure how long an exchange of `bytes` with every other rank keeps the slowest rank busy, while
// as many exchanges are under way as in a run. Takes the median of some rounds, not the minimum,
// because a run waits for slow rounds too.
static rlhf_status windows(struct wires *w, uint64_t bytes, double *median,
                           struct rlhf__error *err) {
    uint64_t deep = IN_FLIGHT / bytes, ticket = 0;
    deep = deep < 1 ? 1 : deep > UNDER_WAY ? UNDER_WAY : deep;
    const uint64_t n = 4 * deep;
    uint64_t tickets[UNDER_WAY];
    double took[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double seconds = 0;
        RLHF_TRY(slowest(w->team, &seconds, err)); // all begin together
        const double began = rlhf__seconds();
        for (uint64_t i = 0; i < n; i++) {
            if (i >= deep) RLHF_TRY(rlhf__team_wait(w->team, tickets[i % deep], err));
            RLHF_TRY(begin(w, bytes, i % deep, &ticket, err));
            tickets[i % deep] = ticket;
        }
        RLHF_TRY(rlhf__team_wait(w->team, ticket, err));
        seconds = (rlhf__seconds() - began) / (double)n;
        RLHF_TRY(slowest(w->team, &seconds, err));
        took[round] = seconds;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    *median = took[ROUNDS / 2];
    return RLHF_OK;
}

// Computes for a time that is proportional to n. The compiler cannot optimize this computation
// away.
static double compute(double x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        x = x * 0.999 + 1e-3;
    return x;
}

static double compute_seconds(struct wires *w, uint64_t n) {
    const double began = rlhf__seconds();
    w->result = compute(w->result, n);
    return rlhf__seconds() - began;
}

// Set *share to the share of its speed that a single-threaded computation loses during exchanges of
// `bytes`, each of which takes `each` seconds. The reasons are that the processor also sends and
// receives, and that the collective's thread waits by polling.
static rlhf_status slowed(struct wires *w, uint64_t bytes, double each, double *share,
                          struct rlhf__error *err) {
    uint64_t deep = IN_FLIGHT / bytes, ticket = 0;
    deep = deep < 1 ? 1 : deep > UNDER_WAY ? UNDER_WAY : deep;
    const double known = compute_seconds(w, TRIAL) / TRIAL;
    const uint64_t n = (uint64_t)(0.8 * (double)deep * each / known);
    double lost[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double together = 0;
        RLHF_TRY(slowest(w->team, &together, err));
        const double alone = compute_seconds(w, n);
        RLHF_TRY(slowest(w->team, &together, err));
        for (uint64_t i = 0; i < deep; i++)
            RLHF_TRY(begin(w, bytes, i, &ticket, err));
        const double during = compute_seconds(w, n);
        RLHF_TRY(rlhf__team_wait(w->team, ticket, err));
        lost[round] = during > alone ? 1 - alone / during : 0;
    }
    qsort(lost, ROUNDS, sizeof *lost, compare);
    *share = lost[ROUNDS / 2];
    return slowest(w->team, share, err);
}

static rlhf_status measure(struct wires *w, uint64_t most, struct rlhf__scale_line *l,
                           struct rlhf__error *err) {
    const double others = w->team->ranks - 1;
    struct rlhf__scale_curve *c = &l->exchange;
    RLHF_TRY(ping(w, &l->latency, err));
    for (uint64_t bytes = LEAST; bytes <= most && c->n < RLHF__SCALE_POINTS; bytes *= 4) {
        struct rlhf__scale_point *p = &c->at[c->n++];
        p->x = (double)bytes;
        RLHF_TRY(windows(w, bytes, &p->seconds, err));
        if (bytes <= BLOCK) l->bytes = others * p->x / p->seconds;
        if (bytes >= BLOCK && p->seconds > LONG_S) break;
    }
    const struct rlhf__scale_point *last = &c->at[c->n - 1];
    return slowed(w, (uint64_t)last->x, last->seconds, &l->slowed, err);
}

rlhf_status rlhf__scale_network(struct rlhf__team *t, uint64_t most, struct rlhf__scale_line *out,
                                struct rlhf__error *err) {
    struct wires w;
    *out = (struct rlhf__scale_line){.locals = t->locals};
    snprintf(out->detail, sizeof out->detail, "%s", t->table->detail);
    rlhf_status st = open_wires(t, most, &w, err);
    if (st == RLHF_OK) st = measure(&w, most, out, err);
    close_wires(&w);
    return st;
}

void rlhf__scale_network_table(const struct rlhf__scale_line *l, struct rlhf__buf *out) {
    const int is_short = l->latency < 0.001;
    rlhf__buf_printf(out, "%s: %.3g %s one way, %.3g MB/s a rank and direction\n", l->detail,
                     l->latency * (is_short ? 1e6 : 1e3), is_short ? "us" : "ms", l->bytes * 1e-6);
    rlhf__buf_printf(out, "during an exchange, a computation is %.0f %% slower\n", 100 * l->slowed);
    for (uint32_t i = 0; i < l->exchange.n; i++)
        rlhf__buf_printf(out, "%10.0f bytes to every rank %12.1f us\n", l->exchange.at[i].x,
                         l->exchange.at[i].seconds * 1e6);
}
