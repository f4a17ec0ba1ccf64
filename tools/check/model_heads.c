// model_heads.c: tests whether a model's heads and their gradients fulfill the contract: log-probs,
// also with adapters and in bf16, value, entropy, KL, pooled scores and token scores.
#include "check/cases.h"

#include "check/checked_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 3, HEADS = 6 };

// The heads: name, bit, and 1 if the head has numbers per row instead of per token.
static const struct {
    const char *name;
    uint32_t bit;
    int32_t pooled;
} head[HEADS] = {{"logp", RLHF_HEAD_LOGP, 0},   {"entropy", RLHF_HEAD_ENTROPY, 0},
                 {"kl", RLHF_HEAD_KL, 0},       {"value", RLHF_HEAD_VALUE, 0},
                 {"score", RLHF_HEAD_SCORE, 1}, {"token_score", RLHF_HEAD_TOKEN_SCORE, 0}};

// The kind of model to open, and the heads to request.
static const struct form {
    const char *what;
    uint32_t heads;
    int32_t labels, value, adapter;
} forms[] = {
    {"log-probs", RLHF_HEAD_LOGP, 0, 0, 0},
    {"the value head and entropy", RLHF_HEAD_VALUE | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_LINEAR, 0},
    {"the value head of two layers", RLHF_HEAD_VALUE, 0, RLHF_VALUE_MLP, 0},
    {"kl to a reference", RLHF_HEAD_KL, 0, 0, 0},
    {"scores of rows", RLHF_HEAD_SCORE, LABELS, 0, 0},
    {"scores of tokens", RLHF_HEAD_TOKEN_SCORE, 1, 0, 0},
    {"an adapter", RLHF_HEAD_LOGP, 0, 0, 1}};
enum { FORMS = sizeof forms / sizeof *forms };

struct numbers {
    float head[HEADS][RLHF__CHECKED_TOKENS];
};

// A model opened in one of the forms, and the reference for its kl head.
struct trial {
    struct rlhf__checked_model m, ref;
    const struct form *form;
    struct rlhf__checked_rows rows;
    float *hidden; // the reference's
    struct numbers weight;
    int32_t labels;
};

static struct rlhf__child_log *board_of(const struct trial *t) { return t->m.t.check->log; }

static rlhf_heads pointers(const struct trial *t, struct numbers *n, int32_t from) {
    const int32_t base = t->rows.offset[from];
    const uint32_t want = t->form->heads;
    return (rlhf_heads){
        .size = sizeof(rlhf_heads),
        .logp = want & RLHF_HEAD_LOGP ? n->head[0] + base : NULL,
        .entropy = want & RLHF_HEAD_ENTROPY ? n->head[1] + base : NULL,
        .kl = want & RLHF_HEAD_KL ? n->head[2] + base : NULL,
        .value = want & RLHF_HEAD_VALUE ? n->head[3] + base : NULL,
        .score = want & RLHF_HEAD_SCORE ? n->head[4] + (ptrdiff_t)from * t->form->labels : NULL,
        .token_score = want & RLHF_HEAD_TOKEN_SCORE ? n->head[5] + base : NULL};
}

// Write the heads of the rows from `from` to `to` - 1 to their places in *out. If `train` is 1,
// also run backward(); t->weight has the derivatives of the loss with respect to the heads.
static int forward(struct trial *t, int32_t from, int32_t to, int32_t train, uint32_t flags,
                   struct numbers *out) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    int32_t offset[RLHF__CHECKED_ROWS + 1];
    const rlhf_batch batch = rlhf__checked_batch(&t->rows, from, to, offset);
    rlhf_forward how = {.size = sizeof how,
                        .heads = t->form->heads,
                        .train = train,
                        .flags = flags,
                        .dist = &whole};
    const rlhf_heads at = pointers(t, out, from), d = pointers(t, &t->weight, from);
    if (t->hidden) {
        how.kl_self = t->ref.t.self;
        how.kl_hidden = t->hidden + (ptrdiff_t)t->rows.offset[from] * t->ref.info.d_model;
    }
    rlhf__probe_begin(&t->m.t, "forward()");
    if (!rlhf__checked_fine(&t->m, RLHF__CHECK_FORWARD,
                            rlhf__checked_ops(&t->m)->forward(t->m.t.self, &batch, &how, &at)))
        return 0;
    if (!train) return 1;
    rlhf__probe_begin(&t->m.t, "backward()");
    return rlhf__checked_fine(&t->m, RLHF__CHECK_BACKWARD,
                              rlhf__checked_ops(&t->m)->backward(t->m.t.self, &batch, &how, &d));
}

