// split.c: see split.h.
#include "team/split.h"

#include <stdlib.h>
#include <string.h>

// ---- the learners' collective ----
//
// Only ranks that have bytes for each other need to take part in an exchange. Here the learners
// exchange bytes only among themselves, so the actors do not call these functions. A learner has
// the same rank in the learners' team and in the whole team.

static rlhf_status failed(struct rlhf__split *s, rlhf_status st) {
    if (st != RLHF_OK) s->all->broken = 1;
    return st;
}

static rlhf_status exchange(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket) {
    struct rlhf__split *s = ctx;
    const rlhf_collective *t = s->all->table;
    const size_t ranks = (size_t)s->all->ranks, n = (size_t)s->learners.ranks;
    memset(s->block, 0, 2 * ranks * sizeof *s->block);
    memcpy(s->block, send, n * sizeof *send);
    memcpy(s->block + ranks, recv, n * sizeof *recv);
    return failed(s, t->exchange(t->ctx, s->block, s->block + ranks, ticket));
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct rlhf__split *s = ctx;
    return failed(s, s->all->table->wait(s->all->table->ctx, ticket));
}

static rlhf_status gather(void *ctx, const void *own, uint64_t bytes, void *out) {
    struct rlhf__split *s = ctx;
    const int32_t ranks = s->learners.ranks;
    rlhf_block *block = s->block + 2 * (size_t)s->all->ranks;
    char *mine = (char *)out + (uint64_t)s->learners.rank * bytes;
    uint64_t ticket;
    memmove(mine, own, bytes);
    for (int32_t k = 0; k < ranks; k++) {
        block[k] = (rlhf_block){mine, bytes};
        block[ranks + k] = (rlhf_block){(char *)out + (uint64_t)k * bytes, bytes};
    }
    RLHF_TRY(exchange(ctx, block, block + ranks, &ticket));
    return wait_for(ctx, ticket);
}

static void end_all(void *ctx, int32_t status) {
    const struct rlhf__split *s = ctx;
    s->all->table->abort(s->all->table->ctx, status);
}

static const char *last_error(void *ctx) {
    const struct rlhf__split *s = ctx;
    return s->all->table->last_error(s->all->table->ctx);
}

// ---- life ----

// Check that all ranks have the same number of actors. They have not compared their settings yet.
static rlhf_status compare(struct rlhf__team *all, int64_t actors, struct rlhf__error *err) {
    int64_t *of = calloc((size_t)all->ranks, sizeof *of);
    if (!of) return RLHF__NOMEM(err, "out of memory for %d ranks", all->ranks);
    rlhf_status st = rlhf__team_gather(all, &actors, sizeof actors, of, err);
    for (int32_t k = 1; st == RLHF_OK && k < all->ranks; k++) {
        if (of[k] == of[0]) continue;
        all->left = 1; // all ranks have found the same difference
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "the processes do not do the same run: parallel.actors is %lld for rank 0 "
                        "on %s and %lld for rank %d on %s; it must be the same for all",
                        (long long)of[0], all->host[0], (long long)of[k], k, all->host[k]);
    }
    free(of);
    return st;
}

// Make the learners' team. Its ranks share their processors with the actors.
static rlhf_status make_team(struct rlhf__split *s, struct rlhf__error *err) {
    const struct rlhf__team *all = s->all;
    const size_t n = (size_t)rlhf__split_learners(s);
    s->table = *all->table;
    s->table.ranks = (int32_t)n;
    s->table.ctx = s;
    s->table.exchange = exchange;
    s->table.wait = wait_for;
    s->table.gather = gather;
    s->table.abort = end_all;
    s->table.last_error = last_error;
    s->learners = (struct rlhf__team){.table = &s->table,
                                      .parent = s->all,
                                      .rank = all->rank,
                                      .ranks = (int32_t)n,
                                      .local = all->local,
                                      .locals = all->locals,
                                      .same = all->same,
                                      .signal = all->signal};
    s->block = calloc(4 * (size_t)all->ranks, sizeof *s->block);
    s->learners.host = calloc(n, sizeof *s->learners.host);
    s->learners.headers = calloc(n, RLHF__TEAM_HEADER);
    if (!s->block || !s->learners.host || !s->learners.headers)
        return RLHF__NOMEM(err, "out of memory for %zu ranks", n);
    memcpy(s->learners.host, all->host, n * sizeof *all->host);
    return RLHF_OK;
}

rlhf_status rlhf__split_init(struct rlhf__split *s, struct rlhf__team *all, int64_t actors,
                             struct rlhf__error *err) {
    *s = (struct rlhf__split){0};
    RLHF_TRY(compare(all, actors, err));
    if (actors >= all->ranks) {
        all->left = 1;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "parallel.actors is %lld, and the run has %d processes, of which at "
                          "least one must train; at most %d is allowed",
                          (long long)actors, all->ranks, all->ranks - 1);
    }
    s->all = all;
    s->actors = (int32_t)actors;
    return make_team(s, err);
}

void rlhf__split_finish(struct rlhf__split *s) {
    rlhf__team_finish(&s->learners);
    free(s->block);
    *s = (struct rlhf__split){0};
}
