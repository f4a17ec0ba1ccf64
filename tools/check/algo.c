// algo.c: tests an algorithm against the contract, with a minibatch that matches the algorithm's
// plan. Each function reports violations of the rules.
#include "check/cases.h"

#include "check/algo_batch.h"
#include "check/guard.h"
#include "check/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP 1e-3f // of a finite difference

// ---- the steps of a phase, from plan() to phase_end() ----

static int all_finite(const float *x, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

// Returns 1 if all numbers of response tokens are finite. Those of prompts are ignored.
static int responses_finite(const struct rlhf__algo_batch *b, const float *x) {
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t from = b->offset[i] + b->prompt_len[i];
        if (!all_finite(x + from, b->offset[i + 1] - from)) return 0;
    }
    return 1;
}

// Calls advantages() and checks its results. Returns 0 if it reported a violation. `side` is an
// enum rlhf__guard_side.
static int check_advantages(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t side) {
    struct rlhf__child_log *log = t->check->log;
    struct rlhf__error err;
    if (rlhf__algo_batch_advantages(t, b, side, &err) < 0) {
        rlhf__child_log_found(log, RLHF__CHECK_ADVANTAGES, "of a sound batch, %s", err.text);
        return 0;
    }
    if (!responses_finite(b, b->advantage) || !responses_finite(b, b->returns)) {
        rlhf__child_log_found(log, RLHF__CHECK_ADVANTAGES,
                              "an advantage or return is not finite although rewards are");
        return 0;
    }
    for (int32_t i = 0; i < b->n; i++)
        if (b->use[i] > RLHF_USE_EXCLUDED) {
            rlhf__child_log_found(log, RLHF__CHECK_STILL, "out->use[%d] is %d", i, b->use[i]);
            return 0;
        }
    return 1;
}

