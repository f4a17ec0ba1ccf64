// decode.h: samples responses with continuous batching: as soon as a row finishes, the next waiting
// prompt takes its slot.
//
// Adjacent sequences that have the same prompt (the same array) can share it: the prompt is
// computed once, into a separate cache, and each sequence continues from its last token. If no such
// cache is free, the prompt is computed for each sequence.
//
// Response token t of sequence s uses random number s * 65536 + t of the stream, so responses do
// not depend on slots, order or threads. This file does not depend on rewards or prompt files.
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
    // 1: store the set that each token was sampled from; log-probs are over this set
    int32_t keep_support;
    const int32_t *const *prompt;  // [n] ids
    const int32_t *prompt_len;     // [n], at least 1
    int32_t max_new;               // longest response
    const struct rlhf__ends *ends; // tokens that end a response and are kept in it; NULL = none
    struct rlhf__response_rules *rules; // other rules that end a response, NULL = none
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    uint64_t first; // number of sequence 0 within the run
    // if set, sampling ends with RLHF_E_CANCELLED; NULL = never
    const volatile sig_atomic_t *cancelled;
    // Receives the number of sampled sequences; a running one counts as its fraction of max_new.
    // NULL = none.
    const struct rlhf__watch *watch;
    const char *doing; // label for the watch
    // Called when a sequence has ended and its part of the result is complete. NULL = none.
    void (*ended)(void *ctx, uint32_t sequence);
    void *ended_ctx;
};

// Row i has len[i] ids, from ids[i * stride] on, with their log-probs under logp_dist.
struct rlhf__gen_result {
    int32_t *ids;      // [n * stride]
    float *logp;       // [n * stride]
    int32_t *len;      // [n]
    uint8_t *stopped;  // [n] 1 = an end token or a rule ended the response
    int64_t stride;    // = max_new
    uint32_t *support; // [n * stride, rlhf_support_words] with keep_support, else NULL
    int64_t tokens;    // prompt and response tokens that the model has computed
};

// Returns how many caches for shared prompts are useful if `slots` rows are decoded in groups of
// `group`: one for each group in the slots, and one more. Returns 0 if groups are single rows or
// the model cannot share prompts. [any]
uint32_t rlhf__prefix_slots(const struct rlhf__model *, uint32_t slots, uint32_t group);

// Sample all sequences. The cache must hold slots + prefix_slots sequences of at least prompt +
// max_new - 1 tokens. The result is allocated; release with rlhf__gen_result_finish. [step]
rlhf_status rlhf__generate(const struct rlhf__model *, rlhf_gen *cache,
                           const struct rlhf__gen_request *, struct rlhf__gen_result *,
                           struct rlhf__error *err);
void rlhf__gen_result_finish(struct rlhf__gen_result *); // accepts a zeroed one [any]

#endif
