// algo.c: tests an algorithm against the contract, with a minibatch made to match its plan.
#include "check/cases.h"

#include "check/algo_phase.h"
#include "check/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 1e-3f // of a finite difference

// The row of number i of a head.
static int32_t row_of(const struct rlhf__algo_batch *b, int32_t h, int32_t i) {
    int32_t row = 0;
    if (rlhf__algo_head_bit(h) == RLHF_HEAD_SCORE) return i / b->n_labels;
    while (b->offset[row + 1] <= i)
        row++;
    return row;
}

// Numbers that the loss must not depend on, and those that a model does not compute.
static int is_out(struct rlhf__child_log *log, const struct rlhf__algo_batch *b, int32_t h,
                  int32_t i) {
    const int32_t row = row_of(b, h, i);
    const int score = rlhf__algo_head_bit(h) == RLHF_HEAD_SCORE;
    if (!score && i < b->offset[row] + b->prompt_len[row]) return 1;
    if (b->use[row] == RLHF_ROW_EXCLUDED) return 1;
    if (b->use[row] == RLHF_ROW_NO_GRADIENT && b->d[h][i] != 0)
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

// The derivative from loss() and from finite differences; 0 if loss() failed.
static int slope_at(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t h, int32_t i,
                    double loss, double given, struct slope *s) {
    const float was = b->head[h][i], up = was + STEP, down = was - STEP;
    double above, below;
    b->head[h][i] = up;
    int ok = rlhf__algo_loss(t, b, b->n, RLHF__GUARD_END, &above);
    b->head[h][i] = down;
    ok = ok && rlhf__algo_loss(t, b, b->n, RLHF__GUARD_END, &below);
    b->head[h][i] = was;
    if (!ok) return 0;
    *s = (struct slope){given, (above - below) / ((double)up - (double)down),
                        (loss - below) / ((double)was - (double)down),
                        (above - loss) / ((double)up - (double)was)};
    return 1;
}

// At a kink (a clip) any slope between the left and the right one is accepted.
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
    const int32_t rows = pairs ? 2 : 1;
    struct rlhf__algo_batch *parts = malloc(sizeof *parts);
    double loss;
    if (!parts) return;
    memcpy(parts, b, sizeof *parts);
    if (rlhf__algo_loss(t, parts, rows, RLHF__GUARD_BEGIN, &loss)) {
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

// One phase: with rewards of every kind, without spread, with tokens left out.
static int try_phase(struct rlhf__check *c, int32_t step) {
    static const char *const what[] = {"a minibatch", "groups with equal rewards",
                                       "tokens that are left out"};
    struct rlhf__probe t;
    struct rlhf__algo_batch *b = NULL;
    rlhf_plan plan;
    double loss = 0;
    if (step > 2) return 0;
    rlhf__child_log_doing(c->log, "plan()");
    if (rlhf__algo_open(c, &t, &plan) && (step < 2 || plan.flags & RLHF_PLAN_LEAVES_OUT) &&
        rlhf__algo_make(c, &plan, step != 1, &b)) {
        b->leaves_out = step == 2;
        for (int32_t i = 0; i < b->n; i++) // leave out the last token of longer responses
            if (b->offset[i + 1] - b->offset[i] - b->prompt_len[i] > 1)
                b->left_out[b->offset[i + 1] - 1] = 1;
        rlhf__child_log_doing(c->log, "advantages() of %s", what[step]);
        if (rlhf__algo_pay(&t, b, step ? RLHF__GUARD_BEGIN : RLHF__GUARD_END)) {
            rlhf__child_log_doing(c->log, "loss() of %s", what[step]);
            if (rlhf__algo_loss(&t, b, b->n, RLHF__GUARD_END, &loss)) {
                check_split(&t, b, loss);
                check_slopes(&t, b, loss);
                rlhf__algo_end(&t, loss);
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
    if (rlhf__algo_open(c, &t, &plan) && rlhf__algo_make(c, &plan, 1, &b)) {
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
    {"phase", RLHF__CHECK_CRASH, 0, 0, 0, try_phase},
    {"running", RLHF__CHECK_CRASH, 0, 0, 0, rlhf__algo_running},
    {"phase-memory", RLHF__CHECK_MEMORY, 0, 0, 0, try_phase_memory},
    {NULL, 0, 0, 0, 0, NULL},
};
