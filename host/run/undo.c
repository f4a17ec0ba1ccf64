// undo.c: see undo.h.
#include "run/undo.h"

#include "model/parameters.h"
#include "run/reward_round.h"
#include "run/run.h"

#include <rlhf/draft/iteration.h>

#include <stdlib.h>
#include <string.h>

#define MODELS 4
#define OPTIMS 3

// The models whose weights an update changes; NULL where there is none.
static void changing(const struct rlhf__run *t, struct rlhf__model *out[MODELS]) {
    out[0] = t->cast.policy;
    out[1] = t->cast.critic;
    out[2] = t->cast.plan.flags & RLHF_PLAN_MOVES_REFERENCE ? t->cast.reference : NULL;
    out[3] = t->iteration.round ? t->iteration.round->rm->model : NULL;
}

static void add(struct rlhf__undo *u, rlhf_dev dev, const rlhf_param *p) {
    uint64_t bytes = (uint64_t)rlhf__param_count(p) * sizeof(float);
    if (u->item) u->item[u->n] = (struct rlhf__undo_item){dev, bytes};
    u->n++;
    u->bytes += bytes;
}

// Count the tensors, or list them where u->item has room.
static void list(struct rlhf__undo *u, const struct rlhf__run *t) {
    struct rlhf__model *model[MODELS];
    const struct rlhf__optim *optim[OPTIMS] = {
        t->optim, t->critic_optim, t->iteration.round ? t->iteration.round->optim : NULL};
    u->n = u->bytes = 0;
    changing(t, model);
    for (size_t k = 0; k < MODELS; k++)
        for (uint32_t i = 0; model[k] && i < model[k]->n_params; i++)
            if (model[k]->params[i].value) add(u, model[k]->params[i].value, &model[k]->params[i]);
    for (size_t k = 0; k < OPTIMS; k++) {
        rlhf_dev dev;
        const rlhf_param *p;
        char name[320];
        for (uint32_t i = 0; optim[k]; i++) {
            if (rlhf__optim_tensor(optim[k], i, name, sizeof name, &dev, &p) != RLHF_OK) break;
            add(u, dev, p);
        }
    }
}

static rlhf_status reserve(struct rlhf__undo *u, const struct rlhf__run *t,
                           struct rlhf__error *err) {
    if (u->n) return RLHF_OK;
    list(u, t);
    u->item = calloc(u->n + 1, sizeof *u->item);
    if (!u->item) return RLHF__NOMEM(err, "out of memory for a list of %zu tensors", u->n);
    list(u, t);
    if (u->bytes >> 20 < (uint64_t)t->config->checkpoint.undo_mib) u->copy = malloc(u->bytes + 1);
    return RLHF_OK;
}

rlhf_status rlhf__undo_take(struct rlhf__undo *u, const struct rlhf__run *t,
                            struct rlhf__error *err) {
    const rlhf_compute *c = t->session.compute->table;
    rlhf_status st = reserve(u, t, err);
    u->taken = 0;
    if (st != RLHF_OK || !u->copy) return st;
    char *to = u->copy;
    for (size_t i = 0; i < u->n; to += u->item[i++].bytes) {
        st = c->download(c->ctx, to, u->item[i].dev, u->item[i].bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, "a copy of the weights", err);
    }
    const struct rlhf__reward_round *round = t->iteration.round;
    if (round) {
        u->head = round->rm->head;
        u->step = round->optim->step;
        u->skipped = round->optim->skipped;
        u->skipped_row = round->optim->skipped_row;
        st = rlhf__replay_copy(&u->replay, &t->iteration.replay, err);
    }
    u->syncs = t->iteration.syncs;
    u->taken = st == RLHF_OK;
    return st;
}

rlhf_status rlhf__undo_back(struct rlhf__undo *u, struct rlhf__run *t, struct rlhf__error *err) {
    const rlhf_compute *c = t->session.compute->table;
    struct rlhf__model *model[MODELS];
    rlhf_status st = RLHF_OK;
    if (!u->taken)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the update had begun, and there is no copy of the weights before it: it "
                          "takes %.0f MiB, checkpoint.undo_mib is %lld",
                          (double)u->bytes / 1048576, (long long)t->config->checkpoint.undo_mib);
    const char *from = u->copy;
    for (size_t i = 0; i < u->n; from += u->item[i++].bytes) {
        st = c->upload(c->ctx, u->item[i].dev, from, u->item[i].bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, "the copy of the weights", err);
    }
    changing(t, model);
    for (size_t k = 0; st == RLHF_OK && k < MODELS; k++)
        if (model[k]) st = rlhf__model_refresh(model[k], err);
    struct rlhf__reward_round *round = t->iteration.round;
    if (st == RLHF_OK && round) {
        round->rm->head = u->head;
        round->optim->step = u->step;
        round->optim->skipped = u->skipped;
        round->optim->skipped_row = u->skipped_row;
        st = rlhf__replay_copy(&t->iteration.replay, &u->replay, err);
    }
    t->iteration.syncs = u->syncs;
    return st;
}

void rlhf__undo_finish(struct rlhf__undo *u) {
    free(u->item);
    free(u->copy);
    rlhf__replay_finish(&u->replay);
    memset(u, 0, sizeof *u);
}
