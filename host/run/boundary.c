// boundary.c: see boundary.h.
#include "run/boundary.h"

#include "run/reward_round.h"
#include "run/run.h"
#include "run/state_file.h"

#include <stdlib.h>
#include <string.h>

static struct rlhf__boundary_marks marks_of(const struct rlhf__run *t) {
    const struct rlhf__iteration *it = &t->iteration;
    return (struct rlhf__boundary_marks){t->optim->step,
                                         t->critic_optim ? t->critic_optim->step : 0,
                                         it->round ? it->round->optim->step : 0,
                                         it->syncs,
                                         it->replay.rounds,
                                         it->replay.n};
}

static void drop_state(struct rlhf__boundary *b) {
    json_decref(b->run);
    rlhf__state_plugins_finish(b->plugin, b->n_plugins);
    b->run = NULL;
    b->plugin = NULL;
    b->n_plugins = 0;
}

rlhf_status rlhf__boundary_note(struct rlhf__boundary *b, struct rlhf__run *t,
                                struct rlhf__error *err) {
    struct rlhf__boundary now = {
        .phase = t->count.phase, .best = t->best, .marks = marks_of(t), .undo = b->undo};
    now.run = rlhf__state_run(t);
    rlhf_status st = now.run ? RLHF_OK : RLHF__NOMEM(err, "out of memory for run.json");
    if (st == RLHF_OK) st = rlhf__state_save_plugins(t, &now.plugin, &now.n_plugins, err);
    if (st == RLHF_OK) st = rlhf__undo_take(&now.undo, t, err);
    b->undo = now.undo;
    if (st != RLHF_OK) {
        drop_state(&now);
        return st;
    }
    drop_state(b);
    *b = now;
    return RLHF_OK;
}

rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, struct rlhf__run *t,
                                   struct rlhf__error *err) {
    struct rlhf__boundary_marks now = marks_of(t);
    if (memcmp(&now, &b->marks, sizeof now) != 0) {
        rlhf_status st = rlhf__undo_back(&b->undo, t, err);
        if (st != RLHF_OK) return st;
    }
    t->count.phase = b->phase;
    t->best = b->best;
    t->count.stop = 0; // what the phase that was left had found
    return RLHF_OK;
}

void rlhf__boundary_finish(struct rlhf__boundary *b) {
    drop_state(b);
    rlhf__undo_finish(&b->undo);
}
