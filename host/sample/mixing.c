// mixing.c: see mixing.h.
#include "sample/mixing.h"

#include <math.h>
#include <string.h>

#define NORMALIZE_EPS 1e-5

static int counts(const uint8_t *keep, const uint8_t *missing, uint32_t i) {
    return (!keep || keep[i]) && (!missing || !missing[i]);
}

uint32_t rlhf__mean_std(const float *x, const uint8_t *keep, const uint8_t *missing, uint32_t n,
                        double *mean, double *std) {
    double sum = 0, square = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!counts(keep, missing, i)) continue;
        sum += (double)x[i];
        count++;
    }
    *mean = count ? sum / count : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!counts(keep, missing, i)) continue;
        square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    }
    *std = count ? sqrt(square / count) : 0;
    return count;
}

static double token_sum(const struct rlhf__rows *e, uint32_t i) {
    double sum = 0;
    for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
        sum += (double)e->token[RLHF__TOKEN_REWARD][k];
    return sum;
}

static void scale_tokens(struct rlhf__rows *e, uint32_t i, double scale) {
    float *token = e->token[RLHF__TOKEN_REWARD];
    for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
        token[k] = scale == 0 ? 0 : (float)(scale * (double)token[k]);
}

static void take_reward(struct rlhf__rows *e, uint32_t i) {
    e->reward[i] = (float)((double)e->score[i] + token_sum(e, i));
}

void rlhf__rows_sum_rewards(struct rlhf__rows *e) {
    for (uint32_t i = 0; i < e->n; i++)
        take_reward(e, i);
}

// Returns the weight of a reward that is normalized by its standard deviation. A reward without
// spread gets the weight 0: it contains no information, and dividing by almost 0 would magnify its
// token rewards.
static double normalized(double weight, double std) {
    return std > 0 ? weight / (std + NORMALIZE_EPS) : 0;
}

// Add one reward to the rewards of the batch. If `normalize` is 1, normalizes it first.
static void add(struct rlhf__rows *e, const struct rlhf__reward_parts *parts, const uint8_t *keep,
                double weight, int normalize) {
    double mean = 0, std = 0;
    if (normalize) rlhf__mean_std(parts->row, keep, parts->missing, e->n, &mean, &std);
    double scale = normalize ? normalized(weight, std) : weight;
    float *sum = e->token[RLHF__TOKEN_REWARD];
    for (uint32_t i = 0; i < e->n; i++) {
        if (parts->missing && parts->missing[i]) continue;
        e->score[i] += (float)(scale * ((double)parts->seq[i] - mean));
        for (int32_t k = e->offset[i] + e->prompt_len[i]; parts->token && k < e->offset[i + 1]; k++)
            sum[k] += (float)(scale * (double)parts->token[k]);
    }
}

static void normalize_row(struct rlhf__rows *e, uint32_t i, double mean, double std) {
    double moved = (double)e->score[i] - mean;
    e->score[i] = std > 0 ? (float)(moved / (std + NORMALIZE_EPS)) : 0;
    scale_tokens(e, i, normalized(1, std));
    take_reward(e, i);
}

// Clip row i, whose reward is in e->reward.
static void clip(struct rlhf__rows *e, uint32_t i, double limit) {
    double reward = (double)e->reward[i];
    if (!(limit > 0 && fabs(reward) > limit)) return;
    scale_tokens(e, i, limit / fabs(reward));
    e->score[i] = (float)(copysign(limit, reward) - token_sum(e, i));
}

static void fix_score(struct rlhf__rows *e, uint32_t i, double score) {
    e->score[i] = (float)score;
    scale_tokens(e, i, 0);
}

static void penalize(struct rlhf__rows *e, uint32_t i, const struct rlhf__response_config *r,
                     int no_period) {
    if (r->truncate == RLHF__TRUNCATE_PERIOD && no_period) fix_score(e, i, r->period_penalty);
    if (e->finished[i] || r->non_stop == RLHF__NON_STOP_NONE) return;
    if (r->non_stop == RLHF__NON_STOP_REPLACE)
        fix_score(e, i, r->non_stop_penalty);
    else
        e->score[i] = (float)((double)e->score[i] - r->non_stop_penalty);
}

void rlhf__mix(const struct rlhf__config *c, const struct rlhf__reward_parts *parts,
               const uint8_t *keep, const uint8_t *unpaid, const uint8_t *no_period,
               struct rlhf__rows *e) {
    memset(e->score, 0, e->n * sizeof *e->score);
    memset(e->token[RLHF__TOKEN_REWARD], 0, e->total * sizeof(float));
    for (size_t k = 0; k < c->n_reward; k++)
        add(e, &parts[k], keep, c->reward[k].weight, c->mixing.normalize == RLHF__NORMALIZE_BEFORE);
    if (c->environment.plugin && e->paid)
        add(e, &parts[c->n_reward], keep, c->environment.weight,
            c->mixing.normalize == RLHF__NORMALIZE_BEFORE);
    for (uint32_t i = 0; i < e->n; i++)
        take_reward(e, i);
    double mean = 0, std = 0;
    int after = c->mixing.normalize == RLHF__NORMALIZE_AFTER;
    if (after) rlhf__mean_std(e->reward, keep, unpaid, e->n, &mean, &std);
    for (uint32_t i = 0; i < e->n; i++) {
        if (after && !(unpaid && unpaid[i])) normalize_row(e, i, mean, std);
        clip(e, i, (double)(float)c->mixing.clip);
        if (keep[i])
            penalize(e, i, &c->response, no_period[i]);
        else
            fix_score(e, i, 0);
        take_reward(e, i);
    }
}