// Calls loss() for all rows, in microbatches of `rows` rows. Sets *loss to the sum of the losses,
// and b->d to the derivatives of this sum. Returns 0 if loss() failed or if a value is not finite.
static int sum_loss(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t rows, int32_t side,
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

// Calls minibatch_end() for a step and for a skipped step, then phase_end().
static void end_phase(struct rlhf__probe *t, double loss) {
    const rlhf_algo_ops *ops = &t->check->plugin->ops.algo;
    rlhf_step_info info = {.loss = loss,
                           .grad_norm = 1,
                           .grad_norm_clipped = 1,
                           .lr = 1e-5,
                           .lr_factor = 1,
                           .steps = 1};
    rlhf_phase_info phase = {.phases = 10, .steps = 1, .phase_steps = 1, .loss = loss, .kl = NAN};
    struct rlhf__error err;
    const uint32_t minor = t->check->plugin->abi_minor;
    struct rlhf__tails tails = {.n = 0};
    for (uint32_t skipped = 0; ops->minibatch_end && skipped < 2; skipped++) {
        struct rlhf__guards *guards = rlhf__guards_open(t->check->log);
        rlhf_step_out *out = RLHF__GUARDED(rlhf_step_out, guards, minor), took;
        if (!out) return;
        rlhf__child_log_doing(t->check->log, "minibatch_end()");
        info.skipped = skipped;
        if (skipped) info.grad_norm = NAN;
        RLHF__LEND(rlhf_step_info, &info, minor, &tails);
        rlhf__probe_begin(t, "minibatch_end()");
        const rlhf_status st = ops->minibatch_end(t->self, &info, out);
        rlhf__guard_kept(&tails, t->check->log);
        if (rlhf__probe_end(t, st, &err) < 0)
            rlhf__child_log_found(t->check->log, RLHF__CHECK_FINITE, "after a step, %s", err.text);
        rlhf__guard_struct_end(RLHF__STRUCT_rlhf_step_out, out, &took, minor, t->check->log);
        rlhf__guards_close(guards);
    }
    if (!ops->phase_end) return;
    rlhf__child_log_doing(t->check->log, "phase_end()");
    RLHF__LEND(rlhf_phase_info, &phase, minor, &tails);
    rlhf__probe_begin(t, "phase_end()");
    const rlhf_status st = ops->phase_end(t->self, &phase);
    rlhf__guard_kept(&tails, t->check->log);
    if (rlhf__probe_end(t, st, &err) < 0)
        rlhf__child_log_fact(t->check->log, "after a phase, %s", err.text);
}

// ---- the loss: its derivatives, and its microbatches ----

// Returns the row to which number i of head h belongs.
static int32_t row_of(const struct rlhf__algo_batch *b, int32_t h, int32_t i) {
    int32_t row = 0;
    if (rlhf__algo_head_bit(h) == RLHF_HEAD_SCORE) return i / b->n_labels;
    while (b->offset[row + 1] <= i)
        row++;
    return row;
}

// Returns 1 if the i-th number of head h belongs to an excluded row or to a token for which models
// do not compute it. Otherwise returns 0, and reports a derivative that is not 0 although the
// algorithm declared that this row or token has no gradient.
static int is_out(struct rlhf__child_log *log, const struct rlhf__algo_batch *b, int32_t h,
                  int32_t i) {
    const int32_t row = row_of(b, h, i);
    const int score = rlhf__algo_head_bit(h) == RLHF_HEAD_SCORE;
    if (!score && i < b->offset[row] + b->prompt_len[row]) return 1;
    if (b->use[row] == RLHF_USE_EXCLUDED) return 1;
    if (b->use[row] == RLHF_USE_NO_GRADIENT && b->d[h][i] != 0)
        rlhf__child_log_found(log, RLHF__CHECK_STILL,
                              "row %d was said to be still, and d_heads->%s of it is %g", row,
                              rlhf__algo_head_name(h), (double)b->d[h][i]);
    if (!score && b->leaves_out && b->left_out[i] && b->d[h][i] != 0)
        rlhf__child_log_found(log, RLHF__CHECK_LEFT_OUT,
                              "token %d is left out, and d_heads->%s of it is %g", i,
                              rlhf__algo_head_name(h), (double)b->d[h][i]);
    return 0;
}

struct slope {
    double given, central, left, right;
};

// Stores in *s the derivative that loss() returned, and the slopes from finite differences. Returns
// 0 if loss() failed.
static int slope_at(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t h, int32_t i,
                    double loss, double given, struct slope *s) {
    const float was = b->head[h][i], up = was + STEP, down = was - STEP;
    double above, below;
    b->head[h][i] = up;
    int ok = sum_loss(t, b, b->n, RLHF__GUARD_END, &above);
    b->head[h][i] = down;
    ok = ok && sum_loss(t, b, b->n, RLHF__GUARD_END, &below);
    b->head[h][i] = was;
    if (!ok) return 0;
    *s = (struct slope){given, (above - below) / ((double)up - (double)down),
                        (loss - below) / ((double)was - (double)down),
                        (above - loss) / ((double)up - (double)was)};
    return 1;
}

// Returns 1 if the derivatives agree. At a kink (a clip), accepts any derivative between the left
// and the right slope.
static int agrees(const struct slope *s, double most, double loss) {
    const double off =
        0.02 * fabs(s->given) + 2e-3 * most + 1e-6 * (1 + fabs(loss)) / (double)STEP / 10;
    const double low = fmin(s->left, s->right), high = fmax(s->left, s->right);
    return fabs(s->given - s->central) <= off || (s->given >= low - off && s->given <= high + off);
}

static void check_slopes(struct rlhf__probe *t, struct rlhf__algo_batch *b, double loss) {
    struct rlhf__algo_batch *given = malloc(sizeof *given);
    double most = 0;
    if (!given) return;
    memcpy(given, b, sizeof *given);
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++)
        for (int32_t i = 0; i < rlhf__algo_head_len(b, h); i++)
            most = fmax(most, fabs((double)b->d[h][i]));
    for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++)
        for (int32_t i = 0; i < rlhf__algo_head_len(b, h); i++) {
            struct slope s;
            if (is_out(t->check->log, given, h, i)) continue;
            if (!slope_at(t, b, h, i, loss, (double)given->d[h][i], &s)) goto out;
            if (agrees(&s, most, loss)) continue;
            rlhf__child_log_found(t->check->log, RLHF__CHECK_DERIVATIVE,
                                  "d_heads->%s[%d] is %.5g; by differences of the loss it is %.5g",
                                  rlhf__algo_head_name(h), i, s.given, s.central);
            goto out;
        }
