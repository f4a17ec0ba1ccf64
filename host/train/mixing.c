// mixing.c: see mixing.h.
#include "train/mixing.h"

#include <math.h>

#define NORMALISE_EPS 1e-5

void rlhf__mean_std(const float *x, const uint8_t *keep, uint32_t n, double *mean, double *std) {
    double sum = 0, square = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (keep && !keep[i]) continue;
        sum += (double)x[i];
        count++;
    }
    *mean = count ? sum / count : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (keep && !keep[i]) continue;
        square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    }
    *std = count ? sqrt(square / count) : 0;
}

// score[i] += weight * x[i], normalised first when asked.
static void add(float *score, const float *x, const uint8_t *keep, uint32_t n, double weight,
                int normalise) {
    double mean = 0, std = 0;
    if (normalise) rlhf__mean_std(x, keep, n, &mean, &std);
    double scale = normalise ? weight / (std + NORMALISE_EPS) : weight;
    for (uint32_t i = 0; i < n; i++)
        score[i] += (float)(scale * ((double)x[i] - mean));
}

static float penalised(const struct rlhf__response_config *r, float score, int no_period,
                       int finished) {
    if (r->truncate == RLHF__TRUNCATE_PERIOD && no_period) score = (float)r->period_penalty;
    if (finished || r->non_stop == RLHF__NON_STOP_NONE) return score;
    if (r->non_stop == RLHF__NON_STOP_REPLACE) return (float)r->non_stop_penalty;
    return (float)((double)score - r->non_stop_penalty);
}

void rlhf__mix(const struct rlhf__config *c, const float *raw, const uint8_t *keep,
               const uint8_t *finished, const uint8_t *no_period, uint32_t n, float *score) {
    int before = c->rewards.normalize == RLHF__NORMALIZE_BEFORE;
    for (uint32_t i = 0; i < n; i++)
        score[i] = 0;
    for (size_t k = 0; k < c->n_reward; k++)
        add(score, raw + k * n, keep, n, c->reward[k].weight, before);
    double mean = 0, std = 0;
    if (c->rewards.normalize == RLHF__NORMALIZE_AFTER) rlhf__mean_std(score, keep, n, &mean, &std);
    for (uint32_t i = 0; i < n; i++) {
        if (c->rewards.normalize == RLHF__NORMALIZE_AFTER)
            score[i] = (float)(((double)score[i] - mean) / (std + NORMALISE_EPS));
        float limit = (float)c->rewards.clip;
        if (limit > 0 && score[i] > limit) score[i] = limit;
        if (limit > 0 && score[i] < -limit) score[i] = -limit;
        score[i] = keep[i] ? penalised(&c->response, score[i], no_period[i], finished[i]) : 0;
    }
}
