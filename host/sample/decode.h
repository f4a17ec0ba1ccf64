// decode.h: samples responses with continuous batching: a finished row frees its slot at once, and
// the next waiting prompt takes it.
//
// Adjacent sequences with the same prompt (the same array) can share it: the prompt is put into a
// separate cache once, and each sequence continues from its last token. If no such cache is free,
// the prompt is computed for each sequence.
//
// The random number for response token t of sequence s is number s * 65536 + t of the stream, so
// responses do not depend on slots, order or threads. This file does not depend on rewards or
// prompt files.
#ifndef RLHF_HOST_DECODE_H
#define RLHF_HOST_DECODE_H

#include "base/watch.h"
#include "model/model.h"
#include "sample/response_rules.h"

#include <signal.h>

#define RLHF__MAX_NEW_TOKENS 65535 // limit of the counters

struct rlhf__gen_request {
    uint32_t n, slots;     // sequences; how many are decoded at once
    uint32_t prefix_slots; // KV caches for shared prompts, 0 = none; see below
    // 1: store for each token the set that it was sampled from; log-probs are over this set
    int32_t keep_support;
    const int32_t *const *prompt;       // [n] ids
    const int32_t *prompt_len;          // [n], at least 1
    int32_t max_new;                    // longest response
    const struct rlhf__ends *ends;      // tokens that end a response (and are kept), NULL = none
    struct rlhf__response_rules *rules; // other rules that end a response, NULL = none
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    uint64_t first;                         // number of sequence 0 in the run
    const volatile sig_atomic_t *cancelled; // stops with RLHF_E_CANCELLED; NULL = never
    // Receives the number of sequences sampled; a running one counts as a fraction of max_new. NULL
    // = none.
    const struct rlhf__watch *watch;
    const char *doing; // label for the watch
    // Called when a sequence has ended; its part of the result is then complete. NULL = none.
    void (*ended)(void *ctx, uint32_t sequence);
    void *ended_ctx;
};

// Row i: ids[i * stride ..], len[i] of them, with their log-probs under logp_dist.
struct rlhf__gen_result {
    int32_t *ids;      // [n * stride]
    float *logp;       // [n * stride]
    int32_t *len;      // [n]
    uint8_t *stopped;  // [n] 1 = the last id is an end token, or the rules end the response
    int64_t stride;    // = max_new
    uint32_t *support; // [n * stride, rlhf_support_words] with keep_support, else NULL
    int64_t tokens;    // prompt and response tokens that the model computed
};

// KV caches for shared prompts that `slots` rows in groups of `group` can use: one for each group
// in the slots and one more. 0 if groups are single rows or the model cannot share. [any]
uint32_t rlhf__prefix_slots(const struct rlhf__model *, uint32_t slots, uint32_t group);

// The cache must hold slots + prefix_slots sequences of at least prompt + max_new - 1 tokens. The
// result is allocated; release with rlhf__gen_result_finish. [step]
rlhf_status rlhf__generate(const struct rlhf__model *, rlhf_gen *cache,
                           const struct rlhf__gen_request *, struct rlhf__gen_result *,
                           struct rlhf__error *err);
void rlhf__gen_result_finish(struct rlhf__gen_result *); // accepts a zeroed one [any]

#endif
