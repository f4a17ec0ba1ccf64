// reward_model.h: a reward model: a trunk with one score a token (RLHF_HEAD_TOKEN_SCORE), pooling,
// gain and bias. bradley_terry.so trains it; bt_rm.so asks it.
//
// Its directory is a GPT2ForSequenceClassification of one label as transformers reads it (whose
// logit is the raw score of the last token), with "rlhf_reward" in config.json. It trains nothing:
// learn/learner.h does, given the model and the head.
#ifndef RLHF_HOST_REWARD_MODEL_H
#define RLHF_HOST_REWARD_MODEL_H

#include "base/folder.h"
#include "model/model.h"
#include "model/reward_head.h"
#include "text/tokenizer.h"

struct rlhf__reward_model {
    struct rlhf__model *model; // role "reward model", n_labels 1; owned
    struct rlhf__reward_head head;
};

// 1 when config.json says that the directory holds a sequence classifier of one label, which is
// what a reward model is, here and in transformers. [any]
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
