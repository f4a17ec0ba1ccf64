// word_rule.h: the patterns that nearly all byte-level models use, matched by hand.
//
// Other patterns, and the choice between the two ways, are pattern.h's. Internal to text/.
#ifndef RLHF_FORMATS_TEXT_WORD_RULE_H
#define RLHF_FORMATS_TEXT_WORD_RULE_H

#include <stddef.h>
#include <stdint.h>

enum rlhf__word_rule {
    RLHF__WORD_GPT2 = 1,
    RLHF__WORD_LLAMA3, // numbers in groups of up to three digits
    RLHF__WORD_QWEN2   // every digit is a separate word
};

// The pattern of GPT-2, which ByteLevel uses.
#define RLHF__PATTERN_GPT2                                                                         \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

// The rule that matches the pattern with this text; 0 = PCRE2 matches it. [any]
int32_t rlhf__word_rule_of(const char *text, size_t n);

// Returns the end of the word that begins at s[at]; `at` is less than n. Every character belongs to
// a word. s is valid UTF-8. [any]
size_t rlhf__word_end(int32_t rule, const char *s, size_t n, size_t at);

#endif
