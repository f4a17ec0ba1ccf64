// letters.h: classes of characters, by code point and independently of the locale: white space,
// letters and digits, and lower case. The rules are Python's for the scripts whose letters have
// cases, and for Chinese, Japanese and Korean; combining marks are no letters, as in Python.
#ifndef RLHF_REWARDS_GRADER_LETTERS_H
#define RLHF_REWARDS_GRADER_LETTERS_H

#include "process/bytes.h"

// str.isspace(), \w and str.lower() of Python. [any]
int rlhf__letter_is_space(uint32_t cp);
int rlhf__letter_is_word(uint32_t cp);
uint32_t rlhf__letter_lower(uint32_t cp);

// Reads the character at *at and moves *at past it. Invalid UTF-8 is U+FFFD. [any]
uint32_t rlhf__letter_next(rlhf_str text, uint64_t *at);

// Append a character as UTF-8. [any]
void rlhf__letter_put(struct rlhf__bytes *, uint32_t cp);

// Append the text in lower case. [any]
void rlhf__letters_lower(struct rlhf__bytes *, rlhf_str text);

// Characters as code points. The caller frees `of` with the host's free.
struct rlhf__letters {
    uint32_t *of;
    uint32_t n;
};

// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__letters_init(struct rlhf__letters *, const rlhf_host *, rlhf_str text);

#endif
