// rlhf/reward.h: reward plugins. All data is flat host memory, so a batch can be passed to another
// process.
//
// Plugin contract 1.0, frozen: it only grows.
//
// In these comments, total is offset[n]: the number of tokens of all rows.
//
// A reward writes one number per sequence (and, with RLHF_REWARD_PER_TOKEN, one per token). The
// host does the weighting, mixing, clipping and normalizing, and applies the response rules (stop
// token, period window, non-stop penalty) and the NaN policy.
#ifndef RLHF_REWARD_H
#define RLHF_REWARD_H

#include "plugin.h"

enum rlhf_reward_flag {
    RLHF_REWARD_PER_TOKEN = 1, // fills out->token
    // A row's reward depends on that row alone, not on other rows of its group. So the host may
    // score a row as soon as it is finished, in a call with any other rows. Not together with
    // WHOLE_BATCH. [R:row-alone]
    RLHF_REWARD_ROW_ALONE = 2,
    // score() mostly waits for something outside the process. So the host may call it on a separate
    // thread while the policy computes (rewards.overlap). The reward cannot use services that run a
    // model.
    RLHF_REWARD_EXTERNAL = 4,
    RLHF_REWARD_LOGP_SAMPLED = 8, // needs in->logp_sampled
    // Needs in->logp_ref: the run loads the reference model even if the algorithm does not need it.
    RLHF_REWARD_LOGP_REF = 16,
    // The reward handles rows of several turns (in->turn, messages, end). Rewards without this flag
    // get the last turn as the response and everything before it as the prompt.
    RLHF_REWARD_TURNS = 32,
    // Compares rows of different groups with each other. In a run of several processes, a reward
    // that has this flag or a state (save()) is called by only one process, with all rows. Any
    // other reward is called by each process, with the groups of that process.
    RLHF_REWARD_WHOLE_BATCH = 64,
    // score() is a function of its arguments, of the options, of files and models that the options
    // name, and of state that save() stores. It gives the same bits on every machine: it does not
    // read the clock, other files or the network, and draws no random numbers. So `rlhf-host
    // verify` may call score() again. For rewards without this flag, `verify` trusts the recorded
    // results.
    RLHF_REWARD_FUNCTION = 128
};

// Whether a response is correct, for rewards that can tell.
enum rlhf_verdict { RLHF_VERDICT_NONE = 0, RLHF_VERDICT_RIGHT = 1, RLHF_VERDICT_WRONG = 2 };

// How a row of several turns ended. rlhf_reward_in.finished is 1 for DONE. A later version may have
// further reasons; like TRUNCATED, they mean that something stopped the episode.
enum rlhf_episode_end {
    RLHF_EPISODE_OPEN = 0,
    RLHF_EPISODE_DONE = 1,        // the environment reached its end
    RLHF_EPISODE_TRUNCATED = 2,   // the environment stopped it before that
    RLHF_EPISODE_TURN_LENGTH = 3, // a turn reached sampling.max_new_tokens
    RLHF_EPISODE_TURNS = 4,       // the maximum number of turns
    RLHF_EPISODE_LENGTH = 5       // the environment's text no longer fitted
};

typedef struct rlhf_reward_in {
    uint32_t size, n; // n sequences, rows 0 to n - 1, also in messages
    int64_t phase;    // the first is 0

    // ---- rows ----
    const rlhf_str *prompt, *response; // [n] decoded text; the response after the response rules
    // [n] the data row as JSON, to be read with "rlhf.row/1" (service.h); len is 0 if none exists
    const rlhf_str *meta;
    // [n] index of the prompt among the prompts that the run uses (rlhf_prompts). It counts from 0,
    // and a prompt has the same index in every phase. -1: unknown, as for held-out rows
    // (data.eval_path).
    const int64_t *source;
    // [n] the same number for responses that were sampled together for one prompt; these rows are
    // adjacent. Without groups, each row has a different number. Unusable rows may be missing.
    const int32_t *group;
    const uint8_t *finished;   // [n] 1 = ended by a stop token
    const int32_t *prompt_len; // [n] tokens

    // ---- tokens ----
    const int32_t *ids;    // [total] prompt + response, policy vocabulary, ragged
    const int32_t *offset; // [n + 1]; a row may have no response tokens
    // [total] log-probs of the response tokens under the sampler and under the reference, as
    // natural logarithms; 0 on prompt tokens. NULL without the flag that requests them. In a run,
    // logp_ref belongs to the distribution that the algorithm compares (algo.logprob_temperature
    // and algo.logprob_support). In other commands it covers the whole vocabulary, at the sampling
    // temperature.
    const float *logp_sampled, *logp_ref;

    // ---- turns: NULL without RLHF_REWARD_TURNS, or if rows are single responses ----
    const int32_t *turn; // [total] the policy's turn that the token belongs to, from 0; -1: given
    const rlhf_str *messages; // [n] the conversation as a JSON list of messages
    const uint8_t *end;       // [n] enum rlhf_episode_end
} rlhf_reward_in;

typedef struct rlhf_reward_out {
    uint32_t size, reserved;
    // [R:unwritten] [R:outside]
    float *seq; // [n] must be written; NaN or Inf is handled by rewards.nan_policy
    // [total] zeroed by the host; NULL unless RLHF_REWARD_PER_TOKEN. Entries of prompt tokens are
    // ignored. A row's reward is the sum of seq and its token rewards.
    float *token;
    // [n] enum rlhf_verdict, zeroed by the host: for a reward that knows which responses are right,
    // independently of the numbers in seq. The host computes objective/verifiable_correct_rate from
    // it. [R:verdict]
    uint8_t *verdict;
    // [n] zeroed by the host: 1 = the reward could not score this row (a service did not answer, a
    // worker died). The reward's output for this row is ignored; rewards.on_failure decides what
    // happens to the row.
    uint8_t *failed;
} rlhf_reward_out;

// A data row, as check_row() gets it before the first phase.
typedef struct rlhf_row_in {
    uint32_t size;
    int32_t held_out; // 1: the row only measures the policy (data.eval_path, rlhf-host eval)
    // Of the row's prompt among those that the run uses (rlhf_reward_in.source) or, if held_out is
    // 1, among the held-out prompts.
    int64_t index;
    rlhf_str meta;   // as in rlhf_reward_in
    rlhf_str prompt; // likewise, before an environment adds to it
} rlhf_row_in;

typedef struct rlhf_reward_ops {
    uint32_t size, flags; // flags: bits of enum rlhf_reward_flag
    // A row's reward may depend only on the rows of its group. (Exception:
    // RLHF_REWARD_WHOLE_BATCH.) RLHF_E_CANCELLED and RLHF_E_NOMEM end the run. Any other
    // negative status means that all rows of the call failed, for the reason passed to host->fail.
    // The host retries failed rows; the reward must not retry them itself. [step] [R:repeat]
    // [R:order]
    rlhf_status (*score)(void *self, const rlhf_reward_in *, const rlhf_reward_out *);
    // Checks whether responses to a data row can be scored. The host calls this for every prompt
    // before the first phase, so that an invalid data row ends the run at its start and not after
    // hours. NULL: all data rows can be scored. [main]
    rlhf_status (*check_row)(void *self, const rlhf_row_in *);
} rlhf_reward_ops;

#endif
