// algo_phase.c: see algo_phase.h.
#include "check/algo_phase.h"

#include "check/guard.h"
#include "check/state_buffer.h"
#include "learn/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rlhf__algo_open(struct rlhf__check *c, struct rlhf__probe *t, rlhf_plan *plan) {
    const rlhf_run_info info = {.size = sizeof info,
                                .phases = 10,
                                .batch_size = 64,
                                .max_new_tokens = 6,
                                .n_labels = RLHF__ALGO_LABELS,
                                .max_turns = 1,
                                .shards = 1,
                                .temperature = 1};
    struct rlhf__error err;
    *plan = (rlhf_plan){.size = sizeof *plan};
    if (rlhf__probe_create(c, NULL, 0, t, &err) < 0) return 0;
    rlhf__probe_begin(t, "plan()");
    rlhf_status st = rlhf__probe_end(t, c->plugin->ops.algo.plan(t->self, &info, plan), &err);
    if (st == RLHF_OK) st = rlhf__plan_check(c->plugin, plan, &err);
    if (st < 0) rlhf__child_log_found(c->log, RLHF__CHECK_PLAN, "%s", err.text);
    return st == RLHF_OK;
}

static int all_finite(const float *x, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

// Call advantages() and check its results.
int rlhf__algo_pay(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t side) {
    struct rlhf__child_log *log = t->check->log;
    struct rlhf__error err;
    if (rlhf__algo_batch_advantages(t, b, side, &err) < 0) {
        rlhf__child_log_found(log, RLHF__CHECK_ADVANTAGES, "of a sound batch, %s", err.text);
        return 0;
    }
    if (!all_finite(b->advantage, b->total) || !all_finite(b->returns, b->total)) {
        rlhf__child_log_found(log, RLHF__CHECK_ADVANTAGES,
                              "an advantage or return is not finite although rewards are");
        return 0;
    }
    for (int32_t i = 0; i < b->n; i++)
        if (b->use[i] > RLHF_ROW_EXCLUDED) {
            rlhf__child_log_found(log, RLHF__CHECK_STILL, "rollout->use[%d] is %d", i, b->use[i]);
            return 0;
        }
    return 1;
}

// Call loss() for the rows, in parts of `rows`; report values that are not finite.
int rlhf__algo_loss(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t rows, int32_t side,
                    double *loss) {
    struct rlhf__child_log *log = t->check->log;
    struct rlhf__error err;
    int finite = 1;
    *loss = 0;
    for (int32_t from = 0; from < b->n; from += rows) {
        const int32_t to = from + rows < b->n ? from + rows : b->n;
        if (rlhf__algo_batch_loss(t, b, from, to, side, loss, &err) == RLHF_OK) continue;
        rlhf__child_log_found(log, RLHF__CHECK_FINITE, "of a sound minibatch, %s", err.text);
        return 0;
    }
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++)
        finite &= all_finite(b->d[h], rlhf__algo_head_len(b, h));
    if (!isfinite(*loss) || !finite) {
        rlhf__child_log_found(log, RLHF__CHECK_FINITE, "loss() is %g%s", *loss,
                              finite ? "" : ", with a derivative that is not finite");
        return 0;
    }
    return 1;
}

// The calls after the microbatches of a minibatch, and at the end of a phase.
void rlhf__algo_end(struct rlhf__probe *t, double loss) {
    const rlhf_algo_ops *ops = &t->check->plugin->ops.algo;
    rlhf_step_info info = {.size = sizeof info,
                           .loss = loss,
                           .grad_norm = 1,
                           .grad_norm_clipped = 1,
                           .lr = 1e-5,
                           .lr_factor = 1,
                           .steps = 1};
    struct rlhf__error err;
    int32_t stop = 0;
    for (uint32_t skipped = 0; ops->minibatch_end && skipped < 2; skipped++) {
        rlhf__child_log_doing(t->check->log, "minibatch_end()");
        info.skipped = skipped;
        if (skipped) info.grad_norm = NAN;
        rlhf__probe_begin(t, "minibatch_end()");
        if (rlhf__probe_end(t, ops->minibatch_end(t->self, &info, &stop), &err) < 0)
            rlhf__child_log_found(t->check->log, RLHF__CHECK_FINITE, "after a step, %s", err.text);
    }
    if (!ops->phase_end) return;
    rlhf__child_log_doing(t->check->log, "phase_end()");
    rlhf__probe_begin(t, "phase_end()");
    if (rlhf__probe_end(t, ops->phase_end(t->self, 0), &err) < 0)
        rlhf__child_log_fact(t->check->log, "after a phase, %s", err.text);
}

