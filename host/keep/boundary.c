// boundary.c: see boundary.h.
#include "keep/boundary.h"

#include "keep/reward_round.h"
#include "model/compute.h"
#include "model/parameters.h"

#include <rlhf/draft/iteration.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rlhf__best_see(struct rlhf__best *b, const struct rlhf__checkpoint_config *c,
                    const struct rlhf__metrics *m) {
    if (!c->best[0] || !rlhf__metrics_get(m, c->best, &b->now)) b->now = NAN;
}

int rlhf__best_offer(struct rlhf__best *b, const struct rlhf__checkpoint_config *c, int64_t phase) {
    if (!c->best[0]) return 1;
    if (!isfinite(b->now)) return 0;
    int better = c->best_mode == RLHF__BEST_MAX ? b->now > b->value : b->now < b->value;
    if (b->phase > 0 && !better) return 1;
    b->phase = phase;
    b->value = b->now;
    return 1;
}

json_t *rlhf__best_save(const struct rlhf__best *b, const struct rlhf__checkpoint_config *c) {
    if (!c->best[0] || b->phase == 0) return NULL;
    return json_pack("{s:s, s:i, s:I, s:f}", "metric", c->best, "mode", (int)c->best_mode, "phase",
                     (json_int_t)b->phase, "value", b->value);
}

rlhf_status rlhf__best_load(struct rlhf__best *b, const struct rlhf__checkpoint_config *c,
                            const json_t *v, struct rlhf__error *err) {
    const char *metric = NULL;
    int mode = 0;
    json_int_t phase = 0;
    double value = 0;
    json_error_t why;
    *b = (struct rlhf__best){0};
    if (!v || !c->best[0]) return RLHF_OK;
    // The cast is safe: json_unpack takes a non-const pointer but changes nothing.
    if (json_unpack_ex((json_t *)(uintptr_t)v, &why, 0, "{s:s, s:i, s:I, s:F}", "metric", &metric,
                       "mode", &mode, "phase", &phase, "value", &value) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "best: %s", why.text);
    if (phase < 1) return rlhf__fail(err, RLHF_E_INVALID, "best: the phase is %lld", phase);
    if (strcmp(metric, c->best) == 0 && mode == c->best_mode) {
        b->phase = phase;
        b->value = value;
    }
    return RLHF_OK;
}

// ---- the copy ----

static void add(struct rlhf__rollback *u, rlhf_dev dev, uint64_t bytes) {
    if (u->item) u->item[u->n] = (struct rlhf__rollback_item){dev, bytes};
    u->n++;
    u->bytes += bytes;
}

static void add_model(struct rlhf__rollback *u, const struct rlhf__model *m) {
    for (uint32_t i = 0; m && i < m->n_tensors; i++)
        if (m->params[i].value && !(m->params[i].flags & RLHF_PARAM_FROZEN))
            add(u, m->params[i].value, (uint64_t)rlhf__param_count(&m->params[i]) * sizeof(float));
}

static void add_optim(struct rlhf__rollback *u, const struct rlhf__optim *o) {
    rlhf_dev dev;
    uint64_t bytes;
    for (uint32_t i = 0; o && rlhf__optim_memory(o, i, &dev, &bytes); i++)
        add(u, dev, bytes);
}

// Count the tensors. Once u->item has been allocated, also list them.
static void list(struct rlhf__rollback *u, const struct rlhf__changing *what) {
    u->n = u->bytes = 0;
    for (size_t k = 0; k < RLHF__ROLLBACK_MODELS; k++)
        add_model(u, what->model[k]);
    for (size_t k = 0; k < RLHF__ROLLBACK_OPTIMS; k++)
        add_optim(u, what->optim[k]);
}

static rlhf_status reserve(struct rlhf__rollback *u, const struct rlhf__changing *what,
                           int64_t max_mib, struct rlhf__error *err) {
    if (u->n) return RLHF_OK;
    list(u, what);
    u->item = calloc(u->n + 1, sizeof *u->item);
    if (!u->item) return RLHF__NOMEM(err, "out of memory for a list of %zu tensors", u->n);
    list(u, what);
    if (u->bytes >> 20 < (uint64_t)max_mib) u->copy = malloc(u->bytes + 1);
    return RLHF_OK;
}

