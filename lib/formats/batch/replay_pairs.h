// replay_pairs.h: stores preference pairs as token ids, and chooses the pairs of each round of
// reward-model training. Fresh pairs are those collected since the last round. History is the pairs
// of earlier rounds.
//
// This file runs no model and handles no text. keep/reward_round.h trains on the rows.
#ifndef RLHF_LIB_FORMATS_BATCH_REPLAY_PAIRS_H
#define RLHF_LIB_FORMATS_BATCH_REPLAY_PAIRS_H

#include "base/folder.h"
#include "batch/rows.h"
#include "text/vocab.h"

// A pair. Its tokens begin at index `at` of the buffer's `ids`: first the prompt, then the chosen
// response, then the rejected response.
struct rlhf__replay_pair {
    size_t at;
    int32_t prompt, chosen, rejected; // number of tokens of each, at least 1
};

// Zero-initialize; release with rlhf__replay_finish.
struct rlhf__replay {
    struct rlhf__ids ids;
    struct rlhf__replay_pair *pair; // [n]: history first, then fresh pairs
    size_t n, cap, n_history;
    uint64_t rounds; // finished rounds; part of the key for a round's random numbers
};

void rlhf__replay_finish(struct rlhf__replay *r); // accepts a zeroed struct [any]

// Append a fresh pair. The three arrays are copied. Errors: RLHF_E_INVALID (one of the arrays is
// empty), RLHF_E_NOMEM. [main]
rlhf_status rlhf__replay_add(struct rlhf__replay *r, const int32_t *prompt, int32_t n_prompt,
                             const int32_t *chosen, int32_t n_chosen, const int32_t *rejected,
                             int32_t n_rejected, struct rlhf__error *err);

// Set *out to the pairs of one round in order of use, as indices into r->pair. The caller frees the
// array.
// - If `share` is less than 1, every fresh pair occurs `epochs` times, in a new order each time.
// - History pairs are mixed in: of the first k pairs, floor(k * share) are from history. They are
//   drawn uniformly with replacement.
// - If `share` is 1, all pairs are from history. The round is as long as it would be without
//   history.
// - Without history, `share` counts as 0. Without fresh pairs, the round is empty.
//
// The draws depend only on (seed, r->rounds). Errors: RLHF_E_INVALID (`share` is outside [0, 1],
// `epochs` is outside [1, 65535], or there are 2^31 pairs or more), RLHF_E_NOMEM. [main]
rlhf_status rlhf__replay_round(const struct rlhf__replay *r, uint64_t seed, int32_t epochs,
                               double share, uint32_t **out, uint32_t *n, struct rlhf__error *err);

// Make two rows from each of the pairs pick[0..n): first the chosen response with label 1, then the
// rejected response with label 0. The group number is the pair's position in `pick`. The batch's
// flags keep a pair in one microbatch and let its rows share their prompt. Before the call, *e must
// be zeroed or released (rlhf__rows_finish). Errors: RLHF_E_NOMEM, RLHF_E_INVALID (too many
// tokens). [any]
rlhf_status rlhf__replay_rows(const struct rlhf__replay *r, const uint32_t *pick, uint32_t n,
                              struct rlhf__rows *e, struct rlhf__error *err);

// End a round: add its fresh pairs to history, then keep only the newest `keep` pairs of history.
// If `keep` is 0, keeps all pairs. [main]
void rlhf__replay_retire(struct rlhf__replay *r, size_t keep);

// Copy `src` to `dst`, which is zeroed or already has pairs. After RLHF_E_NOMEM, `dst` is empty.
// [main]
rlhf_status rlhf__replay_copy(struct rlhf__replay *dst, const struct rlhf__replay *src,
                              struct rlhf__error *err);

// rlhf__replay_write stores the replay buffer in the file `name` in the folder `in`. If `in` is
// NULL, `name` is a path. rlhf__replay_read reads the file at `path` into *r, which must be zeroed
// or released. All ids in the file must be below n_vocab. Errors: RLHF_E_IO, RLHF_E_INVALID (the
// file is damaged; the message has its name), RLHF_E_NOMEM. The file contains, little-endian:
// - "RLHFPAIR"
// - four u64: the numbers of rounds, history pairs, pairs and ids
// - for each pair three u32: the lengths of the prompt, the chosen and the rejected response
// - the ids as u32
// - u32: a CRC-32C of everything before it. [main]
rlhf_status rlhf__replay_write(const struct rlhf__replay *r, const struct rlhf__folder *in,
                               const char *name, struct rlhf__error *err);
rlhf_status rlhf__replay_read(struct rlhf__replay *r, const char *path, int32_t n_vocab,
                              struct rlhf__error *err);

#endif