int rlhf__algo_make(struct rlhf__check *c, const rlhf_plan *plan, int32_t spread,
                    struct rlhf__algo_batch **out) {
    *out = NULL;
    if (plan->group_size > RLHF__ALGO_ROWS / 3) {
        rlhf__child_log_fact(c->log,
                             "groups of %u are more than are made up: give a smaller size "
                             "with --set",
                             plan->group_size);
        return 0;
    }
    *out = malloc(sizeof **out);
    if (*out) rlhf__algo_batch_make(*out, plan, spread);
    return *out != NULL;
}

// ---- state ----

// Run a phase with the batch: the result of loss() afterwards; 0 if it fails earlier.
static int phase_of(struct rlhf__probe *t, struct rlhf__algo_batch *b, double *loss) {
    if (!rlhf__algo_pay(t, b, RLHF__GUARD_END)) return 0;
    if (!rlhf__algo_loss(t, b, b->n, RLHF__GUARD_END, loss)) return 0;
    rlhf__algo_end(t, *loss);
    return 1;
}

// Compare the results for the same rows; out = "" or the difference.
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

// Three batches for the plan: the first and the last are equal, the second differs.
struct course {
    struct rlhf__algo_batch *first, *other, *then;
    double first_loss, other_loss, then_loss;
    struct rlhf__state_buffer kept;
};

static int course_make(struct rlhf__check *c, const rlhf_plan *plan, struct course *x) {
    if (!rlhf__algo_make(c, plan, 1, &x->first) || !rlhf__algo_make(c, plan, 1, &x->other) ||
        !rlhf__algo_make(c, plan, 1, &x->then))
        return 0;
    for (int32_t i = 0; i < x->other->n; i++) // with other rewards, sampled from a closer policy
        x->other->score[i] = 3 - 2 * x->other->score[i];
    for (int32_t i = 0; i < x->other->total; i++)
        x->other->ref[i] = x->other->old[i];
    return rlhf__state_buffer_init(&x->kept);
}

static void course_finish(struct course *x) {
    rlhf__state_buffer_finish(&x->kept);
    free(x->first);
    free(x->other);
    free(x->then);
}

// After load() another instance must have everything that a phase depends on.
static void check_kept(struct rlhf__check *c, struct course *x) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160];
    if (rlhf__algo_open(c, &t, &plan) &&
        rlhf__state_buffer_load(&t, &x->kept, c->plugin->desc.state_version, &err) == RLHF_OK &&
        phase_of(&t, x->first, &x->first_loss)) {
        compare(x->then, x->then_loss, x->first, x->first_loss, saw);
        if (saw[0])
            rlhf__child_log_found(c->log, RLHF__CHECK_UNSAVED,
                                  "%s by an instance that load() gave what save() wrote", saw);
    }
    rlhf__probe_finish(&t);
}

int rlhf__algo_running(struct rlhf__check *c, int32_t step) {
    const int saves = c->plugin->desc.state_version != 0;
    struct course x = {0};
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160] = "";
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "a phase, another, and the first again");
    if (rlhf__algo_open(c, &t, &plan) && course_make(c, &plan, &x) &&
        phase_of(&t, x.first, &x.first_loss) && phase_of(&t, x.other, &x.other_loss) &&
        (!saves || rlhf__state_buffer_save(&t, &x.kept, &err) == RLHF_OK) &&
        phase_of(&t, x.then, &x.then_loss))
        compare(x.first, x.first_loss, x.then, x.then_loss, saw);
    rlhf__probe_finish(&t);
    if (saw[0] && saves) check_kept(c, &x);
    if (saw[0] && !saves)
        rlhf__child_log_found(
            c->log, RLHF__CHECK_UNSAVED,
            "%s after another phase; that is a state, and without save(), load() and "
            "a state_version a resumed run begins without it",
            saw);
    course_finish(&x);
    return 1;
}
