// reward_head.c: see reward_head.h.
#include "model/reward_head.h"

#include <math.h>
#include <string.h>

static rlhf_status bad(const char *file, const char *what, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s", file, what);
}

rlhf_status rlhf__reward_head_read(const json_t *config, const char *file,
                                   struct rlhf__reward_head *out, int *found,
                                   struct rlhf__error *err) {
    *out = (struct rlhf__reward_head){RLHF_POOL_MEAN, 0, 1, 0};
    const json_t *v = json_object_get(config, "rlhf_reward");
    *found = v != NULL;
    if (!v) return RLHF_OK;
    if (!json_is_object(v)) return bad(file, "rlhf_reward must be an object", err);
    const char *pooling = json_string_value(json_object_get(v, "pooling"));
    const json_t *gain = json_object_get(v, "gain"), *bias = json_object_get(v, "bias");
    if (!pooling || (strcmp(pooling, "mean") != 0 && strcmp(pooling, "last") != 0))
        return bad(file, "rlhf_reward.pooling must be one of mean, last", err);
    if (!json_is_number(gain) || !(json_number_value(gain) > 0))
        return bad(file, "rlhf_reward.gain must be a number above 0", err);
    if (!json_is_number(bias)) return bad(file, "rlhf_reward.bias must be a number", err);
    out->pooling = strcmp(pooling, "mean") == 0 ? RLHF_POOL_MEAN : RLHF_POOL_LAST;
    out->gain = json_number_value(gain);
    out->bias = json_number_value(bias);
    return RLHF_OK;
}

rlhf_status rlhf__reward_head_write(const struct rlhf__reward_head *h, json_t *config,
                                    struct rlhf__error *err) {
    json_t *v =
        json_pack("{s:s, s:f, s:f}", "pooling", h->pooling == RLHF_POOL_LAST ? "last" : "mean",
                  "gain", h->gain, "bias", h->bias);
    if (v && json_object_set_new(config, "rlhf_reward", v) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for config.json");
}

void rlhf__reward_pool(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                       const int32_t *prompt_len, const float *raw, float *seq) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t begin = offset[i] + prompt_len[i], end = offset[i + 1];
        double sum = 0;
        if (begin < end && h->pooling == RLHF_POOL_LAST) begin = end - 1;
        for (int32_t k = begin; k < end; k++)
            sum += (double)raw[k];
        double pooled = begin < end ? sum / (double)(end - begin) : 0;
        seq[i] = (float)(h->gain * pooled + h->bias);
    }
}

void rlhf__reward_pool_bwd(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                           const int32_t *prompt_len, const float *d_seq, float *d_raw) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t begin = offset[i] + prompt_len[i], end = offset[i + 1];
        if (begin >= end) continue;
        if (h->pooling == RLHF_POOL_LAST) begin = end - 1;
        double d = h->gain * (double)d_seq[i] / (double)(end - begin);
        for (int32_t k = begin; k < end; k++)
            d_raw[k] += (float)d;
    }
}

int rlhf__reward_fit(struct rlhf__reward_head *h, const float *raw, size_t n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)raw[i];
    double mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        square += ((double)raw[i] - mean) * ((double)raw[i] - mean);
    double sd = n ? sqrt(square / (double)n) : 0;
    // Equal scores may differ from their mean by rounding, which does not count as spread.
    if (n < 2 || !isfinite(sd) || !(sd > 1e-7 * (1 + fabs(mean)))) return 0;
    h->gain = 1 / sd;
    h->bias = -mean / sd;
    return 1;
}
