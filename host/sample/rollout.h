// rollout.h: responses to prompts, laid out as rows. What training, the check at start-up and
// `eval` share; no cursor and no run.
#ifndef RLHF_HOST_ROLLOUT_H
#define RLHF_HOST_ROLLOUT_H

#include "base/dirs.h"
#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "model/model.h"
#include "sample/ahead.h"

#include <signal.h>

// Open the prompts of a config (the embedded ones when it names none) so that they leave room for
// sampling.max_new_tokens in the model's context, and say in one line what was left out or cut.
// setting is what gave the file, for messages; loading may be NULL. Errors: RLHF_E_INVALID and
// those of rlhf__prompts_open. BOS is put in front where the model's tokenizer has one. [main]
rlhf_status rlhf__rollout_prompts(const struct rlhf__prompts_config *c, const char *setting,
                                  const struct rlhf__model *m,
                                  const struct rlhf__sampling_config *sampling,
                                  const struct rlhf__dirs *dirs, struct rlhf__log *log,
                                  const struct rlhf__loading *loading, struct rlhf__prompts **out,
                                  struct rlhf__error *err);

// Refuse explicit settings without effect on this model (RLHF_E_INVALID): prompts.prepend_bos if
// its tokenizer lacks a BOS token (the default is only logged), and sampling.top_k above the number
// of tokens that can be sampled. [main]
rlhf_status rlhf__rollout_check_model(const struct rlhf__config *c, const struct rlhf__model *m,
                                      struct rlhf__log *log, struct rlhf__error *err);

// Refuse explicit settings without effect on these rows (RLHF_E_INVALID): prompts.prepend_bos if
// all prompts have messages, whose template places BOS, and prompts.field if each line is a prompt.
// [main]
rlhf_status rlhf__rollout_check_rows(const struct rlhf__config *c, const struct rlhf__prompts *set,
                                     struct rlhf__error *err);

struct rlhf__rollout_request {
    const struct rlhf__model *model;
    rlhf_gen
        *cache; // slots + prefix_slots sequences of the longest prompt + max_new; NULL: its own
    const struct rlhf__prompts *prompts;
    uint32_t n, slots; // rows; rows decoded at once
    uint32_t group;    // rows of one prompt that stand together; 0: 1
    int32_t reserved;
    uint32_t prefix_slots;              // caches for prompts that neighbours share (decode.h)
    int32_t keep_support;               // rows get the supports their tokens were drawn from
    int32_t max_new;                    // longest response
    int32_t stop_at_eos, cut_at_stop;   // end at the model's ends; cut what comes after the first
    struct rlhf__response_rules *rules; // sampling.stop; NULL = none
    rlhf_dist dist, logp_dist;          // what is drawn from; what log-probs are of
    uint64_t seed;
    const char *stream;
    uint64_t first;  // number of row 0 in the run, for the draws
    int64_t version; // optimiser steps that the model has behind it, for the rows
    const volatile sig_atomic_t *cancelled;
    const struct rlhf__watch *watch; // told of responses made; NULL = nobody
    const char *doing;               // what the watch is told
    struct rlhf__ahead *ahead;       // told of each row that is finished; NULL = nobody
};

// 1: a response of the model ends at its end tokens (sampling.stop_at_eos; auto: unless the model's
// config.json says that its texts go on). [any]
int rlhf__rollout_stops(const struct rlhf__sampling_config *, const struct rlhf__model *);

// Log in one line how long responses may be and where they end. [main]
void rlhf__rollout_say_ends(const struct rlhf__sampling_config *, const struct rlhf__model *,
                            struct rlhf__log *log);

// The distribution that a run draws from. [any]
rlhf_dist rlhf__sampling_dist(const struct rlhf__sampling_config *);

// What sampling by a config takes: responses of `model` to the prompts, as sampling.* and
// response.* say, log-probs of what is drawn from. The caller fills in n, stream and what else
// differs. [any]
struct rlhf__rollout_request rlhf__rollout_request(const struct rlhf__config *c,
                                                   const struct rlhf__model *model,
                                                   const struct rlhf__prompts *prompts,
                                                   struct rlhf__response_rules *rules);

// One response to prompt row[i] for every i: ids, lengths, source, finished (a stop token or
// text was drawn), log-probs (RLHF__LOGP_OLD and RLHF__LOGP_SAMPLED) and supports where they are
// kept. *e must be zeroed or finished. *tokens (NULL allowed) grows by what went through the model.
// [step]
rlhf_status rlhf__rollout(const struct rlhf__rollout_request *q, const int64_t *row,
                          struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

// The same with the prompts used in turn: row i responds to prompt i % count. [step]
rlhf_status rlhf__rollout_in_turn(const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
