// rollout.h: samples responses to prompts and stores them as rows. Used by training, by the check
// at start-up and by `eval`. It does not keep a position in the prompts, and does not depend on the
// run.
#ifndef RLHF_HOST_SAMPLE_ROLLOUT_H
#define RLHF_HOST_SAMPLE_ROLLOUT_H

#include "base/dirs.h"
#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "model/model.h"
#include "sample/reward_overlap.h"

#include <signal.h>

// Open the prompts that a config names, or the embedded prompts if it names none. Prompts that
// leave too little of the model's context for sampling.max_new_tokens are left out or cut; one line
// in the log says how many. A BOS is prepended if the config asks for it and the model's tokenizer
// has a BOS. `setting` is the setting that names the file, for messages. `loading` may be NULL.
// Errors: RLHF_E_INVALID and those of rlhf__prompts_open. [main]
rlhf_status rlhf__rollout_prompts(const struct rlhf__prompts_config *c, const char *setting,
                                  const struct rlhf__model *m,
                                  const struct rlhf__sampling_config *sampling,
                                  const struct rlhf__dirs *dirs, struct rlhf__log *log,
                                  const struct rlhf__loading *loading, struct rlhf__prompts **out,
                                  struct rlhf__error *err);

// Reject these settings if the user set them but they cannot work with this model:
// - prompts.prepend_bos, if the model's tokenizer lacks a BOS token. If the user did not set
//   prepend_bos, the function only logs that prompts begin without a BOS token.
// - sampling.top_k, if it is greater than the number of tokens in the model's vocabulary.
// Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__rollout_check_model(const struct rlhf__config *c, const struct rlhf__model *m,
                                      struct rlhf__log *log, struct rlhf__error *err);

// Reject each of these settings if the user set it although it does nothing for these prompts:
// - prompts.prepend_bos, if all prompts have messages. Their chat template then decides whether
//   there is a BOS.
// - prompts.field, if each line of the file is a prompt.
// Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__rollout_check_rows(const struct rlhf__config *c, const struct rlhf__prompts *set,
                                     struct rlhf__error *err);

struct rlhf__gen_turns;

struct rlhf__rollout_request {
    const struct rlhf__model *model;
    rlhf_gen
        *cache; // slots + prefix_slots sequences of prompt + max_new tokens; NULL: made per call
    const struct rlhf__prompts *prompts;
    uint32_t n, slots;                  // rows; rows decoded at once
    uint32_t group;                     // adjacent rows with the same prompt; 0 means 1
    uint32_t prefix_slots;              // KV caches for prompts that adjacent rows share (decode.h)
    int32_t keep_support;               // 1: store the set that each token was sampled from
    int32_t max_new;                    // longest response
    int32_t stop_at_eos, cut_at_stop;   // stop at the model's end tokens; cut after the first
    struct rlhf__response_rules *rules; // sampling.stop; NULL = none
    rlhf_dist dist, logp_dist;          // to sample from; to compute log-probs under
    uint64_t seed;
    const char *stream;
    uint64_t first;  // number of row 0 within the run, for the random numbers
    int64_t version; // optimizer steps that the model has had; stored in the rows
    const volatile sig_atomic_t *cancelled;
    const struct rlhf__watch *watch;      // receives the number of responses sampled; NULL = none
    const char *doing;                    // label for the watch
    struct rlhf__reward_overlap *overlap; // receives each finished row; NULL = none
    // NULL: each row is a single response. Otherwise the rows have several turns, and
    // turn_prompt[n] and turn_prompt_len[n] are their prompts
    const struct rlhf__gen_turns *turns;
    const int32_t *const *turn_prompt;
    const int32_t *turn_prompt_len;
};

// Returns the distribution that a run samples from. [any]
rlhf_dist rlhf__sampling_dist(const struct rlhf__sampling_config *);

// Returns a request to sample responses of `model` to the prompts, with the settings sampling.* and
// response.* of c. Log-probs are computed under the sampling distribution. The caller sets n,
// stream and other fields as needed. [any]
struct rlhf__rollout_request rlhf__rollout_request(const struct rlhf__config *c,
                                                   const struct rlhf__model *model,
                                                   const struct rlhf__prompts *prompts,
                                                   struct rlhf__response_rules *rules);

// Sample one response to prompt row[i] for every i. Sets ids, lengths, source, finished (1 = a stop
// token or a stop text ended the response), the log-probs RLHF__LOGP_OLD and RLHF__LOGP_SAMPLED
// and, if kept, the supports. Before the call, *e must be zeroed or released (rlhf__rows_finish).
// If `tokens` is not NULL, *tokens grows by the number of tokens that the model computed. [step]
rlhf_status rlhf__rollout(const struct rlhf__rollout_request *q, const int64_t *row,
                          struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

// Like rlhf__rollout, but row i responds to prompt i % count, where count is the number of prompts.
// [step]
rlhf_status rlhf__rollout_in_turn(const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
