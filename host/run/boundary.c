// boundary.c: see boundary.h.
#include "run/boundary.h"

#include "run/reward_round.h"
#include "run/run.h"
#include "run/run_state.h"

#include <string.h>

static struct rlhf__boundary_marks marks_of(const struct rlhf__run *r) {
    const struct rlhf__iteration *it = &r->iteration;
    return (struct rlhf__boundary_marks){r->optim->count.step,
                                         r->critic_optim ? r->critic_optim->count.step : 0,
                                         it->round ? it->round->optim->count.step : 0,
                                         it->syncs,
                                         it->replay.rounds,
                                         it->replay.n};
}

static struct rlhf__changing changing(struct rlhf__run *r) {
    const struct rlhf__cast *c = &r->cast;
    const struct rlhf__reward_round *round = r->iteration.round;
    int moves = (c->plan.flags & RLHF_PLAN_MOVES_REFERENCE) != 0;
    return (struct rlhf__changing){
        .compute = r->session.compute->table,
        .model = {c->policy, c->critic, moves ? c->reference : NULL,
                  round ? round->rm->model : NULL},
        .optim = {r->optim, r->critic_optim, round ? round->optim : NULL},
        .iteration = &r->iteration};
}

static void drop_state(struct rlhf__boundary *b) {
    json_decref(b->run);
    b->run = NULL;
    rlhf__plugin_states_finish(&b->plugins);
}

rlhf_status rlhf__boundary_note(struct rlhf__boundary *b, struct rlhf__run *r,
                                struct rlhf__error *err) {
    struct rlhf__boundary now = {
        .phase = r->count.phase, .best = r->best, .marks = marks_of(r), .undo = b->undo};
    const struct rlhf__changing what = changing(r);
    now.run = rlhf__run_state(r);
    rlhf_status st = now.run ? RLHF_OK : RLHF__NOMEM(err, "out of memory for run.json");
    if (st == RLHF_OK) st = rlhf__plugin_states_save(&now.plugins, &r->cast, err);
    if (st == RLHF_OK) st = rlhf__undo_take(&now.undo, &what, r->config->checkpoint.undo_mib, err);
    b->undo = now.undo;
    if (st != RLHF_OK) {
        drop_state(&now);
        return st;
    }
    drop_state(b);
    *b = now;
    return RLHF_OK;
}

rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, struct rlhf__run *r,
                                   struct rlhf__error *err) {
    struct rlhf__boundary_marks now = marks_of(r);
    const struct rlhf__changing what = changing(r);
    if (memcmp(&now, &b->marks, sizeof now) != 0)
        RLHF_TRY(rlhf__undo_back(&b->undo, &what, r->config->checkpoint.undo_mib, err));
    r->count.phase = b->phase;
    r->best = b->best;
    r->count.stop = 0; // what the phase that was left had found
    return RLHF_OK;
}

void rlhf__boundary_finish(struct rlhf__boundary *b) {
    drop_state(b);
    rlhf__undo_finish(&b->undo);
}
