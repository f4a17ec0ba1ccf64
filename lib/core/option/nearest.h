// nearest.h: finds the valid name that is closest to a misspelled name, for "did you mean" hints.
#ifndef RLHF_CORE_OPTION_NEAREST_H
#define RLHF_CORE_OPTION_NEAREST_H

#include <stddef.h>

// Damerau-Levenshtein distance (optimal string alignment) of the first 63 bytes of `a` and `b`.
// [any]
size_t rlhf__edit_distance(const char *a, const char *b);

// The state of a search. Before the first offer, set `wanted` and zero the other members.
struct rlhf__nearest {
    const char *wanted;
    const char *best; // NULL: nothing near enough; borrowed from the candidates
    size_t distance;
};

// Offer a candidate. It is near enough to be suggested in any of these cases:
//   the edit distance of the two names is at most 1, or at most a third of the longer name's length
//   one name has at least two bytes and is a whole part of the other; _, . and - separate parts
//   both begin with the same bytes: at least four, and at least half of the longer name
// [any]
void rlhf__nearest_offer(struct rlhf__nearest *n, const char *candidate);

// Write ` (did you mean "x"?)` to `out`, or "" if nothing is near enough. Returns `out`. [any]
const char *rlhf__nearest_hint(const struct rlhf__nearest *n, char *out, size_t cap);

#endif
