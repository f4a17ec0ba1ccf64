// boundary.c: see boundary.h.
#include "keep/boundary.h"

#include <string.h>

static int64_t step_of(const struct rlhf__optim *o) { return o ? o->count.step : 0; }

static struct rlhf__boundary_marks marks_of(const struct rlhf__changing *what) {
    const struct rlhf__iteration *it = what->iteration;
    struct rlhf__boundary_marks m = {
        .syncs = it->syncs, .rounds = it->replay.rounds, .pairs = it->replay.n};
    for (size_t k = 0; k < RLHF__UNDO_OPTIMS; k++)
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
                                  .undo = b->undo};
    rlhf_status st = next.run ? RLHF_OK : RLHF__NOMEM(err, "out of memory for run.json");
    if (st == RLHF_OK) st = rlhf__plugin_states_save(&next.plugins, now->cast, err);
    if (st == RLHF_OK) st = rlhf__undo_take(&next.undo, &now->what, now->undo_mib, err);
    b->undo = next.undo;
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
    return rlhf__undo_back(&b->undo, what, undo_mib, err);
}

void rlhf__boundary_finish(struct rlhf__boundary *b) {
    drop_state(b);
    rlhf__undo_finish(&b->undo);
}
