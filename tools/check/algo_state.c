// algo_state.c: see algo_state.h.
#include "check/algo_state.h"

#include "check/algo_phase.h"
#include "check/guard.h"
#include "check/kept.h"

#include <stdio.h>
#include <stdlib.h>

// A phase of the batch: what loss() says of it afterwards; 0 when it does not come to that.
static int phase_of(struct rlhf__watched *t, struct rlhf__algo_batch *b, double *loss) {
    if (!rlhf__algo_pay(t, b, RLHF__GUARD_END)) return 0;
    if (!rlhf__algo_loss(t, b, b->n, RLHF__GUARD_END, loss)) return 0;
    rlhf__algo_end(t, *loss);
    return 1;
}

// What was said of the same rows; an empty text, or what differs, in out.
static void compare(const struct rlhf__algo_batch *a, double loss_a,
                    const struct rlhf__algo_batch *b, double loss_b, char out[160]) {
    out[0] = 0;
    for (int32_t i = 0; i < a->total; i++) // all are finite (algo_phase.h)
        if (a->advantage[i] < b->advantage[i] || a->advantage[i] > b->advantage[i]) {
            snprintf(out, 160, "rollout->advantage[%d] is %.7g, and %.7g", i,
                     (double)a->advantage[i], (double)b->advantage[i]);
            return;
        }
    if (loss_a < loss_b || loss_a > loss_b)
        snprintf(out, 160, "the loss of a minibatch is %.9g, and %.9g", loss_a, loss_b);
}

// Three batches of the plan: the first and the last are the same, between them is another.
struct course {
    struct rlhf__algo_batch *first, *other, *then;
    double first_loss, other_loss, then_loss;
    struct rlhf__kept kept;
};

static int course_make(struct rlhf__check *c, const rlhf_plan *plan, struct course *x) {
    if (!rlhf__algo_make(c, plan, 1, &x->first) || !rlhf__algo_make(c, plan, 1, &x->other) ||
        !rlhf__algo_make(c, plan, 1, &x->then))
        return 0;
    for (int32_t i = 0; i < x->other->n; i++) // paid otherwise, and drawn by a nearer policy
        x->other->score[i] = 3 - 2 * x->other->score[i];
    for (int32_t i = 0; i < x->other->total; i++)
        x->other->ref[i] = x->other->old[i];
    return rlhf__kept_init(&x->kept);
}

static void course_finish(struct course *x) {
    rlhf__kept_finish(&x->kept);
    free(x->first);
    free(x->other);
    free(x->then);
}

// What load() brings to another instance must be all that a phase depends on.
static void check_kept(struct rlhf__check *c, struct course *x) {
    struct rlhf__watched t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160];
    if (rlhf__algo_open(c, &t, &plan) &&
        rlhf__kept_load(&t, &x->kept, c->plugin->desc.state_version, &err) == RLHF_OK &&
        phase_of(&t, x->first, &x->first_loss)) {
        compare(x->then, x->then_loss, x->first, x->first_loss, saw);
        if (saw[0])
            rlhf__board_found(c->board, RLHF__CHECK_UNSAVED,
                              "%s by an instance that load() gave what save() wrote", saw);
    }
    rlhf__watched_finish(&t);
}

int rlhf__algo_running(struct rlhf__check *c, int32_t step) {
    const int saves = c->plugin->desc.state_version != 0;
    struct course x = {0};
    struct rlhf__watched t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160] = "";
    if (step > 0) return 0;
    rlhf__board_doing(c->board, "a phase, another, and the first again");
    if (rlhf__algo_open(c, &t, &plan) && course_make(c, &plan, &x) &&
        phase_of(&t, x.first, &x.first_loss) && phase_of(&t, x.other, &x.other_loss) &&
        (!saves || rlhf__kept_save(&t, &x.kept, &err) == RLHF_OK) &&
        phase_of(&t, x.then, &x.then_loss))
        compare(x.first, x.first_loss, x.then, x.then_loss, saw);
    rlhf__watched_finish(&t);
    if (saw[0] && saves) check_kept(c, &x);
    if (saw[0] && !saves)
        rlhf__board_found(c->board, RLHF__CHECK_UNSAVED,
                          "%s after another phase; that is a state, and without save(), load() and "
                          "a state_version a resumed run begins without it",
                          saw);
    course_finish(&x);
    return 1;
}
