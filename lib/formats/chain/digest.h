// digest.h: the digests and links of a run's hash chain, as docs/verifying.md defines them.
//
// All digests are SHA-256. Integers and floats are hashed as their little-endian bytes. -0 counts
// as 0, and all numbers that are not finite count as the same NaN, because the files of a run do
// not tell them apart.
#ifndef RLHF_FORMATS_CHAIN_DIGEST_H
#define RLHF_FORMATS_CHAIN_DIGEST_H

#include "base/hash.h"

enum { RLHF__HEX = 65 }; // 64 hexadecimal digits and a NUL

// A row as it was drawn.
struct rlhf__chain_row {
    int64_t source; // its row in the file of prompts or data
    int32_t group, finished, prompt_length, n;
    const int32_t *ids; // [n] the prompt's tokens, then the response's
    const float *logp;  // [n_logp] log-probs of the response's tokens when they were sampled
    int32_t n_logp, reserved;
};
void rlhf__chain_put_row(struct rlhf__sha256 *, const struct rlhf__chain_row *); // [any]

// The mixed score of a row, and the weighted rewards of its n response tokens. [any]
void rlhf__chain_put_reward(struct rlhf__sha256 *, float score, const float *token, int32_t n);

// A metric of a phase, in the order of metrics.jsonl.
// [any]
void rlhf__chain_put_metric(struct rlhf__sha256 *, const char *name, double value);

// Returns 1 if the metric is the same on every machine: all but times, rates and memory. Those have
// "time" or "perf" as a part of their names, or are an idle_ratio.
// [any]
int rlhf__chain_is_steady(const char *metric);

// The digests that a phase adds to the chain. A digest is NULL if the phase lacks such numbers.
struct rlhf__chain_link {
    int64_t phase;
    const char *rows, *rewards, *metrics; // 64 hexadecimal digits each
};

// Write the head after a link to `head`; `before` is the head before it. [any]
void rlhf__chain_head(const char *before, const struct rlhf__chain_link *, char head[RLHF__HEX]);

// The same for the beginning, or a changed beginning, of a run. `before` is "" at the first;
// `begin` is the text of the JSON object with everything that the results depend on. [any]
void rlhf__chain_begin(const char *before, int64_t phase, const char *begin, char head[RLHF__HEX]);

#endif