// Set up the reference for kl: fill its parameters from the seed, then compute the hidden states of
// all rows.
static int refer(struct trial *t, uint32_t seed) {
    int32_t offset[RLHF__CHECKED_ROWS + 1];
    const rlhf_batch batch = rlhf__checked_batch(&t->rows, 0, RLHF__CHECKED_ROWS, offset);
    const rlhf_forward how = {.size = sizeof how, .heads = RLHF_HEAD_HIDDEN};
    if (!t->hidden) {
        t->hidden = calloc((size_t)batch.total * (size_t)t->m.info.d_model, sizeof *t->hidden);
        if (!t->hidden ||
            !rlhf__checked_open(t->m.t.check, &t->ref, 0, &(rlhf_model_open){.dtype = RLHF_F32}))
            return 0;
    }
    const rlhf_heads out = {.size = sizeof out, .hidden = t->hidden};
    if (!rlhf__checked_fill(&t->ref, seed, 0, 0)) return 0;
    rlhf__probe_begin(&t->ref.t, "forward()");
    return rlhf__checked_fine(
        &t->ref, RLHF__CHECK_FORWARD,
        rlhf__checked_ops(&t->ref)->forward(t->ref.t.self, &batch, &how, &out));
}

// ---- properties of the heads ----

static int is_given(const struct rlhf__checked_rows *r, int32_t at) {
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++)
        if (at < r->offset[i + 1]) return at >= r->offset[i] + r->prompt_len[i];
    return 0;
}

static int32_t length_of(const struct trial *t, int h) {
    return head[h].pooled ? RLHF__CHECKED_ROWS * t->form->labels
                          : t->rows.offset[RLHF__CHECKED_ROWS];
}

static const char *fault_of(const struct trial *t, int h, int32_t at, float x) {
    if (!isfinite(x)) return "which is not finite";
    if (!head[h].pooled && !is_given(&t->rows, at)) return x == 0 ? NULL : "of a prompt token";
    const double most = log((double)t->m.info.n_vocab) + 1e-4;
    if (head[h].bit == RLHF_HEAD_LOGP && !(x < 0)) return "which is not below 0";
    if (head[h].bit == RLHF_HEAD_ENTROPY && ((double)x < -1e-5 || (double)x > most))
        return "outside of 0 to the logarithm of the vocabulary";
    if (head[h].bit == RLHF_HEAD_KL && (double)x < -1e-5) return "which is below 0";
    return NULL;
}

// Check the numbers one by one. Check also that a row computed alone has the same bits.
static int check_numbers(struct trial *t, struct numbers *all) {
    struct numbers alone;
    memset(all, 0, sizeof *all);
    memset(&alone, 0, sizeof alone);
    if (!forward(t, 0, RLHF__CHECKED_ROWS, 0, 0, all)) return 0;
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++)
        if (!forward(t, i, i + 1, 0, 0, &alone)) return 0;
    for (int h = 0; h < HEADS; h++)
        for (int32_t at = 0; (t->form->heads & head[h].bit) && at < length_of(t, h); at++) {
            const float x = all->head[h][at], y = alone.head[h][at];
            const char *fault = fault_of(t, h, at, x);
            if (fault)
                rlhf__child_log_found(board_of(t),
                                      head[h].bit == RLHF_HEAD_LOGP ? RLHF__CHECK_LOGP
                                                                    : RLHF__CHECK_HEADS,
                                      "%s[%d] is %g, %s", head[h].name, at, (double)x, fault);
            else if (!rlhf__checked_same(x, y))
                rlhf__child_log_found(board_of(t), RLHF__CHECK_ROWS,
                                      "%s[%d] is %.9g among %d rows, and %.9g with its row alone",
                                      head[h].name, at, (double)x, RLHF__CHECKED_ROWS, (double)y);
            if (fault || !rlhf__checked_same(x, y)) return 0;
        }
    return 1;
}

