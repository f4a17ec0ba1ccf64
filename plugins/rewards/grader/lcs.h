// lcs.h: the length of the longest common subsequence of one list of symbols (the pattern) and many
// others, 64 symbols of the pattern at a time (Hyyro 2004, "Bit-parallel LCS-length computation
// revisited").
#ifndef RLHF_REWARDS_GRADER_LCS_H
#define RLHF_REWARDS_GRADER_LCS_H

#include <rlhf/host.h>

struct rlhf__lcs {
    const rlhf_host *host;
    uint32_t n, words, n_symbols;
    uint32_t *symbol; // [n_symbols] sorted
    uint64_t *mask;   // [n_symbols][words] where the symbol is in the pattern
    uint64_t *state;  // [words]
};

// Errors: RLHF_E_NOMEM. Release with rlhf__lcs_finish, even after a failure. [any]
rlhf_status rlhf__lcs_init(struct rlhf__lcs *, const rlhf_host *host, const uint32_t *pattern,
                           uint32_t n);
void rlhf__lcs_finish(struct rlhf__lcs *); // [any]

// Set row[i] to the index of text[i] among the symbols of the pattern, or to -1. [any]
void rlhf__lcs_rows(const struct rlhf__lcs *, const uint32_t *text, uint32_t n, int32_t *row);

// The length for a text, given as its rows. [any]
uint32_t rlhf__lcs_length(struct rlhf__lcs *, const int32_t *row, uint32_t n);

// The length for two lists. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__lcs_of(const rlhf_host *host, const uint32_t *a, uint32_t n_a, const uint32_t *b,
                         uint32_t n_b, uint32_t *length);

#endif