out:
    free(given);
}

static void check_split(struct rlhf__probe *t, struct rlhf__algo_batch *b, double whole) {
    const int pairs =
        b->plan.source == RLHF_SOURCE_PREFERENCES || (b->plan.flags & RLHF_PLAN_MISMATCHED);
    const int together = (b->plan.flags & RLHF_PLAN_GROUPS_TOGETHER) != 0;
    const int32_t rows = pairs ? 2 : together ? (int32_t)b->plan.group_size : 1;
    struct rlhf__algo_batch *parts = malloc(sizeof *parts);
    double loss;
    if (!parts) return;
    memcpy(parts, b, sizeof *parts);
    if (sum_loss(t, parts, rows, RLHF__GUARD_BEGIN, &loss)) {
        const double off = 1e-5 * (1 + fabs(whole));
        if (fabs(loss - whole) > off)
            rlhf__child_log_found(
                t->check->log, RLHF__CHECK_SPLIT,
                "the loss of a minibatch is %.9g, and %.9g in microbatches of %d rows", whole, loss,
                rows);
        for (int32_t h = 0; h < RLHF__ALGO_HEADS; h++)
            for (int32_t i = 0; i < rlhf__algo_head_len(b, h); i++) {
                if (fabs((double)(b->d[h][i] - parts->d[h][i])) <=
                    1e-5 * (1 + fabs((double)b->d[h][i])))
                    continue;
                rlhf__child_log_found(
                    t->check->log, RLHF__CHECK_SPLIT,
                    "d_heads->%s[%d] is %.7g, and %.7g in microbatches of %d rows",
                    rlhf__algo_head_name(h), i, (double)b->d[h][i], (double)parts->d[h][i], rows);
                free(parts);
                return;
            }
    }
    free(parts);
}

// ---- state: does save() write everything that one phase learns for the next? ----

int rlhf__algo_phase(struct rlhf__probe *t, struct rlhf__algo_batch *b, double *loss) {
    if (!check_advantages(t, b, RLHF__GUARD_END)) return 0;
    if (!sum_loss(t, b, b->n, RLHF__GUARD_END, loss)) return 0;
    end_phase(t, *loss);
    return 1;
}

// Compares the results for the same rows. Sets `out` to the difference, or to "" if the results are
// equal.
static void compare(const struct rlhf__algo_batch *a, double loss_a,
                    const struct rlhf__algo_batch *b, double loss_b, char out[160]) {
    out[0] = 0;
    for (int32_t i = 0; i < a->total; i++) // all are finite
        if (a->advantage[i] < b->advantage[i] || a->advantage[i] > b->advantage[i]) {
            snprintf(out, 160, "out->advantage[%d] is %.7g, and %.7g", i, (double)a->advantage[i],
                     (double)b->advantage[i]);
            return;
        }
    if (loss_a < loss_b || loss_a > loss_b)
        snprintf(out, 160, "the loss of a minibatch is %.9g, and %.9g", loss_a, loss_b);
}

// Three batches for the plan. The first and the third are equal; the second differs.
struct course {
    struct rlhf__algo_batch *first, *other, *then;
    double first_loss, other_loss, then_loss;
    struct rlhf__state_buffer kept;
};

static int course_make(struct rlhf__check *c, const rlhf_plan *plan, struct course *x) {
    if (!rlhf__algo_batch_new(c, plan, 1, &x->first) ||
        !rlhf__algo_batch_new(c, plan, 1, &x->other) || !rlhf__algo_batch_new(c, plan, 1, &x->then))
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

// Checks that load() gives another instance everything that a phase depends on.
static void check_kept(struct rlhf__check *c, struct course *x) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160];
    if (rlhf__algo_open(c, 1, &t, &plan) &&
        rlhf__state_buffer_load(&t, &x->kept, c->plugin->desc.state_version, &err) == RLHF_OK &&
        rlhf__algo_phase(&t, x->first, &x->first_loss)) {
        compare(x->then, x->then_loss, x->first, x->first_loss, saw);
        if (saw[0])
            rlhf__child_log_found(c->log, RLHF__CHECK_UNSAVED,
                                  "%s by an instance that load() gave what save() wrote", saw);
    }
    rlhf__probe_finish(&t);
}

