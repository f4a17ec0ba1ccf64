// decode.h: samples responses with continuous batching: as soon as a row finishes, the next waiting
// prompt takes its slot.
//
// Adjacent sequences that have the same prompt (the same array) can share it: the prompt is
// computed once, into a separate cache, and each sequence continues from the prompt's last token.
// If no separate cache is free, the prompt is computed for each sequence.
//
// Drawn token t of sequence s uses random number s * 65536 + t of the stream, so responses do not
// depend on slots, order or threads. This file does not depend on rewards or prompt files.
//
// A sequence may have several turns (struct rlhf__gen_turns). After each turn, the sequence waits
// until it is known what follows. It keeps its slot, but takes part in no step. Other sequences
// continue. Then the sequence reads tokens that were not drawn, and draws its next turn. The drawn
// tokens do not depend on how long the sequence waits.
#ifndef RLHF_HOST_SAMPLE_DECODE_H
#define RLHF_HOST_SAMPLE_DECODE_H

#include "base/watch.h"
#include "model/model.h"
#include "sample/gen_result.h"
#include "sample/response_rules.h"

#include <signal.h>

#define RLHF__MAX_NEW_TOKENS 65535 // limit of the counters

// The next action of a sequence that waits.
enum rlhf__gen_next {
    RLHF__GEN_WAIT = 0,
    RLHF__GEN_READ = 1, // its next step reads tokens; at the beginning, its prompt
    RLHF__GEN_OVER = 2
};

// Decides what follows each turn of a sequence. All functions are called by the thread that
// decodes. Errors end the batch.
struct rlhf__gen_turns {
    void *ctx;
    // Maximum number of tokens in a sequence: prompt, turns, and tokens read between them.
    int32_t longest;
    int32_t longest_prompt;
    // Sequence i now has a slot. It begins when `next` returns RLHF__GEN_READ.
    rlhf_status (*begin)(void *ctx, uint32_t i, struct rlhf__error *err);
    // A turn of n tokens has ended. `stopped` is 1 if an end token or a rule ended the turn, and 0
    // if the turn reached max_new or the sequence reached `longest`.
    rlhf_status (*ended)(void *ctx, uint32_t i, const int32_t *ids, int32_t n, int stopped,
                         struct rlhf__error *err);
    // Called before each step. If `wait` is 1, all sequences are blocked, so the function must not
    // return until one of them can.
    rlhf_status (*advance)(void *ctx, int wait, struct rlhf__error *err);
    // Returns what sequence i does next (enum rlhf__gen_next). For RLHF__GEN_READ, *ids receives
    // the tokens to read and *n their number, at least 1. The ids are borrowed until the next call
    // of `ended` for this sequence. They must leave space for at least one more token within
    // `longest`. At the beginning of a sequence, *ids is not used: the function sets the request's
    // prompt[i] and prompt_len[i] instead.
    int (*next)(void *ctx, uint32_t i, const int32_t **ids, int32_t *n);
};

struct rlhf__gen_request {
    uint32_t n, slots;     // sequences; how many are decoded at once
    uint32_t prefix_slots; // KV caches for shared prompts (rlhf__prefix_slots), 0 = none
    // 1: store the set that each token was sampled from; log-probs are over this set
    int32_t keep_support;
    // [n] ids of the prompts. With turns, an element is NULL until its sequence begins.
    const int32_t *const *prompt;
    const int32_t *prompt_len;     // [n], at least 1
    int32_t max_new;               // longest response, or longest turn
    const struct rlhf__ends *ends; // tokens that end a response and are kept in it; NULL = none
    struct rlhf__response_rules *rules; // other rules that end a response, NULL = none
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    uint64_t first; // number of sequence 0 within the run
    // if set, sampling ends with RLHF_E_CANCELLED; NULL = never
    const volatile sig_atomic_t *cancelled;
    // Receives the number of sampled sequences. Without turns, a running sequence counts as the
    // fraction of max_new that it has sampled. NULL = none.
    const struct rlhf__watch *watch;
    const char *doing; // label for the watch
    // Called when a sequence has ended and its part of the result is complete. NULL = none.
    void (*ended)(void *ctx, uint32_t sequence);
    void *ended_ctx;
    const struct rlhf__gen_turns *turns; // NULL = every sequence is one response
};

// Returns how many caches for shared prompts are useful if `slots` rows are decoded at the same
// time. This is the number of groups that fill the slots, plus one. `group` is the number of rows
// of a group. Returns 0 if `group` is 1 or the model cannot share prompts. [any]
uint32_t rlhf__prefix_slots(const struct rlhf__model *, uint32_t slots, uint32_t group);

// Sample all sequences. The cache must hold slots + prefix_slots sequences. A sequence needs at
// least (longest prompt) + max_new - 1 tokens or, with turns, turns->longest - 1 tokens. The result
// is allocated; release with rlhf__gen_result_finish. [step]
rlhf_status rlhf__generate(const struct rlhf__model *, rlhf_gen *cache,
                           const struct rlhf__gen_request *, struct rlhf__gen_result *,
                           struct rlhf__error *err);

#endif
