// word_pair.h: two texts as lists of words, the text that is graded (0) and its reference (1).
#ifndef RLHF_REWARDS_GRADER_WORD_PAIR_H
#define RLHF_REWARDS_GRADER_WORD_PAIR_H

#include "process/bytes.h"

// How a text is split into words.
enum rlhf__word_form {
    // The tokenizer of mteval-v13a, as in sacrebleu: punctuation is split off, unless it is between
    // digits. Case counts.
    RLHF__WORDS_13A = 0,
    RLHF__WORDS_13A_LOWER = 1, // the same, then in lower case
    // The tokenizer of rouge-score: runs of a-z and 0-9 in lower case; all else separates words.
    RLHF__WORDS_ROUGE = 2,
    // The default_process of rapidfuzz: lower case, and characters other than letters, digits and _
    // become spaces.
    RLHF__WORDS_FUZZY = 3
};

// Longer texts are not compared.
enum { RLHF__WORDS_MOST = 16384, RLHF__WORDS_BYTES = 1 << 16 };

struct rlhf__word_pair {
    const rlhf_host *host;
    struct rlhf__bytes text[2]; // after the rules of the form; words have white space between
    uint32_t n[2];
    rlhf_str *string[2]; // [n] borrowed from text
    // [n] words are equal if and only if their numbers are; numbers have the order of the bytes
    uint32_t *word[2];
};

// Splits two texts. If one is too long, both have no words, and too_long is 1. Errors:
// RLHF_E_NOMEM. Release with rlhf__word_pair_finish, even after a failure. [any]
rlhf_status rlhf__word_pair_init(struct rlhf__word_pair *, const rlhf_host *host,
                                 enum rlhf__word_form, rlhf_str graded, rlhf_str reference,
                                 int *too_long);

// The same for texts that are words with white space between. Takes over the buffers, also if it
// fails. [any]
rlhf_status rlhf__word_pair_take(struct rlhf__word_pair *, const rlhf_host *host,
                                 struct rlhf__bytes text[2], int *too_long);
void rlhf__word_pair_finish(struct rlhf__word_pair *); // [any]

#endif
