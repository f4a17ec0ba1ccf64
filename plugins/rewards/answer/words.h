// words.h: the words around a number: "minus 5", "5 million", "50 percent", "5 dozen".
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_WORDS_H
#define RLHF_PLUGINS_REWARDS_ANSWER_WORDS_H

#include "answer/cursor.h"

// Moves past a lower-case word in letters of any case. Returns 1, or 0 if it is not at the cursor,
// or only a part of the word there. [any]
int rlhf__take_word(struct rlhf__cursor *, const char *word);

// Moves past "minus" or "negative" and spaces. Returns -1, or 0 if there is neither. [any]
int32_t rlhf__take_sign_word(struct rlhf__cursor *);

// If one of these words and spaces are directly before `at`, returns where the word begins,
// otherwise NULL. [any]
const char *rlhf__sign_word_before(const struct rlhf__cursor *, const char *at);

// Moves past " million", " hundred thousand" or the like. Returns the power of ten, 0 without such
// words. [any]
int32_t rlhf__take_scale(struct rlhf__cursor *);

// Returns 1 if the words after a number change its value in a way that is not read: 5 dozen, 5
// squared, 5 and a half. With `alone`, the words are all that follows, so that any word that joins
// two values counts: 5 or more. [any]
int rlhf__is_changed(const struct rlhf__cursor *, int alone);

#endif
