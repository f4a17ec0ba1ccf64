// overlap.h: grades from the words, and groups of words, that a text and its reference share: BLEU,
// Google's BLEU (GLEU) and ROUGE.
#ifndef RLHF_REWARDS_GRADER_OVERLAP_H
#define RLHF_REWARDS_GRADER_OVERLAP_H

#include "grader/word_pair.h"

enum { RLHF__ROUGE_MOST = 5 };

// sentence_bleu() of sacrebleu divided by 100: groups of up to 4 words, of which a short text may
// have fewer; a group size without matches counts half as much as before, and so on ("exp").
// Errors of all functions: RLHF_E_NOMEM. [any]
rlhf_status rlhf__overlap_bleu(const struct rlhf__word_pair *, double *out);

// sentence_gleu() of nltk: groups of 1 to 4 words; the smaller of precision and recall. [any]
rlhf_status rlhf__overlap_gleu(const struct rlhf__word_pair *, double *out);

// The F-measure of ROUGE for groups of n words, 1 to RLHF__ROUGE_MOST. [any]
rlhf_status rlhf__overlap_rouge(const struct rlhf__word_pair *, uint32_t n, double *out);

// ROUGE-L: the F-measure of the longest common subsequence. [any]
rlhf_status rlhf__overlap_rouge_l(const struct rlhf__word_pair *, double *out);

#endif
