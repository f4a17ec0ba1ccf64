// actors.c: see actors.h.
#include "sample/actors.h"

#include "sample/rollout_share.h"
#include "team/parts.h"

#include <stdlib.h>
#include <string.h>

struct rlhf__actors {
    struct rlhf__split *split;
    struct rlhf__ship *ship;
    int64_t orders;  // orders given or received
    uint32_t *first; // [ranks + 1] the rows that each rank samples
    // The batch that is being sampled. An actor uses only `row`.
    struct rlhf__rollout_request q;
    int64_t *row;
    int32_t begun;
};

// The beginning of an order in a message; the numbers of the order's rows follow. The struct has no
// padding, so all its bytes are set.
struct message {
    uint64_t first;
    int64_t version;
    uint32_t n, group;
};

rlhf_status rlhf__actors_open(struct rlhf__split *split, struct rlhf__model *m,
                              struct rlhf__actors **out, struct rlhf__error *err) {
    struct rlhf__actors *a = *out = calloc(1, sizeof *a);
    if (!a) return RLHF__NOMEM(err, "out of memory for parallel.actors");
    a->split = split;
    a->first = calloc((size_t)split->all->ranks + 1, sizeof *a->first);
    rlhf_status st = a->first ? RLHF_OK : RLHF__NOMEM(err, "out of memory for parallel.actors");
    if (st == RLHF_OK) st = rlhf__ship_open(split, m, &a->ship, err);
    if (st == RLHF_OK) return RLHF_OK;
    rlhf__actors_close(a);
    *out = NULL;
    return st;
}

void rlhf__actors_close(struct rlhf__actors *a) {
    if (!a) return;
    rlhf__ship_close(a->ship);
    free(a->first);
    free(a->row);
    free(a);
}

const struct rlhf__ship *rlhf__actors_ship(const struct rlhf__actors *a) { return a->ship; }

// Deal the groups to the actors as rlhf__rollout_share does. Learners get no groups.
static void deal(struct rlhf__actors *a, uint32_t n, uint32_t group) {
    const uint32_t each = group ? group : 1, groups = n / each;
    const uint32_t actors = (uint32_t)a->split->actors;
    const uint32_t learners = (uint32_t)rlhf__split_learners(a->split);
    for (uint32_t r = 0; r <= learners; r++)
        a->first[r] = 0;
    for (uint32_t k = 1; k <= actors; k++)
        a->first[learners + k] = (uint32_t)((uint64_t)groups * k / actors) * each;
    a->first[learners + actors] = n;
}

// ---- orders ----

// Pass the barrier of an order, with rank 0's message.
static rlhf_status meet(struct rlhf__actors *a, const struct rlhf__buf *own,
                        struct rlhf__parts *parts, struct rlhf__error *err) {
    return rlhf__parts_exchange(a->split->all, RLHF__BARRIER_ORDER, a->orders++, own, RLHF_OK,
                                parts, err);
}

static rlhf_status order(struct rlhf__actors *a, uint32_t n, struct rlhf__error *err) {
    const struct message m = {a->q.first, a->q.version, a->q.n, a->q.group};
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    if (n > 0 && a->split->all->rank == 0) {
        rlhf__buf_put(&own, &m, sizeof m);
        rlhf__buf_put(&own, a->row, n * sizeof *a->row);
    }
    const rlhf_status st = meet(a, &own, &parts, err);
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    return st;
}

rlhf_status rlhf__actors_begin(struct rlhf__actors *a, const struct rlhf__rollout_request *q,
                               int64_t *row, struct rlhf__error *err) {
    free(a->row);
    a->q = *q;
    a->row = row;
    deal(a, q->n, q->group);
    RLHF_TRY(order(a, q->n, err));
    a->begun = 1;
    return rlhf__ship_weights(a->ship, err);
}

rlhf_status rlhf__actors_end(struct rlhf__actors *a, struct rlhf__error *err) {
    struct rlhf__sampled unused = {.tokens = 0};
    const rlhf_status st = a->begun ? rlhf__actors_wait(a, &unused, err) : RLHF_OK;
    rlhf__rows_finish(&unused.rows);
    return st == RLHF_OK ? order(a, 0, err) : st;
}

