// replay.h: preference pairs as token ids: the fresh ones, collected since the last round of
// reward-model training, and the history of earlier rounds; and which of them a round uses.
//
// It runs no model and knows no texts. What trains on the rows is iteration.h.
#ifndef RLHF_HOST_REPLAY_H
#define RLHF_HOST_REPLAY_H

#include "base/folder.h"
#include "batch/rows.h"
#include "text/vocab.h"

// Where a pair lies in ids: the prompt, the chosen response, the rejected response.
struct rlhf__replay_pair {
    size_t at;
    int32_t prompt, chosen, rejected; // tokens, each at least 1
    int32_t reserved;
};

// Zero-initialise; release with rlhf__replay_finish.
struct rlhf__replay {
    struct rlhf__ids ids;
    struct rlhf__replay_pair *pair; // [n]: history first, then the fresh ones
    size_t n, cap, n_history;
    uint64_t rounds; // finished; the draws of a round are keyed by it
};

void rlhf__replay_finish(struct rlhf__replay *r); // accepts a zeroed one [any]

// Append a fresh pair; the three arrays are copied. Errors: RLHF_E_INVALID (an empty part),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__replay_add(struct rlhf__replay *r, const int32_t *prompt, int32_t n_prompt,
                             const int32_t *chosen, int32_t n_chosen, const int32_t *rejected,
                             int32_t n_rejected, struct rlhf__error *err);

// The pairs of one round in the order of their use, as numbers into r->pair: every fresh pair
// `epochs` times, in a fresh order each time, and between them history, so that of any k pairs from
// the start floor(k * share) are history, each drawn uniformly with replacement. share 1: history
// alone, as many as there are fresh ones in the epochs. Without history only fresh ones, without
// fresh ones none. The draws are functions of (seed, r->rounds) alone. Caller frees *out [*n].
// Errors: RLHF_E_INVALID (share outside [0, 1], epochs < 1, more than 2^31 pairs), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__replay_round(const struct rlhf__replay *r, uint64_t seed, int32_t epochs,
                               double share, uint32_t **out, uint32_t *n, struct rlhf__error *err);

// The pairs pick[0..n) as rows: two a pair, the chosen one first with label 1, both with the pair's
// position as group; a pair is never split and may share its prompt. *e must be zeroed or finished.
// Errors: RLHF_E_NOMEM, RLHF_E_INVALID (too many tokens). [any]
rlhf_status rlhf__replay_rows(const struct rlhf__replay *r, const uint32_t *pick, uint32_t n,
                              struct rlhf__rows *e, struct rlhf__error *err);

// A round is over: its fresh pairs are history, of which the newest `keep` stay (0 = all). [main]
void rlhf__replay_retire(struct rlhf__replay *r, size_t keep);

// dst (zeroed, or with pairs of its own) = src. After RLHF_E_NOMEM dst is empty. [main]
rlhf_status rlhf__replay_copy(struct rlhf__replay *dst, const struct rlhf__replay *src,
                              struct rlhf__error *err);

// Write everything to the file `name` in a folder (NULL: name is a path), and read it back into a
// zeroed or finished *r. Format: "RLHFPAIR", then little-endian u64 rounds, history, pairs, ids;
// three u32 lengths a pair; the ids as u32; a CRC-32C of all before. n_vocab bounds the ids.
// Errors: RLHF_E_IO, RLHF_E_INVALID (damaged; the message names the file), RLHF_E_NOMEM. [main]
rlhf_status rlhf__replay_write(const struct rlhf__replay *r, const struct rlhf__folder *in,
                               const char *name, struct rlhf__error *err);
rlhf_status rlhf__replay_read(struct rlhf__replay *r, const char *path, int32_t n_vocab,
                              struct rlhf__error *err);

#endif
