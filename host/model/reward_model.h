// reward_model.h: a reward model: a trunk with one score per token (RLHF_HEAD_TOKEN_SCORE),
// pooling, gain and bias. bradley_terry.so trains it; bt_rm.so scores with it.
//
// Its directory is a sequence classifier of one label, as transformers reads it (whose logit is the
// raw score of the last token), with "rlhf_reward" in config.json. Training is in learn/learner.h.
#ifndef RLHF_HOST_REWARD_MODEL_H
#define RLHF_HOST_REWARD_MODEL_H

#include "base/error.h"
#include "base/folder.h"
#include "model/model.h"
#include "text/tokenizer.h"

#include <rlhf/model.h>

#include <jansson.h>

// ---- the head: from raw scores of tokens to rewards ----

// reward(token) = gain * raw + bias; reward(response) = the mean over its tokens, or the last one.
// Stiennon et al. 2020 and Ziegler et al. 2019 (gain and bias, last token); DeepSeekMath, Shao et
// al. 2024 (mean).
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

// seq[n] = rewards of n ragged rows (offset[n + 1], prompt_len[n]) from raw[total], one raw score
// per response token; bias for a row without response tokens. Sums run in f64, in row order. [any]
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

// ---- the model ----

struct rlhf__reward_model {
    struct rlhf__model *model; // role "reward model", n_labels 1; owned
    struct rlhf__reward_head head;
};

// 1 if config.json describes a sequence classifier of one label: here and in transformers, a reward
// model. [any]
int rlhf__reward_model_is(const json_t *config);

struct rlhf__reward_model_spec {
    const char *dir;
    struct rlhf__model_adapter adapter; // on the model in dir; zeroed: none
    int32_t trainable;                  // gradients wanted
    int32_t longest; // longest row (prompt + response) that will be scored; 0 = not known
    const struct rlhf__tokenizer *policy; // whose ids will be scored; NULL = not checked
};

// Open a reward-model directory. Caller owns *out; free with rlhf__reward_model_close. Errors:
// those of rlhf__model_open; RLHF_E_INVALID when it is not a reward model (without a score head of
// one label, or not causal), when its vocabulary is not the policy's, when its context is shorter
// than spec->longest; RLHF_E_UNSUPPORTED when its tokenizer asks for more than a bos. [main]
rlhf_status rlhf__reward_model_open(const struct rlhf__model_env *env,
                                    const struct rlhf__reward_model_spec *spec,
                                    struct rlhf__reward_model **out, struct rlhf__error *err);
void rlhf__reward_model_close(struct rlhf__reward_model *); // NULL allowed [main]

// Rewards of n ragged rows: seq[n], and token[total] unless NULL (0 on prompt tokens). pooling:
// enum rlhf_pool MEAN or LAST, 0 = head.pooling. A row without response tokens gets the reward of
// its last prompt token. Rows go through the model in microbatches; a row's rewards do not depend
// on the others. The model reads them with what its own tokenizer puts in front, bos or nothing,
// whichever the rows come with. Errors: RLHF_E_INVALID (a row over the context), RLHF_E_NOMEM.
// [step]
rlhf_status rlhf__reward_model_score(const struct rlhf__reward_model *rm, uint32_t n,
                                     const int32_t *ids, const int32_t *offset,
                                     const int32_t *prompt_len, int32_t pooling, float *seq,
                                     float *token, struct rlhf__error *err);

// Fit head.gain and head.bias so that these rows have rewards of mean 0, standard deviation 1.
// *fitted = 0 when they cannot be fitted (all rewards equal): then nothing changes. [step]
rlhf_status rlhf__reward_model_calibrate(struct rlhf__reward_model *rm, uint32_t n,
                                         const int32_t *ids, const int32_t *offset,
                                         const int32_t *prompt_len, int *fitted,
                                         struct rlhf__error *err);

// Make config what a reward model's config.json says: ...ForSequenceClassification, one label
// "REWARD", rlhf_reward, pad_token_id (transformers finds the last token by it). [main]
rlhf_status rlhf__reward_model_config(struct rlhf__model *m, const struct rlhf__reward_head *h,
                                      struct rlhf__error *err);

// Write a reward model into dir: config.json, tokenizer files, model.safetensors
// (f32). rm must be trainable: others keep packed weights only. [main]
rlhf_status rlhf__reward_model_write(const struct rlhf__reward_model *rm,
                                     const struct rlhf__folder *dir, struct rlhf__error *err);

// ---- the front of a row ----

// A reward model reads rows as its own tokenizer begins them (as it was trained, recorded by
// bradley_terry.so or by transformers): with a bos or without. Rows of a run begin as the policy
// wants them (prompts.prepend_bos), so a bos is added to them or removed.

// Rows with their fronts changed; zero-initialise, release with rlhf__fronted_finish.
struct rlhf__fronted {
    const int32_t *ids, *offset, *prompt_len; // the caller's own when nothing changed
    int32_t *own;                             // NULL: nothing changed
};

// The n rows as the tokenizer wants them; the arguments must outlive *out. Errors: RLHF_E_INVALID
// (too many tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows(const struct rlhf__tokenizer *tok, uint32_t n, const int32_t *ids,
                              const int32_t *offset, const int32_t *prompt_len,
                              struct rlhf__fronted *out, struct rlhf__error *err);
void rlhf__fronted_finish(struct rlhf__fronted *f); // accepts a zeroed one [any]

#endif
