// stem.h: Porter's algorithm, which reduces English words to their stems (M. F. Porter 1980, "An
// algorithm for suffix stripping"), with the additions that nltk makes by default: a list of
// irregular words, and rules for -ies, -ied, -y, -bli, -alli, -fulli and -logi.
#ifndef RLHF_REWARDS_GRADER_STEM_H
#define RLHF_REWARDS_GRADER_STEM_H

#include <stddef.h>

enum { RLHF__STEM_MOST = 64 };

// Writes the stem of a word in lower case to out, and returns its length. A word of more than
// RLHF__STEM_MOST - 2 bytes is its own stem: the function returns 0. [any]
size_t rlhf__stem(const char *word, size_t n, char out[RLHF__STEM_MOST]);

#endif