static int check_kl(struct trial *t, struct numbers *n) {
    memset(n, 0, sizeof *n);
    if (!refer(t, 0) || !forward(t, 0, RLHF__CHECKED_ROWS, 0, 0, n)) return 0;
    for (int32_t at = 0; at < t->rows.offset[RLHF__CHECKED_ROWS]; at++)
        if (!(fabs((double)n->head[2][at]) < 1e-5)) {
            rlhf__child_log_found(board_of(t), RLHF__CHECK_KL, "kl[%d] of a model to itself is %g",
                                  at, (double)n->head[2][at]);
            return 0;
        }
    return refer(t, 1000); // another model as the reference
}

// If the adapter's matrix B is 0, the model must compute the same numbers with the adapter and
// without it (RLHF_FORWARD_BASE). With another B, the numbers must differ.
static int check_base(struct trial *t, struct numbers *with) {
    struct numbers base;
    for (int zero = 1; zero >= 0; zero--) {
        int same = 1;
        memset(with, 0, sizeof *with);
        memset(&base, 0, sizeof base);
        if (!rlhf__checked_fill(&t->m, 0, 0, zero ? RLHF__CHECKED_ZERO_B : 0) ||
            !forward(t, 0, RLHF__CHECKED_ROWS, 0, 0, with) ||
            !forward(t, 0, RLHF__CHECKED_ROWS, 0, RLHF_FORWARD_BASE, &base))
            return 0;
        for (int32_t at = 0; at < t->rows.offset[RLHF__CHECKED_ROWS]; at++)
            same &= rlhf__checked_same(with->head[0][at], base.head[0][at]);
        if (same == zero) continue;
        rlhf__child_log_found(
            board_of(t), RLHF__CHECK_ADAPTER,
            zero ? "with B = 0 the log-probs differ with RLHF_FORWARD_BASE and without"
                 : "with B that is not 0 the log-probs are those of the base");
        return 0;
    }
    return 1;
}

static double weighted(const struct trial *t, const struct numbers *n) {
    double sum = 0;
    for (int h = 0; h < HEADS; h++)
        for (int32_t at = 0; (t->form->heads & head[h].bit) && at < length_of(t, h); at++)
            sum += (double)t->weight.head[h][at] * (double)n->head[h][at];
    return sum;
}

// Returns the slope from central differences with step `eps`, or NaN if a call failed.
static double slope_at(struct trial *t, float eps, struct numbers *n) {
    double side[2];
    for (int k = 0; k < 2; k++) {
        memset(n, 0, sizeof *n);
        if (!rlhf__checked_fill(&t->m, 0, k ? -eps : eps, 0) ||
            !forward(t, 0, RLHF__CHECKED_ROWS, 0, 0, n))
            return NAN;
        side[k] = weighted(t, n);
    }
    return (side[0] - side[1]) / (2 * (double)eps);
}

// If the slopes differ, the step may have crossed the kink of an activation, so a shorter step is
// tried. Even for the shortest step, the tolerance is above the rounding error.
static void check_gradient(struct trial *t, struct numbers *n) {
    static const float steps[] = {2e-3f, 2e-4f, 5e-5f};
    double slope = 0;
    memset(n, 0, sizeof *n);
    if (!forward(t, 0, RLHF__CHECKED_ROWS, 1, 0, n)) return;
    const double given = rlhf__checked_along(&t->m);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        slope = slope_at(t, steps[i], n);
        if (isnan(slope) || fabs(slope - given) <= 0.02 * fabs(slope) + 0.02) return;
    }
    rlhf__child_log_found(
        board_of(t), RLHF__CHECK_BACKWARD,
        "%s: along a direction the gradients give %.6g; by differences it is %.6g", t->form->what,
        given, slope);
}

