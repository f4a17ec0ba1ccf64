// rollout.h: samples responses to prompts and lays them out as rows; used by training, the check at
// start-up and `eval`. It keeps no cursor and does not depend on the run.
#ifndef RLHF_HOST_ROLLOUT_H
#define RLHF_HOST_ROLLOUT_H

#include "base/dirs.h"
#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "model/model.h"
#include "sample/overlap.h"

#include <signal.h>

// Open the prompts of a config (the embedded ones if it names none) so that they leave room for
// sampling.max_new_tokens in the model's context, and log in one line how many were left out or
// cut. BOS is prepended if the model's tokenizer has one. `setting` is the setting that named the
// file, for messages; loading may be NULL. Errors: RLHF_E_INVALID and those of rlhf__prompts_open.
// [main]
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
    uint32_t group;    // adjacent rows with the same prompt; 0: 1
    int32_t reserved;
    uint32_t prefix_slots;              // KV caches for prompts that adjacent rows share (decode.h)
    int32_t keep_support;               // store the tokens that each one was sampled from
    int32_t max_new;                    // longest response
    int32_t stop_at_eos, cut_at_stop;   // stop at the model's end tokens; cut what follows the
                                        // first
    struct rlhf__response_rules *rules; // sampling.stop; NULL = none
    rlhf_dist dist, logp_dist;          // to sample from; of the log-probs
    uint64_t seed;
    const char *stream;
    uint64_t first;  // number of row 0 in the run, for the random numbers
    int64_t version; // optimiser steps that the model has taken, stored in the rows
    const volatile sig_atomic_t *cancelled;
    const struct rlhf__watch *watch; // receives the number of responses sampled; NULL = none
    const char *doing;               // label for the watch
    struct rlhf__overlap *overlap;   // receives each finished row; NULL = none
};

// 1 if a response of the model ends at its end tokens (sampling.stop_at_eos; auto: unless the
// model's config.json says that its texts continue after them). [any]
int rlhf__rollout_stops(const struct rlhf__sampling_config *, const struct rlhf__model *);

// Log in one line how long responses may be and where they end. [main]
void rlhf__rollout_say_ends(const struct rlhf__sampling_config *, const struct rlhf__model *,
                            struct rlhf__log *log);

// The distribution that a run samples from. [any]
rlhf_dist rlhf__sampling_dist(const struct rlhf__sampling_config *);

// A request to sample as sampling.* and response.* of a config say: responses of `model` to the
// prompts, with log-probs under the sampling distribution. The caller sets n, stream and other
// fields as needed. [any]
struct rlhf__rollout_request rlhf__rollout_request(const struct rlhf__config *c,
                                                   const struct rlhf__model *model,
                                                   const struct rlhf__prompts *prompts,
                                                   struct rlhf__response_rules *rules);

// Sample one response to prompt row[i] for every i: sets ids, lengths, source, finished (a stop
// token or text was sampled), log-probs (RLHF__LOGP_OLD and RLHF__LOGP_SAMPLED) and, if kept,
// supports. *e must be zeroed or finished. *tokens (NULL allowed) grows by the tokens that the
// model computed. [step]
rlhf_status rlhf__rollout(const struct rlhf__rollout_request *q, const int64_t *row,
                          struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

// The same with the prompts used in turn: row i responds to prompt i % count. [step]
rlhf_status rlhf__rollout_in_turn(const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
