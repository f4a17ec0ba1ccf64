// unicode.h: UTF-8, and the tokenizers library's classification of characters.
//
// The parts of the tokenizers library use different Unicode versions: 16 for patterns, 17 for
// Lowercase and Digits, 9 for normal forms, 8 for punctuation. Our libraries use other versions: 15
// (utf8proc) and 14 (PCRE2). Short lists correct the tables of our libraries, so that the ids are
// the same for every character.
//
// It is not a Unicode library (utf8proc is).
#ifndef RLHF_FORMATS_TEXT_UNICODE_H
#define RLHF_FORMATS_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include <utf8proc.h>

// ---- UTF-8 ----

// Returns the length of the longest prefix of s[0..n) that is valid UTF-8: no overlong forms, no
// surrogates, at most U+10FFFF. If all of s is valid, this is n. [any]
size_t rlhf__utf8_valid(const char *s, size_t n);

// Returns the length of the valid character at s, which has n >= 1 bytes, and sets *cp to its code
// point. If the bytes at s are invalid, returns 0 and sets *bad to the number of bytes that one
// U+FFFD should replace (the maximal subpart, WHATWG practice). `cp` and `bad` may be NULL. [any]
size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad);

// Write code point cp (<= U+10FFFF) as UTF-8 to out[0..4). Returns the number of bytes written.
// [any]
size_t rlhf__utf8_put(uint32_t cp, char *out);

// Copy s[0..n) to `out`, with every invalid part replaced by U+FFFD. Writes at most `cap` bytes,
// and only whole characters. Returns the length of the whole result, which may exceed `cap`. `out`
// may be NULL if `cap` is 0. No NUL is added. [any]
size_t rlhf__utf8_repair(const char *s, size_t n, char *out, size_t cap);

// ---- kinds of characters ----

// General category in Unicode 16. [any]
utf8proc_category_t rlhf__unicode_category(uint32_t cp);

// Get entry i of the list of characters that were added in Unicode 15 or 16. Returns 0 if the list
// has no entry i. [any]
struct rlhf__unicode_range {
    uint32_t first, last;
    utf8proc_category_t category;
};
int rlhf__unicode_new(size_t i, struct rlhf__unicode_range *out);

// White_Space, the same in all versions. [any]
int rlhf__unicode_is_space(uint32_t cp);

// Returns 1 if the character is a number of any kind (general category Nd, Nl or No). The
// pre-tokenizer Digits treats exactly these characters as digits. [any]
int rlhf__unicode_is_number(uint32_t cp);

// 1 for a character that the pre-tokenizers Punctuation and BertPreTokenizer treat as punctuation.
// [any]
int rlhf__unicode_is_punct(uint32_t cp);

// Write the lower case of a character to `out`: 1 or 2 code points. Returns their number. [any]
size_t rlhf__unicode_lower(uint32_t cp, uint32_t out[2]);

// Returns 1 if the character is newer than the Unicode version of the normal forms. Normalization
// leaves such a character unchanged. [any]
int rlhf__unicode_is_young(uint32_t cp);

// 1 for a mark that StripAccents drops: a combining mark that rlhf__unicode_is_young does not
// accept. [any]
int rlhf__unicode_is_mark(uint32_t cp);

// _is_control: returns 1 for a character that BERT's normalizer treats as a control character
// (categories Cc, Cf and Co, except tab and line ends). _is_accent: returns 1 for a character that
// it treats as an accent (category Mn). [any]
int rlhf__unicode_is_control(uint32_t cp);
int rlhf__unicode_is_accent(uint32_t cp);

// Returns 1 for the library's \w: letters, marks, decimal numbers, connecting punctuation, joiners
// and other alphabetic characters. [any]
int rlhf__unicode_is_word(uint32_t cp);

#endif
