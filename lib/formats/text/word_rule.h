// word_rule.h: the patterns that cut words for nearly all byte-level models, matched by hand.
//
// What it is not: pattern.h finds the same words by PCRE2, more slowly; internal to text/.
#ifndef RLHF_HOST_TEXT_WORD_RULE_H
#define RLHF_HOST_TEXT_WORD_RULE_H

#include <stddef.h>
#include <stdint.h>

enum rlhf__word_rule {
    RLHF__WORD_GPT2 = 1,
    RLHF__WORD_LLAMA3, // numbers in groups of up to three digits
    RLHF__WORD_QWEN2   // every digit alone
};

// The rule that a pattern's text is, 0 = none of them. [any]
int32_t rlhf__word_rule_of(const char *text, size_t n);

// Where the word that begins at s[at] ends, at < n; every character is in a word. s is well-formed
// UTF-8. [any]
size_t rlhf__word_end(int32_t rule, const char *s, size_t n, size_t at);

#endif
