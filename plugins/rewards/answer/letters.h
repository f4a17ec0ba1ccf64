// letters.h: classifies the bytes of a text, independently of the locale.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_LETTERS_H
#define RLHF_PLUGINS_REWARDS_ANSWER_LETTERS_H

#include <string.h>

#define RLHF__NBSP "\xc2\xa0" // every joining space in cleaned texts is this one

static inline int rlhf__is_digit(char c) { return c >= '0' && c <= '9'; }
static inline char rlhf__lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static inline int rlhf__is_letter(char c) { return rlhf__lower(c) >= 'a' && rlhf__lower(c) <= 'z'; }
static inline int rlhf__is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static inline int rlhf__is_one_of(char c, const char *set) { return c && strchr(set, c); }

#endif