static rlhf_status read_order(struct rlhf__actors *a, struct rlhf__part from,
                              struct rlhf__actor_order *out, struct rlhf__error *err) {
    struct message m;
    RLHF_TRY(rlhf__part_get(&from, &m, sizeof m, err));
    free(a->row);
    a->row = calloc((size_t)m.n + 1, sizeof *a->row);
    if (!a->row) return RLHF__NOMEM(err, "out of memory for %u prompts", m.n);
    RLHF_TRY(rlhf__part_get(&from, a->row, m.n * sizeof *a->row, err));
    deal(a, m.n, m.group);
    const int32_t rank = a->split->all->rank;
    *out = (struct rlhf__actor_order){.first = m.first,
                                      .version = m.version,
                                      .row = a->row,
                                      .n = m.n,
                                      .group = m.group,
                                      .begin = a->first[rank],
                                      .end = a->first[rank + 1]};
    return RLHF_OK;
}

rlhf_status rlhf__actors_receive(struct rlhf__actors *a, struct rlhf__actor_order *out,
                                 struct rlhf__error *err) {
    struct rlhf__buf none = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    *out = (struct rlhf__actor_order){0};
    rlhf_status st = meet(a, &none, &parts, err);
    if (st != RLHF_OK) {
        rlhf__parts_finish(&parts);
        return st;
    }
    const struct rlhf__part from = rlhf__part_of(&parts, 0);
    if (from.at < from.end) {
        struct rlhf__error unread = {0, ""};
        // From here on, the learners send weights and wait for responses, even if this rank fails.
        a->begun = 1;
        st = read_order(a, from, out, &unread);
        const rlhf_status shipped = rlhf__ship_weights(a->ship, err);
        if (st != RLHF_OK) *err = unread;
        if (st == RLHF_OK) st = shipped;
    }
    rlhf__parts_finish(&parts);
    return st;
}

// ---- responses ----

rlhf_status rlhf__actors_give(struct rlhf__actors *a, const struct rlhf__sampled *s, rlhf_status st,
                              struct rlhf__error *err) {
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    if (!a->begun) return st; // the order itself failed at its barrier
    a->begun = 0;
    if (st == RLHF_OK) {
        rlhf__buf_put(&own, &s->seconds, sizeof s->seconds);
        rlhf__rollout_pack(&s->rows, s->tokens, &own);
    }
    st = rlhf__parts_exchange(a->split->all, RLHF__BARRIER_ROLLOUT, a->orders, &own, st, &parts,
                              err);
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    return st;
}

static rlhf_status assemble(struct rlhf__actors *a, const struct rlhf__parts *parts,
                            struct rlhf__sampled *out, struct rlhf__error *err) {
    const int32_t ranks = a->split->all->ranks;
    struct rlhf__part *part = calloc((size_t)ranks, sizeof *part);
    rlhf_status st = part ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", ranks);
    for (int32_t r = 0; st == RLHF_OK && r < ranks; r++) {
        double seconds = 0;
        part[r] = rlhf__part_of(parts, r);
        if (part[r].at < part[r].end) st = rlhf__part_get(&part[r], &seconds, sizeof seconds, err);
        if (seconds > out->seconds) out->seconds = seconds;
    }
    if (st == RLHF_OK)
        st = rlhf__rollout_unpack(&a->q, a->row, ranks, a->first, part, &out->rows, &out->tokens,
                                  err);
    free(part);
    return st;
}

rlhf_status rlhf__actors_wait(struct rlhf__actors *a, struct rlhf__sampled *out,
                              struct rlhf__error *err) {
    struct rlhf__buf none = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    if (!a->begun) return rlhf__fail(err, RLHF_E_INTERNAL, "there is no batch to wait for");
    a->begun = 0;
    rlhf_status st = rlhf__parts_exchange(a->split->all, RLHF__BARRIER_ROLLOUT, a->orders, &none,
                                          RLHF_OK, &parts, err);
    if (st == RLHF_OK) st = assemble(a, &parts, out, err);
    rlhf__parts_finish(&parts);
    return st;
}
