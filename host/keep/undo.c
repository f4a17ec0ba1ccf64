// undo.c: see undo.h.
#include "keep/undo.h"

#include "model/compute.h"
#include "model/parameters.h"
#include "outer/reward_round.h"

#include <rlhf/draft/iteration.h>

#include <stdlib.h>
#include <string.h>

static void add(struct rlhf__undo *u, rlhf_dev dev, const rlhf_param *p) {
    uint64_t bytes = (uint64_t)rlhf__param_count(p) * sizeof(float);
    if (u->item) u->item[u->n] = (struct rlhf__undo_item){dev, bytes};
    u->n++;
    u->bytes += bytes;
}

static void add_model(struct rlhf__undo *u, const struct rlhf__model *m) {
    for (uint32_t i = 0; m && i < m->n_tensors; i++)
        if (m->params[i].value && !(m->params[i].flags & RLHF_PARAM_FROZEN))
            add(u, m->params[i].value, &m->params[i]);
}

static void add_optim(struct rlhf__undo *u, const struct rlhf__optim *o) {
    rlhf_dev dev;
    const rlhf_param *p;
    char name[320];
    for (uint32_t i = 0; o; i++) {
        if (rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p) != RLHF_OK) return;
        add(u, dev, p);
    }
}

// Count the tensors, or list them where u->item has room.
static void list(struct rlhf__undo *u, const struct rlhf__changing *what) {
    u->n = u->bytes = 0;
    for (size_t k = 0; k < RLHF__UNDO_MODELS; k++)
        add_model(u, what->model[k]);
    for (size_t k = 0; k < RLHF__UNDO_OPTIMS; k++)
        add_optim(u, what->optim[k]);
}

static rlhf_status reserve(struct rlhf__undo *u, const struct rlhf__changing *what, int64_t max_mib,
                           struct rlhf__error *err) {
    if (u->n) return RLHF_OK;
    list(u, what);
    u->item = calloc(u->n + 1, sizeof *u->item);
    if (!u->item) return RLHF__NOMEM(err, "out of memory for a list of %zu tensors", u->n);
    list(u, what);
    if (u->bytes >> 20 < (uint64_t)max_mib) u->copy = malloc(u->bytes + 1);
    return RLHF_OK;
}

rlhf_status rlhf__undo_take(struct rlhf__undo *u, const struct rlhf__changing *what,
                            int64_t max_mib, struct rlhf__error *err) {
    const rlhf_compute *c = what->compute;
    rlhf_status st = reserve(u, what, max_mib, err);
    u->taken = 0;
    if (st != RLHF_OK || !u->copy) return st;
    char *to = u->copy;
    for (size_t i = 0; i < u->n; to += u->item[i++].bytes) {
        st = c->download(c->ctx, to, u->item[i].dev, u->item[i].bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, "a copy of the weights", err);
    }
    const struct rlhf__reward_round *round = what->iteration->round;
    if (round) {
        u->head = round->rm->head;
        u->count = round->optim->count;
        st = rlhf__replay_copy(&u->replay, &what->iteration->replay, err);
    }
    u->syncs = what->iteration->syncs;
    u->taken = st == RLHF_OK;
    return st;
}

rlhf_status rlhf__undo_back(struct rlhf__undo *u, const struct rlhf__changing *what,
                            int64_t max_mib, struct rlhf__error *err) {
    const rlhf_compute *c = what->compute;
    rlhf_status st = RLHF_OK;
    if (!u->taken)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the update had begun, and there is no copy of the weights before it: it "
                          "takes %.0f MiB, checkpoint.undo_mib is %lld",
                          (double)u->bytes / 1048576, (long long)max_mib);
    const char *from = u->copy;
    for (size_t i = 0; i < u->n; from += u->item[i++].bytes) {
        st = c->upload(c->ctx, u->item[i].dev, from, u->item[i].bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, "the copy of the weights", err);
    }
    for (size_t k = 0; st == RLHF_OK && k < RLHF__UNDO_MODELS; k++)
        if (what->model[k]) st = rlhf__model_refresh(what->model[k], err);
    struct rlhf__reward_round *round = what->iteration->round;
    if (st == RLHF_OK && round) {
        round->rm->head = u->head;
        round->optim->count = u->count;
        st = rlhf__replay_copy(&what->iteration->replay, &u->replay, err);
    }
    what->iteration->syncs = u->syncs;
    return st;
}

void rlhf__undo_finish(struct rlhf__undo *u) {
    free(u->item);
    free(u->copy);
    rlhf__replay_finish(&u->replay);
    memset(u, 0, sizeof *u);
}