// ---- steps ----

static void weigh(struct trial *t) {
    for (int h = 0; h < HEADS; h++)
        rlhf__checked_weights(&t->rows, (uint32_t)h, t->weight.head[h]);
    for (int32_t at = 0; at < RLHF__CHECKED_ROWS * LABELS; at++)
        t->weight.head[4][at] = (float)(at % 5) / 4 - 0.4f;
}

static void try_form(struct rlhf__check *c, const struct form *form) {
    static const char *const all[] = {"all-linear"};
    static const rlhf_adapter adapter = {
        .size = sizeof adapter, .rank = 2, .scale = 1.5, .target = all, .n_targets = 1};
    const rlhf_model_open how = {.trainable = c->plugin->ops.model.backward != NULL,
                                 .n_labels = form->labels,
                                 .value_kind = form->value,
                                 .adapter = form->adapter ? &adapter : NULL};
    struct trial t = {.form = form, .m.may_refuse = form != forms};
    struct numbers n;
    if (rlhf__checked_open(c, &t.m, 0, &how)) {
        rlhf__checked_rows_make(&t.m, &t.rows);
        weigh(&t);
        if ((t.m.info.heads & form->heads) != form->heads)
            rlhf__child_log_fact(c->log, "%s: not tried: info() does not list it", form->what);
        else if ((form->adapter ? check_base(&t, &n) : rlhf__checked_fill(&t.m, 0, 0, 0)) &&
                 (!(form->heads & RLHF_HEAD_KL) || check_kl(&t, &n)) && check_numbers(&t, &n) &&
                 how.trainable)
            check_gradient(&t, &n);
    }
    rlhf__checked_close(&t.m);
    if (t.hidden) rlhf__checked_close(&t.ref);
    free(t.hidden);
}

// bf16 activations must match f32 within the precision of eight bits.
static void try_bf16(struct rlhf__check *c) {
    static const struct form form = {"bf16", RLHF_HEAD_LOGP, 0, 0, 0};
    struct numbers n[2];
    int made = 1;
    memset(n, 0, sizeof n);
    for (int k = 0; made && k < 2; k++) {
        struct trial t = {.form = &form, .m.may_refuse = 1};
        made =
            rlhf__checked_open(c, &t.m, 0, &(rlhf_model_open){.dtype = k ? RLHF_BF16 : RLHF_F32});
        if (made) rlhf__checked_rows_make(&t.m, &t.rows);
        made = made && rlhf__checked_fill(&t.m, 0, 0, 0) && check_numbers(&t, &n[k]);
        for (int32_t at = 0; made && k && at < t.rows.offset[RLHF__CHECKED_ROWS]; at++) {
            const double near = (double)n[0].head[0][at], is = (double)n[1].head[0][at];
            if (fabs(is - near) <= 0.05 + 0.05 * fabs(near)) continue;
            rlhf__child_log_found(c->log, RLHF__CHECK_ROUNDED,
                                  "logp[%d] is %g in bf16, and %g in f32", at, is, near);
            break;
        }
        rlhf__checked_close(&t.m);
    }
}

int rlhf__try_heads(struct rlhf__check *c, int32_t step) {
    rlhf_model_info info;
    if (step > FORMS) return 0;
    rlhf__child_log_doing(c->log, "%s", step < FORMS ? forms[step].what : "bf16");
    if (!rlhf__checked_is_small(c, 0, &info)) return 1;
    if (step == FORMS && (info.heads & RLHF_HEAD_LOGP)) try_bf16(c);
    if (step == FORMS || (forms[step].adapter && !(info.caps & RLHF_CAP_ADAPTER))) return 1;
    try_form(c, &forms[step]);
    return 1;
}
