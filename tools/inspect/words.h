// words.h: the words whose logits are compared: --words good/great,bad/awful.
#ifndef RLHF_TOOLS_INSPECT_WORDS_H
#define RLHF_TOOLS_INSPECT_WORDS_H

#include "base/buf.h"
#include "inspect/direction.h"
#include "tokenizer/tokenizer.h"

enum { RLHF__WORDS_MAX = 64 }; // on one side

// One word and the token that represents it.
struct rlhf__word {
    char *text;
    int32_t id, pieces; // pieces: tokens that the word has
};

// Zero-initialize; release with rlhf__words_finish, even after a failure.
struct rlhf__words {
    struct rlhf__word side[2][RLHF__WORDS_MAX]; // good, bad
    int32_t id[2][RLHF__WORDS_MAX];             // of the words, for rlhf__sides
    uint32_t n[2];
    struct rlhf__buf note; // a sentence for each word of several tokens, one per line
};

// Split the flag's text into two sides of words. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__words_split(struct rlhf__words *out, const char *flag, struct rlhf__error *err);

// For each word, find its first token after the prompt. Puts a space before the word unless the
// prompt is empty or ends in white space. If a word has several tokens, uses the first one, and
// `note` gets a sentence about this. Errors: RLHF_E_INVALID if a word lacks a token, or if the good
// and the bad side begin with the same token. [main]
rlhf_status rlhf__words_find(struct rlhf__words *, const struct rlhf__tokenizer *tok,
                             const char *prompt, struct rlhf__error *err);

struct rlhf__sides rlhf__words_sides(const struct rlhf__words *); // borrowed [any]
void rlhf__words_finish(struct rlhf__words *);                    // accepts a zeroed one [any]

#endif
