// decode.h: sampling responses with continuous batching: a finished row leaves at once and the
// next waiting prompt takes its slot.
//
// Neighbours with one prompt (the same array) can share it: it is put into a cache of its own once,
// and each of them goes on from its last token. Prompts that find no free cache are written out.
//
// The draw for response token t of sequence s uses counter s * 65536 + t of the stream, so what
// comes out does not depend on slots, order or threads. It knows no rewards and no prompts' files.
#ifndef RLHF_HOST_DECODE_H
#define RLHF_HOST_DECODE_H

#include "base/watch.h"
#include "model/model.h"
#include "sample/response_rules.h"

#include <signal.h>

#define RLHF__MAX_NEW_TOKENS 65535 // what the counters have room for

struct rlhf__gen_request {
    uint32_t n, slots;             // sequences; sequences decoded at once
    uint32_t prefix_slots;         // caches for shared prompts, 0 = none; see below
    int32_t keep_support;          // 1: keep what each token was drawn from; log-probs are over it
    const int32_t *const *prompt;  // [n] ids
    const int32_t *prompt_len;     // [n], at least 1
    int32_t max_new;               // longest response
    const struct rlhf__ends *ends; // tokens that end a response (they are kept), NULL = none
    struct rlhf__response_rules *rules; // what else ends one, NULL = nothing
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    uint64_t first;                         // number of sequence 0 in the run
    const volatile sig_atomic_t *cancelled; // NULL = never: end with RLHF_E_CANCELLED
    // Told of sequences made, those at work counted by their share of max_new; NULL = nobody.
    const struct rlhf__watch *watch;
    const char *doing; // what the watch is told
    // Told of each sequence that has ended, as far as the result has it; NULL = nobody.
    void (*ended)(void *ctx, uint32_t sequence);
    void *ended_ctx;
};

// Row i: ids[i * stride ..], len[i] of them, with their log-probs under logp_dist.
struct rlhf__gen_result {
    int32_t *ids;      // [n * stride]
    float *logp;       // [n * stride]
    int32_t *len;      // [n]
    uint8_t *stopped;  // [n] 1 = the last id is an end, or the rules say so
    int64_t stride;    // max_new
    uint32_t *support; // [n * stride, rlhf_support_words] with keep_support, else NULL
    int64_t tokens;    // prompt and response tokens that went through the model
};

// How many caches for shared prompts `slots` rows want that come in groups of `group`; 0 when
// groups are single rows or the model cannot share. Enough for a slot's worth of groups and one
// more. [any]
uint32_t rlhf__prefix_slots(const struct rlhf__model *, uint32_t slots, uint32_t group);

// A cache must have room for slots + prefix_slots sequences of at least prompt + max_new - 1
// tokens. The result is allocated; release with rlhf__gen_result_finish. [step]
rlhf_status rlhf__generate(const struct rlhf__model *, rlhf_gen *cache,
                           const struct rlhf__gen_request *, struct rlhf__gen_result *,
                           struct rlhf__error *err);
void rlhf__gen_result_finish(struct rlhf__gen_result *); // accepts a zeroed one [any]

#endif
