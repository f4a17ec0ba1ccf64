// reward_model.h: a reward model: a trunk with one score per token (RLHF_HEAD_TOKEN_SCORE),
// pooling, gain and bias. bradley_terry.so trains it and bt_rm.so scores with it.
//
// The directory of a reward model is a sequence classifier with one label and "rlhf_reward" in
// config.json. transformers can read it; its logit is then the raw score of the last token.
// Training is in learn/learner.h.
#ifndef RLHF_HOST_MODEL_REWARD_MODEL_H
#define RLHF_HOST_MODEL_REWARD_MODEL_H

#include "base/error.h"
#include "base/folder.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

#include <rlhf/model.h>

#include <jansson.h>

// ---- the head: from raw token scores to rewards ----

// A token's reward is gain * raw + bias. A response's reward is the mean of its tokens' rewards, or
// the reward of its last token. Gain, bias and last token: Stiennon et al. 2020, Ziegler et al.
// 2019. Mean: DeepSeekMath, Shao et al. 2024.
struct rlhf__reward_head {
    int32_t pooling; // RLHF_POOL_MEAN or RLHF_POOL_LAST, over response tokens
    double gain, bias;
};

// Reads "rlhf_reward": {"pooling", "gain", "bias"} from a config.json. *found is 1 if the member
// exists. Otherwise *found is 0, and *out is a new head, with mean pooling, gain 1 and bias 0.
// `file` is the path of the config.json, for the message. Errors: RLHF_E_INVALID (a member is
// missing, has the wrong type or is out of range). [any]
rlhf_status rlhf__reward_head_read(const json_t *config, const char *file,
                                   struct rlhf__reward_head *out, int *found,
                                   struct rlhf__error *err);
// Put the member "rlhf_reward" into `config`. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_head_write(const struct rlhf__reward_head *h, json_t *config,
                                    struct rlhf__error *err);

// Computes seq[n], the rewards of n ragged rows (offset[n + 1], prompt_len[n]), from raw[total],
// the raw scores of the tokens. Only the scores of response tokens are used. A row without response
// tokens gets the reward `bias`. Sums are f64, in row order. [any]
void rlhf__reward_pool(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                       const int32_t *prompt_len, const float *raw, float *seq);

// The backward pass of rlhf__reward_pool: given the derivatives d_seq[n] of the rewards, adds the
// derivatives of the raw scores to d_raw[total]. With mean pooling, every response token gets gain
// * d_seq / (number of response tokens). Otherwise only the last response token gets a derivative,
// which is gain * d_seq. [any]
void rlhf__reward_pool_bwd(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                           const int32_t *prompt_len, const float *d_seq, float *d_raw);

// Set gain and bias so that the pooled raw scores raw[n] become rewards of mean 0 and (biased)
// standard deviation 1: gain = 1 / sd, bias = -mean / sd (Ziegler et al. 2019, section 2.1).
// Returns 0 and changes nothing if n < 2, a score is not finite, or all scores are equal. [any]
int rlhf__reward_fit(struct rlhf__reward_head *h, const float *raw, size_t n);

// ---- the model ----

struct rlhf__reward_model {
    struct rlhf__model *model; // role "reward model", n_labels 1; owned
    struct rlhf__reward_head head;
};

// Returns 1 if config.json describes a sequence classifier with one label. Here, as in
// transformers, such a classifier is a reward model. [any]
int rlhf__reward_model_is(const json_t *config);

struct rlhf__reward_model_spec {
    const char *dir;
    struct rlhf__model_adapter adapter; // for the model in `dir`; zeroed: no adapter
    int32_t trainable;                  // 1: gradients are needed
    int32_t longest; // longest row (prompt + response) that will be scored; 0 = not known
    // tokenizer of the ids that will be scored; NULL = not checked
    const struct rlhf__tokenizer *policy;
};

// Open a reward-model directory. The caller owns *out; free with rlhf__reward_model_close. Errors:
// - those of rlhf__model_open;
// - RLHF_E_INVALID: the model is not a reward model (no score head with one label, or not causal),
//   its vocabulary differs from the policy's, or its context is shorter than spec->longest;
// - RLHF_E_UNSUPPORTED: its tokenizer adds more than a BOS. [main]
rlhf_status rlhf__reward_model_open(const struct rlhf__model_env *env,
                                    const struct rlhf__reward_model_spec *spec,
                                    struct rlhf__reward_model **out, struct rlhf__error *err);
void rlhf__reward_model_close(struct rlhf__reward_model *); // NULL allowed [main]

// Computes the rewards seq[n] of n ragged rows. If `token` is not NULL, also computes the rewards
// token[total] of the tokens, which are 0 for prompt tokens. `pooling` is RLHF_POOL_MEAN,
// RLHF_POOL_LAST, or 0 for head.pooling. A row without response tokens gets the reward of its last
// prompt token. A row's rewards do not depend on the other rows. The model's own tokenizer decides
// whether a row begins with a BOS. Where needed, a BOS is added to the caller's row or removed from
// it. Errors: RLHF_E_INVALID (a row is longer than the context), RLHF_E_NOMEM. [step]
rlhf_status rlhf__reward_model_score(const struct rlhf__reward_model *rm, uint32_t n,
                                     const int32_t *ids, const int32_t *offset,
                                     const int32_t *prompt_len, int32_t pooling, float *seq,
                                     float *token, struct rlhf__error *err);

// Set head.gain and head.bias so that the rewards of these rows have mean 0 and standard deviation
// 1. If that is impossible because all rewards are equal, sets *fitted to 0 and changes nothing.
// [step]
rlhf_status rlhf__reward_model_calibrate(struct rlhf__reward_model *rm, uint32_t n,
                                         const int32_t *ids, const int32_t *offset,
                                         const int32_t *prompt_len, int *fitted,
                                         struct rlhf__error *err);

// Turn m->config into the config of a reward model: ...ForSequenceClassification, one label
// "REWARD", rlhf_reward, and pad_token_id, which transformers needs to find the last token. [main]
rlhf_status rlhf__reward_model_config(struct rlhf__model *m, const struct rlhf__reward_head *h,
                                      struct rlhf__error *err);

// Write a reward model into dir: config.json, tokenizer files, model.safetensors (f32). rm must be
// trainable, because other models keep only packed weights. [main]
rlhf_status rlhf__reward_model_write(const struct rlhf__reward_model *rm,
                                     const struct rlhf__folder *dir, struct rlhf__error *err);

// ---- BOS at the start of a row ----

// A reward model must read rows as in its training, so its own tokenizer decides whether a text
// begins with a BOS. The rows of a run begin as the policy needs them (prompts.prepend_bos), so a
// BOS may have to be added or removed.

// Rows whose BOS was added or removed. Zero-initialize; release with rlhf__fronted_finish.
struct rlhf__fronted {
    const int32_t *ids, *offset, *prompt_len; // the caller's arrays if nothing changed
    int32_t *own;                             // NULL: nothing changed
};

// Make the n rows begin as the tokenizer begins texts. The arguments must outlive *out. Errors:
// RLHF_E_INVALID (too many tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows(const struct rlhf__tokenizer *tok, uint32_t n, const int32_t *ids,
                              const int32_t *offset, const int32_t *prompt_len,
                              struct rlhf__fronted *out, struct rlhf__error *err);
void rlhf__fronted_finish(struct rlhf__fronted *f); // accepts a zeroed struct [any]

#endif
