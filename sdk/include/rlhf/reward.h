// rlhf/reward.h: reward plugins. Flat host memory only, so that a batch can cross a process.
//
// In the comments total is offset[n], the tokens of all rows together.
//
// A reward writes one number a sequence (and, if flagged, one a token). Weighting, mixing,
// clipping, normalising, the response rules (stop token, period window, non-stop penalty) and the
// NaN policy are the host's.
#ifndef RLHF_REWARD_H
#define RLHF_REWARD_H

#include "plugin.h"

enum rlhf_reward_flag {
    RLHF_REWARD_PER_TOKEN = 1, // fills out->token
    // A row's reward depends on that row alone, not on its group either: it may be asked for as
    // soon as the row is finished, with any others. [R:row-alone]
    RLHF_REWARD_ROW_ALONE = 2
};

// Whether a response is right, by a reward that can tell.
enum rlhf_verdict { RLHF_VERDICT_NONE = 0, RLHF_VERDICT_RIGHT = 1, RLHF_VERDICT_WRONG = 2 };

typedef struct rlhf_reward_in {
    uint32_t size, n;                  // n sequences, row 0 to n - 1: messages count so too
    uint64_t phase;                    // the first is 0, as in rlhf_rollout
    const rlhf_str *prompt, *response; // [n] decoded text; the response after the response rules
    // [n] the data row as JSON, len 0 when there is none: read it with "rlhf.row/0" (service.h)
    const rlhf_str *meta;
    const int32_t *ids;        // [total] prompt + response, policy vocabulary, ragged
    const int32_t *offset;     // [n + 1]
    const int32_t *prompt_len; // [n] tokens
    const uint8_t *finished;   // [n] 1 = ended by a stop token
    // [n] responses to one prompt that were drawn together have one number and stand together;
    // where there are no groups each row has its own. Rows that could not be used may be missing.
    const int32_t *group;
} rlhf_reward_in;

typedef struct rlhf_reward_out {
    uint32_t size, reserved;
    // [R:unwritten] [R:outside]
    float *seq; // [n] must be written; NaN or Inf is handled by rewards.nan_policy
    // [total] zeroed by the host; NULL unless RLHF_REWARD_PER_TOKEN. Entries of response tokens
    // count, those of prompt tokens do not. A row's reward is seq and its token rewards together.
    float *token;
    // [n] enum rlhf_verdict, zeroed by the host: for a reward that knows which responses are right,
    // whatever it pays them. objective/verifiable_correct_rate is made of it. [R:verdict]
    uint8_t *verdict;
    // [n] zeroed by the host: 1 = the reward could not score this row (a service did not answer, a
    // worker died). What it wrote for it counts for nothing; rewards.on_failure says what becomes
    // of the row.
    uint8_t *failed;
} rlhf_reward_out;

typedef struct rlhf_reward_ops {
    uint32_t size, flags;
    // A row's reward may depend on the rows of its group, on no others. A negative status other
    // than RLHF_E_CANCELLED: all rows of the call failed, for the reason that host->fail was given.
    // The host asks again for rows that failed; a reward does not repeat them itself. [step]
    // [R:repeat] [R:order]
    rlhf_status (*score)(void *self, const rlhf_reward_in *, const rlhf_reward_out *);
    // Whether responses to a data row (rlhf_reward_in.meta) can be scored: called for every prompt
    // before the first phase, so that no run ends at one. NULL: they all can. [main]
    rlhf_status (*check_row)(void *self, rlhf_str row);
} rlhf_reward_ops;

#endif
