// deal.h: divides the rows of a minibatch into shards. The shards depend only on the numbers of
// tokens, the groups and the prompts of the rows, so every process computes the same shards.
#ifndef RLHF_HOST_BATCH_DEAL_H
#define RLHF_HOST_BATCH_DEAL_H

#include "batch/rows.h"

// Divide the rows, in their order, into shards with about the same number of tokens. Shard s gets
// the rows [first[s], first[s + 1]), possibly none. The array `first` has `shards` + 1 elements.
//
// The tokens are counted unit by unit, in order, and the total is divided into `shards` equal
// parts. A unit belongs to the shard whose part contains the middle of the unit. A unit is
// - a whole group if RLHF__WHOLE_GROUPS is set, or if prompts are shared (`share` is 1) and there
//   are at least as many groups as shards;
// - otherwise a row.
// If rows of the same unit share a prompt, the tokens of the prompt are counted only once. [any]
void rlhf__deal(const struct rlhf__rows *e, uint32_t shards, int share, uint32_t *first);

#endif
