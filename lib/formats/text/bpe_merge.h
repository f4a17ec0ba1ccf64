// bpe_merge.h: the merge table of a BPE vocabulary and its application to one word.
//
// What it is not: it does not split text into words (bpe.c does); internal to text/.
#ifndef RLHF_HOST_TEXT_BPE_MERGE_H
#define RLHF_HOST_TEXT_BPE_MERGE_H

#include "text/ids.h"

struct rlhf__merge {
    uint64_t pair; // left id << 32 | right id
    uint32_t rank;
    int32_t id; // the token made; -1 = empty slot
};

// Zero-initialise; release with rlhf__merges_finish.
struct rlhf__merges {
    struct rlhf__merge *slot; // [n_slots] open addressing, n_slots a power of two
    size_t n_slots;
};

// Make room for n merges (drops what was there). Errors: RLHF_E_NOMEM. [one thread]
rlhf_status rlhf__merges_init(struct rlhf__merges *m, size_t n, struct rlhf__error *err);

// left + right -> id; the lower rank is applied first. At most the n of init. [one thread]
void rlhf__merges_add(struct rlhf__merges *m, int32_t left, int32_t right, uint32_t rank,
                      int32_t id);

// Merge ids[0..n) in place, always the pair of lowest rank, leftmost first; returns how many are
// left in *n. n log n for long words. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__merges_apply(const struct rlhf__merges *m, int32_t *ids, size_t *n,
                               struct rlhf__error *err);

// 1 when both hold the same merges in the same order. [any]
int rlhf__merges_equal(const struct rlhf__merges *a, const struct rlhf__merges *b);

void rlhf__merges_finish(struct rlhf__merges *m);

#endif
