// digest.h: the digests and links of a run's hash chain, as docs/verifying.md defines them.
//
// All digests are SHA-256. Integers and floats are hashed as their little-endian bytes. The files
// of a run do not distinguish -0 from 0, or infinities and NaNs from each other. So -0 is hashed as
// 0, and all numbers that are not finite are hashed as the same NaN.
#ifndef RLHF_FORMATS_HISTORY_DIGEST_H
#define RLHF_FORMATS_HISTORY_DIGEST_H

#include "base/hash.h"

enum { RLHF__HEX = 65 }; // 64 hexadecimal digits and a NUL

// A row as sampled.
struct rlhf__chain_row {
    int64_t source; // the number of its row in the file of prompts or data
    int32_t group, finished, prompt_length, n;
    const int32_t *ids; // [n] the tokens of the prompt, then those of the response
    const float *logp;  // [n_logp] log-probs of the response's tokens when they were sampled
    int32_t n_logp;
    // The parts of an episode. `segment` has the lengths of the segments after the prompt; the
    // length of a segment from the environment is negative. `end` is the end of the episode as
    // written in rollouts.jsonl. If n_segments is 0, the row is a single response.
    int32_t n_segments;
    const int32_t *segment; // [n_segments]
    const char *end;
};
void rlhf__chain_put_row(struct rlhf__sha256 *, const struct rlhf__chain_row *); // [any]

// Hash the mixed score of a row, and the weighted rewards of its n response tokens. [any]
void rlhf__chain_put_reward(struct rlhf__sha256 *, float score, const float *token, int32_t n);

// Hash the environment's rewards for the n turns of an episode, then the episode's verdict (enum
// rlhf_verdict). Call this function after rlhf__chain_put_reward for the same row. [any]
void rlhf__chain_put_paid(struct rlhf__sha256 *, const float *paid, int32_t n, int32_t verdict);

// Hash a metric of a phase. Call this function in the order of metrics.jsonl. [any]
void rlhf__chain_put_metric(struct rlhf__sha256 *, const char *name, double value);

// Returns 1 if the metric is the same on every machine. Metrics of times, rates and memory are not:
// their names have the part "time" or "perf", or end in idle_ratio or waiting. [any]
int rlhf__chain_is_steady(const char *metric);

// What a phase adds to the chain. A digest is NULL if the phase lacks such numbers.
struct rlhf__chain_link {
    int64_t phase;
    const char *rows, *rewards, *metrics; // 64 hexadecimal digits each
};

// Write to `head` the head that follows from the head `before` and a phase's link. [any]
void rlhf__chain_head(const char *before, const struct rlhf__chain_link *, char head[RLHF__HEX]);

// Write to `head` the head that follows from a `begin` line. A run writes this line when it begins,
// and again when it resumes with other settings, inputs or versions. `before` is the head before
// this line, or "" for a new run. `begin` is the text of a JSON object that has everything that the
// results depend on. [any]
void rlhf__chain_begin(const char *before, int64_t phase, const char *begin, char head[RLHF__HEX]);

#endif
