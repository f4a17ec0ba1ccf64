// ppo_advantages.c: computes advantages and returns from a rollout's scores, log-probs and values.
//
//   1. scores, normalized if requested        4. advantages and returns
//   2. per-token rewards with the KL penalty  5. whiten advantages
//   3. whiten rewards                         6. copy to the rollout's arrays
//
// Steps 2 to 5 work on arrays of doubles that contain only the response tokens of all rows, in
// order.
#include "ppo.h"

#include "common/terms.h"

#include <math.h>

// The arrays of one call: n rows, m response tokens.
struct work {
    const rlhf_rollout *in;
    int64_t n, m;
    double *reward, *value, *advantage, *returns; // [m]
    double *score, *plain, *row; // [n] the score, with token rewards, and the advantage of each row
    int64_t *order;              // [n]
    double token_scale;          // scale of token rewards
    int32_t counts;              // 1: this call counts toward the metrics
};

static rlhf_status work_init(struct rlhf__ppo *p, const rlhf_rollout *in,
                             const rlhf_advantages *out, struct work *w) {
    w->in = in;
    RLHF_TRY(rlhf__pg_begin(&p->pg, in, out, 4, 4, &w->reward, &w->counts));
    w->n = in->n;
    w->m = rlhf__response_tokens(in->offset, in->prompt_len, in->n);
    w->value = w->reward + w->m;
    w->advantage = w->value + w->m;
    w->returns = w->advantage + w->m;
    w->score = w->returns + w->m;
    w->plain = w->score + w->n;
    w->row = w->plain + w->n;
    w->order = (int64_t *)(void *)(w->row + w->n);
    return RLHF_OK;
}

// The total reward of row i of the phase's batch.
static double batch_reward(const rlhf_rollout *in, int64_t i) {
    return RLHF_HAS(rlhf_rollout, in, batch_score) ? (double)in->batch_score[i]
                                                   : rlhf__row_reward(in, i);
}

// Copy the scores as doubles. normalize_scores standardizes the rows' total rewards over the
// phase's batch. For this, the mean of the totals is subtracted from each score, and both the
// scores and the token rewards are divided by the standard deviation of the totals.
static void take_scores(const struct rlhf__ppo *p, struct work *w) {
    const rlhf_rollout *in = w->in;
    w->token_scale = 1;
    for (int64_t i = 0; i < w->n; i++)
        w->score[i] = (double)in->score[i];
    if (!p->opt.normalize_scores) return;
    int64_t count = RLHF_HAS(rlhf_rollout, in, batch_n) ? (int64_t)in->batch_n : w->n;
    double mean = 0, m2 = 0;
    int spread = 0;
    for (int64_t i = 0; i < count; i++)
        mean += batch_reward(in, i) / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double x = batch_reward(in, i);
        m2 += (x - mean) * (x - mean);
        spread |= x != batch_reward(in, 0);
    }
    double scale = 1.0 / (sqrt(count > 1 ? m2 / (double)(count - 1) : 0) + 1e-5);
    if (!spread) scale = 0; // equal rows give no signal, per token or per row
    w->token_scale = scale;
    for (int64_t i = 0; i < w->n; i++)
        w->score[i] = (w->score[i] - mean) * scale;
}

// Fills reward[] and value[] for row i. Entry c of these arrays belongs to the row's first response
// token.
static rlhf_status fill_row(struct rlhf__ppo *p, struct work *w, int64_t i, int64_t c) {
    const rlhf_rollout *in = w->in;
    struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
    int everywhere = p->opt.advantage == RLHF__PPO_BROADCAST_REWARD;
    w->plain[i] = w->score[i];
    for (int64_t t = row.begin; t < row.end; t++, c++) {
        double r = w->token_scale * (double)in->token_reward[t];
        w->plain[i] += r;
        if (p->pg.opt.kl_placement == RLHF__KL_IN_REWARD) {
            double kl;
            RLHF_TRY(rlhf__kl_of_token(p->pg.host, p->pg.opt.kl_estimator, in, i, t, &kl));
            r -= p->pg.kl.coef * kl;
        }
        if (everywhere || t == row.end - 1) r += w->score[i];
        w->reward[c] = r;
        w->value[c] = in->value_old ? (double)in->value_old[t] : 0;
    }
    if (w->counts) rlhf__count_row(&p->pg.metrics.rollout, p->pg.opt.kl_estimator, in, row);
    return RLHF_OK;
}