// One instance runs a phase, then another phase, and then the first again. If the results for the
// first phase now differ, the instance has state, which save() must write.
static int try_running(struct rlhf__check *c, int32_t step) {
    const int saves = c->plugin->desc.state_version != 0;
    struct course x = {0};
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_plan plan;
    char saw[160] = "";
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "a phase, another, and the first again");
    if (rlhf__algo_open(c, 1, &t, &plan) && course_make(c, &plan, &x) &&
        rlhf__algo_phase(&t, x.first, &x.first_loss) &&
        rlhf__algo_phase(&t, x.other, &x.other_loss) &&
        (!saves || rlhf__state_buffer_save(&t, &x.kept, &err) == RLHF_OK) &&
        rlhf__algo_phase(&t, x.then, &x.then_loss))
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

// ---- the cases ----

// Runs one phase. The rewards differ in step 0 and are all equal in step 1. In step 2, the
// algorithm leaves out tokens.
static int try_phase(struct rlhf__check *c, int32_t step) {
    static const char *const what[] = {"a minibatch", "groups with equal rewards",
                                       "tokens that are left out"};
    struct rlhf__probe t;
    struct rlhf__algo_batch *b = NULL;
    rlhf_plan plan;
    double loss = 0;
    if (step > 2) return 0;
    rlhf__child_log_doing(c->log, "plan()");
    if (rlhf__algo_open(c, 1, &t, &plan) && (step < 2 || plan.flags & RLHF_PLAN_LEAVES_OUT) &&
        rlhf__algo_batch_new(c, &plan, step != 1, &b)) {
        b->leaves_out = step == 2;
        for (int32_t i = 0; i < b->n; i++) // leave out the last token of longer responses
            if (b->offset[i + 1] - b->offset[i] - b->prompt_len[i] > 1)
                b->left_out[b->offset[i + 1] - 1] = 1;
        rlhf__child_log_doing(c->log, "advantages() of %s", what[step]);
        if (check_advantages(&t, b, step ? RLHF__GUARD_BEGIN : RLHF__GUARD_END)) {
            rlhf__child_log_doing(c->log, "loss() of %s", what[step]);
            if (sum_loss(&t, b, b->n, RLHF__GUARD_END, &loss)) {
                check_split(&t, b, loss);
                check_slopes(&t, b, loss);
                end_phase(&t, loss);
            }
        }
    }
    free(b);
    rlhf__probe_finish(&t);
    return 1;
}

// Let allocation `step` of a phase fail.
static int try_phase_memory(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    struct rlhf__algo_batch *b = NULL;
    struct rlhf__error err;
    rlhf_plan plan;
    double loss = 0;
    int more = 0;
    if (step >= 200) return 0;
    rlhf__child_log_doing(c->log, "advantages() and loss() with no memory for allocation %d",
                          step + 1);
    if (rlhf__algo_open(c, 1, &t, &plan) && rlhf__algo_batch_new(c, &plan, 1, &b)) {
        const int64_t before = rlhf__probe_allocs(&t);
        rlhf__probe_fail_alloc(&t, step + 1);
        if (rlhf__algo_batch_advantages(&t, b, RLHF__GUARD_END, &err) == RLHF_OK)
            rlhf__algo_batch_loss(&t, b, 0, b->n, RLHF__GUARD_END, &loss, &err);
        more = rlhf__probe_allocs(&t) - before > step;
    }
    free(b);
    rlhf__probe_finish(&t);
    return more;
}

const struct rlhf__check_case rlhf__algo_cases[] = {
    {"phase", RLHF__CHECK_CRASH, 0, 0, try_phase},
    {"running", RLHF__CHECK_CRASH, 0, 0, try_running},
    {"phase-memory", RLHF__CHECK_MEMORY, 0, 0, try_phase_memory},
    {"choose", RLHF__CHECK_CRASH, 0, 0, rlhf__try_choose},
    {"choose-memory", RLHF__CHECK_MEMORY, 0, 0, rlhf__try_choose_memory},
    {"shards", RLHF__CHECK_CRASH, 0, 0, rlhf__try_shards},
    {NULL, 0, 0, 0, NULL},
};
