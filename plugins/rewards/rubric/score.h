// score.h: reads the score in a judge's answer.
#ifndef RLHF_REWARDS_RUBRIC_SCORE_H
#define RLHF_REWARDS_RUBRIC_SCORE_H

#include <stddef.h>

// Returns the last line of the answer that has a letter or a digit, and sets *n to its length.
// [any]
const char *rlhf__score_line(const char *text, size_t *n);

// Reads the score in the last line of an answer. The best score is `scale`. These numbers do not
// count: the scale after a score ("8/10", "8 out of 10", "8 of 10"), the scale as a range ("on a
// scale of 1 to 10") or with "-point" or "scale of". If one number is left, or several equal ones,
// it is the score. If several are left, the last is the score only if the word score, rating or
// grade is directly before it ("Score: 8"). Returns NULL and sets *score to a number from 0 to
// scale, or returns why there is no score. [any]
const char *rlhf__score_read(const char *text, size_t n, double scale, double *score);

#endif
