// team.c: see team.h.
#include "team/team.h"

#include "base/running.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rlhf_status failed(struct rlhf__team *t, const rlhf_collective *c, rlhf_status st,
                          struct rlhf__error *err) {
    const char *why = c->last_error(c->ctx);
    t->broken = 1;
    return rlhf__fail(err, st < 0 ? st : (rlhf_status)RLHF_E_INTERNAL, "%s: %s", c->name,
                      why && *why ? why : rlhf__status_text(st));
}

static rlhf_status refuse_broken(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_DEVICE, "the other ranks can no longer be reached");
}

static rlhf_status exchange(struct rlhf__team *t, const rlhf_collective *c, const rlhf_block *send,
                            const rlhf_block *recv, uint64_t *ticket, struct rlhf__error *err) {
    if (t->broken) return refuse_broken(err);
    const struct rlhf__running before = rlhf__running_begin("collective", c->name, "exchange()");
    const rlhf_status st = c->exchange(c->ctx, send, recv, ticket);
    rlhf__running_end(&before);
    return st == RLHF_OK ? st : failed(t, c, st, err);
}

static rlhf_status wait_for(struct rlhf__team *t, const rlhf_collective *c, uint64_t ticket,
                            struct rlhf__error *err) {
    if (t->broken) return refuse_broken(err);
    const struct rlhf__running before = rlhf__running_begin("collective", c->name, "wait()");
    const rlhf_status st = c->wait(c->ctx, ticket);
    rlhf__running_end(&before);
    return st == RLHF_OK ? st : failed(t, c, st, err);
}

rlhf_status rlhf__team_exchange(struct rlhf__team *t, const rlhf_block *send,
                                const rlhf_block *recv, uint64_t *ticket, struct rlhf__error *err) {
    return exchange(t, t->table, send, recv, ticket, err);
}

rlhf_status rlhf__team_wait(struct rlhf__team *t, uint64_t ticket, struct rlhf__error *err) {
    return wait_for(t, t->table, ticket, err);
}

rlhf_status rlhf__team_exchange_device(struct rlhf__team *t, const rlhf_block *send,
                                       const rlhf_block *recv, uint64_t *ticket,
                                       struct rlhf__error *err) {
    return exchange(t, t->device, send, recv, ticket, err);
}

rlhf_status rlhf__team_wait_device(struct rlhf__team *t, uint64_t ticket, struct rlhf__error *err) {
    return wait_for(t, t->device, ticket, err);
}

static rlhf_status gather_small(struct rlhf__team *t, const void *own, uint64_t bytes, void *all,
                                struct rlhf__error *err) {
    if (t->broken) return refuse_broken(err);
    const rlhf_collective *c = t->table;
    const struct rlhf__running before = rlhf__running_begin("collective", c->name, "gather()");
    const rlhf_status st = c->gather(c->ctx, own, bytes, all);
    rlhf__running_end(&before);
    return st == RLHF_OK ? st : failed(t, c, st, err);
}

// Send all bytes to every rank with one exchange.
static rlhf_status gather_large(struct rlhf__team *t, const void *own, uint64_t bytes, char *all,
                                struct rlhf__error *err) {
    rlhf_block *block = calloc(2 * (size_t)t->ranks, sizeof *block);
    uint64_t ticket = 0;
    if (!block) return RLHF__NOMEM(err, "out of memory for messages to other ranks");
    char *mine = all + (uint64_t)t->rank * bytes;
    memcpy(mine, own, bytes);
    for (int32_t k = 0; k < t->ranks; k++) {
        block[k] = (rlhf_block){mine, bytes};
        block[t->ranks + k] = (rlhf_block){all + (uint64_t)k * bytes, bytes};
    }
    rlhf_status st = rlhf__team_exchange(t, block, block + t->ranks, &ticket, err);
    if (st == RLHF_OK) st = rlhf__team_wait(t, ticket, err);
    free(block);
    return st;
}

rlhf_status rlhf__team_gather(struct rlhf__team *t, const void *own, uint64_t bytes, void *all,
                              struct rlhf__error *err) {
    if (bytes <= RLHF_COLLECTIVE_GATHER) return gather_small(t, own, bytes, all, err);
    return gather_large(t, own, bytes, all, err);
}

// Where a rank runs.
struct place {
    char host[RLHF__HOST_CAP];
    cpu_set_t mask; // the processors that it may use
};

static rlhf_status see_places(struct rlhf__team *t, struct place *all, struct rlhf__error *err) {
    struct place own = {0};
    if (gethostname(own.host, sizeof own.host - 1) != 0)
        snprintf(own.host, sizeof own.host, "an unnamed machine");
    if (sched_getaffinity(0, sizeof own.mask, &own.mask) != 0) CPU_ZERO(&own.mask);
    RLHF_TRY(rlhf__team_gather(t, &own, sizeof own, all, err));
    for (int32_t k = 0; k < t->ranks; k++) {
        snprintf(t->host[k], sizeof t->host[k], "%.63s", all[k].host);
        t->same += strcmp(all[k].host, own.host) == 0 && CPU_EQUAL(&all[k].mask, &own.mask);
    }
    return RLHF_OK;
}

rlhf_status rlhf__team_init(struct rlhf__team *t, const rlhf_collective *table,
                            struct rlhf__error *err) {
    *t = (struct rlhf__team){.table = table,
                             .rank = table->rank,
                             .ranks = table->ranks,
                             .local = table->local,
                             .locals = table->locals};
    t->host = calloc((size_t)t->ranks, sizeof *t->host);
    t->headers = calloc((size_t)t->ranks, RLHF__TEAM_HEADER);
    struct place *all = calloc((size_t)t->ranks, sizeof *all);
    rlhf_status st = RLHF_OK;
    if (!t->host || !t->headers || !all)
        st = RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    if (st == RLHF_OK) st = see_places(t, all, err);
    free(all);
    return st;
}

void rlhf__team_finish(struct rlhf__team *t) {
    free(t->host);
    free(t->headers);
    *t = (struct rlhf__team){0};
}
