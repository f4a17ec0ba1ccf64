// evaluate_preferences.c: the part of evaluate.h about preferences, for a reward model or a policy.
#include "batch/preference_source.h"
#include "learn/evaluate.h"
#include "learn/pass_share.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>

#define CHUNK_ROWS 64 // rows at a time; fewer if they reach RLHF__MICROBATCH_TOKENS tokens

// Returns the mean of a row's k rewards without r[best].
static double mean_of_others(const float *r, int32_t k, int32_t best) {
    double others = 0;
    for (int32_t j = 0; j < k; j++)
        if (j != best) others += (double)r[j];
    return others / (double)(k - 1);
}

// Count a row with k rewards; r[best] is the reward of the preferred response.
static void count_row(const float *r, int32_t k, int32_t best,
                      struct rlhf__preference_quality *out) {
    const struct rlhf__peak p = rlhf__peak_of(r, k);
    int right = 1;
    for (int32_t j = 0; j < k; j++)
        right &= j == best || r[j] < r[best];
    out->rows++;
    out->correct += right;
    out->nats += (double)r[p.at] + rlhf_log(p.sum) - (double)r[best];
    out->margin += (double)r[best] - mean_of_others(r, k, best);
}

// Count one completion with its reward.
static void count_completion(float r, int32_t best, struct rlhf__completion_quality *out) {
    out->rows[best == 0]++;
    out->reward[best == 0] += (double)r;
}

// The model to measure. If rm is NULL, it is a policy, perhaps with a reference. Otherwise it is a
// reward model.
struct measured {
    const struct rlhf__reward_model *rm;
    const struct rlhf__model *policy, *reference;
    const struct rlhf__evaluating *how;
};

// Add sign * the log-probability of row i's response to score[i].
static rlhf_status add_logp(struct rlhf__team *team, const struct rlhf__model *m,
                            const struct rlhf__rows *e, float sign, struct rlhf__error *err) {
    rlhf_dist dist = RLHF_DIST_WHOLE;
    float *logp = e->token[RLHF__LOGP_OLD];
    struct rlhf__pass_out pass = {.logp = logp};
    rlhf_status st = rlhf__pass_share(team, m, e, &dist, RLHF__MICROBATCH_TOKENS, &pass, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++) {
        double sum = 0;
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
            sum += (double)logp[k];
        e->score[i] += sign * (float)sum;
    }
    return st;
}

static rlhf_status check_cancelled(const struct measured *m, struct rlhf__error *err) {
    if (!m->how->cancelled || !*m->how->cancelled) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_CANCELLED, "stopped while the rows were measured");
}

// Set score[i] to the model's value of row i: a reward, or the policy's log-prob.
static rlhf_status score(const struct measured *m, const struct rlhf__rows *e,
                         struct rlhf__error *err) {
    if (m->rm)
        return rlhf__reward_model_score(m->rm, e->n, e->ids, e->offset, e->prompt_len, 0, e->score,
                                        NULL, err);
    return add_logp(m->how->team, m->policy, e, 1, err);
}

// The result to add to; the other member is NULL.
struct counted {
    struct rlhf__preference_quality *preferences;
    struct rlhf__completion_quality *completions;
};

// Add up the model's values of the responses; a reference's log-probs are not subtracted.
static void count_own(const struct rlhf__preferences *set, const int64_t *pick, uint32_t n,
                      const float *score, struct rlhf__preference_quality *out) {
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        out->chosen += (double)score[p.best];
        out->rejected += mean_of_others(score, p.n, p.best);
        score += p.n;
    }
}

static rlhf_status score_rows(const struct measured *m, const struct rlhf__preferences *set,
                              const int64_t *pick, uint32_t n, const struct counted *out,
                              struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    rlhf_status st = rlhf__preference_rows(set, pick, n, &e, err);
    if (st != RLHF_OK) return st;
    st = score(m, &e, err);
    if (st == RLHF_OK && out->preferences) count_own(set, pick, n, e.score, out->preferences);
    if (st == RLHF_OK) st = check_cancelled(m, err);
    if (st == RLHF_OK && m->reference) st = add_logp(m->how->team, m->reference, &e, -1, err);
    uint32_t at = 0;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        if (out->completions)
            count_completion(e.score[at], p.best, out->completions);
        else
            count_row(e.score + at, p.n, p.best, out->preferences);
        at += (uint32_t)p.n;
    }
    rlhf__rows_finish(&e);
    return st;
}

static int64_t tokens_of(const struct rlhf__preference *p) {
    int64_t tokens = 0;
    for (int32_t k = 0; k < p->n; k++)
        tokens += p->n_prompt + p->len[k];
    return tokens;
}

// Pick the next of the first `rows` rows, from `at` onward. Returns their number, which is small,
// so that cancelling takes effect soon.
static uint32_t pick_chunk(const struct rlhf__preferences *set, int64_t at, int64_t rows,
                           int64_t *pick) {
    int64_t tokens = 0;
    uint32_t n = 0;
    while (n < CHUNK_ROWS && at + n < rows && tokens < RLHF__MICROBATCH_TOKENS) {
        const struct rlhf__preference p = rlhf__preferences_get(set, at + n);
        tokens += tokens_of(&p);
        pick[n] = at + n;
        n++;
    }
    return n;
}

static rlhf_status measure(const struct measured *m, const struct rlhf__preferences *set,
                           const struct counted *out, struct rlhf__error *err) {
    const int64_t rows = rlhf__evaluating_rows(m->how, rlhf__preferences_count(set));
    int64_t pick[CHUNK_ROWS];
    rlhf_status st = RLHF_OK;
    for (int64_t at = 0; st == RLHF_OK && at < rows;) {
        const uint32_t n = pick_chunk(set, at, rows, pick);
        st = check_cancelled(m, err);
        if (st == RLHF_OK) st = score_rows(m, set, pick, n, out, err);
        at += n;
    }
    return st;
}

rlhf_status rlhf__evaluate_preferences(const struct rlhf__reward_model *rm,
                                       const struct rlhf__preferences *set,
                                       const struct rlhf__evaluating *how,
                                       struct rlhf__preference_quality *out,
                                       struct rlhf__error *err) {
    *out = (struct rlhf__preference_quality){0};
    return measure(&(struct measured){.rm = rm, .how = how}, set,
                   &(struct counted){.preferences = out}, err);
}

rlhf_status rlhf__evaluate_policy_preferences(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const struct rlhf__evaluating *how,
                                              struct rlhf__preference_quality *out,
                                              struct rlhf__error *err) {
    *out = (struct rlhf__preference_quality){0};
    return measure(&(struct measured){.policy = policy, .reference = reference, .how = how}, set,
                   &(struct counted){.preferences = out}, err);
}

rlhf_status rlhf__evaluate_policy_completions(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const struct rlhf__evaluating *how,
                                              struct rlhf__completion_quality *out,
                                              struct rlhf__error *err) {
    *out = (struct rlhf__completion_quality){0};
    return measure(&(struct measured){.policy = policy, .reference = reference, .how = how}, set,
                   &(struct counted){.completions = out}, err);
}
