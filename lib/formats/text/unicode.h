// unicode.h: what the tokenizers library takes a character for.
//
// Its parts are of different ages: patterns know Unicode 16, Lowercase and Digits Unicode 17,
// normal forms Unicode 9, punctuation Unicode 8. What utf8proc (15) and PCRE2 (14) say is corrected
// by short lists, so that ids agree on every character that there is.
//
// What it is not: a Unicode library (that is utf8proc); internal to text/.
#ifndef RLHF_HOST_TEXT_UNICODE_H
#define RLHF_HOST_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include <utf8proc.h>

// General category as of Unicode 16. [any]
utf8proc_category_t rlhf__unicode_category(uint32_t cp);

// What Unicode 15 and 16 added to 14: entry i of the list, 0 behind its end. [any]
struct rlhf__unicode_range {
    uint32_t first, last;
    utf8proc_category_t category;
};
int rlhf__unicode_new(size_t i, struct rlhf__unicode_range *out);

// White_Space, the same in all versions. [any]
int rlhf__unicode_is_space(uint32_t cp);

// What Digits takes for a digit: a number of any kind. [any]
int rlhf__unicode_is_number(uint32_t cp);

// What Punctuation and BERT's words take for a mark. [any]
int rlhf__unicode_is_punct(uint32_t cp);

// Lower case of one character, 1 or 2 code points; returns how many. [any]
size_t rlhf__unicode_lower(uint32_t cp, uint32_t out[2]);

// 1 when normal forms do not know it: it neither changes, moves nor joins. [any]
int rlhf__unicode_is_young(uint32_t cp);

// What StripAccents drops: a combining mark that is not young. [any]
int rlhf__unicode_is_mark(uint32_t cp);

// BERT's control characters and accents: categories C but tab and ends of lines, and Mn. [any]
int rlhf__unicode_is_control(uint32_t cp);
int rlhf__unicode_is_accent(uint32_t cp);

#endif