// Computes one advantage per token. Without a critic, the values are 0 and lambda is 1, so the
// advantage is the reward-to-go.
static void by_token(const struct rlhf__ppo *p, struct work *w) {
    const rlhf_rollout *in = w->in;
    const double lambda = p->opt.advantage == RLHF__PPO_REWARD_TO_GO ? 1 : p->opt.lambda;
    for (int64_t i = 0, c = 0; i < w->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t len = row.end - row.begin;
        if (p->opt.advantage == RLHF__PPO_ONE_STEP)
            rlhf__one_step(w->reward + c, w->value + c, len, w->advantage + c, w->returns + c);
        else
            rlhf__gae(w->reward + c, w->value + c, len, p->opt.gamma, lambda, w->advantage + c,
                      w->returns + c);
        c += len;
    }
}

// Computes one advantage per row, the normalized sum of the row's rewards, and copies it to every
// token of the row. The returns are not normalized.
static void by_row(const struct rlhf__ppo *p, struct work *w) {
    const rlhf_rollout *in = w->in;
    const struct rlhf__ppo_options *o = &p->opt;
    int32_t unbiased = o->advantage_std == RLHF__STD_UNBIASED;
    for (int64_t i = 0, c = 0; i < w->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        double sum = 0;
        for (int64_t k = c; k < c + row.end - row.begin; k++)
            sum += w->reward[k];
        if (row.end == row.begin) sum = w->score[i]; // an empty response has a score, but no tokens
        for (int64_t k = c; k < c + row.end - row.begin; k++)
            w->returns[k] = sum;
        w->row[i] = w->score[i] = sum;
        c += row.end - row.begin;
    }
    if (o->advantage == RLHF__PPO_SEQUENCE)
        rlhf__standardize(w->row, w->n, o->advantage_eps, unbiased);
    else
        rlhf__group_normalize(w->score, in->group, w->n, o->advantage_eps, unbiased,
                              o->advantage == RLHF__PPO_GROUP, w->order, w->row);
    for (int64_t i = 0, c = 0; i < w->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        for (int64_t t = row.begin; t < row.end; t++)
            w->advantage[c++] = w->row[i];
    }
}

static rlhf_status count_batch(struct rlhf__ppo *p, const struct work *w) {
    struct rlhf__pg_rollout_sums *r = &p->pg.metrics.rollout;
    const rlhf_rollout *in = w->in;
    for (int64_t i = 0; i < w->n; i++)
        r->score += rlhf__row_reward(in, i);
    r->returns = rlhf__moments_merge(r->returns, rlhf__moments(w->returns, w->m));
    r->values = rlhf__moments_merge(r->values, rlhf__moments(w->value, w->m));
    return rlhf__pg_take_rows(p->pg.host, &p->pg.metrics, in, w->plain, w->plain, p->pg.together);
}

static void store(const struct work *w, rlhf_advantages *out) {
    const rlhf_rollout *in = w->in;
    for (int64_t i = 0, c = 0; i < w->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        for (int64_t t = row.begin; t < row.end; t++, c++) {
            out->advantage[t] = (float)w->advantage[c];
            out->returns[t] = (float)w->returns[c];
        }
    }
}

rlhf_status rlhf__ppo_advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct rlhf__ppo *p = self;
    const struct rlhf__ppo_options *o = &p->opt;
    struct work w = {0};
    RLHF_TRY(work_init(p, in, out, &w));
    take_scores(p, &w);
    for (int64_t i = 0, c = 0; i < w.n; i++) {
        RLHF_TRY(fill_row(p, &w, i, c));
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        c += row.end - row.begin;
    }
    if (o->whiten_rewards) rlhf__whiten(w.reward, w.m, o->whiten_form, o->whiten_eps, 0);
    if (p->pg.critic || o->advantage == RLHF__PPO_REWARD_TO_GO)
        by_token(p, &w);
    else
        by_row(p, &w);
    if (w.counts) RLHF_TRY(count_batch(p, &w));
    if (rlhf__ppo_whitens_advantages(o))
        rlhf__whiten(w.advantage, w.m, o->whiten_form, o->whiten_eps, 1);
    store(&w, out);
    return rlhf__pg_uses(&p->pg, in, out, w.counts);
}
