// findings.c: see findings.h.
#include "report/findings.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- gradients ----

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Returns the median gradient norm of the earlier phases. If there are none, returns the first norm
// of this phase.
static double usual_norm(const struct rlhf__findings *f, const struct rlhf__phase_numbers *p) {
    double sorted[RLHF__FINDINGS_NORMS];
    if (f->norms == 0) return p->norm_first;
    memcpy(sorted, f->norm, (size_t)f->norms * sizeof *sorted);
    qsort(sorted, (size_t)f->norms, sizeof *sorted, by_value);
    return sorted[f->norms / 2];
}

// Store the norm of a phase. A norm of 0 is left out, because the phase gave no learning signal.
static void note_norm(struct rlhf__findings *f, double norm) {
    if (!(norm > 0) || !isfinite(norm)) return;
    if (f->norms == RLHF__FINDINGS_NORMS)
        memmove(f->norm, f->norm + 1, (size_t)--f->norms * sizeof *f->norm);
    f->norm[f->norms++] = norm;
}

static int explodes(double norm, double usual) {
    return usual > 0 && norm > RLHF__NORM_EXPLODES * usual && norm > RLHF__NORM_LARGE;
}

// ---- distance and entropy ----

// Returns 1 if low entropy is a success and not a collapse, i.e. if a reward checks answers and
// more of them are right than in the first phase.
static int is_surely_right(const struct rlhf__findings *f, const struct rlhf__phase_numbers *p) {
    return !isnan(p->correct) && !isnan(f->correct) && p->correct > f->correct;
}

static int is_too_sure(const struct rlhf__findings *f, const struct rlhf__phase_numbers *p) {
    return f->entropy > 0 && p->entropy < RLHF__COLLAPSED_ENTROPY * f->entropy &&
           !is_surely_right(f, p);
}

// ---- a phase ----

static uint32_t if_true(int is, uint32_t what) { return is ? what : 0; }

struct rlhf__found rlhf__findings_judge(struct rlhf__findings *f,
                                        const struct rlhf__phase_numbers *p) {
    struct rlhf__found out = {.kl_before = f->kl, .usual_norm = usual_norm(f, p)};
    const int jumped = p->kl - f->kl > RLHF__KL_JUMP;
    const int exploded = explodes(p->norm_max, out.usual_norm);
    f->is_collapsed = is_too_sure(f, p);
    f->is_far = p->kl > RLHF__FAR_KL;
    // Report a collapse or a large distance, but not the jump that led to it.
    if (f->is_collapsed || f->is_far) f->said |= RLHF__JUMPED;
    const double limit = RLHF__RULE_LOSS_FACTOR * f->loss + RLHF__RULE_LOSS_MARGIN;
    const int diverged = f->phases > 0 && p->loss > limit;
    // Report a loss that has diverged, but not the gradients that exploded at the same time.
    if (diverged) f->said |= RLHF__EXPLODED | RLHF__FELL;
    // A bounded loss cannot diverge, even if the policy gives the preferred responses much less
    // probability. Therefore check the log-probs of these responses too.
    const int fell = p->fall > RLHF__FALL;
    out.what = if_true(f->is_collapsed, RLHF__COLLAPSED) |
               if_true(f->is_far && !f->is_collapsed, RLHF__FAR) | if_true(jumped, RLHF__JUMPED) |
               if_true(exploded, RLHF__EXPLODED) | if_true(diverged, RLHF__DIVERGED) |
               if_true(fell, RLHF__FELL) | if_true(p->cut_off >= RLHF__CUT_OFF, RLHF__ALL_CUT_OFF);
    out.what &= ~(uint32_t)f->said;
    // After the policy has been reported as lost, drop all later findings, because they are only
    // consequences. If the policy is reported as lost in this phase, drop this phase's finding
    // about cut-off responses for the same reason.
    if (f->said & RLHF__LOST) out.what = 0;
    if (out.what & RLHF__LOST) out.what &= ~(uint32_t)RLHF__ALL_CUT_OFF;
    f->said |= out.what;
    f->reported |= out.what;
    if ((jumped || exploded) && f->wild == 0) f->wild = f->phases + 1;
    note_norm(f, p->norm);
    if (!isnan(p->kl)) f->kl = p->kl;
    if (f->phases == 0) f->correct = p->correct;
    if (f->phases == 0) f->loss = p->loss;
    if (f->phases == 0 && p->entropy > 0) f->entropy = p->entropy;
    f->phases++;
    return out;
}