// Copy the current values. Makes no copy if it would take more than max_mib, or if memory runs out.
// Sets u->taken to 1 if the values were copied, and to 0 otherwise.
static rlhf_status rollback_take(struct rlhf__rollback *u, const struct rlhf__changing *what,
                                 int64_t max_mib, struct rlhf__error *err) {
    const rlhf_compute *c = what->compute;
    rlhf_status st = reserve(u, what, max_mib, err);
    u->taken = 0;
    if (st != RLHF_OK || !u->copy) return st;
    char *to = u->copy;
    for (size_t i = 0; i < u->n; to += u->item[i++].bytes) {
        st = c->download(c->ctx, to, u->item[i].dev, u->item[i].bytes);
        if (st != RLHF_OK)
            return rlhf__compute_fail(what->kernels, st, "a copy of the weights", err);
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

// Restore the copy and refresh the models.
static rlhf_status rollback_restore(struct rlhf__rollback *u, const struct rlhf__changing *what,
                                    int64_t max_mib, struct rlhf__error *err) {
    const rlhf_compute *c = what->compute;
    rlhf_status st = RLHF_OK;
    if (!u->taken)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the update had begun, and no copy of the earlier weights was kept: it "
                          "takes %.0f MiB, but checkpoint.undo_mib is %lld",
                          (double)u->bytes / 1048576, (long long)max_mib);
    const char *from = u->copy;
    for (size_t i = 0; i < u->n; from += u->item[i++].bytes) {
        st = c->upload(c->ctx, u->item[i].dev, from, u->item[i].bytes);
        if (st != RLHF_OK)
            return rlhf__compute_fail(what->kernels, st, "the copy of the weights", err);
    }
    for (size_t k = 0; st == RLHF_OK && k < RLHF__ROLLBACK_MODELS; k++)
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

static void rollback_finish(struct rlhf__rollback *u) {
    free(u->item);
    free(u->copy);
    rlhf__replay_finish(&u->replay);
    memset(u, 0, sizeof *u);
}

// ---- the boundary ----

static int64_t step_of(const struct rlhf__optim *o) { return o ? o->count.step : 0; }

static struct rlhf__boundary_marks marks_of(const struct rlhf__changing *what) {
    const struct rlhf__iteration *it = what->iteration;
    struct rlhf__boundary_marks m = {
        .syncs = it->syncs, .rounds = it->replay.rounds, .pairs = it->replay.n};
    for (size_t k = 0; k < RLHF__ROLLBACK_OPTIMS; k++)
        m.step[k] = step_of(what->optim[k]);
    return m;
}

static void drop_state(struct rlhf__boundary *b) {
    json_decref(b->run);
    b->run = NULL;
    rlhf__plugin_states_finish(&b->plugins);
}

rlhf_status rlhf__boundary_note(struct rlhf__boundary *b, const struct rlhf__boundary_now *now,
                                struct rlhf__error *err) {
    struct rlhf__boundary next = {.phase = now->phase,
                                  .run = now->run,
                                  .best = now->best,
                                  .marks = marks_of(&now->what),
                                  .rollback = b->rollback};
    rlhf_status st = next.run ? RLHF_OK : RLHF__NOMEM(err, "out of memory for run.json");
    if (st == RLHF_OK) st = rlhf__plugin_states_save(&next.plugins, now->cast, err);
    if (st == RLHF_OK) st = rollback_take(&next.rollback, &now->what, now->undo_mib, err);
    b->rollback = next.rollback;
    if (st != RLHF_OK) {
        drop_state(&next);
        return st;
    }
    drop_state(b);
    *b = next;
    return RLHF_OK;
}

rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, const struct rlhf__changing *what,
                                   int64_t undo_mib, struct rlhf__error *err) {
    const struct rlhf__boundary_marks now = marks_of(what);
    if (memcmp(&now, &b->marks, sizeof now) == 0) return RLHF_OK;
    return rollback_restore(&b->rollback, what, undo_mib, err);
}

void rlhf__boundary_finish(struct rlhf__boundary *b) {
    drop_state(b);
    rollback_finish(&b->rollback);
}
