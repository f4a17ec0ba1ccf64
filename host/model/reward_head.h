// reward_head.h: from raw scores a token to rewards: pooling over a response, gain and bias; their
// derivative; their fit; and where config.json keeps them.
//
// reward(token) = gain * raw + bias; reward(response) = the mean over its tokens, or the last one.
// Stiennon et al. 2020 and Ziegler et al. 2019 (gain and bias, last token); DeepSeekMath, Shao et
// al. 2024 (mean). It holds numbers only; the model that gives raw scores is reward_model.h's.
#ifndef RLHF_HOST_REWARD_HEAD_H
#define RLHF_HOST_REWARD_HEAD_H

#include "base/error.h"

#include <jansson.h>
#include <rlhf/model.h>

struct rlhf__reward_head {
    int32_t pooling; // RLHF_POOL_MEAN or RLHF_POOL_LAST, over response tokens
    int32_t reserved;
    double gain, bias;
};

// Reads "rlhf_reward": {"pooling", "gain", "bias"} of a config.json. Returns 1 if the config is
// that of a reward model; otherwise *out is a new head: mean, gain 1, bias 0. file is the config's,
// for the message. Errors: RLHF_E_INVALID (a member that is missing, of the wrong type or out of
// range). [any]
rlhf_status rlhf__reward_head_read(const json_t *config, const char *file,
                                   struct rlhf__reward_head *out, int *found,
                                   struct rlhf__error *err);
// Put the member into config. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_head_write(const struct rlhf__reward_head *h, json_t *config,
                                    struct rlhf__error *err);

// seq[n] = rewards of n ragged rows (offset[n + 1], prompt_len[n]) from raw[total], one raw score a
// response token; bias for a row without response tokens. Sums run in f64, in row order. [any]
void rlhf__reward_pool(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                       const int32_t *prompt_len, const float *raw, float *seq);

// d_raw[total] += the derivative that d_seq[n] gives: gain * d_seq / response tokens (mean), or
// gain * d_seq at the last response token. [any]
void rlhf__reward_pool_bwd(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                           const int32_t *prompt_len, const float *d_seq, float *d_raw);

// Set gain and bias so that pooled raw scores raw[n] become rewards of mean 0 and (biased) standard
// deviation 1: gain = 1 / sd, bias = -mean / sd (Ziegler et al. 2019, section 2.1). Returns 0 and
// changes nothing when n < 2, a score is not finite or all are equal. [any]
int rlhf__reward_fit(struct rlhf__reward_head *h, const float *raw, size_t n);

#endif