// ---- trends ----

// The bits that stand for the notes. Checkpoints store them, so they never change.
static const struct {
    const char *id;
    int64_t bit;
} trends[] = {
    {"collapsed", RLHF__COLLAPSED},
    {"cut_off", RLHF__ALL_CUT_OFF},
    {"fell_apart", 1 << 8},
    {"hacked", 1 << 9},
    {"flat_groups", RLHF__FLAT_GROUPS},
    {"right_answers_fell", 1 << 12},
    {"negative_weights", 1 << 13},
    {"drowned", 1 << 14},
    {"lost_reward", 1 << 15},
    {"measure_worse", 1 << 16},
    {"lengths", 1 << 17},
    {"clipped", 1 << 18},
    {"critic", 1 << 19},
    {"silent_reward", 1 << 21},
};

// Returns 1 if the note `id` is still reported after the policy was reported as lost (RLHF__LOST).
// Two of these notes name a cause. The third note is about a collapse, which is news if the policy
// was reported as lost only because it is far from the reference.
static int is_said_after(const char *id) {
    return strcmp(id, "right_answers_fell") == 0 || strcmp(id, "negative_weights") == 0 ||
           strcmp(id, "collapsed") == 0;
}

int rlhf__findings_note(struct rlhf__findings *f, const struct rlhf__run_note *n) {
    int64_t bit = 0;
    for (size_t i = 0; i < sizeof trends / sizeof *trends; i++)
        if (strcmp(trends[i].id, n->id) == 0) bit = trends[i].bit;
    if (n->level == RLHF__NOTE_INFO || n->held.n < RLHF__TREND_LASTED) return 0;
    if (!bit || (f->said & bit)) return 0;
    if ((f->said & RLHF__LOST) && !is_said_after(n->id)) return 0;
    f->said |= bit;
    return 1;
}

int rlhf__findings_once(struct rlhf__findings *f, uint32_t finding) {
    if (f->said & finding) return 0;
    f->said |= finding;
    return 1;
}

// ---- state ----

// JSON cannot hold infinity and NaN: they are written as null.
static json_t *real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *rlhf__findings_save(const struct rlhf__findings *f) {
    json_t *norms = json_array();
    for (int64_t i = 0; norms && i < f->norms; i++)
        if (json_array_append_new(norms, json_real(f->norm[i])) != 0) {
            json_decref(norms);
            return NULL;
        }
    return json_pack("{s:I, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "phases",
                     (json_int_t)f->phases, "entropy", f->entropy, "correct", real(f->correct),
                     "kl", real(f->kl), "loss", real(f->loss), "norms", norms, "said",
                     (json_int_t)f->said, "reported", (json_int_t)f->reported, "wild",
                     (json_int_t)f->wild);
}

// Read a number. A JSON null stands for a number that was not finite. In that case sets *out to
// `null`.
static int take(const json_t *v, const char *key, double null, double *out) {
    const json_t *x = json_object_get(v, key);
    *out = json_is_null(x) ? null : json_number_value(x);
    return json_is_null(x) || json_is_number(x);
}

rlhf_status rlhf__findings_load(struct rlhf__findings *f, const json_t *v,
                                struct rlhf__error *err) {
    *f = (struct rlhf__findings){0};
    if (!v) return RLHF_OK;
    const struct rlhf__json_count counts[] = {
        {"phases", &f->phases}, {"said", &f->said}, {"wild", &f->wild}, {"reported", &f->reported}};
    const json_t *norms = json_object_get(v, "norms");
    RLHF_TRY(rlhf__json_counts(v, counts, sizeof counts / sizeof *counts, err));
    if (!take(v, "entropy", 0, &f->entropy) || !take(v, "correct", NAN, &f->correct) ||
        !take(v, "kl", INFINITY, &f->kl) || !take(v, "loss", NAN, &f->loss) ||
        !json_is_array(norms) || json_array_size(norms) > RLHF__FINDINGS_NORMS)
        return rlhf__fail(err, RLHF_E_INVALID, "run.json: findings is damaged");
    for (; (size_t)f->norms < json_array_size(norms); f->norms++)
        f->norm[f->norms] = json_number_value(json_array_get(norms, (size_t)f->norms));
    return RLHF_OK;
}
